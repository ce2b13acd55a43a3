"""A model on random samples, alone and side by side: none may depend on the one beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...schemas import Array, Tensor, UsageError
from .. import engine
from ..document import Layer, Model
from .simplifying.certificate import FINE, Judge, measured


class Trial:
    """A model on random samples one by one, to be held against what it makes of several.

    FakeQuantize rounds to very fine levels meanwhile: else numbers between two levels might fall
    to the other, and hide what is wrong.
    """

    def __init__(self, model: Model, axes: Mapping[Layer, int], old: int) -> None:
        self._model, self._axes = model, axes
        judge, layers = Judge(0), model.parameters
        shared = {x: _drawn(judge, x, None, old) for x in layers if x not in axes}
        self._samples = [
            shared | {layer: _drawn(judge, layer, axis, old) for layer, axis in axes.items()}
            for _ in range(3)
        ]
        with _finer(model):
            program = engine.compile(model, threads=1)
            self._alone = [self._run(program, one) for one in self._samples[:2]]

    def _run(self, program: engine.Program, *samples: Mapping[Layer, Array]) -> list[Array]:
        """The outputs of some samples side by side; what is no sample's is that of all."""
        feeds: dict[int, Any] = {}
        for place, layer in enumerate(self._model.parameters):
            arrays, axis = [one[layer] for one in samples], self._axes.get(layer)
            feeds[place] = arrays[0] if axis is None else np.concatenate(arrays, axis)
        return [*program(feeds).values()]

    def difference(self, but: Collection[Layer]) -> float | None:
        """By how much samples side by side differ from each alone, in parts of the largest number.

        None where no output tells two samples apart by finite numbers. Outputs in ``but`` are not
        looked at.

        Raises:
            UsageError: What a sample makes depends on the one beside it.
        """
        one, other, third = self._samples
        with _finer(self._model):
            program = engine.compile(self._model, threads=1)
            both = self._run(program, one, other)
            beside = self._run(program, one, third), self._run(program, third, other)
        worst: float | None = None
        for place, (array, result) in enumerate(zip(both, self._model.results, strict=True)):
            alone = [found[place] for found in self._alone]
            axis = _doubled(array, alone)
            if axis is None or array.dtype.kind not in "fiub" or result in but:
                continue
            if not np.array_equal(np.nan_to_num(alone[0]), np.nan_to_num(alone[1])):
                worst = worst or 0.0
            for turn, half in enumerate(np.split(array, 2, axis)):
                again = np.split(beside[turn][place], 2, axis)[turn]
                if (apart := _apart(half, again)) > _ROUNDING:
                    raise UsageError(
                        f"what output {place} says of a sample depends on the one beside it: it "
                        f"moves by {apart:.2g} of the largest number",
                        result.where,
                        f"samples meet somewhere on the way; {_ALL_THE_SAME}",
                    )
                apart = _apart(half, alone[turn])
                if apart > _ROUNDING:
                    raise UsageError(
                        f"output {place} of two samples at once is not that of each alone: it is "
                        f"{apart:.2g} of the largest number away",
                        result.where,
                        f"something is made for samples at their places; {_ALL_THE_SAME}",
                    )
                worst = worst if worst is None else max(worst, apart)
        return worst


@contextmanager
def _finer(model: Model) -> Iterator[None]:
    """Let the model's FakeQuantize hardly round."""
    layers = [layer for layer in model.everywhere() if layer.type == "FakeQuantize"]
    kept = [layer.data for layer in layers]
    try:
        for layer in layers:
            layer.data = {**layer.data, "levels": str(FINE)}
        yield
    finally:
        for layer, data in zip(layers, kept, strict=True):
            layer.data = data


def _apart(one: Array, other: Array) -> float:
    """How far arrays are apart, in parts of the largest number; what is infinite must be equal."""
    apart, largest, alike = measured(other, one)
    return apart / (largest or 1.0) if alike else np.inf


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
#: What rounding explains, in parts of the largest number of an output.
_ROUNDING = 5e-4
#: What open sizes of inputs are on trial.
_OPEN = 32
