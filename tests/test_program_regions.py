"""Programs that are planned in part: variables that grow, shapes that depend on values, bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_program import assert_close
from vinoir import ir
from vinoir.ir.engine import outside
from vinoir.ir.engine.kernels import sharing
from vinoir.ir.engine.memory import Growing
from vinoir.ir.engine.patterns import Patterns, holds
from vinoir.ir.engine.plan import unrolling
from vinoir.ir.engine.planned import Planned
from vinoir.layers.budget import within
from vinoir.layers.shape import ReshapeV1
from vinoir.schemas import Array, ElementType, LimitError, Tensor

HEADS, DEEP, WIDE = 4, 2, 8


def numbers(*shape: int, seed: int = 7) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def decoder(shared: int = HEADS) -> ir.Model:
    """Attention over all that was seen; so many keys and values are kept, and then repeated."""
    net = ir.Builder("decoder")
    x = net.parameter("x", "f32", "?,?,8")
    mask = net.parameter("mask", "f32", "?,?")
    beam = net.parameter("beam", "i32", "?")
    batch = net.add("Gather", "opset8", [
        net.add("ShapeOf", "opset3", [x], output_type="i64"),
        net.constant(np.int64([0])), net.constant(np.int64(0)),
    ])  # fmt: skip
    sizes = [batch, *(net.constant(np.int64([size])) for size in (shared, 0, DEEP))]
    shape = net.add("Concat", "opset1", sizes, axis=0)
    nothing = net.add("Broadcast", "opset3", [net.constant(np.float32(0)), shape])
    turned = net.constant(np.int64([0, 2, 1, 3]))

    def projected(seed: int, heads: int = HEADS) -> ir.Output:
        weights = net.constant(numbers(heads * DEEP, WIDE, seed=seed).astype("f2"))
        wide = net.add("Convert", "opset1", [weights], destination_type="f32")
        made = net.add("MatMul", "opset1", [x, wide], transpose_b=True)
        sizes = net.constant(np.int64([0, 0, heads, DEEP]))
        split = net.add("Reshape", "opset1", [made, sizes], special_zero=True)
        return net.add("Transpose", "opset1", [split, turned])

    def remembered(seed: int, name: str) -> ir.Output:
        kept = net.add("ReadValue", "opset6", [nothing], variable_id=name, variable_type="f32",
                       variable_shape=f"?,{shared},?,{DEEP}")  # fmt: skip
        past = net.add("Gather", "opset8", [kept, beam, net.constant(np.int64(0))])
        grown = net.add("Concat", "opset1", [past, projected(seed, shared)], axis=-2)
        net.add("Assign", "opset6", [grown], variable_id=name)
        if shared == HEADS:
            return grown
        apart = net.add("Unsqueeze", "opset1", [grown, net.constant(np.int64([2]))])
        times = net.constant(np.int64([1, 1, HEADS // shared, 1, 1]))
        repeated = net.add("Broadcast", "opset3", [apart, times], mode="bidirectional")
        sizes = net.constant(np.int64([0, HEADS, -1, DEEP]))
        return net.add("Reshape", "opset1", [repeated, sizes], special_zero=True)

    axes = net.constant(np.int64([1, 2]))
    seen = net.add("Unsqueeze", "opset1", [mask, axes])
    given = [projected(1), remembered(2, "key"), remembered(3, "value"), seen]
    found = net.add("ScaledDotProductAttention", "opset13", given, causal=False)
    joined = net.add("Transpose", "opset1", [found, turned])
    flat = net.constant(np.int64([0, 0, WIDE]))
    rows = net.add("Reshape", "opset1", [joined, flat], special_zero=True)
    out = net.add("MatMul", "opset1", [rows, net.constant(numbers(WIDE, 5))])
    net.result(net.add("Gelu", "opset7", [out]), name="y")
    return net.model()


def words(batch: int, length: int, before: int) -> list[Array]:
    mask = np.zeros((batch, before + length), "f4")
    return [numbers(batch, length, WIDE, seed=before), mask, np.arange(batch, dtype="i4")]


@pytest.mark.parametrize("shared", [HEADS, 2, 1])
def test_what_grows_is_planned_once_and_written_in_place(shared: int) -> None:
    model = decoder(shared)
    program = ir.compile(model)
    state: dict[str, Array] = {}
    plans, moved, kept = set(), 0, []
    before = 0
    for length in [5, *[1] * 90]:
        given = words(1, length, before)
        before += length
        assert_close(program(given), ir.run(model, given, state=state))
        plans.add(id(next(reversed(program._plans.values()))))
        held = program.state["key"]
        assert held.shape == state["key"].shape == (1, shared, before, DEEP)
        moved += not kept or not np.may_share_memory(held, kept[-1][0])
        kept.append((held, held.copy()))
    assert len(plans) == 2
    assert moved < 5
    last = next(reversed(plans_of(program)))
    assert "Broadcast" not in [node.layer.type for node in last.plan.nodes]
    for held, copy in kept:  # what was handed out stays as it was
        np.testing.assert_array_equal(held, copy)
    program.reset()
    assert_close(program(words(1, 3, 0)), ir.run(model, words(1, 3, 0)))


def test_one_goes_back_to_what_was_kept() -> None:
    model = decoder()
    program = ir.compile(model)
    program(words(1, 4, 0))
    program(words(1, 1, 4))
    back = dict(program.state)
    first = [program(words(1, 1, 5))["y"], program(words(1, 1, 6))["y"]]
    after = dict(program.state)
    program.state.clear()
    program.state.update(back)
    again = [program(words(1, 1, 5))["y"], program(words(1, 1, 6))["y"]]
    np.testing.assert_array_equal(first, again)
    for name, value in after.items():
        np.testing.assert_array_equal(value, program.state[name])


def test_beams_change_places() -> None:
    model = decoder()
    program = ir.compile(model)
    state: dict[str, Array] = {}
    rng = np.random.default_rng(3)
    before = 0
    for length in [4, *[1] * 12]:
        given = words(3, length, before)
        if before:
            given[2] = rng.integers(0, 3, 3).astype("i4")
        before += length
        assert_close(program(given), ir.run(model, given, state=state))
    assert len(program._plans) == 2


def test_the_caller_keeps_what_it_gave() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,2")
    kept = net.add("ReadValue", "opset6", [x], variable_id="v", variable_type="f32",
                   variable_shape="?,2")  # fmt: skip
    net.add("Assign", "opset6", [kept], variable_id="v")
    net.result(kept, name="y")
    program = ir.compile(net.model())
    first, second = np.ones((2, 2), "f4"), np.full((3, 2), 2, "f4")
    given = first.copy()
    for _ in range(3):
        found = program([given])["y"]
        np.testing.assert_array_equal(found, first)
        found[:] = given[:] = 9
        given = second


@pytest.mark.parametrize("length", [1, 7])
def test_workers_do_not_change_what_comes_out(length: int) -> None:
    model = decoder()
    found = []
    for threads in (1, 2, 3):
        program = ir.compile(model, threads=threads)
        program(words(1, 6, 0))
        found.append(program(words(1, length, 6))["y"])
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_initial_values_are_not_computed_again() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,8")
    start = net.add("MatMul", "opset1", [x, net.constant(numbers(8, 8))])
    kept = net.add("ReadValue", "opset6", [start], variable_id="v", variable_type="f32",
                   variable_shape="1,8")  # fmt: skip
    net.add("Assign", "opset6", [kept], variable_id="v")
    net.result(net.add("Exp", "opset1", [kept]), name="y")
    model = net.model()
    program, state = ir.compile(model), {}
    for seed in range(3):
        given = [numbers(1, 8, seed=seed)]
        assert_close(program(given), ir.run(model, given, state=state))
    kinds = [[node.kind for node in planned.plan.nodes] for planned in plans_of(program)]
    assert ["MatMul" in found for found in kinds] == [True, False]


def plans_of(program: ir.Program) -> list[Planned]:
    return [planned for planned in program._plans.values() if planned is not None]


def test_what_lies_between_shapes_that_depend_on_values_is_planned() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 4, 6, 6))
    ones = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
    inner = net.add("Convolution", "opset1", [x, net.constant(numbers(8, 4, 3, 3))], **ones)
    positive = net.add("ReLU", "opset1", [inner])
    line = net.constant(np.int64([-1]))
    flat = net.add("Reshape", "opset1", [positive, line], special_zero=False)
    places = net.add("NonZero", "opset3", [flat], output_type="i64")
    rows = net.add("Squeeze", "opset1", [places, net.constant(np.int64([0]))])
    some = net.add("Gather", "opset8", [flat, rows, net.constant(np.int64(0))])
    total = net.add("ReduceSum", "opset1", [some, net.constant(np.int64([0]))], keep_dims=True)
    again = net.add("Multiply", "opset1", [net.add("Sigmoid", "opset1", [total]), inner])
    last = net.add("Convolution", "opset1", [again, net.constant(numbers(3, 8, 1, 1))],
                   **ones | dict.fromkeys(("pads_begin", "pads_end"), (0, 0)))  # fmt: skip
    net.result(some, name="some")
    net.result(last, name="last")
    model = net.model()
    program = ir.compile(model)
    (planned,) = plans_of(program)
    inside = [node.kind for node in planned.plan.nodes if not node.is_outside]
    assert inside.count("Convolution") == 2
    for seed in range(3):
        given = [numbers(1, 4, 6, 6, seed=seed)]
        assert_close(program(given), ir.run(model, given))


def chosen_boxes(wrong: bool = False) -> ir.Model:
    """The best of the boxes whose score is high enough, as detectors choose them."""
    net = ir.Builder()
    scores = net.parameter("scores", "f32", (1500,))
    boxes = net.parameter("boxes", "f32", (1500, 4))
    least = net.parameter("least", "f32", ())
    high = net.add("Greater", "opset1", [scores, least])
    places = net.add("NonZero", "opset3", [high], output_type="i64")
    rows = net.add("Transpose", "opset1", [places, net.constant(np.int64([1, 0]))])
    if wrong:
        rows = net.add("Add", "opset1", [rows, net.constant(np.int64([[1000]]))])
    some = net.add("GatherND", "opset8", [scores, rows], batch_dims=0)
    framed = net.add("GatherND", "opset8", [boxes, rows], batch_dims=0)
    shape = net.add("ShapeOf", "opset3", [some], output_type="i64")
    none = net.constant(np.int64(0))
    count = net.add("Minimum", "opset1", [shape, net.constant(np.int64([20]))])
    scalar = net.add("Squeeze", "opset1", [count, none])
    best, order = net.add(
        "TopK", "opset11", [some, scalar], axis=0, mode="max", sort="value",
        index_element_type="i32",
    )  # fmt: skip
    net.result(best, name="best")
    net.result(net.add("Gather", "opset8", [framed, order, none], batch_dims=0), name="framed")
    label = net.add("Broadcast", "opset3", [net.constant(np.int64(3)), count], mode="numpy")
    net.result(label, name="label")
    return net.model()


@pytest.mark.parametrize("least", [-9.0, -1.0, 0.0, 2.0, 9.0])
def test_boxes_are_chosen_as_by_the_definitions(least: float) -> None:
    model = chosen_boxes()
    given = [numbers(1500), numbers(1500, 4, seed=8), np.float32(least)]
    given = [np.asarray(array) for array in given]
    wanted = ir.run(model, given)
    for limit in (None, 10_000_000):
        program = ir.compile(model, max_memory=limit)
        for _ in range(2):
            found = program(given)
            for key, array in wanted.items():
                np.testing.assert_array_equal(found[key], array)
                assert found[key].dtype == array.dtype


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("least", [-9.0, 0.0, 9.0])
def test_threads_share_products_of_as_many_rows_as_there_are(
    least: float, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "LONG", 1)
    monkeypatch.setattr(sharing, "lanes", lambda amount: 3)
    net = ir.Builder()
    x, zero = net.parameter("x", "f32", "40,6"), net.constant(np.int64(0))
    first = net.add("Gather", "opset8", [x, zero, net.constant(np.int64(1))])
    high = net.add("Greater", "opset1", [first, net.constant(np.float32(least))])
    places = net.add("NonZero", "opset3", [high], output_type="i64")
    rows = net.add("Gather", "opset8", [x, net.add("Squeeze", "opset1", [places, zero]), zero])
    weights = net.constant(numbers(7, 6) if turned else numbers(6, 7))
    made = net.add("MatMul", "opset1", [rows, weights], transpose_b=turned)
    again = net.constant(numbers(7, 5))
    across = net.add("Transpose", "opset1", [made, net.constant(np.int64([1, 0]))])
    net.result(made)
    net.result(net.add("MatMul", "opset1", [across, again], transpose_a=True))
    model, given = net.model(), [numbers(40, 6)]
    found = []
    for threads, fork in ((1, False), (2, False), (3, True)):
        program = ir.compile(model, threads=threads, fork=fork)
        assert_close(program(given), ir.run(model, given))
        found.append([array.tobytes() for array in program(given).values()])
    assert found[0] == found[1] == found[2]


def test_places_beyond_an_axis_are_refused_with_their_layer() -> None:
    model = chosen_boxes(wrong=True)
    given = [numbers(1500), numbers(1500, 4, seed=8), np.asarray(np.float32(-9))]
    with pytest.raises(ir.IRError) as alone:
        ir.run(model, given)
    with pytest.raises(ir.IRError) as planned:
        ir.compile(model)(given)
    assert "index 1500 is beyond an axis of size 1500" in str(alone.value)
    assert str(planned.value) == str(alone.value)


def test_sizes_that_grow_without_variables_are_left_open() -> None:
    net = ir.Builder()
    past = net.parameter("past", "f32", "1,?,4")
    x = net.parameter("x", "f32", "1,1,4")
    grown = net.add("Concat", "opset1", [past, x], axis=1)
    scores = net.add("MatMul", "opset1", [x, grown], transpose_b=True)
    seen = net.add("MatMul", "opset1", [net.add("SoftMax", "opset8", [scores], axis=-1), grown])
    net.result(net.add("MatMul", "opset1", [seen, net.constant(numbers(4, 4))]), name="y")
    net.result(grown, name="present")
    model = net.model()
    program = ir.compile(model)
    held = numbers(1, 3, 4)
    plans = set()
    for step in range(12):
        given = [held, numbers(1, 1, 4, seed=step)]
        found = program(given)
        assert_close(found, ir.run(model, given))
        plans.add(next(reversed(program._plans)))
        held = found["present"]
    assert len(plans) < 6
    assert program._plans.keys() & {((1, -1, 4), (1, 1, 4))}


@pytest.mark.parametrize("kind", ["samples", "columns", "sides", "steps", "rows"])
def test_sizes_that_grow_are_not_left_open_where_that_takes_longer(kind: str) -> None:
    """More images with each call, wider ones, longer sequences: each is planned for."""
    net = ir.Builder()
    if kind == "steps":
        x = net.parameter("x", "f32", "2,?,4")
        state = [net.constant(np.zeros((2, 1, 3), "f4")) for _ in range(2)]
        lengths = net.add("Squeeze", "opset1", [
            net.add("Broadcast", "opset3", [
                net.add("Gather", "opset8", [
                    net.add("ShapeOf", "opset3", [x], output_type="i64"),
                    net.constant(np.int64([1])), net.constant(np.int64(0)),
                ]),
                net.constant(np.int64([2])),
            ]),
        ])  # fmt: skip
        weights = [net.constant(numbers(1, 12, wide)) for wide in (4, 3)]
        bias = net.constant(numbers(1, 12))
        y = net.add("LSTMSequence", "opset5", [x, *state, lengths, *weights, bias],
                    hidden_size=3, direction="forward")  # fmt: skip
        net.result(y[0] if isinstance(y, (list, tuple)) else y)
    elif kind == "rows":
        x = net.parameter("x", "f32", "?,8")
        net.result(net.add("MatMul", "opset1", [x, net.constant(numbers(8, 8))]))
    elif kind == "sides":
        x = net.parameter("x", "f32", "1,3,8,?")
        mean = net.add("ReduceMean", "opset1", [x, net.constant(np.int64([0, 1, 2, 3]))])
        when = net.add("Greater", "opset1", [mean, net.constant(np.float32(0))])
        sides = net.add("If", "opset8", [when, x], outputs=[Tensor(ElementType.F32, "1,4,8,?")])
        for name in ("then_body", "else_body"):
            body, wiring = ir.Builder(into=ir.Graph()), ir.PortMap()
            given_ = body.parameter("given", "f32", "1,3,8,?")
            weights_ = body.constant(numbers(4, 3, 3, 3, seed=len(name)))
            words = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
            end = body.result(body.add("Convolution", "opset1", [given_, weights_], **words))
            wiring.add("input", external_port_id=1, internal_layer_id=given_.layer.id)
            wiring.add("output", external_port_id=0, internal_layer_id=end.id)
            sides.layer.add_body(name, body.graph, wiring)
        net.result(sides)
    else:
        x = net.parameter("x", "f32", "?,3,8,8" if kind == "samples" else "1,3,8,?")
        words = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
        y = net.add("Convolution", "opset1", [x, net.constant(numbers(4, 3, 3, 3))], **words)
        net.result(net.add("ReLU", "opset1", [y]))
    model = net.model()
    program = ir.compile(model)
    for size in range(4, 12):
        shape = {"samples": (size, 3, 8, 8), "columns": (1, 3, 8, size), "steps": (2, size, 4),
                 "rows": (size, 8), "sides": (1, 3, 8, size)}  # fmt: skip
        given = [numbers(*shape[kind], seed=size)]
        assert_close(program(given), ir.run(model, given))
        assert next(reversed(program._plans)) == (shape[kind],)


def test_patterns_hold_for_what_they_leave_open() -> None:
    assert holds(((1, -1), (3,)), ((1, 9), (3,)))
    assert not holds(((1, -1), (3,)), ((2, 9), (3,)))
    assert not holds(((1, -1), (3,)), ((1, 9, 1), (3,)))
    assert not holds(((1, -1), None), ((1, 9), (3,)))
    patterns = Patterns(decoder())
    assert sorted(patterns.variables) == ["key", "value"]
    first = ((1, 5, 8), (1, 5), (1,), None, None)
    patterns.infer(patterns.choose(first))
    shape = (1, HEADS, 5, DEEP)
    chosen = patterns.choose(((1, 1, 8), (1, 6), (1,), shape, shape))
    grown = ((1, HEADS, -1, DEEP), (1, HEADS, -1, DEEP))
    assert chosen == ((1, 1, 8), (1, -1), (1,), *grown)
    patterns.seen(((1, 1, 8), (1, 9), (1,), (1, HEADS, 8, DEEP), (1, HEADS, 8, DEEP)))
    more = (1, HEADS, 9, DEEP)
    chosen = patterns.choose(((1, 4, 8), (1, 13), (1,), more, more))
    assert chosen == ((1, 4, 8), (1, -1), (1,), *grown)
    # Another text, from the beginning: that it is longer says nothing.
    again = ((1, 20, 8), (1, 20), (1,), None, None)
    assert patterns.choose(again) == again


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rooms_are_written_behind_what_was_seen_only(axis: int) -> None:
    rng = np.random.default_rng(5)
    growing, held = Growing(axis), [numbers(2, 3, 4)]
    copies = [held[0].copy()]
    for step in range(200):
        # Mostly on from the last, sometimes from an older one, as when somebody goes back.
        past = held[-1] if rng.random() < 0.8 else held[rng.integers(len(held))]
        sizes = [2, 3, 4]
        for place in range(3):
            sizes[place] = past.shape[place]
        sizes[axis] = int(rng.integers(0, 3))
        new = numbers(*sizes, seed=step)
        found = growing.join(past, new)
        assert found is not None
        np.testing.assert_array_equal(found, np.concatenate([past, new], axis))
        held.append(found)
        copies.append(found.copy())
    for one, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(one, copy)


@pytest.mark.parametrize(
    ("past", "new", "axis", "fits"),
    [((2, 3, 4), (2, 1, 4), 1, True), ((2, 0, 4), (2, 1, 4), -2, True), ((0, 3), (2, 3), 0, True),
     ((2, 3, 4), (1, 1, 4), 1, False), ((2, 3, 4), (2, 4), 1, False), ((2, 3), (2, 3), 2, False),
     ((), (), 0, False)],
)  # fmt: skip
def test_what_is_joined_in_a_room_fits(
    past: tuple[int, ...], new: tuple[int, ...], axis: int, fits: bool
) -> None:
    assert (Growing(axis).join(numbers(*past), numbers(*new)) is not None) is fits
    assert Growing(axis).join(numbers(*past), numbers(*new).astype("f2")) is None


def test_what_goes_on_in_a_room_is_looked_at() -> None:
    growing, new = Growing(0), numbers(1, 3)
    found = growing.join(numbers(2, 3), new)
    assert found is not None
    assert growing.join(found, new.astype("f2")) is None
    assert growing.join(found, numbers(1, 4)) is None
    other = numbers(600, 3)
    with within(max_memory=1000), pytest.raises(LimitError):
        growing.join(other, new)
    # As if nobody had asked.
    made = growing.join(found, new)
    assert made is not None
    np.testing.assert_array_equal(made, np.concatenate([found, new]))
    assert np.may_share_memory(made, found)


def test_constants_that_are_not_aligned_are_copied_once(tmp_path: Path) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 6))
    odd = net.add("Convert", "opset1", [net.constant(np.uint8([3]))], destination_type="f32")
    y = net.add("MatMul", "opset1", [net.add("Multiply", "opset1", [x, odd]),
                                     net.constant(numbers(6, 5))])  # fmt: skip
    net.result(y, name="y")
    path = tmp_path / "m.xml"
    ir.write(net.model(), path)
    text, weights = path.read_text("utf-8"), path.with_suffix(".bin").read_bytes()
    # Everything one byte on, as after a constant of one byte.
    moved = text
    for layer in ir.read(path).constants:
        offset = layer.data["offset"]
        old = f'offset="{offset}" size="{layer.data["size"]}"'
        assert old in moved
        moved = moved.replace(old, f'offset="{int(offset) + 1}" size="{layer.data["size"]}"')
    path.write_text(moved, "utf-8")
    path.with_suffix(".bin").write_bytes(b"\0" + weights)
    model = ir.read(path)
    given = [numbers(2, 6)]
    wanted = ir.run(net.model(), given)
    assert_close(ir.run(model, given), wanted)
    program = ir.compile(model)
    assert_close(program(given), wanted)
    (planned,) = plans_of(program)
    values = [value for node in planned.plan.nodes for value in node.reads]
    assert all(value.constant is None or value.constant.flags.aligned for value in values)


def scaled(given: ir.Builder, element: str, shape: str, factor: float) -> tuple[int, int]:
    """Fill a body: its Parameter by a matrix; the ids of Parameter and Result."""
    wide = np.dtype("f2" if element == "f16" else "f4")
    inner = given.parameter("inner", element, shape)
    weights = given.constant((factor * numbers(4, 4)).astype(wide))
    made = given.add("MatMul", "opset1", [inner, weights])
    given.result(given.add("Tanh", "opset1", [made]))
    return inner.layer.id, given.graph.results[0].id


def either(element: str, condition: bool | None) -> ir.Model:
    net = ir.Builder()
    x = net.parameter("x", element, "3,4")
    if condition is None:
        when = net.parameter("when", "boolean", "")
    else:
        when = net.constant(np.array(condition))
    before = net.add("Exp", "opset1", [x])
    made = net.add("If", "opset8", [when, before], outputs=[Tensor(ElementType(element), (3, 4))])
    for tag, factor in (("then_body", 1.0), ("else_body", 2.0)):
        body, wiring = ir.Builder(into=ir.Graph()), ir.PortMap()
        start, end = scaled(body, element, "3,4", factor)
        wiring.add("input", external_port_id=1, internal_layer_id=start)
        wiring.add("output", external_port_id=0, internal_layer_id=end)
        made.layer.add_body(tag, body.graph, wiring)
    net.result(net.add("Negative", "opset1", [made]), name="y")
    return net.model()


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("condition", [True, False, None])
def test_an_if_is_planned_and_gone_where_its_side_is_known(
    element: str, condition: bool | None
) -> None:
    model = either(element, condition)
    program = ir.compile(model)
    (planned,) = plans_of(program)
    assert any(node.layer.type == "If" for node in planned.plan.nodes) == (condition is None)
    x = numbers(3, 4).astype("f2" if element == "f16" else "f4")
    for when in (True, False, True):
        given = [x, np.array(when)] if condition is None else [x]
        found, wanted = program(given), ir.run(model, given)
        assert found["y"].dtype == wanted["y"].dtype == x.dtype
        rounding = 2e-3 if element == "f16" else 1e-5
        np.testing.assert_allclose(found["y"], wanted["y"], rtol=rounding, atol=rounding)


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_bodies_of_loops_are_planned_once(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = ir.Builder()
    x = net.parameter("x", element, "5,4")
    outputs = [Tensor(ElementType(element), (5, 4))]
    made = net.add("TensorIterator", "opset1", [x], outputs=outputs)
    body, wiring = ir.Builder(into=ir.Graph()), ir.PortMap()
    start, end = scaled(body, element, "1,4", 1.0)
    sliced = {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
    wiring.add("input", external_port_id=0, internal_layer_id=start, **sliced)
    wiring.add("output", external_port_id=0, internal_layer_id=end, **sliced)
    made.layer.add_body("body", body.graph, wiring)
    net.result(made, name="y")
    model = net.model()
    counted: list[object] = []
    true = outside.build
    monkeypatch.setattr(outside, "build", lambda *given: counted.append(given) or true(*given))
    monkeypatch.setattr(unrolling, "MOST", 0)  # else the turns take its place
    program = ir.compile(model)
    given = [numbers(5, 4).astype("f2" if element == "f16" else "f4")]
    for _ in range(3):
        rounding = 2e-3 if element == "f16" else 1e-5
        found, wanted = program(given)["y"], ir.run(model, given)["y"]
        np.testing.assert_allclose(found, wanted, rtol=rounding, atol=rounding)
    assert len(counted) == 1


def test_what_lies_in_trial_memory_is_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a Reshape is a view is tried on memory that may hold anything."""
    right, empty = ReshapeV1.run, np.empty

    def doubled(self: ReshapeV1, *inputs: Any) -> tuple[Any, ...]:
        return (right(self, *inputs)[0] * np.float32(2),)

    def full(shape: Any, dtype: Any = float, **words: Any) -> Any:
        made = empty(shape, dtype, **words)
        if made.dtype == np.float32:
            made.fill(3e38)
        return made

    net = ir.Builder()
    x = net.parameter("x", "f32", "3,4")
    y = net.add("Reshape", "opset1", [net.add("Exp", "opset1", [x]), [2, 6]], special_zero=False)
    net.result(net.add("Exp", "opset1", [y]), name="y")
    monkeypatch.setattr(ReshapeV1, "run", doubled)
    monkeypatch.setattr("vinoir.ir.engine.memory.views.np.empty", full)
    assert ir.compile(net.model(), threads=1)([np.zeros((3, 4), "f4")])["y"].shape == (2, 6)
