"""Execution graphs: what OpenVINO has compiled a model to, which it writes as if it were one."""

from __future__ import annotations

from collections.abc import Mapping

from ...schemas import UnsupportedError, Where
from .graph import Graph

#: What OpenVINO says of every primitive, and of no layer.
_MARKS = ("execOrder", "primitiveType")
EXECUTION_GRAPH = (
    "an execution graph, what OpenVINO compiled a model to, with the primitives that it chose and "
    "their times: nothing can be run, inferred or compared of it"
)
EXECUTION_HINT = "take the model that was compiled; vinoir show tells this one's times"


def is_primitive(version: str | None, data: Mapping[str, str]) -> bool:
    """Whether a layer with this version and these attributes is one of an execution graph."""
    return not version and all(mark in data for mark in _MARKS)


def is_execution_graph(graph: Graph) -> bool:
    """Whether a graph tells how a model is executed."""
    return any(is_primitive(first.version, first.data) for first in graph.layers[:1])


def refuse_execution_graph(graph: Graph) -> None:
    """Say what an execution graph is, where a model is wanted."""
    if is_execution_graph(graph):
        place = None if graph.model is None else graph.model.place
        raise UnsupportedError(EXECUTION_GRAPH, Where(place), EXECUTION_HINT)
