"""The types in which kernels calculate, and the way back to the type of the tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..schemas import Array

#: For kernels whose sums and products may meet infinity: IEEE's answers, without warnings.
quiet = np.errstate(invalid="ignore", over="ignore", divide="ignore")


def widened(data: Array) -> Array:
    """The same values in a type whose sums of products are right and whose products use BLAS.

    Real types below 32 bits become float32; integers below 64 bits become float64, in which
    their sums are exact up to 2**53.
    """
    if data.dtype in (np.float32, np.float64):
        return data
    if data.dtype.kind in "iu":
        return data if data.dtype.itemsize == 8 else data.astype(np.float64)
    return data.astype(np.float32)


def narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    """Results in the type of the tensor; integers stop at the ends of their type."""
    if values.dtype == dtype:
        return values
    if dtype.kind in "iu" and values.dtype.kind == "f":
        ends = np.iinfo(dtype)
        return np.clip(values, ends.min, ends.max).astype(dtype)
    with np.errstate(over="ignore"):
        return values.astype(dtype)
