"""A model on random samples, alone and side by side: none may depend on the one beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...schemas import Array, Tensor, UsageError
from .. import engine
from ..document import Layer, Model
from .simplifying.certificate import Judge


class Trial:
    """A model on random samples one by one, to be held against what it makes of several."""

    def __init__(self, model: Model, axes: Mapping[Layer, int], old: int) -> None:
        self._model, self._axes = model, axes
        judge, layers = Judge(0), model.parameters
        shared = {x: _drawn(judge, x, None, old) for x in layers if x not in axes}
        self._samples = [
            shared | {layer: _drawn(judge, layer, axis, old) for layer, axis in axes.items()}
            for _ in range(3)
        ]
        program = engine.compile(model, threads=1)
        self._alone = [self._run(program, one) for one in self._samples[:2]]

    def _run(self, program: engine.Program, *samples: Mapping[Layer, Array]) -> list[Array]:
        """The outputs of some samples side by side; what is no sample's is that of all."""
        feeds: dict[int, Any] = {}
        for place, layer in enumerate(self._model.parameters):
            arrays, axis = [one[layer] for one in samples], self._axes.get(layer)
            feeds[place] = arrays[0] if axis is None else np.concatenate(arrays, axis)
        return [*program(feeds).values()]

    def difference(self) -> float:
        """By how much samples side by side differ from each alone, in parts of the largest number.

        Raises:
            UsageError: What a sample makes depends on the one beside it.
        """
        one, other, third = self._samples
        program = engine.compile(self._model, threads=1)
        both = self._run(program, one, other)
        beside = self._run(program, one, third), self._run(program, third, other)
        coarse = any(layer.type == "FakeQuantize" for layer in self._model.everywhere())
        allowed, worst = _LEVEL if coarse else _ROUNDING, 0.0
        for place, array in enumerate(both):
            alone = [found[place] for found in self._alone]
            axis = _doubled(array, alone)
            if axis is None or array.dtype.kind not in "fiub":
                continue
            where = self._model.results[place].where
            for turn, half in enumerate(np.split(array, 2, axis)):
                again = np.split(beside[turn][place], 2, axis)[turn]
                if (apart := _apart(half, again)) > allowed:
                    raise UsageError(
                        f"what output {place} says of a sample depends on the one beside it: it "
                        f"moves by {apart:.2g} of the largest number",
                        where,
                        f"samples meet somewhere on the way; {_ALL_THE_SAME}",
                    )
                worst = max(worst, apart := _apart(half, alone[turn]))
                if apart > allowed:
                    raise UsageError(
                        f"output {place} of two samples at once is not that of each alone: it is "
                        f"{apart:.2g} of the largest number away",
                        where,
                        f"something is made for samples at their places; {_ALL_THE_SAME}",
                    )
        return worst


def _apart(one: Array, other: Array) -> float:
    """How far arrays are apart, in parts of the largest number; what is infinite must be equal."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.subtract(one, other, dtype=np.float64))
    equal = (one == other) | ((one != one) & (other != other))
    apart = np.where(equal, 0.0, np.nan_to_num(apart, nan=np.inf))
    largest = float(
        np.max(np.abs(other, where=np.isfinite(other), out=np.zeros(other.shape)), initial=0.0)
    )
    return float(np.max(apart, initial=0.0)) / (largest or 1.0)


def _doubled(array: Array, alone: Sequence[Array]) -> int | None:
    """The axis along which an array has what two samples have together."""
    shapes = {one.shape for one in alone}
    if len(shapes) > 1 or array.ndim != alone[0].ndim:
        return None
    (shape,) = shapes
    found = [axis for axis, size in enumerate(shape) if array.shape[axis] != size]
    return found[0] if len(found) == 1 and array.shape[found[0]] == 2 * shape[found[0]] else None


def _drawn(judge: Judge, layer: Layer, axis: int | None, old: int) -> Array:
    """Random numbers for an input; sizes that are open are small."""
    op = layer.op
    assert op is not None
    tensor = op.infer()[0]
    if axis is not None:
        tensor = Tensor(tensor.type, tensor.shape.with_size(axis, old))
    array = judge.draw(tensor, _OPEN)
    if array is None:
        raise UsageError(f"no random numbers can be made for {tensor}", layer.where)
    return array


_ALL_THE_SAME = "prove=false sets the batch all the same"
#: What rounding explains, in parts of the largest number of an output; with FakeQuantize numbers
#: between two levels may fall to the other.
_ROUNDING, _LEVEL = 5e-4, 0.1
#: What open sizes of inputs are on trial.
_OPEN = 32
