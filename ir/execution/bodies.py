"""Bodies run: an If one of its sides, a Loop or TensorIterator turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from ...layers.axes import all_but, axis_of
from ...layers.budget import budget
from ...layers.casting import computed
from ...schemas import Array, ElementType, IRError, Shape, Tensor
from ..document import Graph, Layer, MapEntry, PortMap
from ..inference import (
    body_of,
    branch,
    either,
    ordered_outputs,
    outer_input,
    slices,
    turns_of_iterator,
)

#: Runs a graph whose Parameters are given, by layer id; what its Results hand out, by layer id.
RunGraph = Callable[[Graph, Mapping[int, Array]], dict[int, Array]]


def run_bodies(
    layer: Layer, inputs: Sequence[Array], run: RunGraph, told: Sequence[Shape] = ()
) -> tuple[Array, ...]:
    """The outputs of a layer with bodies; ``told`` is what is inferred of them, if anything is."""
    if layer.type == "If":
        side, taken, handed = branch(layer, condition=bool(_first(inputs[0], "the condition")))
        once = run(side, {e.internal_layer_id: outer_input(e, inputs) for e in taken})
        given_out = [once[entry.internal_layer_id] for entry in handed]
        if all(array.ndim for array in given_out):
            return tuple(given_out)
        return tuple(map(_as_told, given_out, told or _told_by_sides(layer)))
    body, port_map = body_of(layer, "body")
    loop = layer.type == "Loop"
    turns = _count(layer, port_map, inputs)
    going = not loop or bool(_first(inputs[1], "the condition"))
    cut = [entry for entry in port_map.inputs if entry.axis is not None]
    given = {
        entry.internal_layer_id: outer_input(entry, inputs)
        for entry in port_map.inputs
        if entry.axis is None and entry.external_port_id >= 0
    }
    numbered = [e.internal_layer_id for e in port_map.inputs if e.purpose == "current_iteration"]
    condition = next(
        (e.internal_layer_id for e in port_map.outputs if e.purpose == "execution_condition"), None
    )
    rows: dict[int, list[Array]] = {
        e.internal_layer_id: [] for e in port_map.outputs if e.axis is not None
    }
    found: dict[int, Array] = {}
    turn = nbytes = 0
    allowed = budget()
    stays = condition is None or _stays_true(layer, body, condition, given)
    to_come = turns if stays else None
    while going and (turns is None or turn < turns):
        allowed.turn()
        for entry in cut:
            given[entry.internal_layer_id] = part(entry, outer_input(entry, inputs), turn)
        for layer_id in numbered:
            declared = body.layer(layer_id).outputs[0]
            given[layer_id] = np.full(len(declared.dims) * (1,), turn, declared.type.dtype)
        found = run(body, given)
        for layer_id, row in rows.items():
            row.append(found[layer_id])
        added = [row[-1] for row in rows.values()]
        nbytes += sum(array.nbytes for array in added)
        allowed.hold(added)
        # What the turns gave is joined in the end, and stays until then.
        allowed.require(nbytes if to_come is None or turn else 2 * nbytes * to_come)
        for edge in layer.back_edges:
            given[edge.to_layer] = found[edge.from_layer]
        turn += 1
        if condition is not None:
            going = bool(_first(found[condition], "the condition of the body"))
    for row in rows.values():
        allowed.let_go(row)
    outputs = ordered_outputs(port_map)
    return tuple(
        _joined(entry, rows[entry.internal_layer_id], body, shape)
        if entry.axis is not None
        else _final(entry, found, layer, given, body, shape)
        for entry, shape in zip(outputs, told or [Shape.UNKNOWN] * len(outputs), strict=True)
    )


def _as_told(array: Array, shape: Shape) -> Array:
    """A scalar as a list of one where the other side of an If gives lists."""
    return array.reshape(1) if not array.ndim and shape.rank == 1 else array


def _told_by_sides(layer: Layer) -> list[Shape]:
    """What the sides of an If declare that they give."""
    sides = []
    for name in ("then_body", "else_body"):
        body, port_map = body_of(layer, name)
        sides.append([_declared(entry, body).shape for entry in ordered_outputs(port_map)])
    return [either(*pair) for pair in zip_longest(*sides, fillvalue=Shape.UNKNOWN)]


def _first(array: Array, what: str) -> Any:
    """The one element of a condition or count."""
    if not array.size:
        raise IRError(f"{what} has 0 elements, one is needed")
    return array.reshape(-1)[0]


def _stays_true(layer: Layer, body: Graph, condition: int, given: Mapping[int, Array]) -> bool:
    """Whether the condition of a body is a constant, or what the first turn is given, and true."""
    source = body.producer(body.layer(condition), 0)
    if source is None:
        return False
    maker = source[0]
    if maker.type == "Const":
        return bool(_first(maker.value, "the condition of the body"))
    edges = [edge.from_layer for edge in layer.back_edges if edge.to_layer == maker.id]
    if maker.type != "Parameter" or maker.id not in given or edges not in ([], [condition]):
        return False
    return bool(_first(given[maker.id], "the condition of the body"))


def _count(layer: Layer, port_map: PortMap, inputs: Sequence[Array]) -> int | None:
    """How many turns there are at the most; None: as long as the condition holds."""
    if layer.type == "Loop":
        count = int(_first(inputs[0], "the trip count"))
        return None if count < 0 else count
    counts = []
    for entry in port_map.inputs:
        if entry.axis is not None:
            shape = outer_input(entry, inputs).shape
            counts.append(slices(entry, shape[axis_of(entry.axis, len(shape))]))
    if counts:
        return min(counts)
    known = turns_of_iterator(port_map, [])
    return 1 if known is None else known


def part(entry: MapEntry, array: Array, turn: int) -> Array:
    """The slice of an outer input that a turn sees."""
    axis = axis_of(entry.axis or 0, array.ndim)
    first = begin_of(entry, array.shape[axis], turn)
    return array[(slice(None),) * axis + (slice(first, first + entry.part_size),)]


def begin_of(entry: MapEntry, size: int, turn: int) -> int:
    """Where the slice of an axis begins that a turn sees; refused where there is none."""
    start = entry.start + size if entry.start < 0 else entry.start
    if entry.stride < 0:
        # Backwards: the slice ends where the turn begins.
        start -= entry.part_size - 1
    first = start + turn * entry.stride
    if not 0 <= first <= size - entry.part_size:
        raise IRError(
            f"turn {turn} takes {entry.part_size} from place {first} on, of an axis of {size}"
        )
    return first


def _joined(entry: MapEntry, row: Sequence[Array], body: Graph, shape: Shape) -> Array:
    """The slices of all turns in one."""
    if not row:
        return _nothing(entry, body, shape)
    axis = entry.axis or 0
    row = [np.atleast_1d(array) for array in row]
    for turn, array in enumerate(row):
        if all_but(array.shape, axis) != all_but(row[0].shape, axis):
            raise IRError(
                f"turn {turn} of the body gives {list(array.shape)} where the first gave "
                f"{list(row[0].shape)}: joined along axis {axis}, they must agree in the others"
            )
    # A negative stride fills the output from its end.
    return np.concatenate(row[::-1] if entry.stride < 0 else row, axis)


def _nothing(entry: MapEntry, body: Graph, shape: Shape) -> Array:
    """What no turn gave: as many axes as each would give, with those sizes that are known."""
    known = _declared(entry, body)
    kind = np.dtype(np.float32) if known.type.is_dynamic else computed(known.type).dtype
    if shape.is_static and shape.count == 0:
        return np.empty(shape.static, kind)
    if not known.rank or entry.axis is None:
        return np.empty((0,), kind)
    sizes = [size if isinstance(size, int) else 0 for size in known.shape]
    sizes[axis_of(entry.axis, len(sizes))] = 0
    return np.empty(sizes, kind)


def _declared(entry: MapEntry, body: Graph) -> Tensor:
    """What a body declares that a Result is given."""
    source = body.producer(body.layer(entry.internal_layer_id), 0)
    if source is None:
        return Tensor(ElementType.DYNAMIC, Shape.UNKNOWN)
    return source[0].outputs[source[1]].tensor


def _final(
    entry: MapEntry,
    found: Mapping[int, Array],
    layer: Layer,
    given: Mapping[int, Array],
    body: Graph,
    shape: Shape,
) -> Array:
    """What the last turn gave; without a turn, what would have been handed to the first."""
    if entry.internal_layer_id in found:
        return found[entry.internal_layer_id]
    for edge in layer.back_edges:
        if edge.from_layer == entry.internal_layer_id and edge.to_layer in given:
            return given[edge.to_layer]
    return _nothing(entry, body, shape)
