"""Concat(Split(x)) → x, where every part comes back in its place."""

from __future__ import annotations

from ...document import Layer
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = list(net.inputs(layer))
    split = inputs[0][0]
    if split.type not in ("Split", "VariadicSplit"):
        return False
    if inputs != [(split, index) for index in range(len(split.outputs))]:
        return False
    source, axes = net.inputs(split)[0], net.ints(net.inputs(split)[1])
    rank = net.tensor(source).rank
    if axes is None or rank is None or axes[0] % rank != int(layer.data["axis"]) % rank:
        return False
    return net.replace((layer, 0), source)


RULE = Rule("split-concat", ("Concat",), _apply)
