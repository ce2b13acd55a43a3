"""Replace `x ** 2` by `x * x`, and `x ** 3` by `x * x * x`.

Norms and activations as exporters write them have such powers; others take what they take.
"""

from __future__ import annotations

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value


def multiply_powers(plan: Plan) -> None:
    """Apply the pass."""
    multiply = Op.registry["Multiply", 1].read({})
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        times = _exponent(node)
        if times is None:
            continue
        base, (output,) = node.inputs[0], node.outputs
        node.detach()
        square = output if times == 2 else Value(output.shape, output.type)
        replaced[node] = [Node(node.layer, multiply, [base, base], [square])]
        if times == 3:
            replaced[node].append(Node(node.layer, multiply, [square, base], [output]))
    plan.replace(replaced)


def _exponent(node: Node) -> int | None:
    """The small whole number that is the exponent of all real numbers of a node."""
    if node.kind != "Power":
        return None
    base, exponent = node.inputs
    number = exponent.constant
    if base.type != np.float32 or base.shape != node.outputs[0].shape:
        return None
    if number is None or number.size != 1 or number.reshape(()) not in (2, 3):
        return None
    return int(number.reshape(()))
