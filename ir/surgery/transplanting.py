"""Layers moved from one graph to another, with the wires between them; bodies, by their paths."""

from __future__ import annotations

from contextlib import suppress

from ...schemas import IRError, UsageError
from ..document import BODIES_OF, Graph, Layer, Model

_CHECK = "vinoir check lists all that is wrong with the file"


def transplant(source: Graph, target: Graph) -> None:
    """Move all layers of a graph into another, last; ids that are taken there are given anew.

    Raises:
        IRError: An edge names a layer or a port that is not there; nothing was moved.
    """
    layers = {layer.id: layer for layer in source.layers}
    edges = list(source.edges)
    ranks: dict[int, dict[str, dict[int, int]]] = {}
    for number, layer in layers.items():
        ranks[number] = {
            tag: {port: index for index, port in enumerate(layer.port_ids(tag))}
            for tag in ("input", "output")
        }
    for edge in edges:
        for number, tag, port in (
            (edge.from_layer, "output", edge.from_port),
            (edge.to_layer, "input", edge.to_port),
        ):
            if number not in layers:
                raise IRError(f"an edge names layer {number}, which is not there", hint=_CHECK)
            if port not in ranks[number][tag]:
                raise IRError(
                    f"an edge names {tag} port {port}, {tag} ports are {list(ranks[number][tag])}",
                    layers[number].where,
                    _CHECK,
                )
    for layer in source.layers:
        layer.read_all()
        if layer.is_constant and layer.has_value:
            layer.keep_value()
    source.remove(*source.layers)
    for layer in layers.values():
        target.add(layer)
    for edge in edges:
        feeder, user = layers[edge.from_layer], layers[edge.to_layer]
        target.connect(
            (feeder, ranks[edge.from_layer]["output"][edge.from_port]),
            user,
            ranks[edge.to_layer]["input"][edge.to_port],
        )


def as_model(body: Graph, name: str, version: int) -> Model:
    """The layers of a body as a model of their own; the body is empty then."""
    model = Model(name, version)
    transplant(body, model)
    return model


def body_at(model: Model, path: str) -> Graph:
    """The body that a path names: layers by name, each followed by the body where it has two."""
    graph: Graph = model
    rest = path
    while rest or graph is model:
        names = [
            layer.name
            for layer in graph.layers
            if layer.type in BODIES_OF
            and (rest == layer.name or rest.startswith(f"{layer.name}/"))
        ]
        if not names:
            held = [x.name for x in graph.layers if x.type in BODIES_OF]
            raise UsageError(
                f'no layer with a body is named "{rest}"',
                hint=f"there are {', '.join(held[:8])}" if held else "no layer has a body",
            )
        name = max(names, key=len)
        rest = rest[len(name) + 1 :]
        bodies = graph.layer(name).bodies
        tag, _, behind = rest.partition("/")
        if tag in bodies:
            graph, rest = bodies[tag], behind
        elif len(bodies) == 1:
            graph = next(iter(bodies.values()))
        else:
            raise UsageError(
                f'"{name}" has {len(bodies)} bodies: {", ".join(bodies)}',
                hint=f'write "{name}/{next(iter(bodies), "body")}"',
            )
    return graph


def graph_of(model: Model, path: str) -> tuple[Graph, str]:
    """The graph that has what a path names, and its name there: ``outer/inner`` is in a body.

    Where neither the model nor a body has such a layer or tensor, it is looked for in the model.
    """
    if "/" in path and not model.is_name(path):
        for place, letter in enumerate(path):
            if letter == "/":
                with suppress(UsageError):
                    graph, name = body_at(model, path[:place]), path[place + 1 :]
                    graph.layer(name)
                    return graph, name
    return model, path


def layer_at(model: Model, path: str) -> Layer:
    """The layer of a name, id or tensor name, in a body behind the path of that: ``outer/inner``.

    Raises:
        UsageError: There is no such layer.
    """
    graph, name = graph_of(model, path)
    return graph.layer(name)


def ends_in_order(graph: Graph, inputs: list[Layer], outputs: list[Layer]) -> None:
    """Let Parameters and Results stand in this order, the first before all and the last after."""
    ends = {id(layer) for layer in (*inputs, *outputs)}
    if graph.parameters == inputs and graph.results == outputs:
        return
    rest = [layer for layer in graph.layers if id(layer) not in ends]
    graph.arrange([*inputs, *rest, *outputs])


__all__ = [
    "as_model", "body_at", "ends_in_order", "graph_of", "layer_at", "transplant",
]  # fmt: skip
