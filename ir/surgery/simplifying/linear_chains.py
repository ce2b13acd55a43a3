"""x * a * b → x * (a * b), x + a + b → x + (a + b), (x * a + b) * c → x * (a * c) + (b * c).

Here a, b and c are constants of real numbers. Subtraction of one and division by one count as
addition and multiplication. What a FakeQuantize rounds later stays as it is: one layer fewer is
not worth values that stand between two levels and fall to the other.
"""

from __future__ import annotations

import numpy as np

from ....schemas import Array
from ...document import Layer
from .patterns import REALS, broadcasts, fall_short, fuse, is_plain, made_by
from .rewriter import Rewriter, Rule, Value

_SUMS = ("Add", "Subtract")
_PRODUCTS = ("Multiply", "Divide")
LINEAR = (*_SUMS, *_PRODUCTS)


def _apply(net: Rewriter, layer: Layer) -> bool:
    outer = taken(net, layer)
    if outer is None or net.is_quantized_later(layer):
        return False
    found = merged(net, layer, *outer)
    return found is not None and fuse(net, layer, put(net, layer, *found))


def merged(
    net: Rewriter, layer: Layer, value: Value, array: Array
) -> tuple[Value, list[tuple[str, Array]]] | None:
    """What fewer steps with constants start from, and these, for one more step on a value.

    The step adds an array to the value, or multiplies it by one, as the layer does.
    """
    family = _SUMS if layer.type in _SUMS else _PRODUCTS
    if not net.is_private(value):
        return None
    inner_layer = made_by(net, value, *LINEAR)
    inner = None if inner_layer is None else taken(net, inner_layer)
    if inner_layer is None or inner is None:
        return None
    if inner_layer.type in family:
        both = _joined(inner[1], array, family)
        return None if both is None else (inner[0], [(family[0], both)])
    product = made_by(net, inner[0], *_PRODUCTS)
    innermost = None if product is None else taken(net, product)
    if family is _SUMS or innermost is None or not net.is_private(inner[0]):
        return None
    scale = _joined(innermost[1], array, _PRODUCTS)
    shift = _joined(inner[1], array, _PRODUCTS)
    if scale is None or shift is None:
        return None
    return innermost[0], [("Multiply", scale), ("Add", shift)]


def _joined(one: Array, other: Array, family: tuple[str, ...]) -> Array | None:
    """Two constants as one; None where it has more elements than either, or fewer digits."""
    with np.errstate(all="ignore"):
        both = one + other if family is _SUMS else one * other
    if not is_plain(both) or both.size > max(one.size, other.size):
        return None
    return None if family is _PRODUCTS and fall_short(both, one, other).any() else both


def put(net: Rewriter, layer: Layer, value: Value, steps: list[tuple[str, Array]]) -> Value:
    """Steps with constants on a value, named after a layer."""
    for kind, array in steps:
        fixed = net.constant(array, net.kind(value), layer)
        value = net.add(kind, "opset1", [value, fixed], like=layer)
    return value


def taken(net: Rewriter, layer: Layer) -> tuple[Value, Array] | None:
    """A value and the constant that is added to it, or by which it is multiplied."""
    one, other = net.inputs(layer)
    if one[0].is_constant and layer.type in ("Add", "Multiply"):
        one, other = other, one
    if one[0].is_constant or not other[0].is_constant or not broadcasts(layer):
        return None
    array = net.known(other)
    if array is None or net.kind(one) not in REALS or not is_plain(array):
        return None
    with np.errstate(all="ignore"):
        if layer.type == "Subtract":
            array = -array
        elif layer.type == "Divide":
            array = np.reciprocal(array)
    return one, array


RULE = Rule("linear-chains", LINEAR, _apply, exact=False, stage=1)
