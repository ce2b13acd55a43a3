"""How large constants are."""

from __future__ import annotations

from math import prod

from ..document import Layer


def elements(constant: Layer) -> int:
    """The elements of a constant, as it says."""
    return prod(constant.sizes)


def constant_bytes(layer: Layer, count: int) -> int:
    """The bytes a constant takes in the .bin."""
    text = layer.data.get("size", "")
    return int(text) if text.isdecimal() and len(text) < 19 else layer.element_type.nbytes(count)


__all__ = ["constant_bytes", "elements"]
