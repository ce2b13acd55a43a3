"""Normalised groups of channels, prepared: means and variances, then a scale and a shift of each.

An MVN over pixels is such a thing, whose groups are channels. Both go over blocks that stay in
cache: rows of pixels where channels are kept last, else channels. Of each block its own sums, and
squares of what numbers are away from its own means, are enough:

    sum((x - m) ** 2) = sum over blocks of (squares + count * (mean of the block - m) ** 2)

What workers find of their blocks is joined between, for all to read; an image that is not worth
sharing is one's from the first to the last.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import Node, Steps, scale_and_shift
from ..workers import Part, cuts, sequence, spans
from .blocks import CACHE, Scratch, followed, followers
from .repeats import repeats

#: Means of so many deviations are taken away before numbers are scaled: else these lose digits.
FAR = np.float32(32)
#: Images of fewer numbers are not worth sharing: workers wait for each other twice.
SHARED = 1 << 16


class Wanted(NamedTuple):
    """How many groups; what is added to their variance, or to its root; what follows."""

    groups: int
    eps: np.float32
    inside: bool
    scale: Array
    shift: Array
    steps: Steps


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a group normalisation; None where there is no kernel for it."""
    op: Any = node.op
    scale, shift = (other.constant for other in node.inputs[1:])
    if scale is None or shift is None or scale.dtype != np.float32 or shift.dtype != np.float32:
        return None
    eps = np.float32(op.epsilon)
    wanted = Wanted(op.num_groups, eps, True, scale, shift, node.epilogue)
    return _normalized(node, wanted, abreast, scratch)


