"""IR2xx: the elements of the document, their attributes and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....schemas import ElementType
from ....schemas.printing import shown
from ...document import LARGEST_ID, split_names
from ...text import attributes_of
from . import known
from .loose import (
    ATTRIBUTES,
    CHILDREN,
    NEEDED,
    LooseGraph,
    LooseLayer,
    LooseModel,
    LoosePort,
    whole,
)
from .note import Note, tag

if TYPE_CHECKING:
    from lxml import etree

#: Where an element that stands elsewhere belongs.
_HOMES = {
    "layers": "<net> or a body", "edges": "<net> or a body", "layer": "<layers>",
    "edge": "<edges> or <back_edges>", "data": "<layer>", "input": "<layer> or a port map",
    "output": "<layer> or a port map", "port": "<input> or <output>", "dim": "<port>",
    "port_map": "<layer>", "back_edges": "<layer>", "body": "<layer>",
    "pre-process": "<net>", "net": "the root",
}  # fmt: skip

#: What is lost with a second one; the others are only ignored.
_HEAVY = {
    "layers", "edges", "data", "input", "output", "port_map", "back_edges", "body",
    "then_body", "else_body", "then_port_map", "else_port_map", "pre-process",
}  # fmt: skip


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group."""
    yield from root(model)
    yield from old_names(model)
    for graph in model:
        yield from sections(graph)
        yield from edges(graph)
        yield from names(graph)
        for node in graph.nodes:
            yield from layer(node)
            for pin in node.inputs:
                yield from port(node, pin, outputs=False)
            for pin in node.outputs:
                yield from port(node, pin, outputs=True)


def root(model: LooseModel) -> Iterator[Note]:
    """The attributes of <net>."""
    element = model.root
    if element.tag != "net":
        yield Note(
            "IR202", f"the root element is <{tag(element)}>, IR files have <net>", element,
            hint="write <net>",
        )  # fmt: skip
    yield from attributes(element, "net", None)


def sections(graph: LooseGraph) -> Iterator[Note]:
    """The parts of a graph: each once, all known, at their place."""
    kind = "net" if graph.owner is None else "body"
    owner = graph.owner
    if "layers" not in graph.parts:
        yield Note(
            "IR206", f"<{tag(graph.element)}> has no <layers>", graph.element, owner,
            hint="without layers there is no model",
        )  # fmt: skip
    for name, child in graph.parts.items():
        if name not in CHILDREN[kind]:
            yield from stray(child, kind, owner, list(CHILDREN[kind] - set(graph.parts)))
        elif name in ("layers", "edges"):
            yield from attributes(child, name, owner)
            inner = "layer" if name == "layers" else "edge"
            for part in child:
                if part.tag != inner:
                    yield from stray(part, name, owner, [inner])
                if part.tail and part.tail.strip():
                    yield _text(part.tail, child, owner)
        if child.tail and child.tail.strip():
            yield _text(child.tail, graph.element, owner)
        if child.text and child.text.strip() and name in ("layers", "edges"):
            yield _text(child.text, child, owner)
    for child in graph.extra:
        if child.tag in CHILDREN[kind]:
            yield doubled(child, str(graph.element.tag), owner)
        else:
            yield from stray(child, kind, owner, [])


def _text(text: str, element: etree._Element, node: LooseLayer | None) -> Note:
    return Note(
        "IR116", f"text {shown(text.strip()[:60])} inside <{tag(element)}>, where none belongs",
        element, node, hint="remove it",
    )  # fmt: skip


def doubled(child: etree._Element, parent: str, node: LooseLayer | None) -> Note:
    """A section that stands twice."""
    name = tag(child)
    heavy = name in _HEAVY and (len(child) > 0 or len(child.attrib) > 0)
    lost = "all that stands in it is lost" if heavy else "it is ignored"
    return Note(
        "IR207" if heavy else "IR218", f"a second <{name}> in <{parent}>: {lost}", child, node,
        hint=f"put its content into the first <{name}>",
    )  # fmt: skip


def stray(
    child: etree._Element, parent: str, node: LooseLayer | None, free: list[str]
) -> Iterator[Note]:
    """An element that nobody reads: misspelled, misplaced or unknown."""
    name = tag(child)
    near = known.near(name, free) if free and name not in _HOMES else None
    if near is None and name not in _HOMES:
        near = next((t for t in CHILDREN.get(parent, ()) if t.lower() == name.lower()), None)
    if near is not None:
        yield Note(
            "IR209", f"<{name}> in <{parent}> is not read; <{near}> is probably meant", child,
            node, hint=f"write <{near}>",
        )  # fmt: skip
    elif name in _HOMES:
        yield Note(
            "IR210", f"<{name}> stands in <{parent}> and is not read there", child, node,
            hint=f"it belongs into {_HOMES[name]}",
        )  # fmt: skip
    else:
        yield Note(
            "IR208", f"<{name}> in <{parent}> is not known and is ignored", child, node,
            hint="remove it, or keep such data in <rt_info>",
        )  # fmt: skip


