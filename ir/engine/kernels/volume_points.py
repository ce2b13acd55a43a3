"""Convolution of volumes, each channel by itself, by values at points along their first axis.

As in images (`at_points`), a column of outputs is made of few products of a column of pixels and
one of taps. What is met at a point is an image here, and the windows over the two other axes are
summed there: of 3x3x3 taps that is 13.5 products for an output, not 27. Values are made line by
line, each to between its padding, so nothing is copied for the sake of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import Node
from ..workers import Part, hands, spans
from .at_points import (
    AT_LEAST,
    BEGIN,
    COPY,
    TAPS_RUN,
    Met,
    Points,
    at,
    count_of,
    points,
    rates,
    runs_of,
    tiles_of,
)
from .blocks import CACHE, Scratch, are_moderate, filling, lined, sequence
from .calls import call
from .convolution_work import Finish
from .depthwise import RUN, RUN_BEGINS, SUM
from .products import by_long_rows
from .repeats import divisor

Three: TypeAlias = tuple[int, int, int]
#: From one to another.
Run: TypeAlias = tuple[int, int]
#: Tiles that are tried; of larger ones too much leaves the caches.
SIZES = range(2, 9)
#: Bytes of what is met and summed of a piece, at best, and its fewest channels.
ROOM, FEWEST = 5 << 19, 16
#: What the choice supposes of one core, in nanoseconds: to begin a line of values.
LINE_BEGINS = 150


class Numbers(NamedTuple):
    """The numbers of a convolution of volumes, axis by axis."""

    #: (channels, deep, high, wide)
    weights: Array
    strides: Three
    dilations: Three
    pads: Sequence[Run]
    size: Three
    out: Three

    @property
    def kernel(self) -> Three:
        """How many taps there are along each axis."""
        _, deep, high, wide = self.weights.shape
        return deep, high, wide

    @property
    def columns(self) -> int:
        """How many columns of an image windows meet, padding included."""
        return (self.out[2] - 1) * self.strides[2] + number(
            reach(self.kernel[2], self.dilations[2])
        )

    def lines(self, rows: int) -> int:
        """How many lines of an image so many rows of outputs meet."""
        return (rows - 1) * self.strides[1] + number(reach(self.kernel[1], self.dilations[1]))


def numbers_of(node: Node, pads: Sequence[Run]) -> Numbers | None:
    """The numbers of a convolution that can be made so; None of others."""
    weights, op = node.inputs[1].constant, node.op
    along: Any = op
    if weights is None or weights.shape[1:3] != (1, 1) or along.dilations[0] != 1:
        return None
    # What is not finite, or nearly not, would spread over its column.
    if weights.shape[3] == 1 or node.outputs[0].type != np.float32 or not are_moderate(weights):
        return None
    size, out = node.inputs[0].shape[2:], node.outputs[0].shape[2:]
    return Numbers(
        weights[:, 0, 0], tuple(along.strides), tuple(along.dilations), pads,
        (size[0], size[1], size[2]), (out[0], out[1], out[2]),
    )  # fmt: skip


def steps(
    sizes: Numbers,
    size: int,
    source: Array,
    target: Array,
    finish: Finish,
    abreast: int,
    scratch: Scratch,
) -> list[list[Part]]:
    """The step: workers share channels and rows of volumes (N, D, H, W, C).

    To what follows, a volume is one image: its own, one below the other.
    """
    found = points(sizes.kernel[0], sizes.strides[0], size)
    weights = at(found, sizes.weights)
    laid: dict[Run, Array] = {}
    lanes = hands(len(target), abreast, lambda each: _shared(sizes, size, each))
    step: list[Part] = []
    for part, (image, (channels, rows)) in scratch.dealt(lanes):
        some = slice(*channels)
        if channels not in laid:
            laid[channels] = _tiled(sizes, weights[..., some])
        lane = Lane(sizes, found, laid[channels], channels, rows, scratch, part)
        step.append(sequence(lane.all_of(source[image], target[image], finish, image)))
    return [step]


def nanoseconds(sizes: Numbers, pieces: int) -> tuple[float, int]:
    """About how long a channel of a volume takes on one core, and by tiles of how many outputs."""
    fit = [size for size in SIZES if size <= max(sizes.out[0], SIZES[0])]
    return min((_nanoseconds(sizes, size, pieces), size) for size in fit)


def _nanoseconds(sizes: Numbers, size: int, pieces: int) -> float:
    rate, channels = rates(), len(sizes.weights)
    (deep, high, wide), (planes, height, width) = sizes.kernel, sizes.out
    products, tiles = count_of(deep, sizes.strides[0], size), _tiles(sizes, size)
    alike, bands = _pieces(sizes, size, pieces)
    met, lines = sum(tile.met for tile in tiles), bands * sizes.lines(-(-height // bands))
    pixels = lines * sizes.size[2]
    evaluated = pixels * products * (len(tiles) * rate.value + met * rate.product)
    run = _neighbours(sizes, -(-channels // alike)) * channels / alike
    each = high * wide * (SUM + RUN_BEGINS / run) + BEGIN
    summed = len(tiles) * products * height * width * each
    made = planes * height * width * (rate.output + products * rate.product)
    copied = COPY * (met * pixels + planes * height * width) if alike > 1 else 0.0
    calls = len(tiles) * bands * (rate.calls + lines * LINE_BEGINS) * alike / channels
    return copied + evaluated + summed + made + calls


def _tiled(sizes: Numbers, weights: Array) -> Array:
    """Weights at points as rows for as many neighbours as are one run."""
    return np.ascontiguousarray(np.tile(weights, _neighbours(sizes, weights.shape[3])))


def _neighbours(sizes: Numbers, channels: int) -> int:
    """So many pixels, of so many channels each, are summed as one run."""
    _, high, wide = sizes.kernel
    if sizes.strides[2] > 1:
        return 1
    return divisor(sizes.out[2], max(min(RUN, TAPS_RUN // (high * wide)) // channels, 1))


def _pieces(sizes: Numbers, size: int, each: int) -> tuple[int, int]:
    """Into how many runs channels and rows are cut: so many pieces at least, none too large."""
    channels, (height, width) = len(sizes.weights), sizes.out[1:]
    planes = (size - 1) * sizes.strides[0] + sizes.kernel[0]
    room = 4 * channels * planes * (sizes.lines(height) * sizes.columns + height * width)
    most = max(1, height // sizes.kernel[1])
    if most >= each:
        return 1, min(-(-room // (ROOM * each)) * each, most - most % each)
    bands = divisor(each, most)
    return max(1, min(each // bands, channels // FEWEST)), bands


def _shared(sizes: Numbers, size: int, each: int) -> list[tuple[Run, Run]]:
    """Channels and rows of a volume that is cut into so many pieces, or more."""
    alike, bands = _pieces(sizes, size, each)
    return list(product(runs_of(len(sizes.weights), alike), spans(sizes.out[1], bands)))


class Lane:
    """Some channels and rows of a volume, and the memory for what is made of them in between."""

    def __init__(
        self,
        sizes: Numbers,
        found: Points,
        weights: Array,
        channels: Run,
        rows: Run,
        scratch: Scratch,
        part: int,
    ) -> None:
        self.sizes, self.found, self.weights = sizes, found, weights
        self.channels, self.rows, self.scratch = slice(*channels), rows, scratch
        products, high, wide, run = weights.shape
        count, height, width = channels[1] - channels[0], rows[1] - rows[0], sizes.out[2]
        lines, columns = sizes.lines(height), sizes.columns
        scratch.reset()
        few = max(AT_LEAST, CACHE // (8 * lines * columns * count))
        self.groups = spans(products, -(-products // few))
        most = max(end - begin for begin, end in self.groups)
        (_, down, step), (_, below, gap) = sizes.strides, sizes.dilations
        (pad, _), (left, _) = sizes.pads[1:]
        first = rows[0] * down - pad
        top = max(first, 0)
        #: The lines and columns of an image that windows meet.
        self.lines = top, max(top, min(first + lines, sizes.size[1]))
        self.width = max(0, min(sizes.size[2], columns - left))
        values = scratch.take(part, most, lines, columns, count)
        #: Where their values are, and where those of padding.
        across = slice(left, left + self.width)
        self.inner = values[:, top - first : self.lines[1] - first, across]
        self.borders = [
            values[:, : top - first], values[:, self.lines[1] - first :],
            values[:, :, : across.start], values[:, :, across.stop :],
        ]  # fmt: skip
        self.sums = scratch.take(part, products, height, width * count // run, run)
        self.take = partial(scratch.take, part)
        point, line, pixel, one = values.strides
        self.windows = as_strided(
            values, (most, *self.sums.shape[1:3], high, wide, run),
            (point, line * down, run // count * pixel * step, line * below, pixel * gap, one),
            writeable=False,
        )  # fmt: skip

    def all_of(self, source: Array, target: Array, finish: Finish, image: int) -> list[Part]:
        """Parts that make all planes of a volume (D, H, W, C)."""
        source = source[:, slice(*self.lines), : self.width, self.channels]
        target = target[:, slice(*self.rows), :, self.channels]
        room = block = None
        if source.size and not source[0, 0].flags.c_contiguous:
            room = self.take(self.found.inputs.shape[1], *source.shape[1:])
        if not target[0].flags.c_contiguous:
            block = self.take(self.found.size, *target.shape[1:])
        parts = [filling(border, 0.0) for border in self.borders if border.size]
        (deep, *_), size = self.sizes.out, self.found.size
        for turn, tile in enumerate(_tiles(self.sizes, size)):
            planes = turn * size, min((turn + 1) * size, deep)
            parts += self._summed(source, tile, room)
            if finish.bias is not None:
                parts.append(self._biased(finish.bias))
            out = target[slice(*planes)] if block is None else block[: planes[1] - planes[0]]
            flat = out.reshape(len(out), -1)
            sums = self.sums.reshape(len(self.sums), -1)
            parts.append(by_long_rows(self.found.outputs[: len(out)], sums, flat))
            parts += self._finished(out, finish, image, planes)
        return parts

    def _summed(self, source: Array, tile: Met, room: Array | None) -> list[Part]:
        """Parts that sum, at all points, the windows of the images that a tile meets."""
        given = source[tile.start : tile.start + tile.met]
        parts: list[Part] = []
        if room is not None:
            parts.append(call(np.copyto, room[: tile.met], given))
            given = room[: tile.met]
        inputs = self.found.inputs[:, tile.before : tile.before + tile.met]
        matrix = np.ascontiguousarray(inputs)
        for begin, end in self.groups:
            inner = self.inner[: end - begin]
            if given.size:
                met, made = (
                    images.reshape(*images.shape[:2], -1).swapaxes(0, 1)
                    for images in (given, inner)
                )
                assert np.may_share_memory(made, inner)
                parts.append(call(np.matmul, matrix[begin:end], met, out=made))
            elif inner.size:
                parts.append(filling(inner, 0.0))
            windows, weights = self.windows[: end - begin], self.weights[begin:end]
            parts.append(_multiplied(windows, weights, self.sums[begin:end]))
        return parts

    def _biased(self, bias: Array) -> Part:
        """What adds the bias, at the point where that reaches all outputs."""
        some = bias[self.channels]
        rows = self.sums[self.found.one].reshape(-1, len(some))
        return lined(np.add, rows, np.broadcast_to(some, rows.shape), rows, self.scratch)

    def _finished(self, out: Array, finish: Finish, image: int, planes: Run) -> list[Part]:
        """Parts that do what follows to the planes of a tile, at once if no rows are between."""
        height, (begin, end) = self.sizes.out[1], self.rows
        if end - begin == height:
            rows = slice(planes[0] * height, planes[1] * height)
            block = out.reshape(-1, *out.shape[2:])
            return finish.parts(block, image, rows, self.channels, biased=True)
        return [
            part
            for plane, block in zip(range(*planes), out, strict=True)
            for part in finish.parts(
                block, image, slice(plane * height + begin, plane * height + end),
                self.channels, biased=True,
            )
        ]  # fmt: skip


def _tiles(sizes: Numbers, size: int) -> list[Met]:
    (stride, *_), (tall, *_), ((pad, _), *_) = sizes.strides, sizes.size, sizes.pads
    return tiles_of(sizes.out[0], tall, sizes.kernel[0], stride, pad, size)


def _multiplied(windows: Array, weights: Array, out: Array) -> Part:
    """The part that sums windows of images, each value times that of the taps."""

    def run() -> None:
        np.einsum("qhmijx,qijx->qhmx", windows, weights, out=out)

    return run
