"""Fourier transforms of whole tensors and of the frames of a signal.

Specification pages: DFT-7, IDFT-7, RDFT-9, IRDFT-9, STFT-15, ISTFT-16.

Complex numbers are pairs on the last axis. All is calculated in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool
from ..schemas.shapes import at_least, compatible, interval, limits, not_below, number
from .axes import as_size, axes_of
from .base import Op, element_type
from .budget import require, steps
from .casting import narrowed, quiet, widened
from .windows import surrounded

REAL = (ElementType.F32, ElementType.F16, ElementType.BF16)
INDEX = (ElementType.I32, ElementType.I64)


class Transform(Op):
    """A Fourier transform along some axes, their sizes cut or filled with zeros beforehand."""

    #: Whether input and output have complex numbers.
    complex_in: ClassVar[bool] = True
    complex_out: ClassVar[bool] = True
    #: NumPy transforms numbers of 32 bits in 64 on the way there, not on the way back.
    is_double: ClassVar[bool] = True

    @property
    def whole(self) -> bool:
        """Whether all of the last axis is kept, and no half."""
        return self.complex_in and self.complex_out

    def infer(
        self, data: Tensor, axes: Tensor, signal_size: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        element_type(data, *REAL)
        for what, tensor in (("axes", axes), ("signal sizes", signal_size)):
            if tensor is not None:
                element_type(tensor, *INDEX)
                if tensor.rank not in (None, 1):
                    raise IRError(f"the {what} have {tensor.rank} axes, they are a list")
        if signal_size is not None and not compatible(count(axes), count(signal_size)):
            raise IRError(f"{count(axes)} axes, {count(signal_size)} signal sizes")
        return (Tensor(data.type, self.transformed(data.shape, axes, signal_size)),)

    def transformed(self, shape: Shape, axes: Tensor, signal_size: Tensor | None) -> Shape:
        """Shape of the output."""
        if shape.rank is None:
            return Shape.UNKNOWN
        sizes = list(shape)
        last: list[Size] = [2]
        if self.complex_in:
            if shape.rank < 2 or not compatible(shape[-1], 2):
                raise IRError(f"shape {shape} does not end with pairs for complex numbers")
            last = [sizes.pop()]
        (least, _) = limits(count(axes))
        if least is not None and least > len(sizes):
            raise IRError(f"{least} axes to transform, shape {shape} has {len(sizes)}")
        known = axes.ints()
        if known is None:
            result = self.of_unknown_axes(sizes, signal_size is not None)
        else:
            places = axes_of(known, len(sizes))
            wanted = [-1] * len(places) if signal_size is None else signal_size.ints()
            if wanted is None and signal_size is not None and signal_size.parts is not None:
                result = self.partly(sizes, places, signal_size.sizes() or [])
            else:
                result = self.sizes(sizes, places, wanted)
        return Shape([*result, *last] if self.complex_out else result)

    def of_unknown_axes(self, sizes: list[Size], resized: bool) -> list[Size]:
        """The sizes of the output, where it is not known along which axes it was transformed."""
        return [ANY] * len(sizes)

    def partly(self, sizes: list[Size], axes: Sequence[int], wanted: Sequence[Size]) -> list[Size]:
        """The sizes of the output, where the signal sizes are known in part."""
        result = self.sizes(sizes, axes, None)
        for axis, size in zip(axes if self.whole else axes[:-1], wanted, strict=False):
            least = limits(size)[0]
            if least is not None and least >= 0:  # what may be -1 may be any size
                result[axis] = size
        return result

    def sizes(
        self, sizes: list[Size], axes: Sequence[int], wanted: Sequence[int] | None
    ) -> list[Size]:
        """The sizes of the output; ``wanted`` are the signal sizes, -1 for as it is."""
        result = list(sizes)
        for i, axis in enumerate(axes):
            if wanted is None:
                result[axis] = ANY
            elif wanted[i] != -1:
                result[axis] = as_size(wanted[i])
        return result

    def run(self, data: Array, axes: Array, signal_size: Array | None = None) -> tuple[Array, ...]:
        wide = as_complex(widened(data)) if self.complex_in else widened(data)
        places = axes_of(axes.ravel().tolist(), wide.ndim)
        wanted = [-1] * len(places) if signal_size is None else [int(n) for n in signal_size]
        sizes = [number(n) for n in self.sizes(list(wide.shape), places, wanted)]
        if 0 in sizes or not wide.size:  # of nothing there is nothing but zeros
            shape = [*sizes, 2] if self.complex_out else sizes
            return (np.zeros(shape, data.dtype),)
        lengths = [wide.shape[a] if n == -1 else n for a, n in zip(places, wanted, strict=True)]
        require(self.taken(wide, sizes, places, lengths, is_new=wide.real.dtype != data.dtype))
        result = self.transform(wide, lengths, places, wanted) if places else wide
        return (narrowed(as_pairs(result) if self.complex_out else result, data.dtype),)

    def taken(
        self,
        wide: Array,
        sizes: Sequence[int],
        axes: Sequence[int],
        lengths: Sequence[int],
        *,
        is_new: bool,
    ) -> int:
        """Bytes of what is alive at once: results of two axes, or numbers and their pairs."""
        shape = list(map(max, wide.shape, sizes))
        for axis, length in zip(axes, lengths, strict=True):
            shape[axis] = max(shape[axis], length)
        each = 3 * 8 if self.is_double else 2 * (wide.itemsize // (2 if self.complex_in else 1))
        if is_new:  # the widened data, and the narrowed result
            each += 4 + 2
        # Where one side is real, the other has half as many complex numbers.
        return each * prod(shape) * (2 if self.whole else 1)

    def transform(
        self, data: Array, lengths: list[int], axes: tuple[int, ...], wanted: list[int]
    ) -> Array:
        """The transform itself."""
        raise NotImplementedError


class DFTV7(Transform):
    """The discrete Fourier transform."""

    def of_unknown_axes(self, sizes: list[Size], resized: bool) -> list[Size]:
        return super().of_unknown_axes(sizes, resized) if resized else sizes

    def transform(
        self, data: Array, lengths: list[int], axes: tuple[int, ...], wanted: list[int]
    ) -> Array:
        return np.fft.fftn(data, lengths, axes)


class IDFTV7(DFTV7):
    """The inverse of DFT, divided by the number of elements."""

    is_double: ClassVar[bool] = False

    def transform(
        self, data: Array, lengths: list[int], axes: tuple[int, ...], wanted: list[int]
    ) -> Array:
        return np.fft.ifftn(data, lengths, axes)


class RDFTV9(Transform):
    """The transform of real numbers; of the last of the axes only half is kept, as it mirrors."""

    complex_in: ClassVar[bool] = False

    def sizes(
        self, sizes: list[Size], axes: Sequence[int], wanted: Sequence[int] | None
    ) -> list[Size]:
        result = super().sizes(sizes, axes, wanted)
        last = final(axes)
        result[last] = half(result[last])
        return result

    def transform(
        self, data: Array, lengths: list[int], axes: tuple[int, ...], wanted: list[int]
    ) -> Array:
        return np.fft.rfftn(data, lengths, axes)


class IRDFTV9(Transform):
    """The inverse of RDFT: real numbers from the kept half."""

    complex_out: ClassVar[bool] = False
    is_double: ClassVar[bool] = False

    def sizes(
        self, sizes: list[Size], axes: Sequence[int], wanted: Sequence[int] | None
    ) -> list[Size]:
        result = super().sizes(sizes, axes, wanted)
        last = final(axes)
        if wanted is not None and wanted[-1] == -1:
            result[last] = at_least(sizes[last] - 1, 0) * 2
        return result

    def transform(
        self, data: Array, lengths: list[int], axes: tuple[int, ...], wanted: list[int]
    ) -> Array:
        if wanted[-1] == -1:
            lengths = [*lengths[:-1], 2 * (data.shape[axes[-1]] - 1)]
        return np.fft.irfftn(data, lengths, axes)


class STFTV15(Op):
    """The transforms of the frames of a signal, each times the window in its middle."""

    transpose_frames: Bool

    def infer(
        self, signal: Tensor, window: Tensor, frame_size: Tensor, frame_step: Tensor
    ) -> tuple[Tensor, ...]:
        if signal.rank not in (None, 1, 2):
            raise IRError(f"the signal has {signal.rank} axes ({signal.shape}), it takes 1 or 2")
        kind = check_frames(signal, window, frame_size, frame_step)
        if signal.rank is None:
            return (Tensor(kind),)
        batch, length = signal.shape[:-1], signal.shape[-1]
        size, step = scalar(frame_size), scalar(frame_step)
        frames: Size = ANY
        points: Size = ANY
        if size is not None and step is not None:
            room = length - size
            if room < 0:
                raise IRError(f"a frame of {size} is longer than the signal of {length}")
            points, frames = size // 2 + 1, not_below(room, 0) // step + 1
        pair = (points, frames) if self.transpose_frames else (frames, points)
        return (Tensor(kind, Shape((*batch, *pair, 2))),)

    @quiet
    def run(
        self, signal: Array, window: Array, frame_size: Array, frame_step: Array
    ) -> tuple[Array, ...]:
        size, step = frames_of(frame_size, frame_step)
        frames = sliding_window_view(widened(signal), size, -1)[..., ::step, :]
        require(24 * prod(frames.shape))  # numbers of 64 bits, pairs of these, and narrowed ones
        points = as_pairs(np.fft.rfft(frames * centred(widened(window), size)))
        if self.transpose_frames:
            points = points.swapaxes(-2, -3)
        return (narrowed(points, signal.dtype),)


class ISTFTV16(Op):
    """The signal of an STFT: frames added up in their places, over the windows' squares."""

    center: Bool
    normalized: Bool

    def infer(
        self,
        data: Tensor,
        window: Tensor,
        frame_size: Tensor,
        frame_step: Tensor,
        length: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        if data.rank not in (None, 3, 4):
            raise IRError(f"the data has {data.rank} axes ({data.shape}), it takes 3 or 4")
        kind = check_frames(data, window, frame_size, frame_step)
        if length is not None:
            element_type(length, *INDEX)
            if length.rank not in (None, 0) and not (
                length.rank == 1 and compatible(length.shape[0], 1)
            ):
                raise IRError(f"the signal length has shape {length.shape}, it is one number")
        if data.rank is None:
            return (Tensor(kind),)
        points, frames, pair = data.shape[-3:]
        size, step = scalar(frame_size), scalar(frame_step)
        if not compatible(pair, 2):
            raise IRError(f"shape {data.shape} does not end with pairs for complex numbers")
        if size is not None and not compatible(points, size // 2 + 1):
            raise IRError(f"{points} points of a frame, a frame of {size} has {size // 2 + 1}")
        signal: Size = ANY
        if length is not None:
            signal = asked(length)
        elif size is not None and step is not None:
            signal = at_least(frames - 1, 0) * step + size - 2 * self.margin(size)
        return (Tensor(kind, Shape((*data.shape[:-3], signal))),)

    def margin(self, size: int) -> int:
        """How much of the first and of the last frame lies outside the signal."""
        return size // 2 if self.center else 0

    @quiet
    def run(
        self,
        data: Array,
        window: Array,
        frame_size: Array,
        frame_step: Array,
        length: Array | None = None,
    ) -> tuple[Array, ...]:
        size, step = frames_of(frame_size, frame_step)
        wide, weights = as_complex(widened(data)), centred(widened(window), size)
        require(8 * prod(wide.shape[:-2]) * wide.shape[-1] * size)
        frames = np.fft.irfft(wide.swapaxes(-1, -2), size)
        if self.normalized:
            frames = frames * np.float32(np.sqrt(size))
        count = frames.shape[-2]
        span = max(count - 1, 0) * step + size
        require(frames.nbytes + (2 * prod(frames.shape[:-2]) + 1) * span * frames.itemsize)
        whole = np.zeros((*frames.shape[:-2], span), frames.dtype)
        total = np.zeros(whole.shape[-1], frames.dtype)
        for index in steps(range(count)):
            place = slice(index * step, index * step + size)
            whole[..., place] += frames[..., index, :] * weights
            total[place] += weights * weights
        whole = np.divide(whole, total, out=np.zeros_like(whole), where=total != 0)
        kept = whole[..., self.margin(size) :]
        if length is None or int(length.ravel()[0]) < 0:
            wanted = whole.shape[-1] - 2 * self.margin(size)
        else:
            wanted = int(length.ravel()[0])
        result = np.zeros((*whole.shape[:-1], wanted), whole.dtype)
        result[..., : kept.shape[-1]] = kept[..., :wanted]
        return (narrowed(result, data.dtype),)


def frames_of(frame_size: Array, frame_step: Array) -> tuple[int, int]:
    """Size and step of frames."""
    size, step = int(frame_size), int(frame_step)
    not_less_than_one("frame size", size)
    not_less_than_one("frame step", step)
    return size, step


def not_less_than_one(what: str, value: int) -> None:
    """Refuse a size or step of frames that is none."""
    if value < 1:
        raise IRError(f"the {what} is {value}, the least is 1")


def check_frames(
    data: Tensor, window: Tensor, frame_size: Tensor, frame_step: Tensor
) -> ElementType:
    """The element type of a transform of frames, after the checks both directions share."""
    kind = data.type.merge(window.type)
    if not kind.is_dynamic and not kind.is_real:
        raise IRError(f"element type {kind} is not a real one")
    if window.rank not in (None, 1):
        raise IRError(f"the window has {window.rank} axes, it has one")
    for what, tensor in (("frame size", frame_size), ("frame step", frame_step)):
        element_type(tensor, *INDEX)
        if tensor.rank not in (None, 0):
            raise IRError(f"the {what} has {tensor.rank} axes, it is one number")
        value = scalar(tensor)
        if value is not None:
            not_less_than_one(what, value)
    size = scalar(frame_size)
    if size is not None and window.shape.is_static:
        (length,) = window.shape.static
        if not 1 <= length <= size:
            raise IRError(f"the window has {length} elements, a frame has {size}")
    return kind


def scalar(tensor: Tensor) -> int | None:
    """The one number a tensor holds, where it is known."""
    values = tensor.ints()
    return None if values is None else values[0]


def asked(length: Tensor) -> Size:
    """The signal length that is asked for; -1 leaves it open."""
    sizes = length.sizes()
    if not sizes or sizes[0] == -1:
        return ANY
    return as_size(sizes[0])


def count(tensor: Tensor) -> Size:
    """How many elements a list has."""
    return ANY if tensor.rank is None else tensor.shape[0]


def final(axes: Sequence[int]) -> int:
    """The last of the axes to transform, along which half of the numbers is kept."""
    if not axes:
        raise IRError("no axis to transform, the least is one")
    return axes[-1]


def half(size: Size) -> Size:
    """How many numbers are kept of a size; nothing remains nothing."""
    low, high = limits(size)
    least, most = (None if n is None else n // 2 + 1 if n > 0 else 0 for n in (low, high))
    symbol = None
    if isinstance(size, Dim) and size.low and size.symbol is not None:
        grown = size // 2 + 1
        symbol = grown.symbol if isinstance(grown, Dim) else None
    return interval(least, most, symbol)


def centred(window: Array, size: int) -> Array:
    """The window in the middle of a frame, zeros around it."""
    before = (size - len(window)) // 2
    return surrounded(window, [(before, size - len(window) - before)])


def as_complex(pairs: Array) -> Array:
    """Complex numbers from pairs."""
    kind: Any = np.complex128 if pairs.dtype == np.float64 else np.complex64
    return np.ascontiguousarray(pairs).view(kind)[..., 0]


def as_pairs(numbers: Array) -> Array:
    """Pairs from complex numbers."""
    return np.stack([numbers.real, numbers.imag], -1)
