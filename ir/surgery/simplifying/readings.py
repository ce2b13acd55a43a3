"""How constants are read, where OpenVINO makes other numbers of one that is read in two ways."""

from __future__ import annotations

from typing import NamedTuple

from ....schemas import ElementType
from ...document import Layer
from ...execution import Halves, halves, is_decompression
from .patterns import is_on, order_of, swaps_last
from .rewriter import Rewriter, Value

#: What makes numbers of levels, and moves them.
_MAKERS = frozenset({
    "Convert", "Multiply", "Reshape", "Squeeze", "Subtract", "Transpose", "Unsqueeze",
})  # fmt: skip
#: The most layers that are looked at behind a constant.
_MOST = 64


class Reading(NamedTuple):
    """How a constant is read."""

    #: Whether products take it with its last two axes in turn: OpenVINO's CPU lays out one
    #: constant for all products, as the first of them takes it.
    turned: bool = False
    #: Whether what is made of it in half precision is rounded.
    rounded: bool = False


def reading(net: Rewriter, constant: Layer) -> Reading:
    """How those who read a constant do it."""
    turned = rounded = False
    seen: set[tuple[Layer, bool]] = set()
    stack = [(constant, False)]
    while stack and len(seen) < _MOST:
        layer, turn = stack.pop()
        for user, index in net.uses((layer, 0)):
            if user.type == "MatMul" and index == 1:
                # Of unequal sizes one layout is none for the other.
                square = _is_square(net.shape(net.inputs(user)[1]))
                turned |= square and turn != is_on(user, "transpose_b")
            if user.type not in _MAKERS or (user.type == "Transpose" and index):
                continue
            if _touches_halves(net, (user, 0)):
                found = halves_of(net)
                rounded |= user.id in found.layers or _is_read_rounded(net, user, found)
            swapped = user.type == "Transpose" and swaps_last(order_of(net, user))
            after = (user, turn != swapped)
            if after not in seen:
                seen.add(after)
                stack.append(after)
    return Reading(turned, rounded)


def rounding(net: Rewriter, layer: Layer) -> tuple[bool, ...]:
    """How a layer is marked and rounded where it makes half precision, or widens it."""
    if not _touches_halves(net, (layer, 0)):
        return ()
    found = halves_of(net)
    read = _is_read_rounded(net, layer, found)
    return is_decompression(layer), layer.id in found.layers, read


def halves_of(net: Rewriter) -> Halves:
    """What is rounded in the graph as it was at first: no rule changes that."""
    memory = net.memory.setdefault("halves", {})
    if not memory:
        memory["found"] = halves(net.graph, net.graph.order())
    found: Halves = memory["found"]
    return found


def _touches_halves(net: Rewriter, value: Value) -> bool:
    """Whether a layer of the graph gives half precision, or converts it."""
    layer = value[0]
    if net.is_fresh(layer):
        return False
    widens = layer.type == "Convert" and net.kind(net.inputs(layer)[0]) is ElementType.F16
    return widens or net.kind(value) is ElementType.F16


def _is_read_rounded(net: Rewriter, layer: Layer, found: Halves) -> bool:
    """Whether somebody rounds what a layer gives, which is not rounded itself."""
    return any((user.id, index) in found.inputs for user, index in net.uses((layer, 0)))


def _is_square(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and len(shape) > 1 and shape[-1] == shape[-2] > 1


__all__ = ["Reading", "reading", "rounding"]
