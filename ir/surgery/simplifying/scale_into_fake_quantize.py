"""FakeQuantize(x) * c → FakeQuantize(x) whose output range is that times c."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import broadcasts, fall_short, fuse, is_plain, made_by
from .rewriter import Rewriter, Rule
from .scale_into_weights import scaling


def _apply(net: Rewriter, layer: Layer) -> bool:
    found = scaling(net, layer)
    quantize = None if found is None else made_by(net, found[0], "FakeQuantize")
    if found is None or quantize is None or not net.is_private(found[0]):
        return False
    inputs = list(net.inputs(quantize))
    rank = net.tensor((quantize, 0)).rank
    scale = found[1]
    if rank is None or scale.ndim > rank or not broadcasts(quantize):
        return False
    if net.tensor((layer, 0)).shape != net.tensor((quantize, 0)).shape:
        return False  # a range cannot make more of what it is of
    for place in (3, 4):
        end = net.known(inputs[place]) if inputs[place][0].is_constant else None
        if end is None or not is_plain(end) or end.ndim > rank:
            return False
        with np.errstate(all="ignore"):
            # One number is no more sizes for a range.
            product = end * (scale.ravel()[0] if scale.size == 1 else scale)
        if not is_plain(product) or product.size > max(end.size, scale.size):
            return False
        if fall_short(product, end, scale).any():
            return False
        inputs[place] = net.constant(product, net.kind(inputs[place]), layer)
    return fuse(net, layer, net.copy(quantize, inputs))


RULE = Rule("scale-into-fake-quantize", ("Divide", "Multiply"), _apply, exact=False, stage=1)
