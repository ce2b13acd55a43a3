"""New input shapes for a model, and what is inferred written into every port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...schemas import IRError, Tensor
from ..document import BODIES_OF, Graph, Layer, Model, Port, dims_of
from ..inference import Inferred, Shapes, infer, infer_bodies, infer_graph, inputs_of
from ..opening import ModelLike, opened

#: The outputs of layers, by the ids of the layers.
Tensors: TypeAlias = Mapping[int, tuple[Tensor, ...]]


def reshape(model: ModelLike, shapes: Shapes | None = None) -> Inferred:
    """Give inputs new shapes, and make every port declare what follows from them.

    Without new shapes, ports whose declaration contradicts what is inferred are mended.
    """
    model = opened(model)
    inferred = infer(model, shapes)
    if model.weights is None:
        _refuse_to_forget(model, inferred)
    for parameter in model.parameters:
        (tensor,) = inferred.of(parameter)
        if parameter.op is not None and parameter.op.infer()[0].shape != tensor.shape:
            parameter.data = {**parameter.data, "shape": tensor.shape.spelling}
    declare(model, inferred.tensors)
    return inferred


def _refuse_to_forget(model: Model, inferred: Inferred) -> None:
    """Refuse to declare less than before, where that is for want of constants alone."""
    if not all(inferred.of(parameter)[0].shape.is_static for parameter in model.parameters):
        return
    if not any(layer.is_constant and not layer.has_value for layer in model.everywhere()):
        return
    for layer in model.layers:
        for port, tensor in zip(layer.outputs, inferred.of(layer), strict=False):
            if min(port.dims, default=-1) >= 0 and not tensor.shape.is_static:
                raise IRError(
                    f"output port {port.id} declares {list(port.dims)}, {tensor.shape} is "
                    "inferred of it, as there is no .bin",
                    layer.where,
                    "read the model with its .bin (weights=, --weights)",
                )


def declare(graph: Graph, tensors: Tensors) -> None:
    """Write inferred types and sizes into the output ports and the input ports they feed."""
    for layer in graph.layers:
        found = tensors.get(layer.id, ())
        if layer.type == "Result" or not found:
            continue
        for index, port in enumerate(layer.outputs[: len(found)]):
            _declare(port, found[index])
            for user, place in graph.consumers(layer, index):
                _declare(user.inputs[place], found[index])


def settle(model: Model) -> Inferred:
    """Infer a model anew after a change, and make every port say so, in bodies too.

    Raises:
        IRError: The first layer that does not accept its inputs.
    """
    inferred = reshape(model)
    _declare_bodies(model, inferred.tensors)
    return inferred


def _declare_bodies(graph: Graph, tensors: Tensors) -> None:
    """The same for the bodies of a graph's layers, with what their layers are fed."""
    waiting = [(graph, tensors)]
    while waiting:
        outer, known = waiting.pop()
        for layer in outer.layers:
            if layer.type in BODIES_OF and layer.id in known:
                found = tensors_of_bodies(outer, layer, known)
                for body, (given, inner) in found.values():
                    for number, tensor in given.items():
                        parameter = body.layer(number)
                        if parameter.outputs and not same_declaration(
                            parameter.outputs[0], tensor
                        ):
                            parameter.data = {
                                **parameter.data,
                                "shape": tensor.shape.spelling,
                                "element_type": str(tensor.type),
                            }
                    declare(body, inner)
                    waiting.append((body, inner))


#: What a body was given, and what follows from it, by the ids of its layers.
BodyTensors: TypeAlias = tuple[Mapping[int, Tensor], Tensors]


def tensors_of_bodies(
    graph: Graph, layer: Layer, known: Tensors
) -> dict[int, tuple[Graph, BodyTensors]]:
    """What is inferred inside of a layer with bodies: the last word on each of them."""
    found: dict[int, tuple[Graph, BodyTensors]] = {}

    def remember(body: Graph, given: Mapping[int, Tensor]) -> dict[int, tuple[Tensor, ...]]:
        inner = infer_graph(body, given)
        found[id(body)] = body, (given, inner)
        return inner

    inputs = inputs_of(graph, layer, known)
    infer_bodies(layer, inputs, remember)
    return found


def _declare(port: Port, tensor: Tensor) -> None:
    """Make a port say what is known of a tensor, and leave alone what says it already."""
    if not same_declaration(port, tensor):
        port.describe(tensor)


def same_declaration(port: Port, tensor: Tensor) -> bool:
    """Whether a port says what is known of a tensor; an input port need not name a type."""
    if port.dims != dims_of(tensor.shape):
        return False
    return port.precision is None or port.type == tensor.type
