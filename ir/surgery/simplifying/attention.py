"""SoftMax(q kᵀ * s + m) v → ScaledDotProductAttention(q, k, v, m, s); m may be a sum of two."""

from __future__ import annotations

import numpy as np

from ....schemas import Dim, ElementType, Size
from ...document import Layer, is_on, swaps_last
from ...inference import OWN
from .patterns import FLOATS, fuse, holds, made_by, operands, order_of, scaled
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    weights, value = net.inputs(layer)
    softmax = made_by(net, weights, "SoftMax", "Softmax")
    if softmax is None or is_on(layer, "transpose_a") or not net.is_private(weights):
        return False
    rank, kind = net.tensor(value).rank, net.kind(value)
    if rank not in (3, 4) or kind not in FLOATS or is_on(layer, "transpose_b"):
        return False
    if int(softmax.data.get("axis", "1")) not in (-1, rank - 1):
        return False
    scores = net.inputs(softmax)[0]
    if not net.is_private(scores):
        return False
    for inner, masks in _sums(net, scores):
        number, product = scaled(net, inner)
        matmul = made_by(net, product, "MatMul")
        if matmul is None or not net.is_private(product):
            continue
        if inner != product and not net.is_private(inner):
            continue
        turned = [is_on(matmul, name) for name in ("transpose_a", "transpose_b")]
        (first, query, _), (second, key, flipped) = (
            _plain(net, one) for one in net.inputs(matmul)
        )
        if turned[0] or _plain(net, net.inputs(matmul)[0])[2]:
            continue
        if turned[1] == flipped:
            back = None if flipped else _turned(net, key)
            if back is None:
                continue
            key = back
        number *= first * second
        if (
            holds(kind, number)
            and _agree(net, query, key, value, scores)
            and all(_is_mask(net, mask, scores) for mask in masks)
        ):
            return _fuse(net, layer, [query, key, value], masks, number)
    return False


def _fuse(
    net: Rewriter, layer: Layer, inputs: list[Value], masks: list[Value], number: float
) -> bool:
    kind = net.kind(inputs[0])
    mask = masks[0] if masks else net.constant(0.0, kind, layer)
    for other in masks[1:]:
        mask = net.add("Add", "opset1", [mask, other], like=layer)
    scale = net.constant(number, kind, layer)
    data = {"causal": "false"}
    fed = [*inputs, mask, scale]
    new = net.add("ScaledDotProductAttention", "opset13", fed, data, like=layer)
    return fuse(net, layer, new)


def _plain(net: Rewriter, value: Value) -> tuple[float, Value, bool]:
    """What a value is of another: times a number, and with its last two axes in turn."""
    number, source = scaled(net, value)
    turn = made_by(net, source, "Transpose")
    order = None if turn is None else order_of(net, turn)
    if turn is None or not swaps_last(order):
        return number, source, False
    inner, source = scaled(net, net.inputs(turn)[0])
    return number * inner, source, True


def _turned(net: Rewriter, value: Value) -> Value | None:
    """A value that a Transpose of its own makes, with the last two axes in turn."""
    turn = made_by(net, value, "Transpose")
    order = None if turn is None or not net.is_private(value) else order_of(net, turn)
    if turn is None or order is None or len(order) < 2:
        return None
    axes = [*order[:-2], order[-1], order[-2]]
    rows = net.constant(np.array(axes, np.int64), ElementType.I64, turn)
    return net.add("Transpose", "opset1", [net.inputs(turn)[0], rows], like=turn)


def _sums(net: Rewriter, scores: Value, most: int = 2) -> list[tuple[Value, list[Value]]]:
    """The scores with no mask, with what is added to them, and with what is added before."""
    add = made_by(net, scores, "Add")
    if add is None or not most or not net.is_private(scores):
        return [(scores, [])]
    return [
        (inner, [*masks, mask])
        for one, mask in operands(net, add)
        for inner, masks in _sums(net, one, most - 1)
    ]


def _agree(net: Rewriter, query: Value, key: Value, value: Value, scores: Value) -> bool:
    """Whether the batches are the same."""
    shapes = [net.tensor(one).shape for one in (query, key, value)]
    rank = net.tensor(scores).rank
    if rank is None or any(shape.rank != rank for shape in shapes):
        return False
    batches = [shape.sizes[:-2] for shape in shapes]
    return all(map(_may_be, batches[0] * 2, batches[1] + batches[2]))


def _is_mask(net: Rewriter, mask: Value, scores: Value) -> bool:
    """Whether a mask broadcasts to the scores.

    It is no other product of its own shape that the scores are broadcast to.
    """
    shape, whole = net.tensor(mask).shape, net.tensor(scores).shape
    if shape.rank is None or whole.rank is None or not 2 <= shape.rank <= whole.rank:
        return False
    if net.kind(mask) != net.kind(scores) or made_by(net, mask, "MatMul") is not None:
        return False
    beside = whole.sizes[whole.rank - shape.rank :]
    return all(
        size == 1 or _may_be(size, other) for size, other in zip(shape.sizes, beside, strict=True)
    )


def _may_be(one: Size, other: Size) -> bool:
    """Whether two sizes are the same number, or both open and not known to be two."""
    if isinstance(one, Dim) and isinstance(other, Dim):
        own = any(dim.symbol is None or OWN in str(dim.symbol) for dim in (one, other))
        return own or one.symbol == other.symbol
    return not isinstance(one, Dim) and not isinstance(other, Dim) and one == other


RULE = Rule("attention", ("MatMul",), _apply, exact=False)
