"""Convolution: the specification's examples, corners that random calls do not reach, refusals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from vinoir.layers import Op
from vinoir.schemas import IRError, Shape, Tensor


def op(kind: str, number: int = 1, axes: int = 2, **data: Any) -> Any:
    """An operation with plain attributes, some of them given."""
    plain = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0}
    texts = {name: ", ".join([str(value)] * axes) for name, value in plain.items()}
    return Op.registry[kind, number].read(texts | {k: str(v) for k, v in data.items()})


def inferred(op: Any, *shapes: Any) -> str:
    inputs = [s if isinstance(s, Tensor) else Tensor("f32", Shape.parse(s)) for s in shapes]
    (output,) = op.infer_outputs(inputs)
    return output.shape.spelling


@pytest.mark.parametrize(
    ("kind", "data", "shapes", "output"),
    [
        ("Convolution", {"pads_begin": "2, 2", "pads_end": "2, 2"},
         ("1,3,224,224", "64,3,5,5"), "1,64,224,224"),
        ("GroupConvolution", {}, ("1,12,224,224", "4,1,3,5,5"), "1,4,220,220"),
        ("GroupConvolution", {}, ("1,?,224,224", "4,1,3,5,5"), "1,4,220,220"),
        ("ConvolutionBackpropData",
         {"strides": "2, 2", "pads_begin": "1, 1", "pads_end": "1, 1"},
         ("1,20,224,224", "20,10,3,3"), "1,10,447,447"),
        ("ConvolutionBackpropData", {"strides": "3, 3", "output_padding": "2, 2"},
         ("1,20,2,2", "20,10,3,3"), "1,10,8,8"),
        ("GroupConvolutionBackpropData", {"strides": "2, 2"},
         ("1,20,224,224", "4,5,2,3,3"), "1,8,449,449"),
        # Filters of unknown size leave only that there is one stop at least.
        ("Convolution", {}, ("1,3,8,?", "..."), "1,?,1..8,1.."),
        ("Convolution", {"auto_pad": "same_upper", "strides": "2, 3"},
         ("...", "4,3,?,?"), "?,4,?,?"),
        ("ConvolutionBackpropData", {"auto_pad": "same_lower", "pads_begin": "1, 1"},
         ("1,4,5,2..", "4,3,3,1..2"), "1,3,7,2.."),
    ],
)  # fmt: skip
def test_shape(kind: str, data: dict[str, str], shapes: tuple[str, ...], output: str) -> None:
    assert inferred(op(kind, **data), *shapes) == output


@pytest.mark.parametrize(
    ("asked", "output"),
    [
        (Tensor.of(np.array([450, 450])), "1,10,450,450"),
        (Tensor("i64", (2,)), "1,10,?,?"),
        # OpenVINO drops the spatial axes here.
        (Tensor("i32", None), "1,10,?,?"),
    ],
)
def test_shape_that_is_asked_for(asked: Tensor, output: str) -> None:
    spread = op("ConvolutionBackpropData", auto_pad="valid")
    assert inferred(spread, "1,20,224,224", "20,10,3,3", asked) == output


@pytest.mark.parametrize(
    ("kind", "shapes", "message"),
    [
        ("Convolution", ("1,3,8,8", "4,2,3,3"), "the input has 3 channels, the filters take 2"),
        ("Convolution", ("1,3,8,8", "4,3,3"), "the filters have 3 axes"),
        ("Convolution", ("1,3,2,8", "4,3,3,3"), "window reaches over 3, there are 2"),
        ("Convolution", ("1,3,8,8,8", "4,3,3,3,3"), "strides has 2 axes"),
        ("GroupConvolution", ("1,5,8,8", "2,3,2,3,3"), "2 groups of filters take 2 each"),
        ("ConvolutionBackpropData", ("1,3,8,8", "4,2,3,3"), "3 channels, the filters take 4"),
    ],
)
def test_refusal(kind: str, shapes: tuple[str, ...], message: str) -> None:
    with pytest.raises(IRError, match=message):
        inferred(op(kind), *shapes)


def test_negative_padding_is_refused() -> None:
    """OpenVINO gives a shape for it, and fails when it is run."""
    with pytest.raises(IRError, match="pads_begin has -1, the least is 0"):
        inferred(op("Convolution", pads_begin="-1, 0"), "1,3,8,8", "4,3,3,3")


def test_types_that_cannot_be_multiplied_are_refused() -> None:
    image, filters = Tensor("boolean", (1, 1, 3)), Tensor("boolean", (1, 1, 3))
    with pytest.raises(IRError, match="boolean is not numeric"):
        op("Convolution", axes=1).infer(image, filters)


#: 1, 2, 3 laid two apart with the filter 1, 10, 100.
LAID = [1, 10, 102, 20, 203, 30, 300]


@pytest.mark.parametrize(
    ("auto_pad", "size", "extra", "output"),
    [
        ("explicit", 4, 0, LAID[1:5]),
        ("explicit", 7, 0, [*LAID[1:], 0]),
        ("valid", 5, 0, LAID[:5]),
        ("same_upper", 4, 0, LAID[2:6]),
        ("same_lower", 4, 0, LAID[1:5]),
        ("same_upper", 7, 1, [*LAID[1:], 0]),
        ("same_lower", 9, 1, [*LAID, 0, 0]),
    ],
)
def test_asked_shape_places_the_output(
    auto_pad: str, size: int, extra: int, output: list[int]
) -> None:
    """The numbers are OpenVINO's."""
    spread = op(
        "ConvolutionBackpropData", axes=1, strides=2, pads_begin=1,
        auto_pad=auto_pad, output_padding=extra,
    )  # fmt: skip
    data = np.array([1, 2, 3], "f4").reshape(1, 1, 3)
    filters = np.array([1, 10, 100], "f4").reshape(1, 1, 3)
    (values,) = spread.run(data, filters, np.array([size]))
    assert values.ravel().tolist() == output


