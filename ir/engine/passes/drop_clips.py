"""Replace `q(clip(x))` by `q(x)`, q a FakeQuantize of limits that the clip does not narrow.

What is beyond its limits gives the same as the limit does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import Plan, Steps, Value


def drop_clips(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        kept = _needed(node.epilogue)
        if len(kept) < len(node.epilogue):
            node.set_epilogue(kept)


def _needed(steps: Steps) -> Steps:
    """The steps without each clip that the next one makes up for."""
    return [
        step
        for step, after in zip_longest(steps, steps[1:])
        if not (after is not None and _clips_within(_bounds(step[0]), *after))
    ]


def _bounds(op: Any) -> tuple[float, float] | None:
    """Between what an operation clips, where it does that alone."""
    if op.xml_type == "ReLU":
        return 0.0, np.inf
    return (op.min, op.max) if op.xml_type == "Clamp" else None


def _clips_within(
    bounds: tuple[float, float] | None, op: Op, others: Sequence[Value | None]
) -> bool:
    """Whether an operation is a FakeQuantize whose limits lie within some bounds."""
    if bounds is None or op.xml_type != "FakeQuantize":
        return False
    low, high = (value.constant for value in others[1:3] if value is not None)
    if low is None or high is None or not (low < high).all():
        return False
    return bool((low >= np.float32(bounds[0])).all() and (high <= np.float32(bounds[1])).all())
