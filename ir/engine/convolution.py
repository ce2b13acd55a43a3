"""Convolution, prepared: a plain product, a product of gathered windows, or Winograd's way.

Images are (H, W, C), so a product of rows of channels by a matrix (C, O) is a 1x1 convolution
with nothing copied. Larger windows are gathered by blocks of output rows that stay in cache.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...layers.windows import reach
from ...schemas import Array
from ...schemas.shapes import number
from .blocks import CACHE, SCRATCH, Scratch, call, epilogue, padded, sequence, taps
from .graph import Node
from .team import Part, spans
from .winograd import winograd, worth_winograd


class Sizes:
    """The numbers of a convolution over two spatial axes; one axis is taken as a single row."""

    def __init__(self, node: Node) -> None:
        op = node.op
        weights = node.inputs[1].constant
        assert weights is not None
        self.groups = weights.shape[0] if node.kind == "GroupConvolution" else 1
        if self.groups > 1 or node.kind == "GroupConvolution":
            weights = weights.reshape(-1, *weights.shape[2:])
        axes = weights.ndim - 2
        lead = 2 - axes
        self.kernel = _two(weights.shape[2:], lead, 1)
        self.weights = weights.reshape(*weights.shape[:2], *self.kernel)
        self.strides = _two(op.strides, lead, 1)  # type: ignore[attr-defined]  # convolutions have it
        self.dilations = _two(op.dilations, lead, 1)  # type: ignore[attr-defined]
        shape = node.inputs[0].shape
        pairs = [
            op.pads(size, axis, reach(weights.shape[2 + axis], op.dilations[axis]))  # type: ignore[attr-defined]
            for axis, size in enumerate(shape[2:])
        ]
        self.pads = [(0, 0)] * lead + [(number(a), number(b)) for a, b in pairs]
        self.inner = weights.shape[1]
        self.outer = weights.shape[0]
        self.out = _two(node.outputs[0].shape[2:], lead, 1)
        self.lead = lead

    def image(self, batch: Array) -> Array:
        """A batch kept as (N, H, W, C), whatever its number of spatial axes."""
        return batch if self.lead == 0 else batch[:, None]

    @property
    def plain(self) -> bool:
        """Whether every output is made of the one input at the same place."""
        return self.kernel == (1, 1) and self.strides == (1, 1) and not any(map(any, self.pads))


def _two(values: tuple[int, ...], lead: int, fill: int) -> tuple[int, int]:
    """Two numbers, from two or one."""
    first, second = (fill,) * lead + tuple(values)
    return first, second


def prepare(node: Node, threads: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a convolution; None where there is no kernel for it here."""
    value, output = node.inputs[0], node.outputs[0]
    if node.inputs[1].constant is None or value.type != np.float32:
        return None
    if len(value.shape) not in (3, 4) or not (value.last and output.last):
        return None
    sizes = Sizes(node)
    assert value.store is not None
    assert output.store is not None
    source, target = sizes.image(value.store), sizes.image(output.store)
    bias = node.inputs[2].constant if len(node.inputs) > 2 else None
    finish = _Finish(node, sizes, target, bias)
    if sizes.groups > 1 and sizes.inner == 1 and sizes.outer == sizes.groups:
        return depthwise(sizes, source, target, finish, threads, scratch)
    if worth_winograd(sizes):
        return winograd(sizes, source, target, finish, threads, scratch)
    return gathered(sizes, source, target, finish, threads, scratch)


class _Finish:
    """What is done to a block of the output before it leaves the cache."""

    def __init__(self, node: Node, sizes: Sizes, target: Array, bias: Array | None) -> None:
        self._bias, self._sizes, self._target = bias, sizes, target
        self._followers = epilogue(node)

    def parts(self, image: int, rows: slice, channels: slice) -> list[Part]:
        """Bias, sums, activations on rows and channels of one image."""
        block = self._target[image, rows, :, channels]
        found = []
        if self._bias is not None:
            found.append(call(np.add, block, self._bias[channels], out=block))
        index: Any = (image, rows, slice(None), channels)
        if self._sizes.lead:
            index, block = (image, slice(None), channels), block[0]
        for follower in self._followers:
            found += follower(block, index)
        return found


