"""Activations that are rounded to levels at once: places are looked up in a table.

As is whatever is made of numbers of few levels: so many results there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from ....schemas import Array
from ..plan import BYTES, Grid, Node, Table, Value
from ..workers import IntegerProducts, Part, sequence, spans
from .rooms import NEAR, Bound, rooms


class Dealing(Protocol):
    """What deals out work."""

    def dealt(self, pieces: Sequence[tuple[int, int]], /) -> Iterator[tuple[int, tuple[int, int]]]:
        """Pieces as parts."""


#: So many are looked up at once: to mend those near a change takes a while, however few they are.
MANY = 3 * NEAR // 2


def looked_up(found: Table, block: Array, target: Array, library: IntegerProducts) -> Part:
    """The levels at the places that a block holds, as bytes to a target."""
    axis = next((axis for axis, size in enumerate(block.shape) if size > 1), 0)
    lead = (slice(None),) * axis
    runs = spans(block.shape[axis], -(-block.size // MANY))
    cuts = [(*lead, slice(*run)) for run in runs]
    return sequence(
        [partial(_look_up, found, block[cut], target[cut], Bound(library.rounded)) for cut in cuts]
    )


def _look_up(found: Table, block: Array, target: Array, rounded: Bound) -> None:
    room = block.reshape(-1)
    if not block.flags.c_contiguous:
        room = rooms.take(2, block.size)
        np.copyto(room.reshape(block.shape), block)
    at, read = (
        rooms.take(place, -(-block.size // 2)).view(np.uint16)[: block.size] for place in (1, 0)
    )
    rounded(room, at)
    found.entries.take(at, out=read, mode="clip")
    changing = np.flatnonzero(read >= BYTES)
    if changing.size:
        which = read.take(changing)
        is_after = room.take(changing) >= found.changes.take(which)
        read[changing] = found.levels.take(which + is_after)
    np.copyto(target.view(np.uint8), read.reshape(target.shape), casting="unsafe")


def tabulated(node: Node, value: Value, abreast: int, scratch: Dealing) -> list[list[Part]]:
    """The steps of a node that makes something of each number of a value of levels."""
    (output,) = node.outputs
    assert value.grid is not None
    assert value.store is not None
    assert output.store is not None
    entries = _entries(node, value, value.grid, output.type)
    given, made = value.store.reshape(-1).view(np.uint8), output.store.reshape(-1)
    parts: list[Part] = []
    lanes = abreast if made.size > NEAR else 1
    for _, (begin, end) in scratch.dealt(spans(made.size, lanes)):
        cuts = [
            slice(begin + first, begin + stop)
            for first, stop in spans(end - begin, -(-(end - begin) // NEAR))
        ]
        parts.append(sequence([partial(_found, entries, given[cut], made[cut]) for cut in cuts]))
    return [parts]


def _entries(node: Node, value: Value, grid: Grid, kind: np.dtype) -> Array:
    """What a node makes of each level, by its byte."""
    levels = np.arange(256).astype(np.uint8).view(np.int8)
    numbers = grid.numbers(levels).reshape(*[1] * (len(value.shape) - 1), -1)

    def read(other: Value | None, made: Array | None) -> Array | None:
        if other is None:
            return made
        return numbers if other is value else other.constant

    with np.errstate(all="ignore"):
        (found,) = node.op.run(*[read(other, None) for other in node.inputs])
        for op, others in node.epilogue:
            (found,) = op.run(*[read(other, found) for other in others])
    return np.asarray(found).reshape(-1).astype(kind)


def _found(entries: Array, given: Array, made: Array) -> None:
    if made.itemsize == 1:
        np.copyto(
            made.view(np.uint8), np.frombuffer(bytes(given).translate(entries.tobytes()), np.uint8)
        )
    else:
        entries.take(given, out=made, mode="clip")


__all__ = ["looked_up", "tabulated"]
