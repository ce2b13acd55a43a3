"""Reshape(Reshape(x)) → Reshape(x); so of Squeeze, Unsqueeze, and Transposes of sizes of one.

A Gather of the only element of an axis is one, too.
"""

from __future__ import annotations

import numpy as np

from ....schemas import Dim, ElementType, Shape
from ...document import Layer
from .patterns import order_of, same_shape
from .rewriter import Rewriter, Rule, Value

RESHAPES = ("Reshape", "Squeeze", "Unsqueeze", "Transpose", "Gather")


def _apply(net: Rewriter, layer: Layer) -> bool:
    if not keeps_order(net, layer):
        return False
    value: Value = net.inputs(layer)[0]
    first: Value | None = None
    while value[0].type in RESHAPES and keeps_order(net, value[0]):
        value = net.inputs(value[0])[0]
        first = value
    if first is None:
        return False
    given, made = net.tensor(first).shape, net.tensor((layer, 0)).shape
    if same_shape(given, made, count=True):
        return net.replace((layer, 0), first)
    pattern = pattern_of(given, made)
    if pattern is None:
        return False
    return net.replace((layer, 0), put_reshape(net, first, pattern, layer))


def keeps_order(net: Rewriter, layer: Layer) -> bool:
    """Whether the elements of a layer's output are those of its input, in their order."""
    if layer.type == "Gather":
        return takes_only(net, layer)
    if layer.type != "Transpose":
        return layer.type in RESHAPES
    order, shape = order_of(net, layer), net.tensor(net.inputs(layer)[0]).shape
    if order is None or shape.rank is None:
        return False
    moved = [axis for axis in order if shape.sizes[axis] != 1]
    return moved == sorted(moved)


def takes_only(net: Rewriter, layer: Layer) -> bool:
    """Whether a Gather takes the only element of an axis."""
    data, indices, axis = net.inputs(layer)
    axes, shape = net.ints(axis), net.tensor(data).shape
    if net.scalar(indices) is None or axes is None or shape.rank is None:
        return False
    return shape.sizes[axes[0]] == 1 and layer.data.get("batch_dims", "0").strip() == "0"


def put_reshape(net: Rewriter, value: Value, pattern: list[int], like: Layer) -> Value:
    """A Reshape by a pattern, named after a layer."""
    sizes = net.constant(np.array(pattern, np.int64), ElementType.I64, like)
    return net.add("Reshape", "opset1", [value, sizes], {"special_zero": "true"}, like=like)


def pattern_of(given: Shape, made: Shape) -> list[int] | None:
    """The sizes by which Reshape makes one shape of another."""
    if made.rank is None:
        return None
    pattern: list[int] = []
    for axis, size in enumerate(made.sizes):
        if not isinstance(size, Dim):
            if size == 0:
                return None
            pattern.append(size)
        elif given.rank is not None and axis < given.rank and (
            isinstance(given.sizes[axis], Dim) and same_shape(
                Shape([given.sizes[axis]]), Shape([size])
            )
        ):  # fmt: skip
            pattern.append(0)
        else:
            pattern.append(-1)
    return pattern if pattern.count(-1) <= 1 else None


__all__ = ["RESHAPES", "keeps_order", "pattern_of", "put_reshape"]

RULE = Rule("reshape-chains", RESHAPES, _apply)
