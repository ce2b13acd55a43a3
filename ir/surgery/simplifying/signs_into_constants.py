"""Concat(-x, y) * c → Concat(x, y) * d, where d is c with other signs in the places of x.

So rotary positions turn a half. Every other product with c is of the same kind, so that c goes.
"""

from __future__ import annotations

import numpy as np

from ....schemas import Array, Dim
from ...document import Layer
from .patterns import broadcasts, fuse, made_by, with_constant
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    found = _found(net, layer)
    if found is None:
        return False
    concat, fixed, signs = found
    users = [user for user, _ in net.uses(fixed)]
    for user in users:
        other = _found(net, user) if user.type == "Multiply" else None
        if other is None or not np.array_equal(other[2], signs):
            return False
    array = net.known(fixed)
    assert array is not None
    turned = net.constant(array * signs, net.kind(fixed), fixed[0])
    for user in users:
        concat = (_found(net, user) or found)[0]
        inputs = [_negated(net, one) or one for one in net.inputs(concat)]
        new = net.copy(concat, inputs)
        if not fuse(net, user, net.copy(user, [new, turned])):
            return False
    return True


def _found(net: Rewriter, layer: Layer) -> tuple[Layer, Value, Array] | None:
    """The Concat that is multiplied, the constant, and minus one where parts are negated."""
    pair = with_constant(net, layer)
    concat = None if pair is None else made_by(net, pair[0], "Concat")
    if pair is None or concat is None or not net.is_private(pair[0]):
        return None
    value, array = pair
    fixed = next(one for one in net.inputs(layer) if one != value)
    shape, axis = net.shape(value), int(concat.data["axis"])
    if shape is None or array.dtype.kind != "f" or array.ndim > len(shape):
        return None
    axis = axis % len(shape) - len(shape)
    if -axis > array.ndim or array.shape[axis] != shape[axis]:
        return None
    parts = [_negated(net, one) is not None for one in net.inputs(concat)]
    along = [net.tensor(one).shape.sizes[axis] for one in net.inputs(concat)]
    sizes = [size for size in along if not isinstance(size, Dim)]
    if not any(parts) or len(sizes) < len(along):
        return None
    signs = np.repeat(np.where(parts, -1, 1), sizes).astype(array.dtype)
    return concat, fixed, signs.reshape([-1, *[1] * (-axis - 1)])


def _negated(net: Rewriter, value: Value) -> Value | None:
    """What a value is minus one times, if nothing else uses it."""
    layer = made_by(net, value, "Multiply", "Negative")
    if layer is None or not net.is_private(value):
        return None
    if layer.type == "Negative":
        return net.inputs(layer)[0]
    for one, other in (net.inputs(layer), net.inputs(layer)[::-1]):
        same = net.tensor(one).shape.rank is not None and broadcasts(layer)
        if same and other[0].is_constant and net.scalar(other) == -1.0:
            return one if net.tensor(one) == net.tensor(value) else None
    return None


RULE = Rule("signs-into-constants", ("Multiply",), _apply)
