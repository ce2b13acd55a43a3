"""What operations that go element by element share: types, broadcasting, rounding back.

Numbers of half precision and less are worked with as float32 and rounded once, as OpenVINO's
CPU does. It saturates what does not fit 8 bits, and so does this; wider integers wrap around.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ..schemas import Array, ElementType, IRError, Shape, Tensor
from ..schemas.attributes import Alias, Int
from ..schemas.tensor import Bounds
from .axes import broadcast
from .base import Op, element_type
from .budget import pieces, require, steps
from .value_bounds import corners, ends

#: One can calculate with them.
NUMERIC = tuple(kind for kind in ElementType if kind.is_numeric)
#: They have a fraction; OpenVINO does not count nf4 among them.
REAL = tuple(kind for kind in ElementType if kind.is_real and kind is not ElementType.NF4)
INTEGRAL = tuple(kind for kind in ElementType if kind.is_integral)
ANYTHING = tuple(ElementType)

#: So many elements are worked on at a time.
BLOCK = 1 << 16


class Unary(Op):
    """A function of each element; ``of`` is that function, in the type of the elements."""

    allowed: ClassVar[tuple[ElementType, ...]] = NUMERIC

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        element_type(data, *self.allowed)
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array) -> tuple[Array, ...]:
        if data.ndim and 0 < data.size <= BLOCK and data.flags.c_contiguous:
            with np.errstate(all="ignore"):
                return (settled(self.of(self.widened(data)), data.dtype),)
        # In blocks, so that what lies between stays in cache: fresh memory costs more than sums.
        flat = data.reshape(-1)
        result = np.empty_like(flat)
        with np.errstate(all="ignore"):
            for start in steps(range(0, flat.size, BLOCK)):
                block = slice(start, start + BLOCK)
                result[block] = settled(self.of(self.widened(flat[block])), data.dtype)
        return (result.reshape(data.shape),)

    def widened(self, data: Array) -> Array:
        """The elements in a type that NumPy calculates in."""
        return widened(data)

    def of(self, x: Array) -> Array:
        """The function; must not write to ``x``."""
        raise NotImplementedError


class RealUnary(Unary):
    """A function whose values have a fraction; for integers they are rounded to the nearest."""

    def widened(self, data: Array) -> Array:
        return as_real(data)


class RealOnly(RealUnary):
    """A function that is not defined for integers."""

    allowed: ClassVar[tuple[ElementType, ...]] = REAL


class Broadcasting(Op):
    """Operands that are brought to one shape.

    ``pdpd`` lays the second operand along the first from an axis on, which OpenVINO writes as
    an attribute of its own, and takes for 0 where a file does not say.
    """

    auto_broadcast: Annotated[Literal["none", "numpy", "pdpd"], Alias("explicit", "none")] = (
        "numpy"
    )
    broadcast_axis: Int = Field(default=0, alias="auto_broadcast.auto_broadcast_axis")

    def attributes(self) -> dict[str, str]:
        texts = super().attributes()
        if self.auto_broadcast != "pdpd":
            del texts["auto_broadcast.auto_broadcast_axis"]
        return texts

    def together(self, one: Shape, other: Shape) -> Shape:
        """The shape of the result."""
        return broadcast(one, other, self.auto_broadcast, self.broadcast_axis)

    def aligned(self, one: Array, other: Array) -> Array:
        """The second operand with axes such that NumPy broadcasts it to the first."""
        if self.auto_broadcast != "numpy" and one.shape != other.shape:
            self.together(Shape(one.shape), Shape(other.shape))  # or it is refused
        if self.auto_broadcast != "pdpd" or one.ndim == other.ndim:
            return other
        start = self.broadcast_axis if self.broadcast_axis >= 0 else one.ndim - other.ndim
        return other.reshape(*[1] * start, *other.shape, *[1] * (one.ndim - start - other.ndim))


class Binary(Broadcasting):
    """A function of two elements; ``of`` is that function."""

    allowed: ClassVar[tuple[ElementType, ...]] = NUMERIC

    def infer(self, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        kind = a.type.merge(b.type)
        element_type(a, *self.allowed)
        element_type(b, *self.allowed)
        return (Tensor(self.result(kind), self.together(a.shape, b.shape)),)

    def result(self, kind: ElementType) -> ElementType:
        """The element type of the result, given that of the operands."""
        return kind

    def run(self, a: Array, b: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            b = self.aligned(a, b)
            if a.size + b.size > BLOCK:
                self.require_wider(a, b)
            value = self.of(self.widened(a), self.widened(b))
            return (settled(value, a.dtype),)

    def require_wider(self, a: Array, b: Array) -> None:
        """Refuse operands that there is no memory to widen, with what is made of them."""
        wide = self.widened(a.reshape(-1)[:0]).dtype
        if wide != a.dtype:
            made = prod(np.broadcast_shapes(a.shape, b.shape))
            require(wide.itemsize * (a.size + b.size + 2 * made) + a.itemsize * made)

    def widened(self, data: Array) -> Array:
        """The elements in a type that NumPy calculates in."""
        return widened(data)

    def of(self, a: Array, b: Array) -> Array:
        """The function; must not write to its arguments."""
        raise NotImplementedError


class Arithmetic(Binary):
    """A function of two numbers that grows or falls with each of them."""

    carries_sizes = True

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        return corners(self, lows, highs)

    def carry_sizes(self, a: Array, b: Array) -> Sequence[Array | None] | None:
        return None


class Comparison(Binary):
    """A function of two elements that is true or false."""

    allowed: ClassVar[tuple[ElementType, ...]] = ANYTHING

    def result(self, kind: ElementType) -> ElementType:
        return ElementType.BOOLEAN

    def run(self, a: Array, b: Array) -> tuple[Array, ...]:
        with np.errstate(invalid="ignore"):
            value = self.of(self.widened(a), self.widened(self.aligned(a, b)))
        return (np.asarray(value, np.bool_),)


def is_narrow_integer(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of the integers of 2 or 4 bits, which NumPy takes for opaque."""
    return dtype.kind == "V" and dtype.name.startswith(("int", "uint"))


