"""x * (1 + Erf(x / sqrt 2)) / 2 → Gelu(x), and with Tanh(sqrt(2 / pi) * (x + 0.044715 x^3)).

The factors may stand in any order and be put together in any way.
"""

from __future__ import annotations

from math import pi, sqrt

from ...document import Layer
from .patterns import (
    FLOATS,
    factors,
    fuse,
    is_near,
    made_by,
    operands,
    plus_one,
    scaled,
    square_of,
)
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    if net.kind((layer, 0)) not in FLOATS:
        return False
    product = factors(net, layer)
    if product is None:
        return False
    scalar, found = product
    if len(found) != 2:
        return False
    for value, other in (found, reversed(found)):
        # (1 + f) may itself have been halved: 0.5 + 0.5 f is left as it is.
        inside = plus_one(net, other)
        if inside is None or not is_near(scalar, 0.5) or not net.is_private(other):
            continue
        mode = _mode(net, inside, value)
        if mode is not None and net.is_private(inside):
            data = {"approximation_mode": mode}
            return fuse(net, layer, net.add("Gelu", "opset7", [value], data, like=layer))
    return False


def _mode(net: Rewriter, inside: Value, value: Value) -> str | None:
    """Whether a value is Erf(x / sqrt 2), or Tanh of the polynomial, of this x."""
    erf = made_by(net, inside, "Erf")
    if erf is not None:
        number, source = scaled(net, net.inputs(erf)[0])
        return "ERF" if source == value and is_near(number, 1 / sqrt(2)) else None
    tanh = made_by(net, inside, "Tanh")
    if tanh is None:
        return None
    number, source = scaled(net, net.inputs(tanh)[0])
    if is_near(number, sqrt(2 / pi)) and _is_polynomial(net, source, value):
        return "TANH"
    # sqrt(2 / pi) * x * (1 + 0.044715 x^2)
    product = factors(net, net.inputs(tanh)[0][0])
    if product is None or len(product[1]) != 2 or not is_near(product[0], sqrt(2 / pi)):
        return None
    for one, other in (product[1], reversed(product[1])):
        square = plus_one(net, other)
        if one == value and square is not None and _is_square(net, square, value):
            return "TANH"
    return None


def _is_square(net: Rewriter, whole: Value, value: Value) -> bool:
    """Whether a value is 0.044715 x^2, its factors put together in any way."""
    number, source = scaled(net, whole)
    if is_near(number, 0.044715) and square_of(net, source) == value:
        return True
    product = None if whole[0].type != "Multiply" else factors(net, whole[0])
    return product is not None and is_near(product[0], 0.044715) and product[1] == [value] * 2


def _is_polynomial(net: Rewriter, whole: Value, value: Value) -> bool:
    """Whether a value is x + 0.044715 x^3."""
    add = made_by(net, whole, "Add")
    if add is None:
        return False
    for one, other in operands(net, add):
        if one != value:
            continue
        number, cube = scaled(net, other)
        power = made_by(net, cube, "Power")
        if power is not None and is_near(number, 0.044715):
            base, exponent = net.inputs(power)
            if base == value and net.scalar(exponent) == 3.0:
                return True
        product = None if other[0].type != "Multiply" else factors(net, other[0])
        if product is not None and is_near(product[0], 0.044715):
            parts = product[1]
            if parts == [value] * 3 or (
                len(parts) == 2 and value in parts
                and any(square_of(net, part) == value for part in parts)
            ):  # fmt: skip
                return True
    return False


RULE = Rule("gelu", ("Divide", "Multiply"), _apply, exact=False)
