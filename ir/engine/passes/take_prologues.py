"""Replace `Conv1x1(g(x))` by Conv1x1 with the prologue g, where g is elementwise.

The convolution does g to each block of its input: no pass over the image of its own. What is
computed may be a factor of each channel, as from squeeze and excitation.
"""

from __future__ import annotations

import numpy as np

from ..plan import Node, Plan, Steps, Value, elementwise_steps, is_pointwise, only_user


def take_prologues(plan: Plan) -> None:
    """Apply the pass."""
    taken: set[Node] = set()
    for node in plan.nodes:
        if not is_pointwise(node):
            continue
        before = node.inputs[0].producer
        if before is None or only_user(node.inputs[0]) is not node:
            continue
        source, steps = before.inputs[0], elementwise_steps(before)
        if not steps:
            source, steps = _scaled(before)
        if not steps or source.shape != before.outputs[0].shape:
            continue
        node.set_prologue(steps)
        node.replace_input(0, source)
        before.detach()
        taken.add(before)
    plan.replace({node: [] for node in taken})


def _scaled(node: Node) -> tuple[Value, Steps]:
    """What a node multiplies by computed factors of its channels, and the step that does it."""
    output, source = node.outputs[0], node.inputs[0]
    if node.kind != "Multiply" or node.epilogue or output.type != np.float32:
        return source, []
    if getattr(node.op, "auto_broadcast", "") != "numpy":
        return source, []
    factors = output.shape[:2] + (1,) * (len(output.shape) - 2)
    for source, other in (node.inputs, node.inputs[::-1]):
        if source.shape == output.shape != factors and other.shape == factors:
            return source, [(node.op, [None, other])]
    return source, []