def widened(data: Array) -> Array:
    """The elements in a type that NumPy calculates in, with room for what 8 bits do not hold."""
    dtype = data.dtype
    if dtype == np.float16 or (dtype.kind == "V" and not is_narrow_integer(dtype)):
        return data.astype(np.float32)
    if dtype.kind == "V" or (dtype.kind in "iu" and dtype.itemsize == 1):
        return data.astype(np.int32)
    return data


def as_real(data: Array) -> Array:
    """The elements as float32, or float64 where float32 does not hold them."""
    if data.dtype in (np.float32, np.float64):
        return data
    exact = data.dtype.kind in "iu" and data.dtype.itemsize > 2
    return data.astype(np.float64 if exact else np.float32)


def settled(values: Any, dtype: np.dtype[Any]) -> Array:
    """Results in the element type; reals become the nearest integers.

    Eight bits saturate. More go through 32 or 64 signed bits, which saturate, and then wrap.
    What is no number becomes the least of signed integers, the greatest of 8 unsigned bits.
    """
    values = np.asarray(values)
    if values.dtype == dtype:
        return values
    narrow = is_narrow_integer(dtype)
    if dtype.kind not in "iu" and not narrow:
        with np.errstate(all="ignore"):
            return values.astype(dtype)
    if values.dtype.kind == "b":
        return values.astype(dtype)
    if values.dtype.kind != "f":
        (least, most), (low, high) = ends(values.dtype), ends(dtype)
        return np.clip(values, max(least, low), min(most, high)).astype(dtype)
    if not narrow and dtype.itemsize > 1 and dtype not in (np.int32, np.int64):
        return settled(values, np.dtype("i4" if dtype.itemsize == 2 else "i8")).astype(dtype)
    found = np.empty(values.shape, dtype)
    given, flat = values.reshape(-1), found.reshape(-1)
    for some in pieces(given.size, _OF_A_WHOLE):
        flat[some] = _whole(given[some], dtype)
    return found


#: Bytes that each real takes on the way to an integer.
_OF_A_WHOLE = 32


def _whole(values: Array, dtype: np.dtype[Any]) -> Array:
    """The nearest integers, those at the ends for what lies beyond."""
    low, high = ends(dtype)
    whole = np.rint(values)
    # The greatest integers of 64 bits have no equal among the reals.
    inside = (whole > low) & (whole < high)
    cast = np.where(inside, whole, 0).astype(dtype)
    above = (whole >= high) | (np.isnan(whole) & (low == 0))
    return np.where(inside, cast, np.where(above, high, low).astype(dtype))


# erf(x) / x as a quotient of polynomials in x**2, fitted by weighted least squares up to where
# erf is 1 in float32. There the fit goes above 1, so that cutting makes the tails exact.
_ERF_END = 3.92
_ERF_ABOVE = (
    1.12837915, 0.190382543, 0.0527476185, 0.00376493859, 0.000284948846, 2.05180487e-06,
)  # fmt: skip
_ERF_BELOW = (1.0, 0.502054878, 0.114101058, 0.0149680653, 0.00116249632, 3.8111117e-05)


def erf(x: Array) -> Array:
    """The error function; exact in float64, within 6e-7 in float32."""
    if x.dtype != np.float32:
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)
    near = np.clip(x, np.float32(-_ERF_END), np.float32(_ERF_END))
    square = near * near
    above = polynomial(square, _ERF_ABOVE)
    above *= near
    above /= polynomial(square, _ERF_BELOW)
    return np.clip(above, np.float32(-1), np.float32(1), out=above)


def polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Value of a polynomial, its coefficients from the constant on."""
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= x
        value += x.dtype.type(coefficient)
    return value


def sigmoid(x: Array) -> Array:
    """``1 / (1 + exp(-x))``."""
    value = np.negative(x)
    with np.errstate(over="ignore"):
        np.exp(value, out=value)
    value += 1
    return np.reciprocal(value, out=value)


def softplus(x: Array) -> Array:
    """``log(1 + exp(x))``."""
    value = np.exp(-np.abs(x))
    return np.maximum(x, 0) + np.log1p(value)


def scalar(tensor: Tensor, name: str) -> None:
    """Refuse a tensor that surely has axes."""
    if tensor.rank not in (None, 0):
        raise IRError(f"{name} has {tensor.rank} axes ({tensor.shape}), it is a scalar")
