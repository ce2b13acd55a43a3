"""Replace `Reshape(Transpose(Reshape(x)))` that deals out channels by `ShuffleChannels(x)`.

(N, g*c, H, W) as (N, g, c, H, W), its axes 1 and 2 swapped, and back: one copy instead of three.
"""

from __future__ import annotations

from ....layers.base import Op
from ..plan import SHUFFLE, Node, Plan, only_user


def join_shuffles(plan: Plan) -> None:
    """Apply the pass."""
    joined: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        if node.kind != "Transpose" or node.inputs[1].constant is None:
            continue
        first, last = node.inputs[0].producer, only_user(node.outputs[0])
        if first is None or first.kind != "Reshape" or last is None or last.kind != "Reshape":
            continue
        split, whole = node.inputs[0].shape, first.inputs[0].shape
        if (
            node.inputs[1].constant.ravel().tolist() != [0, 2, 1, *range(3, len(split))]
            or last.outputs[0].shape != whole
            or (split[0], split[1] * split[2], *split[3:]) != whole
            or only_user(node.inputs[0]) is not node
        ):
            continue
        op = Op.registry[SHUFFLE, 1].read({"axis": "1", "group": str(split[1])})
        (source, *_), outputs = first.inputs, last.outputs
        for former in (first, node, last):
            former.detach()
        joined |= {first: [], node: [], last: [Node(last.layer, op, [source], outputs)]}
    plan.replace(joined)
