"""Reductions: one value for all elements along some axes.

Specification pages: ReduceL1-4, ReduceL2-4, ReduceLogicalAnd-1, ReduceLogicalOr-1, ReduceMax-1,
ReduceMean-1, ReduceMin-1, ReduceProd-1, ReduceSum-1.

Without axes nothing is reduced. Integers are calculated exactly; results beyond their type stop
at its ends for 8 bits and wrap for more, as in OpenVINO. Quotients and roots lose their fraction.
NaN goes through, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from ..schemas import Array, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool
from ..schemas.shapes import interval, limits, same
from .axes import axis_of, reduced
from .base import Op, element_type
from .pooling import lowest

Axes: TypeAlias = tuple[int, ...]


class Reduction(Op):
    """What every reduction shares; ``of`` reduces, keeping the axes with size 1."""

    keep_dims: Bool = False

    def check_type(self, data: Tensor) -> None:
        """Refuse element types that have no such reduction."""
        if data.type is ElementType.BOOLEAN:
            raise IRError(f"{self.spec()} takes numbers, the data are {data.type}")

    def infer(self, data: Tensor, axes: Tensor) -> tuple[Tensor, ...]:
        self.check_type(data)
        if not (axes.type.is_integral or axes.type.is_dynamic):
            raise IRError(f"axes are integers, here they are {axes.type}")
        if axes.rank is not None and axes.rank > 1:
            raise IRError(f"axes have the shape {axes.shape}, they are a number or a list")
        return (Tensor(data.type, self.shape(data.shape, axes)),)

    def shape(self, data: Shape, axes: Tensor) -> Shape:
        """Shape of the output."""
        values = axes.ints()
        if data.rank is None:
            return Shape.UNKNOWN
        if values is not None:
            return reduced(data, self.axes(values, data.rank), self.keep_dims)
        if not self.keep_dims and axes.shape.is_static and prod(axes.shape.static) == 1:
            return Shape.of_rank(max(data.rank - 1, 0))
        return reduced(data, None, self.keep_dims)

    def axes(self, values: list[int], rank: int) -> Axes:
        """The axes counted from the front; one that is named twice is the same axis."""
        if rank == 0 and not self.keep_dims and set(values) <= {0, -1}:
            return ()
        return tuple(sorted({axis_of(axis, rank) for axis in values}))

    def run(self, data: Array, axes: Array) -> tuple[Array, ...]:
        found = self.axes([int(axis) for axis in axes.ravel()], data.ndim)
        with np.errstate(all="ignore"):
            values = self.of(data, found)
        return (np.asarray(values if self.keep_dims else values.squeeze(found)),)

    def of(self, data: Array, axes: Axes) -> Array:
        """The values for these axes, in the type of the data."""
        raise NotImplementedError


class Calculation(Reduction):
    """A reduction that calculates: in float32 or better, or exactly."""

    def of(self, data: Array, axes: Axes) -> Array:
        if data.dtype in (np.float32, np.float64):
            return self.calculated(data, axes).astype(data.dtype, copy=False)
        kind = ElementType.of(data.dtype)
        if kind.is_real:
            return self.calculated(data.astype(np.float32), axes).astype(data.dtype)
        values = self.calculated(data.astype(np.int64 if kind.is_signed else np.uint64), axes)
        if kind in (ElementType.I8, ElementType.U8):
            ends = np.iinfo(data.dtype)
            values = np.clip(values, ends.min, ends.max)
        return values.astype(data.dtype)

    def calculated(self, data: Array, axes: Axes) -> Array:
        """The values for these axes, in the type they are calculated in."""
        raise NotImplementedError


class ReduceL1V4(Calculation):
    """The sum of the absolute values."""

    def calculated(self, data: Array, axes: Axes) -> Array:
        return np.abs(data).sum(axes, keepdims=True)


class ReduceL2V4(Calculation):
    """The root of the sum of the squares."""

    def calculated(self, data: Array, axes: Axes) -> Array:
        wide = data if data.dtype.kind == "f" else data.astype(np.float64)
        return np.sqrt(np.square(wide).sum(axes, keepdims=True))


class ReduceSumV1(Calculation):
    """The sum."""

    def calculated(self, data: Array, axes: Axes) -> Array:
        return data.sum(axes, keepdims=True)


class ReduceMeanV1(Calculation):
    """The mean; that of nothing is zero, as in OpenVINO."""

    def calculated(self, data: Array, axes: Axes) -> Array:
        total = data.sum(axes, keepdims=True)
        count = max(prod(data.shape[axis] for axis in axes), 1)
        if data.dtype.kind == "f":
            return total / data.dtype.type(count)
        # Towards zero, not down.
        return np.sign(total) * (np.abs(total) // total.dtype.type(count))


class ReduceProdV1(Calculation):
    """The product."""

    carries_sizes: ClassVar[bool | Literal["first"]] = "first"

    def of(self, data: Array, axes: Axes) -> Array:
        if data.dtype == object:
            return folded(lambda one, other: one * other, data, axes, 1)
        return super().of(data, axes)

    def calculated(self, data: Array, axes: Axes) -> Array:
        return data.prod(axes, keepdims=True)


class ReduceMaxV1(Reduction):
    """The largest value; that of nothing is the type's lowest finite value."""

    carries_sizes: ClassVar[bool | Literal["first"]] = "first"

    def of(self, data: Array, axes: Axes) -> Array:
        if data.dtype == object:
            return folded(larger, data, axes, -(2**63))
        if data.size == 0:
            return data.max(axes, keepdims=True, initial=lowest(data))
        return data.max(axes, keepdims=True)


