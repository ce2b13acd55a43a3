"""The records of an old document: layers with their ports, attributes and blobs, and edges.

What the old readers did, and these do: ports count by the rank of their ids; a port without a
precision has its layer's, a layer without one that of its first output; the element with the
attributes has one of several names; the weights are in ``<blobs>`` or, in v2, directly in the
layer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import ParamSpec, TypeVar

from lxml import etree

from ....schemas import IRError, Where
from ...document import whole
from ...text import at, attributes_of, text_of

T = TypeVar("T")
P = ParamSpec("P")

#: Names of the element with the attributes, for layers that do not call it ``data``.
DATA_NAMES = {
    "fullyconnected": ("fc", "fc_data", "data"),
    "innerproduct": ("fc", "fc_data", "data"),
    "lrn": ("lrn", "norm", "norm_data", "data"),
    "norm": ("lrn", "norm", "norm_data", "data"),
    "crop": ("crop", "crop-data", "data"),
    "batchnormalization": ("batch_norm", "batch_norm_data", "data"),
    "eltwise": ("elementwise", "elementwise_data", "data"),
    "activation": ("data", "activation_data"),
}

#: Precisions of ports, layers and blobs; FP16 is computed in f32, as every old CPU plug-in did.
PRECISIONS = (
    "FP32", "FP16", "I64", "I32", "I16", "Q78", "U64", "U16", "U8", "BOOL", "I8", "BIN",
    "UNSPECIFIED", "MIXED",
)  # fmt: skip

#: Sizes of a port were 32 bits wide.
LARGEST_DIM = 2**32 - 1


@dataclass(slots=True)
class OldPort:
    """One ``<port>``."""

    id: int
    precision: str | None
    dims: tuple[int, ...]
    element: etree._Element


@dataclass(slots=True)
class Blob:
    """A range of the .bin; its shape is the layer's knowledge."""

    name: str
    offset: int
    size: int
    precision: str | None


@dataclass(slots=True)
class OldLayer:
    """One ``<layer>``."""

    element: etree._Element
    id: int
    name: str
    type: str
    precision: str | None
    where: Where
    attributes: dict[str, str] = field(default_factory=dict)
    #: The children of the element with the attributes, which Crop may have.
    parts: list[dict[str, str]] = field(default_factory=list)
    inputs: list[OldPort] = field(default_factory=list)
    outputs: list[OldPort] = field(default_factory=list)
    blobs: dict[str, Blob] = field(default_factory=dict)

    def output_precision(self, index: int) -> str | None:
        """The precision of an output: the port's, else the layer's."""
        return self.output(index).precision or self.precision

    def output(self, index: int) -> OldPort:
        """An output port."""
        if index >= len(self.outputs):
            raise IRError(
                f"{self.type} gives output {index}, the layer has {len(self.outputs)} outputs"
            )
        return self.outputs[index]


@dataclass(slots=True)
class OldEdge:
    """One ``<edge>``, by the ids of the file."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    element: etree._Element


@dataclass(slots=True)
class Reading:
    """How a document is read: its version, its bytes for places, and who hears of faults."""

    version: int
    file: str | None
    #: None where the places of all faults are found together, afterwards: each needs a parser.
    text: bytes | None
    #: Called with each error; it raises where the first one ends the reading.
    report: Callable[[IRError, etree._Element], None]

    def place(self, element: etree._Element) -> Where:
        """The place of an element that is no layer."""
        return Where(self.file, element.sourceline)

    def guard(
        self,
        element: etree._Element,
        where: Where,
        act: Callable[P, T],
        *given: P.args,
        **named: P.kwargs,
    ) -> T | None:
        """What ``act`` gives; None where it failed, which is reported with the place."""
        try:
            with at(where, self.text, element):
                return act(*given, **named)
        except IRError as error:
            self.report(error, element)
            return None


@dataclass
class OldGraph:
    """``<layers>`` and ``<edges>`` of the network or of a body."""

    layers: list[OldLayer] = field(default_factory=list)
    edges: list[OldEdge] = field(default_factory=list)
    by_id: dict[int, OldLayer] = field(default_factory=dict)
    by_name: dict[str, OldLayer] = field(default_factory=dict)


def read_graph(root: etree._Element, reading: Reading, precision: str | None) -> OldGraph:
    """The layers and edges of the network, or of a body."""
    graph = OldGraph()
    section = root.find("layers")
    for element in () if section is None else section.iterchildren("layer"):
        where = _layer_place(element, reading)
        layer = reading.guard(element, where, _one_more, graph, element, where, precision)
        if layer is not None:
            graph.layers.append(layer)
            graph.by_id[layer.id] = graph.by_name[layer.name] = layer
    section = root.find("edges")
    for element in () if section is None else section.iterchildren("edge"):
        edge = reading.guard(element, reading.place(element), read_edge, element)
        if edge is not None:
            graph.edges.append(edge)
    return graph


def _one_more(
    graph: OldGraph, element: etree._Element, where: Where, precision: str | None
) -> OldLayer:
    """A layer whose id and name no other has."""
    layer = read_layer(element, where, precision)
    if layer.id in graph.by_id:
        raise IRError(f'layer "{graph.by_id[layer.id].name}" has the id {layer.id}, too')
    if layer.name in graph.by_name:
        raise IRError(f'layer {graph.by_name[layer.name].id} has the name "{layer.name}", too')
    return layer


def _layer_place(element: etree._Element, reading: Reading) -> Where:
    text = element.get("id") or ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    return Where(
        reading.file, element.sourceline, None, number, element.get("name"), element.get("type"),
        f"v{reading.version}",
    )  # fmt: skip


def read_layer(element: etree._Element, where: Where, default: str | None) -> OldLayer:
    """A layer's record; ``default`` is the precision of the network."""
    texts = {name: element.get(name) for name in ("id", "name", "type")}
    missing = [name for name, text in texts.items() if text is None]
    if missing:
        raise IRError(f"<layer> has no {' and no '.join(missing)}")
    kind = texts["type"] or ""
    layer = OldLayer(
        element,
        whole(texts["id"] or "", "layer id"),
        texts["name"] or "",
        kind,
        read_precision(element.get("precision")) or default,
        where,
    )
    if element.get("precision") == "MIXED":
        raise IRError('precision of a layer is "MIXED", which only <net> may say')
    layer.inputs = read_ports(element.find("input"))
    layer.outputs = read_ports(element.find("output"))
    if layer.precision is None:
        said = (port.precision for port in layer.outputs)
        layer.precision = next((precision for precision in said if precision), None)
    data = _data(element, kind)
    if data is not None:
        layer.attributes = attributes_of(data)
        layer.parts = [attributes_of(part) for part in data.iterchildren("crop")]
    for blob in _blobs(element):
        layer.blobs[blob.name] = blob
    return layer


