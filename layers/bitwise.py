"""Logic and shifts of the bits of each element.

Specification pages: BitwiseAnd-13, BitwiseLeftShift-15, BitwiseNot-13, BitwiseOr-13,
BitwiseRightShift-15, BitwiseXor-13.

A shift by as many bits as there are or more, or by a negative number, leaves zero (the sign, to
the right); the specification leaves it open.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..schemas import Array, ElementType
from .elementwise import INTEGRAL, Binary, Unary, is_narrow_integer
from .value_bounds import ends


class BitwiseNotV13(Unary):
    """Each bit turned."""

    allowed = (ElementType.BOOLEAN, *INTEGRAL)

    def run(self, data: Array) -> tuple[Array, ...]:
        return (wrapped(np.invert(unpacked(data)), data.dtype),)


class Bitwise(Binary):
    """A function of two numbers' bits, which stays within them."""

    allowed: ClassVar[tuple[ElementType, ...]] = (ElementType.BOOLEAN, *INTEGRAL)

    def run(self, a: Array, b: Array) -> tuple[Array, ...]:
        return (wrapped(self.of(unpacked(a), unpacked(self.aligned(a, b))), a.dtype),)


class BitwiseAndV13(Bitwise):
    """Bits that both have."""

    def of(self, a: Array, b: Array) -> Array:
        return np.bitwise_and(a, b)


class BitwiseOrV13(Bitwise):
    """Bits that one has."""

    def of(self, a: Array, b: Array) -> Array:
        return np.bitwise_or(a, b)


class BitwiseXorV13(Bitwise):
    """Bits that one has and the other has not."""

    def of(self, a: Array, b: Array) -> Array:
        return np.bitwise_xor(a, b)


class BitwiseLeftShiftV15(Bitwise):
    """Bits moved up; those that leave are lost."""

    allowed = INTEGRAL

    def of(self, a: Array, b: Array) -> Array:
        return np.left_shift(a, b)


class BitwiseRightShiftV15(Bitwise):
    """Bits moved down; the sign stays."""

    allowed = INTEGRAL

    def of(self, a: Array, b: Array) -> Array:
        return np.right_shift(a, b)


def unpacked(data: Array) -> Array:
    """The elements in a type whose bits NumPy knows."""
    return data.astype(np.int32) if is_narrow_integer(data.dtype) else data


def wrapped(values: Any, dtype: np.dtype[Any]) -> Array:
    """Results with the bits that the type has room for."""
    values = np.asarray(values)
    if values.dtype == dtype:
        return values
    low, high = ends(dtype)
    return ((values - low) % (high - low + 1) + low).astype(dtype)
