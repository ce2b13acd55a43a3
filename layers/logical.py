"""Logic, element by element.

Specification pages: LogicalAnd-1, LogicalNot-1, LogicalOr-1, LogicalXor-1. Xor-1 has no page.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..schemas import Array, ElementType
from .elementwise import ANYTHING, Comparison, Unary


class Logical(Comparison):
    """A function of two truths."""

    allowed: ClassVar[tuple[ElementType, ...]] = (ElementType.BOOLEAN,)


class LogicalAndV1(Logical):
    """Whether both are true."""

    def of(self, a: Array, b: Array) -> Array:
        return np.logical_and(a, b)


class LogicalOrV1(Logical):
    """Whether one is true."""

    def of(self, a: Array, b: Array) -> Array:
        return np.logical_or(a, b)


class LogicalXorV1(Logical):
    """Whether one is true and the other is not."""

    canonical = 2

    def of(self, a: Array, b: Array) -> Array:
        return np.logical_xor(a, b)


class XorV1(LogicalXorV1):
    """LogicalXor-1 under its first name."""

    until = 1


class LogicalNotV1(Unary):
    """Whether it is false; numbers give 1 for zero and 0 for the rest, in their own type."""

    allowed = tuple(kind for kind in ANYTHING if kind is not ElementType.STRING)

    def of(self, x: Array) -> Array:
        return np.equal(x, 0) if x.dtype != np.bool_ else ~x
