"""Running a model: the layers in order, in NumPy.

Example::

    outputs = ir.run(model, {"x": image})
    outputs["prob"]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ...layers.base import Kernel, Op
from ...layers.budget import budget, within
from ...layers.casting import (
    aligned,
    as_computed,
    computed,
    computing,
    rounded_to_half,
    tensor_as_computed,
)
from ...layers.leftovers import tidy
from ...layers.memory import run_within_memory
from ...layers.turns import quick_turns
from ...schemas import Array, ElementType, IRError, Shape, Tensor, UnsupportedError, UsageError
from ...schemas.errors import MISTAKES
from ...schemas.printing import Table, counted, printable_name
from ..document import (
    Graph,
    Layer,
    Model,
    by_input,
    named_inputs,
    named_output,
    output_keys,
    output_names,
    tensor_keys,
)
from ..faces import Shown
from ..inference import (
    Inferred,
    infer_graph,
    input_types,
    inputs_of,
    output_array,
    parameter_type,
)
from ..opening import ModelLike, opened
from .bodies import run_bodies
from .decompression import halves, made_of_constants
from .filling import fitted
from .variables import State, Variables, how_to_convert, keep, own_copies

#: Arrays for the inputs: by name or index, or in order.
Inputs: TypeAlias = "Mapping[str, Any] | Mapping[int, Any] | Iterable[Any]"
#: Which tensors are handed out: the model's outputs, every tensor, or those of these names.
Wanted: TypeAlias = "Literal['all'] | Iterable[str] | None"


#: Elements of an array that a summary looks at.
_LOOKED_AT = 1 << 20


class Traced(NamedTuple):
    """What one layer took, and what it gave."""

    layer: Layer
    seconds: float
    outputs: tuple[Array, ...]


class Outputs(Shown, dict[str, Array]):
    """Arrays by name, in the order of the model's Results; other names and indices work too."""

    def __init__(self, arrays: Mapping[str, Array], aliases: Mapping[str, str]) -> None:
        super().__init__(arrays)
        self._aliases = aliases

    if TYPE_CHECKING:

        def __getitem__(self, key: str | int) -> Array: ...

    def __missing__(self, key: str | int) -> Array:
        if isinstance(key, int):
            return list(self.values())[key]
        # Other outputs of the model, too, have names: these were not asked for.
        held = self._aliases.get(key)
        if held is not None and held in self:
            return self[held]
        raise UsageError(f'no output is named "{key}"; there are {", ".join(map(repr, self))}')

    def as_table(self) -> Table:
        """What each array is like."""
        listed = "; ".join(
            f"{printable_name(name)} {array.dtype}{list(array.shape)}"
            for name, array in islice(self.items(), 8)
        )
        more = f"; and {len(self) - 8} more" if len(self) > 8 else ""
        return Table(
            f"outputs: {listed or 'none'}{more}",
            ("name", "type", "shape", "min", "mean", "max", "values"),
            (_described(name, array) for name, array in self.items()),
            len(self),
            'outputs["name"], outputs[0]',
        )


