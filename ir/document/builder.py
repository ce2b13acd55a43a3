"""Models made in memory.

Example::

    net = Builder("m")
    x = net.parameter("x", "f32", "1,3,8,8")
    w = net.constant(np.ones((3, 1, 1), np.float32), name="w")
    y = net.add("Add", "opset1", [x, w], name="sum")
    net.result(y, name="out")
    model = net.model()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...layers.base import NEWEST
from ...layers.value_bounds import CARRIED
from ...schemas import IRError, Shape, Tensor, UsageError, Where, placed
from ...schemas.attributes import spelled
from ...schemas.shapes import ShapeLike
from ...schemas.types import TypeLike
from .graph import Graph
from .joined import joined_numbers
from .layer import Layer
from .literals import Literals, Value, literals
from .model import Model
from .names import FreeNames, listed
from .parts import Port, join_names

if TYPE_CHECKING:
    from ...layers.base import Op

T = TypeVar("T")


class Output:
    """An output of a layer being built; ``y[1]`` is the second output of the same layer."""

    __slots__ = ("_builder", "_tensors", "index", "layer")

    def __init__(
        self,
        layer: Layer,
        index: int,
        tensors: Sequence[Tensor],
        builder: Builder | None = None,
    ) -> None:
        self.layer, self.index, self._tensors = layer, index, tensors
        self._builder = builder

    @property
    def builder(self) -> Builder:
        """What builds the graph that it is in."""
        if self._builder is None:
            if self.layer.graph is None:
                raise UsageError("the layer is in no graph", self.layer.where)
            self._builder = Builder(into=self.layer.graph)
        return self._builder

    @property
    def tensor(self) -> Tensor:
        """What is known of it."""
        return self._tensors[self.index]

    @property
    def is_constant(self) -> bool:
        """Whether it is a constant."""
        return self.layer.is_constant

    def __getitem__(self, index: int) -> Output:
        if not 0 <= index < len(self._tensors):
            raise IndexError(f"{self.layer!r} has {len(self._tensors)} outputs, not {index}")
        return Output(self.layer, index, self._tensors, self._builder)

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[Output]:
        return (self[index] for index in range(len(self)))

    def named(self, *names: str) -> Output:
        """Give the tensor further names."""
        port = self.layer.outputs[self.index]
        port.names = tuple(dict.fromkeys((*port.names, *listed(names))))
        return self

    def __repr__(self) -> str:
        return f"Output({self.layer!r}, {self.index}, {self.tensor})"


class Builder:
    """Makes a model, or the body of one, layer by layer; sizes follow as it grows.

    Args:
        name: Name of the model.
        into: The graph to build into, in place of a new model.
        opset: The latest opset that whoever reads the model knows, where ``ir.ops`` chooses.
    """

    def __init__(
        self, name: str = "model", *, into: Graph | None = None, opset: int | None = None
    ) -> None:
        if opset is not None and (not _is(opset, int) or not 1 <= opset <= NEWEST):
            raise UsageError(
                f"opset is {opset!r}, it is a whole number from 1 to {NEWEST}",
                hint="opset=13",
            )
        if into is not None and not _is(into, Graph):
            raise UsageError(f"a graph to build into is wanted, not {into!r:.60}")
        self.graph: Graph = Model(_text(name)) if into is None else into
        self.opset = opset
        self._names = {layer.name for layer in self.graph.layers}
        self._free = FreeNames(self._names.__contains__)
        #: The names that the tensors of inputs have.
        self._inputs = {
            name for layer in self.graph.parameters for row in layer.tensor_names() for name in row
        }
        self._free_input = FreeNames(self._inputs.__contains__)
        #: What inference would know of the layers that it made, by their ids.
        self.tensors: dict[int, tuple[Tensor, ...]] = {}

    def __repr__(self) -> str:
        return f"<builder of {self.graph!r}>"

    def parameter(
        self, name: str, type: TypeLike, shape: ShapeLike, *, names: Iterable[str] = ()
    ) -> Output:
        """An input of the model, whose tensor has the same name, or these ``names``.

        Those that another input's tensor has get the first number that makes them free.
        """
        with placed(Where(name=str(name), type="Parameter")):
            tensor, called = Tensor(type, Shape.of(shape)), listed(names)
        data = {"shape": tensor.shape.spelling, "element_type": str(tensor.type)}
        own = []
        for one in dict.fromkeys(called or (_text(name),)):
            own.append(self._free_input(one))
            self._inputs.add(own[-1])
        return self._place("Parameter", "opset1", name, data, (), [tensor], own)

    def constant(
        self, value: Any, type: TypeLike | None = None, *, name: str | None = None
    ) -> Output:
        """A constant; ``type`` where the array's own says it not (nf4, u1)."""
        with placed(partial(Where, name=name or "Constant", type="Const")):
            layer = Layer("Const", "opset1", _text(name or "Constant"))
            layer.set_value(value, type)
            layer.name = self.free(layer.name)
        self.graph.add(layer)
        held = layer.value
        tensor = Tensor(layer.element_type, Shape(held.shape), held)
        large = held.size > CARRIED
        self.tensors[layer.id] = (Tensor(tensor.type, tensor.shape) if large else tensor,)
        return Output(layer, 0, [tensor], self)

    def add(
        self,
        type: str | Op,
        version: str | None = None,
        inputs: Iterable[Output | Value] = (),
        *,
        name: str | None = None,
        outputs: Iterable[Tensor] | None = None,
        data: Mapping[str, Any] | None = None,
        **attributes: Any,
    ) -> Output:
        """A layer applied to outputs; its own outputs follow from its shape rule.

        Args:
            type: The type in the XML, or an operation with its attributes.
            version: The opset in the XML; None with an operation.
            inputs: What feeds it, in order: outputs, or values, which become constants.
            name: Its name; made from the type where there is none.
            outputs: What its outputs are, needed where the operation is not known.
            data: Attributes whose names are no identifiers, such as ``exclude-pad``.
            attributes: The other attributes, as values or as text.
        """
        if not (_is(type, str) or hasattr(type, "xml_type")):
            raise UsageError(f"{type!r:.60} is no type of a layer", hint='"Relu", or an operation')
        if data is not None and not _is(data, Mapping):
            raise UsageError(f"data is {data!r:.60}", hint='{"exclude-pad": True}')
        values = {**(data or {}), **attributes}
        kind = type if isinstance(type, str) else type.xml_type
        version = version if isinstance(type, str) else version or type.version()
        where = partial(Where, name=name or kind, type=kind, version=version)
        op: Op | None = None if isinstance(type, str) else type
        with placed(where):
            if isinstance(type, str):
                if version is None or not _is(version, str):
                    other = "" if version is None else f", not {version!r:.40}"
                    raise UsageError(f"{type} needs a version, such as opset1{other}")
                op = _operation(type, version, values)
            elif values:
                op = type.with_(**values)
            several = _several(inputs, "inputs")
            given = self._given(several)
            if kind == "Broadcast" and len(given) > 1:
                given[1] = self._joined(given[1])
            if op is None and outputs is None:
                raise UsageError(_unknown(kind), hint="or say what its outputs are")
            known = None if outputs is None else _several(outputs, "outputs", Tensor)
            numbers = not all(isinstance(one, (Output, np.ndarray, np.generic)) for one in several)
            tensors, chosen = _settled(op, given, known, numbers)
        sources = [one for one in given if isinstance(one, Output)]
        if len(sources) < len(given):
            sources = [
                one
                if isinstance(one, Output)
                else self.constant(tensor.value, tensor.type, name=f"{name or kind}/{label}")
                for one, tensor, label in zip(given, chosen, _labels(op, len(given)), strict=True)
            ]
        texts = op.attributes() if op is not None else _texts(values)
        return self._place(kind, version or "", name or kind, texts, sources, tensors)

    def _joined(self, target: Output | Literals) -> Output | Literals:
        """A target shape with what is known of its parts, where nothing is known of the whole."""
        if not isinstance(target, Output) or target.tensor.bounds is not None:
            return target
        tensors, source = [*target._tensors], (target.layer, target.index)
        tensor = joined_numbers(
            self.graph, source, target.tensor, lambda part, output: part.outputs[output].tensor
        )
        tensors[target.index] = tensor
        return Output(target.layer, target.index, tensors, target._builder)

    def _given(self, inputs: Sequence[Output | Value]) -> list[Output | Literals]:
        """The inputs, each an output of this graph or a value of a type to be chosen."""
        for index, one in enumerate(inputs):
            if isinstance(one, Output) and one.layer.graph is not self.graph:
                raise UsageError(f"input {index} is {one.layer!r}, which is in another graph")
        types = [one.tensor.type for one in inputs if isinstance(one, Output)]
        if len(types) == len(inputs):
            return list(inputs)  # type: ignore[arg-type]  # outputs all of them
        return [
            one if isinstance(one, Output) else literals(one, types, f"input {index}")
            for index, one in enumerate(inputs)
        ]

    def result(
        self, source: Output, *, name: str | None = None, names: Iterable[str] | None = None
    ) -> Layer:
        """An output of the model; its tensor takes the name."""
        if not _is(source, Output):
            raise UsageError(
                f"{source!r:.60} is no output of a layer",
                hint="give what parameter, constant or add returned",
            )
        name = self.free(name or "Result")
        port = source.layer.outputs[source.index]
        if names is None and name not in port.names:
            names = (name,)
        for text in listed(names or ()):
            source.named(text)
        layer = Layer("Result", "opset1", name, inputs=[Port(0, port.precision, port.dims)])
        # In OpenVINO's order, so that its own copy of the file is the same.
        layer.output_names = join_names(sorted(source.layer.outputs[source.index].names))
        self.graph.add(layer)
        self.tensors[layer.id] = (source.tensor,)
        self.graph.connect((source.layer, source.index), layer, 0)
        return layer

    def rename(self, layer: Layer, name: str) -> None:
        """Give a layer another name, or that name with the first number that nobody has."""
        if layer.name != name:
            self._names.discard(layer.name)
            layer.name = self.free(name)

    def model(self) -> Model:
        """What was built."""
        if not isinstance(self.graph, Model):
            raise UsageError("this builds the body of a layer, not a model")
        return self.graph

    def _place(
        self,
        kind: str,
        version: str,
        name: str,
        data: Mapping[str, str],
        inputs: Sequence[Output],
        tensors: Sequence[Tensor],
        names: Iterable[str] = (),
    ) -> Output:
        """Put a layer with its ports and edges into the graph."""
        layer = Layer(
            kind,
            version,
            self.free(name),
            data=data,
            inputs=[Port.of(i, one.tensor) for i, one in enumerate(inputs)],
            outputs=[Port.of(len(inputs) + i, t) for i, t in enumerate(tensors)],
        )
        if layer.outputs and names:
            layer.outputs[0].names = tuple(names)
        self.graph.add(layer)
        self.tensors[layer.id] = tuple(tensors)
        for index, one in enumerate(inputs):
            self.graph.connect((one.layer, one.index), layer, index)
        return Output(layer, 0, list(tensors), self)

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names for layers that get them later, by ``layer.name``."""
        self._names.update(names)

    def free(self, name: str) -> str:
        """The name, or the name with the first number that nobody has."""
        chosen = self._free(_text(name))
        self._names.add(chosen)
        return chosen


def _settled(
    op: Op | None,
    given: Sequence[Output | Literals],
    outputs: list[Tensor] | None,
    has_numbers: bool,
) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """The outputs and the inputs, values in the first types that the operation's rule takes."""
    plain = tuple([one.tensor for one in given if isinstance(one, Output)])
    if op is not None and outputs is None and len(plain) == len(given):
        return list(op.infer_outputs(plain)), plain
    refusal: IRError | None = None
    choices = [(one.tensor,) if isinstance(one, Output) else one for one in given]
    for index in () if op is None else op.like_first:
        if index < len(choices):
            first = [tensor.type for tensor in choices[0]]
            alike = tuple(tensor for tensor in choices[index] if tensor.type in first)
            choices[index] = alike or choices[index]
    for row in product(*choices):
        if op is None or outputs is not None:
            return outputs or [], row
        try:
            return list(op.infer_outputs(row)), row
        except IRError as error:
            refusal = refusal or error
    if refusal is None:
        raise UsageError("a value has no type that it could be of")
    if has_numbers and len({tensors[0].type for tensors in choices}) > 1:
        refusal.hint = refusal.hint or "a number is of the type beside it where that holds it"
    raise refusal


