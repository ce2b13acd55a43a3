"""Layers with bodies: If, TensorIterator and Loop, inferred.

A port map says which outer input feeds which Parameter of the body and which Result gives
which output; with an axis, an input is cut into slices and an output joined from them. A back
edge hands a Result to a Parameter for the next turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from ...layers.axes import axis_of
from ...schemas import ANY, Dim, ElementType, IRError, LimitError, Shape, Size, Tensor
from ...schemas.shapes import any_sizes, interval, limits, same, union
from ..document import Graph, Layer, MapEntry, PortMap
from .wiring import (
    body_of,
    ordered_outputs,
    outer_input,
    refuse_loose_ends,
    turns_of_iterator,
)

#: Infers a graph whose Parameters are given, by layer id; all outputs by layer id.
InferGraph = Callable[[Graph, Mapping[int, Tensor]], dict[int, tuple[Tensor, ...]]]

#: So many times a body is inferred with ever looser sizes before all of them may be anything.
ROUNDS = 24


def infer_bodies(layer: Layer, inputs: Sequence[Tensor], infer: InferGraph) -> tuple[Tensor, ...]:
    """The outputs of a layer with bodies."""
    if layer.type == "If":
        return _infer_if(layer, inputs, infer)
    _, port_map = body_of(layer, "body")
    loop = layer.type == "Loop"
    _, known = _turn(layer, inputs, infer)
    first = inputs[1].ints() if loop and len(inputs) > 1 else None
    never = first == [0]
    turns = (
        _turns_of_loop(layer, inputs, port_map, known, first)
        if loop
        else (turns_of_iterator(port_map, inputs))
    )
    begins = _first_states(layer, port_map, inputs)
    found = []
    for entry in ordered_outputs(port_map):
        tensor = _plain(_of(known, entry.internal_layer_id))
        begin = begins.get(entry.internal_layer_id)
        if entry.axis is None and begin is not None and not turns:
            # Where no turn comes, what the first was to be given is handed out.
            found.append(_plain(begin) if never else _with_names_of(tensor, begin))
        else:
            found.append(_output(entry, tensor, turns, never=never, loop=loop))
    return tuple(found)


def body_parameters(
    layer: Layer, inputs: Sequence[Tensor], infer: InferGraph
) -> dict[str, dict[int, Tensor]]:
    """What the Parameters of each body are in every turn, by layer id, as far as is known."""
    if layer.type != "If":
        return {"body": _turn(layer, inputs, infer)[0]}
    found = {}
    for name in ("then_body", "else_body"):
        _, port_map = body_of(layer, name)
        found[name] = {
            e.internal_layer_id: _plain(outer_input(e, inputs)) for e in port_map.inputs
        }
    return found


def _turn(
    layer: Layer, inputs: Sequence[Tensor], infer: InferGraph
) -> tuple[dict[int, Tensor], dict[int, tuple[Tensor, ...]]]:
    """The Parameters of a loop's body in every turn, and what is inferred of its layers."""
    body, port_map = body_of(layer, "body")
    refuse_loose_ends(layer, body, port_map)
    given = {
        entry.internal_layer_id: _slice_of(entry, outer_input(entry, inputs))
        for entry in port_map.inputs
        if entry.external_port_id >= 0
    }
    for entry in port_map.inputs:
        if entry.purpose == "current_iteration":
            # The body says how it wants the number of the turn: its type, and whether in a list.
            counter = body.layer(entry.internal_layer_id)
            if not counter.outputs:
                raise IRError(f'"{counter.name}" of the body takes the number of the turn, and '
                              "has no output port")  # fmt: skip
            given[entry.internal_layer_id] = counter.outputs[0].tensor
    if layer.type == "Loop":
        # As in OpenVINO, what is empty at first may grow.
        for edge in layer.back_edges:
            if edge.to_layer in given:
                tensor = given[edge.to_layer]
                given[edge.to_layer] = Tensor(tensor.type, _without_zeros(tensor.shape))
    return given, _settle(layer, body, given, infer)


