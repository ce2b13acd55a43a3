"""New input shapes for a model, written into every port."""

from __future__ import annotations

from ...schemas import Tensor
from ..document import Graph, Model, Port, dims_of
from ..inference import Inferred, Shapes, infer


def reshape(model: Model, shapes: Shapes | None = None) -> Inferred:
    """Give inputs new shapes, and make every port declare what follows from them.

    Without new shapes, ports whose declaration contradicts what is inferred are mended.
    """
    inferred = infer(model, shapes)
    for parameter in model.parameters:
        (tensor,) = inferred.of(parameter)
        if parameter.op is not None and parameter.op.infer()[0].shape != tensor.shape:
            parameter.data = {**parameter.data, "shape": tensor.shape.spelling}
    declare(model, inferred)
    return inferred


def declare(graph: Graph, inferred: Inferred) -> None:
    """Write inferred types and sizes into the output ports and the input ports they feed."""
    for layer, index, tensor in list(inferred.ports()):
        if index < len(layer.outputs):
            _declare(layer.outputs[index], tensor)
            for user, place in graph.consumers(layer, index):
                _declare(user.inputs[place], tensor)


def _declare(port: Port, tensor: Tensor) -> None:
    """Make a port say what is known of a tensor, and leave alone what says it already."""
    if not same_declaration(port, tensor):
        port.describe(tensor)


def same_declaration(port: Port, tensor: Tensor) -> bool:
    """Whether a port says what is known of a tensor; an input port need not name a type."""
    if port.dims != dims_of(tensor.shape):
        return False
    return port.precision is None or port.type == tensor.type
