"""Scales and shifts of channels, put into the weights of the convolution beside them.

After a convolution that is plain: ``s * (W x) + b`` has the weights ``s * W``. Before a 1x1
convolution there is often a ReLU in between: ``max(s * x + b, 0)`` is ``s * max(x, -b / s) + b``
where s is above zero, and with ``min`` where it is below, so that one pass over the image is
left of three. An average between the two changes nothing.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ....schemas.shapes import number
from ..plan.nodes import BINARY, CONVOLUTIONS, SHUFFLE, UNARY, Node, Plan, Value, only_user

#: Elementwise operations in a row, each with its other inputs; None stands for what they act on.
Steps: TypeAlias = list[tuple[Op, list[Value | None]]]


#: Convolutions of volumes with more groups are left to the definition.
GROUPS = 8


def has_many_groups(node: Node) -> bool:
    """Whether a convolution is of volumes in so many groups that there is no kernel for it."""
    weights = node.inputs[1].shape
    return len(weights) == 6 and weights[0] > GROUPS


def fold_affine(node: Node) -> None:
    """Put scales and shifts at the head of a convolution's epilogue into weights and bias."""
    weights = node.inputs[1].constant
    if weights is None or node.inputs[0].type != np.float32 or has_many_groups(node):
        return  # by its definition, which knows no bias
    scale, shift, count = affine(node.epilogue, node.outputs[0].shape)
    del node.epilogue[:count]
    if np.any(scale != 1):
        lead = weights.shape[:2] if node.kind == "GroupConvolution" else weights.shape[:1]
        factor = scale.reshape(*lead, *[1] * (weights.ndim - len(lead)))
        node.inputs[1] = constant(weights * factor.astype(np.float32))
    if np.any(shift != 0):
        node.inputs = [*node.inputs[:2], constant(shift.astype(np.float32))]


def affine(steps: Steps, shape: tuple[int, ...]) -> tuple[Array, Array, int]:
    """By what steps scale and shift each channel, and how many of the first ones do that."""
    scale, shift = np.ones(shape[1]), np.zeros(shape[1])
    for count, (op, others) in enumerate(steps):
        given = next((value for value in others if value is not None), None)
        if given is None or given.constant is None:
            return scale, shift, count
        each = per_channel(given.constant, shape)
        first = others[0] is None
        if each is None or op.xml_type not in ("Add", "Subtract", "Multiply", "Divide"):
            return scale, shift, count
        if op.xml_type == "Add":
            shift = shift + each
        elif op.xml_type == "Subtract":
            scale, shift = (scale, shift - each) if first else (-scale, each - shift)
        elif op.xml_type == "Multiply":
            scale, shift = scale * each, shift * each
        elif first:
            scale, shift = scale / each, shift / each
        else:
            return scale, shift, count
    return scale, shift, len(steps)


def per_channel(constant: Array, shape: tuple[int, ...]) -> Array | None:
    """A constant as one number for each channel, if it is that."""
    if constant.size == 1:
        return np.full(shape[1], constant.reshape(()), np.float64)
    sizes = (1,) * (len(shape) - constant.ndim) + constant.shape
    if len(sizes) != len(shape) or sizes[1] != shape[1] or constant.size != shape[1]:
        return None
    return constant.reshape(-1).astype(np.float64)


def pass_offsets(plan: Plan) -> None:
    """Let ``max(x + b, 0)`` after a convolution be ``max(x, -b)``: one pass instead of two.

    That is less by b, which the convolution that follows makes good by its bias. What it pads
    with, it has to pad with -b instead of zero: only those of single channels know how.
    """
    for node in plan.nodes:
        kinds = [op.xml_type for op, _ in node.epilogue]
        rectified = kinds[:1] in (["ReLU"], ["Clamp"]) and kinds[1:] in ([], [SHUFFLE])
        if node.kind not in CONVOLUTIONS or not rectified:
            continue
        bias = node.inputs[2].constant if len(node.inputs) > 2 else None
        after = only_user(node.outputs[0])
        if bias is None or not np.isfinite(bias).all() or not _bias_takes_a_pass(node):
            continue
        if after is None or after.kind not in CONVOLUTIONS or len(node.outputs[0].shape) != 4:
            continue
        weights = after.inputs[1].constant
        if weights is None or after.inputs[0] is not node.outputs[0]:
            continue
        if not (is_depthwise(after) or takes_single_places(after)):
            continue
        op: Any = node.epilogue[0][0]
        low, high = (op.min, op.max) if kinds[0] == "Clamp" else (0.0, np.inf)
        bounds = [("Maximum", low)] + [("Minimum", high)] * bool(high < np.inf)
        shape = (1, -1, 1, 1)
        node.epilogue[:1] = [
            (Op.registry[kind, 1].read({}), [None, constant((bound - bias).reshape(shape))])
            for kind, bound in bounds
        ]
        node.inputs = node.inputs[:2]
        if len(kinds) > 1:  # the channels arrive in another order
            groups = node.epilogue[-1][0].group  # type: ignore[attr-defined]  # ShuffleChannels
            bias = bias.reshape(groups, -1).T.ravel()
        if not takes_single_places(after):
            after.padding = -bias
        _add_through(after, bias)


