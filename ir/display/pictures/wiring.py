"""The edges of every group: between its children, from its upper border, to its lower border."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .hierarchy import Tree
from .sheet import Ints, Sheet


@dataclass
class Wiring:
    """Edges by the group that they are in; each once for a value, whatever reads it inside.

    An end that is no child is a port: a value that comes into or leaves the group. Ports are
    numbered after the children.
    """

    source: Ints
    target: Ints
    value: Ints
    group: Ints
    #: Of each port its group, its value, and whether the value comes in.
    port_group: Ints
    port_value: Ints
    port_enters: Ints


def wire(sheet: Sheet, tree: Tree) -> Wiring:
    """Cut every wire at the borders of the groups that it passes."""
    total = len(tree.parent)
    depth = _depths(tree)
    wires = np.array(sheet.wires, np.int64).reshape(-1, 3)
    source, target, value = _entities(wires[:, 0], tree), _entities(wires[:, 1], tree), wires[:, 2]
    inner: list[Ints] = []  # rows of group, source, target, value; -1 for a port
    while len(source):
        up, down = tree.parent[source], tree.parent[target]
        met = up == down
        inner.append(np.stack([up[met], source[met], target[met], value[met]]))
        source, target, value = source[~met], target[~met], value[~met]
        up, down = up[~met], down[~met]
        leave, enter = depth[source] >= depth[target], depth[target] >= depth[source]
        none = np.full(len(source), -1)
        inner.append(np.stack([up, source, none, value])[:, leave])
        inner.append(np.stack([down, none, target, value])[:, enter])
        source, target = np.where(leave, up, source), np.where(enter, down, target)
    rows = np.concatenate(inner, axis=1) if inner else np.zeros((4, 0), np.int64)
    rows = np.unique(rows, axis=1)
    rows = rows[:, rows[1] != rows[2]]
    group, source, target, value = rows
    values = int(value.max(initial=0)) + 1
    keys: list[Ints] = []
    for enters, ends in ((1, source), (0, target)):
        at = ends < 0
        key = (group[at] * values + value[at]) * 2 + enters
        found, inverse = np.unique(key, return_inverse=True)
        ends[at] = total + sum(len(key) for key in keys) + inverse
        keys.append(found)
    ports = np.concatenate(keys)
    return Wiring(source, target, value, group, ports // 2 // values, ports // 2 % values,
                  ports % 2)  # fmt: skip


def _entities(numbers: Ints, tree: Tree) -> Ints:
    """Layers, or the groups that they are."""
    if not tree.owners:
        return numbers
    lookup = np.arange(len(tree.parent))
    lookup[list(tree.owners)] = list(tree.owners.values())
    return lookup[numbers]


def _depths(tree: Tree) -> Ints:
    depth = np.zeros(len(tree.parent), np.int64)
    above = tree.parent.copy()
    while (above >= 0).any():
        inside = above >= 0
        depth[inside] += 1
        above[inside] = tree.parent[above[inside]]
    return depth


__all__ = ["Wiring", "wire"]
