"""Convolution to few channels from many: each pixel gives its share to all windows that meet it.

One product of pixels by the weights of all taps makes planes, one for each tap and channel. Their
sum, each shifted as its tap is, is the output: no windows are gathered, many times the image.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....schemas import Array
from ..workers import Part, shares, spans
from .blocks import CACHE, filling, sequence
from .calls import call
from .convolution_work import Finish, Sizes, Work

#: Channels in and for each of those made; of more than so many, Winograd's way or products by
#: windows take half the time.
MANY, TIMES, FEW = 32, 4, 8
#: Rows are at least so long, since planes are added row by row.
LONG = 24


def is_spread(sizes: Sizes) -> bool:
    """Whether a convolution is sooner done so."""
    return (
        sizes.groups == 1
        and sizes.strides == (1, 1)
        and prod(sizes.kernel) > 1
        and max(MANY, TIMES * sizes.outer) <= sizes.inner
        and sizes.outer <= FEW
        and (sizes.narrow or sizes.out[1] >= LONG)
        and not np.any(sizes.fill)
        # Infinite weights make something of padding, too.
        and bool(np.isfinite(sizes.weights).all())
    )


def by_taps_and_channels(sizes: Sizes) -> Array:
    """The weights as a matrix with a row for each tap and channel that is made."""
    return np.ascontiguousarray(sizes.weights.transpose(2, 3, 0, 1)).reshape(-1, sizes.inner)


def spread(work: Work, matrix: Array) -> list[list[Part]]:
    """The steps: each worker makes some rows, block by block."""
    sizes, source, target, finish, abreast, scratch = work
    height, width = source.shape[1:3]
    beyond = sizes.reach[0] - 1
    # What a block's first and last rows meet is multiplied for its neighbours, too.
    tall = max(CACHE // (4 * sizes.outer * sizes.out[1]), 8 * beyond, 1)
    at_once = max(1, CACHE // (4 * width * (len(matrix) + sizes.inner)))
    steps: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(
        shares(target.shape[0], sizes.out[0], abreast)
    ):
        parts: list[Part] = []
        for begin, end in spans(bottom - top, -(-(bottom - top) // tall)):
            scratch.reset()
            begin, end = top + begin, top + end
            planes = scratch.take(part, sizes.outer, end - begin, sizes.out[1])
            parts.append(filling(planes, 0))
            low = max(begin - sizes.pads[0][0], 0)
            high = min(end - sizes.pads[0][0] + beyond, height)
            most = max(min(at_once, high - low), 0)
            room = scratch.take(part, most, width, sizes.inner)
            products = scratch.take(part, len(matrix), most * width)
            # Where all is padding, there are no rows.
            for first in range(low, high, at_once):
                rows = slice(first, min(first + at_once, high))
                found, pixels = _pixels(source, finish, image, rows, room[: rows.stop - first])
                made = products[:, : len(pixels)]
                parts += [*found, call(np.matmul, matrix, pixels.T, out=made)]
                parts += _added(sizes, made, rows, planes, begin)
            into = finish.room(part, image, slice(begin, end))
            parts.append(call(np.copyto, into, planes.transpose(1, 2, 0)))
            parts += finish.parts(into, image, slice(begin, end), slice(None))
        steps.append(sequence(parts))
    return [steps]


def _pixels(
    source: Array, finish: Finish, image: int, rows: slice, room: Array
) -> tuple[list[Part], Array]:
    """Rows of an image as rows of a matrix, and what makes them that."""
    given = source[image, rows]
    if finish.leads:
        return finish.prepared(source, image, rows, room), room.reshape(-1, room.shape[-1])
    if given.flags.c_contiguous and given.dtype == np.float32:
        return [], given.reshape(-1, given.shape[-1])
    return [call(np.copyto, room, given)], room.reshape(-1, room.shape[-1])


def _added(sizes: Sizes, made: Array, rows: slice, planes: Array, begin: int) -> list[Part]:
    """Parts that add what some rows gave, a tap after the other, to planes from some row on."""
    count, tall, wide = rows.stop - rows.start, *planes.shape[1:]
    taps = made.reshape(*sizes.kernel, sizes.outer, count, -1)
    width = taps.shape[-1]
    parts: list[Part] = []
    for down, across in np.ndindex(*sizes.kernel):
        # Which row and column of the planes the first of these give to.
        y = rows.start + sizes.pads[0][0] - down * sizes.dilations[0] - begin
        x = sizes.pads[1][0] - across * sizes.dilations[1]
        top, bottom = max(y, 0), min(y + count, tall)
        left, right = max(x, 0), min(x + width, wide)
        if top < bottom and left < right:
            into = planes[:, top:bottom, left:right]
            given = taps[down, across, :, top - y : bottom - y, left - x : right - x]
            parts.append(call(np.add, into, given, out=into))
    return parts