def _first_states(layer: Layer, port_map: PortMap, inputs: Sequence[Tensor]) -> dict[int, Tensor]:
    """What the first turn is given in the place of a Result of the turn before."""
    outer = {
        entry.internal_layer_id: outer_input(entry, inputs)
        for entry in port_map.inputs
        if entry.axis is None and entry.external_port_id >= 0
    }
    return {
        edge.from_layer: outer[edge.to_layer]
        for edge in layer.back_edges
        if edge.to_layer in outer
    }


def check_condition(layer: Layer, inputs: Sequence[Tensor]) -> None:
    """Refuse a condition that is not boolean: of others OpenVINO takes the first byte."""
    place = {"If": 0, "Loop": 1}.get(layer.type)
    if place is None or place >= len(inputs):
        return
    kind = inputs[place].type
    if kind not in (ElementType.BOOLEAN, ElementType.DYNAMIC):
        raise IRError(f"the condition is {kind}, it must be boolean")


def _plain(tensor: Tensor) -> Tensor:
    """Type and shape without a value: what a body gives is known turn by turn only."""
    return Tensor(tensor.type, tensor.shape)


def _of(known: Mapping[int, tuple[Tensor, ...]], layer_id: int) -> Tensor:
    if not known.get(layer_id):  # nor is one of an unknown version a Result
        raise IRError(f"the port map names layer {layer_id}, which is no Result of the body")
    if not known[layer_id]:
        raise IRError(f"layer {layer_id} of the body, which the port map names, gives nothing")
    return known[layer_id][0]


def _infer_if(layer: Layer, inputs: Sequence[Tensor], infer: InferGraph) -> tuple[Tensor, ...]:
    known = inputs[0].ints()
    taken = None if not known else "then_body" if known[0] else "else_body"
    sides = {}
    for name in ("then_body", "else_body"):
        try:
            sides[name] = _infer_side(layer, name, inputs, infer)
        except LimitError:
            raise
        except IRError:
            # As in OpenVINO, a side that is sure not to be taken need not fit the inputs.
            if taken in (None, name):
                raise
    if taken is not None:
        return tuple(sides[taken])
    then, other = sides.values()
    if len(then) != len(other):
        raise IRError(f"then_body gives {len(then)} outputs, else_body {len(other)}")
    return tuple(
        Tensor(a.type.merge(b.type), either(a.shape, b.shape))
        for a, b in zip(then, other, strict=True)
    )


def _infer_side(
    layer: Layer, name: str, inputs: Sequence[Tensor], infer: InferGraph
) -> list[Tensor]:
    """What one side of an If gives."""
    body, port_map = body_of(layer, name)
    refuse_loose_ends(layer, body, port_map)
    given = {e.internal_layer_id: _plain(outer_input(e, inputs)) for e in port_map.inputs}
    known = infer(body, given)
    return [_plain(_of(known, e.internal_layer_id)) for e in ordered_outputs(port_map)]


def either(one: Shape, other: Shape) -> Shape:
    """What is known of a shape that is one or the other; as little as OpenVINO says."""
    if one.rank is None or other.rank is None:
        return Shape.UNKNOWN
    if one.rank != other.rank:
        if max(one.rank, other.rank) > 1:
            return Shape.UNKNOWN
        # A scalar counts as a list of one.
        one, other = (shape if shape.rank else Shape((1,)) for shape in (one, other))
    sizes: list[Size] = []
    for a, b in zip(one, other, strict=True):
        if isinstance(a, Dim) or isinstance(b, Dim):
            sizes.append(ANY)
        else:
            sizes.append(interval(min(a, b), max(a, b)))
    return Shape(sizes)


def _slice_of(entry: MapEntry, tensor: Tensor) -> Tensor:
    """What a Parameter of the body sees of an outer input."""
    if entry.axis is None or tensor.rank is None:
        return _plain(tensor)
    axis = axis_of(entry.axis, tensor.rank)
    return Tensor(tensor.type, tensor.shape.with_size(axis, entry.part_size))


