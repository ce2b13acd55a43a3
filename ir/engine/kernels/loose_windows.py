"""Convolutions of whatever shape outside the arena: windows gathered, block by block.

What a filter meets is put side by side for as many places as stay in cache, and multiplied while
it is there. Shapes alone tell where blocks begin, so that any number of threads gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....layers.base import Kernel
from ....layers.budget import budget, require
from ....layers.windows import reach
from ....schemas import Array
from ..workers import lanes, side_by_side, spans

#: Numbers of windows that stay in a core's own cache beside what is made of them.
BLOCK = 1 << 17
#: Memory for so many numbers that nobody is using: what is taken anew is slow at first.
_spare: list[Array] = []
#: So much of it is kept.
SPARE = 4


class Block(NamedTuple):
    """Some windows of an image, and where the sums of their products go."""

    #: The rows that they meet, of those that there are.
    source: Array
    #: What is missing before and after, along each axis of the image.
    pads: list[tuple[int, int]]
    target: Array


def convolution(op: Any, filters: Array, threads: int, general: Kernel) -> Kernel:
    """What convolves float32 numbers with filters that are known; ``general`` does all others."""
    if filters.dtype != np.float32 or filters.ndim < 3 or not filters.size:
        return general
    weights = np.ascontiguousarray(filters.reshape(len(filters), -1))
    channels, kernel = filters.shape[1], filters.shape[2:]

    def run(data: Array, given: Array) -> tuple[Array, ...]:
        fits = data.ndim == filters.ndim and data.dtype == np.float32 and data.size > 0
        if not fits or data.shape[1] != channels or budget().max_memory is not None:
            return general(data, given)
        pads, stops = op.settled(data, kernel)
        if not prod(stops):
            return general(data, given)
        made = np.empty((len(data), len(weights), *stops), np.float32)
        require(made.nbytes)
        blocks = list(_blocks(op, data, kernel, pads, made))
        count = min(lanes(made.size * weights.shape[1]), len(blocks))
        work = partial(_multiplied, op, weights, kernel)
        side_by_side(
            [partial(work, blocks[slice(*run)]) for run in spans(len(blocks), count)], threads
        )
        return (made,)

    return run


def _blocks(
    op: Any, data: Array, kernel: Sequence[int], pads: Sequence[tuple[int, int]], made: Array
) -> Iterator[Block]:
    """As many windows at a time as there is room for, along the first axis of each image."""
    row = data.shape[1] * prod(kernel) * prod(made.shape[3:])
    for image, target in zip(data, made, strict=True):
        for first, stop in spans(made.shape[2], -(-row * made.shape[2] // BLOCK)):
            rows, missing = met(op, data, kernel, pads, (first, stop))
            yield Block(image[:, rows], [missing, *pads[1:]], target[:, first:stop])


def met(
    op: Any,
    data: Array,
    kernel: Sequence[int],
    pads: Sequence[tuple[int, int]],
    run: tuple[int, int],
) -> tuple[slice, tuple[int, int]]:
    """The rows that windows meet between two stops, and how many are padding before and after."""
    (first, stop), before, size = run, pads[0][0], data.shape[2]
    begin = first * op.strides[0] - before
    end = (stop - 1) * op.strides[0] - before + reach(kernel[0], op.dilations[0])
    rows = slice(min(max(begin, 0), size), min(max(end, 0), size))
    missing = end - begin - (rows.stop - rows.start)
    ahead = min(max(-begin, 0), missing)
    return rows, (ahead, missing - ahead)


def _multiplied(op: Any, weights: Array, kernel: Sequence[int], blocks: Sequence[Block]) -> None:
    """Multiply the windows of some blocks, one after the other in the same memory."""
    try:
        room = _spare.pop()
    except IndexError:
        room = np.empty(BLOCK, np.float32)
    for source, pads, target in blocks:
        size = weights.shape[1] * prod(target.shape[1:])
        if size > room.size:
            room = np.empty(size, np.float32)
        windows = _windows(op, _padded(source, pads), kernel, target.shape[1:])
        beside = room[:size].reshape(windows.shape)
        np.copyto(beside, windows)
        flat = beside.reshape(weights.shape[1], -1)
        np.matmul(weights, flat, out=target.reshape(len(weights), -1))
    if room.size == BLOCK and len(_spare) < SPARE:
        _spare.append(room)


def _windows(op: Any, data: Array, kernel: Sequence[int], stops: Sequence[int]) -> Array:
    """A view of all windows: the kernel's places beside the channels, then where it stops."""
    steps = data.strides[1:]
    places = [step * gap for step, gap in zip(steps, op.dilations, strict=True)]
    moves = [step * stride for step, stride in zip(steps, op.strides, strict=True)]
    shape, strides = (len(data), *kernel, *stops), (data.strides[0], *places, *moves)
    return np.lib.stride_tricks.as_strided(data, shape, strides, writeable=False)


def _padded(data: Array, pads: Sequence[tuple[int, int]]) -> Array:
    """The data with zeros around it."""
    if not any(map(any, pads)):
        return data
    sizes = [
        before + size + after for size, (before, after) in zip(data.shape[1:], pads, strict=True)
    ]
    found = np.zeros((len(data), *sizes), np.float32)
    inside = (slice(b, b + n) for n, (b, _) in zip(data.shape[1:], pads, strict=True))
    found[(slice(None), *inside)] = data
    return found


__all__ = ["convolution", "met"]
