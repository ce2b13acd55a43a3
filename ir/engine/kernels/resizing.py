"""Images resized with weights, prepared: rows along an axis times a matrix, axis after axis.

Each run of output rows needs few input rows only: of the matrix of an axis the blocks near its
diagonal are multiplied.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....layers.image import Taps
from ....schemas import Array
from ..plan import Node
from ..workers import Part, sequence, spans
from .blocks import CACHE, Scratch
from .copies import copied
from .rows import order

#: So many output rows are made together, where there are many input rows.
ROWS, MANY = 24, 64


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an interpolation with weights; None where there is no kernel for it."""
    value, output, op = node.inputs[0], node.outputs[0], node.op
    others = [other.constant for other in node.inputs[1:]]
    if value.type != np.float32 or output.type != np.float32 or value.last != output.last:
        return None
    if any(array is None for array in others) or not prod(value.shape):
        return None
    known: Any = op
    passes = known.passes(value.shape, *known.chosen(*others))
    if passes is None or value.store is None or output.store is None:
        return None
    if not passes:
        return [copied(value.array, output.array, abreast)]
    places = order(value)
    found: list[list[Part]] = []
    scratch.shared.reset()
    source = value.store
    if not source.flags.c_contiguous:
        source = scratch.shared.take(0, *source.shape)
        found.append(copied(value.store, source, abreast))
    for number, (axis, taps) in enumerate(passes):
        place = places.index(axis)
        shape = (*source.shape[:place], len(taps[0]), *source.shape[place + 1 :])
        target = output.store
        lines = prod(shape[:place]), shape[place], prod(shape[place + 1 :])
        ends = number == len(passes) - 1
        if not ends or not np.may_share_memory(target.reshape(lines), target):
            target = scratch.shared.take(0, *shape)
        found.append(_along(source, target, place, taps, abreast, scratch))
        if ends and target is not output.store:
            found.append(copied(target, output.store, abreast))
        source = target
    return found


def _along(
    source: Array, target: Array, axis: int, taps: Taps, abreast: int, scratch: Scratch
) -> list[Part]:
    """The step that resizes one axis."""
    before, after = prod(source.shape[:axis]), prod(source.shape[axis + 1 :])
    given = source.reshape(before, source.shape[axis], after)
    made = target.reshape(before, target.shape[axis], after)
    index, weight = taps
    size, count = given.shape[1], len(index)
    at_once = count if size <= MANY else ROWS
    runs = spans(count, -(-count // at_once))
    blocks = []
    for first, stop in runs:
        low, high = int(index[first:stop].min()), int(index[first:stop].max()) + 1
        matrix = np.zeros((stop - first, high - low), np.float32)
        lines = np.arange(stop - first)[:, None]
        np.add.at(matrix, (lines, index[first:stop] - low), weight[first:stop])
        blocks.append((slice(first, stop), slice(low, high), matrix))
    # So much of what is before that a block of it stays in cache.
    each = max(1, CACHE // max(1, 4 * after * count))
    images = spans(before, max(-(-before // each), min(before, abreast)))
    columns = spans(after, 1 if len(images) * len(blocks) >= abreast else abreast)
    work = [
        (slice(*image), slice(*column), block)
        for image in images for column in columns for block in blocks
    ]  # fmt: skip
    parts: list[Part] = []
    for _, (begin, end) in scratch.dealt(spans(len(work), abreast)):
        parts.append(
            sequence(
                [
                    _mixed(given[image, :, column], made[image, :, column], *block, taps)
                    for image, column, block in work[begin:end]
                ]
            )
        )
    return parts


def _mixed(
    given: Array, made: Array, rows: slice, reached: slice, matrix: Array, taps: Taps
) -> Part:
    """Some output rows of the input rows that they reach."""
    source, target = given[:, reached], made[:, rows]
    index, weight = taps[0][rows], taps[1][rows].astype(np.float32)
    counts = taps[1].any(0)

    def run() -> None:
        if not np.isfinite(source).all():
            # Zero times inf would be no number.
            target.fill(0)
            for place in np.flatnonzero(counts):
                part = np.take(given, index[:, place], 1)
                np.multiply(part, weight[:, place, None], part)
                np.add(target, part, target)
        elif source.shape[2] > 1:
            np.matmul(matrix, source, out=target)
        else:
            np.matmul(source[:, :, 0], matrix.T, out=target[:, :, 0])

    return run
