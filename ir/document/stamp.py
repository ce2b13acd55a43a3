"""By what it is seen that a model was edited since something was prepared of it."""

from __future__ import annotations

from typing import NamedTuple

from ...schemas import Array
from .graph import Graph
from .layer import Layer


class Stamp(NamedTuple):
    """What a model computes as a number, whatever its layers are called."""

    number: int
    #: New values of constants, held so that no other array comes to lie where they do.
    values: list[Array]


def stamp_of(graph: Graph) -> Stamp:
    """The stamp of a graph and all bodies in it."""
    rows: list[int] = []
    values: list[Array] = []
    graphs = [graph]
    for one in graphs:
        rows.append(hash(tuple(one.edges)))
        for layer in one.layers:
            if layer.has_new_value:
                values.append(layer.value)
            rows.append(hash((layer.type, layer.version, layer.id, tuple(layer.data.items()))))
            if layer.bodies:
                rows.append(_feeding(layer))
                graphs.extend(layer.bodies.values())
    return Stamp(hash((tuple(rows), tuple(map(id, values)))), values)


def _feeding(layer: Layer) -> int:
    """How the bodies of a layer are fed, and what is handed out of them."""
    entries = [
        (tag, entry.kind, tuple(entry.attributes.items()))
        for tag, held in layer.port_maps.items()
        for entry in held.entries
    ]
    return hash((tuple(entries), tuple(layer.back_edges)))
