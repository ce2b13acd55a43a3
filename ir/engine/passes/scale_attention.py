"""Replace `attention(s * q, k, v)` by one that scales by s times as much: no pass over queries."""

from __future__ import annotations

import numpy as np

from ....layers.matrix import usual_scale
from ..plan import Node, Plan, constant, is_numpy, maker, only_user, single
from .join_attention import LARGE, SMALL


def scale_attention(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        if node.kind == "ScaledDotProductAttention":
            for place in (0, 1):
                if (before := _scaled(node, place)) is not None:
                    replaced[before] = []
    plan.replace(replaced)


def _scaled(node: Node, place: int) -> Node | None:
    """What multiplied queries or keys by a number, which the attention does now; or nothing."""
    former = node.inputs[place]
    before = maker(former, "Multiply")
    if before is None or only_user(former) is not node or not is_numpy(before):
        return None
    numbers = [single(value) for value in before.inputs]
    known = next((n for n, number in enumerate(numbers) if number is not None), None)
    scale = _scale(node)
    if known is None or scale is None:
        return None
    (data,) = (value for n, value in enumerate(before.inputs) if n != known)
    product = scale * (numbers[known] or 0.0)
    if data.shape != former.shape or data.is_fixed or not SMALL <= abs(product) <= LARGE:
        return None
    given = list(node.inputs[:4])
    given[place] = data
    if len(given) < 4:
        given.append(constant(np.zeros((1, 1), np.float32)))  # which is no mask
    before.detach()
    node.set_inputs([*given, constant(np.full(1, product, np.float32)), *node.inputs[5:]])
    return before


def _scale(node: Node) -> float | None:
    """The number by which an attention scales; None where that is not known."""
    if len(node.inputs) > 4:
        return single(node.inputs[4])
    return usual_scale(node.inputs[0].shape[-1])
