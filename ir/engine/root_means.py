"""Replace `x / sqrt(mean(x * x) + e)`, written out for rows of n, by `sqrt(n) * NormalizeL2(x)`.

Plans do so for what lies in the arena (``passes/join_norms``), where all sizes are known; this is
for what does not, whose rows are as many as happen to come.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from ...layers.base import Op
from .plan import Node, Plan, Value, claimed_type, constant, is_numpy, single


def join_root_means(plan: Plan) -> None:
    """Let nodes outside the arena divide rows by their root mean squares in one step."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        for data, squared in _quotients(node):
            eps, shape = _added(squared, data), data.tensor.shape
            size = shape.sizes[-1] if shape.rank else None
            is_alike = shape.rank == node.outputs[0].tensor.shape.rank
            if eps is not None and isinstance(size, int) and is_alike:
                replaced[node] = _joined(node, data, eps, size)
                break
    if replaced:
        plan.replace(replaced)
        plan.prune()


def _maker(value: Value, kind: str) -> Node | None:
    """What gives a value, if it is outside and of that type."""
    node = value.producer
    if node is None or not node.is_outside or claimed_type(type(node.op)) != kind:
        return None
    return node


def _quotients(node: Node) -> Iterator[tuple[Value, Value]]:
    """What a node may divide by the root of what."""
    kind = claimed_type(type(node.op)) if node.is_outside else ""
    if kind not in ("Divide", "Multiply") or not is_numpy(node):
        return
    if node.outputs[0].type != np.float32 or not node.outputs[0].is_outside:
        return
    left, right = node.inputs
    if kind == "Divide":
        root = _maker(right, "Sqrt")
        if root is not None:
            yield left, root.inputs[0]
        return
    for data, other in ((left, right), (right, left)):
        power, quotient = _maker(other, "Power"), _maker(other, "Divide")
        if power is not None and single(power.inputs[1]) == -0.5:
            yield data, power.inputs[0]
        if quotient is not None and single(quotient.inputs[0]) == 1:
            root = _maker(quotient.inputs[1], "Sqrt")
            if root is not None:
                yield data, root.inputs[0]


def _added(value: Value, data: Value) -> float | None:
    """What is added to the mean of the squares of each row of the data, if a value is that."""
    total = _maker(value, "Add")
    if total is None or not is_numpy(total):
        return None
    for mean, little in (total.inputs, total.inputs[::-1]):
        eps, average = single(little), _maker(mean, "ReduceMean")
        if eps is None or average is None or not eps > 0:
            continue
        squares, axes = average.inputs[0], average.inputs[1].constant
        rank = data.tensor.shape.rank
        if axes is None or rank is None or not average.op.keep_dims:  # type: ignore[attr-defined]  # ReduceMean has it
            continue
        if axes.reshape(-1).tolist() not in ([-1], [rank - 1]):
            continue
        power, product = _maker(squares, "Power"), _maker(squares, "Multiply")
        if power is not None and power.inputs[0] is data and single(power.inputs[1]) == 2:
            return eps
        if product is not None and product.inputs == (data, data):
            return eps
    return None


def _joined(node: Node, data: Value, eps: float, size: int) -> list[Node]:
    """The norm, and what makes up for that it has sums where means are wanted."""
    (output,) = node.outputs
    norm = Op.registry["NormalizeL2", 1].read({"eps": repr(eps * size), "eps_mode": "add"})
    times = Op.registry["Multiply", 1].read({"auto_broadcast": "numpy"})
    axis = constant(np.array([data.tensor.shape.rank - 1]))  # type: ignore[operator]  # it has a last one
    made = Value((), output.type)
    made.inferred = output.inferred
    node.detach()
    found = [
        Node(node.layer, norm, [data, axis], [made]),
        Node(node.layer, times, [made, constant(np.full(1, sqrt(size), np.float32))], [output]),
    ]
    for one in found:
        one.is_outside = True
    return found
