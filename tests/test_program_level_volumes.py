"""Convolutions of volumes of levels: every bit of what the definitions give, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.schemas import Array

from .test_program_bytes import Exact, planned, same_bits
from .test_program_quantized import integer_nodes, needs_library, whatever_it_takes

pytestmark = [needs_library, pytest.mark.usefixtures("integers_are_quick")]


class Volumes(Exact):
    """A network of volumes, drawn step by step."""

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def convolved_volume(self, x: Any) -> Any:
        """Windows of any sizes; those with great gaps meet the image with some of their taps."""
        _, inner, *sizes = x.tensor.shape.static
        kernel = [int(self.pick(1, 1, 2, 3)) for _ in sizes]
        gaps = [int(self.pick(1, 1, 2, size)) for size in sizes]
        reaches = [(taps - 1) * gap for taps, gap in zip(kernel, gaps, strict=True)]
        strides = [int(self.pick(1, 1, 2)) for _ in sizes]
        begins = [reach // 2 for reach in reaches]
        ends = [reach - begin for reach, begin in zip(reaches, begins, strict=True)]
        y = self.add(
            "Convolution", x, self.matrix(int(self.pick(5, 8)), inner, *kernel),
            strides=strides, dilations=gaps, pads_begin=begins, pads_end=ends,
        )  # fmt: skip
        if self.rng.random() < 0.5:
            bias = self.rng.integers(-64, 64, (1, y.tensor.shape.static[1], 1, 1, 1)) / 32
            y = self.add("Add", y, self.constant(bias))
        return y

    def followed(self, x: Any) -> Any:
        what = self.pick("", "ReLU", "sum", "scaled", "Concat", "MaxPool", "turned")
        if what == "ReLU":
            return self.add("ReLU", x)
        if what == "sum":
            other = self.rounded_to(self.add("Negative", x), power=4)
            return self.add("Add", self.rounded_to(x), other)
        if what == "scaled":
            _, channels, _, height, width = x.tensor.shape.static
            shape = self.pick((1, channels, 1, 1, 1), (1, 1, 1, height, width), (1,))
            return self.add("Multiply", x, self.constant(0.5 ** self.rng.integers(0, 3, shape)))
        if what == "Concat":
            return self.add("Concat", self.rounded_to(x), self.rounded_to(x), axis=1)
        if what == "MaxPool":
            return self.add(
                "MaxPool", self.rounded_to(x), strides=[1] * 3, kernel=[2, 2, 2],
                pads_begin=[1] * 3, pads_end=[0] * 3,
            )  # fmt: skip
        if what == "turned":
            order = self.constant(np.array([0, 1, 4, 2, 3]), "i64")
            return self.add("Transpose", self.rounded_to(x), order)
        return x

    def drawn(self) -> tuple[ir.Model, list[Array]]:
        shape = int(self.pick(1, 2)), int(self.pick(3, 8)), *self.rng.integers(2, 8, 3).tolist()
        made = [self.net.parameter("x", "f32", shape)]
        for _ in range(3):
            x = self.rounded_to(made[-1], signed=bool(self.rng.random() < 0.7))
            made.append(self.followed(self.convolved_volume(x)))
        wanted = [made[-1], *([made[-2]] if self.rng.random() < 0.3 else [])]
        return self.model(*wanted), [(self.rng.integers(-300, 300, shape) / 64).astype("f4")]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_every_bit(seed: int) -> None:
    model, arrays = Volumes(seed).drawn()
    assert integer_nodes(model) == 3
    same_bits(model, arrays)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_taps_that_meet_only_padding_are_no_part_of_the_products(axes: int, groups: int) -> None:
    one = Exact(axes)
    x = one.net.parameter("x", "f32", (2, 8, *[5] * axes))
    weights = one.matrix(6 * groups, 8 // groups, *[3] * axes)
    kind = "Convolution" if groups == 1 else "GroupConvolution"
    if groups > 1:
        split = one.constant([groups, 6, 8 // groups, *[3] * axes], "i64")
        weights = one.add("Reshape", weights, split, special_zero=False)
    # The first tap lies before the image wherever the window stands, the last behind it.
    gaps = [2, 5, 9][:axes]
    y = one.add(
        kind, one.rounded_to(x), weights, strides=[1] * axes, dilations=gaps, pads_begin=gaps,
        pads_end=gaps,
    )  # fmt: skip
    model = one.model(y)
    arrays = [(one.rng.integers(-300, 300, (2, 8, *[5] * axes)) / 64).astype("f4")]
    with whatever_it_takes():
        (node,) = [node for node in planned(model).nodes if node.kind == kind]
        assert node.inputs[1].shape[-axes:] == (3, 1, 1)[:axes]
        assert (node.integers is None) == ((groups, axes) == (2, 3))
        same_bits(model, arrays)
