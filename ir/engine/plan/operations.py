"""The operation versions that kernels and passes of the engine compute: one row a type.

A version that has no row, such as one of a plug-in, is computed by its own definition, whatever
its type is called. What carries a row out stands in the table of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cache
from math import prod
from typing import NamedTuple, Protocol, TypeAlias

from .... import layers
from ....layers.base import Op


class Sized(Protocol):
    """What a cost asks of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""


class Sizes(Protocol):
    """What a cost asks of a node."""

    @property
    def kind(self) -> str:
        """Its type."""

    @property
    def op(self) -> Op:
        """Its operation."""

    @property
    def is_outside(self) -> bool:
        """Whether the plan's caller computes it."""

    @property
    def inputs(self) -> Sequence[Sized]:
        """What it takes."""

    @property
    def outputs(self) -> Sequence[Sized]:
        """What it gives."""


class Layout(Enum):
    """Where the kernels of a type want the channels (axis 1) of images in memory."""

    #: Where the model has them.
    FIRST = "first"
    #: As the neighbours have them.
    EITHER = "either"
    #: Side by side, as the last axis.
    LAST = "last"


#: Multiplications of numbers beyond one for each that is touched.
Cost: TypeAlias = "Callable[[Sizes], int]"


#: An exponential takes as long as so many products.
EXPONENTIAL = 40


def nothing(node: Sizes) -> int:
    """Of what passes over memory."""
    return 0


def windows(node: Sizes) -> int:
    """Of a convolution: a window of weights for each number of the output."""
    groups = node.op.xml_type.startswith("Group")
    return prod(node.outputs[0].shape) * prod(node.inputs[1].shape[1 + groups :])


def spread_windows(node: Sizes) -> int:
    """Of a transposed convolution: a window of weights for each number of the input."""
    groups = node.op.xml_type.startswith("Group")
    return prod(node.inputs[0].shape) * prod(node.inputs[1].shape[1 + groups :])


def inner_products(node: Sizes) -> int:
    """Of a product of matrices: the axis that is summed, for each number of the output."""
    shape = node.inputs[0].shape
    turned = getattr(node.op, "transpose_a", False) and len(shape) > 1
    return prod(node.outputs[0].shape) * (shape[-2 if turned else -1] if shape else 1)


def attended(node: Sizes) -> int:
    """Of an attention: each query with each key, there and back, and an exponential."""
    depth, keys = node.inputs[0].shape[-1], node.inputs[1].shape[-2]
    *rows, deep = node.outputs[0].shape
    return prod(rows) * keys * (depth + deep + EXPONENTIAL)


def recurrences(node: Sizes) -> int:
    """Of steps along a sequence: all weights for each."""
    steps = prod(node.inputs[0].shape[:2])
    return steps * sum(prod(value.shape) for value in node.inputs[-3:-1])


class Row(NamedTuple):
    """What the engine knows of a type."""

    #: The versions that are computed alike.
    versions: frozenset[int]
    layout: Layout = Layout.FIRST
    #: Whether elementwise nodes that follow are done to its output block by block.
    followers: bool = False
    cost: Cost = nothing


def _row(
    *versions: int, layout: Layout = Layout.FIRST, followers: bool = False, cost: Cost = nothing
) -> Row:
    return Row(frozenset(versions), layout, followers, cost)


def _elementwise(*versions: int) -> Row:
    return _row(*versions, layout=Layout.EITHER, followers=True)


