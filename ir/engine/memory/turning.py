"""Copies between arrays whose axes lie in another order, in blocks of which both stay in cache.

NumPy writes one line after the other: where the numbers of a line lie far apart in the source, it
takes one of each cache line, and comes back for the next when that is gone.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array

#: Bytes of a block, about what the first cache holds; the least and the most numbers of its lines.
BLOCK, FEWEST, MOST = 48 << 10, 64, 512
#: The first cache keeps a line in one of so many places, by where it lies, and so many in each. Of
#: 12 that newer processors keep there they lose little to 8: a tenth, of four times the time.
PLACES, WAYS = 64, 8
#: So many lines of the fewest numbers stay in the second cache.
LINES = 1024
#: Lines of at most so many numbers are written a place at a time.
SINGLE = 6
#: So many bytes apart, numbers of a line share cache lines; so many of a line are in few.
NEAR = 64
#: Runs of at most so many bytes are sooner copied as one element each.
SHORT = 512


def in_blocks(source: Array, target: Array) -> list[tuple[Array, Array]]:
    """Pairs of views that copy an array to another of its shape, one after the other.

    There is but one where blocks would not help: fewer numbers, or axes in the same order.
    """
    if target.nbytes <= BLOCK or source.ndim < 2:
        return [(source, target)]
    shape, taken, put = _merged(source, target)
    inner = len(shape) - 1
    if inner and shape[inner] <= SINGLE and taken[inner] != source.itemsize:
        # Lines so short take longest to begin: each place of theirs is a line.
        one, other = as_strided(source, shape, taken), as_strided(target, shape, put)
        return [(one[..., place], other[..., place]) for place in range(shape[inner])]
    steps = [(abs(step), axis) for axis, step in enumerate(taken) if step]
    if inner < 1 or not steps:
        return [(source, target)]
    if min(abs(taken[inner]), shape[inner] * target.itemsize) <= NEAR:
        return [(source, target)]
    _, across = min(steps)
    if across == inner:
        return [(source, target)]
    lines = prod(shape[across:inner])
    count = min(max(BLOCK // (lines * target.itemsize), FEWEST), MOST)
    count = _side_by_side(abs(taken[inner]), count)
    views = as_strided(source, shape, taken), as_strided(target, shape, put)
    runs = product(_runs(shape[across], LINES), _runs(shape[inner], count))
    found = []
    for rows, columns in runs:
        cut = (*[slice(None)] * across, rows, *[slice(None)] * (inner - across - 1), columns)
        found.append((views[0][cut], views[1][cut]))
    return found


@cache
def _side_by_side(apart: int, most: int) -> int:
    """How many cache lines, so many bytes apart, the first cache holds at once, of so many.

    Those that lie a large power of two apart are all kept in the same few places.
    """
    kept = [0] * PLACES
    for number in range(most):
        place = number * apart // NEAR % PLACES
        if kept[place] == WAYS:
            return number
        kept[place] += 1
    return most


def copy_into(target: Array, source: Array) -> None:
    """Copy an array to another of its shape, in blocks where its axes lie in another order."""
    for given, into in in_blocks(source, target):
        np.copyto(into, given)


def in_runs(source: Array, target: Array) -> tuple[Array, Array]:
    """Both as arrays of whole runs of memory, where these are short: each is copied as one."""
    if source.dtype != target.dtype or source.dtype.hasobject or target.size < 2:
        return source, target
    shape, taken, put = _merged(source, target)
    nbytes = shape[-1] * target.itemsize
    if len(shape) < 2 or not taken[-1] == put[-1] == target.itemsize or nbytes > SHORT:
        return source, target
    if min(taken) <= 0 or min(put) <= 0:
        return source, target
    kind = np.dtype(f"V{nbytes}")
    given, into = as_strided(source, shape, taken), as_strided(target, shape, put)
    return given.view(kind)[..., 0], into.view(kind)[..., 0]


def lies_in(array: Array, shape: tuple[int, ...]) -> bool:
    """Whether an array can be seen in another shape, of as many numbers, without a copy."""
    if array.flags.c_contiguous or not array.size:
        return True
    runs: list[tuple[int, int]] = []  # of numbers with the same step from one to the next
    for size, step in zip(array.shape, array.strides, strict=True):
        if size > 1 and runs and runs[-1][1] == size * step:
            runs[-1] = runs[-1][0] * size, step
        elif size > 1:
            runs.append((size, step))
    sizes = iter(shape)
    for run, _ in runs:  # new axes may cut it, and none may go beyond
        taken = 1
        while taken < run:
            taken *= next(sizes)
        if taken != run:
            return False
    return True


def straight_copy(array: Array) -> Array:
    """A copy whose memory follows its axes."""
    if array.flags.c_contiguous or array.dtype.hasobject:
        return np.array(array, order="C")
    found = np.empty(array.shape, array.dtype)
    copy_into(found, array)
    return found


def _merged(
    source: Array, target: Array
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The axes in the order of the target's memory, those as one that both go through as one.

    Their sizes, and the steps in bytes in the source and in the target.
    """
    axes = [
        (size, taken, put)
        for size, taken, put in zip(source.shape, source.strides, target.strides, strict=True)
        if size > 1
    ]
    found: list[tuple[int, int, int]] = []
    for size, taken, put in sorted(axes, key=lambda axis: -abs(axis[2])):
        if found and found[-1][1:] == (taken * size, put * size):
            found[-1] = found[-1][0] * size, taken, put
        else:
            found.append((size, taken, put))
    sizes, before, after = zip(*found, strict=True)
    return sizes, before, after


def _runs(size: int, each: int) -> list[slice]:
    return [slice(begin, min(begin + each, size)) for begin in range(0, size, each)]
