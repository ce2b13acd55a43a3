"""Replace `Conv1x1(Concat(Interpolate(a), b))` by `Interpolate(Conv1x1(a)) + Conv1x1(b)`.

Resizing takes sums of pixels, a 1x1 convolution sums of channels: either may come first, and
small images have fewer places. Each part of the channels takes its own columns of the weights.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, multiplies_channels, only_user, part_of

#: Touching a number takes as long as so many products; so many are worth two nodes more.
TOUCH, WORTH = 20, 1 << 22


def convolve_first(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace(
        {node: [] for node in plan.nodes if _changes_nothing(node) and _is_left_out(node)}
    )
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        if node.kind != "Concat" or not _is_convolved(node):
            continue
        convolutions = list(node.outputs[0].users)
        if not all(_is_worth_it(node, one) for one in convolutions):
            continue
        for one in convolutions:
            replaced[one] = _convolved_apart(node, one)
    if replaced:
        plan.replace(replaced)
        plan.prune()


def _changes_nothing(node: Node) -> bool:
    """Whether a node resizes no axis."""
    if node.kind != "Interpolate" or node.inputs[0].type != np.float32:
        return False
    op: Any = node.op
    shape, others = node.inputs[0].shape, [value.constant for value in node.inputs[1:]]
    if shape != node.outputs[0].shape or any(array is None for array in others):
        return False
    with node.layer.at():
        return bool(op.passes(shape, *op.chosen(*others)) == [])


def _is_left_out(node: Node) -> bool:
    """Let all readers of a node read its input; not where the model hands it out."""
    source, (output,) = node.inputs[0], node.outputs
    if output.is_output or source.is_fixed:
        return False
    for user in list(output.users):
        user.set_inputs(source if value is output else value for value in user.inputs)
    node.detach()
    return True


def _is_convolved(node: Node) -> bool:
    """Whether 1x1 convolutions, and nobody else, read the channels that a node joins."""
    (output,) = node.outputs
    if len(output.shape) != 4 or node.op.axis % 4 != 1 or output.is_output:  # type: ignore[attr-defined]  # Concat has it
        return False
    return bool(output.users) and all(
        multiplies_channels(user) and user.inputs[0] is output for user in output.users
    )


def _resizer(value: Value, reader: Node) -> Node | None:
    """The node that makes images larger for one reader, without a change of their channels."""
    node = value.producer
    if node is None or node.kind != "Interpolate" or only_user(value) is not reader:
        return None
    source, others, op = node.inputs[0], node.inputs[1:], node.op
    if source.type != np.float32 or any(other.constant is None for other in others):
        return None
    if prod(source.shape) >= prod(value.shape) or source.shape[:2] != value.shape[:2]:
        return None
    axes = getattr(op, "axes", None)
    if axes is None and "axes" in (names := op.arity()[0]) and len(names) == len(node.inputs):
        axes = others[-1].array.ravel().tolist()
    return node if axes is not None and {int(axis) % 4 for axis in axes} <= {2, 3} else None


def _is_worth_it(node: Node, convolution: Node) -> bool:
    """Whether a convolution takes less time on small images, with what comes after."""
    outputs, places = convolution.outputs[0].shape[1], prod(convolution.outputs[0].shape[2:])
    saved = 0
    for value in node.inputs:
        resizer = _resizer(value, node)
        if resizer is not None:
            channels, fewer = value.shape[1], prod(resizer.inputs[0].shape[2:])
            more = max(outputs - channels, 0) + 2 * outputs
            saved += outputs * channels * (places - fewer) - TOUCH * more * places
    return saved * node.outputs[0].shape[0] > WORTH


def _convolved_apart(node: Node, convolution: Node) -> list[Node]:
    """What takes the place of a convolution: one of each part that is resized, and of the rest."""
    (output,) = convolution.outputs
    weights, images = convolution.inputs[1].array, output.shape[0]
    made: list[Node] = []
    terms: list[Value] = []
    rest: list[Value] = []
    columns: list[tuple[int, int]] = []
    start = 0
    layer, op, outputs = convolution.layer, convolution.op, output.shape[1]
    for value in node.inputs:
        stop = start + value.shape[1]
        resizer = _resizer(value, node)
        if resizer is None:
            rest.append(value)
            columns.append((start, stop))
        else:
            source = resizer.inputs[0]
            small = Value((images, outputs, *source.shape[2:]), output.type)
            large = Value(output.shape, output.type)
            some = np.ascontiguousarray(weights[:, start:stop])
            part = part_of(convolution.inputs[1], ("columns", start, stop), some)
            made += [
                Node(layer, op, [source, part], [small]),
                Node(resizer.layer, resizer.op, [small, *resizer.inputs[1:]], [large]),
            ]
            terms.append(large)
        start = stop
    if rest:
        joined = rest[0]
        if len(rest) > 1:
            channels = sum(value.shape[1] for value in rest)
            joined = Value((images, channels, *output.shape[2:]), output.type)
            made.append(Node(node.layer, node.op, rest, [joined]))
        whole = Value(output.shape, output.type)
        beside = np.concatenate([weights[:, slice(*run)] for run in columns], 1)
        part = part_of(convolution.inputs[1], ("columns", *columns), beside)
        made.append(Node(layer, op, [joined, part], [whole]))
        terms.insert(0, whole)
    convolution.detach()
    if len(terms) == 1:
        made[-1].set_output(output)
        return made
    add = Op.registry["Add", 1].read({})
    total = terms[0]
    for term in terms[1:]:
        both = output if term is terms[-1] else Value(output.shape, output.type)
        made.append(Node(layer, add, [total, term], [both]))
        total = both
    return made
