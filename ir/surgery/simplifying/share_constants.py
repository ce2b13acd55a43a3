"""Constants of equal type, shape and bytes → one constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...document import Layer
from ...storage import blocks, digest_of
from .rewriter import Rewriter, Rule

#: Bytes that are looked at before all of them are, from so many places.
_SAMPLE, _PLACES = 16, 4


def _apply(net: Rewriter, layer: Layer) -> bool:
    memory = net.memory.setdefault("share-constants", {"seen": set(), "alike": {}})
    if layer in memory["seen"] or not layer.has_value or not net.users(layer):
        return False
    memory["seen"].add(layer)
    other = _equal(net, layer, memory["alike"])
    return other is not None and net.replace((layer, 0), (other, 0))


def _equal(net: Rewriter, layer: Layer, known: dict[Any, Any]) -> Layer | None:
    """A constant that is equal, of those that are known; where there is none, it is known now.

    Where two are alike by one key, the next tells them apart: most bytes are never looked at.
    """
    for level, key in enumerate(_KEYS):
        own = key(layer)
        held = known.get(own)
        if held is None or (isinstance(held, Layer) and held not in net):
            known[own] = layer
            return None
        if isinstance(held, Layer):
            if level and _same(held, layer):
                return held
            known[own] = held = {_KEYS[level + 1](held): held}
        known = held
    raise AssertionError("the last key tells constants apart")


def _same(one: Layer, other: Layer) -> bool:
    """Whether two constants hold the same bytes."""
    pairs = zip(*(blocks(np.frombuffer(x.blob, np.uint8)) for x in (one, other)), strict=True)
    return all(np.array_equal(left, right) for left, right in pairs)


def _sample(layer: Layer) -> bytes:
    """Some of the bytes of a constant; of a small one all."""
    piece = np.frombuffer(layer.blob, np.uint8)
    if len(piece) <= _SAMPLE * _PLACES:
        return piece.tobytes()
    starts = [(len(piece) - _SAMPLE) * number // (_PLACES - 1) for number in range(_PLACES)]
    return b"".join(piece[start : start + _SAMPLE].tobytes() for start in starts)


def _print(layer: Layer) -> bytes:
    """What tells the bytes of a constant from others of its type and shape."""
    piece = np.frombuffer(layer.blob, np.uint8)
    return b"" if len(piece) <= _SAMPLE * _PLACES else digest_of(piece)


_KEYS: tuple[Callable[[Layer], Any], ...] = (
    lambda layer: (layer.element_type, layer.sizes), _sample, _print
)  # fmt: skip

RULE = Rule("share-constants", ("Const",), _apply)
