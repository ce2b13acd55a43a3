"""The operation versions that kernels and passes of the engine compute: one row a type.

A version that has no row, such as one of a plug-in, is computed by its own definition, whatever
its type is called. What carries a row out stands in the table of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from math import prod
from typing import NamedTuple, Protocol, TypeAlias

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


def summed(node: Sizes) -> int:
    """What the operation says: the products that it sums."""
    return node.op.multiply_adds([x.shape for x in node.inputs], node.outputs[0].shape)


class Row(NamedTuple):
    """What the engine knows of a type."""

    #: The versions that are computed alike.
    versions: frozenset[int]
    layout: Layout = Layout.FIRST
    #: Whether elementwise nodes that follow are done to its output block by block.
    followers: bool = False
    cost: Cost = summed


def _row(
    *versions: int, layout: Layout = Layout.FIRST, followers: bool = False, cost: Cost = summed
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
    "Convolution": _row(1, layout=Layout.LAST, followers=True),
    "ConvolutionBackpropData": _row(1, layout=Layout.LAST, followers=True),
    "Gather": _row(1, 7, 8),
    "GroupConvolution": _row(1, layout=Layout.LAST, followers=True),
    "GroupConvolutionBackpropData": _row(1, layout=Layout.LAST, followers=True),
    "Identity": _row(16),
    "Interpolate": _row(1, 4, 11, layout=Layout.EITHER),
    "LRN": _row(1, layout=Layout.LAST),
    "MVN": _row(1, 6),
    "MatMul": _row(1, followers=True),
    "MaxPool": _row(1, 8, 14, layout=Layout.LAST, followers=True),
    "Pad": _row(1, 12, layout=Layout.EITHER),
    "ReduceMax": _row(1),
    "ReduceMean": _row(1),
    "ReduceMin": _row(1),
    "ReduceProd": _row(1),
    "ReduceSum": _row(1),
    "Reshape": _row(1),
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


@cache
def claimed_type(operation: type[Op]) -> str:
    """The type by which kernels are chosen; empty for a version, or a class, without a row."""
    row = ROWS.get(operation.xml_type) if operation.is_standard else None
    return operation.xml_type if row and operation.number in row.versions else ""


def products(node: Sizes) -> int:
    """How many multiply-adds a node takes; 0 where it runs by its definition."""
    row = ROWS.get(node.kind)
    return 0 if row is None else row.cost(node)


def work(node: Sizes) -> int:
    """About how long a node takes, in multiply-adds; to touch an element takes as long as 20."""
    if node.is_outside:
        return 0  # nobody can tell, and nobody shares it
    given = prod(node.inputs[0].shape) if node.inputs else 0
    return 20 * max(given, prod(node.outputs[0].shape)) + products(node)
