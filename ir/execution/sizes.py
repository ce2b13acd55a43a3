"""What a model says of the sizes of its inputs: limits, and names of such as are equal."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from ...schemas import Array, Shape, UsageError
from ...schemas.shapes import limits
from ..document import Model, named_axes, named_inputs


class Place(NamedTuple):
    """An axis of an input."""

    input: str
    layer_id: int
    axis: int


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
    """The unknown sizes of a model's inputs of which something is said that a call may breach."""

    def __init__(self, model: Model) -> None:
        self._limited: list[tuple[int, Room]] = []
        named: dict[str, list[Place]] = {}
        for parameter, names in named_inputs(model.parameters):
            for axis, name in named_axes(parameter).items():
                named.setdefault(name, []).append(Place(names[0], parameter.id, axis))
            shape = Shape.UNKNOWN if parameter.op is None else parameter.op.infer()[0].shape
            room = Room.of(shape)
            if any(low != high for _, low, high in room.limited):
                self._limited.append((parameter.id, room))
        self._alike = {name: places for name, places in named.items() if len(places) > 1}

    def take(self, arrays: Mapping[int, Array]) -> bool:
        """Whether arrays are as large as is said."""
        for layer_id, room in self._limited:
            if not room.takes(arrays[layer_id].shape):
                return False
        for first, *others in self._alike.values():
            size = arrays[first.layer_id].shape[first.axis]
            for other in others:
                if arrays[other.layer_id].shape[other.axis] != size:
                    return False
        return True

    def refuse_unlike(self, arrays: Mapping[int, Array]) -> None:
        """Refuse arrays in which sizes of one name differ: the model may have been made so.

        Raises:
            UsageError: Two sizes that the model calls by one name are not equal.
        """
        for name, (first, *others) in self._alike.items():
            size = _size(arrays, first)
            for other in others:
                found = _size(arrays, other)
                if None not in (size, found) and size != found:
                    raise UsageError(
                        f'axis {first.axis} of input "{first.input}" and axis {other.axis} of '
                        f'input "{other.input}" are both called "{name}", the arrays have {size} '
                        f"and {found}",
                        hint="sizes of one name are equal in every call; give other sizes other "
                        "names (dim_param) in the ONNX model, before it is imported",
                    )


def _size(arrays: Mapping[int, Array], place: Place) -> int | None:
    shape = arrays[place.layer_id].shape
    return shape[place.axis] if place.axis < len(shape) else None
