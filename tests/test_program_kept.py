"""Which plans a program makes well, which in a hurry, and which it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine import kept_plans
from vinoir.ir.engine.kept_plans import KEPT, ROOM, STEADY, KeptPlans
from vinoir.ir.engine.kernels import convolution, products, recurrent, scaling, winograd
from vinoir.ir.engine.memory.in_turn import AHEAD, LARGE, InTurn
from vinoir.ir.engine.plan import build
from vinoir.ir.engine.workers import Threads
from vinoir.schemas import ElementType, Tensor


class Made:
    """A plan that takes so many bytes, some of them for weights."""

    def __init__(self, *, hasty: bool, nbytes: int = 1, weights: int = 0, rooms: int = 0) -> None:
        self.is_hasty, self.nbytes, self.weights = hasty, nbytes, {weights: weights}
        self.rooms = {0: rooms}
        self.rested = 0

    def rest(self) -> None:
        self.rested += 1


def sized(number: int) -> tuple[tuple[int, ...], ...]:
    return ((1, number),)


def filled(count: int, nbytes: int = 1) -> KeptPlans[Made]:
    plans: KeptPlans[Made] = KeptPlans()
    for number in range(count):
        plans.put(sized(number), Made(hasty=plans.is_hasty(sized(number)), nbytes=nbytes))
    return plans


def test_the_first_are_made_well_and_the_others_in_a_hurry() -> None:
    plans = filled(KEPT + 3)
    assert [made.is_hasty for made in plans.values() if made] == [False] * KEPT + [True] * 3


def test_those_that_were_used_least_lately_go_first() -> None:
    plans = filled(KEPT + 16, ROOM // 16)
    assert plans.use(sized(KEPT + 1))
    plans.put(sized(20), Made(hasty=True, nbytes=ROOM // 16))
    plans.put(sized(21), Made(hasty=True, nbytes=ROOM // 16))
    assert list(plans)[: KEPT + 2] == [*map(sized, range(KEPT)), sized(KEPT + 3), sized(KEPT + 4)]
    assert len(plans) == KEPT + 16
    assert plans.find(sized(KEPT)) is None
    assert plans.find(sized(KEPT + 1)) == sized(KEPT + 1)


def test_large_ones_are_few_and_a_few_are_kept_however_large() -> None:
    assert len(filled(20, ROOM // 10)) == KEPT + 10
    # Those that were made well are kept, however many come after them, and the last of all.
    assert list(filled(20, ROOM + 1)) == [*map(sized, range(KEPT)), sized(19)]
    assert len(filled(500)) == 500


def test_weights_that_plans_share_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = filled(KEPT)
    for number in range(10):
        plans.put(sized(KEPT + number), Made(hasty=True, weights=ROOM // 2))
    assert len(plans) == KEPT + 10
    plans.put(sized(99), Made(hasty=True, weights=ROOM // 2 + 1))
    assert len(plans) == KEPT + 1
    # What those have anyway that were made well is nothing more.
    plans = filled(KEPT)
    plans.put(sized(0), Made(hasty=False, weights=ROOM))
    plans.put(sized(98), Made(hasty=True, weights=ROOM))
    plans.put(sized(99), Made(hasty=True, weights=ROOM // 2))
    assert len(plans) == KEPT + 2
    # Of rooms counts what is used of them most.
    plans = filled(KEPT)
    for number, size in enumerate((ROOM // 2, ROOM, ROOM // 3, ROOM // 3)):
        plans.put(sized(90 + number), Made(hasty=True, nbytes=0, rooms=size))
    assert len(plans) == KEPT + 4
    plans.put(sized(99), Made(hasty=True, nbytes=0, weights=1, rooms=1))
    assert list(plans)[KEPT:] == [sized(number) for number in (92, 93, 99)]
    monkeypatch.setattr(kept_plans.budget, "fits", lambda nbytes: False)
    assert len(filled(20)) == KEPT + 1


def test_one_that_is_used_again_and_again_is_made_well() -> None:
    plans = filled(KEPT + 2)
    late = sized(KEPT + 1)
    assert all(plans.use(late) for _ in range(STEADY - 1))
    assert plans.use(sized(0))  # another one between
    assert all(plans.use(late) for _ in range(STEADY - 1))
    assert not plans.use(late)
    assert not plans.is_hasty(late)
    plans.put(late, Made(hasty=False))
    # Of those that are made well the one that was used least lately went.
    kept = [number for number in range(1, KEPT + 1) if number != 1] + [0, KEPT + 1]
    assert list(plans) == [sized(number) for number in kept]
    assert plans.use(late)


def test_threads_of_plans_that_were_not_used_lately_rest() -> None:
    plans = filled(2 * KEPT + 1)
    resting = [made.rested > 0 for made in plans.values() if made]
    assert resting == [False] * KEPT + [True] + [False] * KEPT
    assert plans.use(sized(KEPT))
    assert [made.rested > 0 for made in plans.values() if made][KEPT:] == [True] + [False] * (
        KEPT - 1
    ) + [True]


def test_a_copy_of_the_process_makes_the_same_plans_well() -> None:
    plans = filled(KEPT + 1).emptied()
    assert not plans
    assert not plans.is_hasty(sized(0))
    assert plans.is_hasty(sized(KEPT))
    assert plans.is_hasty(sized(KEPT + 1))


def test_an_open_pattern_holds_for_any_size() -> None:
    plans = filled(2)
    plans.put(((1, -1),), Made(hasty=False))
    assert plans.find(sized(77)) == ((1, -1),)
    assert plans.find(((2, 7),)) is None
    plans.put(((-1, -1),), Made(hasty=False))
    assert plans.find(((2, 7),)) == ((-1, -1),)
    assert plans.find(sized(77)) == ((1, -1),)  # of which more is known
    plans.put(((1, -2),), Made(hasty=False))
    assert plans.find(sized(77)) == ((1, -2),)  # as much is known of both: the later one


def test_programs_answer_alike_however_their_plans_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calls of more shapes than plans are made well for, then of one again and again."""
    monkeypatch.setattr(kept_plans, "STEADY", 3)
    rng = np.random.default_rng(0)
    net = ir.Builder()
    x = net.parameter("x", "f32", ("?", 96))
    for _ in range(2):
        weights = net.constant(rng.standard_normal((96, 96)).astype("f4") / 10)
        x = net.add("Swish", "opset4", [net.add("MatMul", "opset1", [x, weights])])
    net.result(net.add("SoftMax", "opset8", [x], axis=1))
    program = ir.compile(net.model(), threads=2)
    lengths = [40 * number for number in range(1, KEPT + 4)]
    arrays = {length: rng.standard_normal((length, 96)).astype("f4") for length in lengths}
    first = {length: program([array])[0] for length, array in arrays.items()}
    made = {shape: plan for (shape,), plan in program._plans.items() if shape and plan}
    hasty = [plan for plan in made.values() if plan.is_hasty]
    assert len(made) == len(lengths)
    assert len(hasty) == len(lengths) - KEPT
    assert all(plan.team._hire is Threads for plan in hasty)
    # Each has its memory when it is its turn.
    assert hasty[-1].rooms.keys() & hasty[-2].rooms.keys()
    assert np.shares_memory(*(plan.plan.nodes[0].outputs[0].array for plan in hasty[-2:]))
    for _ in range(2):
        for length, array in arrays.items():
            np.testing.assert_array_equal(program([array])[0], first[length])
    assert {shape: plan for (shape,), plan in program._plans.items() if shape} == made
    helped = [plan.team._helpers is not None for plan in hasty]
    assert helped.count(True) <= KEPT
    last = lengths[-1]
    for _ in range(4):
        np.testing.assert_array_equal(program([arrays[last]])[0], first[last])
    anew = program._plans[((last, 96),)]
    assert anew is not None
    assert not anew.is_hasty
    for length, array in arrays.items():
        np.testing.assert_array_equal(program([array])[0], first[length])
        wanted = ir.run(program.model, [array])[0]
        np.testing.assert_allclose(first[length], wanted, rtol=1e-5, atol=1e-7)


