"""Convolution and pooling over three axes, prepared by way of those over two.

A volume is a row of images; the convolution of a volume is that of images which have, as further
channels, the channels of their neighbours. So all ways to convolve images serve here too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import Node, Value, constant, has_many_groups
from ..workers import Part, spans
from .blocks import Scratch, call, filling, sequence
from .convolution import LaidOut, choose_tilings, lay_out
from .convolution import prepare as prepare_images

#: Images with the channels of their neighbours take at most so many bytes at a time.
STACKED = 4 << 20


def convolution(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a convolution of volumes; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    weights = node.inputs[1].constant
    if weights is None or value.type != np.float32 or has_many_groups(node):
        return None
    assert value.store is not None
    assert output.store is not None
    groups = weights.shape[0] if node.kind == "GroupConvolution" else 1
    deep = weights.shape[-3]
    pads = _pads(node.op, value.shape[2:], weights.shape[-3:])
    inner = value.shape[1] // groups
    flat = np.moveaxis(weights, -3, -4)
    flat = flat.reshape(*weights.shape[: weights.ndim - 4], deep * inner, *weights.shape[-2:])
    op = _over_images(node, pads[1:])
    images, depth = output.store.shape[:2]
    each = 4 * deep * int(np.prod(value.store.shape[2:]))
    at_once = max(abreast, STACKED // max(each, 1))
    steps: list[list[Part]] = []
    laid_out: LaidOut | None = None
    for image in range(images):
        for begin, end in spans(depth, -(-depth // at_once)):
            scratch.volumes.reset()
            stacked = scratch.volumes.take(
                0, end - begin, *value.store.shape[2:4], deep * value.shape[1]
            )
            steps.append(
                _stack(node, value.store[image], stacked, (begin, end), pads[0][0], abreast)
            )
            source = _images(stacked)
            target = _images(output.store[image, begin:end])
            small = Node(node.layer, op, [source, constant(flat), *node.inputs[2:]], [target])
            small.set_epilogue(
                [
                    (step, [_part(other, image, (begin, end)) for other in others])
                    for step, others in node.epilogue
                ]
            )
            small.laid_out = laid_out or lay_out(small, choose_tilings([small])[0])
            laid_out = small.laid_out
            found = prepare_images(small, abreast, scratch)
            assert found is not None
            steps += found
    return steps


def _images(store: Array) -> Value:
    """A value of images that lie so."""
    count, height, width, channels = store.shape
    value = Value((count, channels, height, width), store.dtype)
    value.last, value.store = True, store
    return value


def _part(value: Value | None, image: int, run: tuple[int, int]) -> Value | None:
    """What belongs to some images of one volume, of a value that is broadcast to all."""
    if value is None or len(value.shape) < 3:
        return value
    array = value.array.reshape((1,) * (5 - len(value.shape)) + value.shape)
    array = array[image if array.shape[0] > 1 else 0]
    part = np.moveaxis(array[:, slice(*run)] if array.shape[1] > 1 else array, 1, 0)
    if value.constant is not None:
        return constant(part)
    return _images(np.moveaxis(part, 1, -1))


def _pads(op: Any, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> list[tuple[int, int]]:
    """The padding of each axis, before and after."""
    pairs = [
        op.pads(size, axis, reach(kernel[axis], op.dilations[axis]))
        for axis, size in enumerate(sizes)
    ]
    return [(number(begin), number(end)) for begin, end in pairs]


def _over_images(node: Node, pads: list[tuple[int, int]]) -> Op:
    """The convolution without its first axis."""
    op: Any = node.op
    texts = {
        "strides": op.strides[1:],
        "dilations": op.dilations[1:],
        "pads_begin": [begin for begin, _ in pads],
        "pads_end": [end for _, end in pads],
    }
    found = {name: ",".join(map(str, numbers)) for name, numbers in texts.items()}
    return Op.registry[node.kind, 1].read({**found, "auto_pad": "explicit"})


def _stack(
    node: Node, volume: Array, stacked: Array, run: tuple[int, int], before: int, abreast: int
) -> list[Part]:
    """Parts that put the images of each window side by side, group by group."""
    op: Any = node.op
    groups = node.inputs[1].shape[0] if node.kind == "GroupConvolution" else 1
    inner = volume.shape[-1] // groups
    taken = stacked.reshape(*stacked.shape[:3], groups, -1, inner)
    lanes: list[Part] = []
    for first, stop in spans(run[1] - run[0], abreast):
        parts: list[Part] = []
        for image in range(first, stop):
            for tap in range(taken.shape[4]):
                place = (run[0] + image) * op.strides[0] - before + tap * op.dilations[0]
                room = taken[image, :, :, :, tap]
                if 0 <= place < len(volume):
                    source = volume[place].reshape(room.shape)
                    parts.append(call(np.copyto, room, source))
                else:
                    parts.append(filling(room, 0))
        lanes.append(sequence(parts))
    return lanes
