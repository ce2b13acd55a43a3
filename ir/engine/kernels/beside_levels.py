"""Elementwise operations of a block in cache and of numbers that are kept as levels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ....schemas import Array
from ..plan import Grid
from ..workers import Part, spans
from .activations import NEAR, rooms

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

    def make(block: Array, index: Any, target: Array) -> list[Part]:
        # As much at once as stays in the nearest cache.
        axis = next((axis for axis, size in enumerate(block.shape) if size > 1), 0)
        runs = spans(block.shape[axis], -(-block.size // NEAR))
        cuts = [((slice(None),) * axis + (slice(*run),)) for run in runs]
        return [on(block[cut], levels[index][cut], target[cut]) for cut in cuts]

    return make


def read(array: Array, grid: Grid | None, take: Callable[..., Array], parts: list[Part]) -> Array:
    """The numbers of a block; what makes them, where it holds levels, is added to the parts."""
    if grid is None:
        return array
    numbers = take(*array.shape)
    parts.append(partial(grid.reader(), array, numbers))
    return numbers
