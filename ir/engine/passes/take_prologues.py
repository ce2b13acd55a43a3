"""Replace `Conv1x1(g(x))` by Conv1x1 with the prologue g, where g is elementwise.

The convolution does g to each block of its input: no pass over the image of its own.
"""

from __future__ import annotations

from ..plan import Node, Plan, elementwise_steps, is_pointwise, only_user


def take_prologues(plan: Plan) -> None:
    """Apply the pass."""
    taken: set[Node] = set()
    for node in plan.nodes:
        if not is_pointwise(node):
            continue
        before = node.inputs[0].producer
        if before is None or only_user(node.inputs[0]) is not node:
            continue
        steps = elementwise_steps(before)
        if not steps or before.inputs[0].shape != before.outputs[0].shape:
            continue
        node.set_prologue(steps)
        node.replace_input(0, before.inputs[0])
        before.detach()
        taken.add(before)
    plan.replace({node: [] for node in taken})
