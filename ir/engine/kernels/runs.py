"""Runs of numbers: joined with themselves, shifted, and the memory that takes.

To join what follows each other is to join a run with itself, shifted: by one number for what
lies side by side, by a row for what lies one below the other. NumPy does that several times
faster than it does many short rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ....schemas import Array
from ..plan import Value
from ..workers import Part
from .calls import call

#: An array, or what finds it at each call.
Look: TypeAlias = "Array | Callable[[], Array]"
NOTHING: Array = np.empty(0, np.float32)


class Planes:
    """The planes of a value, looked up at each call: the next may be given other memory.

    Rows are seen as elements of a kind, if any is given.
    """

    def __init__(self, value: Value, kind: np.dtype | None) -> None:
        self.value, self.kind = value, kind
        self.flat: Array = NOTHING
        self.rows: Array = NOTHING
        images, channels, tall, wide = value.shape
        size = 4 if kind is None else kind.itemsize
        #: The elements of a row: single, or all as one.
        self.columns = 1 if kind is not None and kind.kind == "V" else wide
        self.seen = images * channels, tall, self.columns
        self.steps = 4 * tall * wide, 4 * wide, size

    def open(self) -> None:
        """Look at the memory of this call."""
        store = self.value.store
        assert store is not None
        self.flat = store.reshape(-1)
        if self.kind is not None:
            self.rows = np.ndarray(self.seen, self.kind, self.flat, 0, self.steps)

    def close(self) -> None:
        """Let go of it."""
        self.flat = self.rows = NOTHING


@dataclass(frozen=True)
class Run:
    """A run of numbers, in memory of its own or among the planes of a value."""

    memory: Array | Planes
    start: int
    size: int
    #: Whether the memory may be taken again.
    lent: bool = False

    @property
    def flat(self) -> Array:
        """The memory, as it is in this call."""
        return self.memory.flat if isinstance(self.memory, Planes) else self.memory

    def at(self, shift: int, size: int) -> Look:
        """Some of it."""
        begin = self.start + shift
        chosen = slice(begin, begin + size)
        return self._look(lambda flat: flat[chosen])

    def each(self, shift: int, size: int, period: int, count: int, kind: np.dtype) -> Look:
        """So many numbers of each period, of a kind that holds one of them or all."""
        begin = self.start + shift
        if size == 1:
            chosen = slice(begin, begin + (count - 1) * period + 1, period)
            return self._look(lambda flat: flat[chosen])
        shape, steps = (count, 4 * size // kind.itemsize), (4 * period, kind.itemsize)
        return self._look(lambda flat: np.ndarray(shape, kind, flat, 4 * begin, steps))

    def _look(self, view: Callable[[Array], Array]) -> Look:
        """A view that is made now, if the memory is known by now."""
        memory = self.memory
        return (lambda: view(memory.flat)) if isinstance(memory, Planes) else view(memory)


def looking(function: Callable[..., Any], words: Sequence[Look], out: Look | None = None) -> Part:
    """A call on arrays, some of which are known no sooner than then."""
    looks = [*words] if out is None else [*words, out]
    if not any(map(callable, looks)):
        return call(function, *words) if out is None else call(function, *words, out=out)
    if out is None:
        return lambda: function(*map(_seen, words))
    return lambda: function(*map(_seen, words), out=_seen(out))


def _seen(look: Look) -> Array:
    return look if isinstance(look, np.ndarray) else look()


class Runs:
    """The parts that join neighbours in runs, and the memory they take."""

    def __init__(self, join: Callable[..., Any], take: Callable[[], Array]) -> None:
        self.join, self.take = join, take
        self.spare: list[Array] = []
        self.parts: list[Part] = []

    def down(self, window: int, stride: int, rooms: list[Run], pitch: int) -> Run:
        """The rows of every window, from rooms that hold every so many of them."""
        groups, over = divmod(window, stride)
        whole = few = rooms[0]
        for number, room in enumerate(rooms[1:], 1):
            if number == over:
                few = whole
            whole = self.pair(whole, room, 0, keep=whole is few)
        if not groups:
            return whole
        found = self.neighbours(whole, groups, pitch)
        return self.pair(found, few, groups * pitch, keep=False) if over else found

    def neighbours(self, run: Run, size: int, unit: int) -> Run:
        """At every place of a run, what is there and what follows, ``unit`` apart."""
        if size == 1:
            return run
        if self.join is not np.add and size > 3:
            # Two that overlap: what is in both does no harm.
            part = 1 << (size - 1).bit_length() - 1
            shorter = self.neighbours(run, part, unit)
            return self.pair(shorter, shorter, (size - part) * unit, keep=False)
        factor = next((n for n in range(2, size) if size % n == 0), None)
        if factor is not None:
            shorter = self.neighbours(run, factor, unit)
            found = self.neighbours(shorter, size // factor, unit * factor)
            self.give_back(shorter)
            return found
        shorter = self.neighbours(run, size - 1, unit)
        return self.pair(shorter, run, (size - 1) * unit, keep=shorter is run)

    def pair(self, left: Run, right: Run, shift: int, *, keep: bool) -> Run:
        """One run joined with another, from some place on.

        Where the first need not be kept the result takes its place: that is a quarter faster.
        """
        size = min(left.size, right.size - shift)
        in_place = left.lent and not keep and left.memory is not right.memory
        memory = left.memory if in_place else self.room()
        assert isinstance(memory, np.ndarray)
        found = Run(memory, left.start if in_place else 0, size, lent=True)
        self.put((left, 0), (right, shift), (found, 0), size)
        if not keep and not in_place:
            self.give_back(left)
        return found

    def put(
        self, left: tuple[Run, int], right: tuple[Run, int], out: tuple[Run, int], size: int
    ) -> None:
        """So many numbers of one run joined with as many of another, each from a place on."""
        words = [run.at(shift, size) for run, shift in (left, right)]
        self.parts.append(looking(self.join, words, out[0].at(out[1], size)))

    def room(self) -> Array:
        """Memory that nobody needs any more, or new."""
        return self.spare.pop() if self.spare else self.take()

    def give_back(self, run: Run) -> None:
        """Its memory may be taken for another."""
        if run.lent and isinstance(run.memory, np.ndarray):
            self.spare.append(run.memory)
