"""Numbers by levels, as products of integers: exact, and by weights of a byte each.

A row of numbers is a power of two times integers of 31 bits, each four digits of 8 bits: ``x W``
is the sum of four products of int8 matrices, each times a power of 256. What that loses of a
number is below the last bit of the largest in its row, by seven bits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from math import frexp, isfinite, ldexp, prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import Beside, Compressed, Node, Value
from ..workers import IntegerProducts, Part, spans
from .blocks import Scratch, epilogue, even, followed, sequence
from .matrices import pieces
from .streamed import DIGITS, SUMS, Streamed, column_pieces, streamed

#: Rows that are multiplied together, and columns that are packed together, at most.
ROWS, WIDE = 64, 512
#: The power of two that the integer of a number stays below.
BITS = 30
#: What the sums of each digit stand for, of a row whose largest is below two.
POWERS = np.ldexp(np.float32(1), 8 * np.arange(DIGITS) - BITS + 1)[None]
#: Added to an integer, and taken from each digit but the first, it makes these signed.
CARRY = np.int32(0x808080)
#: So many numbers are made digits at once, which stay in cache; fewer than so many by one worker.
IN_CACHE, SHARED = 1 << 14, 1 << 12
#: So many products, digits and all, are sooner done by one worker.
ALONE = 1 << 17
#: Sums of digits that are brought together at once where the library multiplies by tiles.
BY_TILES = 1 << 17
#: From the least digit on.
BYTES = slice(None) if sys.byteorder == "little" else slice(None, None, -1)
HALF, ONE = np.float32(0.5), np.float32(1)
#: No power of two is above this one.
LARGEST = 127


class Digits(NamedTuple):
    """Rows as digits (groups, 4, rows, each), the power of two of each row, the rows' sums."""

    digits: Array
    powers: Array
    sums: Array


class Known(NamedTuple):
    """Rows that are digits by now: of which value, of what shape and groups, with sums or not."""

    of: Value
    cut: tuple[tuple[int, ...], int, bool]
    taken: list[tuple[Any, Digits]]


