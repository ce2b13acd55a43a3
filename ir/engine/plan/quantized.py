"""Values of few levels, and products of them by weights of few: integers, scaled afterwards.

What a FakeQuantize gives is ``step * level + first``, with whole levels from 0 to 255, wherever it
is moved or chosen from. By weights ``scale * w``, w from -128 to 127, the sum of products is
``scale * (step * sum(level * w) + first * sum(w))``: one sum of integers, and a number by column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....schemas.shapes import number
from .compressed import Compressed
from .grid import Grid, Integers
from .nodes import Node, Plan, Value

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
        elif node.kind in MOVING:
            given = {found.get(value) for value in moved(node)}
            grid = given.pop() if len(given) == 1 else None
        if grid is not None:
            # Of a MaxPool the second output tells where the largest are.
            found |= {value: grid for value in node.outputs if value.type == np.float32}
    return found


def moved(node: Node) -> tuple[Value, ...]:
    """Of an operation that only moves, what it moves."""
    return node.inputs if node.kind == "Concat" else node.inputs[:1]


def grid_of(node: Node) -> Grid | None:
    """The grid of a FakeQuantize that a node ends with, and that treats all numbers alike."""
    op: Any
    op, others = node.epilogue[-1] if node.epilogue else (node.op, [None, *node.inputs[1:]])
    if op.xml_type != "FakeQuantize" or others[0] is not None:
        return None
    limits = [value.constant for value in others if value is not None]
    if op.levels > 256 or any(array is None or array.size != 1 for array in limits):
        return None
    _, _, first, last = (float(array.reshape(())) for array in limits if array is not None)
    step = (last - first) / (op.levels - 1)
    return Grid(step, first, op.levels) if np.isfinite(first) and 0 < step < np.inf else None


def integers(node: Node, packed: Compressed, grid: Grid) -> Integers | None:
    """A node as a product of integers; None where it is more than that."""
    if node.kind == "MatMul":
        op: Any = node.op
        if len(packed.inner) != 2 or not packed.has_columns(transposed=op.transpose_b):
            return None
        if op.transpose_a or len(node.inputs[0].shape) < 2:
            return None
        outer = packed.shape[0 if op.transpose_b else 1]
    elif node.kind == "Convolution" and len(packed.shape) in (3, 4):
        if packed.inner != packed.shape or (_pads(node) and grid.zero is None):
            return None
        outer = packed.shape[0]
        if packed.scale.size not in (1, outer) or packed.scale.size != max(packed.scale.shape[:1]):
            return None
    else:
        return None
    if not packed.is_symmetric or node.outputs[0].type != np.float32:
        return None
    scale = np.broadcast_to(packed.scale.reshape(-1), (outer,)).astype(np.float64)
    return Integers(grid, scale, np.zeros(outer))


def _pads(node: Node) -> bool:
    """Whether the windows of a convolution reach beyond its image."""
    op: Any = node.op
    sizes = enumerate(node.inputs[0].shape[2:])
    kernel = node.inputs[1].shape[2:]
    reaches = [(kernel[axis] - 1) * op.dilations[axis] + 1 for axis in range(len(kernel))]
    return any(number(pad) for axis, size in sizes for pad in op.pads(size, axis, reaches[axis]))


__all__ = ["MOVING", "grid_of", "grids", "integers", "moved"]
