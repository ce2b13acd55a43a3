"""Calls with everything bound, whose inner loops are as long as can be."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ....schemas import Array
from ..workers import Part, sequence

#: So short rows are slow, where each is an inner loop; others have to be so many times as long.
PAIR, LONGER = 8, 4


def call(function: Callable[..., Any], *words: Any, **named: Any) -> Part:
    """A call with everything bound, so that it begins as soon as it can."""
    if not named:
        return partial(function, *words)
    if set(named) == {"out"} and isinstance(function, np.ufunc):
        out = named["out"]
        # Names are slow to look up. These two do not take an output without its name.
        if function not in (np.maximum, np.minimum) and len(words) == function.nin:
            return partial(function, *words, out)
        if len(words) == 2:
            left, right = words
            return lambda: function(left, right, out=out)
    return lambda: function(*words, **named)


def called(function: Callable[..., Any], left: Array, right: Array, target: Array) -> Part:
    """A call; of pairs and the like, that go with others in a row, one for each of a pair."""
    pair = target.shape[-1] if left.shape == right.shape == target.shape != () else 0
    if not 1 < pair <= PAIR or inner_run(left, right, target) > pair:
        return call(function, left, right, out=target)
    each = [[array[..., place] for array in (left, right, target)] for place in range(pair)]
    if inner_run(*each[0]) < LONGER * pair:
        return call(function, left, right, out=target)
    return sequence([call(function, *given, out=some) for *given, some in each])


def inner_run(*arrays: Array) -> int:
    """How many numbers of arrays of one shape NumPy takes in one inner loop."""
    shape, length = arrays[0].shape, 1
    for axis in reversed(range(len(shape))):
        if length > 1 and any(x.strides[axis] != length * x.strides[-1] for x in arrays):
            break
        length *= shape[axis]
    return length