def attributes(
    element: etree._Element, kind: str, node: LooseLayer | None, also: frozenset[str] = frozenset()
) -> Iterator[Note]:
    """The attributes of an element of the structure: those needed, and those not known."""
    present = element.attrib
    allowed = ATTRIBUTES[kind] | also
    needed = [name for name in NEEDED.get(kind, ()) if name not in present]
    if needed or len(present) > len(allowed) or not allowed.issuperset(present):
        yield from odd_attributes(element, f"<{kind}>", allowed, needed, node)


def odd_attributes(
    element: etree._Element,
    what: str,
    allowed: frozenset[str],
    missing: list[str],
    node: LooseLayer | None,
) -> Iterator[Note]:
    """Attributes that are not ``allowed``, and those ``missing`` that none is meant for."""
    present = element.attrib
    spare = [name for name in allowed if name not in present]
    unknown = [str(name) for name in present if name not in allowed][:100]
    for name in unknown:
        near = known.near(name, spare)
        if near is not None:
            missing = [word for word in missing if word != near]
            yield Note(
                "IR213", f"attribute {name} of {what} is not read; {near} is probably meant",
                element, node, name, f"write {near}",
            )  # fmt: skip
        elif name.startswith("{"):
            continue
        else:
            yield Note(
                "IR212", f"attribute {name} of {what} is not known and is ignored", element,
                node, name, "remove it",
            )  # fmt: skip
    for name in missing:
        yield Note("IR211", f"{what} has no attribute {name}", element, node, name, f"add {name}")


def edges(graph: LooseGraph) -> Iterator[Note]:
    """The numbers of the edges."""
    for wire in graph.wires:
        yield from attributes(wire.element, "edge", None)
        if None in wire.numbers:
            for name, text in attributes_of(wire.element).items():
                if name in ATTRIBUTES["edge"]:
                    yield from number(wire.element, str(name), text, "<edge>", None)


def number(
    element: etree._Element, name: str, text: str | None, what: str, node: LooseLayer | None
) -> Iterator[Note]:
    """A whole number of the structure."""
    if text is not None and whole(text) is None:
        yield Note(
            "IR214",
            f"{name}={shown(text)} of {what} is not a whole number from 0 to {LARGEST_ID}",
            element, node, name, "write a plain number",
        )  # fmt: skip


def names(graph: LooseGraph) -> Iterator[Note]:
    """Ids, names and tensor names that stand twice in one graph."""
    ids: dict[int, LooseLayer] = {}
    named: dict[str, LooseLayer] = {}
    tensors: dict[str, LooseLayer] = {}
    for node in graph.nodes:
        if node.id is not None and ids.setdefault(node.id, node) is not node:
            first = ids[node.id]
            yield Note(
                "IR215",
                f"layer id {node.id} is given twice: to {shown(first.name)} ({first.type}, line "
                f"{first.element.sourceline}) and to {shown(node.name)} ({node.type})",
                node.element, node, "id", "give one of them a number that is free",
            )  # fmt: skip
        if node.name and named.setdefault(node.name, node) is not node:
            first = named[node.name]
            yield Note(
                "IR216", f"name {shown(node.name)} is also that of layer {first.id}",
                node.element, node, "name", "names should tell layers apart",
            )  # fmt: skip
        for pin, name in node.names:
            if name in tensors:
                yield Note(
                    "IR217",
                    f"tensor name {shown(name)} is also that of layer {tensors[name].label}",
                    pin.element, node, "names", "OpenVINO renames one of them when reading",
                )  # fmt: skip
            else:
                tensors[name] = node
    yield from handed_out(graph, tensors)


def handed_out(graph: LooseGraph, tensors: dict[str, LooseLayer]) -> Iterator[Note]:
    """Names that Results give to their outputs: each names one tensor only."""
    given: dict[str, tuple[LooseLayer, object]] = {}
    for node in graph.nodes:
        text = node.element.get("output_names")
        if text is None or node.type != "Result":
            continue
        wire = node.sources.get(0)
        feeder = None if wire is None else wire.source
        tensor = node if wire is None else (feeder, wire.source_pin)
        for name in split_names(text):
            first, known_as = given.setdefault(name, (node, tensor))
            if first is node and known_as is tensor and tensors.get(name, feeder) is feeder:
                continue
            if known_as == tensor and tensors.get(name, feeder) is feeder:
                continue  # two Results hand out one tensor
            other = first if first is not node else tensors.get(name, node)
            yield Note(
                "IR217", f"output name {shown(name)} is also that of layer {other.label}",
                node.element, node, "output_names", "OpenVINO renames one of them when reading",
            )  # fmt: skip


