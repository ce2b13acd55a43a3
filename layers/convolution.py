"""Convolution: windows of the data times filters, forward, transposed, binary and deformable.

Specification pages: Convolution-1, ConvolutionBackpropData-1, GroupConvolution-1,
GroupConvolutionBackpropData-1, BinaryConvolution-1, DeformableConvolution-1, -8.

All of them become one product of matrices for each group: filters times the data's windows as
columns. Real types below 32 bits are summed in float32, integers exactly; an integer result
stops at the ends of its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Int, Ints
from ..schemas.shapes import compatible, interval, limits, merge, not_below, number
from .axes import as_size
from .base import element_type
from .budget import PIECE, pieces, require, steps
from .casting import narrowed, quiet, widened
from .windows import Pads, Windowed, entries, reach, stops, stops_same, windows


class Convolve(Windowed):
    """What every convolution shares: dilated windows, and filters that are an input."""

    written: ClassVar[tuple[str, ...]] = ("strides", "dilations", "pads_begin", "pads_end")

    #: How many axes of the filters stand before the spatial ones, and the axis of the group.
    lead: ClassVar[int] = 2
    ranks: ClassVar[tuple[int, ...]] = (3, 4, 5)

    dilations: Ints

    neutral: ClassVar[Mapping[str, int]] = {
        **Windowed.neutral, "strides": 1, "dilations": 1
    }  # fmt: skip
    counted: ClassVar[tuple[str, ...]] = ("strides", "dilations", "pads_begin", "pads_end")

    def sizes(self, data: Shape, filters: Shape) -> tuple[list[Size], list[Size]]:
        """Spatial sizes of the data and of the filters, after the checks they share."""
        if data.rank is not None:
            axes = data.rank - 2
        else:
            axes = len(self.strides) if filters.rank is None else filters.rank - self.lead
        if axes + 2 not in self.ranks:
            allowed = ", ".join(map(str, self.ranks))
            raise IRError(f"the input has {axes + 2} axes ({data}), {self.xml_type} has {allowed}")
        if filters.rank not in (None, axes + self.lead):
            raise IRError(
                f"the filters have {filters.rank} axes ({filters}), an input of {axes + 2} axes "
                f"takes {axes + self.lead}"
            )
        teller = "strides" if data.rank is None and filters.rank is None else ""
        self.check_axes(axes, teller, dilations=self.dilations)
        return (
            [ANY] * axes if data.rank is None else list(data[2:]),
            [ANY] * axes if filters.rank is None else list(filters[self.lead :]),
        )

    def stops(self, data: Sequence[Size], filters: Sequence[Size]) -> list[Size]:
        """How often the filters stop along each spatial axis."""
        counts = []
        for axis, (size, kernel) in enumerate(zip(data, filters, strict=True)):
            stride, span = self.strides[axis], reach(kernel, self.dilations[axis])
            if kernel == 0:
                raise IRError(f"the filters have no extent along spatial axis {axis}")
            if self.auto_pad.startswith("same"):
                counts.append(stops_same(size, stride))
            else:
                counts.append(stops(size, self.pads(size, axis, span), span, stride, "floor"))
        return counts

    def settled(self, data: Array, kernel: Sequence[int]) -> tuple[list[Pads], list[int]]:
        """Padding and number of stops on every spatial axis, for data that is there."""
        sizes = data.shape[2:]
        spans = [reach(k, d) for k, d in zip(kernel, self.dilations, strict=True)]
        pads = [self.pads(n, i, spans[i]) for i, n in enumerate(sizes)]
        counts = self.stops(sizes, kernel)
        return [(number(begin), number(end)) for begin, end in pads], [number(n) for n in counts]

    def multiply_adds(self, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
        """A window of weights for each element of the output."""
        return prod(output) * self.window(inputs[1])

    def window(self, filters: tuple[int, ...]) -> int:
        """How many weights meet one element: channels times kernel."""
        return prod(filters[self.lead - 1 :])

    def correlate(self, data: Array, filters: Array, fill: float = 0) -> Array:
        """Slide filters ``(group, out, in, *kernel)`` over the data."""
        kernel = filters.shape[3:]
        pads, counts = self.settled(data, kernel)
        view = windows(data, kernel, self.strides, self.dilations, pads, counts, fill)
        axes = range(2, 2 + len(kernel))
        columns = np.moveaxis(view, axes, range(-len(kernel), 0))
        spread = (data.shape[1], prod(kernel))
        row = prod((*spread, *counts[1:])) * data.itemsize
        kind, whole_size = np.result_type(data, filters), len(data) * counts[0] * row
        made = (len(data), prod(filters.shape[:2]), *counts)
        if prod(kernel) == 1 or whole_size <= PIECE:
            require(prod(made) * kind.itemsize + whole_size + data.nbytes)
            return multiplied(filters, columns.reshape(len(data), *spread, *counts))
        # All windows at once would take as much memory as the data, times the kernel.
        require(prod(made) * kind.itemsize + row + data.nbytes)
        total = np.empty(made, kind)
        whole: Any = (slice(None),) * (1 + len(kernel))
        for items in pieces(len(data), counts[0] * row):
            for rows in pieces(counts[0], row):
                taken = columns[(items, *whole, rows)]
                shape = (len(taken), *spread, -1, *counts[1:])
                total[items, :, rows] = multiplied(filters, taken.reshape(shape))
        return total


class ConvolutionV1(Convolve):
    """Each output channel: the sum of products of all input channels' windows with its filter."""

    def infer(self, data: Tensor, filters: Tensor) -> tuple[Tensor, ...]:
        kind = numeric(data.type.merge(filters.type))
        counts = self.stops(*self.sizes(data.shape, filters.shape))
        return (
            Tensor(kind, Shape((batch(data), self.channels(data.shape, filters.shape), *counts))),
        )

    def channels(self, data: Shape, filters: Shape) -> Size:
        """Number of output channels."""
        if filters.rank is None:
            return ANY
        if data.rank is not None and not compatible(data[1], filters[1]):
            raise IRError(f"the input has {data[1]} channels, the filters take {filters[1]}")
        return filters[0]

    def run(self, data: Array, filters: Array) -> tuple[Array, ...]:
        total = self.correlate(widened(data), widened(self.grouped(filters)))
        return (narrowed(total, data.dtype),)

    def grouped(self, filters: Array) -> Array:
        """The filters with their groups on the first axis."""
        return filters[None]


