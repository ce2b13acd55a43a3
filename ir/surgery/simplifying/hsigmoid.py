"""min(max(x + 3, 0), 6) / 6 → HSigmoid(x); the bounds as ReLU, Clamp, Minimum or Maximum.

HardSigmoid(x, 1/6, 1/2) is the same.
"""

from __future__ import annotations

from ...document import Layer
from .patterns import FLOATS, fuse, is_near, made_by, operands, scaled
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    if net.kind((layer, 0)) not in FLOATS:
        return False
    if layer.type == "HardSigmoid":
        value, alpha, beta = net.inputs(layer)
        if not (is_near(net.scalar(alpha), 1 / 6) and is_near(net.scalar(beta), 0.5)):
            return False
        return fuse(net, layer, net.add("HSigmoid", "opset5", [value], like=layer))
    number, bounded = scaled(net, (layer, 0))
    source = from_zero_to_six(net, bounded) if is_near(number, 1 / 6) else None
    if source is None:
        return False
    return fuse(net, layer, net.add("HSigmoid", "opset5", [source], like=layer))


def from_zero_to_six(net: Rewriter, value: Value) -> Value | None:
    """The x of which a value is min(max(x + 3, 0), 6), made for nothing else."""
    clamp = made_by(net, value, "Clamp")
    if clamp is not None:
        if (float(clamp.data["min"]), float(clamp.data["max"])) != (0.0, 6.0):
            return None
        inside = net.inputs(clamp)[0]
    else:
        least = made_by(net, value, "Minimum")
        found = None if least is None else _beside(net, least, 6.0)
        if found is None:
            return None
        relu = made_by(net, found, "ReLU")
        most = made_by(net, found, "Maximum")
        beside = None if most is None else _beside(net, most, 0.0)
        if relu is None and beside is None:
            return None
        inside = net.inputs(relu)[0] if relu is not None else beside or found
        if not net.is_private(found):
            return None
    add = made_by(net, inside, "Add")
    source = None if add is None else _beside(net, add, 3.0)
    return source if net.is_private(value) and net.is_private(inside) else None


def _beside(net: Rewriter, layer: Layer, number: float) -> Value | None:
    """The other input of a layer that takes a number."""
    for value, other in operands(net, layer):
        if net.scalar(other) == number:
            return value
    return None


RULE = Rule("hsigmoid", ("Divide", "HardSigmoid", "Multiply"), _apply, exact=False)
