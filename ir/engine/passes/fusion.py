"""What is computed in one go, and how values are laid out.

A node takes over the elementwise nodes that follow it: they are done to each block of its
output while that is in cache. Scales and shifts after a convolution go into its weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ....schemas.shapes import number
from ..plan.nodes import (
    BINARY,
    CONVOLUTIONS,
    POOLINGS,
    SHUFFLE,
    UNARY,
    Node,
    Plan,
    Value,
    hand_over,
    only_user,
)
from .affine import (
    clip_before,
    constant,
    fold_affine,
    is_depthwise,
    pads_nothing,
    pass_biases,
    pass_offsets,
    pointwise,
    steps_of,
)

#: The larger their input, the larger (or the same) their output.
GROWING = frozenset({"ReLU", "Clamp"})
TRANSPOSED = frozenset({"ConvolutionBackpropData", "GroupConvolutionBackpropData"})
#: Nodes that may have an epilogue.
HEADS = CONVOLUTIONS | TRANSPOSED | POOLINGS | BINARY | UNARY | {"MatMul"}
#: Channels that an image as it comes in may have to stay as it is.
FEW = 4
#: Nodes that work on channels kept last; their neighbours follow.
SPATIAL = CONVOLUTIONS | TRANSPOSED | POOLINGS | {"LRN"}
#: Nodes that do as their neighbours do.
EITHER_WAY = BINARY | UNARY | SPATIAL | {"Concat", "Interpolate", "Pad", SHUFFLE}


def fuse(plan: Plan) -> None:
    """Join nodes, fold what follows convolutions into their weights, choose layouts."""
    split_batch_norm(plan)
    join_shuffles(plan)
    absorb(plan)
    for node in plan.nodes:
        if node.kind in CONVOLUTIONS:
            fold_affine(node)
    pass_offsets(plan)
    pass_biases(plan)
    average_first(plan)
    rectify_late(plan)
    clip_before(plan)
    take_prologues(plan)
    shuffle_late(plan)
    choose_layouts(plan)


def split_batch_norm(plan: Plan) -> None:
    """Make a batch normalisation the multiplication and the addition that it is."""
    multiply, add = Op.registry["Multiply", 1].read({}), Op.registry["Add", 1].read({})
    nodes: list[Node] = []
    for node in plan.nodes:
        nodes.append(node)
        if node.kind != "BatchNormInference":
            continue
        named = dict(zip(node.op.arity()[0], node.inputs, strict=True))
        data = named.pop("data")
        parts = {name: value.constant for name, value in named.items()}
        if any(part is None for part in parts.values()):
            continue
        gamma, beta, mean, variance = (
            np.asarray(parts[name], np.float64) for name in ("gamma", "beta", "mean", "variance")
        )
        scale = gamma / np.sqrt(variance + node.op.epsilon)  # type: ignore[attr-defined]  # BatchNormInference has it
        (output,) = node.outputs
        each = (1, -1, *[1] * (len(output.shape) - 2))
        factor = constant(scale.reshape(each).astype(output.type))
        term = constant((beta - mean * scale).reshape(each).astype(output.type))
        for value in node.inputs:
            value.users.pop(node, None)
        scaled = Value(output.shape, output.type)
        nodes[-1:] = [
            Node(node.layer, multiply, [data, factor], [scaled]),
            Node(node.layer, add, [scaled, term], [output]),
        ]
    plan.nodes = nodes


def absorb(plan: Plan) -> None:
    """Let nodes take over the elementwise nodes that follow them."""
    kept: list[Node] = []
    gone: set[int] = set()
    for node in plan.nodes:
        if id(node) in gone:
            continue
        while node.kind in HEADS and len(node.outputs) == 1 and node.outputs[0].type == np.float32:
            follower = only_user(node.outputs[0])
            if follower is None or not (
                _joins(node.outputs[0], follower) or _shuffles(node, follower)
            ):
                break
            before = node.outputs[0]
            others = [None if value is before else value for value in follower.inputs]
            node.epilogue.append((follower.op, others))
            hand_over(others, follower, node)
            node.outputs = follower.outputs
            node.outputs[0].producer = node
            gone.add(id(follower))
            if follower.kind == SHUFFLE:
                break
        kept.append(node)
    plan.nodes = in_order(kept)


def _joins(value: Value, follower: Node) -> bool:
    """Whether a node is elementwise on a value, and gives the same shape."""
    if len(follower.outputs) != 1 or follower.outputs[0].shape != value.shape:
        return False
    if follower.outputs[0].type != value.type:
        return False
    if follower.kind in UNARY:
        first, *rest = follower.inputs
        return first is value and all(other.constant is not None for other in rest)
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


def join_shuffles(plan: Plan) -> None:
    """Make a ShuffleChannels of Reshape, Transpose, Reshape that are one."""
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
        for value in (*first.inputs, *node.inputs, *last.inputs):
            for user in (first, node, last):
                value.users.pop(user, None)
        shuffle = Node(last.layer, op, first.inputs[:1], last.outputs)
        joined |= {first: [], node: [], last: [shuffle]}
    plan.nodes = [found for node in plan.nodes for found in joined.get(node, [node])]


def average_first(plan: Plan) -> None:
    """Let an average that follows a 1x1 convolution go before it: it leaves fewer places."""
    swapped = False
    for node in plan.nodes:
        op: Any = node.op
        if node.kind != "AvgPool":
            continue
        before = node.inputs[0].producer
        if before is None or not pointwise(before) or before.epilogue:
            continue
        if only_user(node.inputs[0]) is not node or min(op.strides) < 2:
            continue
        source, output = before.inputs[0], node.outputs[0]
        if not pads_nothing(node):
            continue
        pooled = Value((*source.shape[:2], *output.shape[2:]), source.type)
        node.inputs, node.outputs = [source], [pooled]
        before.inputs[0], before.outputs = pooled, [output]
        hand_over([source], before, node)
        pooled.users[before], pooled.producer, output.producer = 1, node, before
        before.epilogue, node.epilogue = node.epilogue, []
        for _, others in before.epilogue:
            hand_over(others, node, before)
        swapped = True
    if swapped:
        plan.nodes = in_order(plan.nodes)


def rectify_late(plan: Plan) -> None:
    """Let the largest be found before what grows with its input is done: it leaves fewer places.

    An image as it comes in is convolved by plain products, whose bias may come later, too.
    """
    for node in plan.nodes:
        before = node.inputs[0].producer if node.kind == "MaxPool" else None
        if before is None or before.kind not in CONVOLUTIONS or not _sees_the_image(node):
            continue
        if only_user(node.inputs[0]) is not node or any(
            value.users or value.is_output for value in node.outputs[1:]
        ):
            continue
        while before.epilogue and before.epilogue[-1][0].xml_type in GROWING:
            node.epilogue.insert(0, before.epilogue.pop())
        bias = before.inputs[2].constant if len(before.inputs) > 2 else None
        if bias is not None and not before.epilogue and before.inputs[0].shape[1] <= FEW:
            add = Op.registry["Add", 1].read({})
            node.epilogue.insert(0, (add, [None, constant(bias.reshape(1, -1, 1, 1))]))
            before.inputs = before.inputs[:2]


def _sees_the_image(node: Node) -> bool:
    """Whether each window of a pooling over two axes holds some of the image."""
    op: Any = node.op
    shape, stops = node.inputs[0].shape, node.outputs[0].shape[2:]
    if len(shape) != 4 or node.inputs[0].type != np.float32 or any(g != 1 for g in op.gaps()):
        return False
    begins = [
        number(op.pads(size, axis, op.kernel[axis])[0]) for axis, size in enumerate(shape[2:])
    ]
    return all(
        begin < window and (stop - 1) * stride - begin < size
        for begin, window, stop, stride, size in zip(
            begins, op.kernel, stops, op.strides, shape[2:], strict=True
        )
    )


def take_prologues(plan: Plan) -> None:
    """Let a 1x1 convolution do what is done element by element to its input, block by block."""
    taken: set[Node] = set()
    for node in plan.nodes:
        if not pointwise(node):
            continue
        before = node.inputs[0].producer
        if before is None or only_user(node.inputs[0]) is not node:
            continue
        steps = steps_of(before)
        if not steps or before.inputs[0].shape != before.outputs[0].shape:
            continue
        node.prologue = steps
        source = before.inputs[0]
        node.inputs[0] = source
        hand_over([source], before, node)
        taken.add(before)
    plan.nodes = [node for node in plan.nodes if node not in taken]


def shuffle_late(plan: Plan) -> None:
    """Let channels be shuffled where that takes the least copies.

    A depthwise convolution takes channels in any order. What it makes is shuffled instead where
    it leaves fewer places, or where runs of channels may stay together, since a convolution of
    groups follows and takes those of a group in any order; else it shuffles what it pads.
    """
    for node in plan.nodes:
        if not node.epilogue or node.epilogue[-1][0].xml_type != SHUFFLE:
            continue
        after = only_user(node.outputs[0])
        if after is None or not is_depthwise(after) or node.outputs[0].type != np.float32:
            continue
        shuffle, _ = node.epilogue[-1]
        unit = 1 if after.epilogue else _stays_together(shuffle, after)
        op: Any = after.op
        if unit == 1 and (after.epilogue or max(op.strides) == 1):
            after.prologue = [node.epilogue.pop()]
            continue
        node.epilogue.pop()
        after.epilogue.append((shuffle, [None, constant(np.array(unit))]))
        groups = shuffle.group  # type: ignore[attr-defined]  # ShuffleChannels has it
        places = np.arange(node.outputs[0].shape[1]).reshape(-1, groups).T.ravel()
        after.inputs[1:] = [constant(_known(value)[places]) for value in after.inputs[1:]]
        after.padding = None if after.padding is None else after.padding[places]
        if unit > 1:
            then = only_user(after.outputs[0])
            assert then is not None
            places = np.arange(groups * unit).reshape(unit, groups).T.ravel()
            then.inputs[1] = constant(_known(then.inputs[1])[:, :, places])


def _stays_together(shuffle: Op, node: Node) -> int:
    """How many channels stay side by side before the convolution of groups that follows."""
    then = only_user(node.outputs[0])
    if then is None or then.kind != "GroupConvolution" or then.inputs[0] is not node.outputs[0]:
        return 1
    weights = then.inputs[1].constant
    groups = shuffle.group  # type: ignore[attr-defined]  # ShuffleChannels has it
    if weights is None or weights.shape[2] % groups:
        return 1
    return int(weights.shape[2] // groups)


def _known(value: Value) -> Array:
    """The array of a constant."""
    assert value.constant is not None
    return value.constant


def in_order(nodes: list[Node]) -> list[Node]:
    """The nodes so that each comes after what it needs, otherwise as they were."""
    producers = {id(value): node for node in nodes for value in node.outputs}
    done: set[int] = set()
    order: list[Node] = []
    for root in nodes:
        stack = [root]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            waits = [
                producers[id(value)]
                for value in needed(node)
                if id(value) in producers and id(producers[id(value)]) not in done
            ]
            if waits:
                stack.extend(waits)
                continue
            done.add(id(node))
            order.append(node)
            stack.pop()
    return order


def needed(node: Node) -> list[Value]:
    """Every value a node reads, those of its epilogue among them."""
    extra = [value for _, others in node.epilogue for value in others if value is not None]
    return [*node.inputs, *extra]


def colours(value: Value) -> bool:
    """Whether a value is an image as it comes in, with few channels, for convolutions alone.

    They put its channels side by side when they pad it, sooner than a copy of all of it.
    """
    return (
        value.producer is None
        and value.constant is None
        and len(value.shape) == 4
        and value.shape[1] <= FEW
        and all(node.kind == "Convolution" and not node.prologue for node in value.users)
    )


def choose_layouts(plan: Plan) -> None:
    """Keep channels last where convolutions and poolings work, and around them.

    Where nothing but poolings would want it, it is not worth the copies at both ends.
    """
    if not any(node.kind in SPATIAL - POOLINGS for node in plan.nodes):
        return
    spread: list[Value] = []

    def mark(value: Value) -> None:
        if value.last or value.constant is not None or colours(value):
            return
        if len(value.shape) in (3, 4, 5):
            value.last = True
            spread.append(value)

    for node in plan.nodes:
        if node.kind in SPATIAL:
            for value in (node.inputs[0], *node.outputs):
                mark(value)
    while spread:
        value = spread.pop()
        for node in [*value.users, *([value.producer] if value.producer else [])]:
            if node.kind in EITHER_WAY or node.epilogue:
                for other in (*needed(node), *node.outputs):
                    if len(other.shape) == len(value.shape):
                        mark(other)
