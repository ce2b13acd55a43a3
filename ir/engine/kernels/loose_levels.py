"""Products by weights kept as levels outside the arena, of any number of rows, and tables of them.

Blocks of columns are made numbers in a lane's cache, and multiply all rows; what follows element
by element is done to what they give while that is in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ....layers.base import Kernel
from ....schemas import Array
from ..plan import Compressed
from ..workers import Crew, Part, spans
from .digits import sums_by_group
from .following import MOST, Following, pieced
from .levels import Blocks, even_width, rows_taken, widest
from .loose_products import Loose
from .rooms import Rooms
from .streamed import Streamed, streamed

#: Which room is for numbers, and which for products that are added or turned.
NUMBERS, PRODUCTS = 19, 20


class LooseLevels(Loose):
    """What computes a product of rows, given at each call, by levels."""

    def __init__(
        self,
        op: Any,
        packed: Compressed,
        following: Sequence[Following],
        crew: Crew[Rooms],
        general: Kernel,
    ) -> None:
        self._packed = packed
        shape = packed.shape[::-1] if op.transpose_b else packed.shape
        super().__init__(op, shape, following, crew, general)
        self._streamed: Streamed | None = None
        #: By lane and width of blocks.
        self._kept: dict[tuple[int, int], Blocks] = {}

    def _numbers(self) -> Array:
        """The weights, for the definitions."""
        return self._packed.expanded()

    def _lanes(
        self, left: Array, target: Array, beside: Sequence[Array], count: int
    ) -> list[list[Part]] | None:
        """Parts for each lane, which has some of the columns."""
        if self._streamed is None:
            self._streamed = streamed(self._packed, transposed=self._op.transpose_b)
        weights, rows = self._streamed, left.reshape(-1, self._deep)
        sums = None
        if weights.beside.zero is not None:
            groups, each, _ = weights.beside.shape
            sums = np.empty((len(rows), groups), np.float32)
            sums_by_group(rows, each, sums)()
            if not np.isfinite(sums).all():
                return None  # infinity less infinity is no number, of which numbers know more
        wide = even_width(widest(weights), self._columns, count)
        return [
            self._share(lane, rows, target, beside, wide, slice(*run), sums)
            for lane, run in enumerate(spans(-(-self._columns // wide), count))
        ]

    def _share(
        self,
        lane: int,
        rows: Array,
        target: Array,
        beside: Sequence[Array],
        wide: int,
        run: slice,
        sums: Array | None,
    ) -> list[Part]:
        """Parts that make some blocks of columns."""
        parts: list[Part] = []
        rooms = self._crew.rooms(lane)
        blocks = self._blocks(lane, wide)
        for begin, end in spans(len(rows), -(-len(rows) * wide // MOST)):
            some = slice(begin, end)
            room = rooms.take(PRODUCTS, 2 * (end - begin) * wide)
            own, given = None if sums is None else sums[some], blocks.cut(rows[some])
            for place in range(run.start, run.stop):
                block = slice(place * wide, min((place + 1) * wide, self._columns))
                out = target[some, block]
                if not self._followers:
                    parts += blocks.parts(given, block, out, own, room)
                    continue
                make = partial(_made, blocks, given, block, own, room)
                parts += pieced(out, make, self._followers, some, block, beside, rooms)
        return parts

    def _blocks(self, lane: int, wide: int) -> Blocks:
        """What multiplies by blocks of columns: kept, as long as its memory is the lane's."""
        assert self._streamed is not None
        take = partial(self._crew.rooms(lane).take, NUMBERS)
        found = self._kept.get((lane, wide))
        if found is None or take(found.memory.size).base is not found.memory.base:
            found = self._kept[lane, wide] = Blocks(self._streamed, take, wide)
        return found


def _made(
    blocks: Blocks, rows: Any, block: slice, sums: Array | None, room: Array, out: Array
) -> list[Part]:
    """The parts that make a block of the output, without what follows."""
    return blocks.parts(rows, block, out, sums, room)


def loose_rows(op: Any, packed: Compressed) -> Kernel:
    """What takes rows out of a table of levels: they alone are made numbers."""
    take = rows_taken(op, packed)
    return lambda places: (take(places),)
