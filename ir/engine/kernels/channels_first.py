"""Pooling with the channels kept first, for models in which nothing wants them last.

Some planes at a time are one run of memory, with their padding between rows and between planes.
Windows are joined by adding that run to itself, shifted by a row or by a column, or by taking the
larger; NumPy does that several times faster than it does many short rows. What is joined across
the end of a row is left out when results are copied to where they belong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ....schemas import Array
from ..plan import Value
from ..workers import Part, spans
from .blocks import Scratch, call, followed, sequence

#: So many numbers are worked on at once: calls should be long, for threads get in each other's way
#: between them, and what they share be in cache: beyond that two threads are slower than one.
AT_ONCE = 1 << 16
#: To begin with a row takes as long as so many numbers.
ROW = 25
#: Numbers looked at from which on several workers are sooner done than one.
SHARED = 2_000_000
#: What the caller does of this until the others are awake.
AWAKE = 1 << 16
NOTHING: Array = np.empty(0, np.float32)


@dataclass(frozen=True)
class Axis:
    """How windows stop along an axis."""

    size: int
    window: int
    stride: int
    #: Padding before the first element.
    before: int
    #: How often windows stop.
    stops: int

    @property
    def reached(self) -> int:
        """The place behind the last window, from the first element on."""
        return (self.stops - 1) * self.stride + self.window - self.before

    @property
    def used(self) -> int:
        """The elements that windows reach; some at the end may be left over."""
        return max(0, min(self.size, self.reached))

    @property
    def after(self) -> int:
        """How far the last window reaches beyond the last element."""
        return max(0, self.reached - self.size)

    @property
    def pitch(self) -> int:
        """The distance of what follows: the padding between the two serves both."""
        return self.used + max(self.before, self.after)


def planar(
    source: Value,
    output: Value,
    axes: tuple[Axis, Axis],
    join: Callable[..., Any],
    fill: float,
    factor: Array | None,
    chain: list[Any],
    threads: int,
    scratch: Scratch,
) -> list[list[Part]]:
    """The steps of a pooling along two axes, down the rows and along them."""
    planes = source.shape[0] * source.shape[1]
    grid = Grid(*axes)
    if planes * grid.effort < SHARED:
        threads = 1
    lead = AWAKE // grid.effort if threads > 1 else 0
    at_once = max(1, min(-(-planes // threads), AT_ONCE // grid.plane))
    if factor is not None and factor.ndim:
        factor = np.tile(factor.ravel(), at_once)
    steps: list[Part] = []
    for part, (first, stop) in enumerate(_led(planes, lead, threads)):
        given, made = Planes(source, grid.given), Planes(output, grid.made)
        rooms = grid.rooms(at_once, fill)
        parts: list[Part] = [given.open, made.open]
        for begin, end in spans(stop - first, -(-(stop - first) // at_once)):
            scratch.reset()
            chosen = slice(first + begin, first + end)
            runs = Runs(join, partial(scratch.take, part, grid.room(at_once)))
            if grid.bare:
                whole = [Run(given, chosen.start * grid.plane, (end - begin) * grid.plane)]
            else:
                parts += grid.filled(rooms, given, chosen)
                whole = [Run(room, 0, grid.length(end - begin)) for room in rooms]
            rows = runs.down(grid.down, whole, grid.pitch)
            found = runs.neighbours(rows, grid.along.window, 1)
            parts += [*runs.parts, grid.delivery(found, made, chosen)]
            if factor is not None:
                parts.append(scaling(made, chosen, factor))
            if chain:
                parts += _followed(chain, output, chosen)
        steps.append(sequence([*parts, given.close, made.close]))
    return [steps]


def _led(planes: int, lead: int, workers: int) -> list[tuple[int, int]]:
    """Runs of planes, one for each worker; the first has so many more."""
    lead = max(0, min(lead, planes - workers))
    runs = spans(planes - lead, workers)
    return [(0, runs[0][1] + lead), *((begin + lead, end + lead) for begin, end in runs[1:])]


class Planes:
    """The planes of a value, looked up at each call: the next may be given other memory."""

    def __init__(self, value: Value, kind: str) -> None:
        self.value, self.kind = value, np.dtype(kind)
        self.flat: Array = NOTHING
        self.rows: Array = NOTHING

    def open(self) -> None:
        """Look at the memory of this call."""
        store = self.value.store
        assert store is not None
        self.flat = store.reshape(-1)
        images, channels, tall, wide = self.value.shape
        self.rows = np.ndarray(
            (images * channels, tall, self.columns), self.kind, self.flat, 0,
            (4 * tall * wide, 4 * wide, self.kind.itemsize),
        )  # fmt: skip

    def close(self) -> None:
        """Let go of it."""
        self.flat = self.rows = NOTHING

    @property
    def columns(self) -> int:
        """The elements of a row, of the kind in which they are seen: single, or all as one."""
        return 1 if self.kind.kind == "V" else self.value.shape[3]


class Grid:
    """Where rows and columns of several planes are in a run of memory."""

    def __init__(self, down: Axis, along: Axis) -> None:
        self.down, self.along = down, along
        #: Columns are picked in pairs, which must not straddle rows.
        self.paired = along.stride == 2 and sys.byteorder == "little"
        self.pitch = along.pitch + (along.pitch % 2 if self.paired else 0)
        self.height = -(-down.pitch // down.stride)
        self.plane = self.height * self.pitch
        #: Whether planes are such a run as they lie.
        self.bare = (
            down.stride == 1
            and not any(axis.before or axis.after for axis in (down, along))
            and self.pitch == along.size
            and (down.window > 1 or along.window > 1)
        )
        #: About how many numbers of a plane are looked at.
        passes = 3 + down.window.bit_length() + along.window.bit_length()
        self.effort = passes * self.plane + ROW * (down.used + down.stops)
        # A row is copied as one element: that is several times faster.
        self.given = f"V{4 * max(along.used, 1)}"
        self.made = f"V{4 * along.stops}" if along.stride == 1 else "u4" if self.paired else "f4"

    def length(self, planes: int) -> int:
        """As much of a run as windows reach into."""
        down, along = self.down, self.along
        row = (planes - 1) * self.height + down.stops - 1 + (down.window - 1) // down.stride
        return row * self.pitch + (along.stops - 1) * along.stride + along.window

    def room(self, planes: int) -> int:
        """The size of memory for a run; of the last pair, only one need be there."""
        return max(self.length(planes), planes * self.plane) + 1

    def rooms(self, planes: int, fill: float) -> list[Array]:
        """Memory for every row, every second and so on, with the padding in place."""
        if self.bare:
            return []
        number = min(self.down.stride, self.down.window)
        return [np.full(self.room(planes), fill, np.float32) for _ in range(number)]

    def filled(self, rooms: list[Array], given: Planes, chosen: slice) -> list[Part]:
        """Parts that copy planes into the rooms."""
        down, parts = self.down, []
        for number, room in enumerate(rooms):
            first = (number - down.before) % down.stride
            count = len(range(first, down.used, down.stride))
            if not count or not self.along.used:
                continue
            top = (first + down.before) // down.stride
            start = 4 * (top * self.pitch + self.along.before)
            target = np.ndarray(
                (chosen.stop - chosen.start, count, 1), self.given, room, start,
                (4 * self.plane, 4 * self.pitch, 4 * self.along.used),
            )  # fmt: skip
            rows = slice(first, down.used, down.stride)
            parts.append(_copying(given, (chosen, rows), target))
        return parts

    def delivery(self, run: Run, made: Planes, chosen: slice) -> Part:
        """The part that copies the results out of a run."""
        assert isinstance(run.memory, np.ndarray)
        kind = np.dtype("u8") if self.paired else made.kind
        size = 4 * self.along.stride if kind.kind != "V" else kind.itemsize
        found = np.ndarray(
            (chosen.stop - chosen.start, self.down.stops, made.columns), kind, run.memory, 0,
            (4 * self.plane, 4 * self.pitch, size),
        )  # fmt: skip
        # Of a pair seen as one integer, what is kept is the lower half: the first of the two.
        return lambda: np.copyto(made.rows[chosen], found, casting="unsafe")


def _copying(given: Planes, index: tuple[slice, slice], target: Array) -> Part:
    return lambda: np.copyto(target, given.rows[index])


def scaling(made: Planes, chosen: slice, factor: Array) -> Part:
    """The part that multiplies results by one number, or each by its own."""
    size = made.value.shape[2] * made.value.shape[3]
    start, stop = chosen.start * size, chosen.stop * size
    by = factor[: stop - start] if factor.ndim else factor

    def scale() -> None:
        block = made.flat[start:stop]
        np.multiply(block, by, out=block)

    return scale


@dataclass(frozen=True)
class Run:
    """A run of numbers, in memory of its own or among the planes of a value."""

    memory: Array | Planes
    start: int
    size: int
    #: Whether the memory may be taken again.
    lent: bool = False

    def at(self, shift: int, size: int) -> Array:
        """Some of it."""
        flat = self.memory.flat if isinstance(self.memory, Planes) else self.memory
        return flat[self.start + shift : self.start + shift + size]


class Runs:
    """The parts that join neighbours in runs, and the memory they take."""

    def __init__(self, join: Callable[..., Any], take: Callable[[], Array]) -> None:
        self.join, self.take = join, take
        self.spare: list[Array] = []
        self.parts: list[Part] = []

    def down(self, axis: Axis, rooms: list[Run], pitch: int) -> Run:
        """The rows of every window, from rooms that hold every so many of them."""
        groups, over = divmod(axis.window, axis.stride)
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
        memory = left.memory if in_place else self.spare.pop() if self.spare else self.take()
        assert isinstance(memory, np.ndarray)
        join, out = self.join, memory[:size]
        if isinstance(left.memory, Planes) or isinstance(right.memory, Planes):
            self.parts.append(lambda: join(left.at(0, size), right.at(shift, size), out=out))
        else:
            self.parts.append(call(join, left.at(0, size), right.at(shift, size), out=out))
        if not keep and not in_place:
            self.give_back(left)
        return Run(memory, 0, size, lent=True)

    def give_back(self, run: Run) -> None:
        """Its memory may be taken for another."""
        if run.lent and isinstance(run.memory, np.ndarray):
            self.spare.append(run.memory)


def _followed(chain: list[Any], output: Value, chosen: slice) -> list[Part]:
    """What follows, image by image."""
    assert output.store is not None
    channels = output.shape[1]
    parts: list[Part] = []
    start = chosen.start
    while start < chosen.stop:
        image, channel = divmod(start, channels)
        stop = min(chosen.stop, (image + 1) * channels)
        place = (image, slice(channel, channel + stop - start))
        parts += followed(chain, output.store[place], place)
        start = stop
    return parts
