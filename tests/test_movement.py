"""Movement: examples worked by hand, refusals, and shapes carried through small graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import Call, ask, write
from vinoir import ir
from vinoir.ir.inference.shapes import infer_graph
from vinoir.layers import Op
from vinoir.layers.movement_slice import sliced
from vinoir.schemas import Dim, IRError, Shape, Size, Tensor
from vinoir.schemas.shapes import LARGEST


@pytest.mark.parametrize(
    ("kind", "data", "inputs", "message"),
    [
        (("Roll", 7), {}, ["f32[3,4]", "f64[1]", "i64[1]"], "type f64 of the shift is not one of"),
        (("Roll", 7), {}, ["f32[3,4]", "i64[1]", "u8[1]"], "type u8 of the axes is not one of"),
        (("Reverse", 1), {"mode": "index"}, ["f32[3]", "f32[1]"], "of the axes is f32"),
        (("SpaceToBatch", 2), {}, ["f32[2,3]", "i64[2]", "f32[2]", "i64[2]"], "pads_begin is f32"),
        (
            ("BatchToSpace", 2),
            {},
            ["f32[2,3]", "f16[2]", "f16[2]", "f16[2]"],
            "block_shape is f16",
        ),
        (("Squeeze", 1), {}, ["f32[2,1]", "boolean[1]"], "of the axes is boolean"),
        (("Gather", 8), {}, ["f32[2,1]", "i64[1]", "boolean[]"], "of the axis is boolean"),
    ],
)
def test_types_are_refused_with_the_name_of_the_input(
    kind: tuple[str, int], data: dict[str, str], inputs: list[str], message: str
) -> None:
    given = []
    for text in inputs:
        element, _, sizes = text.rstrip("]").partition("[")
        given.append(Tensor(element, tuple(map(int, filter(None, sizes.split(","))))))
    with pytest.raises(IRError, match=message):
        Op.registry[kind].read(data).infer_outputs(given)


ROW = np.arange(5)


def made(name: str, **data: str) -> Op:
    kind, _, number = name.rpartition("V")
    op: Op = Op.registry[kind, int(number)].read(data)
    return op


@pytest.mark.parametrize(("mode", "expected"), [
    ("constant", [9, 9, 0, 1, 2, 3, 4, 9]),
    ("edge", [0, 0, 0, 1, 2, 3, 4, 4]),
    ("reflect", [2, 1, 0, 1, 2, 3, 4, 3]),
    ("symmetric", [1, 0, 0, 1, 2, 3, 4, 4]),
])  # fmt: skip
def test_pad_modes(mode: str, expected: list[int]) -> None:
    op = made("PadV12", pad_mode=mode)
    (padded,) = op.run(ROW, np.array([2]), np.array([1]), np.array(9))
    assert padded.tolist() == expected


def test_a_mirror_shows_what_a_negative_margin_cuts_off() -> None:
    (padded,) = made("PadV12", pad_mode="reflect").run(ROW, np.array([-2]), np.array([3]))
    assert padded.tolist() == [2, 3, 4, 3, 2, 1]


@pytest.mark.parametrize(("start", "stop", "step", "expected"), [
    (1, 4, 1, [1, 2, 3]),
    (-2, LARGEST, 1, [3, 4]),
    (-9, 9, 2, [0, 2, 4]),
    (9, -9, -2, [4, 2, 0]),
    (3, 1, 1, []),
    # NumPy gives nothing here; OpenVINO begins at the first element.
    (-9, -99, -1, [0]),
])  # fmt: skip
def test_slices(start: int, stop: int, step: int, expected: list[int]) -> None:
    ends = [np.array([n]) for n in (start, stop, step)]
    assert made("SliceV8").run(ROW, *ends)[0].tolist() == expected
    strided = made("StridedSliceV1", begin_mask="0", end_mask="0")
    assert strided.run(ROW, *ends)[0].tolist() == expected


@pytest.mark.parametrize(("size", "start", "stop", "step", "expected"), [
    (Dim(2, 7), (0, 0), (LARGEST, LARGEST), 1, Dim(2, 7)),
    (Dim(2, 7), (1, 1), (LARGEST, LARGEST), 2, Dim(1, 3)),
    (Dim(), (-3, -3), (LARGEST, LARGEST), 1, Dim(0, 3)),
    (Dim(), (2, 2), (6, 6), 1, Dim(0, 4)),
    (Dim(4, 9), (0, 0), (2, 5), 1, Dim(2, 5)),
    (8, (1, 3), (5, 5), 1, Dim(2, 4)),
])  # fmt: skip
def test_sizes_of_slices_by_hand(
    size: Size, start: tuple[int, int], stop: tuple[int, int], step: int, expected: Size
) -> None:
    assert sliced(size, start, stop, step) == expected


def test_a_name_survives_what_keeps_the_size() -> None:
    named = Tensor("f32", [Dim(0, None, "H"), Dim(0, None, "W")])
    first = [Tensor.of(np.array([n])) for n in (0, LARGEST, 1)]
    assert str(made("SliceV8").infer_outputs([named, *first])[0].shape) == "H,W"
    assert str(made("ConcatV1", axis="1").infer_outputs([named, named])[0].shape) == "H,2*W"
    swapped = made("TransposeV1").infer_outputs([named, Tensor.of(np.array([1, 0]))])
    assert str(swapped[0].shape) == "W,H"
    deep = Tensor("f32", [1, 4, Dim(0, None, "H"), 6])
    space = made("DepthToSpaceV1", block_size="2", mode="depth_first").infer_outputs([deep])
    assert str(space[0].shape) == "1,1,2*H,12"


@pytest.mark.parametrize(("name", "data", "inputs", "message"), [
    ("ConcatV1", {"axis": "0"}, [Tensor("f32", [2, 3]), Tensor("f32", [2, 4])],
     "shapes .,3 and .,4 differ"),
    ("SplitV1", {"num_splits": "2"}, [Tensor("f32", [3]), Tensor.of(0)],
     "size 3 is not divisible into 2 pieces"),
    ("VariadicSplitV1", {}, [Tensor("f32", [3]), Tensor.of(0), Tensor.of(np.array([1, 1]))],
     "pieces of 2 in all are cut out of a size of 3"),
    ("TransposeV1", {}, [Tensor("f32", [3, 2]), Tensor.of(np.array([1, 1]))], "each once"),
    ("BroadcastV3", {"mode": "explicit"},
     [Tensor("f32", []), Tensor.of(np.array([2, 4])), Tensor.of(np.array([1]))], "a scalar is"),
    ("BroadcastV3", {}, [Tensor("f32", [3]), Tensor.of(np.array([2, 4]))],
     "size 3 does not broadcast to 4"),
    ("PadV1", {"pad_mode": "reflect"},
     [Tensor("f32", [3]), Tensor.of(np.array([3])), Tensor.of(np.array([0]))], "by 2 at most"),
    ("SliceV8", {}, [Tensor("f32", [3]), *(Tensor.of(np.array([0])) for _ in range(3))],
     "a step is 0"),
    ("StridedSliceV1", {"begin_mask": "0, 2", "end_mask": ""},
     [Tensor("f32", [3]), *(Tensor.of(np.array([1])) for _ in range(3))], "other values than"),
    ("DepthToSpaceV1", {"block_size": "2", "mode": "depth_first"}, [Tensor("f32", [1, 6, 1, 1])],
     "size 6 is not divisible by 4"),
    ("ReverseV1", {"mode": "index"}, [Tensor("f32", [3]), Tensor.of(np.array([-1]))],
     "axis -1 is beyond"),
])  # fmt: skip
def test_refusals_say_why(
    name: str, data: dict[str, str], inputs: list[Tensor], message: str
) -> None:
    with pytest.raises(IRError, match=message):
        made(name, **data).infer_outputs(inputs)


def chains() -> list[Callable[[Any, Any], Any]]:
    """From the shape of a dynamic input to a target shape, by OpenVINO's builders."""

    def i64(*values: int) -> Any:
        from openvino import opset15

        return opset15.constant(np.array(values, np.int64))

    return [
        lambda o, s: o.strided_slice(s, i64(1), i64(3), i64(1), [0], [0]),
        lambda o, s: o.strided_slice(s, i64(0), i64(0), i64(-1), [1], [1]),
        lambda o, s: o.slice(s, i64(-1), i64(-9), i64(-2)),
        lambda o, s: o.concat([i64(2), o.slice(s, i64(1), i64(9), i64(1)), s], 0),
        lambda o, s: o.split(s, o.constant(np.int64(0)), 2).output(1),
        lambda o, s: o.variadic_split(s, o.constant(np.int64(0)), i64(-1, 1)).output(0),
        lambda o, s: o.tile(s, i64(2)),
        lambda o, s: o.pad(s, i64(1), i64(-2), "constant", o.constant(np.int64(7))),
        lambda o, s: o.reshape(o.broadcast(s, i64(2, 4)), i64(-1), False),
        lambda o, s: o.broadcast(o.split(s, o.constant(np.int64(0)), 4).output(3), i64(3)),
        lambda o, s: o.roll(s, i64(1), i64(0)),
    ]  # fmt: skip


