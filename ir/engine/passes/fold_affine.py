"""Replace `s * (W x) + b` by `(s * W) x + b`: no pass over the image, new weights and a bias."""

from __future__ import annotations

import numpy as np

from ..plan import CONVOLUTIONS, Node, Plan, constant, has_many_groups, scale_and_shift


def fold_affine(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.integers is not None:
            axis = 1 if node.kind in CONVOLUTIONS else -1
            scale, shift, count = scale_and_shift(node.epilogue, node.outputs[0].shape, axis)
            node.set_epilogue(node.epilogue[count:])
            node.integers = node.integers.then(scale, shift)
        elif node.kind in CONVOLUTIONS:
            _fold(node)


def _fold(node: Node) -> None:
    """Put scales and shifts at the head of a convolution's epilogue into weights and bias."""
    weights = node.inputs[1].constant
    if weights is None or node.inputs[0].type != np.float32 or has_many_groups(node):
        return  # by its definition, which knows no bias
    scale, shift, count = scale_and_shift(node.epilogue, node.outputs[0].shape)
    node.set_epilogue(node.epilogue[count:])
    if np.any(scale != 1):
        lead = weights.shape[:2] if node.kind == "GroupConvolution" else weights.shape[:1]
        factor = scale.reshape(*lead, *[1] * (weights.ndim - len(lead)))
        node.replace_input(1, constant(weights * factor.astype(np.float32)))
    if np.any(shift != 0):
        node.set_inputs([*node.inputs[:2], constant(shift.astype(np.float32))])
