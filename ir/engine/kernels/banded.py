"""Convolution of each channel by itself, of large windows: tiles are made by products.

A tile of ``tall * wide`` outputs of a channel meets ``rows * columns`` inputs, and is these times
a matrix that has the weights of each output where it meets them, and zeros elsewhere: two to three
times the products, but BLAS makes six times as many a second as are made where sums are taken of
shifted rows. Each channel is turned into a plane, and that cut into strips of so many columns, one
below the other, so that what a tile meets is one piece of memory. Tiles that follow each other
share rows; those of every ``apart``-th place do not, and are the rows of a matrix where they lie.
"""

from __future__ import annotations

from itertools import product
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..workers import Part, cuts, shares, spans
from . import depthwise
from .blocks import Scratch, filling, sequence
from .calls import call
from .convolution_work import Sizes, Work, untiled
from .lines import LINE, on_lines
from .products import blas_copies

#: Sizes of tiles that are tried, and the most outputs that one has.
TALL, WIDE, MOST = (1, 2, 3, 4, 6, 8, 12, 16), (*range(1, 17), 20, 24, 32), 64
#: Bytes of planes and results of some channels, of which fewer are read and written in short runs;
#: and of strips that are cut and multiplied at a time.
ROOM, ABREAST, NEAR = 1 << 20, 32, 1 << 18
#: Numbers that are turned at a time; of lines that lie a multiple of so many bytes apart, the
#: nearest cache holds so many.
TURNED, SETS, WAYS = 9216, 4096, 12
#: What the choice supposes of one core, in nanoseconds: to copy a number into a plane, from there
#: a row of a strip, and an output from its tile; to fetch a weight; to begin a product; and a step
#: of it with sixteen columns, with AVX-512 and without.
TURN, PIECE, LEFT, WEIGHT, BEGIN, STEP, NARROW_STEP = 0.5, 2.5, 0.45, 0.2, 80, 0.28, 0.44
#: It has to win by so much: beside others on other cores, what passes through caches takes longer.
MARGIN = 0.78
#: Windows of fewer taps are not worth a try.
FEWEST = 10
#: Weights with their zeros may take so many times the memory of the images.
HEAVY = 4


class Tile(NamedTuple):
    """How many outputs of a channel are made together, down and across."""

    tall: int
    wide: int


class Strips(NamedTuple):
    """Where strips of some output rows of a channel, and the results, lie."""

    #: Strips, and for how many rows of tiles each has memory.
    across: int
    pitch: int
    #: What a tile meets, and the rows from it to the next.
    rows: int
    columns: int
    step: int
    #: Columns from a strip to the next.
    stride: int
    #: Every so many-th tile begins behind this one's end; so many are multiplied together.
    apart: int
    together: int

    @property
    def tall(self) -> int:
        """The rows of a strip."""
        return self.pitch * self.step

    @property
    def wide(self) -> int:
        """The columns that all strips meet."""
        return (self.across - 1) * self.stride + self.columns

    @property
    def size(self) -> int:
        """The numbers of a channel."""
        more = max(self.rows - self.step, 0)
        return (self.apart * self.together * self.step + more) * self.columns

    @property
    def tiles(self) -> int:
        """The tiles of a channel, those between strips too."""
        return self.apart * self.together


