"""Windows along an axis of numbers as they lie: nothing is copied for the sake of padding.

Where ``size`` places of ``unit`` numbers make a period (columns a row, or rows a plane), the run
is joined with itself, shifted by places. That is right wherever a window lies in one period; at
the edges, where windows reach into padding, it is not: those are joined anew, from what there is.
"""

from __future__ import annotations

import numpy as np

from ..workers import Part
from .axis import Axis
from .blocks import sequence
from .runs import Run, Runs, looking

#: A run and where to begin in it.
At = tuple[Run, int]


def is_flat(axis: Axis) -> bool:
    """Whether windows stop at places of the period only, and each has an element in it."""
    last = (axis.stops - 1) * axis.stride
    return (
        axis.window <= axis.size
        and axis.before < axis.window
        and last < axis.size
        and last - axis.before < axis.size
    )


def longest(window: int) -> int:
    """The longest run of neighbours, a power of two, of which a window is made."""
    return 1 << (window - 1).bit_length() - 1 if window > 1 else 1


def pieces(size: int, most: int, overlap: bool) -> list[tuple[int, int]]:
    """Of what runs, and where they begin, a window is made."""
    found, at, run = [], 0, min(most, 1 << size.bit_length() - 1)
    while at < size:
        if overlap:
            at = min(at, size - run)
        while run > size - at:
            run //= 2
        found.append((at, run))
        at += run
    return found


def edges(axis: Axis) -> list[tuple[int, int, int]]:
    """The places whose windows reach into padding, with where these begin and end."""
    found = []
    for place in range(0, axis.stops * axis.stride, axis.stride):
        begin, end = place - axis.before, place - axis.before + axis.window
        if begin < 0 or end > axis.size:
            found.append((place, max(begin, 0), min(end, axis.size)))
    return found


def passes(axis: Axis, overlap: bool) -> float:
    """How often the whole run is gone through, as long as that takes beside padding.

    More memory is in use here: nothing that edges are mended from can be written over.
    """
    most = longest(axis.window)
    count = most.bit_length() - 1 + max(1, len(pieces(axis.window, most, overlap)) - 1)
    return count * (1.25 if overlap else 1.3)


def mending(axis: Axis, unit: int, overlap: bool) -> tuple[int, int]:
    """The calls that mend edges, and of one period as many numbers as are as soon joined."""
    most = longest(axis.window)
    made = [len(pieces(end - begin, most, overlap)) for _, begin, end in edges(axis)]
    copied = made.count(1)
    joined = sum(made) - len(made)
    if unit == 1:
        return copied + joined, 14 * (copied + joined)
    return copied + joined, (25 + 2 * unit) * copied + (150 + 4 * unit) * joined


def lead(axis: Axis, unit: int) -> int:
    """Where a target should begin in memory, so that what is stored first begins a line.

    Stores across lines take half as long again, of sums twice as long.
    """
    return -axis.before * unit % 16


def window(runs: Runs, axis: Axis, source: Run, unit: int, target: Run) -> None:
    """Join the windows along an axis, each at the place it stops at, into a target."""
    overlap, most, period = runs.join is not np.add, longest(axis.window), axis.size * unit
    held = {1: source}
    while (length := max(held)) < most:
        held[2 * length] = runs.pair(held[length], held[length], length * unit, keep=True)

    def made_of(begin: int, end: int) -> list[At]:
        return [(held[run], (begin + at) * unit) for at, run in pieces(end - begin, most, overlap)]

    given, *more = made_of(0, axis.window)
    place = target, axis.before * unit
    size = source.size - (axis.window - 1) * unit
    for each in more:
        runs.put(given, each, place, size)
        given = place
    for stop, begin, end in edges(axis):
        runs.parts.append(edge(runs, made_of(begin, end), (target, stop * unit), unit, period))
    for run in held.values():
        if run is not source:
            runs.give_back(run)


def edge(runs: Runs, given: list[At], target: At, unit: int, period: int) -> Part:
    """The part that joins a place of each period."""
    (out, place), count = target, target[0].size // period
    # What is one element is sooner copied than a row of numbers.
    kind = np.dtype("f4" if unit == 1 or len(given) > 1 else f"V{4 * unit}")
    first, *more = [run.each(shift, unit, period, count, kind) for run, shift in given]
    found = out.each(place, unit, period, count, kind)
    if not more:
        return looking(np.copyto, [found, first])
    parts = []
    for each in more:
        parts.append(looking(runs.join, [first, each], found))
        first = found
    return sequence(parts)
