"""Replace `V x + W x` by `(V + W) x`, V and W convolutions of the same x: one, not several.

One may be a scale of each channel, or x itself. Windows of one have to lie within those of the
other, tap on tap; networks that are trained in such branches have them so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....layers.base import Op
from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import (
    CONVOLUTIONS,
    Node,
    Plan,
    Value,
    constant,
    has_many_groups,
    only_user,
    per_channel,
)


@dataclass(frozen=True)
class Linear:
    """What a value is made of: windows of another, times weights, and a bias by channel."""

    base: Value
    #: (groups * outputs of each, inputs of each, *window) in float32 or more, and their factors.
    weights: Array
    scale: Array
    bias: Array
    groups: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    #: How far before a stop its window begins.
    before: tuple[int, ...]
    #: The convolution that has such windows; None of a scale by channel.
    head: Node | None = None
    #: Whether it is a sum of several.
    joined: bool = False


def join_branches(plan: Plan) -> None:
    """Apply the pass."""
    known: dict[Value, Linear] = {}
    convolved = {node.outputs[0].shape[1] for node in plan.nodes if node.kind in CONVOLUTIONS}
    for node in plan.nodes:
        found = _linear(node, known, convolved)
        if found is not None:
            known[node.outputs[0]] = found
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        found = known.get(node.outputs[0]) if len(node.outputs) == 1 else None
        if found is None or not found.joined or found.head is None:
            continue
        after = only_user(node.outputs[0])
        if after is None or not _goes_on(known.get(after.outputs[0]), found):
            replaced[node] = _joined(node, found, found.head)
    plan.replace(replaced)
    if replaced:
        plan.prune()


def _goes_on(after: Linear | None, found: Linear) -> bool:
    """Whether what reads a sum of branches is one itself, of the same."""
    return after is not None and after.joined and after.base is found.base


def _linear(node: Node, known: dict[Value, Linear], convolved: set[int]) -> Linear | None:
    """What a node makes, if that is linear, and may be a part of what is convolved."""
    if len(node.outputs) != 1 or node.outputs[0].type != np.float32 or node.epilogue:
        return None
    if node.kind in CONVOLUTIONS:
        return _convolution(node)
    if node.kind not in ("Add", "Subtract", "Multiply"):
        return None
    output = node.outputs[0]
    if len(output.shape) < 3 or output.shape[1] not in convolved:
        return None
    if getattr(node.op, "auto_broadcast", "") != "numpy":
        return None
    left, right = (_of(value, node, known) for value in node.inputs)
    if left is not None and right is not None:
        return _sum(node, left, right)
    (one, other) = (left, node.inputs[1]) if left is not None else (right, node.inputs[0])
    numbers = other.constant
    if one is None or numbers is None or numbers.dtype != np.float32:
        return None
    each = per_channel(numbers, output.shape)
    if each is None:
        return None
    if node.kind == "Multiply":
        return replace(one, scale=one.scale * each, bias=one.bias * each)
    if node.kind == "Add":
        return replace(one, bias=one.bias + each)
    if left is not None:
        return replace(one, bias=one.bias - each)
    return replace(one, scale=-one.scale, bias=each - one.bias)


def _convolution(node: Node) -> Linear | None:
    source, weights = node.inputs[0], node.inputs[1].constant
    plain = len(node.inputs) == 2 and node.padding is None and not node.prologue
    if weights is None or weights.dtype != np.float32 or not plain or node.integers is not None:
        return None
    if source.type != np.float32 or has_many_groups(node) or node.is_whole:
        return None
    op: Any = node.op
    grouped = node.kind == "GroupConvolution"
    groups = weights.shape[0] if grouped else 1
    flat = weights.reshape(-1, *weights.shape[2:]) if grouped else weights
    sizes = enumerate(source.shape[2:])
    before = tuple(
        number(op.pads(size, axis, reach(flat.shape[2 + axis], op.dilations[axis]))[0])
        for axis, size in sizes
    )
    ones, zeros = np.ones(len(flat)), np.zeros(len(flat))
    strides, dilations = tuple(op.strides), tuple(op.dilations)
    return Linear(source, flat, ones, zeros, groups, strides, dilations, before, node)


def _of(value: Value, reader: Node, known: dict[Value, Linear]) -> Linear | None:
    """A value as a reader may take it: as what it is made of, else as itself.

    What others read, too, is made anew where that is a scale by channel.
    """
    if value.is_fixed or value.is_outside or value.shape != reader.outputs[0].shape:
        return None
    made = known.get(value)
    if made is not None and (made.head is None or only_user(value) is reader):
        return made
    channels, axes = value.shape[1], len(value.shape) - 2
    one = np.ones((channels, 1, *[1] * axes), np.float32)
    ones, zeros = np.ones(channels), np.zeros(channels)
    return Linear(value, one, ones, zeros, channels, (1,) * axes, (1,) * axes, (0,) * axes)


def _sum(node: Node, left: Linear, right: Linear) -> Linear | None:
    """The sum or the difference of two, if there is one convolution that is as much."""
    if left.base is not right.base or left.strides != right.strides:
        return None
    if node.kind == "Multiply":
        return None
    if node.kind == "Subtract":
        right = replace(right, scale=-right.scale, bias=-right.bias)
    pairs = [(left, right), (right, left)]
    # Of two that might take the other in, the one that takes more products anyway.
    pairs.sort(key=lambda pair: -pair[0].weights[0].size)
    for whole, part in pairs:
        weights = _added(whole, part)
        if weights is not None:
            ones, bias = np.ones(len(weights)), whole.bias + part.bias
            return replace(whole, weights=weights, scale=ones, bias=bias, joined=True)
    return None


def _added(whole: Linear, part: Linear) -> Array | None:
    """Weights of one with those of another put where they belong; None where they do not fit."""
    outer, inner, *window = whole.weights.shape
    if whole.head is None or len(part.weights) != outer:
        return None
    places = []
    for axis, taps in enumerate(part.weights.shape[2:]):
        gap, count = whole.dilations[axis], window[axis]
        ways = [
            tap * part.dilations[axis] - part.before[axis] + whole.before[axis]
            for tap in range(taps)
        ]
        if any(way % gap or not 0 <= way // gap < count for way in ways):
            return None
        places.append([way // gap for way in ways])
    found = whole.weights * _by_row(whole.scale, whole.weights)
    added = part.weights * _by_row(part.scale, part.weights)
    if part.groups == whole.groups:
        found[np.ix_(range(outer), range(inner), *places)] += added
    elif part.groups == outer and outer == whole.groups * inner:
        # Each channel of it is made of the same channel alone.
        rows, *taps = np.ix_(range(outer), *places)
        found[(rows, rows % inner, *taps)] += added[:, 0]
    else:
        return None
    return found


def _by_row(scale: Array, weights: Array) -> Array:
    return scale.reshape(-1, *[1] * (weights.ndim - 1))


def _joined(node: Node, found: Linear, head: Node) -> list[Node]:
    """The one convolution, and its bias, in place of the last node of several."""
    (output,) = node.outputs
    shape = head.inputs[1].shape
    weights = (found.weights * _by_row(found.scale, found.weights)).astype(np.float32)
    made = Value(output.shape, output.type)
    node.detach()
    inputs = [found.base, constant(weights.reshape(shape))]
    bias = found.bias.reshape(1, -1, *[1] * (len(output.shape) - 2)).astype(np.float32)
    add = Op.registry["Add", 1].read({})
    return [
        Node(head.layer, head.op, inputs, [made]),
        Node(node.layer, add, [made, constant(bias)], [output]),
    ]
