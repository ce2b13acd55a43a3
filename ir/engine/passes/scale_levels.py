"""Replace `q(W x + b)`, q a FakeQuantize of limits l and h, by `p(m W x + m (b - l) - z)`.

p has the limits -z and levels - 1 - z, between which numbers are rounded as they are, and m is
`(levels - 1) / (h - l)`: weights and bias do what took a division, a product and a difference.
z is the level that stands for zero, where an even one does: nothing is added to the levels after
that, and halves fall to the same side.
So it is with `q(c x + b)`, c and b constants, and `q(c x)` is `p(m c x)` with p from m l to m h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import CONVOLUTIONS, WHOLE, Grid, Node, Plan, Value, constant, per_channel
from .fold_affine import fold


def scale_levels(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.epilogue and (node.kind in CONVOLUTIONS or node.integers is not None):
            _scale(node)
        if node.epilogue and not node.is_outside:
            _scale_constants(node)


def _scale(node: Node) -> None:
    """Let the sums of a node be levels, where the next step rounds to such."""
    op, (data, *limits) = node.epilogue[0]
    if op.xml_type != "FakeQuantize" or data is not None:
        return
    axis = 1 if node.kind in CONVOLUTIONS else -1
    shape = node.outputs[0].shape
    known = [value.constant for value in limits[:2] if value is not None]
    each = [None if array is None else per_channel(array, shape, axis) for array in known]
    if len(each) != 2 or any(one is None for one in each):
        return
    low, high = (one for one in each if one is not None)
    steps: int = op.levels - 1  # type: ignore[attr-defined]  # FakeQuantize has them
    if not (np.isfinite([low, high]).all() and (low < high).all()):
        return
    gain = steps / (high - low)
    zero = _zero(limits[2:], steps)
    if np.isfinite(gain.astype(np.float32)).all() and fold(node, gain, -low * gain - zero):
        ends = [constant(np.array(end - zero, np.float32)) for end in (0, steps)]
        node.set_epilogue([(op, [None, *ends, *limits[2:]]), *node.epilogue[1:]])


def _scale_constants(node: Node) -> None:
    """Let constants right before a rounding, factors and what is added then, give levels."""
    head = _factor(node)
    steps = [*([] if head is None else [(node.op, [None, head])]), *node.epilogue]
    for place, (op, (data, *limits)) in enumerate(steps):
        if op.xml_type != "FakeQuantize" or data is not None:
            continue
        adds = place > 1 and _constant(steps[place - 1], "Add") is not None
        first = place - 1 - adds
        factor = _constant(steps[first], "Multiply") if first >= 0 else None
        known = [value.constant for value in limits[:2] if value is not None]
        if factor is None or any(array is None or array.size != 1 for array in known):
            continue
        low, high = (float(array.reshape(())) for array in known if array is not None)
        levels: int = op.levels - 1  # type: ignore[attr-defined]  # FakeQuantize has them
        gain = levels / (high - low) if low < high else np.inf
        if not np.isfinite(np.array([gain, low], np.float32)).all():
            continue
        least = -_zero(limits[2:], levels) if adds else _whole(low * gain)
        changed = [(first, factor.astype(np.float64) * gain)]
        if adds:
            added = _constant(steps[place - 1], "Add")
            assert added is not None
            changed.append((place - 1, (added.astype(np.float64) - low) * gain + least))
        if not all(np.isfinite(array.astype(np.float32)).all() for _, array in changed):
            continue
        for at, array in changed:
            steps[at] = steps[at][0], [None, constant(array.astype(np.float32))]
        ends = [constant(np.array(end, np.float32)) for end in (least, least + levels)]
        steps[place] = op, [None, *ends, *limits[2:]]
    if head is not None and steps[0][1][1] is not head and steps[0][1][1] is not None:
        place = next(at for at, value in enumerate(node.inputs) if value.constant is not None)
        node.replace_input(place, steps[0][1][1])
    node.set_epilogue(steps[0 if head is None else 1 :])


def _factor(node: Node) -> Value | None:
    """What a node multiplies by, where that is a constant."""
    known = [value for value in node.inputs if value.constant is not None]
    if node.kind != "Multiply" or len(known) != 1 or node.prologue:
        return None
    return known[0] if node.outputs[0].type == np.float32 else None


def _constant(step: tuple[Op, list[Value | None]], kind: str) -> Array | None:
    """The constant of such a step; none where it has no such."""
    op, others = step
    given = next((value for value in others if value is not None), None)
    array = None if given is None or op.xml_type != kind else given.constant
    return array if array is not None and array.dtype == np.float32 else None


def _whole(level: float) -> float:
    """A level as a whole number, where it is as good as that."""
    return round(level) if abs(level - round(level)) < WHOLE else level


def _zero(ends: Sequence[Value | None], steps: int) -> int:
    """The level that stands for zero, or an even one before it; the lowest where none does."""
    known = [value.constant for value in ends if value is not None]
    if any(array is None or array.size != 1 for array in known):
        return 0
    first, last = (float(array.reshape(())) for array in known if array is not None)
    grid = Grid((last - first) / steps, first, steps + 1)
    zero = (grid.zero or 0) if grid.step > 0 else 0
    return zero - zero % 2  # so that halves fall as they did
