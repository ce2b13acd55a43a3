"""The elements of an IR file, one record each: attributes and children under their XML names.

This is the shape of the format in one place. The XML Schema is made from it (``export.py``), and
:func:`read` turns an element tree into checked records. The reader in ``ir/`` knows the same
shape, but reads lazily and keeps what no record names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

#: Ids and places in the .bin.
Number = Annotated[int, Field(ge=0, le=2**63 - 1)]
#: A size; -1 where it is not known.
Extent = Annotated[int, Field(ge=-1, le=2**63 - 1)]
#: A place on an axis, or a step along it.
Signed = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class Record(BaseModel):
    """An element; fields that are records, or lists of them, are its children."""

    model_config = ConfigDict(populate_by_name=True, extra="allow")

    #: Whether its text is a field (named ``text``), and whether anything may be inside.
    has_text: ClassVar[bool] = False
    is_open: ClassVar[bool] = False
    #: Keys and references: name, elements, attribute; the key that it refers to.
    keys: ClassVar[tuple[tuple[str, str, str, str | None], ...]] = ()

    @classmethod
    def children(cls) -> dict[str, tuple[type[Record], bool]]:
        """By tag: the record of a child, and whether there may be many."""
        found = {}
        for name, field in cls.model_fields.items():
            kind, many = child_of(field)
            if kind is not None:
                found[field.alias or name] = (kind, many)
        return found

    @classmethod
    def attributes(cls) -> dict[str, FieldInfo]:
        """By name: the field of an attribute."""
        return {
            field.alias or name: field
            for name, field in cls.model_fields.items()
            if child_of(field)[0] is None and name != "text"
        }


class Tree(Record):
    """Anything: attributes, children and text of any name."""

    is_open = True


class Dim(Record):
    """One size of a port."""

    has_text = True
    text: Extent


class Port(Record):
    """One input or output of a layer."""

    id: Number
    precision: str | None = None
    names: str | None = None
    dim: list[Dim] = []
    rt_info: Tree | None = None


class Ports(Record):
    """The inputs or the outputs of a layer."""

    port: list[Port] = []


class Data(Record):
    """The attributes of an operation, under the names of its specification."""

    is_open = True


class MapEntry(Record):
    """An outer port and the layer of the body it belongs to."""

    external_port_id: Signed
    internal_layer_id: Number
    axis: Signed | None = None
    start: Signed | None = None
    end: Signed | None = None
    stride: Signed | None = None
    part_size: Signed | None = None
    purpose: Literal["current_iteration", "execution_condition"] | None = None


class PortMap(Record):
    """How a body is wired to the layer around it."""

    input: list[MapEntry] = []
    output: list[MapEntry] = []


class BackEdge(Record):
    """From a Result of a body to the Parameter that has its value in the next turn."""

    from_layer: Number = Field(alias="from-layer")
    to_layer: Number = Field(alias="to-layer")


class BackEdges(Record):
    """What a body carries from turn to turn."""

    edge: list[BackEdge] = []


class Edge(Record):
    """From an output port to an input port."""

    from_layer: Number = Field(alias="from-layer")
    from_port: Number = Field(alias="from-port")
    to_layer: Number = Field(alias="to-layer")
    to_port: Number = Field(alias="to-port")


class Edges(Record):
    """The edges of a graph."""

    edge: list[Edge] = []


class Layer(Record):
    """One operation of the graph."""

    keys = (
        ("input-port", "input/port", "id", None),
        ("output-port", "output/port", "id", None),
    )

    id: Number
    name: str
    type: str
    version: str
    output_names: str | None = None
    data: Data | None = None
    rt_info: Tree | None = None
    else_port_map: PortMap | None = None
    then_port_map: PortMap | None = None
    port_map: PortMap | None = None
    back_edges: BackEdges | None = None
    input: Ports | None = None
    output: Ports | None = None
    body: Body | None = None
    then_body: Body | None = None
    else_body: Body | None = None


class Layers(Record):
    """The layers of a graph; Parameters and Results in the order of its inputs and outputs."""

    layer: list[Layer] = []


class Body(Record):
    """A graph inside a layer."""

    # No references to it: libxml2 looks for their keys in bodies of the same name inside, too.
    keys = (("body-layer", "layers/layer", "id", None),)

    layers: Layers | None = None
    edges: Edges | None = None
    rt_info: Tree | None = None


class Mean(Record):
    """What is taken off a channel: a number, or an image in the .bin."""

    value: float | None = None
    offset: Number | None = None
    size: Number | None = None


class Channel(Record):
    """One channel of the input."""

    id: Number
    mean: Mean | None = None
    scale: Tree | None = None


class PreProcess(Record):
    """What is done to an input first."""

    reference_layer_name: str | None = Field(None, alias="reference-layer-name")
    mean_precision: str | None = Field(None, alias="mean-precision")
    channel: list[Channel] = []


class Net(Record):
    """A model."""

    keys = (
        ("layer", "layers/layer", "id", None),
        ("edge-from", "edges/edge", "from-layer", "layer"),
        ("edge-to", "edges/edge", "to-layer", "layer"),
    )

    name: str | None = None
    version: Annotated[int, Field(ge=10, le=11)]
    layers: Layers | None = None
    edges: Edges | None = None
    pre_process: PreProcess | None = Field(None, alias="pre-process")
    rt_info: Tree | None = None
    meta_data: Tree | None = None
    quantization_parameters: Tree | None = None


for _record in (Layer, Layers, Body, Net):
    _record.model_rebuild()


def child_of(field: FieldInfo) -> tuple[type[Record] | None, bool]:
    """The record that a field holds, and whether it holds a list of them."""
    kind = field.annotation
    for part in (kind, *get_args(kind)):
        if isinstance(part, type) and issubclass(part, Record):
            return part, getattr(kind, "__origin__", None) is list
    return None, False


class Element(Protocol):
    """What an element tree offers, lxml's or the standard library's."""

    @property
    def tag(self) -> Any:
        """Its name."""

    @property
    def text(self) -> str | None:
        """The text before its first child."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Its attributes."""

    def __iter__(self) -> Any:
        """Its children."""


R = TypeVar("R", bound=Record)


def read(kind: type[R], element: Element) -> R:
    """The record of an element and of all that is in it, as far as records name it."""
    values: dict[str, Any] = {str(key): text for key, text in element.items()}
    if kind.has_text:
        values["text"] = (element.text or "").strip()
    children = kind.children()
    for child in element:
        inner = children.get(child.tag) if isinstance(child.tag, str) else None
        if inner is None:
            continue
        record, many = inner
        if many:
            values.setdefault(child.tag, []).append(read(record, child))
        elif not isinstance(values.get(child.tag), Record):
            values[child.tag] = read(record, child)  # the first counts
    return kind.model_validate(values)
