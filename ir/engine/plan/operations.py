"""The operation versions that kernels and passes of the engine compute: one row a type.

A version that has no row, such as one of a plug-in, is computed by its own definition, whatever
its type is called. What carries a row out stands in the table of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cache
from math import prod
from typing import NamedTuple, Protocol

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


#: An exponential takes as long as so many multiply-adds, touching an element as so many.
_EXPONENTIAL, _TOUCH = 40, 20


def _no_numbers(node: Sizes) -> int:
    return 0


def _scores(node: Sizes) -> int:
    """Of an attention: each query with each key."""
    return prod(node.outputs[0].shape[:-1]) * node.inputs[1].shape[-2]


class Row(NamedTuple):
    """What the engine knows of a type."""

    #: The versions that are computed alike.
    versions: frozenset[int]
    layout: Layout = Layout.FIRST
    #: Whether elementwise nodes that follow are done to its output block by block.
    followers: bool = False
    #: How many exponentials a node takes on the way to its output.
    exponentials: Callable[[Sizes], int] = _no_numbers


def _row(
    *versions: int,
    layout: Layout = Layout.FIRST,
    followers: bool = False,
    exponentials: Callable[[Sizes], int] = _no_numbers,
) -> Row:
    return Row(frozenset(versions), layout, followers, exponentials)


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
    "Round": _elementwise(5),
    "PReLU": _elementwise(1),
    "SoftSign": _elementwise(9),
    **dict.fromkeys(
        ("Acos", "Asin", "Atan", "Ceiling", "Cos", "Cosh", "Sign", "Sin", "Sinh", "Tan"),
        _elementwise(1),
    ),
    **dict.fromkeys(("Acosh", "Asinh", "Atanh"), _elementwise(3)),
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
    "AdaptiveAvgPool": _row(8, layout=Layout.EITHER),
    "AvgPool": _row(1, 14, 16, layout=Layout.LAST, followers=True),
    "BatchNormInference": _row(1, 5),
    "Broadcast": _row(1, 3),
    "Concat": _row(1, layout=Layout.EITHER),
    "Convert": _row(1, layout=Layout.EITHER),
    "Convolution": _row(1, layout=Layout.LAST, followers=True),
    "ConvolutionBackpropData": _row(1, layout=Layout.LAST, followers=True),
    "DeformableConvolution": _row(1, 8, layout=Layout.LAST, followers=True),
    "GRUSequence": _row(5),
    "Gather": _row(1, 7, 8),
    "GatherElements": _row(6),
    "GridSample": _row(9),
    "GroupConvolution": _row(1, layout=Layout.LAST, followers=True),
    "GroupConvolutionBackpropData": _row(1, layout=Layout.LAST, followers=True),
    "GroupNormalization": _row(12, layout=Layout.EITHER, followers=True),
    "I420toBGR": _row(8),
    "I420toRGB": _row(8),
    "Identity": _row(16),
    "Interpolate": _row(1, 4, 11, layout=Layout.EITHER),
    "LRN": _row(1, layout=Layout.LAST),
    "LSTMSequence": _row(5),
    "MVN": _row(1, 6, layout=Layout.EITHER, followers=True),
    "MatMul": _row(1, followers=True),
    "MaxPool": _row(1, 8, 14, layout=Layout.LAST, followers=True),
    "NV12toBGR": _row(8),
    "NV12toRGB": _row(8),
    "NormalizeL2": _row(1, followers=True),
    "Pad": _row(1, 12, layout=Layout.EITHER),
    "Power": _row(1),
    "RNNSequence": _row(5),
    "ReduceL2": _row(4),
    "ReduceMax": _row(1),
    "ReduceMean": _row(1),
    "ReduceMin": _row(1),
    "ReduceProd": _row(1),
    "ReduceSum": _row(1),
    "Reshape": _row(1),
    "Roll": _row(7),
    "ScatterElementsUpdate": _row(3, 12),
    "ScatterNDUpdate": _row(3, 15),
    "ScaledDotProductAttention": _row(13, exponentials=_scores),
    "Select": _row(1, layout=Layout.EITHER),
    "ShuffleChannels": _row(1, layout=Layout.EITHER),
    "Slice": _row(8),
    "SoftMax": _row(1, 8),
    "Split": _row(1),
    "Squeeze": _row(1, 15),
    "StridedSlice": _row(1),
    "Tile": _row(1),
    "TopK": _row(1, 3, 11),
    "Transpose": _row(1),
    "Unsqueeze": _row(1),
    "VariadicSplit": _row(1),
}

UNARY, BINARY = frozenset(_UNARY), frozenset(_BINARY)
CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})
TRANSPOSED = frozenset({"ConvolutionBackpropData", "GroupConvolutionBackpropData"})
POOLINGS = frozenset({"MaxPool", "AvgPool"})
#: What cuts and joins axes, and leaves the numbers in their order.
CUTS = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
SHUFFLE = "ShuffleChannels"
#: Nodes that may have an epilogue.
HEADS = frozenset(kind for kind, row in ROWS.items() if row.followers)
#: Nodes that work on channels kept last; their neighbours follow.
SPATIAL = frozenset(kind for kind, row in ROWS.items() if row.layout is Layout.LAST)
#: Nodes that do as their neighbours do.
EITHER_WAY = frozenset(kind for kind, row in ROWS.items() if row.layout is not Layout.FIRST)


def stands_beside(op: Op, shapes: Iterable[tuple[int, ...]], shape: tuple[int, ...]) -> bool:
    """Whether a unary operation's constants go with a shape by NumPy's rule, and do not widen it.

    Slopes of a PReLU are laid along the channels where there are as many.
    """
    if getattr(op, "auto_broadcast", "numpy") != "numpy":
        return False
    by_channel = [shape[1:2]] if op.xml_type == "PReLU" else []
    return all(
        other in by_channel
        or (
            len(other) <= len(shape)
            and all(n in (1, m) for n, m in zip(reversed(other), reversed(shape), strict=False))
        )
        for other in shapes
        if prod(other) != 1
    )


@cache
def claimed_type(operation: type[Op]) -> str:
    """The type by which kernels are chosen; empty for a version, or a class, without a row."""
    row = ROWS.get(operation.xml_type) if operation.is_standard else None
    return operation.xml_type if row and operation.number in row.versions else ""


def products(node: Sizes) -> int:
    """How many multiply-adds a node takes; 0 where it runs by its definition."""
    if not node.kind:
        return 0
    return node.op.multiply_adds([x.shape for x in node.inputs], node.outputs[0].shape)


def work(node: Sizes) -> int:
    """About how long a node takes, in multiply-adds."""
    if node.is_outside:
        return 0  # nobody can tell, and nobody shares it
    given = prod(node.inputs[0].shape) if node.inputs else 0
    touched = max(given, prod(node.outputs[0].shape))
    inner = ROWS[node.kind].exponentials(node) if node.kind else 0
    done = products(node)
    if done and len(node.inputs) > 1:
        # Weights have to be fetched, be it for a single row.
        done = max(done, _TOUCH * prod(node.inputs[1].shape))
    return _TOUCH * touched + _EXPONENTIAL * inner + done
