"""Reshape(Transpose(Reshape(x))) → Transpose(x), where axes move together and come apart again.

The first Reshape puts neighbouring axes together, or takes one apart; the second undoes that.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ....schemas import ElementType, Shape, Size
from ...document import Layer
from .patterns import reshaped_transpose, same_shape, same_size
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    found = reshaped_transpose(net, layer)
    if found is None:
        return False
    first, order = found
    value = net.inputs(first[0])[0]
    given, between, made = (net.tensor(one).shape for one in (value, first, (layer, 0)))
    axes = _order(given, between, order)
    if axes is None or made.rank != given.rank:
        return False
    if not same_shape(Shape([given.sizes[axis] for axis in axes]), made):
        return False
    rows = net.constant(np.array(axes, np.int64), ElementType.I64, layer)
    new = net.add("Transpose", "opset1", [value, rows], like=layer)
    return net.replace((layer, 0), new)


def _order(given: Shape, between: Shape, order: list[int]) -> list[int] | None:
    """The order of the axes of a shape that moves them as an order moves those of another."""
    if given.rank is None or between.rank is None:
        return None
    together = _groups(given, between)
    if together is not None:
        return [axis for place in order for axis in together[place]]
    apart = _groups(between, given)
    if apart is None:
        return None
    places = {axis: order.index(axis) for axis in range(len(order))}
    for group in apart:
        if any(places[b] != places[a] + 1 for a, b in pairwise(group)):
            return None
    return sorted(range(given.rank), key=lambda axis: places[apart[axis][0]])


def _groups(fine: Shape, coarse: Shape) -> list[list[int]] | None:
    """The neighbouring axes of one shape that make each axis of another."""
    groups: list[list[int]] = []
    axis = 0
    for size in coarse.sizes:
        group: list[int] = []
        product: Size = 1
        while not group or not same_size(product, size):
            if axis == len(fine.sizes):
                return None
            product = product * fine.sizes[axis]
            group.append(axis)
            axis += 1
        groups.append(group)
    return groups if axis == len(fine.sizes) else None


RULE = Rule("transpose-between-reshapes", ("Reshape",), _apply)
