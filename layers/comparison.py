"""Comparisons, element by element; a comparison with NaN is false, but that it is not equal.

Specification pages: Equal-1, Greater-1, GreaterEqual-1, IsFinite-10, IsInf-10, IsNaN-10, Less-1,
LessEqual-1, NotEqual-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..schemas import Array, ElementType, Tensor
from ..schemas.attributes import Bool
from ..schemas.tensor import Bounds
from .base import element_type
from .elementwise import REAL, Comparison, Unary, widened


class EqualV1(Comparison):
    """Whether the two are the same."""

    carries_sizes = True

    def of(self, a: Array, b: Array) -> Array:
        return np.equal(a, b)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        (a_low, b_low), (a_high, b_high) = lows, highs
        may_meet = (a_low <= self.aligned(a_low, b_high)) & (self.aligned(a_low, b_low) <= a_high)
        known = (a_low == a_high) & self.aligned(a_low, b_low == b_high)
        return [(known & may_meet, may_meet)]

    def carry_sizes(self, a: Array, b: Array) -> Sequence[Array | None] | None:
        return None


class NotEqualV1(Comparison):
    """Whether the two differ."""

    def of(self, a: Array, b: Array) -> Array:
        return np.not_equal(a, b)


class GreaterV1(Comparison):
    """Whether the first is above the second."""

    def of(self, a: Array, b: Array) -> Array:
        return np.greater(a, b)


class GreaterEqualV1(Comparison):
    """Whether the first is not below the second."""

    def of(self, a: Array, b: Array) -> Array:
        return np.greater_equal(a, b)


class LessV1(Comparison):
    """Whether the first is below the second."""

    def of(self, a: Array, b: Array) -> Array:
        return np.less(a, b)


class LessEqualV1(Comparison):
    """Whether the first is not above the second."""

    def of(self, a: Array, b: Array) -> Array:
        return np.less_equal(a, b)


class Question(Unary):
    """Something that is true or false of each real number."""

    allowed: ClassVar[tuple[ElementType, ...]] = REAL

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        element_type(data, *self.allowed)
        return (Tensor(ElementType.BOOLEAN, data.shape),)

    def run(self, data: Array) -> tuple[Array, ...]:
        return (np.asarray(self.of(widened(data)), np.bool_),)


class IsFiniteV10(Question):
    """Whether it is neither infinite nor NaN."""

    def of(self, x: Array) -> Array:
        return np.isfinite(x)


class IsInfV10(Question):
    """Whether it is infinite, on the sides that count."""

    rooms = 3

    detect_negative: Bool = True
    detect_positive: Bool = True

    def of(self, x: Array) -> Array:
        negative = np.isneginf(x) & self.detect_negative
        return negative | (np.isposinf(x) & self.detect_positive)


class IsNaNV10(Question):
    """Whether it is NaN."""

    def of(self, x: Array) -> Array:
        return np.isnan(x)
