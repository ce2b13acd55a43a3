"""Replace `q(p(x) + s l + m)`, l, p and q levels, by `r(a p(x) + b l + c)`, r a mere rounding.

What q is scaled and shifted by goes to the sum: p gives whole levels, a is its step and b that of
l, both in steps of q. So nothing is scaled but what is added.
"""

from __future__ import annotations

import numpy as np

from ....layers.base import Op
from ..plan import MIDDLE, Grid, Joined, Node, Plan, Value, constant

#: A step, and what stands beside it.
Step = tuple[Op, list[Value | None]]


def join_levels(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.outputs and node.outputs[0].type == np.int8 and not node.is_outside:
            _join(node)


def _join(node: Node) -> None:
    heads = node.kind == "FakeQuantize"
    steps: list[Step] = [*([(node.op, [None, *node.inputs[1:]])] if heads else []), *node.epilogue]
    if len(steps) < 3 or node.table is not None:
        return
    first, (op, others), last = steps[-3:]
    (beside,) = (value for value in others if value is not None) if op.xml_type == "Add" else [None]
    if beside is None or beside.grid is None or beside.shape != node.outputs[0].shape:
        return
    if any(_reads_levels(step) for step in steps[:-2]):
        return
    own, made = _rounding(first), _rounding(last)
    if own is None or made is None:
        return
    low, high, grid = own
    bottom, top, bytes_ = made
    if bytes_.first != -MIDDLE or bytes_.step != 1:
        return
    gain = (bytes_.levels - 1) / (top - bottom)
    whole = grid.zero or 0
    joined = Joined(
        gain * grid.step,
        gain * beside.grid.step,
        gain * (grid.first + grid.step * whole + beside.grid.middle - bottom) - MIDDLE,
    )
    if not np.isfinite(np.array(joined, np.float32)).all():
        return
    node.joined = joined
    changed = [
        _with(first, low, high, -whole, grid.levels - 1 - whole),
        (op, others),
        _with(last, *[-MIDDLE, bytes_.levels - 1 - MIDDLE] * 2),
    ]
    if heads and len(steps) == 3:
        node.set_inputs([node.inputs[0], *(v for v in changed[0][1] if v is not None)])
        node.set_epilogue(changed[1:])
    else:
        node.set_epilogue([*node.epilogue[:-3], *changed])


def _rounding(step: Step) -> tuple[float, float, Grid] | None:
    """The input limits of a FakeQuantize that treats all numbers alike, and the grid it gives."""
    op, (data, *limits) = step
    if op.xml_type != "FakeQuantize" or data is not None:
        return None
    known = [value.constant for value in limits if value is not None]
    if len(known) != 4 or any(array is None or array.size != 1 for array in known):
        return None
    low, high, begin, end = (float(array.reshape(())) for array in known if array is not None)
    steps: int = op.levels - 1  # type: ignore[attr-defined]  # FakeQuantize has them
    grid = Grid((end - begin) / steps, begin, steps + 1)
    return (low, high, grid) if low < high and 0 < grid.step < np.inf and steps < 256 else None


def _with(step: Step, *ends: float) -> Step:
    """The same FakeQuantize with other limits."""
    return step[0], [None, *(constant(np.array(end, np.float32)) for end in ends)]


def _reads_levels(step: Step) -> bool:
    """Whether a step reads levels, too."""
    return any(value is not None and value.grid is not None for value in step[1])


__all__ = ["join_levels"]
