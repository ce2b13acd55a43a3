"""Winograd's convolution of 3x3 windows: fewer products, more sums.

F(4x4) takes 36 products for 16 outputs of 9 taps, F(2x2) 16 for 4, with smaller weights. Tiles
of inputs are transformed by sums along rows and columns, multiplied channel by channel as 36
(or 16) matrices, and transformed back. Points 0, 1, -1, 2, -2; relative error about 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...schemas import Array
from .blocks import Scratch, call, columns_last, filling, lined, sequence
from .team import Part, spans

if TYPE_CHECKING:
    from .convolution import Finish, Sizes


class Way(NamedTuple):
    """Tiles of one size: the transforms of taps, of inputs, and of products."""

    size: int
    taps: tuple[tuple[float, float, float], ...]
    forward: Callable[[list[Array], Array, Array], list[Part]]
    backward: Callable[[Array, Array, Array], list[Part]]
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
        """The weights, transformed: for each point of a tile a matrix (inner, outer)."""
        inner, outer = sizes.inner, sizes.outer
        # Products are numbered by column, then row, as the transforms leave them.
        spread = np.einsum("ai,bj->baij", self.taps, self.taps).reshape(-1, 9).astype(np.float32)
        taps = columns_last(sizes.weights).reshape(9, inner * outer)
        found: Array = np.matmul(spread, taps).reshape(-1, inner, outer)
        return found

    def seconds(self, sizes: Sizes) -> float:
        """About how long a convolution of one image takes."""
        count, values = prod(self.tiles(sizes)), self.points**2
        products = 2 * values * (count + FEW) * sizes.inner * sizes.outer / PRODUCTS
        weights = 4 * values * sizes.inner * sizes.outer / WEIGHTS
        return products + weights + values * count * (sizes.inner + sizes.outer) / self.sums


#: What the choice between ways supposes: products, and bytes of weights a second, and for how
#: many rows more a product of few rows takes.
PRODUCTS, WEIGHTS, FEW = 9e10, 0.8e10, 8


#: Matrices of more bytes are not worth their memory, where smaller ones do nearly as well.
HEAVY = 16 << 20


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
    """The steps: each thread takes some rows of tiles through all three stages."""
    height, width = sizes.out
    size, points = way.size, way.points
    down, across = way.tiles(sizes)
    inner, outer = sizes.inner, sizes.outer
    images = target.shape[0]
    runs = spans(down, max(1, threads // max(1, min(images, threads))))
    steps: list[Part] = []
    work = [(image, run) for image in range(images) for run in runs]
    # Some rows of tiles at a time: enough places for the products to be efficient.
    at_once = max(1, min(-(-PLACES // across), down))
    for part, (image, (top, bottom)) in enumerate(work):
        parts: list[Part] = []
        for first, stop in spans(bottom - top, -(-(bottom - top) // at_once)):
            scratch.reset()
            begin, count = top + first, stop - first
            places = count * across
            halfway = scratch.take(part, points, count, size, across + 1, inner)
            tiles = scratch.take(part, points, points, count, across, inner)
            products = scratch.take(part, points, points, count, across, outer)
            room, gather = _columns(
                way, sizes, source[image], (begin, count), products, part, scratch
            )
            parts += gather
            rows = [room[j : j + size * count - size + 1 : size] for j in range(points)]
            parts += way.forward(
                rows, halfway, _within(tiles, scratch, part, 2, *halfway.shape[1:])
            )
            columns = [
                halfway[:, :, j % size, j // size : j // size + across] for j in range(points)
            ]
            parts += way.forward(
                columns, tiles, _within(products, scratch, part, 2, *tiles.shape[1:])
            )
            parts.append(
                call(
                    np.matmul,
                    tiles.reshape(-1, places, inner),
                    matrices,
                    out=products.reshape(-1, places, outer),
                )
            )
            if finish.bias is not None:
                # What is added to the product of the points 1 and 1 reaches all outputs once.
                middle = products[1, 1].reshape(places, outer)
                bias = np.broadcast_to(finish.bias, middle.shape)
                parts.append(lined(np.add, middle, bias, middle, scratch))
            between = scratch.take(part, size, points, count, across, outer)
            parts += way.backward(
                products, between, scratch.take(part, 3, points, count, across, outer)
            )
            square = _within(products, scratch, part, count, size, across, size, outer)
            parts += way.backward(
                between.transpose(1, 0, 2, 3, 4),
                square.transpose(1, 3, 0, 2, 4),
                scratch.take(part, 3, size, count, across, outer),
            )
            taken = slice(size * begin, min(size * (begin + count), height))
            flat = square.reshape(size * count, size * across, outer)
            flat = flat[: taken.stop - taken.start, :width]
            parts += finish.parts(flat, image, taken, slice(None), biased=True)
        steps.append(sequence(parts))
    return [steps]


#: So many tiles make the products efficient.
PLACES = 96


def _within(array: Array, scratch: Scratch, part: int, *shape: int) -> Array:
    """Memory of an array not needed meanwhile, in another shape; its own where that is small."""
    count = prod(shape)
    if count > array.size:
        return scratch.take(part, *shape)
    return array.reshape(-1)[:count].reshape(shape)


def _columns(
    way: Way,
    sizes: Sizes,
    image: Array,
    tiles: tuple[int, int],
    spare: Array,
    part: int,
    scratch: Scratch,
) -> tuple[Array, list[Part]]:
    """Rows of an image with every fourth column (or second) put together: (rows, 4, tiles + 1, C).

    Tiles overlap by two columns; so each of their columns, of all tiles, is one run of memory.
    """
    size, (begin, count) = way.size, tiles
    height, width, channels = image.shape
    _, across = way.tiles(sizes)
    tall = size * count + 2
    room = _within(spare, scratch, part, tall, size, across + 1, channels)
    up, left = size * begin - sizes.pads[0][0], -sizes.pads[1][0]
    first, stop = max(up, 0), min(up + tall, height)
    parts: list[Part] = []
    if first >= stop:
        return room, [filling(room, 0)]
    if first > up:
        parts.append(filling(room[: first - up], 0))
    if stop < up + tall:
        parts.append(filling(room[stop - up :], 0))
    for phase in range(size):
        # Places 0 .. across of this phase are the columns left + phase, one more tile on, ...
        start = left + phase
        low = max(0, -(start // size))
        high = min(across + 1, -(-(width - start) // size))
        lane = room[first - up : stop - up, phase]
        if low >= high:
            parts.append(filling(lane, 0))
            continue
        if low > 0:
            parts.append(filling(lane[:, :low], 0))
        if high < across + 1:
            parts.append(filling(lane[:, high:], 0))
        columns = slice(start + size * low, start + size * (high - 1) + 1, size)
        parts.append(call(np.copyto, lane[:, low:high], image[first:stop, columns]))
    return room, parts


def forward4(d: list[Array], out: Array, temporary: Array) -> list[Part]:
    """Six sums of six inputs."""
    t, u = temporary
    four, five, two = np.float32(4), np.float32(5), np.float32(2)
    return [
        call(np.multiply, d[2], four, out=t),
        call(np.subtract, d[4], t, out=t),
        call(np.multiply, d[1], four, out=u),
        call(np.subtract, d[3], u, out=u),
        call(np.add, t, u, out=out[1]),
        call(np.subtract, t, u, out=out[2]),
        call(np.subtract, d[3], d[1], out=u),
        call(np.multiply, u, two, out=u),
        call(np.subtract, d[4], d[2], out=t),
        call(np.add, t, u, out=out[3]),
        call(np.subtract, t, u, out=out[4]),
        # 4 d0 - 5 d2 + d4 = 4 (d0 - d2) + (d4 - d2)
        call(np.subtract, d[0], d[2], out=u),
        call(np.multiply, u, four, out=u),
        call(np.add, t, u, out=out[0]),
        # 4 d1 - 5 d3 + d5
        call(np.multiply, d[3], five, out=t),
        call(np.subtract, d[5], t, out=t),
        call(np.multiply, d[1], four, out=u),
        call(np.add, t, u, out=out[5]),
    ]


def backward4(m: Array, out: Array, temporary: Array) -> list[Part]:
    """Four sums of six products."""
    p, q, t = temporary
    two, four = np.float32(2), np.float32(4)
    return [
        call(np.add, m[1], m[2], out=p),
        call(np.add, m[3], m[4], out=q),
        call(np.add, m[0], p, out=t),
        call(np.add, t, q, out=out[0]),
        call(np.multiply, q, four, out=q),
        call(np.add, p, q, out=out[2]),
        call(np.subtract, m[1], m[2], out=p),
        call(np.subtract, m[3], m[4], out=q),
        call(np.multiply, q, two, out=q),
        call(np.add, p, q, out=out[1]),
        call(np.multiply, q, four, out=q),
        call(np.add, p, q, out=t),
        call(np.add, t, m[5], out=out[3]),
    ]


def forward2(d: list[Array], out: Array, temporary: Array) -> list[Part]:
    """Four sums of four inputs."""
    return [
        call(np.subtract, d[0], d[2], out=out[0]),
        call(np.add, d[1], d[2], out=out[1]),
        call(np.subtract, d[2], d[1], out=out[2]),
        call(np.subtract, d[1], d[3], out=out[3]),
    ]


def backward2(m: Array, out: Array, temporary: Array) -> list[Part]:
    """Two sums of four products."""
    p, q, _ = temporary
    return [
        call(np.add, m[1], m[2], out=p),
        call(np.add, m[0], p, out=out[0]),
        call(np.subtract, m[1], m[2], out=q),
        call(np.subtract, q, m[3], out=out[1]),
    ]


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
        forward4,
        backward4,
        7.4e8,
    ),
    Way(
        2,
        ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
        forward2,
        backward2,
        2.4e9,
    ),
)
