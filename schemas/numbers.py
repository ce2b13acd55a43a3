"""Numbers as callers give them, and how far whole ones are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import UsageError


def at_least(least: int, value: object, what: str) -> None:
    """Refuse what is no number, or less than may be."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or not value >= least:
        raise UsageError(f"{what} is {value!r:.60}, the least is {least}")


def random_of(seed: Any) -> np.random.Generator:
    """Random numbers that follow from a seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise UsageError(f"the seed is {seed!r:.60}, it is a whole number from 0 on") from None


def integers_apart(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """How far integers are from each other, before that is rounded to 64 bits of a float."""
    rough = np.abs(one.astype(np.float64) - other.astype(np.float64))
    first, second = one.astype(np.uint64), other.astype(np.uint64)
    exact = np.where(one > other, first - second, second - first).astype(np.float64)
    # Of i64 and u64 the distance may take 65 bits.
    return np.where(rough < 2.0**63, exact, rough)


__all__ = ["at_least", "integers_apart", "random_of"]
