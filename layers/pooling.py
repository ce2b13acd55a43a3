"""Pooling: the largest value or the mean of windows that slide over the spatial axes.

Specification pages: MaxPool-1, -8, -14; AvgPool-1, -14, -16; AdaptiveAvgPool-8,
AdaptiveMaxPool-8; pooling shape rules.

Of NaN and infinity: MaxPool begins each window with the type's lowest finite value and takes
what is greater, as OpenVINO does. A NaN is therefore never chosen, and a window of nothing but
padding, NaN or -inf gives the lowest finite value. AvgPool lets NaN and infinity through; where
``exclude-pad`` leaves a window without elements, it gives NaN for real types.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Int, Ints, NotBefore, Type
from ..schemas.shapes import number
from ..schemas.types import numbers
from .axes import as_size
from .base import Op, index_type
from .budget import require, steps
from .choice import either
from .elementwise import settled
from .windows import Pads, Windowed, entries, reach, stops, stops_same, windows


class Pool(Windowed):
    """What every pooling shares: the window, its padding and its stops."""

    kernel: Ints
    rounding_type: Annotated[
        Literal["floor", "ceil", "ceil_torch"], NotBefore(14, "ceil_torch")
    ] = "floor"

    def gaps(self) -> Ints:
        """The dilations: distance between neighbours in the window, per axis."""
        return (1,) * len(self.kernel)

    counted: ClassVar[tuple[str, ...]] = ("kernel",)

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Write the dilations out: OpenVINO crashes where a file leaves them out."""
        data = super().completed(data)
        if "dilations" in cls.model_fields and "kernel" in data:
            axes = entries(data["kernel"])
            return data if axes is None else {"dilations": (1,) * axes} | data
        return data

    def pooled(self, shape: Shape) -> Shape:
        """Shape of the output."""
        axes = len(self.kernel)
        if shape.rank is None:
            self.check_axes(axes, "kernel", kernel=self.kernel, dilations=self.gaps())
            return Shape.of_rank(axes + 2)
        if shape.rank not in (3, 4, 5):
            raise IRError(f"the input has {shape.rank} axes ({shape}), pooling takes 3, 4 or 5")
        self.check_axes(shape.rank - 2, kernel=self.kernel, dilations=self.gaps())
        return Shape((*shape[:2], *(self.stops(size, i) for i, size in enumerate(shape[2:]))))

    def stops(self, size: Size, axis: int) -> Size:
        """How often the window stops along a spatial axis of this size."""
        span, stride = reach(self.kernel[axis], self.gaps()[axis]), self.strides[axis]
        if isinstance(size, Dim) and self.auto_pad.startswith("same"):
            # OpenVINO does not look into an interval here.
            count = stops_same(size, stride)
            return Dim(0, None, count.symbol) if isinstance(count, Dim) else ANY
        return stops(size, self.pads(size, axis, span), span, stride, self.rounding_type)

    def all_pads(self, data: Array) -> list[Pads]:
        """Padding of every spatial axis of ``data``."""
        spans = [reach(k, d) for k, d in zip(self.kernel, self.gaps(), strict=True)]
        pairs = [self.pads(n, i, spans[i]) for i, n in enumerate(data.shape[2:])]
        return [(number(begin), number(end)) for begin, end in pairs]

    def elements(self, data: Array, fill: object) -> Iterator[Array]:
        """For each place in the window, what stands there in every window.

        Places that hold nothing but padding in all windows are left out, but for the first.
        """
        counts = self.pooled(Shape(data.shape)).static[2:]
        pads = self.all_pads(data)
        view = windows(data, self.kernel, self.strides, self.gaps(), pads, counts, fill)
        filled = [
            places_on(size, begin, *row)
            for size, (begin, _), *row in zip(
                data.shape[2:], pads, self.kernel, self.strides, self.gaps(), counts, strict=True
            )
        ]
        index: Any
        for index in steps(product((...,), *filled)):
            yield view[index]


