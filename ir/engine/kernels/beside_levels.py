"""Elementwise operations of a block in cache and of numbers that are kept as levels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ....schemas import Array
from ..plan import Grid, Joined
from ..workers import Part, integer_products, spans
from .rooms import NEAR, Rooms, in_rooms, rooms

#: Makes the parts of a step: from a block of the output, at an index, to a target.
Follower: TypeAlias = Callable[[Array, Any, Array], list[Part]]


def beside(function: Callable[..., Any], levels: Array, grid: Grid, *, first: bool) -> Follower:
    """A function of a block and of the numbers that levels stand for, either of them first."""
    put = grid.reader()

    def on(block: Array, given: Array, target: Array) -> Part:
        def run() -> None:
            numbers = rooms.take(0, block.size).reshape(block.shape)
            put(given, numbers)
            if first:
                function(block, numbers, out=target)
            else:
                function(numbers, block, out=target)

        return run

    return _in_pieces(on, levels)


def joined(levels: Array, sums: Joined, own_rooms: Rooms | None) -> Follower:
    """``own * x + step * l + shift`` of a block and levels beside it."""
    own, step, shift = (np.float32(number) for number in sums)
    library = integer_products()

    def on(block: Array, given: Array, target: Array) -> Part:
        lies = block.flags.c_contiguous and target is block

        def make(room: Array) -> list[Part]:
            numbers = room.reshape(block.shape)
            parts: list[Part] = [partial(np.copyto, numbers, given, casting="unsafe")]
            if library is not None and library.rounds and lies:
                flat, factor = block.reshape(-1), float(step)
                if shift:
                    parts.append(library.lined(factor, float(shift), room, room))
                    factor = 1.0
                return [*parts, library.summed((float(own), factor), flat, room, flat)]
            parts.append(partial(np.multiply, numbers, step, numbers))
            if shift:
                parts.append(partial(np.add, numbers, shift, numbers))
            if own != 1:
                parts.append(partial(np.multiply, block, own, block))
            return [*parts, partial(np.add, block, numbers, target)]

        return in_rooms(make, [block.size], own_rooms)

    return _in_pieces(on, levels)


def _in_pieces(on: Callable[[Array, Array, Array], Part], levels: Array) -> Follower:
    """As much at once as stays in the nearest cache."""

    def make(block: Array, index: Any, target: Array) -> list[Part]:
        axis = next((axis for axis, size in enumerate(block.shape) if size > 1), 0)
        runs = spans(block.shape[axis], -(-block.size // NEAR))
        cuts = [((slice(None),) * axis + (slice(*run),)) for run in runs]
        pieces = [(block[cut], target[cut]) for cut in cuts]
        return [
            on(some, levels[index][cut], some if target is block else into)
            for (some, into), cut in zip(pieces, cuts, strict=True)
        ]

    return make


def read(array: Array, grid: Grid | None, take: Callable[..., Array], parts: list[Part]) -> Array:
    """The numbers of a block; what makes them, where it holds levels, is added to the parts."""
    if grid is None:
        return array
    numbers = take(*array.shape)
    parts.append(partial(grid.reader(), array, numbers))
    return numbers
