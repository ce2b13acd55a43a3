"""Pooling with the channels kept first, for models in which nothing wants them last.

Some planes at a time are one run of memory. Windows are joined by adding that run to itself,
shifted by a row or by a column, or by taking the larger; NumPy does that several times faster than
it does many short rows. Padding is a part of the run, between rows and between planes
(``Padded``), or it is left out, and what is joined across the end of a row or plane is mended
(``Flat``): what of this takes less time, shapes tell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from math import gcd, prod
from typing import Any

import numpy as np

from ....schemas import Array
from ..plan import Value
from ..workers import Part, spans
from . import flat_windows
from .axis import Axis
from .blocks import Scratch, followed, sequence
from .runs import Planes, Run, Runs

#: So many numbers are worked on at once, or fewer where several rooms of them are: what calls
#: share should be in cache. By threads, more: between calls they get in each other's way.
AT_ONCE, BY_THREADS = 1 << 17, 1 << 18
#: To begin with a row takes as long as so many numbers joined.
ROW = 18
#: And so does a call.
CALL = 5000
#: Numbers looked at from which on several workers are sooner done than one.
SHARED = 1_000_000
#: What the caller does of this until the others are awake.
AWAKE = 1 << 16


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
    way = quickest(*axes, overlap=join is not np.add)
    if planes * way.effort < SHARED:
        threads = 1
    lead = AWAKE // way.effort if threads > 1 else 0
    at_best = BY_THREADS if threads > 1 and scratch.by_threads else AT_ONCE
    fitting = round(2 * at_best / (way.plane * (1 + way.held)))
    at_once = max(1, min(-(-planes // threads), fitting))
    # So many planes begin as their first does: at the start of a line, or not.
    grain = 16 // gcd(prod(output.shape[2:]), 16)
    grain = 1 if at_once < grain else grain
    at_once -= at_once % grain
    output.lead = way.lead
    if factor is not None and factor.ndim:
        factor = np.tile(factor.ravel(), at_once)
    steps: list[Part] = []
    for part, (first, stop) in enumerate(_led(planes, lead, threads)):
        given, made = Planes(source, way.given), Planes(output, way.made)
        rooms = way.rooms(at_once, fill)
        parts: list[Part] = [given.open, made.open]
        grains = -(-(stop - first) // grain)
        for begin, end in spans(grains, -(-grains * grain // at_once)):
            scratch.reset()
            chosen = slice(first + begin * grain, min(first + end * grain, stop))
            runs = Runs(join, partial(scratch.take, part, way.room(at_once)))
            parts += way.parts(runs, rooms, given, made, chosen)
            if factor is not None:
                parts.append(scaling(made, chosen, factor))
            if chain:
                parts += _followed(chain, output, chosen)
        steps.append(sequence([*parts, given.close, made.close]))
    return [steps]


def quickest(down: Axis, along: Axis, *, overlap: bool) -> Padded | Lined | Flat:
    """The way that goes over the fewest numbers."""
    ways: list[Padded | Lined | Flat] = [Padded(down, along, overlap=overlap)]
    if down.window > 1 and flat_windows.is_flat(down):
        ways.append(Lined(down, along, overlap=overlap))
    if (down.window > 1 or along.window > 1) and all(map(flat_windows.is_flat, (down, along))):
        ways.append(Flat(down, along, overlap=overlap))
    return min(ways, key=lambda way: way.effort)


def _led(planes: int, lead: int, workers: int) -> list[tuple[int, int]]:
    """Runs of planes, one for each worker; the first has so many more."""
    lead = max(0, min(lead, planes - workers))
    runs = spans(planes - lead, workers)
    return [(0, runs[0][1] + lead), *((begin + lead, end + lead) for begin, end in runs[1:])]


class Padded:
    """Where rows and columns of several planes are in a run of memory with their padding."""

    lead = None

    def __init__(self, down: Axis, along: Axis, *, overlap: bool) -> None:
        self.down, self.along = down, along
        #: Columns are picked in pairs, which must not straddle rows.
        self.paired = along.stride == 2 and sys.byteorder == "little"
        self.pitch = along.pitch + (along.pitch % 2 if self.paired else 0)
        self.height = -(-down.pitch // down.stride)
        self.plane = self.height * self.pitch
        # A row is copied as one element: that is several times faster.
        self.given: np.dtype | None = np.dtype(f"V{4 * max(along.used, 1)}")
        self.made = kind_of(along, paired=self.paired)
        #: About how many numbers of a plane are joined, or take as long.
        groups = (
            min(down.stride, down.window) - 1 + _joins(-(-down.window // down.stride), overlap)
        )
        passes = groups + _joins(along.window, overlap)
        #: The rooms whose rows are joined.
        self.held = min(down.stride, down.window)
        # What is read again for each room has left the nearest cache.
        copied = down.used * (ROW + along.used) * (7 if self.held > 1 else 5)
        self.effort = passes * self.plane + copied // 5
        self.effort += delivered(down, along, paired=self.paired)

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
        return [np.full(self.room(planes), fill, np.float32) for _ in range(self.held)]

    def parts(
        self, runs: Runs, rooms: list[Array], given: Planes, made: Planes, chosen: slice
    ) -> list[Part]:
        """Parts that pool some planes."""
        down, filled = self.down, []
        for number, room in enumerate(rooms):
            first = (number - down.before) % down.stride
            rows = slice(first, down.used, down.stride)
            target = self.inside(room, chosen.stop - chosen.start, number)
            if target.size:
                filled.append(_copying(given, (chosen, rows), target))
        runs.parts += filled
        whole = [Run(room, 0, self.length(chosen.stop - chosen.start)) for room in rooms]
        found = runs.down(down.window, down.stride, whole, self.pitch)
        return self.joined_along(runs, found, made, chosen)

    def inside(self, room: Array, planes: int, number: int = 0) -> Array:
        """The rows of a room between the padding, each as one element."""
        down = self.down
        first = (number - down.before) % down.stride
        count = len(range(first, down.used, down.stride)) if self.along.used else 0
        top = (first + down.before) // down.stride
        start = 4 * (top * self.pitch + self.along.before) if count else 0
        return np.ndarray(
            (planes, count, 1), f"V{4 * max(self.along.used, 1)}", room, start,
            (4 * self.plane, 4 * self.pitch, 4 * self.along.used),
        )  # fmt: skip

    def joined_along(self, runs: Runs, rows: Run, made: Planes, chosen: slice) -> list[Part]:
        """Parts that join the columns of rows, and copy the results out."""
        found = runs.neighbours(rows, self.along.window, 1)
        pitches = self.plane, self.pitch
        return [*runs.parts, delivery(found, pitches, self.along, made, chosen, self.down.stops)]


class Lined:
    """Rows are joined as they lie; then those that are wanted are lined up beside padding."""

    lead, held = None, 1

    def __init__(self, down: Axis, along: Axis, *, overlap: bool) -> None:
        self.down, self.along = down, along
        self.lined = Padded(Axis(down.stops, 1, 1, 0, down.stops), along, overlap=overlap)
        self.given: np.dtype | None = None
        self.made = self.lined.made
        self.plane = down.size * along.size
        calls, mended = flat_windows.mending(down, along.size, overlap)
        joined = int(flat_windows.passes(down, overlap) * self.plane)
        self.effort = joined + mended + self.lined.effort + calls * CALL * self.plane // AT_ONCE

    def room(self, planes: int) -> int:
        """The size of memory for a run."""
        return max(planes * self.plane + 16, self.lined.room(planes))

    def rooms(self, planes: int, fill: float) -> list[Array]:
        """Memory for rows with the padding in place."""
        return self.lined.rooms(planes, fill)

    def parts(
        self, runs: Runs, rooms: list[Array], given: Planes, made: Planes, chosen: slice
    ) -> list[Part]:
        """Parts that pool some planes."""
        down, wide, planes = self.down, self.along.size, chosen.stop - chosen.start
        source = Run(given, chosen.start * self.plane, planes * self.plane)
        whole = Run(runs.room(), flat_windows.lead(down, wide), source.size, lent=True)
        flat_windows.window(runs, down, source, wide, whole)
        target = self.lined.inside(rooms[0], planes)
        if target.size:
            rows = np.ndarray(
                target.shape, target.dtype, whole.flat, 4 * whole.start,
                (4 * self.plane, 4 * wide * down.stride, target.itemsize),
            )  # fmt: skip
            runs.parts.append(partial(np.copyto, target, rows))
        runs.give_back(whole)
        return self.lined.joined_along(
            runs, Run(rooms[0], 0, self.lined.length(planes)), made, chosen
        )


class Flat:
    """Rows and columns are joined as they lie; what is wanted is picked, unless that is all."""

    def __init__(self, down: Axis, along: Axis, *, overlap: bool) -> None:
        self.down, self.along = down, along
        self.paired = along.stride == 2 and sys.byteorder == "little" and along.size % 2 == 0
        self.plane = down.size * along.size
        self.held = 1
        #: Whether results are to lie as they are found.
        self.is_whole = all(axis.stride == 1 and axis.stops == axis.size for axis in (down, along))
        #: The axes that windows extend along, with how far apart places lie.
        self.axes = [
            (axis, unit) for axis, unit in ((down, along.size), (along, 1)) if axis.window > 1
        ]
        self.lead = flat_windows.lead(*self.axes[-1]) if self.is_whole else None
        self.given = None
        self.made = None if self.is_whole else kind_of(along, paired=self.paired)
        self.effort = 0
        for axis, unit in self.axes:
            calls, mended = flat_windows.mending(axis, unit, overlap)
            joined = int(flat_windows.passes(axis, overlap) * self.plane)
            periods = self.plane // (axis.size * unit)
            self.effort += joined + mended * periods + calls * CALL * self.plane // AT_ONCE
        self.effort += (
            self.plane // 2 if self.is_whole else delivered(down, along, paired=self.paired)
        )

    def room(self, planes: int) -> int:
        """The size of memory for a run; of the last pair, only one need be there."""
        return planes * self.plane + 17

    def rooms(self, planes: int, fill: float) -> list[Array]:
        """There is no padding."""
        return []

    def parts(
        self, runs: Runs, rooms: list[Array], given: Planes, made: Planes, chosen: slice
    ) -> list[Part]:
        """Parts that pool some planes."""
        start, wide = chosen.start * self.plane, self.along.size
        size = chosen.stop * self.plane - start
        found = Run(given, start, size)
        for number, (axis, unit) in enumerate(self.axes, 1):
            source = found
            if self.is_whole and number == len(self.axes):
                found = Run(made, start, size)
            else:
                found = Run(runs.room(), flat_windows.lead(axis, unit), size, lent=True)
            flat_windows.window(runs, axis, source, unit, found)
            runs.give_back(source)
        if self.is_whole:
            return runs.parts
        pitches = self.plane, wide * self.down.stride
        return [
            *runs.parts,
            delivery(found, pitches, self.along, made, chosen, self.down.stops),
        ]


def kind_of(along: Axis, *, paired: bool) -> np.dtype | None:
    """As what results are copied: rows as one element, the lower halves of pairs, or numbers."""
    kind = f"V{4 * along.stops}" if along.stride == 1 else "u4" if paired else "f4"
    return np.dtype(kind)


def delivered(down: Axis, along: Axis, *, paired: bool) -> int:
    """To copy the results of a plane takes as long as to join so many numbers."""
    each = along.stride if along.stride == 1 or paired else 4
    return down.stops * (ROW + each * along.stops)


def _joins(window: int, overlap: bool) -> int:
    """About how often a run is joined with itself."""
    return (window - 1).bit_length() if overlap else window.bit_length() + (window > 2) - 1


def delivery(
    run: Run, pitches: tuple[int, int], along: Axis, made: Planes, chosen: slice, stops: int
) -> Part:
    """The part that copies the results out of a run, whose planes and rows lie so far apart."""
    plane, pitch = pitches
    assert made.kind is not None
    kind = np.dtype("u8") if made.kind == np.uint32 else made.kind
    size = 4 * along.stride if kind.kind != "V" else kind.itemsize
    found = np.ndarray(
        (chosen.stop - chosen.start, stops, made.columns), kind, run.flat, 4 * run.start,
        (4 * plane, 4 * pitch, size),
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