def _data(element: etree._Element, kind: str) -> etree._Element | None:
    """The element with the attributes: the first of its names that is there."""
    lower = kind.lower()
    names = DATA_NAMES.get(lower, ("data", f"{lower}_data", lower))
    for child_name in names:
        for child in element.iterchildren("*"):
            if child.tag == child_name:
                return child
    return None


def _blobs(element: etree._Element) -> Iterator[Blob]:
    for child in element.iterchildren("biases", "weights"):
        yield from _blob(child)
    section = element.find("blobs")
    for child in () if section is None else section.iterchildren("*"):
        yield from _blob(child)


def _blob(element: etree._Element) -> Iterator[Blob]:
    """The range that an element names; of no bytes is no blob."""
    name = str(element.tag)
    size = whole(element.get("size", "0"), f"size of <{name}>")
    offset = whole(element.get("offset", "0"), f"offset of <{name}>")
    if size:
        yield Blob(name, offset, size, read_precision(element.get("precision")))


def read_ports(section: etree._Element | None) -> list[OldPort]:
    """Ports by rank of their ids."""
    ports: dict[int, OldPort] = {}
    for child in () if section is None else section.iterchildren("port"):
        text = child.get("id")
        if text is None:
            raise IRError("a port has no id")
        number = whole(text, "port id")
        if number in ports:
            raise IRError(f"two ports of one side have the id {number}")
        dims = tuple(_dim(text_of(part)) for part in child.iterchildren("dim"))
        ports[number] = OldPort(number, read_precision(child.get("precision")), dims, child)
    return [ports[number] for number in sorted(ports)]


def ranks_of(ports: list[OldPort]) -> dict[int, int]:
    """The ranks of ports by their ids."""
    return {port.id: rank for rank, port in enumerate(ports)}


def first_ids(ports: Collection[int]) -> str:
    """The ids of ports for a message, of many the first."""
    return ", ".join(map(str, islice(ports, 12))) + (", ..." if len(ports) > 12 else "")


def _dim(text: str) -> int:
    number = whole(text, "a dim")
    if not 1 <= number <= LARGEST_DIM:
        raise IRError(f"a dim is {number}, allowed are 1 to {LARGEST_DIM}")
    return number


def read_precision(text: str | None) -> str | None:
    """A precision as it is spelt, None where there is none."""
    if not text:
        return None
    if text not in PRECISIONS:
        raise IRError(f'"{text[:40]}" is not a precision; known are {", ".join(PRECISIONS)}')
    return None if text in ("UNSPECIFIED", "MIXED") else text


def read_edge(element: etree._Element) -> OldEdge:
    """An edge's four numbers."""
    numbers = []
    for name in ("from-layer", "from-port", "to-layer", "to-port"):
        text = element.get(name)
        if text is None:
            raise IRError(f"an edge has no {name}")
        numbers.append(whole(text, f"{name} of an edge"))
    giver, given, taker, taken = numbers
    return OldEdge(giver, given, taker, taken, element)
