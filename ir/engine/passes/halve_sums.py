"""Replace `swish(W x + b)` by `h * (1 + tanh(h))`, h = (W / 2) x + b / 2: a pass less.

W is a convolution, or what scales normalised groups of channels. So it is computed where tanh is
quick, and halves are exact. A sigmoid made so would lose its small values, and Gelu gains nothing.
"""

from __future__ import annotations

import numpy as np

from ..plan import CONVOLUTIONS, Node, Plan, constant
from .fold_affine import fold


def halve_sums(plan: Plan) -> None:
    """Apply the pass."""
    if not plan.means.tanh:
        return
    for node in plan.nodes:
        if node.kind in CONVOLUTIONS and node.integers is None and _takes_half(node):
            channels = node.outputs[0].shape[1]
            node.halved = fold(node, np.full(channels, 0.5), np.zeros(channels))
        if node.kind == "GroupNormalization" and _takes_half(node):
            given = [value.constant for value in node.inputs[1:]]
            halves = [constant(x * np.float32(0.5)) for x in given if x is not None]
            node.halved = len(halves) == len(given)
            node.set_inputs([node.inputs[0], *halves] if node.halved else node.inputs)


def _takes_half(node: Node) -> bool:
    """Whether the first that is done to what is made of rows or images is Swish."""
    weights = node.inputs[1].constant
    if not node.epilogue or len(node.outputs[0].shape) > 4 or weights is None:
        return False
    op, others = node.epilogue[0]
    betas = [value.constant for value in others if value is not None]
    return op.xml_type == "Swish" and all(beta is not None and (beta == 1).all() for beta in betas)