@pytest.mark.parametrize("index", range(11))
@pytest.mark.parametrize("kind", ["i64", "i32"])
def test_shapes_are_carried_as_openvino_carries_them(
    index: int, kind: str, tmp_path: Path
) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import opset15 as o

    sizes = [openvino.Dimension(2, 5), 3, openvino.Dimension(), openvino.Dimension(4, -1)]
    data = o.parameter(openvino.PartialShape(sizes), np.float32)
    shape = o.convert(o.shape_of(data, kind), "i64")
    result = o.broadcast(o.constant(np.float32(1)), chains()[index](o, shape))
    openvino.serialize(openvino.Model([result], [data], "m"), tmp_path / "m.xml")
    model = ir.read(tmp_path / "m.xml")
    tensors = infer_graph(model, {})
    (end,) = (layer for layer in model.order() if layer.type == "Result")
    expected = Shape.parse(str(result.get_output_partial_shape(0)))
    assert tensors[end.id][0].shape.spelling == expected.spelling


#: The parts of a target shape, each by OpenVINO's builders, of a size of which nothing is known.
JOINED: dict[str, Callable[[Any, Any], list[Any]]] = {
    "numbers": lambda o, s: [s, *(o.constant(np.array([size])) for size in (3, 5))],
    "one and none": lambda o, s: [s, *(o.constant(np.array([size])) for size in (1, 0))],
    "less than none": lambda o, s: [s, *(o.constant(np.array([size])) for size in (-1, 5))],
    "two in one": lambda o, s: [s, o.constant(np.array([3, 5]))],
    "a sum": lambda o, s: [
        s, o.add(o.constant(np.array([1])), o.constant(np.array([2]))), o.constant(np.array([5]))
    ],
    "a size that is known": lambda o, s: [
        s, o.constant(np.array([3])), o.gather(
            o.shape_of(o.constant(np.zeros((5, 2), "f4"))), o.constant(np.array([0])),
            o.constant(np.int64(0)),
        )
    ],
    "more": lambda o, s: [s, *(o.constant(np.array([size])) for size in (3, 1, 5))],
}  # fmt: skip