def places_on(
    size: int, begin: int, window: int, stride: int, dilation: int, count: int
) -> list[int]:
    """The places of a window along an axis that some window has on the data; at least one."""
    if window <= 2 * size:
        return list(range(window))
    on_data = np.zeros(window, bool)
    for first in range(-begin, count * stride - begin, stride):
        # From the first place at or after the data's beginning to the last before its end.
        low, high = -(first // dilation), -((first - size) // dilation)
        on_data[max(low, 0) : max(high, 0)] = True
    return np.flatnonzero(on_data).tolist() or [0]


class MaxPoolV1(Pool):
    """The largest value in each window; padding never wins."""

    rooms = 2

    written: ClassVar[tuple[str, ...]] = (
        "strides",
        "pads_begin",
        "pads_end",
        "kernel",
        "rounding_type",
        "auto_pad",
    )

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(data.type, self.pooled(data.shape)),)

    def run(self, data: Array) -> tuple[Array, ...]:
        best = beneath(data)
        for element in self.elements(data, best):
            best = np.where(element > best, element, best)
        return (best,)


class MaxPoolV8(MaxPoolV1):
    """MaxPool-1 with dilations, and a second output: where each largest value was."""

    rooms = 5

    output_count = (2, 2)
    written: ClassVar[tuple[str, ...]] = ("strides", "dilations", *MaxPoolV1.written[1:])

    dilations: Ints = ()
    index_element_type: Type = ElementType.I64
    axis: Int = 0

    def gaps(self) -> Ints:
        return self.dilations or super().gaps()

    def check_attributes(self) -> None:
        # OpenVINO reads other types and computes i32.
        index_type("index_element_type", self.index_element_type)
        super().check_attributes()

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        (values,) = super().infer(data)
        if data.rank is not None and not -data.rank <= self.axis < data.rank:
            raise IRError(f"axis {self.axis} is beyond the {data.rank} axes of the input")
        return values, Tensor(self.index_element_type, values.shape)

    def run(self, data: Array) -> tuple[Array, ...]:
        counted = data.shape[self.axis :]
        places = np.broadcast_to(np.arange(prod(counted)).reshape(counted), data.shape)
        # Where nothing is above the lowest value, OpenVINO points at the plane's first element.
        corner: Any = (..., *[slice(0, 1)] * len(self.kernel))
        best, index = beneath(data), places[corner]
        pairs = zip(self.elements(data, best), self.elements(places, 0), strict=True)
        for element, place in pairs:
            better = element > best
            best, index = either(better, element, best), either(better, place, index)
        return best, index.astype(self.index_element_type.dtype)


class MaxPoolV14(MaxPoolV8):
    """MaxPool-8 with ``rounding_type="ceil_torch"``."""


