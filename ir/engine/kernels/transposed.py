"""Convolution the other way round, prepared: a small convolution for each phase of the output.

With strides (2, 2), say, the outputs at even rows and columns are made of other taps than those
at odd ones; each of these four images is a convolution of the input by its own taps, whose
results are written where they belong. Nothing is added up in memory, and nothing is zeroed.

Of images so small that phases would meet hardly anything but padding, each element is multiplied
by all taps, and these products are added where they are laid.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import Node
from ..workers import Part, shares, spans
from .blocks import CACHE, Follower, Scratch, epilogue, filling, followed, padded, sequence, taps
from .calls import call
from .lines import laid_out
from .products import MILLION, columns_in_blocks, multiplied, sums

#: More groups than this are left to the definition, unless each is one channel.
GROUPS = 8
#: Phases may take so many times as many products as there are.
WASTED = 2
#: Rows of so many are multiplied one by one, to where they belong.
LONG = 16


class Phase(NamedTuple):
    """Some stops of the output on an axis, and the taps that they are made of."""

    #: The first stop, and how many there are, a stride apart.
    start: int
    stops: int
    #: The taps from the one on that meets the earliest element.
    taps: list[int]
    #: Which elements meet: the earliest one of the first stop, and how far the next is.
    first: int
    step: int

    @property
    def stop(self) -> int:
        """Behind the last element."""
        return self.first + (len(self.taps) - 1) * self.step + self.stops


class Along(NamedTuple):
    """The numbers of one axis."""

    kernel: int
    stride: int
    dilation: int
    begin: int

    def phases(self, low: int, high: int) -> Iterator[Phase]:
        """The phases of the stops from ``low`` to ``high``."""
        for rest in range(self.stride):
            start = low + (rest - low - self.begin) % self.stride
            if start >= high:
                continue
            chosen = [k for k in range(self.kernel) if k * self.dilation % self.stride == rest]
            count = -(-(high - start) // self.stride)
            # Element i is laid from i * stride - begin on, tap by tap.
            met = [(start + self.begin - k * self.dilation) // self.stride for k in chosen]
            step = met[0] - met[1] if len(met) > 1 else 1
            yield Phase(start, count, chosen[::-1], met[-1] if met else 0, step)

    def inside(self, element: int, size: int) -> tuple[slice, slice] | None:
        """The taps of an element that are laid inside, and where; None if there are none."""
        first = element * self.stride - self.begin
        begin = max(0, -(first // self.dilation))
        end = min(self.kernel, -((first - size) // self.dilation))
        if begin >= end:
            return None
        low, high = (first + tap * self.dilation for tap in (begin, end - 1))
        return slice(begin, end), slice(low, high + 1, self.dilation)


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a transposed convolution; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    weights = node.inputs[1].constant
    if weights is None or value.type != np.float32 or not (value.last and output.last):
        return None
    if len(value.shape) not in (3, 4) or not output.nbytes or not value.nbytes:
        return None
    assert value.store is not None
    assert output.store is not None
    lead = 4 - len(value.shape)
    grouped = weights if node.kind.startswith("Group") else weights[None]
    grouped = grouped.reshape(*grouped.shape, *[1] * lead)
    if len(grouped) > GROUPS and grouped.shape[1:3] != (1, 1):
        return None
    # A single axis is taken as rows, which workers share.
    down, across = axes_of(node) + [Along(1, 1, 1, 0)] * lead
    both = value.store, output.store
    source, target = (store[:, :, None] if lead else store for store in both)
    work = Work(grouped, (down, across), source, target, epilogue(node, scratch), scratch)
    return work.steps(abreast, narrow=bool(lead))


class Work(NamedTuple):
    """A transposed convolution to be done: from images to images (N, H, W, C)."""

    #: (groups, inner, outer, kh, kw)
    weights: Array
    axes: tuple[Along, Along]
    source: Array
    target: Array
    followers: list[Follower]
    scratch: Scratch

    def steps(self, abreast: int, *, narrow: bool = False) -> list[list[Part]]:
        """The steps, in the way that does least."""
        if len(self.weights) == 1:
            if self.wasted() >= WASTED:
                return by_elements(self, abreast, narrow=narrow)
            if prod(self.target.shape[:3]) < self.target.shape[3]:
                return by_channels(self, abreast, narrow=narrow)
        return by_rows(self, abreast, narrow=narrow)

    def wasted(self) -> float:
        """How many times as many products phases take as there are, those with padding too."""
        met = 1
        for axis, size in zip(self.axes, self.target.shape[1:3], strict=True):
            met *= sum(len(phase.taps) * phase.stops for phase in axis.phases(0, size))
        return met / prod((*self.source.shape[1:3], *self.weights.shape[3:]))

    def followed(self, image: int, rows: slice, channels: slice, *, narrow: bool) -> list[Part]:
        """What follows, on some rows and channels of an image."""
        block = self.target[image, rows, :, channels]
        if narrow:
            return followed(self.followers, block[:, 0], (image, rows, channels))
        return followed(self.followers, block, (image, rows, slice(None), channels))


def by_rows(work: Work, abreast: int, *, narrow: bool) -> list[list[Part]]:
    """Phase by phase; workers share the rows."""
    weights, (down, across), source, target, _, scratch = work
    products = Products(weights, work.axes, target, scratch)
    images, height, width, channels = target.shape
    reached = -(-weights.shape[3] // down.stride) * -(-weights.shape[4] // across.stride)
    per_row = 4 * width * (channels + source.shape[3] * reached // (down.stride * across.stride))
    at_once = max(1, CACHE // per_row // down.stride) * down.stride
    lanes: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(images, height, abreast)):
        parts: list[Part] = []
        for low in range(top, bottom, at_once):
            scratch.reset()
            rows = slice(low, min(low + at_once, bottom))
            parts += products.parts(source[image], target[image], rows, part)
            parts += work.followed(image, rows, slice(None), narrow=narrow)
        lanes.append(sequence(parts))
    return [lanes]


def by_channels(work: Work, abreast: int, *, narrow: bool) -> list[list[Part]]:
    """Phase by phase; workers share the channels, so that each weight is fetched by one alone."""
    weights, _, source, target, _, scratch = work
    whole = slice(0, target.shape[1])
    lanes: list[list[Part]] = [[] for _ in target]
    for part, channels in channel_runs(target.shape[3], abreast, scratch):
        products = Products(weights[:, :, channels], work.axes, target, scratch)
        for image, given in enumerate(source):
            scratch.reset()
            parts = products.parts(given, target[image, :, :, channels], whole, part)
            parts += work.followed(image, whole, channels, narrow=narrow)
            lanes[image].append(sequence(parts))
    return lanes


def by_elements(work: Work, abreast: int, *, narrow: bool) -> list[list[Part]]:
    """Each element of the input times all taps, added where they are laid.

    For small images: there phases would meet hardly anything but padding.
    """
    weights, axes, source, target, _, scratch = work
    kernel, whole = weights.shape[3:], slice(0, target.shape[1])
    lanes: list[list[Part]] = [[] for _ in target]
    for part, channels in channel_runs(target.shape[3], abreast, scratch):
        turned = np.ascontiguousarray(weights[0, :, channels].transpose(0, 2, 3, 1))
        matrix = turned.reshape(len(turned), -1)
        places = prod(source.shape[1:3])
        blocks = columns_in_blocks(matrix, places) if places > 1 else None
        for image, given in enumerate(source):
            scratch.reset()
            out = target[image, :, :, channels]
            laid = scratch.take(part, *given.shape[:2], *kernel, out.shape[2])
            flat = scratch.take(part, *given.shape)
            rows = flat.reshape(-1, len(matrix))
            made = laid.reshape(places, -1)
            parts = [call(np.copyto, flat, given)]
            if blocks is None:
                parts.append(call(np.matmul, rows, matrix, out=made))
            else:
                room = sums(scratch, part, len(matrix), places)
                parts += multiplied(rows, blocks, made, rows=places, room=room)
            parts.append(filling(out, 0.0))
            parts += added(laid, axes, out)
            parts += work.followed(image, whole, channels, narrow=narrow)
            lanes[image].append(sequence(parts))
    return lanes


def added(laid: Array, axes: tuple[Along, Along], out: Array) -> list[Part]:
    """Parts that add products (H, W, kh, kw, C) to where they belong in an image (H, W, C)."""
    parts: list[Part] = []
    elements = np.ndindex(laid.shape[:2])
    down, across = axes
    for row, column in elements:
        tall = down.inside(row, out.shape[0])
        wide = across.inside(column, out.shape[1])
        if tall is None or wide is None:
            continue
        (taps, rows), (others, columns) = tall, wide
        into = out[rows, columns]
        parts.append(call(np.add, into, laid[row, column, taps, others], out=into))
    return parts


def channel_runs(channels: int, abreast: int, scratch: Scratch) -> Iterator[tuple[int, slice]]:
    """The channels as parts for workers, in whole vectors of a processor where that goes."""
    unit = 16 if channels % 16 == 0 else 1
    for part, (first, stop) in scratch.dealt(spans(channels // unit, abreast)):
        yield part, slice(first * unit, stop * unit)


def axes_of(node: Node) -> list[Along]:
    """The numbers of each axis."""
    op: Any = node.op
    sizes, results = node.inputs[0].shape[2:], node.outputs[0].shape[2:]
    kernel = node.inputs[1].shape[-len(sizes) :]
    wanted: list[int | None] = list(results) if len(node.inputs) > 2 else [None] * len(sizes)
    return [
        Along(
            kernel[axis], op.strides[axis], op.dilations[axis],
            int(op.spread_pads(axis, size, kernel[axis], wanted[axis])[0]),
        )
        for axis, size in enumerate(sizes)
    ]  # fmt: skip


class Products:
    """Makes parts for some rows of the output."""

    def __init__(
        self, weights: Array, axes: tuple[Along, Along], target: Array, scratch: Scratch
    ) -> None:
        #: (groups, inner, outer, kh, kw)
        self.weights, self.scratch = weights, scratch
        self.down, self.across = axes
        self._matrices: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}
        strides = [axis.stride for axis in axes]
        #: How many stops a phase has along a row, and in an image.
        self._along = -(-target.shape[2] // strides[1])
        self._places = self._along * -(-target.shape[1] // strides[0])

    def parts(self, source: Array, target: Array, rows: slice, part: int) -> list[Part]:
        """Parts that make these rows of an image (H, W, C), phase by phase."""
        down = list(self.down.phases(rows.start, rows.stop))
        across = list(self.across.phases(0, target.shape[1]))
        top, bottom = min(p.first for p in down), max(p.stop for p in down)
        left, right = min(p.first for p in across), max(p.stop for p in across)
        room, parts = source, []
        if min(top, left) < 0 or bottom > source.shape[0] or right > source.shape[1]:
            room = self.scratch.take(part, bottom - top, right - left, source.shape[2])
            parts = padded(source, (top, bottom), (left, right), room, 0.0)
        else:
            top = left = 0
        for row in down:
            for column in across:
                out = target[
                    row.start : rows.stop : self.down.stride, column.start :: self.across.stride
                ]
                if not row.taps or not column.taps:
                    parts.append(filling(out, 0))
                    continue
                windows = taps(
                    room[row.first - top :, column.first - left :],
                    (len(row.taps), len(column.taps)), (1, 1), (row.step, column.step),
                    (row.stops, column.stops),
                )  # fmt: skip
                parts += self._phase(windows, row, column, out, part)
        return parts

    def _phase(
        self, windows: Array, row: Phase, column: Phase, out: Array, part: int
    ) -> list[Part]:
        """Parts that multiply the windows of one phase (H, W, kh, kw, C)."""
        groups, inner, outer = self.weights.shape[:3]
        matrices = self._taken(row.taps, column.taps)
        if groups > 1 and inner == outer == 1:
            return [_summed(windows, matrices, out)]
        found: list[Part] = []
        height, width, tall, wide, _ = windows.shape
        deep, rows = tall * wide * inner, height * width
        by_lines = matrices.ndim == 3
        room = None if by_lines else sums(self.scratch, part, deep, self._places)
        for group in range(groups):
            some = windows[..., group * inner : (group + 1) * inner]
            place = out[..., group * outer : (group + 1) * outer]
            if by_lines and tall * wide == 1:
                taken = some[:, :, 0, 0]
            else:
                taken = self.scratch.take(part, height, width, deep)
                found.append(call(np.copyto, taken.reshape(some.shape), some))
            if by_lines:
                found.append(call(np.matmul, taken, matrices[group], out=place))
                continue
            made = self.scratch.take(part, rows, outer)
            flat = taken.reshape(rows, deep)
            found += multiplied(flat, matrices[group], made, rows=self._places, room=room)
            found.append(call(np.copyto, place, made.reshape(place.shape)))
        return found

    def _taken(self, rows: list[int], columns: list[int]) -> Array:
        """The weights of some taps: matrices (kh * kw * inner, outer), or taps of channels.

        Where rows of the image are too short for products of their own, or these are large, in
        blocks.
        """
        key = tuple(rows), tuple(columns)
        if key not in self._matrices:
            groups, inner, outer = self.weights.shape[:3]
            chosen = self.weights[..., rows, :][..., columns]
            if groups > 1 and inner == outer == 1:
                found = np.ascontiguousarray(chosen[:, 0, 0].transpose(1, 2, 0))
            else:
                found = np.ascontiguousarray(chosen.transpose(0, 3, 4, 1, 2))
                found = found.reshape(groups, -1, outer)
                if self._along < LONG or self._along * found[0].size > MILLION:
                    blocks = [columns_in_blocks(one, self._places) for one in found]
                    found = laid_out(np.stack(blocks)) if groups > 1 else blocks[0][None]
            self._matrices[key] = found
        return self._matrices[key]


def _summed(windows: Array, weights: Array, out: Array) -> Part:
    def run() -> None:
        np.einsum("hwijx,ijx->hwx", windows, weights, out=out)

    return run
