"""How often a row that goes with all rows of a block is repeated: for long inner loops."""

from __future__ import annotations

#: Rows that repeat are tiled up to so many numbers.
TILE = 2048


def divisor(number: int, limit: int) -> int:
    """The largest divisor that is not above a limit."""
    return next((d for d in range(min(number, limit), 1, -1) if number % d == 0), 1)


def repeats(rows: int, channels: int) -> int:
    """So many rows are taken as one, by a row that is tiled."""
    return divisor(rows, TILE // max(channels, 1))
