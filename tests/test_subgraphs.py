"""Layers with bodies and layers with state, against OpenVINO."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine import outside
from vinoir.ir.engine.memory import Growing
from vinoir.ir.engine.plan import unrolling
from vinoir.schemas import IRError, Shape
from vinoir.schemas.errors import LimitError

ov = pytest.importorskip("openvino")
import openvino.opset13 as ops  # noqa: E402  # only where openvino is there

SHAPES = ["2,6,3", "2,?,3", "1..4,6,3", "?,?,?", "..."]


def parameter(shape: str, kind: Any = ov.Type.f32) -> Any:
    return ops.parameter(ov.PartialShape(f"[{shape}]"), kind)


def iterator(shape: str, part: int, start: int, end: int, stride: int) -> Any:
    """A TensorIterator that adds up slices, and hands out each of the sums."""
    x, h = parameter(shape), parameter("2,1,3")
    cut, kept = parameter("?,?,?"), parameter("?,?,?")
    total = ops.add(ops.reduce_sum(cut, ops.constant([1]), keep_dims=True), kept)
    body = ov.Model([total, ops.relu(total)], [cut, kept], "body")
    made = ops.tensor_iterator()
    made.set_body(body)
    made.set_sliced_input(cut, x.output(0), start, stride, part, end, 1)
    made.set_merged_input(kept, h.output(0), body.results[0].output(0))
    last = made.get_iter_value(body.results[0].output(0), -1)
    back = stride < 0
    every = made.get_concatenated_slices(
        body.results[1].output(0), -1 if back else 0, -1 if back else 1, 1, 0 if back else -1, 1
    )
    return ov.Model([last, every], [x, h], "ti")


def loop(shape: str, count: int | None, goes_on: bool | None, grows: bool) -> Any:
    """A Loop that adds the number of the turn, and may stop early or grow what it keeps."""
    x = parameter(shape)
    trips = ops.constant(np.int64(count)) if count is not None else parameter("", ov.Type.i64)
    turn, kept = parameter("", ov.Type.i64), parameter("?,?,?")
    number = ops.convert(turn, ov.Type.f32)
    new = ops.add(kept, number)
    if grows:
        new = ops.concat([new, new], 2)
    if goes_on is None:
        condition = ops.less(turn, ops.constant(np.int64(2)))
    else:
        condition = ops.constant(np.array(goes_on))
    slim = ops.reduce_sum(new, ops.constant([1]), keep_dims=True)
    body = ov.Model([condition, new, slim], [turn, kept], "body")
    made = ops.loop(trips, ops.constant(np.array(True)))
    made.set_function(body)
    made.set_special_body_ports([0, 0])
    made.set_merged_input(kept, x.output(0), body.results[1].output(0))
    last = made.get_iter_value(body.results[1].output(0), -1)
    outputs = [last]
    if not grows:
        outputs.append(made.get_concatenated_slices(body.results[2].output(0), 0, 1, 1, -1, 1))
    return ov.Model(outputs, [x] if count is not None else [x, trips], "loop")


def choice(shape: str, condition: bool | None, other: str) -> Any:
    """An If whose sides give different shapes."""
    x, y = parameter(shape), parameter(other)
    when = parameter("", ov.Type.boolean) if condition is None else ops.constant(condition)
    bodies, inner = [], []
    for function in (ops.relu, ops.negative):
        given = parameter(shape if function is ops.relu else other)
        inner.append(given)
        bodies.append(ov.Model([function(given)], [given], function.__name__))
    made = ops.if_op(when.output(0))
    made.set_then_body(bodies[0])
    made.set_else_body(bodies[1])
    made.set_input(x.output(0), inner[0], None)
    made.set_input(y.output(0), None, inner[1])
    out = made.set_output(bodies[0].results[0], bodies[1].results[0])
    return ov.Model([out], [x, y] + ([when] if condition is None else []), "if")


def compare(model: Any, tmp_path: Path, inputs: list[Any] | None = None) -> None:
    path = tmp_path / "m.xml"
    ov.serialize(model, path)
    ours = ir.read(path)
    theirs = ov.Core().read_model(path)
    wanted = [Shape.parse(str(o.partial_shape)).spelling for o in theirs.outputs]
    assert [t.shape.spelling for t in ir.infer(ours).values()] == wanted
    assert [str(t.type) for t in ir.infer(ours).values()] == [
        o.element_type.to_string() for o in theirs.outputs
    ]
    if inputs is None:
        return
    words = {"INFERENCE_PRECISION_HINT": "f32"}
    results = ov.Core().compile_model(theirs, "CPU", words)(inputs)
    for way in (ir.run(ours, inputs), ir.compile(ours)(inputs)):
        for array, expected in zip(way.values(), results.values(), strict=True):
            np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


RNG = np.random.default_rng(0)
IMAGE, FIRST = (
    RNG.standard_normal((2, 6, 3)).astype("f4"),
    RNG.standard_normal((2, 1, 3)).astype("f4"),
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("part", "start", "end", "stride"),
    [(1, 0, -1, 1), (2, 0, -1, 2), (1, -1, 0, -1), (3, 0, -1, 3), (1, 1, 4, 1), (2, -1, 0, -2)],
)
def test_tensor_iterators(
    shape: str, part: int, start: int, end: int, stride: int, tmp_path: Path
) -> None:
    # Of a part of an axis OpenVINO's shapes count the end, its CPU does not.
    inputs = [IMAGE, FIRST] if shape != "..." and end in (0, -1) else None
    compare(iterator(shape, part, start, end, stride), tmp_path, inputs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("count", "goes_on", "grows"),
    [(4, True, False), (0, True, False), (4, False, False), (-1, None, False), (None, True, False),
     (5, None, False), (2, True, True), (3, None, True)],
)  # fmt: skip
def test_loops(
    shape: str, count: int | None, goes_on: bool | None, grows: bool, tmp_path: Path
) -> None:
    inputs: list[Any] | None = [IMAGE] if count is not None else [IMAGE, np.int64(3)]
    if shape == "..." or count == 0:
        inputs = None  # a loop that never turns gives what OpenVINO happens to have
    compare(loop(shape, count, goes_on, grows), tmp_path, inputs)


@pytest.mark.parametrize(
    ("cut", "kept"),
    [("3,4", "0,4"), ("?,1", "0,4"), ("3,2..5", "1,3..6"), ("..6,2..4", "1..2,2..5"),
     ("3,4", "1,1"), ("...", "1,4")],
)  # fmt: skip
def test_what_a_loop_keeps_may_grow(cut: str, kept: str, tmp_path: Path) -> None:
    x, first, part, held = map(parameter, (cut, kept, "?,?", "?,?"))
    total, always = ops.add(part, held), ops.constant(np.array(True))
    made = ops.loop(ops.constant(np.int64(3)), always)
    made.set_function(ov.Model([ops.constant(np.array(True)), total], [part, held], "body"))
    made.set_special_body_ports([-1, 0])
    made.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    made.set_merged_input(held, first.output(0), total.output(0))
    compare(ov.Model([made.get_iter_value(total.output(0), -1)], [x, first], "m"), tmp_path)


@pytest.mark.parametrize("batch", ["2..8", "?", "4"])
def test_what_is_kept_takes_the_sizes_of_what_joins_it(batch: str, tmp_path: Path) -> None:
    x, first = parameter(f"{batch},3"), ops.constant(np.zeros((1, 3), "f4"))
    given, held = parameter("?,3"), parameter("?,3")
    total, always = ops.add(given, held), ops.constant(np.array(True))
    made = ops.loop(ops.constant(np.int64(3)), always)
    made.set_function(ov.Model([ops.constant(np.array(True)), total], [given, held], "body"))
    made.set_special_body_ports([-1, 0])
    made.set_invariant_input(given, x.output(0))
    made.set_merged_input(held, first.output(0), total.output(0))
    compare(ov.Model([made.get_iter_value(total.output(0), -1)], [x], "m"), tmp_path)
    (inside,) = ir.infer(tmp_path / "m.xml", ["1..8,3"]).values()
    assert inside.shape.spelling == "1..8,3"  # the one it begins with is in there


@pytest.mark.parametrize("counter", [ov.Type.i64, ov.Type.i32])
@pytest.mark.parametrize("trips", [ov.Type.i64, ov.Type.i32])
def test_the_body_says_of_which_type_the_number_of_the_turn_is(
    trips: Any, counter: Any, tmp_path: Path
) -> None:
    x, count = parameter("2"), parameter("", trips)
    turn, kept = parameter("", counter), parameter("2")
    more = ops.add(turn, ops.constant(np.array(1), counter))
    total = ops.add(kept, ops.convert(more, ov.Type.f32))
    listed = ops.unsqueeze(turn, ops.constant(0))
    always = ops.constant(np.array(True))
    made = ops.loop(count, always)
    made.set_function(ov.Model([always, total, listed], [turn, kept], "body"))
    made.set_special_body_ports([0, 0])
    made.set_merged_input(kept, x.output(0), total.output(0))
    last = made.get_iter_value(total.output(0), -1)
    every = made.get_concatenated_slices(listed.output(0), 0, 1, 1, -1, 0)
    given = [np.zeros(2, "f4"), np.array(3, "i8" if trips == ov.Type.i64 else "i4")]
    compare(ov.Model([last, every], [x, count], "m"), tmp_path, given)
    declared = ir.read(tmp_path / "m.xml")
    types = [layer.data.get("element_type") for layer in declared.everywhere()]
    ir.reshape(declared)
    assert types == [layer.data.get("element_type") for layer in declared.everywhere()]


@pytest.mark.parametrize("condition", [True, False, None])
@pytest.mark.parametrize(
    ("shape", "other"),
    [("2,6,3", "2,6,3"), ("2,6,3", "2,4,3"), ("2,?,3", "2,6,3"), ("2,6,3", "6,3"), ("", "1"),
     ("1..3,6,3", "1..3,6,3"), ("...", "2,6,3")],
)  # fmt: skip
def test_ifs(condition: bool | None, shape: str, other: str, tmp_path: Path) -> None:
    compare(choice(shape, condition, other), tmp_path)


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("when", [True, False])
def test_a_side_of_an_if_that_is_not_taken_need_not_fit(
    when: bool, folded: bool, tmp_path: Path
) -> None:
    x, bodies, inner = parameter("1,3,4"), [], []
    for fits in (when, not when):
        inner.append(parameter("..."))
        one = ops.relu(inner[-1]) if fits else ops.transpose(inner[-1], ops.constant([0, 2, 3, 1]))
        bodies.append(ov.Model([one], [inner[-1]], "body"))
    size = ops.gather(ops.shape_of(x), ops.constant(1), ops.constant(0))
    asked = ops.equal(size, ops.constant(np.int64(3 if when else 1)))
    made = ops.if_op((asked if folded else ops.constant(np.array(when))).output(0))
    made.set_then_body(bodies[0])
    made.set_else_body(bodies[1])
    made.set_input(x.output(0), *inner)
    out = made.set_output(bodies[0].results[0], bodies[1].results[0])
    compare(ov.Model([out], [x], "m"), tmp_path, [IMAGE[:1, :3, :3].repeat(2, 2)[:, :, :4]])
    path = tmp_path / "m.xml"
    assert not ir.check(path).errors
    ir.reshape(ir.read(path))
    ir.simplify(path)
    layer = next(layer for layer in ir.read(path).layers if layer.type == "If")
    for side in layer.bodies:
        ir.extract(path, body=f"{layer.name}/{side}")


@pytest.mark.parametrize("when", [True, False])
def test_an_if_runs_one_side(when: bool, tmp_path: Path) -> None:
    compare(choice("2,6,3", None, "2,6,3"), tmp_path, [IMAGE, -IMAGE, np.array(when)])


@pytest.mark.parametrize("when", [True, False])
def test_a_scalar_is_a_list_of_one_where_the_other_side_gives_lists(
    when: bool, tmp_path: Path
) -> None:
    model = choice("", None, "?")
    inputs = [np.float32(3), np.array([1, -2, 5], "f4"), np.array(when)]
    compare(model, tmp_path, inputs)
    ours = ir.read(tmp_path / "m.xml")
    for way in (ir.run(ours, inputs), ir.compile(ours)(inputs)):
        assert [array.shape for array in way.values()] == [(1,) if when else (3,)]


@pytest.mark.parametrize(("other", "wrong"), [("", "<dim>1</dim>"), ("1", "")])
@pytest.mark.parametrize("when", [True, False])
def test_what_an_if_declares_of_its_outputs_does_not_count(
    when: bool, other: str, wrong: str, tmp_path: Path
) -> None:
    model, path = choice("", None, other), tmp_path / "m.xml"
    ov.serialize(model, path)
    text = path.read_text("utf-8")
    begin = text.index('type="If"')
    ports = text.index("<output>", begin), text.index("</output>", begin)
    name = re.search(r'<port id="[0-9]+" precision="FP32"( names="[^"]*")?', text[slice(*ports)])
    port = f"<output>{name[0]}>{wrong}</port>"
    given = [np.float32(3), np.full(tuple(map(int, other)), -2, "f4"), np.array(when)]
    wanted = ov.Core().compile_model(path, "CPU")(given)
    path.write_text(text[: ports[0]] + port + text[ports[1] :], "utf-8")
    ours = ir.read(path)
    for way in (ir.run(ours, given), ir.compile(ours)(given)):
        for found, right in zip(way.values(), wanted.values(), strict=True):
            np.testing.assert_array_equal(found, right)
            assert found.shape == right.shape


def test_what_an_if_in_a_body_declares_does_not_count(tmp_path: Path) -> None:
    x, path = parameter(""), tmp_path / "m.xml"
    turn, held, inner, bodies = parameter("", ov.Type.i64), parameter(""), [], []
    for function in (ops.relu, lambda given: ops.unsqueeze(given, ops.constant(0))):
        inner.append(parameter(""))
        bodies.append(ov.Model([function(inner[-1])], [inner[-1]], "side"))
    asked = ops.if_op(ops.greater(turn, ops.constant(np.int64(1))).output(0))
    asked.set_then_body(bodies[0])
    asked.set_else_body(bodies[1])
    asked.set_input(held.output(0), *inner)
    row = ops.abs(asked.set_output(bodies[0].results[0], bodies[1].results[0]))
    made = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)))
    made.set_function(ov.Model([ops.constant(np.array(True)), row], [turn, held], "body"))
    made.set_special_body_ports([0, 0])
    made.set_invariant_input(held, x.output(0))
    last = made.get_iter_value(row.output(0), -1)
    ov.serialize(ov.Model([last], [x], "m"), path)
    wanted = ov.Core().compile_model(path, "CPU")([np.float32(3)])
    text = path.read_text("utf-8")
    begin = text.index("<output>", text.index('type="If"'))
    end = text.index("</output>", begin)
    assert "<dim>1</dim>" in text[begin:end]
    lie = text[begin:end].replace("<dim>1</dim>", "")
    ours = ir.loads(text[:begin] + lie + text[end:], (tmp_path / "m.bin").read_bytes())
    for way in (ir.run(ours, [np.float32(3)]), ir.compile(ours)([np.float32(3)])):
        for found, right in zip(way.values(), wanted.values(), strict=True):
            assert found.tolist() == right.tolist() == [3]


@pytest.mark.parametrize("kind", ["f32", "dynamic"])
@pytest.mark.parametrize(
    ("variable", "initial"),
    [("2,3", "2,3"), ("?,3", "2,3"), ("?,3", "1..4,3"), ("...", "2,3"), ("...", "?,?"),
     ("...", "1..4,3"), ("...", "...")],
)  # fmt: skip
def test_read_value_follows_the_variable(
    kind: str, variable: str, initial: str, tmp_path: Path
) -> None:
    x = parameter(initial)
    kept = ops.read_value(x, "v", ov.Type.f32, ov.PartialShape(f"[{variable}]"))
    sink = ops.assign(ops.add(kept, ops.constant(np.float32(1))), "v")
    path = tmp_path / "made.xml"
    ov.serialize(ov.Model([kept.output(0)], [sink], [x], "state"), path)
    # A type that is not told has to be written by hand.
    text = path.read_text("utf-8").replace('variable_type="f32"', f'variable_type="{kind}"')
    path.write_text(text, "utf-8")
    compare(ov.Core().read_model(path), tmp_path)


def test_a_variable_of_which_nothing_is_said_is_what_it_begins_with() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,3")
    words = {"variable_id": "v", "variable_type": "dynamic", "variable_shape": "..."}
    kept = net.add("ReadValue", "opset6", [x], **words)
    grown = net.add("Concat", "opset1", [kept, x], axis=0)
    net.add("Assign", "opset6", [grown], variable_id="v")
    net.result(net.add("MatMul", "opset1", [grown, net.constant(np.ones((3, 2), "f4"))]), name="y")
    model, given = net.model(), [np.ones((1, 3), "f4")]
    assert ir.infer(model)["y"].shape.spelling == "?,2"
    program, state = ir.compile(model), {}
    for rows in (2, 3, 4):
        wanted = np.full((rows, 2), 3, "f4")
        np.testing.assert_array_equal(program(given)["y"], wanted)
        np.testing.assert_array_equal(ir.run(model, given, state=state)["y"], wanted)


def test_a_variable_must_take_its_initial_value() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1..4,3")
    words = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2,3"}
    with pytest.raises(ir.IRError, match=r"variable v has the shape 2,3, .* may be 1..4,3"):
        net.add("ReadValue", "opset6", [x], **words)


def test_state_is_kept_where_the_caller_keeps_it() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "2")
    kept = net.add("ReadValue", "opset6", [x], variable_id="v", variable_type="f32",
                   variable_shape="2")  # fmt: skip
    grown = net.add("Add", "opset1", [kept, net.constant(np.float32([1, 1]))])
    net.add("Assign", "opset6", [grown], variable_id="v")
    net.result(grown, name="y")
    model = net.model()
    given = [np.array([5, 6], "f4")]
    state: dict[str, np.ndarray] = {}
    assert [ir.run(model, given, state=state)["y"][0] for _ in range(3)] == [6, 7, 8]
    assert ir.run(model, given)["y"][0] == 6
    program = ir.compile(model)
    assert [program(given)["y"][0] for _ in range(3)] == [6, 7, 8]
    program.reset()
    assert program(given)["y"][0] == 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('external_port_id="1"', 'external_port_id="one"', "external_port_id of <input> is"),
        ('external_port_id="1"', 'external_port_id="9"', "takes input 9, the layer has 2"),
        ('start="0"', 'start="99"', "from 99 to -1 there are"),
    ],
)
def test_what_is_wrong_in_a_port_map_is_said_at_its_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.xml"
    ov.serialize(iterator("2,6,3", 1, 0, -1, 1), path)
    lines = path.read_text().splitlines()
    line = next(i for i, text in enumerate(lines) if "<input " in text and old in text)
    lines[line] = lines[line].replace(old, new)
    with pytest.raises(ir.IRError, match=message) as caught:
        ir.infer(ir.loads("\n".join(lines)))
    assert (caught.value.where.line, caught.value.where.column) == (line + 1, 5)


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_loop_appends_to_what_it_keeps(
    tmp_path: Path, axis: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a turn has given is written behind, and what was handed out stays as it was."""
    rooms: list[Any] = []

    class Noted(Growing):
        def join(self, past: Any, new: Any) -> Any:
            joined = super().join(past, new)
            rooms.append(joined.base)
            return joined

    monkeypatch.setattr(outside, "Growing", Noted)
    monkeypatch.setattr(unrolling, "MOST", 0)  # known turns would take the place of the loop
    x, kept = parameter("?,?,3"), parameter("?,?,3")
    row, turn = parameter("1,1,3"), parameter("", ov.Type.i64)
    inner = parameter("1,1,3")
    new = ops.add(inner, ops.convert(turn, ov.Type.f32))
    body = ov.Model(
        [ops.constant(np.array(True)), ops.concat([kept, new], axis), ops.negative(kept)],
        [turn, kept, inner], "body",
    )  # fmt: skip
    made = ops.loop(ops.constant(np.int64(90)), ops.constant(np.array(True)))
    made.set_function(body)
    made.set_special_body_ports([0, 0])
    made.set_merged_input(kept, x.output(0), body.results[1].output(0))
    made.set_invariant_input(inner, row.output(0))
    outputs = [made.get_iter_value(body.results[place].output(0), -1) for place in (1, 2)]
    path = tmp_path / "loop.xml"
    ov.save_model(ov.Model(outputs, [x, row], "loop"), path, compress_to_fp16=False)
    shape = [1, 1, 3]
    shape[axis] = first
    rng = np.random.default_rng(axis)
    model = ir.read(path)
    program, held = ir.compile(model), []
    theirs = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for _ in range(3):
        given = [rng.standard_normal(sizes).astype("f4") for sizes in (shape, (1, 1, 3))]
        wanted = [array.copy() for array in theirs(given).values()]
        held.append((list(program(given).values()), wanted))
        for found in (*ir.run(model, given).values(),):
            assert any(found.shape == one.shape and (found == one).all() for one in wanted)
    assert len(rooms) == 3 * 90
    assert len({id(room) for room in rooms}) <= 3 * 4
    for found, wanted in held:
        for ours, right in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, right)


