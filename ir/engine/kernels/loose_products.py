"""Products by constant weights outside the arena, of any number of rows, and what follows them.

Weights lie in blocks of columns as those of plans do. Rows and blocks are cut among threads by
their numbers alone, so that any number of threads gives the same; steps that follow element by
element are done to each piece while that is in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ....layers.base import Kernel
from ....schemas import Array
from ..memory import ask_for
from ..workers import Crew, Part, sequence, spans
from .calls import call
from .following import MOST, Following, follower, pieced, slowly
from .matrices import FEWER, kept_columns, least_copied, runs_of_columns
from .products import BLOCK, PAYING, cuts, equal, multiplied, width
from .rooms import Rooms

#: From how many products of numbers on they are cut into so many shares.
SHARES = ((1 << 30, 8), (1 << 27, 4), (1 << 22, 2))
#: Many matrices are multiplied together from so many products on.
STACKED = 1 << 21
#: So many rows are multiplied together at most.
TOGETHER = 512

#: The number of the room for sums into which one is cut.
SUMS = 17

#: Blocks of columns, some together: which columns are made by them.
Runs: TypeAlias = list[tuple[int, int, Array]]


class Loose:
    """What computes a product of rows, given at each call, by weights (deep, columns).

    Weights may be a stack of so many matrices (0 for one alone), as those of experts are: all rows
    meet each, or each has rows of its own.
    """

    def __init__(
        self,
        op: Any,
        shape: Sequence[int],
        following: Sequence[Following],
        crew: Crew[Rooms],
        general: Kernel,
    ) -> None:
        self._op, self._general, self._crew = op, general, crew
        *stack, self._deep, self._columns = shape
        self._stacked = prod(stack) if stack else 0
        self._following = following
        self._followers = [follower(step) for step in following]

    def __call__(self, given: Array, *others: Array) -> tuple[Array, ...]:
        """The output for rows and for what comes beside them."""
        if given.ndim < 2 or given.dtype != np.float32:
            return self._slowly(given, others)
        left = given.swapaxes(-1, -2) if self._op.transpose_a else given
        *lead, deep = left.shape
        if self._stacked:
            if len(lead) != 2 or lead[0] not in (1, self._stacked):
                return self._slowly(given, others)
            lead[0] = self._stacked
        shape, rows = (*lead, self._columns), prod(lead)
        fits = all(other.dtype == np.float32 and other.shape == shape for other in others)
        if deep != self._deep or not rows or not fits:
            return self._slowly(given, others)
        ask_for(4 * rows * self._columns)
        made = np.empty(shape, np.float32)
        target = made.reshape(rows, self._columns)
        beside = [other.reshape(rows, self._columns) for other in others]
        amount = rows * deep * self._columns
        count = next((lanes for least, lanes in SHARES if amount >= least), 1)
        lanes = self._lanes(left, target, beside, count)
        if lanes is None:
            return self._slowly(given, others)
        # All lanes are told what to do before they begin: between two calls each needs the
        # interpreter's lock.
        self._crew.work(list(map(sequence, lanes)))
        return (made,)

    def _lanes(
        self, left: Array, target: Array, beside: Sequence[Array], count: int
    ) -> list[list[Part]] | None:
        """Parts for each of about so many lanes; None where definitions are to do it."""
        raise NotImplementedError

    def _numbers(self) -> Array:
        """The weights as they are for the definitions."""
        raise NotImplementedError

    def _slowly(self, given: Array, others: Sequence[Array]) -> tuple[Array, ...]:
        """The same by the definitions."""
        return slowly(self._general(given, self._numbers()), self._following, others)


class LooseProduct(Loose):
    """The same by constants: of all of their columns, laid out in blocks."""

    def __init__(
        self,
        op: Any,
        weights: Array,
        following: Sequence[Following],
        crew: Crew[Rooms],
        general: Kernel,
    ) -> None:
        self._weights = weights
        self._right = weights.swapaxes(-1, -2) if op.transpose_b else weights
        super().__init__(op, self._right.shape, following, crew, general)
        #: How many rows there are is not known: the weights lie as for so few that all will do.
        self._as_they_lie = cuts(self._deep, PAYING) > 0
        self._blocks: list[Array] = []
        #: How blocks are cut among lanes, and into runs, of each matrix.
        self._cut: dict[tuple[int, int, int], list[Runs]] = {}

    def _numbers(self) -> Array:
        """The weights."""
        return self._weights

    def _lanes(
        self, left: Array, target: Array, beside: Sequence[Array], count: int
    ) -> list[list[Part]]:
        """Parts for each lane."""
        if self._stacked:
            return self._of_stacks(left, target, beside, count)
        return self._of_rows(left.reshape(-1, self._deep), target, beside, count)

    def _of_rows(
        self, flat: Array, target: Array, beside: Sequence[Array], count: int
    ) -> list[list[Part]]:
        """Parts for each lane, which has some rows and some columns."""
        rows = len(flat)
        across = count if rows <= FEWER else least_copied(rows, self._columns, count)
        shares = product(spans(rows, count // across), self._runs(0, across, rows))
        return [
            self._share(lane, flat, target, beside, slice(*down), runs)
            for lane, (down, runs) in enumerate(shares)
        ]

    def _of_stacks(
        self, left: Array, target: Array, beside: Sequence[Array], count: int
    ) -> list[list[Part]]:
        """Parts for each lane, which has some of the matrices."""
        each = left.shape[1]
        flat = [some.reshape(each, self._deep) for some in left]
        lanes: list[list[Part]] = []
        for lane, run in enumerate(spans(self._stacked, min(count, self._stacked))):
            parts: list[Part] = []
            for number in range(*run):
                some = slice(number * each, (number + 1) * each)
                others = [other[some] for other in beside]
                (runs,) = self._runs(number, 1, each)
                rows = flat[number % len(flat)]
                parts += self._share(lane, rows, target[some], others, slice(0, each), runs)
            lanes.append(parts)
        return lanes

    def _kept(self) -> list[Array]:
        """The weights in blocks; nobody may have asked for them so far, as for an expert's."""
        if not self._blocks:
            if self._as_they_lie:
                even = equal(self._columns, self._deep, PAYING)
                wide = width(even, self._deep, PAYING)
            else:
                pieces = 2 * -(-self._columns // (2 * BLOCK))
                wide = min(self._columns, -(-self._columns // (pieces * 16)) * 16)
            self._blocks = kept_columns(self._weights, self._right, wide)
        return self._blocks

    def _runs(self, number: int, across: int, rows: int) -> list[Runs]:
        """For each lane blocks of a matrix that stay in the cache together."""
        blocks = self._kept()
        if self._stacked:
            blocks = [some[number] for some in blocks]
        wide, total = blocks[0].shape[-1], sum(map(len, blocks))
        together = max(1, MOST // (min(rows, TOGETHER, MOST // wide) * wide))
        key = number, across, min(together, total)
        if key not in self._cut:
            self._cut[key] = [
                runs_of_columns(blocks, *lane, together) for lane in spans(total, across)
            ]
        return self._cut[key]

    def _share(
        self,
        lane: int,
        rows: Array,
        target: Array,
        beside: Sequence[Array],
        down: slice,
        runs: Runs,
    ) -> list[Part]:
        """Parts that make some rows and columns of the output."""
        parts: list[Part] = []
        rooms = self._crew.rooms(lane)
        added = rooms.take(SUMS, MOST)
        at_once = min(TOGETHER, MOST // self._blocks[0].shape[-1])
        for begin, end in spans(down.stop - down.start, -(-(down.stop - down.start) // at_once)):
            some = slice(down.start + begin, down.start + end)
            for first, stop, matrices in runs:
                make = partial(self._made, rows[some], matrices, len(rows), added)
                parts += pieced(
                    target[some, first:stop], make, self._followers,
                    some, slice(first, stop), beside, rooms,
                )  # fmt: skip
        return parts

    def _made(
        self, rows: Array, matrices: Array, number: int, added: Array, out: Array
    ) -> list[Part]:
        """The parts that make a piece of the output, of so many rows in all."""
        return multiplied(rows, matrices, out, rows=number, room=added)


def loose_stacks(op: Any, crew: Crew[Rooms], general: Kernel) -> Kernel:
    """What computes products of many matrices by others, of which threads take some each."""

    def run(one: Array, other: Array) -> tuple[Array, ...]:
        if not one.dtype == other.dtype == np.float32 or min(one.ndim, other.ndim) < 2:
            return general(one, other)
        left = one.swapaxes(-1, -2) if op.transpose_a else one
        right = other.swapaxes(-1, -2) if op.transpose_b else other
        (rows, deep), columns = left.shape[-2:], right.shape[-1]
        amount = left.size * columns
        if amount < STACKED or right.shape[-2] != deep:
            return general(one, other)
        try:
            lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        except ValueError:
            return general(one, other)
        axis = next((axis for axis, size in enumerate(lead) if size > 1), None)
        if axis is None:
            return general(one, other)
        ask_for(4 * prod(lead) * rows * columns)
        made = np.empty((*lead, rows, columns), np.float32)
        left, right = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (left, right))
        cut = (slice(None),) * axis
        pieces = [(*cut, slice(*some)) for some in spans(lead[axis], 2)]
        crew.work([call(np.matmul, left[at], right[at], out=made[at]) for at in pieces])
        return (made,)

    return run
