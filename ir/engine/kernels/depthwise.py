"""Convolution of each channel by itself: weighted sums of shifted rows, no windows gathered."""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..workers import Part, cuts, hands, shares, spans
from .blocks import CACHE, padded, sequence
from .calls import call
from .convolution_work import Sizes, Work, reached
from .repeats import divisor


def is_depthwise(sizes: Sizes) -> bool:
    """Whether each channel is by itself, and a few are made of it."""
    return sizes.groups > 1 and sizes.inner == 1 and sizes.outer <= MADE * sizes.groups


def depthwise(work: Work, computed: Array | None = None) -> list[list[Part]]:
    """Each channel with a window of its own: weighted sums of shifted rows.

    Weights are tiled along the row, so that whole runs of pixels are multiplied at once. Where
    windows skip columns and pixels are short runs, columns that are met by the same taps are put
    side by side before, and what these taps make is added to what others made. Weights that are
    ``computed`` (kh, kw, channels) are tiled in each run.
    """
    sizes, source, _, finish, _, scratch = work
    made = sizes.outer // sizes.groups
    steps: list[Part] = []
    lanes, at_once = _lanes(work, BY_THREADS if scratch.by_threads else CACHE)
    # Sums are the same whoever works: as many channels count as lanes of processes would have.
    usual = _lanes(work, CACHE)[0] if scratch.by_threads else lanes
    widest = max(stop - first for _, _, (first, stop) in usual)
    apart = computed is None and _is_apart(sizes, widest)
    for part, (image, (top, bottom), (first, stop)) in scratch.dealt(lanes):
        channels = stop - first
        outer = slice(first * made, stop * made)
        known = np.moveaxis(sizes.weights[:, 0], 0, -1)
        taken = (known if computed is None else computed)[..., outer]
        most = min(TAPS_TILE // prod(sizes.kernel), RUN) // channels
        often = min(at_once, bottom - top) * prod(sizes.kernel)
        is_tiled = apart or sizes.strides[1] == 1
        columns = runs_across(sizes.out[1], most if is_tiled else 1, often)
        # Of each channel one is made after the other, then put beside those before it.
        weights = [
            [np.tile(taken[..., turn::made], (1, 1, run.times)) for run in columns]
            for turn in range(made)
        ]
        given = source[image, :, :, first:stop]
        parts: list[Part] = []
        if computed is not None:
            for turn, tiled in enumerate(weights):
                some = taken[:, :, None, turn::made]
                parts += [
                    call(np.copyto, tile.reshape(*sizes.kernel, -1, channels), some)
                    for tile in tiled
                ]
        for begin, end in spans(bottom - top, -(-(bottom - top) // at_once)):
            scratch.reset()
            rows = slice(top + begin, top + end)
            windows, gather = _windows(work, given, rows, columns, part, apart=apart)
            parts += gather
            block = finish.target(image, rows, outer)
            if finish or not block.flags.c_contiguous or block.dtype != np.float32:
                block = scratch.take(part, *block.shape)
            out = block if made == 1 else scratch.take(part, *block.shape[:-1], channels)
            more = scratch.take(part, *out.shape) if apart else out
            for turn, tiled in enumerate(weights):
                for run, repeated, views in zip(columns, tiled, windows, strict=True):
                    parts += _joined(run, views, repeated, out, more)
                if out is not block:
                    parts.append(call(np.copyto, block[..., turn::made], out))
            parts += finish.parts(block, image, rows, outer)
        steps.append(sequence(parts))
    return [steps]


class Across(NamedTuple):
    """Columns of a row from one on: so many runs of so many neighbours each."""

    first: int
    runs: int
    times: int

    def of(self, rows: Array) -> Array:
        """These columns of rows (rows, columns, channels), each run as one row of numbers."""
        some = rows[:, self.first : self.first + self.runs * self.times]
        return some.reshape(len(rows), self.runs, -1)


#: Some taps of a row, and what they meet.
Taps: TypeAlias = tuple[slice, Array]


def runs_across(width: int, most: int, often: int) -> list[Across]:
    """Runs of at most so many neighbours, and what is left; each run is begun so often.

    Unless runs of one length are so few that another call takes longer than their beginnings.
    """
    alike = divisor(width, most)
    times = -(-width // -(-width // max(most, 1)))
    count, left = divmod(width, times)
    if (width // alike - count - 1) * often * RUN_BEGINS <= CALL:
        return [Across(0, width // alike, alike)]
    return [Across(0, count, times), *([Across(width - left, 1, left)] if left else [])]


#: An image, some of its rows, and some groups.
Lane: TypeAlias = tuple[int, tuple[int, int], tuple[int, int]]


def _lanes(work: Work, cache: int) -> tuple[list[Lane], int]:
    """How a depthwise convolution is shared out, and how many rows are worked on at once.

    Rows of many channels leave the cache before windows have met enough of them: then what is
    above and below would be gathered again and again, and each takes some channels of all rows;
    as where there are so few rows that some would take a lot more than others.
    """
    sizes, images, abreast = work.sizes, len(work.target), work.abreast
    height, width = sizes.out
    made = sizes.outer // sizes.groups
    sums = made + (made > 1) + _is_apart(sizes, sizes.groups)
    per_channel = width * 4 * (sums + prod(sizes.strides))
    at_once = max(1, cache // (per_channel * sizes.groups))
    each = cuts(images, abreast)
    most = -(-height // each)
    rows = min(at_once, most)
    again = sizes.reach[0] - sizes.strides[0]
    mixed = sizes.shuffled or work.finish.leads or np.ndim(sizes.fill) > 0
    uneven = most * each > UNEVEN * height
    if (again > rows * sizes.strides[0] or uneven) and not mixed:
        few = max(FEWEST, cache // (per_channel * height + 4 * width * again) // 16 * 16)
        pieces = -(-sizes.groups // few)
        if sizes.groups >= max(pieces, each) * FEWEST:
            runs = hands(images, abreast, lambda each: spans(sizes.groups, max(pieces, each)))
            return [(image, (0, height), run) for image, run in runs], height
    by_rows = shares(images, height, abreast)
    return [(image, run, (0, sizes.groups)) for image, run in by_rows], at_once


def _is_apart(sizes: Sizes, channels: int) -> bool:
    """Whether columns that windows skip to are put side by side before they are summed.

    That makes long runs of sums, where each would have a pixel, and takes some passes more.
    """
    products = prod(sizes.kernel)
    return sizes.strides[1] > 1 and products * RUN_BEGINS > channels * _apart(sizes)


def _apart(sizes: Sizes) -> float:
    """How long that takes, for an output."""
    return 0.3 + 0.055 * prod(sizes.kernel)


def nanoseconds(sizes: Sizes) -> float:
    """About how long a channel takes by sums, on one core."""
    apart = _is_apart(sizes, sizes.groups)
    run = sizes.groups if sizes.strides[1] > 1 and not apart else RUN
    each = prod(sizes.kernel) * (SUM + RUN_BEGINS / run) + (_apart(sizes) if apart else 0.0)
    outputs = prod(sizes.out) * (sizes.outer // sizes.groups)
    return outputs * (each + PASS) + prod(sizes.out) * prod(sizes.strides) * PADDED


def _windows(
    work: Work, image: Array, rows: slice, columns: list[Across], part: int, *, apart: bool
) -> tuple[list[list[Taps]], list[Part]]:
    """The windows of some rows, for each run of columns, and what fills them.

    For all taps of a row, or for some and then others, they are a view (rows, runs, kh, kw,
    channels).
    """
    sizes, finish, scratch = work.sizes, work.finish, work.scratch
    count = rows.stop - rows.start

    def view(room: Array, run: Across, taps: int, pixel: int, column: int) -> Array:
        line = room.strides[0]
        shape = count, run.runs, sizes.kernel[0], taps, run.times * image.shape[2]
        strides = line * sizes.strides[0], pixel * run.times, line * sizes.dilations[0], column, 4
        return as_strided(room, shape, strides, writeable=False)

    step, gap = sizes.strides[1], sizes.dilations[1]
    if apart:
        room, parts = _columns(work, image, rows, part)
        pixel, common = room.strides[2], gcd(step, gap)
        found: list[list[Taps]] = [[] for _ in columns]
        for first in range(min(step // common, sizes.kernel[1])):
            # These taps meet each ``step``-th column, from neighbours or further apart on.
            taps = slice(first, None, step // common)
            place, rest = divmod(first * gap, step)
            number = len(range(sizes.kernel[1])[taps])
            for views, run in zip(found, columns, strict=True):
                given = room[:, rest, place + run.first :]
                views.append((taps, view(given, run, number, pixel, pixel * gap // common)))
        return found, parts
    room, parts = reached(sizes, image, (rows.start, rows.stop), part, scratch, put=finish.put)
    if columns[0].times > 1 and room.strides[1] != room.shape[2] * room.itemsize:
        whole = scratch.take(part, *room.shape)
        parts.append(call(np.copyto, whole, room))
        room = whole
    beside = room.strides[1]
    return [
        [
            (
                slice(None),
                view(
                    room[:, run.first * step :], run, sizes.kernel[1], beside * step, beside * gap
                ),
            )
        ]
        for run in columns
    ], parts


def _joined(run: Across, views: list[Taps], weights: Array, out: Array, more: Array) -> list[Part]:
    """Parts that sum what taps make of a run of columns, and of other taps add that."""
    sums, others = (run.of(array) for array in (out, more))
    parts: list[Part] = []
    for number, (taps, view) in enumerate(views):
        some = np.ascontiguousarray(weights[:, taps])
        parts.append(_summed(view, some, others if number else sums))
        if number:
            parts.append(call(np.add, sums, others, out=sums))
    return parts


def _columns(work: Work, image: Array, rows: slice, part: int) -> tuple[Array, list[Part]]:
    """What windows meet, each ``step``-th column beside the next (rows, step, columns, C)."""
    sizes, finish = work.sizes, work.finish
    (stride, step), width = sizes.strides, sizes.out[1]
    top = rows.start * stride - sizes.pads[0][0]
    tall = (rows.stop - rows.start - 1) * stride + sizes.reach[0]
    wide = width + (sizes.reach[1] - 1) // step
    room = work.scratch.take(part, tall, step, wide, image.shape[2])
    parts: list[Part] = []
    for rest in range(step):
        first, start = divmod(rest - sizes.pads[1][0], step)
        reached = (top, top + tall), (first, first + wide)
        parts += padded(image[:, start::step], *reached, room[:, rest], sizes.fill, finish.put)
    return room, parts


#: Of one channel at most so many are made by sums of rows; of more by products.
MADE = 4
#: Tiled weights of a depthwise convolution have at most so many numbers, and rows of them: longer
#: ones leave the nearest cache.
TAPS_TILE, RUN = 38400, 1152
#: Some may take so many times as many rows as there are for each.
UNEVEN = 1.1
#: Bytes that threads go through at once: between calls each needs the interpreter's lock, and to
#: wait for that takes longer than what leaves the nearer cache.
BY_THREADS = 4 * CACHE
#: Fewer channels are not worth a turn of their own.
FEWEST = 64
#: What choices suppose of one core, in nanoseconds: a product and its sum, to begin a run of them,
#: to add a bias, and to copy a number between pads.
SUM, RUN_BEGINS, PASS, PADDED = 0.108, 11.0, 0.15, 0.1
#: And another call for what is left, or two with a sum of both.
CALL = 12000


def _summed(windows: Array, weights: Array, out: Array) -> Part:
    def run() -> None:
        np.einsum("hwijx,ijx->hwx", windows, weights, out=out)

    return run
