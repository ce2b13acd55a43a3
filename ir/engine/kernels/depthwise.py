"""Convolution of each channel by itself: weighted sums of shifted rows, no windows gathered."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..workers import Part, shares, spans
from .blocks import CACHE, call, divisor, padded, sequence
from .convolution_work import Sizes, Work, reached


def is_depthwise(sizes: Sizes) -> bool:
    """Whether each channel is by itself, and a few are made of it."""
    return sizes.groups > 1 and sizes.inner == 1 and sizes.outer <= MADE * sizes.groups


def depthwise(work: Work) -> list[list[Part]]:
    """Each channel with a window of its own: weighted sums of shifted rows.

    Weights are tiled along the row, so that whole runs of pixels are multiplied at once. Where
    windows skip columns and pixels are short runs, what each column of a window meets is put
    side by side before.
    """
    sizes, source, _, finish, _, scratch = work
    made = sizes.outer // sizes.groups
    steps: list[Part] = []
    lanes, at_once = _lanes(work)
    for part, (image, (top, bottom), (first, stop)) in scratch.dealt(lanes):
        channels = stop - first
        outer = slice(first * made, stop * made)
        taken = np.ascontiguousarray(sizes.weights[outer, 0].transpose(1, 2, 0))
        apart = _is_apart(sizes, channels)
        most = min(TAPS_TILE // prod(sizes.kernel), RUN) // channels
        times = divisor(sizes.out[1], most) if apart or sizes.strides[1] == 1 else 1
        # Of each channel one is made after the other, then put beside those before it.
        weights = [np.tile(taken[..., turn::made], (1, 1, times)) for turn in range(made)]
        given = source[image, :, :, first:stop]
        parts: list[Part] = []
        for begin, end in spans(bottom - top, -(-(bottom - top) // at_once)):
            scratch.reset()
            rows = slice(top + begin, top + end)
            windows, gather = _runs(work, given, rows, times, part, apart=apart)
            parts += gather
            block = finish.target(image, rows, outer)
            if finish or not block.flags.c_contiguous:
                block = scratch.take(part, *block.shape)
            out = block if made == 1 else scratch.take(part, *block.shape[:-1], channels)
            sums = out.reshape(end - begin, -1, times * channels)
            for turn, tiled in enumerate(weights):
                parts.append(_summed(windows, tiled, sums))
                if out is not block:
                    parts.append(call(np.copyto, block[..., turn::made], out))
            parts += finish.parts(block, image, rows, outer)
        steps.append(sequence(parts))
    return [steps]


#: An image, some of its rows, and some groups.
Lane: TypeAlias = tuple[int, tuple[int, int], tuple[int, int]]


def _lanes(work: Work) -> tuple[list[Lane], int]:
    """How a depthwise convolution is shared out, and how many rows are worked on at once.

    Rows of many channels leave the cache before windows have met enough of them: then what is
    above and below would be gathered again and again, and each takes some channels of all rows.
    """
    sizes, images, abreast = work.sizes, len(work.target), work.abreast
    height, width = sizes.out
    made = sizes.outer // sizes.groups
    across = sizes.kernel[1] if _is_apart(sizes, sizes.groups) else sizes.strides[1]
    per_channel = width * 4 * (made + (made > 1) + across * sizes.strides[0])
    at_once = max(1, CACHE // (per_channel * sizes.groups))
    by_rows = shares(images, height, abreast)
    rows = min(at_once, max(end - begin for _, (begin, end) in by_rows))
    again = sizes.reach[0] - sizes.strides[0]
    mixed = sizes.shuffled or work.finish.leads or np.ndim(sizes.fill) > 0
    if again > rows * sizes.strides[0] and not mixed:
        few = max(FEWEST, CACHE // (per_channel * height + 4 * width * again) // 16 * 16)
        pieces = max(-(-sizes.groups // few), -(-abreast // images))
        if sizes.groups >= pieces * FEWEST:
            runs = spans(sizes.groups, pieces)
            whole = 0, height
            return [(image, whole, run) for image in range(images) for run in runs], height
    return [(image, run, (0, sizes.groups)) for image, run in by_rows], at_once


def _is_apart(sizes: Sizes, channels: int) -> bool:
    """Whether columns of windows are put side by side before they are summed."""
    return sizes.strides[1] > 1 and channels < APART


def _runs(
    work: Work, image: Array, rows: slice, times: int, part: int, *, apart: bool
) -> tuple[Array, list[Part]]:
    """The windows of some rows, so many neighbours as one run of channels, and what fills them.

    They are a view (rows, runs, kh, kw, channels).
    """
    sizes, finish, scratch = work.sizes, work.finish, work.scratch
    if apart:
        room, parts = _columns(work, image, rows, part)
        column, pixel = room.strides[1], room.strides[2]
    else:
        between = rows.start, rows.stop
        room, parts = reached(sizes, image, between, part, scratch, put=finish.put)
        if times > 1 and room.strides[1] != room.shape[2] * room.itemsize:
            whole = scratch.take(part, *room.shape)
            parts.append(call(np.copyto, whole, room))
            room = whole
        pixel = room.strides[1] * sizes.strides[1]
        column = room.strides[1] * sizes.dilations[1]
    line = room.strides[0]
    count = rows.stop - rows.start
    shape = count, sizes.out[1] // times, *sizes.kernel, times * image.shape[2]
    strides = line * sizes.strides[0], pixel * times, line * sizes.dilations[0], column, 4
    return as_strided(room, shape, strides, writeable=False), parts


def _columns(work: Work, image: Array, rows: slice, part: int) -> tuple[Array, list[Part]]:
    """What each column of the windows meets, one beside the other (rows, kw, stops, C)."""
    sizes, finish = work.sizes, work.finish
    (stride, step), (width, wide) = sizes.strides, (sizes.out[1], sizes.kernel[1])
    top = rows.start * stride - sizes.pads[0][0]
    tall = (rows.stop - rows.start - 1) * stride + sizes.reach[0]
    room = work.scratch.take(part, tall, wide, width, image.shape[2])
    parts: list[Part] = []
    for tap in range(wide):
        # It meets each ``step``-th column of the image, from one of the first on.
        first, rest = divmod(tap * sizes.dilations[1] - sizes.pads[1][0], step)
        reached = (top, top + tall), (first, first + width)
        parts += padded(image[:, rest::step], *reached, room[:, tap], sizes.fill, finish.put)
    return room, parts


#: Of one channel at most so many are made by sums of rows; of more by products.
MADE = 4
#: Tiled weights of a depthwise convolution have at most so many numbers, and rows of them: longer
#: ones leave the nearest cache.
TAPS_TILE, RUN = 38400, 1152
#: So many channels are a run that is long enough; and fewer are not worth a turn of their own.
APART, FEWEST = 72, 64


def _summed(windows: Array, weights: Array, out: Array) -> Part:
    def run() -> None:
        np.einsum("hwijx,ijx->hwx", windows, weights, out=out)

    return run
