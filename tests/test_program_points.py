"""Convolutions of each channel at points of polynomials give what the definition gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_convolutions import alone, skipping
from test_program_depthwise import agree, network, sizes_of
from test_program_families import Same
from test_program_kernels import DRAWS, Draw
from vinoir import ir
from vinoir.ir.engine.kernels import at_points, convolution, depthwise
from vinoir.ir.engine.kernels.at_points import points, quickest_size
from vinoir.ir.engine.kernels.convolution_work import Sizes
from vinoir.ir.engine.plan import Grid, build


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many outputs are made together wherever they can be."""
    choice: list[int] = []

    def forced(sizes: Sizes, _: float, pieces: int) -> int | None:
        return choice[0] if quickest_size(sizes, 1e9, pieces) else None

    monkeypatch.setattr(convolution, "quickest_tile", lambda _: None)
    monkeypatch.setattr(convolution, "quickest_size", forced)
    return choice


def weighing(channels: int, *kernel: int) -> Any:
    """Weights of a window for each channel."""
    return np.random.default_rng(0).standard_normal((channels, 1, 1, *kernel)).astype("f4")


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2, 3, 4, 5, 7, 9, 13, 31])
def test_points_make_windows(taps: int, stride: int) -> None:
    """The matrices multiply every tap with the pixel that it meets, and with no other."""
    for size in (1, 2, 3, 4, 5, 6, 7, 8, 14, 28):
        found = points(taps, stride, size)
        met = np.einsum("qi,qn,jq->jin", found.taps, found.inputs, found.outputs)
        wanted = np.eye((size - 1) * stride + taps)[
            np.add.outer(stride * np.arange(size), np.arange(taps))
        ]
        np.testing.assert_allclose(met, wanted, atol=2e-6)
        assert len(found.taps) == at_points.count_of(taps, stride, size)
        # Three for each tap of two that would be needed, and a few.
        assert len(found.taps) <= 1.5 * (size * min(stride, taps) + taps) + 2


@pytest.mark.parametrize("size", [2, 3, 5, 7, 16])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 1), (1, 4)])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 1), (3, 6), (7, 5)])
def test_outputs_at_points_are_those_of_windows(
    size: int, strides: tuple[int, int], kernel: tuple[int, int], chosen: list[int]
) -> None:
    chosen.append(size)
    ways = {"strides": strides, "pads_begin": (2, 1), "pads_end": (4, 3)}
    model = network(weighing(20, *kernel), (2, 20, 13, 11), bias=True, **ways)
    agree(model, (2, 20, 13, 11))


