"""Products by weights that are kept as levels, and rows taken out of tables of them.

Blocks of columns are made numbers in a core's own cache, and multiplied by before the next are
made: to fetch levels from memory takes a quarter of what their numbers take. What is the same for
all rows of a column, its scale and its zero, comes after the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ....schemas import Array
from ..plan import Node, by_digits
from ..workers import Part, integer_products, spans
from .blocks import Scratch, epilogue, followed, sequence
from .calls import call
from .digits import by_integers, checked, without_zeros
from .lines import fetched
from .matrices import lying, pieces, rows_of
from .products import MILLION, blas_copies
from .streamed import Streamed, streamed

#: So many numbers stay in cache while they are multiplied, in blocks of so many columns at most,
#: by no more than so many rows.
NUMBERS, WIDE = 3 << 17, 128
WIDER = ((4, 384), (30, 128), (64, 64))
#: Of pieces of columns so many are numbers at a time.
NEAR = 1 << 17
#: Rows that meet columns while these are numbers, and that are multiplied together, at most, one
#: by one or by groups; and sums of so many products.
ROWS, TOGETHER, GROUPED, LONG = 256, 64, 192, 256
#: So many rows at a time are turned: numbers of a column may be in the same few lines of a cache.
TURNED = 8
#: So many results at a time are turned back and scaled.
PANEL = 1 << 14


def gathered(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """Some rows of a table: they alone are made numbers."""
    table, output, op = node.inputs[0].packed, node.outputs[0], node.op
    assert table is not None
    assert output.store is not None
    target, places, count = output.store, node.inputs[1], table.shape[0]
    # Plans share what is not a view of the file.
    held: Array | None = table.laid_out.get(("rows",))
    if held is None:
        held = table.laid_out["rows",] = table.levels

    def run() -> None:
        rows = np.asarray(places.array)
        if rows.size and rows.min() >= 0 and rows.max() < count:
            np.copyto(target, table.rows(held, rows))
        else:  # which says what there is to say
            np.copyto(target, op.run(table.expanded(), rows, np.zeros((), np.int64))[0])

    return [[run]]


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
    rows = prod(output.shape[:-1])
    integers = integer_products()
    if integers is not None and by_digits(packed, rows, output.shape[-1], integers.rate):
        return [*before, *by_integers(node, a, packed, integers, abreast, scratch)]
    weights = streamed(packed, transposed=op.transpose_b)
    lanes = abreast if rows * prod(packed.shape) > 1 << 18 else 1
    followers = epilogue(node, scratch)
    columns = output.shape[-1]
    wide = _wide(rows, weights, columns, lanes)
    found = list(pieces(output.shape[:-1], ROWS))
    most = max(prod(output.store[index].shape[:-1]) for index in found)
    room = scratch.shared.take(0, a.shape[-1] * most)
    for index in found:
        flat, gather = rows_of(a[index], 0, scratch.shared)
        if gather:
            before.append([sequence(gather)])
        # Columns lie as rows do: products of a row each with what lies turned are the quickest.
        across = room[: flat.size].reshape(a.shape[-1], len(flat))
        before.append(_turned(flat, across, lanes))
        parts: list[Part] = []
        for part, (first, stop) in scratch.dealt(spans(-(-columns // wide), lanes)):
            scratch.reset()
            some = slice(first * wide, min(stop * wide, columns))
            out = output.store[index].reshape(-1, columns)[:, some]
            place = (*index, ..., some)
            parts.append(
                sequence([
                    *_lane(flat, across, weights, some, wide, out, node, part, scratch),
                    *followed(followers, output.store[place], place),
                ])
            )  # fmt: skip
        before.append(parts)
    return before


def _turned(flat: Array, across: Array, lanes: int) -> list[Part]:
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


def _wide(rows: int, weights: Streamed, columns: int, lanes: int) -> int:
    """How many columns are made numbers at once: who share them have as many blocks each."""
    groups, each, _ = weights.beside.shape
    by_pieces = _is_by_pieces(rows, groups)
    most = next((many for few, many in WIDER if rows <= few), WIDER[-1][1] if by_pieces else WIDE)
    taken = _longest(weights) if by_pieces else groups * each
    most = max(16, min(most, NUMBERS // taken // 16 * 16))
    blocks = -(-columns // (most * lanes)) * lanes
    return -(-columns // (16 * blocks)) * 16


def _lane(
    flat: Array,
    across: Array,
    weights: Streamed,
    some: slice,
    wide: int,
    out: Array,
    node: Node,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Rows by some columns, so many at a time: these are made numbers, and multiply the rows."""
    (groups, each, _), zero, scale = weights.beside
    packed, op = node.inputs[1].packed, node.op
    assert packed is not None
    rows, taken = len(flat), groups * each
    steps: list[Part] = []
    by_pieces = _is_by_pieces(rows, groups)
    longest = _longest(weights)
    memory = scratch.take(part, max(NEAR, wide * longest) if by_pieces else wide * taken)
    together = spans(rows, -(-rows // _at_once(rows, groups, wide * longest)))
    # Results are turned back and scaled some blocks at a time.
    panel = min(wide * max(1, PANEL // (wide * rows)), some.stop - some.start)
    total = scratch.take(part, panel, rows)
    products = scratch.take(part, _held(weights) * wide * rows if by_pieces else 0)
    if zero is not None:
        sums = scratch.take(part, rows, groups)
        grouped = flat.reshape(rows, groups, each)
        steps.append(call(np.matmul, grouped, np.ones(each, np.float32), out=sums))
        shift, over = zero * scale, scratch.take(part, rows * panel)
    alike: dict[int, _Pieces] = {}
    for panelled in _runs(some, panel):
        for block in _runs(panelled, wide):
            made = total[block.start - panelled.start : block.stop - panelled.start]
            if not by_pieces:
                steps += _by_columns(weights, block, memory, across, made)
                continue
            if len(made) not in alike:
                rooms = memory, products
                alike[len(made)] = _Pieces(weights, len(made), rooms, across, together)
            steps += alike[len(made)].parts(block, made)
        target = out[:, panelled.start - some.start : panelled.stop - some.start]
        turned = total[: target.shape[1]].T
        if groups > 1:
            steps.append(call(np.copyto, target, turned))
        else:
            steps.append(call(np.multiply, turned, scale[0, panelled], out=target))
        if zero is not None:
            # There are far fewer products than numbers to take it from.
            lost = over[: target.size].reshape(target.shape)
            offset = np.ascontiguousarray(shift[:, panelled])
            steps.append(without_zeros(sums, offset, lost, target))
    if zero is not None:
        # Infinity less infinity is no number, of which the numbers themselves would know more.
        transposed: bool = op.transpose_b  # type: ignore[attr-defined]  # MatMul has it
        steps.append(checked(flat, sums, packed, some, out, transposed=transposed))
    return steps


def _is_by_pieces(rows: int, groups: int) -> bool:
    """Whether columns meet rows piece by piece: of more, the sums of pieces take too long.

    So does it to scale the numbers of groups.
    """
    return rows <= _most(groups) and not blas_copies()


def _most(groups: int) -> int:
    """The most rows that meet columns piece by piece, and together."""
    return GROUPED if groups > 1 else TOGETHER


def _by_columns(
    weights: Streamed, block: slice, memory: Array, across: Array, made: Array
) -> list[Part]:
    """Parts that make numbers of whole columns, and multiply them by all rows at once."""
    groups, each, _ = weights.beside.shape
    numbers = memory[: len(made) * groups * each].reshape(len(made), groups * each)
    steps: list[Part] = []
    start = 0
    for run in weights.alike:
        for piece in run:
            into = numbers[:, start : start + piece.shape[1]]
            steps.append(call(np.copyto, into, piece[block]))
            start += piece.shape[1]
    if groups > 1:
        by_group = numbers.reshape(len(made), groups, each)
        scale = np.ascontiguousarray(weights.beside.scale[:, block].T)[..., None]
        steps.append(call(np.multiply, by_group, scale, out=by_group))
    return [*steps, call(np.matmul, numbers, across, out=made)]


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
        groups, held = len(weights.beside.scale), _held(weights)
        self._sums: list[Array] = []
        for first, stop in together:
            sums = products[held * count * first : held * count * stop]
            by_column = sums.reshape(count, held, -1).swapaxes(0, 1)
            self._sums.append(by_column if groups > 1 else sums.reshape(held, count, -1))
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
        if len(scale) > 1:
            times = _held(weights) // len(scale)
            by_piece = np.repeat(scale[:, block].T, times, axis=1)[:, None]
        for (first, stop), sums in zip(self._together, self._sums, strict=True):
            if len(scale) > 1:
                into = made[:, None, first:stop]
                steps.append(call(np.matmul, by_piece, sums.swapaxes(0, 1), out=into))
            else:
                steps.append(call(np.add.reduce, sums, axis=0, out=made[:, first:stop]))
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


def _at_once(rows: int, groups: int, numbers: int) -> int:
    """How many rows meet so many numbers together: so many that BLAS takes them as they lie."""
    most = min(_most(groups), max(8, MILLION // numbers))
    return -(-rows // -(-rows // most))


__all__ = ["gathered", "multiplied"]
