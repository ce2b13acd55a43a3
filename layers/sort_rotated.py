"""How much rotated boxes overlap: the polygon of their common points, over the union."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..schemas import Array
from .budget import require, steps
from .sort_suppression import ratio

#: So many pairs are worked out at once.
AT_ONCE = 1 << 12
#: Bytes that a pair takes: its edges, where they cross, and which points are common.
_OF_A_PAIR = 4000
#: Below such a limit what roundings leave of boxes apart might count.
LEAST = np.float32(1e-3)
#: What roundings may hide.
SLACK, ROUNDED = np.float32(0.99), np.float32(1e-5)


class RotatedPairs(NamedTuple):
    """Pairs of rotated boxes: those are told apart whose upright surroundings hardly meet."""

    outer: tuple[Array, ...]
    inner: tuple[Array, ...]
    corners: Array
    area: Array
    limit: np.float32

    @classmethod
    def of(cls, boxes: Array, limit: np.float32) -> RotatedPairs | None:
        """Boxes given as centre, width, height and angle; None where that does not tell them."""
        corners = vertices(boxes)
        if not limit > LEAST or not np.isfinite(corners).all():
            return None
        low, high = corners.min(1), corners.max(1)
        room = ROUNDED * (np.abs(low) + np.abs(high))
        edges = [*(low - room).T, *(high + room).T]
        begins = [np.append(edge, np.float32(np.inf)) for edge in edges[:2]]
        ends = [np.append(edge, np.float32(-np.inf)) for edge in edges[2:]]
        outer = (*begins, *ends)
        return cls(outer, outer, corners, boxes[:, 2] * boxes[:, 3], limit)

    def overlap(self, one: Array, other: Array) -> Array:
        """As much as the limit is that part of the greater area which surroundings share."""
        left, top, right, bottom = self.outer
        wide = np.minimum(right[one], right[other]) - np.maximum(left[one], left[other])
        high = np.minimum(bottom[one], bottom[other]) - np.maximum(top[one], top[other])
        areas = self.area[one], self.area[other]
        least = SLACK * self.limit * np.maximum(*areas)
        near = ((wide * high >= least) & (np.minimum(*areas) >= least)).nonzero()[0]
        found = np.zeros(len(one), np.float32)
        for begin in steps(range(0, len(near), AT_ONCE)):
            some = near[begin : begin + AT_ONCE]
            shared = shared_area(self.corners[one[some]], self.corners[other[some]])
            found[some] = ratio(shared, areas[0][some], areas[1][some])
        return found


def overlaps_rotated(one: Array, others: Array) -> Array:
    """The intersection of one rotated box with others over the union."""
    first, rest = vertices(one[None]), vertices(others)
    shared = shared_area(np.broadcast_to(first, rest.shape), rest)
    return ratio(shared, one[2] * one[3], others[:, 2] * others[:, 3])


def vertices(boxes: Array) -> Array:
    """The four vertices of rotated boxes, in order: ``(boxes, 4, 2)``."""
    signs = np.array([(-1, 1), (-1, -1), (1, -1), (1, 1)], np.float32) / 2
    along, across = (signs * boxes[:, None, 2:4]).transpose(2, 0, 1)
    cosine, sine = np.cos(boxes[:, None, 4]), np.sin(boxes[:, None, 4])
    turned = [along * cosine - across * sine, along * sine + across * cosine]
    return np.stack(turned, -1) + boxes[:, None, :2]


def shared_area(one: Array, other: Array) -> Array:
    """Areas that pairs of rectangles share: those of the polygons of their common points."""
    require(_OF_A_PAIR * len(one))
    inside = [contained(one, other), contained(other, one)]
    crossings, crossed = intersections(one, other)
    points = np.concatenate([one, other, crossings], 1)
    there = np.concatenate([*inside, crossed], 1)
    count = there.sum(1, keepdims=True)
    centre = (points * there[..., None]).sum(1) / np.maximum(count, 1)
    points = np.where(there[..., None], points - centre[:, None], 0)
    angle = np.where(there, np.arctan2(points[..., 1], points[..., 0]), np.inf)
    order = angle.argsort(1)[..., None]
    # Those not there come last; they stand where the first stands, and enclose nothing.
    points = np.take_along_axis(points, order, 1)
    last = np.take_along_axis(there, order[..., 0], 1)[..., None]
    points = np.where(last, points, points[:, :1])
    following = np.roll(points, -1, 1)
    return np.abs(cross(points, following).sum(1)) / 2


def cross(one: Array, other: Array) -> Array:
    """The cross product of pairs of vectors in the plane."""
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def contained(points: Array, rectangles: Array) -> Array:
    """Which points lie in their rectangle."""
    corner = rectangles[:, :1]
    there = np.ones(points.shape[:2], np.bool_)
    for edge in (rectangles[:, 1:2] - corner, rectangles[:, 3:4] - corner):
        along = ((points - corner) * edge).sum(-1)
        there &= (along >= 0) & (along <= (edge * edge).sum(-1))
    return there


def intersections(one: Array, other: Array) -> tuple[Array, Array]:
    """Where the edges of pairs of rectangles cross: 16 points, and whether they are there."""
    start, begin = one[:, :, None], other[:, None]
    edge, side = np.roll(one, -1, 1)[:, :, None] - start, np.roll(other, -1, 1)[:, None] - begin
    turn = cross(edge, side)
    parallel = np.abs(turn) <= 1e-14
    turn = np.where(parallel, 1, turn)
    t, u = cross(begin - start, side) / turn, cross(begin - start, edge) / turn
    there = ~parallel & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    points = start + edge * t[..., None]
    return points.reshape(len(one), 16, 2), there.reshape(len(one), 16)
