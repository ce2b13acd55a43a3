"""Arithmetic of two numbers, element by element; sums along an axis; maxima of segments.

Specification pages: Add-1, CumSum-3, Divide-1, FloorMod-1, Maximum-1, Minimum-1, Mod-1,
Multiply-1, Power-1, SegmentMax-16, SquaredDifference-1, Subtract-1.

NaN and infinity are NumPy's. Functions with a fraction give integers the nearest value, as
OpenVINO's CPU does. A whole quotient with nothing to divide by is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Tensor
from ..schemas.attributes import Bool
from ..schemas.shapes import merge
from ..schemas.tensor import Bounds
from .axes import axis_of
from .base import Op, element_type
from .budget import require
from .elementwise import (
    Arithmetic,
    as_real,
    scalar,
    settled,
    widened,
)
from .pooling import lowest
from .value_bounds import as_reals, corners, largest, without


class AddV1(Arithmetic):
    """The sum."""

    def of(self, a: Array, b: Array) -> Array:
        return np.add(a, b)

    def carry_sizes(self, a: Array, b: Array) -> Sequence[Array | None] | None:
        return (np.asarray(a + self.aligned(a, b), object),)


class SubtractV1(Arithmetic):
    """The difference."""

    def of(self, a: Array, b: Array) -> Array:
        return np.subtract(a, b)

    def carry_sizes(self, a: Array, b: Array) -> Sequence[Array | None] | None:
        return (np.asarray(a - self.aligned(a, b), object),)


class MultiplyV1(Arithmetic):
    """The product."""

    def of(self, a: Array, b: Array) -> Array:
        return np.multiply(a, b)

    def carry_sizes(self, a: Array, b: Array) -> Sequence[Array | None] | None:
        return (np.asarray(a * self.aligned(a, b), object),)


class DivideV1(Arithmetic):
    """The quotient; of integers the whole quotient below it, or (not python) towards zero."""

    m_pythondiv: Bool = True

    def of(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.true_divide(a, b)
        below = np.floor_divide(a, b)
        if self.m_pythondiv:
            return below
        require(3 * below.nbytes)
        return below + ((below < 0) & (below * b != a)).astype(below.dtype)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        (a_low, b_low), (a_high, b_high) = lows, (highs[0], self.aligned(*highs))
        b_low = self.aligned(a_low, b_low)
        if np.any((b_low == 0) & (b_high == 0)):
            return None
        # A divisor that may be zero leaves no limit on the side from which it comes to zero.
        positive = corners(self, (a_low, without(b_low, b_low <= 0, 1)), highs)
        negative = positive
        if b_low.dtype.kind != "u":
            below = without(b_high, b_high >= 0, -1)
            negative = corners(self, (a_low, b_low), (a_high, below))
        limits = [
            np.where(b_high > 0, *pair) for pair in zip(positive[0], negative[0], strict=True)
        ]
        low, high = limits
        may_be_zero = (b_low <= 0) & (b_high >= 0)
        mixed = may_be_zero & ((b_low < 0) | (a_low < 0))
        low = without(np.where(may_be_zero, np.minimum(low, 0), low), mixed, lowest(low))
        return [(low, without(high, may_be_zero, largest(high.dtype)))]

    def carry_sizes(self, a: Array, b: Array) -> Sequence[Array | None] | None:
        other = self.aligned(a, b)
        if not all(divisor >= 1 for divisor in other.ravel().tolist()):
            return None
        # A name stands for the quotient below, which above zero is also that towards zero.
        if not self.m_pythondiv and not all(size >= 0 for size in a.ravel().tolist()):
            return None
        return (np.asarray(a // other, object),)


class MinimumV1(Arithmetic):
    """The less of the two; NaN if one is."""

    def of(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


class MaximumV1(Arithmetic):
    """The greater of the two; NaN if one is."""

    def of(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


class Remainder(Arithmetic):
    """What a division leaves."""

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        if lows[0].dtype.kind == "f":
            return None
        a_low, b_low = lows[0], self.aligned(*lows)
        a_high, b_high = highs[0], self.aligned(*highs)
        ends = self.run(*lows)[0], self.run(*highs)[0]
        most = largest(a_low.dtype)
        # With a known divisor and within one of its multiples, the remainders keep their order.
        one = b_low == b_high
        steady = one & (a_low // np.maximum(b_low, 1) == a_high // np.maximum(b_low, 1))
        steady |= a_high < b_low
        usual = (a_low >= 0) & (b_low > 0) & (a_high < most)
        exact = one & (a_low == a_high) & (b_low != 0)
        positive = (a_low >= 0) & (b_low >= 0)
        low = np.where(exact | (usual & steady), ends[0], np.where(positive, 0, lowest(a_low)))
        high = np.where(usual, np.minimum(a_high, b_high - 1), most)
        high = np.where(exact | (usual & steady), ends[1], high)
        return [(low.astype(a_low.dtype), high.astype(a_low.dtype))]


class ModV1(Remainder):
    """The remainder, with the sign of the first operand."""

    def of(self, a: Array, b: Array) -> Array:
        return _left(a, b, np.trunc) if a.dtype.kind == "f" else np.fmod(a, b)


class FloorModV1(Remainder):
    """The remainder, with the sign of the second operand."""

    def of(self, a: Array, b: Array) -> Array:
        return _left(a, b, np.floor) if a.dtype.kind == "f" else np.mod(a, b)


def _left(a: Array, b: Array, whole: np.ufunc) -> Array:
    """What real numbers leave when a quotient, rounded as all are, is made whole.

    OpenVINO's CPU rounds the quotient first: 1 leaves nothing of 0.1, though the float32 nearest
    to that is above it.
    """
    quotient = np.asarray(np.divide(a, b))
    whole(quotient, out=quotient)
    np.multiply(quotient, b, out=quotient)
    return np.subtract(a, quotient, out=quotient)


class PowerV1(Arithmetic):
    """The first operand to the power of the second."""

    def widened(self, data: Array) -> Array:
        # Whole numbers to a negative power have a fraction: they are calculated as reals.
        return as_real(data)

    def of(self, a: Array, b: Array) -> Array:
        if b.size == 1 and b.ndim <= a.ndim:
            # As OpenVINO's CPU does it, and many times sooner; of -0 and -inf, not the same.
            if b.item() == 0.5:
                return np.sqrt(a)
            if b.item() == -0.5:
                return np.reciprocal(np.sqrt(a))
        return np.power(a, b)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        ((low, high),) = corners(self, lows, highs)
        ends = [(as_reals(a), as_reals(self.aligned(a, b))) for a, b in (lows, highs)]
        (base, exponent), (base_high, exponent_high) = ends
        turns = (exponent == exponent_high) & (exponent >= 0) & (exponent % 1 == 0)
        # An even power falls and grows; of others, those of numbers below zero come in any order.
        low = without(low, turns & (exponent % 2 == 0) & (base < 0) & (base_high > 0), 0)
        wild = (base < 0) & ~turns
        return [(without(low, wild, lowest(low)), without(high, wild, largest(high.dtype)))]


class SquaredDifferenceV1(Arithmetic):
    """The square of the difference."""

    rooms = 1

    def of(self, a: Array, b: Array) -> Array:
        difference = np.subtract(a, b)
        return np.multiply(difference, difference)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        ((low, high),) = corners(self, lows, highs)
        (a_low, b_low), (a_high, b_high) = lows, highs
        may_meet = (a_low <= self.aligned(a_low, b_high)) & (self.aligned(a_low, b_low) <= a_high)
        return [(without(low, may_meet, 0), high)]


class CumSumV3(Op):
    """The sum of the elements so far along an axis, with the element itself or without."""

    rooms = 1

    exclusive: Bool = False
    reverse: Bool = False

    def infer(self, data: Tensor, axis: Tensor | None = None) -> tuple[Tensor, ...]:
        if data.type is ElementType.STRING:
            raise IRError("strings have no sums")
        if axis is not None:
            element_type(axis, ElementType.I32, ElementType.I64)
            known = axis.ints()
            if known == []:
                raise IRError("there are 0 axes, it sums along one")
            if known and data.rank:
                axis_of(known[0], data.rank)
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        listed = np.atleast_1d(data)
        along = 0 if axis is None else axis_of(int(axis.ravel()[0]), listed.ndim)
        wide = widened(listed)
        turned = np.flip(wide, along) if self.reverse else wide
        with np.errstate(all="ignore"):
            sums = _sums_so_far(turned, along)
        if self.exclusive:
            sums = np.roll(sums, 1, along)
            first: Any = (slice(None),) * along + (slice(0, 1),)
            sums[first] = 0
        sums = np.flip(sums, along) if self.reverse else sums
        # Of 8 bits, too, they wrap around, where the CPU lets other results stop at the ends.
        whole = data.dtype.kind in "iu"
        sums = sums.astype(data.dtype) if whole else settled(sums, data.dtype)
        return (sums.reshape(data.shape),)


#: From so many neighbours on, rows are sooner added as they are than number by number.
ROW = 8


def _sums_so_far(numbers: Array, axis: int) -> Array:
    """The sums up to each place of an axis: one after the other, whole rows at once."""
    if numbers.shape[axis] < 2 or prod(numbers.shape[axis + 1 :]) < ROW:
        return np.cumsum(numbers, axis, dtype=numbers.dtype)
    sums = np.empty(numbers.shape, numbers.dtype)
    given, found = np.moveaxis(numbers, axis, 0), np.moveaxis(sums, axis, 0)
    np.copyto(found[0], given[0])
    for place in range(1, len(found)):
        np.add(found[place - 1], given[place], out=found[place])
    return sums


class SegmentMaxV16(Op):
    """The greatest of the slices that bear the same number, which do not fall."""

    fill_mode: Literal["zero", "lowest"]

    def infer(
        self, data: Tensor, segment_ids: Tensor, num_segments: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        for tensor in (segment_ids, num_segments):
            if tensor is not None:
                element_type(tensor, ElementType.I32, ElementType.I64)
        if data.rank == 0:
            raise IRError("the data have no axes, their first is that of the segments")
        if segment_ids.rank not in (None, 1):
            raise IRError(f"segment_ids have {segment_ids.rank} axes, they are a list")
        if data.rank is not None and segment_ids.rank is not None:
            merge(data.shape[0], segment_ids.shape[0])
        ids = segment_ids.ints()
        if ids is not None and ids != sorted(ids):
            raise IRError(f"segment_ids {ids} are not in order")
        count = max(ids, default=-1) + 1 if ids is not None else None
        if num_segments is not None:
            scalar(num_segments, "num_segments")
            wanted = num_segments.ints()
            count = None if wanted is None else wanted[0]
        if data.rank is None:
            return (Tensor(data.type),)
        size = ANY if count is None or count < 0 else count
        return (Tensor(data.type, data.shape.with_size(0, size)),)

    def run(
        self, data: Array, segment_ids: Array, num_segments: Array | None = None
    ) -> tuple[Array, ...]:
        count = int(segment_ids.max(initial=-1)) + 1 if num_segments is None else int(num_segments)
        if count < 0:
            raise IRError(f"num_segments is {count}, the least is 0")
        # The segments and the data inside, in order; the places that order them and begin each.
        require((3 * segment_ids.itemsize + 30) * segment_ids.size + 3 * data.nbytes)
        inside = (segment_ids >= 0) & (segment_ids < count)
        order = np.argsort(segment_ids[inside], kind="stable")
        wide = widened(data[inside][order])
        fill = 0 if self.fill_mode == "zero" else lowest(data)
        result = np.full((count, *data.shape[1:]), fill, data.dtype)
        present, starts = np.unique(segment_ids[inside][order], return_index=True)
        if len(present):
            result[present] = settled(np.maximum.reduceat(wide, starts, axis=0), data.dtype)
        return (result,)
