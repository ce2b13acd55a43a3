"""Programs that normalise the pixels of each channel, or groups of channels."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import group_normalization, rows

SIZES = [(9,), (7, 5), (40, 33), (3, 4, 5)]


def convolved(net: ir.Builder, x: Any, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Next to a convolution channels are kept last."""
    channels, axes = shape[1], len(shape) - 2
    weights = rng.standard_normal((channels, channels, *[1] * axes)).astype("f4")
    words = {name: [0] * axes for name in ("pads_begin", "pads_end")}
    steps = {name: [1] * axes for name in ("strides", "dilations")}
    return net.add("Convolution", "opset1", [x, net.constant(weights)], **words, **steps)


def normalized(
    shape: tuple[int, ...], rng: np.random.Generator, *, mean: float = 0.0, **words: Any
) -> ir.Model:
    """A convolution, an MVN over pixels, a scale and a shift of each channel, an activation."""
    net = ir.Builder()
    x = convolved(net, net.parameter("x", "f32", shape), rng, shape)
    x = net.add("Add", "opset1", [x, net.constant(np.float32(mean))])
    axes = net.constant(np.arange(2, len(shape)))
    words = {"normalize_variance": True, "eps": 1e-3, "eps_mode": "inside_sqrt"} | words
    x = net.add("MVN", "opset6", [x, axes], **words)
    each = (1, shape[1], *[1] * (len(shape) - 2))
    for kind in ("Multiply", "Add"):
        numbers = net.constant(rng.uniform(-2, 2, each).astype("f4"))
        x = net.add(kind, "opset1", [x, numbers])
    net.result(net.add("PReLU", "opset1", [x, net.constant(np.float32([0.2]))]), name="y")
    return net.model()


def same(model: ir.Model, x: np.ndarray, tolerance: float = 1e-5) -> None:
    (wanted,) = ir.run(model, [x]).values()
    for words in ({"threads": 1}, {"threads": 2}, {"threads": 2, "fork": False}):
        (found,) = ir.compile(model, **words)([x]).values()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("eps_mode", ["inside_sqrt", "outside_sqrt"])
def test_pixels_of_each_channel(
    size: tuple[int, ...], images: int, eps_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def watched(*given: Any) -> Any:
        asked.append(found := group_normalization.channels(*given))
        return found

    monkeypatch.setattr(rows, "channels", watched)
    rng = np.random.default_rng(images)
    shape = (images, 12, *size)
    model = normalized(shape, rng, eps_mode=eps_mode)
    same(model, rng.standard_normal(shape).astype("f4"))
    assert len(size) == 1 or (asked and None not in asked)


@pytest.mark.parametrize("mean", [30.0, -3000.0])
def test_means_far_from_zero_cost_no_digits(mean: float) -> None:
    rng = np.random.default_rng(0)
    model = normalized((2, 8, 30, 30), rng, mean=mean)
    x = rng.standard_normal((2, 8, 30, 30)).astype("f4")
    # What is added is rounded by itself, in the definition as in the program.
    same(model, x, 1e-5 if abs(mean) < 100 else 1e-3)


def test_means_alone_are_taken_away() -> None:
    rng = np.random.default_rng(0)
    model = normalized((2, 8, 9, 9), rng, normalize_variance=False)
    same(model, rng.standard_normal((2, 8, 9, 9)).astype("f4"))


def test_equal_pixels_become_the_shift() -> None:
    model = normalized((1, 8, 9, 9), np.random.default_rng(0))
    same(model, np.ones((1, 8, 9, 9), "f4"), 1e-4)


@pytest.mark.parametrize("groups", [1, 4, 12])
@pytest.mark.parametrize("mean", [0.0, 500.0])
def test_groups_of_channels_far_from_zero(groups: int, mean: float) -> None:
    rng = np.random.default_rng(groups)
    shape = (2, 12, 17, 9)
    net = ir.Builder()
    x = convolved(net, net.parameter("x", "f32", shape), rng, shape)
    x = net.add("Add", "opset1", [x, net.constant(np.float32(mean))])
    lists = [net.constant(rng.uniform(0.5, 2, 12).astype("f4")) for _ in range(2)]
    words = {"num_groups": groups, "epsilon": 1e-5}
    net.result(net.add("GroupNormalization", "opset12", [x, *lists], **words), name="y")
    same(net.model(), rng.standard_normal(shape).astype("f4"), 1e-5 if not mean else 2e-4)


@pytest.mark.parametrize(
    ("shape", "steps"),
    [((1, 16, 150, 130), 3), ((3, 16, 40, 33), 1), ((1, 8, 9), 1), ((2, 8, 70, 40, 60), 3)],
)
@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("mean", [0.0, -400.0])
def test_groups_that_workers_share_before_swish(
    shape: tuple[int, ...], steps: int, beside: bool, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def watched(*given: Any) -> Any:
        asked.append(found := normalized_by_kernel(*given))
        return found

    normalized_by_kernel = group_normalization._normalized
    monkeypatch.setattr(group_normalization, "_normalized", watched)
    rng = np.random.default_rng(len(shape))
    net, channels = ir.Builder(), shape[1]
    x = net.parameter("x", "f32", shape)
    x = convolved(net, x, rng, shape) if beside else net.add("Abs", "opset1", [x])
    x = net.add("Add", "opset1", [x, net.constant(np.float32(mean))])
    lists = [net.constant(rng.uniform(0.5, 2, channels).astype("f4")) for _ in range(2)]
    words = {"num_groups": 4, "epsilon": 1e-3}
    y = net.add("GroupNormalization", "opset12", [x, *lists], **words)
    net.result(net.add("Swish", "opset4", [y]), name="y")
    given = rng.standard_normal(shape).astype("f4")
    given[0, 0] *= 100  # one channel outweighs the others of its group
    same(net.model(), given, 1e-5 if not mean else 2e-4)
    assert {len(found) for found in asked} == {steps}


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 20), st.integers(1, 30))
def test_any_sizes(seed: int, images: int, channels: int, wide: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (images, channels, int(rng.integers(1, 30)), wide)
    model = normalized(shape, rng, eps=1e-1)
    same(model, rng.standard_normal(shape).astype("f4"), 3e-5)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "gates", "names"),
    [("LSTMSequence", 4, ["sigmoid", "tanh", "tanh"]), ("GRUSequence", 3, ["sigmoid", "tanh"]),
     ("RNNSequence", 1, ["tanh"])],
)  # fmt: skip
def test_functions_named_for_each_direction(
    kind: str, gates: int, names: list[str], direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    net, ways = ir.Builder(), 2 if direction == "bidirectional" else 1
    x = net.parameter("x", "f32", (2, 7, 5))
    states = [
        net.constant(rng.standard_normal((2, ways, 6)).astype("f4"))
        for _ in range(2 if gates == 4 else 1)
    ]
    shapes = [(ways, gates * 6, 5), (ways, gates * 6, 6), (ways, gates * 6)]
    weights = [net.constant(rng.standard_normal(shape).astype("f4")) for shape in shapes]
    words = {"hidden_size": 6, "direction": direction, "activations": names * ways}
    made = net.add(kind, "opset5", [x, *states, net.constant(np.full(2, 7)), *weights], **words)
    net.result(made[0], name="y")
    model, given = net.model(), rng.standard_normal((2, 7, 5)).astype("f4")
    (wanted,) = ir.run(model, [given]).values()
    operation = type(next(layer.op for layer in model.layers if layer.type == kind))

    def refused(*_: Any) -> Any:
        raise AssertionError("by its definition")

    monkeypatch.setattr(operation, "run", refused)
    (found,) = ir.compile(model)([given]).values()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_means_far_away_leave_the_digits() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 16, 8, 8))
    axes = net.constant(np.array([2, 3]))
    words = {"normalize_variance": True, "eps": 0.01, "eps_mode": "inside_sqrt"}
    y = net.add("MVN", "opset6", [x, axes], **words)
    weights = net.constant(np.eye(16, dtype="f4").reshape(16, 16, 1, 1))
    words = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    net.result(net.add("Convolution", "opset1", [y, weights], **words), name="y")
    model = net.model()
    # Whole numbers, whose sums are exact: what is wrong then was lost by scaling.
    given = np.random.default_rng(4).integers(-9, 10, (1, 16, 8, 8)).astype("f4") + 200_000
    wanted = (given - given.mean((2, 3), keepdims=True)) / np.sqrt(
        given.astype("f8").var((2, 3), keepdims=True) + 0.01
    )
    found = ir.compile(model)([given])["y"]
    np.testing.assert_allclose(found, wanted, atol=2e-4)


