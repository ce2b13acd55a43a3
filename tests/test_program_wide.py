"""Convolutions of as many channels, and batches of as many images, as networks have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_program_kernels import DRAWS
from vinoir import ir

CHANNELS = (3, 8, 17, 24, 32, 64, 66, 97, 128, 144, 192, 256, 320, 480, 672)
FOLLOWERS = {"": "", "ReLU": "opset1", "Swish": "opset4", "Gelu": "opset7", "HSwish": "opset4"}


class Wide:
    """A convolution that is drawn from a seed."""

    def __init__(self, seed: int, most: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.axes = int(self.pick(1, 2, 2, 2, 3, 3))
        self.channels = int(self.pick(*CHANNELS))
        self.images = int(self.pick(1, 1, 2, 3, 5))
        limit = {1: 300, 2: 40, 3: 14}[self.axes]
        size = [int(self.rng.integers(1, limit)) for _ in range(self.axes)]
        while self.images * self.channels * np.prod(size) > most and max(size) > 1:
            size = [max(1, 4 * length // 5) for length in size]
        few = self.channels > 200 and most < 1e6
        self.kernel = [
            int(self.pick(*((1, 2, 3) if few else (1, 2, 3, 3, 3, 5, 7, 9)))) for _ in size
        ]
        strides = [int(self.pick(1, 1, 1, 1, 2, 3)) for _ in size]
        gaps = (
            [1] * self.axes if self.rng.random() < 0.7 else [int(self.pick(1, 2, 3)) for _ in size]
        )
        reach = [(taps - 1) * gap + 1 for taps, gap in zip(self.kernel, gaps, strict=True)]
        pads = [
            [int(self.rng.integers(0, (long + 1) // 2 + 1)) for long in reach] for _ in range(2)
        ]
        self.size = [
            max(length, long - sum(both))
            for length, long, *both in zip(size, reach, *pads, strict=True)
        ]
        self.ways = {
            "strides": strides, "dilations": gaps, "pads_begin": pads[0], "pads_end": pads[1]
        }  # fmt: skip

    def pick(self, *choices: Any) -> Any:
        """One of some."""
        return choices[self.rng.integers(len(choices))]

    def numbers(self, *shape: int) -> np.ndarray:
        """Numbers such that sums of them are about as large."""
        taken = max(1, int(np.prod(shape[-self.axes - 1 :])))
        return self.rng.standard_normal(shape).astype("f4") / np.float32(taken**0.5)

    def check(self, kind: str, weights: np.ndarray, made: int) -> None:
        """Hold a program against the definition, and what any number of workers gives."""
        net = ir.Builder()
        shape = (self.images, self.channels, *self.size)
        x = net.parameter("x", "f32", shape)
        y = net.add("ReLU", "opset1", [x]) if self.rng.random() < 0.5 else x
        y = net.add(kind, "opset1", [y, net.constant(weights)], **self.ways)
        if self.rng.random() < 0.6:
            bias = self.rng.standard_normal((1, made, *[1] * self.axes)).astype("f4")
            y = net.add("Add", "opset1", [y, net.constant(bias)])
        follower = self.pick(*FOLLOWERS)
        y = net.add(follower, FOLLOWERS[follower], [y]) if follower else y
        net.result(y, name="y")
        model, given = net.model(), self.rng.standard_normal(shape).astype("f4")
        wanted = ir.run(model, [given])["y"]
        found = [
            ir.compile(model, threads=threads, fork=fork)([given])["y"]
            for threads, fork in ((1, False), (2, True), (2, False), (3, True))
        ]
        within = 2e-5 * max(1, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(found[0], wanted, rtol=0, atol=within, strict=True)
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("seed", range(25 * DRAWS))
def test_each_channel_by_itself(seed: int) -> None:
    drawn = Wide(seed, 2e6)
    made = int(drawn.pick(1, 1, 1, 2))
    weights = drawn.numbers(drawn.channels, made, 1, *drawn.kernel)
    drawn.check("GroupConvolution", weights, drawn.channels * made)


@pytest.mark.parametrize("seed", range(4 * DRAWS))
def test_groups(seed: int) -> None:
    drawn = Wide(seed, 5e5)
    every = [count for count in range(1, drawn.channels + 1) if drawn.channels % count == 0]
    groups = int(drawn.pick(*every))
    each = drawn.channels // groups
    made = int(drawn.pick(1, 2, each))
    drawn.check(
        "GroupConvolution", drawn.numbers(groups, made, each, *drawn.kernel), groups * made
    )


@pytest.mark.parametrize("seed", range(4 * DRAWS))
def test_all_channels_together(seed: int) -> None:
    drawn = Wide(seed, 1e5)
    made = int(drawn.pick(1, 8, 33, 64, 100, 128))
    drawn.check("Convolution", drawn.numbers(made, drawn.channels, *drawn.kernel), made)
