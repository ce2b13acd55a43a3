"""Some layers of a model as a model of their own, its inputs where they were cut off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from ...schemas import Array, Dim, Shape, Tensor
from ..document import BackEdge, Edge, Graph, Info, Layer, MapEntry, Model, Port, PortMap

#: An output of a layer, by its layer's id and its index.
Spot = tuple[int, int]
#: What layers gave, by layer id.
Values = Mapping[int, Sequence[Array]]


@dataclass
class Extract:
    """A part of a model, and which of its tensors are its inputs and outputs."""

    model: Model
    #: The tensors of the whole model that its Parameters and its Results stand for, in order.
    inputs: list[Spot]
    outputs: list[Spot]


def extract(
    model: Model,
    kept: Iterable[Layer],
    tensor: Callable[[Layer, int], Tensor],
    *,
    every_output: bool = False,
    silent: Collection[int] = (),
) -> Extract:
    """Copy layers into a new model, with their ids; constants that feed them come along.

    Args:
        model: Where they are.
        kept: The layers, each after what feeds it; Parameters and Results are made anew.
        tensor: Type and shape of an output, for those that become inputs.
        every_output: A Result for each output, not only for those that nothing kept takes.
        silent: The ids of layers that get no Result.
    """
    part = Model(model.name, 11)
    part.weights = model.weights  # constants stay where they lie
    rows = [x for x in kept if x.type not in ("Parameter", "Result")]
    made: dict[Spot, tuple[Layer, int]] = {}
    inputs: list[Spot] = []
    taken: set[Spot] = set()
    free = count(max((layer.id for layer in model.layers), default=0) + 1)
    for layer in rows:
        copy = copy_layer(layer, part)
        for index, source in enumerate(model.sources(layer)):
            if source is None:
                continue
            feeder, output = source
            spot = feeder.id, output
            taken.add(spot)
            if spot not in made:
                if feeder.is_constant:
                    made[spot] = copy_layer(feeder, part), 0
                else:
                    made[spot] = _parameter(next(free), feeder, output, tensor(feeder, output)), 0
                    part.add(made[spot][0])
                    inputs.append(spot)
            part.connect(made[spot], copy, index)
        made |= {(layer.id, index): (copy, index) for index in range(len(copy.outputs))}
    outputs = [
        (layer.id, index)
        for layer in rows
        if not layer.is_constant and layer.id not in silent
        for index in range(len(layer.outputs))
        if every_output or (layer.id, index) not in taken
    ]
    for number, spot in enumerate(outputs):
        source_layer, index = made[spot]
        port = source_layer.outputs[index]
        name = f"output{number}"
        ports = [Port(0, port.precision, port.dims)]
        result = part.add(Layer("Result", "opset1", name, id=next(free), inputs=ports))
        part.connect((source_layer, index), result, 0)
        port.names = tuple(dict.fromkeys((*port.names, name)))
        result.output_names = name
    return Extract(part, inputs, outputs)


def extract_body(layer: Layer, tag: str, given: Mapping[int, Tensor]) -> Model:
    """Copy a body into a model of its own, with its ids; its inputs are as they were given."""
    body = layer.bodies[tag]
    part = Model(layer.name, 11)
    part.weights = None if layer.model is None else layer.model.weights
    _copy_all(body, part)
    for parameter in part.parameters:
        if parameter.id in given:
            known = _told(given[parameter.id])
            parameter.data = {**parameter.data, **_words_of(known)}
            parameter.outputs[0].describe(known)
    return part


def operations_of(graph: Graph) -> list[Layer]:
    """The layers that compute, in order."""
    return [x for x in graph.order() if _computes(x)]


def count_of(graph: Graph) -> int:
    """How many layers compute, those in bodies too."""
    return sum(map(_computes, graph.everywhere()))


def _computes(layer: Layer) -> bool:
    return layer.type not in ("Const", "Parameter", "Result")


def cut_off(model: Model, kept: Sequence[Layer]) -> list[Spot]:
    """The tensors that become inputs where these layers alone are left."""
    ids = {layer.id for layer in kept}
    sources = [source for layer in kept for source in model.sources(layer) if source is not None]
    return [(x.id, index) for x, index in sources if x.id not in ids and not x.is_constant]


def _parameter(number: int, feeder: Layer, output: int, known: Tensor) -> Layer:
    """A Parameter in place of an output that is not there any more."""
    name = feeder.name if len(feeder.outputs) == 1 else f"{feeder.name}:{output}"
    known = _told(known)
    port = Port.of(0, known, (name,))
    data = _words_of(known)
    return Layer("Parameter", "opset1", name, id=number, data=data, outputs=[port])


def _told(known: Tensor) -> Tensor:
    """What an input is said to be."""
    if not (known.shape.is_static and 0 in known.shape.static):
        return known
    # It will have been open in the model; OpenVINO divides by sizes of none that it is told.
    sizes = [Dim() if size == 0 else size for size in known.shape.static]
    return Tensor(known.type, Shape(sizes))


def _words_of(known: Tensor) -> dict[str, str]:
    return {"shape": known.shape.spelling, "element_type": str(known.type)}


def copy_layer(layer: Layer, graph: Graph) -> Layer:
    """A layer as it stands, with all inside it, added to another graph."""
    copy = Layer(
        layer.type,
        layer.version,
        layer.name,
        id=layer.id,
        data=layer.data,
        inputs=map(_port, layer.inputs),
        outputs=map(_port, layer.outputs),
    )
    copy.rt_info = _info(layer.rt_info)
    copy.output_names = layer.output_names
    bytes_of = None if layer.model is None else layer.model.weights
    target = graph.model
    shared = target is not None and target.weights is bytes_of and not layer.has_new_value
    if layer.is_constant and layer.has_value and not shared:
        copy.set_value(layer.value, layer.element_type)
    graph.add(copy)
    for tag, body in layer.bodies.items():
        inner = Graph(copy)
        _copy_all(body, inner)
        held = layer.port_maps.get(tag)
        rows = [] if held is None else held.entries
        copy.add_body(tag, inner, PortMap(MapEntry(e.kind, dict(e.attributes)) for e in rows))
    copy.back_edges = [BackEdge(*edge) for edge in layer.back_edges]
    return copy


def _copy_all(body: Graph, graph: Graph) -> None:
    """Copy all layers of a body, and how they are joined."""
    for layer in body.layers:
        copy_layer(layer, graph)
    for edge in body.edges:
        _join(graph, edge)


def _join(graph: Graph, edge: Edge) -> None:
    source, target = graph.layer(edge.from_layer), graph.layer(edge.to_layer)
    graph.connect(
        (source, source.port_ids("output").index(edge.from_port)),
        target,
        target.port_ids("input").index(edge.to_port),
    )


def _port(port: Port) -> Port:
    extra = dict(port.extra)
    return Port(port.id, port.precision, port.dims, port.names, _info(port.rt_info), extra)


def _info(info: Info | None) -> Info | None:
    if info is None:
        return None
    return Info(info.tag, info.attributes, [x for x in map(_info, info) if x], info.text)
