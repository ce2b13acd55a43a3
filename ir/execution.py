"""Running a model: the layers in order, in NumPy.

Example::

    outputs = ir.run(model, {"x": image})
    outputs["prob"]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from .. import layers as _operations  # declares the operations
from ..schemas import Array, IRError, Shape, UnsupportedError, UsageError
from .graph import Graph, Layer, Model
from .legacy import input_types, output_array
from .names import by_input, output_keys, output_names

#: Arrays for the inputs: by name or index, or in order.
Inputs: TypeAlias = "Mapping[str, Any] | Mapping[int, Any] | Iterable[Any]"
#: Which tensors are handed out: the model's outputs, every tensor, or those of these names.
Wanted: TypeAlias = "Literal['all'] | Iterable[str] | None"


class Traced(NamedTuple):
    """What one layer took, and what it gave."""

    layer: Layer
    seconds: float
    outputs: tuple[Array, ...]


class Outputs(dict[str, Array]):
    """Arrays by name, in the order of the model's Results; other names and indices work too."""

    def __init__(self, arrays: Mapping[str, Array], aliases: Mapping[str, str]) -> None:
        super().__init__(arrays)
        self._aliases = aliases

    def __missing__(self, key: str | int) -> Array:
        if isinstance(key, int):
            return list(self.values())[key]
        if key in self._aliases:
            return self[self._aliases[key]]
        raise UsageError(f'no output is named "{key}"; there are {", ".join(map(repr, self))}')


def run(
    model: Model,
    inputs: Inputs | None = None,
    *,
    outputs: Wanted = None,
    trace: Callable[[Traced], None] | None = None,
) -> Outputs:
    """Run a model once, by the definition of each operation.

    Args:
        model: The model.
        inputs: An array for each input, by name (layer or tensor) or index, or in order.
        outputs: None for the model's outputs; ``"all"`` or names for any tensors.
        trace: Called after each layer.

    Raises:
        UnsupportedError: Layers are of unknown types; all are listed, nothing was run.
        UsageError: An input is missing, unknown, or of the wrong type or shape.
    """
    order = model.order()
    refuse_unknown(order)
    names = wanted_names(model, outputs)
    arrays = check_inputs(model, inputs)
    uses = _last_uses(model, order, keep={layer.id for layer, _ in names.values()})
    values: dict[int, tuple[Array, ...]] = {}
    for step, layer in enumerate(order):
        began = time.perf_counter()
        values[layer.id] = run_layer(model, layer, values, arrays)
        if trace is not None:
            trace(Traced(layer, time.perf_counter() - began, values[layer.id]))
        for done in uses.get(step, ()):
            del values[done]
    found = {name: values[layer.id][index] for name, (layer, index) in names.items()}
    for name, (layer, _) in names.items():
        if layer.type == "Result":
            found[name] = output_array(model, found[name])
    return Outputs(found, aliases(model))


def run_layer(
    graph: Graph,
    layer: Layer,
    values: Mapping[int, tuple[Array, ...]],
    arrays: Mapping[int, Array],
) -> tuple[Array, ...]:
    """The outputs of one layer whose inputs are known; errors carry its place."""
    if layer.is_constant:
        return (layer.value,)
    op = layer.op
    with layer.at():
        if layer.type == "Parameter":
            return (arrays[layer.id],)
        if op is None:
            raise UnsupportedError(f"operation {layer.type} {layer.version} is not known")
        given = []
        for index, source in enumerate(graph.sources(layer)):
            if source is None:
                raise IRError(f"input {index} is fed by nothing")
            given.append(values[source[0].id][source[1]])
        op.check_arity(len(given))
        try:
            return op.run(*given)
        except MemoryError as error:
            raise IRError("there is not enough memory for its output") from error


def refuse_unknown(order: Sequence[Layer]) -> None:
    """Stop before anything runs where a layer's type is unknown; all such layers are listed."""
    unknown = [layer for layer in order if not can_run(layer)]
    if unknown:
        listed = ", ".join(f'{x.id} "{x.name}" ({x.type} {x.version})' for x in unknown[:20])
        more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""
        raise UnsupportedError(
            f"{len(unknown)} layers cannot be run: {listed}{more}",
            hint="an operation of your own is a class; see samples/own_operation.py",
        )


