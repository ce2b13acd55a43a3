"""Operations that only copy, prepared: from memory to memory, nothing in between."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ....schemas import Array
from ..memory import CUTTING, in_blocks, in_runs, lies_in
from ..plan import Node
from ..workers import Part, spans
from .blocks import Scratch, filling, sequence
from .calls import call

#: With so many pieces for each worker, none waits long for the others.
FAIR = 4
#: Less than so many bytes are not worth sharing.
SMALL = 1 << 18
#: Operations with a kernel here.
#: From so many on not all whole numbers are told apart by float32.
FAR = 1 << 24
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
    if node.kind == "Reshape" and not lies_in(source, targets[0].shape):
        return _reshaped(source, targets[0], threads, scratch)
    found = node.op.run(source, *(value.constant for value in node.inputs[1:]))
    if all(np.may_share_memory(view, source) or not view.size for view in found):
        return [
            [part for view, target in zip(found, targets, strict=True)
             for part in copied(view, target, threads)]
        ]  # fmt: skip
    return None if len(targets) > 1 else _reshaped(source, targets[0], threads, scratch)


def copied(source: Array, target: Array, threads: int) -> list[Part]:
    """Parts that copy an array to another of its shape."""
    threads = threads if target.nbytes >= SMALL else 1
    pairs = in_blocks(source, target)
    if len(pairs) >= FAIR * threads:
        copies = [call(np.copyto, into, given) for given, into in pairs]
        return [sequence(copies[begin:end]) for begin, end in spans(len(copies), threads)]
    return [_copy(given, into) for given, into in cut_alike(source, target, threads)]


def cut_alike(source: Array, target: Array, lanes: int) -> list[tuple[Array, Array]]:
    """Two arrays of a shape cut into so many runs of an axis."""
    axis = _worth_cutting(target.shape, lanes)
    if axis is None or lanes == 1:
        return [(source, target)]
    found = []
    for begin, end in spans(target.shape[axis], lanes):
        index = (slice(None),) * axis + (slice(begin, end),)
        found.append((source[index], target[index]))
    return found


def _worth_cutting(sizes: tuple[int, ...], lanes: int) -> int | None:
    """The first axis whose runs are about as long for each; else the first that can be cut."""
    even = (axis for axis, size in enumerate(sizes) if size >= FAIR * lanes or size == lanes)
    return next(even, next((axis for axis, size in enumerate(sizes) if size > 1), None))


def _copy(source: Array, target: Array) -> Part:
    pairs = in_blocks(source, target)
    if len(pairs) == 1:
        pairs = [in_runs(source, target)]
    return sequence([call(np.copyto, into, given) for given, into in pairs])


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
    if lies_in(target, source.shape):
        return [copied(source, target.reshape(source.shape), threads)]
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
    if begins is None or ends is None or not source.ndim:
        return None
    around = list(zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True))
    if any(margin < 0 for pair in around for margin in pair):
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
    """Images of other sizes, of the same pixels; of larger ones by whole numbers, in long runs."""
    source, target = node.inputs[0].store, node.outputs[0].store
    assert source is not None
    assert target is not None
    last, shape = node.inputs[0].last, node.inputs[0].shape
    if last != node.outputs[0].last or node.op.mode != "nearest" or not target.size:  # type: ignore[attr-defined]  # Interpolate has it
        return None
    places = [_places(node, axis) for axis in range(len(shape))]
    chosen = [found for found in places if found is not None]
    if len(chosen) < len(places):
        return None
    if not all(_is_repeated(found, size) for found, size in zip(chosen, shape, strict=True)):
        axes = (0, *range(2, len(shape)), 1) if last else range(len(shape))
        return _picked(source, target, [chosen[axis] for axis in axes], threads)
    times = [new // old for new, old in zip(target.shape, source.shape, strict=True)]
    split = [size for pair in zip(source.shape, times, strict=True) for size in pair]
    wide = target.reshape(split)
    assert np.may_share_memory(wide, target)
    cut = _worth_cutting(source.shape, threads)
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


def _places(node: Node, axis: int) -> Array | None:
    """Which number of an axis comes where, as the definition says; None if there is padding."""
    shape, count = node.inputs[0].shape, node.outputs[0].shape[axis]
    if shape[axis] > FAR:
        return None
    # Zeros are padding.
    line = np.arange(1, shape[axis] + 1, dtype=np.float32)
    line = line.reshape([size if other == axis else 1 for other, size in enumerate(shape)])
    parameters = [value.constant for value in node.inputs[1:]]
    found = node.op.run(line, *parameters)[0]
    if not found.size:  # of a single line a share would be none
        found = node.op.run(np.broadcast_to(line, shape), *parameters)[0]
    found = np.moveaxis(found, axis, -1)
    if found.shape[-1] != count:
        return None
    first = found.reshape(-1, count)[0].astype(np.intp) - 1
    return None if first.min() < 0 or (found != first + 1).any() else first


def _is_repeated(places: Array, size: int) -> bool:
    """Whether each number of an axis comes equally often, one after the other."""
    times = len(places) // size
    even = len(places) == times * size
    return even and bool((places == np.repeat(np.arange(size), times)).all())


def _picked(
    source: Array, target: Array, places: list[Array], threads: int
) -> list[list[Part]] | None:
    """Pixels from wherever they are, whole runs of memory at once: axes that stay as they are."""
    contiguous = source.flags.c_contiguous and target.flags.c_contiguous
    if source.dtype != target.dtype or not contiguous:
        return None
    moved = [axis for axis, size in enumerate(source.shape) if not _is_kept(places[axis], size)]
    begin, end = moved[0], moved[-1] + 1
    index = np.ravel_multi_index(np.ix_(*places[begin:end]), source.shape[begin:end]).reshape(-1)
    run = prod(source.shape[end:])
    given = source.reshape(-1, prod(source.shape[begin:end]), run)
    made = target.reshape(-1, len(index), run)
    abreast = threads if target.nbytes >= SMALL else 1
    lanes: list[Part] = []
    if len(given) >= abreast and run == 1:
        return [
            [
                call(np.take, given[first:stop], index, 1, made[first:stop], "clip")
                for first, stop in spans(len(given), abreast)
            ]
        ]
    for first, stop in spans(len(index), abreast):
        some = index[first:stop]
        lanes.append(
            sequence(
                [
                    call(np.take, image, some, 0, into[first:stop], "clip")
                    for image, into in zip(given, made, strict=True)
                ]
            )
        )
    return [lanes]


def _is_kept(places: Array, size: int) -> bool:
    """Whether an axis stays as it is."""
    return len(places) == size and _is_repeated(places, size)


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
