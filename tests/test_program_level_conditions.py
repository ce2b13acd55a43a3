"""Programs of levels where what kernels suppose of them does not hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir

from .test_program_conditions import Net, real, same

pytestmark = pytest.mark.usefixtures("integers_are_quick")
RNG = np.random.default_rng(3)
RANGE = tuple(np.array(end, "f4") for end in (-1.28, 1.27) * 2)


def weights(
    net: Net, shape: tuple[int, ...], scale: Any, zero: float | None = None, kind: str = "i8"
) -> Any:
    """Levels that are made numbers."""
    low, high = {"i8": (-128, 128), "u6": (0, 64)}[kind]
    levels = net.net.constant(RNG.integers(low, high, shape), kind)
    made = net("Convert", levels, destination_type="f32")
    made = made if zero is None else net("Subtract", made, np.array(zero, "f4"))
    return net("Multiply", made, np.asarray(scale, "f4"))


def small(*shape: int) -> np.ndarray:
    return (RNG.random(shape) / 50 + 0.001).astype("f4")


def rounded(net: Net, x: Any, ends: tuple[np.ndarray, ...] = RANGE) -> Any:
    return net("FakeQuantize", x, *ends, levels=256)


@pytest.mark.parametrize("shape", [(1, 8, 12), (1, 16, 16), (2, 16)])
def test_rows_of_a_table_are_images(shape: tuple[int, ...]) -> None:
    net = Net(shape, "i64")
    table = weights(net, (50, 16), small(50, 1), 3.0)
    x = net("Gather", table, net.x, np.array(0), opset="opset8")
    channels = shape[1]
    kernel = real(24, channels, *[3] * (len(shape) - 1))
    model = net.model(net.convolved(x, kernel, 1))
    same(model, RNG.integers(0, 50, shape))


@pytest.mark.parametrize("zero", [None, 3.0])
@pytest.mark.parametrize("places", [(), (1,), (2, 3)])
@pytest.mark.parametrize("table", [(50,), (50, 6)])
def test_single_places_of_a_table(zero: float | None, places: Any, table: Any) -> None:
    net = Net(places, "i64")
    made = weights(net, table, small(50, *[1] * (len(table) - 1)), zero)
    model = net.model(net("Gather", made, net.x, np.array(0), opset="opset8"))
    same(model, np.full(places, 3))


@pytest.mark.parametrize(
    ("shape", "scale"),
    [
        ((64, 64, 3, 3), (64, 1, 1)),
        ((64, 64, 3, 3), (1, 64, 1, 1)),
        ((64, 64, 3, 3), (3, 3)),
        ((64, 64, 3, 3), (64, 1, 1, 1)),
        ((64, 16, 64), (64,)),
    ],
)
def test_scales_that_are_not_those_of_channels(shape: Any, scale: Any) -> None:
    sizes = (1, shape[1], *([20, 20] if len(shape) == 4 else [200]))
    net = Net(sizes)
    made = weights(net, shape, small(*scale))
    model = net.model(net.convolved(rounded(net, net.x), made, 1, len(shape) - 2))
    same(model, real(*sizes))


@pytest.mark.parametrize("zero", [None, 31.0])
@pytest.mark.parametrize("memory", ["small", "fast"])
@pytest.mark.parametrize("is_rounded", [False, True])
def test_weights_of_six_bits(zero: float | None, memory: Any, is_rounded: bool) -> None:
    net = Net((2, 512))
    x = rounded(net, net.x) if is_rounded else net.x
    made = weights(net, (1024, 512), small(1024, 1), zero, "u6")
    model, x = net.model(net("MatMul", x, made, transpose_b=True)), real(2, 512)
    wanted = ir.run(model, [x])["y"]
    found = ir.compile(model, memory=memory)([x])["y"]
    np.testing.assert_allclose(found, wanted, atol=1e-5 * float(np.abs(wanted).max()))


def test_groups_that_share_weights_with_other_gaps() -> None:
    net = Net((1, 128, 24, 24))
    x, made = rounded(net, net.x), weights(net, (4, 32, 32, 3, 3), small(4, 32, 1, 1, 1))
    parts = [
        net(
            "GroupConvolution", x, made, strides=(1, 1), dilations=(gap, gap),
            pads_begin=(gap, gap), pads_end=(gap, gap),
        )
        for gap in (1, 2)
    ]  # fmt: skip
    same(net.model(net("Add", *parts)), real(1, 128, 24, 24))


def test_the_largest_of_nothing_is_no_level() -> None:
    net = Net((1, 8, 12, 12))
    words = {"strides": (3, 3), "kernel": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0)}
    x = net("MaxPool", rounded(net, net("Sigmoid", net.x)), rounding_type="ceil", **words)
    same(net.model(net("Negative", rounded(net, x))), real(1, 8, 12, 12))


@pytest.mark.parametrize("value", [0.0, 2.55])
def test_sums_that_32_bits_do_not_hold(value: float) -> None:
    taken = 140_000
    net = Net((16, taken))
    x = rounded(net, net.x, tuple(np.array(end, "f4") for end in (0, 2.55) * 2))
    levels = net("Convert", np.full((8, taken), 127, "i1"), destination_type="f32")
    made = net("Multiply", levels, np.full((8, 1), 0.01, "f4"))
    model = net.model(net("MatMul", x, made, transpose_b=True))
    given = np.full((16, taken), value, "f4")
    wanted = ir.run(model, [given])["y"]
    np.testing.assert_allclose(ir.compile(model)([given])["y"], wanted, rtol=1e-4)


def test_endless_scales_make_no_numbers_of_zeros() -> None:
    net = Net((3, 256))
    scale = small(256, 1)
    scale[::7] = np.inf
    model = net.model(net("MatMul", net.x, weights(net, (256, 256), scale), transpose_b=True))
    x = real(3, 256)
    wanted = ir.run(model, [x])["y"]
    found = ir.compile(model, memory="small")([x])["y"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
