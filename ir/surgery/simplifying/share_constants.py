"""Constants of equal type, shape and bytes → one constant."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from ...storage import digest_of
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    if not layer.has_value or not net.users(layer):
        return False
    groups = net.memory.setdefault("share-constants", {})
    alike = groups.setdefault((layer.element_type, layer.sizes), _Alike())
    if layer in alike.seen:
        return False
    alike.seen.add(layer)
    # Most are the only ones of their type and shape, and are not read.
    if alike.first is None:
        alike.first = layer
        return False
    if not alike.by_print and alike.first in net:
        alike.by_print[_print(alike.first)] = alike.first
    own = _print(layer)
    other = alike.by_print.get(own)
    if other is None or other not in net:
        alike.by_print[own] = layer
        return False
    return net.replace((layer, 0), (other, 0))


class _Alike:
    """The constants of one type and shape."""

    def __init__(self) -> None:
        self.seen: set[Layer] = set()
        self.first: Layer | None = None
        #: By what tells their bytes from others; empty while there is but one.
        self.by_print: dict[bytes, Layer] = {}


def _print(layer: Layer) -> bytes:
    """What tells the bytes of a constant from others of its type and shape."""
    piece = np.frombuffer(layer.blob, np.uint8)
    return piece.tobytes() if len(piece) <= 64 else digest_of(piece)


RULE = Rule("share-constants", ("Const",), _apply)