def can_run(layer: Layer) -> bool:
    """Whether a layer's operation is known, and has a kernel, not only a shape rule."""
    if layer.is_constant:
        return True
    op = layer.op
    if op is None:
        return False
    return layer.type == "Parameter" or type(op).run is not _operations.Op.run


def wanted_names(graph: Graph, wanted: Wanted) -> dict[str, tuple[Layer, int]]:
    """The tensors to hand out, by name: each as its layer and output index."""
    results = dict(zip(output_keys(graph), graph.results, strict=True))
    if wanted is None:
        return {name: (layer, 0) for name, layer in results.items()}
    found: dict[str, tuple[Layer, int]] = {}
    if wanted == "all":
        for layer in graph.order():
            if layer.type == "Result":
                continue
            for index, port in enumerate(layer.outputs):
                name = next((n for n in port.names if n not in found), None)
                plain = layer.name if len(layer.outputs) == 1 else f"{layer.name}:{index}"
                found[name or (plain if plain not in found else f"{plain}#{layer.id}")] = (
                    layer,
                    index,
                )
        return found
    if isinstance(wanted, str):
        raise UsageError(f'outputs="{wanted}": give a list of names, or "all"')
    for name in wanted:
        if name in results:
            found[name] = (results[name], 0)
            continue
        layer = graph.layer(name)
        index = next((i for i, port in enumerate(layer.outputs) if name in port.names), 0)
        found[name] = (layer, index)
    return found


def aliases(graph: Graph) -> dict[str, str]:
    """Every further name of the outputs, to the name they are handed out under."""
    pairs = zip(output_keys(graph), graph.results, strict=True)
    return {name: key for key, result in pairs for name in output_names(graph, result)}


def check_inputs(model: Model, inputs: Inputs | None) -> dict[int, Array]:
    """The arrays by layer id, each of the type and shape its Parameter asks for."""
    given = by_input(model, inputs)
    missing = [layer for layer in model.parameters if layer.id not in given]
    if missing:
        listed = ", ".join(f'"{layer.name}"' for layer in missing)
        raise UsageError(f"no value is given for {len(missing)} of the inputs: {listed}")
    return {x.id: check_input(x, given[x.id], model) for x in model.parameters}


def check_input(parameter: Layer, value: Any, graph: Graph) -> Array:
    """One input's array, of the type and shape its Parameter asks for."""
    op = parameter.op
    if op is None:
        raise UnsupportedError(f"{parameter.type} {parameter.version} is not known")
    (wanted,) = op.infer()
    array = np.asarray(value)
    if not wanted.type.is_dynamic and array.dtype != wanted.type.dtype:
        plain = isinstance(value, (bool, int, float, str, list, tuple))
        text = array.dtype.kind in "SUO" and wanted.type == "string"
        older = array.dtype in [kind.dtype for kind in input_types(graph, wanted.type)]
        if not (plain or text or older):
            raise UsageError(
                f'input "{parameter.name}" is {wanted.type}, the array is {array.dtype}',
                hint=f"convert it: array.astype({wanted.type.dtype.name!r})",
            )
        array = array.astype(wanted.type.dtype)
    try:
        wanted.shape.merge(Shape(array.shape))
    except IRError:
        raise UsageError(
            f'input "{parameter.name}" has the shape {wanted.shape}, the array {array.shape}',
            hint="ir.infer(model, shapes) tells whether the model takes another",
        ) from None
    return array


def _last_uses(graph: Graph, order: Sequence[Layer], keep: set[int]) -> dict[int, list[int]]:
    """By step: the layers whose outputs nobody needs after it."""
    last: dict[int, int] = {}
    for step, layer in enumerate(order):
        last.setdefault(layer.id, step)
        for source in graph.sources(layer):
            if source is not None:
                last[source[0].id] = step
    freed: dict[int, list[int]] = {}
    for layer_id, step in last.items():
        if layer_id not in keep:
            freed.setdefault(step, []).append(layer_id)
    return freed
