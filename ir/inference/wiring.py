"""Port maps: which input feeds which Parameter of a body, which Result gives which output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...layers.axes import axis_of
from ...schemas import Dim, IRError, Tensor
from ..document import Graph, Layer, MapEntry, PortMap

T = TypeVar("T")

#: What a Loop knows lines of either kind to be for.
PURPOSES = {"input": "current_iteration", "output": "execution_condition"}


def branch(layer: Layer, *, condition: bool) -> tuple[Graph, list[MapEntry], list[MapEntry]]:
    """The side of an If that is taken, what feeds it, and what it gives in order."""
    body, port_map = body_of(layer, "then_body" if condition else "else_body")
    return body, port_map.inputs, ordered_outputs(port_map)


def body_of(layer: Layer, name: str) -> tuple[Graph, PortMap]:
    """A body with its port map."""
    if name not in layer.bodies:
        raise IRError(f"{layer.type} has no {name}")
    return layer.bodies[name], layer.port_maps.get(name, PortMap())


def refuse_loose_ends(layer: Layer, body: Graph, port_map: PortMap) -> None:
    """Refuse lines and back edges that name no Parameter or Result of the body."""
    parameters = {inner.id for inner in body.parameters}
    results = {inner.id for inner in body.results}
    for entry in (*port_map.inputs, *port_map.outputs):
        wanted, known = ("Parameter", parameters) if entry.kind == "input" else ("Result", results)
        if entry.internal_layer_id not in known:
            raise entry.error(
                f"the port map names layer {entry.internal_layer_id} of the body, which is no "
                f"{wanted} ({_listed(known)})"
            )
        if entry.purpose not in (None, PURPOSES[entry.kind]):
            raise entry.error(
                f'purpose="{entry.purpose}" of an {entry.kind} is not known, it has '
                f"{PURPOSES[entry.kind]} or none"
            )
    for edge in layer.back_edges:
        if edge.from_layer not in results or edge.to_layer not in parameters:
            raise IRError(
                f"the back edge from layer {edge.from_layer} to {edge.to_layer} of the body: they "
                f"go from a Result ({_listed(results)}) to a Parameter "
                f"({_listed(parameters)})"
            )


def _listed(known: set[int]) -> str:
    """What there is, for an error."""
    return ", ".join(map(str, sorted(known)[:20])) or "there is none"


def ordered_outputs(port_map: PortMap) -> list[MapEntry]:
    """The entries of the outputs, in the order of the outputs."""
    outer = [entry for entry in port_map.outputs if entry.external_port_id >= 0]
    return sorted(outer, key=lambda entry: entry.external_port_id)


def outer_input(entry: MapEntry, inputs: Sequence[T]) -> T:
    """The outer input that an entry names."""
    if entry.external_port_id >= len(inputs):
        raise entry.error(
            f"the port map takes input {entry.external_port_id}, the layer has {len(inputs)}"
        )
    return inputs[entry.external_port_id]


def turns_of_iterator(port_map: PortMap, inputs: Sequence[Tensor]) -> int | None:
    """How often a TensorIterator runs its body; None where that is not known."""
    turns = None
    sliced = False
    for entry in port_map.inputs:
        if entry.axis is None:
            continue
        sliced = True
        shape = outer_input(entry, inputs).shape
        if shape.rank is not None:
            size = shape[axis_of(entry.axis, shape.rank)]
            turns = slices(entry, size) if not isinstance(size, Dim) else turns
    if turns is None and not sliced:
        for entry in port_map.outputs:
            if entry.axis is not None:
                return abs(entry.end - entry.start) // max(entry.part_size, 1)
    return turns


def slices(entry: MapEntry, size: int) -> int:
    """Into how many slices an axis is cut, none where it is empty; both ends belong to it."""
    start = entry.start + size if entry.start < 0 else entry.start
    end = entry.end + size if entry.end < 0 else entry.end
    if entry.part_size < 1:
        raise IRError(f"part_size is {entry.part_size}, the least is 1")
    if not size:
        return 0  # the last place, -1, lies before the first
    count = (abs(end - start) + 1) // entry.part_size
    if size < count:
        raise entry.error(
            f"from {entry.start} to {entry.end} there are {count} slices, the axis has {size}"
        )
    return count
