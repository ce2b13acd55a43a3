"""Pooling with the channels kept first, for models in which nothing wants them last.

Rows are joined at full length, as one run of memory; what joins the end of a row with the
start of the next is left out when the result is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...schemas import Array
from .blocks import CACHE, Scratch, call, filling, followed, sequence
from .graph import Value
from .team import Part, spans


def planar(
    source: Value,
    output: Value,
    windows: tuple[tuple[int, int], ...],
    pads: list[tuple[int, int]],
    join: Callable[..., Any],
    factor: Array | None,
    chain: list[Any],
    threads: int,
    scratch: Scratch,
) -> list[list[Part]]:
    """The steps of a pooling; ``windows`` are sizes and strides down and across."""
    assert source.store is not None
    assert output.store is not None
    height, width = source.shape[2:]
    rows, columns = output.shape[2:]
    (tall, down), (wide, along) = windows
    # Only what windows reach is looked at; a room is made where that is not the image itself.
    reach = (rows - 1) * down + tall, (columns - 1) * along + wide
    bare = pads[0][0] == 0 and pads[1][0] == 0 and reach[0] <= height and reach[1] == width
    fill = 0.0 if join is np.add else float(np.finfo(np.float32).min)
    planes = source.store.reshape(-1, height, width)
    target = output.store.reshape(-1, rows, columns)
    each = None if factor is None or factor.ndim == 0 else factor.reshape(rows, columns)
    at_once = max(1, CACHE // (reach[0] * reach[1] * 8))
    steps: list[Part] = []
    for part, (first, stop) in enumerate(spans(len(planes), threads)):
        parts: list[Part] = []
        for begin, end in spans(stop - first, -(-(stop - first) // at_once)):
            scratch.reset()
            chosen = slice(first + begin, first + end)
            block = target[chosen]
            room = planes[chosen, : reach[0]]
            if not bare:
                room = scratch.take(part, end - begin, *reach)
                top, left = pads[0][0], pads[1][0]
                low, high = min(height, reach[0] - top), min(width, reach[1] - left)
                inner = room[:, top : top + low, left : left + high]
                parts.append(call(np.copyto, inner, planes[chosen, :low, :high]))
                borders = [
                    room[:, :top], room[:, top + low :], room[:, top : top + low, :left],
                    room[:, top : top + low, left + high :],
                ]  # fmt: skip
                parts += [filling(border, fill) for border in borders if border.size]
            lines = scratch.take(part, end - begin, rows, reach[1])
            parts += joined_down(join, room, tall, down, lines, part, scratch)
            parts += joined_along(join, lines, wide, along, block, part, scratch)
            if factor is not None:
                by = factor if each is None else each
                parts.append(call(np.multiply, block, by, out=block))
            if chain:
                parts += _finish(chain, output.store, chosen)
        steps.append(sequence(parts))
    return [steps]


def _finish(chain: list[Any], store: Array, chosen: slice) -> list[Part]:
    """What follows, image by image."""
    channels = store.shape[1]
    parts: list[Part] = []
    start = chosen.start
    while start < chosen.stop:
        image, channel = divmod(start, channels)
        stop = min(chosen.stop, (image + 1) * channels)
        place = (image, slice(channel, channel + stop - start))
        parts += followed(chain, store[place], place)
        start = stop
    return parts


def pieces(size: int, *, overlap: bool) -> list[tuple[int, int]]:
    """Runs of 1, 2, 4 ... neighbours that make up a window: their lengths and places.

    There are at least two, so that the last join can write where the result belongs.
    """
    if size == 1:
        return [(1, 0)]
    half = 1 << (size - 1).bit_length() - 1
    if overlap or size == 2 * half:
        return [(half, 0), (half, size - half)]
    found, at = [], 0
    while at < size:
        run = 1 << (size - at).bit_length() - 1
        found.append((run, at))
        at += run
    return found


def runs(
    join: Callable[..., Any], flat: Array, longest: int, unit: int, part: int, scratch: Scratch
) -> tuple[dict[int, Array], list[Part]]:
    """Joins of 2, 4, 8 ... neighbours, ``unit`` apart, at every place of a run of memory."""
    found, parts, length = {1: flat}, [], 1
    while length < longest:
        shorter, shift = found[length], length * unit
        room = scratch.take(part, shorter.size - shift)
        parts.append(call(join, shorter[:-shift], shorter[shift:], out=room))
        length *= 2
        found[length] = room
    return found, parts


def joined_down(
    join: Callable[..., Any], room: Array, size: int, stride: int, out: Array, part: int,
    scratch: Scratch,
) -> list[Part]:  # fmt: skip
    """Parts that join the rows of each window."""
    planes, rows, width = out.shape
    last = (rows - 1) * stride + 1
    if size == 1:
        return [call(np.copyto, out, room[:, :last:stride])]
    chosen = pieces(size, overlap=join is not np.add)
    longest = max(length for length, _ in chosen)
    full = longest.bit_length() - 1
    shifted = [room[:, at : at + last : stride] for at in range(size)]
    if size - 1 <= full * stride + len(chosen) - 1 or not room.flags.c_contiguous:
        parts = [call(join, shifted[0], shifted[1], out=out)]
        return parts + [call(join, out, other, out=out) for other in shifted[2:]]
    found, parts = runs(join, room.reshape(-1), longest, width, part, scratch)
    views = [
        _grid(found[length], at * width, (planes, rows, width), room.shape[1] * width,
              stride * width, 1)
        for length, at in chosen
    ]  # fmt: skip
    return parts + _chained(join, views, out)


def joined_along(
    join: Callable[..., Any], lines: Array, size: int, stride: int, out: Array, part: int,
    scratch: Scratch,
) -> list[Part]:  # fmt: skip
    """Parts that join the columns of each window."""
    planes, rows, columns = out.shape
    width = lines.shape[2]
    if size == 1:
        return [call(np.copyto, out, lines[:, :, : (columns - 1) * stride + 1 : stride])]
    chosen = pieces(size, overlap=join is not np.add)
    longest = max(length for length, _ in chosen)
    found, parts = runs(join, lines.reshape(-1), longest, 1, part, scratch)
    views = [
        _grid(found[length], at, (planes, rows, columns), rows * width, width, stride)
        for length, at in chosen
    ]
    return parts + _chained(join, views, out)


def _grid(
    flat: Array, start: int, shape: tuple[int, int, int], plane: int, row: int, column: int
) -> Array:
    """A view of a run of memory as planes of rows."""
    return np.lib.stride_tricks.as_strided(
        flat[start:], shape, (4 * plane, 4 * row, 4 * column), writeable=False
    )


def _chained(join: Callable[..., Any], views: list[Array], out: Array) -> list[Part]:
    parts = [call(join, views[0], views[1], out=out)]
    return parts + [call(join, out, view, out=out) for view in views[2:]]