class GroupConvolutionV1(ConvolutionV1):
    """A convolution for each group of channels; the filters' first axis is the group."""

    written: ClassVar[tuple[str, ...]] = ("strides", "pads_begin", "pads_end", "dilations")
    lead: ClassVar[int] = 3

    def channels(self, data: Shape, filters: Shape) -> Size:
        if filters.rank is None:
            return ANY
        return groups(data, filters[0], filters[2]) * filters[1]

    def grouped(self, filters: Array) -> Array:
        return filters


class ConvolutionBackpropDataV1(Convolve):
    """Convolution the other way round: each element spreads the filter over the output."""

    written: ClassVar[tuple[str, ...]] = (*Convolve.written, "auto_pad")

    output_padding: Ints = ()

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Write the default of the output padding out, as OpenVINO does."""
        data = super().completed(data)
        if "strides" in data and not data.get("output_padding"):
            axes = entries(data["strides"])
            return data if axes is None else data | {"output_padding": (0,) * axes}
        return data

    def infer(
        self, data: Tensor, filters: Tensor, output_shape: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        kind = numeric(data.type.merge(filters.type))
        sizes, kernel = self.sizes(data.shape, filters.shape)
        self.check_axes(len(sizes), output_padding=tuple(n + 1 for n in self.output_padding))
        if output_shape is not None:
            spread = wanted(output_shape, len(sizes))
        else:
            spread = [
                self.spread(*row) for row in zip(range(len(sizes)), sizes, kernel, strict=True)
            ]
        return (
            Tensor(kind, Shape((batch(data), self.channels(data.shape, filters.shape), *spread))),
        )

    def channels(self, data: Shape, filters: Shape) -> Size:
        """Number of output channels."""
        if filters.rank is None:
            return ANY
        if data.rank is not None and not compatible(data[1], filters[0]):
            raise IRError(f"the input has {data[1]} channels, the filters take {filters[0]}")
        return filters[1]

    def multiply_adds(self, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
        """A window of weights for each element of the input."""
        return prod(inputs[0]) * self.window(inputs[1])

    def span(self, axis: int, size: Size, kernel: Size) -> Size:
        """Extent that the filters cover when they are laid at every element of an axis."""
        # Nothing covers as much as one element; a name, which is rarely that of nothing, is kept.
        laid = not_below(size - 1, 0) * self.strides[axis]
        return laid + reach(kernel, self.dilations[axis])

    def spread(self, axis: int, size: Size, kernel: Size) -> Size:
        """Size of the output on a spatial axis, where no output shape is given."""
        begin, end = self.spread_pads(axis, size, kernel)
        span = self.span(axis, size, kernel) + self.output_padding[axis] - begin - end
        if not isinstance(span, Dim) and span < 0:
            raise IRError(f"padding {begin} and {end} cuts away more than axis {axis} has")
        return not_below(span, 0)

    def spread_pads(self, axis: int, size: Size, kernel: Size, wanted: int | None = None) -> Pads:
        """What is cut off the output at both ends of an axis."""
        if self.auto_pad == "explicit":
            return self.pads_begin[axis], self.pads_end[axis]
        if self.auto_pad == "valid" or wanted is None:
            return 0, 0
        span = number(self.span(axis, size, kernel))
        total = max(span + self.output_padding[axis] - wanted, 0)
        less, more = total // 2, total - total // 2
        # The other way round than forward, as the specification has it.
        return (more, less) if self.auto_pad == "same_upper" else (less, more)

    def run(
        self, data: Array, filters: Array, output_shape: Array | None = None
    ) -> tuple[Array, ...]:
        self.channels(Shape(data.shape), Shape(filters.shape))
        total = self.lay(widened(data), widened(self.grouped(filters)), output_shape)
        return (narrowed(total, data.dtype),)

    def grouped(self, filters: Array) -> Array:
        """The filters with their groups on the first axis."""
        return filters[None]

    @quiet
    def lay(self, data: Array, filters: Array, output_shape: Array | None) -> Array:
        """Add filters ``(group, in, out, *kernel)``, weighted with the data, where they reach."""
        kernel, sizes = filters.shape[3:], data.shape[2:]
        rows = list(zip(range(len(kernel)), sizes, kernel, strict=True))
        if output_shape is None:
            results = [number(self.spread(*row)) for row in rows]
            begins = [self.spread_pads(*row)[0] for row in rows]
        else:
            results = [int(n) for n in output_shape]
            begins = [self.spread_pads(*row, n)[0] for row, n in zip(rows, results, strict=True)]
        spans = [number(self.span(*row)) for row in rows]
        groups, inner, outer = filters.shape[:3]
        weights = np.moveaxis(filters, 1, -1).reshape(groups, outer, prod(kernel), inner)
        room = [max(s, b + n) for s, b, n in zip(spans, begins, results, strict=True)]
        made = (len(data), groups * outer)
        # The sum of all, and the products of one place of the filters at the least.
        require(prod(made) * (prod(room) + 2 * prod(sizes)) * data.itemsize)
        output = np.zeros((*made, *room), np.result_type(data, filters))
        places = list(np.ndindex(*kernel))
        # Each value times some of the weights, before the products are laid upon one another.
        for part in pieces(len(places), prod(made) * prod(sizes) * data.itemsize):
            some = weights[:, :, part].reshape(groups, -1, inner)
            count = len(places[part])
            laid = multiplied(some, data[:, :, None]).reshape(*made, count, *sizes)
            for index, place in enumerate(steps(places[part])):
                starts = [k * d for k, d in zip(place, self.dilations, strict=True)]
                taken: Any = [
                    slice(start, start + n * stride, stride)
                    for start, n, stride in zip(starts, sizes, self.strides, strict=True)
                ]
                output[..., *taken] += laid[:, :, index]
        kept: Any = [slice(b, b + n) for b, n in zip(begins, results, strict=True)]
        return output[..., *kept]


class GroupConvolutionBackpropDataV1(ConvolutionBackpropDataV1):
    """ConvolutionBackpropData for each group; the filters' first axis is the group."""

    written: ClassVar[tuple[str, ...]] = (*GroupConvolutionV1.written, "auto_pad")
    lead: ClassVar[int] = 3

    def channels(self, data: Shape, filters: Shape) -> Size:
        if filters.rank is None:
            return ANY
        return groups(data, filters[0], filters[1]) * filters[2]

    def grouped(self, filters: Array) -> Array:
        return filters


