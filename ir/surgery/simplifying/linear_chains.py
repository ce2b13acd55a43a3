"""x * a * b → x * (a * b) and x + a + b → x + (a + b), a and b constants of real numbers.

Subtraction of a constant and division by one count as addition and multiplication.
"""

from __future__ import annotations

import numpy as np

from ....schemas import Array
from ...document import Layer
from .patterns import REALS, as_declared, broadcasts, is_plain, made_by
from .rewriter import Rewriter, Rule, Value

_SUMS = ("Add", "Subtract")
_PRODUCTS = ("Multiply", "Divide")


def _apply(net: Rewriter, layer: Layer) -> bool:
    family = _SUMS if layer.type in _SUMS else _PRODUCTS
    outer = _taken(net, layer)
    inner_layer = None if outer is None else made_by(net, outer[0], *family)
    if outer is None or inner_layer is None or not net.is_private(outer[0]):
        return False
    inner = _taken(net, inner_layer)
    if inner is None:
        return False
    with np.errstate(all="ignore"):
        both = inner[1] + outer[1] if family is _SUMS else inner[1] * outer[1]
    if not is_plain(both) or both.size > max(inner[1].size, outer[1].size):
        return False
    fixed = net.constant(both, net.kind((layer, 0)), layer)
    new = net.add(family[0], "opset1", [inner[0], fixed], like=layer)
    if not as_declared(net.tensor(new), net.tensor((layer, 0))):
        return False
    return net.replace((layer, 0), new)


def _taken(net: Rewriter, layer: Layer) -> tuple[Value, Array] | None:
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


RULE = Rule("linear-chains", (*_SUMS, *_PRODUCTS), _apply, exact=False, stage=1)
