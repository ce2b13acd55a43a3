"""x + 0, x - 0, x * 1, x / 1, x ^ 1, x and true, x or false → x, where type and shape stay."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import broadcasts, fits_into
from .rewriter import Rewriter, Rule

_NEUTRAL = {
    "Add": 0, "Subtract": 0, "Multiply": 1, "Divide": 1, "Power": 1,
    "LogicalAnd": 1, "LogicalOr": 0, "LogicalXor": 0,
}  # fmt: skip
_BOTH_SIDES = ("Add", "Multiply", "LogicalAnd", "LogicalOr", "LogicalXor")


def _apply(net: Rewriter, layer: Layer) -> bool:
    pairs = [(0, 1), (1, 0)] if layer.type in _BOTH_SIDES else [(0, 1)]
    for place, other in pairs:
        value, fixed = net.inputs(layer)[place], net.inputs(layer)[other]
        array = net.known(fixed) if fixed[0].is_constant else None
        if array is None or array.dtype.kind not in "fiub" or not broadcasts(layer):
            continue
        if not np.all(array == _NEUTRAL[layer.type]):
            continue
        if fits_into(array.shape, net.tensor(value).shape):
            return net.replace((layer, 0), value)
    return False


RULE = Rule("neutral-elements", tuple(_NEUTRAL), _apply)
