"""A document as loose records, which take whatever the file says: model, graph, layer, port, edge.

Where the reader of models stops at the first wrong thing, here a wrong value is None, and a
rule that looks at the text says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ....layers.base import Op
from ....schemas import ANY, ElementType, IRError, Shape, Tensor, Where
from ....schemas.shapes import MOST_AXES
from ...document import BODIES, LARGEST_ID, NET_ORDER, split_names
from ...files import loads
from ...text import attributes_of
from . import known

if TYPE_CHECKING:
    from lxml import etree

    from ...document import Model
    from ...storage import Weights
    from .note import Note

#: What each element may hold, which attributes it may have and which it needs: what the records
#: of ``schemas.document`` say, and a test compares. It is written again because importing the
#: records takes a tenth of the time of a small check.
CHILDREN = {
    "net": frozenset(NET_ORDER),
    "layers": frozenset({"layer"}),
    "edges": frozenset({"edge"}),
    "layer": frozenset(
        {"data", "rt_info", "input", "output", "back_edges", *BODIES, *BODIES.values()}
    ),
    "input": frozenset({"port"}),
    "output": frozenset({"port"}),
    "port": frozenset({"dim", "rt_info"}),
    "body": frozenset({"layers", "edges", "rt_info"}),
    "port_map": frozenset({"input", "output"}),
    "back_edges": frozenset({"edge"}),
    "data": frozenset[str](),
}  # fmt: skip
EDGE = ("from-layer", "from-port", "to-layer", "to-port")
NEEDED = {
    "layer": ("id", "name", "type", "version"),
    "edge": EDGE,
    "port": ("id",),
    "net": ("version",),
}
ATTRIBUTES = {
    "net": frozenset({"name", "version"}),
    "layer": frozenset({"id", "name", "type", "version", "output_names"}),
    "port": frozenset({"id", "precision", "names"}),
    "edge": frozenset(EDGE),
    "layers": frozenset[str](),
    "edges": frozenset[str](),
    "input": frozenset[str](),
    "output": frozenset[str](),
    "dim": frozenset[str](),
    "back_edges": frozenset[str](),
}

#: Layers that are wanted for themselves.
SINKS = ("Result", "Assign")


def whole(text: str | None, least: int = 0) -> int | None:
    """A whole number of the structure; None where it is none, or out of range."""
    if text is None:
        return None
    if text.isdigit() and text.isascii() and len(text) < 19:
        return int(text)  # below 10^18, and least is never above 0
    digits = text.lstrip(" \t\r\n")
    digits = digits[1:] if digits[:1] in "+-" else digits
    if not (digits.isascii() and digits.isdigit() and len(digits) < 40):
        return None
    number = int(text)
    return number if least <= number <= LARGEST_ID else None


class LoosePort:
    """One port."""

    __slots__ = ("dims", "element", "id", "index", "precision", "sizes")

    def __init__(self, element: etree._Element, index: int) -> None:
        self.element, self.index = element, index
        self.id = whole(element.get("id"))
        self.precision = element.get("precision")
        #: The sizes' texts, as they stand; the sizes, None where one is no number.
        self.dims = [part.text for part in element if part.tag == "dim"]
        self.sizes = _sizes(self.dims)

    @property
    def type(self) -> ElementType:
        """The element type; dynamic where it is not known."""
        known = _PRECISIONS.get(self.precision or "")
        if known is None:
            try:
                known = ElementType.parse_port(self.precision or "dynamic")
            except ValueError:
                known = ElementType.DYNAMIC
            if len(_PRECISIONS) < 1000:
                _PRECISIONS[self.precision or ""] = known
        return known

    @property
    def tensor(self) -> Tensor:
        """What the file says of it; without sizes the rank is not known."""
        sizes = self.sizes
        if not sizes or len(sizes) > MOST_AXES:
            return Tensor(self.type, Shape.UNKNOWN)
        return Tensor(self.type, Shape(ANY if size < 0 else size for size in sizes))


_PRECISIONS: dict[str, ElementType] = {}


def _sizes(texts: list[str | None]) -> tuple[int, ...] | None:
    try:
        joined = "".join(texts)  # type: ignore[arg-type]  # None: TypeError
        if len(joined) > 400 or "_" in joined or not joined.isascii():
            return tuple(_size(text) for text in texts)
        found = tuple(map(int, texts))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None
    return found if not found or (min(found) >= -1 and max(found) <= LARGEST_ID) else None


def _size(text: str | None) -> int:
    number = whole(text, least=-1)
    if number is None:
        raise ValueError(text)
    return number


class Examined(NamedTuple):
    """A layer's operation, None where its attributes are wrong, and what is wrong with them."""

    op: Op | None
    notes: tuple[Note, ...] = ()


