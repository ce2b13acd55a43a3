"""Rows by matrices of float16, each row by one: the bytes that come from memory are half as many.

A row is a power of two times the sum of two rows of float16: ``x W = 2**n (h W + l W)``, where h
is x rounded and l what that leaves, rounded. What is lost of a number is as much as float32 would
lose, or below the last bit of the largest in its row by fourteen bits.
"""

from __future__ import annotations

from math import frexp, isfinite, ldexp
from typing import NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import Node, Value
from ..workers import HalfProducts, Part, half_products
from .blocks import CACHE, Scratch, epilogue, followed, sequence
from .calls import call
from .lines import LINE, fetched

#: The power of two that the largest number of a row stays below.
BITS = 15
#: The least that the largest is taken for: what brings it there, and back, has all its bits.
LEAST = BITS - 126


class Pairs(NamedTuple):
    """Rows as float16 (2, rows, taken), and the power of two of each, which is none for some."""

    halves: Array
    powers: Array


class Known(NamedTuple):
    """Rows that are pairs by now: of which value, of what shape."""

    of: Value
    shape: tuple[int, ...]
    pairs: Pairs


def by_halves(
    node: Node, a: Array, b: Array, store: Array, abreast: int, scratch: Scratch
) -> tuple[list[list[Part]], list[Part]]:
    """The step that makes pairs, unless they are, and the one that multiplies.

    Of that, each worker has some columns of every matrix.
    """
    library = half_products()
    assert library is not None  # or there would be no such weights
    taken, columns = b.shape[-2:]
    matrices = b.swapaxes(-1, -2).reshape(-1, columns, taken)
    places = list(np.ndindex(*store.shape[:-1]))
    a = np.broadcast_to(a, (*store.shape[:-1], taken))
    making, pairs = _rows_as_pairs(node.inputs[0], a, library, scratch)
    wanted = np.ones(1, bool) if node.wanted is None else node.wanted.array
    wanted = np.broadcast_to(wanted, (*store.shape[:-1], 1))
    followers = epilogue(node, scratch)
    parts: list[Part] = []
    lanes = abreast if matrices.size > 1 << 14 else 1
    for part, (first, stop) in scratch.runs(-(-columns // LINE), lanes):
        scratch.reset()
        begin, end = first * LINE, min(stop * LINE, columns)
        sums = scratch.take(part, end - begin, 2)
        steps: list[Part] = []
        for place, pair, power, matrix in zip(
            places, pairs.halves.swapaxes(0, 1), pairs.powers, matrices[:, begin:end], strict=True
        ):
            target = store[place][begin:end]
            multiplied = _product(a[place], pair, power, matrix, sums, target, library)
            steps.append(if_wanted(multiplied, wanted[place], target))
        index = (..., slice(begin, end))
        steps += followed(followers, store[index], index)
        parts.append(sequence(steps))
    return making, parts


def _rows_as_pairs(
    value: Value, a: Array, library: HalfProducts, scratch: Scratch
) -> tuple[list[list[Part]], Pairs]:
    """What makes pairs of rows; nothing where these are pairs already."""
    known = scratch.digits
    if isinstance(known, Known) and known.of is value and known.shape == a.shape:
        return [], known.pairs
    room = scratch.digits_room
    room.reset()
    rows, steps = a.reshape(-1, a.shape[-1]), []
    if not np.may_share_memory(rows, a):
        rows = room.take(0, *rows.shape)
        steps.append(call(np.copyto, rows.reshape(a.shape), a))
    halves = room.take_bytes(0, 2, 2 * rows.size).view(np.float16).reshape(2, *rows.shape)
    pairs = Pairs(halves, room.take(0, len(rows), 1))
    scaled, widened = room.take(0, *rows.shape), room.take(0, *rows.shape)
    scratch.digits = Known(value, a.shape, pairs)
    steps.append(_split(rows, pairs, scaled, widened, library))
    return [[sequence(steps)]], pairs


def _split(rows: Array, into: Pairs, scaled: Array, widened: Array, library: HalfProducts) -> Part:
    """What makes pairs of rows; of those that are not finite the power is no number."""
    (high, low), powers = into.halves, into.powers[:, 0]
    rounded = library.rounded(scaled, high)
    widen, leave = library.rounded(high, widened), library.rounded(scaled, low)

    def run() -> None:
        np.abs(rows, scaled)
        largest = np.maximum.reduce(scaled, 1)
        if len(rows) == 1 and isfinite(found := largest.item()):
            exponent = max(frexp(found)[1], LEAST)
            np.multiply(rows, ldexp(1.0, BITS - exponent), scaled)
            powers[0] = ldexp(1.0, exponent - BITS)
        else:
            finite = np.isfinite(largest)
            exponents = np.maximum(np.frexp(np.where(finite, largest, 1))[1], LEAST)
            np.multiply(rows, np.ldexp(np.float32(1), BITS - exponents)[:, None], scaled)
            np.ldexp(np.float32(1), exponents - BITS, powers)
            scaled[~finite] = 0
            powers[~finite] = np.nan
        rounded()
        widen()
        np.subtract(scaled, widened, scaled)
        leave()

    return run


def _product(
    row: Array,
    pair: Array,
    power: Array,
    matrix: Array,
    sums: Array,
    target: Array,
    library: HalfProducts,
) -> Part:
    """What multiplies a pair by a matrix."""
    columns = len(matrix)
    assert matrix.flags.c_contiguous
    # Four columns are met at once, which are too short for the processor to fetch them ahead.
    high = max(LINE, CACHE // matrix.strides[0] // LINE * LINE)
    some = [slice(at, min(at + high, columns)) for at in range(0, columns, high)]
    steps: list[Part] = []
    for each in some:
        steps += [fetched(matrix[each]), library.multiplied(matrix[each], pair, sums[each])]
    first, second = sums.T

    def run() -> None:
        if np.isnan(power[0]):
            for each in some:
                np.matmul(matrix[each].astype(np.float32), row, out=target[each])
            return
        for step in steps:
            step()
        np.add(first, second, target)
        np.multiply(target, power, target)

    return run


def if_wanted(multiplied: Part, wanted: Array, target: Array) -> Part:
    """A product, or zeros where nobody asks for it."""

    def run() -> None:
        if wanted[0]:
            multiplied()
        else:
            target[...] = 0

    return run
