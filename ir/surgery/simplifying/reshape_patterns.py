"""Reshape(x, sizes computed from shapes) → Reshape(x, constant), where the outcome is known.

At most one size is open beside those that x has in the same place.
"""

from __future__ import annotations

from ...document import Layer
from .reshape_chains import pattern_of, put_reshape
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    source, sizes = net.inputs(layer)
    if sizes[0].is_constant:
        return False
    pattern = pattern_of(net.tensor(source).shape, net.tensor((layer, 0)).shape)
    if pattern is None:
        return False
    return net.replace((layer, 0), put_reshape(net, source, pattern, layer))


RULE = Rule("reshape-patterns", ("Reshape",), _apply)
