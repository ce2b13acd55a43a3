"""Inputs of odd values and shapes through every operation: an answer, or a refusal of ours."""

from __future__ import annotations

from collections.abc import Iterator

import calls
import numpy as np
import pytest
from oracle import Call
from vinoir.layers.budget import within
from vinoir.layers.memory import run_within_memory
from vinoir.schemas import Array, IRError, Tensor


def odd(array: Array) -> Iterator[Array]:
    """The array with other values, and in other shapes."""
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        for number in (-1, 0, 7, 1000, -1000, limits.max, limits.min):
            if limits.min <= number <= limits.max:
                yield np.full_like(array, number)
    elif array.dtype.kind == "f":
        for real in (np.nan, np.inf, -np.inf, -1e9, 1e9):
            yield np.full_like(array, real)
    if array.ndim and array.size:
        yield from (array[:0], array[..., :0], array.ravel(), array[0], array[..., None])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_odd_values_give_an_answer_or_a_refusal_of_ours(call: Call) -> None:
    op, arrays = call.make(), call.arrays()
    for place, array in enumerate(arrays):
        for instead in odd(array):
            inputs = [*arrays[:place], instead, *arrays[place + 1 :]]
            # An error of NumPy's own is a fault of ours, whatever is inferred of it.
            with within(max_memory=1 << 28, max_seconds=5), np.errstate(all="ignore"):
                try:
                    op.infer_outputs([Tensor.of(one) for one in inputs])
                    run_within_memory(op, *inputs)
                except IRError:
                    continue
