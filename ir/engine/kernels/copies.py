"""Operations that only copy, prepared: from memory to memory, nothing in between."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from ....schemas import Array
from ..memory import CUTTING, in_blocks, in_runs
from ..plan import Node
from ..workers import Part, spans
from .blocks import Scratch, call, filling, sequence

#: Less than so many bytes are not worth sharing.
SMALL = 1 << 18
#: Operations with a kernel here.
COPIES = CUTTING | {"Concat", "Broadcast", "Pad", "Interpolate", "Roll", "Tile"}


def prepare(node: Node, threads: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an operation that copies; None where there is no kernel for it."""
    if node.kind == "Concat":
        return [_concat(node, threads)]
    if any(value.constant is None for value in node.inputs[1:]):
        return None
    if node.kind == "Pad":
        return _pad(node, threads)
    if node.kind == "Roll":
        return _roll(node, threads)
    if node.kind == "Interpolate":
        return _nearest(node, threads)
    if node.kind == "Tile":
        return [_tiled(node, threads)]
    source = node.inputs[0].array
    targets = [value.array for value in node.outputs]
    found = node.op.run(source, *(value.constant for value in node.inputs[1:]))
    if all(np.may_share_memory(view, source) or not view.size for view in found):
        return [
            [part for view, target in zip(found, targets, strict=True)
             for part in copied(view, target, threads)]
        ]  # fmt: skip
    return None if len(targets) > 1 else _reshaped(source, targets[0], threads, scratch)


def copied(source: Array, target: Array, threads: int) -> list[Part]:
    """Parts that copy an array to another of its shape."""
    pairs = in_blocks(source, target)
    if len(pairs) > 1:
        copies = [call(np.copyto, into, given) for given, into in pairs]
        runs = spans(len(copies), threads if target.nbytes >= SMALL else 1)
        return [sequence(copies[begin:end]) for begin, end in runs]
    axis = _longest(target)
    if axis is None or target.nbytes < SMALL:
        return [_copy(source, target)]
    lanes = []
    for begin, end in spans(target.shape[axis], threads):
        index = (slice(None),) * axis + (slice(begin, end),)
        lanes.append(_copy(source[index], target[index]))
    return lanes


def _copy(source: Array, target: Array) -> Part:
    given, into = in_runs(source, target)
    return call(np.copyto, into, given)


def _longest(array: Array) -> int | None:
    """The first axis worth cutting."""
    return next((axis for axis, size in enumerate(array.shape) if size > 1), None)


