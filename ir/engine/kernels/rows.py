"""What joins all numbers along some axes, prepared: soft maximum, mean and variance, sums.

Arrays are seen as (before, joined, after) in the order in which memory keeps them, so that it
does not matter which axes these are, as long as they are neighbours there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..memory import lies_in
from ..plan import Node, Value
from ..workers import Part, flushing, spans
from .blocks import CACHE, Follower, Scratch, epilogue, followed, sequence
from .calls import call
from .copies import copied
from .group_normalization import channels
from .matrices import even_pieces, pieces

REDUCTIONS: dict[str, Any] = {
    "ReduceMean": np.add,
    "ReduceSum": np.add,
    "ReduceMax": np.maximum,
    "ReduceMin": np.minimum,
    "ReduceProd": np.multiply,
}
#: Operations with a kernel here.
BY_ROWS = REDUCTIONS.keys() | {"SoftMax", "MVN", "NormalizeL2", "ReduceL2"}
#: Rows of so few numbers are joined all at once.
SHORT = 16
#: So many rows are summed one after the other.
TOGETHER = 128
#: Fewer numbers are not worth sharing: where they are joined; where several passes go over them.
SMALL, LITTLE = 1 << 16, 1 << 13
#: Powers of no more than this may be summed up; less than that sum is too little.
MOST, LEAST = np.float32(40), np.float32(1e-20)
#: Powers of no less than this are far from nothing, also when they are divided by their sum; and
#: of so few numbers that is seen in less time than it takes to have the others made zero.
CALM, FEW = np.float32(-30), 1 << 14


class Rows(NamedTuple):
    """How many numbers stand before, along and after the joined axes."""

    before: int
    joined: int
    after: int


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an operation along some axes; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    axes = joined_axes(node)
    if axes is None or value.type != np.float32 or not prod(value.shape) or value.store is None:
        return None
    assert output.store is not None
    if node.kind in REDUCTIONS or node.kind == "ReduceL2":
        rows, source = _viewed(value, axes, value.store)
        if node.kind == "ReduceL2" and rows is not None and rows.after == 1:
            return _lengths(node, rows, abreast, scratch)
        if rows is None or source is None:
            return None
        return _reduced(node, axes, source, abreast, scratch)
    op: Any = node.op
    if node.kind == "NormalizeL2" and not axes:
        return None
    over_pixels = value.last and axes == tuple(range(2, len(value.shape)))
    if node.kind == "MVN" and over_pixels and op.normalize_variance:
        return channels(node, abreast, scratch)
    store = output.store
    scratch.shared.reset()
    if store.dtype != np.float32:
        # What is rounded to levels in the end has not the room of numbers before.
        store = scratch.shared.take(0, *store.shape)
    rows, target = _viewed(output, axes, store)
    if rows is None or target is None:
        return None
    steps: list[list[Part]] = []
    after: list[list[Part]] = []
    given, source = value.store, None
    if value.last == output.last:
        _, source = _viewed(value, axes, given)
    if source is None:
        # It lies otherwise than what is made of it. Short rows of long runs are turned when they
        # are made, others before.
        room = scratch.shared.take(0, *output.store.shape)
        order, found = _as_it_lies(value.array, axes)
        if found is not None and found.shape[2] >= found.shape[1] > rows.after:
            source, target = found, room.reshape(found.shape)
            made = room.reshape([value.shape[axis] for axis in order]).transpose(np.argsort(order))
            after.append(copied(made, _in_order(store, output), abreast))
        else:
            given, source = room, room.reshape(rows)
            steps.append(copied(value.array, _in_order(room, output), abreast))
    followers = epilogue(node, scratch)
    if node.kind != "SoftMax" and source.size == source.shape[1]:
        make_row = _standardized_row if node.kind == "MVN" else _shortened_row
        row = make_row(op, source.reshape(-1), target.reshape(-1))
        return [*steps, [sequence([row, *followed(followers, store, (...,), output.store)])]]
    make = _soft_max if node.kind == "SoftMax" else WITH_SQUARES[node.kind](op)
    if rows.after == 1 and followers and not (output.last or after):
        lead = value.shape[: axes[0]]  # axes of one may come after
        return [*steps, _cut_for(followers, make, given, output.store, lead, abreast, scratch)]
    steps += [_cut(make, source, target, abreast, scratch), *after]
    if followers:
        runs = list(pieces(output.store.shape, -(-source.size // abreast)))
        ends = [None if store is output.store else output.store[run] for run in runs]
        steps.append(
            [
                sequence(followed(followers, store[run], run, end))
                for run, end in zip(runs, ends, strict=True)
            ]
        )
    return steps


def _in_order(store: Array, value: Value) -> Array:
    """Memory that lies as a value does, in the model's order of axes."""
    return np.moveaxis(store, -1, 1) if value.last else store