def channels(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an MVN over pixels, with the scale and shift of each channel that follow."""
    op: Any = node.op
    shape = node.outputs[0].shape
    scale, shift, count = scale_and_shift(node.epilogue, shape)
    factor, term = scale.astype(np.float32), shift.astype(np.float32)
    steps = node.epilogue[count:]
    wanted = Wanted(shape[1], np.float32(op.eps), op.inside(), factor, term, steps)
    return _normalized(node, wanted, abreast, scratch)


def _normalized(
    node: Node, wanted: Wanted, abreast: int, scratch: Scratch
) -> list[list[Part]] | None:
    value, output = node.inputs[0], node.outputs[0]
    source, target, last = value.store, output.store, value.last
    if value.type != np.float32 or last != output.last or not prod(value.shape):
        return None
    if source is None or target is None or not source.flags.c_contiguous:
        return None
    images, channels = value.shape[:2]
    place = source.ndim - 1 if last else 1
    axis = next((i for i, size in enumerate(source.shape[1:], 1) if size > 1), 1)
    lanes = _lanes(source, axis, abreast)
    # Blocks of channels have no other block's; of blocks of pixels each has all channels.
    runs = [run for lane in lanes for run in lane]
    slots = {run: 0 if axis == place else slot for slot, run in enumerate(runs)}
    pixels = source[0].size // channels
    counts = [pixels if axis == place else pixels * (end - begin) // source.shape[axis]
              for begin, end in (runs[:1] if axis == place else runs)]  # fmt: skip
    # NumPy is slow on short rows: some are taken for one, beside numbers as often as that is.
    rows = [repeats(count, channels) for count in counts] if last else [1]
    scratch.shared.reset()
    sums, squares, *numbers = found = [
        scratch.shared.take(0, images, count, channels)
        for count in (*[len(counts)] * 2, *[max(rows)] * 3)
    ]
    #: Of each image, whether means are far away.
    apart = scratch.shared.take(0, images)
    after = followers(wanted.steps, output, scratch, premultiplied=node.premultiplied)

    def join(some: slice) -> Part:
        given = (array[some] for array in (*found, apart))
        return _joined(wanted, np.array(counts, np.float32), *given)

    measuring: list[Part] = []
    scaling: list[Part] = []
    work = [(image, lane) for image in range(images) for lane in lanes]
    for part, (image, lane) in scratch.dealt(work):
        parts: tuple[list[Part], list[Part]] = [], []
        scratch.reset()
        longest = max(end - begin for begin, end in lane)
        space = scratch.take(part, longest * prod(source.shape[axis + 1 :]))
        middles = scratch.take(part, max(rows), channels)
        for run in lane:
            index: Any = (image, *[slice(None)] * (axis - 1), slice(*run))
            some, slot = slice(*run) if axis == place else slice(None), slots[run]
            block, made = source[index], target[index]
            times = rows[slot] if last else 1
            wide = (-1, times * channels) if last else (block.shape[0], -1)
            flat = block.reshape(wide)
            room = space[: block.size].reshape(flat.shape)
            # What lies among other channels, or becomes levels, is written once, when all is done.
            is_plain = made.flags.c_contiguous and made.dtype == np.float32
            beside = made if is_plain else room.reshape(made.shape)
            total, spread = sums[image, slot, some], squares[image, slot, some]
            if last:
                three = [array[image, :times].reshape(-1) for array in numbers]
                parts[0].append(_measured(flat, room, middles[:times], total, spread))
            else:
                three = [array[image, 0, some, None] for array in numbers]
                parts[0].append(partial(_measure_planes, flat, room, total, spread))
            parts[1].append(_scaled(flat, three, apart[image:], beside.reshape(wide)))
            parts[1].extend(followed(after, beside, index, made))
        if len(lanes) == 1:
            parts[0].extend([join(slice(image, image + 1)), *parts[1]])
        measuring.append(sequence(parts[0]))
        scaling.append(sequence(parts[1]))
    return [measuring, [join(slice(None))], scaling] if len(lanes) > 1 else [measuring]


def _lanes(source: Array, axis: int, abreast: int) -> list[list[tuple[int, int]]]:
    """The blocks of an image along an axis, in as many lists as share it."""
    each = 1 if source[0].size < SHARED else cuts(len(source), abreast)
    per_row = 4 * prod(source.shape[axis + 1 :])
    return [
        [(begin + first, begin + stop)
         for first, stop in spans(end - begin, -(-(end - begin) * per_row // (CACHE // 2)))]
        for begin, end in spans(source.shape[axis], each)
    ]  # fmt: skip


def _measured(flat: Array, room: Array, middles: Array, total: Array, spread: Array) -> Part:
    """What sums up channels, and the squares of what they are away from their means."""
    ones = np.ones(len(flat), np.float32)
    sums = np.empty(flat.shape[1], np.float32)
    by_row = sums.reshape(middles.shape)
    beside, mean = middles.reshape(-1), np.empty(len(total), np.float32)
    share = np.array(len(total) / flat.size, np.float32)
    return sequence([
        partial(np.matmul, ones, flat, sums),
        partial(np.add.reduce, by_row, 0, None, total),
        partial(np.multiply, total, share, mean),
        partial(np.copyto, middles, mean),
        partial(np.subtract, flat, beside, room),
        partial(np.multiply, room, room, room),
        partial(np.matmul, ones, room, sums),
        partial(np.add.reduce, by_row, 0, None, spread),
    ])  # fmt: skip


def _measure_planes(flat: Array, room: Array, total: Array, spread: Array) -> None:
    """The same for channels that are rows."""
    ones = np.ones(flat.shape[1], np.float32)
    np.matmul(flat, ones, total)
    np.subtract(flat, (total / np.float32(flat.shape[1]))[:, None], room)
    np.multiply(room, room, room)
    np.matmul(room, ones, spread)


def _joined(
    wanted: Wanted,
    counts: Array,
    sums: Array,
    squares: Array,
    mean: Array,
    factor: Array,
    offset: Array,
    apart: Array,
) -> Part:
    """What joins what was found of blocks (images, blocks, channels) to what scales and shifts.

    Groups are few numbers: what takes long is to call NumPy, so all is bound to its memory before.
    """
    groups, images = wanted.groups, len(sums)
    shape = images, len(counts), groups, sums.shape[2] // groups
    sums, squares = sums.reshape(shape), squares.reshape(shape)
    means, factors, offsets = (
        array.reshape(images, -1, *shape[2:]) for array in (mean, factor, offset)
    )
    steep, bias = (array.reshape(1, 1, *shape[2:]) for array in (wanted.scale, wanted.shift))
    beside, most = counts[:, None, None], FAR * np.abs(steep).max()
    members, eps = np.array(counts.sum() * shape[3], np.float32), np.array(wanted.eps)
    centre, deviation = np.empty((2, images, 1, groups, 1), np.float32)
    scale, moved, sizes = np.empty((3, images, 1, *shape[2:]), np.float32)
    away = np.empty(shape, np.float32)
    root: list[Part] = [partial(np.add, deviation, eps, deviation)]
    root.insert(wanted.inside, partial(np.sqrt, deviation, deviation))
    parts: list[Part] = [
        partial(np.add.reduce, sums, (1, 3), None, centre, True),
        partial(np.divide, centre, members, centre),
        partial(np.divide, sums, beside, away),
        partial(np.subtract, away, centre, away),
        partial(np.multiply, away, away, away),
        partial(np.multiply, away, beside, away),
        partial(np.add, away, squares, away),
        partial(np.add.reduce, away, (1, 3), None, deviation, True),
        partial(np.divide, deviation, members, deviation),
        *root,
        partial(np.divide, steep, deviation, scale),
        partial(np.multiply, centre, scale, moved),
        partial(np.abs, moved, sizes),
        partial(np.copyto, factors, scale),
    ]

    def hand_out() -> None:
        far = np.fmax.reduce(sizes, None) > most  # NaN of one group say nothing of others
        apart[...] = far
        if far:
            np.copyto(means, centre)
            np.copyto(offsets, bias)
        else:
            np.subtract(bias, moved, moved)
            np.copyto(offsets, moved)

    return sequence([*parts, hand_out])


def _scaled(flat: Array, numbers: list[Array], apart: Array, made: Array) -> Part:
    """What scales and shifts; means that are far away are taken away before."""
    mean, factor, offset = numbers
    near = sequence([
        partial(np.multiply, flat, factor, made), partial(np.add, made, offset, made)
    ])  # fmt: skip

    def run() -> None:
        if not apart[0]:
            near()
            return
        np.subtract(flat, mean, made)
        np.multiply(made, factor, made)
        np.add(made, offset, made)

    return run
