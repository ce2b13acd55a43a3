"""Select(c, a, b) → a or b, where c is all true or all false and the shape stays."""

from __future__ import annotations

from ...document import Layer
from .patterns import same_shape
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    condition, *sides = net.inputs(layer)
    chosen = net.known(condition)
    if chosen is None or not chosen.size or chosen.all() != chosen.any():
        return False
    value = sides[0] if chosen.all() else sides[1]
    given, made = net.tensor(value), net.tensor((layer, 0))
    if given.type != made.type or not same_shape(given.shape, made.shape):
        return False
    return net.replace((layer, 0), value)


RULE = Rule("select-one-side", ("Select",), _apply)
