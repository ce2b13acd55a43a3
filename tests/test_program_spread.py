"""Convolutions to few channels: pixels give their shares to the windows that meet them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_patches import Follower, added, biased, clipped, halved, sloped, swished
from vinoir import ir
from vinoir.ir.engine.kernels import convolution
from vinoir.ir.engine.kernels.convolution_work import Work
from vinoir.ir.engine.kernels.spread import spread
from vinoir.ir.engine.workers import Part
from vinoir.schemas import Array


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def few(
    net: ir.Builder, x: ir.builder.Output, filters: tuple[int, ...], dilations: tuple[int, ...],
    begins: tuple[int, ...], ends: tuple[int, ...],
) -> ir.builder.Output:  # fmt: skip
    """A convolution by drawn filters."""
    words = {
        name: ",".join(map(str, some))
        for name, some in (
            ("strides", (1,) * len(dilations)), ("dilations", dilations),
            ("pads_begin", begins), ("pads_end", ends),
        )
    }  # fmt: skip
    return net.add("Convolution", "opset1", [x, net.constant(numbers(*filters))], **words)


@settings(max_examples=80)
@given(
    axes=st.sampled_from([1, 2, 2, 2]),
    images=st.integers(1, 3),
    channels=st.integers(32, 70),
    made=st.integers(1, 8),
    size=st.tuples(st.integers(1, 30), st.integers(30, 70)),
    window=st.tuples(st.integers(1, 7), st.integers(2, 7)),
    dilations=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    margins=st.tuples(*[st.integers(0, 9)] * 4),
    followers=st.lists(
        st.sampled_from([biased, halved, swished, clipped, sloped, added]), max_size=3, unique=True
    ),
    leads=st.booleans(),
)
def test_pixels_give_their_shares(
    axes: int, images: int, channels: int, made: int, size: tuple[int, ...],
    window: tuple[int, ...], dilations: tuple[int, ...], margins: tuple[int, ...],
    followers: list[Follower], leads: bool,
) -> None:  # fmt: skip
    size, window, dilations = size[-axes:], window[-axes:], dilations[-axes:]
    begins, ends = margins[:axes], margins[2 : 2 + axes]
    out = tuple(
        n + a + b - (k - 1) * d
        for n, a, b, k, d in zip(size, begins, ends, window, dilations, strict=True)
    )
    if min(out) < 1:
        return
    net, shape = ir.Builder(), (images, channels, *size)
    x = net.parameter("x", "f32", shape)
    arrays = [numbers(*shape)]
    if leads:
        by = net.parameter("by", "f32", (images, channels, *[1] * axes))
        arrays.append(numbers(images, channels, *[1] * axes))
        x = net.add("Multiply", "opset1", [x, by])
    found = few(net, x, (made, channels, *window), dilations, begins, ends)
    for follow in followers:
        found = follow(net, found, (images, made), axes)
    net.result(found)
    if added in followers:
        arrays.append(numbers(images, made, *[1] * axes))
    model = net.model()
    (wanted,) = ir.run(model, arrays).values()
    kept = None
    for options in ({"fork": False}, {}, {"threads": 1}):
        program = ir.compile(model, **{"threads": 2, **options})
        (made_here,) = program(arrays).values()
        np.testing.assert_allclose(made_here, wanted, atol=1e-5 * np.abs(wanted).max(initial=1))
        if kept is not None and options != {"threads": 1}:
            assert made_here.tobytes() == kept
        kept = made_here.tobytes()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Work]:
    """What is done by sums of shifted planes from now on."""
    found: list[Work] = []

    def noted(work: Work, matrix: Array) -> list[list[Part]]:
        found.append(work)
        return spread(work, matrix)

    monkeypatch.setattr(convolution, "spread", noted)
    return found


@pytest.mark.parametrize(
    ("shape", "filters"),
    [
        ((1, 64, 120, 130), (3, 64, 7, 7)),
        ((2, 32, 40, 50), (2, 32, 5, 5)),
        ((1, 32, 9000), (1, 32, 7)),
    ],
)
def test_what_generators_end_in(
    shape: tuple[int, ...], filters: tuple[int, ...], asked: list[Work]
) -> None:
    """Images in several blocks, with what is before and behind it."""
    axes = len(shape) - 2
    half = (filters[-1] // 2,) * axes
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    x = few(net, x, (shape[1], shape[1], *[1] * axes), (1,) * axes, (0,) * axes, (0,) * axes)
    x = net.add("ReLU", "opset1", [x])
    x = few(net, x, filters, (1,) * axes, half, half)
    # Of about unit size: what is larger is less certain.
    x = net.add("Multiply", "opset1", [x, net.constant(np.float32(1e-3))])
    net.result(net.add("Tanh", "opset1", [x]))
    model, arrays = net.model(), [numbers(*shape)]
    (wanted,) = ir.run(model, arrays).values()
    program = ir.compile(model, threads=2)
    (found,) = program(arrays).values()
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert len(asked) == 1


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_weights_that_make_something_of_zeros(bad: float) -> None:
    """Padding times infinity is no number, so it has to be multiplied."""
    weights = numbers(2, 40, 5, 5)
    weights[1, 3, 0, 0] = bad
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 40, 30, 30))
    around = {"pads_begin": "2,2", "pads_end": "2,2"}
    filters = net.constant(weights)
    found = net.add(
        "Convolution", "opset1", [x, filters], strides="1,1", dilations="1,1", **around
    )
    net.result(found)
    model, arrays = net.model(), [numbers(1, 40, 30, 30)]
    with np.errstate(invalid="ignore"):
        (wanted,) = ir.run(model, arrays).values()
        (found,) = ir.compile(model, threads=2)(arrays).values()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isnan(found[0, 1]).any()


@pytest.mark.parametrize(("made", "chosen"), [(1, True), (8, True), (16, False), (32, False)])
def test_more_channels_are_made_otherwise(made: int, chosen: bool, asked: list[Work]) -> None:
    """As in dense blocks, where Winograd's way takes a third of the time."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 128, 28, 28))
    net.result(few(net, x, (made, 128, 3, 3), (1, 1), (1, 1), (1, 1)))
    model, arrays = net.model(), [numbers(1, 128, 28, 28)]
    (wanted,) = ir.run(model, arrays).values()
    (found,) = ir.compile(model)(arrays).values()
    np.testing.assert_allclose(found, wanted, atol=1e-5 * float(np.abs(wanted).max()))
    assert bool(asked) is chosen
