"""Replace `q(W x + b)`, q a FakeQuantize of limits l and h, by `p(m W x + m (b - l) - z)`.

p has the limits -z and levels - 1 - z, between which numbers are rounded as they are, and m is
`(levels - 1) / (h - l)`: weights and bias do what took a division, a product and a difference.
z is the level that stands for zero, where one does: nothing is added to the levels after that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plan import CONVOLUTIONS, Grid, Node, Plan, Value, constant, per_channel
from .fold_affine import fold


def scale_levels(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.epilogue and (node.kind in CONVOLUTIONS or node.integers is not None):
            _scale(node)


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


def _zero(ends: Sequence[Value | None], steps: int) -> int:
    """The level that stands for zero; the lowest where none does."""
    known = [value.constant for value in ends if value is not None]
    if any(array is None or array.size != 1 for array in known):
        return 0
    first, last = (float(array.reshape(())) for array in known if array is not None)
    grid = Grid((last - first) / steps, first, steps + 1)
    return (grid.zero or 0) if grid.step > 0 else 0
