"""Replace `s * (W x) + b` by `(s * W) x + b`: no pass over the image, new weights and a bias."""

from __future__ import annotations

import numpy as np

from ....schemas import Array
from ..plan import CONVOLUTIONS, Node, Plan, constant, part_of, scale_and_shift


def fold_affine(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.kind in CONVOLUTIONS or node.integers is not None:
            axis = 1 if node.kind in CONVOLUTIONS else -1
            scale, shift, count = scale_and_shift(node.epilogue, node.outputs[0].shape, axis)
            if fold(node, scale, shift):
                node.set_epilogue(node.epilogue[count:])


def fold(node: Node, scale: Array, shift: Array) -> bool:
    """Put a scale and a shift of each channel into weights and bias; whether that can be."""
    if node.integers is not None:
        node.integers = node.integers.then(scale, shift)
        return True
    weights = node.inputs[1].constant
    given = node.inputs[0]
    of_numbers = given.type == np.float32 or given.grid is not None
    if weights is None or not of_numbers:
        return False  # by its definition, which knows no bias
    if node.is_whole and np.any(scale != 1):
        return False
    bias = node.inputs[2].constant if len(node.inputs) > 2 else None
    if np.any(scale != 1):
        lead = weights.shape[:2] if node.kind == "GroupConvolution" else weights.shape[:1]
        factor = scale.astype(np.float32)
        scaled = weights * factor.reshape(*lead, *[1] * (weights.ndim - len(lead)))
        node.replace_input(1, part_of(node.inputs[1], ("times", factor.tobytes()), scaled))
    whole = shift if bias is None else bias * scale + shift
    if bias is not None or np.any(shift != 0):
        node.set_inputs([*node.inputs[:2], constant(whole.astype(np.float32))])
    return True
