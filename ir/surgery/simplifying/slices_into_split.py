"""Slice(x, 0, a), Slice(x, a, b), ..., Slice(x, z, end) → VariadicSplit(x): all of one axis."""

from __future__ import annotations

import numpy as np

from ....schemas import Dim, ElementType
from ...document import Layer
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    value = net.inputs(layer)[0]
    own = _piece(net, layer)
    if own is None:
        return False
    pieces: dict[tuple[int, int], Layer] = {}
    for user, place in net.uses(value):
        found = _piece(net, user) if place == 0 and user.type == "Slice" else None
        if found is not None and found[0] == own[0]:
            pieces.setdefault(found[1], user)
    rows = sorted(pieces)
    size = net.tensor(value).shape.sizes[own[0]]
    if len(rows) < _LEAST or isinstance(size, Dim) or not _fill(rows, size):
        return False
    slices = [pieces[row] for row in rows]
    if any(net.feeds_result((one, 0)) for one in slices):
        return False
    axis = net.constant(np.int64(own[0]), ElementType.I64, layer)
    lengths = np.array([end - start for start, end in rows], np.int64)
    sizes = net.constant(lengths, ElementType.I64, layer)
    split, _ = net.add("VariadicSplit", "opset1", [value, axis, sizes], like=layer)
    done = [net.replace((one, 0), (split, i)) for i, one in enumerate(slices)]
    return all(done)


def _piece(net: Rewriter, layer: Layer) -> tuple[int, tuple[int, int]] | None:
    """The axis that a Slice cuts, and from where to where; None unless it takes all between."""
    inputs = net.inputs(layer)
    shape = net.tensor(inputs[0]).shape
    numbers = [_number(net, one) for one in inputs[1:]]
    if shape.rank is None or layer.version != "opset8" or len(numbers) != _INPUTS:
        return None
    if None in numbers:
        return None
    start, stop, step, axis = (number for number in numbers if number is not None)
    if step != 1 or not -shape.rank <= axis < shape.rank:
        return None
    axis %= shape.rank
    size = shape.sizes[axis]
    if isinstance(size, Dim):
        return None
    low, high, _ = slice(start, stop).indices(size)
    return (axis, (low, high)) if low < high else None


def _number(net: Rewriter, value: Value) -> int | None:
    numbers = net.ints(value)
    return numbers[0] if numbers is not None and len(numbers) == 1 else None


def _fill(rows: list[tuple[int, int]], size: int) -> bool:
    """Whether pieces in order are all of an axis, and none of it twice."""
    ends = [0, *(end for _, end in rows)]
    return [start for start, _ in rows] == ends[:-1] and ends[-1] == size


#: Pieces from which on there is something to gain.
_LEAST = 2
#: Start, stop, step and axes.
_INPUTS = 4

RULE = Rule("slices-into-split", ("Slice",), _apply)
