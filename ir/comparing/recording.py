"""The tensors where a model is cut, computed when they are asked for.

Those on the way are kept as far as there is room: what is asked for next begins there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from ...layers.budget import within
from ...layers.casting import as_computed
from ...layers.leftovers import tidy
from ...schemas import ANY, Array, ElementType, InternalError, IRError, LimitError, Shape, Tensor
from ..document import Layer, Model
from ..execution import Interpreter, Traced, check_inputs
from ..inference import Inferred, infer_layer, parameter_type
from .extraction import Spot
from .failures import Samples
from .turns import recording_room

#: The part of what may be kept of what was not asked for, up to which a tensor is kept.
_LARGE = 16


class Recording:
    """A model, its samples, and those tensors inside that were asked for or met on the way."""

    def __init__(self, model: Model, samples: Samples) -> None:
        #: Bytes of what was not asked for that may still be kept.
        self.room = recording_room()
        self.large = self.room // _LARGE
        self.model = model
        self.order = model.order()
        self.arrays: list[Mapping[int, Array]] = [
            check_inputs(model, list(sample)) for sample in samples
        ]
        self.values: list[dict[Spot, Array]] = [
            {(key, 0): as_computed(array) for key, array in arrays.items()}
            for arrays in self.arrays
        ]
        self.tensors = _inferred(model, {})

    @tidy
    def record(self, spots: Iterable[Spot], max_seconds: float | None = None) -> bool:
        """Compute tensors, and what they come from as far as it is not kept; whether all came."""
        wanted = set(spots)
        for arrays, held in zip(self.arrays, self.values, strict=True):
            missing = wanted - held.keys()
            if missing:
                self._run(arrays, held, missing, max_seconds)
        return all(wanted <= held.keys() for held in self.values)

    def _run(
        self,
        arrays: Mapping[int, Array],
        held: dict[Spot, Array],
        missing: set[Spot],
        max_seconds: float | None,
    ) -> None:
        needed, kept = self._ancestors({layer_id for layer_id, _ in missing}, held)
        order = [layer for layer in self.order if layer.id in needed]

        def note(step: Traced) -> None:
            for index, array in enumerate(step.outputs):
                spot = (step.layer.id, index)
                if spot in missing:
                    held[spot] = array
                elif step.layer.is_constant or spot in held:
                    continue
                elif array.nbytes <= min(self.room, self.large):
                    held[spot] = array
                    self.room -= array.nbytes

        given = {}
        for key, array in arrays.items():
            kind = parameter_type(self.model.layer(key))
            kind = ElementType.of(array.dtype) if kind.is_dynamic else kind
            given[key] = Tensor(kind, array.shape)
        inferred = Inferred(self.model, _inferred(self.model, given))
        try:
            with within(None, max_seconds):
                walk = Interpreter(self.model, (), order, inferred)
                walk.steps = [
                    step
                    if step.layer.id not in kept
                    else step._replace(
                        kernel=partial(tuple, kept[step.layer.id]),
                        sources=(),
                        freed=tuple(one for one in step.freed if one in needed),
                    )
                    for step in walk.steps
                ]
                walk(arrays, {}, note)
        except LimitError:
            raise
        except (IRError, InternalError):
            return  # what comes after a layer that fails is not known

    def _ancestors(
        self, ids: Iterable[int], held: Mapping[Spot, Array]
    ) -> tuple[set[int], dict[int, list[Array]]]:
        """Layers, and all that they depend on, up to those whose outputs are kept."""
        found: set[int] = set()
        kept: dict[int, list[Array]] = {}
        pending = [*ids]
        while pending:
            one = pending.pop()
            if one in found:
                continue
            found.add(one)
            layer = self.model.layer(one)
            spots = [(one, index) for index in range(len(layer.outputs))]
            if layer.type != "Parameter" and spots and all(spot in held for spot in spots):
                kept[one] = [held[spot] for spot in spots]
                continue
            sources = self.model.sources(layer)
            pending += [source[0].id for source in sources if source is not None]
        return found, kept

    def tensor(self, layer: Layer, index: int) -> Tensor:
        """Type and shape of a tensor."""
        known = self.tensors.get(layer.id)
        found = known[index] if known is not None else layer.outputs[index].tensor
        arrays = [held.get((layer.id, index)) for held in self.values]
        shapes = {array.shape for array in arrays if array is not None}
        if not shapes:
            return found
        kind = found.type
        if kind.is_dynamic:
            kind = next(ElementType.of(a.dtype) for a in arrays if a is not None)
        first = next(iter(shapes))
        if len(shapes) == 1:
            return Tensor(kind, first)
        if len({len(shape) for shape in shapes}) > 1:
            return Tensor(kind, Shape.UNKNOWN)
        sizes = [s[0] if len(set(s)) == 1 else ANY for s in zip(*shapes, strict=True)]
        return Tensor(kind, Shape(sizes))

    def value(self, sample: int, spot: Spot) -> Array:
        """The value of a tensor; one at random where the model did not come so far."""
        found = self.values[sample].get(spot)
        kind = self.tensor(self.model.layer(spot[0]), spot[1])
        if found is not None:
            with np.errstate(all="ignore"):  # beyond f16 is infinite
                return found.astype(kind.type.dtype, copy=False)
        sizes = [size if isinstance(size, int) else 1 for size in kind.shape.sizes or ()]
        rng = np.random.default_rng(spot[0])
        if kind.type.is_real:
            return rng.standard_normal(sizes).astype(kind.type.dtype)
        return np.ones(sizes, kind.type.dtype)


def _inferred(model: Model, given: Mapping[int, Tensor]) -> dict[int, tuple[Tensor, ...]]:
    """What can be inferred of layers one by one; of the rest the file is trusted."""
    known: dict[int, tuple[Tensor, ...]] = {}
    for layer in model.order():
        try:
            known[layer.id] = infer_layer(model, layer, known, given)
        except (IRError, InternalError):
            known[layer.id] = tuple(port.tensor for port in layer.outputs)
    return known
