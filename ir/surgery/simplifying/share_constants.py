"""Constants of equal type, shape and bytes → one constant, where they are read alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...document import Layer
from ...storage import WHOLE, digest_of, same_bytes, sample_of
from .readings import reading
from .rewriter import Rewriter, Rule


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
        own = key(net, layer)
        held = known.get(own)
        if held is None or (isinstance(held, Layer) and held not in net):
            known[own] = layer
            return None
        if isinstance(held, Layer):
            # A sample of few bytes has all of them.
            whole = level == 1 and len(own) < WHOLE
            if whole or (level and same_bytes(held.blob, layer.blob)):
                return held
            known[own] = held = {_KEYS[level + 1](net, held): held}
        known = held
    raise AssertionError("the last key tells constants apart")


def _kind(net: Rewriter, layer: Layer) -> tuple[Any, ...]:
    """Type and sizes, of which a constant's bytes are as many as another's, and who reads them."""
    return net.kind((layer, 0)), net.shape((layer, 0)), reading(net, layer)


def _sample(net: Rewriter, layer: Layer) -> bytes:
    return sample_of(layer.blob)


def _print(net: Rewriter, layer: Layer) -> bytes:
    """What tells the bytes of a constant from others of its type and shape."""
    blob = layer.blob
    return b"" if len(blob) < WHOLE else digest_of(blob)


_KEYS: tuple[Callable[[Rewriter, Layer], Any], ...] = (_kind, _sample, _print)

RULE = Rule("share-constants", ("Const",), _apply)
