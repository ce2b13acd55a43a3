"""The shape operations by hand: patterns, refusals, names of sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import IRError, Shape, Tensor


def inferred(name: str, *inputs: Any, **attributes: str) -> str:
    """The shape of the output, for inputs that are shapes (text) or values."""
    kind, _, number = name.rpartition("V")
    tensors = [
        Tensor("f32", Shape.parse(given, symbols=True))
        if isinstance(given, str)
        else Tensor.of(np.asarray(given, np.int64))
        for given in inputs
    ]
    op: Op = Op.registry[kind, int(number)].read(attributes)
    return str(op.infer_outputs(tensors)[0].shape)


@pytest.mark.parametrize(
    ("data", "pattern", "special_zero", "wanted"),
    [
        ("2,5,5,24", [0, -1, 4], "true", "2,150,4"),  # examples of the specification
        ("2,2,3", [4, 3], "false", "4,3"),
        ("0,3", [-1, 0], "true", "0,3"),
        ("3,0", [0, -1], "true", "3,0"),
        ("?,4", [-1, 4], "true", "?,4"),
        ("2..3,4", [-1, 4], "true", "2..3,4"),
        ("1..6,4", [2, -1], "true", "2,2..12"),
        ("2..,3", [4, -1], "false", "4,2.."),
        ("...", [0, 3], "true", "?,3"),
        ("...", [2, -1], "true", "2,1.."),
        ("B,3,H,W", [0, -1], "true", "B,3*H*W"),
        ("B,12", [0, 3, -1], "true", "B,3,4"),
        ("B,4", [2, -1], "false", "2,2*B"),
    ],
)
def test_reshape(data: str, pattern: list[int], special_zero: str, wanted: str) -> None:
    assert inferred("ReshapeV1", data, pattern, special_zero=special_zero) == wanted


@pytest.mark.parametrize(
    ("data", "pattern", "complaint"),
    [
        ("6", [4, -1], "6 / 4, which is not whole"),
        ("2,3", [7], "shape 7 has 7 elements, the input 2,3 has 6"),
        ("2,3", [-1, -1], "-1 stands 2 times"),
        ("2,3", [-2, 3], "element 0 is -2, the least is -1"),
        ("2", [1, 0, 2], "copies axis 1, the input has 1"),
        ("2,3", [[6]], "the shape pattern has 2 axes"),
    ],
)
def test_reshape_refuses(data: str, pattern: Any, complaint: str) -> None:
    with pytest.raises(IRError, match=complaint):
        inferred("ReshapeV1", data, pattern, special_zero="true")


@pytest.mark.parametrize(
    ("name", "data", "axes", "wanted"),
    [
        ("SqueezeV1", "1,3,1,2", [0, 2], "3,2"),
        ("SqueezeV1", "1,3,1,2", [-1], "1,3,1,2"),  # not 1: it stays
        ("SqueezeV1", "?,3", [0], "3"),
        ("SqueezeV1", "?,3", [], "..."),
        ("SqueezeV15", "2..4,1", [], "2..4"),
        ("UnsqueezeV1", "2,B", [0, 3], "1,2,B,1"),
        ("UnsqueezeV1", "", 0, "1"),
    ],
)
def test_axes_of_size_one(name: str, data: str, axes: Any, wanted: str) -> None:
    assert inferred(name, data, axes) == wanted


def test_squeeze_may_leave_the_rank_open() -> None:
    assert inferred("SqueezeV15", "?,3", [0], allow_axis_skip="true") == "..."
    assert inferred("SqueezeV15", "1,3", [0], allow_axis_skip="true") == "3"


@pytest.mark.parametrize(
    ("name", "axes", "complaint"),
    [
        ("SqueezeV1", [2], "axis 2 is beyond the 2 axes"),
        ("UnsqueezeV1", [3], "axis 3 is beyond the 3 axes"),
        ("UnsqueezeV1", [], "0 axes, the least is 1"),
        ("UnsqueezeV1", [[0]], "the axes have 2 axes themselves"),
    ],
)
def test_axes_are_refused(name: str, axes: Any, complaint: str) -> None:
    with pytest.raises(IRError, match=complaint):
        inferred(name, "2,3", axes)


def step(name: str, *inputs: Tensor, **attributes: str) -> Tensor:
    kind, _, number = name.rpartition("V")
    op: Op = Op.registry[kind, int(number)].read(attributes)
    return op.infer_outputs(inputs)[0]


def test_names_of_sizes_go_through_a_chain_of_values() -> None:
    image = Tensor("f32", Shape.parse("B,3,H,W", symbols=True))
    sizes = step("ShapeOfV3", image, output_type="i64")
    zero = Tensor.of(np.int64(0))
    batch = step("GatherV8", sizes, Tensor.of(np.array([0])), zero)
    height = step("GatherV8", sizes, Tensor.of(np.array([2])), zero)
    half = step("DivideV1", height, Tensor.of(np.array([2])))
    rows = step("SubtractV1", step("AddV1", half, half), half)
    pattern = step("ConcatV1", batch, Tensor.of(np.array([3])), rows, axis="0")
    shaped = step("BroadcastV3", Tensor.of(np.float32(0)), pattern)
    assert str(shaped.shape) == "B,3,H//2"
    assert step("SubtractV1", height, height).ints() == [0]


def test_what_32_bits_do_not_hold_is_without_limit() -> None:
    data = Tensor("f32", Shape.parse("3..,..5000000000,7"))
    sizes = step("ShapeOfV3", data, output_type="i32")
    assert list(map(str, sizes.sizes() or [])) == ["3..", "?", "7"]
    assert step("MultiplyV1", sizes, Tensor.of(np.int32(2))).ints() is None


def test_a_size_that_32_bits_do_not_hold_is_no_number() -> None:
    large = Tensor("f32", (2, 4_000_000_000))
    sizes = step("ShapeOfV3", large, output_type="i32")
    assert (sizes.ints(), list(map(str, sizes.sizes() or []))) == (None, ["2", "?"])
    assert step("ShapeOfV3", large).ints() == [2, 4_000_000_000]
    op = Op.registry["ShapeOf", 3].read({"output_type": "i32"})
    with pytest.raises(IRError, match=r"size 4000000000 of axis 1 is too large for i32"):
        op.run(np.broadcast_to(np.int8(0), (2, 4_000_000_000)))
