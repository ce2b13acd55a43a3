"""BatchNorm(x) * c + d → BatchNorm(x) with gamma * c and beta * c + d, c and d by channel."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import REALS, fall_short, fuse, is_plain, made_by
from .rewriter import Rewriter, Rule
from .scale_into_weights import biased, channels_of, scaling


def _apply(net: Rewriter, layer: Layer) -> bool:
    found = biased(net, layer) if layer.type == "Add" else scaling(net, layer)
    norm = None if found is None else made_by(net, found[0], "BatchNormInference")
    if found is None or norm is None or not net.is_private(found[0]) or norm.kind is None:
        return False
    rank = net.tensor(found[0]).rank
    rows = None if rank is None or rank < 2 else channels_of(found[1], rank, 1)
    if rows is None or net.kind(found[0]) not in REALS:
        return False
    # The first version takes the data after gamma and beta.
    at = 0 if norm.kind.number == 1 else 1
    inputs = list(net.inputs(norm))
    gamma, beta = (net.known(one) if one[0].is_constant else None for one in inputs[at : at + 2])
    if gamma is None or beta is None or gamma.shape != beta.shape:
        return False
    with np.errstate(all="ignore"):
        changed = [gamma, beta + rows] if layer.type == "Add" else [gamma * rows, beta * rows]
    for place, (array, old) in enumerate(zip(changed, (gamma, beta), strict=True)):
        if not is_plain(array) or array.shape != gamma.shape:
            return False
        if layer.type != "Add" and fall_short(array, old, rows).any():
            return False
        if array is not gamma:
            inputs[at + place] = net.constant(array, net.kind(inputs[at + place]), layer)
    return fuse(net, layer, net.add(norm.type, norm.version, inputs, norm.data, like=layer))


RULE = Rule("linear-into-batch-norm", ("Add", "Divide", "Multiply"), _apply, exact=False, stage=1)
