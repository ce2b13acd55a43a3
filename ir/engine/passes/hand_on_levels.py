"""Replace `D (g l + f)` by `(D g) l + D f`, l levels that a FakeQuantize rounds to.

The weights of convolutions by numbers do what took a product and a sum over the image. What D pads
with is then the level -f / g instead of zero: only depthwise ones know how.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....schemas import Array
from ..plan import (
    CONVOLUTIONS,
    WHOLE,
    Node,
    Plan,
    Value,
    add_through,
    constant,
    has_many_groups,
    has_single_place_windows,
    is_depthwise,
    per_channel,
)


def hand_on_levels(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        op, others = node.epilogue[-1] if node.epilogue else (node.op, [None, *node.inputs[1:]])
        if op.xml_type != "FakeQuantize" or others[0] is not None or node.is_outside:
            continue
        steps: int = op.levels - 1  # type: ignore[attr-defined]  # FakeQuantize has them
        found = _gain_and_first(others[3:], steps, node.outputs[0])
        users = list(node.outputs[0].users)
        if found is None or node.outputs[0].is_output or not users:
            continue
        gain, first, zero = found
        if not all(_takes_levels(user, node.outputs[0], first) for user in users):
            continue
        for user in users:
            _multiply(user, gain, first)
        ends = [constant(np.array(end - zero, np.float32)) for end in (0, steps)]
        if node.epilogue:
            node.set_epilogue([*node.epilogue[:-1], (op, [*others[:3], *ends])])
        else:
            node.set_inputs([*node.inputs[:3], *ends])


def _gain_and_first(
    ends: list[Value | None], steps: int, value: Value
) -> tuple[Array, Array, int] | None:
    """The step of each channel, what is added to it, and the level that stands for zero."""
    known = [end.constant for end in ends if end is not None]
    if len(value.shape) < 2:
        return None
    each = [None if x is None else per_channel(x, value.shape) for x in known]
    first, last = (*each, None, None)[:2]
    if first is None or last is None:
        return None
    gain = ((last - first) / steps).astype(np.float32)
    usable = np.isfinite(gain).all() and np.isfinite(first).all() and (gain != 0).all()
    if not usable or (gain == 1).all():
        return None
    zeros = -first / gain
    zero = round(float(zeros[0]))
    if (np.abs(zeros - zero) < WHOLE).all() and 0 <= zero <= steps:
        return gain.astype(np.float64), np.zeros_like(first), zero
    return gain.astype(np.float64), first, 0


def _takes_levels(node: Node, value: Value, first: Array) -> bool:
    """Whether a node is a convolution by numbers that may be given levels."""
    if node.kind not in CONVOLUTIONS or node.integers is not None or node.prologue:
        return False
    weights = node.inputs[1].constant
    if weights is None or weights.dtype != np.float32 or node.inputs[0] is not value:
        return False
    if value.users[node] != 1 or node.padding is not None or has_many_groups(node):
        return False
    return not first.any() or (
        len(value.shape) == 4 and (is_depthwise(node) or has_single_place_windows(node))
    )


def _multiply(node: Node, gain: Array, first: Array) -> None:
    """Let a convolution take levels."""
    weights = node.inputs[1].constant
    assert weights is not None
    if first.any():
        add_through(node, first)
        if not has_single_place_windows(node):
            node.padding = (-first / gain).astype(np.float32)
    lead = (weights.shape[0], 1) if node.kind == "GroupConvolution" else (1,)
    rest = weights.ndim - len(lead) - 1
    factor: Any = gain.reshape(*lead, -1, *[1] * rest)
    node.replace_input(1, constant((weights * factor).astype(np.float32)))
