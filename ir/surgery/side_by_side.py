"""A model on random samples, alone and side by side: none may depend on the one beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...schemas import Array, Tensor, UsageError
from .. import engine
from ..document import Layer, Model
from .simplifying.certificate import Judge, measured, with_finer_levels


class Trial:
    """A model on random samples one by one, to be held against what it makes of several.

    FakeQuantize rounds to very fine levels meanwhile: else numbers between two levels might fall
    to the other, and hide what is wrong.
    """

    def __init__(self, model: Model, axes: Mapping[Layer, int], old: int) -> None:
        self._model = model
        #: The axes along which samples lie in the inputs, None in those of all.
        self._axes = [axes.get(layer) for layer in model.parameters]
        judge = Judge(0)
        drawn = [
            [_drawn(judge, *one, old) for _ in range(3 if one[1] is not None else 1)]
            for one in zip(model.parameters, self._axes, strict=True)
        ]
        self._samples = [[row[turn % len(row)] for row in drawn] for turn in range(3)]
        program = self._program()
        self._alone = [self._run(program, one) for one in self._samples[:2]]

    def _program(self) -> engine.Program:
        """The model as it is now, to be run."""
        return engine.compile(with_finer_levels(self._model) or self._model, threads=1)

    def _run(self, program: engine.Program, *samples: Sequence[Array]) -> list[Array]:
        """The outputs of some samples side by side; what is no sample's is that of all."""
        rows = zip(*samples, strict=True)
        feeds: dict[int, Any] = {
            place: arrays[0] if axis is None else np.concatenate(arrays, axis)
            for place, (axis, arrays) in enumerate(zip(self._axes, rows, strict=True))
        }
        return [*program(feeds).values()]

    def difference(self, but: Collection[Layer]) -> float | None:
        """By how much samples side by side differ from each alone, in parts of the largest number.

        None where no output tells two samples apart by finite numbers. Outputs in ``but`` are not
        looked at.

        Raises:
            UsageError: What a sample makes depends on the one beside it.
        """
        one, other, third = self._samples
        program = self._program()
        both = self._run(program, one, other)
        beside = self._run(program, one, third), self._run(program, third, other)
        worst: float | None = None
        for place, (array, result) in enumerate(zip(both, self._model.results, strict=True)):
            alone = [found[place] for found in self._alone]
            if result in but or array.dtype.kind not in "fiub":
                continue
            axis = _doubled(array, alone)
            if axis is None:
                if array.shape != alone[0].shape == alone[1].shape:
                    raise UsageError(
                        f"output {place} of two samples at once has the shape {array.shape}, of "
                        f"each alone {alone[0].shape}: that is not two of them",
                        result.where,
                        f"something stands beside samples once, not for each; {_ALL_THE_SAME}",
                    )
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
