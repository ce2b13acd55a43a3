"""Replace `q(max(x, 0))` by `q(x)`, q a FakeQuantize whose lower limit is not below 0.

What is below its limits gives the same as the limit does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from ....layers.base import Op
from ..plan import Plan, Steps, Value


def drop_clips(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        kept = _needed(node.epilogue)
        if len(kept) < len(node.epilogue):
            node.set_epilogue(kept)


def _needed(steps: Steps) -> Steps:
    """The steps without each ReLU that the next one makes up for."""
    return [
        step
        for step, after in zip_longest(steps, steps[1:])
        if not (step[0].xml_type == "ReLU" and after is not None and _is_above_zero(*after))
    ]


def _is_above_zero(op: Op, others: Sequence[Value | None]) -> bool:
    """Whether an operation is a FakeQuantize that takes all below zero for zero or more."""
    if op.xml_type != "FakeQuantize":
        return False
    low, high = (value.constant for value in others[1:3] if value is not None)
    return low is not None and high is not None and bool((low >= 0).all() and (low < high).all())
