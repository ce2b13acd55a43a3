"""Sorting: the largest or smallest elements, and where values belong in sorted rows.

Specification pages: TopK-1, -3, -11; SearchSorted-15; ExperimentalDetectronTopKROIs-6. The
suppression of overlapping boxes is in ``sort_nms``.

Of equal elements, TopK takes those that come first, whether or not ``stable`` asks for it.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import field_validator

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Int, Type
from ..schemas.shapes import interval, limits, merge
from ..schemas.types import numbers
from .axes import axis_of
from .base import Op, element_type
from .budget import pieces, require, steps

#: The best of so many lists for each element that is taken bound it, in rows that much longer.
LISTS = 4
#: Of rows from this length on each is bounded by itself.
ALONE = 4096
#: Rows up to this length are sorted as a whole as soon as parted.
WHOLE = 256
#: More elements than these are sorted by keys, those of these types.
FEW = 1000
KEYED = (np.dtype(np.float32), np.dtype(np.int32))
#: Bytes that sorting takes for an element: its key, key and place in one, its place and halves.
SORTED = 20
_UPPER, _PLACE = 0x7FFFFFFF, 0xFFFFFFFF
#: Of so many rows whose elements lie apart, no more than so few are sought element by element.
ABREAST, TURNS = 512, 3
#: Where the elements of rows lie so far apart, the best is sought in several rows at once.
APART = 32


class Indexed(Op):
    """An operation whose indices come in a type of the user's choice."""

    @field_validator("index_element_type", "output_type", check_fields=False)
    @classmethod
    def _check_type(cls, kind: ElementType) -> ElementType:
        if kind not in (ElementType.I32, ElementType.I64):
            raise ValueError(f"indices are of type i32 or i64, not {kind}")
        return kind


