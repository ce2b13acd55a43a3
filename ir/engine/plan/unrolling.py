"""Loops whose turns are known beforehand: how often the body runs, and what each turn is given.

The turns come one after the other in the place of the loop, where all that counts them, chooses
rows by number or tells how long something is has become constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ....layers.axes import all_but
from ....layers.base import Op
from ....layers.budget import budget
from ....schemas import IRError, Shape, Tensor
from ...document import Graph, Layer, MapEntry, PortMap
from ...execution import begin_of
from ...inference import (
    Inferred,
    body_of,
    infer_layer,
    ordered_outputs,
    outer_input,
    turns_of_iterator,
)
from .nodes import Node, Value, constant

#: Nodes that the turns of one loop may take the place of it with.
MOST = 2048
#: Bytes of constants that each turn might have laid out for itself, all turns together.
HEAVY = 1 << 24
#: What has weights that are laid out for each node.
LAID_OUT = ("Convolution", "GroupConvolution", "ConvolutionBackpropData")

#: The layers of a body in order, with what feeds them.
Order: TypeAlias = "Sequence[tuple[Layer, Sequence[tuple[Layer, int] | None]]]"
#: What a layer gives.
Outputs: TypeAlias = "tuple[Tensor, ...]"
#: Makes the nodes of a body from its Parameters by layer id; what its Results hand out.
AddBody: TypeAlias = "Callable[[Graph, Inferred, Mapping[int, Value]], list[Value]]"


class Loop(NamedTuple):
    """A loop, what it is fed, and what is known of each turn."""

    layer: Layer
    body: Graph
    port_map: PortMap
    feeders: Sequence[Value]
    turns: list[Inferred]


def known_turns(layer: Layer, feeders: Sequence[Value], known: Sequence[Tensor]) -> Loop | None:
    """The turns of a loop with all their shapes; None where these, or their number, are open."""
    body, port_map = body_of(layer, "body")
    if any(inner.bodies for inner in body.everywhere()):
        return None
    most = _most(layer, port_map, known)
    if most is None:
        return None
    condition = next(
        (e.internal_layer_id for e in port_map.outputs if e.purpose == "execution_condition"), None
    )
    if (condition is None) is (layer.type == "Loop"):
        return None
    parameters = {parameter.id for parameter in body.parameters}
    back = {edge.to_layer: edge.from_layer for edge in layer.back_edges}
    counted = {e.internal_layer_id for e in port_map.inputs if e.purpose == "current_iteration"}
    order = [(inner, body.sources(inner)) for inner in body.order()]
    turns: list[Inferred] = []
    nodes = 0
    while most < 0 or len(turns) < most:
        budget().turn()
        given: dict[int, Tensor] = {}
        for entry in port_map.inputs:
            place = entry.internal_layer_id
            if place in counted:
                given[place] = _number(body.layer(place), len(turns))
            elif turns and place in back:
                given[place] = _kept(turns[-1].tensors[back[place]][0])
            elif entry.axis is not None:
                outer = outer_input(entry, known)
                if not _has_part(entry, outer.shape, len(turns)):
                    return None  # whoever runs it says so
                shape = outer.shape.with_size(entry.axis, entry.part_size)
                given[place] = Tensor(outer.type, shape)
            else:
                given[place] = _kept(outer_input(entry, known))
        if given.keys() != parameters:
            return None
        turn = Inferred(body, _turn(body, order, given, turns[-1].tensors if turns else {}))
        count = _nodes(body, turn)
        nodes += count or 1  # however little it does, it is not for ever
        if count is None or nodes > MOST:
            return None
        turns.append(turn)
        if condition is not None:
            goes_on = turn.tensors[condition][0].ints()
            if goes_on is None:
                return None
            if not goes_on[0]:
                break
    if not turns or len(turns) * _weights(body) > HEAVY:
        return None
    if not all(_fit(entry, turns) for entry in ordered_outputs(port_map)):
        return None  # whoever runs it says so
    return Loop(layer, body, port_map, feeders, turns)


def _has_part(entry: MapEntry, shape: Shape, turn: int) -> bool:
    """Whether an outer input has a slice for a turn, as far as its shape is known."""
    size = shape[entry.axis or 0] if shape.rank else None
    try:
        return not isinstance(size, int) or begin_of(entry, size, turn) >= 0
    except IRError:
        return False


def _fit(entry: MapEntry, turns: Sequence[Inferred]) -> bool:
    """Whether what turns give agrees in all axes but the one along which it is joined."""
    if entry.axis is None:
        return True
    given = [turn.tensors[entry.internal_layer_id][0].shape.static for turn in turns]
    return () not in given and len({all_but(shape, entry.axis) for shape in given}) == 1


def unrolled(loop: Loop, add: AddBody, made: list[Node]) -> list[Value]:
    """What a loop gives, of nodes for each turn."""
    layer, body, port_map = loop.layer, loop.body, loop.port_map
    back = {edge.to_layer: edge.from_layer for edge in layer.back_edges}
    found: dict[int, Value] = {}
    rows: dict[int, list[Value]] = {e.internal_layer_id: [] for e in ordered_outputs(port_map)}
    for number, turn in enumerate(loop.turns):
        given: dict[int, Value] = {}
        for entry in port_map.inputs:
            place = entry.internal_layer_id
            (tensor,) = turn.tensors[place]
            if tensor.value is not None:
                given[place] = constant(tensor.value)
            elif number and place in back:
                given[place] = found[back[place]]
            elif entry.axis is not None:
                given[place] = _part(layer, entry, loop.feeders, tensor, number, made)
            else:
                given[place] = outer_input(entry, loop.feeders)
        handed = add(body, turn, given)
        found = {result.id: value for result, value in zip(body.results, handed, strict=True)}
        for place, row in rows.items():
            row.append(found[place])
    return [
        found[entry.internal_layer_id] if entry.axis is None
        else _joined(layer, entry, rows[entry.internal_layer_id], made)
        for entry in ordered_outputs(port_map)
    ]  # fmt: skip


def _most(layer: Layer, port_map: PortMap, known: Sequence[Tensor]) -> int | None:
    """How many turns there are at the most, -1 for any number; None where nobody can tell."""
    if layer.type == "TensorIterator":
        return turns_of_iterator(port_map, known)
    count, condition = (known[place].ints() for place in (0, 1))
    return count[0] if count and condition and condition[0] else None


def _turn(
    body: Graph, order: Order, given: Mapping[int, Tensor], before: Mapping[int, Outputs]
) -> dict[int, Outputs]:
    """What is inferred of a turn: as in the one before, wherever nothing else comes in."""
    found: dict[int, Outputs] = {}
    for layer, sources in order:
        former = before.get(layer.id)
        if (
            former is not None
            and layer.type != "Parameter"
            and all(
                source is not None
                and found[source[0].id][source[1]] is before[source[0].id][source[1]]
                for source in sources
            )
        ):
            found[layer.id] = former
            continue
        outputs = infer_layer(body, layer, found, given)
        is_same = former is not None and all(map(_is_same, outputs, former))
        found[layer.id] = former if former is not None and is_same else outputs
    return found


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether as much is known of a tensor as of another, and the same."""
    if one.type is not other.type or one.shape != other.shape:
        return False
    if one.value is None or other.value is None:
        return one.value is other.value
    return np.array_equal(one.value, other.value)


