"""Reductions: one value for all elements along some axes.

Specification pages: ReduceL1-4, ReduceL2-4, ReduceLogicalAnd-1, ReduceLogicalOr-1, ReduceMax-1,
ReduceMean-1, ReduceMin-1, ReduceProd-1, ReduceSum-1.

Without axes nothing is reduced. Integers are calculated exactly; results beyond their type stop
at its ends for 8 bits and wrap for more, as in OpenVINO. Quotients and roots lose their fraction.
NaN goes through, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from ..schemas import Array, ElementType, IRError, Shape, Tensor
from ..schemas.attributes import Bool
from ..schemas.tensor import Bounds
from .axes import axis_of, reduced
from .base import Op, element_type
from .budget import require
from .pooling import lowest
from .value_bounds import largest, without

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

    def found(self, axes: Array, rank: int) -> Axes:
        """The axes of a known input, counted from the front."""
        return self.axes([int(axis) for axis in axes.ravel()], rank)

    def run(self, data: Array, axes: Array) -> tuple[Array, ...]:
        found = self.found(axes, data.ndim)
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
        require((4 if kind.is_real else 8) * data.size)
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
        require(data.nbytes)
        return np.abs(data).sum(axes, keepdims=True)


class ReduceL2V4(Calculation):
    """The root of the sum of the squares."""

    def calculated(self, data: Array, axes: Axes) -> Array:
        require(data.nbytes if data.dtype.kind == "f" else 16 * data.size)
        wide = data if data.dtype.kind == "f" else data.astype(np.float64)
        return np.sqrt(np.square(wide).sum(axes, keepdims=True))


class ReduceSumV1(Calculation):
    """The sum."""

    def calculated(self, data: Array, axes: Axes) -> Array:
        return data.sum(axes, keepdims=True)


class ReduceMeanV1(Calculation):
    """The mean; that of nothing is zero, as in OpenVINO."""

    def calculated(self, data: Array, axes: Axes) -> Array:
        total = np.asarray(data.sum(axes, keepdims=True))
        count = max(prod(data.shape[axis] for axis in axes), 1)
        if data.dtype.kind == "f":
            return np.divide(total, data.dtype.type(count), out=total)
        # Towards zero, not down.
        return np.sign(total) * (np.abs(total) // total.dtype.type(count))


class ReduceProdV1(Calculation):
    """The product."""

    carries_sizes = "first"

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        if np.any(lows[0] < 0) or np.any(highs[0] < 0):
            return None
        (low,), (high,) = self.run(*lows), self.run(*highs)
        either = ReduceLogicalOrV1(keep_dims=self.keep_dims)
        (open_ended,) = either.run(highs[0] == largest(highs[0].dtype), highs[1])
        (nothing,) = either.run(highs[0] == 0, highs[1])
        # Many sizes that are each within the type may not be so together.
        (exact,) = self.run(highs[0].astype(np.float64), highs[1])
        open_ended = open_ended | (exact >= float(largest(high.dtype)))
        return [(low, without(high, open_ended & ~nothing, largest(high.dtype)))]

    def carry_sizes(self, data: Array, axes: Array) -> Sequence[Array | None] | None:
        product = data.prod(self.found(axes, data.ndim), keepdims=self.keep_dims)
        return (np.asarray(product, object),)

    def calculated(self, data: Array, axes: Axes) -> Array:
        return data.prod(axes, keepdims=True)


class Choice(Reduction):
    """One of the values; sizes lose their names."""

    carries_sizes = "first"

    def carry_sizes(self, data: Array, axes: Array) -> Sequence[Array | None] | None:
        return None

    def run(self, data: Array, axes: Array) -> tuple[Array, ...]:
        (found,) = super().run(data, axes)
        return (found.astype(data.dtype, copy=False),)  # of 2 and 4 bits NumPy makes 8


class ReduceMaxV1(Choice):
    """The largest value; that of nothing is the type's lowest finite value."""

    def of(self, data: Array, axes: Axes) -> Array:
        if data.size == 0:
            return data.max(axes, keepdims=True, initial=lowest(data))
        return data.max(axes, keepdims=True)


class ReduceMinV1(Choice):
    """The smallest value; that of nothing is the type's largest finite value."""

    def of(self, data: Array, axes: Axes) -> Array:
        if data.size == 0:
            return data.min(axes, keepdims=True, initial=largest(data.dtype))
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