class LooseLayer:
    """One layer."""

    def __init__(self, element: etree._Element, graph: LooseGraph) -> None:
        get = element.get
        self.element, self.graph = element, graph
        self.id = whole(get("id"))
        self.name = get("name") or ""
        self.type = get("type") or ""
        self.version = get("version") or ""
        self.data_element: etree._Element | None = None
        self.inputs: list[LoosePort] = []
        self.outputs: list[LoosePort] = []
        #: Children that stand there once, by tag; and those that stand there again or are odd.
        self.parts: dict[str, etree._Element] = {}
        self.extra: list[etree._Element] = []
        for child in element:
            tag = child.tag
            if tag in self.parts or tag not in CHILDREN["layer"]:
                self.extra.append(child)
                continue
            self.parts[tag] = child
            if tag == "input":
                self.inputs = [
                    LoosePort(port, n) for n, port in enumerate(child.iterchildren("port"))
                ]
            elif tag == "output":
                self.outputs = [
                    LoosePort(port, n) for n, port in enumerate(child.iterchildren("port"))
                ]
            elif tag == "data":
                self.data_element = child
        self.data: dict[str, str] = {}
        if self.data_element is not None:
            self.data = attributes_of(self.data_element)
        self.bodies: dict[str, LooseGraph] = {}
        #: What feeds each input, by index.
        self.sources: dict[int, LooseEdge] = {}
        #: What leaves it.
        self.users: list[LooseEdge] = []

    @cached_property
    def kind(self) -> type[Op] | None:
        """The operation's class, also where the type is written in another letter case."""
        if not {"type", "version"} <= set(self.element.attrib):
            return None
        name = known.CLASS_NAMES.get(self.type, self.type)
        usual = known.by_lower_case().get(self.type.lower(), name)
        return Op.find(name, self.version) or Op.find(usual, self.version)

    @cached_property
    def examined(self) -> Examined:
        """Its operation, and what is wrong with its attributes."""
        return self.graph.model.examine(self)

    @property
    def op(self) -> Op | None:
        """The operation, where its attributes are right."""
        return self.examined.op

    @cached_property
    def inputs_by_id(self) -> dict[int | None, LoosePort]:
        """The first input port of each id."""
        return {pin.id: pin for pin in reversed(self.inputs)}

    @cached_property
    def outputs_by_id(self) -> dict[int | None, LoosePort]:
        """The first output port of each id."""
        return {pin.id: pin for pin in reversed(self.outputs)}

    @property
    def label(self) -> str:
        """How messages call it."""
        return f'{self.id if self.id is not None else "?"} "{self.name[:60]}"'

    @property
    def where(self) -> Where:
        """Its place for an error that is no finding."""
        return Where(None, self.element.sourceline, None, self.id, self.name, self.type,
                     self.version)  # fmt: skip

    @property
    def place(self) -> etree._Element:
        """The element its attributes stand in, or should."""
        return self.element if self.data_element is None else self.data_element

    @cached_property
    def names(self) -> list[tuple[LoosePort, str]]:
        """The tensor names of its outputs."""
        return [
            (pin, name) for pin in self.outputs for name in split_names(pin.element.get("names"))
        ]


class LooseEdge:
    """One edge: its four numbers, and the ports they mean where there are such."""

    __slots__ = ("element", "numbers", "source", "source_pin", "target", "target_pin")

    def __init__(self, element: etree._Element) -> None:
        self.element = element
        self.numbers = tuple([whole(element.get(name)) for name in EDGE])
        self.source: LooseLayer | None = None
        self.source_pin: LoosePort | None = None
        self.target: LooseLayer | None = None
        self.target_pin: LoosePort | None = None


#: What each layer gives; what it declares where that cannot be inferred.
Tensors: TypeAlias = "dict[LooseLayer, tuple[Tensor, ...]]"


class Inferences(NamedTuple):
    """The tensors of a graph, and what is told of them."""

    tensors: Tensors
    notes: tuple[Note, ...]


