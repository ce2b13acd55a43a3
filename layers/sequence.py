"""Sequences: classes spread out, decoded and scored; attention.

Specification pages: OneHot-1, -16; CTCGreedyDecoder-1; CTCGreedyDecoderSeqLen-6; CTCLoss-4;
ScaledDotProductAttention-13.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Int, Type
from ..schemas.shapes import merge
from .axes import as_size, axis_of, broadcast, broadcast_size, within_axis
from .base import Op
from .budget import PIECE, pieces, require, steps
from .casting import narrowed, widened
from .matrix import usual_scale


class OneHotV1(Op):
    """A new axis on which the place that an index names has one value, all others another."""

    axis: Int

    def infer(
        self, indices: Tensor, depth: Tensor, on_value: Tensor, off_value: Tensor
    ) -> tuple[Tensor, ...]:
        for name, tensor in (("indices", indices), ("depth", depth)):
            if not (tensor.type.is_dynamic or is_whole(tensor.type)):
                raise IRError(f"{name} are integers, here they are {tensor.type}")
        for name, tensor in (("depth", depth), ("on_value", on_value), ("off_value", off_value)):
            if tensor.shape.is_static and tensor.rank:
                raise IRError(f"{name} is a single number, its shape is {tensor.shape}")
        on_value.type.merge(off_value.type)
        sizes = depth.sizes() if depth.rank == 0 else None
        size: Size = ANY if sizes is None else as_size(sizes[0])
        if indices.rank is None:
            return (Tensor(on_value.type, Shape.UNKNOWN),)
        place = axis_of(self.axis, indices.rank + 1)
        shape = (*indices.shape[:place], size, *indices.shape[place:])
        return (Tensor(on_value.type, Shape(shape)),)

    def run(
        self, indices: Array, depth: Array, on_value: Array, off_value: Array
    ) -> tuple[Array, ...]:
        place = axis_of(self.axis, indices.ndim + 1)
        count = int(depth.reshape(()))
        shape = (*indices.shape[:place], count, *indices.shape[place:])
        # Of each index its place, twice, whether it is there, and values.
        require(prod(shape) * on_value.itemsize + indices.size * (25 + 2 * on_value.itemsize))
        wide = indices.astype(np.int64, copy=False)
        named = self.named(np.expand_dims(wide, place), count)
        made = np.full(shape, off_value.astype(on_value.dtype).reshape(()), on_value.dtype)
        if made.size:
            # Who names no place writes again what stands at the first.
            there = (named >= 0) & (named < count)
            first = made.take([0], place)
            some = np.where(there, named, 0)
            np.put_along_axis(made, some, np.where(there, on_value.reshape(()), first), place)
        return (made,)

    def named(self, indices: Array, depth: int) -> Array:
        """The places that the indices name; negative ones name none."""
        return indices


class OneHotV16(OneHotV1):
    """OneHot-1 whose negative indices may count from the end."""

    negative_indices_mode: Literal["ignore_negative", "normalize"] = "ignore_negative"

    def named(self, indices: Array, depth: int) -> Array:
        if self.negative_indices_mode == "ignore_negative":
            return indices
        return np.where(indices < 0, indices + depth, indices)


class CTCGreedyDecoderV1(Op):
    """The likeliest class of each step, without blanks, which are the last class."""

    ctc_merge_repeated: Bool = True

    def infer(self, data: Tensor, sequence_mask: Tensor) -> tuple[Tensor, ...]:
        steps, batch, _ = sizes(data.shape, 3, "data")
        masked_steps, masked_batch = sizes(sequence_mask.shape, 2, "sequence_mask")
        shape = (merge(batch, masked_batch), merge(steps, masked_steps), 1, 1)
        return (Tensor(data.type, Shape(shape)),)

    def run(self, data: Array, sequence_mask: Array) -> tuple[Array, ...]:
        require_steps(data)
        classes = likeliest(data).T
        within = np.logical_and.accumulate(sequence_mask.T != 0, axis=1)
        kept = decoded(classes, within, data.shape[2] - 1, self.ctc_merge_repeated)
        rows, _ = packed(classes, kept)
        return (rows[..., None, None].astype(data.dtype),)


class CTCGreedyDecoderSeqLenV6(Op):
    """The likeliest class of each step of sequences of given lengths, without blanks."""

    output_count = (2, 2)

    merge_repeated: Bool = True
    classes_index_type: Type = ElementType.I32
    sequence_length_type: Type = ElementType.I32

    def infer(
        self, data: Tensor, sequence_length: Tensor, blank_index: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        batch, steps, _ = sizes(data.shape, 3, "data")
        batch = merge(batch, sizes(sequence_length.shape, 1, "sequence_length")[0])
        if blank_index is not None:
            check_single("blank_index", blank_index.shape)
        return (
            Tensor(self.classes_index_type, Shape((batch, steps))),
            Tensor(self.sequence_length_type, Shape((batch,))),
        )

    def run(
        self, data: Array, sequence_length: Array, blank_index: Array | None = None
    ) -> tuple[Array, ...]:
        blank = data.shape[2] - 1 if blank_index is None else int(blank_index.ravel()[0])
        require_steps(data)
        classes = likeliest(data)
        within = np.arange(data.shape[1]) < sequence_length[:, None]
        rows, counts = packed(classes, decoded(classes, within, blank, self.merge_repeated))
        return (
            rows.astype(self.classes_index_type.dtype),
            counts.astype(self.sequence_length_type.dtype),
        )


def require_steps(data: Array) -> None:
    """Refuse more steps than there is memory to choose their classes and put them in order."""
    wider = 0 if data.dtype in (np.float32, np.float64) else 8 * data.size
    require(max(wider, 36 * prod(data.shape[:2])))


def likeliest(data: Array) -> Array:
    """The class of the greatest value at each step."""
    if not data.shape[-1]:
        raise IRError("the data are of no classes")
    found: Array = widened(data).argmax(-1)
    return found


#: Bytes of a row's loss, and of its lengths as numbers of Python in lists.
_OF_A_ROW = 80


class CTCLossV4(Op):
    """How unlikely the labels are: minus the logarithm of their probability, over all paths."""

    preprocess_collapse_repeated: Bool = False
    ctc_merge_repeated: Bool = True
    unique: Bool = False

    def unknown_inputs(self) -> list[Tensor]:
        return [Tensor(ElementType.F32), *super().unknown_inputs()[1:]]

    def infer(
        self,
        logits: Tensor,
        logit_length: Tensor,
        labels: Tensor,
        label_length: Tensor,
        blank_index: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        if not logits.type.is_real:
            raise IRError(f"logits are {logits.type}, they have to be real")
        whole = [logit_length, labels, label_length, *([blank_index] if blank_index else [])]
        for tensor in whole:
            if not (tensor.type.is_integral or tensor.type.is_dynamic):
                raise IRError(f"lengths, labels and blank are integers, one is {tensor.type}")
        if blank_index is not None and blank_index.rank not in (None, 0):
            raise IRError(f"blank_index is a single number, its shape is {blank_index.shape}")
        batch, steps, _ = sizes(logits.shape, 3, "logits")
        label_batch, label_steps = sizes(labels.shape, 2, "labels")
        merge(steps, label_steps)
        batch = merge(batch, label_batch)
        for name, tensor in (("logit_length", logit_length), ("label_length", label_length)):
            batch = merge(batch, sizes(tensor.shape, 1, name)[0])
        return (Tensor(logits.type, Shape((batch,))),)

    def run(
        self,
        logits: Array,
        logit_length: Array,
        labels: Array,
        label_length: Array,
        blank_index: Array | None = None,
    ) -> tuple[Array, ...]:
        blank = logits.shape[2] - 1 if blank_index is None else int(blank_index)
        require(_OF_A_ROW * len(logits))
        losses = np.empty(len(logits), np.float64)
        rows = zip(logits, logit_length.tolist(), labels, label_length.tolist(), strict=True)
        for index, (row, length, target, count) in enumerate(rows):
            if not 0 <= count <= length <= len(row):
                raise IRError(f"{count} labels in {length} steps of {len(row)}")
            require(_OF_A_ROW * len(logits) + 24 * length * row.shape[1] + 64 * length)
            chances = row[:length].astype(np.float64)
            chances -= np.logaddexp.reduce(chances, axis=1, keepdims=True)
            within_axis(np.array([blank, *target[:count]]), row.shape[1])
            spelt = self.target(target[:count].tolist())
            losses[index] = -self.likelihood(chances, spelt, blank)
        return (narrowed(losses, logits.dtype),)

    def target(self, labels: list[int]) -> list[int]:
        """The labels to be met, repeated ones dropped where that is wanted."""
        if self.unique:
            return list(dict.fromkeys(labels))
        if self.preprocess_collapse_repeated:
            return [n for i, n in enumerate(labels) if i == 0 or n != labels[i - 1]]
        return labels

    def likelihood(self, chances: Array, target: list[int], blank: int) -> float:
        """The logarithm of the probability that some path through the steps spells the target."""
        if not self.ctc_merge_repeated:
            # Each label takes one step, all others are blank.
            reached = np.full(len(target) + 1, -np.inf)
            reached[0] = 0
            for chance in steps(chances):
                further = reached[:-1] + chance[target]
                reached = reached + chance[blank]
                reached[1:] = np.logaddexp(reached[1:], further)
            return float(reached[-1])
        # Blanks stand between the labels and at both ends; a blank may be jumped over between
        # labels that differ.
        spelt = np.full(2 * len(target) + 1, blank)
        spelt[1::2] = target
        jumps = np.zeros(len(spelt), bool)
        jumps[3::2] = spelt[3::2] != spelt[1:-2:2]
        reached = np.full(len(spelt), -np.inf)
        reached[0] = 0
        first = True
        for chance in steps(chances):
            before = reached.copy()
            reached[1:] = np.logaddexp(reached[1:], before[:-1])
            if not first:
                jumped = np.where(jumps[2:], before[:-2], -np.inf)
                reached[2:] = np.logaddexp(reached[2:], jumped)
            first = False
            reached = reached + chance[spelt]
        return float(np.logaddexp.reduce(reached[-2:]))


class ScaledDotProductAttentionV13(Op):
    """Values weighted by how well the keys match the query.

    A sixth input, the sink, is one more key per head that matches so well and has no value.
    """

    causal: Bool

    def infer(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        scale: Tensor | None = None,
        sink: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        kind = query.type.merge(key.type).merge(value.type)
        if attention_mask is not None and attention_mask.type is not ElementType.BOOLEAN:
            kind = kind.merge(attention_mask.type)
        for tensor in (scale, sink):
            kind = kind if tensor is None else kind.merge(tensor.type)
        if not (kind.is_real or kind.is_dynamic):
            raise IRError(f"attention is of real numbers, these are {kind}")
        if scale is not None:
            check_single("scale", scale.shape)
        if sink is not None and sink.rank is not None and query.rank is not None:
            if sink.rank != query.rank:
                raise IRError(f"the sink has {sink.rank} axes, the query has {query.rank}")
            broadcast(Shape(query.shape[:-1]), Shape(sink.shape[:-1]))
            merge(sink.shape[-1], 1)
        return (Tensor(kind, self.attended(query.shape, key.shape, value.shape, attention_mask)),)

    def multiply_adds(self, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
        """Each query with each key, and each weight with a value."""
        return prod(output[:-1]) * inputs[1][-2] * (inputs[0][-1] + output[-1])

    def attended(self, query: Shape, key: Shape, value: Shape, mask: Tensor | None) -> Shape:
        """Shape of the output."""
        for name, shape in (("query", query), ("key", key), ("value", value)):
            if shape.rank is not None and shape.rank < 3:
                raise IRError(f"{name} has {shape.rank} axes, the least is 3")
        batch = Shape.UNKNOWN if query.rank is None else Shape(query[:-2])
        rows, width = last_two(query)
        columns, key_width = last_two(key)
        value_columns, depth = last_two(value)
        merge(width, key_width)
        columns = merge(columns, value_columns)
        for shape in (key, value):
            if shape.rank is not None:
                batch = broadcast(batch, Shape(shape[:-2]))
        if mask is not None and mask.rank and not self.causal:
            if mask.rank < 2:
                raise IRError(f"attention_mask has the shape {mask.shape}, at least two axes")
            rows = broadcast_size(rows, mask.shape[-2])
            check_scores(columns, broadcast_size(columns, mask.shape[-1]))
            if mask.rank > 2:
                batch = broadcast(batch, Shape(mask.shape[:-2]))
        return Shape.UNKNOWN if batch.rank is None else Shape((*batch, rows, depth))

    def run(
        self,
        query: Array,
        key: Array,
        value: Array,
        attention_mask: Array | None = None,
        scale: Array | None = None,
        sink: Array | None = None,
    ) -> tuple[Array, ...]:
        count, wider = query.shape[-2], max(query.itemsize, 4)
        mask = () if attention_mask is None or self.causal else attention_mask.shape
        heads = prod(np.broadcast_shapes(query.shape[:-2], key.shape[:-2], mask[:-2]))
        # There is a score for each query and key, much more than what goes in: three of them at
        # once, and the scaled query.
        row = wider * (3 * heads * key.shape[-2] + prod(query.shape[:-2]) * query.shape[-1])
        at_once = min(count, max(1, PIECE // max(row, 1)))
        tall = max(count, *mask[-2:-1], 1)  # a mask may make many scores of one query
        made = wider * heads * tall * value.shape[-1]
        given = 0 if query.itemsize == wider else wider * (query.size + key.size + value.size)
        require(given + made + max(row * (at_once if tall == count else tall), made))
        q, k, v = widened(query), widened(key), widened(value)
        factor = usual_scale(q.shape[-1]) if scale is None else float(scale.ravel()[0])
        parts = [slice(None)] if at_once == count else [*pieces(count, row)]
        columns = np.swapaxes(k, -1, -2)
        attended = []
        for rows in steps(parts):
            scores = q[..., rows, :] * q.dtype.type(factor) @ columns
            if self.causal:
                seen = np.arange(count)[rows, None] >= np.arange(k.shape[-2])
                scores = np.where(seen, scores, -np.inf)
            elif attention_mask is not None:
                scores = masked(scores, rows_of(attention_mask, rows, count))
                check_scores(v.shape[-2], scores.shape[-1])
            beside = None if sink is None else rows_of(sink, rows, count)
            attended.append((shares(scores, beside) @ v).astype(q.dtype, copy=False))
        whole = attended[0] if len(attended) == 1 else np.concatenate(attended, -2)
        return (narrowed(whole, query.dtype),)


def rows_of(array: Array, rows: slice, count: int) -> Array:
    """Some rows of an array that has so many; of one that has another number, all."""
    return array[..., rows, :] if array.ndim > 1 and array.shape[-2] == count else array


def check_scores(values: Size, scores: Size) -> None:
    """Refuse scores that a mask makes more of than there are values."""
    if isinstance(values, int) and isinstance(scores, int) and scores != values:
        raise IRError(f"the mask makes {scores} scores of each query, there are {values} values")


def masked(scores: Array, mask: Array) -> Array:
    """Scores without those that a mask takes out, or with what it adds to them."""
    return np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + widened(mask)


def shares(scores: Array, sink: Array | None) -> Array:
    """Weights that add up to one, with that of a sink beside them."""
    most = scores.max(-1, keepdims=True, initial=-np.inf)
    beside: Array | float = 0.0
    with np.errstate(all="ignore"):
        if sink is not None:
            most = np.maximum(most, widened(sink))
            beside = np.exp(widened(sink) - most)
        weights = np.exp(scores - most)
        weights /= weights.sum(-1, keepdims=True) + beside
    return weights


def decoded(classes: Array, within: Array, blank: int, merged: bool) -> Array:
    """Which steps of each row are kept: no blanks and, if merged, no repetitions."""
    kept = within & (classes != blank)
    if merged:
        kept[:, 1:] &= classes[:, 1:] != classes[:, :-1]
    return kept


def packed(classes: Array, kept: Array) -> tuple[Array, Array]:
    """The kept ones of each row at its begin, -1 after them; and their number."""
    order = np.argsort(~kept, axis=1, kind="stable")
    return np.take_along_axis(np.where(kept, classes, -1), order, axis=1), kept.sum(1)


def check_single(name: str, shape: Shape) -> None:
    """Refuse a shape that is known to hold more than one number, or in more than one axis."""
    if shape.is_static and shape not in ((), (1,)):
        raise IRError(f"{name} is a single number, its shape is {shape}")


def is_whole(kind: ElementType) -> bool:
    """Whether values are integers, or truth values taken for 0 and 1."""
    return kind.is_integral or kind is ElementType.BOOLEAN


def last_two(shape: Shape) -> tuple[Size, Size]:
    """The sizes of the last two axes, as far as they are known."""
    return (ANY, ANY) if shape.rank is None else (shape[-2], shape[-1])


def sizes(shape: Shape, rank: int, name: str) -> tuple[Size, ...]:
    """The sizes of a shape of this rank, as far as they are known."""
    if shape.rank not in (None, rank):
        raise IRError(f"{name} has {shape.rank} axes ({shape}), it should have {rank}")
    return (ANY,) * rank if shape.rank is None else shape.sizes
