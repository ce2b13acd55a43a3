"""Keep (N, C, H, W) as (N, H, W, C) in memory where convolutions and poolings work.

Their neighbours follow, so that nothing is turned between them. Where nothing but poolings would
want it, it is not worth the copies at both ends. What is enlarged for others is turned before.
"""

from __future__ import annotations

from math import prod

from ....layers.base import Op
from ..plan import EITHER_WAY, POOLINGS, SPATIAL, Node, Plan, Value, is_incoming_image

#: What makes rows, wherever who takes them wants channels.
BY_ROWS = frozenset({"MatMul", "ScaledDotProductAttention"})


def choose_layouts(plan: Plan) -> None:
    """Apply the pass."""
    if not any(node.kind in SPATIAL - POOLINGS for node in plan.nodes):
        return
    spread: list[Value] = []

    def mark(value: Value) -> None:
        if value.last or value.constant is not None or is_incoming_image(value):
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
            if node.kind in EITHER_WAY or (node.kind in SPATIAL and node.epilogue):
                for other in (*node.reads, *node.outputs):
                    if len(other.shape) == len(value.shape):
                        mark(other)
    plan.replace({node: _turned_before(node) for node in plan.nodes if _enlarges_for_others(node)})
    plan.replace({node: _turned_after(node) for node in plan.nodes if _makes_rows(node)})


def _enlarges_for_others(node: Node) -> bool:
    """Whether a node makes images larger, for nobody who wants their channels last."""
    if node.kind != "Interpolate" or not (node.inputs[0].last and node.outputs[0].last):
        return False
    if prod(node.outputs[0].shape) <= prod(node.inputs[0].shape):
        return False
    return not any(
        user.kind in EITHER_WAY or node.outputs[0] not in user.inputs
        for user in node.outputs[0].users
    )


def _makes_rows(node: Node) -> bool:
    """Whether others want turned what is made, or followed, row by row."""
    if node.kind in EITHER_WAY | SPATIAL or node.is_outside:
        return False
    return node.outputs[0].last and (node.kind in BY_ROWS or bool(node.epilogue))


def _turned_after(node: Node) -> list[Node]:
    """The node on rows as the model has them, and after it what puts channels last."""
    (output,) = node.outputs
    made = Value(output.shape, output.type)
    made.grid = output.grid
    node.set_output(made)
    return [node, _turning(node, made, output)]


def _turned_before(node: Node) -> list[Node]:
    """The node on channels where the model has them, and before it what puts them there."""
    source = node.inputs[0]
    turned = Value(source.shape, source.type)
    node.replace_input(0, turned)
    node.outputs[0].last = False
    return [_turning(node, source, turned), node]


def _turning(node: Node, value: Value, turned: Value) -> Node:
    """What copies a value to where its channels lie otherwise, for the sake of a node."""
    return Node(node.layer, Op.registry["Identity", 16].read({}), [value], [turned])
