"""FakeQuantize(Clamp(x)) → FakeQuantize(x), its range within the Clamp's; so of ReLU."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import broadcasts, made_by
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = net.inputs(layer)
    clamp = made_by(net, inputs[0], "Clamp", "ReLU")
    if clamp is None or not net.is_private(inputs[0]):
        return False
    low, high = 0.0, np.inf
    if clamp.type == "Clamp":
        low, high = float(clamp.data["min"]), float(clamp.data["max"])
    first, last = (net.known(one) if one[0].is_constant else None for one in inputs[1:3])
    if first is None or last is None or not broadcasts(layer):
        return False
    if not all(np.all((low <= end) & (end <= high)) for end in (first, last)):
        return False
    if not np.all(first < last):
        return False  # a Clamp turns numbers to the other side of such a range
    new = net.copy(layer, [net.inputs(clamp)[0], *inputs[1:]])
    return net.replace((layer, 0), new)


RULE = Rule("clamp-into-fake-quantize", ("FakeQuantize",), _apply)