def _described(name: str, array: Array) -> tuple[object, ...]:
    """A row about an array; of a large one some elements are looked at."""
    flat = array.reshape(-1)[:: max(1, array.size // _LOOKED_AT)]
    numbers = ["", "", ""]
    if flat.size and flat.dtype.kind in "biufV":
        with np.errstate(all="ignore"):
            values = flat.astype(np.float64)
            numbers = [f"{one:.6g}" for one in (values.min(), values.mean(), values.max())]
    return name, array.dtype, list(array.shape), *numbers, array


@tidy
def run(
    model: ModelLike,
    inputs: Inputs | None = None,
    *,
    outputs: Wanted = None,
    state: State | None = None,
    trace: Callable[[Traced], None] | None = None,
    max_memory: int | None = None,
    max_seconds: float | None = None,
) -> Outputs:
    """Run a model once, by the definition of each operation.

    What is declared as f16 is computed in f32 and handed out as f16.

    Args:
        model: The model, or its path.
        inputs: An array for each input, by name (layer or tensor) or index, or in order.
        outputs: None for the model's outputs; ``"all"`` or names for any tensors.
        state: The values of the model's variables, read and written; None to begin anew.
        trace: Called after each layer.
        max_memory: Bytes that all arrays may take together; None for what the machine has left.
        max_seconds: Looked at between layers, between the turns of loops, and where a layer is
            made in parts; None for no limit but that of the turns.

    Raises:
        LimitError: More memory or time is wanted than is there or allowed.
        UnsupportedError: Layers are of unknown types; all are listed, nothing was run.
        UsageError: An input is missing, unknown, or of the wrong type or shape.
        IRError: A layer does not accept its inputs; whatever their values, before anything runs.
    """
    with quick_turns, within(max_memory, max_seconds):
        return _run(opened(model), inputs, outputs, state, trace)


def _run(
    model: Model,
    inputs: Inputs | None,
    outputs: Wanted,
    state: State | None,
    trace: Callable[[Traced], None] | None,
) -> Outputs:
    """``run`` within a budget that is open."""
    order = model.order()
    refuse_unknown(order)
    wanted = wanted_names(model, outputs)
    arrays = check_inputs(model, inputs)
    held = Variables(model)
    if state is not None:
        if not isinstance(state, dict):
            raise UsageError(f"state={state!r:.60}: give a dict, of an array by variable")
        held.update(state)
    inferred = infer_for(model, arrays, held)
    walk = Interpreter(model, wanted.values(), order, inferred)
    found = walk(arrays, held, trace)
    if state is not None:
        state |= held
    # Definitions may hand on what they were given: who writes to an output changes nothing else.
    made = [
        output_array(model, found[layer.id][index], inferred.of(layer)[index].type)
        for layer, index in wanted.values()
    ]
    handed = own_copies(made, [*arrays.values(), *held.values()])
    return Outputs(dict(zip(wanted, handed, strict=True)), aliases(model))


def infer_for(model: Model, arrays: Mapping[int, Array], state: State | None = None) -> Inferred:
    """Types and shapes of every port for inputs and variables as these are."""
    given = {}
    for layer_id, array in arrays.items():
        kind = parameter_type(model.layer(layer_id))
        # Of no declared type is what it is computed in.
        kind = computed(ElementType.of(array.dtype)) if kind.is_dynamic else kind
        given[layer_id] = Tensor(kind, array.shape)
    told = partial(_read_of, {} if state is None else state)
    return Inferred(model, infer_graph(model, given, new_shapes=True, hope=told))


def _read_of(
    state: State,
    graph: Graph,
    layer: Layer,
    known: Mapping[int, tuple[Tensor, ...]],
    outputs: tuple[Tensor, ...],
) -> tuple[Tensor, ...]:
    """What a layer gives, if it reads a variable that has a value: that is as large as it is."""
    name = layer.data.get("variable_id", "")
    if layer.type != "ReadValue" or name not in state:
        return outputs
    value, kind = state[name], outputs[0].type
    return (Tensor(ElementType.of(value.dtype) if kind.is_dynamic else kind, value.shape),)


class InterpreterStep(NamedTuple):
    """One layer of a walk: its kernel, what feeds it, and what is let go after it."""

    layer: Layer
    kernel: Callable[..., tuple[Array, ...]] | None
    sources: tuple[tuple[int, int], ...]
    freed: tuple[int, ...]


class Interpreter:
    """The layers of a graph in order, ready to be run many times."""

    def __init__(
        self,
        graph: Graph,
        wanted: Iterable[tuple[Layer, int]] | None = None,
        order: Sequence[Layer] | None = None,
        inferred: Inferred | None = None,
    ) -> None:
        order = graph.order() if order is None else order
        kept = {layer.id for layer, _ in wanted} if wanted is not None else set()
        if wanted is None:
            kept = {layer.id for layer in graph.results}
        self._graph = graph
        self._walks: dict[int, Interpreter] = {}
        self._state: State = {}
        #: What is assigned in a walk: who reads a variable in the same one gets its old value.
        self._assigned: State = {}
        self._inferred = inferred
        self._tensors = _needed_tensors(graph, order, inferred)
        self._halves = halves(graph, order)
        sources = [_sources(graph, layer) for layer in order]
        uses = _last_uses(order, sources, kept)
        self.steps = [
            InterpreterStep(
                layer, self._kernel(layer), sources[number], tuple(uses.get(number, ()))
            )
            for number, layer in enumerate(order)
        ]

    def fold(self) -> None:
        """Fold constants: compute once what depends on them alone; the arrays are read-only."""
        fixed = made_of_constants(self._graph, [step.layer for step in self.steps])
        known: dict[int, tuple[Array, ...]] = {}
        with np.errstate(all="ignore"):
            for number, step in enumerate(self.steps):
                layer, kernel, sources, _ = step
                if kernel is None or layer.id not in fixed:
                    continue
                with layer.at():
                    computed = kernel(*(known[source][index] for source, index in sources))
                    budget().check_time()
                found = tuple(map(_locked, computed))
                if not layer.is_constant:
                    budget().hold(found)  # for as long as there is the budget
                known[layer.id] = found
                self.steps[number] = step._replace(kernel=_giving(found), sources=())

    def __call__(
        self,
        arrays: Mapping[int, Array],
        state: State,
        trace: Callable[[Traced], None] | None = None,
    ) -> dict[int, tuple[Array, ...]]:
        """What the wanted layers give, by layer id."""
        with np.errstate(all="ignore"):  # infinity and NaN are values like others
            return self._walk(arrays, state, trace)

    def begin(self, state: State) -> None:
        """Let variables hold these values."""
        self._state, self._assigned = dict(state), {}

    def end(self) -> State:
        """What variables hold when all steps are done."""
        return {**self._state, **self._assigned}

    def _walk(
        self,
        arrays: Mapping[int, Array],
        state: State,
        trace: Callable[[Traced], None] | None,
    ) -> dict[int, tuple[Array, ...]]:
        # What bodies assign is kept, too, only where all goes well.
        self.begin(state)
        allowed = budget()
        values: dict[int, tuple[Array, ...]] = {}
        allowed.check_time()
        try:
            for layer, kernel, sources, freed in self.steps:
                began = time.perf_counter()
                if kernel is None:
                    if layer.id not in arrays:
                        raise IRError(
                            f'no line of the port map fills Parameter "{layer.name}"', layer.where,
                            f'add an <input> with internal_layer_id="{layer.id}"',
                        )  # fmt: skip
                    values[layer.id] = (as_computed(arrays[layer.id]),)
                else:
                    with layer.at():
                        values[layer.id] = kernel(*(values[i][index] for i, index in sources))
                        allowed.check_time(time.perf_counter() - began)
                allowed.hold(values[layer.id])
                if trace is not None:
                    trace(Traced(layer, time.perf_counter() - began, values[layer.id]))
                for done in freed:
                    allowed.let_go(values.pop(done))
            keep(state, self.end(), arrays.values())
            return values
        finally:
            for outputs in values.values():
                allowed.let_go(outputs)

    def _kernel(self, layer: Layer) -> Callable[..., tuple[Array, ...]] | None:
        """What computes a layer; None for a Parameter, whose array is given."""
        kernel = self._unrounded(layer)
        if kernel is None:
            return None
        if layer.id in self._halves.layers:
            return lambda *inputs: tuple(map(rounded_to_half, kernel(*inputs)))
        read = {index for layer_id, index in self._halves.inputs if layer_id == layer.id}
        if not read:
            return kernel
        return lambda *inputs: kernel(
            *(rounded_to_half(x) if index in read else x for index, x in enumerate(inputs))
        )

    def _unrounded(self, layer: Layer) -> Callable[..., tuple[Array, ...]] | None:
        if layer.is_constant:
            if layer.has_value and layer.element_type.bits < 8:
                # Unpacked it is several times as large as in the file.
                return lambda: (aligned(as_computed(layer.value)),)
            value = layer.value
            return lambda: (aligned(as_computed(value)),)
        if layer.type == "Parameter":
            return None
        op = layer.op
        if op is None:
            raise UnsupportedError(
                f"operation {layer.type} {layer.version} is not known", layer.where
            )
        if layer.bodies:
            known = {} if self._inferred is None else self._inferred.tensors
            told = [tensor.shape for tensor in known.get(layer.id, ())]
            return lambda *inputs: run_bodies(layer, inputs, self._run_body, told)
        if layer.type == "ReadValue":
            return lambda *inputs: (self._read(op, inputs),)
        if layer.type == "Assign":
            return lambda value: (self._assign(op, value),)
        if layer.id in self._tensors:
            with layer.at():
                computed_by = computing(op)
                prepared = computed_by.prepare(self._tensors[layer.id])
            return partial(answered, computed_by, prepared)
        return partial(by_definition, computing(op))

    def _run_body(self, body: Graph, arrays: Mapping[int, Array]) -> dict[int, Array]:
        """What the Results of a body hand out; the walk through it is kept."""
        walk = self._walks.get(id(body))
        if walk is None:
            walk = self._walks[id(body)] = Interpreter(body)
            walk.fold()
        return {layer_id: outputs[0] for layer_id, outputs in walk(arrays, self._state).items()}

    def _read(self, op: Any, inputs: Sequence[Array]) -> Array:
        return read_variable(op, inputs, self._state)

    def _assign(self, op: Any, value: Array) -> Array:
        """Keep a value; it is the caller's own from then on."""
        self._assigned[op.variable_id] = value
        return value


def read_variable(op: Any, inputs: Sequence[Array], state: State) -> Array:
    """The value of a variable; at first its initial value, or zeros."""
    if op.variable_id in state:
        return as_computed(state[op.variable_id])
    if inputs:
        return inputs[0]
    sizes = [size if isinstance(size, int) else 0 for size in op.variable_shape or ()]
    return np.zeros(sizes, computed(op.variable_type).dtype)


def by_definition(op: Op, *arrays: Array) -> tuple[Array, ...]:
    """Run an operation, of whose inputs nothing may have been inferred beforehand."""
    return answered(op, partial(run_within_memory, op), *arrays)


def answered(op: Op, kernel: Kernel, *arrays: Array) -> tuple[Array, ...]:
    """What a kernel gives; of arrays that NumPy refuses, the rule says what is wrong."""
    try:
        return kernel(*arrays)
    except IRError:
        raise
    except (ValueError, *MISTAKES):
        op.infer_outputs([Tensor.of(array) for array in arrays])
        raise


def _locked(array: Array) -> Array:
    """An array as one that cannot be written to; it may itself be the caller's."""
    view = array.view()
    view.flags.writeable = False
    return view


def _giving(found: tuple[Array, ...]) -> Callable[..., tuple[Array, ...]]:
    return lambda: found


def _needed_tensors(
    graph: Graph, order: Sequence[Layer], inferred: Inferred | None
) -> dict[int, list[Tensor]]:
    """The inputs, as far as they are inferred, of layers that want to know them beforehand."""
    prepared = [layer for layer in order if _prepares(layer)]
    if not prepared:
        return {}
    known = infer_graph(graph, {}) if inferred is None else inferred.tensors
    return {
        layer.id: [tensor_as_computed(tensor) for tensor in inputs_of(graph, layer, known)]
        for layer in prepared
    }


def _prepares(layer: Layer) -> bool:
    """Whether a layer's operation has a kernel that depends on what its inputs are."""
    if layer.is_constant or layer.bodies:
        return False
    return type(layer.op).prepare is not Op.prepare if layer.op else False


def _sources(graph: Graph, layer: Layer) -> tuple[tuple[int, int], ...]:
    """What feeds a layer, by layer id and output index, its number checked."""
    sources = graph.sources(layer)
    with layer.at():
        for index, source in enumerate(sources):
            if source is None:
                raise IRError(f"input {index} is fed by nothing")
        if not layer.is_constant and layer.op is not None:
            layer.op.check_arity(len(sources))
    return tuple((source[0].id, source[1]) for source in sources if source is not None)


def refuse_unknown(order: Sequence[Layer]) -> None:
    """Stop before anything runs where a layer's type is unknown; all such layers are listed."""
    inner = [x for layer in order for body in layer.bodies.values() for x in body.everywhere()]
    unknown = [layer for layer in [*order, *inner] if not can_run(layer)]
    if unknown:
        listed = ", ".join(f'{x.id} "{x.name}" ({x.type} {x.version})' for x in unknown[:20])
        more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""
        raise UnsupportedError(
            f"{counted(len(unknown), 'layer')} cannot be run: {listed}{more}",
            hint="an operation of your own is a class; see samples/own_operation.py",
        )


def can_run(layer: Layer) -> bool:
    """Whether a layer's operation is known, and has a kernel, not only a shape rule."""
    if layer.is_constant:
        return True
    op = layer.op
    if op is None:
        return False
    held = layer.bodies or layer.type in ("Parameter", "ReadValue")
    return bool(held) or type(op).run is not Op.run


def wanted_names(graph: Graph, wanted: Wanted) -> dict[str, tuple[Layer, int]]:
    """The tensors to hand out, by name: each as its layer and output index."""
    results = dict(zip(output_keys(graph), graph.results, strict=True))
    if wanted is None:
        return {name: (layer, 0) for name, layer in results.items()}
    if isinstance(wanted, str) and wanted == "all":
        tensors = tensor_keys(graph)
        # A tensor may be several outputs: each is found by the name that it has without "all".
        ends = {name: (layer, 0) for name, layer in results.items() if name not in tensors}
        return tensors | ends
    if isinstance(wanted, str):
        raise UsageError(f'outputs="{wanted}": give a list of names, or "all"')
    given: object = wanted
    if not isinstance(given, Iterable):
        raise UsageError(f'outputs={given!r:.60}: give a list of names, or "all"')
    return {
        name: (results[name], 0) if name in results else named_output(graph, name)
        for name in wanted
    }


def aliases(graph: Graph) -> dict[str, str]:
    """Every further name of the outputs, to the name they are handed out under."""
    pairs = zip(output_keys(graph), graph.results, strict=True)
    return {name: key for key, result in pairs for name in output_names(graph, result)}


def check_inputs(model: Model, inputs: Inputs | None) -> dict[int, Array]:
    """The arrays by layer id, each of the type and shape its Parameter asks for."""
    given = by_input(model, inputs)
    ends = [(layer, names[0]) for layer, names in named_inputs(model.parameters)]
    missing = [name for layer, name in ends if layer.id not in given]
    if missing:
        listed = ", ".join(f'"{name}"' for name in missing)
        raise UsageError(f"no value is given for {len(missing)} of the inputs: {listed}")
    return {layer.id: _checked(layer, name, given[layer.id], model) for layer, name in ends}


def _checked(parameter: Layer, name: str, value: Any, graph: Graph) -> Array:
    """One input's array, of the type and shape its Parameter asks for."""
    op = parameter.op
    if op is None:
        raise UnsupportedError(f"{parameter.type} {parameter.version} is not known")
    (wanted,) = op.infer()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise UsageError(f'input "{name}" is no array: {error}') from None
    if not wanted.type.is_dynamic and array.dtype != wanted.type.dtype:
        plain = isinstance(value, (bool, int, float, str, list, tuple))
        text = array.dtype.kind in "SUO" and wanted.type == "string"
        older = array.dtype in [kind.dtype for kind in input_types(graph, wanted.type)]
        if not (plain or text or older):
            raise UsageError(
                f'input "{name}" is {wanted.type}, the array is {array.dtype}',
                hint=how_to_convert(wanted.type),
            )
        try:
            array = array.astype(wanted.type.dtype)
        except (ValueError, TypeError) as error:
            raise UsageError(
                f'input "{name}" is {wanted.type}, what is given is not: {error}'
            ) from None
    fitted(wanted.shape, Shape(array.shape), name, f"the array {array.shape}")
    return array


def _last_uses(
    order: Sequence[Layer], sources: Sequence[Sequence[tuple[int, int]]], keep: set[int]
) -> dict[int, list[int]]:
    """By step: the layers whose outputs nobody needs after it."""
    last: dict[int, int] = {}
    for step, layer in enumerate(order):
        last.setdefault(layer.id, step)
        for producer, _ in sources[step]:
            last[producer] = step
    freed: dict[int, list[int]] = {}
    for layer_id, step in last.items():
        if layer_id not in keep:
            freed.setdefault(step, []).append(layer_id)
    return freed
