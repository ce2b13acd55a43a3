"""Values of few levels, and products of them by weights of few: integers, scaled afterwards.

What a FakeQuantize gives is ``step * level + first``, with whole levels from 0 to 255, wherever it
is moved or chosen from. By weights ``scale * w``, w from -128 to 127, the sum of products is
``scale * (step * sum(level * w) + first * sum(w))``: one sum of integers, and a number by column.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from .channels import sees_the_image
from .compressed import LONGEST, Compressed
from .grid import Grid, Integers
from .nodes import Means, Node, Plan, Value
from .operations import BINARY, UNARY

#: Operations that only choose and move what is in their first input, or in all of them.
MOVING = frozenset(
    {"Concat", "Identity", "MaxPool", "Reshape", "ShuffleChannels", "Slice", "Split", "Squeeze",
     "StridedSlice", "Transpose", "Unsqueeze", "VariadicSplit"}
)  # fmt: skip


def grids(plan: Plan) -> dict[Value, Grid]:
    """The values whose numbers are of one grid."""
    found: dict[Value, Grid] = {}
    for node in plan.nodes:
        if node.is_outside:
            continue
        grid = None
        if node.kind == "FakeQuantize":
            grid = grid_of(node)
        elif node.kind in MOVING and (node.kind != "MaxPool" or sees_the_image(node)):
            given = {found.get(value) for value in moved(node)}
            grid = given.pop() if len(given) == 1 else None
        if grid is not None:
            # Of a MaxPool the second output tells where the largest are.
            found |= {value: grid for value in node.outputs if value.type == np.float32}
    return found


def moved(node: Node) -> tuple[Value, ...]:
    """Of an operation that only moves, what it moves."""
    return node.inputs if node.kind == "Concat" else node.inputs[:1]


def is_function_of(node: Node, value: Value) -> bool:
    """Whether a node computes number by number, of one value and of constants that are one each.

    Where that has few levels, what is made of each stands in a table: from some steps on and many
    numbers that is sooner found there.
    """
    if node.kind not in UNARY | BINARY or node.prologue or node.premultiplied:
        return False
    if value.shape != node.outputs[0].shape or prod(value.shape) < LARGE:
        return False
    if len(node.epilogue) < STEPS:
        return False
    others = [other for other in node.reads if other is not value]
    return all(other.constant is not None and other.constant.size == 1 for other in others)


#: So many steps after the first, and so many numbers, are worth a table.
STEPS, LARGE = 3, 1 << 12


def grid_of(node: Node) -> Grid | None:
    """The grid of a FakeQuantize that a node ends with, and that gives all numbers alike."""
    op: Any
    op, others = node.epilogue[-1] if node.epilogue else (node.op, [None, *node.inputs[1:]])
    if op.xml_type != "FakeQuantize" or others[0] is not None:
        return None
    limits = [value.constant for value in others if value is not None]
    if op.levels > 256 or any(array is None for array in limits):
        return None
    ends = [array for array in limits[2:] if array is not None]
    if any(array.size != 1 for array in ends):
        return None
    first, last = (float(array.reshape(())) for array in ends)
    step = (last - first) / (op.levels - 1)
    return Grid(step, first, op.levels) if np.isfinite(first) and 0 < step < np.inf else None


def integers(node: Node, packed: Compressed, grid: Grid, means: Means) -> Integers | None:
    """A node as a product of integers; None where it is more than that, or no quicker so."""
    if node.kind == "MatMul":
        op: Any = node.op
        if len(packed.inner) != 2 or not packed.has_columns(transposed=op.transpose_b):
            return None
        if op.transpose_a or len(node.inputs[0].shape) < 2:
            return None
        outer = packed.shape[0 if op.transpose_b else 1]
    elif node.kind == "Convolution" and len(packed.shape) in (3, 4, 5):
        if packed.inner != packed.shape or (_pads(node) and grid.zero is None):
            return None
        outer = packed.shape[0]
    elif node.kind == "GroupConvolution" and len(packed.shape) in (4, 5):
        return _grouped(node, packed, grid, means.integers)
    else:
        return None
    if not packed.is_symmetric or node.outputs[0].type != np.float32:
        return None
    taken = prod(packed.shape) // outer
    if node.kind == "Convolution":
        scale = _by_outer(packed.scale, packed.inner, 1)
    else:
        scale = np.broadcast_to(packed.scale.reshape(-1), (outer,)).astype(np.float64)
    if scale is None or taken > LONGEST:
        return None
    spared = taken - _in_vectors(taken) / means.integers
    if PRODUCT / means.quicker * spared <= SUMMED:
        return None
    return Integers(grid, scale, np.zeros(outer))


def _grouped(node: Node, packed: Compressed, grid: Grid, rate: float) -> Integers | None:
    """The same of a convolution of groups, where that takes less time than one of numbers."""
    groups, each, inner = packed.shape[:3]
    if not packed.is_symmetric or node.outputs[0].type != np.float32:
        return None
    lead = 2 if packed.inner == packed.shape else 1
    if lead == 1 and (
        packed.inner[0] != groups * each or prod(packed.inner) != prod(packed.shape)
    ):
        return None
    scale = _by_outer(packed.scale, packed.inner, lead)
    if scale is None or (_pads(node) and grid.zero is None):
        return None
    if prod(packed.shape[2:]) > LONGEST:
        return None
    op: Any = node.op
    *down, across = packed.shape[3:]
    taps = prod(down), number(reach(across, op.dilations[-1]))
    together = groups_together(groups, inner, each, taps)
    spent = _nanoseconds(together, inner, each, taps, rate)
    numbers = prod(packed.shape[3:]) * (SUM if inner == 1 else inner * GROUPED)
    return Integers(grid, scale, np.zeros(groups * each)) if WORTH * spent < numbers else None


def _by_outer(scale: Array, inner: tuple[int, ...], lead: int) -> Array | None:
    """The scale of each channel that is made, told by the first axes; None where more tell it."""
    scale = scale.reshape((1,) * (len(inner) - scale.ndim) + scale.shape)
    if scale.size != prod(scale.shape[:lead]):
        return None
    made = np.broadcast_to(scale.reshape(scale.shape[:lead]), inner[:lead])
    return made.reshape(-1).astype(np.float64)


def groups_together(groups: int, inner: int, each: int, taps: tuple[int, int]) -> int:
    """How many groups are multiplied together, with zeros between, where that is quickest."""
    found = [count for count in range(1, min(groups, MOST) + 1) if groups % count == 0]
    return min(found, key=lambda count: _nanoseconds(count, inner, each, taps, AMX))


def _nanoseconds(count: int, inner: int, each: int, taps: tuple[int, int], rate: float) -> float:
    """About how long a number takes, made of so many groups together, on one core."""
    columns, taken = count * each, prod(taps) * count * inner
    products = _in_vectors(taken) * -(-columns // 16) * 16 / columns
    # Of a few sizes elements are copied sooner.
    pieces = [2.0 if size in (1, 2, 4, 8, 16) else 5.0 for size in (count * inner, columns)]
    return products * PRODUCT / rate + (taps[0] * pieces[0] + pieces[1]) / columns + SCALED


def _in_vectors(taken: int) -> int:
    """As long as how many products of integers a sum of so many takes."""
    return -(-taken // 64) * 64


#: Groups together have at most so many channels.
MOST = 64
#: What choices suppose of one core, in nanoseconds: a product of float32 in a product of matrices,
#: in one of groups, and one by itself; what a sum of integers takes beside its products, and what
#: makes a number of it. So many times quicker are the quickest products of integers; so many times
#: quicker is worth it.
PRODUCT, GROUPED, SUM, SUMMED, SCALED = 0.016, 0.025, 0.11, 0.3, 1.0
AMX, WORTH = 8.0, 1.2


def _pads(node: Node) -> bool:
    """Whether the windows of a convolution reach beyond its image."""
    op: Any = node.op
    sizes = enumerate(node.inputs[0].shape[2:])
    kernel = node.inputs[1].shape[2 - len(node.inputs[0].shape) :]
    reaches = [(kernel[axis] - 1) * op.dilations[axis] + 1 for axis in range(len(kernel))]
    return any(number(pad) for axis, size in sizes for pad in op.pads(size, axis, reaches[axis]))


__all__ = ["MOVING", "grid_of", "grids", "groups_together", "integers", "moved"]
