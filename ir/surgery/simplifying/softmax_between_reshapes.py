"""Reshape(SoftMax(Reshape(x))) → SoftMax(x), or Reshape(SoftMax(x)); so of LogSoftmax.

The first Reshape leaves the axis of the SoftMax as it is; Squeeze and Unsqueeze are Reshapes, too.
"""

from __future__ import annotations

from ...document import Layer
from .patterns import fuse, kept_axes, made_by, same_shape
from .rewriter import Rewriter, Rule

_RESHAPES = ("Reshape", "Squeeze", "Unsqueeze")


def _apply(net: Rewriter, layer: Layer) -> bool:
    made = net.inputs(layer)[0]
    softmax = made_by(net, made, "SoftMax", "LogSoftmax")
    if softmax is None or not net.is_private(made):
        return False
    value = net.inputs(softmax)[0]
    reshape, rank = made_by(net, value, *_RESHAPES), net.tensor(value).rank
    if reshape is None or rank is None or not net.is_private(value):
        return False
    source = net.inputs(reshape)[0]
    kept = kept_axes(net.tensor(source).shape, net.tensor(value).shape)
    axis = kept.get(int(softmax.data.get("axis", "1")) % rank)
    if axis is None:
        return False
    data = {**softmax.data, "axis": str(axis)}
    new = net.add(softmax.type, softmax.version, [source], data, like=softmax)
    if not same_shape(net.tensor(source).shape, net.tensor((layer, 0)).shape):
        for one in (reshape, layer):  # which then become one
            new = net.copy(one, [new, *net.inputs(one)[1:]])
    return fuse(net, layer, new)


RULE = Rule("softmax-between-reshapes", _RESHAPES, _apply, exact=False)
