"""How constants are read, where OpenVINO makes other numbers of one that is read in two ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....schemas import ElementType
from ...document import Layer, Readings, Ways
from ...execution import Halves, halves, is_decompression
from .patterns import order_of
from .rewriter import Rewriter, Value


class Reading(NamedTuple):
    """How a constant is read."""

    #: How square products take it: OpenVINO's CPU lays out one constant for all of them, as the
    #: first of them takes it.
    ways: Ways = frozenset()
    #: Whether what is made of it in half precision is rounded.
    rounded: bool = False


class _Wiring:
    """The wires of a graph that is being rewritten."""

    def __init__(self, net: Rewriter) -> None:
        self._net = net

    def feeders(self, layer: Layer) -> Sequence[Layer]:
        """Who feeds the inputs of a layer."""
        return [feeder for feeder, _ in self._net.inputs(layer)]

    def readers(self, layer: Layer) -> Iterable[tuple[Layer, int]]:
        """The layers and inputs that a layer feeds."""
        for index in range(len(layer.outputs)):
            yield from self._net.uses((layer, index))

    def sizes(self, layer: Layer, index: int) -> Sequence[int]:
        """The sizes of an input; none where they are not known."""
        return self._net.shape(self._net.inputs(layer)[index]) or ()

    def axes(self, transpose: Layer) -> Sequence[int] | None:
        """The order of a Transpose; None where it is not known."""
        return order_of(self._net, transpose)


def reading(net: Rewriter, constant: Layer) -> Reading:
    """How those who read a constant do it."""
    memory = net.memory.setdefault("readings", {})
    if not memory:
        memory["found"] = Readings(_Wiring(net))
    found = memory["found"].of(constant)
    return Reading(found.ways, any(_is_rounded(net, layer) for layer in found.made))


def _is_rounded(net: Rewriter, layer: Layer) -> bool:
    """Whether what a layer makes of constants in half precision is rounded."""
    if not _touches_halves(net, (layer, 0)):
        return False
    found = halves_of(net)
    return layer.id in found.layers or _is_read_rounded(net, layer, found)


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


__all__ = ["Reading", "reading", "rounding"]
