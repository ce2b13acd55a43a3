"""Nodes and values: the layers of a model, made ready to be planned.

What is constant is computed here, what only renames is dropped, and what follows a
convolution element by element becomes its epilogue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....layers.base import Op
from ....layers.memory import run_within_memory, without_collection
from ....schemas import Array, ElementType, IRError, Tensor
from ...document.graph import Layer, Model
from ...execution.interpreter import refuse_unknown
from ...inference.shapes import Inferred

if TYPE_CHECKING:
    from ..kernels.winograd import Way

#: Element types that have no place in an arena of bytes.
UNPLANNED = (ElementType.DYNAMIC, ElementType.STRING)


CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})
POOLINGS = frozenset({"MaxPool", "AvgPool"})
BINARY = frozenset(
    {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference"}
)
UNARY = frozenset(
    {"ReLU", "Clamp", "Sigmoid", "Tanh", "Elu", "HSwish", "HSigmoid", "HardSigmoid", "Swish",
     "Gelu", "Mish", "SoftPlus", "Exp", "Sqrt", "Abs", "Negative", "Erf", "Log", "Floor", "PReLU"}
)  # fmt: skip
SHUFFLE = "ShuffleChannels"


class Value:
    """A tensor between nodes: a constant, or a place in the arena."""

    __slots__ = (
        "constant",
        "is_output",
        "last",
        "parent",
        "producer",
        "shape",
        "start",
        "store",
        "strides",
        "type",
        "users",
    )

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, constant: Array | None = None
    ) -> None:
        self.shape, self.type, self.constant = shape, dtype, constant
        self.producer: Node | None = None
        #: Who reads it, and how often.
        self.users: Counter[Node] = Counter()
        #: Whether the model hands it out.
        self.is_output = False
        #: Whether the channels (axis 1) are kept last in memory.
        self.last = False
        #: The value in whose memory this one lies, how many bytes from its beginning, and the
        #: steps along its axes there, where they are not as they would be without gaps.
        self.parent: Value | None = None
        self.start = 0
        self.strides: tuple[int, ...] | None = None
        #: The memory, in the order in which it is kept.
        self.store: Array | None = None

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """The sizes in the order in which memory keeps them."""
        return (self.shape[0], *self.shape[2:], self.shape[1]) if self.last else self.shape

    @property
    def array(self) -> Array:
        """The memory, with its axes in the model's order."""
        if self.constant is not None:
            return self.constant
        assert self.store is not None
        return np.moveaxis(self.store, -1, 1) if self.last else self.store

    @property
    def nbytes(self) -> int:
        """Bytes it takes."""
        return prod(self.shape) * self.type.itemsize


class LaidOut(NamedTuple):
    """Weights of a convolution as its kernel wants them; ``way`` is Winograd's, where it is."""

    way: Way | None
    matrices: list[Array]


class Node:
    """An operation on values, with what is done to its output before that leaves the cache."""

    __slots__ = (
        "epilogue", "inputs", "laid_out", "layer", "looks_up", "op", "outputs", "padding",
        "prologue",
    )  # fmt: skip

    def __init__(
        self, layer: Layer, op: Op, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> None:
        self.layer, self.op = layer, op
        self.inputs, self.outputs = list(inputs), list(outputs)
        #: Nodes that follow element by element: of each, the operation and its other inputs.
        self.epilogue: list[tuple[Op, list[Value | None]]] = []
        #: The same for its first input: what is done to that before.
        self.prologue: list[tuple[Op, list[Value | None]]] = []
        #: What a convolution pads each channel with, if not with zero.
        self.padding: Array | None = None
        #: Its weights as its kernel wants them, where they were laid out beforehand.
        self.laid_out: LaidOut | None = None
        #: Whether its kernel looks up the memory of its first input and output at each call.
        self.looks_up = False
        for value in inputs:
            value.users[self] += 1
        for value in outputs:
            value.producer = self

    @property
    def kind(self) -> str:
        """The operation's type."""
        return self.op.xml_type


class Plan:
    """The nodes in order, the values that come in and those that go out."""

    def __init__(self, nodes: list[Node], inputs: dict[int, Value], outputs: list[Value]) -> None:
        self.nodes, self.inputs, self.outputs = nodes, inputs, outputs
        for value in outputs:
            value.is_output = True


@without_collection()
def build(model: Model, inferred: Inferred) -> Plan | None:
    """Make nodes of the layers; None where it needs to run to know a shape, or holds nothing."""
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
            outputs[layer.id] = _fed(model, layer, values)[0]
            continue
        made = [Value(t.shape.static, t.type.dtype) for t in tensors]
        values |= {(layer.id, index): value for index, value in enumerate(made)}
        if layer.type == "Const":
            made[0].constant = layer.value
            continue
        if layer.type == "Parameter":
            inputs[layer.id] = made[0]
            if not prod(made[0].shape):
                return None
            continue
        op = layer.op
        if layer.bodies or op is None or layer.type in ("Assign", "ReadValue") or op.rows_vary:
            return None
        feeders = _fed(model, layer, values)
        if not fold(layer, op, feeders, made, tensors):
            nodes.append(Node(layer, op, feeders, made))
            if not all(prod(value.shape) for value in made):
                return None  # kernels need not bear tensors of nothing
    return Plan(nodes, inputs, [outputs[layer.id] for layer in model.results])


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
    """Compute a layer whose inputs are all constant, or whose value inference knows."""
    tensors = list(known)
    if all(tensor.value is not None for tensor in tensors):
        for value, tensor in zip(outputs, tensors, strict=True):
            value.constant = tensor.value
        return True
    given = [value.constant for value in inputs if value.constant is not None]
    if not given or op.is_random or len(given) < len(inputs):
        return False
    with layer.at():
        results = run_within_memory(op, *given)
    for value, result in zip(outputs, results, strict=True):
        value.constant = result
    return True


def only_user(value: Value) -> Node | None:
    """The one node that uses a value which is no output, and uses it once."""
    if len(value.users) != 1 or value.is_output:
        return None
    ((node, count),) = value.users.items()
    return node if count == 1 else None


def hand_over(values: Iterable[Value | None], former: Node, node: Node) -> None:
    """Let a node be the user of values instead of another."""
    for value in values:
        if value is not None and former in value.users:
            value.users[node] += value.users.pop(former)
