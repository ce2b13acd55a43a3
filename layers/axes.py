"""Axes counted from either end, broadcast together and reduced: shared by many families."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np

from ..schemas import Array, Dim, IRError, Shape, Size
from ..schemas.shapes import interval, limits, merge, same

#: How two shapes are brought together: not at all, NumPy's way, PaddlePaddle's way.
Rule: TypeAlias = Literal["none", "numpy", "pdpd"]


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the front, given one counted from either end."""
    if not -rank <= axis < rank:
        raise IRError(f"{what} {axis} is beyond the {rank} axes of the input")
    return axis % rank if rank else axis


def all_but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The sizes of all axes but one, which is counted from either end."""
    place = axis_of(axis, len(shape))
    return (*shape[:place], *shape[place + 1 :])


def within_axis(indices: Array, size: int) -> Array:
    """Indices as NumPy takes them, counted from either end; none may be beyond an axis."""
    indices = indices.astype(np.int64, copy=False)
    if indices.size and (indices.min() < -size or indices.max() >= size):
        beyond = (indices < -size) | (indices >= size)
        raise IRError(f"index {indices[beyond].flat[0]} is beyond an axis of size {size}")
    return indices


def axes_of(axes: Iterable[int], rank: int, what: str = "axis") -> tuple[int, ...]:
    """Axes counted from the front, each once."""
    found = tuple(axis_of(int(axis), rank, what) for axis in axes)
    if len(set(found)) != len(found):
        raise IRError(f"{what} {next(a for a in found if found.count(a) > 1)} stands twice")
    return found


def as_size(value: Size) -> Size:
    """A value used as a dimension: never below zero."""
    if isinstance(value, Dim):
        return Dim(max(value.low or 0, 0), value.high, value.symbol)
    if value < 0:
        raise IRError(f"a size is {value}, the least is 0")
    return value


def broadcast(one: Shape, other: Shape, rule: Rule = "numpy", axis: int = -1) -> Shape:
    """The shape of an elementwise result of two shapes."""
    if rule == "none":
        return one.merge(other)
    if one.rank is None or other.rank is None:
        return Shape.UNKNOWN
    if rule == "pdpd":
        return _broadcast_pdpd(one, other, axis)
    rank = max(one.rank, other.rank)
    pairs = zip(_lengthened(one, rank), _lengthened(other, rank), strict=True)
    try:
        return Shape(broadcast_size(a, b) for a, b in pairs)
    except IRError:
        raise IRError(f"shapes {one} and {other} do not broadcast together") from None


def _lengthened(shape: Shape, rank: int) -> tuple[Size, ...]:
    return (*[1] * (rank - len(shape)), *shape)


def _broadcast_pdpd(one: Shape, other: Shape, axis: int) -> Shape:
    """The second shape is laid along the first from ``axis`` on, and only it is repeated."""
    start = axis if axis != -1 else len(one) - len(other)
    if start < 0 or start + len(other) > len(one):
        raise IRError(f"shape {other} does not fit into {one} from axis {start} on")
    result = list(one)
    for index, size in enumerate(other, start):
        if isinstance(size, int) and size > 1 and result[index] == 1:
            raise IRError(f"shape {other} is not repeated over {one} from axis {start} on")
        result[index] = broadcast_size(result[index], size)
    return Shape(result)


def broadcast_size(one: Size, other: Size) -> Size:
    """The size of two that are equal or of which one is 1."""
    if one == 1:
        return other
    if other == 1:
        return one
    if one > 1 and other > 1:
        return merge(one, other)
    if one == 0 or other == 0:
        if one > 1 or other > 1:
            raise IRError(f"sizes {one} and {other} differ")
        return 0
    # One that is surely above 1 decides, whether the other is 1 or the same.
    if one > 1:
        return one
    if other > 1:
        return other
    (low, high), (low_other, high_other) = limits(one), limits(other)
    least = 0 if not low or not low_other else max(low, low_other)
    most = None if high is None or high_other is None else max(high, high_other)
    symbol = one.symbol if isinstance(one, Dim) and same(one, other) else None
    return interval(least, most, symbol)


def reduced(shape: Shape, axes: Iterable[int] | None, keep_dims: bool) -> Shape:
    """A shape whose ``axes`` became 1, or were dropped; None: it is not known which axes."""
    if shape.rank is None:
        return Shape.UNKNOWN
    if axes is None:
        return Shape.of_rank(shape.rank) if keep_dims else Shape.UNKNOWN
    gone = set(axes)
    if keep_dims:
        return Shape(1 if i in gone else size for i, size in enumerate(shape))
    return Shape(size for i, size in enumerate(shape) if i not in gone)