def strips(sizes: Sizes, tile: Tile, height: int) -> Strips:
    """Where strips of so many output rows lie."""
    step = tile.tall * sizes.strides[0]
    rows = (tile.tall - 1) * sizes.strides[0] + sizes.reach[0]
    columns = (tile.wide - 1) * sizes.strides[1] + sizes.reach[1]
    down, across = -(-height // tile.tall), -(-sizes.out[1] // tile.wide)
    pitch = down + -(-max(rows - step, 0) // step)
    apart = -(-rows // step)
    together = -(-across * pitch // apart)
    stride = tile.wide * sizes.strides[1]
    return Strips(across, pitch, rows, columns, step, stride, apart, together)


def quickest_tile(sizes: Sizes) -> Tile | None:
    """The tile by which a depthwise convolution is quickest; None where sums are as quick."""
    if sizes.shuffled or sizes.led or prod(sizes.kernel) < FEWEST:
        return None
    height, width = sizes.out
    made = sizes.outer // sizes.groups
    least, best = MARGIN * depthwise.nanoseconds(sizes), None
    most = HEAVY * height * width * (prod(sizes.strides) + made)
    for tall, wide in product(TALL, WIDE):
        tile = Tile(tall, wide)
        if tall > height or wide > width or tall * wide * made > MOST:
            continue
        if weight_count(sizes, tile) <= most:
            took = nanoseconds(sizes, tile)
            if took < least:
                least, best = took, tile
    return best


def weight_count(sizes: Sizes, tile: Tile) -> int:
    """The numbers of the matrix of a channel."""
    at = strips(sizes, tile, sizes.out[0])
    return at.rows * at.columns * prod(tile) * (sizes.outer // sizes.groups)


def nanoseconds(sizes: Sizes, tile: Tile) -> float:
    """About how long a channel takes by products, on one core."""
    made, (height, width) = sizes.outer // sizes.groups, sizes.out
    at = strips(sizes, tile, height)
    copied = at.tall * (at.wide * TURN + at.across * PIECE) + height * width * made * LEFT
    columns = -(-prod(tile) * made // 16)
    step = NARROW_STEP if blas_copies() else STEP
    products = at.apart * BEGIN + at.tiles * at.rows * at.columns * columns * step
    return copied + products + weight_count(sizes, tile) * WEIGHT


def in_bands(sizes: Sizes, tile: Tile) -> Array:
    """For each channel the matrix (rows * columns, tall * wide * made) that makes a tile."""
    at, (tall, wide) = strips(sizes, tile, sizes.out[0]), tile
    groups, made = sizes.groups, sizes.outer // sizes.groups
    found = on_lines(groups, at.rows, at.columns, tall, wide, made)
    found.fill(0)
    weights = sizes.weights.reshape(groups, made, *sizes.kernel).transpose(0, 2, 3, 1)
    for down, across in np.ndindex(tall, wide):
        met = tuple(
            slice(place * stride, place * stride + reach, gap)
            for place, stride, reach, gap in zip(
                (down, across), sizes.strides, sizes.reach, sizes.dilations, strict=True
            )
        )
        found[:, *met, down, across] = weights
    return found.reshape(groups, at.rows * at.columns, -1)


def banded(work: Work, tile: Tile, matrices: Array) -> list[list[Part]]:
    """The steps: workers share channels, or rows where there are few channels."""
    sizes, _, target, _, abreast, scratch = work
    images, height = len(target), sizes.out[0]
    if sizes.groups >= cuts(images, abreast) * ABREAST // 2:
        runs = shares(images, sizes.groups, abreast)
        lanes = [(image, (0, height), channels) for image, channels in runs]
    else:
        lanes = [(image, run, (0, sizes.groups)) for image, run in shares(images, height, abreast)]
    steps: list[Part] = []
    for part, (image, (top, bottom), (first, stop)) in scratch.dealt(lanes):
        parts: list[Part] = []
        for rows, channels in _blocks(sizes, tile, (top, bottom), (first, stop)):
            scratch.reset()
            parts += _block(work, tile, matrices[channels], image, rows, channels, part)
        steps.append(sequence(parts))
    return [steps]


def _blocks(
    sizes: Sizes, tile: Tile, rows: tuple[int, int], channels: tuple[int, int]
) -> list[tuple[slice, slice]]:
    """Runs of rows and channels, planes and results of which stay in a core's cache."""
    (top, bottom), (first, stop) = rows, channels
    outputs = prod(tile) * (sizes.outer // sizes.groups)

    def nbytes(height: int) -> int:
        at = strips(sizes, tile, height)
        return 4 * (at.tall * at.wide + at.tiles * outputs)

    least = min(ABREAST, stop - first)
    pieces = -(-nbytes(bottom - top) * least // ROOM)
    runs = spans(bottom - top, min(pieces, -(-(bottom - top) // tile.tall)))
    each = max(least, ROOM // nbytes(max(end - begin for begin, end in runs)))
    return [
        (slice(top + begin, top + end), slice(first + left, first + right))
        for begin, end in runs
        for left, right in spans(stop - first, -(-(stop - first) // each))
    ]


def _block(
    work: Work, tile: Tile, matrices: Array, image: int, rows: slice, channels: slice, part: int
) -> list[Part]:
    """Parts that make some rows of some channels."""
    sizes, source, _, finish, _, scratch = work
    count, _, outputs = matrices.shape
    made = outputs // prod(tile)
    at = strips(sizes, tile, rows.stop - rows.start)
    # Channels an odd number of cache lines apart do not push each other out of the cache.
    spare = int(at.tiles * outputs % (2 * LINE) == 0)
    results = scratch.take(part, count, at.tiles + spare, outputs)
    outer = slice(channels.start * made, channels.stop * made)
    block = finish.target(image, rows, outer)
    fill = sizes.fill[channels] if isinstance(sizes.fill, np.ndarray) else sizes.fill
    planes = scratch.take(part, count, at.tall, at.wide)
    start = rows.start * sizes.strides[0] - sizes.pads[0][0], -sizes.pads[1][0]
    given, turned = source[image, :, :, channels], planes.transpose(1, 2, 0)
    parts = _turned(given, start, turned, fill, part, scratch)
    if spare:
        parts.append(filling(results[:, at.tiles :], 0.0))
    few = max(1, NEAR // (4 * at.size))
    room = scratch.take(part, min(few, count), at.size)
    for first, stop in spans(count, -(-count // few)):
        some = room[: stop - first]
        parts += _cut(planes[first:stop], at, some)
        parts += _multiplied(some, at, matrices[first:stop], results[first:stop, : at.tiles])
    if finish.bias is not None:
        bias = np.tile(finish.bias[outer].reshape(count, 1, made), outputs // made)
        if made == 1:  # the same for all of a channel, which then is one run
            bias, results = bias[:, :, :1], results.reshape(count, -1, 1)
        parts.append(call(np.add, results, bias, out=results))
        results = results.reshape(count, -1, outputs)
    if finish.alike:
        # Results are one run of memory, on which this is done sooner than on rows of the output.
        followed = finish.everywhere(results.reshape(-1, outputs))
        return [*parts, *followed, *_laid(results, at, tile, block)]
    out = scratch.take(part, *block.shape)
    parts += _laid(results, at, tile, out)
    return parts + finish.parts(out, image, rows, outer, biased=True)


def _cut(planes: Array, at: Strips, room: Array) -> list[Part]:
    """Parts that cut planes into strips: each row of one is copied as one element."""
    used = at.across * at.tall * at.columns
    cut = room[:, :used].reshape(len(room), at.across, at.tall, at.columns)
    piece = np.dtype(f"V{4 * at.columns}")
    plane, line, number = planes.strides
    view = np.ndarray(cut.shape[:3], piece, planes, 0, (plane, number * at.stride, line))
    copies = [call(np.copyto, cut.view(piece)[..., 0], view)]
    return [*copies, filling(room[:, used:], 0.0)] if used < room.shape[1] else copies


def _multiplied(room: Array, at: Strips, matrices: Array, results: Array) -> list[Part]:
    """Parts that multiply what tiles meet, where it lies in the strips."""
    plane, number = room.strides
    line = number * at.columns * at.step
    count, taken, outputs = matrices.shape
    windows = as_strided(
        room, (count, at.apart, at.together, taken), (plane, line, line * at.apart, number),
        writeable=False,
    )  # fmt: skip
    into = results.reshape(count, at.together, at.apart, outputs).swapaxes(1, 2)
    return [call(np.matmul, windows, matrices[:, None], out=into)]


def _turned(
    image: Array,
    start: tuple[int, int],
    room: Array,
    fill: float | Array,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Parts that copy an image (H, W, C) from a row and column on, which may lie before it.

    The room (H, W, C) lies plane by plane, so a few pixels are copied at a time: they are met
    again for each channel, and should still be in the nearest cache. Where they lie so far apart
    that few are held there, they are put side by side before.
    """
    (top, left), (tall, wide, _) = start, room.shape
    begin, end = max(top, 0), min(top + tall, image.shape[0])
    first, stop = max(left, 0), min(left + wide, image.shape[1])
    if begin >= end or first >= stop:
        return [filling(room, fill)]
    middle = room[begin - top : end - top]
    within, given = middle[:, first - left : stop - left], image[begin:end, first:stop]
    parts: list[Part] = []
    pixels = TURNED // given.shape[2]
    if _held(given) < pixels and given.strides[1] > given.itemsize * given.shape[2]:
        beside = scratch.take(part, *given.shape)
        parts.append(call(np.copyto, beside, given))
        given = beside
    pixels = max(1, min(pixels, _held(given)))
    for low, high in spans(end - begin, -(-(end - begin) * (stop - first) // pixels)):
        parts.append(call(np.copyto, within[low:high], given[low:high]))
    borders = [
        room[: begin - top], room[end - top :],
        middle[:, : first - left], middle[:, stop - left :],
    ]  # fmt: skip
    return [*parts, *(filling(border, fill) for border in borders if border.size)]


def _held(image: Array) -> int:
    """How many neighbours of an image the nearest cache holds: each belongs to one of its sets."""
    return WAYS * (SETS // gcd(SETS, image.strides[1]))


def _laid(results: Array, at: Strips, tile: Tile, out: Array) -> list[Part]:
    """Parts that copy tiles of channels to where they belong: rows, columns, channels."""
    count, made = len(results), out.shape[2] // len(results)
    tiled = results[:, : at.across * at.pitch].reshape(count, at.across, at.pitch, *tile, made)
    tiled = tiled.transpose(3, 4, 2, 1, 0, 5)
    return [
        part for turn in range(made) for part in untiled(tiled[..., turn], out[:, :, turn::made])
    ]
