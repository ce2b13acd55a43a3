"""Steps that follow outside the arena, element by element, each done to a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ....layers.base import Kernel, Op
from ....schemas import Array
from ..workers import Part
from .activations import activation
from .blocks import UFUNCS
from .calls import call
from .rooms import NEAR_FOR_THREADS, Rooms

#: So many prepared steps are kept.
SEEN = 64
#: The number of the room for a piece, which has at most as many numbers as rooms keep.
PIECE, MOST = 16, NEAR_FOR_THREADS


class Following(NamedTuple):
    """A step that follows: an operation on what there is by then, and on what else it takes."""

    op: Op
    #: Constants, or the place of what each call has another of.
    others: tuple[Array | int, ...]
    #: Whether what there is by then is the second operand.
    is_second: bool
    #: What computes it by its definition, of all its operands.
    slowly: Kernel


#: Makes the part that does a step to a piece: of rows and columns, with the others that come.
Follower: TypeAlias = Callable[[Array, slice, slice, Sequence[Array], Rooms], Part]


def slowly(
    found: tuple[Array, ...], following: Sequence[Following], others: Sequence[Array]
) -> tuple[Array, ...]:
    """What all steps make of what there is, by their definitions."""
    for step in following:
        more = (others[x] if isinstance(x, int) else x for x in step.others)
        operands = (found[0], *more)
        found = step.slowly(*(operands[::-1] if step.is_second else operands))
    return found


def pieced(
    piece: Array,
    make: Callable[[Array], list[Part]],
    followers: Sequence[Follower],
    rows: slice,
    columns: slice,
    beside: Sequence[Array],
    rooms: Rooms,
) -> list[Part]:
    """Parts that make a piece of an output, in a room where something follows."""
    if not followers:
        return make(piece)
    out = rooms.take(PIECE, piece.size).reshape(piece.shape)
    following = [follow(out, rows, columns, beside, rooms) for follow in followers]
    return [*make(out), *following, call(np.copyto, piece, out)]


def follower(step: Following) -> Follower:
    """What makes the part of a step for a piece of the output, which lies in a room."""
    function = UFUNCS.get(step.op.xml_type)
    if function is None:
        return _activation(step.op, [x for x in step.others if isinstance(x, np.ndarray)])
    line, (other,) = None, step.others
    if isinstance(other, np.ndarray):  # one number, or one for each column
        line = other.reshape(-1) if other.size > 1 else other.reshape(())

    def with_another(
        piece: Array, rows: slice, columns: slice, beside: Sequence[Array], rooms: Rooms
    ) -> Part:
        if line is None:
            assert isinstance(other, int)
            second = beside[other][rows, columns]
        else:
            second = line[columns] if line.ndim else line
        both = (second, piece) if step.is_second else (piece, second)
        return call(function, *both, out=piece)

    return with_another


def _activation(op: Op, parameters: list[Array]) -> Follower:
    """The same for an activation: for rooms that were seen before, it is there."""
    how = op.xml_type, *sorted(op.attributes().items()), *(x.tobytes() for x in parameters)

    def alone(
        piece: Array, rows: slice, columns: slice, beside: Sequence[Array], rooms: Rooms
    ) -> Part:
        key = how, piece.size, piece.ctypes.data
        found = rooms.parts.get(key)
        if found is None:
            found = activation(op, piece, piece, parameters, near=NEAR_FOR_THREADS, own=rooms)
            if found is None:
                return lambda: np.copyto(piece, op.run(piece, *parameters)[0])
            while len(rooms.parts) >= SEEN:
                del rooms.parts[next(iter(rooms.parts))]
            rooms.parts[key] = found
        return found

    return alone
