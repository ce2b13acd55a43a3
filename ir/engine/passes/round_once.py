"""Replace `q(move(q(x)))` by `move(q(x))`, q a FakeQuantize.

What is a level stays one when it is rounded again. TensorFlow Lite writes the levels of each
tensor, of one that is a reshape of another, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan import MOVING, Node, Plan, Value, sees_the_image

#: Levels have to be that fine beside how far they are from zero, to be told apart for sure.
FAR = 100
MOST_LEVELS = 1 << 16


def round_once(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: [] for node in plan.nodes if _is_left_out(node)})


def _is_left_out(node: Node) -> bool:
    """Let all readers of a node read its input, if that is on its levels; not of an output."""
    if _levels(node) is None or node.outputs[0].is_output or node.epilogue:
        return False
    source, (output,) = node.inputs[0], node.outputs
    if source.shape != output.shape or source.is_fixed or not _is_on(source, _levels(node)):
        return False
    for user in list(output.users):
        user.set_inputs(source if value is output else value for value in user.inputs)
    node.detach()
    return True


def _is_on(value: Value, levels: tuple[float, ...] | None) -> bool:
    """Whether a value is on levels: rounded to them, then only moved."""
    node = value.producer
    if node is None or node.epilogue or node.is_outside:
        return False
    if node.kind == "FakeQuantize":
        return _levels(node) == levels
    if node.kind == "Concat":
        return all(_is_on(part, levels) for part in node.inputs)
    if node.kind == "MaxPool" and not sees_the_image(node):
        return False  # of nothing the largest is no level
    return node.kind in MOVING and _is_on(node.inputs[0], levels)


def _levels(node: Node) -> tuple[float, ...] | None:
    """How many levels and from where to where; None where these differ within a tensor."""
    if node.kind != "FakeQuantize" or any(
        value.constant is None or value.constant.size != 1 for value in node.inputs[1:]
    ):
        return None
    op: Any = node.op
    low, high, first, last = (float(value.array.reshape(())) for value in node.inputs[1:])
    if (low, high) != (first, last) or not low < high or op.levels > MOST_LEVELS:
        return None
    if not np.isfinite([low, high]).all() or max(-low, high) > FAR * (high - low):
        return None
    return (op.levels, low, high)
