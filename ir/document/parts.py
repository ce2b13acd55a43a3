"""The parts of a layer as records: ports, trees of further information, port maps.

Each record says what its element says; what no rule knows is kept in ``extra``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...schemas import ANY, ElementType, IRError, Shape, Tensor, UsageError, Where
from ...schemas.shapes import Dim
from ..text import attributes_of, text_of

if TYPE_CHECKING:
    from lxml import etree

    from .layer import Layer

#: Ids are kept in 64 signed bits by OpenVINO.
LARGEST_ID = 2**63 - 1

_COMMA = re.compile(r"(?<!\\),")


class Edge(NamedTuple):
    """From an output port to an input port, by the ids in the file."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int


class Port:
    """One ``<port>``: its id, element type, sizes (-1: unknown) and tensor names.

    No sizes may mean a scalar or an unknown rank: a file does not tell them apart. Where its
    layer is in a graph, a port knows the tensor that is there: ``source`` is the output port that
    gives it, ``targets`` are the input ports that take it, ``producer`` and ``consumers`` their
    layers.
    """

    __slots__ = ("dims", "extra", "id", "layer", "names", "precision", "rt_info")

    def __init__(
        self,
        id: int,
        precision: str | ElementType | None = None,
        dims: Iterable[int] = (),
        names: Iterable[str] = (),
        rt_info: Info | None = None,
        extra: dict[str, str] | None = None,
    ) -> None:
        self.id = id
        self.precision = precision.port if isinstance(precision, ElementType) else precision
        self.dims = tuple(dims)
        self.names = tuple(names)
        self.rt_info = rt_info
        self.extra = extra or {}
        #: The layer that has it, None where it is alone.
        self.layer: Layer | None = None

    @classmethod
    def of(cls, id: int, tensor: Tensor, names: Iterable[str] = ()) -> Port:
        """A port that says what a file can say of a tensor."""
        return cls(id, tensor.type, dims_of(tensor.shape), names)

    @property
    def type(self) -> ElementType:
        """The element type; dynamic where the precision is none, as input ports may have it."""
        try:
            return ElementType.parse_port(self.precision or "dynamic")
        except ValueError:
            return ElementType.DYNAMIC

    @type.setter
    def type(self, kind: ElementType) -> None:
        self.precision = kind.port

    @property
    def shape(self) -> Shape:
        """The sizes as a shape; without sizes a scalar's."""
        return Shape(ANY if size < 0 else size for size in self.dims)

    @property
    def tensor(self) -> Tensor:
        """Type and shape."""
        return Tensor(self.type, self.shape)

    def describe(self, tensor: Tensor) -> None:
        """Take over type and sizes of a tensor."""
        self.precision = tensor.type.port
        self.dims = dims_of(tensor.shape)

    # Where it is.

    def _place(self) -> tuple[Layer, bool, int]:
        """Its layer, whether it is an output, and its index."""
        if self.layer is not None:
            for ports in (self.layer.outputs, self.layer.inputs):
                for index, port in enumerate(ports):
                    if port is self:
                        return self.layer, ports is self.layer.outputs, index
        raise UsageError(f"port {self.id} is in no layer")

    @property
    def index(self) -> int:
        """Its place among the inputs, or the outputs, of its layer."""
        return self._place()[2]

    @property
    def name(self) -> str:
        """An input's name in the operation; an output's tensor name, else its layer's."""
        layer, is_output, index = self._place()
        if not is_output:
            return layer.input_names[index]
        if self.names:
            return self.names[0]
        return layer.name if len(layer.outputs) == 1 else f"{layer.name}:{index}"

    @property
    def source(self) -> Port | None:
        """The output port that gives the tensor; None where nothing feeds the input."""
        layer, is_output, index = self._place()
        if is_output:
            return self
        if layer.graph is None:
            return None
        found = layer.graph.sources(layer)[index]
        return None if found is None else found[0].outputs[found[1]]

    @property
    def targets(self) -> list[Port]:
        """The input ports that take the tensor."""
        source = self.source
        if source is None:
            return []
        layer, _, index = source._place()
        users = [] if layer.graph is None else layer.graph.consumers(layer, index)
        return [user.inputs[place] for user, place in users]

    @property
    def producer(self) -> Layer | None:
        """The layer that gives the tensor."""
        source = self.source
        return None if source is None else source.layer

    @property
    def consumers(self) -> list[Layer]:
        """The layers that take the tensor, each once."""
        found = {id(port.layer): port.layer for port in self.targets}
        return [layer for layer in found.values() if layer is not None]

    def _said(self) -> tuple[Any, ...]:
        return self.id, self.precision, self.dims, self.names, self.rt_info, self.extra

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Port):
            return NotImplemented
        return self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[Any, ...]:
        return Port, self._said()  # whoever copies the layer says that it is its own

    def __repr__(self) -> str:
        return f"Port({self.id}, {self.precision}, {list(self.dims)}, {list(self.names)})"


