"""Attention(q * a, k * b, v, m, s) → Attention(q, k, v, m, a * b * s), a and b numbers.

A sink beside them is no product: it stays.
"""

from __future__ import annotations

from ....schemas import Dim
from ...document import Layer
from .patterns import FLOATS, fuse, holds, scaled
from .rewriter import Rewriter, Rule, Value

#: The places of two inputs, of which the second may be there only with the first.
_MASK, _SCALE = 3, 4


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = list(net.inputs(layer))
    number = _scale(net, inputs)
    kind = net.kind(inputs[0])
    if number is None or kind not in FLOATS or net.is_quantized_later(layer):
        return False
    found = [scaled(net, one) if net.is_private(one) else (1.0, one) for one in inputs[:2]]
    if found == [(1.0, one) for one in inputs[:2]]:
        return False
    number *= found[0][0] * found[1][0]
    if not holds(kind, number):
        return False
    mask = inputs[_MASK] if len(inputs) > _MASK else net.constant(0.0, kind, layer)
    scale = net.constant(number, kind, layer)
    fed = [found[0][1], found[1][1], inputs[2], mask, scale, *inputs[_SCALE + 1 :]]
    return fuse(net, layer, net.copy(layer, fed))


def _scale(net: Rewriter, inputs: list[Value]) -> float | None:
    """The number that the scores are multiplied by: one over the root of a row's length."""
    if len(inputs) > _SCALE:
        return net.scalar(inputs[_SCALE]) if inputs[_SCALE][0].is_constant else None
    length = net.tensor(inputs[0]).shape
    if not length.rank or isinstance(length.sizes[-1], Dim) or not length.sizes[-1]:
        return None
    return 1.0 / length.sizes[-1] ** 0.5


RULE = Rule("scale-into-attention", ("ScaledDotProductAttention",), _apply, exact=False, stage=1)
