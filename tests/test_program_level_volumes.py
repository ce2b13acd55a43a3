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
from .test_program_quantized import LIBRARY, integer_nodes, needs_library, whatever_it_takes

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
        begins = [reach // 2 + int(self.pick(0, 0, 0, 1)) for reach in reaches]
        ends = [reach - reach // 2 + int(self.pick(0, 0, 0, 1)) for reach in reaches]
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


@pytest.mark.parametrize("between", ["", "ReLU", "scaled"])
@pytest.mark.parametrize("deep", [1, 3])
def test_what_is_added_beside_them_may_be_levels(deep: int, between: str) -> None:
    """Rounded, joined with levels from before, and rounded again: as blocks of ResNets are."""
    one = Volumes(deep)
    shape = (2, 8, 4, 6, 6)
    y = one.rounded_to(one.net.parameter("x", "f32", shape))
    for _ in range(2):
        words = {"strides": [1] * 3, "dilations": [1] * 3, "pads_begin": [deep // 2, 1, 1]}
        z = one.add("Convolution", y, one.matrix(8, 8, deep, 3, 3), **words,
                    pads_end=[deep // 2, 1, 1])  # fmt: skip
        z = one.add("Add", one.rounded_to(z, power=4), y)
        if between == "ReLU":
            z = one.add("ReLU", z)
        elif between == "scaled":
            z = one.add("Multiply", z, one.constant(np.float32(0.5)))
        y = one.rounded_to(z, power=3)
    model = one.model(one.add("ReLU", y))
    plan = planned(model)
    first, _ = (node for node in plan.nodes if node.kind == "Convolution")
    assert first.outputs[0].type == np.int8
    assert bool(first.joined) == (not between)
    same_bits(model, [(one.rng.integers(-300, 300, shape) / 64).astype("f4")])


@pytest.mark.parametrize("kind", ["Mish", "SoftPlus"])
def test_what_follows_is_looked_up_where_it_is_much(kind: str) -> None:
    one = Volumes(3)
    shape = (1, 8, 8, 16, 32)
    y = one.rounded_to(one.net.parameter("x", "f32", shape))
    words = {"strides": [1] * 3, "dilations": [1] * 3}
    for size, pad in ((3, 1), (1, 0)):
        y = one.add("Convolution", y, one.matrix(8, 8, size, 3, 3), **words,
                    pads_begin=[pad, 1, 1], pads_end=[pad, 1, 1])  # fmt: skip
        y = one.rounded_to(one.add(kind, y, opset="opset4"), levels=16, power=2)
    model = one.model(one.add("ReLU", y))
    looked_up = [node.table is not None for node in planned(model).nodes if node.integers]
    assert LIBRARY is not None
    assert looked_up[0] == LIBRARY.rounds
    same_bits(model, [(one.rng.integers(-300, 300, shape) / 64).astype("f4")])


def test_what_is_chosen_of_levels_is_the_same_for_all_plans() -> None:
    one = Exact(5)
    x = one.net.parameter("x", "f32", (1, 8, 4, 6, 6))
    words = {key: [1, 1, 1] for key in ("strides", "dilations", "pads_begin", "pads_end")}
    y = one.add("Convolution", one.rounded_to(x), one.matrix(8, 8, 3, 3, 3), **words)
    (node,) = [node for node in planned(one.model(y)).nodes if node.kind == "Convolution"]
    packed = node.inputs[1].packed
    assert packed is not None
    first = packed.chosen("half", lambda levels: levels[:, :, 1:])
    assert first is packed.chosen("half", lambda levels: levels[:, :, 1:])
    np.testing.assert_array_equal(first.signed, packed.signed[:, :, 1:])
    np.testing.assert_array_equal(first.expanded(), packed.expanded()[:, :, 1:])


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