def _as_it_lies(array: Array, axes: tuple[int, ...]) -> tuple[list[int], Array | None]:
    """The axes of an array in the order of its memory, and its numbers seen so, if that can be."""
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    places = sorted(order.index(axis) for axis in axes)
    begin, end = places[0], places[-1] + 1
    sizes = [array.shape[axis] for axis in order]
    rows = Rows(prod(sizes[:begin]), prod(sizes[begin:end]), prod(sizes[end:]))
    found = array.transpose(order)
    alone = end - begin == len(places) and lies_in(found, rows)
    return order, found.reshape(rows) if alone else None


def _viewed(value: Value, axes: tuple[int, ...], store: Array) -> tuple[Rows | None, Array | None]:
    """The numbers before, along and after axes, and memory seen so, where that can be."""
    rows = seen(value, axes)
    return rows, None if rows is None or not lies_in(store, rows) else store.reshape(rows)


def joined_axes(node: Node) -> tuple[int, ...] | None:
    """The axes that are joined, in the model's order."""
    op: Any = node.op
    rank = len(node.inputs[0].shape)
    if node.kind == "SoftMax":
        return (op.axis % rank,) if rank else None
    if len(node.inputs) == 1:
        first = 1 if op.across_channels else 2
        told = op.reduction_axes or range(first, rank)
        if not all(-rank <= axis < rank for axis in told):
            return None  # the definition says what is wrong
        return tuple(sorted(axis % rank for axis in told))
    axes = node.inputs[1].constant
    if axes is None or not rank:
        return None
    return tuple(sorted({int(axis) % rank for axis in axes.ravel()}))


def order(value: Value) -> list[int]:
    """The axes of a value in the order of memory."""
    axes = list(range(len(value.shape)))
    return [0, *axes[2:], 1] if value.last else axes


def seen(value: Value, axes: tuple[int, ...]) -> Rows | None:
    """The numbers before, along and after axes; None where these are no neighbours."""
    kept = order(value)
    places = [kept.index(axis) for axis in axes]
    if not places or max(places) - min(places) + 1 != len(places):
        return None
    sizes = value.kept_shape
    begin, end = min(places), max(places) + 1
    return Rows(prod(sizes[:begin]), prod(sizes[begin:end]), prod(sizes[end:]))


