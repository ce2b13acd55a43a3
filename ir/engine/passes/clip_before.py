"""Replace `W max(s * x + b, 0)` by `(s * W) max(x, -b / s) + W b`, W a 1x1 convolution.

With `min` where s is below zero: one pass over the image instead of three. An average between
the two changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import (
    Node,
    Plan,
    Value,
    constant,
    elementwise_steps,
    is_pointwise,
    only_user,
    pads_nothing,
    part_of,
    scale_and_shift,
)


def clip_before(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if is_pointwise(node):
            before = _activation(node)
            found = None if before is None else _rectified(before)
            if before is not None and found is not None:
                _rewrite(before, node, *found)


def _activation(node: Node) -> Node | None:
    """The node whose output a convolution alone uses, at once or its average."""
    value = node.inputs[0]
    before = value.producer
    if before is not None and before.kind == "AvgPool" and not before.epilogue:
        if only_user(value) is not node or not pads_nothing(before):
            return None
        value = before.inputs[0]
        node, before = before, value.producer
    return before if only_user(value) is node else None


def _rectified(node: Node) -> tuple[Array, Array] | None:
    """The scales and shifts of the channels, where a node is they and a ReLU."""
    steps = elementwise_steps(node)
    if not steps or steps[-1][0].xml_type != "ReLU":
        return None
    scale, shift, count = scale_and_shift(steps, node.outputs[0].shape)
    if count != len(steps) - 1 or not count:
        return None
    with np.errstate(all="ignore"):
        bounds = (shift / scale).astype(np.float32)
    if not np.isfinite(bounds[scale != 0]).all() or not np.isfinite(shift).all():
        return None
    return scale, shift


def _rewrite(before: Node, node: Node, scale: Array, shift: Array) -> None:
    """Leave a clip of the activation, and give the rest to the convolution."""
    with np.errstate(all="ignore"):
        bounds = -shift / scale
    clips: list[tuple[str, Array]] = []
    if (scale > 0).any():
        clips.append(("Maximum", np.where(scale > 0, bounds, -np.inf)))
    if (scale < 0).any() or not clips:
        clips.append(("Minimum", np.where(scale < 0, bounds, np.inf)))
    source = before.inputs[0]
    (op, bound), *others = (
        (Op.registry[kind, 1].read({}), _by_channel(numbers, len(source.shape)))
        for kind, numbers in clips
    )
    before.op = op
    before.set_inputs([source, bound])
    before.set_epilogue([(each, [None, value]) for each, value in others])
    weights: Any = node.inputs[1].constant
    added = np.where(scale == 0, np.maximum(shift, 0), shift)
    bias = weights[:, :, 0, 0].astype(np.float64) @ added
    if len(node.inputs) > 2:
        bias = bias + node.inputs[2].constant
    factor = scale.reshape(1, -1, 1, 1).astype(np.float32)
    scaled = part_of(node.inputs[1], ("taken times", factor.tobytes()), weights * factor)
    node.set_inputs([node.inputs[0], scaled, constant(bias.astype(np.float32))])


def _by_channel(numbers: Array, rank: int) -> Value:
    return constant(numbers.reshape(1, -1, *[1] * (rank - 2)).astype(np.float32))
