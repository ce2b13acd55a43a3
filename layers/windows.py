"""Windows that slide over spatial axes: the arithmetic shared by pooling and convolution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from math import prod
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..schemas import Array, Dim, IRError, Size, Where
from ..schemas.attributes import Ints, read_list
from ..schemas.shapes import at_least, interval, limits, not_below, number
from .base import Op
from .budget import require

#: Padding before the first and after the last element of an axis.
Pads: TypeAlias = tuple[int, int]

AutoPad: TypeAlias = Literal["explicit", "same_upper", "same_lower", "valid"]
Rounding: TypeAlias = Literal["floor", "ceil", "ceil_torch"]


class Windowed(Op):
    """An operation whose windows have strides and paddings; one entry per spatial axis."""

    strides: Ints
    pads_begin: Ints = ()
    pads_end: Ints = ()
    auto_pad: AutoPad = "explicit"

    #: What OpenVINO takes, for each axis, of a list that the specification asks for and a file
    #: leaves out; and the lists that tell the number of axes.
    neutral: ClassVar[Mapping[str, int]] = {"pads_begin": 0, "pads_end": 0}
    counted: ClassVar[tuple[str, ...]] = ("strides",)

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Write out the lists that OpenVINO does without: no padding, windows side by side."""
        once = {name: tuple(value) for name, value in data.items() if isinstance(value, Iterator)}
        data = data | once
        missing = [name for name in cls.neutral if not _said(data.get(name))]
        given = next((data[name] for name in cls.counted if _said(data.get(name))), None)
        if not missing or given is None:
            return data
        axes = entries(given)
        if axes is None:
            return data
        return data | {name: (cls.neutral[name],) * axes for name in missing}

    def attributes(self) -> dict[str, str]:
        texts = super().attributes()
        if self.auto_pad != "explicit":
            # OpenVINO writes paddings that are not used as zeros.
            axes = len(self.strides)
            texts |= dict.fromkeys(("pads_begin", "pads_end"), ", ".join(["0"] * axes))
        return texts

    def check_axes(self, axes: int, teller: str = "", **lists: Ints) -> None:
        """Refuse lists that do not have one entry for each of the spatial axes.

        ``teller`` is the attribute that tells how many there are, where the input does not.
        """
        lists = {"strides": self.strides} | lists
        if self.auto_pad == "explicit":
            lists |= {"pads_begin": self.pads_begin, "pads_end": self.pads_end}
        told = f"{teller} has {axes}" if teller else f"the input has {axes} spatial axes"
        for name, values in lists.items():
            if len(values) != axes:
                if not values:
                    raise IRError(f"required attribute {name} is missing", Where(attribute=name))
                raise IRError(f"{name} has {len(values)} axes, {told}")
            if not values:
                raise IRError(f"{name} is empty, it has an entry for each spatial axis")
        for name, values in lists.items():
            least = 0 if name.startswith("pads") else 1
            if min(values) < least:
                raise IRError(f"{name} has {min(values)}, the least is {least}")

    def pads(self, size: Size, axis: int, reach: Size) -> tuple[Size, Size]:
        """Padding before and after a spatial axis of this size."""
        if self.auto_pad == "explicit":
            return self.pads_begin[axis], self.pads_end[axis]
        if self.auto_pad == "valid":
            return 0, 0
        return same_pads(size, reach, self.strides[axis], upper=self.auto_pad == "same_upper")


def _said(values: Any) -> bool:
    """Whether a list is there and holds something."""
    if isinstance(values, str):
        return bool(values.strip())
    return len(values) > 0 if _is_list(values) else bool(values)


def _is_list(values: Any) -> bool:
    """Whether something has entries; an array without axes is one number."""
    return isinstance(values, Sized) and getattr(values, "ndim", 1) > 0


def entries(values: Any) -> int | None:
    """How many entries a list has, also as text; None of what is none, such as one number."""
    values = read_list(str)(values) if isinstance(values, str) else values
    return len(values) if _is_list(values) else None


def reach(kernel: Size, dilation: int) -> Size:
    """Extent of a window of ``kernel`` elements that are ``dilation`` apart."""
    return at_least(kernel - 1, 0) * dilation + 1


def same_pads(size: Size, reach: Size, stride: int, *, upper: bool) -> tuple[Size, Size]:
    """Padding by which the windows' stops are ``ceil(size / stride)``; ``upper``: more after."""
    total = at_least((stops_same(size, stride) - 1) * stride + reach - size, 0)
    less = total // 2
    return (less, total - less) if upper else (total - less, less)


def stops_same(size: Size, stride: int) -> Size:
    """How often a window stops when the padding is to keep the size."""
    return -(-size // stride)


def stops(
    size: Size, pads: tuple[Size, Size], reach: Size, stride: int, rounding: Rounding
) -> Size:
    """How often a window stops along an axis of this size."""
    begin, end = pads
    room = size + begin + end - reach
    if not isinstance(room, Dim) and room < 0:
        raise IRError(f"window reaches over {reach}, there are {size} + {begin} + {end}")
    room = not_below(room, 0)
    if rounding == "floor":
        return room // stride + 1
    count = -(-room // stride) + 1
    if rounding == "ceil":
        return count
    # PyTorch drops a last window that would start in the end padding.
    if isinstance(size, Dim):
        shortest = number(reach) - number(begin) - number(end)
        ends = [
            None if n is None else stops(max(n, shortest), pads, reach, stride, rounding)
            for n in limits(size)
        ]
        low, high = (None if n is None else number(n) for n in ends)
        return at_least(interval(low, high), 1)
    if isinstance(count, Dim):
        return count
    return count - 1 if (count - 1) * stride >= size + begin else count


def surrounded(data: Array, widths: Sequence[Pads], fill: object = 0) -> Array:
    """The data with so much of ``fill`` before and after it on each axis."""
    sizes = [size + sum(pair) for size, pair in zip(data.shape, widths, strict=True)]
    require(prod(sizes) * data.itemsize)
    if not widths:
        return data
    padded: Array = np.pad(data, widths, constant_values=fill)  # type: ignore[call-overload]
    return padded


def windows(
    data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[Pads],
    counts: Sequence[int],
    fill: object,
) -> Array:
    """A view of all windows: ``(..., *counts, *kernel)`` over the last axes of ``data``.

    Beyond the data stands ``fill``, also where the last window overhangs the end padding.
    """
    lead = data.ndim - len(kernel)
    spans = [number(reach(k, d)) for k, d in zip(kernel, dilations, strict=True)]
    widths = [(0, 0)] * lead
    for size, (begin, end), span, stride, count in zip(
        data.shape[lead:], pads, spans, strides, counts, strict=True
    ):
        widths.append((begin, max(end, max(count - 1, 0) * stride + span - size - begin)))
    if any(before or after for before, after in widths):
        data = surrounded(data, widths, fill)
    axes = tuple(range(lead, data.ndim))
    # Of a type that NumPy does not know by itself there are no windows, but of its bytes.
    bare = data.view(f"u{data.itemsize}")
    view = sliding_window_view(bare, spans, axes).view(data.dtype)
    steps = [slice(0, max((c - 1) * s + 1, 0), s) for c, s in zip(counts, strides, strict=True)]
    holes = [slice(None, None, d) for d in dilations]
    index: Any = (..., *steps, *holes)
    return view[index]
