"""IR23x: further information, and how inputs are prepared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import known
from .note import Note, shown, tag
from .sheet import Node, Sheet, whole

if TYPE_CHECKING:
    from lxml import etree

#: Known and read; known and refused.
_READ = frozenset(
    {"fused_names", "primitives_priority", "decompression", "layout", "old_api_map_order",
     "old_api_map_element_type", "memory_type", "preprocessing", "precise",
     "DisablePrecisionConversion"}
)  # fmt: skip
_REFUSED = frozenset({"DisableConstantFolding", "nms_selected_indices", "strides_propagation"})


def rules(sheet: Sheet) -> Iterator[Note]:
    """Everything of this group."""
    if sheet.version != 10:  # version 10 has none
        for node in sheet.nodes:
            section = node.parts.get("rt_info")
            if section is not None:
                yield from entries(section, node)
            for pin in (*node.inputs, *node.outputs):
                if len(pin.element) > len(pin.dims):
                    for child in pin.element.iterchildren("rt_info"):
                        yield from entries(child, node)
    yield from legacy(sheet)
    found = sheet.main.parts.get("pre-process")
    if found is not None:
        yield from preprocess(sheet, found)


def entries(section: etree._Element, node: Node) -> Iterator[Note]:
    """The attributes that OpenVINO reads of a layer or port."""
    seen: dict[str, etree._Element] = {}
    for child in section.iterchildren("attribute"):
        name = child.get("name") or ""
        if name in _REFUSED:
            yield Note(
                "IR230", f"rt_info attribute {name} makes OpenVINO refuse the whole model", child,
                node, "name", "remove it",
            )  # fmt: skip
        if name not in _READ:
            continue
        if seen.setdefault(name, child) is not child:
            yield Note(
                "IR231", f"rt_info attribute {name} is given twice, OpenVINO refuses the model",
                child, node, "name", "remove one",
            )  # fmt: skip
        if child.get("version", "0") != "0":
            yield Note(
                "IR232", f"rt_info attribute {name} version {shown(child.get('version'))} is not "
                "known and is ignored", child, node, "version",
            )  # fmt: skip


def legacy(sheet: Sheet) -> Iterator[Note]:
    """Metadata as older tools wrote it."""
    section = sheet.main.parts.get("meta_data")
    if section is None or "rt_info" in sheet.main.parts:
        return
    for child in section:
        if child.tag != "cli_parameters" and child.get("value") is None:
            yield Note(
                "IR233", f"<{tag(child)}> in <meta_data> has no value, OpenVINO refuses the model",
                child, hint="add value, or move it into <rt_info>",
            )  # fmt: skip


def preprocess(sheet: Sheet, section: etree._Element) -> Iterator[Note]:
    """Mean values and images that are subtracted from an input."""
    parameters = [node for node in sheet.main.nodes if node.type == "Parameter"]
    name = section.get("reference-layer-name")
    if name is not None and all(node.name != name for node in parameters):
        near = known.near(name, [node.name for node in parameters])
        yield Note(
            "IR234", f"reference-layer-name={shown(name)} is no Parameter", section, None,
            "reference-layer-name", f"did you mean {near}?" if near else None,
        )  # fmt: skip
    seen: dict[str, etree._Element] = {}
    for channel in section.iterchildren("channel"):
        number = channel.get("id")
        if number is None or whole(number) is None:
            yield Note("IR211", "<channel> has no id that is a whole number", channel, None, "id")
        elif seen.setdefault(number.strip(), channel) is not channel:
            yield Note(
                "IR235", f"channel {number} is given twice, another one stays at 0", channel, None,
                "id",
            )  # fmt: skip
        for part in channel:
            yield from mean(sheet, part)
    channels = count_of_channels(parameters, name)
    if seen and channels is not None and len(seen) != channels:
        yield Note(
            "IR235", f"{len(seen)} channels, the input has {channels}: OpenVINO refuses the model",
            section, None, "reference-layer-name",
        )  # fmt: skip
    numbers = sorted(whole(number) or 0 for number in seen)
    if numbers and numbers != list(range(len(numbers))):
        yield Note(
            "IR235", f"channels are {', '.join(map(str, numbers))}, without gaps they are 0 to "
            f"{len(numbers) - 1}", section,
        )  # fmt: skip


def count_of_channels(parameters: list[Node], name: str | None) -> int | None:
    """The channels of the input that is prepared; None where they are not known."""
    shapes = {node.name: pin.sizes for node in parameters for pin in node.outputs[:1]}
    if name is not None:
        sizes = shapes.get(name)
    else:
        sizes = next((s for s in shapes.values() if s is not None and len(s) == 4), None)
    return sizes[1] if sizes is not None and len(sizes) == 4 and sizes[1] >= 0 else None


def mean(sheet: Sheet, part: etree._Element) -> Iterator[Note]:
    """One part of a channel."""
    if part.tag == "scale":
        yield Note(
            "IR236", "<scale> is ignored by OpenVINO: inputs are not scaled", part,
            hint="multiply in the graph instead",
        )  # fmt: skip
    elif part.tag == "mean":
        offset, size = whole(part.get("offset")), whole(part.get("size"))
        if part.get("value") is not None:
            try:
                float(part.get("value") or "")
            except ValueError:
                yield Note(
                    "IR237", f"mean value {shown(part.get('value'))} is not a number", part, None,
                    "value",
                )  # fmt: skip
        elif offset is not None and size is not None:
            held = sheet.weights
            if held is None or offset + size > held.size:
                has = "there is none" if held is None else f"the .bin has {held.size} bytes"
                yield Note(
                    "IR238", f"a mean image takes bytes {offset} to {offset + size}, {has}"
                    + ("; OpenVINO crashes" if held is None else ""), part, None, "offset",
                )  # fmt: skip
        else:
            yield Note("IR237", "<mean> has neither a value nor offset and size", part)
    else:
        yield Note("IR208", f"<{tag(part)}> in <channel> is not read", part)
