"""Transpose(Gather(c, i)) → Gather(cᵀ, iᵀ), Reshape(Gather(c, i)) → Gather(c, j), i constant.

Rows of c are gathered in the shape and order that is wanted; c is turned beforehand where it must.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from ....schemas import ElementType
from ...document import Layer
from .axis_groups import axis_groups
from .patterns import fuse, made_by, order_of
from .rewriter import LAYER_BYTES, Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    value = net.inputs(layer)[0]
    gather = made_by(net, value, "Gather")
    if gather is None or not net.is_private(value):
        return False
    data, indices, axes = net.inputs(gather)
    rows, sizes, axis = net.known(indices), net.shape(data), net.ints(axes)
    if not indices[0].is_constant or rows is None or sizes is None or axis is None:
        return False
    if gather.data.get("batch_dims", "0").strip() != "0" or not rows.ndim:
        return False
    at = axis[0] % len(sizes)
    if layer.type == "Transpose":
        order = order_of(net, layer)
        found = None if order is None else _turned(net, data, order, at, rows.ndim)
        if found is None or order is None:
            return False
        data, at, turn = found
        if turn != sorted(turn) and rows.nbytes > LAYER_BYTES and net.users(indices[0]) > 1:
            return False
        rows = rows.transpose(turn)
    else:
        shape = _cut(net, value, layer, at, rows.ndim)
        if shape is None:
            return False
        rows = rows.reshape(shape)
    new = net.copy(
        gather,
        [
            data,
            net.constant(np.ascontiguousarray(rows), net.kind(indices), indices[0]),
            net.constant(np.int64(at), ElementType.I64, layer),
        ],
    )
    return fuse(net, layer, new)


def _turned(
    net: Rewriter, data: Value, order: list[int], at: int, rank: int
) -> tuple[Value, int, list[int]] | None:
    """What is gathered from with its axes turned, the axis of the rows, the order of indices."""
    places = [place for place, axis in enumerate(order) if at <= axis < at + rank]
    if any(b - a != 1 for a, b in pairwise(places)):
        return None
    axes = [axis for axis in order if not at <= axis < at + rank or axis == order[places[0]]]
    own = [at if at <= axis < at + rank else axis - (rank - 1) * (axis > at) for axis in axes]
    new = _transposed(net, data, own)
    turn = [order[place] - at for place in places]
    return None if new is None else (new, own.index(at), turn)


def _transposed(net: Rewriter, data: Value, order: list[int]) -> Value | None:
    """A constant of one use, also one that is kept in fewer bits, with its axes turned."""
    layer = data[0]
    if order == sorted(order):
        return data
    if not net.is_private(data):
        return None
    if layer.type == "Convert":
        narrow = _transposed(net, net.inputs(layer)[0], order)
        return None if narrow is None else net.copy(layer, [narrow])
    array = net.known(data) if layer.is_constant else None
    if array is None:
        return None
    return net.constant(array.transpose(order), net.kind(data), layer)


def _cut(net: Rewriter, value: Value, layer: Layer, at: int, rank: int) -> tuple[int, ...] | None:
    """The sizes of indices by which what is gathered comes in another shape at once."""
    given, made = net.tensor(value).shape, net.tensor((layer, 0)).shape
    groups = axis_groups(given, made)
    if groups is None or not made.is_static:
        return None
    inside: list[int] = []
    for axes, places in groups:
        rows = [axis for axis in axes if at <= axis < at + rank]
        if len(rows) == len(axes):
            inside += places
        elif rows or [given.sizes[a] for a in axes] != [made.sizes[p] for p in places]:
            return None
    if not inside or inside[0] != at:
        return None
    shape = tuple((made.static or ())[place] for place in inside)
    return shape if prod(shape) else None


RULE = Rule("gathered-constants", ("Reshape", "Squeeze", "Transpose", "Unsqueeze"), _apply)
