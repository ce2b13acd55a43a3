"""First convolutions: of an image of few planes, by windows that move by several places."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine.kernels import convolution


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(
    ("kernel", "strides", "gaps"),
    [
        ((3, 3), (2, 2), (1, 1)),
        ((7, 7), (2, 2), (1, 1)),
        ((5, 6), (2, 3), (1, 1)),
        ((4, 7), (1, 4), (2, 1)),
        ((3, 3), (1, 2), (1, 1)),
        ((9, 2), (2, 3), (1, 1)),
        ((5, 5), (2, 2), (1, 2)),
        ((4, 4), (4, 4), (1, 1)),
    ],
)
@pytest.mark.parametrize(("size", "around"), [((61, 70), (2, 1)), ((48, 64), (0, 0))])
def test_windows_that_step_over_columns(
    channels: int, kernel: tuple[int, int], strides: tuple[int, int], gaps: tuple[int, int],
    size: tuple[int, int], around: tuple[int, int], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Columns met by the same taps are put side by side: the same numbers are multiplied."""
    rng, net = np.random.default_rng(0), ir.Builder()
    x = net.parameter("x", "f32", (2, channels, *size))
    weights = net.constant(rng.standard_normal((16, channels, *kernel), np.float32))
    y = net.add(
        "Convolution", "opset1", [x, weights], strides=strides, dilations=gaps,
        pads_begin=around, pads_end=around[::-1],
    )  # fmt: skip
    net.result(net.add("ReLU", "opset1", [y]), name="y")
    model, given = net.model(), [rng.standard_normal((2, channels, *size), np.float32)]
    (found,) = ir.compile(model, threads=2)(given).values()
    (wanted,) = ir.run(model, given).values()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-6 * np.abs(wanted).max())
    monkeypatch.setattr(convolution, "OFTEN", np.inf)
    (other,) = ir.compile(model, threads=2)(given).values()
    np.testing.assert_array_equal(found, other)
