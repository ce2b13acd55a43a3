"""Transpose(Reshape(Transpose(x, p)), q) → Transpose(Reshape(x), r), where axes only come apart.

Where r leaves the axes in order, all of it is one Reshape. Where axes of size one are put to
others, it is Reshape(Transpose(x, r)): samples keep an axis of their own, of which there may be
more.
"""

from __future__ import annotations

import numpy as np

from ....schemas import ElementType, Shape
from ...document import Layer
from .axis_groups import axis_groups
from .patterns import fuse, order_of
from .reshape_chains import pattern_of, put_reshape
from .rewriter import Rewriter, Rule, Value


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
    if rows != last and len(groups) < len(order) and all(len(made) == 1 for _, made in groups):
        turned = [order[axis] for place in last for axis in groups[place][0]]
        moved = Shape([given.sizes[axis] for axis in turned])
        pattern = pattern_of(moved, Shape([apart.sizes[place] for place in last]))
        if pattern is None:
            return False
        first = _turned(net, source, turned, layer)
        return fuse(net, layer, put_reshape(net, first, pattern, layer))
    pattern = pattern_of(given, Shape([apart.sizes[place] for place in rows]))
    if pattern is None:
        return False
    new = put_reshape(net, source, pattern, value[0])
    return fuse(net, layer, _turned(net, new, [rows.index(place) for place in last], layer))


def _turned(net: Rewriter, value: Value, order: list[int], like: Layer) -> Value:
    """A Transpose by an order, named after a layer."""
    rows = net.constant(np.array(order, np.int64), ElementType.I64, like)
    return net.add("Transpose", "opset1", [value, rows], like=like)


RULE = Rule("transpose-through-reshape", ("Transpose",), _apply)
