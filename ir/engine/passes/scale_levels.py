"""Replace `q(W x + b)`, q a FakeQuantize of limits l and h, by `p(m W x + m (b - l))`.

p has the limits 0 and levels - 1, between which numbers are rounded as they are, and m is
`(levels - 1) / (h - l)`: weights and bias do what took a division, a product and a difference.
"""

from __future__ import annotations

import numpy as np

from ..plan import CONVOLUTIONS, Node, Plan, constant
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
    known = [value.constant for value in limits if value is not None]
    if any(array is None or array.size != 1 for array in known):
        return
    low, high = (float(array.reshape(())) for array in known[:2] if array is not None)
    steps: int = op.levels - 1  # type: ignore[attr-defined]  # FakeQuantize has them
    if not (np.isfinite([low, high]).all() and low < high):
        return
    gain = steps / (high - low)
    channels = node.outputs[0].shape[1 if node.kind in CONVOLUTIONS else -1]
    scale = np.full(channels, gain)
    if np.isfinite(np.float32(gain)) and fold(node, scale, -low * scale):
        ends = [constant(np.array(end, np.float32)) for end in (0, steps)]
        node.set_epilogue([(op, [None, *ends, *limits[2:]]), *node.epilogue[1:]])
