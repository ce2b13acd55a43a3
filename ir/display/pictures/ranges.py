"""The least, the largest and the mean of an array, and the bars of its histogram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ....schemas import Array

#: Values that are looked at in one go.
_PIECE = 1 << 20


@dataclass
class Range:
    """How far the finite values of an array reach."""

    low: float = np.inf
    high: float = -np.inf
    mean: float = 0.0
    zeros: int = 0
    #: Values that are finite, and those that are infinite or no number.
    counted: int = 0
    strange: int = 0

    @classmethod
    def of(cls, flat: Array) -> Range:
        """All values of a row, a piece at a time, so that no second copy of them is made."""
        found = cls()
        for part in pieces(flat):
            finite = part[np.isfinite(part)]
            found.strange += part.size - finite.size
            found.zeros += int((finite == 0).sum())
            if not finite.size:
                continue
            found.low = min(found.low, float(finite.min()))
            found.high = max(found.high, float(finite.max()))
            found.counted += finite.size
            share = finite.size / found.counted
            found.mean += _mean(finite) * share - found.mean * share
        return found


def pieces(flat: Array) -> Iterator[Array]:
    """A row of numbers as f64, a piece at a time."""
    with np.errstate(over="ignore"):
        for start in range(0, flat.size, _PIECE):
            yield flat[start : start + _PIECE].astype(np.float64)


def _mean(finite: Array) -> float:
    """The mean, where the sum may be beyond all that a float can be too."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(finite.mean())
    return found if np.isfinite(found) else float((finite / finite.size).sum())


def scale_of(low: float, high: float) -> float:
    """What to multiply by before values are taken from each other: no digit is lost by it.

    The distance of the largest numbers is beyond all floats, and half of the least is 0.
    """
    return 0.25 if max(abs(low), abs(high)) > 1.0 else 2.0**60


def shares(values: Array, low: float, high: float) -> Array:
    """Where each value lies, from 0 at the least to 1 at the largest."""
    scale = scale_of(low, high)
    return (values * scale - low * scale) / ((high * scale - low * scale) or 1.0)


def places(finite: Array, low: float, high: float, bars: int) -> Array:
    """In which of so many bars between the least and the largest each value lies."""
    return np.minimum((shares(finite, low, high) * bars).astype(np.int64), bars - 1)


__all__ = ["Range", "pieces", "places", "scale_of", "shares"]
