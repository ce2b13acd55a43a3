"""(x - m) / sqrt(mean((x - m)^2) + e) → MVN(x), where m = mean(x) over the same axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....schemas import ElementType
from ...document import Layer
from .patterns import FLOATS, axes_of, fuse, made_by, operands, square_of
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    if net.kind((layer, 0)) not in FLOATS:
        return False
    for centred, spread in _quotients(net, layer):
        found = _match(net, centred, spread)
        if found is None:
            continue
        value, axes, eps, mode = found
        rows = net.constant(np.array(axes, np.int64), ElementType.I64, layer)
        data = {"normalize_variance": "true", "eps": repr(eps), "eps_mode": mode}
        return fuse(net, layer, net.add("MVN", "opset6", [value, rows], data, like=layer))
    return False


def _quotients(net: Rewriter, layer: Layer) -> Iterator[tuple[Value, tuple[Value, float, str]]]:
    """A dividend with the variance, the number added to it, and where that stands."""
    if layer.type == "Divide":
        one, other = net.inputs(layer)
        spread = _root(net, other)
        if spread is not None:
            yield one, spread
        return
    for one, other in operands(net, layer):
        inverse = made_by(net, other, "Divide", "Power")
        if inverse is None:
            continue
        top, bottom = net.inputs(inverse)
        if inverse.type == "Divide" and net.scalar(top) == 1.0:
            spread = _root(net, bottom)
        elif inverse.type == "Power" and net.scalar(bottom) == -0.5:
            spread = _plus_small(net, top, "inside_sqrt")
        else:
            continue
        if spread is not None:
            yield one, spread


def _root(net: Rewriter, value: Value) -> tuple[Value, float, str] | None:
    """A variance of which a value is the root, with a small number added inside or outside."""
    root = _of_root(net, value)
    if root is not None:
        return _plus_small(net, root, "inside_sqrt")
    outside = _plus_small(net, value, "outside_sqrt")
    inside = None if outside is None else _of_root(net, outside[0])
    return None if outside is None or inside is None else (inside, *outside[1:])


def _of_root(net: Rewriter, value: Value) -> Value | None:
    layer = made_by(net, value, "Sqrt", "Power")
    if layer is None or (layer.type == "Power" and net.scalar(net.inputs(layer)[1]) != 0.5):
        return None
    return net.inputs(layer)[0]


def _plus_small(net: Rewriter, value: Value, mode: str) -> tuple[Value, float, str] | None:
    layer = made_by(net, value, "Add")
    if layer is not None:
        for one, other in operands(net, layer):
            number = net.scalar(other)
            if number is not None and 0 < number < 1e-1:
                return one, number, mode
    return None


def _match(
    net: Rewriter, centred: Value, spread: tuple[Value, float, str]
) -> tuple[Value, list[int], float, str] | None:
    variance, eps, mode = spread
    difference = made_by(net, centred, "Subtract")
    mean_square = made_by(net, variance, "ReduceMean")
    if difference is None or mean_square is None:
        return None
    value, mean = net.inputs(difference)
    first = made_by(net, mean, "ReduceMean")
    if first is None or net.inputs(first)[0] != value:
        return None
    squared = net.inputs(mean_square)[0]
    distance = made_by(net, squared, "SquaredDifference")
    same = distance is not None and set(net.inputs(distance)) == {value, mean}
    if not same and square_of(net, squared) != centred:
        return None
    rank = net.tensor(value).rank
    axes = [axes_of(net, net.inputs(one)[1], rank) for one in (first, mean_square)]
    if axes[0] is None or axes[0] != axes[1] or not axes[0]:
        return None
    if any(one.data.get("keep_dims", "false").lower() not in ("true", "1")
           for one in (first, mean_square)):  # fmt: skip
        return None
    return value, axes[0], eps, mode


RULE = Rule("mvn", ("Divide", "Multiply"), _apply, exact=False)