@pytest.mark.parametrize("mode", ["NUMPY", "BIDIRECTIONAL", "EXPLICIT"])
@pytest.mark.parametrize("parts", JOINED)
@pytest.mark.parametrize("after", ["", "Add"])
def test_constants_that_are_joined_to_a_target_are_told_as_by_openvino(
    mode: str, parts: str, after: str, tmp_path: Path
) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import opset15 as o

    rank = 1 if mode == "EXPLICIT" else 3
    data = o.parameter(openvino.PartialShape([-1] * rank), np.float32)
    size = o.gather(o.shape_of(data), o.constant(np.array([0])), o.constant(np.int64(0)))
    target = o.concat(JOINED[parts](o, o.floor(size)), 0)
    if after:
        target = o.add(target, o.constant(np.array([0])))
    axes = [o.constant(np.array([0]))] if mode == "EXPLICIT" else []
    result = o.broadcast(data, target, *axes, broadcast_spec=mode)
    openvino.save_model(openvino.Model([result], [data], "m"), tmp_path / "m.xml", False)
    read = openvino.Core().read_model(tmp_path / "m.xml")
    (found,) = ir.infer(tmp_path / "m.xml").values()
    expected = Shape.parse(str(read.output(0).get_partial_shape()))
    assert found.shape.spelling == expected.spelling
    report = ir.check(tmp_path / "m.xml")
    assert not [finding for finding in report if finding.severity == "error"]


