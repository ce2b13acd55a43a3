"""Values made of constants alone, computed when they are taken, and let go of after.

Weights of a quantized network are several times as large in f32 as in the file: each is made
where it is taken, rows at a time, so that what lies between (converted, less a zero point) is
never whole. Of very large ones a Gather and a MatMul take rows as well: those that are chosen,
or those of some columns of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, TypeAlias, overload

import numpy as np

from ...layers.casting import aligned, as_computed, computed
from ...layers.elementwise import Broadcasting, Unary
from ...layers.memory import nbytes
from ...schemas import Array, Tensor
from ...schemas.packing import unpack
from ..document import Layer
from ..execution import InterpreterStep

#: What is smaller is computed once, for all that take it.
_LARGE = 1 << 18
#: Beside what is larger, the part of the file that it is made of is not kept in memory.
_HUGE = 1 << 24
#: Elements that are made at a time.
_PIECE = 1 << 18
#: Layers whose rows are those of what they take, as long as there are as many.
_SAME_ROWS = ("Reshape", "Squeeze", "Unsqueeze")
#: Some rows, by their places.
Rows: TypeAlias = "slice | Array"
Kernel: TypeAlias = Callable[..., tuple[Array, ...]]


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
        held = self.sources[0][0] if self.sources else None
        #: Whether it is what it takes in another shape, each row in its place.
        self.turned: bool = (
            step.layer.type in _SAME_ROWS
            and isinstance(held, Weights)
            and held.by_rows
            and held.shape[0] == shape[0]
            if shape
            else False
        )
        #: Whether rows of it are made of rows of what it takes.
        self.by_rows: bool = bool(shape) and (step.layer.is_constant or each or self.turned)

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
            found = np.empty(self.shape, self.dtype)
            for rows in self.parts(_PIECE):
                found[rows] = self._rows(rows, held, {})
                if found.nbytes > _HUGE:
                    self.let_go()
        held[key] = found
        return found

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        return self._rows(slice(0, 1), {}, {}).dtype

    @property
    def is_huge(self) -> bool:
        """Whether it is better never made whole."""
        return self.by_rows and self.shape[0] > 1 and 4 * prod(self.shape) > _HUGE

    def parts(self, elements: int) -> Iterator[slice]:
        """Its rows, of so many elements at a time."""
        count = max(1, elements * self.shape[0] // max(prod(self.shape), 1))
        for start in range(0, self.shape[0], count):
            yield slice(start, min(start + count, self.shape[0]))

    def rows(self, rows: Rows) -> Array:
        """Some of its rows."""
        return self._rows(rows, {}, {})

    def let_go(self) -> None:
        """What of the file was read to make rows, nobody needs any more."""
        model = self.step.layer.model
        if model is not None and model.weights is not None:
            model.weights.release()

    def _rows(self, rows: Rows, held: dict[int, Array], made: dict[int, Array]) -> Array:
        """Some rows; ``made`` are those of the layers before."""
        layer = self.step.layer
        if layer.id in made:
            return made[layer.id]
        if layer.is_constant:
            found = aligned(as_computed(_stored(layer, rows, held)))
        elif self.turned:
            source = self.sources[0][0]
            assert isinstance(source, Weights)
            some = source._rows(rows, held, made)
            found = some.reshape(len(some), *self.shape[1:])
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


def _stored(layer: Layer, rows: Rows, held: dict[int, Array]) -> Array:
    """Some rows of a constant; of values smaller than a byte no others are unpacked."""
    kind, sizes = layer.element_type, layer.sizes
    each = prod(sizes[1:]) * kind.bits
    if layer.has_new_value or kind.bits >= 8 or 8 % kind.bits or each % 8:
        if layer.id not in held:
            held[layer.id] = layer.value
        return held[layer.id][rows]
    stored = np.frombuffer(layer.blob, np.uint8)[: sizes[0] * each // 8]
    some = np.ascontiguousarray(stored.reshape(sizes[0], each // 8)[rows])
    return unpack(some.reshape(-1), kind, (len(some), *sizes[1:]))


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


def lean(
    step: InterpreterStep, known: Mapping[int, Sequence[Array]]
) -> tuple[InterpreterStep, list[Array]]:
    """A step and its inputs; very large weights are made by its kernel, some rows at a time.

    In their place among the inputs stands an array of nothing, of their type and shape.
    """
    layer, kernel = step.layer, step.kernel
    place = {"Gather": 0, "MatMul": 1}.get(layer.type)
    sources = [known[number] for number, _ in step.sources]
    large = None if place is None or place >= len(sources) else sources[place]
    changed: Kernel | None = None
    if kernel is not None and isinstance(large, Weights) and large.is_huge:
        if layer.type == "MatMul":
            changed = _product(layer, kernel, large)
        elif len(sources) == 3:
            changed = _gathered(layer, kernel, large, sources[2][step.sources[2][1]])
    if changed is None:
        return step, [known[number][index] for number, index in step.sources]
    assert isinstance(large, Weights)
    nothing = np.broadcast_to(np.zeros((), large.dtype), large.shape)
    given = [
        nothing if number == place else known[source][index]
        for number, (source, index) in enumerate(step.sources)
    ]
    return step._replace(kernel=changed), given


def _product(layer: Layer, kernel: Kernel, weights: Weights) -> Kernel | None:
    """A product by weights whose rows are columns of the result, some columns at a time."""
    if not getattr(layer.op, "transpose_b", False) or len(weights.shape) != 2:
        return None

    def columns(left: Array, _: Array) -> tuple[Array, ...]:
        found: Array | None = None
        for rows in weights.parts(2 * _PIECE):
            part = kernel(left, weights.rows(rows))
            weights.let_go()
            if len(part) != 1 or part[0].shape[-1:] != (rows.stop - rows.start,):
                return kernel(left, weights[0])  # an operation of somebody's own
            if found is None:
                found = np.empty((*part[0].shape[:-1], weights.shape[0]), part[0].dtype)
            found[..., rows] = part[0]
        assert found is not None
        return (found,)

    return columns


def _gathered(layer: Layer, kernel: Kernel, weights: Weights, axis: Array) -> Kernel | None:
    """Rows that are chosen, out of a table of those alone."""
    if axis.size != 1 or int(axis.reshape(())) not in (0, -len(weights.shape)):
        return None
    if getattr(layer.op, "batch_dims", 0):
        return None

    def chosen(_: Array, indices: Array, axis: Array) -> tuple[Array, ...]:
        size = weights.shape[0]
        places = indices.astype(np.int64)
        there = (places >= -size) & (places < size)
        rows, inverse = np.unique(places[there] % size, return_inverse=True)
        if 2 * len(rows) > size:
            return kernel(weights[0], indices, axis)
        table = np.empty((len(rows), *weights.shape[1:]), weights.dtype)
        count = max(1, _PIECE // max(prod(weights.shape[1:]), 1))
        for start in range(0, len(rows), count):
            table[start : start + count] = weights.rows(rows[start : start + count])
            weights.let_go()
        # What lies beyond the weights lies beyond the table.
        moved = np.where(places < 0, -len(rows) - 1, len(rows))
        moved[there] = inverse.reshape(-1)
        return kernel(table, moved.astype(indices.dtype), axis)

    return chosen


def _is_plain(layer: Layer) -> bool:
    """Whether a constant is computed in the type in which it lies in the file."""
    kind = layer.element_type
    return kind.bits >= 8 and computed(kind) is kind
