"""Products of matrices, prepared: weights in blocks, stacks of products without copies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ....schemas import Array
from ..memory import is_wished, lies_in, shelved
from ..plan import Node, Scales, Value
from ..workers import Part, spans
from .blocks import CACHE, Room, Scratch, epilogue, followed, sequence
from .calls import call
from .copies import copied
from .halves import by_halves, if_wanted
from .in_use import made_once
from .lines import LINE, laid_out
from .products import BLOCK, MILLION, UNEVEN, cuts, equal, multiplied, shared_width, sums, width

#: Fewer rows than this are not worth a product of their own.
FEW = 16
#: Up to so many are not shared: each worker would fetch all weights.
FEWER = 64
#: From memory a matrix comes quicker row by row, if each thread has so long runs of these, than by
#: columns no longer than this: up to twice as quickly. Of longer ones it is worth no copy.
RUN, SHORT = 1024, 1536
#: Lanes end at a multiple of so many rows: BLAS multiplies some together.
WHOLE = 8
#: Where work has so many parts they are halved, so that slower cores may be left with less, if it
#: has so many products: for fewer, what another core holds and calls from anew take longer.
SEVERAL, LARGE = 4, 1 << 28
#: So many make up for it that weights are copied from how they lie at each call.
MANY = 256
#: Weights that nothing is done to.
AS_THEY_ARE = Scales()


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a MatMul of float32 matrices; None where there is no kernel for it."""
    left, right = node.inputs
    output = node.outputs[0]
    if output.type != np.float32 or not prod(output.shape):
        return None
    if min(len(left.shape), len(right.shape)) < 2 or not left.shape[-1] or output.store is None:
        return None
    assert not output.last
    op: Any = node.op
    before: list[list[Part]] = []
    scratch.shared.reset()
    a = lying(left, before, abreast, scratch)
    b = lying(right, before, abreast, scratch)
    a = a.swapaxes(-1, -2) if op.transpose_a else a
    b = b.swapaxes(-1, -2) if op.transpose_b else b
    if right.type == np.float16:
        making, product = by_halves(node, a, b, output.store, abreast, scratch)
        return [*before, *making, product]
    return [*before, _multiplied(node, a, b, output.store, abreast, scratch)]


def _multiplied(
    node: Node, a: Array, b: Array, store: Array, abreast: int, scratch: Scratch
) -> list[Part]:
    """The step that multiplies, in the way that goes with what is known of the second operand."""
    shape, constant = store.shape, node.inputs[1].constant is not None
    single = constant and prod(b.shape[:-2]) == 1
    a = np.broadcast_to(a, (*shape[:-2], *a.shape[-2:]))
    # Where all of many rows are wanted, one call for all of them takes less.
    if constant and shape[-2] == 1 and (prod(shape) == shape[-1] or node.wanted is not None):
        return rows_by_weights(node, a, b, store, abreast, scratch)
    if single:
        return by_weights(node, a, b.reshape(b.shape[-2:]), store, abreast, scratch)
    rows, deep = a.shape[-2:]
    is_large = rows * b.shape[-1] * deep > MILLION and cuts(deep, rows) > 0
    if constant and (is_large or node.wanted is not None):
        return by_stacked_weights(node, a, b, store, abreast, scratch)
    b = np.broadcast_to(b, (*shape[:-2], *b.shape[-2:]))
    return stacks(node, a, b, store, abreast, scratch)


def lying(value: Value, before: list[list[Part]], abreast: int, scratch: Scratch) -> Array:
    """An operand as BLAS can take it; where it lies otherwise it is copied before."""
    array = value.array
    for way in (array, array.swapaxes(-1, -2)):
        down, along = way.strides[-2:]
        if along == array.itemsize and down >= way.shape[-1] * array.itemsize:
            return array
    if value.constant is not None:
        return laid_out(array)
    room = scratch.shared.take(0, *array.shape)
    before.append(copied(array, room, abreast))
    return room


