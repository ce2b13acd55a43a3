"""Which kernel carries out which type of operation; what has none runs by its definition.

The versions of each type, its layout and its followers stand in the plan's table of operations
(``plan/operations.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ..plan import BINARY, POOLINGS, UNARY, Node, work
from ..workers import Part, lanes
from . import (
    attention,
    choosing,
    converting,
    convolution,
    copies,
    deformed,
    gathering,
    group_normalization,
    levels,
    matrices,
    pixels,
    pooling,
    quantized,
    quantized_groups,
    quantized_volumes,
    recurrent,
    resizing,
    rows,
    sampling,
    transposed,
    uneven_pooling,
    volume_pooling,
    volumes,
)
from .blocks import UFUNCS, Scratch
from .definitions import in_pieces
from .pointwise import elementwise, local_response, otherwise, selected, shuffle


class Hands(NamedTuple):
    """Who works: so many workers, on so many parts, which shapes alone tell."""

    workers: int
    parts: int


#: The steps of a node, each the parts that workers share out; None: not for such a node.
Steps: TypeAlias = "list[list[Part]] | None"
Kernel: TypeAlias = Callable[[Node, Hands, Scratch], Steps]


def _convolution(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    if node.integers is not None:
        whole = quantized_volumes if len(node.inputs[0].shape) == 5 else quantized
        kernel = quantized_groups if node.kind == "GroupConvolution" else whole
        return kernel.convolution(node, hands.parts, scratch)
    prepare = volumes.convolution if len(node.inputs[0].shape) == 5 else convolution.prepare
    return prepare(node, hands.parts, scratch)


def _transposed(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    prepare = volumes.transposed if len(node.inputs[0].shape) == 5 else transposed.prepare
    return prepare(node, hands.parts, scratch)


def _pooling(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    if len(node.inputs[0].shape) != 4:
        return volume_pooling.prepare(node, hands.parts, scratch)
    return pooling.prepare(node, hands.workers, hands.parts, scratch)


def _copies(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    # Copies give the same, however they are cut.
    return copies.prepare(node, hands.workers, scratch)


def _product(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    if node.integers is not None:
        return quantized.multiplied(node, hands.parts, scratch)
    prepare = matrices.prepare if node.inputs[1].packed is None else levels.multiplied
    return prepare(node, hands.parts, scratch)


def _gathering(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    if node.inputs[0].packed is not None:
        return levels.gathered(node, hands.parts, scratch)
    return gathering.slices(node, hands.workers)


def _interpolation(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    copied = copies.prepare(node, hands.workers, scratch)
    if copied is None and node.inputs[0].type in (np.int8, np.uint8):
        return pixels.resized(node, hands.workers)
    return resizing.prepare(node, hands.parts, scratch) if copied is None else copied


def _coloring(node: Node, hands: Hands, scratch: Scratch) -> Steps:
    return pixels.colored(node, hands.workers)


def _cut_by_shapes(prepare: Callable[[Node, int, Scratch], Steps]) -> Kernel:
    """A kernel that computes numbers: shapes alone tell into how many parts."""
    return lambda node, hands, scratch: prepare(node, hands.parts, scratch)


#: By type, of the versions that the plan's table of operations has.
KERNELS: dict[str, Kernel] = {
    **dict.fromkeys(UNARY | BINARY, _cut_by_shapes(elementwise)),
    **dict.fromkeys(rows.BY_ROWS, _cut_by_shapes(rows.prepare)),
    **dict.fromkeys(copies.COPIES, _copies),
    **dict.fromkeys(POOLINGS, _pooling),
    "AdaptiveAvgPool": _cut_by_shapes(uneven_pooling.prepare),
    "Convert": lambda node, hands, scratch: converting.prepare(node, hands.workers, scratch),
    "Convolution": _convolution,
    "GroupConvolution": _convolution,
    "ConvolutionBackpropData": _transposed,
    "GroupConvolutionBackpropData": _transposed,
    "DeformableConvolution": _cut_by_shapes(deformed.prepare),
    "Gather": _gathering,
    "GatherElements": lambda node, hands, scratch: gathering.elements(
        node, hands.workers, scratch
    ),
    "GridSample": _cut_by_shapes(sampling.prepare),
    "GroupNormalization": _cut_by_shapes(group_normalization.prepare),
    "Interpolate": _interpolation,
    **dict.fromkeys(pixels.COLORS, _coloring),
    "LRN": _cut_by_shapes(local_response),
    "MatMul": _product,
    **dict.fromkeys(recurrent.GATES, _cut_by_shapes(recurrent.prepare)),
    "ScaledDotProductAttention": _cut_by_shapes(attention.prepare),
    "ScatterNDUpdate": lambda node, hands, scratch: gathering.replaced(node, hands.workers),
    "Select": _cut_by_shapes(selected),
    "ShuffleChannels": lambda node, hands, scratch: shuffle(node),
    "TopK": lambda node, hands, scratch: choosing.prepare(node, hands.parts),
}

#: Operations that only pass over memory, and the bytes from which on that takes longer than calls.
PLAIN, LONG = frozenset({*UFUNCS, *copies.COPIES, "Gather", "Select"}), 1 << 18


def steps_of(node: Node, workers: int, scratch: Scratch) -> list[list[Part]]:
    """The steps of a node: its own kernel where there is one for it, else its definition."""
    kernel = None if is_plain(node) else KERNELS.get(node.kind)
    hands = Hands(workers, lanes(work(node)))
    steps = None if kernel is None else kernel(node, hands, scratch)
    if steps is None:
        steps = in_pieces(node, hands.parts, scratch)
    return steps if steps is not None else otherwise(node, scratch)


def is_plain(node: Node) -> bool:
    """Whether a node passes once over much memory of the caller: copies would take longest."""
    return (
        node.kind in PLAIN
        and not (node.kind == "Interpolate" and node.op.mode != "nearest")  # type: ignore[attr-defined]  # Interpolate has it
        and not node.epilogue
        and not node.prologue
        and node.outputs[0].nbytes >= LONG
        and all(v.constant is not None or v.producer is None for v in node.inputs)
        and all(value.is_output and not value.users for value in node.outputs)
    )
