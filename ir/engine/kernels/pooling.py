"""Pooling, prepared: rows are joined, then columns, each in as few passes as there can be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import Node
from ..workers import Part, shares, spans
from .axis import Axis
from .blocks import Scratch, epilogue, filling, followed, sequence
from .calls import call
from .channels_first import planar
from .flat_windows import pieces
from .rows import sums

#: What of a block is read and made in between stays in a core's own cache. Some of it may be
#: pushed out: fewer calls are worth more than that.
BLOCK = 3 << 19
#: With no more channels than this, windows are joined at all places of a row and some results
#: left out: that is sooner done than many short runs.
NARROW = 64
LOWEST = float(np.finfo(np.float32).min)


def prepare(node: Node, threads: int, lanes: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a MaxPool or AvgPool over two axes; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    if (
        value.type not in ((np.float32, np.int8) if node.kind == "MaxPool" else (np.float32,))
        or len(value.shape) != 4
        or (len(node.outputs) > 1 and (node.outputs[1].users or node.outputs[1].is_output))
    ):
        return None
    narrow = np.int8 in (value.type, output.type)
    if value.last != output.last or (narrow and not value.last):
        return None
    op: Any = node.op
    gaps = op.gaps()
    if any(gap != 1 for gap in gaps):
        return None
    assert value.store is not None
    assert output.store is not None
    average = node.kind == "AvgPool"
    fill = 0.0 if average else LOWEST
    join: Callable[..., Any] = np.add if average else np.maximum
    kernel, strides = tuple(op.kernel), tuple(op.strides)
    pairs = [
        op.pads(size, axis, reach(kernel[axis], 1)) for axis, size in enumerate(value.shape[2:])
    ]
    pads = [(number(begin), number(end)) for begin, end in pairs]
    height, width = output.shape[2:]
    factor = _factor(op, value.shape, (height, width)) if average else None
    if factor is not None and not np.isfinite(factor).all():
        return None  # a window of padding alone
    followers = epilogue(node, scratch)
    # Of one channel it is all the same whether it is last: as planes, many images are one run.
    alone = value.shape[1] == 1 and not followers and not narrow
    alone = alone and value.store.flags.c_contiguous and output.store.flags.c_contiguous
    if not value.last or alone:
        down, along = (
            Axis(size, *rest)
            for size, *rest in zip(
                value.shape[2:], kernel, strides, [begin for begin, _ in pads], output.shape[2:],
                strict=True,
            )
        )  # fmt: skip
        node.looks_up = not followers and not value.last
        return planar(
            value, output, (down, along), join, fill, factor, followers, threads, scratch
        )
    reaches = all(
        size <= window - before
        for size, window, (before, _) in zip(value.shape[2:], kernel, pads, strict=True)
    )
    plain = output.type == value.type
    if (height, width) == (1, 1) and reaches and plain and factor is not None:
        return [_whole_sum(value.store, output.store, factor, followers)]
    images, _, _, channels = output.store.shape
    per_row = value.shape[3] * channels * 4 * (strides[0] + 2)
    steps: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(images, height, lanes)):
        parts: list[Part] = []
        for first, stop in spans(bottom - top, -(-(bottom - top) * per_row // BLOCK)):
            scratch.reset()
            begin, end = top + first, top + stop
            up = begin * strides[0] - pads[0][0]
            down = (end - 1) * strides[0] - pads[0][0] + kernel[0]
            source = value.store[image, max(up, 0) : max(down, 0)]
            across = room_of(source, scratch, part, end - begin, *source.shape[1:])
            place = output.store[image, begin:end]
            # What is rounded to levels in the end has not the room of numbers before.
            beside = place.dtype != source.dtype
            block = scratch.take(part, *place.shape) if beside else place
            parts += joined(
                join, source, kernel[0], strides[0], across, part, scratch, before=max(-up, 0)
            )
            step = 1 if channels <= NARROW else strides[1]
            places = (width - 1) * strides[1] // step + 1
            found = (
                block
                if places == width
                else room_of(source, scratch, part, len(block), places, channels)
            )
            parts += joined(
                join, across.transpose(1, 0, 2), kernel[1], step, found.transpose(1, 0, 2),
                part, scratch, before=pads[1][0],
            )  # fmt: skip
            if found is not block:
                # The channels of a place are copied as one element.
                whole = f"V{block.itemsize * channels}"
                chosen = found[:, :: strides[1]]
                parts.append(call(np.copyto, block.view(whole), chosen.view(whole)))
            if factor is not None:
                parts += _scaled(block, factor if factor.ndim == 0 else factor[begin:end])
            index = (image, slice(begin, end))
            parts += followed(followers, block, index, place if beside else None)
        steps.append(sequence(parts))
    return [steps]


def joined(
    join: Callable[..., Any],
    source: Array,
    size: int,
    stride: int,
    out: Array,
    part: int,
    scratch: Scratch,
    *,
    before: int = 0,
) -> list[Part]:
    """Parts that join ``size`` neighbours along the first axis, every ``stride``, into ``out``.

    The first window begins ``before`` places ahead of the source. What of a window lies outside
    is left out: so nothing is copied for the sake of padding.
    """
    # Runs of 2, 4, 8 ... neighbours, as long as they save more than they cost.
    overlap = join is np.maximum
    longest = min(
        (1 << level for level in range(size.bit_length())),
        key=lambda run: (run.bit_length() - 1) * stride + len(pieces(size, run, overlap)),
    )
    parts, runs, length = [], {1: source}, 1
    while length < longest and 2 * length <= len(source):
        shorter = runs[length]
        room = room_of(source, scratch, part, len(source) - 2 * length + 1, *source.shape[1:])
        parts.append(
            call(join, shorter[: len(room)], shorter[length : length + len(room)], out=room)
        )
        length *= 2
        runs[length] = room
    for first, stop in _alike(len(source), size, stride, before, len(out)):
        start = first * stride - before
        begin, end = max(start, 0), min(start + size, len(source))
        target = out[first:stop]
        if end <= begin:
            parts.append(filling(target, lowest(source) if overlap else 0))
            continue
        last = (stop - first - 1) * stride + 1
        given, *more = (
            runs[run][begin + at : begin + at + last : stride]
            for at, run in pieces(end - begin, length, overlap)
        )
        if not more:
            parts.append(call(np.copyto, target, given))
        for piece in more:
            parts.append(call(join, given, piece, out=target))
            given = target
    return parts


def room_of(like: Array, scratch: Scratch, part: int, *shape: int) -> Array:
    """Memory for numbers of the same type."""
    take = scratch.take_bytes if like.dtype == np.int8 else scratch.take
    return take(part, *shape)


def lowest(like: Array) -> float:
    """What is not above any number of a type."""
    return -128 if like.dtype == np.int8 else LOWEST


def _alike(places: int, size: int, stride: int, before: int, count: int) -> list[tuple[int, int]]:
    """Windows that are whole are joined together, those at the edges one by one."""
    first = min(-(-before // stride), count)
    stop = max(first, min((places - size + before) // stride + 1, count))
    edges = [(edge, edge + 1) for edge in (*range(first), *range(stop, count))]
    return [(first, stop), *edges] if first < stop else edges


def _scaled(block: Array, factor: Array) -> list[Part]:
    """Parts that multiply a block by one number, or each place by its own."""
    if factor.ndim == 0:
        return [call(np.multiply, block, factor, out=block)]
    parts: list[Part] = []
    # Rows alike are done at once, with a row of as many numbers: two runs of memory are quick.
    changes = np.flatnonzero((factor[1:] != factor[:-1]).any(axis=(1, 2))) + 1
    for first, stop in pairwise([0, *changes.tolist(), len(factor)]):
        row = np.repeat(factor[first], block.shape[-1], axis=-1)
        rows = block[first:stop]
        parts.append(call(np.multiply, rows, row, out=rows))
    return parts


def _factor(op: Any, shape: tuple[int, ...], stops: tuple[int, int]) -> Array:
    """By what the sums are multiplied: one number, or one for each place."""
    divisor = np.asarray(op.divisor(np.zeros((1, 1, *shape[2:]), np.float32)), np.float32)
    if divisor.ndim == 0:
        return np.float32(1) / divisor
    with np.errstate(divide="ignore"):
        each = (np.float32(1) / divisor).reshape(*stops, 1)
    return each if np.ptp(each) else each.reshape(-1)[0]


def _whole_sum(source: Array, target: Array, factor: Array, followers: list[Any]) -> list[Part]:
    """The sums of whole images, times a number."""
    _, height, width, channels = source.shape
    parts: list[Part] = []
    for image, made in zip(source, target, strict=True):
        flat = image.reshape(1, height * width, channels)
        parts.append(call(sums, flat, made.reshape(1, 1, channels)))
        parts.append(call(np.multiply, made, factor, out=made))
    parts += followed(followers, target, (slice(None),))
    return [sequence(parts)]