def _settle(
    layer: Layer, body: Graph, given: dict[int, Tensor], infer: InferGraph
) -> dict[int, tuple[Tensor, ...]]:
    """Loosen Parameters fed by back edges until the sizes they get are those they allow.

    Each round knows less of a size than the one before, so that there is a last one.
    """
    for count in itertools.count():
        known = infer(body, given)
        changed = False
        for edge in layer.back_edges:
            if edge.to_layer not in given:
                continue
            fed, held = _of(known, edge.from_layer).shape, given[edge.to_layer].shape
            loose = _loosened(held, fed, count)
            if loose != held:
                given[edge.to_layer] = Tensor(given[edge.to_layer].type, loose)
                changed = True
        if not changed:
            break
        if count >= ROUNDS:
            # What is handed from state to state for so long is not followed to the end.
            for edge in layer.back_edges:
                if edge.to_layer in given:
                    tensor = given[edge.to_layer]
                    rank = tensor.rank if count == ROUNDS else None
                    given[edge.to_layer] = Tensor(tensor.type, Shape.of_rank(rank))
    return known


def _without_zeros(shape: Shape) -> Shape:
    return Shape(None if shape.rank is None else [size if size != 0 else ANY for size in shape])


def _with_names_of(tensor: Tensor, other: Tensor) -> Tensor:
    """A tensor without those names of its sizes that another one does not bear."""
    one, two = tensor.shape, other.shape
    if one.rank is None:
        return tensor
    others = two.sizes if two.rank == one.rank else any_sizes(one.rank)
    return Tensor(tensor.type, map(_with_name_of, one.sizes, others))


def _loosened(held: Shape, fed: Shape, count: int) -> Shape:
    """Sizes that hold both; a number that becomes another, or grows on, may be anything."""
    if held.rank is None or fed.rank is None or held.rank != fed.rank:
        return Shape.UNKNOWN
    return Shape(
        _with_name_of(a, b) if _holds(a, b) else union(a, b) if not count and isinstance(b, Dim)
        else ANY
        for a, b in zip(held, fed, strict=True)
    )  # fmt: skip


def _with_name_of(size: Size, other: Size) -> Size:
    """A size whose name is kept only if the other one is sure to be equal."""
    if isinstance(size, Dim) and size.symbol is not None and not same(size, other):
        return interval(size.low, size.high)
    return size


def _holds(held: Size, fed: Size) -> bool:
    """Whether a size that a Parameter allows holds all that it is fed."""
    (least, most), (low, high) = limits(held), limits(fed)
    return (low or 0) >= (least or 0) and (most is None or (high is not None and high <= most))


def _turns_of_loop(
    layer: Layer,
    inputs: Sequence[Tensor],
    port_map: PortMap,
    known: Mapping[int, tuple[Tensor, ...]],
    begins: Sequence[int] | None,
) -> int | None:
    """How often a Loop runs its body; None where that is not known."""
    condition = next((e for e in port_map.outputs if e.purpose == "execution_condition"), None)
    if condition is None:
        raise IRError("the Loop has no execution_condition among its outputs")
    goes_on = _of(known, condition.internal_layer_id).ints()
    if goes_on is None:
        # The condition may be handed in from outside and go through unchanged.
        body = layer.bodies["body"]
        source = body.producer(body.layer(condition.internal_layer_id), 0)
        for entry in port_map.inputs:
            if source is not None and entry.internal_layer_id == source[0].id:
                goes_on = (
                    outer_input(entry, inputs).ints() if entry.external_port_id >= 0 else None
                )
    if not goes_on:
        return None
    if not begins:
        return None  # it may not begin at all
    if not begins[0]:
        return 0
    count = inputs[0].ints()
    if not goes_on[0]:  # one, unless there is to be none
        return None if not count else 1 if count[0] < 0 else min(count[0], 1)
    return None if not count or count[0] < 0 else count[0]


def _output(
    entry: MapEntry, tensor: Tensor, turns: int | None, *, never: bool, loop: bool
) -> Tensor:
    """One output, from what the body gives in a turn."""
    shape = tensor.shape
    if entry.axis is None:
        if never and shape.is_static and shape.rank:
            return Tensor(tensor.type, shape.with_size(0, 0))
        return tensor
    if never:
        return Tensor(tensor.type, (0,))
    if shape.rank is None:
        return tensor
    sizes = Shape((1,)) if shape.rank == 0 else shape
    axis = axis_of(entry.axis, len(sizes))
    each = sizes[axis] if loop else entry.part_size
    if isinstance(each, Dim) or turns is None:
        return Tensor(tensor.type, sizes.with_size(axis, ANY))
    return Tensor(tensor.type, sizes.with_size(axis, turns * each))
