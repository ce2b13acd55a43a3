"""Moving elements by index: taking them, putting them, telling which are there.

Specification pages: Gather-1, -7, -8; GatherElements-6; GatherND-5, -8; GatherTree-1;
ScatterUpdate-3; ScatterElementsUpdate-3, -12; ScatterNDUpdate-3, -15; Unique-10.

Indices below zero count from the end, wherever the specification leaves it open.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any, Literal

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Int, Type
from ..schemas.shapes import compatible, interval, limits, merge
from ..schemas.tensor import Bounds
from .axes import axis_of, within_axis
from .base import Op, element_type, index_type
from .budget import require
from .budget import steps as counted
from .scattering import brought, neutral
from .shape import integral, numeric

INDEX = (ElementType.I32, ElementType.I64)


class Gather(Op):
    """Slices of the data along an axis, chosen by indices."""

    carries_sizes = "first"

    def batch(self) -> int:
        """How many leading axes data and indices share; may count from the indices' end."""
        return 0

    def infer(self, data: Tensor, indices: Tensor, axis: Tensor) -> tuple[Tensor, ...]:
        if data.rank == 0:
            raise IRError("the data has 0 axes, the least is 1")
        return (Tensor(data.type, self.gathered(data.shape, indices.shape, axis)),)

    def gathered(self, data: Shape, indices: Shape, axis: Tensor) -> Shape:
        """Shape of the output."""
        place = single(axis)
        batch = self.batch() + (indices.rank or 0 if self.batch() < 0 else 0)
        if place is not None and data.rank is not None:
            place = axis_of(place, data.rank)
        if place is not None and 0 <= place < batch:
            raise IRError(f"batch_dims {batch} reaches beyond axis {place}")
        if indices.rank is not None and not 0 <= batch <= indices.rank:
            raise IRError(f"batch_dims {self.batch()}, the indices have {indices.rank} axes")
        if data.rank is None or indices.rank is None:
            return Shape.UNKNOWN
        shared = [merge(*pair) for pair in zip(data[:batch], indices[:batch], strict=True)]
        if place is None:
            return Shape([*shared, *[ANY] * (data.rank + indices.rank - 1 - 2 * batch)])
        return Shape([*shared, *data[batch:place], *indices[batch:], *data[place + 1 :]])

    def run(self, data: Array, indices: Array, axis: Array) -> tuple[Array, ...]:
        place = axis_of(int(axis.reshape(())), data.ndim)
        batch = self.batch() + (indices.ndim if self.batch() < 0 else 0)
        size, before = data.shape[place], data.shape[:place]
        shape = (*before, *indices.shape[batch:], *data.shape[place + 1 :])
        taken_bytes = prod(shape) * data.itemsize
        require(taken_bytes + (0 if indices.dtype == np.int64 else 8 * indices.size))
        indices = indices.astype(np.int64, copy=False)
        if size and not batch:
            with suppress(IndexError):
                # As an array: of named sizes NumPy hands out a single one itself.
                return (np.asarray(np.take(data, indices, place), data.dtype),)
        # Which indices lie beyond, and those that do not; of the former OpenVINO makes zeros.
        require(taken_bytes * (2 if batch else 1) + 24 * indices.size)
        beyond = (indices < -size) | (indices >= size)
        if not size:
            return (np.zeros(shape, data.dtype),)
        if beyond.any():
            indices = np.where(beyond, 0, indices)
        if not batch:
            taken = np.asarray(np.take(data, indices, place), data.dtype)
            beyond = beyond.reshape((*indices.shape, *[1] * (data.ndim - place - 1)))
        else:
            many = prod(before[:batch])
            rows = data.reshape(many, prod(before[batch:]), size, prod(data.shape[place + 1 :]))
            chosen = indices.reshape(many, 1, prod(indices.shape[batch:]), 1)
            taken = np.take_along_axis(rows, chosen, 2)
            beyond = beyond.reshape(chosen.shape)
        if beyond.any():
            taken = np.where(beyond, np.zeros((), data.dtype), taken)
        return (taken.reshape(shape),)


class GatherV1(Gather):
    """Slices of the data along an axis, chosen by indices."""


class GatherV7(Gather):
    """Gather-1 with leading axes that data and indices share."""

    batch_dims: Int = 0

    def infer(self, data: Tensor, indices: Tensor, axis: Tensor) -> tuple[Tensor, ...]:
        integral(indices, "indices")
        integral(axis, "axis")
        return super().infer(data, indices, axis)

    def batch(self) -> int:
        return self.batch_dims


class GatherV8(GatherV7):
    """Gather-7 where indices may count from the end."""


