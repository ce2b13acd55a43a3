"""Numbers as callers give them."""

from __future__ import annotations

from typing import Any

import numpy as np

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


__all__ = ["at_least", "random_of"]
