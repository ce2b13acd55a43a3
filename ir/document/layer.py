"""One layer of a graph.

What a layer says is read from its element when it is first asked for, so that a file is open
as soon as its names and edges are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ...schemas import Array, ElementType, IRError, UsageError, Where
from ...schemas.packing import Buffer, packed, unpack
from ...schemas.printing import printable_name
from ...schemas.types import SPELLED, TypeLike
from ..faces import door
from ..text import at, exact
from .attributes import Attributes, known, read_attribute, write_attributes, write_op
from .constant_data import needed_text, no_bin, read_sizes
from .copies import copied, reduced
from .layer_parts import BODIES, PARTS, child
from .literals import held_value
from .parts import BackEdge, Info, Port, PortMap, check_id, split_names, whole
from .ports import Ports

if TYPE_CHECKING:
    from lxml import etree

    from ...layers.base import Op
    from .graph import Graph
    from .model import Model

_FIELDS = ("id", "_name", "type", "version", "_value")
#: What is not known of a layer that is new.
_NOTHING = ("graph", None), ("element", None), ("_value", None), ("_op", None)
#: The parts of a layer that nobody has asked for anything yet; never changed.
_NONE: dict[str, Any] = {}


class _At:
    """Places errors at a layer; where that is, is only looked for when there is one."""

    __slots__ = ("layer", "tag")

    def __init__(self, layer: Layer, tag: str | None) -> None:
        self.layer, self.tag = layer, tag

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return
        element, model = self.layer.element, self.layer.model
        if element is not None and self.tag is not None:
            found = element.find(self.tag)
            element = element if found is None else found
        with at(self.layer.where, model.text if model is not None else None, element):
            raise error


class _Fields:
    """What a layer keeps, put in without a look at it: a file has a hundred thousand."""

    __slots__ = (
        "_name",
        "_op",
        "_parts",
        "_value",
        "element",
        "graph",
        "id",
        "type",
        "version",
    )

    id: int
    _name: str
    type: str
    version: str
    graph: Graph | None
    #: What it was read from, None where it was made in memory; never changed.
    element: etree._Element | None
    _parts: dict[str, Any]
    _value: Array | None
    _op: tuple[dict[str, str], str, str, Op | None] | None


class Layer(_Fields):
    """One layer: what its element says, and its operation where that is known.

    The attributes of its operation go by their names, as in ``layer.kernel = (3, 3)``; what its
    outputs are then is inferred anew by ``model.settle()``.
    """

    __slots__ = ()
    _repr_html_ = door("display", "html")

    #: What tells it from a graph where either may stand.
    is_graph: ClassVar[bool] = False
    #: Makes the graph of a body of its element; graphs, which know layers, put it here.
    body_of: ClassVar[Callable[[etree._Element, Layer], Graph]]

    def __init__(
        self,
        type: str,
        version: str,
        name: str = "",
        *,
        id: int = -1,
        data: Mapping[str, str] | None = None,
        inputs: Iterable[Port] = (),
        outputs: Iterable[Port] = (),
    ) -> None:
        id = check_id(id)
        put = object.__setattr__  # nothing has to be looked at before it is put in
        given = ("_name", name), ("type", type), ("version", version), ("id", id)
        for field, value in (*given, *_NOTHING):
            put(self, field, value)
        #: What was read or made so far, by the names in the table of parts.
        parts = {"inputs": Ports(self, inputs), "outputs": Ports(self, outputs)}
        put(self, "_parts", {"data": Attributes(data or {}), **parts})

    @classmethod
    def of(cls, element: etree._Element, graph: Graph) -> Layer:
        """A layer of a file; only its attributes are read."""
        self = _Fields.__new__(_Fields)
        get = element.get
        text = get("id")
        name, type_, version = get("name"), get("type"), get("version")
        if text is None or name is None or type_ is None:
            raise _incomplete(element, graph)
        self.graph, self.element = graph, element
        self._parts = _NONE
        # Graphs that a runtime has dumped say no version.
        self._name, self.type, self.version = name, type_, version or ""
        plain = text.isdigit() and text.isascii() and len(text) < 19
        self.id = int(text) if plain else -1
        self.__class__ = cls  # from here on it is looked at what is put in
        layer = cast(Layer, self)
        if not plain:
            with layer.at():
                layer.id = whole(text, "layer id")
        return layer

    def __getattr__(self, name: str) -> Any:
        # To give a hundred thousand layers further empty slots takes as long as to read their
        # names: they come when they are first asked for.
        if name in ("_op", "_value"):
            object.__setattr__(self, name, None)
            return None
        if name.startswith("_") or name in _Fields.__slots__:
            raise AttributeError(f"a layer has no {name}", name=name, obj=self)
        return read_attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "id" and self.graph is not None and self.is_in_graph:
            self.graph.renumber({self: value})
        elif name in _OWN:
            if name == "id":
                value = check_id(value, self)
            object.__setattr__(self, name, value)
        elif name.startswith("_"):
            raise AttributeError(f"a layer has no {name}", name=name, obj=self)
        else:
            self.set_attribute(name, value)

    def set_attribute(self, name: str, value: Any) -> None:
        """Give it an attribute by its name in Python or in the file; None: as if not said."""
        write_attributes(self, {name: value})

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *filter(str.isidentifier, known(self))})

    def take_id(self, id: int) -> None:
        """Be the layer of this id, whatever its graph knows of it."""
        object.__setattr__(self, "id", id)

    def _part(self, name: str) -> Any:
        """A part, read when it is first asked for."""
        try:
            return self._parts[name]
        except KeyError:
            value = PARTS[name].read(self.element, self) if self.element is not None else (
                PARTS[name].empty()
            )  # fmt: skip
            self._set_part(name, value)
            return value

    def _set_part(self, name: str, value: Any) -> None:
        if self._parts is _NONE:
            self._parts = {}
        self._parts[name] = value

    @property
    def parts_read(self) -> Mapping[str, Any]:
        """The parts that were read or made so far, and may have been changed, by their names."""
        return self._parts

    @property
    def name(self) -> str:
        """The name; two layers may have the same."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        if not isinstance(name, str):
            raise UsageError(f"a name is text, not {type(name).__name__}", self.where)
        self._name = name
        if self.graph is not None:
            self.graph.forget_names()

    @property
    def output_names(self) -> str | None:
        """The names of a model's output, as the file spells them; None where it says none."""
        names: str | None = self._part("output_names")
        return names

    @output_names.setter
    def output_names(self, names: str | None) -> None:
        self._set_part("output_names", names)

    # Places.

    @property
    def model(self) -> Model | None:
        """The model whose graph, or body at any depth, holds the layer."""
        return self.graph.model if self.graph is not None else None

    @property
    def where(self) -> Where:
        """Its place, without the column."""
        line = self.element.sourceline if self.element is not None else None
        model = self.model
        file = model.place if model is not None and line is not None else None
        return Where(
            file, line, None, self.id if self.id >= 0 else None, self.name, self.type, self.version
        )

    def at(self, tag: str | None = None) -> _At:
        """Place the errors raised inside; at one of its elements, where ``tag`` names it."""
        return _At(self, tag)

    # What its element says.

    @property
    def data(self) -> dict[str, str]:
        """The attributes as text, in the order of the file; other values are spelt as text."""
        data: Attributes = self._parts.get("data") or self._part("data")
        return data

    @data.setter
    def data(self, data: Mapping[str, Any]) -> None:
        self._set_part("data", Attributes(data))

    @property
    def inputs(self) -> Ports:
        """The input ports; an input's index is its rank here."""
        ports: Ports = self._parts.get("inputs") or self._part("inputs")
        return ports

    @inputs.setter
    def inputs(self, ports: Iterable[Port]) -> None:
        self._set_part("inputs", Ports(self, ports))

    @property
    def outputs(self) -> Ports:
        """The output ports; an output's index is its rank here."""
        ports: Ports = self._parts.get("outputs") or self._part("outputs")
        return ports

    @outputs.setter
    def outputs(self, ports: Iterable[Port]) -> None:
        self._set_part("outputs", Ports(self, ports))

    @property
    def input_names(self) -> list[str]:
        """What the operation calls each input; its index where nobody knows."""
        names, _, most = ((), 0, 0) if self.kind is None else self.kind.arity()
        count = len(self.port_ids("input"))
        if most is None and names:  # the last takes all that are left
            rest = range(count - len(names) + 1)
            return [*names[:-1], *(f"{names[-1]}[{place}]" for place in rest)][:count]
        return [*names[:count], *map(str, range(len(names), count))]

    @property
    def producers(self) -> list[Layer | None]:
        """By input: the layer that feeds it, None where nothing does."""
        if self.graph is None:
            return [None] * len(self.inputs)
        return [None if row is None else row[0] for row in self.graph.sources(self)]

    @property
    def consumers(self) -> list[Layer]:
        """The layers that take what it gives, each once."""
        users = [] if self.graph is None else self.graph.consumers(self)
        return list({id(user): user for user, _ in users}.values())

    def port_ids(self, tag: str) -> list[int]:
        """The ids of the ports in ``input`` or ``output``; the ports are not read for it."""
        ports = self._parts.get("inputs" if tag == "input" else "outputs")
        if ports is None and self.element is not None:
            section = child(self.element, tag)
            if section is None:
                return []
            texts = [port.get("id", "") for port in section.iterchildren("port")]
            if all(text.isdigit() and text.isascii() and len(text) < 19 for text in texts):
                ids = list(map(int, texts))
                if len(ids) < 2 or len(set(ids)) == len(ids):
                    return ids
        # Otherwise they are read, and what is wrong is said.
        ports = self.inputs if tag == "input" else self.outputs
        return [port.id for port in ports]

    def tensor_names(self, *, unread: bool = True) -> list[tuple[str, ...]]:
        """The names of each output; ports are not read for it, or those only that are read."""
        read = self._parts.get("outputs")
        if read is not None:
            return [port.names for port in read]
        found = child(self.element, "output") if unread and self.element is not None else None
        ports = () if found is None else found.iterchildren("port")
        return [split_names(port.get("names")) for port in ports]

    @property
    def rt_info(self) -> Info | None:
        """The layer's further information."""
        info: Info | None = self._part("rt_info")
        return info

    @rt_info.setter
    def rt_info(self, info: Info | None) -> None:
        self._set_part("rt_info", info)

    @property
    def bodies(self) -> dict[str, Graph]:
        """The graphs inside: ``body``, or ``then_body`` and ``else_body``."""
        bodies: dict[str, Graph] = self._part("bodies")
        return bodies

    @property
    def port_maps(self) -> dict[str, PortMap]:
        """How each body is wired to the ports, by the name of the body."""
        maps: dict[str, PortMap] = self._part("port_maps")
        return maps

    @property
    def back_edges(self) -> list[BackEdge]:
        """From each Result of the body to the Parameter it feeds in the next turn."""
        edges: list[BackEdge] = self._part("back_edges")
        return edges

    @back_edges.setter
    def back_edges(self, edges: Iterable[BackEdge]) -> None:
        self._set_part("back_edges", list(edges))

    def add_body(self, tag: str, graph: Graph, wiring: PortMap | None = None) -> None:
        """Put a graph inside, as ``body``, ``then_body`` or ``else_body``, with its port map."""
        if tag not in BODIES:
            raise UsageError(f'"{tag}" is none of {", ".join(BODIES)}', self.where)
        if graph.model not in (None, self.model):
            for layer in graph.everywhere():
                if layer.is_constant:
                    layer.keep_value()
        graph.owner = self
        self.bodies[tag] = graph
        self.port_maps[tag] = PortMap() if wiring is None else wiring

    def renumber_body(self, body: Graph, ids: Mapping[int, int]) -> None:
        """Mean the same layers of a body by their new ids."""
        for tag, graph in self.bodies.items():
            for entry in self.port_maps[tag].entries if graph is body else ():
                key = "internal_layer_id"
                number = entry.internal_layer_id
                entry.attributes[key] = str(ids.get(number, number))
            if graph is body and tag == "body":
                self.back_edges = [
                    BackEdge(ids.get(one, one), ids.get(two, two)) for one, two in self.back_edges
                ]

    @property
    def kind(self) -> type[Op] | None:
        """The operation that type and version name; None where it is not known."""
        return _operations().find(self.type, self.version)

    @property
    def op(self) -> Op | None:
        """The operation with its attributes read; None where the type is not known."""
        known = self._op
        data = self.data
        if known is not None:
            was, type_, version, op = known
            if type_ == self.type and version == self.version and was == data:
                return op
        kind = self.kind
        with self.at("data"):
            op = None if kind is None else kind.read(data)
        self._op = (dict(data), self.type, self.version, op)
        return op

    @op.setter
    def op(self, op: Op) -> None:
        write_op(self, op)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes as text; another name of ``data``."""
        return self.data

    # Constants.

    @property
    def is_constant(self) -> bool:
        """Whether the layer holds a value."""
        return self.type == "Const"

    @property
    def element_type(self) -> ElementType:
        """The element type that ``data`` names."""
        text = self.data.get("element_type")
        if text in SPELLED:
            return SPELLED[text]
        with self.at("data"):
            return ElementType.parse(needed_text(self.data, "element_type"))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape that a constant's ``data`` names."""
        with self.at("data"):
            return read_sizes(self.data)

    @property
    def has_value(self) -> bool:
        """Whether a constant's bytes are at hand; not so where the .bin is missing."""
        model = self.model
        held = model is not None and model.weights is not None
        return self._value is not None or held or "value" in self.data

    @property
    def value(self) -> Array:
        """The value of a constant: read-only, a view on the weights where the type allows it."""
        if self._value is not None:
            return self._value
        if not self.is_constant:
            raise UsageError(f"{self.type} has no value, only Const has one", self.where)
        kind = self.element_type
        with self.at("data"):
            return unpack(self._bytes(), kind, read_sizes(self.data))

    @value.setter
    def value(self, value: Array) -> None:
        self.set_value(value)

    def set_value(self, value: Any, type: TypeLike | None = None) -> None:
        """Give a constant another value; type, shape and port follow it."""
        if not self.is_constant:
            raise UsageError(f"{self.type} takes no value, only Const does", self.where)
        with self.at("data"):
            text = self.data.get("element_type")
            held = None if text is None else ElementType.parse(text)
            kind, array = held_value(value, type, held)
        self._value = array
        data, outputs = self.data, self.outputs
        data["element_type"] = kind.value
        data["shape"] = ", ".join(map(str, array.shape))
        data.pop("value", None)
        if not outputs:
            outputs.append(Port(0))
        port = outputs[0]
        port.precision, port.dims = kind.port, array.shape

    @property
    def has_new_value(self) -> bool:
        """Whether a constant was given a value that is not, or not yet, in a file."""
        return self._value is not None

    def keep_value(self) -> None:
        """Hold a constant's value itself, as the weights it points into will not be its own."""
        if self._value is None:
            self._value = self.value

    @property
    def blob(self) -> Buffer:
        """The bytes of a constant as the .bin holds them; those of a file as they are."""
        with self.at("data"):
            if self._value is not None:
                # OpenVINO gives an empty one a byte.
                blob = packed(self._value, self.element_type)
                return blob if len(blob) else b"\0"
            return self._bytes()

    @property
    def byte_range(self) -> tuple[int, int]:
        """Offset and size of a constant's bytes, as ``data`` says."""
        with self.at("data"):
            texts = {name: needed_text(self.data, name) for name in ("offset", "size")}
            return whole(texts["offset"], "offset"), whole(texts["size"], "size")

    def _bytes(self) -> Buffer:
        """The bytes of a constant of a file."""
        data, model = self.data, self.model
        text = data.get("value")
        if text is not None:
            return text.encode()
        offset, size = (whole(needed_text(data, name), name) for name in ("offset", "size"))
        if model is None or model.weights is None:
            raise no_bin(offset, size, None if model is None else model.bin_place)
        return model.weights.view(offset, size)

    # Copies.

    @property
    def is_in_graph(self) -> bool:
        """Whether its graph holds it; one that was taken out still knows where it was."""
        return self.graph is not None and self.graph.holds(self)

    def read_all(self) -> None:
        """Read every part, so that the element is no longer needed; not what is in bodies."""
        for name in PARTS:
            self._part(name)

    def made_of(self, element: etree._Element | None) -> None:
        """Say of what in an older file it was made: a place for errors, no part is read there."""
        self.read_all()
        self.element = element

    def exact_place(self, element: etree._Element) -> Where:
        """Where one of its elements stands in the file."""
        model = self.model
        text = None if model is None else model.text
        return self.where if text is None else exact(self.where, text, element)

    @property
    def fields(self) -> dict[str, Any]:
        """All that it keeps but graph, element and parts."""
        return {name: getattr(self, name) for name in _FIELDS}

    def restore(
        self, fields: Mapping[str, Any], parts: dict[str, Any], element: etree._Element | None
    ) -> None:
        """Take over fields and parts of the layer that this one is a copy of."""
        self.element, self.graph, self._parts = element, None, parts
        for side in {"inputs", "outputs"} & parts.keys():
            parts[side] = Ports(self, parts[side])
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if self._value is not None:
            self._value.flags.writeable = False  # which pickling forgets

    def __copy__(self) -> Layer:
        return deepcopy(self)  # a layer is in one graph alone

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        return copied(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __repr__(self) -> str:
        return f'<layer {self.id} "{printable_name(self.name)}" ({self.type} {self.version})>'


#: What a layer takes as it is; all else are attributes of its operation.
_OWN = {*_Fields.__slots__, "__class__"} | {
    name for name, one in vars(Layer).items() if isinstance(one, property) and one.fset
}


@cache
def _operations() -> type[Op]:
    """The operations, imported when the first is asked for."""
    from ...layers.base import Op

    return Op


def _incomplete(element: etree._Element, graph: Graph) -> IRError:
    """The error of a layer without one of its four attributes."""
    missing = [name for name in ("id", "name", "type") if element.get(name) is None]
    error = IRError(f"<layer> has no {' and no '.join(missing)}")
    model = graph.model
    number = element.get("id") or ""
    where = Where(
        model.place if model else None,
        element.sourceline,
        None,
        int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None,
        element.get("name"),
        element.get("type"),
    )
    try:
        with at(where, model.text if model else None, element):
            raise error
    except IRError as placed_error:
        return placed_error