class GatherElementsV6(Op):
    """Elements of the data: the place of each index, but for the axis along which it counts."""

    rooms = 1

    axis: Int

    def infer(self, data: Tensor, indices: Tensor) -> tuple[Tensor, ...]:
        element_type(indices, *INDEX)
        if data.rank is None:
            return (Tensor(data.type, indices.shape),)
        if data.rank == 0:
            raise IRError("the data has 0 axes, the least is 1")
        axis = axis_of(self.axis, data.rank)
        if indices.rank is None:
            return (Tensor(data.type, data.shape.with_size(axis, ANY)),)
        if indices.rank != data.rank:
            raise IRError(f"the indices have {indices.rank} axes, the data has {data.rank}")
        wanted = data.shape.with_size(axis, indices.shape[axis])
        return (Tensor(data.type, wanted.merge(indices.shape)),)

    def run(self, data: Array, indices: Array) -> tuple[Array, ...]:
        axis = axis_of(self.axis, data.ndim)
        return (np.take_along_axis(data, within_axis(indices, data.shape[axis]), axis),)


class GatherND(Op):
    """Slices of the data, each chosen by a row of indices for its leading axes."""

    batch_dims: Int = 0

    def infer(self, data: Tensor, indices: Tensor) -> tuple[Tensor, ...]:
        integral(indices, "indices")
        return (Tensor(data.type, self.gathered(data.shape, indices.shape)),)

    def gathered(self, data: Shape, indices: Shape) -> Shape:
        """Shape of the output."""
        batch = self.batch_dims
        if batch < 0:
            raise IRError(f"batch_dims is {batch}, the least is 0")
        for shape, what in ((data, "data"), (indices, "indices")):
            if shape.rank is not None and shape.rank <= batch:
                raise IRError(f"batch_dims {batch}, the {what} has {shape.rank} axes")
        if data.rank is None or indices.rank is None or isinstance(indices[-1], Dim):
            return Shape.UNKNOWN
        first = batch + indices[-1]
        if first > data.rank:
            raise IRError(f"rows of {indices[-1]} indices for {data.rank - batch} axes")
        shared = [merge(*pair) for pair in zip(data[:batch], indices[:batch], strict=True)]
        return Shape([*shared, *indices[batch:-1], *data[first:]])

    def run(self, data: Array, indices: Array) -> tuple[Array, ...]:
        batch, leading = self.batch_dims, indices.shape[:-1]
        inner = data.shape[batch + indices.shape[-1] :]
        if not indices.shape[-1]:
            # Rows without an index stand for the whole.
            ones = [1] * (len(leading) - batch)
            whole = data.reshape(*data.shape[:batch], *ones, *inner)
            return (np.broadcast_to(whole, (*leading, *inner)),)
        # The slices, and on the way to their places some numbers for each.
        require(prod(leading) * (prod(inner) * data.itemsize + 56))
        if not batch and indices.shape[-1] == 1:
            taken = np.take(data, within_axis(indices[..., 0], len(data)), 0)
            return (np.asarray(taken, data.dtype),)
        # The place of each slice, were the axes before it one: NumPy takes slices of one quickly.
        place: Array = np.zeros((), np.int64)
        grid: tuple[Array, ...] = np.indices(leading, sparse=True)
        for axis, shared in enumerate(grid[:batch]):
            place = place * data.shape[axis] + shared
        rows: Array = np.moveaxis(indices, -1, 0)
        for row, size in zip(rows, data.shape[batch:], strict=False):
            inside = within_axis(row, size)
            place = place * size + np.where(inside < 0, inside + size, inside)
        together = data.reshape(-1, *inner) if data.size else np.empty((0, *inner), data.dtype)
        return (np.asarray(np.take(together, place, 0), data.dtype),)


class GatherNDV5(GatherND):
    """GatherND whose shared axes become one in the output."""

    def gathered(self, data: Shape, indices: Shape) -> Shape:
        shape = super().gathered(data, indices)
        if self.batch_dims < 2 or shape.rank is None:
            return shape
        return Shape([Shape(shape[: self.batch_dims]).count, *shape[self.batch_dims :]])

    def run(self, data: Array, indices: Array) -> tuple[Array, ...]:
        (taken,) = super().run(data, indices)
        if self.batch_dims < 2:
            return (taken,)
        shared = prod(taken.shape[: self.batch_dims])
        return (taken.reshape(shared, *taken.shape[self.batch_dims :]),)


class GatherNDV8(GatherND):
    """Slices of the data, each chosen by a row of indices for its leading axes."""


