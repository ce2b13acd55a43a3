"""Replace `q(p(x) + s l + m)`, l, p and q levels, by `r(a p(x) + b l + c)`, r a mere rounding.

What q is scaled and shifted by goes to the sum: p gives whole levels, a is its step and b that of
l, both in steps of q. So nothing is scaled but what is added, of which there may be more.
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
    added = [_added(step, node.outputs[0]) for step in steps[:-1]]
    first = max((at for at, levels in enumerate(added) if levels is None), default=-1)
    given = [levels for levels in added[first + 1 :] if levels is not None]
    if not given or first < 0 or node.table is not None:
        return
    if any(value is not None and value.grid is not None for _, v in steps[:first] for value in v):
        return
    own, made = _rounding(steps[first]), _rounding(steps[-1])
    if own is None or made is None:
        return
    low, high, grid = own
    bottom, top, levels = made
    if levels.first != -MIDDLE or levels.step != 1:
        return
    gain, whole = (levels.levels - 1) / (top - bottom), grid.zero or 0
    start = grid.first + grid.step * whole + sum(one.middle for one in given) - bottom
    joined = [Joined(1.0, gain * one.step, 0.0) for one in given]
    joined[0] = Joined(gain * grid.step, joined[0].step, gain * start - MIDDLE)
    if not np.isfinite(np.array(joined, np.float32)).all():
        return
    node.joined = joined
    steps[first] = _with(steps[first], low, high, -whole, grid.levels - 1 - whole)
    steps[-1] = _with(steps[-1], *[-MIDDLE, levels.levels - 1 - MIDDLE] * 2)
    if heads and not first:
        node.set_inputs([node.inputs[0], *(v for v in steps[0][1] if v is not None)])
    node.set_epilogue(steps[1:] if heads else steps)


def _added(step: Step, output: Value) -> Grid | None:
    """The grid of the levels that a step adds, where it does so."""
    op, others = step
    given = [value for value in others if value is not None]
    if op.xml_type != "Add" or len(given) != 1 or given[0].shape != output.shape:
        return None
    return given[0].grid


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


__all__ = ["join_levels"]
