"""Rows of a table gathered into bags and added up; sparse tensors without empty rows.

Specification pages: EmbeddingBagOffsetsSum-3, EmbeddingBagPackedSum-3, EmbeddingSegmentsSum-3,
EmbeddingBagOffsets-15, EmbeddingBagPacked-15, SparseFillEmptyRows-16.

Sums of integers wrap around in their type, means of integers are cut to whole numbers.
"""

from __future__ import annotations

from math import prod
from typing import Literal

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Size, Tensor
from ..schemas.shapes import compatible
from .axes import as_size
from .base import Op, element_type
from .budget import require
from .casting import narrowed, quiet, widened

INDEX = (ElementType.I32, ElementType.I64)


class Bags(Op):
    """What all that add up rows of a table share."""

    def of_bag(self) -> str:
        """What is made of the rows of a bag: their sum or their mean."""
        return "sum"

    def bags(
        self,
        table: Tensor,
        count: Size,
        indices: dict[str, Tensor | None],
        weights: Tensor | None,
        rank: int = 1,
    ) -> Tensor:
        """The output for a number of bags; ``indices`` are all inputs of the index type."""
        kind = ElementType.DYNAMIC
        for name, tensor in indices.items():
            if tensor is None:
                continue
            element_type(tensor, *INDEX)
            kind = kind.merge(tensor.type)
            axes = 0 if name in ("default_index", "num_segments") else rank
            if tensor.rank not in (None, axes):
                raise IRError(f"{name} has {tensor.rank} axes ({tensor.shape}), it takes {axes}")
        if weights is not None:
            if self.of_bag() != "sum":
                raise IRError(f"weights are for sums, this is the {self.of_bag()}")
            table.type.merge(weights.type)
            if weights.rank not in (None, rank):
                raise IRError(f"the weights have {weights.rank} axes, they take {rank}")
        if table.rank is None:
            return Tensor(table.type)
        if not table.rank:
            raise IRError("the table of rows has no axis")
        return Tensor(table.type, Shape((count, *table.shape[1:])))

    @quiet
    def filled(
        self, table: Array, indices: Array, owners: Array, count: int, weights: Array | None
    ) -> Array:
        """The bags, given to which of them (``owners``) each index belongs."""
        check_lengths(indices, owners, weights)
        if ((indices < 0) | (indices >= len(table))).any():
            raise IRError(f"an index is beyond the {len(table)} rows of the table")
        if ((owners < 0) | (owners >= count)).any():
            raise IRError(f"an index belongs to a bag beyond the {count} that there are")
        whole = table.dtype.kind in "iu"
        wide = table if whole else widened(table)
        total = np.zeros((count, *table.shape[1:]), wide.dtype)
        if (owners[1:] < owners[:-1]).any():
            order = owners.argsort(kind="stable")
            owners, indices = owners[order], indices[order]
            weights = None if weights is None else weights[order]
        # A row of the table for each index, the weighted ones and the sums; and the indices.
        each = wide.itemsize * prod(wide.shape[1:])
        copies = 1 if weights is None else 2
        require(copies * each * len(indices) + 3 * each * count + 56 * len(indices))
        rows = wide[indices]
        if weights is not None:
            rows = rows * weights.astype(rows.dtype).reshape(-1, *[1] * (table.ndim - 1))
        if rows.size:
            # What belongs together stands together: that is added up many times sooner.
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            total[owners[starts]] = np.add.reduceat(rows, starts, 0, dtype=wide.dtype)
        if self.of_bag() == "sum":
            return narrowed(total, table.dtype)
        sizes = np.maximum(np.bincount(owners, minlength=count), 1)
        sizes = sizes.reshape(-1, *[1] * (table.ndim - 1))
        if whole:
            return np.trunc(total / sizes).astype(table.dtype)
        return narrowed(total / sizes.astype(total.dtype), table.dtype)