def rows_by_weights(
    node: Node, a: Array, b: Array, store: Array, abreast: int, scratch: Scratch
) -> list[Part]:
    """A vector by a constant matrix, or those that are wanted of several, each by one of its own.

    The matrices lie so that each thread reads long runs of them.
    """
    *lead, deep, columns = b.shape
    followers = epilogue(node, scratch)
    lanes = most = abreast if b.size > 1 << 14 else 1
    while columns < RUN * lanes and lanes > 2:
        lanes //= 2
    in_rows = columns >= RUN * lanes and (b.flags.c_contiguous or deep <= SHORT)
    if in_rows:
        source = node.inputs[1].constant
        assert source is not None
        matrices = _shared(source, b, b.strides)
    else:
        # As it lies in the file or, where it has to be turned, in large pages.
        lanes, turned = most, b.swapaxes(-1, -2)
        matrices = turned if turned.flags.c_contiguous else laid_out(turned)
        if is_wished() and not np.may_share_memory(matrices, b):
            matrices = shelved(matrices)
    matrices = matrices.reshape(-1, *matrices.shape[-2:])
    lines = store.shape[:-1]
    which = np.broadcast_to(np.arange(len(matrices)).reshape(lead), lines[:-1])
    wanted = None if node.wanted is None else np.broadcast_to(node.wanted.array, (*lines, 1))
    parts: list[Part] = []
    # So many columns at a time as BLAS takes together, so that equal ones give the same.
    for _, (first, stop) in scratch.dealt(spans(-(-columns // LINE), lanes)):
        begin, end = first * LINE, min(stop * LINE, columns)
        steps: list[Part] = []
        for place, number in zip(np.ndindex(*lines), which.flat, strict=True):
            row, target, matrix = a[place], store[place][begin:end], matrices[number]
            product = (
                call(np.matmul, row, matrix[:, begin:end], out=target) if in_rows
                else call(np.matmul, matrix[begin:end], row, out=target)
            )  # fmt: skip
            steps.append(product if wanted is None else if_wanted(product, wanted[place], target))
        index = (..., slice(begin, end))
        parts.append(sequence([*steps, *followed(followers, store[index], index)]))
    return parts


def by_weights(
    node: Node, a: Array, b: Array, store: Array, abreast: int, scratch: Scratch
) -> list[Part]:
    """Many rows by one constant matrix; each worker has some of the rows, or of the columns."""
    rows, (deep, columns) = prod(store.shape[:-1]), b.shape
    followers = epilogue(node, scratch)
    lanes = abreast if rows * b.size > 1 << 18 else 1
    as_they_lie = cuts(deep, rows) > 0
    if as_they_lie:
        across = lanes if rows <= FEWER else least_copied(rows, columns, lanes)
        wide = (
            width(equal(columns, deep, rows), deep, rows) if across == 1
            else shared_width(columns, deep, rows, across)
        )  # fmt: skip
        blocks = kept_columns(node.inputs[1].constant, b, wide, scales=node.scales)
        at_once = max(FEW if across == 1 else FEWER, across * CACHE // (4 * columns))
        if b.nbytes > 2 * across * CACHE:
            at_once = max(at_once, 2 * MANY)  # they are fetched anew for each piece
        tall = min(rows, at_once)
        together = max(1, CACHE // (4 * tall * wide)) if followers and tall > FEWER else columns
    else:
        across = least_copied(rows, columns, lanes)
        most = BLOCK if followers or rows < MANY else columns
        pieces_across = across * -(-columns // (across * most))
        wide = min(columns, -(-columns // (pieces_across * 16)) * 16)
        blocks = kept_columns(
            node.inputs[1].constant, b, wide, copied=rows < MANY, scales=node.scales
        )
        at_once, together = max(MANY, 2 * CACHE // (4 * wide)), 1
    down = lanes // across
    if as_they_lie and lanes >= SEVERAL and rows >= 2 * down * FEWER and rows * b.size >= LARGE:
        down *= 2  # nothing is copied for more pieces
    found = even_pieces(store.shape[:-1], max(1, min(at_once, -(-rows // down))), down)
    work = [
        (runs_of_columns(blocks, *lane, together), *run)
        for run in spans(len(found), down) for lane in spans(sum(map(len, blocks)), across)
    ]  # fmt: skip
    parts: list[Part] = []
    for part, (runs, begin, end) in scratch.dealt(work):
        steps: list[Part] = []
        for index in found[begin:end]:
            scratch.reset()
            flat, gather = rows_of(a[index], part, scratch)
            steps += gather
            added = sums(scratch, part, deep, rows)
            given = store[index]
            widest = max(stop - first for first, stop, _ in runs)
            room = None
            if followers and widest < columns:  # they go over what has no gaps and is in the cache
                room = scratch.take(part, prod(given.shape[:-1]) * widest)
            for first, stop, matrices in runs:
                place = (*index, ..., slice(first, stop))
                target = made = store[place]
                out = given.reshape(-1, columns)[:, first:stop]
                if room is not None:
                    made = room[: target.size].reshape(target.shape)
                    out = made.reshape(-1, stop - first)
                steps += multiplied(flat, matrices, out, rows=rows, room=added)
                steps += followed(followers, made, place, target)
        parts.append(sequence(steps))
    return parts


@lru_cache(maxsize=256)  # a network has many layers that are alike
def even_pieces(shape: tuple[int, ...], at_once: int, lanes: int) -> tuple[tuple[Any, ...], ...]:
    """Runs of about so many rows, such that each of some lanes can have nearly as many rows.

    Of those that share so the fewest: either runs alike, or those that lie between the rows at
    which one lane ends and the next begins.
    """
    best: tuple[int, list[tuple[Any, ...]]] | None = None
    even: list[list[tuple[Any, ...]]] = []
    for most in (at_once, at_once + at_once // 4, *(at_once // parts for parts in (2, 3, 4))):
        found = list(pieces(shape, max(1, most)))
        sizes = [_count(index, shape) for index in found]
        longest = max(sum(sizes[slice(*run)]) for run in spans(len(found), lanes))
        if longest * lanes <= UNEVEN * prod(shape):
            even.append(found)
            break
        if best is None or longest < best[0]:
            best = longest, found
    if not even or len(even[0]) > 2 * max(lanes, prod(shape) // at_once):
        between = _between_lanes(shape, at_once, lanes)
        if between is not None:
            even.append(between)
    if not even:
        assert best is not None
        even.append(best[1])
    found = min(even, key=len)
    return tuple(found)


def _between_lanes(
    shape: tuple[int, ...], at_once: int, lanes: int
) -> list[tuple[Any, ...]] | None:
    """As many runs of rows for each lane, of which each has as many rows, or a few more."""
    total = prod(shape)
    found = [
        list(_run(shape, at_once, min(begin * WHOLE, total), min(end * WHOLE, total)))
        for begin, end in spans(-(-total // WHOLE), lanes)
    ]
    most = max(map(len, found))
    for lane in found:
        while len(lane) < most:
            place = max(range(len(lane)), key=lambda place: _count(lane[place], shape))
            halves = _halves(lane[place])
            if halves is None:
                return None
            lane[place : place + 1] = halves
    sizes = [sum(_count(index, shape) for index in lane) for lane in found]
    if len(found) < lanes or max(sizes) * lanes > UNEVEN * total:
        return None
    return [index for lane in found for index in lane]


def _run(shape: tuple[int, ...], at_once: int, begin: int, end: int) -> Iterator[tuple[Any, ...]]:
    """Indices of some neighbouring rows: what is left of one image, whole ones, some of one."""
    inner = prod(shape[1:])
    first, stop = -(-begin // inner), end // inner
    if first > stop:  # all in one image
        for index in _run(shape[1:], at_once, begin - stop * inner, end - stop * inner):
            yield (slice(stop, first), *index)
        return
    if begin < first * inner:
        for index in _run(shape[1:], at_once, begin - (first - 1) * inner, inner):
            yield (slice(first - 1, first), *index)
    if inner <= at_once:
        for some in spans(stop - first, -(-(stop - first) // (at_once // inner))):
            if some[0] < some[1]:
                yield (slice(first + some[0], first + some[1]),)
    else:
        for image in range(first, stop):
            for index in _run(shape[1:], at_once, 0, inner):
                yield (slice(image, image + 1), *index)
    if stop * inner < end:
        for index in _run(shape[1:], at_once, 0, end - stop * inner):
            yield (slice(stop, stop + 1), *index)


def _halves(index: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
    """Two runs in place of one; None of a single row or image."""
    *lead, last = index
    middle = (last.start + last.stop) // 2
    if middle == last.start:
        return None
    return [(*lead, slice(last.start, middle)), (*lead, slice(middle, last.stop))]


def _count(index: tuple[Any, ...], shape: tuple[int, ...]) -> int:
    """How many rows an index takes."""
    return prod(run.stop - run.start for run in index) * prod(shape[len(index) :])


def least_copied(rows: int, columns: int, lanes: int) -> int:
    """Into how many runs of columns work is cut, so that BLAS copies as little as can be.

    Of its rows each piece copies the columns, of its columns the rows.
    """
    fitting = [n for n in range(1, lanes + 1) if not lanes % n]
    return min(fitting, key=lambda n: (n * rows + lanes // n * columns, n))


def takes_scales(node: Node) -> bool:
    """Whether a product lays its weights out in blocks, and may scale them when it does."""
    if node.kind != "MatMul" or node.integers or node.prologue or node.joined or node.table:
        return False
    (left, right), output = node.inputs, node.outputs[0]
    weights = right.constant
    if weights is None or weights.ndim < 2 or weights.size != prod(weights.shape[-2:]):
        return False
    if node.wanted is not None or min(len(left.shape), len(output.shape)) < 2:
        return False
    if {left.type, right.type, output.type} != {np.dtype(np.float32)} or not output.nbytes:
        return False
    rows, deep = prod(output.shape[:-1]), left.shape[-2 if node.op.transpose_a else -1]  # type: ignore[attr-defined]  # products have it
    return output.shape[-2] > 1 and deep > 0 and (cuts(deep, rows) > 0 or rows < MANY)


def kept_columns(
    source: Array | None,
    matrix: Array,
    wide: int,
    *,
    copied: bool = True,
    scales: Scales = AS_THEY_ARE,
) -> list[Array]:
    """Constant matrices in blocks (count, deep, wide) of columns; in another what is left.

    The rows and columns of a copy may be scaled, and its columns raised.
    """
    *lead, deep, columns = matrix.shape
    assert source is not None
    even = columns - columns % wide
    blocks = matrix[..., :even].reshape(*lead, deep, even // wide, wide).swapaxes(-2, -3)
    rest = matrix[..., None, :, even:]
    if copied:
        blocks = _shared(source, blocks, matrix.strides, scales.of(slice(even), wide))
    if even == columns:
        return [blocks]
    if copied:
        rest = _scaled(rest, scales.of(slice(even, None), columns - even))
    return [blocks, rest]


def _shared(
    source: Array, blocks: Array, strides: tuple[int, ...], scales: Scales = AS_THEY_ARE
) -> Array:
    """A copy of blocks of a constant; plans that are alive share it."""
    told = tuple(b"" if scale is None else scale.tobytes() for scale in scales)
    how = "blocks", blocks.shape[-1], strides, told
    return made_once(source, how, blocks.shape, lambda: _scaled(blocks, scales))


def _scaled(blocks: Array, scales: Scales) -> Array:
    """Blocks of columns side by side, multiplied and raised where they are to be."""
    found = laid_out(blocks)
    down, along, raised = scales
    if down is not None or along is not None:
        target = None if found is blocks else found  # which is the file's
        by = np.float32(1) if down is None else down[:, None]
        found = laid_out(np.multiply(found, by if along is None else by * along, out=target))
    if raised is not None:
        found = laid_out(np.add(found, raised, out=None if found is blocks else found))
    return found


def runs_of_columns(
    blocks: list[Array], begin: int, end: int, together: int
) -> list[tuple[int, int, Array]]:
    """Blocks from one to another, so many together: their first column, the next, and they."""
    *_, count, _, wide = blocks[0].shape
    cut = [(at, min(at + together, end, count)) for at in range(begin, min(end, count), together)]
    found = [(first * wide, stop * wide, blocks[0][..., first:stop, :, :]) for first, stop in cut]
    if end > count:
        found.append((count * wide, count * wide + blocks[1].shape[-1], blocks[1]))
    return found


def rows_of(array: Array, part: int, scratch: Scratch | Room) -> tuple[Array, list[Part]]:
    """An array as rows, and what copies it where it cannot be seen so."""
    flat = prod(array.shape[:-1]), array.shape[-1]
    if lies_in(array, flat):
        return array.reshape(flat), []
    room = scratch.take(part, *flat)
    return room, [call(np.copyto, room.reshape(array.shape), array)]


def stacks(
    node: Node, a: Array, b: Array, store: Array, abreast: int, scratch: Scratch
) -> list[Part]:
    """Each of many matrices by another one."""
    rows, columns = store.shape[-2:]
    steps = MILLION // (columns * a.shape[-1])
    whole = rows <= steps or steps < FEW
    at_once = max(rows if rows <= steps else FEW, CACHE // (4 * columns)) if whole else steps
    lanes = abreast if prod(store.shape) * a.shape[-1] > 1 << 18 else 1
    total = prod(store.shape[:-1])
    found = even_pieces(store.shape[:-1], max(1, min(at_once, -(-total // lanes))), lanes)
    followers = epilogue(node, scratch)
    parts: list[Part] = []
    for _, (begin, end) in scratch.dealt(spans(len(found), lanes)):
        lane: list[Part] = []
        for index in found[begin:end]:
            block = store[index]
            product = call(np.matmul, a[index], b[index[: b.ndim - 2]], out=block)
            lane += [product, *followed(followers, block, index)]
        parts.append(sequence(lane))
    return parts


def by_stacked_weights(
    node: Node, a: Array, b: Array, store: Array, abreast: int, scratch: Scratch
) -> list[Part]:
    """Each of many matrices by a constant one of its own; each worker has some of the columns."""
    *lead, rows, deep = a.shape
    columns = b.shape[-1]
    lanes = abreast if a.size * columns > 1 << 18 else 1
    blocks = kept_columns(node.inputs[1].constant, b, width(columns, deep, rows, lanes))
    followers = epilogue(node, scratch)
    stacked = [np.broadcast_to(some, (*lead, *some.shape[-3:])) for some in blocks]
    wanted = None if node.wanted is None else np.broadcast_to(node.wanted.array, (*lead, rows, 1))
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(sum(some.shape[-3] for some in blocks), lanes)):
        runs = runs_of_columns(stacked, begin, end, columns)
        products: list[Part] = []
        after: list[Part] = []
        for index in np.ndindex(*lead):
            scratch.reset()
            flat, gather = rows_of(a[index], part, scratch)
            added = sums(scratch, part, deep, rows)
            products += gather
            for first, stop, matrices in runs:
                place = (*(slice(n, n + 1) for n in index), slice(None), slice(first, stop))
                target = store[place]
                out = target.reshape(rows, stop - first)
                products += multiplied(flat, matrices[index], out, rows=rows, room=added)
                following = followed(followers, target, place)
                if wanted is None:
                    products += following
                else:
                    after += following
        if wanted is not None:
            products = [_of_wanted(a, runs, wanted[..., 0], store, products)]
        parts.append(sequence([*products, *after]))
    return parts


def _of_wanted(
    a: Array,
    runs: list[tuple[int, int, Array]],
    wanted: Array,
    out: Array,
    every: list[Part],
) -> Part:
    """Multiplies wanted rows, and makes the others zero; every one where most of them are."""

    def run() -> None:
        chosen = wanted != 0
        if 2 * np.count_nonzero(chosen) > chosen.size:
            for part in every:
                part()
            return
        for first, stop, _ in runs:
            out[..., first:stop] = 0
        for index in map(tuple, np.argwhere(chosen.any(-1))):
            rows = np.flatnonzero(chosen[index])
            left = a[index][rows]
            for first, stop, matrices in runs:
                made = np.matmul(left, matrices[index]).swapaxes(0, 1)
                out[index][rows, first:stop] = made.reshape(len(rows), -1)

    return run


def pieces(shape: tuple[int, ...], at_once: int) -> Iterator[tuple[Any, ...]]:
    """Indices that cut an array into runs of at most so many rows, the axes of which these are."""
    axis = next(
        (axis for axis in range(len(shape)) if prod(shape[axis + 1 :]) <= at_once), len(shape) - 1
    )
    each = max(1, at_once // max(1, prod(shape[axis + 1 :])))
    runs = spans(shape[axis], -(-shape[axis] // each))
    for lead in np.ndindex(shape[:axis]):
        for begin, end in runs:
            yield (*(slice(place, place + 1) for place in lead), slice(begin, end))
