"""What is known of a tensor before anything runs: type, shape and, where known, its value."""

from __future__ import annotations

from html import escape
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import IRError
from .shapes import MOST_AXES, Dim, Shape, ShapeLike, Size, limits
from .symbols import Expression
from .types import ElementType, TypeLike

#: An array of values, of any type.
Array: TypeAlias = NDArray[Any]

#: The least and the greatest value of each element.
Bounds: TypeAlias = tuple[Array, Array]


class Tensor:
    """Type and shape, and the value as far as it is known.

    ``value`` is the whole value, in the element type's NumPy type. ``bounds`` are the least
    and the greatest value that each element may have, as two such arrays, where a small tensor
    is partly known, such as the ShapeOf a dynamic input; both are the value where that is
    known. As in OpenVINO, the largest number of an integer type stands for "without limit".
    ``parts`` is the same as sizes (``int`` or ``Dim``), with their symbols.
    """

    __slots__ = ("_bounds", "_symbols", "shape", "type", "value")

    def __init__(
        self,
        type: TypeLike,
        shape: ShapeLike | None = None,
        value: Array | None = None,
        parts: Array | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.type = type if isinstance(type, ElementType) else ElementType.named(type)
        self.shape = shape if isinstance(shape, Shape) else Shape.of(shape)
        if value is not None and shape is not None and value.shape != self.shape:
            self._check_fit(value.shape)
        self._symbols: Array | None = None
        if parts is not None and not self.type.is_dynamic:
            if bounds is None:
                bounds = _bounds(parts, self.type.dtype)
            self._symbols = _symbols(parts)
        if bounds is not None and np.array_equal(*bounds):
            value = bounds[0]
        self.value = value
        self._bounds = bounds if value is None else None

    @classmethod
    def of(cls, value: Any, type: TypeLike | None = None) -> Tensor:
        """A tensor whose value is known."""
        array = np.asarray(value)
        return cls(
            ElementType.of(array.dtype) if type is None else type, Shape(array.shape), array
        )

    def _check_fit(self, sizes: tuple[int, ...]) -> None:
        """Refuse a value of another shape."""
        try:
            self.shape.merge(Shape(sizes))
        except IRError:
            raise IRError(f"the value has the shape {Shape(sizes)}, not {self.shape}") from None

    @property
    def bounds(self) -> Bounds | None:
        """The least and the greatest value of each element; None where nothing is known."""
        return self._bounds if self.value is None else (self.value, self.value)

    @property
    def parts(self) -> Array | None:
        """The value as sizes, each known or partly known; None where nothing is known."""
        bounds = self.bounds
        if bounds is None or bounds[0].dtype.kind not in "iub":
            return None
        low, high = bounds
        parts = np.empty(low.shape, object)
        parts[...] = low.astype(object)
        if self.value is None:
            symbols = self._symbols
            for index in map(tuple, np.argwhere(low != high).tolist()):
                symbol = None if symbols is None else symbols[index]
                parts[index] = _size(low[index], high[index], symbol)
        return parts

    @property
    def has_symbols(self) -> bool:
        """Whether a part bears a name."""
        return self._symbols is not None

    @property
    def rank(self) -> int | None:
        """Number of axes, None where it is unknown."""
        return self.shape.rank

    def sizes(self) -> list[Size] | None:
        """The elements in order, each as far as it is known; None where their number is not.

        Elements of which nothing is known are unlimited on both sides.
        """
        parts = self.parts
        if parts is not None:
            return [int(p) if not isinstance(p, Dim) else p for p in parts.ravel().tolist()]
        if not self.shape.is_static:
            return None
        count = prod(self.shape.static)
        if count > MOST_AXES:
            raise IRError(f"{count} sizes are given, a shape has at most {MOST_AXES} axes")
        return [Dim(None, None)] * count

    def ints(self) -> list[int] | None:
        """The elements as numbers, None unless the value is known."""
        return None if self.value is None else [int(v) for v in self.value.ravel().tolist()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return (self.type, self.shape) == (other.type, other.shape)

    def __hash__(self) -> int:
        return hash((self.type, self.shape))

    def __str__(self) -> str:
        return f"{self.type}[{self.shape}]"

    def __repr__(self) -> str:
        return f"Tensor({self.type}, {self.shape})"

    def _repr_html_(self) -> str:
        value = self.value
        shown = value is not None and value.size <= 16
        return f"<code>{escape(f'{self} = {value!s}' if shown else str(self))}</code>"


def _bounds(parts: Array, dtype: np.dtype[Any]) -> Bounds:
    """The limits of sizes as arrays of a type; what it cannot hold is without limit."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    low, high = np.empty(parts.shape, dtype), np.empty(parts.shape, dtype)
    for index, size in np.ndenumerate(parts):
        one, other = limits(size)
        low[index] = least if one is None else 0 if one >= most else max(one, least)
        high[index] = most if other is None else min(other, most)
    return low, high


def _symbols(parts: Array) -> Array | None:
    """The symbols of sizes; None where there is not one."""
    symbols = np.empty(parts.shape, object)
    for index, size in np.ndenumerate(parts):
        symbols[index] = size.symbol if isinstance(size, Dim) else None
    return symbols if any(symbol is not None for symbol in symbols.ravel()) else None


def _size(low: Any, high: Any, symbol: Expression | None) -> Size:
    """A size from its limits as elements of an integer tensor."""
    # Only of these two types OpenVINO takes the ends for "without limit".
    limit = np.iinfo(low.dtype) if low.dtype in (np.int32, np.int64) else None
    least = None if limit is not None and low == limit.min else int(low)
    most = None if limit is not None and high == limit.max else int(high)
    if least is not None and most is not None and least > most:
        return Dim(None, None, symbol)
    return Dim(least, most, symbol)
