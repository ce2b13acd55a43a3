"""IR23x: metadata (rt_info and older forms), and the pre-process section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....schemas import ElementType
from ....schemas.printing import shown
from ...document import axis_names
from . import known
from .loose import LooseLayer, LooseModel, whole
from .note import Note, tag

if TYPE_CHECKING:
    from lxml import etree

#: Known and read; known and refused.
_READ = frozenset(
    {"fused_names", "primitives_priority", "decompression", "layout", "old_api_map_order",
     "old_api_map_element_type", "memory_type", "preprocessing", "precise",
     "DisablePrecisionConversion"}
)  # fmt: skip
#: Those with values that OpenVINO reads at once, and what to write.
_VALUES = {
    "old_api_map_order": 'write the axes in their order, such as "0,3,1,2", or remove it',
    "old_api_map_element_type": "write one such as f16, or remove it",
}
_REFUSED = frozenset({"DisableConstantFolding", "nms_selected_indices", "strides_propagation"})


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group."""
    if model.version != 10:  # version 10 has none
        for node in model.nodes:
            section = node.parts.get("rt_info")
            if section is not None:
                yield from entries(section, node)
            for pin in (*node.inputs, *node.outputs):
                if len(pin.element) > len(pin.dims):
                    rank = len(pin.sizes) if pin.sizes else None
                    for child in pin.element.iterchildren("rt_info"):
                        yield from entries(child, node, rank)
    for graph in model:
        section = graph.parts.get("rt_info")
        if section is not None and model.version != 10:
            yield from keys(section)
    yield from legacy(model)
    found = model.main.parts.get("pre-process")
    if found is not None:
        yield from preprocess(model, found)


def entries(section: etree._Element, node: LooseLayer, rank: int | None = None) -> Iterator[Note]:
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
            if name and seen.setdefault(name, child) is not child:
                yield Note(
                    "IR239", f"{shown(name)} stands twice in rt_info: one of the two is lost",
                    child, node, "name", "remove one",
                )  # fmt: skip
            continue
        if seen.setdefault(name, child) is not child:
            yield Note(
                "IR231", f"rt_info attribute {name} is given twice, OpenVINO refuses the model",
                child, node, "name", "remove one",
            )  # fmt: skip
        if name == "layout":
            yield from layout(child, node, rank)
        elif name in _VALUES and not _readable(name, child.get("value")):
            yield Note(
                "IR243", f"value={shown(child.get('value') or '')} of rt_info attribute {name} "
                f"makes OpenVINO refuse the model", child, node, "value", _VALUES[name],
            )  # fmt: skip
        if child.get("version", "0") != "0":
            yield Note(
                "IR232", f"rt_info attribute {name} version {shown(child.get('version'))} is not "
                "known and is ignored", child, node, "version",
            )  # fmt: skip


def _readable(name: str, value: str | None) -> bool:
    """Whether OpenVINO takes the value of an attribute of `_VALUES`; it takes none at all."""
    if value is None:
        return True
    if name == "old_api_map_order":  # what follows a number, up to the comma, is not looked at
        fields = value.removesuffix(",").split(",") if value else []
        found = [re.match(r"\s*0*([0-9]{1,20})(?![0-9])", field) for field in fields]
        return all(number is not None and int(number[1]) < 2**64 for number in found)
    try:
        return ElementType.parse(value) is not None
    except ValueError:
        return False


def keys(section: etree._Element) -> Iterator[Note]:
    """Further information of a model: each key once on its level."""
    for element in section.iter("*"):
        seen: dict[str, etree._Element] = {}
        for child in element:
            name = child.get("name") if child.tag in ("info", "attribute") else None
            first = seen.setdefault(name or tag(child), child)
            if first is not child:
                yield Note(
                    "IR239", f"{shown(name or tag(child))} stands twice in <{tag(element)}> of "
                    f"rt_info, first in line {first.sourceline}: one of the two is lost", child,
                    hint="remove one",
                )  # fmt: skip


def layout(child: etree._Element, node: LooseLayer, rank: int | None) -> Iterator[Note]:
    """The layout of a port: names of its axes."""
    text = child.get("layout") or ""
    try:
        names = axis_names(text)
    except ValueError as problem:
        yield Note(
            "IR241", f"layout={shown(text)}: {problem}", child, node, "layout",
            'write one such as "NCHW", "[N,C,H,W]", "N?..." or "..."',
        )  # fmt: skip
        return
    if "..." not in names and rank is not None and len(names) != rank:
        yield Note(
            "IR242", f"layout={shown(text)} names {len(names)} axes, the port has {rank}", child,
            node, "layout", "name each axis, or write ... for those that do not matter",
        )  # fmt: skip


def legacy(model: LooseModel) -> Iterator[Note]:
    """Metadata as older tools wrote it."""
    section = model.main.parts.get("meta_data")
    if section is None or "rt_info" in model.main.parts:
        return
    for child in section:
        if child.tag != "cli_parameters" and child.get("value") is None:
            yield Note(
                "IR233", f"<{tag(child)}> in <meta_data> has no value, OpenVINO refuses the model",
                child, hint="add value, or move it into <rt_info>",
            )  # fmt: skip


def preprocess(model: LooseModel, section: etree._Element) -> Iterator[Note]:
    """Mean values and images that are subtracted from an input."""
    parameters = [node for node in model.main.nodes if node.type == "Parameter"]
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
            yield from mean(model, part)
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


def count_of_channels(parameters: list[LooseLayer], name: str | None) -> int | None:
    """The channels of the input that is prepared; None where they are not known."""
    shapes = {node.name: pin.sizes for node in parameters for pin in node.outputs[:1]}
    if name is not None:
        sizes = shapes.get(name)
    else:
        sizes = next((s for s in shapes.values() if s is not None and len(s) == 4), None)
    return sizes[1] if sizes is not None and len(sizes) == 4 and sizes[1] >= 0 else None


def mean(model: LooseModel, part: etree._Element) -> Iterator[Note]:
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
            held = model.weights
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
