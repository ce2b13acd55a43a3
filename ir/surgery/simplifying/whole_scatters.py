"""ScatterNDUpdate(x, 0 to n, u) → u, where every element of x is given in order; so of rows.

The places are a constant, or a Range.
"""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import as_declared, made_by
from .reshape_chains import RESHAPES, keeps_order
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    data, places, updates = net.inputs(layer)[:3]
    if layer.data.get("reduction", "none").strip().lower() != "none":
        return False
    given, shape = net.shape(data), net.shape(places)
    if not given or not shape or not as_declared(net.tensor(updates), net.tensor(data)):
        return False
    if layer.type == "ScatterNDUpdate":
        fits = len(shape) == 1 + 1 and shape[-1] == 1
        axis = 0
    else:
        axes = net.ints(net.inputs(layer)[3])
        fits = axes is not None and len(shape) == 1
        axis = axes[0] if axes else 0
    if not fits or shape[0] != given[axis] or not _counts(net, places, shape[0]):
        return False
    return net.replace((layer, 0), updates)


def _counts(net: Rewriter, value: Value, end: int) -> bool:
    """Whether a value is the numbers from nought up to another."""
    array = net.known(value)
    if array is not None:
        return np.array_equal(array.ravel(), np.arange(end))
    while value[0].type in RESHAPES and keeps_order(net, value[0]):
        value = net.inputs(value[0])[0]
    made = made_by(net, value, "Range")
    return made is not None and [net.scalar(one) for one in net.inputs(made)] == [0, end, 1]


RULE = Rule("whole-scatters", ("ScatterNDUpdate", "ScatterUpdate"), _apply)
