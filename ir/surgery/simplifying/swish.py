"""x * Sigmoid(x) → Swish(x), and x * Sigmoid(b * x) → Swish(x, b) for a number b."""

from __future__ import annotations

from ...document import Layer
from .patterns import FLOATS, fuse, made_by, operands, scaled
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    if net.kind((layer, 0)) not in FLOATS:
        return False
    for value, other in operands(net, layer):
        sigmoid = made_by(net, other, "Sigmoid")
        if sigmoid is None or not net.is_private(other):
            continue
        inside = net.inputs(sigmoid)[0]
        if inside == value:
            return fuse(net, layer, net.add("Swish", "opset4", [value], like=layer))
        number, source = scaled(net, inside)
        if source == value:
            beta = net.constant(number, net.kind(value), layer)
            return fuse(net, layer, net.add("Swish", "opset4", [value, beta], like=layer))
    return False


RULE = Rule("swish", ("Multiply",), _apply, exact=False)
