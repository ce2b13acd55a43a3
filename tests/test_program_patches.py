"""Images that windows cover are rows, multiplied by a matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_pads import compared
from vinoir import ir
from vinoir.ir.document import Output
from vinoir.schemas import Array


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def covered(
    net: ir.Builder, x: Output, filters: tuple[int, ...], *, kind: str = "Convolution",
    stride: int = 1, pads: int = 0, dilation: int = 1,
) -> Output:  # fmt: skip
    axes = len(filters) - 2 - (kind != "Convolution")
    words = {
        name: ",".join([str(n)] * axes)
        for name, n in (
            ("strides", stride), ("dilations", dilation), ("pads_begin", pads), ("pads_end", pads)
        )
    }  # fmt: skip
    return net.add(kind, "opset1", [x, net.constant(numbers(*filters))], **words)


def biased(net: ir.Builder, x: Output, lead: tuple[int, ...], axes: int) -> Output:
    return net.add("Add", "opset1", [x, net.constant(numbers(lead[1], *[1] * axes))])


def halved(net: ir.Builder, x: Output, lead: tuple[int, ...], axes: int) -> Output:
    return net.add("Multiply", "opset1", [net.constant(np.float32(0.5)), x])


def swished(net: ir.Builder, x: Output, lead: tuple[int, ...], axes: int) -> Output:
    return net.add("Swish", "opset4", [x, net.constant(np.float32(1.5))])


def clipped(net: ir.Builder, x: Output, lead: tuple[int, ...], axes: int) -> Output:
    return net.add("ReLU", "opset1", [x])


def sloped(net: ir.Builder, x: Output, lead: tuple[int, ...], axes: int) -> Output:
    return net.add("PReLU", "opset1", [x, net.constant(numbers(lead[1]))])


def added(net: ir.Builder, x: Output, lead: tuple[int, ...], axes: int) -> Output:
    other = net.parameter("y", "f32", (*lead, *[1] * axes))
    return net.add("Add", "opset1", [x, net.add("Sigmoid", "opset1", [other])])


Follower = Callable[[ir.Builder, Output, tuple[int, ...], int], Output]


@settings(max_examples=80)
@given(
    images=st.integers(2, 40),
    channels=st.integers(1, 5),
    made=st.integers(1, 70),
    window=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    stride=st.integers(1, 3),
    followers=st.lists(
        st.sampled_from([biased, halved, swished, clipped, sloped, added]), max_size=3, unique=True
    ),
)
def test_images_are_rows(
    images: int, channels: int, made: int, window: tuple[int, ...], stride: int,
    followers: list[Follower],
) -> None:  # fmt: skip
    net, lead, axes = ir.Builder(), (images, made), len(window)
    shape = images, channels, *window
    found = covered(
        net, net.parameter("x", "f32", shape), (made, channels, *window), stride=stride
    )
    for follow in followers:
        found = follow(net, found, lead, axes)
    net.result(found)
    arrays = [numbers(*shape)]
    if added in followers:
        arrays.append(numbers(*lead, *[1] * axes))
    kinds = compared(net, *arrays)
    assert "MatMul" in kinds or {sloped, swished} & {*followers}


def test_between_layers_whose_channels_are_last() -> None:
    """What is found of whole images scales their channels."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (3, 8, 8, 8))
    before = covered(net, x, (16, 8, 3, 3))
    few = clipped(net, covered(net, before, (4, 16, 6, 6)), (3, 4), 2)
    factors = net.add("Sigmoid", "opset1", [covered(net, few, (16, 4, 1, 1))])
    scaled = net.add("Multiply", "opset1", [before, factors])
    net.result(covered(net, scaled, (5, 16, 1, 1)))
    assert compared(net, numbers(3, 8, 8, 8)).count("MatMul") == 2


@pytest.mark.parametrize(
    ("shape", "filters", "words"),
    [
        ((1, 3, 4, 4), (8, 3, 4, 4), {}),
        ((4, 3, 4, 5), (8, 3, 4, 4), {"stride": 1}),
        ((4, 3, 4, 5), (8, 3, 4, 4), {"stride": 2}),
        ((4, 3, 4, 4), (8, 3, 4, 4), {"pads": 1}),
        ((4, 3, 2, 2), (8, 3, 4, 4), {"pads": 1}),
        ((4, 3, 7, 7), (8, 3, 4, 4), {"dilation": 2}),
        ((4, 6, 4, 4), (2, 8, 3, 4, 4), {"kind": "GroupConvolution"}),
    ],
)
def test_other_convolutions_stay(
    shape: tuple[int, ...], filters: tuple[int, ...], words: dict[str, object]
) -> None:
    net = ir.Builder()
    net.result(covered(net, net.parameter("x", "f32", shape), filters, **words))  # type: ignore[arg-type]
    compared(net, numbers(*shape))


@pytest.mark.parametrize("window", [(1, 1), (3, 2)])
@pytest.mark.parametrize("followers", [[], [clipped], [biased, clipped]])
def test_channels_of_single_pixels_are_dealt_out(
    window: tuple[int, int], followers: list[Follower]
) -> None:
    """A product is finished where it lies, where nothing can be shuffled."""
    net = ir.Builder()
    found = covered(net, net.parameter("x", "f32", (3, 8, *window)), (8, 8, *window))
    for follow in followers:
        found = follow(net, found, (3, 8), 2)
    net.result(net.add("ShuffleChannels", "opset1", [found], axis=1, group=2))
    compared(net, numbers(3, 8, *window))
