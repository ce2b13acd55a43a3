"""Replace `f(Reshape(x))` by `Reshape(f(x))`, where f changes each number or channel by itself.

Then f may be an epilogue of what makes x. So may the sum of the rows of a product and of others,
which are reshaped for it. A reshape back to an earlier shape is left out. All the same for
Transpose, Squeeze and Unsqueeze, where it is.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....schemas import Array
from ..plan import (
    BINARY,
    CUTS,
    HEADS,
    UNARY,
    Node,
    Plan,
    Value,
    is_numpy,
    only_moves,
    only_user,
    part_of,
    reshaping,
)

#: Where channels were cut into parts, numbers for these are repeated: at most to so many.
CHANNELS = 1 << 14
#: Longer rows of moves than any network has are not gone through again and again.
ROW = 16


def change_first(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: [*_change(node), node] for node in plan.nodes})
    plan.sort()
    plan.replace({node: [] for node in plan.nodes if _leave_out(node)})


def _change(node: Node) -> list[Node]:
    """Let a node change numbers before they are moved, where it can; what has to come before."""
    if node.kind not in UNARY | BINARY or not is_numpy(node) or node.prologue or node.epilogue:
        return []
    for value in node.inputs:
        moves = _moves(value)
        if not moves or node.outputs[0].shape != value.shape:
            continue
        others = {other: _beside(node, other, moves) for other in node.inputs if other != value}
        if None not in others.values():
            return _go_first(node, moves, {x: new for x, new in others.items() if new is not None})
    return []


def _moves(value: Value) -> list[Node]:
    """What only moves numbers on their way from a node that could change them to one that does."""
    found: list[Node] = []
    while value.producer is not None and only_moves(value.producer):
        if only_user(value) is None or len(found) == ROW:
            return []
        found.insert(0, value.producer)
        value = found[0].inputs[0]
    head = value.producer
    if head is None or head.kind not in HEADS or len(head.outputs) != 1:
        return []
    if only_user(value) is None or value.type != np.float32 or prod(value.shape) == 0:
        return []
    return found


def _beside(node: Node, other: Value, moves: list[Node]) -> Value | None:
    """What a node takes beside numbers that are not moved yet; None where that cannot be."""
    begin, end = moves[0].inputs[0], moves[-1].outputs[0]
    if other.constant is not None and other.constant.size == 1:
        return other if len(other.shape) <= len(begin.shape) else None
    if node.kind in UNARY:
        return None
    if other.constant is not None:
        each = _of_channels(other.constant, moves)
        return (
            None if each is None else part_of(other, ("before", each.shape, each.tobytes()), each)
        )
    rows = begin.producer is not None and begin.producer.kind == "MatMul"
    if not rows or other.is_fixed or other.is_outside or other.type != begin.type:
        return None
    if other.shape != end.shape or any(move.kind not in CUTS for move in moves):
        return None
    if other.shape == begin.shape:
        return other
    found = Value(begin.shape, begin.type)
    reshaping(node.layer, other, found)
    return found


def _of_channels(array: Array, moves: list[Node]) -> Array | None:
    """What a constant is before moves; None where it varies along more than one axis then."""
    array = array.reshape((1,) * (len(moves[-1].outputs[0].shape) - array.ndim) + array.shape)
    for move in reversed(moves):
        if move.kind in CUTS:
            found = _uncut(array, move.outputs[0].shape, move.inputs[0].shape)
            if found is None:
                return None
            array = found
        else:
            order = move.inputs[1].constant
            assert order is not None
            array = array.transpose(np.argsort(order.ravel() % array.ndim) if order.size else None)
    return array if sum(size != 1 for size in array.shape) <= 1 else None


def _uncut(array: Array, shape: tuple[int, ...], former: tuple[int, ...]) -> Array | None:
    """What an array beside one of a shape is beside the same in the shape that it had before."""
    varies = [axis for axis, size in enumerate(array.shape) if size != 1]
    first, last = min(varies, default=0), max(varies, default=-1) + 1
    for axis, size in enumerate(former):
        start, run = prod(former[:axis]), [1] * len(former)
        begin = next((i for i in range(first, -1, -1) if prod(shape[:i]) == start), None)
        if begin is None:
            continue
        end = next((i for i in range(last, len(shape) + 1) if prod(shape[begin:i]) == size), None)
        if end is not None and size <= CHANNELS:
            run[axis] = size
            whole = np.broadcast_to(array.reshape(array.shape[begin:end]), shape[begin:end])
            return whole.reshape(run)
    return None


def _go_first(node: Node, moves: list[Node], others: dict[Value, Value]) -> list[Node]:
    """Put a node before moves; the nodes that this takes."""
    begin, output = moves[0].inputs[0], node.outputs[0]
    changed = Value(begin.shape, begin.type)
    new = [value.producer for other, value in others.items() if value is not other]
    node.set_inputs([others.get(value, begin) for value in node.inputs])
    node.set_output(changed)
    moves[0].replace_input(0, changed)
    moves[-1].set_output(output)
    return [maker for maker in new if maker is not None]


def _leave_out(node: Node) -> bool:
    """Let who reads a reshape read an earlier value of the same shape, where there is one."""
    if node.kind not in CUTS or not only_moves(node):
        return False
    made, found = node.outputs[0], _earlier(node.inputs[0], node.outputs[0].shape)
    if found is None:
        return False
    if made.is_output or any(user.inputs.count(made) != n for user, n in made.users.items()):
        return False
    for user in list(made.users):
        user.set_inputs([found if value is made else value for value in user.inputs])
    node.detach()
    return True


def _earlier(value: Value, shape: tuple[int, ...]) -> Value | None:
    """What has a shape, among a value and those that it was reshaped from."""
    for _ in range(ROW):
        if value.shape == shape:
            return value
        before = value.producer
        if before is None or before.kind not in CUTS or not only_moves(before):
            break
        value = before.inputs[0]
    return None
