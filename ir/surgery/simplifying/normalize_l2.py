"""x / max(norm(x), e) → NormalizeL2(x), norm(x) = sqrt(sum(x^2)); also x / sqrt(sum(x^2) + e)."""

from __future__ import annotations

from math import isinf

import numpy as np

from ....schemas import ElementType
from ...document import Layer
from .patterns import FLOATS, axes_of, fuse, made_by, operands, square_of
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    value, below = net.inputs(layer)
    found = None
    if net.kind(value) in FLOATS:
        found = _outside(net, below, value) or _inside(net, below, value)
    if found is None:
        return False
    axes, eps, mode = found
    rows = net.constant(np.array(axes, np.int64), ElementType.I64, layer)
    data = {"eps": repr(eps), "eps_mode": mode}
    return fuse(net, layer, net.add("NormalizeL2", "opset1", [value, rows], data, like=layer))


def _outside(net: Rewriter, below: Value, value: Value) -> tuple[list[int], float, str] | None:
    """max(norm(x), e): the bound of the sum of squares is e^2."""
    bounded = _at_least(net, below)
    if bounded is None:
        return None
    norm, least = bounded
    axes = _norm_axes(net, norm, value)
    # Its square has to be a number that f32 holds.
    return None if axes is None or least < 1e-18 else (axes, least * least, "max")


def _inside(net: Rewriter, below: Value, value: Value) -> tuple[list[int], float, str] | None:
    """sqrt(max(sum, e)) or sqrt(sum + e)."""
    root = made_by(net, below, "Sqrt")
    if root is None:
        return None
    inside = net.inputs(root)[0]
    bounded, mode = _at_least(net, inside), "max"
    add = made_by(net, inside, "Add")
    if bounded is None and add is not None:
        for one, other in operands(net, add):
            number = net.scalar(other)
            if number is not None and number > 0:
                bounded, mode = (one, number), "add"
    if bounded is None:
        return None
    axes = _sum_axes(net, bounded[0], value)
    return None if axes is None else (axes, bounded[1], mode)


def _at_least(net: Rewriter, value: Value) -> tuple[Value, float] | None:
    """What a positive number bounds from below."""
    layer = made_by(net, value, "Maximum", "Clamp")
    if layer is None:
        return None
    if layer.type == "Clamp":
        least, most = float(layer.data["min"]), float(layer.data["max"])
        endless = isinf(most) or most >= float(np.finfo(np.float32).max)
        return (net.inputs(layer)[0], least) if least > 0 and endless else None
    for one, other in operands(net, layer):
        number = net.scalar(other)
        if number is not None and number > 0:
            return one, number
    return None


def _norm_axes(net: Rewriter, norm: Value, value: Value) -> list[int] | None:
    """The axes over which a value is the norm of x."""
    layer = made_by(net, norm, "ReduceL2", "Sqrt")
    if layer is None:
        return None
    if layer.type == "Sqrt":
        return _sum_axes(net, net.inputs(layer)[0], value)
    return _kept(net, layer) if net.inputs(layer)[0] == value else None


def _sum_axes(net: Rewriter, total: Value, value: Value) -> list[int] | None:
    """The axes over which a value is the sum of x^2."""
    layer = made_by(net, total, "ReduceSum")
    if layer is None or square_of(net, net.inputs(layer)[0]) != value:
        return None
    return _kept(net, layer)


def _kept(net: Rewriter, layer: Layer) -> list[int] | None:
    if layer.data.get("keep_dims", "false").lower() not in ("true", "1"):
        return None
    return axes_of(net, net.inputs(layer)[1], net.tensor(net.inputs(layer)[0]).rank) or None


RULE = Rule("normalize-l2", ("Divide",), _apply, exact=False)
