"""Attention, prepared: scores of some queries at a time, which stay in cache until all is done.

Rows are divided by their sums last, when there are no longer as many numbers as keys.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np

from ....schemas import Array
from ..plan import Node
from ..workers import Part, spans
from .blocks import CACHE, Scratch, call, sequence
from .matrices import lying, pieces

#: Fewer queries than these are not worth a product of their own.
FEW = 16


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an attention of float32 numbers; None where there is no kernel for it."""
    output, op = node.outputs[0], node.op
    shapes = [value.shape for value in node.inputs[:3]]
    if len(node.inputs) > 5 or any(value.type != np.float32 for value in node.inputs[:3]):
        return None
    if output.type != np.float32 or output.last or not prod(output.shape):
        return None
    if not all(map(prod, shapes)) or output.store is None:
        return None
    lead, (rows, depth), (keys, _) = output.shape[:-2], shapes[0][-2:], shapes[1][-2:]
    causal = bool(op.causal)  # type: ignore[attr-defined]  # attention has it
    mask = None if causal or len(node.inputs) < 4 else node.inputs[3].array
    if mask is not None and node.inputs[3].constant is not None and _adds_nothing(mask):
        mask = None
    scale = node.inputs[4].constant if len(node.inputs) > 4 else np.float32(1 / sqrt(depth))
    if output.shape[-2] != rows or scale is None:
        return None  # a mask repeats queries, or a number that is not known yet scales them
    if mask is not None and mask.dtype not in (np.float32, np.bool_):
        return None
    before: list[list[Part]] = []
    scratch.shared.reset()
    q = np.broadcast_to(node.inputs[0].array, (*lead, rows, depth))
    k, v = (lying(value, before, abreast, scratch) for value in node.inputs[1:3])
    k = np.broadcast_to(k, (*lead, *k.shape[-2:])).swapaxes(-1, -2)
    v = np.broadcast_to(v, (*lead, *v.shape[-2:]))
    if mask is not None:
        mask = np.broadcast_to(mask, (*lead, rows, keys))
    cells = CACHE // 2 // max(keys, 1)
    total = prod(output.shape[:-1])
    at_once = max(FEW, min(cells, -(-total // abreast)))
    found = list(pieces(output.shape[:-1], at_once))
    factor = np.float32(scale.reshape(-1)[0])
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(found), abreast)):
        steps: list[Part] = []
        for index in found[begin:end]:
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
                masked = np.tri(stop - first, seen.stop, first, dtype=np.bool_)
            steps += _attended(
                q[index], *heads, masked, factor, output.store[index], part, scratch
            )
        parts.append(sequence(steps))
    return [*before, parts]


def _adds_nothing(mask: Array) -> bool:
    return mask.dtype == np.float32 and not mask.any()


def _attended(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    factor: np.float32,
    out: Array,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Parts that do all for some queries."""
    query = scratch.take(part, *q.shape)
    scores = scratch.take(part, *q.shape[:-1], k.shape[-1])
    most = scratch.take(part, *q.shape[:-1], 1)
    ones = np.ones(k.shape[-1], np.float32)
    parts = [call(np.multiply, q, factor, query), call(np.matmul, query, k, out=scores)]
    if mask is not None and mask.dtype == np.bool_:
        parts.append(_hiding(scores, mask))
    elif mask is not None:
        parts.append(call(np.add, scores, mask, out=scores))
    rows = _rows(scores)

    def softened() -> None:
        np.maximum.reduce(scores, axis=-1, keepdims=True, out=most)
        np.subtract(scores, most, out=scores)
        np.exp(scores, out=scores)
        np.matmul(rows, ones, out=most.reshape(-1))
        np.reciprocal(most, out=most)

    return [
        *parts,
        softened,
        call(np.matmul, scores, v, out=out),
        call(np.multiply, out, most, out=out),
    ]


def _rows(array: Array) -> Array:
    return array.reshape(-1, array.shape[-1])


def _hiding(scores: Array, mask: Array) -> Part:
    """Leaves only the scores where the mask is true."""
    hidden = np.float32(-np.inf)

    def run() -> None:
        np.copyto(scores, hidden, where=np.logical_not(mask))

    return run
