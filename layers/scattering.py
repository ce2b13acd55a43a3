"""Updates that meet in places of an array: brought together with what is there, in their order.

Where whole rows are added up, the first updates of all places are added together, then the second
ones, and so on: each place sees its updates in their order, and NumPy adds long runs of memory.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..schemas import Array
from .budget import require, steps
from .pooling import lowest
from .value_bounds import largest

#: Adding some rows together takes as long as meeting so many elements one by one.
TURN = 1000
#: Rows of fewer elements are met one by one; so few longer ones, row by row.
SHORT, FEW = 16, 32
#: Sums of so many places for each update are not worth an array of them all.
SPARSE = 8


def neutral(reduction: str, data: Array) -> Any:
    """What a reduction starts with."""
    if reduction == "min":
        return largest(data.dtype)
    return lowest(data) if reduction == "max" else int(reduction == "prod")


_RULES: dict[str, tuple[np.ufunc, np.ufunc]] = {
    "sum": (np.add, np.logical_or),
    "sub": (np.subtract, np.logical_xor),
    "prod": (np.multiply, np.logical_and),
    "min": (np.minimum, np.logical_and),
    "max": (np.maximum, np.logical_or),
}


def brought(reduction: str, data: Array, where: tuple[Any, ...], updates: Array) -> Array:
    """A copy of the data where the updates are brought together with what is at their places."""
    if reduction == "none":
        out = data.copy()
        out[where] = updates
        return out
    plain, logical = _RULES[reduction]
    rule = logical if data.dtype == np.bool_ else plain
    narrow = data.dtype.itemsize == 2 and data.dtype.kind not in "iu"
    out = data.astype(np.float32) if narrow else data.copy()
    with np.errstate(all="ignore"):
        met = updates.astype(out.dtype, copy=False)
        if not _by_rows(rule, out, where, met):
            rule.at(out, where, met)
        return out.astype(data.dtype, copy=False)


def _by_rows(rule: np.ufunc, out: Array, where: tuple[Any, ...], updates: Array) -> bool:
    """Bring updates together with rows of an array, where that is quicker than one by one."""
    leading, inner = out.shape[: len(where)], out.shape[len(where) :]
    if not updates.size or not out.flags.c_contiguous:
        return False
    # They are counted from either end.
    wrapped = [np.where(index < 0, index + size, index)
               for index, size in zip(where, leading, strict=True)]  # fmt: skip
    if len(wrapped) > 1:
        wrapped = [np.ravel_multi_index(np.broadcast_arrays(*wrapped), leading)]
    places = wrapped[0].reshape(-1)
    slots, rows = out.reshape(-1, prod(inner)), updates.reshape(len(places), -1)
    if rows.shape[1] >= SHORT:
        if len(places) > FEW:
            return _in_turns(rule, slots, places, rows)
        for place, row in zip(places.tolist(), rows, strict=True):
            rule(slots[place], row, out=slots[place])
        return True
    if rule is np.add and out.dtype == np.float32 and out.size <= SPARSE * updates.size:
        each = rows.shape[1]
        require(out.nbytes + 8 * out.size + 16 * updates.size)
        spread = (places[:, None] * each + np.arange(each)).reshape(-1)
        sums = np.bincount(spread, rows.reshape(-1), out.size)
        np.add(slots, sums.reshape(slots.shape), out=slots, casting="same_kind")
        return True
    return False


def _in_turns(rule: np.ufunc, slots: Array, places: Array, rows: Array) -> bool:
    """The first rows of all places together, then the second; not where one place gets most."""
    counts = np.bincount(places, minlength=len(slots))
    if int(counts.max()) * TURN > rows.size:
        return False
    # Integers of 16 bits are sorted by their digits.
    order = np.argsort(places.astype(np.min_scalar_type(len(slots))), kind="stable")
    chosen = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    begins = (np.cumsum(counts) - counts)[chosen]
    counts, total = counts[chosen], slots.take(chosen, 0)
    for turn in steps(range(int(counts[0]))):
        some = np.count_nonzero(counts > turn)
        met = rows.take(order[begins[:some] + turn], 0)
        rule(total[:some], met, out=total[:some])
    slots[chosen] = total
    return True