def is_depthwise(node: Node) -> bool:
    """Whether each channel of images is convolved by itself, with weights that are known."""
    weights = node.inputs[1].constant if node.kind == "GroupConvolution" else None
    return weights is not None and weights.ndim == 5 and weights.shape[1:3] == (1, 1)


def _bias_takes_a_pass(node: Node) -> bool:
    """Whether the bias of a convolution is a pass of its own: Winograd's comes for nothing."""
    return takes_single_places(node) or is_depthwise(node)


def _add_through(node: Node, amount: Array) -> None:
    """Add to the bias of a convolution what it makes of an amount in each input channel."""
    weights = node.inputs[1].constant
    assert weights is not None
    # (groups, outputs, inputs), all taps of a window together.
    by_group = weights.reshape(-1, *weights.shape[-4:]).astype(np.float64).sum((-1, -2))
    added = np.matmul(by_group, amount.reshape(len(by_group), -1, 1)).ravel()
    if len(node.inputs) > 2:
        added = added + node.inputs[2].constant
    node.inputs = [*node.inputs[:2], constant(added.astype(np.float32))]


def pass_biases(plan: Plan) -> None:
    """Let the 1x1 convolution that follows a convolution at once take over its bias."""
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
        if weights is None or bias is None or not takes_single_places(after):
            continue
        node.inputs = node.inputs[:2]
        _add_through(after, bias)


def takes_single_places(node: Node) -> bool:
    """Whether a convolution of images has 1x1 windows and pads nothing."""
    op: Any = node.op
    shape = node.inputs[0].shape
    return (
        len(shape) == 4
        and node.inputs[1].shape[-2:] == (1, 1)
        and not any(
            number(pad) for axis, size in enumerate(shape[2:]) for pad in op.pads(size, axis, 1)
        )
    )


def clip_before(plan: Plan) -> None:
    """Rewrite every scale, shift and ReLU that a 1x1 convolution alone uses."""
    for node in plan.nodes:
        if pointwise(node):
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
    steps = steps_of(node)
    if not steps or steps[-1][0].xml_type != "ReLU":
        return None
    scale, shift, count = affine(steps, node.outputs[0].shape)
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
    low = np.where(scale > 0, bounds, -np.inf)
    high = np.where(scale < 0, bounds, np.inf)
    clips: list[tuple[str, Array]] = []
    if (scale > 0).any():
        clips.append(("Maximum", low))
    if (scale < 0).any() or not clips:
        clips.append(("Minimum", high))
    source = before.inputs[0]
    made = [
        (Op.registry[kind, 1].read({}), _by_channel(bound, len(source.shape)))
        for kind, bound in clips
    ]
    for value in [*before.inputs[1:], *(v for _, others in before.epilogue for v in others if v)]:
        value.users.pop(before, None)
    (before.op, bound), *others = made
    before.inputs = [source, bound]
    before.epilogue = [(op, [None, value]) for op, value in others]
    for _, value in made:
        value.users[before] += 1
    weights: Any = node.inputs[1].constant
    added = np.where(scale == 0, np.maximum(shift, 0), shift)
    bias = weights[:, :, 0, 0].astype(np.float64) @ added
    if len(node.inputs) > 2:
        bias = bias + node.inputs[2].constant
    factor = scale.reshape(1, -1, 1, 1).astype(np.float32)
    node.inputs = [node.inputs[0], constant(weights * factor), constant(bias.astype(np.float32))]


def _by_channel(numbers: Array, rank: int) -> Value:
    return constant(numbers.reshape(1, -1, *[1] * (rank - 2)).astype(np.float32))


def constant(array: Array) -> Value:
    """An array as a value of the plan."""
    return Value(array.shape, array.dtype, array)


def pointwise(node: Node) -> bool:
    """Whether a node is a 1x1 convolution that neither pads nor skips."""
    weights = node.inputs[1].constant if node.kind == "Convolution" else None
    op: Any = node.op
    return (
        weights is not None
        and weights.dtype == np.float32
        and len(weights.shape) == 4
        and weights.shape[2:] == (1, 1)
        and set(op.strides) == {1}
        and node.inputs[0].shape[2:] == node.outputs[0].shape[2:]
    )


def pads_nothing(node: Node) -> bool:
    """Whether the windows of an average lie within the image, all of them."""
    op: Any = node.op
    sizes = enumerate(node.inputs[0].shape[2:])
    pads = [op.pads(size, axis, op.kernel[axis]) for axis, size in sizes]
    return op.rounding_type == "floor" and not any(number(pad) for pair in pads for pad in pair)


def steps_of(node: Node) -> Steps:
    """A node as steps on its first input with constants for each channel, if it is that."""
    shape = node.outputs[0].shape
    if node.outputs[0].type != np.float32 or len(shape) != 4:
        return []
    if node.kind in UNARY:
        head: list[Value | None] = [None, *node.inputs[1:]]
    elif node.kind in BINARY and node.inputs[0].constant is None:
        head = [None, node.inputs[1]]
    else:
        return []
    steps = [(node.op, head), *node.epilogue]
    for op, others in steps:
        constants = [value.constant for value in others if value is not None]
        if any(c is None or per_channel(c, shape) is None for c in constants):
            return []
        if op.xml_type == "PReLU":
            return []
    return steps
