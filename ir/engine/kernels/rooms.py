"""Memory for temporaries: of a plan's own, or of the thread that goes through its steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any

from ....schemas import Array
from ..workers import Part, sequence
from .lines import on_lines

#: So many numbers and their temporaries stay in a core's own cache, and outweigh the calls.
NEAR = 32768
#: So many are worked on at once by threads: between calls each needs the interpreter's lock, and
#: to wait for that takes longer than the next cache.
NEAR_FOR_THREADS = 4 * NEAR
#: Larger rooms are not kept: what blocks of levels are made takes up to so much.
LARGEST = 8 * NEAR


class Rooms:
    """Memory for temporaries of what is done one after the other."""

    def __init__(self) -> None:
        self.rooms: dict[int, Array] = {}
        #: What was made for pieces of this memory, by names of who made it.
        self.parts: dict[Hashable, Part] = {}
        #: Whether somebody else may be using it at the same time.
        self.is_shared = False

    def take(self, number: int, size: int) -> Array:
        """Room for so many numbers, the same one whenever this number asks for it."""
        room = self.rooms.get(number)
        if room is None or size > room.size:
            room = on_lines(max(size, NEAR))
            if size <= LARGEST:
                self.rooms[number] = room
        return room[:size]


class _RoomsOfThreads(threading.local, Rooms):
    """The same of each thread its own: what is given back is cleared anew."""


rooms = _RoomsOfThreads()


def all_of(number: float, size: int) -> Array:
    """So many times a number, to be read: NumPy compares arrays sooner than with one number."""
    return _all_of(number, 1 << size.bit_length())[:size]


@cache
def _all_of(number: float, size: int) -> Array:
    found = on_lines(size)
    found.fill(number)
    return found


class Bound:
    """A part made of memory for temporaries, anew only where that is not what it was."""

    def __init__(self, make: Callable[..., Part]) -> None:
        self._make = make
        self._found: tuple[list[Any], Part] | None = None

    def __call__(self, *arrays: Array) -> None:
        """Carry it out on arrays, which begin where the memory does that they are views of."""
        found = self._found
        if found is None or any(
            array.base is not base for array, base in zip(arrays, found[0], strict=True)
        ):
            found = self._found = [array.base for array in arrays], self._make(*arrays)
        found[1]()


def in_rooms(make: Callable[..., list[Part]], sizes: Sequence[int], own: Rooms | None) -> Part:
    """Parts that are made of temporaries of such sizes: beforehand, in memory of its plan's own.

    In memory of each thread's own they are made when they run; as where they take a lot of it, or
    where threads turn up in the place of processes, which have a copy each.
    """
    there = Bound(lambda *temporaries: sequence(make(*temporaries)))

    def run_there() -> None:
        there(*(rooms.take(place, size) for place, size in enumerate(sizes)))

    if own is None or max(sizes, default=0) > NEAR_FOR_THREADS:
        return run_there
    bound = tuple(make(*(own.take(place, size) for place, size in enumerate(sizes))))

    def run() -> None:
        if own.is_shared:
            run_there()
            return
        for part in bound:
            part()

    return run
