"""Models as values: for ``copy.deepcopy``, ``pickle``, and processes that are handed one.

Layers, graphs and bodies know each other, and the elements that they were read from can neither be
pickled nor copied one by one. So a model is taken apart into flat lists in which numbers stand for
layers, graphs and elements; nothing recurses, however deep bodies are nested. A copy shares the
tree, which nobody changes; a pickled model carries its document and parses it again. The .bin is
carried by reference where it is a file that is still what was read (see ``Weights``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lxml import etree

from ...schemas import IRError
from ..text import parse
from .layer_parts import BODIES
from .literals import owned
from .parts import read_port_map

#: Graphs and layers, by whose copying methods this file is called; it knows them by what they
#: offer (``is_graph``, ``fields``, ``restore``), so that they can import it.
Graph: TypeAlias = Any
Layer: TypeAlias = Any
_Part = TypeVar("_Part")


class GraphState(NamedTuple):
    """A graph, its layers and its owner by their numbers."""

    kind: Any
    fields: dict[str, Any]
    layers: list[int]
    owner: int | None
    element: int | None


class LayerState(NamedTuple):
    """What of a layer was read or made, its bodies by their numbers."""

    kind: Any
    fields: dict[str, Any]
    parts: dict[str, Any]
    bodies: dict[str, int] | None
    element: int | None


class State(NamedTuple):
    """Everything inside a model, a graph or a layer that stands alone."""

    graphs: list[GraphState]
    layers: list[LayerState]


class _Members:
    """The graphs and layers inside of a part, as far as they were read."""

    def __init__(self, root: Graph | Layer) -> None:
        self.graphs: list[Graph] = []
        self.layers: list[Layer] = []
        element = root.element if root.is_graph and root.owner is None else None
        self.elements = [] if element is None else numbered_elements(element)
        self._numbers = {element: number for number, element in enumerate(self.elements)}
        stack: list[Graph | Layer] = [root]
        while stack:
            part = stack.pop()
            if part.is_graph:
                self.graphs.append(part)
                stack.extend(part.layers)
                continue
            self.layers.append(part)
            if self.number(part.element) is None:
                part.read_all()
            stack.extend(part.parts_read.get("bodies", {}).values())

    def number(self, element: etree._Element | None) -> int | None:
        """The number of an element; None for one of another tree."""
        return None if element is None else self._numbers.get(element)


def numbered_elements(root: etree._Element) -> list[etree._Element]:
    """The elements that graphs and layers are read from, in the order of the document."""
    return list(root.iter(str(root.tag), "layer", *BODIES))


def take_apart(root: Graph | Layer) -> tuple[State, _Members]:
    """All that is inside of a part, as plain values."""
    members = _Members(root)
    graph_numbers = {id(graph): number for number, graph in enumerate(members.graphs)}
    layer_numbers = {id(layer): number for number, layer in enumerate(members.layers)}
    graphs = [
        GraphState(
            type(graph),
            graph.fields,
            [layer_numbers[id(layer)] for layer in graph.layers],
            None if graph.owner is None else layer_numbers.get(id(graph.owner)),
            members.number(graph.element),
        )
        for graph in members.graphs
    ]
    layers = []
    for layer in members.layers:
        fields, parts = layer.fields, dict(layer.parts_read)
        held = parts.pop("bodies", None)
        bodies = None if held is None else {tag: graph_numbers[id(g)] for tag, g in held.items()}
        if layer is root and layer.is_constant and layer.has_value:
            fields["_value"] = layer.value  # alone it has no weights to look at
        layers.append(
            LayerState(type(layer), fields, parts, bodies, members.number(layer.element))
        )
    return State(graphs, layers), members


def put_together(
    state: State, elements: Sequence[etree._Element]
) -> tuple[list[Graph], list[Layer]]:
    """The graphs and layers of plain values, the outermost first."""
    graphs = [one.kind.__new__(one.kind) for one in state.graphs]
    layers = [one.kind.__new__(one.kind) for one in state.layers]

    def found(number: int | None) -> etree._Element | None:
        return None if number is None else elements[number]

    for layer, held in zip(layers, state.layers, strict=True):
        parts = dict(held.parts)
        if held.bodies is not None:
            parts["bodies"] = {tag: graphs[number] for tag, number in held.bodies.items()}
        layer.restore(held.fields, parts, found(held.element))
        _find_lines(layer)
    for graph, kept in zip(graphs, state.graphs, strict=True):
        owner = None if kept.owner is None else layers[kept.owner]
        inside = [layers[number] for number in kept.layers]
        graph.restore(kept.fields, inside, owner, found(kept.element))
    return graphs, layers


def _find_lines(layer: Layer) -> None:
    """Let port maps that are what the file says know their lines again."""
    held: Mapping[str, Any] = layer.parts_read.get("port_maps", {})
    for body, wiring in held.items():
        element = None if layer.element is None else layer.element.find(BODIES[body])
        if element is not None:
            fresh = read_port_map(element, layer.exact_place)
            if fresh == wiring:
                wiring.entries[:] = fresh.entries


def outermost(part: Graph | Layer) -> Graph | Layer:
    """The graph or layer that a part is in, and that is in no other."""
    while True:
        outer = _holder(part)
        if outer is None:
            return part
        part = outer


def _holder(part: Graph | Layer) -> Graph | Layer:
    """What holds a part; what it was taken out of does not."""
    if not part.is_graph:
        return part.graph if part.is_in_graph else None
    owner = part.owner
    held = () if owner is None else owner.bodies.values()
    return owner if any(body is part for body in held) else None


def copied(part: _Part, memo: dict[int, Any]) -> _Part:
    """A part of an independent copy of all that it is in, over the same .bin."""
    alone = not memo
    if id(part) not in memo:
        state, members = take_apart(outermost(part))
        for layer in state.layers:
            value = layer.fields.get("_value")
            if value is not None:  # deepcopy of strings ends the process before NumPy 2.3
                memo[id(value)] = owned(value)
        graphs, layers = put_together(deepcopy(state, memo), members.elements)
        for old, new in zip(members.graphs, graphs, strict=True):
            memo[id(old)] = new
        for one, other in zip(members.layers, layers, strict=True):
            memo[id(one)] = other
    copy: Any = memo[id(part)]
    if alone and not copy.is_graph and copy.is_in_graph:
        copy.graph.copied_for = copy
    made: _Part = copy
    return made


def reduced(part: Graph | Layer) -> tuple[Any, ...]:
    """How to make a part anew: by its place in what holds it, or from plain values."""
    holder = _holder(part)
    if holder is not None and holder.is_graph:
        return _layer_at, (holder, [layer is part for layer in holder.layers].index(True))
    if holder is not None:
        tags = [tag for tag, body in holder.bodies.items() if body is part]
        return _body_of, (holder, tags[0])
    state, members = take_apart(part)
    # What was upgraded from an older document has no elements of it that could be found again.
    text = part.document if members.elements else None
    return _rebuilt, (state, text, len(members.elements))


def _layer_at(graph: Graph, place: int) -> Layer:
    return graph.layers[place]


def _body_of(owner: Layer, tag: str) -> Graph:
    return owner.bodies[tag]


def _rebuilt(state: State, text: bytes | None, count: int) -> Graph | Layer:
    """The part that was pickled."""
    elements: list[etree._Element] = []
    if text is not None:
        elements = numbered_elements(parse(text, None))
        if len(elements) != count:
            raise IRError(
                f"the pickled model had {count} graphs and layers in its document, "
                f"which has {len(elements)}"
            )
    graphs, layers = put_together(state, elements)
    return graphs[0] if graphs and graphs[0].owner is None else layers[0]