def old_names(model: LooseModel) -> Iterator[Note]:
    """In version 10 the names of inputs and outputs become tensor names, and must be free."""
    if model.version != 10:
        return
    tensors: dict[str, tuple[LooseLayer, LoosePort | None]] = {}
    for node in model.main.nodes:
        for pin, name in node.names:
            tensors.setdefault(name, (node, pin))  # later ones of the same name are renamed
    ends: dict[int, int] = {}
    end: LoosePort | None
    for node in model.main.nodes:
        named, end = node, node.outputs[0] if node.outputs else None
        if node.type == "Result":
            wire = node.sources.get(0)
            if wire is None or wire.source is None:
                continue
            named, end = wire.source, wire.source_pin
        elif node.type != "Parameter":
            continue
        ends[id(end)] = ends.get(id(end), 0) + 1
        held = [name for other, name in named.names if other is end]
        if end is not None and held and ends[id(end)] == 2:
            yield Note(
                "IR240",
                f"tensor {shown(held[0])} is an input or output of the model more than once, "
                "which in version 10 it may only be without names",
                end.element, named, "names", "leave the names out: it goes by that of its layer",
            )  # fmt: skip
        owner, port = tensors.get(named.name, (named, None))
        if owner is not named and port is not None:
            yield Note(
                "IR240",
                f"tensor name {shown(named.name)} is also the name of layer {named.label}, which "
                "becomes a tensor name in version 10",
                port.element, owner, "names", "rename one of them",
            )  # fmt: skip


def layer(node: LooseLayer) -> Iterator[Note]:
    """A layer's own attributes and the elements in it."""
    element = node.element
    legacy = frozenset({"precision"}) if node.graph.model.version == 10 else frozenset[str]()
    yield from attributes(element, "layer", node, legacy)
    if node.id is None:
        yield from number(element, "id", element.get("id"), "<layer>", node)
    if element.text and element.text.strip():
        yield _text(element.text, element, node)
    for child in element:
        if child.tail and child.tail.strip():
            yield _text(child.tail, element, node)
    for child in node.extra:
        if child.tag in CHILDREN["layer"]:
            yield doubled(child, "layer", node)
        else:
            free = [t for t in ("data", "input", "output", "rt_info", "port_map", "back_edges",
                                "body") if t not in node.parts]  # fmt: skip
            yield from stray(child, "layer", node, free)
    for side in ("input", "output"):
        section = node.parts.get(side)
        if section is None:
            continue
        yield from attributes(section, side, node)
        for child in section:
            if child.tag != "port":
                yield from stray(child, side, node, ["port"])
        if section.text and section.text.strip():
            yield _text(section.text, section, node)
        seen: dict[int, LoosePort] = {}
        for pin in node.inputs if side == "input" else node.outputs:
            if pin.id is not None and seen.setdefault(pin.id, pin) is not pin:
                yield Note(
                    "IR222", f"two {side} ports have the id {pin.id}", pin.element, node, "id",
                    "number the ports one by one",
                )  # fmt: skip
    if node.data_element is not None:
        for child in node.data_element:
            yield from stray(child, "data", node, [])
        text = node.data_element.text
        if text and text.strip():
            yield _text(text, node.data_element, node)


def port(node: LooseLayer, pin: LoosePort, *, outputs: bool) -> Iterator[Note]:
    """One port: its id, precision and sizes."""
    element = pin.element
    present = element.attrib
    if len(present) > 3 or not ATTRIBUTES["port"].issuperset(present) or "id" not in present:
        yield from attributes(element, "port", node)
    if pin.id is None:
        yield from number(element, "id", element.get("id"), "<port>", node)
    for child in element:
        if child.tag not in ("dim", "rt_info"):
            yield from stray(child, "port", node, ["dim"])
        elif child.tail and child.tail.strip():
            yield _text(child.tail, element, node)
    if element.text and element.text.strip():
        yield _text(element.text, element, node)
    if pin.dims and pin.sizes is None:
        yield from dims(node, pin)
    yield from precision(node, pin, outputs)


def dims(node: LooseLayer, pin: LoosePort) -> Iterator[Note]:
    """Sizes that are no numbers."""
    for child in pin.element.iterchildren("dim"):
        text = (child.text or "").strip()
        if whole(text, least=-1) is not None:
            continue
        yield Note(
            "IR219", f"<dim> of port {pin.id} says {shown(text)}, allowed are -1 and up", child,
            node, hint="write a whole number, -1 where it is not known",
        )  # fmt: skip


def precision(node: LooseLayer, pin: LoosePort, outputs: bool) -> Iterator[Note]:
    """The element type of a port."""
    text = pin.precision
    if text is None:
        if outputs and not any(name.lower() == "precision" for name in pin.element.attrib):
            yield Note(
                "IR220", f"output port {pin.id} has no precision", pin.element, node,
                "precision", 'add precision, such as precision="FP32"',
            )  # fmt: skip
        return
    try:
        ElementType.parse_port(text)
    except ValueError as error:
        code = "IR220" if outputs else "IR221"
        near = known.near(text, [kind.port for kind in ElementType])
        hint = f"write {near}" if near else None
        yield Note(
            code, f"precision of port {pin.id}: {error}", pin.element, node, "precision", hint
        )
