"""g(x * a) * c → g(x * (a * c)), g(x + a) + c → g(x + (a + c)), g(x * a + b) * c likewise.

Here a, b and c are constants of real numbers, and g moves elements (Gather, Transpose, Reshape,
Slice, ...) but leaves the axes along which c varies as they are. What a FakeQuantize rounds later
stays.
"""

from __future__ import annotations

import numpy as np

from ....schemas import Array
from ...document import Layer
from .linear_chains import LINEAR, merged, put, taken
from .patterns import fuse, kept_axes, made_by, order_of
from .rewriter import Rewriter, Rule

_MOVERS = ("Gather", "Reshape", "Slice", "Squeeze", "StridedSlice", "Transpose", "Unsqueeze")


def _apply(net: Rewriter, layer: Layer) -> bool:
    outer = taken(net, layer)
    if outer is None or net.is_quantized_later(layer):
        return False
    value, array = outer
    movers: list[Layer] = []
    while (mover := made_by(net, value, *_MOVERS)) is not None and net.is_private(value):
        before = _before(net, mover, array)
        if before is None:
            return False
        movers.append(mover)
        value, array = net.inputs(mover)[0], before
    inner = made_by(net, value, *LINEAR)
    found = merged(net, layer, value, array) if movers else None
    if inner is None or found is None:
        return False
    new = put(net, inner, *found)
    for mover in reversed(movers):
        new = net.copy(mover, [new, *net.inputs(mover)[1:]])
    return fuse(net, layer, new)


def _before(net: Rewriter, mover: Layer, array: Array) -> Array | None:
    """Numbers for what is moved that come to stand where these do; None where there are none."""
    given, made = net.tensor(net.inputs(mover)[0]).rank, net.tensor((mover, 0)).rank
    if given is None or made is None or array.ndim > made:
        return None
    sizes = [1] * (made - array.ndim) + list(array.shape)
    kept = _kept(net, mover, given, made) if array.size > 1 else {}
    if any(size > 1 and axis not in kept for axis, size in enumerate(sizes)):
        return None
    # The axes may come in another order; those of size one come along in any.
    rows = sorted((axis for axis, size in enumerate(sizes) if size > 1), key=kept.__getitem__)
    rest = [axis for axis, size in enumerate(sizes) if size == 1]
    shape = [1] * given
    for axis in rows:
        shape[kept[axis]] = sizes[axis]
    return np.ascontiguousarray(array.reshape(sizes).transpose(rows + rest)).reshape(shape)


def _kept(net: Rewriter, mover: Layer, given: int, made: int) -> dict[int, int]:
    """Axes that come out as they went in: to each that comes out, the one that goes in."""
    inputs = net.inputs(mover)
    match mover.type:
        case "Transpose":
            return dict(enumerate(order_of(net, mover) or []))
        case "Gather":
            axis = net.ints(inputs[2])
            if axis is None or mover.data.get("batch_dims", "0").strip() != "0":
                return {}
            at, more = axis[0] % given, made - given
            return {
                one: one if one < at else one - more
                for one in range(made)
                if not at <= one <= at + more
            }
        case "Slice" | "StridedSlice":
            return _whole_axes(net, mover, given, made)
    return kept_axes(net.tensor(inputs[0]).shape, net.tensor((mover, 0)).shape)


def _whole_axes(net: Rewriter, mover: Layer, given: int, made: int) -> dict[int, int]:
    """The axes of which a slice forwards leaves nothing out."""
    inputs = net.inputs(mover)
    steps = net.ints(inputs[3]) if len(inputs) > 3 else [1]
    one, other = net.shape(inputs[0]), net.shape((mover, 0))
    changes = any("1" in mover.data.get(f"{word}_axis_mask", "") for word in ("new", "shrink"))
    if steps is None or min(steps, default=1) < 1 or one is None or other is None:
        return {}
    if given != made or changes:
        return {}
    return {axis: axis for axis in range(made) if one[axis] == other[axis]}


RULE = Rule("linear-through-movements", LINEAR, _apply, exact=False, stage=1)
