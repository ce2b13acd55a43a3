"""Pooling over one axis or three, prepared: images are joined first, then rows, then columns.

Images are joined for each place of the windows, which leaves them in the cache; where windows
reach over many small ones, which they share, runs of images are joined once for all places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import Node
from ..workers import Part, spans
from .blocks import CACHE, Follower, Scratch, epilogue, filling, followed, sequence
from .calls import call
from .pooling import joined

#: Begin and end of a padding.
Pads = tuple[int, int]
#: What the choice supposes, in nanoseconds: a call, and to join a number of one image, which is in
#: the cache, or of all.
CALL, NEAR, FAR = 500, 0.05, 0.15


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a MaxPool or AvgPool; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    op: Any = node.op
    if value.type != np.float32 or not (value.last and output.last) or not output.nbytes:
        return None
    if any(gap != 1 for gap in op.gaps()) or value.store is None or output.store is None:
        return None
    if len(node.outputs) > 1 and (node.outputs[1].users or node.outputs[1].is_output):
        return None
    average = node.kind == "AvgPool"
    lead = 5 - len(value.shape)
    pads = [
        op.pads(size, axis, reach(op.kernel[axis], 1)) for axis, size in enumerate(value.shape[2:])
    ]
    window = Window(
        (*[1] * lead, *op.kernel),
        (*[1] * lead, *op.strides),
        [(0, 0)] * lead + [(number(begin), number(end)) for begin, end in pads],
        np.add if average else np.maximum,
    )
    volumes, targets = (
        store.reshape(store.shape[0], *[1] * lead, *store.shape[1:])
        for store in (value.store, output.store)
    )
    factor = _factor(op, value.shape, targets.shape[1:4]) if average else None
    if factor is not None and not np.isfinite(factor).all():
        return None  # a window of padding alone
    followers = epilogue(node, scratch)
    images, depth, height, _, channels = targets.shape
    if depth > 1 and window.is_sooner_whole(volumes.shape, depth, abreast):
        return [_by_images(window, volumes, targets, factor, followers, scratch)]
    per_row = 4 * volumes.shape[3] * channels * (window.strides[1] + 2)
    runs = spans(height, -(-height * per_row // CACHE))
    work = [(image, z, run) for image in range(images) for z in range(depth) for run in runs]
    lanes: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(work), abreast)):
        parts: list[Part] = []
        for image, z, (top, bottom) in work[begin:end]:
            scratch.reset()
            block = targets[image, z, top:bottom]
            parts += window.parts(volumes[image], z, top, block, part, scratch)
            if factor is not None:
                each = factor if factor.ndim == 0 else factor[z, top:bottom]
                parts.append(call(np.multiply, block, each, out=block))
            if lead:
                parts += followed(followers, block[0], (image,))
            else:
                parts += followed(followers, block, (image, z, slice(top, bottom)))
        lanes.append(sequence(parts))
    return [lanes]


def _by_images(
    window: Window,
    volumes: Array,
    targets: Array,
    factor: Array | None,
    followers: Sequence[Follower],
    scratch: Scratch,
) -> list[Part]:
    """Each image in whole, axis by axis."""
    lanes: list[Part] = []
    for part, image in scratch.dealt(range(len(targets))):
        scratch.reset()
        target = targets[image]
        parts = window.whole(volumes[image], target, part, scratch)
        if factor is not None:
            parts.append(call(np.multiply, target, factor, out=target))
        lanes.append(sequence(parts + followed(followers, target, (image,))))
    return lanes


class Window:
    """What is joined over three axes, and how."""

    def __init__(
        self,
        kernel: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[Pads],
        join: Callable[..., Any],
    ) -> None:
        self.kernel, self.strides, self.pads, self.join = kernel, strides, pads, join
        self.fill = 0.0 if join is np.add else float(np.finfo(np.float32).min)

    def is_sooner_whole(self, shape: tuple[int, ...], stops: int, abreast: int) -> bool:
        """Whether images are joined sooner in runs, for all stops, than for each stop anew."""
        images, depth, *rest = shape
        plane, taken = prod(rest), self.kernel[0]
        anew = images * stops * (taken - 1) * (CALL + plane * NEAR) / abreast
        once = 2 * taken.bit_length() * (CALL + depth * plane * FAR) * -(-images // abreast)
        return once < anew

    def parts(
        self, volume: Array, z: int, top: int, block: Array, part: int, scratch: Scratch
    ) -> list[Part]:
        """Parts that make some rows of one image of the output, from ``top`` on."""
        rows, width, channels = block.shape
        tall = (rows - 1) * self.strides[1] + self.kernel[1]
        wide = (width - 1) * self.strides[2] + self.kernel[2]
        up, left = top * self.strides[1] - self.pads[1][0], -self.pads[2][0]
        low, high = max(up, 0), min(up + tall, volume.shape[1])
        first, last = max(left, 0), min(left + wide, volume.shape[2])
        front = z * self.strides[0] - self.pads[0][0]
        places = range(max(front, 0), min(front + self.kernel[0], len(volume)))
        if low >= high or first >= last:
            places = range(0)  # all of these windows lie in the padding
        images = [volume[place, low:high, first:last] for place in places]
        inside = high - low == tall and last - first == wide
        if inside and len(images) == 1:
            room, parts = images[0], []
        else:
            room = scratch.take(part, tall, wide, channels)
            parts = [] if inside and images else [filling(room, self.fill)]
            if images:
                inner = room[low - up : high - up, first - left : last - left]
                parts += self._together(images, inner)
        across = scratch.take(part, rows, wide, channels)
        parts += joined(self.join, room, self.kernel[1], self.strides[1], across, part, scratch)
        turned = across.transpose(1, 0, 2), block.transpose(1, 0, 2)
        stride = self.strides[2]
        return parts + joined(
            self.join, turned[0], self.kernel[2], stride, turned[1], part, scratch
        )

    def whole(self, volume: Array, target: Array, part: int, scratch: Scratch) -> list[Part]:
        """Parts that make all of one image of the output, axis by axis."""
        parts: list[Part] = []
        for axis, order in enumerate(((0, 1, 2, 3), (1, 0, 2, 3), (2, 0, 1, 3))):
            kernel, stride, (before, _) = self.kernel[axis], self.strides[axis], self.pads[axis]
            shape = [*target.shape[: axis + 1], *volume.shape[axis + 1 :]]
            room = target if axis == 2 else scratch.take(part, *shape)
            given, made = volume.transpose(order), room.transpose(order)
            parts += joined(self.join, given, kernel, stride, made, part, scratch, before=before)
            volume = room
        return parts

    def _together(self, images: list[Array], out: Array) -> list[Part]:
        """Parts that join images, place by place."""
        if len(images) < 2:
            return [call(np.copyto, out, image) for image in images]
        parts = [call(self.join, images[0], images[1], out=out)]
        return parts + [call(self.join, out, image, out=out) for image in images[2:]]


def _factor(op: Any, shape: tuple[int, ...], stops: tuple[int, ...]) -> Array:
    """By what the sums are multiplied: one number, or one for each place."""
    divisor = np.asarray(op.divisor(np.zeros((1, 1, *shape[2:]), np.float32)), np.float32)
    with np.errstate(divide="ignore"):
        each = np.float32(1) / divisor
    return each.reshape(()) if each.size == 1 else each.reshape(*stops, 1)
