"""Transpose(Reshape(Transpose(x, p)), q) → Transpose(Reshape(x), r), where axes only come apart.

Where r leaves the axes in order, all of it is one Reshape.
"""

from __future__ import annotations

import numpy as np

from ....schemas import ElementType, Shape
from ...document import Layer
from .axis_groups import axis_groups
from .patterns import fuse, order_of
from .reshape_chains import pattern_of, put_reshape
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    last, value = order_of(net, layer), net.inputs(layer)[0]
    if last is None or value[0].type != "Reshape" or not net.is_private(value):
        return False
    first = net.inputs(value[0])[0]
    order = order_of(net, first[0]) if first[0].type == "Transpose" else None
    if order is None or not net.is_private(first):
        return False
    groups = axis_groups(net.tensor(first).shape, net.tensor(value).shape)
    if groups is None:
        return False
    source, apart = net.inputs(first[0])[0], net.tensor(value).shape
    # Of several axes in a group, all but one are of size one, and move nothing.
    places: dict[int, range] = {}
    given = net.tensor(source).shape
    for axes, made in groups:
        wide = [axis for axis in axes if given.sizes[order[axis]] != 1] or [axes[0]]
        if len(wide) > 1:
            return False
        places[order[wide[0]]] = made
    rows = [place for axis in sorted(places) for place in places[axis]]
    pattern = pattern_of(given, Shape([apart.sizes[place] for place in rows]))
    if pattern is None:
        return False
    new = put_reshape(net, source, pattern, value[0])
    turned = np.array([rows.index(place) for place in last], np.int64)
    order_ = net.constant(turned, ElementType.I64, layer)
    return fuse(net, layer, net.add("Transpose", "opset1", [new, order_], like=layer))


RULE = Rule("transpose-through-reshape", ("Transpose",), _apply)
