"""From layers to nodes: what is constant is folded, the rest becomes the plan.

A layer whose shapes are known becomes a node with a place in the arena for what it gives. What
depends on values, on variables or on bodies becomes a node outside, which the plan's caller
computes on whatever arrays there are; if the shape of what it gives is known all the same, that
goes to the arena, and the nodes after it are planned like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from ....layers.budget import budget
from ....layers.casting import (
    aligned,
    as_computed,
    computed,
    computing,
    rounded_to_half,
    tensor_as_computed,
)
from ....layers.memory import without_collection
from ....schemas import Array, ElementType, IRError, Tensor
from ...document import Graph, Layer
from ...execution import Halves, halves, is_fixed, made_of_constants
from ...inference import Inferred, branch, infer_graph
from .compressed import Compressed, Sources, compressed_weights
from .constants import Constants, Folded, is_of_a_file
from .folding import UNPLANNED, fold
from .nodes import Node, Plan, Value
from .operations import CONVOLUTIONS, TRANSPOSED
from .unrolling import known_turns, unrolled

#: Makes calls of which none waits for another.
Calls: TypeAlias = Callable[[Iterable[Callable[[], None]]], None]
#: Layers that are more than an operation on their inputs.
STATEFUL = ("Assign", "ReadValue")


@without_collection()
def build(
    graph: Graph,
    inferred: Inferred,
    assigned: Collection[str] = (),
    kept: Constants | None = None,
    make_all: Calls | None = None,
    *,
    widen: Callable[[Array], Array] = as_computed,
    unrolls: bool = True,
) -> Plan:
    """Make the plan of a graph whose types and shapes were inferred, and of which all can be run.

    Args:
        graph: The model, or a body.
        inferred: Of inputs, and of variables, it holds the shapes to plan for.
        assigned: The variables that have a value: their initial ones are not computed.
        kept: What earlier plans have computed of constants, for whatever shapes; more is added.
        make_all: What makes calls that need not wait for each other; None: one by one.
        widen: What makes float32 numbers of constants in half precision.
        unrolls: Whether turns that are known take the place of their loop.
    """
    making = _Making(assigned, partial(_widened, make_all or _one_by_one, widen), unrolls)
    constants = Constants() if kept is None else kept
    results = making.add(graph, inferred, constants)
    constants.trim()
    plan = Plan(making.nodes, making.inputs, results)
    plan.declared = making.declared
    plan.prune()
    return plan


class Known(NamedTuple):
    """A graph's order, what feeds whom, what is constant, kept as levels, rounded to halves."""

    order: list[Layer]
    sources: Sources
    fixed: set[int]
    packed: dict[int, Compressed]
    halved: Halves


