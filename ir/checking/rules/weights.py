"""IR5xx: constants and the bytes of the .bin. Nothing is read that need not be."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from ....schemas import ElementType, IRError
from ....schemas.packing import unpack
from ....schemas.printing import shown
from ...document import bin_hint
from ...storage import LFS_HINT, Weights
from .loose import LooseLayer, LooseModel, whole
from .note import Note

#: Values are looked at in constants up to so many bytes, and in so many bytes of all of them.
_LOOKED_AT = 1 << 20
#: Strings are decoded where there are no more than this.
_STRINGS = 100_000


class Extent(NamedTuple):
    """The bytes a constant names."""

    begin: int
    end: int
    node: LooseLayer


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group."""
    extents: list[Extent] = []
    budget = 0 if model.weights is None else model.weights.looked_at
    missing: list[Extent] = []
    for node in model.nodes:
        if node.type not in ("Const", "Constant"):
            continue
        shape = sizes(node)
        yield from shape_notes(node)
        extent = _extent(node)
        if "value" in node.data:
            yield from inline(node, shape)
            continue
        if extent is None:
            continue
        extents.append(extent)
        size = extent.end - extent.begin
        kind = element_type(node)
        yield from size_notes(node, kind, shape, size)
        if model.weights is None:
            missing.append(extent)
        elif not model.weights.reaches(extent.end):
            yield short(node, extent, model.weights, model)
        elif kind is ElementType.STRING and shape is not None and prod(shape) > _STRINGS:
            yield from strings(node, shape, extent, model.weights)
        elif size <= min(_LOOKED_AT, budget) and kind is not None and shape is not None:
            budget -= size
            yield from values(node, kind, shape, extent, model)
    yield from absent(missing, model)
    yield from unaligned(extents)
    yield from overlaps(extents)
    yield from unused(extents, model)


def element_type(node: LooseLayer) -> ElementType | None:
    """The element type a constant's data names."""
    try:
        return ElementType.parse(node.data["element_type"])
    except (KeyError, ValueError):
        return None


def sizes(node: LooseLayer) -> tuple[int, ...] | None:
    """The shape a constant's data names."""
    text = node.data.get("shape")
    if text is None:
        return () if node.data.get("element_type") == "string" else None
    fields = text.split(",")
    if not fields[-1].strip():
        fields.pop()
    found = [whole(field.strip(), least=-(2**63)) for field in fields]
    numbers = [size for size in found if size is not None]
    return tuple(numbers) if len(numbers) == len(fields) else None


def _extent(node: LooseLayer) -> Extent | None:
    begin, size = (whole(node.data.get(name)) for name in ("offset", "size"))
    return None if begin is None or size is None else Extent(begin, begin + size, node)


def shape_notes(node: LooseLayer) -> Iterator[Note]:
    """Sizes and numbers that a constant cannot have."""
    for name in ("offset", "size"):
        text = node.data.get(name)
        if text is not None and whole(text) is None and text.strip().lstrip("+-").isdigit():
            blank = whole(text.strip()) is not None
            wrong = "ends in blanks" if blank else "is not within 0 to 2^63 - 1"
            yield Note(
                "IR501", f"{name}={shown(text)} of a constant {wrong}", node.data_element, node,
                name, f'write {name}="{text.strip()}"' if blank else "write the number of bytes",
            )  # fmt: skip
    shape = sizes(node)
    if shape is None:
        return
    if any(size < 0 for size in shape):
        yield Note(
            "IR502", f"shape {list(shape)} of a constant has a negative size", node.data_element,
            node, "shape", "the sizes of a constant are known: write them",
        )  # fmt: skip
    elif prod(shape) > 2**63 - 1 or any(size > 2**63 - 1 for size in shape):
        yield Note(
            "IR503", f"shape {list(shape)[:8]} of a constant has {prod(shape)} elements, which do "
            "not fit 64 bits", node.data_element, node, "shape",
        )  # fmt: skip
    if element_type(node) is ElementType.DYNAMIC:
        yield Note(
            "IR504", f"element_type={shown(node.data['element_type'])} of a constant: its bytes "
            "have no meaning", node.data_element, node, "element_type", "write one such as f32",
        )  # fmt: skip


