"""What is computed of constants is computed once where it is the same, and only there."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13
from test_program_attention import agree
from vinoir import ir
from vinoir.ir.engine.plan import build, constants, folding
from vinoir.layers.base import Op

SHAPE = (40, 60, 20)


def places(net: ir.Builder, first: int, kind: str = "i64") -> Any:
    """The places of some rows of a tensor among all of its elements."""
    ends = [net.constant(np.int64(end)) for end in (0, np.prod(SHAPE), 1)]
    counted = net.add("Range", "opset4", ends, output_type=kind)
    shape, single = net.constant(np.array(SHAPE)), net.constant(np.array([-1, 1]))
    whole = net.add("Reshape", "opset1", [counted, shape], special_zero="false")
    cuts = [net.constant(np.array([end])) for end in (first, first + 8, 1, 0)]
    cut = net.add("Slice", "opset8", [whole, *cuts])
    return net.add("Reshape", "opset1", [cut, single], special_zero="false")


def assigned(parts: list[tuple[int, str]]) -> ir.Model:
    """One assignment to some rows of a tensor after the other."""
    net = ir.Builder()
    flat = net.parameter("x", "f32", (int(np.prod(SHAPE)),))
    for number, (first, kind) in enumerate(parts):
        rows = net.parameter(f"rows{number}", "f32", (8 * 60 * 20,))
        flat = net.add("ScatterNDUpdate", "opset4", [flat, places(net, first, kind), rows])
    net.result(flat, name="y")
    return net.model()


@pytest.mark.parametrize(
    ("parts", "different"),
    [
        ([(3, "i64")] * 4, 1),
        ([(3, "i64"), (5, "i64"), (3, "i64"), (5, "i64")], 2),
        ([(3, "i64"), (3, "i32"), (9, "i32")], 3),
    ],
)
def test_the_same_places_are_made_once(parts: list[tuple[int, str]], different: int) -> None:
    model, rng = assigned(parts), np.random.default_rng(0)
    plan = build(model, ir.infer(model))
    made = {id(node.inputs[1].array) for node in plan.nodes if len(node.inputs) == 3}
    assert len(made) == different
    shapes = [ir.infer(model).of(each)[0].shape.static for each in model.parameters]
    agree(model, [rng.standard_normal(shape).astype("f4") for shape in shapes])


@pytest.mark.parametrize("seed", range(12))
def test_what_differs_is_not_the_same(seed: int) -> None:
    rng, net = np.random.default_rng(seed), ir.Builder()
    numbers = rng.integers(0, 120, (200, 100))
    alike = [net.constant(numbers.astype("i4")), net.constant(numbers.astype("u4"))]
    # Of the same bytes.
    few = np.array([1, 2, 3, 4], "f4")
    spread = [few, few.view("i4"), few.reshape(4, 1), few.view("i4").reshape(4, 1)]
    shape, made = net.constant(np.array([2000, 4, 4])), []
    for _ in range(14):
        taken = alike[rng.integers(2)]
        chosen = rng.integers(5)
        if chosen == 0:
            kind = str(rng.choice(["u8", "i8", "f32", "boolean", "i64"]))
            found = net.add("Convert", "opset1", [taken], destination_type=kind)
        elif chosen == 4:
            row = net.constant(spread[rng.integers(4)])
            found = net.add("Broadcast", "opset3", [row, shape], mode="bidirectional")
        elif chosen == 1:
            order = net.constant(np.array([[0, 1], [1, 0]][rng.integers(2)]))
            found = net.add("Transpose", "opset1", [taken, order])
        elif chosen == 2:
            found = net.add(
                "CumSum", "opset3", [taken, net.constant(np.int64(rng.integers(2)))],
                exclusive=str(bool(rng.integers(2))).lower(),
                reverse=str(bool(rng.integers(2))).lower(),
            )  # fmt: skip
        else:
            repeats = net.constant(rng.integers(1, 3, 2))
            found = net.add("Tile", "opset1", [taken, repeats])
        made.append(net.add("Convert", "opset1", [found], destination_type="f64"))
    x = net.parameter("x", "f64", ())
    for number, found in enumerate(made):
        net.result(net.add("Multiply", "opset1", [found, x]), name=f"y{number}")
    agree(net.model(), [np.array(3.0)])


@pytest.mark.parametrize("threads", [1, 2])
def test_outputs_that_are_the_same_are_not_one_array(threads: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (3,))
    for number in range(3):
        ends = [net.constant(np.int64(end)) for end in (0, 50_000, 1)]
        net.result(net.add("Range", "opset4", ends, output_type="i64"), name=f"y{number}")
    net.result(net.add("ReLU", "opset1", [x]), name="z")
    program, given = ir.compile(net.model(), threads=threads), [np.ones(3, "f4")]
    found = [program(given)[f"y{number}"] for _ in range(2) for number in range(3)]
    for number, array in enumerate(found):
        array[:] = number
    assert [int(array[0]) for array in found] == list(range(6))
    assert program(given)["y1"][:3].tolist() == [0, 1, 2]


def test_turns_of_a_loop_keep_nothing_of_those_before(tmp_path: Path) -> None:
    x = opset13.parameter([1, 512], np.float32)
    turn, carried = opset13.parameter([], np.int64), opset13.parameter([1, 512], np.float32)
    table = opset13.constant(np.ones((512, 512), "f4"))
    scaled = opset13.multiply(table, opset13.convert(turn, "f32"))
    total = opset13.reduce_sum(opset13.add(scaled, table), opset13.constant(np.int64(0)), True)
    found = opset13.add(carried, total)
    loop = opset13.loop(opset13.constant(np.int64(40)), opset13.constant(True))
    loop.set_function(ov.Model([found, opset13.constant(True)], [turn, carried]))
    loop.set_special_body_ports([0, 1])
    loop.set_merged_input(carried, x.output(0), found.output(0))
    last = loop.get_iter_value(found.output(0), -1)
    ov.save_model(ov.Model([last], [x]), tmp_path / "loop.xml", compress_to_fp16=False)
    model = ir.read(tmp_path / "loop.xml")
    tracemalloc.start()
    try:
        plan = build(model, ir.infer(model))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not any(node.kind == "Loop" or node.is_outside for node in plan.nodes)
    assert most < 12 * 512 * 512 * 4  # three a turn, and what is kept of the first
    (made,) = ir.compile(model)([np.zeros((1, 512), "f4")]).values()
    np.testing.assert_allclose(made, np.full((1, 512), 512 * (40 + 780)), rtol=1e-6)


def test_what_shapes_leave_as_it_is_is_made_once_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table that is multiplied by the rank of the input, and one by the number of its rows."""
    net, rng = ir.Builder(), np.random.default_rng(2)
    x = net.parameter("x", "f32", ("?", 256))
    sizes = net.add("ShapeOf", "opset3", [x], output_type="i64")
    rank = net.add("ShapeOf", "opset3", [sizes], output_type="i64")
    rows = net.add("Gather", "opset8", [sizes, *map(net.constant, (np.int64([0]), np.int64(0)))])
    for number, count in enumerate((rank, rows)):
        table = net.constant(rng.standard_normal((128, 256)).astype("f4"))
        factor = net.add("Convert", "opset1", [count], destination_type="f32")
        scaled = net.add("Multiply", "opset1", [table, factor])
        net.result(net.add("MatMul", "opset1", [x, scaled], transpose_b=True), name=f"y{number}")
    model = net.model()
    made: list[str] = []
    plain = folding._results

    def noted(op: Any, inputs: Any) -> Any:
        made.append(op.xml_type)
        return plain(op, inputs)

    monkeypatch.setattr(folding, "_results", noted)
    program = ir.compile(model, threads=1)
    lengths = (3, 9, 4, 7, 3, 12)
    for length in lengths:
        given = [rng.standard_normal((length, 256)).astype("f4")]
        for name, array in ir.run(model, given).items():
            np.testing.assert_allclose(program(given)[name], array, rtol=1e-5, atol=1e-3)
    assert made.count("Multiply") == 1 + len(set(lengths))


def test_of_what_was_made_of_constants_the_latest_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folded, array = constants.Folded(), np.zeros(100, "f4")
    op = Op.registry["ReLU", 1].read({})
    for number in range(6):
        folded.keep((number,), constants.Made(op, [array], [array + number]))
    assert folded.find((0,), op) is not None
    monkeypatch.setattr(constants, "ROOM", 3 * array.nbytes)
    folded.trim({id(array)})
    assert [one.found[0][0] for one in folded] == [4, 5, 0]
    assert folded.find((1,), op) is None
    folded.trim(())  # what they were made of counts, where it is kept for them alone
    assert [one.found[0][0] for one in folded] == [0]