@pytest.mark.parametrize(
    ("kind", "output"),
    [("i1", [127, -128]), ("i4", [1100, -1600]), ("f2", [1100, -1600]), ("bf16", [1104, -1600])],
)
def test_sums_are_exact_and_stop_at_the_ends_of_the_type(kind: str, output: list[int]) -> None:
    dtype = ml_dtypes.bfloat16 if kind == "bf16" else np.dtype(kind)
    data = np.array([100, 100, -100]).astype(dtype).reshape(1, 1, 3)
    filters = np.array([5, 6]).astype(dtype).reshape(1, 1, 2)
    filters2 = np.array([-5, 11]).astype(dtype).reshape(1, 1, 2)
    first, second = (op("Convolution", axes=1).run(data, f)[0] for f in (filters, filters2))
    assert first.dtype == dtype
    assert [first.ravel()[0].item(), second.ravel()[1].item()] == output


@pytest.mark.parametrize("pad", ["0", "1", "0.5"])
def test_binary(pad: str) -> None:
    """Each pair of equal bits counts 1, each other pair -1; 0.5 equals neither bit."""
    binary = op(
        "BinaryConvolution", mode="xnor-popcount", pad_value=pad,
        pads_begin="0, 1", pads_end="0, 1",
    )  # fmt: skip
    data = np.array([1, 1, 0], "f4").reshape(1, 1, 1, 3)
    filters = np.array([1, 0], "u1").reshape(1, 1, 1, 2)
    (values,) = binary.run(data, filters)
    windows = [(float(pad), 1), (1, 1), (1, 0), (0, float(pad))]
    signs = [(1 if one == 1 else -1) + (1 if two == 0 else -1) for one, two in windows]
    assert values.ravel().tolist() == signs


def test_binary_filters_are_bits() -> None:
    binary = op("BinaryConvolution", mode="xnor-popcount", pad_value="0")
    image = Tensor("f32", (1, 2, 3, 3))
    assert binary.infer(image, Tensor("u1", (4, 2, 2, 2))) == (Tensor("f32", (1, 4, 2, 2)),)
    with pytest.raises(IRError, match="f32 is not one of u1"):
        binary.infer(image, Tensor("f32", (4, 2, 2, 2)))


@pytest.mark.parametrize("pad", ["true", "false"])
def test_offsets_of_whole_steps_look_elsewhere(pad: str) -> None:
    """Windows all moved by one column see what a convolution of moved data sees."""
    rng = np.random.default_rng(0)
    data, filters = rng.random((1, 4, 6, 6), "f4"), rng.random((2, 2, 3, 3), "f4")
    offsets = np.zeros((1, 18, 4, 4), "f4")
    offsets[:, 1::2] = 1
    deformed = op("DeformableConvolution", 8, group=2, bilinear_interpolation_pad=pad)
    moved = np.concatenate([data[..., 1:], np.zeros((1, 4, 6, 1), "f4")], -1)
    (wanted,) = op("GroupConvolution").run(moved, filters[:, None])
    np.testing.assert_allclose(deformed.run(data, offsets, filters)[0], wanted, rtol=1e-5)


def test_default_of_output_padding_is_written_out() -> None:
    assert op("ConvolutionBackpropData").attributes()["output_padding"] == "0, 0"
