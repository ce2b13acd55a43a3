"""Replace `W max(x + b, 0)` by `W max(x, -b) + W b`: one pass over the image instead of two.

Two bounds would be a pass each, while between numbers one pass does, so clamps keep their bias.
What the convolution W pads with is then -b instead of zero: only depthwise ones know how.

W b joins W's own bias and may go on from there. What goes on only grows, while the activations
that it is part of do not: an offset that has outgrown the biases of the model would take digits
from them, and stays where it is. So does one of a channel that is never to be alive.
"""

from __future__ import annotations

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import (
    CONVOLUTIONS,
    SHUFFLE,
    Node,
    Plan,
    add_through,
    constant,
    has_single_place_windows,
    is_depthwise,
    only_user,
)

#: An offset goes on that is at most so many times as large as the model's own bias there.
GROWTH = 16.0
#: And as what else is usual among the channels.
USUAL = 64.0


def pass_offsets(plan: Plan) -> None:
    """Apply the pass."""
    own: dict[Node, Array | None] = {}
    for node in plan.nodes:
        kinds = [op.xml_type for op, _ in node.epilogue]
        rectified = kinds[:1] == ["ReLU"] and kinds[1:] in ([], [SHUFFLE])
        if node.kind not in CONVOLUTIONS or not rectified:
            continue
        bias = node.inputs[2].constant if len(node.inputs) > 2 else None
        after = only_user(node.outputs[0])
        if bias is None or not np.isfinite(bias).all() or not _bias_takes_a_pass(node):
            continue
        if _outgrown(bias, own.get(node, bias)) or _is_far(bias, node):
            continue
        if after is None or after.kind not in CONVOLUTIONS or len(node.outputs[0].shape) != 4:
            continue
        weights = after.inputs[1].constant
        if weights is None or after.inputs[0] is not node.outputs[0]:
            continue
        if not (is_depthwise(after) or has_single_place_windows(after)):
            continue
        bound = constant((0.0 - bias).reshape(1, -1, 1, 1))
        clip = Op.registry["Maximum", 1].read({})
        node.set_epilogue([(clip, [None, bound]), *node.epilogue[1:]])
        node.set_inputs(node.inputs[:2])
        if len(kinds) > 1:  # the channels arrive in another order
            groups = node.epilogue[-1][0].group  # type: ignore[attr-defined]  # ShuffleChannels
            bias = bias.reshape(groups, -1).T.ravel()
        if not has_single_place_windows(after):
            after.padding = -bias
        own.setdefault(after, after.inputs[2].constant if len(after.inputs) > 2 else None)
        add_through(after, bias)


def _outgrown(bias: Array, own: Array | None) -> bool:
    """Whether what other offsets have added to a bias has made it far larger than it was."""
    return bias is not own and (
        own is None or float(np.abs(bias).max()) > GROWTH * float(np.abs(own).max())
    )


def _is_far(bias: Array, node: Node) -> bool:
    """Whether an offset is far beyond the others, and beyond what the weights make of ones."""
    weights = node.inputs[1].array.reshape(bias.size, -1)
    made = np.linalg.norm(weights, axis=1)
    usual = max(float(np.median(np.abs(bias))), float(np.median(made)))
    return float(np.abs(bias).max()) > USUAL * usual


def _bias_takes_a_pass(node: Node) -> bool:
    """Whether the bias of a convolution is a pass of its own: Winograd's comes for nothing."""
    return has_single_place_windows(node) or is_depthwise(node)
