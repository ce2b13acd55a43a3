"""Types and shapes of every port, worked out from the model's inputs.

Example::

    tensors = ir.infer(model, {"x": "1..8,3,H,W"})
    tensors["prob"].shape       # by output, layer or tensor name
    for layer, index, tensor in tensors.ports(): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from operator import is_
from typing import TypeAlias

from ...layers.budget import budget, within
from ...layers.leftovers import tidy
from ...layers.memory import without_collection
from ...layers.value_bounds import CARRIED
from ...schemas import Dim, ElementType, IRError, Shape, Tensor, UsageError
from ...schemas.printing import counted, printable_name
from ...schemas.shapes import ShapeLike
from ..document import (
    Graph,
    Layer,
    Model,
    by_input,
    joined_numbers,
    named_output,
    output_keys,
    own_names,
    with_symbols,
)
from ..faces import Shown
from ..opening import ModelLike, opened
from .bodies import check_condition, infer_bodies
from .interface import output_type

#: New input shapes, by name or index, or in order.
Shapes: TypeAlias = "Mapping[str, ShapeLike] | Mapping[int, ShapeLike] | Iterable[ShapeLike]"


#: What may be said of the outputs of a layer, by what is known before it and of them.
Hope: TypeAlias = Callable[
    [Graph, Layer, Mapping[int, tuple[Tensor, ...]], tuple[Tensor, ...]], tuple[Tensor, ...]
]

#: How names begin that stand for sizes of which nobody said one: no user's does.
OWN = "#"


class Inferred(Shown, Mapping[str, Tensor]):
    """What is known of every port; as a mapping, of the outputs by name."""

    def __init__(self, graph: Graph, tensors: dict[int, tuple[Tensor, ...]]) -> None:
        self._graph = graph
        #: The outputs of every layer, by layer id.
        self.tensors = tensors
        self._keys = dict(zip(output_keys(graph), graph.results, strict=True))

    def __getitem__(self, name: str) -> Tensor:
        if name in self._keys:
            return self.of(self._keys[name])[0]
        layer, index = named_output(self._graph, name)
        return self.of(layer)[index]

    def __repr__(self) -> str:
        outputs = ", ".join(f"{printable_name(name)}: {self[name]}" for name in islice(self, 8))
        more = f", and {len(self) - 8} more" if len(self) > 8 else ""
        return f"<inferred {counted(len(self.tensors), 'layer')}: {outputs}{more}>"

    @property
    def model(self) -> Model:
        """The model that it was inferred of."""
        found = self._graph.model
        if found is None:
            raise UsageError("it was inferred of a body that is in no model")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, layer: Layer) -> tuple[Tensor, ...]:
        """The outputs of one layer; of a Result, what it hands out."""
        if layer.id not in self.tensors:
            raise UsageError(f'layer "{layer.name}" feeds no output, nothing is known of it')
        return self.tensors[layer.id]

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def ports(self) -> Iterator[tuple[Layer, int, Tensor]]:
        """Every output port, with its layer and index, in the order of the file."""
        for layer in self._graph.layers:
            if layer.type != "Result":
                for index, tensor in enumerate(self.tensors.get(layer.id, ())):
                    yield layer, index, tensor


@tidy
def infer(
    model: ModelLike,
    shapes: Shapes | None = None,
    *,
    max_memory: int | None = None,
    max_seconds: float | None = None,
) -> Inferred:
    """Work out types and shapes of every port.

    Args:
        model: The model, or its path; it is not changed.
        shapes: New shapes for some of the inputs, such as ``{"x": "1..8,3,H,W"}``; the others
            keep what the file says.
        max_memory: Bytes that may be taken; None for what the machine has left.
        max_seconds: Looked at between layers; None for no limit but that of the turns of bodies.

    Raises:
        LimitError: More memory or time is wanted than is there or allowed.
        IRError: A layer does not accept its inputs; the error names it.
        UsageError: An input is not there.
    """
    model = opened(model)
    given = {
        layer_id: Tensor(parameter_type(model.layer(layer_id)), Shape.of(shape))
        for layer_id, shape in by_input(model, _pairs(shapes)).items()
    }
    with within(max_memory, max_seconds):
        return Inferred(model, infer_graph(model, given, new_shapes=bool(given)))


def parameter_type(parameter: Layer) -> ElementType:
    """The element type of an input."""
    op = parameter.op
    if op is None:
        return parameter.outputs[0].type
    with parameter.at():
        if parameter.type != "Parameter":
            raise IRError("an input has the same id, ids are given once")
        return op.infer()[0].type


def _pairs(
    shapes: Shapes | None,
) -> Mapping[str, ShapeLike] | Mapping[int, ShapeLike] | Iterable[ShapeLike] | None:
    if isinstance(shapes, (str, Shape)):
        raise UsageError("shapes are given by input name, or as a list with one for each input")
    return shapes


@without_collection()
def infer_graph(
    graph: Graph,
    given: Mapping[int, Tensor],
    *,
    new_shapes: bool = False,
    naming: bool = False,
    hope: Hope | None = None,
) -> dict[int, tuple[Tensor, ...]]:
    """The outputs of every layer that OpenVINO would read, by layer id.

    ``given`` are Parameters and variables that are not what the file says. ``naming``: each
    size that is not known and has no name gets one, so that it is known again where it comes back.
    ``hope``: what to go on with in the place of what a layer is sure to give.
    """
    tensors: dict[int, tuple[Tensor, ...]] = {}
    owners: dict[str, str] = {}
    # A body is gone through several times, and those in it as often each time.
    count = budget().check_time if isinstance(graph, Model) else budget().turn
    for layer in graph.order():
        try:
            with layer.at():
                count()
            outputs = infer_layer(graph, layer, tensors, given)
            if layer.type == "Parameter" and layer.id not in given:
                shape = own_names(outputs[0].shape, layer.name, owners)
                if shape is not outputs[0].shape:
                    outputs = (Tensor(outputs[0].type, shape),)
            if hope is not None:
                outputs = hope(graph, layer, tensors, outputs)
            tensors[layer.id] = _with_names(layer, outputs) if naming else outputs
        except IRError as error:
            if new_shapes and error.hint is None:
                error.hint = _what_pins(graph, layer, tensors, _has_new_batch(graph, given))
            raise
    return tensors


def are_named(tensors: Iterable[Tensor]) -> bool:
    """Whether each size of tensors is known or has a name."""
    return all(
        tensor.shape.is_static
        or tensor.rank is None
        or all(not isinstance(size, Dim) or size.symbol is not None for size in tensor.shape)
        for tensor in tensors
    )


def _with_names(layer: Layer, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What a layer gives, with a name for each size that is not known and has none."""
    if are_named(tensors):
        return tensors
    return tuple(
        tensor
        if are_named([tensor])
        else Tensor(
            tensor.type,
            [
                Dim(size.low, size.high, f"{OWN}{layer.id}.{index}.{axis}")
                if isinstance(size, Dim) and size.symbol is None
                else size
                for axis, size in enumerate(tensor.shape)
            ],
        )
        for index, tensor in enumerate(tensors)
    )


