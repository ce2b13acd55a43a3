"""x * min(max(x + 3, 0), 6) / 6 → HSwish(x), in whatever order; x * HSigmoid(x) → HSwish(x)."""

from __future__ import annotations

from ...document import Layer
from .hsigmoid import from_zero_to_six
from .patterns import FLOATS, factors, fuse, is_near, made_by
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    if net.kind((layer, 0)) not in FLOATS:
        return False
    product = factors(net, layer)
    if product is None or len(product[1]) != 2:
        return False
    scalar, found = product
    for value, other in (found, reversed(found)):
        sigmoid = made_by(net, other, "HSigmoid")
        six = is_near(scalar, 1 / 6) and from_zero_to_six(net, other) == value
        one = scalar == 1.0 and sigmoid is not None and net.inputs(sigmoid)[0] == value
        if six or (one and net.is_private(other)):
            return fuse(net, layer, net.add("HSwish", "opset4", [value], like=layer))
    return False


RULE = Rule("hswish", ("Divide", "Multiply"), _apply, exact=False)
