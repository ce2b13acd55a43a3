"""Attention, prepared: scores of some queries at a time, which stay in cache until all is done.

Rows are divided by their sums last, when there are no longer as many numbers as keys. Where BLAS
multiplies small matrices as they lie, keys are turned when they are scaled, which queries then
need not be, and so many queries are taken at a time as make such a product.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from ....layers.budget import budget
from ....layers.matrix import usual_scale
from ....schemas import Array
from ..plan import Node
from ..workers import Part, flushing, spans
from .activations import MINUS_LOG2, QUICK_POWERS
from .blocks import CACHE, Scratch, sequence
from .lines import LINE
from .matrices import even_pieces, lying
from .products import DOZEN, MILLION, cuts, rows_at_once
from .rows import CALM, LEAST, MOST

#: Fewer queries than these are not worth a product of their own.
FEW = 16
#: So many are taken at a time, however many keys there are: BLAS copies these for each product.
TOGETHER = 320
#: Scores of so many keys or more are padded to whole cache lines of numbers.
PADDED = 128
#: So many keys are taken together where all are too many for a product of enough queries.
KEYS = 128
#: So many keys are turned at a time where they do not follow each other.
TURNED = 512
#: Numbers of a value of which so many, or a multiple, are a row that BLAS takes as it lies even
#: where only a few queries fit a product.
EVEN, FEWEST = 64, 4
#: What turns powers of e into powers of two.
LOG2 = np.float32(-MINUS_LOG2)
#: The score of what is not to be seen; below the other one there is no power of a score, either.
HIDDEN, HIDES = np.float32(-np.inf), np.float32(-1000)


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an attention of float32 numbers; None where there is no kernel for it."""
    output, op = node.outputs[0], node.op
    shapes = [value.shape for value in node.inputs[:3]]
    if len(node.inputs) > 5 or any(value.type != np.float32 for value in node.inputs[:3]):
        return None
    if output.type != np.float32 or not prod(output.shape):
        return None
    if not all(map(prod, shapes)) or output.store is None:
        return None
    rows, depth = shapes[0][-2:]
    causal = bool(op.causal)  # type: ignore[attr-defined]  # attention has it
    mask = None if causal or len(node.inputs) < 4 else node.inputs[3].array
    calm = mask is None
    if mask is not None and node.inputs[3].constant is not None:
        mask = _added(mask) if mask.dtype == np.bool_ else mask
        mask = None if _adds_nothing(mask) else mask
        calm = mask is None or _is_calm(mask)
    scale = node.inputs[4].constant if len(node.inputs) > 4 else np.float32(usual_scale(depth))
    if output.shape[-2] != rows or scale is None:
        return None  # a mask repeats queries, or a number that is not known yet scales them
    if mask is not None and mask.dtype not in (np.float32, np.bool_):
        return None
    before: list[list[Part]] = []
    scratch.shared.reset()
    assert not output.last
    q = node.inputs[0].array
    k, v = (lying(value, before, abreast, scratch) for value in node.inputs[1:3])
    factor = np.float32(scale.reshape(-1)[0])
    parts = attend(q, k, v, mask, factor, output.store, abreast, scratch, causal=causal, calm=calm)
    return [*before, parts]


