"""Pairs of boxes that may clash: four comparisons tell most that do not.

A box that overlaps another by a part of what both cover reaches as far over it along each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..schemas import Array
from .sort_rotated import RotatedPairs, overlaps_rotated
from .sort_suppression import Columns, Overlaps, Upright, crossed

#: Pairs to be looked at cost so many times as much as all.
DENSE = 10
#: Bytes of what is known of a box: where it begins and ends, what it reaches, its columns twice.
OF_A_BOX = 100
#: What roundings may hide of an overlap, and of a coordinate.
SLACK, ROUNDED = np.float32(0.999), np.float32(1e-6)


class Pairs(Protocol):
    """How pairs of boxes are told that may clash; behind the last box is one that never does."""

    @property
    def outer(self) -> tuple[Array, ...]:
        """Where boxes begin and end: left, top, right and bottom."""

    @property
    def inner(self) -> tuple[Array, ...]:
        """What another box reaches that clashes with one.

        It ends behind the first and the second, and begins before the third and the fourth.
        """

    def overlap(self, one: Array, other: Array) -> Array:
        """How much each of some boxes overlaps its other, where that is as much as the limit."""


class UprightPairs(NamedTuple):
    """Upright boxes; their areas are finite."""

    outer: tuple[Array, ...]
    inner: tuple[Array, ...]
    columns: Columns
    measure: Upright

    @classmethod
    def of(cls, columns: Columns, limit: np.float32, measure: Upright) -> UprightPairs:
        """Boxes in order.

        Their overlap is at most ``length shared / length`` of either along each axis, so one that
        overlaps by ``t`` reaches from one end over as large a part of the other.
        """
        outer, inner = [], []
        part = min(SLACK * limit, SLACK)
        for low, high in ((columns.left, columns.right), (columns.top, columns.bottom)):
            end = high + np.float32(measure.extra)
            room = part * (end - low) - ROUNDED * (np.abs(low) + np.abs(end))
            outer += [with_last(low, np.inf), with_last(end, -np.inf)]
            inner += [with_last(low + room, np.inf), with_last(end - room, -np.inf)]
        outer, inner = outer[::2] + outer[1::2], inner[::2] + inner[1::2]
        more = Columns(*(with_last(column, 1) for column in columns))
        return cls(tuple(outer), tuple(inner), more, measure)

    def overlap(self, one: Array, other: Array) -> Array:
        return crossed(self.columns.at(one), self.columns.at(other), self.measure)


def with_last(column: Array, number: float) -> Array:
    """A column with a number behind its last."""
    return np.append(column, np.float32(number))


def reached(outer: Sequence[Array], inner: Sequence[Array]) -> Array:
    """Which boxes may clash with others, as those that begin and end there and these reach."""
    left, top, right, bottom = outer
    near_left, near_top, near_right, near_bottom = inner
    near: Array = right >= near_left
    also = np.empty_like(near)
    for one, other, order in (
        (bottom, near_top, np.greater_equal),
        (left, near_right, np.less_equal),
        (top, near_bottom, np.less_equal),
    ):
        near &= order(one, other, out=also)
    return near


def is_dense(pairs: Pairs, near: Array) -> bool:
    """Whether the overlap of all pairs takes no longer than of those that may clash."""
    return isinstance(pairs, UprightPairs) and DENSE * int(np.count_nonzero(near)) > near.size


def pairs_of(boxes: Array, limit: np.float32, measure: Overlaps) -> Pairs | None:
    """How pairs of boxes are told that may overlap by the limit; None where one has no area."""
    if isinstance(measure, Upright):
        columns = Columns.of(boxes, np.arange(len(boxes)), measure.extra)
        if np.isfinite(columns.area).all():
            return UprightPairs.of(columns, limit, measure)
    elif measure is overlaps_rotated:
        return RotatedPairs.of(boxes, limit)
    return None
