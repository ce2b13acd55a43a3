"""Activations that are rounded to levels at once, as tables: they are looked up, not computed.

A number x stands at place ``scale * x + shift`` of a table from which on, and up to which, the
level changes. Where it changes between a place and the next the table says so, and from which
number on it does: levels are those of the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....layers.base import Op
from ....schemas import Array

#: What takes longer to compute than to look up; Gelu does so no longer.
CURVES = frozenset({"Elu", "Erf", "Mish", "SoftPlus"})
#: The places of a table; below so many of its entries are levels, as bytes.
PLACES, BYTES = 1 << 16, 256
#: Where levels change is looked for among numbers so far from zero, and so many of them.
FAR, MANY = 64.0, 1 << 13
#: Levels may change at one in so many places at most.
SELDOM = 16


class Table(NamedTuple):
    """By place the level, or where it is told at which number that changes, and to which.

    There stands the level before, and behind it the one after.
    """

    scale: Array
    shift: Array
    entries: Array
    changes: Array
    levels: Array


def table(
    activation: Op, rounding: Op, others: Sequence[Array], limits: Sequence[Array]
) -> Table | None:
    """The table of an activation and of the FakeQuantize after it, to levels that are bytes.

    None where levels change far away, too often, or by more than one.
    """

    def levels(x: Array) -> Array:
        with np.errstate(all="ignore"):
            (made,) = activation.run(x.astype(np.float32), *others)
            (found,) = rounding.run(made, *limits)
        return np.asarray(found)

    ends = np.array([-1e4, 1e4])
    far = np.linspace(-FAR, FAR, MANY + 1)
    seen, (least, most) = levels(far), levels(ends)
    if not np.isfinite([least, most]).all() or seen[0] != least or seen[-1] != most:
        return None
    changes = np.flatnonzero(seen[1:] != seen[:-1])
    if not changes.size:
        return None
    low, high = far[changes[0]], far[changes[-1] + 1]
    each = (PLACES - 1) / (high - low)
    scale, shift = np.float32(each), np.float32(-low * each)

    def at(places: Array) -> Array:
        return levels((places - float(shift)) / float(scale))

    edges = at(np.arange(PLACES + 1) - 0.5)
    edges[0], edges[-1] = least, most
    before, after = edges[:-1], edges[1:]
    (changing,) = np.nonzero(before != after)
    if changing.size > PLACES // SELDOM or (abs(before - after) > 1).any():
        return None
    before, after = (x.astype(np.int8).view(np.uint8).astype(np.uint16) for x in (before, after))
    entries = before.copy()
    entries[changing] = BYTES + 2 * np.arange(changing.size)
    left, right = changing - 0.5, changing + 0.5
    for _ in range(HALVES):
        middle = (left + right) / 2
        is_before = at(middle) == edges[:-1][changing]
        left, right = np.where(is_before, middle, left), np.where(is_before, right, middle)
    pairs = np.stack([before, after], 1)[changing].ravel()
    told = [np.concatenate([np.zeros(BYTES, x.dtype), x])
            for x in (np.repeat(right, 2).astype(np.float32), pairs)]  # fmt: skip
    return Table(np.asarray(scale), np.asarray(shift), entries, *told)


#: How often the run between two places is halved, to find where a level changes.
HALVES = 20


__all__ = ["BYTES", "CURVES", "Table", "table"]
