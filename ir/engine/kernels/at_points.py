"""Convolution of each channel by itself by values at points down columns: fewer products of each.

What a column of ``size`` outputs takes of a column of a window is a product of two polynomials,
the coefficients of which are pixels and taps; it is known by its values at as many points as it
has coefficients. Rows of pixels are multiplied by a matrix to find these; there one product for
each point stands for a whole column of taps, summed over the columns of a window; and another
matrix makes rows of outputs. Both are products that BLAS makes, eight times as fast as shifted
rows are summed. At a complex point three products of real numbers do for it and its conjugate.
Relative error below 1e-6.

Of a stride, what windows skip to are polynomials of their own. Nothing is copied for the sake of
padding above and below: where tiles reach beyond the image, the matrix has fewer columns.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..workers import Part, cuts, hands, single_blas, spans
from .banded import SETS, WAYS
from .blocks import CACHE, Scratch, are_moderate, filling, lined, padded, sequence
from .convolution_work import Sizes, Work
from .depthwise import RUN, RUN_BEGINS, SUM
from .lines import LINE
from .products import blas_copies, by_long_rows, makes_most_of_zen_5
from .repeats import divisor

#: Polynomials are evaluated at 0, 1, infinity and -1, at these places as far as there have to be
#: others, and at roots of one. More places nearer to each other lose digits.
PLACES = (0.5, -2.0, -0.5, 2.0)
#: Rows of tiles that are tried, and the most points of one.
SIZES, MOST = (*range(2, 17), 20, 24, 28, 32, 40, 48, 56, 64), 128
#: Windows of fewer rows are not worth a try.
FEWEST = 3
#: Fewer channels are not worth a turn of their own, and fewer points no product.
TOGETHER, AT_LEAST = 48, 4
#: Tiled weights of a point, which meet one run of values after the other, are so many numbers.
TAPS_RUN = 1 << 13
#: What the choice supposes of one core, in nanoseconds: to begin a sum, and to copy an input, or
#: an output, where workers share channels.
BEGIN, COPY = 0.08, 0.15


class Rates(NamedTuple):
    """What it supposes of a processor, and by how much it has to win: it passes caches oftener."""

    #: A product in one of matrices, and all calls for a tile.
    product: float
    calls: float
    margin: float
    #: A value at a point, and an output.
    value: float = 0.056
    output: float = 0.09


USUAL, COPYING, OF_ZEN_5 = (
    Rates(0.0155, 4000, 0.9), Rates(0.0155, 4000, 0.9, 0.2, 0.32), Rates(0.008, 2500, 0.95)
)  # fmt: skip


def rates() -> Rates:
    """What holds here; there are some for BLAS that copies what it multiplies."""
    return COPYING if blas_copies() else OF_ZEN_5 if makes_most_of_zen_5() else USUAL


class Points(NamedTuple):
    """The matrices of a tile of outputs: outputs @ ((taps @ window) * (inputs @ pixels))."""

    size: int
    taps: Array
    inputs: Array
    outputs: Array

    @property
    def one(self) -> int:
        """The point 1, to whose powers all outputs are alike: what is added there reaches all."""
        return int(np.flatnonzero((self.outputs == 1).all(axis=0))[0])


@cache
def points(taps: int, stride: int, size: int) -> Points:
    """The matrices for windows of so many taps, at so many stops."""
    reach = (size - 1) * stride + taps
    found: list[tuple[Array, Array, Array]] = []
    for first in range(min(stride, taps)):
        window = len(range(first, taps, stride))
        of_taps, of_inputs, of_outputs = _dense(window, size)
        by_taps = np.zeros((len(of_taps), taps))
        by_taps[:, first::stride] = of_taps
        by_inputs = np.zeros((len(of_taps), reach))
        by_inputs[:, first::stride][:, : window + size - 1] = of_inputs
        found.append((by_taps, by_inputs, of_outputs))
    of_taps, of_inputs, of_outputs = (np.concatenate(some) for some in zip(*found, strict=True))
    inputs, outputs = (some.astype(np.float32, order="C") for some in (of_inputs, of_outputs.T))
    return Points(size, of_taps, inputs, outputs)


def _dense(taps: int, size: int) -> tuple[Array, Array, Array]:
    """What taps, pixels and outputs are multiplied by where windows stop everywhere.

    Sums of ``taps[q, i] * inputs[q, n] * outputs[q, j]`` over q have to be one where n = i + j,
    and zero elsewhere: inputs are the smallest numbers with which they are.
    """
    by_taps, by_outputs = _values(taps, taps + size - 1), _values(size, taps + size - 1)
    pairs = np.einsum("qi,qj->ijq", by_taps, by_outputs).reshape(taps * size, -1)
    wanted = np.eye(taps + size - 1)[np.add.outer(np.arange(taps), np.arange(size))]
    with single_blas:  # the same numbers, whatever the number of threads
        inputs = np.linalg.lstsq(pairs, wanted.reshape(taps * size, -1), rcond=None)[0]
    return by_taps, inputs, by_outputs


def _values(length: int, count: int) -> Array:
    """The matrix (products, coefficients) that gives values of a polynomial at so many points."""
    powers = np.arange(length)
    if count < 2:
        return np.ones((1, 1))
    found = [powers == 0, powers == length - 1][: 1 if count == 2 else 2]
    roots = _roots(count)
    # Beyond one it is evaluated from its other end, so that no power is large.
    found += [
        place ** (powers - (length - 1 if abs(place) > 1 else 0))
        for place in PLACES[: count - len(found) - roots]
    ]
    for turn in range(roots // 2 + 1):
        angles = 2 * np.pi * turn * powers / roots
        if turn and 2 * turn < roots:
            found += [np.cos(angles), np.sin(angles), np.cos(angles) + np.sin(angles)]
        else:
            found.append(np.cos(angles))
    return np.array(found, np.float64)


def _roots(count: int) -> int:
    """How many of so many points are roots of one."""
    return max(count - 2 - len(PLACES), min(count - 2, 2), 1)


def count_of(taps: int, stride: int, size: int) -> int:
    """How many products a row of outputs takes for each row of a window."""
    total = 0
    for first in range(min(stride, taps)):
        count = len(range(first, taps, stride)) + size - 1
        total += count + (_roots(count) - 1) // 2
    return total


def quickest_size(sizes: Sizes, least: float, pieces: int) -> int | None:
    """The size of tiles that take the least time; None where none take less than this.

    So many pieces of work are wanted of all images.
    """
    (taps, _), (stride, _) = sizes.kernel, sizes.strides
    if taps < FEWEST or sizes.outer != sizes.groups or sizes.dilations != (1, 1):
        return None
    # What is not finite, or nearly not, would spread over its column.
    if sizes.shuffled or sizes.led or not are_moderate(sizes.weights, sizes.fill):
        return None
    best, least = None, rates().margin * least
    for size in SIZES:
        if -(-taps // stride) + size - 1 <= MOST and size <= max(sizes.out[0], 2):
            took = nanoseconds(sizes, size, pieces)
            if took < least:
                best, least = size, took
    return best


def nanoseconds(sizes: Sizes, size: int, pieces: int) -> float:
    """About how long a channel takes by tiles of so many outputs, on one core."""
    (tall, wide), (down, along), (height, width) = sizes.kernel, sizes.strides, sizes.out
    rate = rates()
    products, tiles = count_of(tall, down, size), _tiles(sizes, size)
    columns = min(sizes.size[1], (width - 1) * along + wide)
    met = sum(tile.met for tile in tiles)
    evaluated = columns * products * (len(tiles) * rate.value + met * rate.product)
    each = SUM + RUN_BEGINS / (RUN if along == 1 else sizes.groups)
    summed = len(tiles) * products * width * (wide * each + BEGIN)
    made = height * width * (rate.output + products * rate.product)
    lanes, across = _shared(sizes, len(tiles), cuts(sizes.images, pieces))
    copied = COPY * (sizes.size[0] * columns + height * width) if across > 1 else 0.0
    if np.any(sizes.fill):  # rows of padding are put beside those of an image
        copied += COPY * columns * 2 * ((size - 1) * down + tall)
    spent = evaluated + summed + made + copied + len(tiles) * rate.calls * across / sizes.groups
    # Who has the most tiles is waited for.
    return spent * (-(-len(tiles) // lanes) * lanes / len(tiles))


class Met(NamedTuple):
    """What a tile meets: from which row on, how many lie before the image, and how many do not."""

    start: int
    before: int
    met: int


def _tiles(sizes: Sizes, size: int) -> list[Met]:
    (stride, _), (tall, _), ((pad, _), _) = sizes.strides, sizes.size, sizes.pads
    return tiles_of(sizes.out[0], tall, sizes.kernel[0], stride, pad, size)


def tiles_of(out: int, tall: int, taps: int, stride: int, pad: int, size: int) -> list[Met]:
    """The tiles of so many rows of outputs, one below the other, of an image so tall."""
    reach, found = (size - 1) * stride + taps, []
    for tile in range(-(-out // size)):
        first = tile * size * stride - pad
        start = min(max(first, 0), tall)
        found.append(Met(start, start - first, max(0, min(first + reach, tall) - start)))
    return found


def _shared(sizes: Sizes, tiles: int, each: int) -> tuple[int, int]:
    """Into how many runs tiles, and channels, are cut of an image that is cut into so many."""
    down = next(down for down in range(each, 0, -1) if not (each % down or tiles % down))
    if sizes.groups >= each // down * TOGETHER:
        return down, each // down
    return min(each, tiles), 1


def at_points(work: Work, size: int) -> list[list[Part]]:
    """The steps: workers share tiles, and channels where there are too few."""
    sizes, _, target, _, abreast, scratch = work
    found, tiles = points(sizes.kernel[0], sizes.strides[0], size), _tiles(sizes, size)
    weights = at(found, sizes.weights[:, 0])
    steps: list[Part] = []
    laid: dict[tuple[int, int], Array] = {}

    def cut(each: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        down, across = _shared(sizes, len(tiles), each)
        return list(product(spans(len(tiles), down), runs_of(sizes.groups, across)))

    lanes = hands(len(target), abreast, cut)
    for part, (image, ((begin, end), (left, right))) in scratch.dealt(lanes):
        parts: list[Part] = []
        few = max(TOGETHER, CACHE // (4 * len(found.taps) * sizes.out[1]))
        for first, stop in runs_of(right - left, round((right - left) / few)):
            run = left + first, left + stop
            channels = slice(*run)
            if run not in laid:  # lanes of some images may have other runs than those of others
                laid[run] = _tiled(sizes, weights[:, :, channels])
            lane = Lane(work, found, laid[run], image, channels, part)
            parts += lane.opened()
            for number in range(begin, end):
                parts += lane.rows(tiles[number], number * size)
        steps.append(sequence(parts))
    return [steps]


def at(found: Points, weights: Array) -> Array:
    """Columns of taps (channels, taps, ...) at points: (products, ..., channels)."""
    taps = np.moveaxis(weights, 0, -1).astype(np.float64, order="C")
    with single_blas:
        made = found.taps @ taps.reshape(len(taps), -1)
    return made.astype(np.float32).reshape(-1, *taps.shape[1:])


def _tiled(sizes: Sizes, weights: Array) -> Array:
    """Weights (products, taps, channels) as rows for as many neighbours as are one run."""
    _, taps, channels = weights.shape
    most = min(RUN, TAPS_RUN // taps) // channels if sizes.strides[1] == 1 else 1
    return np.ascontiguousarray(
        np.tile(weights, _neighbours(sizes.out[1], max(most, 1), channels))
    )


def _neighbours(width: int, most: int, channels: int) -> int:
    """How many are one run: a divisor of the width, or more where the last run may be too long."""

    def took(times: int) -> float:
        runs = -(-width // times)
        return runs * (RUN_BEGINS + times * channels * SUM)

    return min(divisor(width, most), -(-width // -(-width // most)), key=took)


def runs_of(channels: int, pieces: int) -> list[tuple[int, int]]:
    """Runs of about as many channels, each a whole number of cache lines where all are."""
    unit = 16 if channels % 16 == 0 else 1
    return [(begin * unit, end * unit) for begin, end in spans(channels // unit, pieces)]


class Lane:
    """Some channels of an image, and the memory for what is made of them in between."""

    def __init__(
        self, work: Work, found: Points, weights: Array, image: int, channels: slice, part: int
    ) -> None:
        self.work, self.found, self.image, self.channels = work, found, image, channels
        sizes, scratch = work.sizes, work.scratch
        self.source = work.source[image, :, :, channels]
        products, taps, _ = weights.shape
        count = channels.stop - channels.start
        (_, width), (_, along), self.left = sizes.out, sizes.strides, sizes.pads[1][0]
        #: The columns of the image that windows meet.
        self.columns = max(0, min(sizes.size[1], (width - 1) * along + taps - self.left))
        # So many neighbours are summed as one run; the last may reach beyond what is wanted.
        self.weights, times = weights, weights.shape[2] // count
        runs = -(-width // times)
        wide = (runs * times - 1) * along + taps
        #: What is the padding, if it is not zero; of each point, its values.
        self.fill = np.broadcast_to(np.float32(sizes.fill), sizes.groups)[channels]
        self.outside = None
        if self.fill.any():
            self.outside = np.multiply.outer(found.inputs.sum(axis=1), self.fill)[:, None]
        scratch.reset()
        few = max(AT_LEAST, CACHE // (8 * wide * count))
        self.groups = spans(products, -(-products // few))
        most = max(end - begin for begin, end in self.groups)
        take = partial(_taken, scratch, part)
        self.values = take(most, wide, count)
        self.sums = take(products, runs * times, count).reshape(products, -1)
        #: What is wanted of them.
        self.wanted = self.sums[:, : width * count]
        self.block = take(found.size, width, count)
        self.given = take(found.inputs.shape[1], self.columns, count)
        self.biased, bias = self.wanted[found.one].reshape(width, count), work.finish.bias
        self.bias = None if bias is None else np.broadcast_to(bias[channels], (width, count))
        row, pixel, number = self.values.strides
        self.windows = as_strided(
            self.values, (most, runs, taps, times * count),
            (row, pixel * along * times, pixel, number), writeable=False,
        )  # fmt: skip

    def opened(self) -> list[Part]:
        """Parts that fill what is and stays padding beside values."""
        return [] if self.outside is not None else self._beside(self.values, 0.0)

    def _beside(self, values: Array, fill: float | Array) -> list[Part]:
        outside = values[:, : self.left], values[:, self.left + self.columns :]
        return [filling(border, fill) for border in outside if border.size]

    def rows(self, tile: Met, first: int) -> list[Part]:
        """Parts that make the rows of outputs of a tile, from one on."""
        finish, height = self.work.finish, self.work.sizes.out[0]
        rows = slice(first, min(first + self.found.size, height))
        parts, given, matrix = self._met(tile)
        for begin, end in self.groups:
            values = self.values[: end - begin]
            if self.outside is not None:
                parts += self._beside(values, self.outside[begin:end])
            inner = values[:, self.left : self.left + self.columns]
            if given.size:
                parts.append(
                    by_long_rows(matrix[begin:end], given, inner.reshape(end - begin, -1))
                )
            elif inner.size:
                parts.append(filling(inner, 0.0))
            parts.append(
                _summed(self.windows[: end - begin], self.weights[begin:end], self.sums[begin:end])
            )
        if self.bias is not None:
            one, scratch = self.biased, self.work.scratch
            parts.append(lined(np.add, one, self.bias, one, scratch))
        block = finish.target(self.image, rows, self.channels)
        if block.dtype != np.float32 or not _has_long_rows(block):
            block = self.block[: len(block)]
        out = block.reshape(len(block), -1)
        parts.append(by_long_rows(self.found.outputs[: len(block)], self.wanted, out))
        return parts + finish.parts(block, self.image, rows, self.channels, biased=True)

    def _met(self, tile: Met) -> tuple[list[Part], Array, Array]:
        """What puts the rows that a tile meets side by side, these, and what multiplies them."""
        reach = self.found.inputs.shape[1]
        is_padded = self.outside is not None and tile.met < reach
        before, met = (0, reach) if is_padded else (tile.before, tile.met)
        first = tile.start - tile.before + before
        parts: list[Part] = []
        given = self.source[tile.start : tile.start + tile.met, : self.columns]
        pushed_out = given.strides[0] % SETS == 0 and met > WAYS
        if is_padded or pushed_out or not _has_long_rows(given):
            given = self.given[:met]
            rows = first, first + met
            parts = padded(self.source, rows, (0, self.columns), given, self.fill)
        matrix = np.ascontiguousarray(self.found.inputs[:, before : before + met])
        return parts, given.reshape(met, self.columns * given.shape[2]), matrix


def _taken(scratch: Scratch, part: int, rows: int, columns: int, channels: int) -> Array:
    """Memory for rows of pixels that do not push each other out of the nearest cache."""
    size = columns * channels
    apart = size if size * 4 % SETS else size + LINE
    return scratch.take(part, rows, apart)[:, :size].reshape(rows, columns, channels)


def _has_long_rows(image: Array) -> bool:
    """Whether the pixels of each row are one run of numbers."""
    _, pixel, number = image.strides
    return number == image.itemsize and pixel == number * image.shape[2]


def _summed(windows: Array, weights: Array, out: Array) -> Part:
    """The part that sums the columns of windows, each value times that of the taps."""
    sums = out.reshape(windows.shape[0], windows.shape[1], windows.shape[3])

    def run() -> None:
        np.einsum("qmix,qix->qmx", windows, weights, out=sums)

    return run
