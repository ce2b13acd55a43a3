"""Transpose(f(Transpose(x, p)), q) → f(x) or f(Transpose(x, p[q])), f of each element by itself.

The outer Transpose is drawn up through all that is computed element by element, if every way up
ends in a Transpose or a constant; so it goes, and those above it often with it.
"""

from __future__ import annotations

import numpy as np

from ....schemas import ElementType
from ...document import Layer
from .patterns import BINARY, UNARY, broadcasts, order_of
from .rewriter import Rewriter, Rule, Value

#: The most layers that one Transpose is drawn through.
_MOST = 24


def _apply(net: Rewriter, layer: Layer) -> bool:
    order = order_of(net, layer)
    if order is None:
        return False
    way: list[Layer] = []
    if not _leads_up(net, net.inputs(layer)[0], order, way, first=True):
        return False
    made: dict[Value, Value] = {}
    return net.replace((layer, 0), _drawn(net, net.inputs(layer)[0], order, set(way), made, layer))


def _leads_up(
    net: Rewriter, value: Value, order: list[int], way: list[Layer], first: bool
) -> bool:
    """Whether every way up from a value ends in a Transpose or a constant; at least one does."""
    found, stack = False, [value]
    while stack:
        one = stack.pop()
        layer = one[0]
        if layer.is_constant:
            known = net.known(one)
            if known is None or (known.size > 1 and not net.is_private(one)):
                return False
            continue
        if layer.type == "Transpose":
            own = order_of(net, layer)
            # One of fewer axes is broadcast: which of them is which is not told by its order.
            if own is None or len(own) != len(order):
                return False
            if [own[axis] for axis in order] != sorted(order) and not net.is_private(one):
                return False
            found = True
            continue
        if layer.type not in UNARY | BINARY or len(way) >= _MOST or layer in way:
            return False
        if layer.type in BINARY and not broadcasts(layer):
            return False
        if not net.is_private(one) or net.tensor(one).rank != len(order):
            return False
        way.append(layer)
        # A list of sizes beside the data, as of Clamp by inputs, is not moved.
        stack += net.inputs(layer)
    return found


def _drawn(
    net: Rewriter,
    value: Value,
    order: list[int],
    way: set[Layer],
    made: dict[Value, Value],
    like: Layer,
) -> Value:
    """A value with its axes in another order, made from what is above."""
    if value not in made:
        layer = value[0]
        if layer.is_constant:
            made[value] = _turned(net, value, order, layer)
        elif layer.type == "Transpose":
            made[value] = _composed(net, layer, order, like)
        else:
            sources = [_drawn(net, s, order, way, made, like) for s in net.inputs(layer)]
            made[value] = net.copy(layer, sources)
    return made[value]


def _turned(net: Rewriter, value: Value, order: list[int], layer: Layer) -> Value:
    array = net.known(value)
    assert array is not None
    if array.size <= 1 and array.ndim < len(order):
        return value
    wide = array.reshape([1] * (len(order) - array.ndim) + list(array.shape))
    return net.constant(wide.transpose(order), net.kind(value), layer)


def _composed(net: Rewriter, transpose: Layer, order: list[int], like: Layer) -> Value:
    own = order_of(net, transpose)
    assert own is not None
    both = [own[axis] for axis in order]
    source = net.inputs(transpose)[0]
    if both == sorted(both):
        return source
    axes = net.constant(np.array(both, np.int64), ElementType.I64, transpose)
    return net.add("Transpose", "opset1", [source, axes], like=like)


RULE = Rule("transpose-pairs", ("Transpose",), _apply)
