"""Concat(Reshape(a), Reshape(b), ...) → Reshape(Concat(a, b, ...)), so of flattened stacks.

As many elements lie before the axis along which a, b, ... are put together as before the other.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    # Axes of size one before the last place are left to samples, of which there may be more.
    for place in reversed(list(_places(like, made.sizes[:axis]))):
        sources = [_part(net, one, one in reshapes, like, place) for one in inputs]
        found = [one for one in sources if one is not None]
        if len(found) < len(sources):
            continue
        new = net.add("Concat", "opset1", found, {"axis": str(place)}, like=layer)
        pattern = pattern_of(net.tensor(new).shape, made)
        return pattern is not None and fuse(net, layer, put_reshape(net, new, pattern, layer))
    return False


def _is_reshape(net: Rewriter, value: Value) -> bool:
    return value[0].type in RESHAPES and keeps_order(net, value[0])


def _places(shape: Shape, before: tuple[Size, ...]) -> Iterator[int]:
    """The axes before which a shape has as many elements as some sizes make."""
    wanted: Size = 1
    for size in before:
        wanted = wanted * size
    count: Size = 1
    for axis in range(shape.rank or 0):
        if same_size(count, wanted):
            yield axis
        count = count * shape.sizes[axis]


def _part(net: Rewriter, value: Value, is_cut: bool, like: Shape, place: int) -> Value | None:
    """What has the sizes of others beside one axis: what a Reshape is given, or a constant."""
    source = net.inputs(value[0])[0] if is_cut else _as_part(net, value, like, place)
    return source if source is not None and _fits(net.tensor(source).shape, like, place) else None


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
