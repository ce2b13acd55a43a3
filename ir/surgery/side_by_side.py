"""A model on random samples, alone and side by side: none may depend on the one beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...schemas import Array, ElementType, Tensor, UsageError
from .. import engine
from ..document import Layer, Model
from ..inference import infer
from .simplifying.certificate import TOLERANCES, Judge, measured, with_finer_levels


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
        inferred = infer(model, {place: x.shape for place, x in enumerate(self._samples[0])})
        #: Outputs whose sizes do not follow from those of the inputs.
        self._open = {
            result
            for result in model.results
            for source in model.sources(result)
            if source is not None and not inferred.of(source[0])[source[1]].shape.is_static
        }
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

    def difference(self, but: Collection[Layer]) -> float | str:
        """By how much samples side by side differ from each alone, or why that says nothing.

        It is in parts of numbers as large as each, or as what tells samples apart there: a large
        number elsewhere hides nothing. Outputs in ``but`` are not looked at.

        Raises:
            UsageError: What a sample makes depends on the one beside it.
        """
        one, other, third = self._samples
        program = self._program()
        both = self._run(program, one, other)
        beside = self._run(program, one, third), self._run(program, third, other)
        worst: float | None = None
        untold: str | None = None
        for place, (array, result) in enumerate(zip(both, self._model.results, strict=True)):
            if result in but:
                continue
            alone = [found[place] for found in self._alone]
            others = [found[place] for found in beside]
            axis = _doubled(place, result, alone, [array, *others])
            if result in self._open:
                untold = f"the sizes of output {place} may depend on the numbers in samples"
            if array.dtype.kind not in "fiub":
                continue
            spread = _spread(alone)
            if spread.any():
                worst = worst or 0.0
            rounding = max(_ROUNDING, TOLERANCES.get(ElementType.of(array.dtype), 0.0))
            for turn, half in enumerate(np.split(array, 2, axis)):
                sizes = np.maximum(np.abs(np.asarray(alone[turn], np.float64)), spread)
                again = np.split(others[turn], 2, axis)[turn]
                # Only what lies beside a sample differs: the same is rounded as it was.
                if (apart := _apart(half, again, sizes)) > rounding:
                    raise UsageError(
                        f"what output {place} says of a sample depends on the one beside it: it "
                        f"moves by {apart:.2g} of the number there",
                        result.where,
                        f"samples meet somewhere on the way; {_ALL_THE_SAME}",
                    )
                apart = _apart(alone[turn], half, _widened(sizes))
                if apart > rounding:
                    raise UsageError(
                        f"output {place} of two samples at once is not that of each alone: it is "
                        f"{apart:.2g} of such numbers away, rounding explains {rounding:g}",
                        result.where,
                        f"something is made for samples at their places; {_ALL_THE_SAME}",
                    )
                worst = worst if worst is None else max(worst, apart)
        if worst is None:
            return "no output has finite numbers that differ from sample to sample"
        return worst if untold is None else untold


def _spread(alone: Sequence[Array]) -> Array:
    """What tells two samples apart, element by element; nothing where one is infinite."""
    one, other = (np.asarray(array, np.float64) for array in alone)
    with np.errstate(invalid="ignore"):  # two that are infinite
        return np.nan_to_num(np.abs(one - other), nan=0.0, posinf=0.0)


def _widened(sizes: Array) -> Array:
    """Sizes by which rounding on other ways is measured: of each number ten times its own.

    They are the largest at most. A number that is next to nothing by chance is a sum of such as
    the others, and rounded as they are: a tenth of all tells how small is small.
    """
    some = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not some.size:
        return sizes
    return np.minimum(10 * np.maximum(sizes, np.quantile(some, 0.1)), some.max())


def _apart(one: Array, other: Array, sizes: Array) -> float:
    """How far arrays are apart, in parts of given sizes; what is infinite must be equal."""
    scale = np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)
    apart, _, alike = measured(one / scale, other / scale)
    return apart if alike else np.inf


def _doubled(place: int, result: Layer, alone: Sequence[Array], together: Sequence[Array]) -> int:
    """The axis along which an output has what two samples have together.

    Raises:
        UsageError: There is none, or the sizes differ from run to run.
    """
    for shapes in ({array.shape for array in alone}, {array.shape for array in together}):
        if len(shapes) > 1:
            met = " and ".join(map(str, sorted(shapes)))
            raise UsageError(
                f"the sizes of output {place} depend on the numbers in samples: it has {met}",
                result.where,
                f"samples that make other sizes do not lie side by side; {_ALL_THE_SAME}",
            )
    shape, whole = alone[0].shape, together[0].shape
    found = [axis for axis, (a, b) in enumerate(zip(shape, whole, strict=False)) if a != b]
    if len(shape) != len(whole) or len(found) != 1 or whole[found[0]] != 2 * shape[found[0]]:
        raise UsageError(
            f"output {place} of two samples at once has the shape {whole}, of each alone {shape}: "
            f"that is not two of them",
            result.where,
            f"something stands beside samples once, not for each; {_ALL_THE_SAME}",
        )
    return found[0]


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
#: What rounding explains, in parts of a number.
_ROUNDING = 5e-4
#: What open sizes of inputs are on trial.
_OPEN = 32
