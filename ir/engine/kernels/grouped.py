"""Convolution of many small groups: some neighbours along a row are made by one product.

Windows of neighbours share most of what they meet. ``run`` outputs of a row meet
``(run - 1) * stride + reach`` columns, and are these times a matrix that has the weights of each
output where it meets them, and zeros elsewhere: more products, but fewer numbers to gather, in
longer pieces, and matrices wide enough for BLAS. The image is put into the order (groups, rows,
columns, channels) first, each pixel of a group copied as one element.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from ....schemas import Array
from ..workers import Part, shares, spans
from .blocks import CACHE, Scratch, filling, sequence
from .calls import call
from .convolution_work import Sizes, Work
from .products import MILLION

#: Outputs of a row that are made together, at most.
LONGEST = 8
#: Groups of more channels have windows long enough, and matrices wide enough, as they are.
MOST = 64
#: What the choice supposes of one core, in nanoseconds: to begin to copy a piece, to copy one
#: number more, to copy one of a pixel, to fetch a weight; and the multiply-adds in one.
PIECE, NUMBER, PIXEL, WEIGHT, PRODUCTS = 4, 0.055, 0.2, 0.27, 70
#: Each product takes as long as if its matrix had so many columns more.
NARROW = 7
#: Workers share groups, not rows, where each then has so many channels.
BESIDE = 128


class Runs(NamedTuple):
    """How many neighbours are made together, about how long that takes, and bytes of weights."""

    length: int
    seconds: float
    nbytes: int


def quickest(sizes: Sizes) -> Runs | None:
    """The quickest run; None where groups are not many and small, or windows sooner gathered."""
    each, (tall, wide) = sizes.outer // sizes.groups, sizes.kernel
    if sizes.groups == 1 or max(each, sizes.inner) > MOST or sizes.narrow or sizes.plain:
        return None
    height, width = sizes.out
    copied = (prod(sizes.strides) * sizes.inner + each) * sizes.groups * height * width * PIXEL

    def spent(tiles: int, pieces: int, taken: int, made: int) -> float:
        gather = pieces * PIECE + taken * NUMBER
        products = taken * (made + NARROW) / PRODUCTS
        return sizes.groups * (height * tiles * (gather + products) + taken * made * WEIGHT)

    # Group by group, tap by tap; what is between the taps is not looked at.
    least = 2 * copied + spent(width, tall * wide, tall * wide * sizes.inner, each)
    best: Runs | None = None
    for run in range(1, min(LONGEST, width) + 1):
        taken, made = tall * columns(sizes, run) * sizes.inner, run * each
        took = copied + spent(-(-width // run), tall, taken, made)
        if took < least:
            # Two cores share it.
            least, best = took, Runs(run, took * 0.5e-9, 4 * sizes.groups * taken * made)
    return best


def columns(sizes: Sizes, run: int) -> int:
    """How many columns so many neighbours meet."""
    return (run - 1) * sizes.strides[1] + sizes.reach[1]


def in_runs(sizes: Sizes, run: int) -> Array:
    """For each group the matrix (kh * columns * inner, run * outer) that makes neighbours."""
    groups, inner, (tall, wide) = sizes.groups, sizes.inner, sizes.kernel
    each = sizes.outer // groups
    found = np.zeros((groups, tall, columns(sizes, run), inner, run, each), np.float32)
    weights = sizes.weights.reshape(groups, each, inner, tall, wide).transpose(0, 3, 4, 2, 1)
    step, gap = sizes.strides[1], sizes.dilations[1]
    for place in range(run):
        first = place * step
        found[:, :, first : first + sizes.reach[1] : gap, :, place] = weights
    return found.reshape(groups, -1, run * each)


def grouped(work: Work, matrices: Array) -> list[list[Part]]:
    """The steps: workers share rows, or groups where these are enough for that."""
    sizes, source, target, finish, abreast, scratch = work
    groups, each = sizes.groups, sizes.outer // sizes.groups
    height = sizes.out[0]
    cuts = shares(len(target), height, abreast)
    lanes = [(image, rows, (0, groups)) for image, rows in cuts]
    if not sizes.shuffled and sizes.outer // max(abreast, 1) >= BESIDE:
        cuts = shares(len(target), groups, abreast)
        lanes = [(image, (0, height), some) for image, some in cuts]
    steps: list[Part] = []
    for part, (image, (top, bottom), (first, stop)) in scratch.dealt(lanes):
        inner = slice(first * sizes.inner, stop * sizes.inner)
        outer = slice(first * each, stop * each)
        fill = sizes.fill
        if isinstance(fill, np.ndarray):
            fill = fill[inner].reshape(-1, 1, 1, sizes.inner)
        lane = Lane(sizes, matrices[first:stop], fill, part, scratch)
        parts: list[Part] = []
        for begin, end in spans(bottom - top, -(-(bottom - top) // lane.at_once)):
            scratch.reset()
            rows = slice(top + begin, top + end)
            block = finish.target(image, rows, outer)
            room = block
            if finish or not block.flags.c_contiguous or block.dtype != np.float32:
                room = scratch.take(part, *block.shape)
            parts += lane.parts(source[image, :, :, inner], rows, room)
            parts += finish.parts(room, image, rows, outer)
        steps.append(sequence(parts))
    return [steps]


class Lane:
    """Makes the parts of one worker, for some groups."""

    def __init__(
        self, sizes: Sizes, matrices: Array, fill: float | Array, part: int, scratch: Scratch
    ) -> None:
        self.sizes, self.matrices, self.part, self.scratch = sizes, matrices, part, scratch
        #: What it pads with: a number, or one for each channel of a group.
        self.fill = fill
        self.each = sizes.outer // sizes.groups
        self.run = matrices.shape[2] // self.each
        self.tiles = -(-sizes.out[1] // self.run)
        #: The columns that all tiles of a row meet.
        self.wide = (self.tiles * self.run - 1) * sizes.strides[1] + sizes.reach[1]
        taken, made = matrices.shape[1:]
        self.row = self.tiles * taken
        #: So many rows make products that are taken as they lie, and windows that stay in cache.
        self.at_once = max(1, min(MILLION // (self.row * made), CACHE // (4 * self.row)))

    def parts(self, image: Array, rows: slice, out: Array) -> list[Part]:
        """Parts that make some rows of the output (H, W, C)."""
        sizes, groups = self.sizes, len(self.matrices)
        count, (taken, made) = rows.stop - rows.start, self.matrices.shape[1:]
        tall = (count - 1) * sizes.strides[0] + sizes.reach[0]
        room = self.scratch.take(self.part, groups, tall, self.wide, sizes.inner)
        found = self._filled(image, rows.start * sizes.strides[0] - sizes.pads[0][0], room)
        # Each row of a window is one piece of memory, so it is copied as one element.
        piece = np.dtype(f"V{4 * sizes.inner * columns(sizes, self.run)}")
        plane, line, pixel, _ = room.strides
        view = np.ndarray(
            (groups, count, self.tiles, sizes.kernel[0]), piece, room, 0,
            (plane, line * sizes.strides[0], pixel * sizes.strides[1] * self.run,
             line * sizes.dilations[0]),
        )  # fmt: skip
        some = max(1, CACHE // (4 * count * self.row))
        windows = self.scratch.take(self.part, min(some, groups), count * self.tiles, taken)
        results = self.scratch.take(self.part, min(some, groups), count * self.tiles, made)
        pixels = pieces(out, self.each).transpose(2, 0, 1)
        for begin in range(0, groups, some):
            end = min(begin + some, groups)
            left, into = windows[: end - begin], results[: end - begin]
            gathered = left.view(piece).reshape(end - begin, *view.shape[1:])
            made_pixels = pieces(into.reshape(end - begin, count, -1), self.each)
            found += [
                call(np.copyto, gathered, view[begin:end]),
                call(np.matmul, left, self.matrices[begin:end], out=into),
                call(np.copyto, pixels[begin:end], made_pixels[:, :, : sizes.out[1]]),
            ]
        return found

    def _filled(self, image: Array, top: int, room: Array) -> list[Part]:
        """Parts that put what windows meet into a room (groups, rows, columns, channels)."""
        sizes, (_, tall, wide, inner) = self.sizes, room.shape
        height, width, left = *image.shape[:2], -sizes.pads[1][0]
        begin, end = max(top, 0), min(top + tall, height)
        first, stop = max(left, 0), min(left + wide, width)
        if begin >= end or first >= stop:
            return [filling(room, self.fill)]
        middle = room[:, begin - top : end - top]
        within = middle[:, :, first - left : stop - left]
        given = image[begin:end, first:stop]
        if given.strides[2] == given.itemsize:
            turned = pieces(given, inner).transpose(2, 0, 1)
            copy = call(np.copyto, pieces(within, inner)[..., 0], turned)
        else:  # planes
            split = given.reshape(*given.shape[:2], -1, inner).transpose(2, 0, 1, 3)
            copy = call(np.copyto, within, split)
        borders = [
            room[:, : begin - top], room[:, end - top :],
            middle[:, :, : first - left], middle[:, :, stop - left :],
        ]  # fmt: skip
        return [copy, *(filling(border, self.fill) for border in borders if border.size)]


def pieces(array: Array, size: int) -> Array:
    """An array whose last axis lies in one piece, so many numbers of it as one element."""
    return array.view(np.dtype(f"V{4 * size}"))
