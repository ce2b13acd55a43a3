"""The places of all that is seen when some groups are open.

What is opened pushes the rest of its group apart: rows become as high as their highest child,
and distances from side to side are stretched as much as the widest that is open there needs.
Since nothing comes nearer to anything by it, nothing that was apart overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....layers.memory import without_collection
from ...document import Model
from .hierarchy import Tree, group_layers
from .labels import GROUP, LAYER, Labels, label
from .layering import Layout, lay_out
from .sheet import Sheet, read_sheet
from .wiring import Wiring, wire

#: Of an open group: the height of its title, and the room at its sides.
TITLE, PAD = 26.0, 14.0
#: How open a group is; of a repetition, ``SAMPLE`` shows the first turn for all.
CLOSED, SAMPLE, OPEN = 0, 1, 2
#: A picture opens of itself as far as so many boxes.
COMFORTABLE = 420


@dataclass
class Picture:
    """A model laid out."""

    sheet: Sheet
    tree: Tree
    labels: Labels
    wiring: Wiring
    layout: Layout

    @classmethod
    def of(cls, model: Model) -> Picture:
        """Lay out a model."""
        with without_collection():
            return cls.of_sheet(read_sheet(model))

    @classmethod
    def of_sheet(cls, sheet: Sheet) -> Picture:
        """Lay out what a sheet shows."""
        tree = group_layers(sheet)
        labels = label(sheet, tree)
        wiring = wire(sheet, tree)
        right = labels.half + labels.chips
        layout = lay_out(tree, wiring, labels.half, right, weights(sheet, tree))
        return cls(sheet, tree, labels, wiring, layout)

    def opened(self, most: int = COMFORTABLE) -> dict[int, int]:
        """Which groups to open at first: from outside to inside, while the boxes stay few."""
        tree = self.tree
        states = {tree.root: OPEN}
        boxes, queue = len(tree.groups[-1].children), [tree.root]
        for number in queue:
            for child in self.inside(number, states):
                if child < tree.count:
                    continue
                group = tree.groups[child - tree.count]
                state = SAMPLE if group.kind == "run" else OPEN
                more = len(self.inside(child, {child: state})) - 1
                if boxes + more <= most:
                    states[child] = state
                    boxes += more
                    queue.append(child)
        return states

    def inside(self, number: int, states: Mapping[int, int]) -> list[int]:
        """The children that are seen of a group that is open."""
        group = self.tree.groups[number - self.tree.count]
        children = group.children
        return children[:1] if group.kind == "run" and states[number] == SAMPLE else children


@dataclass
class Box:
    """A layer or a group where it is seen."""

    number: int
    x: float
    y: float
    left: float
    right: float
    height: float
    open: bool
    depth: int


class Line(NamedTuple):
    """An edge: corner points, and whether it ends at a closed box, with an arrow."""

    value: int
    points: list[tuple[float, float]]
    ends: bool


@dataclass
class Scene:
    """Boxes, outer ones first, and the courses of edges."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    left: float = 0.0
    right: float = 0.0
    height: float = 0.0


@dataclass
class _Size:
    """A box with what is inside, before it has its place."""

    left: float
    right: float
    height: float
    stretch: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    heights: list[float] = field(default_factory=list)


def scene(picture: Picture, states: Mapping[int, int]) -> Scene:
    """Place all that is seen, given how open the groups are."""
    return _Builder(picture, states).build()


def weights(sheet: Sheet, tree: Tree) -> NDArray[np.float64]:
    """What each layer adds to the main path, which goes around computations of shapes."""
    found = np.ones(len(tree.parent))
    for number, layer in enumerate(sheet.layers):
        if sheet.shown(number) and layer.outputs:
            port = layer.outputs[0]
            if len(port.dims) < 2 and (port.precision or "").startswith(("I", "U", "BOOL")):
                found[number] = -0.01
    for index, group in enumerate(tree.groups):
        found[tree.count + index] = sum(found[each] for each in group.children)
    return found