class GatherTreeV1(Op):
    """The beams of a search, followed from their ends back to the first step."""

    rooms = 5

    def infer(
        self, step_ids: Tensor, parent_idx: Tensor, max_seq_len: Tensor, end_token: Tensor
    ) -> tuple[Tensor, ...]:
        kind = step_ids.type
        for tensor in (parent_idx, max_seq_len, end_token):
            kind = kind.merge(tensor.type)
        if not kind.is_dynamic and not kind.is_numeric:
            raise IRError(f"element type {kind} is not that of numbers")
        shape = step_ids.shape.merge(parent_idx.shape)
        for rank, want, what in (
            (shape.rank, 3, "step_ids"),
            (max_seq_len.rank, 1, "max_seq_len"),
            (end_token.rank, 0, "end_token"),
        ):
            if rank not in (None, want):
                raise IRError(f"{what} has {rank} axes, not {want}")
        if shape.rank is not None and max_seq_len.rank is not None:
            shape = shape.with_size(1, merge(shape[1], max_seq_len.shape[0]))
        return (Tensor(kind, shape),)

    def run(
        self, step_ids: Array, parent_idx: Array, max_seq_len: Array, end_token: Array
    ) -> tuple[Array, ...]:
        steps, batches, beams = step_ids.shape
        ends = np.minimum(max_seq_len.astype(np.int64), steps)[:, None]
        parents = parent_idx.astype(np.int64)
        out = np.full_like(step_ids, end_token)
        beam = np.broadcast_to(np.arange(beams), (batches, beams))
        for step in counted(reversed(range(steps))):
            inside = step < ends
            beam = within_axis(beam, beams)
            here = np.take_along_axis(step_ids[step], beam, 1)
            out[step] = np.where(inside, here, end_token)
            beam = np.where(inside, np.take_along_axis(parents[step], beam, 1), beam)
        ended = np.logical_or.accumulate(out == end_token, 0)
        return (np.where(ended, end_token, out),)


class ScatterUpdateV3(Op):
    """The data with slices along an axis replaced."""

    carries_sizes = (0, 2)

    def infer(
        self, data: Tensor, indices: Tensor, updates: Tensor, axis: Tensor
    ) -> tuple[Tensor, ...]:
        data.type.merge(updates.type)
        integral(indices, "indices")
        integral(axis, "axis")
        place = single(axis)
        if data.rank is None:
            return (Tensor(data.type),)
        if place is not None:
            place = axis_of(place, data.rank)
        if indices.rank is None or updates.rank is None:
            return (Tensor(data.type, data.shape),)
        if updates.rank != data.rank + indices.rank - 1:
            raise IRError(
                f"the updates have {updates.rank} axes, "
                f"data and indices ask for {data.rank} + {indices.rank} - 1"
            )
        if place is not None:
            sizes = [*data.shape[:place], *indices.shape, *data.shape[place + 1 :]]
            fit(updates.shape, sizes, "updates")
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, indices: Array, updates: Array, axis: Array) -> tuple[Array, ...]:
        out, place = data.copy(), axis_of(int(axis.reshape(())), data.ndim)
        out[(slice(None),) * place + (within_axis(indices, data.shape[place]),)] = updates
        return (out,)


class ScatterElements(Op):
    """The data with elements replaced, each at its index along an axis."""

    carries_sizes = (0, 2)

    def infer(
        self, data: Tensor, indices: Tensor, updates: Tensor, axis: Tensor
    ) -> tuple[Tensor, ...]:
        kind = data.type.merge(updates.type)
        integral(indices, "indices")
        integral(axis, "axis")
        place = single(axis)
        if data.rank is not None and place is not None:
            axis_of(place, data.rank)
        if None not in (data.rank, indices.rank) and data.rank != indices.rank:
            raise IRError(f"the indices have {indices.rank} axes, the data has {data.rank}")
        indices.shape.merge(updates.shape)
        return (Tensor(kind, data.shape),)

    def run(self, data: Array, indices: Array, updates: Array, axis: Array) -> tuple[Array, ...]:
        place = axis_of(int(axis.reshape(())), data.ndim)
        for other, (count, size) in enumerate(zip(indices.shape, data.shape, strict=True)):
            if count > size and other != place:
                raise IRError(f"axis {other} of the indices has {count} elements, the data {size}")
        inner = place + 1
        if indices.size and inner < data.ndim and indices.shape[inner:] == data.shape[inner:]:
            slices = indices.reshape(*indices.shape[:inner], -1)[..., 0]
            if is_repeated(slices, indices):  # whole slices are replaced: runs of memory
                indices = slices
        indices = within_axis(indices, data.shape[place])
        where: list[Any] = list(np.indices(indices.shape, sparse=True))
        where[place] = indices
        return (self.placed(data, tuple(where), updates),)

    def placed(self, data: Array, where: tuple[Any, ...], updates: Array) -> Array:
        """The data with the updates at their places."""
        return brought("none", data, where, updates)