#: One input, all else constant.
_UNARY: dict[str, Row] = {
    "ReLU": _elementwise(1),
    "Clamp": _elementwise(1),
    "Sigmoid": _elementwise(1),
    "Tanh": _elementwise(1),
    "Elu": _elementwise(1),
    "HSwish": _elementwise(4),
    "HSigmoid": _elementwise(5),
    "HardSigmoid": _elementwise(1),
    "Swish": _elementwise(4),
    "Gelu": _elementwise(2, 7),
    "Mish": _elementwise(4),
    "SoftPlus": _elementwise(4),
    "Exp": _elementwise(1),
    "FakeQuantize": _elementwise(1),
    "Sqrt": _elementwise(1),
    "Abs": _elementwise(1),
    "Negative": _elementwise(1),
    "Erf": _elementwise(1),
    "Log": _elementwise(1),
    "Floor": _elementwise(1),
    "PReLU": _elementwise(1),
}
#: Two inputs that broadcast.
_BINARY: dict[str, Row] = {
    "Add": _elementwise(1),
    "Subtract": _elementwise(1),
    "Multiply": _elementwise(1),
    "Divide": _elementwise(1),
    "Maximum": _elementwise(1),
    "Minimum": _elementwise(1),
    "SquaredDifference": _elementwise(1),
}
#: By type.
ROWS: dict[str, Row] = {
    **_UNARY,
    **_BINARY,
    "AvgPool": _row(1, 14, 16, layout=Layout.LAST, followers=True),
    "BatchNormInference": _row(1, 5),
    "Broadcast": _row(1, 3),
    "Concat": _row(1, layout=Layout.EITHER),
    "Convolution": _row(1, layout=Layout.LAST, followers=True, cost=windows),
    "ConvolutionBackpropData": _row(1, layout=Layout.LAST, followers=True, cost=spread_windows),
    "GRUSequence": _row(5, cost=recurrences),
    "Gather": _row(1, 7, 8),
    "GroupConvolution": _row(1, layout=Layout.LAST, followers=True, cost=windows),
    "GroupConvolutionBackpropData": _row(
        1, layout=Layout.LAST, followers=True, cost=spread_windows
    ),
    "GroupNormalization": _row(12, layout=Layout.EITHER, followers=True),
    "Identity": _row(16),
    "Interpolate": _row(1, 4, 11, layout=Layout.EITHER),
    "LRN": _row(1, layout=Layout.LAST),
    "LSTMSequence": _row(5, cost=recurrences),
    "MVN": _row(1, 6),
    "MatMul": _row(1, followers=True, cost=inner_products),
    "MaxPool": _row(1, 8, 14, layout=Layout.LAST, followers=True),
    "Pad": _row(1, 12, layout=Layout.EITHER),
    "RNNSequence": _row(5, cost=recurrences),
    "ReduceMax": _row(1),
    "ReduceMean": _row(1),
    "ReduceMin": _row(1),
    "ReduceProd": _row(1),
    "ReduceSum": _row(1),
    "Reshape": _row(1),
    "ScaledDotProductAttention": _row(13, cost=attended),
    "ShuffleChannels": _row(1, layout=Layout.EITHER),
    "Slice": _row(8),
    "SoftMax": _row(1, 8),
    "Split": _row(1),
    "Squeeze": _row(1, 15),
    "StridedSlice": _row(1),
    "Transpose": _row(1),
    "Unsqueeze": _row(1),
    "VariadicSplit": _row(1),
}

UNARY, BINARY = frozenset(_UNARY), frozenset(_BINARY)
CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})
TRANSPOSED = frozenset({"ConvolutionBackpropData", "GroupConvolutionBackpropData"})
POOLINGS = frozenset({"MaxPool", "AvgPool"})
SHUFFLE = "ShuffleChannels"
#: Nodes that may have an epilogue.
HEADS = frozenset(kind for kind, row in ROWS.items() if row.followers)
#: Nodes that work on channels kept last; their neighbours follow.
SPATIAL = frozenset(kind for kind, row in ROWS.items() if row.layout is Layout.LAST)
#: Nodes that do as their neighbours do.
EITHER_WAY = frozenset(kind for kind, row in ROWS.items() if row.layout is not Layout.FIRST)


def stands_beside(op: Op, shapes: Iterable[tuple[int, ...]], shape: tuple[int, ...]) -> bool:
    """Whether a unary operation's constants go with a shape by NumPy's rule, and do not widen it.

    Slopes of a PReLU are laid along the channels, whatever they would be by that.
    """
    if getattr(op, "auto_broadcast", "numpy") != "numpy":
        return False
    if op.xml_type == "PReLU":
        return True
    return all(
        len(other) <= len(shape)
        and all(n in (1, m) for n, m in zip(reversed(other), reversed(shape), strict=False))
        for other in shapes
        if prod(other) != 1
    )


@cache
def claimed_type(operation: type[Op]) -> str:
    """The type by which kernels are chosen; empty for a version, or a class, without a row."""
    ours = operation.__module__.rpartition(".")[0] == layers.__name__
    row = ROWS.get(operation.xml_type)
    return operation.xml_type if ours and row and operation.number in row.versions else ""


def products(node: Sizes) -> int:
    """How many products of numbers a node takes."""
    row = ROWS.get(node.kind)
    return 0 if row is None else row.cost(node)


def work(node: Sizes) -> int:
    """About how long a node takes, in products; to touch a number takes as long as 20."""
    if node.is_outside:
        return 0  # nobody can tell, and nobody shares it
    given = prod(node.inputs[0].shape) if node.inputs else 0
    return 20 * max(given, prod(node.outputs[0].shape)) + products(node)
