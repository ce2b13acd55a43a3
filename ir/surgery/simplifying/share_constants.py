"""Constants of equal type, shape and bytes → one constant."""

from __future__ import annotations

import hashlib
from typing import Any

from ...document import Layer
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    if not layer.has_value or not net.users(layer):
        return False
    memory = net.memory.setdefault("share-constants", {})
    known = memory.setdefault("of", {})
    key: tuple[Any, ...] = (layer.element_type, layer.sizes)
    alike = known.setdefault(key, {})
    if layer in alike:
        return False
    # Most are the only ones of their type and shape, and are not read.
    alike[layer] = None
    if len(alike) == 1:
        return False
    prints = memory.setdefault("prints", {})
    own = _print(layer, prints)
    for other in alike:
        if other is not layer and other in net and _print(other, prints) == own:
            del alike[layer]
            return net.replace((layer, 0), (other, 0))
    return False


def _print(layer: Layer, prints: dict[Layer, object]) -> object:
    """What tells the bytes of a constant from others."""
    if layer not in prints:
        blob = layer.blob
        prints[layer] = bytes(blob) if len(blob) <= 64 else hashlib.sha256(blob).digest()
    return prints[layer]


RULE = Rule("share-constants", ("Const",), _apply)