class TopKV3(Indexed):
    """The ``k`` largest or smallest elements along an axis, and where they were."""

    output_count = (2, 2)

    axis: Int
    mode: Literal["max", "min"]
    sort: Literal["value", "index", "none"]
    index_element_type: Type = ElementType.I32

    def infer(self, data: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        self.check_count(k)
        if k.rank not in (None, 0):
            raise IRError(f"k has {k.rank} axes, it is a scalar")
        shape = data.shape
        if shape.rank is not None:
            if not shape.rank:
                raise IRError("the input is a scalar, it has no axis to choose from")
            axis = axis_of(self.axis, shape.rank)
            parts = k.parts
            count = ANY if parts is None else parts.item()
            shape = Shape(chosen(n, count) if i == axis else n for i, n in enumerate(shape))
        return Tensor(data.type, shape), Tensor(self.index_element_type, shape)

    def check_count(self, k: Tensor) -> None:
        """Refuse a ``k`` that is not a whole number."""
        if not k.type.is_integral and not k.type.is_dynamic:
            raise IRError(f"k is of type {k.type}, not of an integer type")

    def run(self, data: Array, k: Array) -> tuple[Array, ...]:
        axis, count = axis_of(self.axis, data.ndim), int(k)
        size = data.shape[axis]
        if not 0 <= count <= size:
            raise IRError(f"k is {count}, the axis has {size} elements")
        largest = self.mode == "max"
        found = _best(data, axis, largest=largest) if count == 1 else None
        if found is not None:
            return found[0], found[1].astype(self.index_element_type.dtype)
        best = first_few(data, axis, count, largest=largest)
        if self.sort == "index":
            best = np.sort(best, axis)
        kind = self.index_element_type.dtype
        return _along(data, best, axis), best.astype(kind, copy=False)


class TopKV1(TopKV3):
    """TopK-3 with fewer types of ``k``."""

    def check_count(self, k: Tensor) -> None:
        element_type(k, ElementType.I8, ElementType.I32, ElementType.I64)


class TopKV11(TopKV3):
    """TopK-3 that may be asked to keep the order of equal elements."""

    stable: Bool = False

    def infer(self, data: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        if self.stable and self.sort == "none":
            raise IRError("stable=true has no meaning with sort=none")
        return super().infer(data, k)


def chosen(size: Size, count: Size) -> Size:
    """The size of an axis of which ``count`` elements are taken."""
    if not isinstance(count, Dim):
        if count < 0:
            raise IRError(f"k is {count}, the least is 0")
        return count
    (low, high), (fewest, most) = limits(size), limits(count)
    if high is not None and most is not None:
        high = min(high, most)
    return interval(min(low or 0, max(fewest or 0, 0)), high)


def ascending(data: Array, axis: int) -> Array:
    """Indices in ascending order of the elements; of equals, the first comes first."""
    data = comparable(data)
    require(SORTED * data.size)
    if _is_keyed(data):
        return _by_key(_keys(data), axis)
    return data.argsort(axis, kind="stable")


def descending(data: Array, axis: int) -> Array:
    """Indices in descending order of the elements; of equals, the first comes first."""
    data = comparable(data)
    require(SORTED * data.size)
    if _is_keyed(data):
        return _by_key(~_keys(data), axis)
    backwards = (slice(None),) * axis + (slice(None, None, -1),)
    found: Array = np.subtract(data.shape[axis] - 1, ascending(data[backwards], axis)[backwards])
    return found


def _is_keyed(data: Array) -> bool:
    return data.size > FEW and data.dtype in KEYED


def _keys(data: Array) -> Array:
    """Whole numbers of 32 bits that are ordered as the elements are; NaN stands above all."""
    if data.dtype == np.int32:
        return data
    bits = (data + np.float32(0)).view(np.int32)  # of zeros there is one
    keys: Array = bits ^ ((bits >> 31) & np.int32(_UPPER))
    unordered = np.isnan(data)
    if unordered.any():
        keys[unordered] = _UPPER
    return keys


def _by_key(keys: Array, axis: int, count: int | None = None) -> Array:
    """The order of keys, sorted with their places in one number each: no two are equal.

    NumPy sorts numbers with vector instructions, but keeps equals in order without. Of long rows
    the first few are parted from the rest before they are sorted.
    """
    size = keys.shape[axis]
    paired = keys.swapaxes(axis, -1).astype(np.int64, order="C")
    paired <<= 32
    paired |= np.arange(size)
    if count is not None and size > WHOLE and 0 < count < size:
        paired.partition(count - 1, -1)
        paired = paired[..., :count]
    paired.sort(-1)
    return np.bitwise_and(paired[..., :count], _PLACE).swapaxes(axis, -1)


def _by_turns(keys: Array, axis: int, count: int) -> Array:
    """The first few of rows whose elements lie apart: all rows at once, element by element.

    What is held is in order; each element goes along it, and where the lesser stays the greater
    goes on.
    """
    held: list[Array] = []
    planes = np.moveaxis(keys, axis, 0)
    spare = np.empty(planes.shape[1:], np.int64)
    for place, plane in enumerate(steps(planes)):
        new = plane.astype(np.int64)
        new <<= 32
        new |= place
        for at, other in enumerate(held):
            held[at] = np.minimum(other, new, out=spare)
            np.maximum(other, new, out=new)
            spare = other
        if len(held) < count:
            held.append(new)
    return np.moveaxis(np.bitwise_and(held, _PLACE), 0, axis)


def first_few(data: Array, axis: int, count: int, *, largest: bool) -> Array:
    """Indices of the largest or smallest elements in order; of equals, the first comes first."""
    data = comparable(data)
    size = data.shape[axis]
    if 0 < LISTS * count < size and data.size and data.dtype.kind in "fiu":
        if data.ndim == 1:
            return _first_of_row(data, count, largest=largest)
        if size >= ALONE:
            rows = data.swapaxes(axis, -1)
            found = np.empty((*rows.shape[:-1], count), np.int64)
            for place in steps(np.ndindex(*rows.shape[:-1])):
                found[place] = _first_of_row(rows[place], count, largest=largest)
            return found.swapaxes(axis, -1)
        if size > WHOLE:
            some = _bounded(data.swapaxes(axis, -1), count, largest=largest)
            if some is not None:
                return some.swapaxes(axis, -1)
    if _is_keyed(data):
        require(SORTED * data.size)
        keys = ~_keys(data) if largest else _keys(data)
        apart = prod(data.shape[axis + 1 :]) >= APART and data.size >= ABREAST * size
        if apart and 0 < count <= min(TURNS, size):
            return _by_turns(keys, axis, count)
        return _by_key(keys, axis, count)
    require(SORTED * data.size + 8 * count * (data.size // max(size, 1)))
    return np.take((descending if largest else ascending)(data, axis), np.arange(count), axis)


def _best(data: Array, axis: int, *, largest: bool) -> tuple[Array, Array] | None:
    """The largest or smallest elements and where each is first; None where some are no numbers.

    To seek places NumPy goes from element to element where these lie apart. Sooner each that
    equals what is sought is given a mark, the first the highest, and the highest is looked for.
    """
    if data.dtype.kind not in "fiu" or not data.size:
        return None
    size = data.shape[axis]
    if prod(data.shape[axis + 1 :]) < APART:
        places = (np.argmax if largest else np.argmin)(data, axis=axis, keepdims=True)
        found = np.take_along_axis(data, places, axis)
        return None if np.not_equal(found, found).any() else (found, places)
    found = (np.maximum if largest else np.minimum).reduce(data, axis, keepdims=True)
    if np.not_equal(found, found).any():
        return None
    kind = np.min_scalar_type(size)
    require((1 + kind.itemsize) * data.size)
    marks = np.arange(size, 0, -1).astype(kind).reshape(-1, *[1] * (data.ndim - axis - 1))
    given = np.multiply(np.equal(data, found).view(np.uint8), marks, dtype=kind)
    return found, np.subtract(size, given.max(axis, keepdims=True), dtype=np.int64)


def _first_of_row(data: Array, count: int, *, largest: bool) -> Array:
    """The same of one row: those beyond a bound that enough are beyond, and the first of these."""
    require(2 * data.size)
    last = _bound(data, count, largest=largest)
    order = descending if largest else ascending
    if last != last:
        return order(data, 0)[:count]
    taken = np.logical_not(data < last if largest else data > last).nonzero()[0]
    return taken[order(data[taken], 0)[:count]]


def _bounded(rows: Array, count: int, *, largest: bool) -> Array | None:
    """The same of many rows at once; None where many are equal, or some are no numbers."""
    copies = 2 - rows.flags.c_contiguous - (rows.shape[-1] >= LISTS * LISTS * count)
    require(copies * rows.nbytes + 3 * rows.size)
    rows = np.ascontiguousarray(rows)
    last, size = _bound(rows, count, largest=largest), rows.shape[-1]
    if np.not_equal(last, last).any():
        return None
    # All in one list: to tell the places by axes takes three times as long.
    beyond = np.logical_not(np.less(rows, last) if largest else np.greater(rows, last))
    taken = beyond.reshape(-1).nonzero()[0]
    row = taken // size
    each = np.bincount(row, minlength=last.size)
    widest = int(each.max(initial=0))
    if widest > LISTS * (count + LISTS):
        return None
    column = np.arange(len(taken)) - np.repeat(each.cumsum() - each, each)
    # Behind those of a row stands what is not before any of them.
    ends = numbers(rows.dtype)
    some = np.full((last.size, widest), ends.min if largest else ends.max, rows.dtype)
    some[row, column] = rows.reshape(-1)[taken]
    place = np.zeros(some.shape, np.int64)
    place[row, column] = taken - row * size
    few = (descending if largest else ascending)(some, 1)[:, :count]
    return np.take_along_axis(place, few, 1).reshape(*rows.shape[:-1], count)


def _bound(rows: Array, count: int, *, largest: bool) -> Array:
    """What so many of each row are not behind.

    Of the best of as many lists as four for each that is taken, the last of so many is one.
    """
    lists = LISTS * count
    best, size = rows, rows.shape[-1]
    if size >= LISTS * lists:
        whole = rows[..., : size - size % lists].reshape(*rows.shape[:-1], -1, lists)
        best = (np.maximum if largest else np.minimum).reduce(whole, -2)
    place = best.shape[-1] - count if largest else count - 1
    last: Array = np.partition(best, place)[..., place : place + 1]
    return last


def _along(data: Array, places: Array, axis: int) -> Array:
    """The elements at places along an axis, of each row its own."""
    return data[places] if data.ndim == 1 else np.take_along_axis(data, places, axis)


def comparable(data: Array) -> Array:
    """The elements in a type that NumPy sorts fast."""
    return data.astype(np.float32) if data.dtype.kind == "V" else data


class SearchSortedV15(Indexed):
    """Where values would be inserted in sorted rows: before their equals or after them."""

    right_mode: Bool = False
    output_type: Type = ElementType.I64

    def infer(self, sorted_sequence: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        sorted_sequence.type.merge(values.type)
        return (Tensor(self.output_type, self.searched(sorted_sequence.shape, values.shape)),)

    def searched(self, rows: Shape, values: Shape) -> Shape:
        """Shape of the output."""
        if rows.rank == 0:
            raise IRError("the sorted sequence is a scalar")
        if values.rank == 0 and rows.rank not in (None, 1):
            raise IRError(f"the values are a scalar, the sorted sequence has {rows.rank} axes")
        if rows.rank is None or rows.rank == 1:
            return values
        if values.rank is None:
            return Shape((*rows[:-1], ANY))
        if rows.rank != values.rank:
            raise IRError(f"sorted sequence {rows} and values {values} differ in rank")
        return Shape((*map(merge, rows[:-1], values[:-1]), values[-1]))

    def run(self, sorted_sequence: Array, values: Array) -> tuple[Array, ...]:
        rows, wanted = comparable(sorted_sequence), comparable(values)
        side: Side = "right" if self.right_mode else "left"
        if rows.ndim == 1:
            return (places_in(rows, wanted, side, self.output_type.dtype),)
        found = np.empty(wanted.shape, self.output_type.dtype)
        wider = 4 * (rows.size + wanted.size) if rows is not sorted_sequence else 0
        require(found.nbytes + 8 * wanted.shape[-1] + wider)
        count = prod(wanted.shape[:-1])
        lines = (array.reshape(count, array.shape[-1]) for array in (rows, wanted, found))
        for row, some, into in steps(zip(*lines, strict=True)):
            into[...] = np.searchsorted(row, some, side)
        return (found,)


#: Before or after equal ones.
Side: TypeAlias = Literal["left", "right"]


def places_in(line: Array, values: Array, side: Side, kind: np.dtype[Any]) -> Array:
    """Where values would be inserted in a sorted line."""
    require(12 * values.size)  # places, and narrower ones
    found = np.empty(values.shape, kind)
    flat, into = values.reshape(-1), found.reshape(-1)
    for some in pieces(flat.size, kind.itemsize):
        into[some] = np.searchsorted(line, flat[some], side)
    return found


class ExperimentalDetectronTopKROIsV6(Op):
    """The boxes of the greatest probabilities, in descending order."""

    also = frozenset({"experimental", "extension"})

    max_rois: Int = 0

    def infer(self, input_rois: Tensor, rois_probs: Tensor) -> tuple[Tensor, ...]:
        if input_rois.rank not in (None, 2):
            raise IRError(f"the boxes have {input_rois.rank} axes ({input_rois.shape}), not 2")
        if rois_probs.rank not in (None, 1):
            raise IRError(f"the probabilities have {rois_probs.rank} axes, not 1")
        if input_rois.rank is not None:
            merge(input_rois.shape[1], 4)
            if rois_probs.rank is not None:
                merge(input_rois.shape[0], rois_probs.shape[0])
        return (Tensor(real_type(input_rois, rois_probs), Shape((self.max_rois, 4))),)

    def run(self, input_rois: Array, rois_probs: Array) -> tuple[Array, ...]:
        best = descending(rois_probs, 0)[: self.max_rois]
        result = np.zeros((self.max_rois, 4), input_rois.dtype)
        result[: len(best)] = input_rois[best]
        return (result,)


def real_type(*tensors: Tensor) -> ElementType:
    """The one real type of all tensors."""
    kind = ElementType.DYNAMIC
    for tensor in tensors:
        kind = kind.merge(tensor.type)
    if not kind.is_real and not kind.is_dynamic:
        raise IRError(f"element type {kind} is not a real type")
    return kind
