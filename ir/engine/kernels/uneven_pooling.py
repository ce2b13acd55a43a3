"""Means over windows of several sizes, as few as the places that are wanted: axis by axis.

Scene parsers ask for pools of 1, 2, 3 and 6 places of images that are no multiple of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.pooling import edge
from ....schemas import Array
from ..plan import Node
from ..workers import Part, sequence, spans
from .blocks import Scratch
from .calls import call


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an AdaptiveAvgPool of float32 images; some of the channels each."""
    value, output = node.inputs[0], node.outputs[0]
    if value.type != np.float32 or output.type != np.float32 or value.last != output.last:
        return None
    if 0 in (*value.shape, *output.shape) or value.grid is not None:
        return None
    assert value.store is not None
    assert output.store is not None
    parts: list[Part] = []
    for part, (first, stop) in scratch.dealt(spans(value.shape[1], abreast)):
        some = (..., slice(first, stop)) if value.last else (slice(None), slice(first, stop))
        given, made = value.store[some], output.store[some]
        steps: list[Part] = []
        begin = 1 if value.last else 2
        axes = range(begin, begin + len(value.shape) - 2)
        scratch.reset()
        for axis in axes:
            sizes = list(given.shape)
            sizes[axis] = made.shape[axis]
            found = made if axis == axes[-1] else scratch.take(part, *sizes)
            steps += _means(given, found, axis)
            given = found
        parts.append(sequence(steps))
    return [parts]


def _means(given: Array, found: Array, axis: int) -> list[Part]:
    """Parts that put the means along one axis into places of it."""
    size, count = given.shape[axis], found.shape[axis]
    lead: tuple[Any, ...] = (slice(None),) * axis
    steps: list[Part] = []
    for place in range(count):
        window = edge(place, count, size)
        target = found[(*lead, place)]
        steps.append(_sum(given[(*lead, window)], axis, target))
        share = np.float32(1 / (window.stop - window.start))
        steps.append(call(np.multiply, target, share, out=target))
    return steps


def _sum(window: Array, axis: int, target: Array) -> Part:
    def run() -> None:
        np.add.reduce(window, axis, out=target)

    return run
