"""Winograd's convolution of 3x3 windows: fewer products, more sums, all of them by matrices.

F(4x4) takes 36 products for 16 outputs of 9 taps, F(2x2) 16 for 4, with smaller weights. Tiles
of inputs are transformed along rows, then along columns, multiplied channel by channel as 36
(or 16) matrices, and transformed back: five products of matrices. Points 0, 1, -1, 2, -2;
relative error about 1e-5.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...schemas import Array
from .blocks import Scratch, call, lined, padded, sequence, turned
from .team import Part, spans

if TYPE_CHECKING:
    from .convolution import Finish, Sizes

#: A small matrix, row by row.
Rows: TypeAlias = tuple[tuple[float, ...], ...]


class Way(NamedTuple):
    """Tiles of one size: the matrices that transform taps, inputs and products along an axis."""

    size: int
    taps: Rows
    inputs: Rows
    outputs: Rows
    #: Values that are transformed in a second, about.
    sums: float

    @property
    def points(self) -> int:
        """Inputs, and products, of a tile along one axis."""
        return self.size + 2

    def tiles(self, sizes: Sizes) -> tuple[int, int]:
        """How many tiles there are down and across."""
        return -(-sizes.out[0] // self.size), -(-sizes.out[1] // self.size)

    def matrices(self, sizes: Sizes) -> Array:
        """The weights, transformed: for each point of a tile blocks (inner, some of outer)."""
        inner, outer, wide = sizes.inner, sizes.outer, width_of(sizes)
        spread = np.einsum("ai,bj->abij", self.taps, self.taps).reshape(-1, 9).astype(np.float32)
        found = np.empty((self.points**2, outer // wide, inner, wide), np.float32)
        taps = np.empty((3, 3, inner, wide), np.float32)
        for start, some in turned(sizes.weights, wide):
            taps[...] = some
            block = found[:, start // wide].reshape(-1, inner * wide)
            np.matmul(spread, taps.reshape(9, -1), out=block)
        return found

    def seconds(self, sizes: Sizes) -> float:
        """About how long a convolution of one image takes."""
        count, values = prod(self.tiles(sizes)), self.points**2
        products = 2 * values * (count + FEW) * sizes.inner * sizes.outer / PRODUCTS
        weights = 4 * values * sizes.inner * sizes.outer / WEIGHTS
        return products + weights + values * count * (sizes.inner + sizes.outer) / self.sums


#: What the choice between ways supposes: products, and bytes of weights a second, and for how
#: many rows more a product of few rows takes.
PRODUCTS, WEIGHTS, FEW = 9e10, 0.8e10, 4

#: Matrices of more bytes are not worth their memory, where smaller ones do nearly as well.
HEAVY = 16 << 20

#: OpenBLAS takes products of at most a million steps as they lie, and copies larger matrices
#: each time; so weights are cut into blocks of columns, and tiles taken so many at a time.
MILLION, WIDE = 1_000_000, 64
#: More tiles at a time make the products no better, and leave the cache.
PLACES = 96


def width_of(sizes: Sizes) -> int:
    """How many columns of the weights are multiplied together."""
    return WIDE if sizes.outer % WIDE == 0 else sizes.outer


def best_way(sizes: Sizes) -> Way | None:
    """The quickest way for a convolution; None where plain products are."""
    if (sizes.kernel, sizes.strides, sizes.dilations) != ((3, 3), (1, 1), (1, 1)):
        return None
    if sizes.groups > 1 or min(sizes.inner, sizes.outer) < 16:
        return None
    places, taken = prod(sizes.out), 9 * sizes.inner
    plain = taken * (
        2 * places * sizes.outer / PRODUCTS + 4 * sizes.outer / WEIGHTS + 3 * places / WEIGHTS
    )
    each = 4 * sizes.inner * sizes.outer
    ways = [way for way in WAYS if way.points**2 * each <= HEAVY or way is WAYS[-1]]
    best = min(ways, key=lambda way: way.seconds(sizes))
    return best if best.seconds(sizes) < plain else None


def winograd(
    way: Way,
    sizes: Sizes,
    matrices: Array,
    source: Array,
    target: Array,
    finish: Finish,
    threads: int,
    scratch: Scratch,
) -> list[list[Part]]:
    """The steps: each thread takes some rows of tiles through all stages."""
    height, width = sizes.out
    size, points, values = way.size, way.points, way.points**2
    down, across = way.tiles(sizes)
    inner, outer, wide = sizes.inner, sizes.outer, width_of(sizes)
    images = target.shape[0]
    runs = spans(down, max(1, threads // max(1, min(images, threads))))
    work = [(image, run) for image in range(images) for run in runs]
    places_at_once = max(min(MILLION // (inner * wide), PLACES), 1)
    at_once = max(1, min(places_at_once // across, down))
    into, back = (np.array(rows, np.float32) for rows in (way.inputs, way.outputs))
    steps: list[Part] = []
    for part, (image, (top, bottom)) in enumerate(work):
        parts: list[Part] = []
        for first, stop in spans(bottom - top, -(-(bottom - top) // at_once)):
            scratch.reset()
            begin, count = top + first, stop - first
            places = count * across
            tiles = scratch.take(part, values, places, inner)
            halfway = scratch.take(part, values, places, inner)
            products = scratch.take(part, values, places, outer)
            parts += _gathered(way, sizes, source[image], (begin, count), tiles, halfway)
            parts += _transformed(into, tiles, halfway, tiles)
            blocks = products.reshape(values, places, outer // wide, wide)
            parts.append(
                call(np.matmul, tiles[:, None], matrices, out=blocks.transpose(0, 2, 1, 3))
            )
            if finish.bias is not None:
                # What is added to the product of the points 1 and 1 reaches all outputs once.
                middle = products[points + 1]
                bias = np.broadcast_to(finish.bias, middle.shape)
                parts.append(lined(np.add, middle, bias, middle, scratch))
            between = scratch.take(part, size * points, places, outer)
            squares = products[: size * size]
            parts += _transformed(back, products, between, squares)
            rows = between.reshape(-1)[: squares.size].reshape(count, size, across, size, outer)
            tiled = squares.reshape(size, size, count, across, outer)
            parts.append(call(np.copyto, rows.transpose(1, 3, 0, 2, 4), tiled))
            taken = slice(size * begin, min(size * (begin + count), height))
            flat = rows.reshape(size * count, size * across, outer)
            flat = flat[: taken.stop - taken.start, :width]
            parts += finish.parts(flat, image, taken, slice(None), biased=True)
        steps.append(sequence(parts))
    return [steps]


def _transformed(matrix: Array, values: Array, between: Array, out: Array) -> list[Part]:
    """Parts that multiply tiles by a matrix along their rows, then along their columns."""
    made, given = matrix.shape
    rows = between.reshape(made, -1)
    return [
        call(np.matmul, matrix, values.reshape(given, -1), out=rows),
        call(np.matmul, matrix, rows.reshape(made, given, -1), out=out.reshape(made, made, -1)),
    ]


def _gathered(
    way: Way,
    sizes: Sizes,
    image: Array,
    tiles: tuple[int, int],
    out: Array,
    spare: Array,
) -> list[Part]:
    """Parts that put the tiles of some rows side by side: (points, points, rows, across, C)."""
    size, points, (begin, count) = way.size, way.points, tiles
    across, channels = way.tiles(sizes)[1], image.shape[2]
    tall, wide = size * count + 2, size * across + 2
    up, left = size * begin - sizes.pads[0][0], -sizes.pads[1][0]
    room = spare.reshape(-1)[: tall * wide * channels].reshape(tall, wide, channels)
    parts = padded(image, (up, up + tall), (left, left + wide), room, 0.0)
    row, column, deep = room.strides
    view = as_strided(
        room,
        (points, points, count, across, channels),
        (row, column, size * row, size * column, deep),
        writeable=False,
    )
    return [*parts, call(np.copyto, out.reshape(view.shape), view)]


WAYS = (
    Way(
        4,
        (
            (1 / 4, 0, 0),
            (-1 / 6, -1 / 6, -1 / 6),
            (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6),
            (1 / 24, -1 / 12, 1 / 6),
            (0, 0, 1),
        ),
        (
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        (
            (1, 1, 1, 1, 1, 0),
            (0, 1, -1, 2, -2, 0),
            (0, 1, 1, 4, 4, 0),
            (0, 1, -1, 8, -8, 1),
        ),
        2e9,
    ),
    Way(
        2,
        ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
        ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        ((1, 1, 1, 0), (0, 1, -1, -1)),
        2.5e9,
    ),
)
