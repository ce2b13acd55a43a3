"""Which constants products read as they are, and which turned.

OpenVINO's CPU lays out a square constant for the product that reads it first, and takes what it
made for all others that read the same bytes, also where they read them the other way; so it does
for convolutions. So bytes are shared only among constants that are read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from .graph import Graph
from .layer import Layer

#: Whether a product reads turned, and what else its way is known by.
_Way: TypeAlias = tuple[bool, str]
#: Each way in which products read.
Ways: TypeAlias = frozenset[_Way]
#: Of these each input has a part in the numbers that come out, of all others the first alone.
_MIXING = frozenset({"Add", "Concat", "Divide", "Multiply", "Select", "Subtract"})
#: The most layers that are looked at behind a constant.
_MOST = 64
_EITHER = frozenset({False, True})
#: What lays out a constant in its own way.
_PRODUCTS = frozenset({"ConvolutionBackpropData", "Einsum", "MatMul"})
_STRAIGHT: _Way = (False, "")


class Wiring(Protocol):
    """What is asked of a graph, which may be one that is being rewritten."""

    def feeders(self, layer: Layer) -> Sequence[Layer | None]:
        """Who feeds the inputs of a layer."""

    def readers(self, layer: Layer) -> Iterable[tuple[Layer, int]]:
        """The layers and inputs that a layer feeds."""

    def sizes(self, layer: Layer, index: int) -> Sequence[int]:
        """The sizes of an input; none where they are not known."""

    def axes(self, transpose: Layer) -> Sequence[int] | None:
        """The order of a Transpose; None where it is not known."""


class Read(NamedTuple):
    """How a constant is read."""

    #: The ways in which products take it; none where all take it as it is, as then it is laid out
    #: as what no product reads.
    ways: Ways
    #: What is made of it and of other constants alone.
    made: list[Layer]


class Readings:
    """How the constants of a graph are read."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        #: Whether layers are made of constants alone, as far as was asked.
        self._made: dict[Layer, bool] = {}

    def of(self, constant: Layer) -> Read:
        """How one is read, also by way of what is made of it and of other constants alone.

        Whatever moves, chooses or converts is passed: OpenVINO leaves out what changes nothing.
        """
        ways: set[_Way] = set()
        made: dict[Layer, None] = {}
        seen = {(constant, False)}
        stack = [(constant, False)]
        while stack and len(seen) <= _MOST:
            layer, turn = stack.pop()
            for user, index in self._wiring.readers(layer):
                if len(seen) > _MOST:  # as many may read each of many constants
                    break
                way = None
                if user.type in _PRODUCTS:
                    way = _way(user, index, self._wiring.sizes(user, index))
                if way is not None:
                    ways.add((turn != way[0], way[1]))
                    continue
                if (index and user.type not in _MIXING) or not self.is_made(user):
                    continue
                made[user] = None
                for turned in self._turns(user):
                    after = user, turn != turned
                    if after not in seen:
                        seen.add(after)
                        stack.append(after)
        if len(seen) > _MOST:
            ways |= {(turned, "") for turned in _EITHER}
        return Read(frozenset() if ways == {_STRAIGHT} else frozenset(ways), [*made])

    def _turns(self, layer: Layer) -> frozenset[bool]:
        """Whether a layer lets the last two axes change places; either where that is not clear."""
        if layer.type != "Transpose":
            return frozenset({False})
        axes = self._wiring.axes(layer)
        if axes is not None and [*axes] == [*range(len(axes))] and axes:
            return frozenset({False})
        return frozenset({True}) if swaps_last(axes) else _EITHER

    def is_made(self, layer: Layer) -> bool:
        """Whether a layer is made of constants, and of shapes, alone."""
        known = self._made
        if layer in known:
            return known[layer]
        # Those on the way are not, until all that feeds them is: what feeds itself never is.
        known[layer] = False
        stack = [(layer, self._feeders(layer))]
        while stack:
            one, left = stack[-1]
            feeder = next(left, one)
            if feeder is one:
                known[one] = True
                stack.pop()
            elif feeder is None or known.get(feeder) is False:
                return False
            elif feeder not in known:
                known[feeder] = False
                stack.append((feeder, self._feeders(feeder)))
        return True

    def _feeders(self, layer: Layer) -> Iterator[Layer | None]:
        """What a layer is made of: nothing that matters, nothing that is known, or layers."""
        if layer.is_constant or layer.type == "ShapeOf":
            return iter(())
        return iter(self._wiring.feeders(layer) or [None])


