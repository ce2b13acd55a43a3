"""Slices and padding: parts of the input, or the input with a margin.

Specification pages: StridedSlice-1, Slice-8, SliceScatter-15, Pad-1, -12.

An index below zero counts from the end; one beyond an end stands for that end. A slice that
runs backwards and begins before the first element begins at the first one, other than NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..schemas import ANY, Array, Dim, IRError, Shape, Size, Tensor
from ..schemas.attributes import Ints
from ..schemas.shapes import LARGEST, MOST_AXES, compatible, interval, limits
from .axes import axes_of
from .base import Op
from .budget import require
from .movement import listed

#: The least and the greatest value that an index may have.
Bounds: TypeAlias = tuple[int, int]

#: An axis that is sliced, and from where to where.
Cut: TypeAlias = tuple[int, Size, Size]

#: Bounds, or None where nothing is known.
End = TypeVar("End", Bounds, Bounds | None)

LEAST = -LARGEST - 1

#: The index of the first element, of what lies behind the last and before the first.
FIRST: Bounds = (0, 0)
BEHIND: Bounds = (LARGEST, LARGEST)
BEFORE: Bounds = (LEAST, LEAST)


class Row(NamedTuple):
    """What one entry of a strided slice does: ``axis`` is the input's."""

    what: Literal["new", "drop", "slice", "whole"]
    entry: int
    axis: int


