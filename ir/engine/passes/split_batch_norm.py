"""Replace `BatchNormInference(x)` by `x * s + t`.

`s = gamma / sqrt(variance + epsilon)`, `t = beta - mean * s`: steps that fold into weights.
"""

from __future__ import annotations

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant


def split_batch_norm(plan: Plan) -> None:
    """Apply the pass."""
    multiply, add = Op.registry["Multiply", 1].read({}), Op.registry["Add", 1].read({})
    split: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        if node.kind != "BatchNormInference":
            continue
        named = dict(zip(node.op.arity()[0], node.inputs, strict=True))
        data = named.pop("data")
        parts = {name: value.constant for name, value in named.items()}
        if any(part is None for part in parts.values()) or data.type.itemsize < 4:
            continue  # of few digits, mean and variance are not to be rounded by themselves
        gamma, beta, mean, variance = (
            np.asarray(parts[name], np.float64) for name in ("gamma", "beta", "mean", "variance")
        )
        scale = gamma / np.sqrt(variance + node.op.epsilon)  # type: ignore[attr-defined]  # BatchNormInference has it
        (output,) = node.outputs
        each = (1, -1, *[1] * (len(output.shape) - 2))
        factor = constant(scale.reshape(each).astype(output.type))
        term = constant((beta - mean * scale).reshape(each).astype(output.type))
        node.detach()
        scaled = Value(output.shape, output.type)
        split[node] = [
            Node(node.layer, multiply, [data, factor], [scaled]),
            Node(node.layer, add, [scaled, term], [output]),
        ]
    plan.replace(split)
