"""What a product of several values is made of, for passes that look for formulas written out."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import NamedTuple

import numpy as np

from .nodes import Node, Value

#: Products in a row that are looked through.
DEEP = 5


class Factors(NamedTuple):
    """A number times values, each so often."""

    number: float
    values: Counter[Value]

    def times(self, other: Factors) -> Factors:
        """The product with others."""
        return Factors(self.number * other.number, self.values + other.values)


def factors(value: Value, ends: tuple[Value, ...] = (), depth: int = DEEP) -> Factors:
    """A value as a product, as far as it is one; ``ends`` are not looked through."""
    number = single(value)
    if number is not None:
        return Factors(number, Counter())
    node = value.producer
    if node is None or value in ends or not depth or node.epilogue or len(node.inputs) != 2:
        return Factors(1.0, Counter([value]))
    left, right = node.inputs
    if node.kind == "Multiply" and is_numpy(node):
        return factors(left, ends, depth - 1).times(factors(right, ends, depth - 1))
    divisor = single(right)
    if node.kind == "Divide" and divisor:
        return factors(left, ends, depth - 1).times(Factors(1 / divisor, Counter()))
    return Factors(1.0, Counter([value]))


def single(value: Value) -> float | None:
    """The number that a constant of one element is; None of anything else."""
    array = value.constant
    if array is None or array.size != 1 or array.dtype != np.float32:
        return None
    return float(array.reshape(()))


def is_numpy(node: Node) -> bool:
    """Whether the inputs of an elementwise node broadcast by NumPy's rule."""
    return getattr(node.op, "auto_broadcast", "numpy") == "numpy"


def maker(value: Value, kind: str) -> Node | None:
    """The node of a type that makes a value, and does nothing else."""
    node = value.producer
    return node if node is not None and node.kind == kind and not node.epilogue else None


def along(value: Value, kind: str) -> tuple[Node, tuple[int, ...]] | None:
    """The reduction that a value is, and its axes; these stay, as ones, maybe put back later."""
    node, shape = value.producer, value.shape
    while node is not None and node.kind in ("Broadcast", "Reshape", "Unsqueeze"):
        if node.epilogue or prod(node.inputs[0].shape) != prod(shape):
            return None
        node = node.inputs[0].producer
    if node is None or node.kind != kind or node.epilogue or node.inputs[1].constant is None:
        return None
    sizes: tuple[int, ...] = node.inputs[0].shape
    rank = len(sizes)
    axes = tuple(sorted({int(axis) % rank for axis in node.inputs[1].array.ravel()}))
    ones = tuple(1 if axis in axes else size for axis, size in enumerate(sizes))
    return (node, axes) if axes and ones == shape and 0 not in sizes else None