def _tiled(node: Node, threads: int) -> list[Part]:
    """Each axis as two, of which the first repeats the second."""
    source, target = node.inputs[0].array, node.outputs[0].array
    sizes = (1,) * (target.ndim - source.ndim) + source.shape
    split = [n for size, whole in zip(sizes, target.shape, strict=True)
             for n in (whole // size, size)]  # fmt: skip
    given = source.reshape([n for size in sizes for n in (1, size)])
    return copied(np.broadcast_to(given, split), target.reshape(split), threads)


def _reshaped(
    source: Array, target: Array, threads: int, scratch: Scratch
) -> list[list[Part]] | None:
    """A reshape that is no view: of the target it may be one, else it takes two copies."""
    if source.size != target.size:
        return None
    view = target.reshape(source.shape)
    if np.may_share_memory(view, target):
        return [copied(source, view, threads)]
    if source.dtype != np.float32:
        return None
    scratch.shared.reset()
    room = scratch.shared.take(0, source.size)
    return [
        copied(source, room.reshape(source.shape), threads),
        copied(room.reshape(target.shape), target, threads),
    ]


def _concat(node: Node, threads: int) -> list[Part]:
    """Each input to its place."""
    target = node.outputs[0].array
    axis = node.op.axis % target.ndim  # type: ignore[attr-defined]  # Concat has it
    pairs = []
    start = 0
    for value in node.inputs:
        stop = start + value.shape[axis]
        pairs.append((value.array, target[(slice(None),) * axis + (slice(start, stop),)]))
        start = stop
    return _together(pairs, threads)


def _together(pairs: Iterable[tuple[Array, Array]], threads: int) -> list[Part]:
    """Several copies in one step."""
    lanes: list[list[Part]] = [[] for _ in range(threads)]
    for source, target in pairs:
        for number, part in enumerate(copied(source, target, threads)):
            lanes[number].append(part)
    return [sequence(lane) for lane in lanes if lane] or [lambda: None]


def _roll(node: Node, threads: int) -> list[list[Part]] | None:
    """Along each axis, what does not fall off the end, and what does."""
    source, target = node.inputs[0].array, node.outputs[0].array
    steps, axes = (node.inputs[i].constant for i in (1, 2))
    if steps is None or axes is None or not source.ndim:
        return None
    by = [0] * source.ndim
    for axis, step in zip(axes.ravel(), np.broadcast_to(steps.ravel(), axes.size), strict=True):
        by[int(axis)] += int(step)
    halves = []
    for size, step in zip(source.shape, by, strict=True):
        fallen = step % size
        stays = slice(0, size - fallen), slice(fallen, size)
        halves.append([stays, (slice(size - fallen, size), slice(0, fallen))][: 1 + bool(fallen)])
    pieces = (tuple(zip(*piece, strict=True)) for piece in product(*halves))
    return [_together([(source[taken], target[put]) for taken, put in pieces], threads)]


def _pad(node: Node, threads: int) -> list[list[Part]] | None:
    """A margin of one number around the input."""
    op: Any = node.op
    source, target = node.inputs[0].array, node.outputs[0].array
    begins, ends = (node.inputs[i].constant for i in (1, 2))
    if begins is None or ends is None:
        return None
    around = list(zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True))
    if min(*map(min, around), 0) < 0:
        return None
    if op.pad_mode != "constant":
        return _mirrored(source, target, around, op.pad_mode, threads)
    fill = node.inputs[3].constant if len(node.inputs) > 3 else np.zeros((), source.dtype)
    if fill is None:
        return None
    number = fill.reshape(()).item()
    parts: list[Part] = []
    inner = target
    for axis, (begin, size) in enumerate(zip(begins.ravel().tolist(), source.shape, strict=True)):
        lead = (slice(None),) * axis
        margins = inner[(*lead, slice(0, begin))], inner[(*lead, slice(begin + size, None))]
        parts += [filling(margin, number) for margin in margins if margin.size]
        inner = inner[(*lead, slice(begin, begin + size))]
    first, *others = copied(source, inner, threads)
    return [[sequence([*parts, first]), *others]]


def _mirrored(
    source: Array, target: Array, margins: list[tuple[int, int]], mode: str, threads: int
) -> list[list[Part]] | None:
    """Margins that repeat the edge, or what is inside, with the edge (symmetric) or without it."""
    beside = {"edge": 0, "symmetric": 0, "reflect": 1}.get(mode)
    if beside is None or not source.size:
        return None
    inner = tuple(
        slice(begin, begin + size) for (begin, _), size in zip(margins, source.shape, strict=True)
    )
    parts: list[Part] = []
    for axis, ((begin, end), size) in enumerate(zip(margins, source.shape, strict=True)):
        if mode != "edge" and max(begin, end) > size - beside:
            return None  # the definition says so
        lead, stop = (slice(None),) * axis, begin + size
        room = target[(*lead, slice(None), *inner[axis + 1 :])]
        if mode == "edge":
            before, after = (
                room[(*lead, slice(begin, begin + 1))],
                room[(*lead, slice(stop - 1, stop))],
            )
        else:
            first, last = begin + beside, stop - beside
            before = room[(*lead, slice(first, first + begin))][(*lead, slice(None, None, -1))]
            after = room[(*lead, slice(last - end, last))][(*lead, slice(None, None, -1))]
        if begin:
            parts.append(call(np.copyto, room[(*lead, slice(0, begin))], before))
        if end:
            parts.append(call(np.copyto, room[(*lead, slice(stop, None))], after))
    return [copied(source, target[inner], threads), *([[sequence(parts)]] if parts else [])]


def _nearest(node: Node, threads: int) -> list[list[Part]] | None:
    """Images enlarged by whole numbers: each pixel some times, across and down."""
    source, target = node.inputs[0].store, node.outputs[0].store
    assert source is not None
    assert target is not None
    last = node.inputs[0].last
    if last != node.outputs[0].last or node.op.mode != "nearest" or not target.size:  # type: ignore[attr-defined]  # Interpolate has it
        return None
    times = [new // old for new, old in zip(target.shape, source.shape, strict=True)]
    if any(old * n != new for old, n, new in zip(source.shape, times, target.shape, strict=True)):
        return None
    shape = node.inputs[0].shape
    for axis, size in enumerate(shape):
        # Which pixel comes where is asked of the definition, for a line of numbers.
        line = np.arange(size, dtype=np.float32)
        sizes = [size if other == axis else 1 for other in range(len(shape))]
        parameters = (value.constant for value in node.inputs[1:])
        found = np.moveaxis(node.op.run(line.reshape(sizes), *parameters)[0], axis, -1)
        count = node.outputs[0].shape[axis]
        if found.shape[-1] != count or (found != np.repeat(line, count // size)).any():
            return None
    split = [size for pair in zip(source.shape, times, strict=True) for size in pair]
    wide = target.reshape(split)
    assert np.may_share_memory(wide, target)
    cut = _longest(source)
    if times[-1] == 1 or cut is None:
        # Whole pixels are copied, which are runs of memory.
        alone = tuple(range(1, 2 * source.ndim, 2))
        return [copied(np.broadcast_to(np.expand_dims(source, alone), split), wide, threads)]
    lanes: list[Part] = []
    for begin, end in spans(source.shape[cut], threads if target.nbytes >= SMALL else 1):
        run = slice(begin, end)
        some = wide[(slice(None),) * (2 * cut) + (run,)]
        lanes.append(sequence(_spread(source[(slice(None),) * cut + (run,)], some)))
    return [lanes]


def _spread(source: Array, wide: Array) -> list[Part]:
    """Parts that repeat along the last axis, and then what that made along the others."""
    parts: list[Part] = []
    for axis in reversed(range(source.ndim)):
        before = (slice(None), 0) * axis + (slice(None),)
        first = wide[(*before, 0)]
        inner = axis == source.ndim - 1
        if inner:
            parts.append(call(np.copyto, first, source))
        made = source if inner else first
        times = range(1, wide.shape[2 * axis + 1])
        parts += [call(np.copyto, wide[(*before, again)], made) for again in times]
    return parts
