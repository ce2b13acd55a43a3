"""Replace `swish(W x + b)` by what takes h = f W x + f b, f being its first factor: a pass less.

W is a convolution, or what scales normalised groups of channels. Where powers of two are quick, f
is minus the logarithm of e, and Swish ``h / (f + f * exp2(h))``; where only tanh is, a half, and
Swish ``h * (1 + tanh(h))``; elsewhere minus one, and Swish ``h / (-1 - exp(h))``. A sigmoid made
so by tanh would lose its small values, and Gelu gains nothing.
"""

from __future__ import annotations

import numpy as np

from ..plan import CONVOLUTIONS, Node, Plan, constant
from .fold_affine import fold


def multiply_for_swish(plan: Plan) -> None:
    """Apply the pass."""
    factor = plan.means.swish
    for node in plan.nodes:
        if node.kind in CONVOLUTIONS and node.integers is None and _ends_in_swish(node):
            channels = node.outputs[0].shape[1]
            if fold(node, np.full(channels, factor), np.zeros(channels)):
                node.premultiplied = factor
        if node.kind == "GroupNormalization" and _ends_in_swish(node):
            given = [value.constant for value in node.inputs[1:]]
            scaled = [constant(x * np.float32(factor)) for x in given if x is not None]
            if len(scaled) == len(given):
                node.premultiplied = factor
                node.set_inputs([node.inputs[0], *scaled])


def _ends_in_swish(node: Node) -> bool:
    """Whether the first that is done to what is made of rows or images is Swish."""
    weights = node.inputs[1].constant
    if not node.epilogue or len(node.outputs[0].shape) > 4 or weights is None:
        return False
    op, others = node.epilogue[0]
    betas = [value.constant for value in others if value is not None]
    return op.xml_type == "Swish" and all(beta is not None and (beta == 1).all() for beta in betas)