def gathered(
    sizes: Sizes, source: Array, target: Array, finish: _Finish, threads: int, scratch: Scratch
) -> list[list[Part]]:
    """Windows gathered into the rows of a matrix, times the weights."""
    groups, taken = sizes.groups, prod(sizes.kernel) * sizes.inner
    each = sizes.outer // groups
    # (groups, kh * kw * inner, outer / groups)
    matrix = np.ascontiguousarray(
        sizes.weights.reshape(groups, each, sizes.inner, *sizes.kernel)
        .transpose(0, 3, 4, 2, 1)
        .reshape(groups, taken, each)
    )
    height, width = sizes.out
    images = target.shape[0]
    by_channels = groups == 1 and images * height * width < sizes.outer and threads > 1
    lanes = spans(sizes.outer, threads) if by_channels else [(0, sizes.outer)]
    runs = spans(height, 1 if by_channels else max(1, threads // max(1, min(images, threads))))
    steps: list[Part] = []
    work: list[tuple[int, tuple[int, int], tuple[int, int]]] = [
        (image, run, lane) for image in range(images) for run in runs for lane in lanes
    ]
    if by_channels and not sizes.plain:
        return _gather_then_multiply(sizes, source, target, finish, matrix, lanes, threads)
    for number_, (image, (top, bottom), (first, stop)) in enumerate(work):
        per_row = width * (taken * groups * (0 if sizes.plain else 1) + sizes.outer) * 4
        rows = max(1, min(bottom - top, CACHE * 2 // max(per_row, 1)))
        parts: list[Part] = []
        scratch.reset()
        for begin in range(top, bottom, rows):
            end = min(begin + rows, bottom)
            matrix_rows, gather = _windows(sizes, source[image], (begin, end), number_, scratch)
            # The same memory serves every block of the part.
            scratch.reset()
            parts += gather
            out = target[image, begin:end].reshape(-1, groups, each).transpose(1, 0, 2)
            block = slice(first, stop)
            parts.append(
                call(np.matmul, matrix_rows[0], matrix[0][:, block], out=out[0][:, block])
                if groups == 1
                else call(np.matmul, matrix_rows, matrix, out=out)
            )
            parts += finish.parts(image, slice(begin, end), block)
        steps.append(sequence(parts))
    return [steps]


def _windows(
    sizes: Sizes, image: Array, rows: tuple[int, int], part: int, scratch: Scratch
) -> tuple[Array, list[Part]]:
    """The windows of some output rows as matrices, by group, and what fills them."""
    begin, end = rows
    width = sizes.out[1]
    count = end - begin
    if sizes.plain:
        flat = image[begin:end].reshape(count * width, sizes.groups, sizes.inner)
        return flat.transpose(1, 0, 2), []
    parts: list[Part] = []
    tall = (count - 1) * sizes.strides[0] + number(reach(sizes.kernel[0], sizes.dilations[0]))
    wide = (width - 1) * sizes.strides[1] + number(reach(sizes.kernel[1], sizes.dilations[1]))
    top, left = begin * sizes.strides[0] - sizes.pads[0][0], -sizes.pads[1][0]
    if top >= 0 and left >= 0 and top + tall <= image.shape[0] and left + wide <= image.shape[1]:
        room = image[top : top + tall, left : left + wide]
    else:
        room = scratch.take(part, tall, wide, image.shape[2])
        parts += padded(image, (top, top + tall), (left, left + wide), room, 0.0)
    view = taps(room, sizes.kernel, sizes.strides, sizes.dilations, (count, width))
    taken = prod(sizes.kernel) * sizes.inner
    rows_ = scratch.take(part, sizes.groups, count * width, taken)
    split = view.reshape(*view.shape[:4], sizes.groups, sizes.inner) if sizes.groups > 1 else None
    if split is None:
        parts.append(call(np.copyto, rows_.reshape(view.shape), view))
    else:
        shape = (sizes.groups, count, width, *sizes.kernel, sizes.inner)
        parts.append(call(np.copyto, rows_.reshape(shape), split.transpose(4, 0, 1, 2, 3, 5)))
    return rows_, parts


def _gather_then_multiply(
    sizes: Sizes,
    source: Array,
    target: Array,
    finish: _Finish,
    matrix: Array,
    lanes: list[tuple[int, int]],
    threads: int,
) -> list[list[Part]]:
    """For small images with many channels: all windows first, then each thread some channels."""
    steps: list[list[Part]] = []
    height = sizes.out[0]
    room = Scratch(1)
    for image in range(target.shape[0]):
        rows, gather = _windows(sizes, source[image], (0, height), 0, room)
        steps.append([sequence(gather)])
        out = target[image].reshape(-1, sizes.outer)
        steps.append(
            [
                sequence(
                    [
                        call(np.matmul, rows[0], matrix[0][:, a:b], out=out[:, a:b]),
                        *finish.parts(image, slice(0, height), slice(a, b)),
                    ]
                )
                for a, b in lanes
            ]
        )
    return steps


def depthwise(
    sizes: Sizes, source: Array, target: Array, finish: _Finish, threads: int, scratch: Scratch
) -> list[list[Part]]:
    """Each channel with a window of its own: sums of shifted images."""
    height, width = sizes.out
    channels = sizes.outer
    images = target.shape[0]
    weights = np.ascontiguousarray(sizes.weights[:, 0].transpose(1, 2, 0))
    per_row = width * channels * 4 * (2 + sizes.strides[0] * sizes.strides[1])
    steps: list[Part] = []
    work = [
        (image, run)
        for image in range(images)
        for run in spans(height, max(1, threads // max(1, min(images, threads))))
    ]
    for number_, (image, (top, bottom)) in enumerate(work):
        rows = max(1, min(bottom - top, CACHE // per_row))
        parts: list[Part] = []
        for begin in range(top, bottom, rows):
            scratch.reset()
            end = min(begin + rows, bottom)
            count = end - begin
            tall = (count - 1) * sizes.strides[0] + number(
                reach(sizes.kernel[0], sizes.dilations[0])
            )
            wide = (width - 1) * sizes.strides[1] + number(
                reach(sizes.kernel[1], sizes.dilations[1])
            )
            up, left = begin * sizes.strides[0] - sizes.pads[0][0], -sizes.pads[1][0]
            room = scratch.take(number_, tall, wide, channels)
            parts += padded(source[image], (up, up + tall), (left, left + wide), room, 0.0)
            view = taps(room, sizes.kernel, sizes.strides, sizes.dilations, (count, width))
            product = scratch.take(number_, count, width, channels)
            block = target[image, begin:end]
            for place, (i, j) in enumerate(np.ndindex(*sizes.kernel)):
                if place == 0:
                    parts.append(call(np.multiply, view[:, :, i, j], weights[i, j], out=block))
                    continue
                parts.append(call(np.multiply, view[:, :, i, j], weights[i, j], out=product))
                parts.append(call(np.add, block, product, out=block))
            parts += finish.parts(image, slice(begin, end), slice(None))
        steps.append(sequence(parts))
    return [steps]


__all__ = ["SCRATCH", "Sizes", "prepare"]