class ScatterElementsUpdateV3(ScatterElements):
    """The data with elements replaced, each at its index along an axis."""

    until = 11


class Reducing(Op):
    """What is known of values that may be reduced with what is at their places."""

    rooms = 1

    reduction: str

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        # A difference falls as its updates grow, sums and products wrap where there is no limit.
        return super().bounds(lows, highs) if self.reduction in ("none", "min", "max") else None

    def carry_sizes(self, *inputs: Any) -> Sequence[Array | None] | None:
        # Which of two sizes is the greater, NumPy asks as if the answer was known.
        return self.run(*inputs) if self.reduction == "none" else None


class ScatterElementsUpdateV12(Reducing, ScatterElements):
    """ScatterElementsUpdate-3 where updates may be reduced with what is there."""

    reduction: Literal["none", "sum", "prod", "min", "max", "mean"] = "none"
    use_init_val: Bool = True

    def infer(
        self, data: Tensor, indices: Tensor, updates: Tensor, axis: Tensor
    ) -> tuple[Tensor, ...]:
        reducible(self.reduction, data)
        return super().infer(data, indices, updates, axis)

    def placed(self, data: Array, where: tuple[Any, ...], updates: Array) -> Array:
        if self.reduction == "none":
            return brought("none", data, where, updates)
        if not self.use_init_val:
            data = data.copy()
            data[where] = neutral(self.reduction, data)
        if self.reduction != "mean":
            return brought(self.reduction, data, where, updates)
        require(48 * data.size)
        counts = np.zeros(data.shape, np.int64)
        np.add.at(counts, where, 1)
        wide = data if data.dtype.kind in "iu" else data.astype(np.promote_types(data.dtype, "f4"))
        total = brought("sum", wide, where, updates.astype(wide.dtype))
        divisor = np.maximum(counts + int(self.use_init_val), 1)
        mean = total // divisor if data.dtype.kind in "iu" else total / divisor
        return np.where(counts > 0, mean.astype(data.dtype), data)


class ScatterND(Op):
    """The data with slices replaced, each at the place that a row of indices tells."""

    carries_sizes = (0, 2)

    def infer(self, data: Tensor, indices: Tensor, updates: Tensor) -> tuple[Tensor, ...]:
        kind = data.type.merge(updates.type)
        element_type(indices, *INDEX)
        if data.rank == 0 or indices.rank == 0:
            raise IRError("data and indices have one axis at least")
        if data.rank is None or indices.rank is None:
            return (Tensor(kind, data.shape),)
        row = indices.shape[-1]
        if isinstance(row, Dim):
            return (Tensor(kind, data.shape),)
        if row > data.rank:
            raise IRError(f"rows of {row} indices, the data has {data.rank} axes")
        sizes = [*indices.shape[:-1], *data.shape[row:]]
        if updates.rank is not None and sizes:
            if updates.rank != len(sizes):
                raise IRError(
                    f"the updates have {updates.rank} axes, data and indices ask for {len(sizes)}"
                )
            fit(updates.shape, sizes, "updates")
        return (Tensor(kind, data.shape),)

    def run(self, data: Array, indices: Array, updates: Array) -> tuple[Array, ...]:
        rows = np.moveaxis(indices, -1, 0)
        where = tuple(within_axis(row, size) for row, size in zip(rows, data.shape, strict=False))
        shape = (*indices.shape[:-1], *data.shape[indices.shape[-1] :])
        if updates.size != prod(shape):
            raise IRError(f"the updates have {updates.size} elements, not {prod(shape)}")
        return (brought(self.rule(), data, where, updates.reshape(shape)),)

    def rule(self) -> str:
        """How an update is brought together with what is there."""
        return "none"


class ScatterNDUpdateV3(ScatterND):
    """The data with slices replaced, each at the place that a row of indices tells."""

    since = 4


class ScatterNDUpdateV15(Reducing, ScatterND):
    """ScatterNDUpdate-3 where updates may be reduced with what is there."""

    reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = "none"

    def infer(self, data: Tensor, indices: Tensor, updates: Tensor) -> tuple[Tensor, ...]:
        reducible(self.reduction, data)
        return super().infer(data, indices, updates)

    def rule(self) -> str:
        return self.reduction


