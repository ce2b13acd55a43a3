"""One layer of a graph.

What a layer says is read from its element when it is first asked for, so that a file is open
as soon as its names and edges are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...schemas import Array, ElementType, IRError, Tensor, UsageError, Where
from ...schemas.packing import Buffer, needed, pack, packed, unpack
from ..text import at, exact
from .copies import copied, reduced
from .layer_parts import BODIES, PARTS, child
from .parts import BackEdge, Info, Port, PortMap, split_names, whole

if TYPE_CHECKING:
    from lxml import etree

    from ...layers.base import Op
    from ..storage import Weights
    from .graph import Graph, Model

_FIELDS = ("id", "_name", "type", "version", "_value")
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


class Layer:
    """One layer: what its element says, and its operation where that is known."""

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

    #: What tells it from a graph where either may stand.
    is_graph: ClassVar[bool] = False
    #: Makes the graph of a body of its element; graphs, which know layers, put it here.
    body_of: ClassVar[Callable[[etree._Element, Layer], Graph]]

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
        self.graph = None
        self.element = None
        #: What was read or made so far, by the names in the table of parts.
        self._parts: dict[str, Any] = {name: part.empty() for name, part in PARTS.items()}
        self._parts |= {
            "data": dict(data or {}), "inputs": list(inputs), "outputs": list(outputs)
        }  # fmt: skip
        self._value: Array | None = None
        self._op: tuple[dict[str, str], str, str, Op | None] | None = None

    @classmethod
    def of(cls, element: etree._Element, graph: Graph) -> Layer:
        """A layer of a file; only its attributes are read."""
        self = cls.__new__(cls)
        get = element.get
        text = get("id")
        name, type_, version = get("name"), get("type"), get("version")
        if text is None or name is None or type_ is None:
            raise _incomplete(element, graph)
        self.graph, self.element = graph, element
        self._parts = _NONE
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
        # To give a hundred thousand layers further empty slots takes as long as to read their
        # names: they come when they are first asked for.
        if name not in ("_op", "_value"):
            raise AttributeError(f"a layer has no {name}", name=name, obj=self)
        setattr(self, name, None)
        return None

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
        """The attributes as text, in the order of the file."""
        data: dict[str, str] = self._part("data")
        return data

    @data.setter
    def data(self, data: Mapping[str, str]) -> None:
        self._set_part("data", dict(data))

    @property
    def inputs(self) -> list[Port]:
        """The input ports; an input's index is its rank here."""
        ports: list[Port] = self._part("inputs")
        return ports

    @inputs.setter
    def inputs(self, ports: Iterable[Port]) -> None:
        self._set_part("inputs", list(ports))

    @property
    def outputs(self) -> list[Port]:
        """The output ports; an output's index is its rank here."""
        ports: list[Port] = self._part("outputs")
        return ports

    @outputs.setter
    def outputs(self, ports: Iterable[Port]) -> None:
        self._set_part("outputs", list(ports))

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

    def tensor_names(self) -> list[tuple[str, ...]]:
        """The names of each output; the ports are not read for it."""
        read = self._parts.get("outputs")
        if read is not None:
            return [port.names for port in read]
        found = None if self.element is None else child(self.element, "output")
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
        if 0 < kind.bits < 8:
            # What is held is what will be read again: nf4 has sixteen values only.
            with self.at("data"):
                self._value = unpack(pack(array, kind), kind, array.shape)
        else:
            self._value = array.astype(kind.dtype, copy=False)
        old = self.data
        self.data = {
            **old, "element_type": str(kind), "shape": ", ".join(map(str, array.shape))
        }  # fmt: skip
        self.data.pop("value", None)
        if not self.outputs:
            self.outputs.append(Port(0))
        self.outputs[0].describe(Tensor(kind, array.shape))

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

    def read_all(self) -> None:
        """Read every part, so that the element is no longer needed; not what is in bodies."""
        for name in PARTS:
            self._part(name)

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
        for name, value in fields.items():
            setattr(self, name, value)

    def __copy__(self) -> Layer:
        return deepcopy(self)  # a layer is in one graph alone

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        return copied(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __repr__(self) -> str:
        return f'<layer {self.id} "{self.name}" ({self.type} {self.version})>'


@cache
def _operations() -> type[Op]:
    """The operations, imported when the first is asked for."""
    from ...layers.base import Op

    return Op


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
