"""Reduce(Transpose(x, p), axes) → Reduce(x, p[axes]), where what is left stands in its order."""

from __future__ import annotations

import numpy as np

from ....schemas import ElementType
from ...document import Layer
from .patterns import axes_of, fuse, made_by, order_of
from .reshape_chains import pattern_of, put_reshape
from .rewriter import Rewriter, Rule

_TYPES = (
    "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum",
)  # fmt: skip


def _apply(net: Rewriter, layer: Layer) -> bool:
    value, rows = net.inputs(layer)
    transpose = made_by(net, value, "Transpose")
    order = None if transpose is None or not net.is_private(value) else order_of(net, transpose)
    axes = axes_of(net, rows, net.tensor(value).rank)
    if transpose is None or order is None or axes is None or net.is_quantized_later(layer):
        return False
    source, made = net.inputs(transpose)[0], net.tensor((layer, 0)).shape
    sizes = net.tensor(source).shape.sizes
    left = [order[i] for i in range(len(order)) if i not in axes and sizes[order[i]] != 1]
    if left != sorted(left):
        return False
    moved = np.array(sorted(order[axis] for axis in axes), np.int64)
    new = net.copy(layer, [source, net.constant(moved, ElementType.I64, layer)])
    pattern = pattern_of(net.tensor(new).shape, made)
    return pattern is not None and fuse(net, layer, put_reshape(net, new, pattern, layer))


RULE = Rule("reduce-before-transpose", _TYPES, _apply, exact=False)
