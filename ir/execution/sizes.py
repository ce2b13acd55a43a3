"""What a model says of the sizes of its inputs: limits."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from ...schemas import Array, Shape
from ...schemas.shapes import limits
from ..document import Model


class Room(NamedTuple):
    """What a partly known shape says: the rank, None if any, and limits of axes."""

    rank: int | None
    limited: tuple[tuple[int, int, float], ...]

    @classmethod
    def of(cls, shape: Shape) -> Room:
        """What a shape says."""
        if shape.rank is None:
            return cls(None, ())
        pairs = [(axis, *limits(size)) for axis, size in enumerate(shape)]
        return cls(
            shape.rank,
            tuple(
                (axis, low or 0, inf if high is None else high)
                for axis, low, high in pairs
                if low or high is not None
            ),
        )

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of a shape has room."""
        return self.rank is None or (
            len(shape) == self.rank
            and all(low <= shape[axis] <= high for axis, low, high in self.limited)
        )


class Sizes:
    """The unknown sizes of a model's inputs that have limits."""

    def __init__(self, model: Model) -> None:
        self._limited: list[tuple[int, Room]] = []
        for parameter in model.parameters:
            shape = Shape.UNKNOWN if parameter.op is None else parameter.op.infer()[0].shape
            room = Room.of(shape)
            if any(low != high for _, low, high in room.limited):
                self._limited.append((parameter.id, room))

    def take(self, arrays: Mapping[int, Array]) -> bool:
        """Whether arrays are as large as is said."""
        return all(room.takes(arrays[layer_id].shape) for layer_id, room in self._limited)
