"""The parts of a layer in the order of a file: in which elements each is, and how it is read.

That table is what reading, comparing, printing and patching go by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..text import attributes_of
from .attributes import Attributes
from .parts import (
    BackEdge,
    Info,
    Port,
    PortMap,
    read_back_edges,
    read_info,
    read_port_map,
    read_ports,
)
from .ports import Ports

if TYPE_CHECKING:
    from lxml import etree

#: The layer whose parts they are; this file knows it by what it offers.
Layer: TypeAlias = Any

#: The bodies a layer may have, and the element that wires each to the layer's ports.
BODIES: dict[str, str] = {
    "body": "port_map",
    "then_body": "then_port_map",
    "else_body": "else_port_map",
}
#: The types of layers that have bodies, and which.
BODIES_OF: dict[str, tuple[str, ...]] = {
    "TensorIterator": ("body",),
    "Loop": ("body",),
    "If": ("then_body", "else_body"),
}


class Part(NamedTuple):
    """A part of a layer: its elements, how it is read from its layer's element, and compared."""

    tags: tuple[str, ...]
    read: Callable[[etree._Element, Layer], Any]
    #: What the part is where the layer was made in memory and has no element.
    empty: Callable[[], Any]
    #: Whether an element says what is held; None: if the same would be read from it.
    says: Callable[[etree._Element, Any], bool] | None = None

    def is_said(self, layer: Layer, held: Any) -> bool:
        """Whether the element that a layer was read from says what the layer now holds."""
        if layer.element is None:
            return False
        if self.says is not None:
            return self.says(layer.element, held)
        return bool(self.read(layer.element, layer) == held)


def child(element: etree._Element, tag: str) -> etree._Element | None:
    """The first child of that name; ``find`` is several times slower."""
    return next(element.iterchildren(tag), None)


def _output_names(element: etree._Element, layer: Layer) -> str | None:
    return element.get("output_names") if layer.type == "Result" else None


def _data(element: etree._Element, layer: Layer) -> Attributes:
    found = child(element, "data")
    return Attributes({} if found is None else attributes_of(found))


def _says_data(element: etree._Element, held: dict[str, str]) -> bool:
    found = child(element, "data")
    said = {} if found is None else attributes_of(found)
    return list(held.items()) == list(said.items())


def _rt_info(element: etree._Element, layer: Layer) -> Info | None:
    found = child(element, "rt_info")
    return None if found is None else read_info(found)


def _port_maps(element: etree._Element, layer: Layer) -> dict[str, PortMap]:
    found = {body: child(element, tag) for body, tag in BODIES.items()}
    return {
        body: read_port_map(e, layer.exact_place) for body, e in found.items() if e is not None
    }


def _back_edges(element: etree._Element, layer: Layer) -> list[BackEdge]:
    with layer.at("back_edges"):
        return read_back_edges(child(element, "back_edges"))


def _inputs(element: etree._Element, layer: Layer) -> list[Port]:
    with layer.at("input"):
        return Ports(layer, read_ports(child(element, "input"), outputs=False))


def _outputs(element: etree._Element, layer: Layer) -> list[Port]:
    with layer.at("output"):
        return Ports(layer, read_ports(child(element, "output"), outputs=True))


def _bodies(element: etree._Element, layer: Layer) -> dict[str, Any]:
    first: dict[str, etree._Element] = {}
    for body in element.iterchildren(*BODIES):
        first.setdefault(str(body.tag), body)
    return {tag: layer.body_of(first[tag], layer) for tag in BODIES if tag in first}


def _says_bodies(element: etree._Element, held: dict[str, Any]) -> bool:
    """Whether the bodies are those of the element; not what is in them."""
    return all(
        (held[tag].element if tag in held else None) is child(element, tag) for tag in BODIES
    )


#: By the name of the layer's property.
PARTS: dict[str, Part] = {
    "output_names": Part((), _output_names, lambda: None),
    "data": Part(("data",), _data, Attributes, _says_data),
    "rt_info": Part(("rt_info",), _rt_info, lambda: None),
    "port_maps": Part(("else_port_map", "then_port_map", "port_map"), _port_maps, dict),
    "back_edges": Part(("back_edges",), _back_edges, list),
    "inputs": Part(("input",), _inputs, list),
    "outputs": Part(("output",), _outputs, list),
    "bodies": Part(("body", "then_body", "else_body"), _bodies, dict, _says_bodies),
}

#: The elements of a layer in the order of a file.
LAYER_ORDER = tuple(tag for part in PARTS.values() for tag in part.tags)
#: Those of a net; a body has the first two and rt_info.
NET_ORDER = (
    "layers", "edges", "pre-process", "rt_info", "meta_data", "quantization_parameters"
)  # fmt: skip