def least_bytes(kind: ElementType | None, shape: tuple[int, ...] | None) -> int | None:
    """Bytes that the elements take; None where that cannot be said."""
    if kind is None or shape is None or kind.is_dynamic or kind is ElementType.STRING:
        return None
    if any(size < 0 for size in shape):
        return None
    return kind.nbytes(prod(shape))


def size_notes(
    node: LooseLayer, kind: ElementType | None, shape: tuple[int, ...] | None, size: int
) -> Iterator[Note]:
    """The size that is named against the one that type and shape take."""
    needed = least_bytes(kind, shape)
    if needed is None or shape is None:
        return
    what = f"{kind}{list(shape)}" if len(shape) < 9 else f"{kind} of {len(shape)} axes"
    if size < needed:
        yield Note(
            "IR505", f"{what} takes {needed} bytes, size says {size}: {needed - size} too few",
            node.data_element, node, "size", f'write size="{needed}" if the bytes are there',
        )  # fmt: skip
    elif size > max(needed, 1):
        yield Note(
            "IR506",
            f"{what} takes {needed} bytes, size says {size}: {size - needed} are not read",
            node.data_element, node, "size", f'write size="{needed}", or mend the shape',
        )  # fmt: skip


def short(node: LooseLayer, extent: Extent, held: Weights, model: LooseModel) -> Note:
    """Bytes that the file does not have."""
    lacking = extent.end - max(held.size, extent.begin)
    has, hint = (
        (f"is a Git LFS pointer of {held.size} bytes", LFS_HINT)
        if held.is_pointer
        else (
            f"has {held.size}: {lacking} are missing",
            "the .bin belongs to another model or was cut: copy it again with its .xml",
        )
    )
    reads = model.reads(node)
    return Note(
        "IR507" if reads else "IR516",
        f"bytes {extent.begin} to {extent.end} are needed, the .bin {has}"
        + ("" if reads else " (OpenVINO leaves this constant out)"),
        node.data_element, node, "offset", hint,
    )  # fmt: skip


def absent(extents: list[Extent], model: LooseModel) -> Iterator[Note]:
    """A model without .bin: told once, at the first constant that needs it."""
    needed = [extent for extent in extents if model.reads(extent.node)]
    if not extents:
        return
    first = (needed or extents)[0]
    place = f"; looked for {model.place}" if model.place else ""
    end = max(extent.end for extent in extents)
    yield Note(
        "IR508" if needed else "IR517",
        f"there is no .bin, {len(extents)} constants need {end} bytes of it{place}",
        first.node.data_element, first.node, "offset",
        bin_hint(model.place),
    )  # fmt: skip


def inline(node: LooseLayer, shape: tuple[int, ...] | None) -> Iterator[Note]:
    """A constant whose bytes stand in the document."""
    held = len(node.data["value"].encode())
    needed = least_bytes(element_type(node), shape)
    if needed is not None and held < needed:
        yield Note(
            "IR505", f"value holds {held} bytes, element type and shape take {needed}",
            node.data_element, node, "value", "put the bytes into the .bin",
        )  # fmt: skip


def values(
    node: LooseLayer, kind: ElementType, shape: tuple[int, ...], extent: Extent, model: LooseModel
) -> Iterator[Note]:
    """What the bytes say, where that can be wrong."""
    if model.weights is None:
        return
    raw = model.weights.view(extent.begin, extent.end - extent.begin)
    if kind is ElementType.STRING:
        if all(size >= 0 for size in shape):
            try:
                unpack(raw, kind, shape)
            except IRError as error:
                yield Note(
                    "IR509", f"block of strings: {error.message}", node.data_element, node,
                    "offset", "OpenVINO reads beyond the block: write the constant again",
                )  # fmt: skip
        return
    needed = least_bytes(kind, shape)
    if needed is None or needed > raw.size:
        return
    raw = raw[:needed]
    if kind is ElementType.BOOLEAN:
        odd = int(np.count_nonzero(raw > 1))
        if odd:
            at = int(np.argmax(raw > 1))
            yield Note(
                "IR510", f"{odd} of {needed} booleans are neither 0 nor 1, the first is "
                f"{int(raw[at])} at byte {extent.begin + at}", node.data_element, node, "offset",
                "the offset may be wrong",
            )  # fmt: skip
    elif kind in (ElementType.F32, ElementType.F64, ElementType.F16):
        array = raw.view(kind.dtype)
        finite = int(np.count_nonzero(np.isfinite(array)))
        if finite < array.size:
            nans = int(np.count_nonzero(np.isnan(array)))
            yield Note(
                "IR511", f"{array.size} values, of which {nans} are NaN and "
                f"{array.size - finite - nans} infinite", node.data_element, node, "offset",
            )  # fmt: skip


