"""Replace `W (V x + b)` by `W (V x) + W b`, W a 1x1 convolution: one bias instead of two."""

from __future__ import annotations

from ..plan import CONVOLUTIONS, Plan, add_through, has_single_place_windows, only_user


def pass_biases(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.kind not in CONVOLUTIONS or len(node.inputs) < 3 or node.epilogue:
            continue
        after = only_user(node.outputs[0])
        if (
            after is None
            or after.kind not in CONVOLUTIONS
            or after.inputs[0] is not node.outputs[0]
        ):
            continue
        weights, bias = after.inputs[1].constant, node.inputs[2].constant
        if weights is None or bias is None or not has_single_place_windows(after):
            continue
        node.set_inputs(node.inputs[:2])
        add_through(after, bias)
