"""Replace `MatMul(SoftMax(MatMul(q, k') * s + m), v)` by attention: scores never leave the cache.

The scale s is a number that is known, the mask m whatever can be added; both may be missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant, only_user

#: With fewer queries to each head nothing is gained.
FEW = 16
#: Scales within these go with the queries as well as with the scores: neither leaves float32.
SMALL, LARGE = 1e-6, 1e6


class _Chain(NamedTuple):
    """What becomes of scores."""

    scale: float
    mask: Value | None
    between: list[Node]
    #: The product with the values.
    last: Node


def join_attention(plan: Plan) -> None:
    """Apply the pass."""
    joined: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        chain = None if node in joined or not _is_product(node) else _chain(node)
        if chain is None:
            continue
        last, operands = chain.last, (*node.inputs, chain.last.inputs[1])
        head, tail = (_turns(one) for one in (node, last))
        sides: list[Node] = []
        given = [
            _turned(value, last, sides) if is_turned else value
            for value, is_turned in zip(operands, (head[0], not head[1], tail[1]), strict=True)
        ]
        # No mask is one that adds nothing.
        given += [constant(np.zeros((1, 1), np.float32)) if chain.mask is None else chain.mask]
        given += [constant(np.full(1, chain.scale, np.float32))]
        former, outputs = [node, *chain.between, last], last.outputs
        for one in former:
            one.detach()
        op = Op.registry["ScaledDotProductAttention", 13].read({"causal": "false"})
        joined |= {one: [] for one in former}
        joined[last] = [*sides, Node(last.layer, op, given, outputs)]
    plan.replace(joined)


def _is_product(node: Node) -> bool:
    """Whether a node multiplies stacks of matrices that are both computed."""
    return (
        node.kind == "MatMul"
        and all(v.constant is None and len(v.shape) >= 3 for v in node.inputs)
        and all(v.type == np.float32 for v in (*node.inputs, *node.outputs))
    )


def _turns(product: Node) -> tuple[bool, bool]:
    """Which operands of a product are transposed."""
    op: Any = product.op
    return op.transpose_a, op.transpose_b


def _chain(head: Node) -> _Chain | None:
    """What leads from the product with the keys to that with the values, if all of it fits."""
    scale, mask, between = 1.0, None, list[Node]()
    scores = head.outputs[0]
    if scores.shape[-2] < FEW:
        return None
    while not between or between[-1].kind != "SoftMax":
        node = only_user(scores)
        if node is None or node.is_outside or node.outputs[0].shape != scores.shape:
            return None
        op: Any = node.op
        if node.kind == "SoftMax":
            if op.axis % len(scores.shape) != len(scores.shape) - 1:
                return None
        elif mask is not None or not _is_binary(node):
            return None
        elif node.kind == "Add" and all(value.type == np.float32 for value in node.inputs):
            (mask,) = (value for value in node.inputs if value is not scores)
        else:
            factor = _factor(node, scores)
            if factor is None:
                return None
            scale *= factor
        between.append(node)
        scores = node.outputs[0]
    last = only_user(scores)
    if last is None or not _is_product(last) or last.inputs[0] is not scores or _turns(last)[0]:
        return None
    if scores.shape[:-1] != last.outputs[0].shape[:-1] or not SMALL <= abs(scale) <= LARGE:
        return None
    return _Chain(scale, mask, between, last)


def _is_binary(node: Node) -> bool:
    """Whether a node takes two inputs that broadcast as those of NumPy do."""
    return len(node.inputs) == 2 and getattr(node.op, "auto_broadcast", "") == "numpy"


def _factor(node: Node, scores: Value) -> float | None:
    """The number by which a node multiplies scores."""
    (other,) = (value for value in node.inputs if value is not scores)
    if other.constant is None or other.constant.size != 1:
        return None
    number = float(other.constant.reshape(()))
    if node.kind == "Multiply":
        return number
    return 1 / number if node.kind == "Divide" and other is node.inputs[1] and number else None


def _turned(value: Value, reader: Node, sides: list[Node]) -> Value:
    """A value with its last two axes exchanged: a view, wherever it can be one."""
    order = [*range(len(value.shape))]
    order[-2:] = order[:-3:-1]
    turned = Value(tuple(value.shape[axis] for axis in order), value.type)
    op = Op.registry["Transpose", 1].read({})
    sides.append(Node(reader.layer, op, [value, constant(np.asarray(order))], [turned]))
    return turned