class _Making:
    """The nodes of a plan that is being made."""

    def __init__(
        self,
        assigned: Collection[str],
        widened: Callable[[Iterable[Layer]], dict[int, Array]],
        unrolls: bool,
    ) -> None:
        self.nodes: list[Node] = []
        self.inputs: dict[int, Value] = {}
        #: What is inferred of the inputs of layers with bodies, in the types of the file.
        self.declared: dict[Node, list[Tensor]] = {}
        self._assigned = assigned
        self._widened = widened
        self._unrolls = unrolls
        #: Of each graph that was added, what does not change from turn to turn.
        self._seen: dict[int, Known] = {}
        #: What may have another shape than is inferred of it.
        self._loose: set[Value] = set()

    def add(
        self,
        graph: Graph,
        inferred: Inferred,
        kept: Constants,
        given: Mapping[int, Value] | None = None,
    ) -> list[Value]:
        """Make nodes of a graph; what its Results hand out.

        Of a body that takes the place of its layer, ``given`` are the Parameters.
        """
        order, sources, fixed, packed, halved = self._known(graph, inferred)
        needed = _needed(order, sources, fixed, packed, kept)
        values: dict[tuple[int, int], Value] = {}
        # What turns make is not the next one's, and would fill the memory.
        folded = kept.folded if given is None else Folded()
        widened = self._widened(layer for layer in order if layer.id in needed)

        def fed(layer: Layer) -> list[Value]:
            found = _fed(layer, sources, values)
            for index, source in enumerate(sources[layer.id]):
                if source is not None and (layer.id, index) in halved.inputs:
                    # Plans share these, too; a place of their own is that of no output.
                    place = source[0].id, ~source[1]
                    if place not in values:
                        values[place] = _rounded(found[index], kept, place)
                    found[index] = values[place]
            return found

        for layer in order:
            if layer.type == "Parameter" and given is not None:
                values[layer.id, 0] = given[layer.id]
                continue
            if layer.type == "Result":
                values[layer.id, 0] = fed(layer)[0]
                continue
            tensors = inferred.of(layer)
            made = [value_of(tensor) for tensor in tensors]
            if layer.id in packed:
                # Plans share what each makes of the levels.
                shared = kept.setdefault((layer.id, 0), packed[layer.id])
                made[0].packed = shared if isinstance(shared, Compressed) else packed[layer.id]
            elif layer.id in fixed and layer.id not in needed:
                for index, value in enumerate(made):
                    value.constant = kept.array((layer.id, index))
            elif layer.type == "Const":
                found = widened.get(layer.id)
                made[0].constant = aligned(layer.value) if found is None else found
            elif layer.type == "Parameter":
                self.inputs[layer.id] = made[0]
            else:
                known = [
                    inferred.of(source[0])[source[1]]
                    for source in sources[layer.id] if source is not None
                ]  # fmt: skip
                made = self._node(layer, fed(layer), made, tensors, known, folded)
                for value in made:
                    if layer.id in halved.layers and value.constant is not None:
                        value.constant = rounded_to_half(value.constant)
            values |= {(layer.id, index): value for index, value in enumerate(made)}
        # Of convolutions the weights are laid out anew, and not wanted as they lay: views of the
        # file alone are kept, which take no memory.
        lying, anew = fixed - packed.keys(), CONVOLUTIONS | TRANSPOSED
        for layer in order:
            if layer.id not in fixed:
                for source in sources[layer.id]:
                    if source is not None and source[0].id in lying:
                        place = source[0].id, source[1]
                        array = values[place].array
                        if layer.type not in anew or is_of_a_file(array):
                            kept[place] = array
                        if layer.type in anew:
                            values[place].origin = kept.origin(place)
        return [values[layer.id, 0] for layer in graph.results]

    def _known(self, graph: Graph, inferred: Inferred) -> Known:
        """What is the same of a graph in each turn."""
        if id(graph) not in self._seen:
            order = graph.order()
            sources = {layer.id: graph.sources(layer) for layer in order}
            fixed, halved = _fixed(graph, order, inferred), halves(graph, order)
            packed = compressed_weights(order, sources, fixed, halved, inferred)
            self._seen[id(graph)] = Known(order, sources, fixed, packed, halved)
        return self._seen[id(graph)]

    def _node(
        self,
        layer: Layer,
        feeders: list[Value],
        made: list[Value],
        tensors: Sequence[Tensor],
        known: list[Tensor],
        folded: Folded,
    ) -> list[Value]:
        """What a layer gives, as it is known by now; a node computes it, if it must."""
        assert layer.op is not None  # else it would have been refused
        op = computing(layer.op)
        if layer.type == "If" and feeders and feeders[0].constant is not None:
            found = self._taken(layer, feeders, known)
            if found is not None:
                return found
        if self._unrolls and layer.type in ("Loop", "TensorIterator"):
            found = self._unrolled(layer, feeders, known)
            if found is not None:
                return found
        varies = op.rows_vary or any(value in self._loose for value in feeders)
        for body in layer.bodies.values():
            varies |= any(map(_varies, body.everywhere()))
        if layer.type in STATEFUL:
            variable = op.variable_id  # type: ignore[attr-defined]  # both have it
            if layer.type == "ReadValue" and variable in self._assigned:
                feeders = []
        if varies:
            for value, tensor in zip(made, tensors, strict=True):
                value.inferred = value.inferred or tensor_as_computed(tensor)
            self._loose.update(made)
        plain = not (varies or layer.bodies or layer.type in STATEFUL)
        if not (plain and fold(layer, op, feeders, made, tensors, folded)):
            node = Node(layer, op, feeders, made)
            node.is_outside = not plain or any(map(needs_care, (*feeders, *made)))
            self.nodes.append(node)
            if layer.bodies:
                self.declared[node] = known
        return made

    def _taken(
        self, layer: Layer, feeders: Sequence[Value], known: Sequence[Tensor]
    ) -> list[Value] | None:
        """What the side of an If gives whose condition is known: its layers come in its place."""
        condition = feeders[0].array
        if condition.size != 1:
            return None
        body, inputs, outputs = branch(layer, condition=bool(condition.reshape(())))
        taken = {entry.internal_layer_id: entry.external_port_id for entry in inputs}
        if any(inner.type in STATEFUL for inner in body.everywhere()):
            return None
        if {x.id for x in body.parameters} - taken.keys() or max(taken.values(), default=0) >= len(
            feeders
        ):
            return None  # run_bodies says so
        given = {place: feeders[index] for place, index in taken.items()}
        tensors = {
            place: Tensor(known[index].type, known[index].shape) for place, index in taken.items()
        }
        inferred = Inferred(body, infer_graph(body, tensors))
        found = self.add(body, inferred, Constants(), given)
        places = {result.id: value for result, value in zip(body.results, found, strict=True)}
        return [places[entry.internal_layer_id] for entry in outputs]

    def _unrolled(
        self, layer: Layer, feeders: Sequence[Value], known: Sequence[Tensor]
    ) -> list[Value] | None:
        """What a loop gives whose turns are known: these come in its place."""
        if any(map(_varies, (x for body in layer.bodies.values() for x in body.everywhere()))):
            return None
        if self._loose.intersection(feeders) or any(map(needs_care, feeders)):
            return None
        loop = known_turns(layer, feeders, known)
        if loop is None:
            return None
        kept = Constants()
        return unrolled(
            loop, lambda body, turn, given: self.add(body, turn, kept, given), self.nodes
        )