class AvgPoolV1(Pool):
    """The mean of each window, with the padding counted as zeros or not at all."""

    rooms = 5

    written: ClassVar[tuple[str, ...]] = (
        "kernel", "strides", "pads_begin", "pads_end", "exclude-pad", "auto_pad", "rounding_type",
    )  # fmt: skip

    exclude_pad: Bool = Field(alias="exclude-pad")

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(data.type, self.pooled(data.shape)),)

    def pads(self, size: Size, axis: int, reach: Size) -> tuple[Size, Size]:
        begin, end = super().pads(size, axis, reach)
        if self.exclude_pad and not isinstance(size, Dim) and (begin >= reach or end >= reach):
            raise IRError(
                f"padding {begin} and {end} on axis {axis} holds a whole window of {reach}, "
                "whose mean without padding is that of nothing"
            )
        return begin, end

    def run(self, data: Array) -> tuple[Array, ...]:
        wide = data if data.dtype == np.float64 else data.astype(np.float32)
        total = sum(self.elements(wide, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return (settled(total / self.divisor(data), data.dtype),)

    def divisor(self, data: Array) -> Array | int:
        """By what the sum of a window is divided."""
        if not self.exclude_pad and any(begin or end for begin, end in self.all_pads(data)):
            return prod(self.kernel)
        # Only real elements count: those that are one in an array of ones.
        return sum(self.elements(np.ones((1, 1, *data.shape[2:]), np.float32), 0))


class AvgPoolV14(AvgPoolV1):
    """AvgPool-1 with ``rounding_type="ceil_torch"``."""


class AvgPoolV16(AvgPoolV14):
    """AvgPool-14 with dilations."""

    rooms = 9

    dilations: Ints = ()

    def gaps(self) -> Ints:
        return self.dilations or super().gaps()


class AdaptivePool(Op):
    """Pooling to a given size: window ``i`` of ``n`` is ``i*L//n`` to ``ceil((i+1)*L/n)``."""

    def pooled(self, data: Tensor, output_shape: Tensor) -> Shape:
        """Shape of the output."""
        rank = data.rank
        if rank is None:
            return Shape.UNKNOWN
        if rank not in (3, 4, 5):
            raise IRError(f"the input has {rank} axes ({data.shape}), pooling takes 3, 4 or 5")
        if output_shape.rank not in (None, 1):
            raise IRError(f"the output shape has {output_shape.rank} axes, it is a list")
        sizes = output_shape.sizes()
        if sizes is None:
            return Shape((*data.shape[:2], *[ANY] * (rank - 2)))
        if len(sizes) != rank - 2:
            raise IRError(f"{len(sizes)} output sizes, the input has {rank - 2} spatial axes")
        return Shape((*data.shape[:2], *map(as_size, sizes)))

    def cells(self, data: Array, output_shape: Array) -> Iterator[tuple[tuple[Any, ...], Array]]:
        """Each window with its place in the output."""
        sizes = [int(n) for n in output_shape]
        for place in steps(np.ndindex(*sizes)):
            edges = [edge(*row) for row in zip(place, sizes, data.shape[2:], strict=True)]
            index: Any = (..., *edges)
            yield place, data[index]

    def largest_window(self, data: Array, output_shape: Array) -> int:
        """The most elements that a window may have, of all channels."""
        sizes = zip(data.shape[2:], output_shape.tolist(), strict=True)
        return prod(data.shape[:2]) * prod(min(-(-n // max(m, 1)) + 1, n) for n, m in sizes)


class AdaptiveAvgPoolV8(AdaptivePool):
    """The mean of each window."""

    def infer(self, data: Tensor, output_shape: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(data.type, self.pooled(data, output_shape)),)

    def run(self, data: Array, output_shape: Array) -> tuple[Array, ...]:
        means = np.empty((*data.shape[:2], *map(int, output_shape)), data.dtype)
        axes = tuple(range(2, data.ndim))
        wide = np.dtype(np.float64 if data.dtype == np.float64 else np.float32)
        window_size = 0 if data.dtype == wide else self.largest_window(data, output_shape)
        require(means.nbytes + wide.itemsize * (window_size + 3 * prod(data.shape[:2])))
        for place, window in self.cells(data, output_shape):
            total, count = window.astype(wide, copy=False).sum(axes), prod(window.shape[2:])
            means[(..., *place)] = settled(total / wide.type(count), data.dtype)
        return (means,)


class AdaptiveMaxPoolV8(AdaptivePool):
    """The largest value of each window, and where it was in the flat spatial axes."""

    output_count = (2, 2)

    index_element_type: Type = ElementType.I64

    def infer(self, data: Tensor, output_shape: Tensor) -> tuple[Tensor, ...]:
        index_type("index_element_type", self.index_element_type)
        shape = self.pooled(data, output_shape)
        return Tensor(data.type, shape), Tensor(self.index_element_type, shape)

    def run(self, data: Array, output_shape: Array) -> tuple[Array, ...]:
        shape = (*data.shape[:2], *map(int, output_shape))
        # The places of a plane, and a window and its places, each in a row.
        plane, window_size = prod(data.shape[2:]), self.largest_window(data, output_shape)
        most = 8 * plane + (data.itemsize + 8) * window_size
        require(most + prod(shape) * (data.itemsize + 8 + self.index_element_type.dtype.itemsize))
        values, indices = np.empty(shape, data.dtype), np.empty(shape, np.int64)
        inside = np.arange(plane).reshape(1, 1, *data.shape[2:])
        cells = (self.cells(array, output_shape) for array in (inside, data))
        for (_, places), (place, window) in zip(*cells, strict=True):
            if 0 in window.shape[2:]:
                raise IRError(f"an input of shape {data.shape} has no largest value")
            flat = window.reshape(*data.shape[:2], prod(window.shape[2:]))
            best = flat.argmax(-1)
            values[(..., *place)] = np.take_along_axis(flat, best[..., None], -1)[..., 0]
            indices[(..., *place)] = places.ravel()[best]
        return values, indices.astype(self.index_element_type.dtype, copy=False)


def edge(index: int, count: int, size: int) -> slice:
    """Window ``index`` of ``count`` over an axis of this size."""
    return slice(index * size // count, -(-(index + 1) * size // count))


def beneath(data: Array) -> Any:
    """The largest of no values: the lowest of the type, which in float16 is float32's, -inf."""
    return np.float16(-np.inf) if data.dtype == np.float16 else lowest(data)


def lowest(data: Array) -> Any:
    """The lowest finite value of an array's type, in that type."""
    kind = ElementType.of(data.dtype)
    if kind is ElementType.BOOLEAN:
        return np.False_
    return np.array(numbers(data.dtype).min, data.dtype)[()]
