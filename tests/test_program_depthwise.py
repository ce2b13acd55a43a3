"""Convolutions of each channel by itself give what the definition gives, however they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_convolutions import alone, skipping
from test_program_families import Same
from test_program_kernels import DRAWS, Draw, windows
from vinoir import ir
from vinoir.ir.engine.kernels import banded, convolution, depthwise, products
from vinoir.ir.engine.kernels.banded import Tile, in_bands, quickest_tile, strips
from vinoir.ir.engine.kernels.convolution_work import Sizes
from vinoir.ir.engine.plan import build
from vinoir.ir.engine.workers import WIDE_KERNELS
from vinoir.schemas import Array

TILES = [Tile(1, 1), Tile(1, 8), Tile(2, 8), Tile(3, 2), Tile(4, 4), Tile(5, 1), Tile(16, 15)]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Tile | None]:
    """The tile that is taken wherever one can be; none, if it is empty."""
    choice: list[Tile | None] = []

    def forced(sizes: Sizes) -> Tile | None:
        return None if sizes.shuffled or sizes.led or not choice else choice[0]

    monkeypatch.setattr(convolution, "quickest_tile", forced)
    monkeypatch.setattr(convolution, "quickest_size", lambda *_: None)
    return choice


def network(
    weights: Array,
    image: tuple[int, ...],
    *,
    bias: bool = False,
    follower: str | None = None,
    **ways: Any,
) -> ir.Model:
    """A depthwise convolution of an image, and perhaps what follows."""
    net, rng = ir.Builder(), np.random.default_rng(1)
    x = net.parameter("x", "f32", image)
    y = net.add(
        "GroupConvolution", "opset1", [x, net.constant(weights)], **windows(len(image) - 2, **ways)
    )
    shape = (1, weights.shape[0] * weights.shape[1], *[1] * (len(image) - 2))
    if bias:
        y = net.add("Add", "opset1", [y, net.constant(rng.standard_normal(shape).astype("f4"))])
    if follower == "Multiply":
        factors = net.constant(rng.standard_normal(shape).astype("f4"))
        y = net.add("Multiply", "opset1", [net.add("Tanh", "opset1", [y]), factors])
    elif follower is not None:
        y = net.add(follower, "opset4" if follower == "Swish" else "opset1", [y])
    net.result(y, name="y")
    return net.model()


def sizes_of(model: ir.Model) -> Sizes:
    """The numbers of the convolution of a model."""
    plan = build(model, ir.infer(model))
    (node,) = (node for node in plan.nodes if node.kind == "GroupConvolution")
    return Sizes(node)


def agree(model: ir.Model, shape: tuple[int, ...], threads: tuple[int, ...] = (1, 3)) -> None:
    """Hold a compiled model against its definition."""
    image = np.random.default_rng(2).standard_normal(shape).astype("f4")
    wanted = ir.run(model, [image])["y"]
    for count in threads:
        found = ir.compile(model, threads=count)([image])["y"]
        scale = float(np.abs(wanted).max(initial=1e-6))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * scale, strict=True)


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: "x".join(map(str, tile)))
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (1, 3), (3, 1)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 3)])
@pytest.mark.parametrize("made", [1, 2])
def test_tiles_of_any_size_make_what_windows_make(
    tile: Tile,
    strides: tuple[int, int],
    dilations: tuple[int, int],
    made: int,
    chosen: list[Tile | None],
) -> None:
    chosen.append(tile)
    weights = np.random.default_rng(0).standard_normal((20, made, 1, 5, 3)).astype("f4")
    model = network(
        weights, (2, 20, 13, 11), bias=True, strides=strides, dilations=dilations,
        pads_begin=(2, 1), pads_end=(4, 3),
    )  # fmt: skip
    agree(model, (2, 20, 13, 11))


@pytest.mark.parametrize("follower", [None, "Swish", "ReLU", "Multiply"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("made", [1, 3])
def test_what_follows_is_done_to_tiles(
    follower: str | None, bias: bool, made: int, chosen: list[Tile | None]
) -> None:
    chosen.append(Tile(2, 4))
    weights = np.random.default_rng(0).standard_normal((40, made, 1, 7, 7)).astype("f4")
    ways = {"pads_begin": (3, 3), "pads_end": (3, 3)}
    model = network(weights, (1, 40, 9, 14), bias=bias, follower=follower, **ways)
    agree(model, (1, 40, 9, 14))


@pytest.mark.parametrize("length", [31, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_along_one_axis(length: int, stride: int, chosen: list[Tile | None]) -> None:
    chosen.append(Tile(8, 1))
    weights = np.random.default_rng(0).standard_normal((36, 1, 1, length)).astype("f4")
    pads = {"pads_begin": [length // 2], "pads_end": [length // 2]}
    model = network(weights, (2, 36, 50), bias=True, follower="Swish", strides=[stride], **pads)
    agree(model, (2, 36, 50))


@pytest.mark.parametrize("room", [1 << 10, 1 << 14])
@pytest.mark.parametrize("channels", [3, 70])
def test_images_are_cut_into_blocks_where_they_are_large(
    room: int, channels: int, chosen: list[Tile | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen.append(Tile(2, 4))
    monkeypatch.setattr(banded, "ROOM", room)
    monkeypatch.setattr(banded, "NEAR", room)
    monkeypatch.setattr(banded, "TURNED", 300)
    weights = np.random.default_rng(0).standard_normal((channels, 1, 1, 5, 5)).astype("f4")
    model = network(weights, (1, channels, 21, 17), pads_begin=(2, 2), pads_end=(2, 2))
    agree(model, (1, channels, 21, 17))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_drawn_tiles_make_what_windows_make(data: st.DataObject) -> None:
    number = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    tile = Tile(number(1, 9), number(1, 9))
    kernel = number(1, 7), number(1, 7)
    gaps = number(1, 3), number(1, 3)
    reach = [(size - 1) * gap for size, gap in zip(kernel, gaps, strict=True)]
    weights = (
        np.random.default_rng(0)
        .standard_normal((number(2, 40), number(1, 3), 1, *kernel))
        .astype("f4")
    )
    shape = (number(1, 3), len(weights), number(1, 14), number(1, 14))
    model = network(
        weights, shape, bias=data.draw(st.booleans()), dilations=gaps,
        strides=(number(1, 4), number(1, 4)), pads_begin=[number(0, n) for n in reach],
        pads_end=reach,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "quickest_tile", lambda sizes: tile)
        agree(model, shape, (1, 2))


@pytest.mark.parametrize("seed", range(2 * DRAWS))
def test_networks_around_tiles_give_what_the_definition_gives(
    seed: int, chosen: list[Tile | None]
) -> None:
    chosen.append(TILES[seed % len(TILES)])
    alone(Draw(seed))


@pytest.mark.parametrize("kernel", [alone, skipping])
@pytest.mark.parametrize("seed", range(200, 203))
def test_tiles_are_one_whoever_works(kernel: Any, seed: int, chosen: list[Tile | None]) -> None:
    chosen.append(Tile(2, 8))
    kernel(Same(seed))


@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(7, 3, 1), (7, 5, 1), (7, 5, 2), (8, 3, 1)]
)
@pytest.mark.parametrize("made", [1, 2])
@pytest.mark.usefixtures("chosen")
def test_channels_are_shared_where_rows_cannot_be_evenly(
    size: int, kernel: int, stride: int, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[list[depthwise.Lane]] = []
    lanes = depthwise._lanes
    monkeypatch.setattr(
        depthwise, "_lanes", lambda *words: (found := lanes(*words), taken.append(found[0]))[0]
    )
    rng = np.random.default_rng(kernel)
    weights = rng.standard_normal((392, made, 1, kernel, kernel)).astype("f4")
    model = network(
        weights, (1, 392, size, size), bias=True, follower="Swish", strides=(stride,) * 2,
        pads_begin=(kernel // 2,) * 2, pads_end=(kernel // 2,) * 2,
    )  # fmt: skip
    agree(model, (1, 392, size, size))
    rows = -(-size // stride)
    assert taken
    for found in taken:
        runs = [run for _, run, _ in found]
        if rows % 2:
            assert set(runs) == {(0, rows)}
            channels = [stop - first for _, _, (first, stop) in found]
            assert len(channels) > 1
            assert sum(channels) == 392
            assert max(channels) - min(channels) <= 1
        else:
            assert len(runs) == 2


def test_matrices_have_weights_where_windows_meet() -> None:
    weights = np.arange(1, 7, dtype="f4").reshape(2, 1, 1, 1, 3)
    sizes = sizes_of(network(weights, (1, 2, 4, 9), strides=(1, 2)))
    (first, second) = in_bands(sizes, Tile(1, 2))
    np.testing.assert_array_equal(first, [[1, 0], [2, 0], [3, 1], [0, 2], [0, 3]])
    np.testing.assert_array_equal(second, first + 3 * (first > 0))
    at = strips(sizes, Tile(1, 2), 4)
    assert (at.across, at.rows, at.columns, at.apart) == (2, 1, 5, 1)


def choice(size: int, kernel: int, channels: int = 64, **ways: Any) -> Tile | None:
    weights = np.zeros((channels, 1, 1, kernel, kernel), "f4")
    pads = [kernel // 2] * 2
    shape = (1, channels, size, size)
    return quickest_tile(sizes_of(network(weights, shape, pads_begin=pads, pads_end=pads, **ways)))


def test_large_windows_of_large_images_are_made_by_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banded, "blas_copies", lambda: False)
    assert choice(64, 7) is not None
    assert choice(56, 9) is not None
    assert choice(64, 3) is None
    assert choice(14, 7) is None  # most of what strips hold is padding
    assert choice(64, 7, dilations=(4, 4)) is None  # most of a matrix is zeros
    monkeypatch.setattr(banded, "blas_copies", lambda: True)
    assert choice(64, 13) is not None
    assert choice(32, 7) is None


def test_weights_with_their_zeros_are_no_more_than_some_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(banded, "blas_copies", lambda: False)
    sizes = sizes_of(network(np.zeros((8, 1, 1, 21, 21), "f4"), (1, 8, 60, 60)))
    tile = quickest_tile(sizes)
    assert tile is not None
    assert banded.weight_count(sizes, tile) <= banded.HEAVY * 2 * 40 * 40
    monkeypatch.setattr(banded, "HEAVY", 0)
    assert quickest_tile(sizes) is None


def test_kernels_that_are_narrow_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for kernels in (*WIDE_KERNELS, "Haswell", "Zen"):
        library = type("Library", (), {"name": "OpenBLAS", "kernels": kernels})()
        monkeypatch.setattr(products, "blas", lambda library=library: library)
        assert products.blas_copies() == (kernels not in WIDE_KERNELS)


@pytest.mark.parametrize("channels", [2, 90, 130, 260])
@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("step", [2, 3])
def test_columns_that_windows_skip_are_put_apart_or_not(
    channels: int, kernel: int, step: int, chosen: list[Tile | None]
) -> None:
    assert not chosen
    weights = np.random.default_rng(0).standard_normal((channels, 1, 1, kernel, kernel))
    pads = [kernel // 2] * 2
    model = network(
        weights.astype("f4"), (1, channels, 12, 15), bias=True, strides=(2, step),
        pads_begin=pads, pads_end=pads,
    )  # fmt: skip
    agree(model, (1, channels, 12, 15))


def test_fewer_channels_are_put_apart_than_are_long_runs() -> None:
    def apart(channels: int, step: int) -> bool:
        weights = np.zeros((channels, 1, 1, 3, 3), "f4")
        sizes = sizes_of(network(weights, (1, channels, 9, 9), strides=(1, step)))
        return depthwise._is_apart(sizes, channels)

    assert apart(16, 2)
    assert not apart(16, 1)
    assert not apart(512, 2)


@pytest.mark.parametrize("width", [13, 31, 94, 97])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 3)])
@pytest.mark.parametrize(("made", "step", "gap"), [(1, 1, 1), (2, 1, 1), (1, 2, 1), (3, 3, 2)])
def test_rows_are_summed_in_runs_though_no_run_divides_them(
    width: int, kernel: tuple[int, int], made: int, step: int, gap: int,
    chosen: list[Tile | None], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    assert not chosen
    found, real = [], depthwise.runs_across
    monkeypatch.setattr(depthwise, "CALL", 0)
    monkeypatch.setattr(depthwise, "RUN", 64)
    monkeypatch.setattr(
        depthwise, "runs_across", lambda *words: (found.append(real(*words)), found[-1])[1]
    )
    weights = np.random.default_rng(0).standard_normal((8, made, 1, *kernel)).astype("f4")
    model = network(
        weights, (2, 8, 11, width * step), bias=True, strides=(1, step), dilations=(1, gap),
        pads_begin=(1, 1), pads_end=(1, gap),
    )  # fmt: skip
    agree(model, (2, 8, 11, width * step))
    assert any(len(runs) == 2 for runs in found)
    for runs in found:
        ends = [run.first + run.runs * run.times for run in runs]
        assert [0, *ends] == [*(run.first for run in runs), ends[-1]]
        assert all(run.times <= 8 for run in runs)


@pytest.mark.parametrize("channels", [64, 240, 480])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_threads_sum_as_processes_do(channels: int, stride: int) -> None:
    """However rows and channels are shared out, columns that windows skip to are apart or not."""
    weights = np.random.default_rng(0).standard_normal((channels, 1, 1, 5, 7)).astype("f4")
    ways = {"strides": (1, stride), "dilations": (2, 1), "pads_begin": (1, 4), "pads_end": (3, 3)}
    model = network(weights, (1, channels, 23, 29), **ways)
    image = np.random.default_rng(1).standard_normal((1, channels, 23, 29)).astype("f4")
    found = [
        ir.compile(model, threads=threads, fork=fork)([image])["y"]
        for threads, fork in ((1, False), (2, False), (2, True), (3, False), (4, True))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
