"""Elementwise operations of a block in cache and of numbers that are kept as levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ....schemas import Array
from ..plan import Grid
from ..workers import Part, spans
from .activations import NEAR, rooms

#: Makes the parts of a step: from a block of the output, at an index, to a target.
Follower: TypeAlias = Callable[[Array, Any, Array], list[Part]]


def beside(function: Callable[..., Any], levels: Array, grid: Grid, *, first: bool) -> Follower:
    """A function of a block and of the numbers that levels stand for, either of them first."""
    step, middle = np.float32(grid.step), np.float32(grid.middle)

    def on(block: Array, given: Array, target: Array) -> Part:
        def run() -> None:
            numbers = rooms.take(0, block.size).reshape(block.shape)
            np.copyto(numbers, given, casting="unsafe")
            np.multiply(numbers, step, numbers)
            if middle:
                np.add(numbers, middle, numbers)
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
    step, middle = np.float32(grid.step), np.float32(grid.middle)
    numbers = take(*array.shape)

    def run() -> None:
        np.copyto(numbers, array, casting="unsafe")
        np.multiply(numbers, step, numbers)
        if middle:
            np.add(numbers, middle, numbers)

    parts.append(run)
    return numbers


__all__ = ["beside", "read"]