class GraphWiring:
    """The wires of a graph as it is."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        #: Who reads a layer, as far as was asked: many constants may come to one that many read.
        self._readers: dict[Layer, list[tuple[Layer, int]]] = {}

    def feeders(self, layer: Layer) -> Sequence[Layer | None]:
        """Who feeds the inputs of a layer."""
        return layer.producers

    def readers(self, layer: Layer) -> Iterable[tuple[Layer, int]]:
        """The layers and inputs that a layer feeds."""
        if layer not in self._readers:
            self._readers[layer] = self._graph.consumers(layer)
        return self._readers[layer]

    def sizes(self, layer: Layer, index: int) -> Sequence[int]:
        """The sizes of an input, as its port says."""
        return layer.inputs[index].dims

    def axes(self, transpose: Layer) -> Sequence[int] | None:
        """The order of a Transpose whose order is a constant; an empty one turns all around."""
        order = transpose.producers[1] if len(transpose.inputs) > 1 else None
        if order is None or not order.is_constant or not order.has_value:
            return None
        rank = len(transpose.inputs[0].dims)
        axes = [int(axis) for axis in order.value.ravel()] or [*reversed(range(rank))]
        return [axis % rank for axis in axes] if len(axes) == rank else None


def ways_of(graphs: dict[Graph, Readings | None], constant: Layer) -> Ways:
    """How products of its graph read a constant; what is known of graphs is kept in ``graphs``."""
    graph = constant.graph
    if graph is None:
        return frozenset()
    if graph not in graphs:
        graphs[graph] = Readings(GraphWiring(graph)) if _has_product(graph) else None
    readings = graphs[graph]
    return frozenset() if readings is None else readings.of(constant).ways


def _has_product(graph: Graph) -> bool:
    """Whether a product has a way to take an input: where none has, nobody has to look."""
    return any(
        _way(layer, index, port.dims) is not None
        for layer in graph.layers if layer.type in _PRODUCTS
        for index, port in enumerate(layer.inputs)
    )  # fmt: skip


def _way(layer: Layer, index: int, sizes: Sequence[int]) -> _Way | None:
    """How a product takes an input; none where it is no square, or it is no product.

    A constant that is no square is read in two ways by products of other sizes alone. Where
    another has its bytes and its sizes the other way round, OpenVINO mixes the two up all the
    same: nobody has weights like that, and bytes of all others would be written twice. What
    OpenVINO makes of an Einsum is not followed: each equation is a way of its own. A Convolution
    takes its weights as what is no product takes them.
    """
    if layer.type == "Einsum":
        return False, f"{layer.data.get('equation', '')} {index}"
    if index != 1 or len(sizes) < 2:
        return None
    if layer.type == "MatMul" and sizes[-1] == sizes[-2] != 1:
        return is_on(layer, "transpose_b"), ""
    if layer.type == "ConvolutionBackpropData" and sizes[0] == sizes[1] != 1:
        return True, ""
    return None


def swaps_last(order: Sequence[int] | None) -> bool:
    """Whether an order lets the last two axes change places, and no others."""
    if order is None or len(order) < 2:
        return False
    return [*order] == [*range(len(order) - 2), len(order) - 1, len(order) - 2]


def is_on(layer: Layer, name: str) -> bool:
    """Whether an attribute that is false by default is true."""
    return layer.data.get(name, "false").strip().lower() in ("true", "1")


__all__ = ["Readings", "Ways", "is_on", "swaps_last", "ways_of"]
