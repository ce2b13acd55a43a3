"""Where the children of every group stand: rows by the longest path, columns for whole paths.

A path of layers has one column, so that it is a straight line; the longest of a group is in the
middle. A value that is read further down has a rail: a line at one place beside all boxes that
it passes. Shorter paths and rails lie further in. All groups are laid out together, each closed
child being as large as its label; what is opened later pushes the others apart (see scene).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .hierarchy import Tree
from .sheet import Ints
from .wiring import Wiring

#: Between columns, between rails, and between one row and the next.
SPACE, RAIL, GAP = 22.0, 6.0, 26.0
#: Between two edges that end at one box.
_SLOT = 12.0
#: Wider than any picture.
_FAR = 1e12


@dataclass
class Layout:
    """The place of each child and port, and the course of each edge; edges are the wiring's."""

    #: Row within the group, and the column's middle, of children and then ports.
    row: Ints
    x: NDArray[np.float64]
    #: Where an edge runs straight down past other rows; NaN where there is no row between.
    rail: NDArray[np.float64]
    #: Where an edge leaves and enters a box, from the middle of the box.
    out: NDArray[np.float64]
    into: NDArray[np.float64]
    #: Of each group: its number of rows, and the height of the gap below each row.
    rows: Ints
    gaps: list[NDArray[np.float64]]
    #: How far each group reaches to the left and right of its middle.
    left: NDArray[np.float64]
    right: NDArray[np.float64]


