"""x * Tanh(SoftPlus(x)) → Mish(x)."""

from __future__ import annotations

from ...document import Layer
from .patterns import FLOATS, fuse, made_by, operands
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    for value, other in operands(net, layer):
        tanh = made_by(net, other, "Tanh")
        soft = None if tanh is None else made_by(net, net.inputs(tanh)[0], "SoftPlus")
        if tanh is None or soft is None or net.inputs(soft)[0] != value:
            continue
        if net.is_private(other) and net.kind(value) in FLOATS:
            return fuse(net, layer, net.add("Mish", "opset4", [value], like=layer))
    return False


RULE = Rule("mish", ("Multiply",), _apply, exact=False)
