"""Reshape to (g, c), Transpose to (c, g), Reshape back → ShuffleChannels by g groups."""

from __future__ import annotations

from math import prod

from ...document import Layer
from .patterns import fuse, reshaped_transpose
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    found = reshaped_transpose(net, layer)
    if found is None:
        return False
    split, order = found
    source = net.inputs(split[0])[0]
    whole, parts = net.shape(source), net.shape(split)
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