def attend(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    factor: np.float32,
    made: Array,
    abreast: int,
    scratch: Scratch,
    *,
    causal: bool = False,
    calm: bool = False,
) -> list[Part]:
    """Parts that weight values by how well keys match, for so many workers.

    Args:
        q: Queries (..., rows, depth); keys and values may be the same for some of them.
        k: Keys as BLAS takes them.
        v: Values likewise.
        mask: What may be seen, or what is added to scores.
        factor: What scores are multiplied by.
        made: The output.
        abreast: Into how many parts it is cut.
        scratch: Memory of the workers.
        causal: Whether each query sees keys up to its own place alone.
        calm: Whether the mask leaves scores about as they are, or hides them.
    """
    (*lead, rows), keys = made.shape[:-1], k.shape[-2]
    q = np.broadcast_to(q, (*lead, *q.shape[-2:]))
    k = np.broadcast_to(k, (*lead, *k.shape[-2:])).swapaxes(-1, -2)
    v = np.broadcast_to(v, (*lead, *v.shape[-2:]))
    if mask is not None:
        mask = np.broadcast_to(mask, (*lead, rows, keys))
    cells = CACHE // 2 // max(keys, 1)
    total = prod(made.shape[:-1])
    count = prod(lead)
    if count % abreast and count in range(abreast, 2 * abreast, 2):
        abreast = count  # halves of some heads would go round evenly, and take longer in all
    at_once = max(FEW, min(max(cells, TOGETHER), -(-total // abreast)))
    found = even_pieces(made.shape[:-1], at_once, abreast)
    counted = budget()
    if causal:
        counted.keep(2 * rows * keys)  # masks of each query's own
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(found), abreast)):
        steps: list[Part] = []
        last: tuple[object, Array | None] = (None, None)
        for index in found[begin:end]:
            counted.step()
            scratch.reset()
            stack = index[: len(lead)]
            seen = slice(None)
            first, stop = 0, rows
            if len(index) > len(lead):
                first, stop = index[-1].start, index[-1].stop
            if causal:
                seen = slice(0, min(keys, stop))  # nobody looks at later keys
            heads = k[stack][..., seen], v[stack][..., seen, :]
            masked = None if mask is None else mask[index]
            if causal:
                masked = _added(np.tri(stop - first, seen.stop, first, dtype=np.bool_))
            target = made[index]
            known = last[1] if last[0] == (stack, seen) else None
            step, turned = _attended(
                q[index], *heads, masked, factor, target, part, scratch, known, calm=calm
            )  # fmt: skip
            steps.append(step)
            last = (stack, seen), turned
        parts.append(sequence(steps))
    return parts


def _adds_nothing(mask: Array) -> bool:
    return mask.dtype == np.float32 and not mask.any()


def _is_calm(mask: Array) -> bool:
    """Whether what a mask adds leaves scores about as they are, or hides them altogether."""
    return mask.dtype == np.float32 and bool(((mask > CALM) | (mask < HIDES)).all())


def _added(mask: Array) -> Array:
    """A mask of what may be seen as one that is added."""
    return np.where(mask, np.float32(0), np.float32(-np.inf))


class Sizes(NamedTuple):
    """How queries and keys are cut into products that BLAS takes as they lie; 0 for not at all."""

    queries: int
    keys: int
    weighed: int


def _sizes(q: Array, keys: int, wide: int, depth: int) -> Sizes | None:
    """How many queries and keys are multiplied together; None where that gains nothing.

    Scores of the keys are put into rows so wide.
    """
    rows, taken = q.shape[-2:]
    down, along = q.strides[-2:]
    if not cuts(max(taken, depth)) or rows < 2 * DOZEN:
        return None
    if along != q.itemsize or down < taken * q.itemsize:
        return None
    few = 2 * DOZEN * wide * max(taken, depth) > MILLION
    across = KEYS if few else wide
    queries, weighed = rows_at_once(rows, taken, across), rows_at_once(rows, keys, depth)
    if few and (depth % EVEN or weighed < FEWEST):
        weighed = 0
    return Sizes(min(rows, queries), across, min(rows, weighed))


def _cut(length: int, each: int) -> list[tuple[slice, int]]:
    """Runs of equal pieces, and their length, then what is left; one of all for 0."""
    whole = length - length % each if each else 0
    found = [(slice(0, whole), each)] if whole else []
    return [*found, (slice(whole, length), length - whole)] if whole < length else found


def _products(a: Array, b: Array, out: Array, tall: int, wide: int) -> list[tuple[Array, ...]]:
    """Stacks of products of so many rows and columns each, and of what is left."""
    found: list[tuple[Array, ...]] = []
    for down, rows in _cut(a.shape[-2], tall):
        left = a[..., down, :].reshape(*a.shape[:-2], -1, 1, rows, a.shape[-1])
        for across, columns in _cut(b.shape[-1], wide):
            right = b[..., across].reshape(*b.shape[:-1], -1, columns).swapaxes(-2, -3)
            into = out[..., down, across]
            into = into.reshape(*out.shape[:-2], -1, rows, right.shape[-3], columns)
            found.append((left, right[..., None, :, :, :], into.swapaxes(-2, -3)))
    return found


def _attended(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    factor: np.float32,
    out: Array,
    part: int,
    scratch: Scratch,
    known: Array | None,
    *,
    calm: bool,
) -> tuple[Part, Array | None]:
    """What does all for some queries, and the keys it has turned, which may be known already.

    Rows of one head lie between those of others, often a power of two apart, where few of them
    stay in cache: keys are turned, and values weighed, from where rows follow each other.

    Weights are quotients of powers: what is subtracted from all exponents of a row makes none
    larger or smaller than another. So nothing is, where no power becomes too large or a sum of
    them too small; else the largest exponent of each row, which takes far longer to find than the
    largest of all. Unless a mask is ``calm``, what is next to nothing is made zero.
    """
    keys = k.shape[-1]
    wide = -(-keys // LINE) * LINE if keys >= PADDED else keys
    sizes = _sizes(q, keys, wide, v.shape[-1])
    wide = wide if sizes else keys
    # First of all, so that it is the same memory for all queries of one head.
    room = scratch.take(part, *k.shape[:-1], wide) if sizes else scratch.take(part, *q.shape)
    apart, v = v, scratch.take(part, *v.shape) if sizes and not _follow(v) else v
    lines = k.swapaxes(-1, -2)
    turns = sizes is not None and not _follow(lines)
    packed = scratch.take(part, *k.shape[:-2], min(keys, TURNED), k.shape[-2]) if turns else None
    padded = scratch.take(part, *q.shape[:-1], wide)
    scores = padded[..., :keys]
    sums = scratch.take(part, *q.shape[:-1], 1)
    ones = np.zeros(wide, np.float32)
    ones[:keys] = 1
    rows, totals = padded.reshape(-1, wide), sums.reshape(-1)
    turned = sizes is not None and known is not None and _is(known, room)
    if sizes:
        given, scaled, beside = k, room[..., :keys], room[..., keys:]
        keyed = _products(q, room, padded, sizes.queries, sizes.keys)
        weighed = _products(scores, v, out, sizes.weighed, 0)
    else:
        given, scaled, beside = q, room, room[..., :0]
        keyed, weighed = _products(room, k, padded, 0, 0), _products(scores, v, out, 0, 0)
    # Powers of two are quicker only as long as none is next to nothing, as masks make them.
    in_twos = QUICK_POWERS and mask is None
    power, quick = (np.exp2, factor * LOG2) if in_twos else (np.exp, factor)
    adds = mask is not None and mask.dtype != np.bool_

    def scale(by: np.float32) -> None:
        if packed is None:
            np.multiply(given, by, scaled)
        else:
            for begin in range(0, keys, TURNED):
                some = lines[..., begin : begin + TURNED, :]
                following = packed[..., : some.shape[-2], :]
                np.multiply(some, by, following)
                np.copyto(scaled[..., begin : begin + TURNED], following.swapaxes(-1, -2))
        beside.fill(0)  # keys that are none, which get no weight

    def score() -> None:
        for one in keyed:
            np.matmul(*one)
        if mask is None:
            return
        if adds:
            np.add(scores, mask, scores)
        else:
            np.copyto(scores, HIDDEN, where=np.logical_not(mask))

    def weigh() -> None:
        if not turned:
            scale(quick)
            if v is not apart:
                np.copyto(v, apart)
        score()
        done = np.maximum.reduce(padded, axis=None) <= MOST
        if done:
            power(padded, padded)
            np.matmul(rows, ones, out=totals)
            done = np.minimum.reduce(totals) >= LEAST
        if not done:
            scale(factor)
            score()
            scale(quick)  # as other queries may want it
            np.maximum.reduce(scores, axis=-1, keepdims=True, out=sums)
            np.subtract(scores, sums, scores)
            np.exp(scores, scores)
            np.matmul(rows, ones, out=totals)
        np.reciprocal(sums, sums)
        for one in weighed:
            np.matmul(*one)
        np.multiply(out, sums, out)

    def weigh_hidden() -> None:
        with flushing:  # of what masks leave next to nothing
            weigh()

    return weigh if calm else weigh_hidden, room if sizes else None


def _follow(array: Array) -> bool:
    """Whether rows follow each other in memory."""
    return array.strides[-2:] == (array.shape[-1] * array.itemsize, array.itemsize)


def _is(one: Array, other: Array) -> bool:
    """Whether two arrays are the same numbers of the same memory."""
    return one.__array_interface__ == other.__array_interface__
