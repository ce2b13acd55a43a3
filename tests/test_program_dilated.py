"""Windows with gaps meet every so many rows and columns alone: each of these is an image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_pads import compared
from test_program_patches import Follower, added, biased, clipped, halved, sloped, swished
from vinoir import ir
from vinoir.ir.engine.kernels import convolution
from vinoir.ir.engine.kernels.convolution_work import Work
from vinoir.ir.engine.kernels.winograd import Tiling
from vinoir.ir.engine.workers import Part
from vinoir.schemas import Array

Pair = tuple[int, int]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def gapped(
    net: ir.Builder, x: ir.builder.Output, filters: tuple[int, ...], gaps: Pair, begins: Pair,
    ends: Pair, strides: Pair = (1, 1),
) -> ir.builder.Output:  # fmt: skip
    """A convolution by windows with gaps, in groups where the filters are."""
    words = {
        name: ",".join(map(str, some))
        for name, some in (
            ("strides", strides), ("dilations", gaps), ("pads_begin", begins), ("pads_end", ends)
        )
    }  # fmt: skip
    kind = "Convolution" if len(filters) == 4 else "GroupConvolution"
    # Such that outputs are of about unit size.
    weights = numbers(*filters) / np.float32(np.sqrt(np.prod(filters[-3:])))
    return net.add(kind, "opset1", [x, net.constant(weights)], **words)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Pair]]:
    """Every convolution that goes Winograd's way: how, and the gaps of its windows."""
    gone: list[tuple[str, Pair]] = []
    for name in ("winograd", "deep"):
        way = getattr(convolution, name)

        def noted(
            tiling: Tiling, work: Work, matrices: list[Array], way=way, name=name
        ) -> list[list[Part]]:
            gone.append((name, work.sizes.dilations))
            found: list[list[Part]] = way(tiling, work, matrices)
            return found

        monkeypatch.setattr(convolution, name, noted)
    return gone


@settings(max_examples=100)
@given(
    images=st.integers(1, 3),
    groups=st.sampled_from([0, 0, 0, 2]),
    channels=st.sampled_from([12, 17, 32, 64, 72]),
    made=st.sampled_from([12, 20, 64, 80]),
    size=st.tuples(st.integers(3, 40), st.integers(3, 40)),
    window=st.sampled_from([3, 3, 3, 4, 5]),
    gaps=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    margins=st.tuples(*[st.integers(0, 2)] * 2),
    uneven=st.tuples(*[st.sampled_from([0, 0, 0, 1])] * 2),
    ends=st.tuples(*[st.integers(0, 9)] * 2),
    followers=st.lists(
        st.sampled_from([biased, halved, swished, clipped, sloped, added]), max_size=3, unique=True
    ),
)
def test_windows_with_gaps(
    images: int, groups: int, channels: int, made: int, size: Pair, window: int, gaps: Pair,
    margins: Pair, uneven: Pair, ends: Pair, followers: list[Follower],
) -> None:  # fmt: skip
    """Whatever they are padded with, and whatever follows; one program, one answer."""
    begins = (margins[0] * gaps[0] + uneven[0], margins[1] * gaps[1] + uneven[1])
    out = tuple(
        n + a + b - (window - 1) * d for n, a, b, d in zip(size, begins, ends, gaps, strict=True)
    )
    if min(out) < 1:
        return
    net, lead = ir.Builder(), (images, made * max(groups, 1))
    shape = (images, channels * max(groups, 1), *size)
    x = net.parameter("x", "f32", shape)
    filters = (*([groups] if groups else []), made, channels, window, window)
    found = gapped(net, x, filters, gaps, begins, ends)
    for follow in followers:
        found = follow(net, found, lead, 2)
    net.result(found)
    arrays = [numbers(*shape)] + [numbers(*lead, 1, 1)] * (added in followers)
    compared(net, *arrays)
    model = net.model()
    kept = [ir.compile(model, threads=2, fork=fork)(arrays) for fork in (True, False)]
    one, other = (b"".join(array.tobytes() for array in found.values()) for found in kept)
    assert one == other


@pytest.mark.parametrize(
    ("shape", "filters", "gaps", "begins", "expected"),
    [
        ((1, 64, 64, 60), (64, 64, 3, 3), (2, 2), (2, 2), True),
        ((2, 64, 40, 51), (64, 64, 3, 3), (2, 4), (2, 4), True),
        ((1, 128, 33, 33), (128, 128, 3, 3), (4, 4), (0, 4), True),
        ((1, 640, 20, 20), (96, 640, 3, 3), (2, 2), (2, 2), True),
        ((1, 96, 50, 50), (2, 48, 48, 3, 3), (2, 2), (2, 2), True),
        # What lies between two images of the many has no place there.
        ((1, 64, 64, 60), (64, 64, 3, 3), (2, 2), (1, 2), False),
        # Hardly anything but padding is met: that is left out instead.
        ((1, 128, 33, 33), (128, 128, 3, 3), (24, 24), (24, 24), False),
    ],
)
@pytest.mark.parametrize("followed", [False, True])
def test_known_windows_go_winograds_way(
    shape: tuple[int, ...], filters: tuple[int, ...], gaps: Pair, begins: Pair, expected: bool,
    followed: bool, ways: list[tuple[str, Pair]],
) -> None:  # fmt: skip
    """With bias and activation alike; a tensor that is added is of the whole image."""
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    lead = (shape[0], filters[0] * (filters[1] if len(filters) == 5 else 1))
    y = gapped(net, x, filters, gaps, begins, begins)
    net.result(swished(net, biased(net, y, lead, 2), lead, 2))
    if followed:
        y = gapped(net, x, filters, gaps, begins, begins)
        net.result(added(net, y, lead, 2))
    compared(net, numbers(*shape), *[numbers(*lead, 1, 1)] * followed)
    taken = [pair for _, pair in ways]
    assert set(taken) == ({gaps} if expected else set())


def test_layers_that_share_weights_share_no_way(ways: list[tuple[str, Pair]]) -> None:
    """The one that another tensor is added to is not cut, though its weights are the same."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 64, 48, 48))
    beside = net.parameter("y", "f32", (1, 64, 48, 48))
    weights = net.constant(numbers(64, 64, 3, 3) / np.float32(24))
    words = dict.fromkeys(("dilations", "pads_begin", "pads_end"), "2,2")
    first, second = (
        net.add("Convolution", "opset1", [x, weights], strides="1,1", **words) for _ in range(2)
    )
    net.result(net.add("ReLU", "opset1", [first]))
    net.result(net.add("Add", "opset1", [second, net.add("Sigmoid", "opset1", [beside])]))
    compared(net, *[numbers(1, 64, 48, 48)] * 2)
    assert ways


@pytest.mark.parametrize("channels", [576, 1024, 1536])
def test_long_sums_are_made_of_shorter(channels: int, ways: list[tuple[str, Pair]]) -> None:
    """The most that Winograd's way loses is lost where channels are many."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, channels, 24, 24))
    y = gapped(net, x, (128, channels, 3, 3), (1, 1), (1, 1), (1, 1))
    net.result(net.add("ReLU", "opset1", [y]))
    model, arrays = net.model(), [numbers(1, channels, 24, 24)]
    (wanted,) = ir.run(model, arrays).values()
    (found,) = ir.compile(model, threads=2)(arrays).values()
    assert ("deep", (1, 1)) in ways
    assert np.abs(found - wanted).max() < 8e-6 * np.abs(wanted).max()