class Packed(NamedTuple):
    """Levels as the library wants them: of each block of columns, a matrix for each group."""

    beside: Beside
    wide: int
    blocks: list[list[Any]]

    def shares(self, rows: int, lanes: int, scratch: Scratch) -> Iterator[tuple[int, list[slice]]]:
        """Blocks of columns for each part."""
        count = self.beside.shape[2]
        for part, (first, stop) in scratch.dealt(spans(len(self.blocks), lanes)):
            edges = [min(number * self.wide, count) for number in range(first, stop + 1)]
            yield part, list(map(slice, edges, edges[1:]))

    def matrices(self, some: slice) -> list[Any]:
        """What one of the blocks is multiplied by."""
        return self.blocks[some.start // self.wide]


class Tools(NamedTuple):
    """What a part is made with: the library, and memory of the worker who will run it."""

    library: IntegerProducts
    part: int
    scratch: Scratch

    def take(self, *shape: int) -> Array:
        """Memory for numbers."""
        return self.scratch.take(self.part, *shape)

    def take_bytes(self, *shape: int) -> Array:
        """The same for int8."""
        return self.scratch.take_bytes(self.part, *shape)


def by_integers(
    node: Node,
    a: Array,
    packed: Compressed,
    library: IntegerProducts,
    abreast: int,
    scratch: Scratch,
) -> list[list[Part]]:
    """Rows are made digits, unless they are; then workers share columns or, of few, the groups."""
    output = node.outputs[0]
    op: Any = node.op
    assert output.store is not None
    store, rows = output.store, prod(output.shape[:-1])
    weights: Packed | Streamed
    if library.by_tiles:
        weights = _packed(packed, library, transposed=op.transpose_b)
        block = partial(_block, weights)
    else:
        weights = streamed(packed, transposed=op.transpose_b)
        block = partial(_streamed_block, weights)
    groups, each, columns = weights.beside.shape
    followers = epilogue(node, scratch)
    making, taken = _rows_as_digits(node.inputs[0], a, weights.beside, abreast, scratch)
    lanes = abreast if rows * groups * each * columns > ALONE else 1
    found = [making] if making else []
    turned = op.transpose_b

    def ended(index: Any, digits: Digits, some: slice) -> list[Part]:
        """What is done to some columns of what was multiplied."""
        place, out = (*index, ..., some), store[index].reshape(-1, columns)[:, some]
        odd = checked(a[index], digits.powers, packed, some, out, transposed=turned)
        return [odd, *followed(followers, store[place], place)]

    if isinstance(weights, Streamed) and weights.is_narrow(rows, lanes):
        parts, shared = _by_groups(taken, weights, lanes, library, scratch)
        everything, tools = slice(0, columns), Tools(library, 0, scratch)
        steps: list[Part] = []
        scratch.reset()
        for (index, digits), sums in zip(taken, shared, strict=True):
            target = store[index].reshape(-1, columns)
            steps.append(partial(np.add.reduce, sums, axis=0, out=sums[0]))
            steps += _scaled(digits, weights.beside, everything, sums[0], target, tools)
            steps += ended(index, digits, everything)
        return [*found, parts, [sequence(steps)]]
    parts = []
    for part, blocks in weights.shares(rows, lanes, scratch):
        steps = []
        for index, digits in taken:
            whole = store[index].reshape(-1, columns)
            for some in blocks:
                scratch.reset()
                steps += block(digits, some, whole[:, some], Tools(library, part, scratch))
            steps += ended(index, digits, slice(blocks[0].start, blocks[-1].stop))
        parts.append(sequence(steps))
    return [*found, parts]


def _by_groups(
    taken: list[tuple[Any, Digits]],
    weights: Streamed,
    lanes: int,
    library: IntegerProducts,
    scratch: Scratch,
) -> tuple[list[Part], list[Array]]:
    """Parts that share the groups of all columns; of what is taken, their sums side by side."""
    columns, parts = weights.beside.shape[2], []
    shared = [scratch.shared.take(0, lanes, columns, len(one.powers)) for _, one in taken]
    for part, (turn, run) in scratch.dealt(list(enumerate(spans(weights.bundles, lanes)))):
        steps: list[Part] = []
        for (_, digits), sums in zip(taken, shared, strict=True):
            scratch.reset()
            tools = Tools(library, part, scratch)
            steps += _by_pieces(digits, weights, slice(0, columns), run, sums[turn], tools)
        parts.append(sequence(steps))
    return parts, shared


def _rows_as_digits(
    value: Value, a: Array, beside: Beside, abreast: int, scratch: Scratch
) -> tuple[list[Part], list[tuple[Any, Digits]]]:
    """What makes digits of rows, some at a time; nothing where these are digits already.

    Queries, keys and values are products of the same rows: digits stay until others are made.
    """
    groups, each, _ = beside.shape
    with_sums = beside.zero is not None
    known = scratch.digits
    if (
        isinstance(known, Known)
        and known.of is value
        and known.cut == (a.shape, groups, with_sums)
    ):
        return [], known.taken
    room = scratch.digits_room
    room.reset()
    taken: list[tuple[Any, Digits]] = []
    work: list[tuple[Array, Digits, slice]] = []
    for index in pieces(a.shape[:-1], ROWS):
        rows = prod(a[index].shape[:-1])
        digits = room.take_bytes(0, groups, DIGITS, rows, each)
        one = Digits(digits, room.take(0, rows), room.take(0, rows, groups))
        taken.append((index, one))
        lanes = abreast if rows * groups * each >= SHARED else 1
        at_once = max(1, min(IN_CACHE // (groups * each), -(-rows // lanes)))
        runs = spans(rows, -(-rows // at_once))
        work += [(a[index], one, slice(*run)) for run in runs]
    parts: list[Part] = []
    lanes = abreast if len(work) > 1 else 1
    for part, (begin, end) in scratch.dealt(spans(len(work), lanes)):
        steps: list[Part] = []
        for flat, one, some in work[begin:end]:
            scratch.reset()
            steps.append(_split(flat, one, some, part, scratch, with_sums=with_sums))
        parts.append(sequence(steps))
    scratch.digits = Known(value, (a.shape, groups, with_sums), taken)
    return parts, taken


def _split(
    rows: Array, into: Digits, some: slice, part: int, scratch: Scratch, *, with_sums: bool
) -> Part:
    """What makes digits of some rows; of those that are not finite the power is no number."""
    groups, _, total, each = into.digits.shape
    digits, powers, sums = into.digits[:, :, some], into.powers[some], into.sums[some]
    count = some.stop - some.start
    scaled = scratch.take(part, count, groups * each)
    integers = scratch.take(part, count, groups * each).view(np.int32)
    by_byte = integers.view(np.int8).reshape(count, groups, each, DIGITS)[..., BYTES]
    by_group = scaled.reshape(count, groups, each)

    def run() -> None:
        flat = rows.reshape(total, groups * each)[some]
        np.abs(flat, scaled)
        largest = np.maximum.reduce(scaled, 1)
        if count == 1 and isfinite(largest[0]):
            exponent = frexp(largest[0])[1]
            scale, least = ldexp(1, min(BITS - exponent, LARGEST)), exponent
            powers[0] = ldexp(0.5, exponent)
        else:
            finite = np.isfinite(largest)
            exponents = np.frexp(np.where(finite, largest, 1))[1]
            scale, least = np.ldexp(ONE, BITS - exponents)[:, None], exponents.min()
            np.copyto(powers, np.where(finite, np.ldexp(HALF, exponents), np.nan))
        if least >= BITS - LARGEST:
            np.multiply(flat, scale, scaled)
        else:  # which takes ten times as long
            np.ldexp(flat, BITS - np.frexp(largest)[1][:, None], scaled)
        np.rint(scaled, scaled)
        if not isfinite(powers.sum()):
            scaled[np.isnan(powers)] = 0
        if with_sums:
            whole = np.add.reduce(by_group, 2)
            np.ldexp(whole, 1 - BITS, sums)
        np.copyto(integers, scaled, casting="unsafe")
        np.add(integers, CARRY, integers)
        np.bitwise_xor(integers, CARRY, integers)
        np.copyto(digits, by_byte.transpose(1, 3, 0, 2))

    return run


def _block(
    weights: Packed, digits: Digits, some: slice, target: Array, tools: Tools
) -> list[Part]:
    """Rows by one block of columns, into these of the output."""
    beside, matrices = weights.beside, weights.matrices(some)
    groups, _, rows, each = digits.digits.shape
    wide = target.shape[1]
    at_once = min(groups, max(1, BY_TILES // (DIGITS * rows * wide)))
    sums = tools.take(at_once, DIGITS * rows, wide).view(np.int32)
    numbers = tools.take(at_once, DIGITS, rows * wide)
    joined = tools.take(at_once, 1, rows * wide)
    total = tools.take(rows, wide)
    powers, zero, scale = digits.powers[:, None], beside.zero, beside.scale[:, some]
    shift = None if zero is None else np.ascontiguousarray(zero[:, some] * scale)
    steps: list[Part] = []
    for begin in range(0, groups, at_once):
        count = min(at_once, groups - begin)
        for place in range(count):
            left = digits.digits[begin + place].reshape(DIGITS * rows, each)
            steps.append(tools.library.multiplied(left, matrices[begin + place], sums[place]))
        steps.append(
            _joined(
                (sums[:count], numbers[:count], joined[:count]),
                scale[begin : begin + count, None], total, fresh=not begin,
            )
        )  # fmt: skip

    if shift is not None:
        steps.append(without_zeros(digits.sums, shift, joined[0].reshape(total.shape), total))
    return [*steps, partial(np.multiply, total, powers, out=target)]


def _streamed_block(
    weights: Streamed, digits: Digits, some: slice, target: Array, tools: Tools
) -> list[Part]:
    """Few rows by one block of columns that are fetched one after the other."""
    total = tools.take(some.stop - some.start, len(digits.powers))
    everything = 0, weights.bundles
    return [
        *_by_pieces(digits, weights, some, everything, total, tools),
        *_scaled(digits, weights.beside, some, total, target, tools),
    ]


def _scaled(
    digits: Digits, beside: Beside, some: slice, total: Array, target: Array, tools: Tools
) -> list[Part]:
    """What puts the sums of some columns (columns, rows) into these of the output."""
    steps: list[Part] = []
    if beside.zero is not None:
        shift = np.ascontiguousarray(beside.zero[:, some] * beside.scale[:, some])
        room = tools.take(*target.shape)
        steps.append(without_zeros(digits.sums, shift, room, total.T))
    return [*steps, partial(np.multiply, total.T, digits.powers[:, None], out=target)]


def _by_pieces(
    digits: Digits,
    weights: Streamed,
    some: slice,
    run: tuple[int, int],
    total: Array,
    tools: Tools,
) -> list[Part]:
    """Few rows by some pieces of some columns, as sums (columns, rows).

    Where so many groups are one piece, rows meet it once for each, with zeros for the others.
    """
    groups, _, rows, each = digits.digits.shape
    together, wide = weights.together, some.stop - some.start
    cut, matrices = column_pieces(together * each), weights.matrices(some)
    steps: list[Part] = []
    few = digits.digits.reshape(groups, DIGITS * rows, each)[slice(*run)]
    count = run[1] - run[0]
    if rows > 1 or together > 1:  # digits of a row beside each other
        few = tools.scratch.take_bytes(
            tools.part, count, together * rows * DIGITS, together * each
        )
        by_group = few.reshape(count, together, rows, DIGITS, together, each)
        given = digits.digits.reshape(-1, together, DIGITS, rows, each)[slice(*run)]
        if together > 1:
            steps.append(_emptied(few))
        steps += [
            partial(np.copyto, by_group[:, group, ..., group, :], given[:, group].swapaxes(1, 2))
            for group in range(together)
        ]
    made = together * rows * DIGITS
    # The sums of so many pieces are brought together at once.
    most = min(count, max(1, SUMS // (len(cut) * wide * made)))
    of_pieces = tools.take(most, len(cut), wide, made).view(np.int32)
    whole = of_pieces[:, 0]
    if len(cut) > 1:
        whole = tools.take(most, wide, made).view(np.int32)
    # BLAS sums up the last of an odd number otherwise than those before: there is one more, whose
    # sum nobody asks for.
    numbers = tools.take(most * wide * together * rows + 1, DIGITS)
    # What was added up is the first of those that are added next: so sums are taken in one order.
    room = tools.take((1 + most) * wide * together * rows + 1)
    joined = room[:-1].reshape(1 + most, wide, together, rows)
    scale = weights.beside.scale[:, some].reshape(-1, together, wide)[slice(*run)]
    by_piece = scale.swapaxes(1, 2)[..., None]
    if together > 1:
        by_piece = np.ascontiguousarray(by_piece)
    ends = joined[0] if together > 1 else total.reshape(wide, 1, rows)
    for begin, end in spans(count, -(-count // most)):
        held = end - begin
        steps += [
            tools.library.multiplied_anew(
                matrices[len(cut) * (run[0] + piece) + number],
                few[piece, :, levels],
                of_pieces[piece - begin, number],
            )
            for piece in range(begin, end)
            for number, levels in enumerate(cut)
        ]
        if len(cut) > 1:
            steps.append(partial(np.add.reduce, of_pieces[:held], axis=1, out=whole[:held]))
        by_row = joined[1 : 1 + held]
        even = by_row.size + by_row.size % 2
        start = joined[0].size
        steps += [
            partial(
                np.copyto,
                numbers[: by_row.size].reshape(whole[:held].shape),
                whole[:held],
                casting="unsafe",
            ),
            partial(np.matmul, numbers[:even], POWERS[0], out=room[start : start + even]),
            partial(np.multiply, by_row, by_piece[begin:end], out=by_row),
        ]
        out = ends if end == count else joined[0]
        steps.append(
            partial(np.add.reduce, joined[1 if begin == 0 else 0 : 1 + held], axis=0, out=out)
        )
    if together > 1:  # reduced, rows of so few would take ten times as long
        first, *others = ends.swapaxes(0, 1)
        steps += [partial(np.add, total if turn else first, one, out=total)
                  for turn, one in enumerate(others)]  # fmt: skip
    return steps


def _emptied(levels: Array) -> Part:
    return lambda: levels.fill(0)


def sums_by_group(rows: Array, each: int, sums: Array) -> Part:
    """Sums up so many numbers each of rows: zeros of levels are taken from products by them."""
    grouped = rows.reshape(*sums.shape, each)
    return partial(np.matmul, grouped, np.ones(each, np.float32), sums)


def without_zeros(sums: Array, shift: Array, room: Array, products: Array) -> Part:
    """Takes from products what zeros of levels made of them: sums by group times scaled zeros."""
    # To multiply matrices one row deep is slow.
    multiply: Any = np.matmul if len(shift) > 1 else np.multiply

    def run() -> None:
        np.subtract(products, multiply(sums, shift, out=room), out=products)

    return run


def _joined(room: tuple[Array, Array, Array], scale: Array, total: Array, *, fresh: bool) -> Part:
    """Adds up digits, then groups by their scales."""
    sums, numbers, joined = room
    by_group = joined.reshape(len(joined), *total.shape)

    def run() -> None:
        np.copyto(numbers, sums.reshape(numbers.shape), casting="unsafe")
        np.matmul(POWERS, numbers, out=joined)
        if len(by_group) == 1 and fresh:
            np.multiply(by_group[0], scale[0], out=total)
            return
        np.multiply(by_group, scale, out=by_group)
        if fresh:
            np.add.reduce(by_group, axis=0, out=total)
        else:
            for one in by_group:
                np.add(total, one, out=total)

    return run


def checked(
    rows: Array, marks: Array, packed: Compressed, some: slice, target: Array, *, transposed: bool
) -> Part:
    """Rows that are not finite, as their marks are not: these are multiplied by numbers."""

    def run() -> None:
        if isfinite(marks.sum()):
            return
        odd = np.logical_not(np.isfinite(marks.reshape(len(target), -1)).all(1))
        if odd.any():
            numbers = packed.expanded()
            matrix = numbers.T if transposed else numbers
            target[odd] = np.matmul(rows.reshape(len(odd), -1)[odd], matrix[:, some])

    return run


def _packed(packed: Compressed, library: IntegerProducts, *, transposed: bool) -> Packed:
    """Levels as the library wants them; plans share them."""
    found = packed.laid_out.get(("packed", transposed))
    if found is None:
        columns = packed.columns(transposed=transposed)
        assert columns is not None
        count = columns.levels.shape[2]
        wide = even(count, WIDE)
        blocks = [
            [library.pack(group[:, begin : begin + wide].T) for group in columns.levels]
            for begin in range(0, count, wide)
        ]
        found = packed.laid_out["packed", transposed] = Packed(columns.beside, wide, blocks)
    return found


__all__ = ["by_integers", "checked", "sums_by_group", "without_zeros"]
