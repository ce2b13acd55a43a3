"""Attention(Reshape(q), Reshape(k), Reshape(v), m) → Reshape(Attention(q, k, v, m)).

The Reshapes put together or take apart the axes of many matrices, all in the same way. A sink
would need as many axes as they have: where there is one, all stays.
"""

from __future__ import annotations

from ....schemas import Shape, Size
from ...document import Layer
from .axis_groups import moved_into, reshaped
from .patterns import fuse, same_shape, same_size
from .reshape_chains import RESHAPES, keeps_order, pattern_of, put_reshape
from .rewriter import Rewriter, Rule, Value

#: Inputs without a sink: three of matrices, a mask and a scale.
_INPUTS = 5
#: Axes of what attention is computed of.
_RANKS = (3, 4)


def _apply(net: Rewriter, layer: Layer) -> bool:
    matrices, rest = list(net.inputs(layer)[:3]), list(net.inputs(layer)[3:])
    if len(net.inputs(layer)) > _INPUTS:
        return False
    sources = [_source(net, one) for one in matrices]
    found = [one for one in sources if one is not None]
    if len(found) < len(sources) or not (_are_alike(net, matrices) and _are_alike(net, found)):
        return False
    made = net.tensor((layer, 0)).shape
    same = same_shape(Shape([*_batch(net, found[0]), *made.sizes[-2:]]), made)
    followed = all(user.type in RESHAPES for user, _ in net.uses((layer, 0)))
    gone = sum(map(net.is_private, set(matrices)))
    if gone <= (0 if same or followed else 1):
        return False
    if rest:
        scores = [net.tensor(matrices[0]).shape.sizes[-2], net.tensor(matrices[1]).shape.sizes[-2]]
        sizes = moved_into(
            net.tensor(rest[0]).shape,
            Shape([*_batch(net, matrices[0]), *scores]),
            Shape([*_batch(net, found[0]), *scores]),
        )
        mask = None if sizes is None else reshaped(net, rest[0], sizes, layer)
        if mask is None:
            return False
        rest[0] = mask
    new = net.copy(layer, [*found, *rest])
    pattern = pattern_of(net.tensor(new).shape, made)
    if pattern is None:
        return False
    return fuse(net, layer, new if same else put_reshape(net, new, pattern, layer))


def _source(net: Rewriter, value: Value) -> Value | None:
    """What a Reshape gives other leading axes."""
    if value[0].type not in RESHAPES or not keeps_order(net, value[0]):
        return None
    source = net.inputs(value[0])[0]
    given, made = net.tensor(source).shape, net.tensor(value).shape
    if given.rank not in _RANKS or made.rank not in _RANKS:
        return None
    return source if all(map(same_size, given.sizes[-2:], made.sizes[-2:])) else None


def _are_alike(net: Rewriter, values: list[Value]) -> bool:
    """Whether there are as many matrices of each kind, along the same axes."""
    batches = [Shape(_batch(net, value)) for value in values]
    return all(same_shape(batches[0], batch) for batch in batches)


def _batch(net: Rewriter, value: Value) -> list[Size]:
    return list(net.tensor(value).shape.sizes[:-2])


RULE = Rule("attention-between-reshapes", ("ScaledDotProductAttention",), _apply, exact=False)
