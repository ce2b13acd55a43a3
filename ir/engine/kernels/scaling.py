"""Weights that are scaled when they are laid out: passes over rows less.

``W (g * x + b)`` is ``(W g) x + W b``, g and b being what follows a norm, and ``s * (W x)``
is ``(s W) x``.

Rows whose mean was taken away add up to zero. So the same number may be added to all weights that
they meet for one sum, and changes nothing; and where 1 is added to all of such a row, each sum
becomes larger by the sum of its weights. The number is chosen so that this sum is the bias: then
a pass over the short rows takes the place of one over each of the products, which are longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import Node, Plan, Scales, Value, constant, scale_and_shift
from ..workers import single_blas
from .blocks import are_moderate
from .in_use import found_once
from .matrices import takes_scales
from .rows import joined_axes

#: What makes rows standard, before each number has its own scale and shift.
NORMS = ("MVN", "NormalizeL2")
#: So many weights are summed up in one go: of longer sums of float32 more digits are lost.
TOGETHER = 32


def scale_weights(plan: Plan) -> None:
    """Put scales and shifts before and after products into weights that are copied anyway."""
    products = {node for node in plan.nodes if takes_scales(node)}
    for node in products:
        scale, shift, count = _of(node)
        if np.any(scale != 1) and are_moderate(scale, shift):
            node.scales = Scales(along=scale.astype(np.float32))
            _begin(node, shift, count)
    with single_blas:  # the same numbers, whatever the number of threads
        for node in plan.nodes:
            if node.kind in NORMS and (node.epilogue or has_no_mean(node)):
                _hand_on(node, products)


def has_no_mean(norm: Node) -> bool:
    """Whether the numbers of each row add up to zero, and are about as large as one."""
    op: Any = norm.op
    last = len(norm.outputs[0].shape) - 1
    return norm.kind == "MVN" and op.normalize_variance and joined_axes(norm) == (last,)


def _hand_on(norm: Node, products: set[Node]) -> None:
    """Let products take a norm's scale and shift, where these are all that follows it."""
    scale, shift, count = _of(norm)
    if count < len(norm.epilogue) or not are_moderate(scale, shift):
        return
    shifts = bool(np.any(shift != 0))
    readers = {node: _bias(node) for node in _readers(norm.outputs[0], products)}
    biased = [node for node, (bias, _) in readers.items() if shifts or np.any(bias != 0)]
    longer = sum(node.outputs[0].shape[-1] for node in biased) > scale.size
    found: list[tuple[Node, Array, Array]] = []
    raises = longer and has_no_mean(norm)
    for node, (bias, steps) in readers.items():
        raised = np.zeros(1)
        if raises or shifts:
            sums = _sums(np.stack([scale, shift]).astype(np.float32), node)
            if node.scales.along is not None:
                sums = sums * node.scales.along
            bias = bias + sums[1] if shifts else bias  # weights may be endless
            raised = (bias - sums[0]) / scale.size
        node.set_epilogue(node.epilogue[steps:])
        found.append((node, bias, raised))
    raises = raises and are_moderate(*(raised for _, _, raised in found))
    down = scale.astype(np.float32) if np.any(scale != 1) else None
    for node, bias, raised in found:
        more = raised.astype(np.float32) if raises else None
        node.scales = Scales(down, node.scales.along, more)
        _begin(node, np.zeros(1) if raises else bias, 0)
    if found:
        norm.set_epilogue([])
        if raises:
            _begin(norm, np.ones(scale.size), 0)


def _bias(product: Node) -> tuple[Array, int]:
    """The row that is added to a product first, and in how many steps."""
    scale, shift, count = _of(product)
    # What is too large for weights stays, after what is added here.
    return (np.zeros(1), 0) if np.any(scale != 1) else (shift, count)


def _matrix(product: Node) -> Array:
    """The constant matrix of a product as it multiplies rows."""
    weights = product.inputs[1]
    matrix = weights.array.reshape(weights.shape[-2:])
    return matrix.T if product.op.transpose_b else matrix  # type: ignore[attr-defined]  # products have it


def _sums(rows: Array, product: Node) -> Array:
    """Products of rows with a product's matrix; plans for other shapes ask for the same."""
    source, matrix = product.inputs[1].source, _matrix(product)
    assert source is not None
    how = "sums", matrix.shape, matrix.strides, rows.tobytes()
    return found_once(source, how, lambda: _multiplied(rows, matrix))


def _multiplied(rows: Array, matrix: Array) -> Array:
    """Products of rows with a matrix, with more digits than float32 keeps of long sums."""
    with np.errstate(all="ignore"):
        if matrix.T.flags.c_contiguous:  # BLAS adds up several sums side by side
            return np.stack([matrix.T @ row for row in rows]).astype(np.float64)
        whole = len(matrix) - len(matrix) % TOGETHER
        cut = rows[:, :whole].reshape(len(rows), -1, TOGETHER).swapaxes(0, 1)
        found = np.matmul(cut, matrix[:whole].reshape(-1, TOGETHER, matrix.shape[1]))
        rest = rows[:, whole:] @ matrix[whole:]
        return found.sum(axis=0, dtype=np.float64) + rest


def _readers(value: Value, products: set[Node]) -> list[Node]:
    """The products that take rows of a value, be they moved before; none if others take them."""
    if value.is_output or value.last or value.type != np.float32:
        return []
    found: list[Node] = []
    for node, times in value.users.items():
        if times > 1 or node.inputs[0] is not value:
            return []
        if node in products and not node.op.transpose_a:  # type: ignore[attr-defined]  # products have it
            found.append(node)
            continue
        more = _readers(node.outputs[0], products) if _moves_rows(node) else []
        if not more:
            return []
        found += more
    return found


def _moves_rows(node: Node) -> bool:
    """Whether a node leaves rows as they are, and each where another was."""
    if node.kind not in ("Reshape", "Roll", "Transpose") or node.epilogue or node.prologue:
        return False
    value, made, last = node.inputs[0], node.outputs[0], len(node.outputs[0].shape) - 1
    if last < 0 or made.shape[-1:] != value.shape[-1:]:
        return False
    if node.kind == "Reshape":
        return True
    told = node.inputs[-1].constant  # the order of axes, or those along which rows are moved
    axes = [] if told is None else [int(axis) % (last + 1) for axis in told.ravel()]
    if node.kind == "Roll":
        return told is not None and last not in axes
    return axes[-1:] == [last]  # none at all turn them round


def _of(node: Node) -> tuple[Array, Array, int]:
    """The scale and shift by place in a row that follow a node first, and in how many steps."""
    shape = node.outputs[0].shape
    if not shape:
        return np.ones(1), np.zeros(1), 0
    scale, shift, count = scale_and_shift(node.epilogue, shape, -1)
    return scale, shift, count


def _begin(node: Node, shift: Array, count: int) -> None:
    """Replace the first steps that follow by one that adds a row."""
    steps = node.epilogue[count:]
    if np.any(shift != 0):
        row = shift.astype(np.float32).reshape((1,) * (len(node.outputs[0].shape) - 1) + (-1,))
        steps = [(Op.registry["Add", 1].read({}), [None, constant(row)]), *steps]
    node.set_epilogue(steps)
