"""Nodes outside the arena: their shapes are known at a call only, they run on arrays of their own.

Between two of them the steps of the plan go on as usual, in the arena and with helpers. These
nodes are done by the caller alone, by the definitions of their operations; variables are read
and kept here, bodies have plans of their own where their shapes are known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from math import inf, prod
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

import numpy as np

from ...layers.base import Kernel, Op
from ...layers.budget import budget
from ...layers.casting import as_computed
from ...schemas import Array, Shape, Tensor
from ...schemas.errors import MISTAKES
from ...schemas.shapes import compatible
from ..document import Graph
from ..execution import Interpreter, State, answered, by_definition, read_variable, run_bodies
from ..inference import Inferred, body_parameters, infer_graph
from .attention import Attention, is_plain, is_shared, share_heads
from .caches import chooses_rows, is_all, join_caches
from .fusing import fuse
from .hopes import LoosenedError, watched
from .kernels import Rooms, Scratch, fits, loose_stacks, quick, shared
from .memory import Growing, keep_what_is_freed_for, private
from .plan import Node, Plan, Region, Value, build, claimed_type, cut_regions, plan_region
from .root_means import join_root_means
from .workers import Crew, Part, single_blas

#: Operations that give no more than they take.
MODEST = frozenset(
    {"Concat", "Convert", "NonZero", "Reshape", "ScaledDotProductAttention", "ShapeOf", "Slice",
     "Split", "Squeeze", "StridedSlice", "Transpose", "Unsqueeze", "VariadicSplit"}
)  # fmt: skip
#: Operations whose values, not whose sizes, tell how much they give.
GENEROUS = frozenset(
    {"AdaptiveAvgPool", "AdaptiveMaxPool", "Broadcast", "Col2Im", "ConstantFill",
     "ConvolutionBackpropData", "DFT", "EmbeddingSegmentsSum", "Eye",
     "GroupConvolutionBackpropData", "IDFT", "IRDFT", "ISTFT", "Interpolate", "Multinomial",
     "OneHot", "Pad", "PriorBox", "PriorBoxClustered", "RDFT", "RandomUniform", "Range",
     "STFT", "SegmentMax", "SpaceToBatch", "Tile"}
)  # fmt: skip
#: With so few numbers all others can give but little.
FEW = 1 << 12
#: Bytes of arrays that are worth being counted.
COUNTED = 1 << 15
#: A region keeps its plans for so many shapes.
LENGTHS = 2


class Took(NamedTuple):
    """The least seconds that a node takes in a call: in a loop those of all its turns."""

    node: Node
    seconds: float
    turns: int = 1


class Timed(Protocol):
    """A plan that can be called: the outputs for inputs by layer id."""

    def __call__(self, arrays: Mapping[int, Array], /) -> list[Array]:
        """The outputs."""

    def times(self, arrays: Mapping[int, Array], runs: int, state: State, /) -> list[Took]:
        """What each node takes."""

    def rest(self) -> None:
        """Let its helpers go, until it is called again."""


#: Tells of what goes wrong inside where that was.
At = Callable[[], AbstractContextManager[None]]
#: Makes a callable of a plan.
Ready = Callable[[Plan], Timed]


class Outside:
    """The nodes of one plan that lie outside the arena, and what they share during a call."""

    def __init__(self, plan: Plan, ready: Ready, threads: int) -> None:
        self._ready, self._threads = ready, threads
        self._inner: WeakSet[Timed] = WeakSet()
        self._declared, self._hoped = plan.declared, plan.hoped
        self._shared = share_heads(plan)
        self._caches = join_caches(plan)
        #: Who does what several threads may do at once.
        self._crew = Crew(threads, Rooms)
        self._attended = Attention(self._crew, Scratch(threads, private, by_threads=True))
        join_root_means(plan)
        self._fused = fuse(plan, self._crew, _unasked)
        #: What may be what the last turn of a loop has given.
        self._comes_back = set(plan.inputs.values()) if plan.turns else set()
        #: The variables as they are in the course of a call.
        self.state: State = {}
        #: What is assigned in a call: who reads a variable in the same one gets its old value.
        self.assigned: State = {}
        #: The large arrays that are alive: nobody counts the others.
        self._held: dict[Value, Array] = {}
        self._allowed = budget()
        self._means = plan.means
        #: What carries out nodes that stand for others.
        self.regions: dict[Node, Planning] = {}
        #: The bodies of nodes that have some.
        self.bodies: dict[Node, Sequence[Body]] = {}
        self._last: dict[Node, list[Value]] = {}
        last = {
            value: node for node in plan.nodes for value in (*node.outputs, *node.inputs)
            if value.is_outside and value.constant is None
        }  # fmt: skip
        self.values = list(last)
        for node in plan.nodes:
            if node.is_outside:
                keep_what_is_freed_for(node)
        for value, node in last.items():
            if not value.is_output:
                self._last.setdefault(node, []).append(value)

    def begin(self, state: State) -> None:
        """Take the variables of the call; they change when it has succeeded, not before."""
        self.state, self.assigned = dict(state) if state else {}, {}
        self._allowed = budget()
        self._crew.begin()

    def settle(self) -> None:
        """Commit the assigned variables: the call has succeeded."""
        self.state |= self.assigned

    def end(self) -> None:
        """Let go of the arrays of the call."""
        self._allowed.let_go(self._held.values())
        self._held.clear()
        for value in self.values:
            value.store = None

    def prepare(self, node: Node) -> list[list[Part]]:
        """The step of a node."""
        with node.layer.at():
            kernel = self._kernel(node)
        made = node.outputs[0].tensor.shape
        # An axis of any size is inferred to be dropped: of another size than 1 it stays.
        drops = claimed_type(type(node.op)) == "Squeeze" and made.rank is not None
        if node in self._hoped or drops:
            kernel = watched(kernel, made)
        given = tuple(value if _comes(value) else value.array for value in node.inputs)
        # What lies in the arena lies where it does for good.
        lent = tuple(
            value.array for value in node.inputs
            if not value.is_outside and value.constant is None
        )  # fmt: skip
        done = tuple(self._last.get(node, ()))
        beside = lent, done, self, node.layer.at
        if len(node.outputs) == 1 and node.outputs[0].is_outside:
            return [[partial(_gives_one, kernel, given, node.outputs[0], *beside)]]
        places = tuple((x, None if x.is_outside else x.array) for x in node.outputs)
        return [[partial(_gives, kernel, given, places, *beside)]]

    def hold(self, value: Value, array: Array) -> None:
        """Count a large array until nobody needs it."""
        self._allowed.hold((array,))
        self._held[value] = array

    def let_go(self, values: Iterable[Value]) -> None:
        """Let go of what nobody will read."""
        held = self._held
        for value in values:
            value.store = None
            if held and value in held:
                self._allowed.let_go((held.pop(value),))

    def _kernel(self, node: Node) -> Kernel:
        """What computes a node."""
        layer, op = node.layer, node.op
        kind = claimed_type(type(op)) or layer.type
        if node in self._shared:
            return self._attended
        if node in self._fused:
            return self._fused[node]
        if node in self._caches:
            order = self._caches[node].order
            chosen = None if order is None else quick(order.op, _unasked(order.op, "Gather"))
            return self._caches[node].kernel(self, chosen)
        if node.region is not None:
            self.regions[node] = planned = Planning(node.region, self)
            return planned
        if layer.bodies:
            return self._bodies(node)
        if layer.type == "ReadValue":
            return lambda *inputs: (read_variable(op, inputs, self.state),)
        if layer.type == "Assign":
            return lambda value: (self._assign(node, value),)
        if type(op).prepare is not Op.prepare:
            return partial(answered, op, op.prepare([value.tensor for value in node.inputs]))
        if kind == "Gather" and chooses_rows(node):
            chosen = quick(op, _unasked(op, kind))
            return lambda data, indices, axis: (
                (data,) if is_all(indices, data) else chosen(data, indices, axis)
            )
        if kind == "ScaledDotProductAttention" and is_plain(node):
            general = _unasked(op, kind)
            return lambda *given: self._attended(*given) if is_shared(given) else general(*given)
        if kind == "ScaledDotProductAttention" and is_plain(node, causal=True):
            return self._attended.up_to_own(_unasked(op, kind))
        if kind == "Concat" and len(node.inputs) == 2 and self._grows(node.inputs[0]):
            growing = Growing(op.axis)  # type: ignore[attr-defined]  # Concat has it

            def joined(past: Array, new: Array) -> tuple[Array, ...]:
                found = growing.join(past, new)
                return by_definition(op, past, new) if found is None else (found,)

            return joined
        if kind == "MatMul":
            return loose_stacks(op, self._crew, _unasked(op, kind))
        others = [value.constant for value in node.inputs[1:]]
        return quick(op, shared(op, others, self._threads, _unasked(op, kind)))

    def _grows(self, value: Value) -> bool:
        """Whether what is joined to a value may be that value in the next call."""
        return value in self._comes_back or _is_kept(value)

    def _assign(self, node: Node, value: Array) -> Array:
        """Keep an assigned value as an array that is not in the arena."""
        name: str = node.op.variable_id  # type: ignore[attr-defined]  # Assign has it
        before = self.state.get(name)
        if before is not None and before.dtype == value.dtype and _is_read(node.inputs[0], name):
            value = before  # as it was
        elif not node.inputs[0].is_outside:
            value = np.array(value, order="C")
        self.assigned[name] = value
        return value

    def _bodies(self, node: Node) -> Kernel:
        """Bodies with a plan each, where the shapes of their Parameters are known beforehand."""
        layer = node.layer
        known = body_parameters(layer, self._declared[node], infer_graph)
        runners = {
            id(layer.bodies[name]): Body(layer.bodies[name], given, self, layer.type != "If")
            for name, given in known.items()
        }
        self.bodies[node] = [*runners.values()]
        told = [value.tensor.shape for value in node.outputs]
        return lambda *inputs: run_bodies(
            layer, inputs, lambda body, arrays: runners[id(body)](arrays), told
        )

    def ready(self, plan: Plan) -> Timed:
        """A plan of a body or a region that can be called."""
        plan.means = self._means
        found = self._ready(plan)
        self._inner.add(found)
        return found

    def rest(self) -> None:
        """Let the helpers of bodies and regions go, until they are called again."""
        self._crew.rest()
        for planned in self._inner:
            planned.rest()


# Steps are bound to what they need, not closures: where there are a thousand of them, each finds
# little of its own in the caches, and the fewer objects it has the better.


def _gives_one(
    kernel: Kernel,
    given: Sequence[Value | Array],
    value: Value,
    lent: Sequence[Array],
    done: Sequence[Value],
    outside: Outside,
    at: At,
) -> None:
    """Carry out a node that gives one array outside the arena."""
    (array,) = _called(kernel, given, at)
    _hand_out(value, array, lent, outside)
    if done:
        outside.let_go(done)


def _gives(
    kernel: Kernel,
    given: Sequence[Value | Array],
    made: Sequence[tuple[Value, Array | None]],
    lent: Sequence[Array],
    done: Sequence[Value],
    outside: Outside,
    at: At,
) -> None:
    """Carry out a node that gives several arrays, or some in the arena."""
    found = _called(kernel, given, at)
    for (value, place), array in zip(made, found, strict=True):
        if place is None:
            _hand_out(value, array, lent, outside)
        elif array.shape != place.shape:
            raise LoosenedError
        else:
            np.copyto(place, array)
    outside.let_go(done)


def _called(kernel: Kernel, given: Sequence[Value | Array], at: At) -> tuple[Array, ...]:
    """What a kernel makes of values outside the arena, and of arrays in it."""
    try:
        return kernel(*[x.store if x.__class__ is Value else x for x in given])
    except Exception:
        with at():
            raise


def _hand_out(value: Value, array: Array, lent: Sequence[Array], outside: Outside) -> None:
    """Keep what was made, for those that read it."""
    # What lies in the arena is something else soon; who owns memory is not there.
    if lent and array.base is not None and any(np.may_share_memory(array, x) for x in lent):
        array = array.copy()
    if array.nbytes > COUNTED:
        outside.hold(value, array)
    value.store = array


class Planning:
    """A region: planned for the shapes that come, as often as others come."""

    def __init__(self, region: Region, outside: Outside) -> None:
        self._region, self._outside = region, outside
        self._plans: OrderedDict[tuple[tuple[int, ...], ...], Timed] = OrderedDict()
        #: Whether to keep what it was last given.
        self.is_watched = False
        self._given: dict[int, Array] = {}

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """What the region gives."""
        shapes = tuple(array.shape for array in arrays)
        if shapes not in self._plans:
            plan = plan_region(self._region, arrays)
            cut_regions(plan)
            self._plans[shapes] = self._outside.ready(plan)
            while len(self._plans) > LENGTHS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(shapes)
        given = dict(enumerate(arrays))
        if self.is_watched:
            self._given = {place: array.copy() for place, array in given.items()}
        return tuple(self._plans[shapes](given))

    def times(self, runs: int) -> list[Took]:
        """What its nodes take, for what it was given while it was watched."""
        given, self._given, self.is_watched = self._given, {}, False
        return self._plans[next(reversed(self._plans))].times(given, runs, {})


class Body:
    """One body: planned when it is first run, if its shapes are known, else walked through."""

    def __init__(
        self, graph: Graph, given: Mapping[int, Tensor], outside: Outside, turns: bool
    ) -> None:
        self._graph, self._given, self._outside = graph, given, outside
        self._turns = turns
        kept = any(x.type in ("Assign", "ReadValue") for x in graph.everywhere())
        parameters = {layer.id for layer in graph.parameters}
        self._is_planned = not kept and parameters <= given.keys() and not any(
            tensor.type.is_dynamic for tensor in given.values()
        )  # fmt: skip
        self._planned: Timed | None = None
        self._walk: Interpreter | None = None
        #: Whether turns are counted, and what the last one was given is kept.
        self.is_watched = False
        self._turns_taken = 0
        self._last_given: dict[int, Array] = {}

    def times(self, runs: int) -> list[Took]:
        """What its nodes take in all turns that were watched, each as long as the last."""
        turns, self._turns_taken = self._turns_taken, 0
        given, self._last_given, self.is_watched = self._last_given, {}, False
        if not turns or self._planned is None or not self._is_planned:
            return []
        took = self._planned.times(given, runs, {})
        return [Took(x.node, turns * x.seconds, turns * x.turns) for x in took]

    def __call__(self, arrays: Mapping[int, Array]) -> dict[int, Array]:
        """What the Results hand out."""
        if self.is_watched:
            self._turns_taken += 1
            self._last_given = {place: array.copy() for place, array in arrays.items()}
        if self._is_planned and all(
            _is_of(arrays[place], tensor.shape) for place, tensor in self._given.items()
        ):
            try:
                return self._run(arrays)
            except LoosenedError:
                self._is_planned = False
        if self._walk is None:
            self._walk = Interpreter(self._graph)
            self._walk.fold()
        found = self._walk(arrays, self._outside.state)
        return {layer_id: outputs[0] for layer_id, outputs in found.items()}

    def _run(self, arrays: Mapping[int, Array]) -> dict[int, Array]:
        if self._planned is None:
            with single_blas:
                inferred = Inferred(self._graph, infer_graph(self._graph, self._given))
                plan = build(self._graph, inferred)
                plan.turns = self._turns
                self._planned = self._outside.ready(plan)
        found = self._planned(arrays)
        return {layer.id: array for layer, array in zip(self._graph.results, found, strict=True)}


def _is_of(array: Array, shape: Shape) -> bool:
    """Whether an array has a shape, as far as that is known."""
    return shape.rank is None or (
        array.ndim == shape.rank
        and all(
            size == known if isinstance(known, int) else compatible(size, known)
            for size, known in zip(array.shape, shape.sizes, strict=True)
        )
    )


def _comes(value: Value) -> bool:
    """Whether each call has an array of its own for a value."""
    return value.is_outside and value.constant is None


def _unasked(op: Op, kind: str) -> Kernel:
    """An operation by its definition; where it cannot take much memory, nobody asks for it."""
    most = _MOST.get(kind) if op.is_standard else None
    least = 0 if kind in GENEROUS else FEW
    modest = kind in MODEST

    def run(*arrays: Array) -> tuple[Array, ...]:
        sizes = [array.size for array in arrays]
        try:
            if 0 not in sizes and (
                modest or sum(sizes) <= least or (most and fits(most(op, arrays)))
            ):
                return op.run(*arrays)
        except (ValueError, *MISTAKES):
            pass  # said below, by its rule if it is that
        return by_definition(op, *arrays)

    return run


def _gathered(op: Any, arrays: Sequence[Array]) -> float:
    """Slices along an axis, one for each index."""
    data, indices, axis = arrays
    if getattr(op, "batch_dims", 0):
        return inf
    return indices.size * (data.size // data.shape[int(axis.reshape(()))])


def _gathered_by_rows(op: Any, arrays: Sequence[Array]) -> float:
    """Slices of the leading axes, one for each row of indices."""
    data, indices = arrays
    depth = indices.shape[-1]
    if op.batch_dims or depth > data.ndim:
        return inf
    return indices.size // depth * prod(data.shape[depth:])


def _chosen(op: Op, arrays: Sequence[Array]) -> float:
    """Elements and their places."""
    return 2 * arrays[0].size


def _counted(op: Any, arrays: Sequence[Array]) -> float:
    """Numbers from the first to the second, so far apart as the third says."""
    first, stop, step = (float(array.reshape(())) for array in arrays)
    return abs((stop - first) / step) + 1 if step else inf


def _repeated(op: Op, arrays: Sequence[Array]) -> float:
    """No axis becomes longer than it is times what is asked for."""
    sizes = arrays[1].ravel().tolist()
    return arrays[0].size * prod(sizes) if min(sizes) > 0 else inf


#: The most elements that an operation gives, where it is not what it takes that tells.
_MOST: dict[str, Callable[[Any, Sequence[Array]], float]] = {
    "Broadcast": _repeated,
    "Gather": _gathered,
    "GatherND": _gathered_by_rows,
    "Range": _counted,
    "TopK": _chosen,
}


def _is_kept(value: Value) -> bool:
    """Whether a value is what a variable has kept, maybe with its rows in another order."""
    while value.producer is not None and len(value.producer.inputs) == 3:
        if claimed_type(type(value.producer.op)) != "Gather":
            return False
        value = value.producer.inputs[0]
    return value.producer is not None and value.producer.layer.type == "ReadValue"


def _is_read(value: Value, name: str) -> bool:
    """Whether a value is what a variable had before."""
    maker = value.producer
    return (
        maker is not None and maker.layer.type == "ReadValue" and maker.op.variable_id == name  # type: ignore[attr-defined]  # ReadValue has it
    )


def take_in(value: Value, array: Array) -> None:
    """Bind a value outside the arena to the caller's array."""
    value.store = as_computed(array)
