"""Replace `(x - mean(x)) / sqrt(variance(x) + e) * g + b`, written out, by `MVN(x) * g + b`.

The quotient may be a product with a power, `g` may be multiplied in before x is, and the mean be
taken away last, `x * s + (b - mean * s)`: so the frontends of TensorFlow and its like write norms.
Where no mean is taken away, as in language models, `x / sqrt(mean(x * x) + e)` of n numbers is
`sqrt(n) * NormalizeL2(x)`, whose e is n times as much.
"""

from __future__ import annotations

from collections import Counter
from math import isclose, prod, sqrt
from typing import NamedTuple

import numpy as np

from ....layers.base import Op
from ..plan import (
    Factors,
    Node,
    Plan,
    Value,
    along,
    constant,
    factors,
    is_numpy,
    maker,
    only_user,
    single,
)

#: One over a size is rounded.
CLOSE = 1e-6


class _Spread(NamedTuple):
    """One over the standard deviation of a value, or its root mean square where it has no mean."""

    data: Value
    mean: Value | None
    axes: tuple[int, ...]
    eps: float


class _Norm(NamedTuple):
    """A value made standard, times a number and values, plus another where there is one."""

    spread: _Spread
    factors: Factors
    term: Value | None = None


def join_norms(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        if node.kind in ("Add", "Subtract", "Multiply", "Divide") and is_numpy(node):
            norm = _norm(node)
            if norm is not None:
                replaced[node] = _joined(node, norm)
    plan.replace(replaced)
    if replaced:
        plan.prune()


def _norm(node: Node) -> _Norm | None:
    """What a node makes standard, if it is the last step of that."""
    (output,) = node.outputs
    if output.type != np.float32 or node.epilogue:
        return None
    found = _centred(node) if node.kind in ("Multiply", "Divide") else _shifted(node)
    return found if found is not None and found.spread.data.shape == output.shape else None


def _centred(node: Node) -> _Norm | None:
    """`(x - mean) * s`, or `(x - mean) / sqrt(variance + e)`."""
    if node.kind == "Divide":
        left, root = node.inputs
        whole, inverse = Factors(1.0, Counter([left])), _of_root(root)
    else:
        whole = factors(node.outputs[0])
        inverse = None
    found = _uncentred(whole, inverse)
    if found is not None:
        return found
    for value in whole.values:
        difference = maker(value, "Subtract")
        if difference is None:
            continue
        for other in [value] if inverse else whole.values:
            spread = inverse or _spread(other)
            if spread is None or difference.inputs != (spread.data, spread.mean):
                continue
            rest = Counter([value] if inverse else [value, other])
            return _Norm(spread, Factors(whole.number, whole.values - rest))
    return None


def _uncentred(whole: Factors, inverse: _Spread | None) -> _Norm | None:
    """`x * s`, or x over a root, from which no mean is taken."""
    for value in [None] if inverse else whole.values:
        spread = inverse if value is None else _spread(value)
        if spread is None or spread.mean is not None or spread.data not in whole.values:
            continue
        rest = Counter([spread.data] if value is None else [spread.data, value])
        return _Norm(spread, Factors(whole.number, whole.values - rest))
    return None


def _shifted(node: Node) -> _Norm | None:
    """`x * s + (b - mean * s)`, in either order, with a `b` or without."""
    left, right = node.inputs
    orders = [(left, right)] if node.kind == "Subtract" else [(left, right), (right, left)]
    for product, rest in orders:
        whole = factors(product)
        for value in whole.values:
            spread = _spread(value)
            if spread is None or spread.mean is None or spread.data not in whole.values:
                continue
            # What x is multiplied by, the mean has to be, too.
            others = whole.values - Counter([spread.data])
            less = -whole.number if node.kind == "Add" else whole.number
            goal = Factors(less, others + Counter([spread.mean]))
            term = _left(rest, goal, spread)
            # Of a difference all of the rest would have another sign.
            if term is not None and (term is rest or node.kind == "Add"):
                scale = Factors(whole.number, others - Counter([value]))
                return _Norm(spread, scale, None if term is rest else term)
    return None


def _left(rest: Value, goal: Factors, spread: _Spread) -> Value | None:
    """What is left of a sum when a product is taken out; itself, where that is all."""
    assert spread.mean is not None
    ends = (spread.data, spread.mean)
    if factors(rest, ends) == goal:
        return rest
    node = rest.producer
    if node is None or node.kind not in ("Add", "Subtract") or node.epilogue or not is_numpy(node):
        return None
    left, right = node.inputs
    if node.kind == "Add":
        sides = [(left, right), (right, left)]
    else:
        sides, goal = [(left, right)], Factors(-goal.number, goal.values)
    return next((term for term, other in sides if factors(other, ends) == goal), None)


def _spread(value: Value) -> _Spread | None:
    """The spread whose inverse a value is: a power, or one over a root."""
    power = maker(value, "Power")
    if power is not None and single(power.inputs[1]) == -0.5:
        return _variance(power.inputs[0])
    quotient = maker(value, "Divide")
    if quotient is not None and single(quotient.inputs[0]) == 1:
        return _of_root(quotient.inputs[1])
    return None


def _of_root(value: Value) -> _Spread | None:
    """The spread that a value is."""
    root = maker(value, "Sqrt")
    if root is not None:
        return _variance(root.inputs[0])
    power = maker(value, "Power")
    return _variance(power.inputs[0]) if power and single(power.inputs[1]) == 0.5 else None


def _variance(value: Value) -> _Spread | None:
    """Of what a value is the variance and a little more."""
    total = maker(value, "Add")
    if total is None:
        return None
    for variance, little in (total.inputs, total.inputs[::-1]):
        eps, averaged = single(little), _averaged(variance)
        if eps is None or averaged is None or not eps > 0:
            continue
        squares, axes = averaged
        for data, mean in _differences(squares):
            if _averaged(mean) == (data, axes):
                return _Spread(data, mean, axes, eps)
        square = maker(squares, "Multiply")
        if square is not None and square.inputs[0] is square.inputs[1]:
            return _Spread(square.inputs[0], None, axes, eps)
    return None


def _averaged(value: Value) -> tuple[Value, tuple[int, ...]] | None:
    """What a value is the mean of, along which axes; a sum divided by their size is that, too."""
    found = along(value, "ReduceMean")
    if found is None:
        whole = factors(value)
        if whole.values.total() != 1:
            return None
        found = along(next(iter(whole.values)), "ReduceSum")
        if found is None:
            return None
        size = prod(found[0].inputs[0].shape[axis] for axis in found[1])
        if not isclose(whole.number, 1 / size, rel_tol=CLOSE):
            return None
    node, axes = found
    neighbours = axes == tuple(range(axes[0], axes[0] + len(axes)))
    return (node.inputs[0], axes) if neighbours else None


def _differences(squares: Value) -> list[tuple[Value, Value]]:
    """The pairs of which a value may be the square of the difference."""
    node = maker(squares, "SquaredDifference")
    if node is not None:
        first, second = node.inputs
        return [(first, second), (second, first)] if is_numpy(node) else []
    node = maker(squares, "Multiply")
    if node is None or node.inputs[0] is not node.inputs[1]:
        return []
    difference = maker(node.inputs[0], "Subtract")
    if difference is None or not is_numpy(difference):
        return []
    return [(difference.inputs[0], difference.inputs[1])]


def _joined(node: Node, norm: _Norm) -> list[Node]:
    """The one node, and what multiplies and adds to it."""
    (output,) = node.outputs
    data, mean, axes, eps = norm.spread
    number = norm.factors.number
    steps: list[tuple[str, Value]] = []
    for value, count in norm.factors.values.items():
        steps += [("Multiply", value)] * count
    if mean is None:
        size = prod(data.shape[axis] for axis in axes)
        number = _passed_on(number * sqrt(size), output)
        op = Op.registry["NormalizeL2", 1].read({"eps": repr(eps * size), "eps_mode": "add"})
    else:
        words = {"normalize_variance": "true", "eps": repr(eps), "eps_mode": "INSIDE_SQRT"}
        op = Op.registry["MVN", 6].read(words)
    if number != 1:
        steps.append(("Multiply", constant(np.full(1, number, np.float32))))
    if norm.term is not None:
        steps.append(("Add", norm.term))
    node.detach()
    made = [Value(output.shape, output.type) for _ in steps] + [output]
    found = [Node(node.layer, op, [data, constant(np.array(axes))], [made[0]])]
    for place, (kind, value) in enumerate(steps):
        step = Op.registry[kind, 1].read({"auto_broadcast": "numpy"})
        found.append(Node(node.layer, step, [made[place], value], [made[place + 1]]))
    return found


def _passed_on(number: float, output: Value) -> float:
    """A factor, that goes into the constant which the value is multiplied by, if it can."""
    user = only_user(output)
    if user is None or user.kind != "Multiply" or not is_numpy(user):
        return number
    for place, other in enumerate(user.inputs):
        weights = other.constant
        if weights is not None and weights.dtype == np.float32:
            scaled = (weights * np.float64(number)).astype(np.float32)
            if np.isfinite(scaled).all():
                user.replace_input(place, constant(scaled))
                return 1.0
    return number
