"""Reshape(f(Reshape(x), c)) → f(x, c), or Reshape(f(x, c)), f of each element by itself.

What is broadcast beside x, as c, gets sizes by which it meets the same elements.
"""

from __future__ import annotations

from ....schemas import Shape
from ...document import Layer
from .axis_groups import moved_into, reshaped
from .patterns import BINARY, UNARY, broadcasts, fuse, same_shape
from .reshape_chains import RESHAPES, keeps_order, pattern_of, put_reshape
from .rewriter import Rewriter, Rule, Value

_STEPS = UNARY | BINARY | {"FakeQuantize", "Select", "Swish"}
#: The most layers between two Reshapes.
_MOST = 8


def _apply(net: Rewriter, layer: Layer) -> bool:
    if not keeps_order(net, layer):
        return False
    way: list[Layer] = []
    first = _start(net, net.inputs(layer)[0], way)
    if first is None or not way:
        return False
    source = net.inputs(first[0])[0]
    given, made = net.tensor(source).shape, net.tensor((layer, 0)).shape
    same, pattern = same_shape(given, made), pattern_of(given, made)
    if pattern is None or not (same or net.is_private(first)):
        return False
    new, before = source, first
    for step in reversed(way):
        inputs = _moved(net, step, before, new, given)
        if inputs is None:
            return False
        new, before = net.copy(step, inputs), (step, 0)
    return fuse(net, layer, new if same else put_reshape(net, new, pattern, layer))


def _start(net: Rewriter, value: Value, way: list[Layer]) -> Value | None:
    """The Reshape that a value is computed from element by element, and the way from there."""
    layer = value[0]
    if layer.type in RESHAPES and keeps_order(net, layer):
        return value
    if layer.type not in _STEPS or not net.is_private(value) or not broadcasts(layer):
        return None
    if len(way) == _MOST:
        return None
    way.append(layer)
    for one in net.inputs(layer):
        if not one[0].is_constant and same_shape(net.tensor(one).shape, net.tensor(value).shape):
            found = _start(net, one, way)
            if found is not None:
                return found
    way.pop()
    return None


def _moved(
    net: Rewriter, step: Layer, before: Value, new: Value, wanted: Shape
) -> list[Value] | None:
    """The inputs of a layer, of which one comes in another shape."""
    inputs: list[Value] = []
    for one in net.inputs(step):
        if one == before:
            inputs.append(new)
            continue
        sizes = moved_into(net.tensor(one).shape, net.tensor(before).shape, wanted)
        beside = None if sizes is None else reshaped(net, one, sizes, step)
        if beside is None:
            return None
        inputs.append(beside)
    return inputs


RULE = Rule("elementwise-between-reshapes", RESHAPES, _apply)
