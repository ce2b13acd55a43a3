"""f(x) and f(x) → one f(x): layers of equal type, attributes and inputs.

Weights of half precision are rounded as those who read them take them: what is rounded and what is
not stay two.
"""

from __future__ import annotations

from ...document import SINKS, Layer
from .readings import rounding
from .rewriter import Rewriter, Rule

_KEPT = SINKS | {"Const", "Parameter", "ReadValue"}


def _apply(net: Rewriter, layer: Layer) -> bool:
    kind = layer.kind
    if layer.type in _KEPT or kind is None or kind.is_random or layer.bodies:
        return False
    if not net.inputs(layer):
        return False
    known = net.memory.setdefault("share-expressions", {})
    key = _key(net, layer)
    other = known.get(key)
    if other is None or other not in net or _key(net, other) != key:
        known[key] = layer
        return False
    if other is layer:
        return False
    pairs = [((layer, i), (other, i)) for i in range(len(layer.outputs))]
    if not all(net.may_replace(*pair) for pair in pairs):
        pairs = [(new, old) for old, new in pairs]
        if not all(net.may_replace(*pair) for pair in pairs):
            return False
        known[key] = layer
    for old, new in pairs:
        net.replace(old, new)
    net.sweep(pairs[0][0][0])
    return True


def _key(net: Rewriter, layer: Layer) -> tuple[object, ...]:
    data = tuple(sorted(layer.data.items()))
    rounded = rounding(net, layer)
    return layer.type, layer.version, data, len(layer.outputs), rounded, tuple(net.inputs(layer))


RULE = Rule("share-expressions", (), _apply)
