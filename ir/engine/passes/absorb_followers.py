"""Replace `g(f(x), c)` by f with the epilogue g, where g is elementwise and f's only reader.

The epilogue is done to each block of f's output while that is in cache. Of a sum of many branches
the first f does not take all, or it would wait for all of them.
"""

from __future__ import annotations

import numpy as np

from ..plan import (
    BINARY,
    CONVOLUTIONS,
    HEADS,
    SHUFFLE,
    UNARY,
    Node,
    Plan,
    Value,
    only_user,
    stands_beside,
)

#: A node waits for at most so many others that come after it: what they give is kept until then.
WAITS = 2


def absorb_followers(plan: Plan) -> None:
    """Apply the pass."""
    gone: set[Node] = set()
    places = {node: place for place, node in enumerate(plan.nodes)}
    for node in plan.nodes:
        if node in gone:
            continue
        waits = 0
        while node.kind in HEADS and len(node.outputs) == 1 and node.outputs[0].type == np.float32:
            follower = only_user(node.outputs[0])
            if follower is None or not (
                _is_elementwise(node.outputs[0], follower) or _shuffles(node, follower)
            ):
                break
            feeders = [value.producer for value in follower.inputs if value.producer is not None]
            waits += sum(places.get(feeder, 0) > places[node] for feeder in feeders)
            if waits > WAITS:
                break
            node.take_over(follower)
            gone.add(follower)
            if follower.kind == SHUFFLE:
                break
    plan.replace({node: [] for node in gone})
    plan.sort()


def _is_elementwise(value: Value, follower: Node) -> bool:
    """Whether a node is elementwise on a value, and gives the same shape."""
    if len(follower.outputs) != 1 or follower.outputs[0].shape != value.shape:
        return False
    if follower.outputs[0].type != value.type:
        return False
    if follower.kind in UNARY:
        first, *rest = follower.inputs
        known = all(other.constant is not None for other in rest)
        shapes = [other.shape for other in rest]
        return first is value and known and stands_beside(follower.op, shapes, value.shape)
    if follower.kind not in BINARY or getattr(follower.op, "auto_broadcast", "") != "numpy":
        return False
    return sum(v is value for v in follower.inputs) == 1


def _shuffles(node: Node, follower: Node) -> bool:
    """Whether a node is a convolution whose channels a follower shuffles."""
    return (
        node.kind in CONVOLUTIONS
        and node.inputs[1].constant is not None
        and follower.kind == SHUFFLE
        and len(node.outputs[0].shape) == 4
        and follower.op.axis in (1, -3)  # type: ignore[attr-defined]  # ShuffleChannels has it
    )
