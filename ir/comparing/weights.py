"""Values made of constants alone, computed when they are taken, and let go of after.

Weights of a quantized network are several times as large in f32 as in the file: each is made
where it is taken, rows at a time, so that what lies between (converted, less a zero point) is
never whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import overload

import numpy as np

from ...layers.casting import aligned, as_computed, computed
from ...layers.elementwise import Broadcasting, Unary
from ...layers.memory import nbytes
from ...schemas import Array, Tensor
from ..document import Layer
from ..execution import InterpreterStep

#: What is smaller is computed once, for all that take it.
_LARGE = 1 << 18
#: Beside what is larger, the part of the file that it is made of is not kept in memory.
_HUGE = 1 << 24
#: Elements that are made at a time.
_PIECE = 1 << 18


class Weights(Sequence[Array]):
    """The output of a layer that depends on constants alone."""

    def __init__(
        self, step: InterpreterStep, known: Mapping[int, Sequence[Array]], shape: tuple[int, ...]
    ) -> None:
        self.step, self.shape = step, shape
        self.sources = [(known[number], index) for number, index in step.sources]
        op = step.layer.op
        if isinstance(op, Broadcasting):
            each = op.auto_broadcast == "numpy"
        else:
            each = isinstance(op, Unary) or step.layer.type == "Convert"
        each = each and any(
            held.by_rows and held.shape == shape
            if isinstance(held, Weights)
            else held[index].shape == shape
            for held, index in self.sources
        )
        #: Whether rows of it are made of rows of what it takes.
        self.by_rows: bool = bool(shape) and (step.layer.is_constant or each)

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, index: int) -> Array: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Array]: ...

    def __getitem__(self, index: int | slice) -> Array | Sequence[Array]:
        return (self._whole({}),)[index]

    def _whole(self, held: dict[int, Array]) -> Array:
        """All of it; ``held`` is what was made whole on the way."""
        key = self.step.layer.id
        if key in held:
            return held[key]
        assert self.step.kernel is not None
        if not self.by_rows or self.step.layer.is_constant:
            inputs = [_of(source, index, held) for source, index in self.sources]
            with self.step.layer.at():
                (found,) = self.step.kernel(*inputs)
        else:
            count = max(1, _PIECE * self.shape[0] // max(prod(self.shape), 1))
            first = self._rows(slice(0, count), held, {})
            found = np.empty(self.shape, first.dtype)
            found[:count] = first
            for start in range(count, self.shape[0], count):
                rows = slice(start, start + count)
                found[rows] = self._rows(rows, held, {})
                if found.nbytes > _HUGE:
                    self._let_go()
        held[key] = found
        return found

    def _let_go(self) -> None:
        """What of the file was read to make rows, nobody needs any more."""
        model = self.step.layer.model
        if model is not None and model.weights is not None:
            model.weights.release()

    def _rows(self, rows: slice, held: dict[int, Array], made: dict[int, Array]) -> Array:
        """Some rows; ``made`` are those of the layers before."""
        layer = self.step.layer
        if layer.id in made:
            return made[layer.id]
        if layer.is_constant:
            if layer.id not in held:
                held[layer.id] = layer.value
            found = aligned(as_computed(held[layer.id][rows]))
        else:
            assert self.step.kernel is not None
            inputs = []
            for source, index in self.sources:
                if isinstance(source, Weights) and source.by_rows and source.shape == self.shape:
                    inputs.append(source._rows(rows, held, made))
                    continue
                whole = _of(source, index, held)
                cut = whole.ndim == len(self.shape) and len(whole) == self.shape[0]
                inputs.append(whole[rows] if cut else whole)
            with layer.at():
                (found,) = self.step.kernel(*inputs)
        made[layer.id] = found
        return found


def _of(source: Sequence[Array], index: int, held: dict[int, Array]) -> Array:
    """A value that was computed, or is made now."""
    return source._whole(held) if isinstance(source, Weights) else source[index]


def made_of_constants(
    step: InterpreterStep, known: Mapping[int, Sequence[Array]], tensors: Sequence[Tensor]
) -> Sequence[Array]:
    """What a layer gives that depends on constants alone: at once, or when it is taken."""
    layer = step.layer
    assert step.kernel is not None
    one = len(tensors) == 1 and tensors[0].shape.is_static and nbytes(tensors) > _LARGE
    if one and not (layer.is_constant and _is_plain(layer)):
        return Weights(step, known, tensors[0].shape.static)
    with layer.at():
        return step.kernel(*(known[number][index] for number, index in step.sources))


def _is_plain(layer: Layer) -> bool:
    """Whether a constant is computed in the type in which it lies in the file."""
    kind = layer.element_type
    return kind.bits >= 8 and computed(kind) is kind
