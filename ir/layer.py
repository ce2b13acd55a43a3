"""One layer of a graph.

What a layer says is read from its element when it is first asked for, so that a file is open
as soon as its names and edges are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schemas import Array, ElementType, IRError, Tensor, UsageError, Where
from ..schemas.packing import Buffer, needed, pack, unpack
from .elements import (
    BackEdge,
    Info,
    Port,
    PortMap,
    read_back_edges,
    read_info,
    read_port_map,
    read_ports,
    split_names,
    whole,
)
from .places import at

if TYPE_CHECKING:
    from lxml import etree

    from ..layers.base import Op
    from .graph import Graph, Model
    from .weights import Weights

#: The bodies a layer may have, and the element that wires each to the layer's ports.
BODIES = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}


_LATER = frozenset({
    "_back_edges", "_bodies", "_data", "_inputs", "_op", "_output_names", "_outputs",
    "_port_maps", "_rt_info", "_value",
})  # fmt: skip


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
            child = element.find(self.tag)
            element = element if child is None else child
        with at(self.layer.where, model.text if model is not None else None, element):
            raise error


class Layer:
    """One layer: what its element says, and its operation where that is known."""

    __slots__ = (
        "_back_edges",
        "_bodies",
        "_data",
        "_inputs",
        "_name",
        "_op",
        "_opened",
        "_output_names",
        "_outputs",
        "_port_maps",
        "_rt_info",
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
        self.id, self._name, self.type, self.version = id, name, type, version
        self._opened = True
        self._output_names: str | None = None
        self.graph = None
        self.element = None
        self._data: dict[str, str] | None = dict(data or {})
        self._inputs: list[Port] | None = list(inputs)
        self._outputs: list[Port] | None = list(outputs)
        self._rt_info: Info | bool | None = None
        self._bodies: dict[str, Graph] | None = {}
        self._port_maps: dict[str, PortMap] | None = {}
        self._back_edges: list[BackEdge] | None = []
        self._value: Array | None = None
        self._op: tuple[dict[str, str], str, str, Op | None] | None = None

    @classmethod
    def _of(cls, element: etree._Element, graph: Graph) -> Layer:
        """A layer of a file; only its attributes are read."""
        self = cls.__new__(cls)
        get = element.get
        text = get("id")
        name, type_, version = get("name"), get("type"), get("version")
        if text is None or name is None or type_ is None:
            raise _incomplete(element, graph)
        self.graph, self.element = graph, element
        #: Whether anybody has asked for more than its attributes, and may have changed it.
        self._opened = False
        # Graphs that a runtime has dumped say no version.
        self._name, self.type, self.version = name, type_, version or ""
        if text.isdigit() and text.isascii() and len(text) < 19:
            self.id = int(text)
        else:
            self.id = -1
            with self.at():
                self.id = whole(text, "layer id")
        return self

    def __getattr__(self, name: str) -> Any:
        # Parts of a layer of a file that nobody has asked for yet have no value at all: to give
        # a hundred thousand layers ten empty slots each takes longer than to read their names.
        if name not in _LATER:
            raise AttributeError(f"a layer has no {name}", name=name, obj=self)
        self._opened = True
        value: Any = None
        if name == "_rt_info":
            value = False
        elif name == "_output_names" and self.element is not None and self.type == "Result":
            value = self.element.get("output_names")
        setattr(self, name, value)
        return value

    @property
    def name(self) -> str:
        """The name; two layers may have the same."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name
        if self.graph is not None:
            self.graph.forget_names()

    @property
    def output_names(self) -> str | None:
        """The names of a model's output, as the file spells them; None where it says none."""
        return self._output_names

    @output_names.setter
    def output_names(self, names: str | None) -> None:
        self._output_names, self._opened = names, True

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
        """The attributes as text, in the order of the file."""
        if self._data is None:
            element = None if self.element is None else _child(self.element, "data")
            self._data = {} if element is None else dict(element.items())
        return self._data

    @data.setter
    def data(self, data: Mapping[str, str]) -> None:
        self._data, self._opened = dict(data), True

    @property
    def inputs(self) -> list[Port]:
        """The input ports; an input's index is its rank here."""
        if self._inputs is None:
            with self.at("input"):
                found = None if self.element is None else _child(self.element, "input")
                self._inputs = read_ports(found, outputs=False)
        return self._inputs

    @inputs.setter
    def inputs(self, ports: Iterable[Port]) -> None:
        self._inputs, self._opened = list(ports), True

    @property
    def outputs(self) -> list[Port]:
        """The output ports; an output's index is its rank here."""
        if self._outputs is None:
            with self.at("output"):
                found = None if self.element is None else _child(self.element, "output")
                self._outputs = read_ports(found, outputs=True)
        return self._outputs

    @outputs.setter
    def outputs(self, ports: Iterable[Port]) -> None:
        self._outputs, self._opened = list(ports), True

    def port_ids(self, tag: str) -> list[int]:
        """The ids of the ports in ``input`` or ``output``; the ports are not read for it."""
        ports = None
        if self._opened:
            ports = self._inputs if tag == "input" else self._outputs
        if ports is None and self.element is not None:
            section = _child(self.element, tag)
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

    def tensor_names(self) -> list[tuple[str, ...]]:
        """The names of each output; the ports are not read for it."""
        if self._outputs is not None:
            return [port.names for port in self._outputs]
        found = None if self.element is None else _child(self.element, "output")
        ports = () if found is None else found.iterchildren("port")
        return [split_names(port.get("names")) for port in ports]

    @property
    def rt_info(self) -> Info | None:
        """The layer's further information."""
        if self._rt_info is False or self._rt_info is True:
            found = None if self.element is None else self.element.find("rt_info")
            self._rt_info = None if found is None else read_info(found)
        return self._rt_info

    @rt_info.setter
    def rt_info(self, info: Info | None) -> None:
        self._rt_info, self._opened = info, True

    @property
    def bodies(self) -> dict[str, Graph]:
        """The graphs inside: ``body``, or ``then_body`` and ``else_body``."""
        if self._bodies is None:
            from .graph import Graph

            bodies: dict[str, Graph] = {}
            if self.element is not None:
                for element in self.element.iterchildren(*BODIES):
                    if element.tag not in bodies:
                        bodies[str(element.tag)] = Graph._of(element, owner=self)
            self._bodies = {tag: bodies[tag] for tag in BODIES if tag in bodies} if bodies else {}
        return self._bodies

    @property
    def port_maps(self) -> dict[str, PortMap]:
        """How each body is wired to the ports, by the name of the body."""
        if self._port_maps is None:
            maps: dict[str, PortMap] = {}
            if self.element is not None:
                for body, tag in BODIES.items():
                    element = self.element.find(tag)
                    if element is not None:
                        maps[body] = read_port_map(element, self)
            self._port_maps = maps
        return self._port_maps

    @property
    def back_edges(self) -> list[BackEdge]:
        """From each Result of the body to the Parameter it feeds in the next turn."""
        if self._back_edges is None:
            with self.at("back_edges"):
                found = None if self.element is None else self.element.find("back_edges")
                self._back_edges = read_back_edges(found)
        return self._back_edges

    @back_edges.setter
    def back_edges(self, edges: Iterable[BackEdge]) -> None:
        self._back_edges, self._opened = list(edges), True

    def add_body(self, tag: str, graph: Graph, wiring: PortMap | None = None) -> None:
        """Put a graph inside, as ``body``, ``then_body`` or ``else_body``, with its port map."""
        if tag not in BODIES:
            raise UsageError(f'"{tag}" is none of {", ".join(BODIES)}', self.where)
        graph.owner = self
        self.bodies[tag] = graph
        self.port_maps[tag] = PortMap() if wiring is None else wiring

    @property
    def op(self) -> Op | None:
        """The operation with its attributes read; None where the type is not known."""
        known = self._op
        data = self.data
        if known is not None and known[:3] == (data, self.type, self.version):
            return known[3]
        kind = _operations().find(self.type, self.version)
        with self.at("data"):
            op: Op | None = None if kind is None else kind.read(data)
        self._op = (dict(data), self.type, self.version, op)
        return op

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
        with self.at("data"):
            text = self.data.get("element_type")
            if text is None:
                raise IRError("attribute element_type is missing")
            return ElementType.parse(text)

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

    def set_value(self, value: Any, type: ElementType | str | None = None) -> None:
        """Give a constant another value; type, shape and port follow it."""
        if not self.is_constant:
            raise UsageError(f"{self.type} takes no value, only Const does", self.where)
        array = np.asarray(value)
        if array.dtype.kind in "SUO":
            array = array.astype(np.dtypes.StringDType())
        if type is not None:
            kind = ElementType(type)
        else:
            kind = ElementType.of(array.dtype)
            text = self.data.get("element_type")
            held = ElementType.parse(text) if text is not None else None
            if held is not None and not held.is_dynamic and held.dtype == array.dtype:
                kind = held  # such as nf4, whose values are float32
        self._value = array.astype(kind.dtype, copy=False)
        old = self.data
        self._data = {
            **old, "element_type": str(kind), "shape": ", ".join(map(str, array.shape))
        }  # fmt: skip
        self._data.pop("value", None)
        if not self.outputs:
            self.outputs.append(Port(0))
        self.outputs[0].describe(Tensor(kind, array.shape))

    @property
    def has_new_value(self) -> bool:
        """Whether a constant was given a value that is not, or not yet, in a file."""
        return self._value is not None

    @property
    def blob(self) -> Buffer:
        """The bytes of a constant as the .bin holds them; those of a file as they are."""
        with self.at("data"):
            if self._value is not None:
                # OpenVINO gives an empty one a byte.
                return pack(self._value, self.element_type) or b"\0"
            return self._bytes()

    @property
    def byte_range(self) -> tuple[int, int]:
        """Offset and size of a constant's bytes, as ``data`` says."""
        with self.at("data"):
            data = self.data
            return whole(_needed(data, "offset"), "offset"), whole(_needed(data, "size"), "size")

    def _bytes(self) -> Buffer:
        """The bytes of a constant of a file."""
        data, model = self.data, self.model
        text = data.get("value")
        if text is not None:
            return text.encode()
        offset, size = (whole(_needed(data, name), name) for name in ("offset", "size"))
        if model is None or model.weights is None:
            error = no_bin(offset, size)
            if model is not None and model.path is not None:
                error.hint = f"looked for {Path(model.path).with_suffix('.bin')}"
            raise error
        return model.weights.view(offset, size)

    # Copies.

    @property
    def is_in_graph(self) -> bool:
        """Whether its graph holds it; one that was taken out still knows where it was."""
        return self.graph is not None and self.graph.holds(self)

    @property
    def parts_read(self) -> dict[str, Any]:
        """The parts that were read or made so far, by the names of their fields."""
        found = {}
        for name in self.__slots__:
            if name not in ("_op", "element", "graph"):
                with suppress(AttributeError):
                    found[name] = getattr(Layer, name).__get__(self)
        return found

    def read_all(self) -> None:
        """Read every part, so that the element is no longer needed; not what is in bodies."""
        _ = self.data, self.inputs, self.outputs, self.rt_info, self.output_names
        _ = self.port_maps, self.back_edges, self.bodies

    def restore(
        self,
        parts: Mapping[str, Any],
        bodies: dict[str, Graph] | None,
        element: etree._Element | None,
    ) -> None:
        """Take over the parts of the layer that this one is a copy of."""
        self.element, self.graph = element, None
        for name, value in parts.items():
            setattr(self, name, value)
        if bodies is not None:
            self._bodies = bodies

    def __copy__(self) -> Layer:
        return deepcopy(self)  # a layer is in one graph alone

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        from .copies import copied

        return copied(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        from .copies import reduced

        return reduced(self)

    def __repr__(self) -> str:
        return f'<layer {self.id} "{self.name}" ({self.type} {self.version})>'


@cache
def _operations() -> type[Op]:
    """The operations, imported when the first is asked for."""
    from .. import layers  # noqa: F401  # declares them
    from ..layers.base import Op

    return Op


def _child(element: etree._Element, tag: str) -> etree._Element | None:
    """The first child of that name; ``find`` is several times slower."""
    return next(element.iterchildren(tag), None)


def no_bin(offset: int, size: int) -> IRError:
    """The error of a constant in a model without weights."""
    return IRError(f"bytes {offset} to {offset + size} are needed, but there is no .bin")


def _needed(data: Mapping[str, str], name: str) -> str:
    text = data.get(name)
    if text is None:
        raise IRError(f"attribute {name} is missing")
    return text


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


def read_sizes(data: Mapping[str, str]) -> tuple[int, ...]:
    """The shape of a constant: plain numbers."""
    text = _needed(data, "shape").strip()
    if not text:
        return ()
    fields = text.split(",")
    if not fields[-1].strip():
        fields.pop()  # one trailing comma is free
    if len(text) < 100 and text.isascii() and text.replace(",", "").replace(" ", "").isdigit():
        try:
            return tuple(map(int, fields))
        except ValueError:
            pass  # two numbers with a blank between: said properly below
    return tuple(whole(field.strip(), "a size in shape") for field in fields)


def check_constant(layer: Layer, weights: Weights | None, *, absent: bool = False) -> None:
    """Refuse a constant whose bytes are not all there; ``absent``: there need be no .bin."""
    try:
        _check(layer.data, weights, absent)
    except ValueError:
        # Wrong: once more, where an error gets its place (which costs more than the check).
        with layer.at("data"):
            _check(layer.data, weights, absent)


def _check(data: Mapping[str, str], weights: Weights | None, absent: bool) -> None:
    kind = ElementType.parse(_needed(data, "element_type"))
    if "value" in data:
        return
    offset, size = whole(_needed(data, "offset"), "offset"), whole(_needed(data, "size"), "size")
    shape = () if kind is ElementType.STRING and "shape" not in data else read_sizes(data)
    least = None if kind.is_dynamic else needed(kind, shape)
    if least is not None and size < least:
        raise IRError(f"{kind}{list(shape)} takes {least} bytes, size says {size}")
    if weights is not None:
        weights.check(offset, size)
    elif not absent:
        raise no_bin(offset, size)