def test_plans_for_other_batches_share_weights_of_sequences_and_sums_of_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is laid out of a sequence's weights, and summed up of those behind a norm."""
    net, rng = ir.Builder(), np.random.default_rng(0)
    x = net.parameter("x", "f32", ("?", 5, 64))
    norm = net.add("MVN", "opset6", [x, net.constant(np.int64([2]))], normalize_variance=True,
                   eps=1e-5, eps_mode="inside_sqrt")  # fmt: skip
    scale, shift = (net.constant(rng.random(64).astype("f4")) for _ in range(2))
    norm = net.add("Add", "opset1", [net.add("Multiply", "opset1", [norm, scale]), shift])
    weights = rng.standard_normal((64, 96)).astype("f4")
    y = net.add("MatMul", "opset1", [norm, net.constant(weights)])
    sizes = net.add("ShapeOf", "opset3", [x], output_type="i64")
    batch = net.add("Gather", "opset8", [sizes, *map(net.constant, (np.int64([0]), np.int64(0)))])
    lengths = net.add("Broadcast", "opset3", [net.constant(np.int64(5)), batch])
    state = net.add("Broadcast", "opset3", [net.constant(np.float32(0)), net.add(
        "Concat", "opset1", [batch, net.constant(np.int64([1, 32]))], axis=0
    )])  # fmt: skip
    given = [net.constant(rng.standard_normal(n).astype("f4") / 9) for n in (
        (1, 96, 96), (1, 96, 32), (1, 96)
    )]  # fmt: skip
    net.result(net.add("GRUSequence", "opset5", [y, state, lengths, *given],
                       hidden_size=32, direction="forward")[0])  # fmt: skip
    program = ir.compile(net.model(), threads=1)
    made: list[str] = []
    for module, name in ((recurrent, "laid_out"), (scaling, "_multiplied")):
        plain = getattr(module, name)

        def noted(*arrays: Any, plain: Any = plain, name: str = name) -> Any:
            made.append(name)
            return plain(*arrays)

        monkeypatch.setattr(module, name, noted)
    for count in (3, 7, 4, 9, 6, 8):
        array = rng.standard_normal((count, 5, 64)).astype("f4")
        found, wanted = program([array])[0], ir.run(program.model, [array])[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert len(program._plans) == 6
    assert sorted(made) == ["_multiplied", "laid_out"]


def test_levels_have_no_place_in_an_arena() -> None:
    """A table of 8 bits, of which rows are made numbers."""
    net, rng = ir.Builder(), np.random.default_rng(0)
    levels = net.constant(rng.integers(-128, 128, (4096, 64)).astype("i1"))
    numbers = net.add("Convert", "opset1", [levels], destination_type="f32")
    scale = net.constant(rng.random((4096, 1)).astype("f4"))
    table = net.add("Multiply", "opset1", [numbers, scale])
    rows = net.parameter("rows", "i64", ("?",))
    found = net.add("Gather", "opset8", [table, rows, net.constant(np.int64(0))])
    net.result(net.add("ReLU", "opset1", [found]))
    program = ir.compile(net.model(), threads=1, memory="small")
    given = np.arange(7)
    np.testing.assert_array_equal(program([given])[0], ir.run(program.model, [given])[0])
    (planned,) = program._plans.values()
    assert planned is not None
    assert any(value.packed is not None for value in planned.plan.nodes[0].inputs)
    assert planned.arena_bytes < 4096 * 64


def test_rooms_grow_with_those_who_take_them_and_large_ones_shrink() -> None:
    rooms = InTurn()
    first = rooms.take(100)
    rooms.begin()
    assert np.shares_memory(rooms.take(50), first)
    assert rooms.taken == {first.ctypes.data: 50}
    other = rooms.take(70)
    rooms.begin()
    larger = rooms.take(120)
    assert not np.shares_memory(larger, first)
    assert np.shares_memory(rooms.take(70), other)
    assert sorted(rooms.taken.values()) == [70, 120]
    rooms.begin()
    assert np.shares_memory(rooms.take(AHEAD * 120), larger)
    rooms.begin()
    huge = rooms.take(LARGE + 1)
    rooms.begin()
    assert np.shares_memory(rooms.take(LARGE // 2), huge)
    rooms.begin()
    assert not np.shares_memory(rooms.take(LARGE // 8), huge)


def test_what_plans_in_a_hurry_try_they_learn_of_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of as many products, about; those of others are tried anew."""
    net, rng = ir.Builder(), np.random.default_rng(0)
    x = net.parameter("x", "f32", ("?", 256))
    weights = net.constant(rng.standard_normal((256, 256)).astype("f4"))
    net.result(net.add("MatMul", "opset1", [x, weights]))
    program = ir.compile(net.model(), threads=2)
    lengths = [*range(10, 10 + KEPT), 70, 80, 90, 100, 110, 72, 75]
    for length in lengths:
        for _ in range(3):
            program([rng.standard_normal((length, 256)).astype("f4")])
    last = next(reversed(program._plans.values()))
    assert last is not None
    assert last.is_hasty
    assert last._trials is None
    (trials,) = program._hurry.trials.values()
    assert trials.are_over
    assert last.team.alone == [trials.is_alone(name) for name in last._names()]
    program([rng.standard_normal((300, 256)).astype("f4")])
    assert [one.are_over for one in program._hurry.trials.values()] == [True, False]


@pytest.mark.parametrize("half", [False, True])
def test_plans_for_images_of_many_sizes_share_weights(tmp_path: Path, *, half: bool) -> None:
    """Of a file, or half of them; what is made of them is the same for many sizes."""
    rng = np.random.default_rng(1)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 32, "?", "?"))
    for kernel, outer in ((3, 48), (1, 32), (3, 32)):
        weights = (rng.standard_normal((outer, x.tensor.shape[1], kernel, kernel)) / 20).astype(
            "f4"
        )
        y = net.constant(weights.astype("f2") if half else weights)
        y = net.add("Convert", "opset1", [y], destination_type="f32") if half else y
        words = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (kernel // 2,) * 2}
        x = net.add("Convolution", "opset1", [x, y], pads_end=(kernel // 2,) * 2, **words)
        # Scaled, and before Swish once more: of what is scaled alike plans have the same, too.
        scale = net.constant(rng.random((1, outer, 1, 1)).astype("f4") + 0.5)
        x = net.add("Multiply", "opset1", [x, scale])
        x = net.add("ReLU" if kernel == 1 else "Swish", "opset1" if kernel == 1 else "opset4", [x])
    net.result(x)
    ir.write(net.model(), tmp_path / "model.xml")
    model = ir.read(tmp_path / "model.xml")
    program = ir.compile(model, threads=2)
    for size in (24, 28, 32, 36, 40, 44, 24, 32, 44):
        image = rng.standard_normal((1, 32, size, size)).astype("f4")
        wanted = ir.run(model, [image])[0]
        np.testing.assert_allclose(program([image])[0], wanted, rtol=1e-4, atol=1e-5)
    kept = [set(plan.weights) for plan in program._plans.values() if plan is not None]
    assert len(kept) == 6
    assert kept[-1] & kept[-2] & kept[-3]


def test_weights_are_shared_by_those_alone_who_want_the_same() -> None:
    """Tiles of several sizes, groups, and blocks of several widths of the same weights."""
    rng = np.random.default_rng(3)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 64, 24, 24))
    numbers = (rng.standard_normal((2, 48, 32, 3, 3)) / 20).astype("f4")
    words: dict[str, Any] = dict.fromkeys(("strides", "dilations"), (1, 1))
    words |= dict.fromkeys(("pads_begin", "pads_end"), (1, 1))
    net.result(net.add("GroupConvolution", "opset1", [x, net.constant(numbers)], **words))
    model = net.model()
    (node,) = [node for node in build(model, ir.infer(model)).nodes if node.op.xml_type[0] == "G"]
    alive = []
    for _ in range(2):
        for size in (2, 3, 4):
            way = winograd.tiling(size, 3)
            found = convolution.lay_out(node, way).matrices
            for weights, made in zip(numbers, found, strict=True):
                np.testing.assert_array_equal(made, way.matrices(weights))
            alive.append(found)
    for before, again in zip(alive[:3], alive[3:], strict=True):
        assert all(map(np.shares_memory, before, again))
    flat = numbers.reshape(96, 32, 3, 3)
    for begin, end, wide in ((0, 96, 32), (0, 96, 48), (48, 96, 48), (0, 48, 48)):
        made = products.in_blocks(flat[begin:end], wide, of=numbers, begin=begin)
        np.testing.assert_array_equal(made, products.in_blocks(flat[begin:end], wide))
        alive.append([made])


def test_what_feeds_whom_is_looked_up_once_and_anew_afterwards() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2,))
    y = net.add("ReLU", "opset1", [x])
    net.result(net.add("Exp", "opset1", [y]))
    model = net.model()
    exp = next(layer for layer in model.layers if layer.type == "Exp")
    (before,) = model.sources(exp)
    assert before is not None
    relu = before[0]
    found = ir.document.LookUps()
    with model.looked_up(found):
        for _ in range(2):
            assert len(model.order()) == 4
            assert model.sources(exp) == [before]
            model.sources(exp).clear()
            model.order().clear()
    assert found.sources[exp.id] == [before]
    assert found.order == model.order()
    (parameter,) = model.parameters
    model.connect((parameter, 0), exp, 0)
    assert model.sources(exp) == [(parameter, 0)]
    assert relu not in model.order()


def test_what_is_inferred_of_constants_and_looked_up_in_bodies_is_forgotten_afterwards() -> None:
    """An If whose sides read a converted constant: inferred for two shapes, then edited."""
    net = ir.Builder()
    x = net.parameter("x", "f32", ("?", 4))
    half = net.constant(np.ones((1, 4), "f2"))
    scale = net.add("Convert", "opset1", [half], destination_type="f32")
    which = net.parameter("which", "boolean", ())
    wide = Tensor(ElementType.F32, ("?", 4))
    found = net.add("If", "opset8", [which, x, scale], outputs=[wide])
    for name, kind in (("then_body", "Multiply"), ("else_body", "Add")):
        body, wiring = ir.Builder(into=ir.Graph()), ir.PortMap()
        given = [body.parameter(f"given{place}", "f32", ("?", 4)) for place in range(2)]
        end = body.result(body.add(kind, "opset1", given))
        for place, each in enumerate(given, 1):
            wiring.add("input", external_port_id=place, internal_layer_id=each.layer.id)
        wiring.add("output", external_port_id=0, internal_layer_id=end.id)
        found.layer.add_body(name, body.graph, wiring)
    net.result(found)
    model = net.model()
    convert, chosen = (next(x for x in model.layers if x.type == k) for k in ("Convert", "If"))
    known, seen = ir.document.LookUps(), []
    with model.looked_up(known):
        for rows in (2, 3):
            inferred = ir.infer(model, {"x": (rows, 4)})
            assert inferred.of(chosen)[0].shape == (rows, 4)
            seen.append(inferred.of(convert)[0])
        bodies = list(chosen.bodies.values())
        assert [body for body, _ in known.bodies] == bodies
        assert all(body.look_ups is not None for body in bodies)
    assert seen[0] is seen[1]
    assert all(graph.look_ups is None for graph in (model, *bodies))
    assert ir.infer(model).of(convert)[0] is not seen[0]


def test_plans_that_rest_answer_as_before() -> None:
    """Of what depends on values, too."""
    rng = np.random.default_rng(2)
    net = ir.Builder()
    x = net.parameter("x", "f32", ("?", 256))
    kept = net.add("NonZero", "opset3", [x], output_type="i64")
    count = net.add("ShapeOf", "opset3", [kept], output_type="i64")
    y = x
    for _ in range(3):
        weights = net.constant(rng.standard_normal((256, 256)).astype("f4") / 16)
        y = net.add("ReLU", "opset1", [net.add("MatMul", "opset1", [y, weights])])
    net.result(y)
    net.result(count)
    model = net.model()
    program = ir.compile(model, threads=2)
    arrays = [rng.standard_normal((100 + size, 256)).astype("f4") for size in range(KEPT + 3)]
    first = [program([array]) for array in arrays]
    for planned in program._plans.values():
        assert planned is not None
        planned.rest()
        assert planned.team._helpers is None
    for array, before in zip(arrays, first, strict=True):
        for name, found in program([array]).items():
            np.testing.assert_array_equal(found, before[name])


@pytest.mark.parametrize("joined", [False, True])
def test_variables_that_begin_otherwise_with_each_input(*, joined: bool) -> None:
    """What was read last time is no measure for it, whether it would fit or not."""
    net = ir.Builder()
    x = net.parameter("x", "f32", ("?", "?", 4))
    words = {"variable_id": "held", "variable_type": "f32", "variable_shape": "?,?,4"}
    begin = net.add("Abs", "opset1", [x])
    held = net.add("ReadValue", "opset6", [begin], **words)
    y = net.add("Exp", "opset1", [held])
    y = net.add("Concat", "opset1", [y, x], axis=1) if joined else y
    net.result(y)
    net.add("Assign", "opset6", [net.add("Sqrt", "opset1", [held])], variable_id="held")
    model = net.model()
    program = ir.compile(model, threads=1)
    rng = np.random.default_rng(4)
    for shape in ((1, 2, 4), (3, 2, 4), (2, 5, 4), (1, 1, 4)):
        array = rng.standard_normal(shape).astype("f4")
        program.reset()
        state: dict[str, Any] = {}
        for _ in range(3):
            wanted = ir.run(model, [array], state=state)[0]
            np.testing.assert_allclose(program([array])[0], wanted, rtol=1e-6)
        assert program._plans.find((shape, shape)) is not None
        assert all(plan is not None for plan in program._plans.values())