class BinaryConvolutionV1(ConvolutionV1):
    """Convolution of bits that stand for 1 and -1: twice the equal ones, less all of them."""

    written: ClassVar[tuple[str, ...]] = (
        *GroupConvolutionV1.written, "mode", "pad_value", "auto_pad",
    )  # fmt: skip
    ranks: ClassVar[tuple[int, ...]] = (4,)

    mode: Literal["xnor-popcount"]
    pad_value: Float

    def infer(self, data: Tensor, filters: Tensor) -> tuple[Tensor, ...]:
        element_type(filters, ElementType.U1)
        (output,) = super().infer(data, Tensor(data.type, filters.shape))
        return (output,)

    def run(self, data: Array, filters: Array) -> tuple[Array, ...]:
        # A value that is neither 0 nor 1 equals no bit.
        bits, pad = self.grouped(filters).astype(np.float32), np.float32(self.pad_value)
        ones, zeros = (
            self.correlate((data == bit).astype(np.float32), have, float(pad == bit))
            for bit, have in ((1, bits), (0, 1 - bits))
        )
        equal = ones + zeros
        return (narrowed(2 * equal - np.float32(prod(filters.shape[1:])), data.dtype),)


class DeformableConvolutionV1(Convolve):
    """Convolution whose windows' elements are moved, each by an offset of its own."""

    ranks: ClassVar[tuple[int, ...]] = (4,)

    group: Int = 1
    deformable_group: Int = 1

    def infer(self, data: Tensor, offsets: Tensor, filters: Tensor) -> tuple[Tensor, ...]:
        kind = numeric(data.type.merge(offsets.type).merge(filters.type))
        counts = self.stops(*self.sizes(data.shape, filters.shape))
        first = batch(data)
        self.check_moves(data.shape, offsets.shape, filters.shape, counts, 2, "offsets")
        if offsets.rank is not None:
            first = merge(first, offsets.shape[0])
        return (Tensor(kind, Shape((first, self.channels(data.shape, filters.shape), *counts))),)

    def channels(self, data: Shape, filters: Shape) -> Size:
        """Number of output channels."""
        if self.group < 1 or self.deformable_group < 1:
            least = min(self.group, self.deformable_group)
            raise IRError(f"group and deformable_group are 1 at least, here is {least}")
        if data.rank is not None:
            parts(data[1], self.group, "input channels")
        if filters.rank is None:
            return ANY
        parts(filters[0], self.group, "filters")
        taken = filters[1] * self.group
        if data.rank is not None and not compatible(data[1], taken):
            raise IRError(f"the input has {data[1]} channels, the filters take {taken}")
        return filters[0]

    def multiply_adds(self, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
        """A window of weights for each element of the output; the offsets are the second input."""
        return prod(output) * self.window(inputs[2])

    def check_moves(
        self, data: Shape, moves: Shape, filters: Shape, counts: list[Size], each: int, what: str
    ) -> None:
        """Refuse offsets or a mask that do not fit to the output, ``each`` for every element."""
        if moves.rank is None:
            return
        if moves.rank != 4:
            raise IRError(f"the {what} have {moves.rank} axes ({moves}), they take 4")
        parts(moves[1], self.deformable_group, f"channels of the {what}")
        if filters.rank is not None:
            needed = filters[2] * filters[3] * (each * self.deformable_group)
            if not compatible(moves[1], needed):
                raise IRError(f"the {what} have {moves[1]} channels, the filters need {needed}")
        if data.rank is not None and not compatible(data[0], moves[0]):
            raise IRError(f"the {what} have batch {moves[0]}, the input has {data[0]}")
        if not all(map(compatible, counts, moves[2:])):
            raise IRError(f"the {what} have shape {moves}, the output has {Shape(counts)}")

    def run(self, data: Array, offsets: Array, filters: Array) -> tuple[Array, ...]:
        return (self.deform(data, offsets, filters, None),)

    @quiet
    def deform(self, data: Array, offsets: Array, filters: Array, mask: Array | None) -> Array:
        """Slide the filters over data taken from the moved places."""
        wide, kernel = widened(data), filters.shape[2:]
        pads, counts = self.settled(data, kernel)
        split = (len(data), self.deformable_group, prod(kernel))
        moved = widened(offsets).reshape(*split, 2, *counts)
        rows, columns = (
            moved[:, :, :, axis] + place.astype(moved.dtype)
            for axis, place in enumerate(self.places(kernel, counts, pads))
        )
        factors = None if mask is None else widened(mask).reshape(*split, *counts)
        # The corners of each place with their shares; all channels' values there, twice.
        spread = prod((len(data), prod(kernel), *counts))
        require(spread * (96 * self.deformable_group + 2 * data.shape[1] * wide.itemsize))
        flat = wide.reshape(len(data), self.deformable_group, -1, prod(data.shape[2:]))
        taken = np.zeros((*flat.shape[:3], prod(rows.shape[2:])), wide.dtype)
        each = (*flat.shape[:2], 1, -1)
        for index, share in self.corners(rows, columns, data.shape[2:], factors):
            corner = np.take_along_axis(flat, index.reshape(each), -1)
            taken += corner * share.astype(wide.dtype, copy=False).reshape(each)
        taken = taken.reshape(*data.shape[:2], prod(kernel), *counts)
        weights = widened(filters).reshape(self.group, -1, *filters.shape[1:])
        return narrowed(multiplied(weights, taken), data.dtype)

    def places(
        self, kernel: Sequence[int], counts: Sequence[int], pads: Sequence[Pads]
    ) -> tuple[Array, Array]:
        """Row and column of every element of every window: ``(kernel, *counts)``."""
        axes = []
        for axis in (0, 1):
            start = np.arange(counts[axis]) * self.strides[axis] - pads[axis][0]
            inside = np.arange(kernel[axis]) * self.dilations[axis]
            axes.append(inside[:, None] + start)
        shape = (prod(kernel), *counts)
        rows, columns = axes[0][:, None, :, None], axes[1][None, :, None, :]
        full = (*kernel, *counts)
        return (
            np.broadcast_to(rows, full).reshape(shape),
            np.broadcast_to(columns, full).reshape(shape),
        )

    def corners(
        self, rows: Array, columns: Array, size: Sequence[int], factors: Array | None
    ) -> Iterator[tuple[Array, Array]]:
        """The four pixels around each place: which, of an image of that size, and their shares."""
        high, wide = size
        used = self.inside(rows, high) & self.inside(columns, wide)
        rows, columns = np.where(used, rows, 0), np.where(used, columns, 0)
        shares = used.astype(rows.dtype)
        if factors is not None:
            shares = shares * factors
        across = list(self.neighbours(columns, wide))
        for row, row_share in self.neighbours(rows, high):
            start, share = row * wide, row_share * shares
            for column, column_share in across:
                yield start + column, share * column_share

    def inside(self, places: Array, size: int) -> Array:
        """Which places are not padding."""
        return (places >= 0) & (places < size)

    def neighbours(self, places: Array, size: int) -> Iterator[tuple[Array, Array]]:
        """The whole places before and after each place that is inside, and their shares."""
        before = np.floor(places)
        beyond = places - before
        yield before.astype(np.intp), 1 - beyond
        yield np.minimum(np.ceil(places), size - 1).astype(np.intp), beyond


class DeformableConvolutionV8(DeformableConvolutionV1):
    """DeformableConvolution-1 with a mask of weights, and with a choice of what lies outside."""

    written: ClassVar[tuple[str, ...]] = ("bilinear_interpolation_pad", *Convolve.written)

    bilinear_interpolation_pad: Bool = False

    def infer(
        self, data: Tensor, offsets: Tensor, filters: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        (output,) = super().infer(data, offsets, filters)
        if mask is not None:
            numeric(output.type.merge(mask.type))
            counts = list(output.shape[2:])
            self.check_moves(data.shape, mask.shape, filters.shape, counts, 1, "mask")
        return (output,)

    def run(
        self, data: Array, offsets: Array, filters: Array, mask: Array | None = None
    ) -> tuple[Array, ...]:
        return (self.deform(data, offsets, filters, mask),)

    def inside(self, places: Array, size: int) -> Array:
        if self.bilinear_interpolation_pad:
            return (places > -1) & (places < size)
        return super().inside(places, size)

    def neighbours(self, places: Array, size: int) -> Iterator[tuple[Array, Array]]:
        if not self.bilinear_interpolation_pad:
            yield from super().neighbours(places, size)
            return
        before = np.floor(places)
        beyond = places - before
        for place, share in ((before, 1 - beyond), (before + 1, beyond)):
            there = super().inside(place, size)
            yield np.where(there, place, 0).astype(np.intp), np.where(there, share, 0)


@quiet
def multiplied(filters: Array, columns: Array) -> Array:
    """Filters ``(group, out, in, *kernel)`` times ``(batch, channel, kernel, *places)``."""
    count, outs, ins = filters.shape[:3]
    weights = filters.reshape(count, outs, ins * prod(filters.shape[3:]))
    places = columns.shape[3:]
    # Splitting the channels into groups and joining them with the kernel is one reshape.
    flat = columns.reshape(len(columns), count, weights.shape[2], prod(places))
    return np.matmul(weights, flat).reshape(len(columns), count * outs, *places)


def numeric(kind: ElementType) -> ElementType:
    """Refuse element types one cannot calculate with."""
    if not kind.is_dynamic and not kind.is_numeric:
        raise IRError(f"element type {kind} is not numeric")
    return kind


def batch(data: Tensor) -> Size:
    """The batch of the input, as far as known."""
    return ANY if data.rank is None else data.shape[0]


def groups(data: Shape, count: Size, channels: Size) -> Size:
    """How many groups there are, by the filters and by the input where it tells."""
    if data.rank is None or isinstance(channels, Dim):
        return count
    try:
        return merge(count, parts(data[1], channels, "input channels"))
    except IRError:
        raise IRError(
            f"the input has {data[1]} channels, {count} groups of filters take {channels} each"
        ) from None


def parts(size: Size, each: int, what: str) -> Size:
    """How many parts of a size there are; refused where no size that it may be is a multiple."""
    if each < 1:
        raise IRError(f"{what} cannot be divided by {each}")
    low, high = limits(size)
    least = -(-(low or 0) // each)
    most = None if high is None else high // each
    if most is not None and least > most:
        raise IRError(f"{what}: {size} is no multiple of {each}")
    symbol = size.symbol.floordiv(each) if isinstance(size, Dim) and size.symbol else None
    return interval(least, most, symbol)


def wanted(output_shape: Tensor, axes: int) -> list[Size]:
    """The spatial sizes that are asked for."""
    if not output_shape.type.is_dynamic and not output_shape.type.is_integral:
        raise IRError(f"element type {output_shape.type} of the output shape is not an integer")
    if output_shape.rank not in (None, 1):
        raise IRError(f"the output shape has {output_shape.rank} axes, it is a list")
    sizes = output_shape.sizes()
    if sizes is None:
        return [ANY] * axes
    if len(sizes) != axes:
        raise IRError(f"{len(sizes)} output sizes, the input has {axes} spatial axes")
    return [as_size(size) for size in sizes]
