"""Shapes: asked for, given anew, rid of ones, given ones.

Specification pages: ShapeOf-1, -3; Reshape-1; Squeeze-1, -15; Unsqueeze-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeVar

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Type
from ..schemas.shapes import compatible, interval, limits, same
from .axes import axis_of
from .base import Op, index_type

SizeT = TypeVar("SizeT")


class ShapeOfV1(Op):
    """The sizes of a tensor, as i64."""

    until = 2

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        kind = self.kind()
        index_type("output_type", kind)
        if data.rank is None:
            return (Tensor(kind, Shape([ANY])),)
        shape, sizes = [data.rank], np.empty(data.rank, object)
        sizes[:] = data.shape.sizes
        if data.shape.is_static and not any(self._beyond(size) for size in data.shape.static):
            return (Tensor(kind, Shape(shape), sizes.astype(kind.dtype)),)
        return (Tensor(kind, Shape(shape), parts=sizes),)

    def run(self, data: Array) -> tuple[Array, ...]:
        for axis, size in enumerate(data.shape):
            if self._beyond(size):
                raise IRError(
                    f"size {size} of axis {axis} is too large for {self.kind()}",
                    hint='output_type="i64" holds it',
                )
        return (np.array(data.shape, self.kind().dtype),)

    def _beyond(self, size: int) -> bool:
        return size > np.iinfo(self.kind().dtype).max

    def kind(self) -> ElementType:
        """Element type of the output."""
        return ElementType.I64


class ShapeOfV3(ShapeOfV1):
    """ShapeOf-1 with a choice of the output's type."""

    until = 17

    output_type: Type = ElementType.I64

    def kind(self) -> ElementType:
        return self.output_type


class ReshapeV1(Op):
    """The same elements in the same order under another shape."""

    carries_sizes = True

    special_zero: Bool

    def infer(self, data: Tensor, shape: Tensor) -> tuple[Tensor, ...]:
        integral(shape, "shape pattern")
        if shape.rank not in (None, 1):
            raise IRError(f"the shape pattern has {shape.rank} axes, it is a list")
        sizes = shape.sizes()
        if sizes is not None and shape.parts is not None:
            return (Tensor(data.type, self.reshaped(data.shape, sizes)),)
        count = ANY if shape.rank is None else shape.shape[0]
        return (Tensor(data.type, Shape.of_rank(None if isinstance(count, Dim) else count)),)

    def reshaped(self, shape: Shape, pattern: Sequence[Size]) -> Shape:
        """The shape that a pattern asks for."""
        pattern = [asked(size, axis) for axis, size in enumerate(pattern)]
        free = [axis for axis, size in enumerate(pattern) if size == -1]
        if len(free) > 1:
            raise IRError(f"-1 stands {len(free)} times in the pattern, the most is 1")
        copied = [axis for axis, size in enumerate(pattern) if self.special_zero and size == 0]
        taken = [s for axis, s in enumerate(pattern) if axis not in (*free, *copied)]
        result = list(pattern)
        if shape.rank is None:
            for axis in copied:
                result[axis] = ANY
            for axis in free:
                result[axis] = ANY if copied else quotient([], [*taken, ANY])
            return Shape(result)
        for axis in copied:
            if axis >= len(shape):
                raise IRError(f"0 in the pattern copies axis {axis}, the input has {len(shape)}")
            result[axis] = shape[axis]
        given = [size for axis, size in enumerate(shape) if axis not in copied]
        for axis in free:
            result[axis] = quotient(given, taken)
        found = Shape(result)
        if found.is_static and shape.is_static and found.count != shape.count:
            raise IRError(
                f"shape {found} has {found.count} elements, the input {shape} has {shape.count}"
            )
        return found

    def run(self, data: Array, shape: Array) -> tuple[Array, ...]:
        pattern = shape.tolist()
        if min(pattern, default=0) > 0 and prod(pattern) == data.size:
            return (data.reshape(pattern),)
        return (data.reshape(self.reshaped(Shape(data.shape), pattern).static),)


class SqueezeV1(Op):
    """Axes of size 1 dropped: those named, or all; named axes of another size stay."""

    until = 14
    carries_sizes = True

    def infer(self, data: Tensor, axes: Tensor | None = None) -> tuple[Tensor, ...]:
        if axes is None:
            return (Tensor(data.type, self.squeezed(data.shape, ())),)
        known = listed(axes)
        if data.rank is None or not axes.shape.is_static:
            return (Tensor(data.type),)
        if known is not None:
            return (Tensor(data.type, self.squeezed(data.shape, known)),)
        if data.rank and axes.shape.count == 1:
            return (Tensor(data.type, self.without_one(data.shape)),)
        return (Tensor(data.type),)

    def squeezed(self, shape: Shape, axes: Iterable[int]) -> Shape:
        """The shape without those of the axes, or of all, that may have size 1."""
        if shape.rank is None:
            return Shape.UNKNOWN
        # Of a scalar OpenVINO takes axis 0 for there, and drops nothing.
        chosen = {axis_of(axis, shape.rank or 1) for axis in axes}
        if not chosen:
            if any(isinstance(size, Dim) and compatible(size, 1) for size in shape):
                return Shape.UNKNOWN
            return Shape(size for size in shape if size != 1)
        if self.keeps_doubtful() and any(
            isinstance(size, Dim) and compatible(size, 1)
            for axis, size in enumerate(shape)
            if axis in chosen
        ):
            return Shape.UNKNOWN
        return Shape(
            s for axis, s in enumerate(shape) if axis not in chosen or not compatible(s, 1)
        )

    def without_one(self, shape: Shape) -> Shape:
        """The shape without one axis, of which it is not known which."""
        if any(compatible(size, 1) for size in shape):
            return Shape.of_rank(len(shape) - 1)
        return shape

    def keeps_doubtful(self) -> bool:
        """Whether an axis that may have another size than 1 makes the rank unknown."""
        return False

    def run(self, data: Array, axes: Array | None = None) -> tuple[Array, ...]:
        chosen = () if axes is None else axes.ravel().astype(np.int64).tolist()
        return (data.reshape(self.squeezed(Shape(data.shape), chosen).static),)