def lay_out(
    tree: Tree,
    wiring: Wiring,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> Layout:
    """Place the children of every group.

    Args:
        tree: The groups.
        wiring: Their edges.
        left: How far each child reaches to the left of its middle.
        right: The same to the right.
        weight: What each child adds to the length of a path that is to be straight.
    """
    ports = len(wiring.port_group)
    total = len(tree.parent)
    group = np.maximum(np.concatenate([tree.parent, wiring.port_group]) - tree.count, -1)
    rank = _ranks(tree, wiring)
    order = np.lexsort((rank[wiring.source], rank[wiring.target]))
    row = _rows(wiring, group, rank, order, len(tree.groups))
    rows = np.zeros(len(tree.groups), np.int64)
    inside = group >= 0
    np.maximum.at(rows, group[inside], row[inside] + 1)
    first = np.concatenate([[0], np.cumsum(rows)])
    # The rows of all groups, one group after the other.
    place = np.where(inside, row + first[group], -1)
    reach = np.concatenate([np.stack([left, right]), np.full((2, ports), RAIL)], axis=1)
    heavy = np.concatenate([weight, np.full(ports, 0.001)])
    columns = _Columns(wiring, place, group, rank, order, reach, heavy, int(first[-1]))
    x, rail = columns.x, columns.rail
    out, into = _slots(wiring, x, rail, reach, total)
    gaps = _gaps(wiring, place, x, rail, int(first[-1]))
    spans = [gaps[first[i] : first[i + 1]] for i in range(len(rows))]
    far_left, far_right = np.zeros(len(rows)), np.zeros(len(rows))
    np.maximum.at(far_left, group[inside], (reach[0] - x)[inside])
    np.maximum.at(far_right, group[inside], (reach[1] + x)[inside])
    railed = ~np.isnan(rail)
    home = wiring.group - tree.count
    np.maximum.at(far_left, home[railed], RAIL - rail[railed])
    np.maximum.at(far_right, home[railed], RAIL + rail[railed])
    return Layout(row, x, rail, out, into, rows, spans, far_left, far_right)


def _ranks(tree: Tree, wiring: Wiring) -> Ints:
    """The place of each child in its group's order; of ports before and after all."""
    rank = np.zeros(len(tree.parent), np.int64)
    for group in tree.groups:
        rank[group.children] = np.arange(1, len(group.children) + 1)
    return np.concatenate([rank, np.where(wiring.port_enters == 1, 0, len(tree.parent) + 1)])


def _rows(wiring: Wiring, group: Ints, rank: Ints, order: Ints, groups: int) -> Ints:
    """The longest way to each child; what waits for nothing stands just above its reader."""
    source, target = wiring.source, wiring.target
    port = np.arange(len(group)) >= len(group) - len(wiring.port_group)
    entry, exit_ = port & (rank == 0), port & (rank > 0)
    has_entry = np.zeros(groups, bool)
    has_entry[group[entry]] = True
    found = np.where((group >= 0) & has_entry[group] & ~entry, 1, 0).tolist()
    for start, end in zip(source[order].tolist(), target[order].tolist(), strict=True):
        found[end] = max(found[end], found[start] + 1)
    row = np.array(found, np.int64)
    latest = np.full(len(row), len(row) + 1)
    np.minimum.at(latest, source, row[target] - 1)
    loose = ~port & (latest <= len(row))
    loose[target] = False
    row[loose] = latest[loose]
    # Values that leave a group do so below all of its rows.
    last = np.zeros(groups, np.int64)
    inside = (group >= 0) & ~exit_
    np.maximum.at(last, group[inside], row[inside])
    row[exit_] = last[group[exit_]] + 1
    return row


class _Columns:
    """Gives each path and each rail its place from side to side."""

    def __init__(
        self, wiring: Wiring, place: Ints, group: Ints, rank: Ints, order: Ints,
        reach: NDArray[np.float64], weight: NDArray[np.float64], rows: int,
    ) -> None:  # fmt: skip
        self.weight = weight.tolist()
        self.wiring, self.place = wiring, place
        self.reach = reach
        self.x = np.zeros(len(place))
        self.rail = np.full(len(wiring.source), np.nan)
        self.most = np.full(rows, -_FAR)
        self.least = np.full(rows, _FAR)
        self.done = np.zeros(len(place), bool)
        self.next, self.previous = self.paths(group, rank, order)
        self.lay()

    def paths(self, group: Ints, rank: Ints, order: Ints) -> tuple[list[int], list[int]]:
        """Join each child with the one that goes on with its path; the edges by their numbers."""
        source, target = self.wiring.source, self.wiring.target
        weight = self.weight
        down, up = weight.copy(), weight.copy()
        for start, end in zip(source[order].tolist(), target[order].tolist(), strict=True):
            down[end] = max(down[end], down[start] + weight[end])
        back = np.lexsort((-rank[target], -rank[source]))
        for start, end in zip(source[back].tolist(), target[back].tolist(), strict=True):
            up[start] = max(up[start], up[end] + weight[start])
        through = np.array(down) + np.array(up) - np.array(weight)
        after, before = [-1] * len(down), [-1] * len(down)
        self.longest = self.main_paths(group, down, through, after, before)
        span = self.place[target] - self.place[source]
        least = np.minimum(through[source], through[target])
        for edge in np.lexsort((rank[target], span, -least)).tolist():
            start, end = int(source[edge]), int(target[edge])
            if after[start] < 0 and before[end] < 0:
                after[start], before[end] = edge, edge
        return after, before

    def main_paths(
        self, group: Ints, down: list[float], through: NDArray[np.float64], after: list[int],
        before: list[int],
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Join the longest path of every group; whether each child is on it."""
        source, target = self.wiring.source.tolist(), self.wiring.target.tolist()
        feeders: dict[int, list[int]] = {}
        for edge, end in enumerate(target):
            feeders.setdefault(end, []).append(edge)
        on = np.zeros(len(group), bool)
        ends = np.lexsort((np.array(down), np.round(through, 4), group))
        lasts = ends[np.flatnonzero(np.diff(np.append(group[ends], -2)))]
        for end in lasts[group[lasts] >= 0].tolist():
            on[end] = True
            while end in feeders:
                edge = max(feeders[end], key=lambda e: down[source[e]])
                start = source[edge]
                after[start], before[end] = edge, edge
                on[start] = True
                end = start
        return on

    def lay(self) -> None:
        """Place the main paths, then what is beside them, the shortest first."""
        source, target, value = self.wiring.source, self.wiring.target, self.wiring.value
        starts = source.tolist()
        ends = target.tolist()
        rows = self.place.tolist()
        readers: dict[int, list[int]] = {}
        feeding: dict[int, list[int]] = {}
        for edge, (start, end) in enumerate(zip(starts, ends, strict=True)):
            readers.setdefault(start, []).append(edge)
            feeding.setdefault(end, []).append(edge)
        strips: list[tuple[int, int, int, list[int], list[int]]] = []
        railed = np.zeros(len(starts), bool)
        for head in range(len(rows)):
            if self.previous[head] >= 0 or rows[head] < 0:
                continue
            path, edges = [head], []
            while self.next[path[-1]] >= 0:
                edge = self.next[path[-1]]
                edges.append(edge)
                path.append(ends[edge])
            top, bottom = rows[head], rows[path[-1]]
            main = bool(self.longest[head])
            if not main:
                # The way to the path and away from it runs in its column, too.
                into = max(feeding.get(head, ()), key=lambda e: rows[starts[e]], default=-1)
                away = min(readers.get(path[-1], ()), key=lambda e: rows[ends[e]], default=-1)
                if into >= 0 and not railed[into]:
                    top = min(top, rows[starts[into]] + 1)
                    edges.append(into)
                if away >= 0 and not railed[away]:
                    bottom = max(bottom, rows[ends[away]] - 1)
                    edges.append(away)
            railed[edges] = True
            strips.append((-1 if main else bottom - top, top, bottom, path, edges))
        span = self.place[target] - self.place[source]
        lone = np.flatnonzero((span > 1) & ~railed)
        by_value: dict[tuple[int, int], list[int]] = {}
        for edge in lone.tolist():
            by_value.setdefault((starts[edge], int(value[edge])), []).append(edge)
        for (start, _), edges in by_value.items():
            top, bottom = rows[start] + 1, max(rows[ends[edge]] for edge in edges) - 1
            strips.append((bottom - top, top, bottom, [], edges))
        strips.sort(key=lambda strip: strip[:2])
        for size, top, bottom, path, edges in strips:
            x = 0.0 if size < 0 else self.beside(top, bottom, path, edges)
            self.take(x, top, bottom, path)
            self.x[path] = x
            self.done[path] = True
            for edge in edges:
                if rows[ends[edge]] - rows[starts[edge]] > 1:
                    self.rail[edge] = x

    def profile(self, top: int, bottom: int, path: list[int]) -> NDArray[np.float64]:
        """How far a strip reaches to the left and right in each of its rows."""
        reach = np.full((2, bottom - top + 1), RAIL / 2)
        if path:
            reach[:, self.place[path] - top] = self.reach[:, path]
        return reach

    def beside(self, top: int, bottom: int, path: list[int], edges: list[int]) -> float:
        """The nearest free place at one side to what a strip is joined with."""
        reach = self.profile(top, bottom, path)
        space = SPACE if path else RAIL
        right = float((self.most[top : bottom + 1] + reach[0]).max()) + space
        left = float((self.least[top : bottom + 1] - reach[1]).min()) - space
        ends = {
            int(each)
            for edge in edges
            for each in (self.wiring.source[edge], self.wiring.target[edge])
            if self.done[each]
        }
        want = float(np.mean([self.x[each] for each in ends])) if ends else 0.0
        if want >= right or want <= left:
            return want
        return left if want - left <= right - want else right

    def take(self, x: float, top: int, bottom: int, path: list[int]) -> None:
        reach = self.profile(top, bottom, path)
        rows = slice(top, bottom + 1)
        np.maximum(self.most[rows], x + reach[1], out=self.most[rows])
        np.minimum(self.least[rows], x - reach[0], out=self.least[rows])


def _slots(
    wiring: Wiring, x: NDArray[np.float64], rail: NDArray[np.float64],
    reach: NDArray[np.float64], total: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Where edges end along the upper and lower side of a box, in the order of their rails."""
    source, target = wiring.source, wiring.target
    course = np.where(np.isnan(rail), x[source], rail)
    into = _spread(target, course, x[target], reach)
    leaving = np.where(np.isnan(rail), x[target], rail)
    # Edges of one value leave at one place: in the middle of where they go.
    keys = source * (int(wiring.value.max(initial=0)) + 1) + wiring.value
    found, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    sums = np.bincount(inverse, leaving, len(found)) / np.bincount(inverse, minlength=len(found))
    out = _spread(source[first], sums, x[source[first]], reach)[inverse]
    into[target >= total] = 0.0
    out[source >= total] = 0.0
    return out, into


def _spread(
    box: Ints, course: NDArray[np.float64], middle: NDArray[np.float64],
    reach: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Places along the side of a box: what comes straight in the middle, the others beside it."""
    order = np.lexsort((course, box))
    sorted_box = box[order]
    starts = np.flatnonzero(np.diff(np.append(-1, sorted_box)))
    counts = np.diff(np.append(starts, len(box)))
    rank = np.arange(len(box)) - np.repeat(starts, counts)
    away = np.abs(course - middle)[order]
    nearest = np.lexsort((away, sorted_box))
    straight = rank[nearest[starts]] if len(starts) else rank
    least = away[nearest[starts]] if len(starts) else away
    middle_rank = np.where(least < 1.0, straight, (counts - 1) / 2)
    offset = (rank - np.repeat(middle_rank, counts)) * _SLOT
    room = np.minimum(reach[0], reach[1])[sorted_box] - 8.0
    most = np.zeros(len(reach[0]))
    np.maximum.at(most, sorted_box, np.abs(offset))
    scale = np.where(most[sorted_box] > room, room / np.maximum(most[sorted_box], 1e-9), 1.0)
    result = np.zeros(len(box))
    result[order] = offset * np.clip(scale, 0.0, 1.0)
    return result


def _gaps(
    wiring: Wiring, place: Ints, x: NDArray[np.float64], rail: NDArray[np.float64], rows: int
) -> NDArray[np.float64]:
    """The height between each row and the next: more where edges go far to the side."""
    source, target = wiring.source, wiring.target
    aside = np.zeros(rows + 1)
    first = np.where(np.isnan(rail), x[target], rail)
    np.maximum.at(aside, place[source], np.abs(first - x[source]))
    np.maximum.at(aside, place[target] - 1, np.abs(x[target] - np.where(
        np.isnan(rail), x[source], rail)))  # fmt: skip
    return GAP + np.minimum(aside[:rows] * 0.07, 54.0)


__all__ = ["GAP", "RAIL", "SPACE", "Layout", "lay_out"]
