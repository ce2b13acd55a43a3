"""Products by weights that are kept as levels, and rows taken out of tables of them.

Blocks of columns are made numbers in a core's own cache, and multiplied by before the next are
made: to fetch levels from memory takes a quarter of what their numbers take. What is the same for
all rows of a column, its scale and its zero, comes after the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import Compressed, Node, by_digits
from ..workers import Part, integer_products, spans
from .blocks import Scratch, epilogue, followed, sequence
from .calls import call
from .digits import by_integers, checked, sums_by_group, without_zeros
from .level_groups import in_groups, lane_of_groups, turned, widest_of_groups
from .matrices import lying, pieces, rows_of
from .products import MILLION, blas_copies
from .streamed import LEVELS, Streamed, streamed

#: Of so many columns at most there are numbers at a time, and of each so many.
WIDE, DEEP = 192, 1024
#: So many numbers of rows meet these together, at most, and so many rows.
ROWS, MANY = 1 << 20, 2048
#: BLAS takes so many rows and the columns that they are multiplied by, each of these in memory as
#: it was a row, from where they are. More rows it would copy, and the columns.
FOUR = 4
#: BLAS that copies both takes columns by so few rows sooner than these by columns.
FEW = 40


def gathered(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """Some rows of a table: they alone are made numbers."""
    table, output, op = node.inputs[0].packed, node.outputs[0], node.op
    assert table is not None
    # As it is seen, whichever way it lies in memory.
    target, places, take = output.array, node.inputs[1], rows_taken(op, table)
    return [[lambda: np.copyto(target, take(np.asarray(places.array)))]]


def rows_taken(op: Op, table: Compressed) -> Callable[[Array], Array]:
    """What takes rows out of a table, at places."""
    # Plans share what is not a view of the file.
    held: Array | None = table.laid_out.get(("rows",))
    if held is None:
        held = table.laid_out["rows",] = table.levels

    def take(places: Array) -> Array:
        if places.size and places.min() >= 0 and places.max() < table.shape[0]:
            return table.rows(held, places)
        # Which says what there is to say.
        return op.run(table.expanded(), places, np.zeros((), np.int64))[0]

    return take


def multiplied(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """Many rows by levels."""
    left, right = node.inputs
    output = node.outputs[0]
    packed = right.packed
    op: Any = node.op
    assert packed is not None
    assert output.store is not None
    before: list[list[Part]] = []
    scratch.shared.reset()
    a = lying(left, before, abreast, scratch)
    a = np.broadcast_to(a, (*output.shape[:-2], *a.shape[-2:]))
    rows, columns = prod(output.shape[:-1]), output.shape[-1]
    integers = integer_products()
    if integers is not None and by_digits(packed, rows, columns, integers.rate):
        return [*before, *by_integers(node, a, packed, integers, abreast, scratch)]
    weights = streamed(packed, transposed=op.transpose_b)
    lanes = abreast if rows * prod(packed.shape) > 1 << 18 else 1
    followers = epilogue(node, scratch)
    few = in_groups(rows, weights)
    most = widest_of_groups(rows, weights) if few else widest(weights)
    wide = even_width(most, columns, lanes)
    groups, each, _ = weights.beside.shape
    for index in pieces(output.shape[:-1], min(max(ROWS // a.shape[-1], WIDE), MANY)):
        flat, gather = rows_of(a[index], 0, scratch.shared)
        if gather:
            before.append([sequence(gather)])
        lane = partial(_lane, flat, weights)
        if few:
            across = scratch.shared.take(0, a.shape[-1], len(flat))
            before.append(turned(flat, across, lanes))
            lane = partial(lane_of_groups, across, weights)
        parts: list[Part] = []
        for part, (first, stop) in scratch.dealt(spans(-(-columns // wide), lanes)):
            scratch.reset()
            some = slice(first * wide, min(stop * wide, columns))
            out = output.store[index].reshape(-1, columns)[:, some]
            place = (*index, ..., some)
            steps, sums = [], None
            if weights.beside.zero is not None:
                sums = scratch.take(part, len(flat), groups)
                steps.append(sums_by_group(flat, each, sums))
            steps += lane(some, wide, out, sums, part, scratch)
            if sums is not None:
                # Infinity less infinity is no number, of which numbers would know more.
                steps.append(checked(flat, sums, packed, some, out, transposed=op.transpose_b))
            parts.append(sequence([*steps, *followed(followers, output.store[place], place)]))
        before.append(parts)
    return before


def widest(weights: Streamed) -> int:
    """How many columns are made numbers at once, at most."""
    groups, each, _ = weights.beside.shape
    # Those of a group are scaled together.
    return max(16, min(WIDE, MILLION // (FOUR * each) // 16 * 16)) if groups > 1 else WIDE


def even_width(most: int, columns: int, lanes: int) -> int:
    """How many columns are made numbers at once where who share them have as many blocks each."""
    blocks = -(-columns // (most * lanes)) * lanes
    return -(-columns // (16 * blocks)) * 16


def _lane(
    flat: Array,
    weights: Streamed,
    some: slice,
    wide: int,
    out: Array,
    sums: Array | None,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Rows by some columns, so many at a time."""
    steps: list[Part] = []
    blocks = Blocks(weights, partial(scratch.take, part), wide)
    room, rows = scratch.take(part, 2 * len(flat) * wide), blocks.cut(flat)
    for begin in range(some.start, some.stop, wide):
        block = slice(begin, min(begin + wide, some.stop))
        target = out[:, block.start - some.start : block.stop - some.start]
        steps += blocks.parts(rows, block, target, sums, room)
    return steps


