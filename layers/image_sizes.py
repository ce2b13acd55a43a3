"""The sizes that images are resized to: given, or by a scale."""

from __future__ import annotations

from math import inf

import numpy as np

from ..schemas import ANY, Dim, IRError, Size
from ..schemas.shapes import interval


def target(value: Size) -> Size:
    """A value used as a size, where -1 stands for one that is not known."""
    if isinstance(value, Dim):
        return Dim(max(value.low or 0, 0), value.high, value.symbol)
    if value < -1:
        raise IRError(f"a size is {value}, the least is 0")
    return ANY if value == -1 else value


def scaled(size: Size, scale: float) -> Size:
    """A size times a scale, rounded down; a little is added so that 3 * (1/3) is 1."""
    if not 0 <= scale < inf:
        raise IRError(f"a scale is {scale}, it is a number from 0 on")
    if scale == 1:
        return size
    factor = np.float32(scale) + np.float32(1e-6)
    if isinstance(size, Dim):
        with np.errstate(over="ignore"):
            high = np.float32(inf if size.high is None else size.high) * factor
        return interval(times(size.low or 0, factor), int(high) if high < inf else None)
    return times(size, factor)


def times(size: int, factor: np.float32) -> int:
    """A size times a factor, rounded down."""
    with np.errstate(over="ignore"):
        product = np.float32(size) * factor
    if product == inf:
        raise IRError(f"{size} pixels times a scale of {factor:g} are more than a size can be")
    return int(product)
