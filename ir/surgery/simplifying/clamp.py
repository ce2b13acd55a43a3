"""min(max(x, a), b) → Clamp(x, a, b), in either order, a and b numbers and a no greater than b."""

from __future__ import annotations

from math import isfinite

from ...document import Layer
from .patterns import FLOATS, broadcasts, fuse, made_by
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    outer = _limited(net, layer)
    other = "Maximum" if layer.type == "Minimum" else "Minimum"
    inner_layer = None if outer is None else made_by(net, outer[0], other)
    if outer is None or inner_layer is None or not net.is_private(outer[0]):
        return False
    inner = _limited(net, inner_layer)
    if inner is None or net.kind((layer, 0)) not in FLOATS:
        return False
    low, high = (inner[1], outer[1]) if other == "Maximum" else (outer[1], inner[1])
    if not isfinite(low) or not isfinite(high) or low > high:
        return False
    data = {"min": repr(low), "max": repr(high)}
    return fuse(net, layer, net.add("Clamp", "opset1", [inner[0]], data, like=layer))


def _limited(net: Rewriter, layer: Layer) -> tuple[Value, float] | None:
    """A value and the number that it is compared with."""
    one, other = net.inputs(layer)
    for value, fixed in ((one, other), (other, one)):
        number = net.scalar(fixed) if fixed[0].is_constant else None
        if number is not None and broadcasts(layer):
            return value, number
    return None


RULE = Rule("clamp", ("Maximum", "Minimum"), _apply)
