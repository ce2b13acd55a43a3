"""What is known of a tensor before anything runs: type, shape and, where known, its value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .shapes import Dim, Shape, Size
from .types import ElementType

#: An array of values, of any type.
Array: TypeAlias = NDArray[Any]


class Tensor:
    """Type and shape, and the value as far as it is known.

    ``value`` is the whole value, in the element type's NumPy type. ``parts`` is an object
    array of sizes (``int`` or ``Dim``), where only some elements of a small integer tensor
    are known, such as the ShapeOf a dynamic input; it is also there where ``value`` is.
    """

    __slots__ = ("_parts", "shape", "type", "value")

    def __init__(
        self,
        type: ElementType | str,
        shape: Shape | Iterable[Size] | None = None,
        value: Array | None = None,
        parts: Array | None = None,
    ) -> None:
        self.type = type if isinstance(type, ElementType) else ElementType.parse(type)
        self.shape = shape if isinstance(shape, Shape) else Shape(shape)
        self.value = value
        self._parts = parts

    @classmethod
    def of(cls, value: Any, type: ElementType | str | None = None) -> Tensor:
        """A tensor whose value is known."""
        array = np.asarray(value)
        return cls(ElementType.of(array.dtype) if type is None else type, array.shape, array)

    @property
    def parts(self) -> Array | None:
        """The value as sizes, each known or partly known; None where nothing is known."""
        if self._parts is None and self.value is not None and self.value.dtype.kind in "iub":
            parts = np.empty(self.value.shape, object)
            parts[...] = self.value.astype(object)
            return parts
        return self._parts

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
        return [Dim(None, None)] * int(np.prod(self.shape.static, dtype=np.int64))

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
