"""Weights kept as levels, in pieces of columns that lie one after the other in memory.

From memory such pieces come sooner than whole columns of some hundred levels, of which several are
multiplied at once. Whoever multiplies by these weights takes them from here: rows by integers,
or by the numbers that some columns are made in a core's own cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, groupby, pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from ....schemas import Array
from ..memory import copy_into, is_wished, shelved, side_by_side
from ..plan import Beside, Compressed
from ..workers import spans
from .blocks import Scratch
from .lines import LINE

#: Columns are cut into even pieces, of so many levels at most, unless they are longer than that:
#: of lines of cache, so many levels each.
PIECE, LONG, LEVELS = 256, 2048, 64
#: Digits of a number; sums of products of these that are brought together at once stay in cache,
#: and of more BLAS takes four times as long for each; they are of so many pieces, at least.
DIGITS, SUMS, ABREAST = 4, 1 << 16, 4


class Streamed(NamedTuple):
    """Levels as pieces (columns, levels), alike ones side by side (pieces, columns, levels)."""

    beside: Beside
    alike: list[Array]
    #: The groups of a piece.
    together: int

    @property
    def bundles(self) -> int:
        """How often rows meet a column: each group, or each so many together, by itself."""
        return len(self.beside.scale) // self.together

    def is_narrow(self, rows: int, lanes: int) -> bool:
        """Whether workers rather share groups than columns: runs of so few would be short."""
        are_few = self._at_once(rows) >= self.beside.shape[2]
        return are_few and lanes > 1 and self.bundles >= 2 * lanes

    def _at_once(self, rows: int) -> int:
        """Of how many columns the sums stay in cache."""
        pieces = min(sum(map(len, self.alike)), ABREAST) * self.together
        return max(LINE, SUMS // (DIGITS * rows * pieces))

    def shares(self, rows: int, lanes: int, scratch: Scratch) -> Iterator[tuple[int, list[slice]]]:
        """Blocks of columns for each part, whose sums of digits stay in cache."""
        groups, _, count = self.beside.shape
        at_once = self._at_once(rows)
        # Who has the last line has what is left, too: a column alone would be summed otherwise.
        lines = max(1, count // LINE)
        # What BLAS makes of zeros of groups depends on how columns are cut.
        with_zeros = self.beside.zero is not None and groups > 1
        dealt = scratch.dealt(spans(lines, lanes)) if with_zeros else scratch.runs(lines, lanes)
        for part, (first, stop) in dealt:
            runs = spans(stop - first, -(-(stop - first) * LINE // at_once))
            edges = [LINE * (first + low) for low, _ in runs]
            edges.append(count if stop == lines else LINE * stop)
            yield part, [slice(*run) for run in pairwise(edges)]

    def matrices(self, some: slice) -> list[Array]:
        """What some columns are multiplied by, piece by piece."""
        return [piece[some] for run in self.alike for piece in run]


def streamed(packed: Compressed, *, transposed: bool) -> Streamed:
    """Levels as pieces of columns that lie one after the other; plans share them."""
    key = "streamed", transposed
    if key not in packed.laid_out:
        columns = packed.columns(transposed=transposed)
        assert columns is not None
        groups, each, count = columns.levels.shape
        together = _together(groups, each)
        levels = columns.levels.reshape(-1, together * each, count)
        whole = side_by_side(levels.size).view(np.int8)
        cut = [piece[some] for piece in levels for some in column_pieces(together * each)]
        place = 0
        for some in cut:
            copy_into(whole[place : place + some.size].reshape(count, len(some)), some.T)
            place += some.size
        if is_wished():
            whole = shelved(whole)
        alike = _alike(whole, list(map(len, cut)), count)
        packed.laid_out[key] = Streamed(columns.beside, alike, together)
    found: Streamed = packed.laid_out[key]
    return found


def _together(groups: int, each: int) -> int:
    """How many groups are one piece, so that there are enough levels for whole vectors."""
    count = max(1, LEVELS // each)
    return count if count * each == LEVELS and groups % count == 0 else 1


def column_pieces(each: int) -> list[slice]:
    """The pieces into which columns of so many levels are cut."""
    if each > LONG:
        return [slice(0, each)]
    runs = spans(each // LEVELS, -(-each // PIECE))
    # Those of a size follow each other: they are met by one call.
    sizes = sorted((LEVELS * (stop - begin) for begin, stop in runs), reverse=True)
    edges = [0, *accumulate(sizes[:-1]), each]
    return [slice(*run) for run in pairwise(edges)]


def _alike(whole: Array, sizes: list[int], count: int) -> list[Array]:
    """Memory as pieces of so many levels, those of a size that follow each other together."""
    found, place = [], 0
    for size, run in groupby(sizes):
        shape = len(list(run)), count, size
        found.append(whole[place : place + prod(shape)].reshape(shape))
        place += prod(shape)
    return found


__all__ = ["DIGITS", "SUMS", "Streamed", "column_pieces", "streamed"]
