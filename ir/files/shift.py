"""A document whose constants lie elsewhere in the .bin."""

from __future__ import annotations

from contextlib import suppress

from ...schemas import IRError
from ..document import Info, whole
from .patch import Patch
from .reader import loads


def shifted(xml: bytes, distance: int) -> bytes:
    """The document with every offset into the .bin moved by some bytes."""
    model = loads(xml, need_weights=False, lenient=True)
    for layer in model.everywhere():
        if layer.is_constant and "offset" in layer.data:
            with suppress(IRError):  # one that is no number is nobody's: it stays as it is
                offset = whole(layer.data["offset"], "offset")
                layer.data = layer.data | {"offset": str(offset + distance)}
    stack: list[Info] = [model.pre_process] if model.pre_process is not None else []
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        if node.tag == "mean" and "offset" in node.attributes:
            offset = whole(node.attributes["offset"], "offset")
            node.attributes["offset"] = str(offset + distance)
    return Patch(model, {}, model.pre_process).text()