def _is(given: object, kind: type) -> bool:
    """Whether a caller, whom no type checker may have told, gave what is annotated."""
    return isinstance(given, kind)


def _text(name: str) -> str:
    """A name, as a caller gave it."""
    if not _is(name, str):
        raise UsageError(f"a name is text, not {name!r:.60}")
    return name


def _several(given: Iterable[T], what: str, kind: type = object) -> list[T]:
    """What a caller gave as several things of a kind."""
    if not _is(given, Iterable) or _is(given, str):
        raise UsageError(f"{what} are {given!r:.60}", hint=f"give a list: {what}=[...]")
    found = list(given)
    wrong = [one for one in found if not isinstance(one, kind)]
    if wrong:
        raise UsageError(f"{wrong[0]!r:.60} among {what} is no {kind.__name__}")
    return found


def _labels(op: Op | None, count: int) -> list[str]:
    """What the inputs are called."""
    names = list(op.arity()[0]) if op is not None else []
    last = names[-1] if names else "input"
    return [name.rstrip("_") for name in names[:count]] + [last] * (count - len(names))


def _operation(kind: str, version: str, values: Mapping[str, Any]) -> Op | None:
    """The operation with its attributes checked; None where the type is not known."""
    from ...layers.base import Op

    found = Op.find(kind, version)
    if found is None:
        return None
    op: Op = found.model_validate(dict(values))
    return op


def _unknown(kind: str) -> str:
    """That an operation is not known, and which is."""
    import difflib

    from ...layers.base import Op

    newest = Op.newest(kind)
    if newest is not None:
        return f"it is not known in this version, {newest.spec()} is {newest.version()}"
    near = difflib.get_close_matches(kind[:80], Op.registry.types(), 1)
    return f"it is not known, did you mean {near[0]}?" if near else "it is not known"


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Attribute values as text, for operations that do not say how they are spelt."""
    return {key: spelled(value) for key, value in values.items()}