def _number(parameter: Layer, turn: int) -> Tensor:
    """The number of a turn, as the body wants it."""
    declared = parameter.outputs[0]
    shape = len(declared.dims) * (1,)
    return Tensor(declared.type, shape, np.full(shape, turn, declared.type.dtype))


def _kept(tensor: Tensor) -> Tensor:
    """What the body sees of a tensor: of real numbers not their values, computed otherwise."""
    return Tensor(tensor.type, tensor.shape) if tensor.type.is_real else tensor


def _nodes(body: Graph, turn: Inferred) -> int | None:
    """How many nodes a turn takes; None where not all is known."""
    count = 0
    for layer in body.layers:
        tensors = turn.tensors.get(layer.id, ())
        if layer.type == "Result" or layer.is_constant:
            continue
        if any(x.type.is_dynamic or not x.shape.is_static for x in tensors):
            return None
        count += not all(x.value is not None and not x.type.is_real for x in tensors)
    return count


def _weights(body: Graph) -> int:
    """Bytes of constants that every turn would lay out for itself."""
    total = 0
    for layer in body.layers:
        if layer.type in LAID_OUT:
            source = body.producer(layer, 1)
            total += source[0].value.nbytes if source and source[0].is_constant else 0
    return total


def _part(
    layer: Layer,
    entry: MapEntry,
    feeders: Sequence[Value],
    tensor: Tensor,
    turn: int,
    made: list[Node],
) -> Value:
    """The slice of an outer input that a turn sees."""
    source = outer_input(entry, feeders)
    axis = (entry.axis or 0) % len(source.shape)
    first = begin_of(entry, source.shape[axis], turn)
    words = [constant(np.array([n])) for n in (first, first + entry.part_size, 1, axis)]
    part = Value(tensor.shape.static, source.type, element=source.element)
    made.append(Node(layer, Op.registry["Slice", 8].read({}), [source, *words], [part]))
    return part


def _joined(layer: Layer, entry: MapEntry, row: list[Value], made: list[Node]) -> Value:
    """What all turns have given, in one."""
    ordered = row[::-1] if entry.stride < 0 else row
    axis = (entry.axis or 0) % len(row[0].shape)
    shape = list(row[0].shape)
    shape[axis] = sum(value.shape[axis] for value in row)
    whole = Value(tuple(shape), row[0].type, element=row[0].element)
    op = Op.registry["Concat", 1].read({"axis": str(axis)})
    made.append(Node(layer, op, ordered, [whole]))
    return whole
