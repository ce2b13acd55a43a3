"""Nodes that bring a value to another shape or order, for passes that need it so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....layers.base import Op
from ...document import Layer
from .nodes import Node, Value, constant
from .operations import CUTS

#: What gives the numbers that it takes, in another shape or order.
_MOVES = CUTS | {"Transpose"}


def only_moves(node: Node) -> bool:
    """Whether a node moves numbers, as is known beforehand, and does nothing else."""
    known = all(value.constant is not None for value in node.inputs[1:])
    return node.kind in _MOVES and known and not (node.prologue or node.epilogue)


def reshaping(layer: Layer, value: Value, made: Value) -> Node:
    """A node that gives a value the shape of another."""
    op = Op.registry["Reshape", 1].read({"special_zero": "false"})
    return Node(layer, op, [value, constant(np.asarray(made.shape, np.int64))], [made])


def transposing(layer: Layer, value: Value, order: Sequence[int], made: Value) -> Node:
    """A node that takes the axes of a value in another order: a view, wherever it can be one."""
    op = Op.registry["Transpose", 1].read({})
    return Node(layer, op, [value, constant(np.asarray(order))], [made])


def in_order(value: Value, order: Sequence[int]) -> Value:
    """A value of the same type, with the axes in another order."""
    return Value(tuple(value.shape[axis] for axis in order), value.type, element=value.element)
