"""Where the bytes of each constant go in the .bin.

A model that was read keeps its .bin as long as all constants are what they were. When a constant
changed, came or went, the bytes that are still used keep their order, a new value stands where the
constant's former one stood, and bytes that no constant uses are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...schemas import IRError, UnsupportedError
from ...schemas.packing import Buffer
from ..document import Graph, Info, Layer, Model, Readings, Ways, ways_of, whole
from ..storage import WHOLE, Weights, digest_of, sample_of
from .printer import written_order

_Bytes: TypeAlias = NDArray[np.uint8]
#: Offset and size of bytes in a .bin.
Range: TypeAlias = "tuple[int, int]"


#: Size and sample or digest of bytes, and how products read them.
_Key: TypeAlias = "tuple[int, bytes, Ways]"
_NONE: Ways = frozenset()


class _Reads:
    """How products read constants: OpenVINO takes bytes of one place as the first reads them."""

    def __init__(self) -> None:
        self._graphs: dict[Graph, Readings | None] = {}
        self._ways: dict[Layer, Ways] = {}

    def __call__(self, constant: Layer) -> Ways:
        ways = self._ways.get(constant)
        if ways is None:
            ways = self._ways[constant] = ways_of(self._graphs, constant)
        return ways


class Layout:
    """The pieces of a .bin in order, and what lies where."""

    def __init__(self) -> None:
        self.pieces: list[_Bytes] = []
        self.size = 0
        #: Only the constants that are not where their ``data`` says.
        self.places: dict[Layer, Range] = {}
        #: The section in which mean images say where they are.
        self.pre_process: Info | None = None
        #: Whether there is no .bin: the model was read without one, and no constant is new.
        self.absent = False
        #: What is wrong with constants whose bytes are not there.
        self.missing: list[IRError] = []
        #: The .bin that was read, where it is to be written as it is.
        self.read: Weights | None = None
        #: Where pieces are that no other was like so far, by their sizes and samples.
        self._first: dict[_Key, tuple[Buffer, int] | None] = {}
        #: Where the others are, by their sizes and digests: most need none.
        self._known: dict[_Key, int] = {}

    def append(self, blob: Buffer) -> int:
        """Put bytes at the end; their offset."""
        piece = np.frombuffer(blob, np.uint8)
        offset = self.size
        self.pieces.append(piece)
        self.size += len(piece)
        return offset

    def share(self, blob: Buffer, ways: Ways = _NONE) -> Range:
        """Offset and size of bytes that are stored once for each way to read them."""
        size = len(blob)
        offset = self._find(blob, ways)
        if offset is None:
            offset = self.append(blob)
            self._note(blob, ways, offset)
        return offset, size

    def know(self, blob: Buffer, ways: Ways, offset: int) -> None:
        """Note bytes that the .bin has already, so that they are shared."""
        if self._find(blob, ways) is None:
            self._note(blob, ways, offset)

    def _find(self, blob: Buffer, ways: Ways) -> int | None:
        """The offset of bytes that are stored."""
        sample = len(blob), sample_of(blob), ways
        if sample not in self._first:
            return None
        first = self._first[sample]
        if first is not None:
            if len(blob) < WHOLE:
                return first[1]
            self._known[_key(first[0], ways)] = first[1]
            self._first[sample] = None
        return self._known.get(_key(blob, ways))

    def _note(self, blob: Buffer, ways: Ways, offset: int) -> None:
        """Remember where bytes are that were not found."""
        sample = len(blob), sample_of(blob), ways
        if sample in self._first:
            self._known[_key(blob, ways)] = offset
        else:
            self._first[sample] = blob, offset

    @property
    def bytes(self) -> bytes:
        """The whole .bin."""
        if len(self.pieces) == 1:
            return self.pieces[0].tobytes()
        return b"".join(piece.tobytes() for piece in self.pieces)

    @property
    def weights(self) -> Weights | None:
        """This .bin as the weights of a model."""
        if self.absent or self.read is not None:
            return self.read
        return Weights(self.bytes)


def packed(model: Model) -> Layout:
    """All constants in the order of their layers, back to back, equal bytes once."""
    _refuse_unknown_holder(model)
    layout, reads = Layout(), _Reads()
    for layer in model.everywhere(written_order):
        if layer.is_constant:
            layout.places[layer] = layout.share(layer.blob, reads(layer))
    held = model.weights
    if held is None:
        layout.pre_process = model.pre_process
        layout.absent = model.source is not None and not layout.places
    else:
        layout.pre_process = _moved_images(model, lambda at: layout.share(held.view(*at)))
    return layout


def as_read(model: Model) -> Layout:
    """The .bin that was read."""
    layout = Layout()
    layout.pre_process = model.pre_process
    layout.read, layout.absent = model.weights, model.weights is None
    if model.weights is not None and model.weights.size:
        layout.append(model.weights.data)
    return layout


def edited(model: Model, keep_unused: bool = False) -> Layout:
    """The .bin of a model that was read and changed; ``keep_unused``: with all that was in it."""
    uses = _Uses(model)
    held = model.weights
    if not uses.changed and (held is None or not uses.leave_some or uses.missing):
        layout = as_read(model)
    elif held is None or keep_unused or uses.missing or _unknown_holder(model) is not None:
        layout = _appended(model, uses)
    else:
        layout = _compacted(model, held, uses)
    layout.missing = uses.missing
    return layout


class _Uses:
    """Which bytes of the .bin that was read a model still uses."""

    def __init__(self, model: Model) -> None:
        #: Constants with a new value, and where their bytes stood before.
        self.changed: dict[Layer, Range | None] = {}
        #: Where the bytes of the other constants are.
        self.kept: dict[Layer, Range] = {}
        self.missing: list[IRError] = []
        was = _ranges_read(model)
        for layer in model.everywhere():
            if not layer.is_constant:
                continue
            if layer.has_new_value:
                self.changed[layer] = was.get(layer.element)
                continue
            if "value" in layer.data:
                continue
            try:
                self.kept[layer] = layer.byte_range
                layer.blob  # noqa: B018  # an error where bytes are missing
            except IRError as error:
                self.missing.append(error)
        self.images: list[Range] = []
        if model.weights is not None:
            try:
                for image in _images(model):
                    model.weights.check(*image)
                    self.images.append(image)
            except IRError as error:
                self.missing.append(error)
        #: Whether bytes are no longer used that were used before.
        self.leave_some = not set(was.values()) <= {*self.kept.values(), *self.images}

    @property
    def ranges(self) -> list[Range]:
        """All ranges that are used, without empty ones."""
        return [(offset, size) for offset, size in (*self.kept.values(), *self.images) if size]


def _ranges_read(model: Model) -> dict[object, Range]:
    """Where the document that was read says that the bytes of its constants are, by element."""
    found: dict[object, Range] = {}
    held = model.weights
    if model.element is None or held is None:
        return found
    for element in model.element.iter("layer"):
        data = element.find("data") if element.get("type") == "Const" else None
        if data is not None and data.get("value") is None:
            try:
                at = tuple(whole(data.get(name) or "", name) for name in ("offset", "size"))
                held.check(*at)
                found[element] = at[0], at[1]
            except IRError:
                continue  # bytes that are not there cannot be left out
    return found


def _appended(model: Model, uses: _Uses) -> Layout:
    """The .bin as it was read; new values are found in it or stand after it."""
    layout, reads = as_read(model), _Reads()
    layout.read, layout.absent = None, False
    blobs = {layer: np.frombuffer(layer.blob, np.uint8) for layer in uses.changed}
    for layer in _of_sizes(uses, blobs.values()):
        layout.know(layer.blob, reads(layer), uses.kept[layer][0])
    for layer, blob in blobs.items():
        was = uses.changed[layer]
        same = was is not None and np.array_equal(model.weights.view(*was), blob)  # type: ignore[union-attr]  # the place is in it
        if was is not None and same:
            layout.places[layer] = was
        else:
            layout.places[layer] = layout.share(blob, reads(layer))
    return layout


def _compacted(model: Model, held: Weights, uses: _Uses) -> Layout:
    """The bytes that are used, in the order in which they stood; new values in their places."""
    layout, reads = Layout(), _Reads()
    blobs = {layer: np.frombuffer(layer.blob, np.uint8) for layer in uses.changed}
    stored = {
        _key(layer.blob, reads(layer)): uses.kept[layer]
        for layer in _of_sizes(uses, blobs.values())
    }
    parts: list[tuple[float, Layer | None, _Bytes]] = [
        (start, None, held.view(start, end - start)) for start, end in _merged(uses.ranges)
    ]
    for layer, was in uses.changed.items():
        parts.append((inf if was is None else was[0], layer, blobs[layer]))
    starts: list[int] = []
    moved: list[int] = []
    for place, new, piece in sorted(parts, key=lambda part: part[0]):
        if new is None:
            starts.append(int(place))
            moved.append(layout.append(piece))
        elif _key(piece, reads(new)) not in stored:
            layout.places[new] = layout.share(piece, reads(new))

    def now(at: Range) -> Range:
        if not at[1]:
            return min(at[0], layout.size), 0
        span = bisect_right(starts, at[0]) - 1
        return moved[span] + at[0] - starts[span], at[1]

    for layer, blob in blobs.items():
        if layer not in layout.places:
            layout.places[layer] = now(stored[_key(blob, reads(layer))])
    for layer, at in uses.kept.items():
        if now(at) != at:
            layout.places[layer] = now(at)
    layout.pre_process = _moved_images(model, now)
    return layout


def _of_sizes(uses: _Uses, blobs: Iterable[_Bytes]) -> list[Layer]:
    """The kept constants that have as many bytes as one of these, and so may be equal to it."""
    sizes = {len(blob) for blob in blobs}
    return [layer for layer, (_, size) in uses.kept.items() if size in sizes]


def _merged(ranges: Iterable[Range]) -> list[tuple[int, int]]:
    """First byte and end of each stretch of ranges that overlap or touch."""
    spans: list[tuple[int, int]] = []
    for offset, size in sorted(ranges):
        if spans and offset <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], offset + size)
        else:
            spans.append((offset, offset + size))
    return spans


def _key(blob: Buffer, ways: Ways) -> _Key:
    """Size and digest, by which equal bytes are found."""
    return np.frombuffer(blob, np.uint8).size, digest_of(blob), ways


def _unknown_holder(model: Model) -> Layer | None:
    """A layer of a type that is not known, whose attributes may point into the .bin."""
    for layer in model.everywhere():
        if not layer.is_constant and {"offset", "size"} <= layer.data.keys() and layer.op is None:
            return layer
    return None


def _refuse_unknown_holder(model: Model) -> None:
    layer = _unknown_holder(model)
    if layer is not None and model.weights is not None:
        raise UnsupportedError(
            f'its offset="{layer.data["offset"]}" and size="{layer.data["size"]}" may point into '
            "the .bin, which is to be laid out anew; what they mean is not known",
            layer.where,
            "write it without repacking",
        )


def _images(model: Model) -> Iterator[Range]:
    """Where the mean images of the pre-process section are."""
    stack = [] if model.pre_process is None else [model.pre_process]
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        if node.tag == "mean" and "offset" in node.attributes:
            yield _image(node)


def _image(node: Info) -> Range:
    offset, size = (whole(node.attributes.get(name, ""), name) for name in ("offset", "size"))
    return offset, size


def _moved_images(model: Model, place: Callable[[Range], Range]) -> Info | None:
    """The pre-process section with its mean images where they are now."""
    if model.pre_process is None:
        return None
    root = Info("", {}, [model.pre_process])
    copy = Info(root.tag)
    stack = [(root, copy)]
    while stack:
        node, twin = stack.pop()
        for child in node.children:
            made = Info(child.tag, child.attributes, text=child.text)
            if child.tag == "mean" and "offset" in child.attributes:
                offset, size = place(_image(child))
                made.attributes |= {"offset": str(offset), "size": str(size)}
            twin.children.append(made)
            stack.append((child, made))
    return copy.children[0]


__all__ = ["Layout", "as_read", "edited", "packed"]
