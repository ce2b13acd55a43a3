"""Replace `Conv1x1(V x + b)`, W its weights, by `(W V) x + W b`, where V x is a MatMul of rows.

Rows become an image in between, which changes nothing: `(V x + b)` is a number for each channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....schemas import Array
from ..plan import Node, Plan, Value, constant, is_numpy, multiplies_channels, only_user


def join_products(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: [] for node in plan.nodes if _joins(node)})


def _joins(node: Node) -> bool:
    """Let the product before a convolution do the work of both, if it can."""
    if not multiplies_channels(node):
        return False
    reshape = _before(node, "Reshape")
    turn = _before(reshape, "Transpose")
    if reshape is None or turn is None or not _makes_images(turn, reshape):
        return False
    product = add = _before(turn, "Add")
    bias = None
    if add is not None:
        bias = add.inputs[1].constant
        product = _before(add, "MatMul")
        if bias is None or bias.shape[-1:] != (bias.size,) or bias.size not in (1, _width(add)):
            return False
        if not is_numpy(add) or add.inputs[0].shape != add.outputs[0].shape:
            return False
    else:
        product = _before(turn, "MatMul")
    if product is None or product.integers is not None:
        return False
    weights = product.inputs[1].constant
    if weights is None or weights.ndim != 2 or weights.dtype != np.float32:
        return False
    op: Any = product.op
    kernel = node.inputs[1].constant
    assert kernel is not None
    after = kernel[:, :, 0, 0].astype(np.float64)
    outputs, channels = after.shape
    inner = weights.size // channels
    if outputs * inner > channels * (outputs + inner):
        return False
    joined = after @ (weights if op.transpose_b else weights.T)
    rows = turn.inputs[0].shape[:-1]
    product.replace_input(1, _narrowed(joined if op.transpose_b else joined.T))
    product.set_output(Value((*rows, outputs), node.outputs[0].type))
    last = product
    if add is not None and bias is not None:
        shift = after @ np.broadcast_to(bias.ravel(), (channels,))
        add.set_inputs([product.outputs[0], _narrowed(shift)])
        add.set_output(Value((*rows, outputs), node.outputs[0].type))
        last = add
    turn.replace_input(0, last.outputs[0])
    turn.set_output(Value((rows[0], outputs, rows[1]), node.outputs[0].type))
    (output,) = node.outputs
    reshape.set_inputs([turn.outputs[0], constant(np.array(output.shape, np.int64))])
    node.detach()
    reshape.set_output(output)
    return True


def _before(node: Node | None, kind: str) -> Node | None:
    """The node of a type that makes the first input of another, and of no other."""
    if node is None:
        return None
    found = node.inputs[0].producer
    if found is None or found.kind != kind or only_user(node.inputs[0]) is not node:
        return None
    return None if found.epilogue or found.prologue or found.wanted is not None else found


def _makes_images(turn: Node, reshape: Node) -> bool:
    """Whether rows of channels become images with as many channels."""
    order, shape = turn.inputs[1].constant, reshape.outputs[0].shape
    between = turn.outputs[0].shape
    if order is None or order.tolist() != [0, 2, 1] or reshape.inputs[1].constant is None:
        return False
    return len(shape) == 4 and shape[:2] == between[:2]


def _width(node: Node) -> int:
    return node.outputs[0].shape[-1]


def _narrowed(array: Array) -> Value:
    return constant(np.ascontiguousarray(array, np.float32))
