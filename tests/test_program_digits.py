"""How many digits programs keep of long sums, and what they make of slopes of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir


def compiled(model: ir.Model, *inputs: np.ndarray) -> np.ndarray:
    """The one output, the same by threads and by helpers."""
    (found,) = ir.compile(model, threads=2)(list(inputs)).values()
    (other,) = ir.compile(model, threads=2, fork=False)(list(inputs)).values()
    np.testing.assert_array_equal(found, other)
    return found


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean", "ReduceL2"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1, 512, 256), 1),
        ((3, 1000, 40), 1),
        ((1, 20000, 16), 1),
        ((2, 300, 9), 1),
        ((7, 5000), 1),
    ],
)
def test_sums_of_many_rows_lose_few_digits(kind: str, shape: tuple[int, ...], axis: int) -> None:
    """One row added to all before it would lose up to 2e-6 of 20,000."""
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    version = "opset4" if kind == "ReduceL2" else "opset1"
    made = net.add(kind, version, [x, net.constant(np.array([axis]))], keep_dims=True)
    net.result(made, name="y")
    given = np.random.default_rng(0).random(shape, np.float32)
    numbers = given.astype(np.float64) ** (2 if kind == "ReduceL2" else 1)
    wanted = numbers.sum(axis, keepdims=True)
    if kind != "ReduceSum":
        wanted = wanted / shape[axis] if kind == "ReduceMean" else np.sqrt(wanted)
    np.testing.assert_allclose(compiled(net.model(), given), wanted, rtol=4e-7)


def test_means_of_whole_images_lose_few_digits() -> None:
    net = ir.Builder()
    x: Any = net.parameter("x", "f32", (2, 16, 120, 110))
    words = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    weights = np.eye(16, dtype=np.float32).reshape(16, 16, 1, 1)
    y = net.add("Convolution", "opset1", [x, net.constant(weights)], **words)
    del words["dilations"]
    y = net.add("AvgPool", "opset1", [y], kernel=[120, 110], exclude_pad=True, **words)
    net.result(y, name="y")
    given = np.random.default_rng(0).random((2, 16, 120, 110), np.float32)
    wanted = given.astype(np.float64).mean((2, 3), keepdims=True)
    np.testing.assert_allclose(compiled(net.model(), given), wanted, rtol=4e-7)


@pytest.mark.parametrize(("channels", "size"), [(512, 28), (384, 40), (512, 14)])
def test_sums_over_many_channels_are_cut(channels: int, size: int) -> None:
    """Tiles of 4x4 alone, summed over 512 channels at once, would lose 2.7e-6."""
    rng, net = np.random.default_rng(0), ir.Builder()
    x = net.parameter("x", "f32", (1, channels, size, size))
    weights = rng.standard_normal((32, channels, 3, 3), np.float32)
    weights = np.concatenate([weights] * (channels // 32))
    y = net.add(
        "Convolution", "opset1", [x, net.constant(weights)], strides=[1, 1], dilations=[1, 1],
        pads_begin=[0, 0], pads_end=[0, 0],
    )  # fmt: skip
    net.result(y, name="y")
    given = rng.standard_normal((1, channels, size, size), np.float32)
    seen = np.lib.stride_tricks.sliding_window_view(given[0].astype(np.float64), (3, 3), (1, 2))
    wanted = np.einsum("chwij,ocij->ohw", seen, weights[:32].astype(np.float64), optimize=True)
    found = compiled(net.model(), given)[0, :32]
    lost = np.sqrt(((found - wanted) ** 2).mean() / (wanted**2).mean())
    assert lost < 1.7e-6


SLOPES: dict[str, Any] = {
    "small": [0.1, 0.25, -0.5, 0.9],
    "none": [0.0, 0.1, 0.2, 0.3],
    "large": [0.1, 1.5, 3.0, 0.7],
    "one": 1.75,
}


@pytest.mark.parametrize("slopes", SLOPES)
@pytest.mark.parametrize("after", ["convolution", "nothing"])
def test_slopes_of_any_size(slopes: str, after: str) -> None:
    """With what is endless, where nothing but the slope meets it."""
    rng, net = np.random.default_rng(3), ir.Builder()
    x: Any = net.parameter("x", "f32", (1, 4, 150, 130))
    y = x
    if after == "convolution":
        weights = rng.standard_normal((4, 4, 1, 1), np.float32)
        y = net.add(
            "Convolution", "opset1", [x, net.constant(weights)], strides=[1, 1],
            dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
        )  # fmt: skip
    slope = np.atleast_1d(np.float32(SLOPES[slopes]))
    net.result(net.add("PReLU", "opset1", [y, net.constant(slope)]), name="y")
    model = net.model()
    given = rng.standard_normal((1, 4, 150, 130), np.float32)
    if after == "nothing":
        given[0, :, 3, 5:8] = np.inf, -np.inf, np.nan
    (wanted,) = ir.run(model, [given]).values()
    tolerance = 0 if after == "nothing" else 1e-6
    np.testing.assert_allclose(compiled(model, given), wanted, rtol=tolerance, atol=8 * tolerance)
