"""x + 0, x - 0, x * 1, x / 1, x ^ 1 → x, where neither type nor shape changes."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import broadcasts, same_shape
from .rewriter import Rewriter, Rule

_NEUTRAL = {"Add": 0, "Subtract": 0, "Multiply": 1, "Divide": 1, "Power": 1}
_BOTH_SIDES = ("Add", "Multiply")


def _apply(net: Rewriter, layer: Layer) -> bool:
    pairs = [(0, 1), (1, 0)] if layer.type in _BOTH_SIDES else [(0, 1)]
    for place, other in pairs:
        value, fixed = net.inputs(layer)[place], net.inputs(layer)[other]
        array = net.known(fixed) if fixed[0].is_constant else None
        if array is None or array.dtype.kind not in "fiu" or not broadcasts(layer):
            continue
        if not np.all(array == _NEUTRAL[layer.type]):
            continue
        shape = net.tensor(value).shape
        # One number changes no shape, also one of which nobody knows the sizes.
        one = array.size == 1 and shape.rank is not None and array.ndim <= shape.rank
        if one or same_shape(shape, net.tensor((layer, 0)).shape):
            return net.replace((layer, 0), value)
    return False


RULE = Rule("neutral-elements", tuple(_NEUTRAL), _apply)
