"""Replace `Einsum(a, b)` by `Transpose(Reshape(MatMul(a', b')))`, of stacks of matrices a' and b'.

Labels of both operands and of the output number the matrices, those of both operands alone are
summed up, those of one are its rows or columns. An equation of one operand that only changes the
order of its axes becomes a Transpose.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....layers.base import Op
from ....layers.matrix import ELLIPSIS, Roles, roles
from ..plan import Node, Plan, Value, constant, in_order, reshaping, transposing

#: Matrices of a stack whose product takes fewer steps than this are as soon done by Einsum.
FEW = 64


def multiply_einsums(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        op: Any = node.op
        if node.is_outside or not op.is_standard or op.xml_type != "Einsum":
            continue
        terms, output = _labels(op, node)
        if len(terms) == 1 and sorted(terms[0]) == sorted(output) and node.inputs[0].shape:
            order = [terms[0].index(label) for label in output]
            (given,), (made,) = node.inputs, node.outputs
            node.detach()
            replaced[node] = [transposing(node.layer, given, order, made)]
        elif len(terms) == 2 and (known := _roles(terms, output, node)) is not None:
            replaced[node] = _product(node, known, terms, output)
    plan.replace(replaced)


def _labels(op: Any, node: Node) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the output; axes of an ellipsis have their own."""
    terms, output = op.terms(len(node.inputs))
    longest = 0

    def spelled(term: list[str], count: int) -> list[str]:
        extra = [f"{ELLIPSIS}{place}" for place in range(count, 0, -1)]
        return [name for label in term for name in (extra if label == ELLIPSIS else [label])]

    found = []
    for term, value in zip(terms, node.inputs, strict=True):
        count = len(value.shape) - len(term) + 1 if ELLIPSIS in term else 0
        longest = max(longest, count)
        found.append(spelled(term, count))
    return found, spelled(output, longest)


class _Roles(NamedTuple):
    """What labels are for, and whether the second operand gives the rows."""

    labels: Roles
    swapped: bool


def _roles(terms: list[list[str]], output: list[str], node: Node) -> _Roles | None:
    """What each label is for; None where this is not a product of matrices."""
    swapped = node.inputs[0].is_fixed and not node.inputs[1].is_fixed
    a, b = terms[::-1] if swapped else terms
    left, right = node.inputs[::-1] if swapped else node.inputs
    if any(value.type != np.float32 or value.packed for value in (left, right, *node.outputs)):
        return None
    found = roles(a, b, output)
    if found is None or len(set(output)) < len(output):
        return None
    sizes = dict(zip(a, left.shape, strict=True))
    others = dict(zip(b, right.shape, strict=True))
    if any(sizes[label] != others[label] for label in a if label in others):
        return None  # an ellipsis broadcasts
    sizes |= others
    matrix = (*found.rows, *found.columns, *found.summed)
    if found.stacked and prod(sizes[label] for label in matrix) < FEW:
        return None
    return _Roles(found, swapped)


def _product(node: Node, given: _Roles, terms: list[list[str]], output: list[str]) -> list[Node]:
    """The nodes that take the place of one."""
    for_what, swapped = given
    made: list[Node] = []
    (result,) = node.outputs
    left, right = node.inputs[::-1] if swapped else node.inputs
    a, b = terms[::-1] if swapped else terms
    sizes = dict(zip((*a, *b), (*left.shape, *right.shape), strict=True))
    stack = tuple(sizes[label] for label in for_what.stacked)
    layer = node.layer
    node.detach()

    def matrices(
        value: Value, have: list[str], first: list[str], then: list[str]
    ) -> tuple[Value, bool]:
        """An operand as a stack of matrices, and whether these are transposed."""
        natural = [*for_what.stacked, *first, *then]
        turned = have == [*for_what.stacked, *then, *first] and have != natural
        wanted = have if turned else natural
        if turned:
            first, then = then, first
        order = [have.index(label) for label in wanted]
        shape = (*stack, prod(sizes[name] for name in first), prod(sizes[name] for name in then))
        if value.constant is not None:
            array = value.constant.transpose(order).reshape(shape)
            return constant(array), turned
        if order != sorted(order):
            moved = in_order(value, order)
            made.append(transposing(layer, value, order, moved))
            value = moved
        if value.shape != shape:
            shaped = Value(shape, value.type)
            made.append(reshaping(layer, value, shaped))
            value = shaped
        return value, turned

    one, one_turned = matrices(left, a, for_what.rows, for_what.summed)
    other, other_turned = matrices(right, b, for_what.summed, for_what.columns)
    op = Op.registry["MatMul", 1].read(
        {"transpose_a": str(one_turned).lower(), "transpose_b": str(other_turned).lower()}
    )
    found = [*for_what.stacked, *for_what.rows, *for_what.columns]
    shape = (*stack, one.shape[-1 if one_turned else -2], other.shape[-2 if other_turned else -1])
    whole = tuple(sizes[label] for label in found)
    product = result if found == output and shape == result.shape else Value(shape, result.type)
    made.append(Node(layer, op, [one, other], [product]))
    if product is result:
        return made
    apart = product
    if found != output and shape != whole:
        apart = Value(whole, result.type)
        made.append(reshaping(layer, product, apart))
    if found == output:
        made.append(reshaping(layer, apart, result))
    else:
        order = [found.index(label) for label in output]
        made.append(transposing(layer, apart, order, result))
    return made
