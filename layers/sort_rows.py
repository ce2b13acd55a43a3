"""Which of overlapping boxes stay in many rows at once, those of each class and image being a row.

A box stays if it overlaps no box before it that stays as much as the limit, or more:
``stays[j] = all(overlap(i, j) < limit for i < j of its row if stays[i])``. Pairs that cannot
overlap so much are told by four comparisons; of the others, the overlap is worked out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..schemas import Array
from .budget import budget, require, steps
from .sort import descending
from .sort_long import LongRow
from .sort_pairs import DENSE, OF_A_BOX, Pairs, UprightPairs, is_dense, pairs_of, reached
from .sort_suppression import (
    CHUNK,
    Columns,
    Judgement,
    Overlaps,
    Upright,
    above,
    are_apart,
    faded,
    groups,
    one_by_one,
    swept,
)

#: So many boxes of a row are looked at together, and so many rows; the fewest where few may stay.
BLOCK, TOGETHER, LEAST = 128, 32, 32
#: So many at first, and so many times as many where most of them are ruled out; of few rows so
#: many that their pairs are this part of those compared at once.
FIRST, MORE, SHARE = 64, 4, 8
#: Rows that are looked at one by one if they are long, and from how many boxes on.
FEW, LONG = 4, 128
#: Of so many as may stay, times this, mostly enough do.
AHEAD = 4
#: So many of those chosen are looked at before others, which rule out most of what they may.
SOON = 16
#: Bytes that ranking takes for a box beside what sorting takes: its row, places and scores.
OF_A_GOOD_ONE = 60
#: Bytes of a pair of boxes that is looked at: by comparisons first, then for its overlap.
_OF_A_PAIR = 16
#: So many pairs are told apart by comparisons at once.
COMPARED = 1 << 19


class Ranked(NamedTuple):
    """Boxes of many rows, row by row, the greatest score of each first."""

    row: Array
    place: Array
    score: Array
    #: How many there are of each row.
    counts: Array

    @classmethod
    def of(cls, scores: Array, good: Array, most: int | None = None) -> Ranked:
        """Those that are good, the first ``most`` of each row; of equal scores, in their order."""
        flat = good.reshape(-1).nonzero()[0]
        rows, count = scores.shape
        counts = np.diff(np.searchsorted(flat, np.arange(rows + 1) * count))
        row = np.repeat(np.arange(rows), counts)
        score = scores.reshape(-1)[flat]
        order = descending(score, 0)
        if rows > 1:
            # Numbers of 16 bits are sorted by their digits.
            narrow = row.astype(np.uint16) if rows < 1 << 16 else row
            order = order[narrow[order].argsort(kind="stable")]
        if most is not None and counts.size and counts.max() > most:
            order = order[
                np.arange(len(order)) - np.repeat(counts.cumsum() - counts, counts) < most
            ]
            counts = np.minimum(counts, most)
            row = row[order]
        return cls(row, flat[order] - row * count, score[order], counts)

    def joined(self, more: Ranked) -> Ranked:
        """With those of other rows."""
        counts = self.counts + more.counts
        row, place, score = map(np.concatenate, zip(self[:3], more[:3], strict=True))
        order = row.argsort(kind="stable")
        return Ranked(row[order], place[order], score[order], counts)

    def at(self, some: Array) -> Ranked:
        """Some of them, as a mask says."""
        counts = np.bincount(self.row[some], minlength=len(self.counts))
        return Ranked(self.row[some], self.place[some], self.score[some], counts)


class Race(NamedTuple):
    """What boxes of rows are chosen by."""

    #: How pairs of all boxes are told; the first box of each row among them.
    pairs: Pairs
    first: Array
    #: So many of each row may stay, and so many are looked at.
    most: int
    limit: np.float32
    #: Lowers a limit above a half with each box that stays.
    eta: float = 1
    looked_at: int | None = None

    def few_are_enough(self, good: Array) -> bool:
        """Whether many more boxes are good than may stay."""
        few = AHEAD * self.most
        is_limited = self.looked_at is not None and self.looked_at <= few
        return not is_limited and bool(np.count_nonzero(good) > 2 * few * len(good) > 0)

    def best(self, scores: Array, good: Array) -> Ranked:
        """The boxes that stay of those that are good, row by row."""
        if len(scores) > FEW and self.few_are_enough(good):
            few = AHEAD * self.most
            # Those of the greatest scores are mostly enough.
            last = np.partition(scores, -few, 1)[:, -few, None]
            first = good & (scores >= last)
            require_room(len(self.pairs.outer[0]), first)
            some = self.among(Ranked.of(scores, first))
            lacking = some.counts < self.most
            if not lacking.any():
                return some
            good = good & lacking[:, None]
            require_room(len(self.pairs.outer[0]), good)
            rest = self.among(Ranked.of(scores, good, self.looked_at))
            return some.at(~lacking[some.row]).joined(rest)
        require_room(len(self.pairs.outer[0]), good)
        return self.among(Ranked.of(scores, good, self.looked_at))

    def among(self, ranked: Ranked) -> Ranked:
        """The boxes that stay of some."""
        counts, stays = ranked.counts, np.zeros(len(ranked.row), np.bool_)
        box = np.append(ranked.place + self.first[ranked.row], len(self.pairs.outer[0]) - 1)
        limits = lowered(self.limit, self.eta, min(self.most, len(stays)))
        starts = counts.cumsum() - counts
        # Rows as long as each other go together.
        longest = counts.argsort(kind="stable")[::-1]
        longest = longest[: np.count_nonzero(counts) if self.most > 0 else 0]
        if len(longest) <= FEW and len(limits) == 1 and counts.max(initial=0) > LONG:
            for row in longest:
                places = starts[row] + np.arange(counts[row])
                kept = LongRow.of(self.pairs, box[places], self.limit).best(self.most)
                stays[places[kept]] = True
            return ranked.at(stays)
        while len(longest):
            # Short ones take little memory, however many they are.
            width = int(min(counts[longest[0]], 2 * self.most))
            rows = longest[: max(TOGETHER, COMPARED // SHARE // (width * width + 1))]
            longest = longest[len(rows) :]
            Choice(self.pairs, box, limits, self.most, stays).of(starts[rows], counts[rows])
        return ranked.at(stays)


def require_room(count: int, good: Array) -> None:
    """Refuse more boxes than there is memory to tell their pairs, and to rank the good ones."""
    require(OF_A_BOX * count + OF_A_GOOD_ONE * int(np.count_nonzero(good)))


@np.errstate(all="ignore")  # of boxes without an area
def best_of_rows(
    boxes: Array,
    first: Array,
    scores: Array,
    good: Array,
    most: int,
    limit: np.float32,
    measure: Overlaps,
    eta: float = 1,
    looked_at: int | None = None,
) -> Ranked:
    """The boxes that stay of the good ones of each row; those of a row begin at its ``first``."""
    last = lowered(limit, eta, most)[-1]
    pairs = pairs_of(boxes, last, measure) if last > 0 else None
    if pairs is not None:
        race = Race(pairs, first, most, limit, eta, looked_at)
        # Long rows, if they are few, may be cut or swept.
        if len(scores) > FEW or eta < 1 or min(scores.shape[1], 2 * most) <= CHUNK:
            return race.best(scores, good)
        if race.few_are_enough(good):
            return race.best(scores, good)
    require_room(len(boxes), good)
    ranked = Ranked.of(scores, good, looked_at)
    stays = np.zeros(len(ranked.row), np.bool_)
    ends = ranked.counts.cumsum().tolist()
    for row, end in enumerate(steps(ends)):
        begin = end - int(ranked.counts[row])
        order = ranked.place[begin:end] + first[row]
        if pairs is None:
            chosen = one_by_one(boxes, order, most, limit, measure, eta)
        else:
            chosen = best(boxes, order, most, limit, measure)
        stays[begin:end] = np.isin(order, chosen, assume_unique=True)
    return ranked.at(stays)


@np.errstate(all="ignore")  # of boxes without an area
def faded_of_rows(
    boxes: Array,
    first: Array,
    scores: Array,
    good: Array,
    most: int,
    judgement: Judgement,
    measure: Overlaps,
) -> Ranked:
    """The boxes of each row whose scores stay great enough while they fade."""
    require_room(len(boxes), good)
    pairs = pairs_of(boxes, above(0), measure)
    if pairs is not None:
        return Fading(pairs, first, most, judgement).best(Ranked.of(scores, good))
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))]
    for row in steps(range(len(scores))):
        its_boxes = boxes[first[row] : first[row] + scores.shape[1]]
        place, left = faded(its_boxes, scores[row], most, judgement, measure)
        parts.append((np.full(len(place), row), place, left))
    rows, places, left = map(np.concatenate, zip(*parts, strict=True))
    return Ranked(rows, places, left, np.bincount(rows, minlength=len(scores)))


@np.errstate(all="ignore")  # of boxes without an area
def best(boxes: Array, order: Array, count: int, limit: np.float32, measure: Overlaps) -> Array:
    """Of boxes in order, each that overlaps the chosen ones less."""
    if isinstance(measure, Upright) and limit > 0:
        columns = Columns.of(boxes, order, measure.extra)
        if np.isfinite(columns.area).all():
            return order[stay(columns, count, limit, measure)]
    return one_by_one(boxes, order, count, limit, measure)


def stay(columns: Columns, count: int, limit: np.float32, measure: Upright) -> Array:
    """The places of those of all boxes that overlap the chosen ones before them less."""
    place, counts = np.arange(len(columns.left)), np.array([len(columns.left)])
    if min(len(place), 2 * count) > CHUNK:
        place, counts = groups(columns, measure.extra)
    found, swept_ones = list[Array](), np.zeros(len(counts), np.bool_)
    ends = counts.cumsum()
    for number in np.flatnonzero(np.minimum(counts, 2 * count) > CHUNK):
        part = place[ends[number] - counts[number] : ends[number]]
        if not measure.extra and are_apart(columns.at(part[:CHUNK])):
            swept_ones[number] = True
            found.append(part[swept(columns.at(part), count, limit)])
    place, counts = place[~np.repeat(swept_ones, counts)], counts[~swept_ones]
    if len(place):
        ranked = Ranked(np.repeat(np.arange(len(counts)), counts), place, place, counts)
        pairs, nothing = UprightPairs.of(columns, limit, measure), np.zeros(len(counts), np.int64)
        found.append(Race(pairs, nothing, count, limit).among(ranked).place)
    return np.sort(np.concatenate([place[:0], *found]))[:count]


def lowered(limit: np.float32, eta: float, most: int) -> Array:
    """The limit when so many boxes of a row have been chosen: ``l[n + 1] = l[n] * eta``."""
    limits = [limit]
    while eta < 1 and limits[-1] > 0.5 and len(limits) <= most:
        limits.append(np.float32(limits[-1] * eta))
    return np.array(limits, np.float32)


class Choice(NamedTuple):
    """The choice among some rows."""

    pairs: Pairs
    #: What is told of the boxes of all rows stands there; the last never stays.
    box: Array
    #: The limit for the first box of a row, for the second, ...; the last holds for all others.
    limits: Array
    most: int
    #: Which of all boxes stay: what is found out.
    stays: Array

    def of(self, starts: Array, counts: Array) -> None:
        """Mark those that stay of rows that begin at places, block by block."""
        last, counted = len(self.stays), budget()
        many = np.zeros(len(counts), np.int64)
        require(8 * len(counts) * min(self.most, int(counts.max())))
        chosen = np.full((len(counts), min(self.most, int(counts.max()))), last)
        rows = np.arange(len(counts))
        begin, size = 0, max(FIRST, int((COMPARED // SHARE // len(rows)) ** 0.5))
        while len(rows):
            counted.step()
            width = min(
                int(counts[rows].max()) - begin,
                max(LEAST, 5 * (self.most - int(many[rows].min())) // 4),
                size,
            )
            within = begin + np.arange(width)
            new = np.where(within < counts[rows, None], starts[rows, None] + within, last)
            new, before = self.left(chosen[rows, : many[rows].max()], new)
            stays = self.settled(many[rows], new, before)
            ranks = many[rows, None] + stays.cumsum(1)
            stays &= ranks <= self.most
            row, place = stays.nonzero()
            self.stays[new[row, place]] = True
            chosen[rows[row], ranks[row, place] - 1] = new[row, place]
            many[rows] = np.minimum(ranks[:, -1], self.most)
            begin += width
            # The more boxes earlier ones rule out, the more are looked at.
            part = max(new.shape[1] / width, 1 / MORE)
            room = max(BLOCK, int((COMPARED // len(rows)) ** 0.5))
            size = min(2 * size, int(room / part))
            rows = rows[(counts[rows] > begin) & (many[rows] < self.most)]

    def left(self, chosen: Array, new: Array) -> tuple[Array, list[Clashes]]:
        """New boxes that those chosen before them do not rule out.

        Where it depends on how many those will be, what clashes with them.
        """
        last, before, begin, many = len(self.stays), list[Clashes](), 0, SOON
        while begin < chosen.shape[1]:
            end = min(begin + many, begin + max(1, COMPARED // new.size), chosen.shape[1])
            clashes = self.clashes(chosen[:, begin:end], new)
            begin, many = end, 2 * many
            if len(self.limits) > 1:
                before.append(clashes)
            else:
                new[clashes.row, clashes.place] = last
                # Those not ruled out stand before the others, of which as few remain as may be.
                gone = new == last
                width = max(int(new.shape[1] - gone.sum(1).min()), 1)
                if width < new.shape[1]:
                    order = gone.argsort(1, kind="stable")[:, :width]
                    new = np.take_along_axis(new, order, 1)
        return new, before

    def settled(self, many: Array, new: Array, before: list[Clashes]) -> Array:
        """Which of new boxes stay, where ``many`` of each row were chosen before them."""
        there = new < len(self.stays)
        place, row, first, shared = self.clashes(new, new, behind=True)
        stays, table = there, None
        if len(self.limits) == 1 and DENSE * len(first) > new.size * new.shape[1]:
            table = np.zeros((*new.shape, new.shape[1]), np.bool_)
            table[row, first, place] = True
        while True:  # of each row one more is settled by each turn, and most by the first few
            if table is not None:
                gone: Array = np.any(table & stays[:, :, None], 1)
            else:
                gone = np.zeros_like(there)
                much = stays[row, first]
                if len(self.limits) > 1:
                    count = np.minimum(
                        many[:, None] + stays.cumsum(1) - stays, len(self.limits) - 1
                    )
                    limits = self.limits[count]
                    for old in before:
                        more = old.shared >= limits[old.row, old.place]
                        gone[old.row[more], old.place[more]] = True
                    much &= shared >= limits[row, place]
                gone[row[much], place[much]] = True
            found = there & ~gone
            if np.array_equal(found, stays):
                return found
            stays = found

    def clashes(self, ones: Array, others: Array, *, behind: bool = False) -> Clashes:
        """Pairs that overlap as much as the last limit."""
        ones, others = self.box[ones], self.box[others]
        return Clashes.of(self.pairs, ones, others, self.limits[-1], behind=behind)


class Clashes(NamedTuple):
    """Pairs of boxes of some rows: the places of both in a row, the row, how much they overlap."""

    first: Array
    row: Array
    place: Array
    shared: Array

    @classmethod
    def of(
        cls, pairs: Pairs, ones: Array, others: Array, limit: np.float32, *, behind: bool = False
    ) -> Clashes:
        """Those that overlap by the limit or more; or the first only where it is ``behind``."""
        require(OF_A_BOX * len(pairs.outer[0]) + _OF_A_PAIR * ones.size * others.shape[1])
        outer = [side[ones][:, :, None] for side in pairs.outer]
        near = reached(outer, [side[others][:, None] for side in pairs.inner])
        if behind:
            near &= np.tri(ones.shape[1], k=-1, dtype=np.bool_)
        if is_dense(pairs, near):
            shared = pairs.overlap(ones[:, :, None], others[:, None])
            near &= shared >= limit
            row, first, place = near.nonzero()
            return cls(first, row, place, shared[near])
        flat, place = np.divmod(near.reshape(-1).nonzero()[0], others.shape[1])
        row, first = np.divmod(flat, ones.shape[1])
        two = ones[row, first], others[row, place]
        shared = pairs.overlap(*(two[::-1] if behind else two))
        much = shared >= limit
        return cls(first[much], row[much], place[much], shared[much])


class Fading(NamedTuple):
    """Scores that fade with each box that stays: ``s[j] *= exp(-overlap(i, j) ** 2 / 2 sigma)``.

    Who has the greatest score then stays next, until none is left that is great enough.
    """

    pairs: Pairs
    #: The first box of each row among all.
    first: Array
    most: int
    judgement: Judgement

    def best(self, ranked: Ranked) -> Ranked:
        """The boxes that stay, in the order in which they are chosen, with their last scores."""
        most = min(self.most, int(ranked.counts.max(initial=0)))
        rows = len(ranked.counts)
        starts = ranked.counts.cumsum() - ranked.counts
        nothing = len(self.pairs.outer[0]) - 1
        box = np.append(ranked.place + self.first[ranked.row], nothing)
        score = np.append(ranked.score, np.float32(-np.inf))
        require(16 * rows * most)
        chosen = np.full((rows, most), len(ranked.row))
        left = np.full((rows, most), -np.inf, np.float32)
        places, waiting = np.zeros((rows, 0), np.int64), np.zeros((rows, 0), np.float32)
        beyond = score[np.where(ranked.counts > 0, starts, -1)]
        counted, at, nowhere = budget(), np.arange(rows), np.full(rows, -np.inf)
        for number in range(most):
            counted.step()
            while True:
                some = waiting.argmax(1) if waiting.size else at
                top = waiting[at, some] if waiting.size else nowhere
                if not ((top <= beyond) & (beyond > -np.inf)).any():
                    break
                # Others may be greater than what is left of those that were.
                width = places.shape[1] or max(BLOCK, 2 * most)
                within = places.shape[1] + np.arange(width)
                new = np.where(within < ranked.counts[:, None], starts[:, None] + within, -1)
                require(56 * rows * width)
                fresh = score[new]
                for before in range(number):
                    self.fade(fresh, box[chosen[:, before, None]], box[new])
                places = np.concatenate([places, new], 1)
                # Of equal scores, the first box stays.
                order = box[places].argsort(1)
                waiting = np.take_along_axis(np.concatenate([waiting, fresh], 1), order, 1)
                places = np.take_along_axis(places, order, 1)
                seen = places.shape[1]
                beyond = score[np.where(ranked.counts > seen, starts + seen, -1)]
            if not (top > -np.inf).any():
                break
            alive = top > -np.inf
            chosen[alive, number] = places[at, some][alive]
            left[:, number] = top
            waiting[at, some] = -np.inf
            self.fade(waiting, box[chosen[:, number, None]], box[places])
        stays = chosen < len(ranked.row)
        kept = chosen[stays]
        return Ranked(ranked.row[kept], ranked.place[kept], left[stays], stays.sum(1))

    def fade(self, scores: Array, one: Array, others: Array) -> None:
        """Let scores fade, each row's with its one; those not great enough are gone."""
        sigma, judgement = self.judgement.sigma, self.judgement
        _, row, place, shared = Clashes.of(self.pairs, one, others, above(0))
        faded = scores[row, place] * np.exp(shared * shared / (-2 * sigma))
        gone = ~(faded > judgement.score)
        if not judgement.fades_only:
            gone |= shared > judgement.overlap
        faded[gone] = -np.inf
        scores[row, place] = faded
