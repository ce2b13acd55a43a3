"""Replace `x W`, W levels, by `x (W - zero) * scale` done in blocks, or by `x W'`, W' numbers.

Where x is of levels, too, that is a product of integers. Levels take a quarter of the memory, and
of the time to fetch them; numbers are made but once.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..plan import (
    Compressed,
    Means,
    Node,
    Plan,
    Value,
    as_quick,
    claimed_type,
    constant,
    grids,
    integers,
)


def settle_weights(plan: Plan) -> None:
    """Apply the pass."""
    numbers: dict[Compressed, Value] = {}
    kept: set[Compressed] = set()
    known = grids(plan) if plan.means.integers > QUICKER else {}
    for node in plan.nodes:
        for place, value in enumerate(node.inputs):
            packed = value.packed
            if packed is None:
                continue
            grid = known.get(node.inputs[0])
            if place == 1 and grid is not None and plan.means.integers > QUICKER:
                node.integers = integers(node, packed, grid, plan.means)
            if node.integers is not None or _stays(node, place, packed, plan.means):
                kept.add(packed)
                continue
            if packed not in numbers:
                numbers[packed] = constant(packed.expanded())
            node.replace_input(place, numbers[packed])
    plan.levels, plan.numbers = (sum(prod(x.shape) for x in some) for some in (kept, numbers))


def _stays(node: Node, place: int, packed: Compressed, means: Means) -> bool:
    """Whether a node works on levels."""
    if node.outputs[0].type != np.float32:
        return False
    if node.is_outside:
        return _stays_outside(node, place, packed, means)
    if node.kind == "Gather":
        return place == 0 and _takes_rows(node, packed)
    return node.kind == "MatMul" and place == 1 and _multiplies(node, packed, means)


def _stays_outside(node: Node, place: int, packed: Compressed, means: Means) -> bool:
    """Whether levels are made numbers at each call where it is not known how many rows come."""
    if claimed_type(type(node.op)) == "Gather":
        return place == 0 and _takes_rows(node, packed)
    op: Any = node.op
    left = node.inputs[0]
    if claimed_type(type(node.op)) != "MatMul" or left.is_fixed or left.type != np.float32:
        return False
    return place == 1 and not op.transpose_a and _is_quick(packed, ROWS, op, means)


def _takes_rows(node: Node, packed: Compressed) -> bool:
    """Whether a Gather takes rows of a table, each with its own levels."""
    axis = node.inputs[2].constant
    return (
        axis is not None
        and not axis.any()
        and not getattr(node.op, "batch_dims", 0)
        and node.inputs[1].type.kind in "iu"
        and packed.inner[0] == packed.shape[0]
    )


def _multiplies(node: Node, packed: Compressed, means: Means) -> bool:
    """Whether a MatMul has to be done with levels, or is as quick so."""
    op: Any = node.op
    left, output = node.inputs[0], node.outputs[0]
    if left.is_fixed or left.type != np.float32 or op.transpose_a or len(left.shape) < 2:
        return False
    return bool(prod(output.shape)) and _is_quick(packed, prod(output.shape[:-1]), op, means)


def _is_quick(packed: Compressed, rows: int, op: Any, means: Means) -> bool:
    """Whether levels are to multiply so many rows."""
    if not packed.has_columns(transposed=op.transpose_b):
        return False
    columns = packed.shape[0 if op.transpose_b else 1]
    return means.is_small or as_quick(packed, rows, columns, means.integers, means.patience)


#: About so many rows a text has.
ROWS = 64
#: So many times quicker than those of numbers products of integers must be, to make up for what
#: brings their operands to levels.
QUICKER = 1.2