class SqueezeV15(SqueezeV1):
    """Squeeze-1 that may leave the rank open where an axis may have another size than 1."""

    allow_axis_skip: Bool = False

    def without_one(self, shape: Shape) -> Shape:
        return Shape.UNKNOWN if any(compatible(size, 1) for size in shape) else shape

    def keeps_doubtful(self) -> bool:
        return self.allow_axis_skip


class UnsqueezeV1(Op):
    """Axes of size 1 put in at the places they have in the output."""

    carries_sizes = True

    def infer(self, data: Tensor, axes: Tensor) -> tuple[Tensor, ...]:
        known = listed(axes)
        if known is None or data.rank is None:
            return (Tensor(data.type),)
        return (Tensor(data.type, self.widened(data.shape, known)),)

    def widened(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """The shape with its new axes."""
        one: Size = 1
        return Shape(_with_ones(list(shape), axes, one))

    def run(self, data: Array, axes: Array) -> tuple[Array, ...]:
        chosen = axes.ravel().astype(np.int64).tolist()
        return (data.reshape(_with_ones(list(data.shape), chosen, 1)),)


def _with_ones(sizes: list[SizeT], axes: Sequence[int], one: SizeT) -> list[SizeT]:
    """Sizes with those of the new axes between them."""
    if not axes:
        raise IRError("there are 0 axes, the least is 1")
    rank = len(sizes) + len(set(axes))
    for axis in sorted({axis_of(axis, rank) for axis in axes}):
        sizes.insert(axis, one)
    return sizes


def asked(size: Size, axis: int) -> Size:
    """What an element of a pattern may mean: a size, or -1."""
    low, high = limits(size)
    if low is not None and low >= -1:
        return size if low >= 0 or low == high else interval(0, high)
    if high is not None and high < 0:
        raise IRError(f"the pattern's element {axis} is {size}, the least is -1")
    return ANY


def quotient(given: Sequence[Size], taken: Sequence[Size]) -> Size:
    """What one size has to be, if the others are ``taken`` and all elements are ``given``."""
    rest, left = list(taken), []
    for size in given:
        twin = next((i for i, other in enumerate(rest) if size != 0 and same(size, other)), None)
        if twin is None:
            left.append(size)
        else:
            rest.pop(twin)
    have, need = known_product(left), known_product(rest)
    if need == 0 and have != 0:
        raise IRError("-1 in the pattern stands beside 0, the input may have elements")
    above, below = unknown_product(left), unknown_product(rest)
    if have != need:
        above, below = above * have, below * need
    (low, high), (least, most) = limits(above), limits(below)
    symbol = None
    if not isinstance(below, Dim):
        if not isinstance(above, Dim) and above % below:
            raise IRError(f"-1 in the pattern means {above} / {below}, which is not whole")
        found = above // below
        symbol = found.symbol if isinstance(found, Dim) else None
    # The quotient is whole, so its lower limit is rounded up.
    high = None if high is None or not least else high // least
    low = 0 if not low else 1 if most is None else -(-low // most) if most else low
    return interval(low, high, symbol)


def known_product(sizes: Iterable[Size]) -> int:
    """The product of the sizes that are known."""
    return prod(size for size in sizes if not isinstance(size, Dim))


def unknown_product(sizes: Iterable[Size]) -> Size:
    """The product of the sizes that are not known."""
    product: Size = 1
    for size in sizes:
        if isinstance(size, Dim):
            product = product * size
    return product


def integral(tensor: Tensor, what: str) -> None:
    """Refuse a tensor whose element type is known and is not that of whole numbers."""
    if not tensor.type.is_dynamic and not tensor.type.is_integral:
        raise IRError(f"element type of the {what} is {tensor.type}, it has to be an integer type")


def real(tensor: Tensor, what: str) -> None:
    """Refuse a tensor whose element type is known and has no fractions."""
    if not tensor.type.is_dynamic and not tensor.type.is_real:
        raise IRError(f"element type of the {what} is {tensor.type}, it has to be a real type")


def numeric(tensor: Tensor, what: str) -> None:
    """Refuse truth values for numbers, of whatever type these may be."""
    if tensor.type is ElementType.BOOLEAN:
        raise IRError(f"element type of the {what} is boolean, it has to be one of numbers")


def listed(axes: Tensor) -> list[int] | None:
    """The axes that an input holds, where they are known."""
    numeric(axes, "axes")
    if axes.rank not in (None, 0, 1):
        raise IRError(f"the axes have {axes.rank} axes themselves, they are a list or a number")
    return axes.ints()
