"""Activations that are rounded to levels at once: places are looked up in a table."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....schemas import Array
from ..plan import BYTES, Table
from ..workers import IntegerProducts, Part, sequence, spans
from .rooms import NEAR, Bound, rooms

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