class Info:
    """An element as a tree, for rt_info and all else whose children are not settled."""

    __slots__ = ("attributes", "children", "tag", "text")

    def __init__(
        self,
        tag: str,
        attributes: dict[str, str] | None = None,
        children: Iterable[Info] = (),
        text: str = "",
    ) -> None:
        self.tag = tag
        self.attributes = dict(attributes or {})
        self.children = list(children)
        self.text = text

    @property
    def key(self) -> str:
        """The name it goes by: its ``name`` attribute where it has one, else its tag."""
        return self.attributes.get("name", self.tag)

    @property
    def value(self) -> str | None:
        """Its ``value`` attribute."""
        return self.attributes.get("value")

    def __iter__(self) -> Iterator[Info]:
        return iter(self.children)

    def __len__(self) -> int:
        return len(self.children)

    def __bool__(self) -> bool:
        return True

    def find(self, *keys: str) -> Info | None:
        """The child of that key (the last, as OpenVINO reads it), and so on downwards."""
        node: Info | None = self
        for key in keys:
            if node is None:
                return None
            node = next((child for child in reversed(node.children) if child.key == key), None)
        return node

    def set(self, key: str, value: str) -> Info:
        """Give the child of that key a value, made where it is missing."""
        child = self.find(key)
        if child is None:
            safe = re.fullmatch(r"[A-Za-z_][\w.\-]*", key) is not None
            child = Info(key) if safe else Info("info", {"name": key})
            self.children.append(child)
        child.attributes["value"] = value
        return child

    def remove(self, key: str) -> None:
        """Drop the children of that key."""
        self.children = [child for child in self.children if child.key != key]

    def __eq__(self, other: object) -> bool:
        # Trees of any depth: without recursion.
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            one, two = pairs.pop()
            if not isinstance(one, Info) or not isinstance(two, Info):
                return False
            if (one.tag, one.text) != (two.tag, two.text):
                return False
            if list(one.attributes.items()) != list(two.attributes.items()):
                return False
            if len(one.children) != len(two.children):
                return False
            pairs.extend(zip(one.children, two.children, strict=True))
        return True

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[Any, ...]:
        # Flat, as a tree may be deeper than Python recurses.
        rows, stack = [], [self]
        while stack:
            node = stack.pop()
            rows.append((node.tag, node.attributes, node.text, len(node.children)))
            stack.extend(reversed(node.children))
        return _tree, (rows,)

    def __repr__(self) -> str:
        return f"Info({self.tag!r}, {self.attributes}, {len(self.children)} children)"


def _tree(rows: list[tuple[str, dict[str, str], str, int]]) -> Info:
    """The tree of its nodes, each followed by those below it."""
    open_: list[tuple[Info, int]] = []
    root: Info | None = None
    for tag, attributes, text, count in rows:
        node = Info(tag, attributes, text=text)
        if root is None:
            root = node
        else:
            while len(open_[-1][0].children) == open_[-1][1]:
                open_.pop()
            open_[-1][0].children.append(node)
        open_.append((node, count))
    assert root is not None
    return root


