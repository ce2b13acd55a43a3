"""Channels of volumes, each by itself, at points of polynomials give what the definition gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_program_kernels import DRAWS
from test_program_wide import Wide
from vinoir import ir
from vinoir.ir.engine.kernels import volume_groups, volume_points
from vinoir.ir.engine.kernels.volume_points import Numbers
from vinoir.schemas import Array


class Forced:
    """Tiles of a size wherever there can be some; how often there were."""

    def __init__(self) -> None:
        self.size, self.times = 4, 0

    def __call__(self, *_: object) -> int:
        self.times += 1
        return self.size


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Forced:
    found = Forced()
    monkeypatch.setattr(volume_groups, "_size_of_tiles", found)
    return found


@pytest.mark.parametrize("seed", range(12 * DRAWS))
def test_volumes_at_points(seed: int, forced: Forced, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any windows, strides, gaps, paddings, channels and images, cut into any pieces."""
    rng = np.random.default_rng(seed)
    forced.size = int(rng.integers(2, 9))
    monkeypatch.setattr(volume_points, "ROOM", int(rng.choice([1 << 12, 1 << 15, 1 << 20])))
    monkeypatch.setattr(volume_points, "FEWEST", int(rng.choice([1, 16])))
    drawn = next(
        drawn
        for drawn in (Wide(1000 * turn + seed, 4e5) for turn in range(1, 1000))
        if drawn.axes == 3
        and drawn.channels > 8
        and drawn.ways["dilations"][0] == 1
        and 1 < drawn.kernel[0] < drawn.size[0]
    )
    weights = drawn.numbers(drawn.channels, 1, 1, *drawn.kernel)
    drawn.check("GroupConvolution", weights, drawn.channels)
    assert forced.times


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


def network(*, beside: bool, followers: list[str]) -> tuple[ir.Builder, list[Array]]:
    """Channels that lie with others before and after, and what follows them."""
    net = ir.Builder()
    shape = 2, 24, 7, 6, 9
    x = net.parameter("x", "f32", shape)
    arrays = [numbers(*shape)]
    plain: dict[str, Any] = {
        "strides": "1,1,1", "dilations": "1,1,1", "pads_begin": "0,0,0", "pads_end": "0,0,0"
    }  # fmt: skip
    around: dict[str, Any] = {**plain, "pads_begin": "1,1,1", "pads_end": "1,1,1"}
    y = net.add("Convolution", "opset1", [x, net.constant(numbers(36, 24, 1, 1, 1))], **plain)
    if beside:
        lengths = net.constant(np.array([12, 24], "i8"))
        y = net.add("VariadicSplit", "opset1", [y, net.constant(np.int64(1)), lengths])[1]
    count = 24 if beside else 36
    weights = net.constant(numbers(count, 1, 1, 3, 3, 3))
    y = net.add("GroupConvolution", "opset1", [y, weights], **around)
    for follower in followers:
        if follower in ("Multiply", "Add"):
            row = net.constant(numbers(1, count, 1, 1, 1))
            y = net.add(follower, "opset1", [y, row])
        elif follower == "by planes":
            y = net.add("Add", "opset1", [y, net.constant(numbers(7, 6, 9))])
        elif follower == "by lines":  # of each plane alike: no images below each other
            y = net.add("Add", "opset1", [y, net.constant(numbers(1, 6, 9))])
        elif follower == "other":
            other = net.parameter("z", "f32", (2, count, 7, 6, 9))
            arrays.append(numbers(2, count, 7, 6, 9))
            y = net.add("Add", "opset1", [y, net.add("ReLU", "opset1", [other])])
        else:
            y = net.add(follower, "opset4", [y])
    if beside:
        y = net.add("Concat", "opset1", [x, y], axis=1)
    net.result(y, name="y")
    return net, arrays


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    "followers",
    [
        [], ["Add", "Swish"], ["Multiply", "other"], ["other", "HSwish"], ["by planes", "Swish"],
        ["by lines", "Swish"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("room", [1 << 10, 1 << 24])
def test_what_follows(
    beside: bool, followers: list[str], room: int, forced: Forced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volume_points, "ROOM", room)
    net, arrays = network(beside=beside, followers=followers)
    model = net.model()
    right = ir.run(model, arrays)["y"]
    found = [
        ir.compile(model, threads=threads, fork=fork)(arrays)["y"]
        for threads, fork in ((1, False), (2, True), (2, False))
    ]
    np.testing.assert_allclose(found[0], right, rtol=0, atol=1e-5 * np.abs(right).max())
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert forced.times


def of(channels: int, size: tuple[int, int, int], taps: int, stride: int) -> Numbers:
    """A convolution with windows of so many taps along each axis."""
    pads = [(taps // 2, taps // 2)] * 3
    wide, high, deep = ((length + 2 * (taps // 2) - taps) // stride + 1 for length in size[::-1])
    weights = np.ones((channels, taps, taps, taps), np.float32)
    return Numbers(
        weights, (stride,) * 3, (1,) * 3, pads, size, (deep, high, wide)
    )  # fmt: skip


def test_pieces() -> None:
    """Rows are shared out in as many bands as workers go round, channels where rows are few."""
    assert volume_points._pieces(of(32, (8, 32, 32), 3, 1), 4, 2) == (1, 2)
    alike, bands = volume_points._pieces(of(64, (8, 56, 56), 3, 1), 4, 4)
    assert (alike, bands % 4) == (1, 0)
    assert volume_points._pieces(of(1024, (8, 28, 28), 3, 1), 4, 4) == (1, 8)
    assert volume_points._pieces(of(672, (4, 4, 4), 5, 1), 4, 4) == (4, 1)
    assert volume_points._pieces(of(17, (4, 4, 4), 5, 1), 4, 4) == (1, 1)


def test_the_choice() -> None:
    """Tiles are as large as there are outputs for them; the larger, the fewer products."""
    took, size = volume_points.nanoseconds(of(64, (4, 24, 24), 3, 1), 2)
    assert size == 4
    assert took < 27 * 0.108 * 4 * 24 * 24
    assert volume_points.nanoseconds(of(64, (16, 24, 24), 3, 1), 2)[1] > 4


def test_networks_choose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 3x3x3 at each place are made at points, those of large steps as before."""
    chosen: list[int | None] = []
    ask = volume_groups._size_of_tiles

    def asked(*given: Any) -> int | None:
        chosen.append(ask(*given))
        return chosen[-1]

    monkeypatch.setattr(volume_groups, "_size_of_tiles", asked)
    for stride in (1, 3):
        net = ir.Builder()
        x = net.parameter("x", "f32", (1, 54, 12, 24, 24))
        weights = net.constant(numbers(54, 1, 1, 3, 3, 3))
        steps = ",".join([str(stride)] * 3)
        net.result(
            net.add(
                "GroupConvolution", "opset1", [x, weights], strides=steps, dilations="1,1,1",
                pads_begin="1,1,1", pads_end="1,1,1",
            )
        )  # fmt: skip
        ir.compile(net.model(), threads=2)([numbers(1, 54, 12, 24, 24)])
    assert chosen[0] is not None
    assert chosen[1] is None
