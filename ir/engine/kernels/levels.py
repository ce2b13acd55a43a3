"""Products by weights that are kept as levels, and rows taken out of tables of them.

Blocks of columns are made numbers in a core's own cache, and multiplied by before the next are
made: to fetch levels from memory takes a quarter of what their numbers take. What is the same for
all rows of a column, its scale and its zero, comes after the product.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..memory import is_wished, shelved, side_by_side
from ..plan import Columns, Compressed, Node, by_digits
from ..workers import Part, integer_products, spans
from . import products
from .blocks import CACHE, Scratch, epilogue, even, followed, sequence
from .calls import call
from .digits import by_integers, checked, without_zeros
from .matrices import lying, pieces, rows_of

#: So many numbers stay in cache while they are multiplied, in blocks of so many columns at most.
NUMBERS, WIDE = 1 << 18, 128
#: Rows that are multiplied together, at most.
ROWS = 256
#: Each group is multiplied by itself where it has so many numbers for each row.
LONG = 4


class Blocks(NamedTuple):
    """Levels in blocks of columns (taken, wide), each without gaps; the last may be narrower."""

    columns: Columns
    wide: int
    levels: list[Array]


def gathered(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """Some rows of a table: they alone are made numbers."""
    table, output, op = node.inputs[0].packed, node.outputs[0], node.op
    assert table is not None
    assert output.store is not None
    target, places, count = output.store, node.inputs[1], table.shape[0]
    held = table.levels

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
    blocks = _blocks(packed, transposed=op.transpose_b)
    lanes = abreast if rows * prod(packed.shape) > 1 << 18 else 1
    followers = epilogue(node, scratch)
    parts: list[Part] = []
    for part, (first, stop) in scratch.dealt(spans(len(blocks.levels), lanes)):
        steps: list[Part] = []
        for index in pieces(output.shape[:-1], ROWS):
            scratch.reset()
            flat, gather = rows_of(a[index], part, scratch)
            steps += gather
            whole = output.store[index].reshape(-1, output.shape[-1])
            steps += _lane(flat, blocks, (first, stop), whole, node, part, scratch)
            begin, end = first * blocks.wide, min(stop * blocks.wide, output.shape[-1])
            place = (*index, ..., slice(begin, end))
            steps += followed(followers, output.store[place], place)
        parts.append(sequence(steps))
    return [*before, parts]


def _lane(
    flat: Array,
    blocks: Blocks,
    span: tuple[int, int],
    whole: Array,
    node: Node,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Rows by some blocks, into their columns of the output."""
    (levels, zero, scale), wide, matrices = blocks
    groups, each, columns = levels.shape
    packed, op = node.inputs[1].packed, node.op
    assert packed is not None
    memory = scratch.take(part, groups * each * wide)
    by_group = groups > 1 and LONG * len(flat) <= each
    cut = products.cuts_in_cache(groups * each, wide)
    room = scratch.take(part, CACHE // 4) if cut > 1 else None
    steps: list[Part] = []
    if zero is not None:
        sums = scratch.take(part, len(flat), groups)
        grouped = flat.reshape(len(flat), groups, each)
        steps.append(call(np.matmul, grouped, np.ones(each, np.float32), out=sums))
        shift, over = zero * scale, scratch.take(part, len(flat) * wide)
    left = flat.reshape(len(flat), groups, each).swapaxes(0, 1)
    by_groups = scratch.take(part, groups, len(flat), wide) if by_group else flat
    for number in range(*span):
        given = matrices[number]
        begin = number * wide
        some = slice(begin, begin + given.shape[1])
        numbers, out = memory[: given.size].reshape(given.shape), whole[:, some]
        steps.append(call(np.copyto, numbers, given))
        grouped = numbers.reshape(groups, each, -1)
        if by_group:
            made = by_groups[:, :, : given.shape[1]]
            steps += [
                call(np.matmul, left, grouped, out=made),
                call(np.multiply, made, scale[:, None, some], out=made),
                call(np.add.reduce, made, axis=0, out=out),
            ]
        else:
            if groups > 1:
                steps.append(call(np.multiply, grouped, scale[:, None, some], out=grouped))
            steps += products.multiplied(flat, numbers[None], out, cut=cut, room=room)
            if groups == 1:
                steps.append(call(np.multiply, out, scale[0, some], out=out))
        if zero is not None:
            # There are far fewer products than numbers to take it from.
            lost = over[: out.size].reshape(out.shape)
            steps.append(without_zeros(sums, np.ascontiguousarray(shift[:, some]), lost, out))
    some = slice(span[0] * wide, min(span[1] * wide, columns))
    if zero is not None:
        # Infinity less infinity is no number, of which the numbers themselves would know more.
        turned: bool = op.transpose_b  # type: ignore[attr-defined]  # MatMul has it
        steps.append(checked(flat, sums, packed, some, whole[:, some], transposed=turned))
    return steps


def _blocks(packed: Compressed, *, transposed: bool) -> Blocks:
    """Levels in blocks; plans share them."""
    found = packed.laid_out.get(("blocks", transposed))
    if found is None:
        columns = packed.columns(transposed=transposed)
        assert columns is not None
        levels = columns.levels
        groups, each, count = levels.shape
        wide = even(count, max(16, min(WIDE, NUMBERS // (groups * each) // 16 * 16)))
        taken = groups * each
        whole = side_by_side(taken * count).view(np.int8)

        def block(begin: int) -> Array:
            end = min(begin + wide, count)
            return whole[taken * begin : taken * end].reshape(groups, each, end - begin)

        for begin in range(0, count, wide):
            block(begin)[...] = levels[:, :, begin : begin + wide]
        if is_wished():
            whole = shelved(whole)
        laid = [block(begin).reshape(taken, -1) for begin in range(0, count, wide)]
        found = packed.laid_out["blocks", transposed] = Blocks(columns, wide, laid)
    return found


__all__ = ["gathered", "multiplied"]
