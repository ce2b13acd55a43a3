"""Replace `x * (1 + erf(x / sqrt(2))) / 2`, and the same by tanh, written out, by `Gelu(x)`.

The half may stand anywhere, and erf be taken of -x: `1 - erf(-x / sqrt(2))`. With tanh it is
`x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, factors, is_numpy, single

#: What goes into the curve, by power of x, and which words say so.
FORMS: dict[str, tuple[Sequence[float], dict[str, str]]] = {
    "Erf": ((0, sqrt(0.5)), {"approximation_mode": "ERF"}),
    "Tanh": ((0, sqrt(2 / pi), 0, 0.044715 * sqrt(2 / pi)), {"approximation_mode": "TANH"}),
}
#: Numbers of formulas are rounded, or given with so few digits.
CLOSE = 1e-5
#: Steps from a curve to what it is taken of.
DEEP = 6


def join_gelus(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        if node.kind not in ("Multiply", "Divide") or node.epilogue or not is_numpy(node):
            continue
        found = _gelu(node.outputs[0])
        if found is not None:
            kind, data = found
            output = node.outputs[0]
            op = Op.registry["Gelu", 7].read(FORMS[kind][1])
            node.detach()
            replaced[node] = [Node(node.layer, op, [data], [output])]
    plan.replace(replaced)
    if replaced:
        plan.prune()


def _gelu(output: Value) -> tuple[str, Value] | None:
    """The curve and the value of which an output is the Gelu."""
    if output.type != np.float32:
        return None
    whole = factors(output)
    if whole.values.total() != 2 or len(whole.values) != 2:
        return None
    for data, gate in (tuple(whole.values), tuple(whole.values)[::-1]):
        if data.shape != output.shape or data.is_fixed:
            continue
        curve = _curve(gate)
        if curve is None:
            continue
        inner = curve.inputs[0]
        form = FORMS[curve.kind][0]
        weights = _powers(gate, curve.outputs[0])
        given = _powers(inner, data)
        if weights is None or given is None:
            continue
        # Both curves are odd: a sign within is one without.
        sign = 1 if len(given) > 1 and given[1] > 0 else -1
        goal = (0.5, 0.5 * sign)
        if _alike([whole.number * x for x in weights], goal) and _alike(
            [sign * x for x in given], form
        ):
            return curve.kind, data
    return None


def _alike(found: Sequence[float], goal: Sequence[float]) -> bool:
    return len(found) == len(goal) and all(
        abs(a - b) <= CLOSE * abs(b) for a, b in zip(found, goal, strict=True)
    )


def _curve(value: Value) -> Node | None:
    """The curve to which a value adds, or which it multiplies by a number."""
    for _ in range(DEEP):
        node = value.producer
        if node is None or node.epilogue:
            return None
        if node.kind in FORMS:
            return node
        if node.kind not in ("Add", "Subtract", "Multiply", "Divide"):
            return None
        computed = [x for x in node.inputs if single(x) is None]
        if len(computed) != 1:
            return None
        (value,) = computed
    return None


def _powers(value: Value, base: Value, depth: int = DEEP) -> list[float] | None:
    """A value as a polynomial of another, its numbers by power; None where it is none."""
    if value is base:
        return [0.0, 1.0]
    number, node = single(value), value.producer
    if number is not None:
        return [number]
    if node is None or node.epilogue or not depth or len(node.inputs) != 2 or not is_numpy(node):
        return None
    left, right = (_powers(x, base, depth - 1) for x in node.inputs)
    if left is None or right is None:
        return None
    if node.kind == "Power" and len(right) == 1 and right[0] in (2, 3):
        square = _product(left, left)
        return square if right[0] == 2 else _product(square, left)
    if node.kind == "Divide" and len(right) == 1 and right[0]:
        return [x / right[0] for x in left]
    if node.kind == "Multiply":
        return _product(left, right)
    if node.kind not in ("Add", "Subtract"):
        return None
    sign = 1 if node.kind == "Add" else -1
    width = max(len(left), len(right))
    one, other = ([*x, *[0.0] * (width - len(x))] for x in (left, right))
    return [a + sign * b for a, b in zip(one, other, strict=True)]


def _product(left: Sequence[float], right: Sequence[float]) -> list[float]:
    found = [0.0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            found[i + j] += a * b
    return found