def _cut(
    make: Callable[[Array, Array, Array, Array], None],
    source: Array,
    target: Array,
    abreast: int,
    scratch: Scratch,
) -> list[Part]:
    """Blocks that stay in cache, along what is before; or along what is after, if that is one."""
    rows = Rows(*source.shape)
    axis = 0 if rows.before > 1 or rows.after == 1 else 2
    each = 4 * source.size // source.shape[axis]
    lanes = abreast if source.size >= LITTLE else 1
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(source.shape[axis], lanes)):
        steps: list[Part] = []
        for first, stop in spans(end - begin, -(-(end - begin) * each // (CACHE // 2))):
            scratch.reset()
            index = (slice(None),) * axis + (slice(begin + first, begin + stop),)
            blocks = source[index], target[index]
            shape = (blocks[0].shape[0], 1, blocks[0].shape[2])
            rooms = scratch.take(part, *shape), scratch.take(part, *shape)
            steps.append(call(make, *blocks, *rooms))
        parts.append(sequence(steps))
    return parts


def _cut_for(
    followers: Sequence[Follower],
    make: Callable[[Array, Array, Array, Array], None],
    source: Array,
    target: Array,
    lead: tuple[int, ...],
    abreast: int,
    scratch: Scratch,
) -> list[Part]:
    """Blocks of rows with what follows, while they are in cache."""
    total = prod(lead)
    joined = source.size // total
    lanes = abreast if source.size >= LITTLE else 1
    found = even_pieces(lead, max(1, min(CACHE // (8 * joined), -(-total // lanes))), lanes)
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(found), lanes)):
        steps: list[Part] = []
        for index in found[begin:end]:
            scratch.reset()
            given, place = source[index], target[index]
            beside = place.dtype != np.float32
            made = scratch.take(part, *place.shape) if beside else place
            count = given.size // joined
            rooms = scratch.take(part, count, 1, 1), scratch.take(part, count, 1, 1)
            shape = (count, joined, 1)
            steps.append(call(make, given.reshape(shape), made.reshape(shape), *rooms))
            steps += followed(followers, made, index, place if beside else None)
        parts.append(sequence(steps))
    return parts


def _soft_max(source: Array, target: Array, room: Array, _: Array) -> None:
    """Quotients of powers, without numbers that are nearly nothing.

    Masks leave such numbers, which take long, here and where they are multiplied. Of a few numbers
    it is sooner seen that there are none.
    """
    done = np.maximum.reduce(source, axis=None) <= MOST
    if done and source.size <= FEW and np.minimum.reduce(source, axis=None) >= CALM:
        _quotients(source, target, room, done=True)
    else:
        with flushing:
            _quotients(source, target, room, done=done)


def _quotients(source: Array, target: Array, room: Array, *, done: bool) -> None:
    """Quotients of powers, from whose exponents only what is too large for them is taken."""
    if done:
        np.exp(source, out=target)
        sums(target, room)
        done = np.minimum.reduce(room, axis=None) >= LEAST
    if not done:
        _join(np.maximum, source, room)
        np.subtract(source, room, out=target)
        np.exp(target, out=target)
        sums(target, room)
    np.reciprocal(room, out=room)
    np.multiply(target, room, out=target)


def _standardized(op: Any) -> Callable[[Array, Array, Array, Array], None]:
    """Makes the mean 0 and, if wanted, the variance 1."""
    eps, inside = np.float32(op.eps), op.inside()

    def make(source: Array, target: Array, mean: Array, spread: Array) -> None:
        part = np.float32(1 / source.shape[1])
        sums(source, mean)
        np.multiply(mean, part, out=mean)
        np.subtract(source, mean, out=target)
        if not op.normalize_variance:
            return
        _squares(target, spread)
        np.multiply(spread, part, out=spread)
        if inside:
            np.add(spread, eps, out=spread)
        np.sqrt(spread, out=spread)
        if not inside:
            np.add(spread, eps, out=spread)
        np.reciprocal(spread, out=spread)
        np.multiply(target, spread, out=target)

    return make


def _standardized_row(op: Any, source: Array, target: Array) -> Part:
    """The same for one row of numbers: what is one number needs no memory."""
    eps, inside, part = np.float32(op.eps), op.inside(), np.float32(1 / source.size)
    ones = _ones(source.size)

    def run() -> None:
        np.subtract(source, np.dot(source, ones) * part, target)
        if op.normalize_variance:
            spread = np.dot(target, target) * part
            spread = np.sqrt(spread + eps) if inside else np.sqrt(spread) + eps
            np.multiply(target, np.reciprocal(spread), target)

    return run


def _shortened(op: Any) -> Callable[[Array, Array, Array, Array], None]:
    """Makes the root of the sum of squares 1, or nearly."""
    eps, limit = np.float32(op.eps), np.add if op.eps_mode == "add" else np.maximum

    def make(source: Array, target: Array, _: Array, length: Array) -> None:
        _squares(source, length)
        limit(length, eps, out=length)
        np.sqrt(length, out=length)
        np.reciprocal(length, out=length)
        np.multiply(source, length, out=target)

    return make


def _shortened_row(op: Any, source: Array, target: Array) -> Part:
    """The same for one row of numbers."""
    eps, limit = np.float32(op.eps), np.add if op.eps_mode == "add" else np.maximum

    def run() -> None:
        length = np.sqrt(limit(np.dot(source, source), eps))
        np.multiply(source, np.reciprocal(length), target)

    return run


#: What divides rows by roots of sums of squares.
WITH_SQUARES = {"MVN": _standardized, "NormalizeL2": _shortened}


def _join(join: Any, source: Array, out: Array) -> None:
    """Joins along the middle; short rows column by column: NumPy takes long to begin a row."""
    if source.shape[2] > 1 or source.shape[1] > SHORT or len(source) < SHORT:
        join.reduce(source, axis=1, keepdims=True, out=out)
        return
    total = out[:, 0, 0]
    np.copyto(total, source[:, 0, 0])
    for place in range(1, source.shape[1]):
        join(total, source[:, place, 0], out=total)


def sums(source: Array, out: Array) -> None:
    """Sums along the middle."""
    _in_turns(_added, source, out)


def _squares(source: Array, out: Array) -> None:
    """Sums of squares along the middle."""
    _in_turns(_squared, source, out)


def _in_turns(add: Callable[[Array, Array], None], source: Array, out: Array) -> None:
    """Sums along the middle: of many rows some at a time, and then these sums.

    Each row that is added to all before it loses digits, which means of squares less squares of
    means do not have.
    """
    before, joined, after = source.shape
    if after == 1 or joined < 2 * TOGETHER:
        add(source, out)
        return
    count, rest = divmod(joined, TOGETHER)
    made = np.empty((before, count + (rest > 0), 1, after), np.float32)
    whole = joined - rest
    add(source[:, :whole].reshape(before, count, TOGETHER, after), made[:, :count])
    if rest:
        add(source[:, None, whole:], made[:, count:])
    _added(made[:, :, 0], out)


def _added(source: Array, out: Array) -> None:
    """Sums of rows, as products with ones: those are quicker than many short sums."""
    ones = _ones(source.shape[-2])
    if source.shape[-1] == 1:
        np.matmul(source[..., 0], ones, out=out[..., 0, 0])
    else:
        np.matmul(ones[None], source, out=out)


def _squared(source: Array, out: Array) -> None:
    """Sums of squares of rows."""
    if source.shape[-1] == 1:
        np.vecdot(source[..., 0], source[..., 0], out=out[..., 0, 0])
    else:
        np.einsum("...jx,...jx->...x", source, source, out=out[..., 0, :])


@lru_cache(maxsize=64)
def _ones(count: int) -> Array:
    return np.ones(count, np.float32)


def _reduced(
    node: Node, axes: tuple[int, ...], source: Array, abreast: int, scratch: Scratch
) -> list[list[Part]] | None:
    """The steps of a reduction; what is made in another order than wanted is copied after."""
    value, output = node.inputs[0], node.outputs[0]
    kept = [axis for axis in range(len(value.shape)) if axis not in axes]
    if node.op.keep_dims:  # type: ignore[attr-defined]  # reductions have it
        left = [axis for axis in order(output) if axis in kept]
    else:
        left = [kept[axis] for axis in order(output)]
    assert output.store is not None
    made = [axis for axis in order(value) if axis in kept]
    after: list[list[Part]] = []
    if left == made:
        target = output.store.reshape(source.shape[0], 1, source.shape[2])
        if not np.may_share_memory(target, output.store):
            return None
    else:
        scratch.shared.reset()
        target = scratch.shared.take(0, source.shape[0], 1, source.shape[2])
        turned = target.reshape([value.shape[axis] for axis in made])
        turned = turned.transpose([made.index(axis) for axis in kept])
        after.append(copied(turned.reshape(output.shape), output.array, abreast))
    join = REDUCTIONS.get(node.kind)
    scale = np.float32(1 / source.shape[1]) if node.kind == "ReduceMean" else None
    axis = 0 if source.shape[0] > 1 or source.shape[2] == 1 else 2
    parts: list[Part] = []
    for run in spans(source.shape[axis], abreast if source.size >= SMALL else 1):
        index = (slice(None),) * axis + (slice(*run),)
        steps = [_joined(join, source[index], target[index])]
        if join is None:
            steps.append(call(np.sqrt, target[index], out=target[index]))
        if scale is not None:
            steps.append(call(np.multiply, target[index], scale, out=target[index]))
        parts.append(sequence(steps))
    return [parts, *after]


def _lengths(node: Node, rows: Rows, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of roots of sums of squares, along the last axes of an array with gaps or none."""
    source, target = node.inputs[0].array, node.outputs[0].array
    rank = source.ndim
    while rank and prod(source.shape[rank:]) < rows.joined:
        rank -= 1
    lead = source.shape[:rank]
    if not lead or node.inputs[0].last or not target.flags.c_contiguous:
        return None
    made = target.reshape(lead)
    lanes = abreast if source.size >= LITTLE else 1
    at_once = max(1, min(CACHE // (4 * rows.joined), -(-rows.before // lanes)))
    found = even_pieces(lead, at_once, lanes)
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(found), lanes)):
        steps: list[Part] = []
        for index in found[begin:end]:
            scratch.reset()
            block, total = source[index], made[index].reshape(-1, 1, 1)
            squares = scratch.take(part, *block.shape)
            steps.append(call(np.multiply, block, block, out=squares))
            steps.append(call(sums, squares.reshape(-1, rows.joined, 1), total))
            steps.append(call(np.sqrt, total, out=total))
        parts.append(sequence(steps))
    return [parts]


def _joined(join: Any, source: Array, target: Array) -> Part:
    """Numbers along the middle by one function, or the sums of their squares by none."""
    if join is None:
        return call(_squares, source, target)
    if join is np.add and source.shape[2] == 1:
        return call(np.matmul, source[:, :, 0], _ones(source.shape[1]), out=target[:, 0, 0])
    if join is np.add:
        return call(sums, source, target)
    return call(_join, join, source, target)
