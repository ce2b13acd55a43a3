"""Replace `MaxPool(ReLU(x))` by `ReLU(MaxPool(x))`: fewer elements; likewise Clamp, FakeQuantize.

An image as it comes in is convolved by plain products: their bias may come after, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import CONVOLUTIONS, FEW, Node, Plan, Value, constant, only_user, sees_the_image

#: The larger their input, the larger (or the same) their output.
MONOTONE = frozenset({"ReLU", "Clamp"})


def pool_first(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        before = node.inputs[0].producer if node.kind == "MaxPool" else None
        if before is None or before.kind not in CONVOLUTIONS or not _is_of_images(node):
            continue
        if only_user(node.inputs[0]) is not node or any(
            value.users or value.is_output for value in node.outputs[1:]
        ):
            continue
        # Bytes are sooner compared than numbers.
        narrow = before.integers is not None and any(u.integers for u in node.outputs[0].users)
        while before.epilogue and _is_monotone(*before.epilogue[-1]):
            if narrow and before.epilogue[-1][0].xml_type == "FakeQuantize":
                break
            *earlier, last = before.epilogue
            node.set_epilogue([last, *node.epilogue])
            before.set_epilogue(earlier)
        bias = before.inputs[2].constant if len(before.inputs) > 2 else None
        if bias is not None and not before.epilogue and before.inputs[0].shape[1] <= FEW:
            add = Op.registry["Add", 1].read({})
            step = (add, [None, constant(bias.reshape(1, -1, 1, 1))])
            node.set_epilogue([step, *node.epilogue])
            before.set_inputs(before.inputs[:2])


def _is_monotone(op: Op, others: Sequence[Value | None]) -> bool:
    """Whether what an operation gives grows with its input, and is the same for all numbers."""
    if op.xml_type != "FakeQuantize":
        return op.xml_type in MONOTONE
    limits = [value.constant for value in others if value is not None]
    if any(limit is None or limit.size != 1 for limit in limits):
        return False
    low, high, first, last = (float(limit.reshape(())) for limit in limits if limit is not None)
    return low < high and first <= last


def _is_of_images(node: Node) -> bool:
    """Whether a pooling of images has windows of neighbours, each of which holds some image."""
    op: Any = node.op
    value = node.inputs[0]
    plain = len(value.shape) == 4 and value.type == np.float32 and set(op.gaps()) == {1}
    return plain and sees_the_image(node)