def infer_layer(
    graph: Graph,
    layer: Layer,
    known: Mapping[int, tuple[Tensor, ...]],
    given: Mapping[int, Tensor],
) -> tuple[Tensor, ...]:
    """The outputs of one layer whose inputs are known; errors carry its place."""
    if layer.is_constant:
        if any(graph.sources(layer)):
            raise IRError("a Const takes no inputs, an edge leads to one", layer.where)
        look_ups = graph.look_ups
        known_before = {} if look_ups is None else look_ups.constants
        if layer.id not in known_before:
            with layer.at():
                known_before[layer.id] = constant(layer)
        return (known_before[layer.id],)
    op = layer.op
    if op is None:
        # Of a layer that nobody knows the file is trusted.
        return tuple(port.tensor for port in layer.outputs)
    with layer.at():
        if layer.type == "Parameter":
            if layer.id in given:
                return (given[layer.id],)
            return (with_symbols(layer, op.infer()[0]),)
        if layer.type == "ReadValue" and layer.id in given:
            return (given[layer.id],)
        inputs = inputs_of(graph, layer, known)
        if layer.bodies:
            op.check_arity(len(inputs))
            check_condition(layer, inputs)
            graph.look_up_bodies(layer)
            return infer_bodies(layer, inputs, infer_graph)
        if layer.type == "Broadcast" and len(inputs) > 1 and inputs[1].bounds is None:
            source = graph.sources(layer)[1]
            inputs[1] = joined_numbers(
                graph, source, inputs[1], lambda part, output: known[part.id][output]
            )
        look_ups = graph.look_ups
        before = None if look_ups is None else look_ups.inferred.get(layer.id)
        if (
            before is not None
            and len(before[0]) == len(inputs)
            and all(map(is_, before[0], inputs))
        ):
            return before[1]
        outputs = op.infer_outputs(inputs)
        if layer.type == "Result" and isinstance(graph, Model):
            outputs = (Tensor(output_type(graph, outputs[0].type), outputs[0].shape),)
        if look_ups is not None:
            look_ups.inferred[layer.id] = inputs, outputs
        return outputs