class UniqueV10(Op):
    """Elements, or slices along an axis, each once; where they stood, and how often."""

    output_count = (4, 4)

    sorted: Bool = True
    index_element_type: Type = ElementType.I64
    count_element_type: Type = ElementType.I64

    def infer(self, data: Tensor, axis: Tensor | None = None) -> tuple[Tensor, ...]:
        index_type("index_element_type", self.index_element_type)
        index_type("count_element_type", self.count_element_type)
        given = None if axis is None else axis.ints()
        if axis is not None:
            element_type(axis, *INDEX)
            if axis.shape.rank != 0 and axis.shape != (1,):
                raise IRError(f"the axis has shape {axis.shape}, it is one number")
            if given is None:
                raise IRError("the axis has to be a constant")
        if data.value is not None:
            found = self.run(data.value, *([] if given is None else [np.array(given)]))
            shapes = [Shape(array.shape) for array in found]
        else:
            shapes = self.shapes(data.shape, None if given is None else given[0])
        indices = self.index_element_type
        kinds = (data.type, indices, indices, self.count_element_type)
        return tuple(Tensor(k, s) for k, s in zip(kinds, shapes, strict=True))

    def shapes(self, data: Shape, axis: int | None) -> list[Shape]:
        """Shapes of the outputs, where the data is not known."""
        count = data.count if data.is_static and data.count != 0 else ANY
        found = ANY if isinstance(count, Dim) else interval(1, count)
        if axis is None:
            return [Shape([found]), Shape([found]), Shape([count]), Shape([found])]
        if data.rank is None:
            return [Shape.UNKNOWN, Shape([found]), Shape([count]), Shape([found])]
        place = axis_of(axis, data.rank)
        size = data[place]
        some: Size = ANY
        if size == 0:
            some = found = 0
        elif limits(size) != (0, None):
            some = interval(1, limits(size)[1])
        return [data.with_size(place, some), Shape([found]), Shape([size]), Shape([found])]

    def run(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        place = None if axis is None else axis_of(int(axis.reshape(())), data.ndim)
        plain = data if data.dtype.kind in "iubfT" else data.astype(np.float32)
        require(taken_by_unique(plain, place))
        _, first, back, counts = np.unique(plain, True, True, True, axis=place, equal_nan=False)
        back = back.ravel()
        if not self.sorted:
            order = np.argsort(first)
            back = np.argsort(order)[back]
            first, counts = first[order], counts[order]
        unique = data.ravel()[first] if place is None else np.take(data, first, place)
        index = self.index_element_type.dtype
        return (
            unique,
            first.astype(index, copy=False),
            back.astype(index, copy=False),
            counts.astype(self.count_element_type.dtype, copy=False),
        )


def taken_by_unique(data: Array, axis: int | None) -> int:
    """Bytes that NumPy takes at most to sort elements, or slices, and to tell places of each."""
    if axis is None:
        different = min(data.size, 1 << min(8 * data.itemsize, 62))
        return (25 + 2 * data.itemsize) * data.size + 32 * different
    # A slice is sorted as a record, each of whose fields has a name.
    fields = data.size // max(data.shape[axis], 1)
    return 4 * data.nbytes + 57 * data.shape[axis] + 512 * fields


def single(axis: Tensor) -> int | None:
    """The one number that an axis input holds, where it is known."""
    numeric(axis, "axis")
    if axis.shape.is_static and axis.shape not in ((), (1,)):
        raise IRError(f"the axis has shape {axis.shape}, it is one number")
    if axis.rank not in (None, 0, 1):
        raise IRError(f"the axis has {axis.rank} axes, it is one number")
    known = axis.ints()
    return None if known is None else known[0]


def fit(shape: Shape, sizes: Sequence[Size], what: str) -> None:
    """Refuse a shape that does not go with the sizes asked for."""
    if not all(compatible(*pair) for pair in zip(shape, sizes, strict=True)):
        raise IRError(f"the {what} have shape {shape}, data and indices ask for {Shape(sizes)}")


def is_repeated(slices: Array, indices: Array) -> bool:
    """Whether indices are the same along all axes that slices do not have."""
    alone = (*slices.shape, *[1] * (indices.ndim - slices.ndim))
    return bool((indices == slices.reshape(alone)).all())


def reducible(reduction: str, data: Tensor) -> None:
    """Refuse element types that have no such reduction."""
    if data.type is ElementType.STRING and reduction != "none":
        raise IRError(f'reduction "{reduction}" takes numbers, the data are strings')
    if data.type is ElementType.BOOLEAN and reduction == "mean":
        raise IRError("the data are truth values, which have no mean")
