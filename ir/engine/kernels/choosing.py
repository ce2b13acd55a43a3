"""The largest or smallest elements along an axis, prepared: workers share the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....schemas import Array
from ..plan import Node
from ..workers import Part, spans

#: So many bytes are looked through at once: what is found on the way stays in cache. For one of
#: each row that is little, for more it is several times as much as they are.
AT_ONCE, FOR_MORE = 1 << 20, 1 << 18


def prepare(node: Node, abreast: int) -> list[list[Part]] | None:
    """The steps of a TopK that takes a known number; None where there is nothing to share."""
    data, count = node.inputs
    op: Any = node.op
    if count.constant is None or not data.nbytes or not all(x.nbytes for x in node.outputs):
        return None
    axis = op.axis % len(data.shape)
    longest = max(
        (other for other in range(len(data.shape)) if other != axis),
        key=lambda other: data.shape[other], default=None,
    )  # fmt: skip
    if longest is None or abreast < 2 or data.shape[longest] < 2:
        return None
    at, arrays, k = node.layer.at, [x.array for x in (data, *node.outputs)], count.array
    lead = (slice(None),) * longest

    def part(run: tuple[int, int]) -> Part:
        given, *targets = (array[(*lead, slice(*run))] for array in arrays)

        def some() -> None:
            with at():
                found: tuple[Array, ...] = op.run(given, k)
            for target, made in zip(targets, found, strict=True):
                np.copyto(target, made)

        return some

    at_once = AT_ONCE if np.array_equal(k, 1) else FOR_MORE
    pieces = max(abreast, -(-data.nbytes // at_once))
    return [[part(run) for run in spans(data.shape[longest], pieces)]]
