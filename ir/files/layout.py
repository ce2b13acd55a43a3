"""Where the bytes of each constant go in the .bin."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...schemas import ElementType, IRError
from ...schemas.packing import Buffer, pack
from ..document.graph import Graph, Model
from ..document.layer import Layer
from ..document.parts import Info, whole
from .printer import written_order

_Bytes: TypeAlias = NDArray[np.uint8]


class Layout:
    """The pieces of a .bin in order, and what lies where."""

    def __init__(self) -> None:
        self.pieces: list[_Bytes] = []
        self.size = 0
        #: Only the constants that are not where their ``data`` says.
        self.places: dict[Layer, tuple[int, int]] = {}
        self._known: dict[tuple[int, bytes], int] = {}

    def append(self, blob: Buffer) -> int:
        """Put bytes at the end; their offset."""
        piece = np.frombuffer(blob, np.uint8)
        offset = self.size
        self.pieces.append(piece)
        self.size += len(piece)
        return offset

    def share(self, blob: Buffer) -> tuple[int, int]:
        """Offset and size of bytes that are stored once."""
        piece = np.frombuffer(blob, np.uint8)
        key = (len(piece), hashlib.blake2b(piece.data, digest_size=20).digest())
        if key not in self._known:
            self._known[key] = self.append(piece)
        return self._known[key], len(piece)

    def know(self, blob: Buffer, offset: int) -> None:
        """Bytes that are there already."""
        piece = np.frombuffer(blob, np.uint8)
        key = (len(piece), hashlib.blake2b(piece.data, digest_size=20).digest())
        self._known.setdefault(key, offset)

    @property
    def bytes(self) -> bytes:
        """The whole .bin."""
        if len(self.pieces) == 1:
            return self.pieces[0].tobytes()
        return b"".join(piece.tobytes() for piece in self.pieces)


def blob_of(layer: Layer) -> Buffer:
    """The bytes of a constant; those of a file as they are."""
    with layer.at("data"):
        if layer._value is not None:
            kind = layer.element_type
            return pack(layer._value, kind) or b"\0"  # OpenVINO gives an empty one a byte
        blob: Buffer = layer._bytes()
        return blob


def packed(model: Model) -> Layout:
    """All constants in the order of their layers, back to back, equal bytes once."""
    layout = Layout()
    for layer in _written(model):
        if layer.is_constant:
            layout.places[layer] = layout.share(blob_of(layer))
    return layout


def kept(model: Model) -> Layout:
    """The .bin as it was read; constants that changed are found in it or appended."""
    layout = Layout()
    if model.weights is not None and model.weights.size:
        layout.append(model.weights.data)
    changed = [layer for layer in model.everywhere() if layer._value is not None]
    if not changed:
        return layout
    blobs = {layer: np.frombuffer(blob_of(layer), np.uint8) for layer in changed}
    sizes = {len(blob) for blob in blobs.values()}
    for layer in model.everywhere():
        if layer.is_constant and layer._value is None and layer.data.get("size") is not None:
            try:
                size = whole(layer.data["size"], "size")
                if size in sizes:
                    layout.know(layer._bytes(), whole(layer.data["offset"], "offset"))
            except (IRError, KeyError):
                continue  # a constant that nobody could read is no place to share
    for layer, blob in blobs.items():
        at = _own_place(layer, model)
        if at is None or not np.array_equal(model.weights.view(*at), blob):  # type: ignore[union-attr]  # a place is within them
            at = layout.share(blob)
        layout.places[layer] = at
    return layout


def _own_place(layer: Layer, model: Model) -> tuple[int, int] | None:
    """Where the constant was in the file, if it is there."""
    element = layer._element.find("data") if layer._element is not None else None
    if element is None or model.weights is None or layer.model is not model:
        return None
    try:
        offset, size = (whole(element.get(name) or "", name) for name in ("offset", "size"))
        model.weights.check(offset, size)
    except IRError:
        return None
    return offset, size


def moved_images(model: Model, layout: Layout) -> Info | None:
    """The pre-process section with its mean images where the layout puts them."""
    if model.pre_process is None or model.weights is None:
        return model.pre_process
    root = Info("", {}, [model.pre_process])
    copy = Info(root.tag)
    stack = [(root, copy)]
    while stack:
        node, twin = stack.pop()
        for child in node.children:
            made = Info(child.tag, child.attributes, text=child.text)
            if child.tag == "mean" and "offset" in child.attributes:
                at = (whole(child.attributes.get(n, ""), n) for n in ("offset", "size"))
                offset, size = layout.share(model.weights.view(*at))
                made.attributes |= {"offset": str(offset), "size": str(size)}
            twin.children.append(made)
            stack.append((child, made))
    return copy.children[0]


def _written(graph: Graph) -> Iterator[Layer]:
    """Every layer in the order of a written file, bodies after the layer that holds them."""
    stack = [iter(written_order(graph))]
    while stack:
        layer = next(stack[-1], None)
        if layer is None:
            stack.pop()
            continue
        yield layer
        bodies = [layer.bodies[k] for k in ("body", "then_body", "else_body") if k in layer.bodies]
        stack.extend(iter(written_order(body)) for body in reversed(bodies))


__all__ = ["ElementType", "Layout", "blob_of", "kept", "moved_images", "packed"]
