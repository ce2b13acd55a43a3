"""What kernels share: scratch memory, blocks of rows, padded sources, epilogues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...layers.base import Op
from ...schemas import Array
from .graph import Node, Value
from .team import Part

#: Scratch memory of a thread, in bytes; blocks are cut so that theirs fits.
SCRATCH = 8 << 20
#: What a block's working set should not pass, so that it stays in a core's own cache.
CACHE = 1 << 19


class Scratch:
    """Memory that belongs to a thread for the length of one part."""

    def __init__(self, threads: int) -> None:
        self._rooms = [np.empty(SCRATCH // 4, np.float32) for _ in range(threads)]
        self._used = [0] * threads

    def reset(self) -> None:
        """Begin the next step: all memory is free again."""
        self._used = [0] * len(self._used)

    def take(self, part: int, *shape: int) -> Array:
        """Memory for a part; its own where the thread's is too small."""
        thread, count = part % len(self._rooms), prod(shape)
        start = self._used[thread]
        if start + count > self._rooms[thread].size:
            return np.empty(shape, np.float32)
        self._used[thread] = start + -(-count // 16) * 16
        return self._rooms[thread][start : start + count].reshape(shape)


def kept(value: Value, shape: tuple[int, ...], last: bool) -> Array:
    """A value as it lies in memory, brought to a shape (in the model's order of axes)."""
    array = np.broadcast_to(value.array, shape)
    return np.moveaxis(array, 1, -1) if last else array


Apply = Callable[[Array, tuple[Any, ...]], None]


def epilogue(node: Node) -> list[Callable[[Array, Any], list[Part]]]:
    """For each follower of a node: what makes its parts for a block and the block's index."""
    output = node.outputs[0]
    found = []
    for op, others in node.epilogue:
        given = [None if v is None else kept(v, output.shape, output.last) for v in others]
        found.append(follower(op, given))
    return found


def follower(op: Op, given: Sequence[Array | None]) -> Callable[[Array, Any], list[Part]]:
    """Make the parts of one elementwise operation, done in place on a block."""
    kind = op.xml_type

    def make(block: Array, index: Any) -> list[Part]:
        others = [None if array is None else array[index] for array in given]
        if kind in UFUNCS:
            left, right = (block if other is None else other for other in others)
            return [call(UFUNCS[kind], left, right, out=block)]
        if kind == "ReLU":
            return [call(np.maximum, block, ZERO, out=block)]
        if kind == "Clamp":
            low, high = (np.float32(v) for v in (op.min, op.max))  # type: ignore[attr-defined]  # Clamp has them
            return [
                call(np.maximum, block, low, out=block),
                call(np.minimum, block, high, out=block),
            ]
        rest = others[1:]
        return [lambda: np.copyto(block, op.run(block, *rest)[0])]

    return make


ZERO = np.float32(0)
UFUNCS: dict[str, Any] = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "Divide": np.divide,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
}


def call(function: Callable[..., Any], *words: Any, **named: Any) -> Part:
    """A call with everything bound."""
    if set(named) == {"out"}:
        out = named["out"]
        if len(words) == 2:
            left, right = words
            return lambda: function(left, right, out=out)
        if len(words) == 1:
            (only,) = words
            return lambda: function(only, out=out)
    return lambda: function(*words, **named)


def sequence(parts: Sequence[Part]) -> Part:
    """Several parts as one."""
    bound = tuple(parts)
    if len(bound) == 1:
        return bound[0]

    def run() -> None:
        for part in bound:
            part()

    return run


def padded(
    source: Array, rows: tuple[int, int], columns: tuple[int, int], room: Array, fill: float
) -> list[Part]:
    """Parts that copy rows ``rows`` and columns ``columns`` of an image (H, W, C) into ``room``.

    Rows and columns may reach beyond the image; there stands ``fill``.
    """
    height, width = source.shape[:2]
    (top, bottom), (left, right) = rows, columns
    begin, end = max(top, 0), min(bottom, height)
    first, stop = max(left, 0), min(right, width)
    target = room[: bottom - top, : right - left]
    if begin >= end or first >= stop:
        return [lambda: target.fill(fill)]
    inner = target[begin - top : end - top, first - left : stop - left]
    parts = [call(np.copyto, inner, source[begin:end, first:stop])]
    borders = [
        target[: begin - top], target[end - top :],
        target[:, : first - left], target[:, stop - left :],
    ]  # fmt: skip
    parts += [_filling(border, fill) for border in borders if border.size]
    return parts


def _filling(border: Array, fill: float) -> Part:
    return lambda: border.fill(fill)


def taps(
    image: Array,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    counts: tuple[int, int],
) -> Array:
    """All windows of an image (H, W, C): a view (stops down, stops across, kh, kw, C)."""
    down, across, deep = image.strides
    return as_strided(
        image,
        (*counts, *kernel, image.shape[2]),
        (down * strides[0], across * strides[1], down * dilations[0], across * dilations[1], deep),
        writeable=False,
    )  # fmt: skip
