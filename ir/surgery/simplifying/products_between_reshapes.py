"""Reshape(MatMul(Reshape(a), Reshape(b))) → MatMul(a, b), a and b many matrices along axes.

The axes are put together before the product, and come apart again behind it.
"""

from __future__ import annotations

from ....schemas import Shape, Size
from ...document import Layer
from .patterns import fuse, made_by, same_shape, same_size
from .rewriter import Rewriter, Rule, Value


def _apply(net: Rewriter, layer: Layer) -> bool:
    value = net.inputs(layer)[0]
    product = made_by(net, value, "MatMul")
    if product is None or not net.is_private(value) or net.tensor(value).rank != _RANK:
        return False
    made = net.tensor((layer, 0)).shape
    sources = [_apart(net, one, made) for one in net.inputs(product)]
    first, second = sources
    if first is None or second is None:
        return False
    return fuse(net, layer, net.copy(product, [first, second]))


def _apart(net: Rewriter, value: Value, made: Shape) -> Value | None:
    """What a Reshape puts the leading axes of together, where they are those of a shape."""
    reshape = made_by(net, value, "Reshape")
    if reshape is None or made.rank is None or made.rank <= _RANK:
        return None
    source = net.inputs(reshape)[0]
    given, flat = net.tensor(source).shape, net.tensor(value).shape
    if given.rank != made.rank or flat.rank != _RANK:
        return None
    count: Size = 1
    for size in given.sizes[:-2]:
        count = count * size
    fits = same_shape(Shape(given.sizes[:-2]), Shape(made.sizes[:-2])) and all(
        same_size(a, b) for a, b in zip((count, *given.sizes[-2:]), flat.sizes, strict=True)
    )
    return source if fits else None


#: Axes of many matrices in a row.
_RANK = 3

RULE = Rule("products-between-reshapes", ("Reshape",), _apply, exact=False)
