"""Replace `W * x`, windows nearly as tall as images of few channels, by a product, `W' x`.

What spans all frequencies of a sound is such a window: to gather what each meets would take many
times as long as to multiply all columns by a matrix that has the window at each of its stops.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....layers.base import Op
from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import Node, Plan, Value, constant, reshaping

#: How long products take, and what is gathered before, in nanoseconds; and what has to be won.
PRODUCT, GATHERED, MARGIN = 0.01, 0.3, 0.5
#: Windows of fewer rows are gathered in no time. The most numbers of the matrix, which is fetched
#: as a whole.
TALL, MOST = 16, 1 << 22


def multiply_tall(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: _product(node) for node in plan.nodes if _pays(node)})


def _pays(node: Node) -> bool:
    """Whether a node is a convolution by columns that takes less time as a product."""
    if node.kind != "Convolution" or node.is_outside or node.epilogue or len(node.inputs) != 2:
        return False
    images, weights = node.inputs
    known = weights.constant
    if known is None or images.is_fixed or not known.size or known.dtype != np.float32:
        return False
    if len(images.shape) != 4 or images.type != np.float32:
        return False
    if known.shape[2] < TALL or known.shape[3] != 1:
        return False
    op: Any = node.op
    across = op.strides[1] == 1 and images.shape[3] == node.outputs[0].shape[3]
    made = prod(node.outputs[0].shape)
    size = prod(node.outputs[0].shape[1:3]) * prod(images.shape[1:3])
    if not made or not across or size > MOST or not np.isfinite(known).all():
        return False
    taken = prod(known.shape[1:])
    gathered = made // len(known) * taken
    usual = made * taken * PRODUCT + gathered * GATHERED
    return made * prod(images.shape[1:3]) * PRODUCT < MARGIN * usual


def _product(node: Node) -> list[Node]:
    """The nodes that take the place of one."""
    images, (output,) = node.inputs[0], node.outputs
    count, _, _, width = images.shape
    matrix = _matrix(node)
    columns = Value((count, matrix.shape[1], width), images.type)
    found = Value((count, matrix.shape[0], width), output.type)
    node.detach()
    product = Op.registry["MatMul", 1].read({})
    return [
        reshaping(node.layer, images, columns),
        Node(node.layer, product, [constant(matrix), columns], [found]),
        reshaping(node.layer, found, output),
    ]


def _matrix(node: Node) -> Array:
    """The matrix (outputs of a column, numbers of it) with the windows at all their stops."""
    op: Any = node.op
    weights = node.inputs[1].array[..., 0]
    outer, inner, taps = weights.shape
    height, stops = node.inputs[0].shape[2], node.outputs[0].shape[2]
    begin = number(op.pads(height, 0, reach(taps, op.dilations[0]))[0])
    matrix = np.zeros((outer, stops, inner, height), np.float32)
    for tap in range(taps):
        places = np.arange(stops) * op.strides[0] + tap * op.dilations[0] - begin
        met = np.flatnonzero((places >= 0) & (places < height))
        matrix[:, met, :, places[met]] = weights[:, :, tap]
    return matrix.reshape(outer * stops, inner * height)
