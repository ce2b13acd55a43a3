"""Replace `AvgPool(Conv1x1(x))` by `Conv1x1(AvgPool(x))`: the product has fewer places."""

from __future__ import annotations

from typing import Any

from ..plan import Plan, Value, is_pointwise, only_user, pads_nothing


def average_first(plan: Plan) -> None:
    """Apply the pass."""
    swapped = False
    for node in plan.nodes:
        op: Any = node.op
        if node.kind != "AvgPool":
            continue
        before = node.inputs[0].producer
        if before is None or not is_pointwise(before) or before.epilogue or before.is_whole:
            continue
        if only_user(node.inputs[0]) is not node or min(op.strides) < 2:
            continue
        source, output = before.inputs[0], node.outputs[0]
        if not pads_nothing(node):
            continue
        pooled = Value((*source.shape[:2], *output.shape[2:]), source.type)
        steps = node.epilogue
        node.set_epilogue([])
        node.replace_input(0, source)
        node.set_output(pooled)
        before.replace_input(0, pooled)
        before.set_output(output)
        before.set_epilogue(steps)
        swapped = True
    if swapped:
        plan.sort()