def inputs_of(graph: Graph, layer: Layer, known: Mapping[int, tuple[Tensor, ...]]) -> list[Tensor]:
    """The tensors that feed a layer, in order."""
    inputs = []
    for index, source in enumerate(graph.sources(layer)):
        if source is None:
            raise IRError(f"input {index} is fed by nothing")
        producer, output = source
        outputs = known[producer.id]
        if output >= len(outputs):
            raise IRError(
                f"input {index} is fed by output {output} of {producer.type} "
                f'"{producer.name}", which has {len(outputs)}'
            )
        inputs.append(outputs[output])
    return inputs


def constant(layer: Layer) -> Tensor:
    """What a constant is; its value where it is small enough to describe a shape."""
    kind, sizes = layer.element_type, layer.sizes
    count = 1
    for size in sizes:
        count *= size
    if kind.is_dynamic or count > CARRIED or not layer.has_value:
        return Tensor(kind, Shape(sizes))
    return Tensor(kind, Shape(sizes), layer.value)


def _has_new_batch(graph: Graph, given: Mapping[int, Tensor]) -> bool:
    """Whether the first size of an input is not what the file says."""
    pairs = ((x.shape, graph.layer(id).outputs[0].tensor.shape) for id, x in given.items())
    return any(new.rank and old.rank and new[0] != old[0] for new, old in pairs)


def _what_pins(
    graph: Graph, layer: Layer, known: Mapping[int, tuple[Tensor, ...]], has_new_batch: bool
) -> str | None:
    """What new shapes fail on: a Reshape of a constant pattern before a layer, or a constant."""
    seen: set[int] = set()
    queue = [layer]
    while queue:
        current = queue.pop(0)
        if current.id in seen:
            continue
        seen.add(current.id)
        sources = [source for source in graph.sources(current) if source is not None]
        if current.type == "Reshape" and len(sources) == 2 and sources[1][0].type == "Const":
            pattern = sources[1][0].value.ravel().tolist()
            fed, index = sources[0]
            shapes = known[fed.id][index].shape, fed.outputs[index].tensor.shape
            hint = _freed(pattern, *shapes, sources[1][0].name, has_new_batch)
            if hint is not None:
                return f'Reshape "{current.name}" has the constant pattern {pattern}; {hint}'
        queue.extend(source[0] for source in sources)
    if hasattr(layer.op, "auto_broadcast"):
        for source in graph.sources(layer):
            if source is not None and source[0].type == "Const":
                shape = known[source[0].id][0].shape
                return (
                    f'constant "{source[0].name}" has the shape {shape}, which was made for other '
                    "sizes of the inputs: convert the original model again for these"
                )
    return None


def _freed(
    pattern: list[int], fed: Shape, before: Shape, name: str, has_new_batch: bool
) -> str | None:
    """What to write into the constant of a pattern, so that it fits more than what fed it before.

    None where that is the same as before, or another size would have to be told: also where the
    inputs have a new batch that does not come this far, which a layer before has taken in.
    """
    copies, free = pattern[:1] in ([0], [-1]), -1 not in pattern
    same_batch, same_rest = False, False
    if fed.rank and fed.rank == before.rank:
        same_batch, same_rest = fed[0] == before[0], fed.sizes[1:] == before.sizes[1:]
    if fed == before or (copies and (same_rest or not free)) or (same_batch and has_new_batch):
        return None
    if copies or (fed.rank and pattern and fed[0] == pattern[0] and free):
        return (
            f'with -1 in place of a later size (constant "{name}") that one follows the input; '
            "where several change, ShapeOf has to tell them"
        )
    if same_batch:
        return None
    word = -1 if free else 0
    return f'with {word} in place of its first size (constant "{name}") the batch is free'


__all__ = ["OWN", "Inferred", "Shapes", "are_named", "infer", "infer_graph", "infer_layer"]
