"""Images of pixels prepared: colours of video frames, bytes resized; rows are shared by workers.

Each row is made as the definition makes it, and some at a time stay in cache.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....layers.image import Pass, gathered, keeps_bytes, weighted
from ....layers.image_color import ToColors
from ..plan import Node
from ..workers import Part, sequence, spans

#: Those that make three colours.
COLORS = ("I420toBGR", "I420toRGB", "NV12toBGR", "NV12toRGB")
#: So many numbers are made of bytes at a time.
BAND = 1 << 14
#: Pixels that are worth a worker.
WORTH = 1 << 14


def colored(node: Node, workers: int) -> list[list[Part]] | None:
    """The step that makes colours of brightness and chroma."""
    op, output = node.op, node.outputs[0]
    assert isinstance(op, ToColors)
    planes = [value.array for value in node.inputs]
    if not prod(output.shape) or any(not plane.flags.c_contiguous for plane in planes):
        return None
    images = [*op.parted(*planes), output.array]
    pairs, count = output.shape[1] // 2, len(images[0])
    lanes = workers if prod(output.shape[:3]) >= WORTH else 1
    parts: list[Part] = []
    for begin, end in spans(count * pairs, lanes):
        painted: list[Part] = []
        for number in range(begin // pairs, -(-end // pairs)):
            first, stop = max(begin - number * pairs, 0), min(end - number * pairs, pairs)
            y, u, v, made = (image[number] for image in images)
            rows, halves = slice(2 * first, 2 * stop), slice(first, stop)
            painted.append(partial(op.paint, y[rows], u[halves], v[halves], made[rows]))
        parts.append(sequence(painted))
    return [parts]


def resized(node: Node, workers: int) -> list[list[Part]] | None:
    """The step of an Interpolate whose weighted sums are rounded; None where it has no weights."""
    value, output = node.inputs[0], node.outputs[0]
    known: Any = node.op
    others = [other.constant for other in node.inputs[1:]]
    if value.grid is not None or output.type != value.type or not prod(output.shape):
        return None
    if any(array is None for array in others) or not prod(value.shape):
        return None
    passes: list[Pass] | None = known.passes(value.shape, *known.chosen(*others))
    if not passes:
        return None
    source, target, (axis, (index, weight)) = value.array, output.array, passes[0]
    front = (slice(None),) * axis
    between = keeps_bytes(known.mode, value.type)

    def make(first: int, stop: int) -> None:
        low, high = int(index[first:stop].min()), int(index[first:stop].max()) + 1
        band = axis, (index[first:stop] - low, weight[first:stop])
        data = source[(*front, slice(low, high))]
        made = weighted(data, [band, *passes[1:]], gathered, keeps=between)
        np.copyto(target[(*front, slice(first, stop))], made)

    count = len(index)
    some = max(1, BAND * count // target.size)
    lanes = workers if target.size >= WORTH else 1
    return [
        [
            sequence([
                partial(make, begin + first, begin + stop)
                for first, stop in spans(end - begin, -(-(end - begin) // some))
            ])
            for begin, end in spans(count, lanes)
        ]
    ]  # fmt: skip