class _Kept(NamedTuple):
    """What is the same for any rows that meet a block of columns."""

    #: Of each run of levels what makes numbers of it, and these, turned.
    runs: list[tuple[list[Part], Array]]
    #: What products are multiplied by in the end, if not the numbers were; of levels with zeros,
    #: these as numbers.
    scale: Array | None
    zero: Array | None


class Blocks:
    """What multiplies rows by blocks of columns, which are made numbers in some memory."""

    def __init__(self, weights: Streamed, take: Callable[[int], Array], wide: int) -> None:
        self._weights, self._runs = weights, _runs(weights, DEEP)
        self.memory = take(wide * max(stop - start for start, stop, _ in self._runs))
        self._kept: dict[int, _Kept] = {}

    def cut(self, rows: Array) -> list[list[tuple[slice, Array]]]:
        """Rows as they meet each run of levels: which these are, some of them at a time."""
        whole = 0 if blas_copies() else len(rows) - len(rows) % FOUR
        found = []
        for start, stop, _ in self._runs:
            some, pairs = rows[:, start:stop], []
            if whole:
                pairs.append((slice(0, whole), some[:whole].reshape(-1, FOUR, stop - start)))
            if whole < len(rows):
                pairs.append((slice(whole, None), some[whole:]))
            found.append(pairs)
        return found

    def parts(
        self,
        rows: list[list[tuple[slice, Array]]],
        block: slice,
        target: Array,
        sums: Array | None,
        room: Array,
    ) -> list[Part]:
        """What multiplies rows by some columns; with sums by group, where levels have zeros.

        There is room for twice as many products.
        """
        kept = self._kept.get(block.start)
        if kept is None:
            kept = self._kept[block.start] = self._made(block)
        parts: list[Part] = []
        for place, (pairs, (made, numbers)) in enumerate(zip(rows, kept.runs, strict=True)):
            parts += made
            out = room[: target.size].reshape(target.shape) if place else target
            for those, some in pairs:
                parts += _by_rows(some, numbers, out[those], room[target.size :])
            if place:
                parts.append(call(np.add, target, out, out=target))
        if kept.scale is not None:
            parts.append(call(np.multiply, target, kept.scale, out=target))
        if kept.zero is not None:
            assert sums is not None
            # There are far fewer products than numbers to take it from.
            lost = room[: target.size].reshape(target.shape)
            parts.append(without_zeros(sums, kept.zero, lost, target))
        return parts

    def _made(self, block: slice) -> _Kept:
        (groups, each, _), zero, scale = self._weights.beside
        count = block.stop - block.start
        runs = []
        for start, stop, levels in self._runs:
            numbers = self.memory[: count * (stop - start)].reshape(count, -1)
            parts = [*_made_numbers(numbers, [run[:, block] for run in levels])]
            if groups > 1:
                parts.append(_scaled(numbers, scale[start // each : stop // each, block]))
            runs.append((parts, numbers.T))
        shift = None if zero is None else zero[:, block] * scale[:, block]
        return _Kept(runs, None if groups > 1 else scale[0, block], shift)


def _runs(weights: Streamed, most: int) -> list[tuple[int, int, list[Array]]]:
    """Levels of columns that are numbers at the same time, about so many of each, and where."""
    groups, each, _ = weights.beside.shape
    taken = groups * each
    unit = each if groups > 1 else LEVELS
    units = -(-taken // unit)
    edges = spans(units, -(-units // max(1, most // unit)))
    found = [(unit * first, min(unit * stop, taken)) for first, stop in edges]
    return [(start, stop, list(_between(weights, start, stop))) for start, stop in found]


def _between(weights: Streamed, start: int, stop: int) -> Iterator[Array]:
    """Some levels of columns as they lie: pieces (pieces, columns, levels), or a part of one."""
    place = 0
    for run in weights.alike:
        size, end = run.shape[2], place + run.shape[0] * run.shape[2]
        at, last = max(start, place) - place, min(stop, end) - place
        while at < last:
            piece, inside = divmod(at, size)
            whole = 0 if inside else (last - at) // size
            if whole:
                yield run[piece : piece + whole]
                at += whole * size
            else:
                beyond = min(size, inside + last - at)
                yield run[piece : piece + 1, :, inside:beyond]
                at += beyond - inside
        place = end


def _made_numbers(numbers: Array, levels: list[Array]) -> Iterator[Part]:
    """Parts that make numbers (columns, levels) of levels (pieces, columns, levels)."""
    start = 0
    for run in levels:
        stop = start + run.shape[0] * run.shape[2]
        into = numbers[:, start:stop].reshape(len(numbers), len(run), -1).swapaxes(0, 1)
        yield call(np.copyto, into, run)
        start = stop


def _scaled(numbers: Array, scale: Array) -> Part:
    """The part that multiplies numbers of groups by their scales (groups, columns)."""
    by_group = numbers.reshape(len(numbers), len(scale), -1)
    return call(np.multiply, by_group, np.ascontiguousarray(scale.T)[..., None], out=by_group)


def _by_rows(rows: Array, numbers: Array, out: Array, room: Array) -> list[Part]:
    """Parts that multiply rows by columns, each of which lies as a row does."""
    if rows.ndim > 2:
        return [call(np.matmul, rows, numbers, out=out.reshape(-1, FOUR, out.shape[1]))]
    if not blas_copies() or len(rows) > FEW:
        return [call(np.matmul, rows, numbers, out=out)]
    turned = room[: out.size].reshape(out.shape[::-1])
    return [call(np.matmul, numbers.T, rows.T, out=turned), call(np.copyto, out, turned.T)]


__all__ = ["Blocks", "even_width", "gathered", "multiplied", "rows_taken", "widest"]
