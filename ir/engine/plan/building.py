"""From layers to nodes: what is constant is computed here, what is left becomes the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ....layers.base import Op
from ....layers.budget import require
from ....layers.casting import as_computed, computed, computing
from ....layers.memory import nbytes, without_collection
from ....schemas import ElementType, IRError, Tensor
from ...document import Layer, Model
from ...execution import refuse_unknown
from ...inference import Inferred
from .nodes import Node, Plan, Value

#: Element types that have no place in an arena of bytes.
UNPLANNED = (ElementType.DYNAMIC, ElementType.STRING)


@without_collection()
def build(model: Model, inferred: Inferred) -> Plan | None:
    """Make nodes of the layers; None if a shape depends on values or a tensor is empty."""
    order = model.order()
    refuse_unknown(order)
    values: dict[tuple[int, int], Value] = {}
    inputs: dict[int, Value] = {}
    outputs: dict[int, Value] = {}
    nodes: list[Node] = []
    for layer in order:
        tensors = inferred.of(layer)
        if not all(t.shape.is_static and t.type not in UNPLANNED for t in tensors):
            return None
        if layer.type == "Result":
            outputs[layer.id] = values[layer.id, 0] = _fed(model, layer, values)[0]
            continue
        made = [_value(tensor) for tensor in tensors]
        values |= {(layer.id, index): value for index, value in enumerate(made)}
        if layer.type == "Const":
            made[0].constant = as_computed(layer.value)
            continue
        if layer.type == "Parameter":
            inputs[layer.id] = made[0]
            if not prod(made[0].shape):
                return None
            continue
        op = layer.op
        if layer.bodies or op is None or layer.type in ("Assign", "ReadValue") or op.rows_vary:
            return None
        op, feeders = computing(op), _fed(model, layer, values)
        if not fold(layer, op, feeders, made, tensors):
            nodes.append(Node(layer, op, feeders, made))
            if not all(prod(value.shape) for value in made):
                return None  # kernels need not bear tensors of nothing
    return Plan(nodes, inputs, [outputs[layer.id] for layer in model.results])


def _value(tensor: Tensor) -> Value:
    """A tensor's place in the plan, in the type in which it is computed."""
    kind = computed(tensor.type)
    return Value(tensor.shape.static, kind.dtype, element=kind)


def _fed(model: Model, layer: Layer, values: dict[tuple[int, int], Value]) -> list[Value]:
    found = []
    for index, source in enumerate(model.sources(layer)):
        if source is None:
            raise IRError(f"input {index} is fed by nothing", layer.where)
        found.append(values[source[0].id, source[1]])
    return found


def fold(
    layer: Layer,
    op: Op,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    known: Iterable[Tensor],
) -> bool:
    """Compute a layer whose inputs are all constant, or whose value inference knows.

    Of real numbers inference knows what they are in the types that the file declares, which are
    not always those in which they are computed.
    """
    tensors = list(known)
    if all(tensor.value is not None and not tensor.type.is_real for tensor in tensors):
        for value, tensor in zip(outputs, tensors, strict=True):
            value.constant = tensor.value
        return True
    if not inputs or op.is_random or any(value.constant is None for value in inputs):
        return False
    with layer.at():
        require(nbytes(tensors))
        results = op.prepare([value.tensor for value in inputs])(*(v.constant for v in inputs))
    for value, result in zip(outputs, results, strict=True):
        value.constant = result
    return True