def assigning(kind: str, *, within: bool, grows: bool = False) -> Any:
    """A body, or the model itself, assigns what it is given; later layers reuse the memory.

    Args:
        kind: of the layer with the body: Loop or If.
        within: whether it is assigned in a body at all.
        grows: whether what is assigned is the sum of all that was given.
    """
    import openvino.opset6 as older

    x, sizes = parameter("2,3"), parameter("2", ov.Type.i64)
    twice = ops.matmul(x, ops.constant(np.eye(3, dtype="f4") * 2), False, False)
    given = parameter("2,3") if within else twice
    start = ops.constant(np.zeros((2, 3), "f4"))
    read = older.read_value(start, "v", ov.Type.f32, ov.PartialShape([2, 3]))
    assign = older.assign(ops.add(read, given) if grows else given, "v")
    yes = ops.constant(np.array(True))
    if not within:
        found, sinks = read, [assign]
    elif kind == "Loop":
        body = ov.Model([ops.result(yes), ops.result(read)], [assign], [given], "body")
        made = ops.loop(ops.constant(np.int64(1)), yes)
        made.set_function(body)
        made.set_special_body_ports([-1, 0])
        made.set_invariant_input(given, twice.output(0))
        found, sinks = made.get_iter_value(body.results[1].output(0), -1), []
    else:
        other = parameter("2,3")
        sides = [ov.Model([ops.result(read)], [assign], [given], "then"),
                 ov.Model([ops.result(ops.negative(other))], [other], "else")]  # fmt: skip
        total = ops.reduce_sum(sizes, ops.constant([0]), keep_dims=False)
        made = ops.if_op(ops.greater(total, ops.constant(0)).output(0))
        for place, side in enumerate(sides):
            (made.set_then_body, made.set_else_body)[place](side)
        made.set_input(twice.output(0), given, other)
        found, sinks = made.set_output(sides[0].results[0], sides[1].results[0]), []
    later = twice
    for _ in range(3):
        later = ops.softmax(
            ops.matmul(later, ops.constant(np.eye(3, dtype="f4")), False, False), 1
        )
    shaped = ops.reshape(ops.add(later, found), sizes, False)
    return ov.Model([ops.result(found), ops.result(shaped)], sinks, [x, sizes], "assigning")


