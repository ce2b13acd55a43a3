"""Convolution of volumes of few levels, by way of images of levels.

As with numbers (`volumes`), the channels of an image's neighbours are put beside its own, here as
bytes; outside of the volume is the level that stands for zero.
"""

from __future__ import annotations

import numpy as np

from ....schemas import Array
from ..plan import MIDDLE, Integers, Node, kept_as_levels
from ..workers import Part, spans
from .blocks import Scratch
from .quantized import convolution as convolve_images
from .quantized import to_levels
from .volume_groups import images_of, over_images, steps_of_part
from .volumes import STACKED, Neighbours, pads_of, put_beside


def convolution(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """Levels of each volume first, unless they are kept so; then images, so many at a time."""
    value, output, packed = node.inputs[0], node.outputs[0], node.inputs[1].packed
    integers, op = node.integers, node.op
    assert packed is not None
    assert integers is not None
    assert value.store is not None
    assert output.store is not None
    pads = pads_of(op, value.shape[2:], packed.shape[-3:])
    small = over_images(node, op.strides[1:], op.dilations[1:], pads[1:])  # type: ignore[attr-defined]  # convolutions have both
    near = Neighbours(1, packed.shape[-3], -pads[0][0], op.strides[0], op.dilations[0])  # type: ignore[attr-defined]
    weights = kept_as_levels(packed.chosen("images", _by_images))
    zero = np.int8((integers.grid.zero or 0) - MIDDLE)
    depth = output.store.shape[1]
    height, width, channels = value.store.shape[2:]
    each = height * width * near.taps * channels
    runs = spans(depth, -(-depth // max(abreast, STACKED // max(each, 1))))
    steps: list[list[Part]] = []
    for image, given in enumerate(value.store):
        scratch.volumes.reset()
        volume = given
        if given.dtype != np.int8:
            volume = scratch.volumes.take_bytes(0, *given.shape)
            steps.append(_to_levels(given, volume, integers, abreast, scratch))
        longest = max((end - begin for begin, end in runs), default=0)
        room = None
        if not near.are_the_images(depth, len(volume)):
            room = scratch.volumes.take_bytes(0, longest, height, width, near.taps * channels)
        for begin, end in runs:
            some = slice(begin, end)
            source = volume[some]
            if room is not None:
                source = room[: end - begin]
                steps.append(put_beside(volume, source, (begin, end), near, abreast, zero))
            target = images_of(output.store[image, some])
            one = Node(node.layer, small, [images_of(source), weights], [target])
            one.set_epilogue(steps_of_part(node.epilogue, image, some))
            one.integers, one.joined, one.table = integers, node.joined, node.table
            steps += convolve_images(one, abreast, scratch)
    return steps


def _by_images(levels: Array) -> Array:
    """Levels (outer, inner, deep, tall, wide) as those of images: (outer, deep * inner, ...)."""
    moved = np.moveaxis(levels, 2, 1)
    return moved.reshape(len(moved), -1, *moved.shape[3:])


def _to_levels(
    given: Array, into: Array, integers: Integers, abreast: int, scratch: Scratch
) -> list[Part]:
    """Parts that bring the numbers of a volume to levels."""
    parts = []
    for _, (begin, end) in scratch.dealt(spans(len(given), abreast)):
        scratch.reset()
        parts.append(to_levels(given[begin:end], integers, into[begin:end], scratch))
    return parts


__all__ = ["convolution"]
