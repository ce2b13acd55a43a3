"""Shapes as people give them: the same words for tensors, parameters and inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vinoir import ir
from vinoir.schemas import ANY, Dim, Shape, Tensor

SAME = [
    ("1,3,?,?", [1, 3, -1, -1]),
    ("[1, 3, -1, ?]", (1, 3, None, "?")),
    ("1,2..5,..4,3..", [np.int64(1), "2..5", Dim(0, 4), "3.."]),
    ("1,3,H,W", ["1", 3, "H", "W"]),
    ("...", None),
    ("", []),
    ("", ()),
]


@pytest.mark.parametrize(("text", "sizes"), SAME)
def test_text_and_lists_mean_the_same(text: str, sizes: Any) -> None:
    shape = Shape.of(text)
    assert Shape.of(sizes) == shape == Tensor("f32", text).shape == Tensor("f32", sizes).shape
    assert Shape.of(shape) is shape


@pytest.mark.parametrize(("text", "sizes"), SAME)
def test_the_builder_and_inference_take_the_same(text: str, sizes: Any) -> None:
    shape = Shape.of(text)
    for spelt in (text, Shape.UNKNOWN if sizes is None else sizes):
        net = ir.Builder()
        x = net.parameter("x", "f32", spelt)
        net.result(ir.ops.ReLU(x), name="y")
        assert x.tensor.shape == shape
        net = ir.Builder()
        net.result(ir.ops.ReLU(net.parameter("x", "f32", "...")), name="y")
        assert ir.infer(net.model(), {"x": spelt})["y"].shape == shape


def test_what_they_say() -> None:
    assert Tensor("f32", [1, 3, -1, -1]).shape == (1, 3, ANY, ANY)
    named = Tensor("f32", "N,H,H").shape
    assert [str(size) for size in named] == ["N", "H", "H"]
    assert named[1] == named[2] != named[0]


@given(st.lists(st.one_of(st.integers(-1, 2**40), st.none()), max_size=6))
def test_lists_of_sizes(sizes: list[int | None]) -> None:
    text = ",".join("?" if size in (None, -1) else str(size) for size in sizes)
    assert Tensor("u8", sizes) == Tensor("u8", text) == Tensor("u8", tuple(sizes))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("1,x y", '"x y" in shape "1,x y" is not a size'),
        ("[1,2", r'shape "\[1,2" has half a bracket'),
        ("1,,2", 'shape "1,,2" has an empty field'),
        ([1, "5..2"], r'"5\.\.2" .* ends before it begins'),
        ([1, -2], "the shape has a size of -2, the least is 0"),
        ([1, 2.5], r"\[1, 2\.5\] is no shape \(a shape is text"),
        (3, "3 is no shape"),
        ([2**64], "65 bits, the most are 63"),
        ([1] * 65, "more than 64 axes, the most are 64"),
    ],
)
def test_what_is_no_shape(shape: Any, message: str) -> None:
    with pytest.raises(ir.IRError, match=message):
        Tensor("f32", shape)


def test_a_value_of_another_shape_is_refused() -> None:
    with pytest.raises(ir.IRError, match="the value has the shape 2,3, not 3,2"):
        Tensor("f32", [3, 2], np.zeros((2, 3), np.float32))
    assert Tensor("f32", "2,?", np.zeros((2, 3), np.float32)).value is not None