class _Builder:
    def __init__(self, picture: Picture, states: Mapping[int, int]) -> None:
        self.picture, self.states = picture, states
        self.layout, self.tree, self.labels = picture.layout, picture.tree, picture.labels
        self.sizes: dict[int, _Size] = {}
        wiring = picture.wiring
        total = len(self.tree.parent)
        order = np.argsort(wiring.group, kind="stable")
        bounds = np.searchsorted(wiring.group[order], np.arange(total + 1))
        self.edges = order
        self.bounds = bounds
        self.port = {
            (int(g), int(v), int(e)): total + i
            for i, (g, v, e) in enumerate(
                zip(wiring.port_group, wiring.port_value, wiring.port_enters, strict=True)
            )
        }
        self.ports_of: dict[int, list[int]] = {}
        for (group, _, _), number in self.port.items():
            self.ports_of.setdefault(group, []).append(number)
        self.scene = Scene()

    def build(self) -> Scene:
        root = self.tree.root
        # What is inside comes before what is around it, in the list of groups.
        for number in range(self.tree.count, root + 1):
            if self.is_open(number):
                self.sizes[number] = self.open_size(number)
        size = self.size(root)
        waiting = [(root, 0.0, 0.0, 0)]
        while waiting:
            waiting += reversed(self.place(*waiting.pop()))
        self.scene.left, self.scene.right, self.scene.height = size.left, size.right, size.height
        return self.scene

    def shown_as(self, number: int) -> int:
        """The group whose inside is seen: of a repetition, the first turn for all."""
        while number >= self.tree.count and self.states.get(number) == SAMPLE:
            first = self.tree.groups[number - self.tree.count].children[0]
            if first < self.tree.count:
                break
            number = first
        return number

    def is_open(self, number: int) -> bool:
        return number >= self.tree.count and bool(self.states.get(number))

    def size(self, number: int) -> _Size:
        """How large a box is, with what is open inside."""
        if number not in self.sizes:
            half, height = float(self.labels.half[number]), float(self.labels.height[number])
            self.sizes[number] = _Size(half, half, height)
        return self.sizes[number]

    def open_size(self, number: int) -> _Size:
        shown = self.shown_as(number)
        index = shown - self.tree.count
        group, layout = self.tree.groups[index], self.layout
        heights = [0.0] * int(layout.rows[index])
        wide: list[tuple[float, float, float]] = []
        for child in group.children:
            size = self.size(child)
            row = int(layout.row[child])
            heights[row] = max(heights[row], size.height, float(self.labels.height[child]))
            if self.is_open(child):
                x, half = float(layout.x[child]), float(self.labels.half[child])
                wide.append((x - half, x, size.left / half))
                wide.append((x, x + half, size.right / half))
        stretch = stretching(wide)
        left, right = stretch(np.array([-layout.left[index], layout.right[index]])).tolist()
        root = number == self.tree.root
        pad = 0.0 if root else PAD
        label = float(self.labels.half[number])
        height = sum(heights) + float(layout.gaps[index][: len(heights) - 1].sum())
        room = 0.0 if root else TITLE + PAD
        return _Size(
            max(-left + pad, label), max(right + pad, label), height + room, stretch, heights
        )

    def place(
        self, number: int, x: float, y: float, depth: int
    ) -> list[tuple[int, float, float, int]]:
        """Put a box where it belongs; the places of what is inside."""
        size = self.size(number)
        is_open = self.is_open(number)
        self.scene.boxes.append(
            Box(number, x, y, size.left, size.right, size.height, is_open, depth)
        )
        inside: list[tuple[int, float, float, int]] = []
        if not is_open:
            return inside
        shown = self.shown_as(number)
        index = shown - self.tree.count
        layout, stretch = self.layout, size.stretch
        assert stretch is not None
        tops = self.tops(index, size, y + (0.0 if number == self.tree.root else TITLE))
        middle: dict[int, float] = {}
        span: dict[int, tuple[float, float]] = {}
        for child in (*self.tree.groups[index].children, *self.ports_of.get(shown, ())):
            row = int(layout.row[child])
            middle[child] = x + float(stretch(layout.x[child : child + 1])[0])
            if child >= len(self.tree.parent):
                # Ports lie in the border.
                span[child] = (y, y) if layout.row[child] == 0 else (y + size.height,) * 2
                continue
            height, tall = self.size(child).height, self.tall(child)
            center = tops[row] + size.heights[row] / 2
            span[child] = (center - tall / 2, center + tall / 2)
            inside.append((child, middle[child], center - height / 2, depth + 1))
        for edge in self.edges[self.bounds[shown] : self.bounds[shown + 1]].tolist():
            self.line(edge, middle, span, tops, size, x)
        return inside

    def tall(self, number: int) -> float:
        """The height of the box itself; its chips may reach further."""
        if self.is_open(number):
            return self.sizes[number].height
        return GROUP if number >= self.tree.count else LAYER

    def tops(self, index: int, size: _Size, y: float) -> list[float]:
        gaps = self.layout.gaps[index]
        tops = [y]
        for height, gap in zip(size.heights, gaps, strict=True):
            tops.append(tops[-1] + height + float(gap))
        return tops

    def end(self, box: int, offset: float, value: int, enters: int, x: float) -> float:
        """Where an edge meets a box: at the port inside, where that is seen."""
        if box < len(self.tree.parent) and self.is_open(box):
            size, shown = self.sizes[box], self.shown_as(box)
            port = self.port.get((shown, value, enters)) or self.port.get((box, value, enters))
            if port is not None and size.stretch is not None and shown == box:
                return x + float(size.stretch(self.layout.x[port : port + 1])[0])
        return x + offset

    def line(
        self, edge: int, middle: dict[int, float], span: dict[int, tuple[float, float]],
        tops: list[float], size: _Size, x: float,
    ) -> None:  # fmt: skip
        """The course of an edge: straight past rows, bent only in the gaps between them."""
        wiring, layout = self.picture.wiring, self.layout
        source, target = int(wiring.source[edge]), int(wiring.target[edge])
        value = int(wiring.value[edge])
        start = self.end(source, float(layout.out[edge]), value, 0, middle[source])
        end = self.end(target, float(layout.into[edge]), value, 1, middle[target])
        first, last = int(layout.row[source]), int(layout.row[target])
        points = [(start, span[source][1])]
        bottom = tops[first] + size.heights[first]
        if bottom > points[0][1]:
            points.append((start, bottom))
        rail = float(layout.rail[edge])
        if last - first > 1:
            assert size.stretch is not None
            course = x + float(size.stretch(np.array([rail]))[0])
            points.append((course, tops[first + 1]))
            points.append((course, tops[last - 1] + size.heights[last - 1]))
        points.append((end, tops[last]))
        if span[target][0] > tops[last]:
            points.append((end, span[target][0]))
        ends = target < len(self.tree.parent) and not self.is_open(target)
        self.scene.lines.append(Line(value, points, ends))


def stretching(
    wide: list[tuple[float, float, float]],
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """A map of places from side to side that makes each interval as many times wider as it says.

    It keeps the middle where it is, and brings nothing nearer to anything.
    """
    wide = [row for row in wide if row[2] > 1.0]
    if not wide:
        return lambda x: x
    points = np.unique(np.array([0.0] + [end for row in wide for end in row[:2]]))
    slopes = np.ones(len(points) - 1)
    for begin, end, slope in wide:
        part = slice(*np.searchsorted(points, (begin, end)))
        slopes[part] = np.maximum(slopes[part], slope)
    moved = np.concatenate([[0.0], np.cumsum(np.diff(points) * slopes)])
    moved -= moved[np.searchsorted(points, 0.0)]

    def stretch(x: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.interp(x, points, moved)
        return inside + np.minimum(x - points[0], 0.0) + np.maximum(x - points[-1], 0.0)

    return stretch


__all__ = ["CLOSED", "OPEN", "PAD", "SAMPLE", "TITLE", "Box", "Picture", "Scene", "scene"]
