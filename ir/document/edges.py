"""The edges of a graph: read from their section, and looked up by the layers at their ends."""

from __future__ import annotations

from bisect import insort

from lxml import etree

from ...schemas import IRError, Where
from ..text import at
from .parts import LARGEST_ID, Edge, whole

#: The attributes of an edge, and all of each kind in a section.
END_NAMES = ("from-layer", "from-port", "to-layer", "to-port")
_ENDS = [etree.XPath(f"edge/@{name}", smart_strings=False) for name in END_NAMES]
_COUNT = etree.XPath("count(edge)")


class EdgeIndex:
    """Edges by the layer they enter, and by the layer they leave."""

    __slots__ = ("_places", "edges", "entering", "leaving")

    def __init__(self, edges: list[Edge]) -> None:
        self.edges = edges
        self.entering: dict[int, list[Edge]] = {}
        self.leaving: dict[int, list[Edge]] = {}
        self._places: dict[tuple[int, ...], int] | None = None
        entering, leaving = self.entering, self.leaving
        for edge in edges:
            entering.setdefault(edge[2], []).append(edge)
            leaving.setdefault(edge[0], []).append(edge)

    def put(self, new: Edge) -> None:
        """An edge in the place of the one that enters the same input; else a further one."""
        places = self.places
        place = places.get(new[2:])
        if place is None:
            places[new[2:]] = len(self.edges)
            self.edges.append(new)
            self.entering.setdefault(new[2], []).append(new)
            self.leaving.setdefault(new[0], []).append(new)
            return
        old, self.edges[place] = self.edges[place], new
        entering = self.entering[old[2]]
        entering[entering.index(old)] = new
        self.leaving[old[0]].remove(old)
        insort(self.leaving.setdefault(new[0], []), new, key=lambda edge: places[edge[2:]])

    @property
    def places(self) -> dict[tuple[int, ...], int]:
        """Where in the list the edge into an input stands, the first of several."""
        if self._places is None:
            backwards = range(len(self.edges) - 1, -1, -1)
            self._places = {self.edges[place][2:]: place for place in backwards}
        return self._places


def read_edges(section: etree._Element, file: str | None, text: bytes | None) -> list[Edge]:
    """Read the edges: all at once where each has four plain numbers, else one by one."""
    ends = [find(section) for find in _ENDS]
    digits = "".join(map("".join, ends))
    if len({_COUNT(section), *map(len, ends)}) == 1 and digits.isascii() and digits.isdigit():
        try:
            columns = [list(map(int, texts)) for texts in ends]
        except ValueError:  # an empty one
            columns = [[-1]]
        if max(map(max, columns)) <= LARGEST_ID and min(map(min, columns)) >= 0:
            return list(map(Edge._make, zip(*columns, strict=True)))
    found = []
    for child in section.iterchildren("edge"):
        where = Where(file, child.sourceline)
        with at(where, text, child):
            numbers = (whole(_end(child, name), f"{name} of an edge") for name in END_NAMES)
            found.append(Edge(*numbers))
    return found


def _end(element: etree._Element, name: str) -> str:
    text = element.get(name)
    if text is None:
        raise IRError(f"an edge has no {name}")
    return text