class MapEntry:
    """A line of a port map: which outer port meets which layer of the body, and how."""

    __slots__ = ("_place", "attributes", "kind")

    def __init__(
        self,
        kind: str,
        attributes: dict[str, str],
        place: Callable[[], Where] | None = None,
    ) -> None:
        self.kind = kind
        self.attributes = attributes
        #: Tells where in the file it stands, where it was read.
        self._place = place

    @property
    def external_port_id(self) -> int:
        """On an input the index of the outer input, on an output the order; -1: none."""
        return self._number("external_port_id")

    @property
    def internal_layer_id(self) -> int:
        """Id of the body's Parameter or Result."""
        return self._number("internal_layer_id")

    @property
    def axis(self) -> int | None:
        """The axis that is sliced or concatenated."""
        return self._number("axis") if "axis" in self.attributes else None

    @property
    def start(self) -> int:
        """Where the first slice begins."""
        return self._number("start", 0)

    @property
    def end(self) -> int:
        """Where the last slice ends."""
        return self._number("end", -1)

    @property
    def stride(self) -> int:
        """From one slice to the next."""
        return self._number("stride", 1)

    @property
    def part_size(self) -> int:
        """Size of a slice."""
        return self._number("part_size", 1)

    @property
    def purpose(self) -> str | None:
        """``current_iteration`` or ``execution_condition``, for the special ones of a Loop."""
        return self.attributes.get("purpose")

    def _number(self, name: str, default: int | None = None) -> int:
        text = self.attributes.get(name)
        if text is None:
            if default is None:
                raise self.error(f"<{self.kind}> of a port map has no {name}")
            return default
        try:
            return whole(text, f"{name} of <{self.kind}>", least=-(2**63))
        except IRError as error:
            raise self.error(error.message) from None

    def error(self, message: str) -> IRError:
        """An error about this line of the file."""
        error = IRError(message)
        if self._place is not None:
            error.where = self._place()
        return error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MapEntry):
            return NotImplemented
        return (self.kind, self.attributes) == (other.kind, other.attributes)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[Any, ...]:
        return MapEntry, (self.kind, self.attributes)

    def __repr__(self) -> str:
        return f"MapEntry({self.kind!r}, {self.attributes})"


class PortMap:
    """How a body is wired to the layer around it, in the order of the file."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[MapEntry] = ()) -> None:
        self.entries = list(entries)

    @property
    def inputs(self) -> list[MapEntry]:
        """The lines of the inputs."""
        return [entry for entry in self.entries if entry.kind == "input"]

    @property
    def outputs(self) -> list[MapEntry]:
        """The lines of the outputs."""
        return [entry for entry in self.entries if entry.kind == "output"]

    def add(self, kind: str, **numbers: int | str) -> MapEntry:
        """Append a line."""
        entry = MapEntry(kind, {name: str(number) for name, number in numbers.items()})
        self.entries.append(entry)
        return entry

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PortMap) and self.entries == other.entries

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"PortMap({self.entries})"


class BackEdge(NamedTuple):
    """From a body's Result to the Parameter that holds its value in the next turn."""

    from_layer: int
    to_layer: int


def dims_of(shape: Shape) -> tuple[int, ...]:
    """The sizes as a port says them: -1 for all that is not one number."""
    if shape.rank is None:
        return ()
    if shape.is_static:
        return shape.static
    return tuple(-1 if isinstance(size, Dim) else int(size) for size in shape.sizes)


def split_names(text: str | None) -> tuple[str, ...]:
    r"""Tensor names from their list; a comma inside a name is written ``\,``."""
    if not text:
        return ()
    if "\\" not in text:
        return tuple(name for name in text.split(",") if name)
    return tuple(name.replace("\\,", ",") for name in _COMMA.split(text) if name)


