"""A document that was read, with what changed in it patched into its text.

The tree is copied and the copy is changed where a record differs from what its element says.
What is printed of it are the elements that changed; all else is cut from the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from xml.parsers import expat

from lxml import etree

from ...schemas import IRError
from ..document import (
    BODIES,
    LAYER_ORDER,
    NET_ORDER,
    PARTS,
    Graph,
    Info,
    Layer,
    Model,
    Port,
    join_names,
    read_back_edges,
    read_dim,
    read_edges,
    read_info,
    read_port_map,
    read_ports,
    split_names,
)
from ..text import attributes_of, escape, escape_text, opening, spelt_tag
from .printer import Placing, Printer, constant_data, edge_attributes, layer_attributes


class Patch:
    """The copy of a tree, and which of its elements are no longer what the source says."""

    def __init__(self, model: Model, places: Placing, pre_process: Info | None) -> None:
        if model.element is None or model.text is None:
            raise ValueError("the model was not read from a document")
        self.places = places
        self.source = model.text
        self.original = model.element
        self.root = deepcopy(self.original)
        self.touched: set[etree._Element] = set()
        # Elements of the copy that can be cut from the source, in the order of the source.
        self.pieces: list[etree._Element] = [
            part
            for child in self.root.iterchildren("*")
            for part in (child, *child.iterchildren("*"))
        ]
        wanted = {"name": model.name, "version": str(model.version)}
        if wanted["name"] == self.root.get("name", ""):
            del wanted["name"]
        if str(model.version) == (self.root.get("version") or "").strip().lstrip("+0"):
            del wanted["version"]
        self.attributes(self.root, attributes_of(self.root) | wanted)
        self.graph(self.root, model)
        for tag, info in (
            ("meta_data", model.meta_data),
            ("quantization_parameters", model.quantization_parameters),
            ("pre-process", pre_process),
        ):
            self.info(self.root, tag, info, NET_ORDER)

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.touched)

    def touch(self, element: etree._Element) -> None:
        """Mark an element, and all that holds it, as changed."""
        node: etree._Element | None = element
        while node is not None and node not in self.touched:
            self.touched.add(node)
            node = node.getparent()

    # Changing the tree.

    def attributes(self, element: etree._Element, wanted: Mapping[str, str]) -> None:
        """Give an element these attributes, in this order."""
        present = attributes_of(element)
        if list(present.items()) == list(wanted.items()):
            return
        self.touch(element)
        # lxml looks each attribute up among all: only what differs is set.
        kept = [key for key in present if key in wanted]
        if kept != list(wanted)[: len(kept)]:
            element.attrib.clear()
            present = {}
        for key in [key for key in present if key not in wanted]:
            del element.attrib[key]
        for key, text in wanted.items():
            escape(text)  # refuses what XML cannot say
            if present.get(key) != text:
                element.set(key, text)

    def graph(self, element: etree._Element, graph: Graph) -> None:
        """Bring ``<layers>``, ``<edges>`` and ``<rt_info>`` up to date."""
        twins: dict[etree._Element, etree._Element] = {}
        if graph.element is not None:
            old, new = graph.element.find("layers"), element.find("layers")
            if old is not None and new is not None:
                pairs = zip(old.iterchildren("layer"), new.iterchildren("layer"), strict=True)
                twins = dict(pairs)
        wanted = []
        for layer in graph.layers:
            # Copies of a model share its tree: a second layer of one element is a new one.
            twin = twins.pop(layer.element, None) if layer.element is not None else None
            if twin is None:
                printer = Printer(self.places)
                printer.layer(layer, depth_of(element) + 2)
                twin = printed(printer)
            else:
                self.layer(twin, layer)
            wanted.append(twin)
        section = self.section(element, "layers", NET_ORDER, bool(wanted))
        if section is not None:
            self.children(section, "layer", wanted)
        self.edges(element, graph)
        self.info(element, "rt_info", graph.rt_info, NET_ORDER)

    def edges(self, element: etree._Element, graph: Graph) -> None:
        """Bring ``<edges>`` up to date; sorted by their origin where they were."""
        if graph.element is not None and not graph.is_rewired:
            return
        section = element.find("edges")
        old = [] if section is None else read_edges(section, None, None)
        new = list(graph.edges)
        if old == new:
            return
        starts = [edge.from_layer for edge in old]
        if starts == sorted(starts):
            new.sort(key=lambda edge: edge.from_layer)
        section = self.section(element, "edges", NET_ORDER, True)
        if section is None:
            return
        left: dict[tuple[int, ...], list[etree._Element]] = {}
        for edge, child in zip(old, section.iterchildren("edge"), strict=True):
            left.setdefault(edge, []).append(child)
        wanted = []
        for edge in new:
            known = left.get(edge)
            wanted.append(known.pop(0) if known else etree.Element("edge", edge_attributes(edge)))
        self.children(section, "edge", wanted)

    def layer(self, element: etree._Element, layer: Layer) -> None:
        """Bring one layer up to date, as far as anybody has looked at it."""
        with layer.at():
            self._layer(element, layer)

    def _layer(self, element: etree._Element, layer: Layer) -> None:
        held = layer.parts_read
        said = {name: element.get(name, "") for name in ("name", "type", "version")}
        if (
            said != {"name": layer.name, "type": layer.type, "version": layer.version}
            or (element.get("id") or "").lstrip(" +0") != str(layer.id).lstrip("0")
            or (
                "output_names" in held
                and not PARTS["output_names"].is_said(layer, layer.output_names)
            )
        ):
            wanted = attributes_of(element)
            wanted.update(layer_attributes(layer))
            if not layer.version and element.get("version") is None:
                wanted.pop("version")
            if layer.output_names is None and layer.type == "Result":
                wanted.pop("output_names", None)
            self.attributes(element, wanted)
        for name in PARTS:
            if name in held or (name == "data" and layer in self.places):
                _PATCHING[name](self, element, layer)

    def layer_info(self, element: etree._Element, layer: Layer) -> None:
        """Bring the ``<rt_info>`` of a layer up to date."""
        self.info(element, "rt_info", layer.rt_info, LAYER_ORDER)

    def back_edges(self, element: etree._Element, layer: Layer) -> None:
        """Bring ``<back_edges>`` up to date."""
        if read_back_edges(element.find("back_edges")) != layer.back_edges:
            printer = Printer(self.places)
            printer.back_edges(layer, depth_of(element) + 1)
            made = printed(printer) if layer.back_edges else None
            self.replace(element, "back_edges", made, LAYER_ORDER)

    def bodies(self, element: etree._Element, layer: Layer) -> None:
        """Bring the graphs inside up to date; one that was read elsewhere is printed anew."""
        for tag in BODIES:
            body, found = layer.bodies.get(tag), element.find(tag)
            if body is None:
                if found is not None:
                    self.replace(element, tag, None, LAYER_ORDER)
            elif found is not None and is_read_from(body, layer, tag):
                self.graph(found, body)
            else:
                printer = Printer(self.places)
                printer.body(tag, body, depth_of(element) + 1)
                self.replace(element, tag, printed(printer), LAYER_ORDER)

    def port_maps(self, element: etree._Element, layer: Layer) -> None:
        """Bring the port maps up to date."""
        for body, tag in BODIES.items():
            found = element.find(tag)
            entries = layer.port_maps.get(body)
            if (None if found is None else read_port_map(found)) == entries:
                continue
            made = None
            if entries is not None:
                printer = Printer(self.places)
                printer.port_map(tag, entries, None, depth_of(element) + 1)
                made = printed(printer)
            self.replace(element, tag, made, LAYER_ORDER)

    def data(self, element: etree._Element, layer: Layer) -> None:
        """Bring ``<data>`` up to date."""
        wanted = constant_data(layer, self.places)
        found = element.find("data")
        if found is not None and not wanted and not found.keys():
            return
        found = self.section(element, "data", LAYER_ORDER, bool(wanted))
        if found is None:
            return
        if wanted:
            self.attributes(found, wanted)
        else:
            self.replace(element, "data", None, LAYER_ORDER)

    def inputs(self, element: etree._Element, layer: Layer) -> None:
        """Bring the input ports up to date."""
        self.ports(element, "input", layer.inputs)

    def outputs(self, element: etree._Element, layer: Layer) -> None:
        """Bring the output ports up to date."""
        self.ports(element, "output", layer.outputs)

    def ports(self, element: etree._Element, tag: str, ports: Sequence[Port]) -> None:
        """Bring ``<input>`` or ``<output>`` up to date."""
        section = element.find(tag)
        old = read_ports(section, outputs=tag == "output")
        if old == list(ports):
            return
        section = self.section(element, tag, LAYER_ORDER, bool(ports))
        if section is None:
            return
        if not ports:
            self.replace(element, tag, None, LAYER_ORDER)
            return
        pairs = zip(old, section.iterchildren("port"), strict=True)
        known = {before.id: (before, child) for before, child in pairs}
        wanted = []
        for port in ports:
            before, twin = known.pop(port.id, (None, None))
            if twin is None or before is None:
                printer = Printer(self.places)
                printer.port(port, port.id, depth_of(section) + 1)
                twin = printed(printer)
            elif before != port:
                self.port(twin, before, port)
            wanted.append(twin)
        self.children(section, "port", wanted)

    def port(self, element: etree._Element, old: Port, new: Port) -> None:
        """Bring one port up to date."""
        present = attributes_of(element)
        own = ("id", "precision", "names")
        wanted: dict[str, str] = {key: present[key] for key in own if key in present}
        if new.precision != old.precision:
            wanted.pop("precision", None)
            if new.precision is not None:
                wanted["precision"] = new.precision
        if new.names != split_names(element.get("names")):
            wanted.pop("names", None)
            if new.names:
                wanted["names"] = join_names(new.names)
        wanted |= new.extra
        order = [key for key in present if key in wanted]
        self.attributes(element, {key: wanted[key] for key in dict.fromkeys([*order, *wanted])})
        if old.dims != new.dims:
            self.touch(element)
            dims = list(element.iterchildren("dim"))
            if len(dims) == len(new.dims):
                for part, size in zip(dims, new.dims, strict=True):
                    if read_dim(part) != size:
                        for aside in part:
                            aside.tail = None
                        part.text = str(size)
            else:
                made = []
                for size in new.dims:
                    made.append(etree.Element("dim"))
                    made[-1].text = str(size)
                self.children(element, "dim", made)
        self.info(element, "rt_info", new.rt_info, ("dim", "rt_info"))

    def info(
        self, parent: etree._Element, tag: str, info: Info | None, order: Sequence[str]
    ) -> None:
        """Bring ``<rt_info>`` or another tree of metadata up to date."""
        found = parent.find(tag)
        if (None if found is None else read_info(found)) == info:
            return
        if found is not None and info is not None:
            self.tree(found, info)
        else:
            self.replace(parent, tag, self.made(info, depth_of(parent) + 1), order)

    def made(self, info: Info | None, depth: int) -> etree._Element | None:
        """A new tree of metadata."""
        if info is None:
            return None
        printer = Printer(self.places)
        printer.info(info, depth)
        return printed(printer)

    def tree(self, element: etree._Element, info: Info) -> None:
        """Bring a tree of metadata up to date; comments stay, and all that is the same."""
        pairs = [(element, info)]
        while pairs:
            element, info = pairs.pop()
            self.attributes(element, info.attributes)
            if (element.text or "").strip() != info.text:
                escape_text(info.text)  # refuses what XML cannot say
                element.text = info.text
                self.touch(element)
            left: dict[tuple[str, str | None], list[etree._Element]] = {}
            for child in element.iterchildren("*"):
                left.setdefault((str(child.tag), child.get("name")), []).append(child)
            wanted = []
            for inner in info.children:
                known = left.get((inner.tag, inner.attributes.get("name")))
                twin = known.pop(0) if known else self.made(inner, depth_of(element) + 1)
                assert twin is not None
                if twin.getparent() is element:
                    pairs.append((twin, inner))
                wanted.append(twin)
            self.children(element, "*", wanted)

    def section(
        self, parent: etree._Element, tag: str, order: Sequence[str], make: bool
    ) -> etree._Element | None:
        """The child of that name, made at its place in the order where it is missing."""
        found = parent.find(tag)
        if found is None and make:
            found = etree.Element(tag)
            self.replace(parent, tag, found, order)
        return found

    def replace(
        self,
        parent: etree._Element,
        tag: str,
        new: etree._Element | None,
        order: Sequence[str],
    ) -> None:
        """Put a child in the place of the one of that name; None takes it out."""
        old = parent.find(tag)
        if old is not None and new is not None:
            new.tail = old.tail
            parent.replace(old, new)
        elif old is not None:
            take_out(old)
        elif new is not None:
            rank = order.index(tag)
            before = None
            for child in parent.iterchildren("*"):
                name = str(child.tag)
                if name not in order or order.index(name) < rank:
                    before = child
            put_in(parent, before, new)
        self.touch(parent)
        if new is not None:
            self.touch(new)

    def children(self, parent: etree._Element, tag: str, wanted: list[etree._Element]) -> None:
        """Give a parent these children of that name, in this order."""
        present = list(parent.iterchildren(tag))
        if present == wanted:
            return
        self.touch(parent)
        keep = set(wanted)
        stay = [child for child in present if child in keep]
        for child in present:
            if child not in keep:
                take_out(child)
        if stay != [child for child in wanted if child.getparent() is parent]:
            for child in stay:  # another order: all are put in anew
                take_out(child)
        before = None
        for child in wanted:
            if child.getparent() is not parent:
                self.touched.add(child)
                put_in(parent, before, child)
            before = child

    # Printing.

    def text(self) -> bytes:
        """The document."""
        spans = find_spans(self.source)
        if spans is None or len(spans) != len(self.pieces) + 1:
            document = etree.tostring(self.root.getroottree(), encoding="unicode")
            return ('<?xml version="1.0"?>\n' + document + "\n").encode()
        encoding = _codec(self.source)
        (begin, finish), *rest = spans
        places = dict(zip(self.pieces, rest, strict=True))
        compact = b" />" not in self.source and b"/>" in self.source
        out = [self.source[:begin]]
        line = self.source.find(b"\n")
        newline = "\r\n" if b"\r" in self.source[max(line - 2, 0) : max(line, 0)] else "\n"

        def say(text: str) -> None:
            out.append(text.replace("\n", newline).encode(encoding, "xmlcharrefreplace"))

        def element(node: etree._Element, depth: int) -> None:
            place = places.get(node)
            if place is not None and node not in self.touched:
                out.append(self.source[place[0] : place[1]])
            elif depth == 2 or not isinstance(node.tag, str):
                say(spell(node, compact))
            else:
                tag, attributes = spelt_tag(node)
                head = opening(tag, attributes)
                if len(node) == 0 and not node.text:
                    say(head + ("/>" if compact else " />"))
                    return
                say(head + ">" + escape_text(node.text or ""))
                for child in node:
                    element(child, depth + 1)
                    if child.tail:
                        say(escape_text(child.tail))
                say(f"</{tag}>")

        element(self.root, 0)
        out.append(self.source[finish:])
        patched = b"".join(out)
        if self.root.nsmap or b"xmlns" in patched:
            refuse_torn(patched)
        return patched


def _said_with_the_name(patch: Patch, element: etree._Element, layer: Layer) -> None:
    """Nothing: output_names is an attribute of ``<layer>`` itself."""


#: What brings each part of a layer up to date.
_PATCHING: dict[str, Callable[[Patch, etree._Element, Layer], None]] = {
    "output_names": _said_with_the_name,
    "data": Patch.data,
    "rt_info": Patch.layer_info,
    "port_maps": Patch.port_maps,
    "back_edges": Patch.back_edges,
    "inputs": Patch.inputs,
    "outputs": Patch.outputs,
    "bodies": Patch.bodies,
}


def printed(printer: Printer) -> etree._Element:
    """What was printed, as an element."""
    return etree.fromstring(printer.text.strip())


def refuse_torn(document: bytes) -> None:
    """Refuse a document whose changed elements lack the namespaces that their names are in."""
    try:
        etree.fromstring(document, etree.XMLParser(huge_tree=True, resolve_entities=False))
    except etree.XMLSyntaxError as error:
        raise IRError(
            f"the edited document would not be XML: {error}",
            hint="take the namespaces (xmlns, names with a prefix) out of it",
        ) from None


def is_read_from(body: Graph, layer: Layer, tag: str) -> bool:
    """Whether a body is the one that was read where it now is."""
    return layer.element is not None and body.element is layer.element.find(tag)


def depth_of(element: etree._Element) -> int:
    """Number of elements around it."""
    return sum(1 for _ in element.iterancestors())


def put_in(parent: etree._Element, before: etree._Element | None, child: etree._Element) -> None:
    """Insert a child after another (None: first), on a line of its own."""
    indent = "\n" + "\t" * (depth_of(parent) + 1)
    child.tail = None
    if before is not None:
        following = before.tail
        before.addnext(child)
        child.tail, before.tail = following, indent
    elif len(parent):
        first = parent.text
        parent.insert(0, child)
        child.tail = first if first and first.isspace() else indent
        parent.text = first if first and first.isspace() else indent
    else:
        parent.text = indent
        parent.append(child)
        child.tail = indent[:-1]


def take_out(child: etree._Element) -> None:
    """Remove a child with its line."""
    parent, before = child.getparent(), child.getprevious()
    if parent is None:
        return
    if child.getnext() is None:
        if before is not None:
            before.tail = child.tail
        else:
            parent.text = None
    parent.remove(child)
    child.tail = None


_TOKEN = re.compile(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<[^>]*>", re.DOTALL)


def spell(element: etree._Element, compact: bool = False) -> str:
    """An element as OpenVINO spells it, its white space as it is."""
    end = "/>" if compact else " />"

    def mend(found: re.Match[str]) -> str:
        tag = found[0]
        if tag[1] in "!?/":
            return tag
        tag = tag.replace("&#9;", "&#09;").replace("&gt;", ">")
        return tag[:-2] + end if tag.endswith("/>") else tag

    text = etree.tostring(element, encoding="unicode", with_tail=False)
    around = element.getparent()
    if around is not None and "xmlns" in text:
        for prefix, uri in around.nsmap.items():
            if element.nsmap.get(prefix) == uri:  # lxml says again what those around it declare
                name = f"xmlns:{prefix}" if prefix else "xmlns"
                text = text.replace(f' {name}="{escape(uri)}"', "", 1)
    return _TOKEN.sub(mend, text)


_START = re.compile(rb"<[^<>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^<>\"']*)*>")


def find_spans(source: bytes) -> list[tuple[int, int]] | None:
    """First and last byte of the root, its children and theirs, in order; None: not found."""
    if _codec(source).startswith("utf-16"):
        return None
    spans: list[list[int]] = []
    open_: list[int] = []
    depth = 0
    parser = expat.ParserCreate()

    def start(_: str, __: Mapping[str, str]) -> None:
        nonlocal depth
        if depth < 3:
            open_.append(len(spans))
            spans.append([parser.CurrentByteIndex, 0])
        depth += 1

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1
        if depth < 3:
            spans[open_.pop()][1] = parser.CurrentByteIndex

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(source, True)
    except (expat.ExpatError, ValueError, LookupError):
        return None
    found = []
    for first, last in spans:
        tag = _START.match(source, first)
        if tag is None:
            return None
        # At the end of <a/> expat says the byte after it, at that of </a> its first byte.
        closed = tag[0].endswith(b"/>")
        found.append((first, tag.end() if closed else source.find(b">", last) + 1))
    return found


def _codec(source: bytes) -> str:
    from ..text import encoding_of

    encoding = encoding_of(source)
    return "utf-8" if encoding == "utf-8-sig" else encoding