class StridedSliceV1(Op):
    """Slices of axes by begin, end and step; masks leave out ends, add, drop and skip axes."""

    carries_sizes = "first"

    begin_mask: Ints
    end_mask: Ints
    new_axis_mask: Ints = ()
    shrink_axis_mask: Ints = ()
    ellipsis_mask: Ints = ()

    def infer(
        self, data: Tensor, begin: Tensor, end: Tensor, stride: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        self.check_masks()
        common_count({"begin": begin, "end": end, "stride": stride})
        # Of a stride only the values count.
        steps = None if stride is None else stride.ints()
        counts = (begin.shape, end.shape, Shape.UNKNOWN if steps is None else Shape([len(steps)]))
        count = next((shape[0] for shape in counts if shape.is_static), ANY)
        if data.rank is None or isinstance(count, Dim):
            return (Tensor(data.type, Shape.UNKNOWN),)
        if stride is None:
            steps = [1] * count
        starts, stops = bounds(begin), bounds(end)
        sizes: list[Size] = []
        own = count  # how many sizes the entries give; the axes behind them keep theirs
        last = None
        for what, entry, axis in self.rows(data.rank, count):
            size = data.shape[axis] if what != "new" else 1
            if what == "slice":
                step = 1 if steps is None else steps[entry]
                last = len(sizes), any_part(size, step)
                start, stop = self.ends(entry, item(starts, entry), item(stops, entry), step)
                if steps is None or start is None or stop is None:
                    size = any_part(size, step)
                else:
                    size = sliced(size, start, stop, step)
            if what != "drop":
                sizes.append(size)
            if entry < count:
                own = len(sizes)
        if last and (starts is None or stops is None) and Shape(sizes[:own]).is_static:
            # What masks alone make certain, OpenVINO gives up again at the last slice.
            sizes[last[0]] = last[1]
        return (Tensor(data.type, Shape(sizes)),)

    def cuts(
        self, data: Tensor, begin: Tensor, end: Tensor, stride: Tensor | None = None
    ) -> Iterator[Cut]:
        """The axes of the output that are cut place by place, and from where to where."""
        starts, stops = known_sizes(begin), known_sizes(end)
        steps = [1] * len(starts) if stride is None else stride.ints()
        if data.rank is None or steps is None or not len(starts) == len(stops) == len(steps):
            return
        axis = 0
        for what, entry, _ in self.rows(data.rank, len(starts)):
            if what == "slice" and steps[entry] == 1 and not has(self.end_mask, entry):
                yield axis, 0 if has(self.begin_mask, entry) else starts[entry], stops[entry]
            axis += what != "drop"

    def check_masks(self) -> None:
        """Refuse masks that are none."""
        masks = {name: getattr(self, name) for name in type(self).model_fields}
        for name, mask in masks.items():
            if not set(mask) <= {0, 1}:
                raise IRError(f"{name} {list(mask)} has other values than 0 and 1")
            if mask and len(mask) != len(self.begin_mask):
                raise IRError(
                    f"{name} has {len(mask)} entries, begin_mask has {len(self.begin_mask)}"
                )
        if sum(self.ellipsis_mask) > 1:
            raise IRError(f"ellipsis_mask has {sum(self.ellipsis_mask)} ellipses, the most is 1")

    def rows(self, rank: int, count: int) -> Iterator[Row]:
        """What is done to each axis of the input, and where new ones come in."""
        hidden = self.hidden(rank, count)
        axis = 0
        for entry in range(count):
            if has(self.ellipsis_mask, entry):
                for _ in range(hidden):
                    yield Row("whole", entry, axis)
                    axis += 1
                hidden = 0
            elif has(self.new_axis_mask, entry):
                yield Row("new", entry, axis)
            else:
                yield Row("drop" if has(self.shrink_axis_mask, entry) else "slice", entry, axis)
                axis += 1
        for _ in range(hidden):
            yield Row("whole", count, axis)
            axis += 1

    def hidden(self, rank: int, count: int) -> int:
        """How many axes of the input have no entry of their own."""
        masks = (self.ellipsis_mask, self.new_axis_mask)
        own = sum(not any(has(mask, entry) for mask in masks) for entry in range(count))
        if own > rank:
            raise IRError(f"{own} axes are sliced, the input has {rank}")
        return rank - own

    def ends(self, entry: int, start: End, stop: End, step: int) -> tuple[End, End]:
        """Where a slice begins and ends, the masks considered."""
        if has(self.begin_mask, entry):
            start = BEHIND if step < 0 else FIRST
        if has(self.end_mask, entry):
            stop = BEFORE if step < 0 else BEHIND
        return start, stop

    def run(
        self, data: Array, begin: Array, end: Array, stride: Array | None = None
    ) -> tuple[Array, ...]:
        starts, stops = begin.tolist(), end.tolist()
        steps = [1] * len(starts) if stride is None else stride.tolist()
        index: list[Any] = []
        for what, entry, axis in self.rows(data.ndim, len(starts)):
            if what == "new":
                index.append(None)
            elif what == "whole":
                index.append(slice(None))
            elif what == "drop":
                index.append(inside(starts[entry], data.shape[axis]))
            else:
                start, stop, step = starts[entry], stops[entry], steps[entry]
                first, last = self.ends(entry, (start, start), (stop, stop), step)
                indices = span(data.shape[axis], first[0], last[0], step)
                index.append(as_slice(indices))
        return (np.asarray(data[tuple(index)]),)


class SliceV8(Op):
    """Slices of axes by start, stop and step."""

    carries_sizes = "first"

    def infer(
        self,
        data: Tensor,
        start: Tensor,
        stop: Tensor,
        step: Tensor,
        axes: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        return (Tensor(data.type, sliced_shape(data.shape, start, stop, step, axes)),)

    def cuts(
        self, data: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None
    ) -> Iterator[Cut]:
        """The axes of the output that are cut place by place, and from where to where."""
        starts, stops, steps = known_sizes(start), known_sizes(stop), step.ints()
        places: Sequence[int] | None = range(len(starts)) if axes is None else axes.ints()
        if data.rank is None or places is None or steps is None:
            return
        if len(starts) == len(stops) == len(steps) == len(places):
            axes_of_data = axes_of(places, data.rank)
            for axis, first, last, by in zip(axes_of_data, starts, stops, steps, strict=True):
                if by == 1:
                    yield axis, first, last

    def run(
        self, data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None
    ) -> tuple[Array, ...]:
        return (data[sliced_index(data, start, stop, step, axes)],)


class SliceScatterV15(Op):
    """The data with a slice of it replaced by the updates."""

    def infer(
        self,
        data: Tensor,
        updates: Tensor,
        start: Tensor,
        stop: Tensor,
        step: Tensor,
        axes: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        shape = data.shape
        if shape.rank is None:
            shape = Shape.of_rank(updates.rank)
        elif updates.rank not in (None, shape.rank):
            raise IRError(f"the updates have {updates.rank} axes, the data has {shape.rank}")
        if shape.rank == 0:
            raise IRError("a scalar has no slices")
        expected = sliced_shape(shape, start, stop, step, axes)
        try:
            expected.merge(updates.shape)
        except IRError:
            raise IRError(f"updates {updates.shape} for a slice of {expected}") from None
        return (Tensor(data.type.merge(updates.type), shape),)

    def run(
        self,
        data: Array,
        updates: Array,
        start: Array,
        stop: Array,
        step: Array,
        axes: Array | None = None,
    ) -> tuple[Array, ...]:
        result = data.copy()
        result[sliced_index(data, start, stop, step, axes)] = updates
        return (result,)


class PadV1(Op):
    """The data with a margin: a constant, its edge, or its mirror image."""

    carries_sizes = "first"

    pad_mode: Literal["constant", "edge", "reflect", "symmetric"]

    def infer(
        self, data: Tensor, pads_begin: Tensor, pads_end: Tensor, pad_value: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        kind = data.type
        if self.pad_mode == "constant" and pad_value is not None:
            kind = kind.merge(pad_value.type)
            if pad_value.rank not in (None, 0):
                raise IRError(f"pad_value has shape {pad_value.shape}, it is a scalar")
        counts = {n: listed(t, n) for n, t in (("pads_begin", pads_begin), ("pads_end", pads_end))}
        if data.rank is None:
            return (Tensor(kind, Shape.UNKNOWN),)
        for name, count in counts.items():
            if not compatible(count, data.rank):
                raise IRError(f"{name} has {count} entries, the input has {data.rank} axes")
        begins, ends = bounds(pads_begin), bounds(pads_end)
        if begins is None or ends is None:
            return (Tensor(kind, Shape.of_rank(data.rank)),)
        for axis, row in enumerate(zip(begins, ends, data.shape, strict=True)):
            begin, end, size = row
            self.check_pads(begin[0], end[0], size)
            self.check_cut(begin[1], end[1], size, axis)
        sizes = (padded(*row) for row in zip(data.shape, begins, ends, strict=True))
        return (Tensor(kind, Shape(sizes)),)

    def check_pads(self, begin: int, end: int, size: Size) -> None:
        """Refuse a margin that the mode cannot make of an axis of this size."""
        if isinstance(size, Dim):
            return
        least = {"edge": 1, "reflect": 2}.get(self.pad_mode, 0)
        if (begin > 0 or end > 0) and size < least:
            raise IRError(f"mode {self.pad_mode} pads sizes from {least} on, here is {size}")
        most = {"reflect": size - 1, "symmetric": size}.get(self.pad_mode)
        if most is not None and max(begin, end) > most:
            raise IRError(
                f"mode {self.pad_mode} pads a size of {size} by {most} at most, "
                f"here are {begin} and {end}"
            )

    def check_cut(self, begin: int, end: int, size: Size, axis: int) -> None:
        """Refuse margins below zero that cut off more than there is, or of a constant than data.

        What is repeated or mirrored goes on beyond what was cut off.
        """
        if isinstance(size, Dim):
            return
        left = size + min(begin, 0) + min(end, 0)
        if (left if self.pad_mode == "constant" else size + begin + end) < 0:
            raise IRError(f"margins of {begin} and {end} cut more off axis {axis} than its {size}")

    def run(
        self, data: Array, pads_begin: Array, pads_end: Array, pad_value: Array | None = None
    ) -> tuple[Array, ...]:
        begins, ends = pads_begin.tolist(), pads_end.tolist()
        for axis, row in enumerate(zip(begins, ends, data.shape, strict=True)):
            self.check_cut(*row, axis)
        if self.pad_mode == "constant":
            fill = np.zeros((), data.dtype) if pad_value is None else pad_value
            return (filled(data, begins, ends, fill),)
        given = data
        for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            size = data.shape[axis]
            self.check_pads(begin, end, size)
            if begin == end == 0:
                continue
            # What other axes were padded to is held, too; and places, two or three for each.
            each = data.nbytes // max(size, 1) + 25
            require(max(size + begin + end, 0) * each + (0 if data is given else data.nbytes))
            places = np.arange(-begin, size + end)
            if self.pad_mode == "edge":
                places = np.clip(places, 0, size - 1)
            else:
                # The mirror stands on the edge, or behind it.
                twice = int(self.pad_mode == "symmetric")
                places = np.where(places < 0, -places - twice, places)
                places = np.where(places >= size, 2 * (size - 1) + twice - places, places)
            data = data.take(places, axis)
        return (data,)


class PadV12(PadV1):
    """Pad-1 where a margin may be negative: what it is wide is cut off."""


def filled(data: Array, begins: list[int], ends: list[int], fill: Array) -> Array:
    """The data with a margin of one value, or without its own margin."""
    sizes = [sum(row) for row in zip(data.shape, begins, ends, strict=True)]
    require(prod(sizes) * data.dtype.itemsize)
    result = np.empty(sizes, data.dtype)
    result[...] = fill
    rows = list(zip(data.shape, begins, ends, strict=True))
    source = tuple(slice(max(-b, 0), n + min(e, 0)) for n, b, e in rows)
    target = tuple(slice(max(b, 0), n + b + e - max(e, 0)) for n, b, e in rows)
    result[target] = data[source]
    return result


def padded(size: Size, begin: Bounds, end: Bounds) -> Size:
    """A size with its margins."""
    least, most = begin[0] + end[0], begin[1] + end[1]
    if least == most == 0:
        return size
    short, high = limits(size)
    low = max((short or 0) + least, 0)
    if high is None or high + most < 0 or LARGEST in (begin[1], end[1]):
        return Dim(low)
    return interval(low, high + most)


def sliced_shape(
    data: Shape, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None
) -> Shape:
    """The shape of a slice."""
    count = common_count({"start": start, "stop": stop, "step": step, "axes": axes})
    if data.rank is None:
        return data
    if count > data.rank:
        raise IRError(f"{count} axes are sliced, the input has {data.rank}")
    starts, stops, steps = bounds(start), bounds(stop), step.ints()
    if axes is None:
        count = listed(start, "start")
        places = None if isinstance(count, Dim) else tuple(range(count))
    else:
        given = axes.ints()
        places = None if given is None else axes_of(given, data.rank)
    if steps is not None and 0 in steps:
        raise IRError("a step is 0")
    sizes = []
    for axis, size in enumerate(data):
        if places is not None and axis not in places:
            sizes.append(size)
        elif places is None or starts is None or stops is None or steps is None:
            sizes.append(any_part(size))
        else:
            i = places.index(axis)
            sizes.append(sliced(size, starts[i], stops[i], steps[i]))
    return Shape(sizes)


def sliced_index(
    data: Array, start: Array, stop: Array, step: Array, axes: Array | None
) -> tuple[slice, ...]:
    """NumPy's index of a slice."""
    places = range(start.size) if axes is None else axes_of(axes.tolist(), data.ndim)
    index = [slice(None)] * data.ndim
    for axis, *ends in zip(places, start.tolist(), stop.tolist(), step.tolist(), strict=True):
        index[axis] = as_slice(span(data.shape[axis], *ends))
    return tuple(index)


def known_sizes(ends: Tensor) -> list[Size]:
    """The ends of slices as sizes, with their names; none where nothing is known of them."""
    return (None if ends.parts is None else ends.sizes()) or []


def common_count(lists: Mapping[str, Tensor | None]) -> Size:
    """Number of elements of inputs that are lists of one length."""
    count: Size = ANY
    for name, tensor in lists.items():
        if tensor is not None:
            length = listed(tensor, name)
            if not compatible(count, length):
                raise IRError(f"{name} has {length} elements, those before it {count}")
            count = length if isinstance(count, Dim) else count
    if count > MOST_AXES:
        raise IRError(f"{count} axes are sliced, the most are {MOST_AXES}")
    return count


def item(ends: list[Bounds] | None, entry: int) -> Bounds | None:
    """The bounds of one entry, None where nothing is known."""
    return None if ends is None else ends[entry]


def has(mask: Ints, entry: int) -> bool:
    """Whether a mask is set for an entry; it may be shorter."""
    return entry < len(mask) and mask[entry] == 1


def bounds(tensor: Tensor) -> list[Bounds] | None:
    """The elements' least and greatest values; None where nothing is known of them.

    What is at the limit of a narrower type counts as unlimited, as OpenVINO has it.
    """
    parts = tensor.sizes() if tensor.parts is not None else None
    if parts is None:
        return None
    info = np.iinfo(tensor.type.dtype) if tensor.type.dtype.kind in "iu" else np.iinfo(np.int64)

    def widened(value: int | None, otherwise: int) -> int:
        if value is None:
            return otherwise
        if value >= info.max:
            return LARGEST
        return LEAST if value <= info.min < 0 else value

    pairs = (limits(part) for part in parts)
    return [(widened(low, LEAST), widened(high, LARGEST)) for low, high in pairs]


def any_part(size: Size, step: int = 1) -> Size:
    """The size of a slice of which at most the step is known."""
    if step == 0:
        raise IRError("a step is 0")
    _, most = limits(size)
    return interval(0, None if most is None else -(-most // abs(step)))


def sliced(size: Size, start: Bounds, stop: Bounds, step: int) -> Size:
    """The size of a slice; the ends may be known by their bounds only."""
    if step == 0:
        raise IRError("a step is 0")
    least, most = limits(size)
    (first, last), (near, far) = (one_sided(ends, most) for ends in (start, stop))
    if step < 0:
        first, last, near, far = last, first, far, near
    low, high = counted(least, last, near, step), counted(most, first, far, step)
    low = 0 if low is None else low
    # A backward slice that ends before the first element: the shorter axis may give the longer.
    count = Dim() if high is not None and low > high else interval(low, high)
    if isinstance(size, Dim) and isinstance(count, Dim) and keeps(size, start, stop, step):
        return size
    return count


def keeps(size: Dim, start: Bounds, stop: Bounds, step: int) -> bool:
    """Whether a slice has all elements, whatever the size is."""
    most = LARGEST if size.high is None else size.high
    if step == 1:
        return (start == FIRST or start[1] <= -most) and stop[0] >= most
    if step == -1:
        return (start == (-1, -1) or start[0] >= most - 1) and stop[1] <= -most - 1
    return False


def one_sided(ends: Bounds, most: int | None) -> Bounds:
    """Bounds of an index, narrowed where both sides of zero would mean the whole axis."""
    low, high = ends
    if low < 0 <= high:
        if most is None or low + most >= 0:
            low = 0
        if most is None or high < most:
            high = -1
    return low, high


def span(size: int, start: int, stop: int, step: int) -> range:
    """The indices of a slice of an axis of this size."""
    if step == 0:
        raise IRError("a step is 0")
    start, stop = (end + size if end < 0 else end for end in (start, stop))
    if step > 0:
        return range(max(min(start, size), 0), max(min(stop, size), 0), step)
    return range(min(max(start, 0), size - 1), min(max(stop, -1), size), step)


def counted(size: int | None, start: int, stop: int, step: int) -> int | None:
    """How many elements a slice has; None: without limit, as the axis (None) is."""
    limitless = LARGEST in (start, stop)
    if size is None and ((start < 0) != (stop < 0) or limitless or start == LEAST):
        if step < 0:
            if start <= 0 or limitless:
                return None
            stop = -1
        elif LEAST < start < 0:
            start, stop = 0, -start if stop == LARGEST else stop
        else:
            return None
        return len(range(start, stop, step))
    count = len(span(LARGEST if size is None else size, start, stop, step))
    return None if count == LARGEST else count


def as_slice(indices: range) -> slice:
    """NumPy's slice of these indices."""
    if not indices:
        return slice(0, 0)
    stop = indices.stop if indices.stop >= 0 else None
    return slice(indices.start, stop, indices.step)


def inside(index: int, size: int) -> int:
    """An index that has to be one of an element."""
    if not -size <= index < size:
        raise IRError(f"index {index} is beyond an axis of {size}")
    return index
