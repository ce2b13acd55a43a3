"""FakeQuantize, prepared: a few passes over what is in the nearest cache.

What is clipped to the limits first needs no choice after: at the lower limit stands level 0, at
the upper one the last. NaN goes to one of them with the first clip. The level itself is computed
as the definition does, so that halves fall to the same side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..memory import in_runs
from ..plan import MIDDLE
from ..workers import Part, integer_products, sequence, spans
from .repeats import repeats
from .rooms import NEAR, Rooms, in_rooms, rooms

#: What is so much smaller than the largest of levels is nothing.
NOTHING = np.float32(2**-20)
#: What makes int8 of levels from zero on, less the middle one.
MIDDLE_BIT = np.uint8(MIDDLE)
#: So few planes are taken one by one.
FEW = 16
#: Repeats a row so many times, in memory that is kept.
Tile = Callable[[Array, int], Array]


class Rounding(NamedTuple):
    """``gain * rint(scale * x + shift) + first`` of what lies between two limits.

    Each is one number, or an array that goes with what is rounded; None where it changes nothing.
    """

    low: Array
    high: Array
    scale: Array | None
    shift: Array | None
    gain: Array | None
    first: Array | None
    #: The last level.
    steps: int

    @property
    def falls(self) -> bool:
        """Whether NaN becomes the lower limit."""
        return self.steps > 1

    def at(self, index: Any) -> Rounding:
        """What goes with some of the whole."""

        def some(array: Array | None) -> Any:
            return array[index] if array is not None and array.ndim else array

        low, high, scale, shift, gain, first, steps = self
        return Rounding(
            some(low), some(high), some(scale), some(shift), some(gain), some(first), steps
        )


def rounding(last: int, limits: Iterable[Array]) -> Rounding | None:
    """What a FakeQuantize does, of so many levels and one more, with these four limits.

    None unless each lower limit is a number below its upper one, and none of what is made of them
    is beyond float32.
    """
    known = [np.asarray(limit) for limit in limits]
    low, high, begin, end = small = [_distinct(limit) for limit in known]
    if not all(bool(np.isfinite(limit).all()) for limit in small) or not (low < high).all():
        return None
    steps = np.float32(last)
    shape = np.broadcast_shapes(*(limit.shape for limit in known))

    def whole(array: Any) -> Array:
        found = np.asarray(array)
        return np.broadcast_to(found, shape) if found.ndim else found

    def unless(idle: float, array: Any) -> Array | None:
        return None if (np.asarray(array) == idle).all() else whole(array)

    with np.errstate(all="ignore"):
        scale, gain = steps / (high - low), (end - begin) / steps
        shift, first = -low * scale, begin
        if (scale == 1).all() and (low == 2 * np.rint(low / 2)).all():
            # What is rounded may as well be lifted to the levels after that, and by the way. By an
            # even number: halves fall to the even side.
            shift, first = np.zeros_like(shift), begin - low * gain
            nothing = NOTHING * np.maximum(np.abs(begin), np.abs(end))
            first = np.where(np.abs(first) <= nothing, np.float32(0), first)
    if not all(np.isfinite(array).all() for array in (scale, gain, shift, first)):
        return None
    # Where they change nothing, numbers are levels themselves.
    return Rounding(
        whole(low), whole(high), unless(1, scale), unless(0, shift), unless(1, gain),
        unless(0, first), last,
    )  # fmt: skip


def _distinct(array: Array) -> Array:
    """An array with one place along axes over which it repeats."""
    if not array.ndim:
        return array
    return array[tuple(slice(None) if step else slice(0, 1) for step in array.strides)]


def quantized(
    numbers: Rounding,
    block: Array,
    target: Array,
    tile: Tile,
    *,
    finite: bool = False,
    own: Rooms | None = None,
) -> Part:
    """A block rounded to levels, as far as the numbers go with it; it may be known as finite.

    A target of int8 is given levels that are such. Temporaries are the plan's own, or a thread's.
    """
    if not any(array is not None and array.ndim for array in numbers[:6]):
        # Numbers alike for all are met in the order in which they lie.
        order = sorted(range(block.ndim), key=lambda axis: -block.strides[axis])
        block, target = block.transpose(order), target.transpose(order)
    axis = next((axis for axis, size in enumerate(block.shape) if size > 1), 0)
    lead = (slice(None),) * axis
    parts: list[Part] = []
    pieces = -(-block.size // NEAR)
    beside = target.strides[axis] == target.itemsize and prod(block.shape[axis + 1 :]) > 1
    if beside and block.shape[axis] <= FEW:
        # Planes become channels side by side: bytes with gaps between are copied plane by plane.
        pieces = max(pieces, block.shape[axis])
    for run in spans(block.shape[axis], pieces):
        some = (*lead, slice(*run))
        given, made = block[some], target[some]
        parts.append(_quantized(numbers.at(some), given, made, tile, own, finite=finite))
    return sequence(parts)


def _quantized(
    numbers: Rounding, block: Array, target: Array, tile: Tile, own: Rooms | None, *, finite: bool
) -> Part:
    narrow = target.dtype == np.int8
    if narrow and _is_cast(numbers):
        return _cast(numbers, block, target, tile, own, finite=finite)
    scaled_first = finite and numbers.scale is not None and not narrow
    if scaled_first:
        numbers = _after_scaling(numbers)
    channels = block.shape[-1]
    steps = _steps(numbers, channels, finite=finite, scaled_first=scaled_first)
    if narrow and numbers.first is not None and not numbers.first.ndim:
        steps[-1] = partial(_put_level, int(numbers.first)), None
    elif narrow:
        steps.append((_put, None))
    arrays = [array for _, array in steps if array is not None and array.ndim]
    by_rows = not any(any(array.strides[:-1]) for array in arrays)
    times = repeats(block.size // channels, channels) if by_rows else 1
    flat = (-1, times * channels) if by_rows else block.shape

    def beside(array: Array | None, times: int) -> Array | None:
        if array is None or not array.ndim or not by_rows:
            return array
        return tile(array[(0,) * (array.ndim - 1)], times)

    # What has gaps is met as it lies: read by the first step, written by the last.
    read = 0 if block.flags.c_contiguous else 1
    written = 0 if target.flags.c_contiguous and not narrow else 1
    lies = [at < read or at >= len(steps) - written for at in range(len(steps))]
    bound = [
        (function, beside(array, 1 if whole else times), whole)
        for (function, array), whole in zip(steps, lies, strict=True)
    ]
    opening = block if lies[0] else block.reshape(flat)

    def make(*rooms: Array) -> list[Part]:
        room = rooms[0] if written else target
        views = room.reshape(flat), room.reshape(block.shape)
        parts: list[Part] = []
        left = opening
        for at, (function, other, whole) in enumerate(bound):
            out = target if written and at == len(bound) - 1 else views[whole]
            left = views[whole] if at else left
            others = () if other is None else (other,)
            parts.append(partial(function, left, *others, out=out))
        return parts

    return in_rooms(make, [block.size] * written, own)


def _steps(
    numbers: Rounding, channels: int, *, finite: bool, scaled_first: bool
) -> list[tuple[Callable[..., Any], Array | None]]:
    """The functions in their order, each with what stands beside the numbers."""
    low, high, scale, shift, gain, first, _ = numbers
    more = ((np.multiply, scale), (np.add, shift), (np.rint, None), (np.multiply, gain))
    steps: list[tuple[Callable[..., Any], Array | None]] = [
        (function, array)
        for function, array in (*more, (np.add, first))
        if array is not None or function is np.rint
    ]
    if finite and not low.ndim and not high.ndim:
        place = next(at for at, (function, _) in enumerate(steps) if function is np.rint)
        steps.insert(place if scaled_first else 0, (partial(_clipped, low, high), None))
        return steps
    # Of an array and a number the larger one takes twice as long as of an array and a row.
    ends = [end if end.ndim else np.broadcast_to(end, channels) for end in (low, high)]
    if numbers.falls:
        return [(np.fmax, ends[0]), (np.minimum, ends[1]), *steps]
    return [(np.fmin, ends[1]), (np.maximum, ends[0]), *steps]


def _after_scaling(numbers: Rounding) -> Rounding:
    """The same where scale and shift come before the limits: those are alike for all then.

    Where the level that stands for zero is, too, and an even one, nothing is added before or after
    it: halves fall to the even side then as before.
    """
    _, _, scale, shift, gain, first, last = numbers
    zero = 0.0 if shift is None else float(np.rint(shift.reshape(-1)[0]))
    low, high = (np.asarray(end, np.float32) for end in (-zero, last - zero))
    apart = shift is None or (np.abs(shift - np.float32(zero)) > NOTHING * last).any()
    if apart or zero % 2:
        low, high = (np.asarray(end, np.float32) for end in (0, last))
        return numbers._replace(low=low, high=high)
    step = np.float32(1) if gain is None else gain
    begin = np.float32(0) if first is None else first
    lowest = begin + np.float32(zero) * step
    most = np.maximum(np.abs(begin), np.abs(begin + np.float32(last) * step))
    given = None if (np.abs(lowest) <= NOTHING * most).all() else np.asarray(lowest)
    return Rounding(low, high, scale, None, gain, given, last)


def _is_cast(numbers: Rounding) -> bool:
    """Whether the library rounds and clips, for levels that fill bytes from the least on."""
    library, first = integer_products(), numbers.first
    if library is None or not library.rounds or not numbers.falls or numbers.gain is not None:
        return False
    if first is None:
        return not numbers.low.ndim and bool(numbers.low == -MIDDLE)
    return not first.ndim and (bool(first == -MIDDLE) or _is_lifted(numbers))


def _is_lifted(numbers: Rounding) -> bool:
    """Whether numbers that are rounded as they are become bytes from the least on."""
    low, first = numbers.low, numbers.first
    if numbers.scale is not None or numbers.shift is not None or numbers.gain is not None:
        return False
    return first is not None and not low.ndim and bool(low + first == -MIDDLE)


def _cast(
    numbers: Rounding, block: Array, target: Array, tile: Tile, own: Rooms | None, *, finite: bool
) -> Part:
    """What the library does most of."""
    library = integer_products()
    assert library is not None
    # Of what is lifted to bytes first, that is all; levels from zero on are turned to int8 after.
    lifted = _is_lifted(numbers)
    kind, least = (np.int8, -MIDDLE) if numbers.first is None or lifted else (np.uint8, 0)
    last = least + numbers.steps
    limit = np.full(block.size, last, kind) if last < np.iinfo(kind).max else None
    given = [(np.multiply, numbers.scale), (np.add, numbers.first if lifted else numbers.shift)]
    steps = [(f, x) for f, x in given if x is not None]
    rows = not any(x.ndim and any(x.strides[:-1]) for _, x in steps)
    channels = block.shape[-1]
    times = repeats(block.size // channels, channels) if rows and block.flags.c_contiguous else 1
    shape = (-1, times * channels) if times > 1 else block.shape
    bound = [
        (f, tile(x[(0,) * (x.ndim - 1)], times) if x.ndim and times > 1 else x) for f, x in steps
    ]
    opening = block.reshape(shape)
    # What is computed need not be rounded between the two.
    alike = block.flags.c_contiguous and not any(x.ndim for _, x in steps)
    in_line = finite and len(steps) == 2 and alike
    lies = not steps and block.flags.c_contiguous
    flat = target.reshape(-1).view(kind) if target.flags.c_contiguous else None
    runs = _runs_of(target)

    def make(room: Array, more: Array) -> list[Part]:
        parts: list[Part] = []
        if in_line:
            scale, shift = (float(x) for _, x in steps)
            parts.append(library.lined(scale, shift, block, room))
        elif not lies:
            left, made = opening, room.reshape(opening.shape)
            for function, other in bound:
                parts.append(partial(function, left, other, out=made))
                left = made
            if not bound:
                parts.append(partial(np.copyto, made, opening))
        # Bytes are written to where they have gaps as few times as can be.
        out = more.view(kind)[: block.size] if flat is None else flat
        parts.append(library.rounded(block if lies else room, out))
        if limit is not None:
            parts.append(partial(np.minimum, out, limit, out=out))
        if kind is np.uint8:
            parts.append(partial(np.bitwise_xor, out, MIDDLE_BIT, out=out))
        if flat is None:
            parts.append(partial(np.copyto, runs, out.view(runs.dtype).reshape(runs.shape)))
        return parts

    return in_rooms(make, (block.size, -(-block.size // 4)), own)


def _runs_of(target: Array) -> Array:
    """Bytes as an array of runs of memory, in their order; as they are, where there is no such."""
    steps = [step for step, size in zip(target.strides, target.shape, strict=True) if size > 1]
    if sorted(steps, reverse=True) != steps:
        return target
    return in_runs(np.empty(target.shape, target.dtype), target)[1]


def _put(block: Array, out: Array) -> None:
    np.copyto(out, block, casting="unsafe")


def _put_level(first: int, block: Array, out: Array) -> None:
    """Levels from 0 on, less so many."""
    # What has gaps is better written but once.
    room = rooms.take(1, -(-block.size // 4)).view(np.uint8)[: block.size].reshape(block.shape)
    np.copyto(room, block, casting="unsafe")
    np.add(room, np.uint8(first % 256), out=out.view(np.uint8))


def _clipped(low: Array, high: Array, block: Array, out: Array) -> None:
    block.clip(low, high, out)
