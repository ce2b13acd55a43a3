"""Replace `exp(x - max(x)) / sum(exp(x - max(x)))`, along one axis, by `SoftMax(x)`."""

from __future__ import annotations

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, along, is_numpy, maker


def join_soft_max(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        found = _softened(node)
        if found is not None:
            data, axis = found
            (output,) = node.outputs
            node.detach()
            op = Op.registry["SoftMax", 8].read({"axis": str(axis)})
            replaced[node] = [Node(node.layer, op, [data], [output])]
    plan.replace(replaced)
    if replaced:
        plan.prune()


def _softened(node: Node) -> tuple[Value, int] | None:
    """What a quotient is the soft maximum of, and along which axis."""
    if node.kind != "Divide" or node.epilogue or not is_numpy(node):
        return None
    powers, total = node.inputs
    exponential, summed = maker(powers, "Exp"), along(total, "ReduceSum")
    if exponential is None or summed is None or powers.type != np.float32:
        return None
    less = maker(exponential.inputs[0], "Subtract")
    if less is None or not is_numpy(less):
        return None
    data, most = less.inputs
    largest = along(most, "ReduceMax")
    if largest is None or largest[0].inputs[0] is not data or summed[0].inputs[0] is not powers:
        return None
    axes = summed[1]
    return (data, axes[0]) if largest[1] == axes and len(axes) == 1 else None
