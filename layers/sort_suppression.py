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
#: So many boxes are looked at before it is known whether further ones are needed, where pairs
#: are looked for, and where they are not.
CHUNK, BLOCK, LEAST = 512, 256, 32
#: A pair that is looked for takes as long as so many that are merely there.
LOOKED_FOR = 40
#: Groups of no more boxes are gone through side by side, if so few of all pairs are in one.
LARGEST, PARTED = 1024, 4


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


def above(threshold: float | np.float32) -> np.float32:
    """The limit of those who may reach a threshold."""
    return np.nextafter(np.float32(threshold), np.float32(np.inf))


def best(
    boxes: Array,
    order: Array,
    count: int,
    limit: np.float32,
    measure: Overlaps,
    eta: float = 1,
) -> Array:
    """Of boxes in order, each that overlaps the chosen ones less; ``eta`` lowers the limit."""
    if isinstance(measure, Upright) and eta == 1 and limit > 0:
        columns = Columns.of(boxes, order, measure.extra)
        if np.isfinite(columns.area).all():
            many = min(len(order), 2 * count) > CHUNK and not measure.extra
            if many and 2 * count > len(order):
                groups = Groups.of(columns)
                if groups.are_worth_it:
                    return order[parted(columns, groups, limit, measure)[:count]]
            if many and are_apart(columns.at(slice(CHUNK))):
                return order[swept(columns, count, limit)]
            return order[blocked(columns, count, limit, measure)]
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


@np.errstate(all="ignore")  # of boxes without an area
def blocked(columns: Columns, count: int, limit: np.float32, measure: Upright) -> Array:
    """The places of those of all boxes that overlap the chosen ones before them less.

    Of a block, those are held against each other that no box chosen before it rules out; which
    are ruled out by which, a whole number tells for each, of a bit for each of the others.
    """
    chosen: list[int] = []
    counted = budget()
    first = 0
    while first < len(columns.left) and len(chosen) < count:
        size = min(BLOCK, max(LEAST, 5 * (count - len(chosen)) // 4))
        new = np.arange(first, min(first + size, len(columns.left)))
        first += size
        for begin in range(0, len(chosen), BLOCK):
            counted.step()
            before = columns.at(np.array(chosen[begin : begin + BLOCK]))
            new = new[~clashes(before, columns.at(new), limit, measure).any(0)]
        inside = columns.at(new)
        bits = np.packbits(clashes(inside, inside, limit, measure), 1, "little")
        width, rows = bits.shape[1], bits.tobytes()
        gone = 0
        counted.step(len(new))
        for number, place in enumerate(new.tolist()):
            if not gone >> number & 1:
                chosen.append(place)
                if len(chosen) == count:
                    break
                gone |= int.from_bytes(rows[number * width : (number + 1) * width], "little")
    return np.array(chosen, np.int64)


def clashes(one: Columns, other: Columns, limit: np.float32, measure: Upright) -> Array:
    """Which boxes overlap which others by the limit or more: a row for each of the first."""
    return crossed(one, other, measure) >= limit


def crossed(one: Columns, other: Columns, measure: Upright) -> Array:
    """How much boxes overlap others: a row for each of the first; not above 0 where they do not.

    Their areas are finite.
    """
    wide = np.minimum(one.right[..., None], other.right)
    low = np.maximum(one.left[..., None], other.left)
    wide -= low
    high = np.minimum(one.bottom[..., None], other.bottom)
    np.maximum(one.top[..., None], other.top, out=low)
    high -= low
    apart = (wide < 0) | (high < 0) if measure.met and measure.extra else None
    if measure.extra:
        wide += np.float32(measure.extra)
        high += np.float32(measure.extra)
    # One length below zero leaves a product that is no more than zero.
    np.maximum(high, 0, out=high)
    wide *= high
    np.add(one.area[..., None], other.area, out=high)
    high -= wide
    wide /= high
    if apart is not None:
        wide[apart] = 0
    if not (one.area > 0).all():
        wide[one.area <= 0] = 0
    if not (other.area > 0).all():
        wide[:, other.area <= 0] = 0
    return wide


class Groups(NamedTuple):
    """Boxes in groups of which none reaches another along the first axis."""

    #: Their places, group by group, and where in that list each group begins.
    places: Array
    starts: Array
    sizes: Array

    @classmethod
    def of(cls, columns: Columns) -> Groups:
        """As many groups as there are."""
        by_left = columns.left.argsort(kind="stable")
        left, right = columns.left[by_left], np.maximum.accumulate(columns.right[by_left])
        begins = np.append(True, left[1:] >= right[:-1])
        starts = begins.nonzero()[0]
        total = len(by_left)
        # Those of a group as they come.
        keys = (begins.cumsum() - 1) * total + by_left
        keys.sort()
        return cls(keys % total, starts, np.diff(starts, append=total))

    @property
    def are_worth_it(self) -> bool:
        """Whether few of all pairs are in one group, and none is too large for a table."""
        largest, total = int(self.sizes.max()), len(self.places)
        return largest <= LARGEST and PARTED * int((self.sizes**2).sum()) < total**2


@np.errstate(all="ignore")  # of boxes without an area
def parted(columns: Columns, groups: Groups, limit: np.float32, measure: Upright) -> Array:
    """The same, in groups: of many groups of about one size the first boxes, the second ones, ...

    Whoever comes first in what is left of a group stays, and rules out others of it.
    """
    counted = budget()
    chosen = [groups.places[groups.starts[groups.sizes == 1]]]
    # Who is not there has no area.
    extended = Columns(*(np.append(column, np.float32(0)) for column in columns))
    nobody, end = len(columns.left), 1
    while end < groups.sizes.max():
        some = (groups.sizes > end) & (groups.sizes <= 2 * end)
        end *= 2
        if not some.any():
            continue
        starts, sizes = groups.starts[some], groups.sizes[some]
        ranks = np.arange(sizes.max())
        there = ranks < sizes[:, None]
        places = np.full(there.shape, nobody)
        places[there] = groups.places[(starts[:, None] + ranks)[there]]
        boxes, rows = extended.at(places), extended.at(places.T)
        first, count = 0, len(ranks)
        while first < count:
            stop = min(count, first + max(1, PAIRS // (len(sizes) * (count - first))))
            one, other = rows.at(slice(first, stop)), Columns(*(x[:, first:] for x in boxes))
            hits = clashes(one, other, limit, measure)
            for rank in range(first, stop):
                counted.step()
                later = there[:, rank + 1 :]
                hit = hits[rank - first, :, rank + 1 - first :]
                hit &= there[:, rank, None]
                np.greater(later, hit, out=later)
            first = stop
        chosen.append(places[there])
    return np.sort(np.concatenate(chosen))


def are_apart(columns: Columns) -> bool:
    """Whether few of all pairs reach each other along the first axis."""
    begins = np.sort(columns.left)
    reach = np.searchsorted(begins, columns.right) - np.searchsorted(begins, columns.left)
    return LOOKED_FOR * int(np.maximum(reach, 0).sum()) < len(begins) ** 2


def swept(columns: Columns, count: int, limit: np.float32) -> Array:
    """The same, where few boxes reach each other along the first axis: these alone are pairs."""
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
