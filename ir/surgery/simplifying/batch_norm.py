"""BatchNorm(f(x, w) + b) → f(x, w * s) + (b * s + t), f a convolution.

Here s = gamma / sqrt(variance + epsilon), and t = beta - mean * s.
"""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import is_plain, made_by
from .rewriter import Rewriter, Rule
from .scale_into_weights import AXES, biased, channels_of, scale_outputs, weights_of


def _apply(net: Rewriter, layer: Layer) -> bool:
    kind = layer.kind
    if kind is None:
        return False
    inputs = net.inputs(layer)
    # The first version takes the data after gamma and beta.
    value, others = (inputs[2], [*inputs[:2], *inputs[3:]]) if kind.number == 1 else (
        inputs[0], list(inputs[1:])
    )  # fmt: skip
    given = [net.known(one) if one[0].is_constant else None for one in others]
    rank = net.tensor(value).rank
    if rank is None or rank < 2 or any(row is None or not is_plain(row) for row in given):
        return False
    gamma, beta, mean, variance = (row.astype(np.float64) for row in given if row is not None)
    eps = float(layer.data.get("epsilon", layer.data.get("eps", "0")))
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + eps)
        shift = beta - mean * scale
    linear, inner = made_by(net, value, *AXES), value
    if linear is None:
        add = made_by(net, value, "Add")
        held = None if add is None or not net.is_private(value) else biased(net, add)
        bias = None if held is None else channels_of(held[1], rank, 1)
        if held is None or bias is None:
            return False
        inner, shift = held[0], shift + bias.astype(np.float64) * scale
        linear = made_by(net, inner, *AXES)
    if linear is None or not net.is_private(inner) or weights_of(net, linear) is None:
        return False
    wide = (1, -1, *[1] * (rank - 2))
    dtype = net.kind(value).dtype
    rows = [row.reshape(wide).astype(dtype) for row in (scale, shift)]
    return all(map(is_plain, rows)) and scale_outputs(net, layer, linear, *rows)


RULE = Rule("batch-norm", ("BatchNormInference",), _apply, exact=False, stage=1)
