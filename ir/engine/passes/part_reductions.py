"""Replace `Reduce(x, a + b)`, a and b axes apart, by `Reduce(Reduce(x, b), a)`.

That is so for means, too, as all parts are of one size; neighbours are joined quickly.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant, reshaping

KINDS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")


def part_reductions(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: made for node in plan.nodes if (made := _parted(node))})


def _parted(node: Node) -> list[Node]:
    """What takes the place of a node; nothing if its axes are neighbours, or not known."""
    if node.kind not in KINDS or node.inputs[1].constant is None:
        return []
    data, (output,) = node.inputs[0], node.outputs
    rank = len(data.shape)
    axes = sorted({int(axis) % rank for axis in node.inputs[1].array.ravel()}) if rank else []
    # Axes of one element join what is around them.
    long = [axis for axis in range(rank) if data.shape[axis] > 1]
    runs = [list(run) for joins, run in groupby(long, axes.__contains__) if joins]
    if data.type != np.float32 or len(runs) < 2:
        return []
    kept: dict[str, Any] = {"keep_dims": "true"}
    op = Op.registry[node.kind, 1].read(kept)
    node.detach()
    found: list[Node] = []
    for run in reversed(runs):
        shape = tuple(1 if axis in run else size for axis, size in enumerate(data.shape))
        made = Value(shape, data.type)
        found.append(Node(node.layer, op, [data, constant(np.array(run))], [made]))
        data = made
    return [*found, reshaping(node.layer, data, output)]
