"""Norms of rows outside the arena, of any number of these, and what follows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....layers.base import Kernel
from ....schemas import Array
from ..memory import ask_for
from ..workers import Crew, Part, sequence, spans
from .calls import call
from .following import MOST, Following, follower, pieced, slowly
from .rooms import NEAR, Rooms
from .rows import WITH_SQUARES

#: The number of the room for means and spreads.
BESIDE = 18
#: So many numbers take longer than it takes another thread to begin.
MUCH = 1 << 16

#: What norms there are.
NORMS = frozenset(WITH_SQUARES)


class LooseNorm:
    """What gives rows, given at each call, the mean 0 and the variance 1, or the length 1."""

    def __init__(
        self, op: Any, axes: Array, following: Sequence[Following], crew: Crew[Rooms], slow: Kernel
    ) -> None:
        self._axes, self._following, self._crew, self._slow = axes, following, crew, slow
        self._make = WITH_SQUARES[op.xml_type](op)
        self._followers = [follower(step) for step in following]

    def __call__(self, given: Array, *others: Array) -> tuple[Array, ...]:
        """The output for rows and for what comes beside them."""
        fits = all(other.dtype == np.float32 and other.shape == given.shape for other in others)
        fits &= given.ndim > 0 and given.shape[-1] <= MOST
        (axis,) = self._axes.reshape(-1).tolist()
        if given.dtype != np.float32 or not given.size or axis not in (-1, given.ndim - 1):
            fits = False
        if not fits:
            return slowly(self._slow(given, self._axes), self._following, others)
        ask_for(given.nbytes)
        made = np.empty(given.shape, np.float32)
        rows, wide = prod(given.shape[:-1]), given.shape[-1]
        source, target = (array.reshape(rows, wide) for array in (given, made))
        beside = [other.reshape(rows, wide) for other in others]
        self._crew.work([
            sequence(self._share(lane, source, target, beside, slice(*run)))
            for lane, run in enumerate(spans(rows, 2 if given.size >= MUCH else 1))
        ])  # fmt: skip
        return (made,)

    def _share(
        self, lane: int, source: Array, target: Array, beside: Sequence[Array], run: slice
    ) -> list[Part]:
        """Parts that make some rows of the output."""
        parts: list[Part] = []
        rooms, everything = self._crew.rooms(lane), slice(None)
        count = run.stop - run.start
        for first, stop in spans(count, -(-count * source.shape[1] // NEAR)):
            rows = slice(run.start + first, run.start + stop)
            mean, spread = rooms.take(BESIDE, 2 * (stop - first)).reshape(2, -1, 1, 1)
            make = partial(self._made, source[rows], mean, spread)
            parts += pieced(target[rows], make, self._followers, rows, everything, beside, rooms)
        return parts

    def _made(self, source: Array, mean: Array, spread: Array, out: Array) -> list[Part]:
        """The part that makes rows of the output, without what follows."""
        return [call(self._make, source[:, :, None], out[:, :, None], mean, spread)]