def _fixed(graph: Graph, order: Sequence[Layer], inferred: Inferred) -> set[int]:
    """The layers that can be folded: fed by constants alone, the same for any input shape."""

    def may(layer: Layer) -> bool:
        varies = layer.op is None or layer.op.rows_vary
        planned = all(tensor.type not in UNPLANNED for tensor in inferred.of(layer))
        return is_fixed(layer) and planned and not varies

    return made_of_constants(graph, order, may)


def _needed(
    order: Sequence[Layer],
    sources: Sources,
    fixed: set[int],
    packed: Collection[int],
    kept: Collection[tuple[int, int]],
) -> set[int]:
    """Those of the constant layers that must be computed: read by others and not kept before."""
    found: set[int] = set()
    for layer in reversed(order):
        for source in sources[layer.id]:
            if source is None or source[0].id not in fixed or source[0].id in packed:
                continue
            known = layer.id not in fixed and (source[0].id, source[1]) in kept
            if not known and (layer.id not in fixed or layer.id in found):
                found.add(source[0].id)
    return found


def _rounded(value: Value, kept: Constants, place: tuple[int, int]) -> Value:
    """A constant as half precision holds it, which is kept at a place."""
    if not value.is_fixed:
        return value
    rounded, before = Value(value.shape, value.type, element=value.element), kept.array(place)
    if before is not None:
        rounded.constant = before
    else:
        numbers = value.array if value.packed is None else value.packed.expanded()
        rounded.constant = kept[place] = rounded_to_half(numbers)
    return rounded


def _one_by_one(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _widened(
    make_all: Calls, widen: Callable[[Array], Array], layers: Iterable[Layer]
) -> dict[int, Array]:
    """Constants in half precision as they are computed with, the largest first: by layer id."""
    found: dict[int, Array] = {}

    def take(layer: Layer) -> None:
        found[layer.id] = widen(layer.value)

    halves = [
        layer for layer in layers if layer.is_constant and layer.element_type is ElementType.F16
    ]
    budget().keep(sum(4 * prod(layer.outputs[0].tensor.shape.static) for layer in halves))
    halves.sort(key=lambda layer: -prod(layer.outputs[0].tensor.shape.static))
    make_all(partial(take, layer) for layer in halves)
    return found


def _varies(layer: Layer) -> bool:
    """Whether what a layer in a body gives may have another shape than is inferred of it."""
    return layer.type in STATEFUL or (layer.op is not None and layer.op.rows_vary)


def needs_care(value: Value) -> bool:
    """Whether a value cannot lie in the arena, where the kernels read and write."""
    return value.is_outside and (value.constant is None or value.type == np.dtype(object))


def value_of(tensor: Tensor) -> Value:
    """A tensor's place in the plan, in the type in which it is computed."""
    kind = computed(tensor.type)
    known = tensor.shape.static if tensor.shape.is_static else ()
    if tensor.shape.is_static and kind not in UNPLANNED and 0 not in known:
        return Value(known, kind.dtype, element=kind)
    dtype = np.dtype(object) if kind in UNPLANNED else kind.dtype
    value = Value(known, dtype, element=kind)
    value.inferred = tensor_as_computed(tensor)
    return value


def _fed(layer: Layer, sources: Sources, values: Mapping[tuple[int, int], Value]) -> list[Value]:
    found = []
    for index, source in enumerate(sources[layer.id]):
        if source is None:
            raise IRError(f"input {index} is fed by nothing", layer.where)
        found.append(values[source[0].id, source[1]])
    return found
