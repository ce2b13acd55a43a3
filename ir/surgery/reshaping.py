"""New input shapes for a model, and what is inferred written into every port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from ...layers.infrastructure import LOOKING_BACK
from ...schemas import IRError, Tensor, UsageError
from ..document import BODIES_OF, FreeNames, Graph, Layer, Model, Port, body_path, dims_of
from ..inference import Inferred, Shapes, infer, infer_bodies, infer_graph, inputs_of
from ..opening import ModelLike, opened
from .outcome import Surgery

#: The outputs of layers, by the ids of the layers.
Tensors: TypeAlias = Mapping[int, tuple[Tensor, ...]]


def reshape(model: ModelLike, shapes: Shapes | None = None) -> Inferred:
    """Give inputs new shapes, and make every port declare what follows from them, in bodies too.

    Without new shapes, ports whose declaration contradicts what is inferred are mended.

    Raises:
        IRError: The first layer that does not accept its inputs, or a variable that does not
            take what it is given; nothing was changed.
    """
    model = opened(model)
    inferred = infer(model, shapes)
    if model.weights is None:
        _refuse_to_forget(model, inferred)
    _refuse_other_values(model, inferred.tensors)
    if shapes is not None:
        _refuse_fixed(model, inferred.tensors)
    for parameter in model.parameters:
        (tensor,) = inferred.of(parameter)
        if parameter.op is not None and parameter.op.infer()[0].shape != tensor.shape:
            parameter.data = {**parameter.data, "shape": tensor.shape.spelling}
    declare(model, inferred.tensors)
    _declare_bodies(model, inferred.tensors)
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


def _refuse_fixed(model: Model, tensors: Tensors) -> None:
    """Refuse other sizes for what an older file says of the declared ones alone."""
    remarks = () if model.origin is None else model.origin.remarks
    fixed = [(one, *one.fixed) for one in remarks if one.fixed is not None]
    layers = {layer.id: layer for layer in model.layers} if fixed else {}
    for remark, number, index in fixed:
        layer = layers.get(number)
        # Where the tensor was taken out since, any input that is of another size might lead there.
        looked_at = model.parameters if layer is None else [layer]
        for one in looked_at:
            place = 0 if layer is None else index
            if one.id not in tensors or place >= len(one.outputs):
                continue
            told, found = one.outputs[place].dims, dims_of(tensors[one.id][place].shape)
            if found[1:] != told[1:]:
                raise IRError(
                    f"{remark.message}; it is fed {list(told)}, and would be fed {list(found)}",
                    remark.where,
                    "convert the original model again, for this size",
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


def settle(model: Model, report: Surgery | None = None) -> Inferred:
    """Infer a model anew after a change, and make every port and the names at its ends say so.

    Raises:
        IRError: The first layer that does not accept its inputs.
    """
    inferred = reshape(model)
    if model.version == 10:
        _mend_ends(model, report or Surgery("edit"))
    return inferred


def _refuse_other_values(model: Model, tensors: Tensors) -> None:
    """Refuse values that the variables which they are put into do not take."""
    read = {x.data.get("variable_id"): x for x in model.layers if x.type == "ReadValue"}
    for layer in model.layers if read else ():
        reader = read.get(layer.data.get("variable_id")) if layer.type == "Assign" else None
        source = None if reader is None else model.producer(layer, 0)
        if reader is None or source is None or not {reader.id, source[0].id} <= tensors.keys():
            continue
        variable, value = tensors[reader.id][0], tensors[source[0].id][source[1]]
        with layer.at():
            same_type = value.type is variable.type
            if not same_type and not value.type.is_dynamic and not variable.type.is_dynamic:
                raise IRError(f"the variable is {variable.type}, it is given {value.type}")
            try:
                variable.shape.merge(value.shape)
            except IRError:
                what = f"the variable is {variable.shape}, it is given {value.shape}"
                raise IRError(what, hint="give ReadValue another variable_shape, too") from None
            if layer.version in LOOKING_BACK and not (
                reader.version in LOOKING_BACK and _follows(model, layer, reader)
            ):
                raise IRError(
                    f"an Assign of {layer.version} follows from a ReadValue of such an opset, "
                    f'not so from "{reader.name}" ({reader.version})',
                    hint="of opset6 it need not, where ReadValue says variable_shape",
                )


def lost_variables(model: Model) -> dict[str, Layer]:
    """The layers that write a variable which nobody reads, by its name."""
    layers = [layer for layer in model.everywhere() if "variable_id" in layer.data]
    read = {layer.data["variable_id"] for layer in layers if layer.type == "ReadValue"}
    written = {layer.data["variable_id"]: layer for layer in layers if layer.type == "Assign"}
    return {name: layer for name, layer in written.items() if name not in read}


def refuse_lost(model: Model, known: Collection[str]) -> None:
    """Refuse that a variable is written and read no more, but for those that were so before."""
    for name, layer in lost_variables(model).items():
        if name not in known:
            raise UsageError(
                f'no ReadValue has the variable "{name}" any more',
                layer.where,
                "leave this out, too; a variable is renamed by the edit rename, any",
            )


def _follows(model: Model, layer: Layer, wanted: Layer) -> bool:
    """Whether a layer is computed from another."""
    seen, pending = {layer.id}, [layer]
    while pending:
        feeders = [row[0] for row in model.sources(pending.pop()) if row is not None]
        if any(one is wanted for one in feeders):
            return True
        fresh = {one.id: one for one in feeders if one.id not in seen}
        seen |= fresh.keys()
        pending += fresh.values()
    return False


def _mend_ends(model: Model, report: Surgery) -> None:
    """Give inputs and outputs names that OpenVINO takes of a model of IR version 10.

    There the names of the layers at its ends are names of their tensors, too. A tensor that is
    several ends goes by that of its layer alone; a layer named as the tensor of another gets a
    name of its own.
    """
    ends = [(layer, 0) for layer in model.parameters]
    ends += [end for result in model.results if (end := model.producer(result, 0)) is not None]
    for (layer, index), count in Counter(ends).items():
        port = layer.outputs[index]
        lost = [name for name in port.names if name != layer.name]
        if count > 1 and port.names:
            port.names = ()
        if count > 1 and lost:
            what = f"{', '.join(lost)}: several ends of the model are one tensor, which has "
            report.note("unnamed", f"{what}no names in IR version 10 but its layer's", layer)
    owners = {name: x for x in model.layers for row in x.tensor_names() for name in row}
    free = FreeNames({*owners, *(layer.name for layer in model.layers)}.__contains__)
    for layer in {id(layer): layer for layer, _ in ends}.values():
        if owners.get(layer.name, layer) is not layer:
            old, layer.name = layer.name, free(layer.name)
            section = model.pre_process
            if section is not None and section.attributes.get("reference-layer-name") == old:
                section.attributes["reference-layer-name"] = layer.name
            what = f'was "{old}", as a tensor is that it does not give'
            report.note("renamed", what, layer)


def _declare_bodies(graph: Graph, tensors: Tensors) -> None:
    """The same for the bodies of a graph's layers, with what their layers are fed."""
    for _, body, (given, inner) in inferred_bodies(graph, tensors):
        for number, tensor in given.items():
            parameter = body.layer(number)
            if parameter.outputs and not same_declaration(parameter.outputs[0], tensor):
                parameter.data = {
                    **parameter.data,
                    "shape": tensor.shape.spelling,
                    "element_type": str(tensor.type),
                }
        declare(body, inner)


#: What a body was given, and what follows from it, by the ids of its layers.
BodyTensors: TypeAlias = tuple[Mapping[int, Tensor], Tensors]


def inferred_bodies(graph: Graph, tensors: Tensors) -> Iterator[tuple[str, Graph, BodyTensors]]:
    """Every body in a graph, those in bodies too, by its path: ``outer/body``."""
    waiting = [(graph, tensors)]
    for outer, known in waiting:
        for layer in outer.layers:
            if layer.type in BODIES_OF and layer.id in known:
                found = tensors_of_bodies(outer, layer, known)
                for body in layer.bodies.values():
                    if id(body) in found:
                        yield body_path(body), body, found[id(body)][1]
                        waiting.append((body, found[id(body)][1][1]))


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
