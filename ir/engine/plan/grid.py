"""Numbers that lie at equal steps, and what a product of such comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ....schemas import Array

#: Levels are kept as bytes around zero: less this one.
MIDDLE = 128
#: So far a level may be from a whole number, in levels.
WHOLE = 1e-3


class Grid(NamedTuple):
    """The numbers ``step * level + first``."""

    step: float
    first: float
    levels: int

    def reader(self) -> Callable[[Array, Array], None]:
        """What puts the numbers that levels kept as bytes stand for into memory."""
        step, middle = np.float32(self.step), np.float32(self.middle)

        def put(levels: Array, numbers: Array) -> None:
            np.copyto(numbers, levels, casting="unsafe")
            np.multiply(numbers, step, numbers)
            if middle:
                np.add(numbers, middle, numbers)

        return put

    def numbers(self, levels: Array) -> Array:
        """The same, as a new array."""
        found = np.empty(levels.shape, np.float32)
        self.reader()(levels, found)
        return found

    @property
    def middle(self) -> float:
        """The number that the middle level stands for; zero where it is as good as that."""
        found = self.first + MIDDLE * self.step
        return found if abs(found) > WHOLE * self.step else 0.0

    @property
    def zero(self) -> int | None:
        """The level that stands for zero; None where none does."""
        level = -self.first / self.step
        whole = round(level)
        return whole if abs(level - whole) < WHOLE and 0 <= whole < self.levels else None


class Joined(NamedTuple):
    """What a node's numbers x and levels l beside them come to: ``own * x + step * l + shift``."""

    own: float
    step: float
    shift: float


class Integers(NamedTuple):
    """What the input is made of, and ``scale * sums + shift`` by channel."""

    grid: Grid
    scale: Array
    shift: Array
    #: The limits between which the input is rounded first; None where it was rounded before.
    limits: tuple[float, float] | None = None

    def then(self, scale: Array, shift: Array) -> Integers:
        """The same, with another scale and shift after it."""
        return self._replace(scale=self.scale * scale, shift=self.shift * scale + shift)