def join_names(names: Iterable[str]) -> str:
    """The list of tensor names as a file spells it."""
    return ",".join(name.replace(",", "\\,") for name in names)


def check_id(given: Any, layer: Layer | None = None) -> int:
    """What a caller gave as the id of a layer, refused where it is no whole number."""
    try:
        return int(operator.index(given))  # which NumPy's numbers have, too
    except TypeError:
        where = None if layer is None else layer.where
        raise UsageError(f"an id is a whole number, not {given!r:.60}", where) from None


def whole(text: str, what: str, least: int = 0) -> int:
    """A whole number of the document's structure, spelt as a whole number."""
    if text.isdigit() and text.isascii() and len(text) < 19:
        return int(text)
    try:
        # OpenVINO's own reader allows blanks before and a sign; int() allows more.
        if len(text) > 40 or not text.isascii() or "_" in text or text != text.rstrip():
            raise ValueError
        number = int(text)
    except ValueError:
        shown = text if len(text) <= 40 else text[:40] + "…"
        raise IRError(f'{what} is "{shown}", not a whole number') from None
    if number < least or number > LARGEST_ID:
        raise IRError(f"{what} is {number}, allowed are {least} to {LARGEST_ID}")
    return number


# From elements.


def read_ports(element: etree._Element | None, outputs: bool) -> list[Port]:
    """The ports of an ``<input>`` or ``<output>`` in the order of the file."""
    ports: list[Port] = []
    if element is None:
        return ports
    seen: set[int] = set()
    for child in element.iterchildren("port"):
        attributes = attributes_of(child)
        text = attributes.pop("id", None)
        if text is None:
            raise IRError("a port has no id")
        port = Port(whole(text, "port id"), attributes.pop("precision", None))
        if port.id in seen:
            raise IRError(f"two {'output' if outputs else 'input'} ports have the id {port.id}")
        seen.add(port.id)
        if outputs:
            if port.precision is None:
                raise IRError(f"output port {port.id} has no precision")
            ElementType.parse_port(port.precision)
        port.names = split_names(attributes.pop("names", None))
        port.extra = attributes
        sizes = []
        for part in child:
            if part.tag == "dim":
                sizes.append(read_dim(part))
            elif part.tag == "rt_info" and port.rt_info is None:
                port.rt_info = read_info(part)
        port.dims = tuple(sizes)
        ports.append(port)
    return ports


def read_dim(element: etree._Element) -> int:
    """One size of a port."""
    return whole(text_of(element), "a dim", least=-1)


def read_info(element: etree._Element) -> Info:
    """An element and all below it; without recursion, as the depth is the file's."""
    root = Info(str(element.tag), attributes_of(element), text=(element.text or "").strip())
    pairs = [(element, root)]
    while pairs:
        source, node = pairs.pop()
        for child in source.iterchildren("*"):
            info = Info(str(child.tag), attributes_of(child), text=(child.text or "").strip())
            node.children.append(info)
            if len(child):
                pairs.append((child, info))
    return root


def read_port_map(
    element: etree._Element, place_of: Callable[[etree._Element], Where] | None = None
) -> PortMap:
    """The lines of a port map; ``place_of`` tells where in the file each stands."""
    return PortMap(
        MapEntry(
            str(child.tag),
            attributes_of(child),
            None if place_of is None else partial(place_of, child),
        )
        for child in element.iterchildren("*")
    )


def read_back_edges(element: etree._Element | None) -> list[BackEdge]:
    """The back edges of a body."""
    if element is None:
        return []
    edges = []
    for child in element.iterchildren("edge"):
        ends = [child.get(name) for name in ("from-layer", "to-layer")]
        for name, text in zip(("from-layer", "to-layer"), ends, strict=True):
            if text is None:
                raise IRError(f"a back edge has no {name}")
        edges.append(BackEdge(*(whole(text or "", "layer of a back edge") for text in ends)))
    return edges
