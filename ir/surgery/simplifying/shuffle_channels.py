"""Reshape to (g, c), Transpose to (c, g), Reshape back → ShuffleChannels by g groups."""

from __future__ import annotations

from math import prod

from ...document import Layer
from .patterns import fuse, made_by, order_of
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    transpose = made_by(net, net.inputs(layer)[0], "Transpose")
    if transpose is None or not net.is_private((transpose, 0)):
        return False
    split = made_by(net, net.inputs(transpose)[0], "Reshape")
    order = order_of(net, transpose)
    if split is None or order is None or not net.is_private((split, 0)):
        return False
    source = net.inputs(split)[0]
    whole, parts = net.shape(source), net.shape((split, 0))
    if whole is None or parts is None or net.shape((layer, 0)) != whole or 0 in whole:
        return False
    moved = [axis for axis, place in enumerate(order) if axis != place]
    if len(moved) != 2 or moved[1] != moved[0] + 1:
        return False
    at = moved[0]
    for axis, size in enumerate(whole):
        if size == parts[at] * parts[at + 1] and prod(whole[:axis]) == prod(parts[:at]):
            data = {"axis": str(axis), "group": str(parts[at])}
            new = net.add("ShuffleChannels", "opset3", [source], data, like=layer)
            return fuse(net, layer, new)
    return False


RULE = Rule("shuffle-channels", ("Reshape",), _apply)
