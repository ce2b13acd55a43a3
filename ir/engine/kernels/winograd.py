"""Winograd's convolution of small windows: fewer products, more sums, all of them by matrices.

For windows of 3x3, F(4x4) takes 36 products for 16 outputs of 9 taps, F(2x2) 16 for 4; for 5x5,
36 products make 4 outputs of 25 taps. Tiles of inputs are transformed along rows, then along
columns, multiplied channel by channel as 36 (or 16) matrices, and transformed back: five
products of matrices. Relative error about 1e-5.

A window that moves by two places is four windows of half the size that move by one, on the
even and odd rows and columns of the image; they are taken as four times as many channels. A
window with gaps meets rows and columns of which those between are left out: these are as many
images of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import inf, prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..workers import Part, shares, spans
from .blocks import Scratch, lined, padded, sequence, turned
from .calls import call
from .convolution_work import Finish, Sizes, Work, untiled
from .grouped import quickest
from .lines import on_lines
from .products import MILLION, PAYING, blas_copies, by_long_rows, in_blocks, shared_width
from .products import width as block_width
from .spread import is_spread

#: Where polynomials are evaluated, by how many places there are; one point more lies at infinity.
#: Of those that float32 holds with all their powers, these lose the least: a half to two fifths of
#: what is lost at 0, 1, -1, 2 and -2. At 1 a bias can be added.
PLACES: dict[int, tuple[float, ...]] = {
    3: (0, 1, -1),
    4: (0, 1, -0.625, -2),
    5: (0, 1, -0.625, -1.25, 1.75),
}


class Tiling(NamedTuple):
    """How many outputs a tile has along an axis, and the matrices that transform along it."""

    size: int
    taps: Array
    inputs: Array
    outputs: Array
    #: Whether weights are transformed at each call, since transformed ones take too much memory.
    afresh: bool = False

    @property
    def points(self) -> int:
        """Inputs, and products, of a tile along one axis."""
        return len(self.inputs)

    @property
    def spread(self) -> Array:
        """What transforms the taps of a window into the points of a tile."""
        return np.einsum("ai,bj->abij", self.taps, self.taps).reshape(self.points**2, -1)

    def tiles(self, sizes: Sizes) -> tuple[int, int]:
        """How many tiles there are down and across."""
        return -(-sizes.out[0] // self.size), -(-sizes.out[1] // self.size)

    def laid(self, outer: int, inner: int) -> tuple[int, int, int, int]:
        """The sizes of weights in blocks: transformed beforehand, or tap by tap."""
        if self.afresh:
            wide = shared_width(outer, inner, PAYING, 2, equal=True)
            return outer // wide, self.taps.shape[1] ** 2, inner, wide
        wide = block_width(outer, inner)
        return self.points**2, outer // wide, inner, wide

    def matrices(self, weights: Array) -> Array:
        """Weights (outer, inner, kh, kw), for each point of a tile in blocks (inner, wide).

        Those that are transformed at each call: for each tap, block by block.
        """
        outer, inner, *kernel = weights.shape
        *_, wide = shape = self.laid(outer, inner)
        if self.afresh:
            return in_blocks(weights, wide).reshape(shape)
        spread = self.spread
        found = on_lines(*shape)
        taps = np.empty((*kernel, inner, wide), np.float32)
        for start, some in turned(weights, wide):
            taps[...] = some
            block = found[:, start // wide].reshape(-1, inner * wide)
            np.matmul(spread, taps.reshape(prod(kernel), -1), out=block)
        return found

    def nbytes(self, sizes: Sizes) -> int:
        """Bytes of the weights."""
        taken = self.taps.shape[1] if self.afresh else self.points
        return 4 * taken**2 * depth(sizes) * sizes.outer

    def seconds(self, sizes: Sizes) -> float:
        """About how long a convolution takes, for each image."""
        count, values = prod(self.tiles(sizes)), self.points**2
        weights = values * depth(sizes) * sizes.outer
        images = together(sizes, self) if self.afresh else 1
        products = 2 * weights * (count + FEW / images) / PRODUCTS
        # Those that are kept are fetched by every worker.
        fetched: float = self.nbytes(sizes) * (1 if self.afresh else 2)
        sums = values * count * (depth(sizes) * sizes.groups + sizes.outer) / SUMS
        more = 0.0
        if self.afresh:
            # Weights are made once for some images; tiles go through the cache that cores share.
            fetched /= images
            begun = 0 if blas_copies() else AFRESH
            more = (weights / SPREAD + begun) / images + values * count * depth(sizes) / TILED
        calls = (sizes.groups - 1) * (1 + count // TILES) * CALLS
        return products + fetched / BYTES + sums + more + calls


def apart(weights: Array, stride: int) -> Array:
    """Weights with the taps that meet different rows and columns as channels of their own."""
    outer, inner, tall, wide = weights.shape
    if stride == 1:
        return weights
    taps = -(-tall // stride), -(-wide // stride)
    whole = np.zeros((outer, inner, taps[0] * stride, taps[1] * stride), np.float32)
    whole[:, :, :tall, :wide] = weights
    split = whole.reshape(outer, inner, taps[0], stride, taps[1], stride)
    return split.transpose(0, 3, 5, 1, 2, 4).reshape(outer, -1, *taps)


@cache
def tiling(size: int, taps: int) -> Tiling:
    """The way of Cook and Toom: products of polynomials by their values at some places.

    What the first matrix is divided by is chosen such that float32 holds the others exactly.
    """
    places = PLACES[size + taps - 2]
    others = [[b for b in places if b != a] for a in places]
    scales = [prod(a - b for b in rest) for a, rest in zip(places, others, strict=True)]
    ends = [[0] * (count - 1) + [1] for count in (taps, size)]
    first = [[a**k / scale for k in range(taps)] for a, scale in zip(places, scales, strict=True)]
    last = [[a**k for k in range(size)] for a in places]
    middle = [[*np.poly(rest)[::-1], 0] for rest in others]
    rows = [*first, ends[0]], [*middle, np.poly(places)[::-1]], [*last, ends[1]]
    spread, inputs, outputs = (np.array(matrix, np.float32) for matrix in rows)
    return Tiling(size, spread, inputs, np.ascontiguousarray(outputs.T))


#: What the choice between ways supposes of two cores: products, bytes of weights and transformed
#: values a second, and for how many rows more a product of few rows takes.
PRODUCTS, BYTES, SUMS, FEW = 2.1e11, 3e10, 4e9, 1
#: Weights that are transformed in a second, and values of tiles that one core leaves to another;
#: and how long steps and calls of their own take, where products of weights that are kept begin
#: at once.
SPREAD, TILED, AFRESH = 6e9, 8e9, 5e-5
#: Numbers that are gathered into windows in a second.
GATHERED = 2e10
#: How long the calls for some tiles of one group more take.
CALLS = 15e-6
#: Channels that are too few.
FEWEST = 12
#: More tiles at a time make the products no better, and leave the cache.
TILES = 64


#: Of each number of taps, the sizes of tiles that are worth a try.
TRIED = {3: (4, 3, 2), 4: (3,), 5: (2,)}
#: Bytes of tiles of several images.
ROOM = 16 << 20
#: So many channels, and no more places, are worth transforming weights at each call.
DEEP, PLACES_AFRESH = 64, 4096


def depth(sizes: Sizes) -> int:
    """The channels of each group, those of all places that a window steps over together."""
    return sizes.inner * prod(sizes.strides)


def together(sizes: Sizes, tiling: Tiling) -> int:
    """Of how many images the tiles lie side by side, to be multiplied by the same weights."""
    each = 4 * tiling.points**2 * prod(tiling.tiles(sizes)) * depth(sizes)
    return max(1, min(sizes.images, ROOM // each))


class Images(NamedTuple):
    """A convolution of images (H, W, C) by windows without gaps."""

    sizes: Sizes
    sources: list[Array]
    #: What follows, on as many images of the output.
    finish: Finish
    abreast: int
    scratch: Scratch


def images_of(work: Work) -> Images:
    """The images of a convolution; those that a window with gaps meets are cut from them."""
    sizes = work.sizes.dense() or work.sizes
    down, across = work.sizes.dilations if sizes is not work.sizes else (1, 1)
    places = [(row, column) for row in range(down) for column in range(across)]
    sources, targets = (
        [image[row::down, column::across] for image in images for row, column in places]
        for images in (work.source, work.target)
    )
    return Images(sizes, sources, work.finish.into(targets), work.abreast, work.scratch)


class Choice(NamedTuple):
    """A way to convolve, or None for plain products: what it takes."""

    seconds: float
    nbytes: int
    tiling: Tiling | None


def choices(sizes: Sizes) -> list[Choice]:
    """The ways of a convolution, the quickest first; each that follows takes less memory."""
    images, places, taken = sizes.images, prod(sizes.out), prod(sizes.kernel) * sizes.inner
    nbytes = 4 * taken * sizes.outer
    products = 2 * places * taken * sizes.outer / PRODUCTS
    seconds = products + nbytes / BYTES + places * taken * sizes.groups / GATHERED
    if sizes.skips:
        met = prod(sizes.kernel) * places * sizes.seen
        seconds = products * sizes.seen + nbytes / BYTES + met * sizes.outer / SUMS
    found = [Choice(seconds, nbytes, None)]
    if is_spread(sizes):
        return found
    runs = quickest(sizes)
    if runs is not None:
        found = [Choice(runs.seconds, runs.nbytes, None)]
    sizes = sizes.dense() or sizes
    times = sizes.images // images
    (kernel, wide), (stride, along) = sizes.kernel, sizes.strides
    taps = -(-kernel // stride)
    each = min(depth(sizes), sizes.outer // sizes.groups)
    even = (kernel, stride) == (wide, along) and sizes.dilations == (1, 1)
    if even and each >= FEWEST and 1 in (stride, sizes.groups) and not sizes.whole:
        tilings = [tiling(size, taps) for size in TRIED.get(taps, ())]
        few = prod(sizes.out) <= PLACES_AFRESH and not sizes.shuffled
        if sizes.groups == 1 and each >= DEEP and few:
            tilings += [one._replace(afresh=True) for one in tilings]
        found += [Choice(times * one.seconds(sizes), one.nbytes(sizes), one) for one in tilings]
    kept: list[Choice] = []
    for choice in sorted(found, key=lambda choice: choice.seconds):
        if not kept or choice.nbytes < kept[-1].nbytes:
            kept.append(choice)
    return kept


def choose(convolutions: Sequence[Sizes], allowance: float = inf) -> list[Tiling | None]:
    """The quickest ways that take at most so many bytes more than the plain ones.

    Where they would, those are given up that gain the least for each byte.
    """
    options = [choices(sizes) for sizes in convolutions]
    chosen = [0] * len(options)
    more = sum(tilings[0].nbytes - tilings[-1].nbytes for tilings in options)
    retreats = sorted(
        ((other.seconds - one.seconds) / (one.nbytes - other.nbytes), place, number)
        for place, tilings in enumerate(options)
        for number, (one, other) in enumerate(pairwise(tilings))
    )
    for _, place, number in retreats:
        if more > allowance and chosen[place] == number:
            one, other = options[place][number : number + 2]
            chosen[place], more = number + 1, more - one.nbytes + other.nbytes
    return [tilings[number].tiling for tilings, number in zip(options, chosen, strict=True)]


def winograd(tiling: Tiling, work: Work, matrices: list[Array]) -> list[list[Part]]:
    """The steps: each worker takes some rows of tiles through all stages."""
    sizes, sources, finish, abreast, scratch = images_of(work)
    down, across = tiling.tiles(sizes)
    each = sizes.outer // sizes.groups
    most = max(min(MILLION // (depth(sizes) * matrices[0].shape[-1]), TILES), 1)
    at_once = max(1, min(most // across, down))
    steps: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(len(sources), down, abreast)):
        parts: list[Part] = []
        for first, stop in spans(bottom - top, -(-(bottom - top) // at_once)):
            for group, blocks in enumerate(matrices):
                scratch.reset()
                inner = slice(group * sizes.inner, (group + 1) * sizes.inner)
                outer = slice(group * each, (group + 1) * each)
                rows = (top + first, stop - first)
                products, more = _products(
                    tiling, sizes, sources[image][:, :, inner], rows, blocks, part, scratch
                )
                parts += more
                place = (range(image, image + 1), outer)
                parts += turned_back(tiling, products, rows, finish, place, part, scratch)
        steps.append(sequence(parts))
    return [steps]


def _products(
    tiling: Tiling,
    sizes: Sizes,
    image: Array,
    tiles: tuple[int, int],
    blocks: Array,
    part: int,
    scratch: Scratch,
) -> tuple[Array, list[Part]]:
    """The products at each point of some rows of tiles, and what computes them."""
    values = tiling.points**2
    _, columns, inner, wide = blocks.shape
    outer, places = columns * wide, tiles[1] * tiling.tiles(sizes)[1]
    given = scratch.take(part, values, places, inner)
    halfway = scratch.take(part, values, places, inner)
    products = scratch.take(part, values, places, outer)
    parts = gathered_tiles(tiling, sizes, image, tiles, given, halfway, part, scratch)
    parts += transformed(tiling.inputs, given, halfway, given)
    into = products.reshape(values, places, columns, wide).transpose(0, 2, 1, 3)
    parts.append(call(np.matmul, given[:, None], blocks, out=into))
    return products, parts


def turned_back(
    tiling: Tiling,
    products: Array,
    tiles: tuple[int, int],
    finish: Finish,
    place: tuple[range, slice],
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """What makes the output of the products at each point of some rows of tiles.

    The place tells the images, the tiles of which follow each other, and the channels.
    """
    (images, channels), (begin, count) = place, tiles
    size, (_, places, outer) = tiling.size, products.shape
    across = places // (len(images) * count)
    parts: list[Part] = []
    if finish.bias is not None:
        # What is added to the product of the points 1 and 1 reaches all outputs once.
        middle = products[tiling.points + 1]
        bias = np.broadcast_to(finish.bias[channels], middle.shape)
        parts.append(lined(np.add, middle, bias, middle, scratch))
    between = scratch.take(part, size * tiling.points, places, outer)
    squares = products[: size * size]
    parts += transformed(tiling.outputs, products, between, squares)
    tiled = squares.reshape(size, size, len(images), count, across, outer)
    rows = slice(size * begin, size * (begin + count))
    if finish.alike:
        # Tiles are one run of memory, on which this is done sooner than on rows of the output.
        parts += finish.everywhere(squares.reshape(-1, outer))
    for number, image in enumerate(images):
        target, given = finish.target(image, rows, channels), tiled[:, :, number]
        if finish.alike:
            parts += untiled(given, target)
            continue
        flat = between.reshape(-1)[: given.size].reshape(size * count, size * across, outer)
        room = flat[: target.shape[0], : target.shape[1]]
        parts += untiled(given, room)
        parts += finish.parts(room, image, rows, channels, biased=True)
    return parts


def transformed(matrix: Array, values: Array, between: Array, out: Array) -> list[Part]:
    """Parts that multiply tiles by a matrix along their rows, then along their columns."""
    made, given = matrix.shape
    rows = between.reshape(made, -1)
    return [
        by_long_rows(matrix, values.reshape(given, -1), rows),
        call(np.matmul, matrix, rows.reshape(made, given, -1), out=out.reshape(made, made, -1)),
    ]


def gathered_tiles(
    tiling: Tiling,
    sizes: Sizes,
    image: Array,
    tiles: tuple[int, int],
    out: Array,
    spare: Array,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Parts that put the tiles of some rows side by side: (points, points, rows, across, C)."""
    size, points, (begin, count) = tiling.size, tiling.points, tiles
    across, stride, channels = tiling.tiles(sizes)[1], sizes.strides[0], image.shape[2]
    tall, wide = (stride * (size * number + points - size) for number in (count, across))
    up, left = stride * size * begin - sizes.pads[0][0], -sizes.pads[1][0]
    room = spare.reshape(-1)[: tall * wide * channels].reshape(tall, wide, channels)
    planes = image.strides[2] != image.itemsize
    if planes:
        room = room.reshape(channels, tall, wide).transpose(1, 2, 0)
    parts = padded(image, (up, up + tall), (left, left + wide), room, 0.0)
    shape = (tall // stride, stride, wide // stride, stride, channels)
    # Rows and columns by the places that windows step over: (rows, columns, stride, stride, C).
    apart = room.reshape(shape).transpose(0, 2, 1, 3, 4)
    if planes:
        together = scratch.take(part, *apart.shape)
        parts += [
            call(np.copyto, together[:, :, *place], apart[:, :, *place])
            for place in np.ndindex(apart.shape[2:])
        ]
        apart = together
    row, column, *deep = apart.strides
    view = as_strided(
        apart,
        (points, points, count, across, stride, stride, channels),
        (row, column, size * row, size * column, *deep),
        writeable=False,
    )
    return [*parts, call(np.copyto, out.reshape(view.shape), view)]
