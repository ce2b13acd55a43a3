"""Pooling, prepared: rows are joined, then columns, each in as few passes as there can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...layers.windows import reach
from ...schemas import Array
from ...schemas.shapes import number
from .blocks import CACHE, Scratch, call, epilogue, followed, padded, sequence
from .graph import Node
from .planar import Axis, planar
from .team import Part, spans


def prepare(node: Node, threads: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a MaxPool or AvgPool over two axes; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    if (
        value.type != np.float32
        or len(value.shape) != 4
        or (len(node.outputs) > 1 and (node.outputs[1].users or node.outputs[1].is_output))
    ):
        return None
    if value.last != output.last:
        return None
    op: Any = node.op
    gaps = op.gaps()
    if any(gap != 1 for gap in gaps):
        return None
    assert value.store is not None
    assert output.store is not None
    average = node.kind == "AvgPool"
    fill = 0.0 if average else float(np.finfo(np.float32).min)
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
    if not value.last:
        down, along = (
            Axis(size, *rest)
            for size, *rest in zip(
                value.shape[2:], kernel, strides, [begin for begin, _ in pads], output.shape[2:],
                strict=True,
            )
        )  # fmt: skip
        node.looks_up = not followers
        return planar(
            value, output, (down, along), join, fill, factor, followers, threads, scratch
        )
    images, _, _, channels = output.store.shape
    whole = kernel == tuple(value.shape[2:]) and (height, width) == (1, 1)
    if whole and average and not any(map(any, pads)):
        return [_whole_mean(value.store, output.store, followers)]
    per_row = value.shape[3] * channels * 4 * (strides[0] + 2)
    rows_at_once = max(1, CACHE // per_row)
    work = [
        (image, run)
        for image in range(images)
        for run in spans(height, max(1, threads // max(1, min(images, threads))))
    ]
    steps: list[Part] = []
    for part, (image, (top, bottom)) in enumerate(work):
        parts: list[Part] = []
        for begin in range(top, bottom, rows_at_once):
            scratch.reset()
            count = min(rows_at_once, bottom - begin)
            tall = (count - 1) * strides[0] + kernel[0]
            wide = (width - 1) * strides[1] + kernel[1]
            up, left = begin * strides[0] - pads[0][0], -pads[1][0]
            source = value.store[image]
            inside = (
                up >= 0
                and left >= 0
                and up + tall <= source.shape[0]
                and (left + wide <= source.shape[1])
            )
            if inside:
                room = source[up : up + tall, left : left + wide]
            else:
                room = scratch.take(part, tall, wide, channels)
                parts += padded(source, (up, up + tall), (left, left + wide), room, fill)
            across = scratch.take(part, count, wide, channels)
            parts += joined(join, room, kernel[0], strides[0], across, part, scratch)
            block = output.store[image, begin : begin + count]
            parts += joined(
                join, across.transpose(1, 0, 2), kernel[1], strides[1], block.transpose(1, 0, 2),
                part, scratch,
            )  # fmt: skip
            if factor is not None:
                each = factor if factor.ndim == 0 else factor[begin : begin + count]
                parts.append(call(np.multiply, block, each, out=block))
            parts += followed(followers, block, (image, slice(begin, begin + count)))
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
) -> list[Part]:
    """Parts that join ``size`` neighbours along the first axis, every ``stride``, into ``out``."""
    count = out.shape[0]
    last = (count - 1) * stride + 1

    def shifted(array: Array, by: int) -> Array:
        return array[by : by + last : stride]

    if size == 1:
        return [call(np.copyto, out, shifted(source, 0))]
    steps = size.bit_length() - 1
    if size - 1 <= steps * stride + 2:
        parts = [call(join, shifted(source, 0), shifted(source, 1), out=out)]
        return parts + [call(join, out, shifted(source, i), out=out) for i in range(2, size)]
    # Runs of 2, 4, 8 ... neighbours, then two runs that overlap (or meet, for sums).
    parts, runs, length = [], {1: source}, 1
    while length * 2 <= size:
        room = scratch.take(part, source.shape[0] - 2 * length + 1, *source.shape[1:])
        shorter = runs[length]
        parts.append(
            call(join, shorter[: len(room)], shorter[length : length + len(room)], out=room)
        )
        length *= 2
        runs[length] = room
    if join is not np.add:
        if length == size:
            parts.append(call(np.copyto, out, shifted(runs[length], 0)))
        else:
            longest = runs[length]
            parts.append(call(join, shifted(longest, 0), shifted(longest, size - length), out=out))
        return parts
    begun, at = False, 0
    for run in sorted(runs, reverse=True):
        if size - at >= run:
            piece = shifted(runs[run], at)
            parts.append(call(join, out, piece, out=out) if begun else call(np.copyto, out, piece))
            begun, at = True, at + run
    return parts


def _factor(op: Any, shape: tuple[int, ...], stops: tuple[int, int]) -> Array:
    """By what the sums are multiplied: one number, or one for each place."""
    divisor = np.asarray(op.divisor(np.zeros((1, 1, *shape[2:]), np.float32)), np.float32)
    if divisor.ndim == 0:
        return np.float32(1) / divisor
    with np.errstate(divide="ignore"):
        each = (np.float32(1) / divisor).reshape(*stops, 1)
    return each if np.ptp(each) else each.reshape(-1)[0]


def _whole_mean(source: Array, target: Array, followers: list[Any]) -> list[Part]:
    """The mean of whole images, as a product with a row of equal weights."""
    images, height, width, channels = source.shape
    row = np.full((1, height * width), 1 / (height * width), np.float32)
    parts: list[Part] = []
    for image in range(images):
        flat = source[image].reshape(-1, channels)
        parts.append(call(np.matmul, row, flat, out=target[image].reshape(1, channels)))
    parts += followed(followers, target, (slice(None),))
    return [sequence(parts)]
