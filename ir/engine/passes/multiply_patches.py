"""Replace `W * x`, windows as large as the images x, by a product of matrices, `x' W'`.

Patches of pictures and films come cut out, hundreds at once: each is a row then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import BINARY, SHUFFLE, Node, Plan, Steps, Value, constant, reshaping


def multiply_patches(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: _product(node) for node in plan.nodes if _is_product(node)})


def _is_product(node: Node) -> bool:
    """Whether a node is a convolution of several images, each by windows that are all of it."""
    if node.kind != "Convolution" or node.prologue:
        return False
    images, weights = node.inputs[:2]
    if weights.constant is None or not weights.constant.size:
        return False
    if images.shape[0] < 2 or images.shape[1:] != weights.shape[1:] or images.type != np.float32:
        return False
    if images.producer is not None and images.producer.kind == "FakeQuantize":
        return False  # a product of levels
    op: Any = node.op
    stretched = any(
        taps > 1 and gap > 1 for taps, gap in zip(weights.shape[2:], op.dilations, strict=True)
    )
    stops = {*node.outputs[0].shape[2:]}
    padded = op.auto_pad == "explicit" and any((*op.pads_begin, *op.pads_end))
    if stops != {1} or stretched or padded:
        return False
    return all(
        step.xml_type in BINARY
        # Products are finished where they lie, and nothing is shuffled there.
        or (step.xml_type != SHUFFLE and not any(value is not None for value in others))
        for step, others in node.epilogue
    )


def _product(node: Node) -> list[Node]:
    """The nodes that take the place of one."""
    images, weights, *bias = node.inputs
    (output,) = node.outputs
    numbers = weights.constant
    assert numbers is not None
    rows = Value((images.shape[0], numbers[0].size), images.type)
    made = [reshaping(node.layer, images, rows)]

    def flat(value: Value | None) -> Value | None:
        if value is None:
            return None
        shape = (1,) * (len(output.shape) - len(value.shape)) + value.shape
        if value.constant is not None:
            return constant(value.constant.reshape(shape[:2]))
        found = Value(shape[:2], value.type)
        made.append(reshaping(node.layer, value, found))
        return found

    steps: Steps = [
        *((Op.registry["Add", 1].read({}), [None, value]) for value in bias),
        *((step, [flat(value) for value in others]) for step, others in node.epilogue),
    ]
    node.detach()
    columns = constant(numbers.reshape(len(numbers), -1))
    op = Op.registry["MatMul", 1].read({"transpose_b": "true"})
    found = Value(output.shape[:2], output.type)
    product = Node(node.layer, op, [rows, columns], [found])
    product.set_epilogue(steps)
    return [*made, product, reshaping(node.layer, found, output)]
