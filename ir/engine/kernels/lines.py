"""Memory that begins at a cache line: where each load meets two, passes take a seventh longer."""

from __future__ import annotations

from math import prod

import numpy as np

from ....schemas import Array
from ..memory import side_by_side


def on_lines(*shape: int) -> Array:
    """Room for numbers from the start of a cache line on.

    What BLAS multiplies as it lies takes a quarter longer where each load meets two lines.
    """
    # Over a memoryview an array is the base of all its views, as is one with memory of its own.
    return np.frombuffer(side_by_side(4 * prod(shape)).data, np.float32).reshape(shape)


def laid_out(array: Array) -> Array:
    """Numbers one after the other, from the start of a cache line on: a copy, if need be."""
    if array.flags.c_contiguous and not array.ctypes.data % 64:
        return array
    found = on_lines(*array.shape)
    np.copyto(found, array)
    return found
