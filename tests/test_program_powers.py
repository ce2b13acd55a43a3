"""Powers of two of exponents however far out: quick, and the same whatever came before."""

from __future__ import annotations

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine.kernels import activations
from vinoir.schemas import Array

#: What most numbers are within, and what NumPy takes long for.
NEAR, FAR = 3.0, 300.0
ODD = (np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-45, 128.0, 126.0, -126.0, -150.0, np.nan)


def between(low: float, high: float) -> Array:
    """Every number there is from one to another."""
    first, last = (int(np.float32(end).view("i4")) for end in (low, high))
    return np.arange(first, last, dtype="i4").view("f4")


def test_powers_to_which_one_is_added_have_the_bits_of_numpy() -> None:
    ends = between(125.9, 128.1)
    exponents = np.concatenate([np.linspace(-FAR, FAR, 50021), ends, -ends, ODD]).astype("f4")
    with np.errstate(all="ignore"):
        expected = np.exp2(exponents) + np.float32(1)
        for odd in (len(exponents), -1):  # with what is no number, and without
            given = exponents[:odd].copy()
            activations.power_of_two(given, given)()
            np.testing.assert_array_equal(given + np.float32(1), expected[:odd])


@pytest.mark.parametrize("way", ["Swish", "Swish of a convolution", "Sigmoid", "Swish by beta"])
def test_answers_do_not_depend_on_what_came_before(way: str) -> None:
    rng = np.random.default_rng(3)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 20, 24))
    y = x
    if way == "Swish of a convolution":
        weights = net.constant(rng.standard_normal((8, 8, 1, 1)).astype("f4"))
        ones, zeros = (1, 1), (0, 0)
        y = net.add(
            "Convolution", "opset1", [y, weights], strides=ones, dilations=ones,
            pads_begin=zeros, pads_end=zeros,
        )  # fmt: skip
    beta = [net.constant(np.float32(1.5))] if way == "Swish by beta" else []
    kind, *_ = way.split()
    y = net.add(kind, "opset4" if kind == "Swish" else "opset1", [y, *beta])
    net.result(y, name="y")
    model = net.model()
    images = [
        (rng.standard_normal((1, 8, 20, 24)) * scale + shift).astype("f4")
        for scale, shift in [(NEAR, 0), (FAR, 0), (NEAR, FAR), (NEAR, -FAR), (1e13, 0), (NEAR, 1)]
    ]
    program = ir.compile(model, threads=1)
    found: dict[int, Array] = {}
    for turn in [*range(len(images)), *rng.integers(0, len(images), 60).tolist()]:
        result = program([images[turn]])["y"]
        first = found.setdefault(turn, result.copy())
        np.testing.assert_array_equal(result, first, err_msg=f"{turn}")
    for image, result in zip(images, found.values(), strict=True):
        expected = ir.run(model, [image])["y"]
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-6 * np.abs(expected).max())
