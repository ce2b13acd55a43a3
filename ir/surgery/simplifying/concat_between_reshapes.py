"""Concat(Reshape(a), Reshape(b), ...) → Reshape(Concat(a, b, ...)), so of flattened stacks.

As many elements lie before the axis along which a, b, ... are put together as before the other.
"""

from __future__ import annotations

from math import prod

from ....schemas import Dim, Shape, Size
from ...document import Layer
from .patterns import fuse, same_shape, same_size
from .reshape_chains import RESHAPES, keeps_order, pattern_of, put_reshape
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs, made = net.inputs(layer), net.tensor((layer, 0)).shape
    if made.rank is None or len(inputs) < _LEAST:
        return False
    reshapes = {one for one in inputs if _is_reshape(net, one)}
    followed = all(user.type in RESHAPES for user, _ in net.uses((layer, 0)))
    if sum(map(net.is_private, reshapes)) < (1 if followed else _LEAST):
        return False
    axis = int(layer.data["axis"]) % made.rank
    like = net.tensor(net.inputs(next(one for one in inputs if one in reshapes)[0])[0]).shape
    place = _place(like, made.sizes[:axis])
    if place is None:
        return False
    sources: list[Value] = []
    for one in inputs:
        source = net.inputs(one[0])[0] if one in reshapes else _as_part(net, one, like, place)
        if source is None or not _fits(net.tensor(source).shape, like, place):
            return False
        sources.append(source)
    new = net.add("Concat", "opset1", sources, {"axis": str(place)}, like=layer)
    pattern = pattern_of(net.tensor(new).shape, made)
    return pattern is not None and fuse(net, layer, put_reshape(net, new, pattern, layer))


def _is_reshape(net: Rewriter, value: Value) -> bool:
    return value[0].type in RESHAPES and keeps_order(net, value[0])


def _place(shape: Shape, before: tuple[Size, ...]) -> int | None:
    """The axis before which a shape has as many elements as some sizes make."""
    wanted: Size = 1
    for size in before:
        wanted = wanted * size
    count: Size = 1
    for axis in range(shape.rank or 0):
        if same_size(count, wanted):
            return axis
        count = count * shape.sizes[axis]
    return None


def _fits(shape: Shape, like: Shape, place: int) -> bool:
    """Whether two shapes are the same beside one axis."""
    return shape.rank == like.rank and same_shape(
        Shape([*shape.sizes[:place], 1, *shape.sizes[place + 1 :]]),
        Shape([*like.sizes[:place], 1, *like.sizes[place + 1 :]]),
    )


def _as_part(net: Rewriter, value: Value, like: Shape, place: int) -> Value | None:
    """A constant with the sizes of the others beside one axis."""
    array = net.known(value) if value[0].is_constant else None
    rest = [size for axis, size in enumerate(like.sizes) if axis != place]
    sizes = [size for size in rest if not isinstance(size, Dim)]
    if array is None or len(sizes) < len(rest) or not prod(sizes) or array.size % prod(sizes):
        return None
    sizes.insert(place, array.size // prod(sizes))
    return net.constant(array.reshape(sizes), net.kind(value), value[0])


#: Reshapes from which on there is something to gain.
_LEAST = 2

RULE = Rule("concat-between-reshapes", ("Concat",), _apply)