def strings(
    node: LooseLayer, shape: tuple[int, ...], extent: Extent, held: Weights
) -> Iterator[Note]:
    """The head of a block of strings too many to be looked at: how many it says it holds."""
    if any(size < 0 for size in shape):
        return
    size, wanted = extent.end - extent.begin, prod(shape)
    count = int(held.view(extent.begin, 4).view("<i4")[0]) if size >= 4 else 0
    least = 4 * (wanted + 2)  # the count, and where each string begins and the last one ends
    if count != wanted or size < least:
        yield Note(
            "IR509", f"block of strings: it holds {count} in {size} bytes, the shape says "
            f"{wanted}: {least} bytes at least", node.data_element, node, "shape",
            "OpenVINO reads beyond the block: write the constant again",
        )  # fmt: skip


def unaligned(extents: list[Extent]) -> Iterator[Note]:
    """Constants whose bytes do not begin at a multiple of their element's size: told once."""
    found = [
        extent
        for extent in extents
        if (kind := element_type(extent.node)) is not None
        and kind.bits > 8
        and extent.begin % (kind.bits // 8)
    ]
    if found:
        first = found[0]
        yield Note(
            "IR515",
            f"{len(found)} of {len(extents)} constants are not aligned to their elements; "
            f"this one begins at {first.begin}", first.node.data_element, first.node, "offset",
        )  # fmt: skip


def overlaps(extents: list[Extent]) -> Iterator[Note]:
    """Constants that share some of their bytes, but not all."""
    row = sorted((e for e in extents if e.end > e.begin), key=lambda e: (e.begin, -e.end))
    widest: Extent | None = None
    for extent in row:
        apart = widest is None or (extent.begin, extent.end) == (widest.begin, widest.end)
        if widest is not None and not apart and extent.begin < widest.end:
            shared = min(extent.end, widest.end) - extent.begin
            yield Note(
                "IR512",
                f"bytes {extent.begin} to {extent.end} overlap those of layer "
                f"{widest.node.label} ({widest.begin} to {widest.end}) by {shared}",
                extent.node.data_element, extent.node, "offset",
                "one of the two offsets or sizes is probably wrong",
            )  # fmt: skip
        if widest is None or extent.end > widest.end:
            widest = extent


def _meant(extent: Extent) -> int:
    """The end of the bytes a constant needs, should the size it names be too small."""
    shape = sizes(extent.node)
    return max(extent.end, extent.begin + (least_bytes(element_type(extent.node), shape) or 0))


def unused(extents: list[Extent], model: LooseModel) -> Iterator[Note]:
    """Bytes at the end of the .bin that no constant names."""
    if model.weights is None or model.weights.is_pointer:
        return
    held = model.weights.size
    images = [whole(element.get("offset")) for element in model.root.iterchildren("pre-process")]
    if any(image is not None for image in images) or "pre-process" in model.main.parts:
        return
    end = max((_meant(extent) for extent in extents), default=0)
    if held == 1 and not extents:
        return  # some releases write a byte where there is nothing to write
    if held > end and not any(extent.end > held for extent in extents):
        yield Note(
            "IR513",
            f"the .bin has {held} bytes, constants use {end}: {held - end} at its end are unused",
            model.main.parts.get("layers", model.root),
            hint="the .bin may belong to another model; vinoir copy --repack drops them",
        )  # fmt: skip