class EmbeddingBagOffsetsSumV3(Bags):
    """Bags that begin at offsets into one list; an empty bag holds the default row, or zeros."""

    def infer(
        self,
        emb_table: Tensor,
        indices: Tensor,
        offsets: Tensor,
        default_index: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        lists = {"indices": indices, "offsets": offsets, "default_index": default_index}
        same_length(indices, per_sample_weights)
        count = ANY if offsets.rank != 1 else offsets.shape[0]
        return (self.bags(emb_table, count, lists, per_sample_weights),)

    def run(
        self,
        emb_table: Array,
        indices: Array,
        offsets: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
    ) -> tuple[Array, ...]:
        owners = np.searchsorted(offsets, np.arange(len(indices)), "right") - 1
        used = owners >= 0
        weights = None if per_sample_weights is None else per_sample_weights[used]
        result = self.filled(emb_table, indices[used], owners[used], len(offsets), weights)
        return (with_default(result, owners, emb_table, default_index),)


class EmbeddingBagOffsetsV15(EmbeddingBagOffsetsSumV3):
    """EmbeddingBagOffsetsSum-3 with a choice of sum or mean."""

    reduction: Literal["mean", "sum"] = "sum"

    def of_bag(self) -> str:
        return self.reduction


class EmbeddingBagPackedSumV3(Bags):
    """Bags of equal length: the rows of a matrix of indices."""

    def infer(
        self, emb_table: Tensor, indices: Tensor, per_sample_weights: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        shape = same_length(indices, per_sample_weights)
        count = ANY if not shape.rank else shape[0]  # a rank of 0 is refused with the others
        return (self.bags(emb_table, count, {"indices": indices}, per_sample_weights, 2),)

    def run(
        self, emb_table: Array, indices: Array, per_sample_weights: Array | None = None
    ) -> tuple[Array, ...]:
        check_lengths(indices, per_sample_weights)
        count, each = indices.shape
        owners = np.repeat(np.arange(count), each)
        weights = None if per_sample_weights is None else per_sample_weights.ravel()
        return (self.filled(emb_table, indices.ravel(), owners, count, weights),)


class EmbeddingBagPackedV15(EmbeddingBagPackedSumV3):
    """EmbeddingBagPackedSum-3 with a choice of sum or mean."""

    reduction: Literal["mean", "sum"] = "sum"

    def of_bag(self) -> str:
        return self.reduction


class EmbeddingSegmentsSumV3(Bags):
    """Bags named for each index; an empty bag holds the default row, or zeros."""

    def infer(
        self,
        emb_table: Tensor,
        indices: Tensor,
        segment_ids: Tensor,
        num_segments: Tensor,
        default_index: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        lists = {
            "indices": indices,
            "segment_ids": segment_ids,
            "num_segments": num_segments,
            "default_index": default_index,
        }
        same_length(indices, segment_ids)
        same_length(indices, per_sample_weights)
        known = num_segments.sizes()
        count = as_size(known[0]) if known and known[0] != -1 else ANY
        return (self.bags(emb_table, count, lists, per_sample_weights),)

    def run(
        self,
        emb_table: Array,
        indices: Array,
        segment_ids: Array,
        num_segments: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
    ) -> tuple[Array, ...]:
        count = int(num_segments)
        result = self.filled(emb_table, indices, segment_ids, count, per_sample_weights)
        return (with_default(result, segment_ids, emb_table, default_index),)


class SparseFillEmptyRowsV16(Op):
    """A sparse matrix with the default value at the start of each row that had none, in order."""

    output_count = (3, 3)

    def infer(
        self, values: Tensor, dense_shape: Tensor, indices: Tensor, default_value: Tensor
    ) -> tuple[Tensor, ...]:
        kind = dense_shape.type.merge(indices.type)
        for tensor in (dense_shape, indices):
            element_type(tensor, *INDEX)
        for name, tensor, axes in (
            ("values", values, 1),
            ("dense_shape", dense_shape, 1),
            ("indices", indices, 2),
            ("default_value", default_value, 0),
        ):
            if tensor.rank not in (None, axes):
                raise IRError(f"{name} has {tensor.rank} axes ({tensor.shape}), it takes {axes}")
        if dense_shape.rank is not None and not compatible(dense_shape.shape[0], 2):
            raise IRError(f"dense_shape has {dense_shape.shape[0]} sizes, a matrix has 2")
        if indices.rank is not None:
            if not compatible(indices.shape[1], 2):
                raise IRError(f"indices have {indices.shape[1]} columns, a matrix takes 2")
            if values.rank is not None and not compatible(indices.shape[0], values.shape[0]):
                raise IRError(f"{values.shape[0]} values, {indices.shape[0]} indices")
        sizes = dense_shape.sizes()
        rows: Size = as_size(sizes[0]) if sizes else ANY
        filled: Size = ANY
        values_filled: Size = ANY
        if dense_shape.value is not None and indices.value is not None:
            self.check_places(dense_shape.value, indices.value)
            empty = int(dense_shape.value[0]) - len(np.unique(indices.value[:, 0]))
            filled = indices.shape[0] + empty
            values_filled = ANY if values.rank is None else values.shape[0] + empty
        return (
            Tensor(kind, Shape((filled, 2))),
            Tensor(values.type, Shape((values_filled,))),
            Tensor(ElementType.BOOLEAN, Shape((rows,))),
        )

    def check_places(self, dense_shape: Array, indices: Array) -> None:
        """Refuse values outside the matrix."""
        outside = (indices < 0) | (indices >= dense_shape)
        if outside.any():
            row, column = indices[outside.any(1)][0].tolist()
            raise IRError(f"index {row}, {column} is outside the shape {dense_shape.tolist()}")

    def run(
        self, values: Array, dense_shape: Array, indices: Array, default_value: Array
    ) -> tuple[Array, ...]:
        rows = int(dense_shape[0])
        # What is counted, and a place and a value for each; the order and what is put into it.
        require(32 * rows + (len(indices) + rows) * (8 + 4 * indices.itemsize + values.itemsize))
        self.check_places(dense_shape, indices)
        empty = np.bincount(indices[:, 0], minlength=rows) == 0
        added = np.stack([np.flatnonzero(empty), np.zeros(empty.sum(), np.int64)], 1)
        places = np.concatenate([indices, added.astype(indices.dtype)])
        defaults = np.full(len(added), default_value, values.dtype)
        order = np.lexsort((places[:, 1], places[:, 0]))
        return places[order], np.concatenate([values, defaults])[order], empty


def same_length(indices: Tensor, other: Tensor | None) -> Shape:
    """The shape of the indices and of what goes along with them."""
    if other is None:
        return indices.shape
    return indices.shape.merge(other.shape)


def check_lengths(indices: Array, *others: Array | None) -> None:
    """The same of arrays, which inference has not seen where sizes were open."""
    for other in others:
        same_length(Tensor.of(indices), None if other is None else Tensor.of(other))


def with_default(result: Array, owners: Array, table: Array, default_index: Array | None) -> Array:
    """Put the default row into bags that own nothing; -1 leaves zeros."""
    if default_index is None or int(default_index) == -1:
        return result
    if not 0 <= int(default_index) < len(table):
        raise IRError(f"default_index {default_index} is beyond the {len(table)} rows")
    nothing = np.ones(len(result), np.bool_)
    nothing[owners[owners >= 0]] = False
    result[nothing] = table[int(default_index)]
    return result