@pytest.mark.parametrize("kind", ["Loop", "If"])
@pytest.mark.parametrize("within", [True, False])
def test_what_was_assigned_stays_what_it_was(kind: str, within: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    ov.serialize(assigning(kind, within=within), path)
    model, state = ir.read(path), {}
    program, x = ir.compile(model), np.zeros((2, 3), "f4")
    for turn in range(4):
        x[:] = turn  # the caller's own array, again and again
        inputs = [x, np.array([3, 2])]
        wanted = np.full((2, 3), 2 * (turn - 1) if turn else 0, "f4")
        for found in (ir.run(model, inputs, state=state), program(inputs)):
            np.testing.assert_array_equal(next(iter(found.values())), wanted)


@pytest.mark.parametrize("kind", ["Loop", "If"])
@pytest.mark.parametrize("within", [True, False])
def test_nothing_is_assigned_by_a_run_that_fails(kind: str, within: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    ov.serialize(assigning(kind, within=within, grows=True), path)
    model, state = ir.read(path), {}
    program = ir.compile(model)
    for turn, sizes in enumerate(([3, 2], [3, 3], [5, 1], [6, 1])):
        inputs = [np.ones((2, 3), "f4"), np.array(sizes)]
        for run in (lambda given: ir.run(model, given, state=state), program):
            if np.prod(sizes) == 6:
                found = next(iter(run(inputs).values()))
                np.testing.assert_array_equal(found, 2.0 if turn else 0.0)
            else:
                with pytest.raises(IRError, match="6"):
                    run(inputs)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("handed_on", [False, True])
def test_a_condition_that_is_handed_on_is_what_the_first_turn_was_given(
    first: bool, handed_on: bool, tmp_path: Path
) -> None:
    """Of a Loop of very many turns, what all of them take is asked for only if they will come."""
    x, start = parameter("1,1000"), parameter("", ov.Type.boolean)
    inner, kept = parameter("1,1000"), parameter("", ov.Type.boolean)
    body = ov.Model([ops.result(kept), ops.result(ops.relu(inner))], [inner, kept], "body")
    made = ops.loop(ops.constant(np.int64(2**40)), ops.constant(np.array(True)))
    made.set_function(body)
    made.set_special_body_ports([-1, 0])
    made.set_invariant_input(inner, x.output(0))
    if handed_on:
        made.set_merged_input(kept, start.output(0), body.results[0].output(0))
    else:
        made.set_invariant_input(kept, start.output(0))
    rows = made.get_concatenated_slices(body.results[1].output(0), 0, 1, 1, -1, 0)
    path = tmp_path / "loop.xml"
    ov.serialize(ov.Model([ops.result(ops.reduce_sum(rows, ops.constant([1])))], [x, start]), path)
    inputs, model = [np.ones((1, 1000), "f4"), np.array(first)], ir.read(path)
    for run in (lambda: ir.run(model, inputs), lambda: ir.compile(model)(inputs)):
        if first:
            with pytest.raises(LimitError, match="bytes"):
                run()
        else:
            (found,) = run().values()
            assert found.tolist() == [1000]