@pytest.mark.parametrize("follower", [None, "Swish", "ReLU", "Multiply"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("channels", [33, 128, 400])
def test_what_follows_is_done_after(
    follower: str | None, bias: bool, channels: int, chosen: list[int]
) -> None:
    chosen.append(7)
    ways = {"pads_begin": (2, 2), "pads_end": (2, 2)}
    model = network(
        weighing(channels, 5, 5), (1, channels, 14, 7), bias=bias, follower=follower, **ways
    )
    agree(model, (1, channels, 14, 7))


@pytest.mark.parametrize("pads", [(0, 0), (6, 9), (3, 0)])
def test_windows_may_lie_in_padding(pads: tuple[int, int], chosen: list[int]) -> None:
    chosen.append(4)
    ways = {"pads_begin": pads, "pads_end": pads[::-1]}
    model = network(weighing(18, 3, 3), (1, 18, 5, 3), bias=True, **ways)
    agree(model, (1, 18, 5, 3))


@pytest.mark.parametrize("pads", [(2, 2), (0, 3), (9, 1), (0, 0), (3, 9)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (1, 20), (20, 1)])
@pytest.mark.parametrize("together", [1, 6, 96])
def test_padding_that_is_no_zero(
    pads: tuple[int, int], strides: tuple[int, int], together: int, chosen: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What is added before a ReLU goes past the convolution, which then pads with it."""
    chosen.append(3)
    monkeypatch.setattr(at_points, "TOGETHER", together)
    monkeypatch.setattr(at_points, "CACHE", 1 << 12)
    rng, net = np.random.default_rng(5), ir.Builder()
    x = net.parameter("x", "f32", (1, 12, 9, 8))
    one = net.constant(rng.standard_normal((12, 12, 1, 1)).astype("f4"))
    plain = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    offsets = net.constant(rng.standard_normal((1, 12, 1, 1)).astype("f4"))
    y = net.add("Add", "opset1", [net.add("Convolution", "opset1", [x, one], **plain), offsets])
    y = net.add("ReLU", "opset1", [y])
    ways = plain | {"strides": strides, "pads_begin": pads, "pads_end": pads[::-1]}
    y = net.add("GroupConvolution", "opset1", [y, net.constant(weighing(12, 5, 3))], **ways)
    net.result(net.add("Add", "opset1", [y, offsets]), name="y")  # where all is padding, not zero
    filled: list[bool] = []
    opened = at_points.Lane.opened
    monkeypatch.setattr(
        at_points.Lane, "opened",
        lambda lane: (filled.append(lane.outside is not None), opened(lane))[1],
    )  # fmt: skip
    agree(net.model(), (1, 12, 9, 8))
    assert filled or strides == (20, 1)  # a single row of outputs may be made in other ways
    assert all(filled)


@pytest.mark.parametrize("cache", [1 << 9, 1 << 12, 1 << 16])
@pytest.mark.parametrize(("images", "together"), [(1, 8), (1, 96), (3, 16)])
def test_values_are_found_a_few_at_a_time(
    cache: int, images: int, together: int, chosen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some channels, at some points: until all is done."""
    chosen.append(3)
    monkeypatch.setattr(at_points, "CACHE", cache)
    monkeypatch.setattr(at_points, "TOGETHER", together)
    ways = {"pads_begin": (2, 2), "pads_end": (2, 2)}
    for strides in ((1, 1), (1, 2)):
        model = network(
            weighing(48, 5, 5), (images, 48, 17, 33), bias=True, follower="Swish",
            strides=strides, **ways,
        )  # fmt: skip
        agree(model, (images, 48, 17, 33))


@pytest.mark.parametrize("width", [11, 13, 47])
@pytest.mark.parametrize("follower", [None, "Swish"])
def test_rows_of_values_are_summed_beyond_their_end(
    width: int, follower: str | None, chosen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no run of neighbours divides a row, the last one is as long as the others."""
    chosen.append(3)
    found, real = [], at_points._neighbours
    monkeypatch.setattr(at_points, "RUN", 100)
    monkeypatch.setattr(
        at_points, "_neighbours", lambda *words: (found.append(real(*words)), found[-1])[1]
    )
    model = network(
        weighing(16, 5, 3), (2, 16, 12, width), bias=True, follower=follower,
        pads_begin=(2, 1), pads_end=(2, 1),
    )  # fmt: skip
    agree(model, (2, 16, 12, width))
    assert found
    assert all(1 < times <= 6 and width % times for times in found)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_drawn_windows_at_points(data: st.DataObject) -> None:
    number = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    size, kernel = number(1, 12), (number(1, 7), number(1, 7))
    shape = (number(1, 3), number(2, 40), number(1, 14), number(1, 14))
    model = network(
        weighing(shape[1], *kernel), shape, bias=data.draw(st.booleans()),
        strides=(number(1, 4), number(1, 4)), pads_begin=[number(0, n - 1) for n in kernel],
        pads_end=kernel,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "quickest_tile", lambda sizes: None)
        patch.setattr(convolution, "quickest_size", lambda sizes, least, pieces: size)
        agree(model, shape, (1, 2))


@pytest.mark.parametrize("seed", range(2 * DRAWS))
def test_networks_around_points_give_what_the_definition_gives(
    seed: int, chosen: list[int]
) -> None:
    chosen.append((2, 4, 7)[seed % 3])
    alone(Draw(seed))


@pytest.mark.parametrize("kernel", [alone, skipping])
@pytest.mark.parametrize("seed", range(200, 203))
def test_answers_at_points_are_one_whoever_works(
    kernel: Any, seed: int, chosen: list[int]
) -> None:
    chosen.append(4)
    kernel(Same(seed))


def choice(size: int, kernel: int, channels: int = 64, made: int = 1, **ways: Any) -> int | None:
    weights = np.ones((channels, made, 1, kernel, kernel), "f4")
    pads = [kernel // 2] * 2
    shape = (1, channels, size, size)
    sizes = sizes_of(network(weights, shape, pads_begin=pads, pads_end=pads, **ways))
    return quickest_size(sizes, convolution.depthwise.nanoseconds(sizes), 2)


@pytest.mark.parametrize("copies", [False, True])
def test_points_are_taken_where_they_save(copies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_points, "blas_copies", lambda: copies)
    assert choice(7, 7) == 7
    assert choice(14, 5, channels=480) == 7
    assert choice(56, 31) is not None
    assert (choice(56, 3, channels=144) is None) == copies
    assert choice(28, 2) is None
    assert choice(14, 5, made=2) is None
    assert choice(14, 5, dilations=(2, 2)) is None


@pytest.mark.parametrize(
    ("pieces", "height", "channels", "runs"),
    [(1, 14, 384, (1, 1)), (2, 14, 384, (2, 1)), (2, 7, 384, (1, 2)), (2, 7, 60, (1, 1)),
     (2, 21, 60, (2, 1)), (4, 14, 384, (2, 2)), (4, 35, 384, (1, 4)), (4, 35, 100, (4, 1))],
)  # fmt: skip
def test_workers_share_tiles_and_channels(
    pieces: int, height: int, channels: int, runs: tuple[int, int]
) -> None:
    """Evenly where they can be, and in any case."""
    model = network(weighing(channels, 5, 5), (1, channels, height + 4, 9))
    assert at_points._shared(sizes_of(model), height // 7, pieces) == runs


@pytest.mark.parametrize("number", [np.inf, np.nan, 3e38])
def test_weights_that_would_overflow_are_left(number: float) -> None:
    weights = weighing(8, 5, 5)
    weights[3, 0, 0, 2, 2] = number
    sizes = sizes_of(network(weights, (1, 8, 14, 14)))
    assert quickest_size(sizes, 1e9, 2) is None


def test_levels_are_summed_as_they_are() -> None:
    """Sums of levels are exact, and would not be at points."""
    model = network(weighing(64, 7, 7), (1, 64, 14, 14))
    plan = build(model, ir.infer(model))
    (node,) = (node for node in plan.nodes if node.kind == "GroupConvolution")
    assert isinstance(convolution._each_alone(node, Sizes(node)), int)
    node.inputs[0].grid = Grid(0.1, 0.0, 256)
    assert not isinstance(convolution._each_alone(node, Sizes(node)), int)


def test_smaller_windows_are_made_at_points_where_products_are_quicker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = {"pads_begin": (1, 1), "pads_end": (1, 1)}
    sizes = sizes_of(network(weighing(192, 3, 3), (1, 192, 28, 28), bias=True, **ways))
    least = depthwise.nanoseconds(sizes)
    monkeypatch.setattr(at_points, "blas_copies", bool)
    for rates, size in ((at_points.USUAL, None), (at_points.OF_ZEN_5, 7)):
        monkeypatch.setattr(at_points, "rates", lambda rates=rates: rates)
        assert quickest_size(sizes, least, 2) == size


@pytest.mark.parametrize("taps", [2, 3, 5])
@pytest.mark.parametrize("follower", [None, "Swish"])
def test_volumes_are_sums_of_images_made_at_points(
    taps: int, follower: str | None, chosen: list[int]
) -> None:
    """What a tap adds to may not lie where it writes before it adds."""
    chosen.append(4)
    net, rng = ir.Builder(), np.random.default_rng(taps)
    x = net.parameter("x", "f32", (2, 20, 6, 9, 8))
    weights = net.constant(rng.standard_normal((20, 1, 1, taps, 3, 5)).astype("f4"))
    pads = [taps // 2, 1, 2]
    ways = {"strides": [1, 2, 1], "dilations": [1, 1, 1], "pads_begin": pads, "pads_end": pads}
    y = net.add("GroupConvolution", "opset1", [x, weights], **ways)
    y = y if follower is None else net.add(follower, "opset4", [y])
    net.result(y, name="y")
    agree(net.model(), (2, 20, 6, 9, 8))


@pytest.mark.parametrize("each", [1, 2, 24, 66])
@pytest.mark.parametrize("size", [4, 12])
def test_volumes_in_groups_by_whatever_way_is_quickest(each: int, size: int) -> None:
    groups = 96 if each < 24 else 9
    net, rng = ir.Builder(), np.random.default_rng(each)
    shape = (1, groups * each, 3, size, size)
    x = net.parameter("x", "f32", shape)
    weights = rng.standard_normal((groups, each, each, 3, 3, 3)).astype("f4")
    ways = {name: [1, 1, 1] for name in ("strides", "dilations", "pads_begin", "pads_end")}
    net.result(net.add("GroupConvolution", "opset1", [x, net.constant(weights)], **ways), name="y")
    agree(net.model(), shape)


@pytest.mark.parametrize("images", [1, 3, 5])
@pytest.mark.parametrize("channels", [97, 128, 480])
@pytest.mark.parametrize("height", [6, 13])
def test_images_that_do_not_go_round_are_cut_otherwise_than_others(
    images: int, channels: int, height: int, chosen: list[int]
) -> None:
    """Lanes of some images have other runs of channels than those of the rest."""
    chosen.append(6)
    ways = {"pads_begin": (2, 2), "pads_end": (2, 2)}
    shape = (images, channels, height, 27)
    model = network(weighing(channels, 5, 5), shape, bias=True, **ways)
    agree(model, shape, threads=(1, 2, 3))
    image = np.random.default_rng(3).standard_normal(shape).astype("f4")
    found = [ir.compile(model, threads=threads)([image])["y"] for threads in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
