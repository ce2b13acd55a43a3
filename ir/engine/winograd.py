"""Winograd's convolution F(4x4, 3x3): 36 products for 16 outputs of 9 taps, a quarter of them.

Tiles of 6x6 inputs are transformed by sums along rows and columns, multiplied channel by
channel as 36 matrices, and transformed back to 4x4 outputs. Points 0, 1, -1, 2, -2; relative
error about 1e-5.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...schemas import Array
from .blocks import Scratch, call, filling, lined, sequence
from .team import Part, spans

if TYPE_CHECKING:
    from .convolution import Sizes, Finish

#: Transforms the 3 taps of a window's row or column to 6.
TAPS = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)


def worth_winograd(sizes: Sizes) -> bool:
    """Whether the fewer products outweigh the transforms."""
    if (sizes.kernel, sizes.strides, sizes.dilations) != ((3, 3), (1, 1), (1, 1)):
        return False
    tiles = -(-sizes.out[0] // 4) * -(-sizes.out[1] // 4)
    return sizes.groups == 1 and min(sizes.inner, sizes.outer) >= 64 and tiles >= 16


def winograd(
    sizes: Sizes, source: Array, target: Array, finish: Finish, threads: int, scratch: Scratch
) -> list[list[Part]]:
    """The steps: each thread takes some rows of tiles through all three stages."""
    height, width = sizes.out
    down, across = -(-height // 4), -(-width // 4)
    inner, outer = sizes.inner, sizes.outer
    # Products are numbered by column, then row, as the transforms leave them.
    spread = np.einsum("ai,bj->baij", TAPS, TAPS).reshape(36, 9).astype(np.float32)
    taps = np.ascontiguousarray(sizes.weights.transpose(2, 3, 1, 0)).reshape(9, inner * outer)
    matrices = np.matmul(spread, taps).reshape(36, inner, outer)
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
            halfway = scratch.take(part, 6, count, 4, across + 1, inner)
            tiles = scratch.take(part, 6, 6, count, across, inner)
            products = scratch.take(part, 6, 6, count, across, outer)
            room, gather = _columns(sizes, source[image], begin, count, products)
            parts += gather
            rows = [room[j : j + 4 * count - 3 : 4] for j in range(6)]
            parts += forward(rows, halfway, _within(tiles, 2, *halfway.shape[1:]))
            columns = [halfway[:, :, j % 4, j // 4 : j // 4 + across] for j in range(6)]
            parts += forward(columns, tiles, _within(products, 2, *tiles.shape[1:]))
            parts.append(
                call(
                    np.matmul,
                    tiles.reshape(36, places, inner),
                    matrices,
                    out=products.reshape(36, places, outer),
                )
            )
            if finish.bias is not None:
                # What is added to the product of the points 1 and 1 reaches all 16 outputs once.
                middle = products[1, 1].reshape(places, outer)
                bias = np.broadcast_to(finish.bias, middle.shape)
                parts.append(lined(np.add, middle, bias, middle, scratch))
            between = scratch.take(part, 4, 6, count, across, outer)
            parts += backward(products, between, scratch.take(part, 3, 6, count, across, outer))
            square = _within(products, count, 4, across, 4, outer)
            parts += backward(
                between.transpose(1, 0, 2, 3, 4),
                square.transpose(1, 3, 0, 2, 4),
                scratch.take(part, 3, 4, count, across, outer),
            )
            taken = slice(4 * begin, min(4 * (begin + count), height))
            flat = square.reshape(4 * count, 4 * across, outer)[: taken.stop - taken.start, :width]
            parts += finish.parts(flat, image, taken, slice(None), biased=True)
        steps.append(sequence(parts))
    return [steps]


#: So many tiles make the products efficient.
PLACES = 96


def _within(array: Array, *shape: int) -> Array:
    """Memory of an array that is not needed meanwhile, in another shape."""
    count = prod(shape)
    return (
        array.reshape(-1)[:count].reshape(shape)
        if count <= array.size
        else np.empty(shape, np.float32)
    )


def _columns(
    sizes: Sizes, image: Array, begin: int, count: int, spare: Array
) -> tuple[Array, list[Part]]:
    """Rows of an image with every fourth column put together, (rows, 4, columns / 4, C).

    Tiles overlap by two columns; so each of their six columns is one run of memory.
    """
    height, width, channels = image.shape
    across = -(-sizes.out[1] // 4)
    tall = 4 * count + 2
    room = _within(spare, tall, 4, across + 1, channels)
    up, left = 4 * begin - sizes.pads[0][0], -sizes.pads[1][0]
    first, stop = max(up, 0), min(up + tall, height)
    parts: list[Part] = []
    if first >= stop:
        return room, [filling(room, 0)]
    if first > up:
        parts.append(filling(room[: first - up], 0))
    if stop < up + tall:
        parts.append(filling(room[stop - up :], 0))
    for phase in range(4):
        # Places 0 .. across of this phase are the columns left + phase, left + phase + 4 ...
        start = left + phase
        low = max(0, -(-(0 - start) // 4))
        high = min(across + 1, -(-(width - start) // 4))
        lane = room[first - up : stop - up, phase]
        if low >= high:
            parts.append(filling(lane, 0))
            continue
        if low > 0:
            parts.append(filling(lane[:, :low], 0))
        if high < across + 1:
            parts.append(filling(lane[:, high:], 0))
        columns = slice(start + 4 * low, start + 4 * (high - 1) + 1, 4)
        parts.append(call(np.copyto, lane[:, low:high], image[first:stop, columns]))
    return room, parts


def forward(d: list[Array], out: Array, temporary: Array) -> list[Part]:
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


def backward(m: Array, out: Array, temporary: Array) -> list[Part]:
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