class LooseGraph:
    """One graph: the model's, or a body's."""

    def __init__(
        self, element: etree._Element, model: LooseModel, owner: LooseLayer | None
    ) -> None:
        self.element, self.model, self.owner = element, model, owner
        self.extra: list[etree._Element] = []
        self.parts: dict[str, etree._Element] = {}
        for child in element:
            if child.tag in self.parts:
                self.extra.append(child)
            else:
                self.parts[str(child.tag)] = child
        inner, edges = self.parts.get("layers"), self.parts.get("edges")
        found = () if inner is None else inner.iterchildren("layer")
        self.nodes = [LooseLayer(child, self) for child in found]
        self.by_id: dict[int, LooseLayer] = {}
        for node in self.nodes:
            if node.id is not None:
                self.by_id.setdefault(node.id, node)
        found = () if edges is None else edges.iterchildren("edge")
        self.wires = [LooseEdge(child) for child in found]
        self._connect()

    def _connect(self) -> None:
        for wire in self.wires:
            from_layer, from_port, to_layer, to_port = wire.numbers
            source = None if from_layer is None else self.by_id.get(from_layer)
            target = None if to_layer is None else self.by_id.get(to_layer)
            wire.source, wire.target = source, target
            if source is not None:
                wire.source_pin = source.outputs_by_id.get(from_port)
            if target is not None:
                wire.target_pin = target.inputs_by_id.get(to_port)
                if wire.target_pin is not None and wire.source is not None:
                    target.sources.setdefault(wire.target_pin.index, wire)
            if source is not None and target is not None:
                source.users.append(wire)

    @cached_property
    def inferred(self) -> Inferences:
        """What each layer gives, and where that is not what is declared."""
        return self.model.infer(self)

    def fed(self, node: LooseLayer, pin: LoosePort, tensors: Tensors | None = None) -> Tensor:
        """What comes into an input: as inferred (so far), else as declared where it comes from."""
        wire = node.sources.get(pin.index)
        if wire is None or wire.source is None or wire.source_pin is None:
            return pin.tensor
        given = (self.inferred.tensors if tensors is None else tensors).get(wire.source, ())
        index = wire.source_pin.index
        return given[index] if index < len(given) else wire.source_pin.tensor

    @cached_property
    def by_type(self) -> dict[str, list[LooseLayer]]:
        """The layers of each type."""
        found: dict[str, list[LooseLayer]] = {}
        for node in self.nodes:
            found.setdefault(node.type, []).append(node)
        return found

    @cached_property
    def ids(self) -> list[int]:
        """The layers' ids, sorted."""
        return sorted(self.by_id)

    @cached_property
    def order(self) -> list[LooseLayer]:
        """The layers, each after what feeds it; those of a cycle are left out."""
        waiting: dict[LooseLayer, int] = {}
        for node in self.nodes:
            waiting[node] = len(node.sources)
        ready = [node for node in reversed(self.nodes) if not waiting[node]]
        order: list[LooseLayer] = []
        while ready:
            node = ready.pop()
            order.append(node)
            for wire in node.users:
                target = wire.target
                pin = wire.target_pin
                if target is None or pin is None or target.sources.get(pin.index) is not wire:
                    continue
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
        return order

    @cached_property
    def reached(self) -> set[LooseLayer]:
        """The layers that OpenVINO reads: inputs, and what feeds an output or a variable."""
        seen = {node for node in self.nodes if node.type == "Parameter"}
        stack = [node for node in self.nodes if node.type in SINKS]
        seen.update(stack)
        while stack:
            for wire in stack.pop().sources.values():
                if wire.source is not None and wire.source not in seen:
                    seen.add(wire.source)
                    stack.append(wire.source)
        return seen


class LooseModel:
    """A whole document."""

    def __init__(
        self,
        root: etree._Element,
        weights: Weights | None = None,
        place: str | None = None,
        text: bytes = b"",
        *,
        examine: Callable[[LooseLayer], Examined],
        infer: Callable[[LooseGraph], Inferences],
    ) -> None:
        #: How a layer's attributes are read, and a graph's shapes worked out, when first asked.
        self.examine, self.infer = examine, infer
        self.root, self.weights, self.place, self.text = root, weights, place, text
        self.version = whole(root.get("version"))
        self.graphs: list[LooseGraph] = [LooseGraph(root, self, None)]
        for graph in self.graphs:  # grows as bodies are found
            for node in graph.nodes:
                for tag in BODIES:
                    element = node.parts.get(tag)
                    if element is not None:
                        node.bodies[tag] = LooseGraph(element, self, node)
                        self.graphs.append(node.bodies[tag])

    @property
    def main(self) -> LooseGraph:
        """The model's own graph."""
        return self.graphs[0]

    @cached_property
    def strict(self) -> Model | None:
        """The model as the strict reader reads it; None where it refuses."""
        try:
            return loads(self.text, self.weights, need_weights=False)
        except IRError:
            return None

    @cached_property
    def nodes(self) -> list[LooseLayer]:
        """Every layer, those of bodies after those of the model."""
        return [node for graph in self.graphs for node in graph.nodes]

    def reads(self, node: LooseLayer) -> bool:
        """Whether OpenVINO reads a layer: it and the layers its bodies are in."""
        inner: LooseLayer | None = node
        while inner is not None:
            if inner not in inner.graph.reached:
                return False
            inner = inner.graph.owner
        return True

    def __iter__(self) -> Iterator[LooseGraph]:
        return iter(self.graphs)
