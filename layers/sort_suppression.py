"""Which of overlapping boxes stay: each is held against those that were chosen before it.

All is worked out in float32. Upright boxes are held against each other in blocks; where few of
them reach each other along one axis, as those of classes that were moved apart, these pairs alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ..schemas import Array
from .budget import budget, steps

#: How much one box overlaps each of others: the intersection over the union.
Overlaps: TypeAlias = Callable[[Array, Array], Array]

#: So many pairs of boxes are held against each other at once.
PAIRS = 1 << 17
#: So many boxes are looked at before it is known whether further ones are needed.
CHUNK = 512
#: A pair that is looked for takes as long as so many that are merely there.
LOOKED_FOR = 40


@dataclass(frozen=True)
class Upright:
    """The intersection of an upright box with others over the union.

    ``extra`` adds to each length; where boxes are to be ``met``, those that lie apart do not
    overlap, however much that is.
    """

    extra: float = 0
    met: bool = False

    def __call__(self, one: Array, others: Array, /) -> Array:
        extra = self.extra
        sides = others[..., 2:] - others[..., :2] + extra
        size = one[..., 2:] - one[..., :2] + extra
        low = np.maximum(one[..., :2], others[..., :2])
        high = np.minimum(one[..., 2:], others[..., 2:])
        shared = np.maximum(high - low + extra, 0).prod(-1)
        found = ratio(shared, size.prod(-1), sides.prod(-1))
        return np.where((high < low).any(-1), np.float32(0), found) if self.met else found


overlaps = Upright()
overlaps_met = Upright(met=True)


def grown(measure: Upright, extra: float) -> Upright:
    """The same of boxes to whose lengths something is added."""
    return replace(measure, extra=extra)


class Judgement(NamedTuple):
    """When a box goes: overlaps more than ``overlap``, or its score is no more than ``score``.

    With a ``sigma``, scores fade with the overlap; with ``fades_only``, they do nothing else.
    """

    overlap: np.float32
    score: np.float32
    sigma: np.float32 = np.float32(0)
    fades_only: bool = False


class Columns(NamedTuple):
    """Boxes by what is told of them: an array of each number, and of the areas."""

    left: Array
    top: Array
    right: Array
    bottom: Array
    area: Array

    @classmethod
    def of(cls, boxes: Array, order: Array, extra: float) -> Columns:
        """Some boxes in order."""
        left, top, right, bottom = (column.take(order) for column in boxes.T)
        return cls(left, top, right, bottom, (right - left + extra) * (bottom - top + extra))

    def at(self, places: Array | slice) -> Columns:
        """Some of them."""
        return Columns(*(column[places] for column in self))

    def across(self) -> Columns:
        """The same, to be held against a row of others each."""
        return Columns(*(column[..., None] for column in self))


def above(threshold: float | np.float32) -> np.float32:
    """The limit of those who may reach a threshold."""
    return np.nextafter(np.float32(threshold), np.float32(np.inf))


def one_by_one(
    boxes: Array,
    order: Array,
    count: int,
    limit: np.float32,
    measure: Overlaps,
    eta: float = 1,
) -> Array:
    """Of boxes in order, each that overlaps the chosen ones less; ``eta`` lowers the limit."""
    chosen: list[int] = []
    counted = budget()
    for first in range(0, len(order), CHUNK):
        part = order[first : first + CHUNK]
        worst: Array = np.full(len(part), -np.inf, np.float32)
        for index in steps(chosen):
            worst = np.maximum(worst, measure(boxes[index], boxes[part]))
        while len(chosen) < count:
            counted.step()
            part, worst = part[worst < limit], worst[worst < limit]
            if not len(part):
                break
            chosen.append(int(part[0]))
            if limit > 0.5:
                limit *= eta
            worst = np.maximum(worst[1:], measure(boxes[part[0]], boxes[part[1:]]))
            part = part[1:]
        if len(chosen) >= count:
            break
    return np.array(chosen, np.int64)


def groups(columns: Columns, extra: float) -> tuple[Array, Array]:
    """The places of boxes, group by group, and how many are in each.

    Those of one do not reach those of another along one of the axes: where boxes of many classes
    are held against each other, each class has been moved to a place of its own.
    """
    labels = []
    for begin, end in ((columns.left, columns.right), (columns.top, columns.bottom)):
        places = begin.argsort(kind="stable")
        reach = np.maximum.accumulate(end[places])
        label = np.zeros(len(places), np.int64)
        label[places[1:]] = (begin[places[1:]] > reach[:-1] + 2 * extra).cumsum()
        labels.append(label)
    label = max(labels, key=lambda label: label.max(initial=0))
    return label.argsort(kind="stable"), np.bincount(label)


def crossed(one: Columns, other: Columns, measure: Upright) -> Array:
    """How much boxes overlap others, as they are broadcast; not above 0 where they do not.

    Their areas are finite.
    """
    wide = np.minimum(one.right, other.right)
    low = np.maximum(one.left, other.left)
    wide -= low
    high = np.minimum(one.bottom, other.bottom)
    np.maximum(one.top, other.top, out=low)
    high -= low
    apart = (wide < 0) | (high < 0) if measure.met and measure.extra else None
    if measure.extra:
        wide += np.float32(measure.extra)
        high += np.float32(measure.extra)
    # One length below zero leaves a product that is no more than zero.
    np.maximum(high, 0, out=high)
    wide *= high
    np.add(one.area, other.area, out=high)
    high -= wide
    wide /= high
    if apart is not None:
        wide[apart] = 0
    for area in (one.area, other.area):
        if not (area > 0).all():
            wide[np.broadcast_to(area <= 0, wide.shape)] = 0
    return wide


def are_apart(columns: Columns) -> bool:
    """Whether few of all pairs reach each other along the first axis."""
    begins = np.sort(columns.left)
    reach = np.searchsorted(begins, columns.right) - np.searchsorted(begins, columns.left)
    return LOOKED_FOR * int(np.maximum(reach, 0).sum()) < len(begins) ** 2


def swept(columns: Columns, count: int, limit: np.float32) -> Array:
    """Those that stay, where few reach each other along the first axis: these alone are pairs."""
    chosen: list[int] = []
    counted = budget()
    total = len(columns.left)
    for first in range(0, total, CHUNK):
        if len(chosen) >= count:
            break
        before, new = np.array(chosen, np.int64), np.arange(first, min(first + CHUNK, total))
        for one, other in ((before, new), (new, before)):
            pairs = rivals(columns, one, other, limit)
            new = np.setdiff1d(new, pairs[1 if one is before else 0], assume_unique=True)
        one, other = rivals(columns, new, new, limit)
        better, worse = np.minimum(one, other), np.maximum(one, other)
        by_better = better.argsort()
        worse = worse[by_better] - first
        edges = np.searchsorted(better[by_better], new).tolist()
        stays = np.ones(CHUNK, np.bool_)
        for place, begin, end in zip(new.tolist(), edges, [*edges[1:], len(worse)], strict=True):
            if stays[place - first]:
                counted.step()
                chosen.append(place)
                if len(chosen) == count:
                    break
                if begin != end:
                    stays[worse[begin:end]] = False
    return np.array(chosen, np.int64)


def rivals(columns: Columns, some: Array, others: Array, limit: np.float32) -> tuple[Array, Array]:
    """Pairs of some boxes and others that overlap too much, where the other begins within the one.

    By where they begin others are put in order: each is only held against those of a run there.
    """
    left, top, right, bottom, area = columns
    others = others[left[others].argsort()]
    begins = np.searchsorted(left[others], left[some])
    counts = np.searchsorted(left[others], right[some]) - begins
    before = np.concatenate([[0], np.maximum(counts, 0).cumsum()])
    found: list[tuple[Array, Array]] = [(some[:0], others[:0])]
    begin = 0
    while begin < len(some):
        end = max(int(np.searchsorted(before, before[begin] + PAIRS, "right")) - 1, begin + 1)
        each = np.diff(before[begin : end + 1])
        one = np.repeat(some[begin:end], each)
        starts = np.repeat(begins[begin:end] - before[begin:end], each)
        other = others[starts + np.arange(before[begin], before[end])]
        low, high = np.maximum(top[one], top[other]), np.minimum(bottom[one], bottom[other])
        near = (low < high) & (one != other)
        one, other, tall = one[near], other[near], (high - low)[near]
        shared = (np.minimum(right[one], right[other]) - left[other]) * tall
        much = ~(ratio(shared, area[one], area[other]) < limit)
        found.append((one[much], other[much]))
        begin = end
    one, other = (np.concatenate(side) for side in zip(*found, strict=True))
    return one, other


def faded(
    boxes: Array, scores: Array, count: int, judgement: Judgement, measure: Overlaps
) -> tuple[Array, Array]:
    """Boxes whose score stays great enough while it fades with each overlap, and the scores."""
    scores, chosen = scores.copy(), list[int]()
    waiting = scores > judgement.score
    # How many of the chosen boxes each score has already been held against.
    met = np.zeros(len(scores), np.int64)
    counted = budget()
    while waiting.any() and len(chosen) < count:
        counted.step()
        index = int(np.where(waiting, scores, -np.inf).argmax())
        shared = measure(boxes[index], boxes[chosen[met[index] :]])
        score = scores[index] * np.exp(shared * shared / (-2 * judgement.sigma)).prod()
        met[index] = len(chosen)
        if score == scores[index]:
            chosen.append(index)
            waiting[index] = False
        too_much = not judgement.fades_only and (shared > judgement.overlap).any()
        # A score that is no number goes, too.
        if too_much or not score > judgement.score:
            waiting[index] = False
        scores[index] = score
    return np.array(chosen, np.int64), scores[chosen]


def ratio(shared: Array, one: Array, others: Array) -> Array:
    """The intersection over the union of areas; nothing where an area is nothing."""
    there = (one > 0) & (others > 0)
    return np.divide(shared, one + others - shared, out=np.zeros_like(shared), where=there)
