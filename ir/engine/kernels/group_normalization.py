"""GroupNormalization, prepared: mean, then variance, then a scale and a shift for each channel.

Each goes over blocks that stay in cache: rows of pixels where channels are kept last, else
channels. What workers find of their blocks is joined between, for all to read.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....schemas import Array
from ..plan import Node
from ..workers import Part, sequence, spans
from .blocks import CACHE, Scratch, epilogue, followed
from .repeats import repeats


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a group normalisation; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    scale, shift = (other.constant for other in node.inputs[1:])
    source, target, last = value.store, output.store, value.last
    if value.type != np.float32 or last != output.last or not prod(value.shape):
        return None
    if scale is None or shift is None or scale.dtype != np.float32 or shift.dtype != np.float32:
        return None
    if source is None or target is None or not source.flags.c_contiguous:
        return None
    images, channels = value.shape[:2]
    place = source.ndim - 1 if last else 1
    axis = next((i for i, size in enumerate(source.shape[1:], 1) if size > 1), 1)
    runs = spans(source.shape[axis], abreast)
    scratch.shared.reset()
    sums = scratch.shared.take(0, images, len(runs), channels)
    mean, factor, offset = (scratch.shared.take(0, images, channels) for _ in range(3))
    joined = partial(_joined, node, sums, mean, factor, offset)
    followers = epilogue(node, scratch)
    steps: tuple[list[Part], ...] = [], [], []
    per_row = 4 * prod(source.shape[axis + 1 :])
    work = [(image, *run) for image in range(images) for run in enumerate(runs)]
    for part, (image, lane, (begin, end)) in scratch.dealt(work):
        parts: tuple[list[Part], ...] = [], [], []
        total = sums[image, lane]
        clear = partial(total.fill, 0)
        parts[0].append(clear)
        parts[1].append(clear)
        for first, stop in spans(end - begin, -(-(end - begin) * per_row // (CACHE // 2))):
            scratch.reset()
            run = slice(begin + first, begin + stop)
            index: Any = (image, *[slice(None)] * (axis - 1), run)
            some = run if axis == place else slice(None)
            block, made = source[index], target[index]
            if last:
                rows = block.size // block.shape[-1]
                # NumPy is slow on short rows: some are taken for one.
                wide = rows // repeats(rows, block.shape[-1]), -1
                middle, scales, shifts = (x[image, some] for x in (mean, factor, offset))
            else:
                wide = block.shape[0], -1
                middle, scales, shifts = (x[image, some, None] for x in (mean, factor, offset))
            flat = block.reshape(wide)
            room = scratch.take(part, *flat.shape)
            # What lies among other channels is written once, when all is done.
            beside = made if made.flags.c_contiguous else room.reshape(made.shape)
            result = beside.reshape(wide)
            parts[0].append(partial(_add, flat, total[some], last=last))
            parts[1].append(partial(_add_squares, flat, middle, room, total[some], last=last))
            parts[2].append(partial(_scaled, flat, scales, shifts, result, last=last))
            parts[2].extend(followed(followers, beside, index, made))
        for step, some_parts in zip(steps, parts, strict=True):
            step.append(sequence(some_parts))
    return [steps[0], [partial(joined, 0)], steps[1], [partial(joined, 1)], steps[2]]


def _joined(
    node: Node, sums: Array, mean: Array, factor: Array, offset: Array, spread: int
) -> None:
    """Join what was found of blocks to that of groups: the mean, or what spread makes of it."""
    op: Any = node.op
    value = node.inputs[0]
    scale, shift = (other.array for other in node.inputs[1:])
    members = np.float32(prod(value.shape[1:]) // op.num_groups)
    groups = sums.sum(1).reshape(len(sums), op.num_groups, -1).sum(2) / members
    if not spread:
        mean[...] = np.repeat(groups, value.shape[1] // op.num_groups, 1)
        return
    deviation = np.sqrt(groups + np.float32(op.epsilon))
    factor[...] = scale / np.repeat(deviation, value.shape[1] // op.num_groups, 1)
    offset[...] = shift - mean * factor


def _add(flat: Array, total: Array, *, last: bool) -> None:
    ones = np.ones(flat.shape[0 if last else 1], np.float32)
    total += (ones @ flat).reshape(-1, len(total)).sum(0) if last else flat @ ones


def _add_squares(flat: Array, mean: Array, room: Array, total: Array, *, last: bool) -> None:
    np.subtract(flat, _beside(mean, flat) if last else mean, out=room)
    squares = np.einsum("sc,sc->c" if last else "cs,cs->c", room, room)
    total += squares.reshape(-1, len(total)).sum(0) if last else squares


def _scaled(flat: Array, factor: Array, offset: Array, made: Array, *, last: bool) -> None:
    np.multiply(flat, _beside(factor, flat) if last else factor, out=made)
    np.add(made, _beside(offset, flat) if last else offset, out=made)


def _beside(channels: Array, flat: Array) -> Array:
    """A number for each channel, as often as rows have all channels."""
    return np.tile(channels, flat.shape[1] // len(channels))
