"""The plans of a program by the shapes they hold for: which are made well, and which are kept.

To make a plan takes as long as several calls. The first few have helpers of their own (forked
processes, where there may be some) and loops that are unrolled. Where more shapes come than that,
most come but once: plans for these are made in half the time, run by threads, in memory that all
of them share; one that is asked for several times in a row is made anew, with helpers. Loops stay
loops there: what comes again is answered as it was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import islice
from typing import Protocol, TypeVar

from ...layers import budget
from .patterns import Pattern, holds, openness

#: So many plans are made well, and kept whatever they take.
KEPT = 4
#: All others are kept that take no more than so many bytes more, while there are as many left.
ROOM = 256 << 20
#: How often in a row a plan is asked for before it is made well.
STEADY = 8


class Kept(Protocol):
    """What is asked of a plan here."""

    #: The bytes that it takes for itself, for weights that plans may share, and of rooms that they
    #: have in turn: by where these lie.
    nbytes: int
    weights: Mapping[int, int]
    rooms: Mapping[int, int]
    #: Whether it was made in a hurry.
    is_hasty: bool

    def rest(self) -> None:
        """Let its helpers go, until it is called again."""


KeptT = TypeVar("KeptT", bound=Kept)


class KeptPlans(OrderedDict[Pattern, KeptT | None]):
    """Plans, those last that were used last; None for shapes that none can be made for."""

    def __init__(self) -> None:
        super().__init__()
        self._firsts: set[Pattern] = set()
        self._steady: set[Pattern] = set()
        self._last: Pattern | None = None
        self._streak = 0

    def emptied(self) -> KeptPlans[KeptT]:
        """No plans, of which those are well made that would be here: for a copy of the process."""
        found: KeptPlans[KeptT] = KeptPlans()
        found._firsts, found._steady = set(self._firsts), set(self._steady)
        return found

    def find(self, shapes: Pattern) -> Pattern | None:
        """The pattern of the plan that takes these shapes, if there is one."""
        if shapes in self:
            return shapes
        fitting = [kept for kept in list(self)[::-1] if holds(kept, shapes)]
        return min(fitting, key=openness, default=None)  # what more is known of is quicker

    def use(self, pattern: Pattern) -> bool:
        """Note that a plan is wanted; whether it is good enough for that."""
        self.move_to_end(pattern)
        self._streak = self._streak + 1 if pattern == self._last else 1
        if self._streak == 1:
            self._let_rest()
        self._last = pattern
        planned = self[pattern]
        if planned is None or not planned.is_hasty or self._streak < STEADY:
            return True
        self._steady.add(pattern)
        return False

    def is_first(self, pattern: Pattern) -> bool:
        """Whether it is among the first that a plan is made for, whenever it comes again."""
        if len(self._firsts) < KEPT:
            self._firsts.add(pattern)
        return pattern in self._firsts

    def is_hasty(self, pattern: Pattern) -> bool:
        """Whether a plan for a pattern is to be made in a hurry."""
        return not self.is_first(pattern) and pattern not in self._steady

    def put(self, pattern: Pattern, planned: KeptT | None) -> None:
        """Keep a plan, and let go of those that were used least lately."""
        self[pattern] = planned
        self.move_to_end(pattern)
        good = [key for key, kept in self.items() if kept is None or not kept.is_hasty]
        for key in good[: max(0, len(good) - KEPT)]:
            del self[key]
        for key in [key for key, kept in self.items() if kept is not None and kept.is_hasty][:-1]:
            if self._more() <= ROOM and budget.fits(ROOM):
                break
            del self[key]
        self._let_rest()

    def _let_rest(self) -> None:
        """Keep no threads for plans but those that were used last: one has just become another."""
        key = next(islice(reversed(self), KEPT, None), None)
        planned = None if key is None else self[key]
        if planned is not None and planned.is_hasty:
            planned.rest()

    def _more(self) -> int:
        """The bytes of those that were made in a hurry, beyond what others share with them."""
        kept = [planned for planned in self.values() if planned is not None]
        hasty = [planned for planned in kept if planned.is_hasty]
        weights: dict[int, int] = {}
        rooms: dict[int, int] = {}
        for planned in hasty:
            weights.update(planned.weights)
            for place, size in planned.rooms.items():
                rooms[place] = max(size, rooms.get(place, 0))
        for planned in kept:
            if not planned.is_hasty:
                for place in planned.weights:
                    weights.pop(place, None)
        own = sum(planned.nbytes for planned in hasty)
        return own + sum(weights.values()) + sum(rooms.values())
