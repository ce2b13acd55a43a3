"""Replace `Einsum(a, b)` by `MatMul(a', b')`, a' and b' with their axes in another order.

Axes that both have and the output, too, tell which matrices are multiplied; those that both have
and the output has not are summed over; others are the rows of a', or of b'.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant


def multiply_einsum(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: made for node in plan.nodes if (made := _multiplied(node))})


def _multiplied(node: Node) -> list[Node]:
    """What takes the place of a node; nothing where it is no such product."""
    op: Any = node.op
    if op.xml_type != "Einsum" or not op.is_standard or node.is_outside or len(node.inputs) != 2:
        return []
    (output,) = node.outputs
    if any(value.type != np.float32 or value.packed for value in (*node.inputs, output)):
        return []
    (one, other), goal = op.terms(2)
    operands = [(one, node.inputs[0]), (other, node.inputs[1])]
    sizes: dict[str, int] = {}
    for term, value in operands:
        if len(set(term)) != len(term) or len(term) != len(value.shape):
            return []  # a diagonal, or axes without a name
        for label, size in zip(term, value.shape, strict=True):
            if not label.isalpha() or sizes.setdefault(label, size) != size:
                return []
    shared = [label for label in goal if label in one and label in other]
    summed = [label for label in one if label in other and label not in goal]
    rows = [label for label in goal if label in one and label not in other]
    columns = [label for label in goal if label in other and label not in one]
    if not summed or len(shared) + len(summed) + len(rows) != len(one):
        return []
    if len(shared) + len(summed) + len(columns) != len(other):
        return []
    if goal == [*shared, *columns, *rows]:
        operands, rows, columns = operands[::-1], columns, rows
    made: list[Node] = []
    left, right = (
        _laid(node, value, term, (shared, free, summed), made)
        for (term, value), free in zip(operands, (rows, columns), strict=True)
    )
    product = Value((*left.shape[:-1], right.shape[-2]), output.type)
    matmul = Op.registry["MatMul", 1].read({"transpose_b": "true"})
    made.append(Node(node.layer, matmul, [left, right], [product]))
    found = [*shared, *rows, *columns]
    apart = _reshaped(node, product, [sizes[label] for label in found], made)
    _turned(node, apart, [found.index(label) for label in goal], made)
    node.detach()
    made[-1].set_output(output)
    return made


def _laid(
    node: Node, value: Value, term: Sequence[str], groups: Sequence[list[str]], made: list[Node]
) -> Value:
    """An operand as matrices: the axes of each group as one, the first only if it has any."""
    order = [term.index(label) for group in groups for label in group]
    turned = _turned(node, value, order, made)
    sizes = iter(turned.shape)
    shape = [prod(next(sizes) for _ in group) for group in groups]
    return _reshaped(node, turned, shape if groups[0] else shape[1:], made)


def _turned(node: Node, value: Value, order: list[int], made: list[Node]) -> Value:
    """A value with its axes in another order."""
    if order == sorted(order):
        return value
    if value.constant is not None:
        return constant(np.ascontiguousarray(value.constant.transpose(order)))
    found = Value(tuple(value.shape[axis] for axis in order), value.type)
    transpose = Op.registry["Transpose", 1].read({})
    made.append(Node(node.layer, transpose, [value, constant(np.array(order))], [found]))
    return found


def _reshaped(node: Node, value: Value, shape: list[int], made: list[Node]) -> Value:
    """A value of another shape."""
    if tuple(shape) == value.shape:
        return value
    if value.constant is not None:
        return constant(value.constant.reshape(shape))
    found = Value(tuple(shape), value.type)
    reshape = Op.registry["Reshape", 1].read({"special_zero": "false"})
    made.append(Node(node.layer, reshape, [value, constant(np.array(shape))], [found]))
    return found
