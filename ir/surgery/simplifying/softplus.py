"""Log(Exp(x) + 1) → SoftPlus(x)."""

from __future__ import annotations

from ...document import Layer
from .patterns import FLOATS, fuse, made_by, plus_one
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inside = plus_one(net, net.inputs(layer)[0])
    power = None if inside is None else made_by(net, inside, "Exp")
    if inside is None or power is None or net.kind((layer, 0)) not in FLOATS:
        return False
    if not net.is_private(inside) or not net.is_private(net.inputs(layer)[0]):
        return False
    return fuse(net, layer, net.add("SoftPlus", "opset4", [net.inputs(power)[0]], like=layer))


RULE = Rule("softplus", ("Log",), _apply, exact=False)
