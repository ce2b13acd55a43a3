"""Arithmetic, element by element; sums along an axis; maxima of segments.

Specification pages: Abs-1, Acos-1, Acosh-3, Add-1, Asin-1, Asinh-3, Atan-1, Atanh-3, Ceiling-1,
Cos-1, Cosh-1, CumSum-3, Divide-1, Erf-1, ErfInv-17, Floor-1, FloorMod-1, Log-1, Maximum-1,
Minimum-1, Mod-1, Multiply-1, Negative-1, Power-1, Round-5, SegmentMax-16, Sign-1, Sin-1, Sinh-1,
Sqrt-1, SquaredDifference-1, Subtract-1, Tan-1, Tanh-1.

NaN and infinity are NumPy's. Functions with a fraction give integers the nearest value, as
OpenVINO's CPU does. A whole quotient with nothing to divide by is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Tensor
from ..schemas.attributes import Bool
from ..schemas.shapes import merge
from ..schemas.tensor import Bounds
from .axes import axis_of
from .base import Op, element_type
from .bounds import corners, largest, without
from .elementwise import (
    ANYTHING,
    REAL,
    Arithmetic,
    RealUnary,
    Unary,
    as_real,
    erf,
    polynomial,
    scalar,
    settled,
    widened,
)
from .pooling import lowest


class AbsV1(Unary):
    """The distance from zero."""

    carries_sizes = True

    def of(self, x: Array) -> Array:
        return np.abs(x)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        ends = self.run(lows[0])[0], self.run(highs[0])[0]
        meets_zero = (lows[0] < 0) & (highs[0] > 0)
        return [(without(np.minimum(*ends), meets_zero, 0), np.maximum(*ends))]

    def carry_sizes(self, data: Array) -> Sequence[Array | None] | None:
        return None


class NegativeV1(Unary):
    """The number on the other side of zero."""

    def of(self, x: Array) -> Array:
        return np.negative(x)


class SignV1(Unary):
    """-1, 0 or 1; NaN stays."""

    def of(self, x: Array) -> Array:
        return np.sign(x)


class FloorV1(Unary):
    """The greatest whole number that is not above."""

    def of(self, x: Array) -> Array:
        return np.floor(x)


class CeilingV1(Unary):
    """The least whole number that is not below."""

    def of(self, x: Array) -> Array:
        return np.ceil(x)


class RoundV5(Unary):
    """The nearest whole number."""

    allowed = ANYTHING

    mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even"

    def of(self, x: Array) -> Array:
        if x.dtype.kind != "f":
            return x.copy()
        if self.mode == "half_to_even":
            return np.rint(x)
        whole = np.trunc(x)
        return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0).astype(x.dtype)


class SqrtV1(RealUnary):
    """The square root; NaN below zero."""

    def of(self, x: Array) -> Array:
        return np.sqrt(x)


class LogV1(RealUnary):
    """The natural logarithm."""

    def of(self, x: Array) -> Array:
        return np.log(x)


class ErfV1(RealUnary):
    """The error function."""

    def of(self, x: Array) -> Array:
        return erf(x)


class ErfInvV17(RealUnary):
    """The number whose error function it is; infinite at -1 and 1, NaN beyond."""

    allowed = REAL

    def of(self, x: Array) -> Array:
        return erf_inverse(x.astype(np.float64)).astype(x.dtype)


class SinV1(RealUnary):
    """The sine."""

    def of(self, x: Array) -> Array:
        return np.sin(x)


class CosV1(RealUnary):
    """The cosine."""

    def of(self, x: Array) -> Array:
        return np.cos(x)


class TanV1(RealUnary):
    """The tangent."""

    def of(self, x: Array) -> Array:
        return np.tan(x)


class AsinV1(RealUnary):
    """The inverse of the sine."""

    def of(self, x: Array) -> Array:
        return np.arcsin(x)


class AcosV1(RealUnary):
    """The inverse of the cosine."""

    def of(self, x: Array) -> Array:
        return np.arccos(x)


class AtanV1(RealUnary):
    """The inverse of the tangent."""

    def of(self, x: Array) -> Array:
        return np.arctan(x)


class SinhV1(RealUnary):
    """The hyperbolic sine."""

    def of(self, x: Array) -> Array:
        return np.sinh(x)


class CoshV1(RealUnary):
    """The hyperbolic cosine."""

    def of(self, x: Array) -> Array:
        return np.cosh(x)


class TanhV1(RealUnary):
    """The hyperbolic tangent."""

    def of(self, x: Array) -> Array:
        return np.tanh(x)


class AsinhV3(RealUnary):
    """The inverse of the hyperbolic sine."""

    since = 4

    def of(self, x: Array) -> Array:
        return np.arcsinh(x)


class AcoshV3(RealUnary):
    """The inverse of the hyperbolic cosine."""

    since = 4

    def of(self, x: Array) -> Array:
        return np.arccosh(x)


class AtanhV3(RealUnary):
    """The inverse of the hyperbolic tangent."""

    since = 4

    def of(self, x: Array) -> Array:
        return np.arctanh(x)


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
        return below + ((below < 0) & (below * b != a)).astype(below.dtype)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        (a_low, b_low), (a_high, b_high) = lows, (highs[0], self.aligned(*highs))
        b_low = self.aligned(a_low, b_low)
        if np.any((b_low == 0) & (b_high == 0)):
            return None
        # A divisor that may be zero leaves no limit on the side from which it comes to zero.
        positive = corners(self, (a_low, without(b_low, b_low <= 0, 1)), highs)
        negative = corners(self, (a_low, b_low), (a_high, without(b_high, b_high >= 0, -1)))
        limits = [
            np.where(b_high > 0, *pair) for pair in zip(positive[0], negative[0], strict=True)
        ]
        low, high = limits
        mixed = (b_low < 0) & (b_high > 0)
        low = without(low, mixed, lowest(low))
        return [(low, without(high, mixed | (b_low == 0), largest(high.dtype)))]

    def carry_sizes(self, a: Array, b: Array) -> Sequence[Array | None] | None:
        other = self.aligned(a, b)
        if not all(divisor >= 1 for divisor in other.ravel().tolist()):
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
        low = np.where(exact | (usual & steady), ends[0], np.where(a_low >= 0, 0, lowest(a_low)))
        high = np.where(usual, np.minimum(a_high, b_high - 1), most)
        high = np.where(exact | (usual & steady), ends[1], high)
        return [(low.astype(a_low.dtype), high.astype(a_low.dtype))]


class ModV1(Remainder):
    """The remainder, with the sign of the first operand."""

    def of(self, a: Array, b: Array) -> Array:
        return np.fmod(a, b)


class FloorModV1(Remainder):
    """The remainder, with the sign of the second operand."""

    def of(self, a: Array, b: Array) -> Array:
        return np.mod(a, b)


class PowerV1(Arithmetic):
    """The first operand to the power of the second."""

    def widened(self, data: Array) -> Array:
        # Whole numbers to a negative power have a fraction: they are calculated as reals.
        return as_real(data)

    def of(self, a: Array, b: Array) -> Array:
        return np.power(a, b)


class SquaredDifferenceV1(Arithmetic):
    """The square of the difference."""

    def of(self, a: Array, b: Array) -> Array:
        difference = np.subtract(a, b)
        return np.multiply(difference, difference)


class CumSumV3(Op):
    """The sum of the elements so far along an axis, with the element itself or without."""

    exclusive: Bool = False
    reverse: Bool = False

    def infer(self, data: Tensor, axis: Tensor | None = None) -> tuple[Tensor, ...]:
        if axis is not None:
            element_type(axis, ElementType.I32, ElementType.I64)
            known = axis.ints()
            if known and data.rank:
                axis_of(known[0], data.rank)
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        listed = np.atleast_1d(data)
        along = 0 if axis is None else axis_of(int(axis.ravel()[0]), listed.ndim)
        wide = widened(listed)
        turned = np.flip(wide, along) if self.reverse else wide
        with np.errstate(all="ignore"):
            sums = np.cumsum(turned, along, dtype=wide.dtype)
        if self.exclusive:
            sums = np.roll(sums, 1, along)
            first: Any = (slice(None),) * along + (slice(0, 1),)
            sums[first] = 0
        sums = np.flip(sums, along) if self.reverse else sums
        return (settled(sums, data.dtype).reshape(data.shape),)


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
        inside = (segment_ids >= 0) & (segment_ids < count)
        order = np.argsort(segment_ids[inside], kind="stable")
        wide = widened(data[inside][order])
        fill = 0 if self.fill_mode == "zero" else lowest(data)
        result = np.full((count, *data.shape[1:]), fill, data.dtype)
        present, starts = np.unique(segment_ids[inside][order], return_index=True)
        if len(present):
            result[present] = settled(np.maximum.reduceat(wide, starts, axis=0), data.dtype)
        return (result,)


# erf_inverse(x) / x as polynomials, fitted by weighted least squares to 3e-9: in
# w - 2.5 where w = -log(1 - x**2) is below 5, in sqrt(w) - 3 above, up to the last float32.
_INVERSE_NEAR = (
    1.50140935, 0.246640288, -0.00417733939, -0.00125274468, 0.000218282608, -4.96190145e-06,
    -3.4346005e-06, 4.65889836e-07, 1.80350442e-08, -8.77266033e-09, 3.35683604e-10,
)  # fmt: skip
_INVERSE_FAR = (
    2.8329768, 1.00167524, 0.00944530297, -0.00764276518, 0.00568770045, -0.00356708585,
    0.00147510572, -0.000120056259, -0.000277483335, 0.000160561155, -2.95219588e-05,
)  # fmt: skip


def erf_inverse(x: Array) -> Array:
    """The inverse of the error function, of float64, as exact as float32 needs."""
    distance = -(np.log1p(-x) + np.log1p(x))
    near = polynomial(distance - 2.5, _INVERSE_NEAR)
    far = polynomial(np.sqrt(np.minimum(distance, 16.8)) - 3, _INVERSE_FAR)
    value = x * np.where(distance < 5, near, far)
    return np.where(np.abs(x) == 1, np.copysign(np.inf, x), value)
