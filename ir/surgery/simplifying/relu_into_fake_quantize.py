"""FakeQuantize(ReLU(x)) → FakeQuantize(x), where its range begins at zero or above."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import made_by
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = net.inputs(layer)
    relu = made_by(net, inputs[0], "ReLU")
    if relu is None or not net.is_private(inputs[0]):
        return False
    ends = [net.known(one) if one[0].is_constant else None for one in inputs[1:3]]
    if any(end is None or not np.all(end >= 0) for end in ends):
        return False
    new = net.copy(layer, [net.inputs(relu)[0], *inputs[1:]])
    return net.replace((layer, 0), new)


RULE = Rule("relu-into-fake-quantize", ("FakeQuantize",), _apply)
