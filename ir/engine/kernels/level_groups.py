"""Products of few rows by levels in groups: what a group gives is scaled, not its numbers.

Rows lie turned, and columns are made numbers piece by piece, and multiplied by rows while these
are in a core's own cache. What the groups of a column give is scaled and added up by one product.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ....schemas import Array
from ..workers import Part, spans
from .blocks import Scratch, sequence
from .calls import call
from .digits import without_zeros
from .lines import fetched
from .products import MILLION, blas_copies
from .streamed import Streamed

#: Of more rows it takes less time to scale the numbers.
FEW = 96
#: So many numbers stay in cache while they are multiplied, in blocks of so many columns at most,
#: by no more than so many rows.
NUMBERS, WIDER = 3 << 17, ((4, 384), (FEW, 128))
#: Of pieces of columns so many are numbers at a time; those of longer groups are cut.
NEAR, LONG = 1 << 17, 256
#: So many rows at a time are turned: numbers of a column may be in the same few lines of a cache.
TURNED = 8
#: So many results at a time are turned back.
PANEL = 1 << 14


def in_groups(rows: int, weights: Streamed) -> bool:
    """Whether to scale what groups give."""
    return len(weights.beside.scale) > 1 and rows <= FEW and not blas_copies()


def turned(flat: Array, across: Array, lanes: int) -> list[Part]:
    """The parts that lay rows out as columns, some numbers of all rows each."""
    parts = []
    for begin, end in spans(len(across), lanes):
        steps = [
            call(
                np.copyto,
                across[begin:end, first : first + TURNED],
                flat[first : first + TURNED, begin:end].T,
            )
            for first in range(0, len(flat), TURNED)
        ]
        parts.append(sequence(steps))
    return parts


def widest_of_groups(rows: int, weights: Streamed) -> int:
    """How many columns are made numbers at once, at most."""
    most = next(many for few, many in WIDER if rows <= few)
    return max(16, min(most, NUMBERS // _longest(weights) // 16 * 16))


def lane_of_groups(
    across: Array,
    weights: Streamed,
    some: slice,
    wide: int,
    out: Array,
    sums: Array | None,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Rows by some columns, so many at a time: these are made numbers, and multiply the rows."""
    _, zero, scale = weights.beside
    rows = len(across[0])
    steps: list[Part] = []
    longest = _longest(weights)
    memory = scratch.take(part, max(NEAR, wide * longest))
    together = spans(rows, -(-rows // _at_once(rows, wide * longest)))
    # Results are turned back some blocks at a time.
    panel = min(wide * max(1, PANEL // (wide * rows)), some.stop - some.start)
    total = scratch.take(part, panel, rows)
    products = scratch.take(part, _held(weights) * wide * rows)
    if zero is not None:
        shift, over = zero * scale, scratch.take(part, rows * panel)
    alike: dict[int, _Pieces] = {}
    for panelled in _runs(some, panel):
        for block in _runs(panelled, wide):
            made = total[block.start - panelled.start : block.stop - panelled.start]
            if len(made) not in alike:
                rooms = memory, products
                alike[len(made)] = _Pieces(weights, len(made), rooms, across, together)
            steps += alike[len(made)].parts(block, made)
        target = out[:, panelled.start - some.start : panelled.stop - some.start]
        steps.append(call(np.copyto, target, total[: target.shape[1]].T))
        if sums is not None:
            # There are far fewer products than numbers to take it from.
            lost = over[: target.size].reshape(target.shape)
            offset = np.ascontiguousarray(shift[:, panelled])
            steps.append(without_zeros(sums, offset, lost, target))
    return steps


def _runs(some: slice, wide: int) -> Iterator[slice]:
    """Columns, so many at a time."""
    for begin in range(some.start, some.stop, wide):
        yield slice(begin, min(begin + wide, some.stop))


class _Pieces:
    """Columns that are made numbers piece by piece, and multiplied by rows: so many at a time.

    Rows lie turned, and runs of them are multiplied together. As many pieces are numbers at once
    as stay in cache. What groups give is scaled and added up as one product for each column. All
    but where levels lie, and what is made of them, is the same for any of these columns.
    """

    def __init__(
        self,
        weights: Streamed,
        count: int,
        rooms: tuple[Array, Array],
        across: Array,
        together: list[tuple[int, int]],
    ) -> None:
        memory, products = rooms
        self._weights, self._count, self._together = weights, count, together
        held = _held(weights)
        self._sums: list[Array] = []
        for first, stop in together:
            sums = products[held * count * first : held * count * stop]
            self._sums.append(sums.reshape(count, held, -1).swapaxes(0, 1))
        #: Of each run some pieces, and of these some parts: where their numbers are to be, and
        #: what multiplies them.
        self._numbers: list[list[tuple[slice, list[tuple[slice, Array, list[Part]]]]]] = []
        place = start = 0
        for run in weights.alike:
            cut = _cut(run, weights.together)
            size = run.shape[2] // cut
            pieces = []
            for some in _fitting(len(run), cut * count * size, len(memory)):
                many = some[1] - some[0]
                parts = []
                for cuts in _fitting(cut, many * count * size, len(memory)):
                    shape = many, cuts[1] - cuts[0], count, size
                    into = memory[: prod(shape)].reshape(shape)
                    if weights.together > 1:  # short ones stay side by side: sooner copied
                        into = memory[: prod(shape)].reshape(many, count, -1, size).swapaxes(1, 2)
                    end = place + shape[0] * shape[1]
                    last = start + shape[0] * shape[1] * size
                    steps: list[Part] = []
                    for (first, stop), sums in zip(together, self._sums, strict=True):
                        right = across[start:last, first:stop].reshape(*shape[:2], size, -1)
                        out = sums[place:end].reshape(*shape[:3], -1)
                        steps.append(call(np.matmul, into, right, out=out))
                    place, start = end, last
                    parts.append((slice(*cuts), into, steps))
                pieces.append((slice(*some), parts))
            self._numbers.append(pieces)

    def parts(self, block: slice, made: Array) -> list[Part]:
        """What multiplies these columns."""
        weights, count = self._weights, self._count
        scale, steps = weights.beside.scale, []
        for run, found in zip(weights.alike, self._numbers, strict=True):
            levels = run[:, block]
            by_cut = levels.reshape(len(run), count, _cut(run, weights.together), -1)
            for some, parts in found:
                steps.append(fetched(levels[some]))
                given = by_cut[some].swapaxes(1, 2)
                for cuts, into, products in parts:
                    steps += [call(np.copyto, into, given[:, cuts]), *products]
        times = _held(weights) // len(scale)
        by_piece = np.repeat(scale[:, block].T, times, axis=1)[:, None]
        for (first, stop), sums in zip(self._together, self._sums, strict=True):
            into = made[:, None, first:stop]
            steps.append(call(np.matmul, by_piece, sums.swapaxes(0, 1), out=into))
        return steps


def _held(weights: Streamed) -> int:
    """How many pieces a column is, those cut that are long."""
    return sum(len(run) * _cut(run, weights.together) for run in weights.alike)


def _longest(weights: Streamed) -> int:
    """The levels of the longest of them."""
    return max(run.shape[2] // _cut(run, weights.together) for run in weights.alike)


def _fitting(count: int, size: int, room: int) -> list[tuple[int, int]]:
    """Runs of what is of such a size each, that fit into a room, but for one that does not."""
    return spans(count, -(-count // max(1, room // size)))


def _cut(run: Array, groups: int) -> int:
    """Into how many equal ones pieces of columns are cut, of groups or if they are long."""
    size = run.shape[2]
    if groups > 1:
        return groups
    least = -(-size // LONG)
    return next((count for count in range(least, 2 * least) if size % count == 0), 1)


def _at_once(rows: int, numbers: int) -> int:
    """How many rows meet so many numbers together: so many that BLAS takes them as they lie."""
    most = max(8, MILLION // numbers)
    return -(-rows // -(-rows // most))


__all__ = ["in_groups", "lane_of_groups", "turned", "widest_of_groups"]
