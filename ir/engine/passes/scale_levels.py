"""Replace `q(W x + b)`, q a FakeQuantize of limits l and h, by `p(m W x + m (b - l))`.

p has the limits 0 and levels - 1, between which numbers are rounded as they are, and m is
`(levels - 1) / (h - l)`: weights and bias do what took a division, a product and a difference.
"""

from __future__ import annotations

import numpy as np

from ..plan import CONVOLUTIONS, Node, Plan, constant, per_channel
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
    if np.isfinite(gain.astype(np.float32)).all() and fold(node, gain, -low * gain):
        ends = [constant(np.array(end, np.float32)) for end in (0, steps)]
        node.set_epilogue([(op, [None, *ends, *limits[2:]]), *node.epilogue[1:]])
