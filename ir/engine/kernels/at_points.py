"""Convolution of each channel by itself by values at points along rows: fewer products of each.

What a row of ``size`` outputs takes of each row of a window is a product of two polynomials, the
coefficients of which are the pixels and the taps; it is known by its values at as many points as
it has coefficients. Pixels are multiplied by a matrix to find theirs; there one product stands
for each, summed over the rows of a window; and another matrix makes outputs of these. Both are
products that BLAS makes, eight times as fast as shifted rows are summed. At a complex point three
products of real numbers do for it and its conjugate. Relative error below 1e-6.

Of a stride, what windows skip to are polynomials of their own. Nothing is copied for the sake of
padding: where tiles reach beyond the image, the matrix has fewer columns.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..workers import Part, shares, spans
from .blocks import CACHE, filling, padded, sequence
from .calls import call
from .convolution_work import Sizes, Work
from .depthwise import SUM
from .products import blas_copies
from .repeats import divisor

#: Polynomials are evaluated at 0, at infinity, at these places as far as there have to be others,
#: and at roots of one, at least at 1 and -1. More places nearer to each other lose digits.
PLACES = (0.5, -2.0, -0.5, 2.0)
#: Sizes of tiles that are tried, and the most points of one.
SIZES, MOST = (*range(2, 17), 20, 24, 28, 32, 40, 48, 56, 64), 128
#: Windows with fewer taps in a row are not worth a try.
FEWEST = 3
#: Numbers that are summed in one run, and channels of which not fewer are worked on together.
RUN, TOGETHER = 2304, 96
#: Rows in which windows of workers meet may be such a part of their rows: else each has channels.
AGAIN = 0.5
#: What the choice supposes of one core, in nanoseconds: a product in one of matrices; a value at a
#: point, and an output, and the same where BLAS copies what it multiplies; and to begin a sum.
PRODUCT, VALUE, OUTPUT, VALUE_COPIED, OUTPUT_COPIED, BEGIN = 0.0155, 0.056, 0.09, 0.2, 0.32, 0.08
#: It has to win by so much: there are more calls, and more passes through caches.
MARGIN = 0.9


class Points(NamedTuple):
    """The matrices of a tile of outputs: outputs @ ((taps @ window) * (inputs @ pixels))."""

    size: int
    stride: int
    taps: Array
    inputs: Array
    outputs: Array


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
    by_taps, by_inputs, outputs = (np.concatenate(some) for some in zip(*found, strict=True))
    return Points(
        size,
        stride,
        by_taps,
        by_inputs.astype(np.float32),
        outputs.T.astype(np.float32, order="C"),
    )


def _dense(taps: int, size: int) -> tuple[Array, Array, Array]:
    """What taps, pixels and outputs are multiplied by where windows stop everywhere.

    Sums of ``taps[q, i] * inputs[q, n] * outputs[q, j]`` over q have to be one where n = i + j,
    and zero elsewhere: inputs are the smallest numbers with which they are.
    """
    by_taps, by_outputs = _values(taps, taps + size - 1), _values(size, taps + size - 1)
    pairs = np.einsum("qi,qj->ijq", by_taps, by_outputs).reshape(taps * size, -1)
    wanted = np.eye(taps + size - 1)[np.add.outer(np.arange(taps), np.arange(size))]
    inputs = np.linalg.lstsq(pairs, wanted.reshape(taps * size, -1), rcond=None)[0]
    return by_taps, inputs, by_outputs


def _values(length: int, count: int) -> Array:
    """The matrix (products, coefficients) that gives values of a polynomial at so many points."""
    powers = np.arange(length)
    if count < 2:
        return np.ones((1, 1))
    found = [powers == 0, powers == length - 1]
    roots = _roots(count)
    # Beyond one it is evaluated from its other end, so that no power is large.
    found += [
        place ** (powers - (length - 1 if abs(place) > 1 else 0))
        for place in PLACES[: count - 2 - roots]
    ]
    for turn in range(roots // 2 + 1):
        angles = 2 * np.pi * turn * powers / max(roots, 1)
        if turn and 2 * turn < roots:
            found += [np.cos(angles), np.sin(angles), np.cos(angles) + np.sin(angles)]
        elif roots:
            found.append(np.cos(angles))
    return np.array(found, np.float64)


def _roots(count: int) -> int:
    """How many of so many points are roots of one."""
    return max(count - 2 - len(PLACES), min(count - 2, 2))


def _products(taps: int, stride: int, size: int) -> int:
    """How many products a row of outputs takes for each row of a window."""
    total = 0
    for first in range(min(stride, taps)):
        count = len(range(first, taps, stride)) + size - 1
        total += count + max(0, (_roots(count) - 1) // 2)
    return total


def quickest_size(sizes: Sizes, least: float) -> int | None:
    """The size of tiles that take the least time; None where none take less than this."""
    taps, stride, fill = sizes.kernel[1], sizes.strides[1], sizes.fill
    if taps < FEWEST or sizes.outer != sizes.groups or sizes.dilations != (1, 1):
        return None
    if sizes.shuffled or sizes.led or isinstance(fill, np.ndarray) or fill:
        return None
    # What is not finite, or nearly not, would spread over its row.
    with np.errstate(all="ignore"):
        if not np.isfinite(sizes.weights * np.float32(prod(sizes.kernel))).all():
            return None
    best, least = None, MARGIN * least
    for size in SIZES:
        most = (
            max(len(range(first, taps, stride)) for first in range(min(stride, taps))) + size - 1
        )
        if most <= MOST and size <= max(sizes.out[1], 2):
            took = nanoseconds(sizes, size)
            if took < least:
                best, least = size, took
    return best


def nanoseconds(sizes: Sizes, size: int) -> float:
    """About how long a channel takes by tiles of so many outputs, on one core."""
    (tall, taps), (down, stride), (height, width) = sizes.kernel, sizes.strides, sizes.out
    value, output = (VALUE_COPIED, OUTPUT_COPIED) if blas_copies() else (VALUE, OUTPUT)
    products, tiles = _products(taps, stride, size), -(-width // size)
    met = sum(tile.met for tile in _tiles(sizes, size))
    rows = min(sizes.size[0], (height - 1) * down + tall)
    to_points = rows * products * (tiles * value + met * PRODUCT / min(stride, taps))
    summed = height * tiles * products * (tall * SUM + BEGIN)
    return to_points + summed + height * width * (output + products * PRODUCT)


class Tile(NamedTuple):
    """What a tile meets of a row of an image: from where on, and what lies before the image."""

    start: int
    before: int
    met: int


def _tiles(sizes: Sizes, size: int) -> list[Tile]:
    """The tiles of so many outputs along a row."""
    stride, wide = sizes.strides[1], sizes.size[1]
    reach, found = (size - 1) * stride + sizes.kernel[1], []
    for tile in range(-(-sizes.out[1] // size)):
        first = tile * size * stride - sizes.pads[1][0]
        start = min(max(first, 0), wide)
        found.append(Tile(start, start - first, max(0, min(first + reach, wide) - start)))
    return found


def at_points(work: Work, size: int) -> list[list[Part]]:
    """The steps: workers share rows, or channels where many rows would be met by several."""
    sizes, _, target, _, abreast, scratch = work
    found = points(sizes.kernel[1], sizes.strides[1], size)
    images, height, channels = len(target), sizes.out[0], sizes.groups
    weights = np.einsum("qj,cij->iqc", found.taps, sizes.weights[:, 0]).astype(np.float32)
    pieces = max(1, abreast // min(images, abreast))
    halo = (pieces - 1) * max(sizes.kernel[0] - sizes.strides[0], 0)
    if halo > AGAIN * height * sizes.strides[0] and channels >= pieces * TOGETHER // 2:
        runs = _runs_of_channels(channels, pieces)
        lanes = [(image, (0, height), run) for image in range(images) for run in runs]
    else:
        lanes = [(image, run, (0, channels)) for image, run in shares(images, height, pieces)]
    steps: list[Part] = []
    for part, (image, (top, bottom), (left, right)) in scratch.dealt(lanes):
        parts: list[Part] = []
        few = _fitting(sizes, found, bottom - top)
        for first, stop in _runs_of_channels(right - left, -(-(right - left) // few)):
            some = slice(left + first, left + stop)
            by = np.ascontiguousarray(weights[:, :, some])
            lines = 4 * len(found.taps) * (stop - first) * (1 + sizes.strides[0])
            most = max(CACHE // lines, 2 * sizes.kernel[0])
            for begin, end in spans(bottom - top, -(-(bottom - top) // most)):
                rows = slice(top + begin, top + end)
                parts += _some(work, found, by, image, rows, some, part)
        steps.append(sequence(parts))
    return [steps]


def _runs_of_channels(channels: int, pieces: int) -> list[tuple[int, int]]:
    """Runs of about as many channels, each a whole number of cache lines where all are."""
    unit = 16 if channels % 16 == 0 else 1
    return [(begin * unit, end * unit) for begin, end in spans(channels // unit, pieces)]


def _fitting(sizes: Sizes, found: Points, height: int) -> int:
    """Of how many channels values at the points of a tile stay in the cache."""
    rows = height * (1 + sizes.strides[0]) + sizes.kernel[0]
    return max(CACHE // (4 * len(found.taps) * rows), TOGETHER)


def _some(
    work: Work, found: Points, weights: Array, image: int, rows: slice, channels: slice,
    part: int,
) -> list[Part]:  # fmt: skip
    """Parts that make some rows of some channels, a strip of tiles at a time."""
    sizes, source, _, finish, _, scratch = work
    (tall, products, count), (down, _), width = weights.shape, sizes.strides, sizes.out[1]
    height, tiles = rows.stop - rows.start, _tiles(sizes, found.size)
    met = (height - 1) * down + tall
    strip = max(1, CACHE // (4 * products * count * (met + height + tall)))
    scratch.reset()
    block = finish.target(image, rows, channels)
    if block.dtype != np.float32 or (finish and not block.flags.c_contiguous):
        block = scratch.take(part, height, width, count)
    given, parts = source[image, :, :, channels], []
    top = rows.start * down - sizes.pads[0][0]
    first, last = (min(max(row, 0), len(given)) for row in (top, top + met))
    given = given[first:last]
    if given.dtype != np.float32 or given.strides[2] != given.itemsize:
        beside = scratch.take(part, *given.shape)
        parts += padded(given, (0, len(given)), (0, sizes.size[1]), beside, 0.0)
        given = beside
    edges = spans(len(tiles), -(-len(tiles) // strip))
    most = max(stop - begin for begin, stop in edges)
    values = scratch.take(part, met * most * products * count)
    sums = scratch.take(part, height * most * products * count)
    laid: dict[int, Array] = {}
    for begin, stop in edges:
        number = stop - begin
        shape = number, products, count
        at = values[: met * prod(shape)].reshape(met, *shape)
        made = sums[: height * prod(shape)].reshape(height, *shape)
        if number not in laid:
            laid[number] = _laid(weights, number)
        outside = [at[: first - top], at[last - top :]] if first < last else [at]
        parts += [filling(border, 0.0) for border in outside if border.size]
        if first < last:
            parts += _evaluated(found, given, tiles[begin:stop], at[first - top : last - top])
        parts.append(_summed(at.reshape(met, -1), laid[number], down, made.reshape(height, -1)))
        parts += _interpolated(found, made, block[:, begin * found.size :])
    return parts + finish.parts(block, image, rows, channels)


def _laid(weights: Array, times: int) -> Array:
    """Weights (rows, products, channels) of some tiles in runs (runs, rows, numbers)."""
    row = np.tile(weights.reshape(len(weights), -1), (1, times))
    lines, rest = divmod(row.shape[1], 16)
    run = divisor(row.shape[1], RUN) if rest else divisor(lines, RUN // 16) * 16
    return row.reshape(len(row), -1, run).transpose(1, 0, 2).copy()


def _evaluated(found: Points, rows: Array, tiles: list[Tile], out: Array) -> list[Part]:
    """Parts that find the values (rows, tiles, products, channels) at points of tiles."""
    row, column, _ = rows.strides
    parts: list[Part] = []
    begin = 0
    for (before, met), alike in groupby(tiles, lambda tile: (tile.before, tile.met)):
        first, *others = alike
        target = out[:, begin : begin + 1 + len(others)]
        begin += 1 + len(others)
        if not met:
            parts.append(filling(target, 0.0))
            continue
        view = as_strided(
            rows[:, first.start :], (len(rows), 1 + len(others), met, rows.shape[2]),
            (row, column * found.size * found.stride, column, 4), writeable=False,
        )  # fmt: skip
        matrix = np.ascontiguousarray(found.inputs[:, before : before + met])
        parts.append(call(np.matmul, matrix, view, out=target))
    return parts


def _summed(values: Array, weights: Array, down: int, out: Array) -> Part:
    """The part that sums the rows of windows, each value times that of the taps."""
    runs, tall, run = weights.shape
    line = values.strides[0]
    windows = as_strided(
        values, (len(out), runs, tall, run), (line * down, 4 * run, line, 4), writeable=False
    )
    sums = out.reshape(-1, runs, run)

    def run_sums() -> None:
        np.einsum("hmix,mix->hmx", windows, weights, out=sums)

    return run_sums


def _interpolated(found: Points, sums: Array, block: Array) -> list[Part]:
    """Parts that make rows (rows, columns, channels) of the sums at points of some tiles."""
    row, column, number = block.strides
    size, parts = found.size, []
    whole = min(sums.shape[1], block.shape[1] // size)
    rest = block.shape[1] % size if whole < sums.shape[1] else 0
    for first, count, wide in ((0, whole, size), (whole, 1, rest)):
        if count and wide:
            out = as_strided(
                block[:, first * size :], (len(block), count, wide, block.shape[2]),
                (row, column * size, column, number),
            )  # fmt: skip
            given = sums[:, first : first + count]
            parts.append(call(np.matmul, found.outputs[:wide], given, out=out))
    return parts