class ReduceMinV1(Reduction):
    """The smallest value; that of nothing is the type's largest finite value."""

    carries_sizes: ClassVar[bool | Literal["first"]] = "first"

    def of(self, data: Array, axes: Axes) -> Array:
        if data.dtype == object:
            return folded(smaller, data, axes, 2**63 - 1)
        if data.size == 0:
            most = np.iinfo(data.dtype).max if data.dtype.kind in "iu" else -lowest(data)
            return data.min(axes, keepdims=True, initial=most)
        return data.min(axes, keepdims=True)


class LogicalReduction(Reduction):
    """A reduction of truth values."""

    def check_type(self, data: Tensor) -> None:
        element_type(data, ElementType.BOOLEAN)


class ReduceLogicalAndV1(LogicalReduction):
    """Whether all are true."""

    def of(self, data: Array, axes: Axes) -> Array:
        return np.logical_and.reduce(data, axes, keepdims=True)


class ReduceLogicalOrV1(LogicalReduction):
    """Whether any is true."""

    def of(self, data: Array, axes: Axes) -> Array:
        return np.logical_or.reduce(data, axes, keepdims=True)


def larger(one: Size, other: Size) -> Size:
    """The larger of two sizes, as far as it is known."""
    if same(one, other):
        return one
    (a, b), (c, d) = limits(one), limits(other)
    low = a if c is None else c if a is None else max(a, c)
    return interval(low, None if b is None or d is None else max(b, d))


def smaller(one: Size, other: Size) -> Size:
    """The smaller of two sizes, as far as it is known."""
    if same(one, other):
        return one
    (a, b), (c, d) = limits(one), limits(other)
    high = b if d is None else d if b is None else min(b, d)
    return interval(None if a is None or c is None else min(a, c), high)


def folded(rule: Callable[[Size, Size], Size], data: Array, axes: Axes, nothing: int) -> Array:
    """Sizes brought together along axes that stay with size 1; ``nothing``: of none."""
    rest = [axis for axis in range(data.ndim) if axis not in axes]
    shape = [1 if axis in axes else size for axis, size in enumerate(data.shape)]
    rows = data.transpose(*rest, *axes).reshape(*[data.shape[axis] for axis in rest], -1)
    values = np.empty(rows.shape[:-1], object)
    for place in np.ndindex(values.shape):
        row = rows[place].tolist()
        values[place] = reduce(rule, row) if row else nothing
    return values.reshape(shape)
