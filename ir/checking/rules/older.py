"""IR95x: files of before 2020, whose layers are upgraded when they are read."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from ...document import bin_hint
from ...files import NEWER, VERSIONS, examine, names_opsets, newer
from ...storage import Weights
from ...text import Source
from .loose import whole
from .note import Note
from .portability import Release, spelled

#: The finding that each kind of remark is.
CODES = {
    "changed": "IR951",
    "missing": "IR952",
    "unlike": "IR953",
    "wrong": "IR954",
    "ignored": "IR955",
}

#: The last release that read them.
LAST = (2020, 4)


def rules(
    source: Source,
    held: Weights | None,
    file: str | None,
    bin_place: str | None,
    target: Release | None,
) -> Iterator[Note]:
    """What upgrading the document tells."""
    root = source.root
    version = None if root is None else whole(root.get("version"))
    if root is None or version is None or version not in VERSIONS:
        return
    if names_opsets(root):
        yield Note("IR954", newer(version), root, None, "version", NEWER)
        return
    yield Note(
        "IR204", f"IR version {version} was written by OpenVINO 2020.4 or before, and dropped in "
        "2021.1", root, None, "version",
        "vinoir upgrades it on reading; vinoir convert writes it as version 11",
    )  # fmt: skip
    if target is not None and target > LAST:
        yield Note(
            "IR901", f"OpenVINO {spelled(target)} does not read IR version {version}", root, None,
            "version", "vinoir convert writes it as version 11",
        )  # fmt: skip
    if held is None:
        yield from absent(root, bin_place)
    for remark in examine(root, version, file, held).remarks:
        element = root if remark.element is None else remark.element
        yield Note(CODES[remark.kind], remark.message, element, hint=remark.hint)


def absent(root: etree._Element, place: str | None) -> Iterator[Note]:
    """A document without .bin: told once, at the first layer that needs it."""
    ends = {}
    for layer in root.iter("layer"):
        blobs = layer.xpath("weights|biases|blobs/*")
        for blob in blobs if isinstance(blobs, list) else ():
            if isinstance(blob, etree._Element) and (size := whole(blob.get("size"))):
                ends[blob] = (layer, (whole(blob.get("offset")) or 0) + size)
    if not ends:
        return
    first = next(iter(ends.values()))[0]
    looked = f"; looked for {place}" if place else ""
    end = max(end for _, end in ends.values())
    yield Note(
        "IR956", f"there is no .bin, {len(ends)} blobs need {end} bytes of it{looked}", first,
        hint=bin_hint(place),
    )  # fmt: skip
