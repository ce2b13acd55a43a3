"""Winograd's convolution of small images with many channels, without transformed weights.

For windows of 3x3, the weights at the 36 points of a tile take four times the memory of the
weights themselves. Here they are made at each call, some output channels at a time, and used
for all tiles of some images before the next are made: what that costs is less than it takes to
fetch them from memory. Sums over many channels are cut into some, so that pieces stay small
enough to be taken as they lie, and less is lost: with tiles of 4x4 outputs and 512 channels the
relative error is 2.7e-6, and 1.5e-6 where sums are cut into four.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from ....schemas import Array
from ..workers import Part, shares, spans
from .blocks import Scratch, sequence
from .calls import call
from .convolution_work import Work
from .products import MILLION, PAYING, cuts, rows_at_once
from .repeats import divisor
from .winograd import (
    TILES,
    Images,
    Tiling,
    gathered_tiles,
    images_of,
    together,
    transformed,
    turned_back,
)

#: Numbers of transformed weights that stay in cache until they are multiplied.
WEIGHTS = 3 << 17
#: Of longer sums more is lost; where none of half this length goes into one, it stays.
LONGEST = 160


def deep(tiling: Tiling, whole: Work, blocks: Array) -> list[list[Part]]:
    """Two steps for some images: workers share their tiles, then the output channels."""
    work = images_of(whole)
    sizes, sources, finish, abreast, scratch = work
    (down, across), inner, spread = tiling.tiles(sizes), blocks.shape[2], tiling.spread
    steps: list[list[Part]] = []
    for begin, end in spans(len(sources), -(-len(sources) // together(sizes, tiling))):
        images = range(begin, end)
        scratch.shared.reset()
        places = len(images) * down * across
        given = scratch.shared.take(0, tiling.points**2, places, inner)
        steps.append(_tiles(tiling, work, images, given))
        lanes: list[Part] = []
        for part, (first, stop) in scratch.dealt(spans(len(blocks), abreast)):
            parts: list[Part] = []
            for number in range(first, stop):
                scratch.reset()
                wide = blocks.shape[3]
                channels = slice(number * wide, (number + 1) * wide)
                products = scratch.take(part, tiling.points**2, places, wide)
                parts += _multiplied(spread, given, blocks[number], products, part, scratch)
                place = (images, channels)
                parts += turned_back(tiling, products, (0, down), finish, place, part, scratch)
            lanes.append(sequence(parts))
        steps.append(lanes)
    return steps


def _tiles(tiling: Tiling, work: Images, images: range, given: Array) -> list[Part]:
    """The step that transforms all tiles of some images, for all workers to see."""
    sizes, sources, _, abreast, scratch = work
    (down, across), (values, _, inner) = tiling.tiles(sizes), given.shape
    at_once = max(1, min(TILES // across, down))
    lanes: list[Part] = []
    for part, (number, (top, bottom)) in scratch.dealt(shares(len(images), down, abreast)):
        parts: list[Part] = []
        for begin, end in spans(bottom - top, -(-(bottom - top) // at_once)):
            scratch.reset()
            rows = (top + begin, end - begin)
            first = (number * down + rows[0]) * across
            places = slice(first, first + rows[1] * across)
            tiles = scratch.take(part, values, rows[1] * across, inner)
            halfway = scratch.take(part, *tiles.shape)
            image = sources[images[number]]
            parts += gathered_tiles(tiling, sizes, image, rows, tiles, halfway, part, scratch)
            parts += transformed(tiling.inputs, tiles, halfway, given[:, places])
        lanes.append(sequence(parts))
    return lanes


def _multiplied(
    spread: Array, given: Array, taps: Array, products: Array, part: int, scratch: Scratch
) -> list[Part]:
    """Parts that multiply the tiles at each point by weights, which are made a few at a time.

    Long sums are cut into some, each with weights of its own.
    """
    values, places, inner = given.shape
    few, wide = len(taps), taps.shape[2]
    cut, whole = cuts(inner, PAYING), divisor(inner, LONGEST)
    if inner > LONGEST < 2 * whole:
        cut = max(cut, inner // whole)
    depth = inner // max(cut, 1)
    turns = spans(values, -(-values * depth * wide // WEIGHTS))
    most = max(stop - start for start, stop in turns)
    room = scratch.take(part, most, depth, wide)
    piece = divisor(depth * wide, max(MILLION // (most * few), 1))
    each = rows_at_once(places, depth, wide) if cut else places
    more = scratch.take(part, most, each, wide) if cut > 1 else None
    parts: list[Part] = []
    for (start, stop), begin in product(turns, range(0, inner, depth)):
        points, weights = slice(start, stop), room[: stop - start]
        channels = slice(begin, begin + depth)
        flat = taps[:, channels].reshape(few, -1, piece).transpose(1, 0, 2)
        into = weights.reshape(stop - start, -1, piece).transpose(1, 0, 2)
        parts.append(call(np.matmul, spread[points], flat, out=into))
        for row in range(0, places, each):
            rows = slice(row, row + each)
            left, out = given[points, rows, channels], products[points, rows]
            if begin == 0 or more is None:
                parts.append(call(np.matmul, left, weights, out=out))
                continue
            made = more[: stop - start, : out.shape[1]]
            parts += [call(np.matmul, left, weights, out=made), call(np.add, out, made, out=out)]
    return parts