def test_what_is_built_declares_sizes_that_are_joined_to_a_target() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,?,5")
    sizes = net.add("ShapeOf", "opset3", [x])
    first = net.add("Gather", "opset8", [sizes, net.constant(np.array([0])), np.int64(0)])
    parts = [net.add("Floor", "opset1", [first]), *(net.constant(np.array([n])) for n in (1, 5))]
    target = net.add("Concat", "opset1", parts, axis=0)
    wide = net.add("Broadcast", "opset3", [x, target], mode="numpy")
    net.result(net.add("Broadcast", "opset3", [np.float32(1), target], mode="numpy"), name="y")
    net.result(wide, name="z")
    for layer, index, tensor in ir.infer(net.model()).ports():
        assert layer.outputs[index].tensor == tensor
    assert str(wide.tensor.shape) == "?,1,5"


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize(
    "margins", [(7, -5), (-5, 7), (2, -4), (-4, 1), (2, -6), (1, -3), (-1, -2), (-2, -2)]
)
def test_margins_that_cut_more_off_than_there_is(mode: str, margins: tuple[int, int]) -> None:
    inputs = [np.float32([1, 2, 3]), *(np.array([margin]) for margin in margins)]
    call = Call("PadV12", inputs, {"pad_mode": mode}, const=(1, 2))
    op, tensors, arrays = call.make(), call.tensors(), call.arrays()
    cut = mode == "constant" and 3 + min(margins[0], 0) + min(margins[1], 0) < 0
    try:
        if cut:  # of those OpenVINO's reference makes nothing but margin, and its CPU crashes
            raise RuntimeError
        xml, weights = write("Pad", "opset12", f' pad_mode="{mode}"', tensors, 1)
        (wanted,) = ask("reference", xml, weights, arrays[:1])
    except RuntimeError:
        for ask_ours in (lambda: op.infer_outputs(tensors), lambda: op.run(*arrays)):
            with pytest.raises(IRError, match=r"margins of|pads a size of"):
                ask_ours()
    else:
        assert op.infer_outputs(tensors)[0].shape == wanted.shape
        np.testing.assert_array_equal(op.run(*arrays)[0], wanted)


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "message"),
    [
        ("BatchToSpaceV2", {}, [np.ones((2, 3)), [2, 1], [0, 2], [0, 2]], "a crop of 4 is larger"),
        ("BatchToSpaceV2", {}, [np.ones((3, 3)), [2, 1], [0, 0], [0, 0]], "not divisible by 2"),
        ("BatchToSpaceV2", {}, [np.ones((2, 3)), [2, 1], [0, -1], [0, 0]], "a crop is -1"),
        ("Col2ImV15", {}, [np.ones((0, 4, 3)), [3, 3], [2, 2]], "3 columns, 4 windows"),
        ("Col2ImV15", {}, [np.ones((0, 4, 0)), [0, 0], [2, 2]], "0 columns, 1 windows"),
        ("ConvolutionBackpropDataV1",
         {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"},
         [np.ones((1, 2, 0)), np.ones((1, 1, 3))], "2 channels, the filters take 1"),
        ("SplitV1", {"num_splits": "2"}, [np.ones(()), 0], "axis 0 is beyond the 0 axes"),
        ("SplitV1", {"num_splits": "2"}, [np.ones((2, 4)), 5], "axis 5 is beyond the 2 axes"),
        ("VariadicSplitV1", {}, [np.ones(()), 0, [1, 1]], "axis 0 is beyond the 0 axes"),
        ("RollV7", {}, [np.ones((2, 3)), [1], [2**62]], f"axis {2**62} is beyond the 2 axes"),
        ("ReverseV1", {"mode": "index"}, [np.ones((2, 3)), [0, 5]], "axis 5 is beyond the 2 axes"),
        ("ReverseV1", {"mode": "index"}, [np.ones((2, 3)), [-1]], "axis -1 is beyond the 2 axes"),
        ("ReverseV1", {"mode": "index"}, [np.ones((2, 3)), [2**62]], f"axis {2**62} is beyond"),
        ("BroadcastV3", {"mode": "explicit"}, [np.ones(3), [2, 3], [5]], "is beyond the 2 axes"),
        ("BroadcastV3", {"mode": "explicit"}, [np.ones(3), [2, 3], [-1]], "is beyond the 2 axes"),
        ("InterpolateV4", {"mode": "cubic", "shape_calculation_mode": "sizes"},
         [np.ones((), "f4"), [4], np.ones(1, "f4"), [0]], "axis 0 is not one of"),
        ("InterpolateV11", {"mode": "nearest", "shape_calculation_mode": "sizes"},
         [np.ones((2, 3), "f4"), [4], [-1]], "axis -1 is not one of 0 to 1"),
        ("InterpolateV1", {"mode": "nearest", "axes": "2"}, [np.ones((2, 3), "f4"), [4]],
         "axis 2 is not one of 0 to 1"),
    ],
)  # fmt: skip
def test_what_a_shape_rule_refuses_a_kernel_refuses(
    name: str, attributes: dict[str, str], inputs: Any, message: str
) -> None:
    arrays = [np.asarray(row) for row in inputs]
    arrays = [row.astype("f4") if row.dtype.kind == "f" else row for row in arrays]
    op = Call(name, arrays, attributes).make()
    for refused in (op.run, lambda *given: op.infer(*map(Tensor.of, given))):
        with pytest.raises(IRError, match=message):
            refused(*arrays)


@pytest.mark.parametrize("order", [[-1, -2], [1, 1], [0, 2], [1]])
def test_an_order_that_comes_as_a_value_is_looked_at_too(order: list[int]) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,?")
    net.result(net.add("Transpose", "opset1", [x, net.parameter("order", "i64", "?")]))
    model, given = net.model(), [np.ones((2, 16), "f4"), np.array(order)]
    for run in (lambda: ir.run(model, given), lambda: ir.compile(model)(given)):
        with pytest.raises(IRError, match=r"order.*2"):
            run()
