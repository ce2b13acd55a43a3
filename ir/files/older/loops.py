"""TensorIterator.

Its old body has neither Parameters nor Results: the port map names the port of the layer inside
that takes a value, and the port of the one that gives it. Each such port becomes a Parameter or a
Result, and the map and the back edges are written with their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from ....schemas import IRError
from ...document import (
    DEEPEST,
    BackEdge,
    Builder,
    Graph,
    Layer,
    MapEntry,
    Output,
    Port,
    PortMap,
    whole,
)
from ...inference import infer_bodies, infer_graph
from .document import OldGraph, OldLayer, first_ids, ranks_of, read_graph
from .layer import TYPES, Old
from .table import Made, converts


@dataclass(frozen=True)
class Line:
    """A line of the port map."""

    kind: str
    #: Rank of the outer port.
    rank: int
    layer: int
    port: int
    slicing: dict[str, str]


@converts("TensorIterator", becomes="TensorIterator-1")
def tensor_iterator(old: Old) -> Made:
    """The body upgraded like a network, wired to the outer ports."""
    element = old.layer.element
    body = element.find("body")
    if body is None:
        raise IRError("TensorIterator has no <body>")
    walk = old.scene.walk
    if walk.depth >= DEEPEST:
        raise IRError(f"bodies are nested more than {DEEPEST} deep")
    lines = list(_lines(old.layer))
    back = list(_back_edges(element))
    inner = read_graph(body, walk.upgrade.reading, old.layer.precision)
    made = Layer(
        "TensorIterator", "opset1", old.scene.builder.free(f"{old.layer.name}/TensorIterator"),
        inputs=[Port.of(i, one.tensor) for i, one in enumerate(old.inputs)],
    )  # fmt: skip
    made.made_of(element)
    graph = old.scene.builder.graph
    graph.add(made)
    for index, one in enumerate(old.inputs):
        graph.connect((one.layer, one.index), made, index)
    wiring, edges = _body(old, made, inner, lines, back)
    made.back_edges = edges
    made.port_maps["body"] = wiring
    tensors = infer_bodies(made, [one.tensor for one in old.inputs], infer_graph)
    made.outputs = [Port.of(len(old.inputs) + i, tensor) for i, tensor in enumerate(tensors)]
    old.made.append(made)
    return [Output(made, index, list(tensors)) for index in range(len(tensors))]


def _body(
    old: Old,
    made: Layer,
    inner: OldGraph,
    lines: list[Line],
    back: list[tuple[int, int, int, int]],
) -> tuple[PortMap, list[BackEdge]]:
    """The graph inside, and how it is wired."""
    from .upgrade import Walk, Wiring

    outer = old.scene.walk
    graph = Graph(made)
    made.add_body("body", graph)
    builder = Builder(into=graph)
    builder.reserve(layer.name for layer in inner.layers)
    wiring = Wiring(outer.upgrade, inner)
    given = _given(old, builder, inner, [line for line in lines if line.kind == "input"])
    for layer, port in given:
        if (layer, port) in wiring.sources:
            raise IRError(
                f"port {port} of layer {layer} inside is fed by an edge and by the port map"
            )
    returned = set()
    for _, _, layer, port in back:
        if (layer, port) in returned:
            raise IRError(f"two back edges enter port {port} of layer {layer} inside")
        returned.add((layer, port))
        if (layer, port) not in given:
            raise IRError(
                f"a back edge enters port {port} of layer {layer} inside, which no <input> of the "
                "port map fills at first"
            )
    walk = Walk(outer.upgrade, wiring, builder, given, depth=outer.depth + 1)
    walk.walk()
    handed = [(x.layer, x.port) for x in lines if x.kind == "output"] + [x[:2] for x in back]
    results = {}
    for place in dict.fromkeys(handed):
        source = walk.values.get(place)
        if source is None:
            raise IRError(
                f"the port map names port {place[1]} of layer {place[0]}, which gives nothing"
            )
        results[place] = builder.result(source, name=f"{source.layer.name}/result", names=())
    entries = []
    for line in sorted(lines, key=lambda line: (line.kind == "output", line.rank)):
        place = (line.layer, line.port)
        inside = given[place].layer if line.kind == "input" else results[place]
        ids = {
            "external_port_id": str(line.rank if line.kind == "input" else len(old) + line.rank),
            "internal_layer_id": str(inside.id),
        }
        entries.append(MapEntry(line.kind, ids | line.slicing))
    edges = [BackEdge(results[x[:2]].id, given[x[2:]].layer.id) for x in back]
    return PortMap(entries), edges


def _given(
    old: Old, builder: Builder, inner: OldGraph, lines: list[Line]
) -> dict[tuple[int, int], Output]:
    """A Parameter for each input port of the body that a line of the port map fills.

    Before v7 ports had no precision: then it is of the type of what comes from outside.
    """
    given: dict[tuple[int, int], Output] = {}
    ranks: dict[int, dict[int, int]] = {}
    for line in lines:
        place, holder = (line.layer, line.port), inner.by_id.get(line.layer)
        if holder is None:
            raise IRError(f"the port map names layer {line.layer} of the body, which is not there")
        if line.layer not in ranks:
            ranks[line.layer] = ranks_of(holder.inputs)
        rank = ranks[line.layer].get(line.port)
        if rank is None:
            raise IRError(
                f"the port map names input port {line.port} of layer {line.layer} of the body, "
                f"whose input ports are [{first_ids(ranks[line.layer])}]"
            )
        if place in given:
            raise IRError(
                f"two <input> of the port map fill port {line.port} of layer {line.layer} inside"
            )
        said = holder.inputs[rank].precision
        kind = TYPES.get(said) if said else old.inputs[line.rank].tensor.type
        if kind is None:
            raise IRError("precision Q78 is of fixed-point numbers that no CPU ran")
        name = f"{holder.name}/input{rank}"
        given[place] = builder.parameter(name, kind, holder.inputs[rank].dims)
    return given


def _lines(layer: OldLayer) -> Iterator[Line]:
    """The port map, with the outer ports by rank."""
    section = layer.element.find("port_map")
    if section is None:
        raise IRError("TensorIterator has no <port_map>")
    ranks = {"input": ranks_of(layer.inputs), "output": ranks_of(layer.outputs)}
    given = set()
    for child in section.iterchildren("input", "output"):
        kind = str(child.tag)
        number = _number(child, "external_port_id")
        rank = ranks[kind].get(number)
        if rank is None:
            raise IRError(
                f"<{kind}> of the port map names the outer port {number}, the {kind} ports are "
                f"[{first_ids(ranks[kind])}]"
            )
        if kind == "output":
            if number in given:
                raise IRError(f"two <output> of the port map give the outer port {number}")
            given.add(number)
        yield Line(
            kind, rank, _number(child, "internal_layer_id"), _number(child, "internal_port_id"),
            _slicing(child),
        )  # fmt: skip


def _slicing(child: etree._Element) -> dict[str, str]:
    """How an axis is gone along; without an axis, or with -1, it is not."""
    axis = child.get("axis")
    if axis is None or whole(axis, "axis", least=-1) < 0:
        return {}
    usual = {"axis": axis, "start": "0", "end": "-1", "stride": "1", "part_size": "1"}
    return {
        name: str(whole(child.get(name, default), name, least=-(2**31)))
        for name, default in usual.items()
    }


def _back_edges(element: etree._Element) -> Iterator[tuple[int, int, int, int]]:
    section = element.find("back_edges")
    for child in () if section is None else section.iterchildren("edge"):
        yield (
            _number(child, "from-layer"), _number(child, "from-port"),
            _number(child, "to-layer"), _number(child, "to-port"),
        )  # fmt: skip


def _number(child: etree._Element, name: str) -> int:
    text = child.get(name)
    if text is None:
        raise IRError(f"<{child.tag!s}> of the body's wiring has no {name}")
    return whole(text, name)