@pytest.mark.parametrize("kind", ["SoftMax", "MVN"])
@pytest.mark.parametrize(
    ("order", "shape"),
    [
        *product(
            [(0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1)],
            [(2, 16, 4, 210), (2, 40, 3, 5), (2, 5, 130, 2)],
        ),
        # Turned in a ring, where there and back are not the same.
        ((0, 3, 1, 2, 4), (2, 5, 3, 4, 20)),
        ((0, 2, 3, 1, 4), (2, 5, 3, 4, 20)),
    ],
)
def test_channels_that_lie_otherwise_than_a_convolution_wants_them(
    kind: str, order: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    """What a detector's distances are made of: parts of a row, turned, then weighed by powers."""
    rng = np.random.default_rng(shape[1])
    net = ir.Builder()
    lies = tuple(shape[order.index(axis)] for axis in range(len(shape)))
    x = net.parameter("x", "f32", lies)
    x = net.add("Transpose", "opset1", [x, net.constant(np.array(order))])
    if kind == "SoftMax":
        x = net.add("SoftMax", "opset8", [x], axis=1)
    else:
        words = {"normalize_variance": True, "eps": 1e-3, "eps_mode": "inside_sqrt"}
        x = net.add("MVN", "opset6", [x, net.constant(np.array([1]))], **words)
    net.result(convolved(net, x, rng, shape), name="y")
    same(net.model(), rng.standard_normal(lies).astype("f4"))


@pytest.mark.parametrize("shape", [(1, 1, 300), (300,), (2, 7, 33), (3, 20, 5, 4), (1, 6, 40, 50)])
@pytest.mark.parametrize("mode", ["add", "max"])
@pytest.mark.parametrize("eps", [1e-6, 0.5, 1e-40])
def test_rows_over_the_root_of_their_squares(
    shape: tuple[int, ...], mode: str, eps: float
) -> None:
    rng = np.random.default_rng(len(shape))
    for axes in ([-1], [0], [], list(range(1, len(shape))) or [0]):
        net = ir.Builder()
        x = net.parameter("x", "f32", shape)
        named = net.constant(np.array(axes, np.int64))
        y = net.add("NormalizeL2", "opset1", [x, named], eps=eps, eps_mode=mode)
        y = net.add("Multiply", "opset1", [y, net.constant(rng.random(shape[-1:]).astype("f4"))])
        net.result(net.add("Tanh", "opset1", [y]))
        array = rng.standard_normal(shape).astype("f4")
        same(net.model(), array)
        array.reshape(-1)[::3] *= 1e-12
        array[..., : shape[-1] // 2] = 0
        same(net.model(), array)
