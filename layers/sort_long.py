"""Which of overlapping boxes stay in one long row: each block is held against all behind it.

What a block leaves is put together before the next, so that boxes which many overlap go early.
Some boxes at a time are looked at so, after those chosen before have ruled out what they may: the
fewer may stay, the fewer are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..schemas import Array
from .budget import budget
from .sort_pairs import Pairs, is_dense, reached

#: The first boxes that are held against others, and those that were chosen before.
FIRST, SOON = 64, 32
#: So many pairs are told apart by comparisons at once: these stay in the nearest caches.
COMPARED = 1 << 17
#: The fewest and the most boxes that are looked at together, and how many for each that may stay.
LEAST, MOST, AHEAD = 512, 4096, 3


class LongRow(NamedTuple):
    """The boxes of a row, the best first."""

    pairs: Pairs
    #: What is told of each box stands there.
    box: Array
    limit: np.float32
    #: Where they begin and end, and what others reach that clash with them.
    outer: list[Array]
    inner: list[Array]

    @classmethod
    def of(cls, pairs: Pairs, box: Array, limit: np.float32) -> LongRow:
        """Boxes in order."""
        outer, inner = ([side[box] for side in sides] for sides in (pairs.outer, pairs.inner))
        return cls(pairs, box, limit, outer, inner)

    def best(self, most: int) -> Array:
        """The places of those that stay, up to so many."""
        total, counted = len(self.box), budget()
        chosen = np.empty(min(most, total), np.int64)
        count, size = 0, FIRST
        together = min(max(LEAST, AHEAD * len(chosen)), MOST)
        for begin in range(0, total, together):
            left = self.after(chosen[:count], np.arange(begin, min(begin + together, total)))
            while len(left) and count < len(chosen):
                counted.step()
                block = left[: min(size, len(left))]
                first, place = self.clashing(block, left, ahead=True)
                stays = _settled(first, place, len(block))
                best = block[stays][: len(chosen) - count]
                chosen[count : count + len(best)] = best
                count += len(best)
                gone = np.zeros(len(left), np.bool_)
                gone[: len(block)] = True
                gone[place[stays[first]]] = True
                left = left[~gone]
                size = max(FIRST, min(2 * size, COMPARED // max(len(left), 1)))
            if count == len(chosen):
                break
        return chosen[:count]

    def after(self, chosen: Array, left: Array) -> Array:
        """Those that the chosen ones do not rule out."""
        begin, size = 0, SOON
        while begin < len(chosen) and len(left):
            some = chosen[begin : begin + size]
            gone = np.zeros(len(left), np.bool_)
            gone[self.clashing(some, left)[1]] = True
            left = left[~gone]
            begin += len(some)
            size = max(SOON, min(4 * size, COMPARED // max(len(left), 1)))
        return left

    def clashing(self, ones: Array, others: Array, *, ahead: bool = False) -> tuple[Array, Array]:
        """Pairs that overlap as much as the limit; of those ``ahead``, with later ones."""
        near = reached(
            [side[ones][:, None] for side in self.outer], [side[others] for side in self.inner]
        )
        if ahead:
            near[:, : len(ones)] &= ~np.tri(len(ones), dtype=np.bool_)
        one, other = self.box[ones], self.box[others]
        if is_dense(self.pairs, near):
            near &= self.pairs.overlap(one[:, None], other[None]) >= self.limit
            first, place = near.nonzero()
            return first, place
        first, place = np.divmod(near.reshape(-1).nonzero()[0], len(others))
        much = self.pairs.overlap(one[first], other[place]) >= self.limit
        return first[much], place[much]


def _settled(first: Array, place: Array, count: int) -> Array:
    """Which of so many stay, that clash with those behind them: ``s[j] = not any(s[i])``."""
    within = place < count
    first, place = first[within], place[within]
    stays = np.ones(count, np.bool_)
    while True:  # one more is settled by each turn, and most by the first few
        found = np.ones(count, np.bool_)
        found[place[stays[first]]] = False
        if np.array_equal(found, stays):
            return found
        stays = found
