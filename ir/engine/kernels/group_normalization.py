"""Normalised groups of channels, prepared: mean, then variance, then a scale and a shift of each.

An MVN over pixels is such a thing, whose groups are channels. Each goes over blocks that stay in
cache: rows of pixels where channels are kept last, else channels. What workers find of their
blocks is joined between, for all to read.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import Node, Steps, scale_and_shift
from ..workers import Part, sequence, spans
from .blocks import CACHE, Scratch, followed, followers
from .repeats import repeats

#: Means of so many deviations are taken away before numbers are scaled: else these lose digits.
FAR = np.float32(32)


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
    runs = spans(source.shape[axis], abreast)
    scratch.shared.reset()
    sums = scratch.shared.take(0, images, len(runs), channels)
    mean, factor, offset = found = [scratch.shared.take(0, images, channels) for _ in range(3)]
    joined = partial(_joined, wanted, prod(value.shape[1:]), sums, mean, factor, offset)
    after = followers(wanted.steps, output, scratch)
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
                middle, scales, shifts = (x[image, some] for x in found)
            else:
                wide = block.shape[0], -1
                middle, scales, shifts = (x[image, some, None] for x in found)
            flat = block.reshape(wide)
            room = scratch.take(part, *flat.shape)
            # What lies among other channels, or becomes levels, is written once, when all is done.
            is_plain = made.flags.c_contiguous and made.dtype == np.float32
            beside = made if is_plain else room.reshape(made.shape)
            result = beside.reshape(wide)
            parts[0].append(partial(_add, flat, total[some], last=last))
            parts[1].append(partial(_add_squares, flat, middle, room, total[some], last=last))
            numbers = middle, scales, shifts
            parts[2].append(partial(_scaled, flat, numbers, result, last=last))
            parts[2].extend(followed(after, beside, index, made))
        for step, some_parts in zip(steps, parts, strict=True):
            step.append(sequence(some_parts))
    return [steps[0], [partial(joined, 0)], steps[1], [partial(joined, 1)], steps[2]]


def _joined(
    wanted: Wanted,
    numbers: int,
    sums: Array,
    mean: Array,
    factor: Array,
    offset: Array,
    spread: int,
) -> None:
    """Join what was found of blocks to that of groups: the mean, or what spread makes of it."""
    members = np.float32(numbers // wanted.groups)
    each = mean.shape[1] // wanted.groups
    groups = sums.sum(1).reshape(len(sums), wanted.groups, -1).sum(2) / members
    if not spread:
        mean[...] = np.repeat(groups, each, 1)
        return
    eps = wanted.eps
    deviation = np.sqrt(groups + eps) if wanted.inside else np.sqrt(groups) + eps
    factor[...] = wanted.scale / np.repeat(deviation, each, 1)
    away = mean * factor
    if np.abs(away).max() <= FAR * np.abs(wanted.scale).max():
        offset[...] = wanted.shift - away
        mean.fill(0)
    else:
        offset[...] = wanted.shift


def _add(flat: Array, total: Array, *, last: bool) -> None:
    ones = np.ones(flat.shape[0 if last else 1], np.float32)
    total += (ones @ flat).reshape(-1, len(total)).sum(0) if last else flat @ ones


def _add_squares(flat: Array, mean: Array, room: Array, total: Array, *, last: bool) -> None:
    np.subtract(flat, _beside(mean, flat) if last else mean, out=room)
    squares = np.einsum("sc,sc->c" if last else "cs,cs->c", room, room)
    total += squares.reshape(-1, len(total)).sum(0) if last else squares


def _scaled(flat: Array, numbers: tuple[Array, ...], made: Array, *, last: bool) -> None:
    mean, factor, offset = numbers
    if mean.any():
        np.subtract(flat, _beside(mean, flat) if last else mean, out=made)
        flat = made
    np.multiply(flat, _beside(factor, flat) if last else factor, out=made)
    np.add(made, _beside(offset, flat) if last else offset, out=made)


def _beside(channels: Array, flat: Array) -> Array:
    """A number for each channel, as often as rows have all channels."""
    return np.tile(channels, flat.shape[1] // len(channels))
