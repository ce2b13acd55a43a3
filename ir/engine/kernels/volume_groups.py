"""Convolution of volumes in many groups: a sum over the taps along the first axis.

What a tap there meets are images, and images in groups have kernels of their own: each adds what
it makes to what those before it made. That lies elsewhere than where it writes, which a kernel
may do before it adds: one writes where the output belongs, the next beside it, the last there.
Where each channel is by itself, points along the first axis mostly take less (`volume_points`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import Node, Steps, Value, constant
from ..plan import work as amount
from ..workers import Part, lanes, spans
from . import at_points, depthwise, volume_points
from .blocks import Scratch, filling, sequence
from .calls import call
from .convolution import choose_tilings, lay_out
from .convolution import prepare as prepare_images
from .convolution_work import Finish, Sizes

#: The padding of an axis, before and after.
Pads = tuple[int, int]
#: What the choice supposes of one core, in nanoseconds: to add an output to what there is.
ADDED = 0.3


def over_images(
    node: Node, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[Pads]
) -> Op:
    """A convolution over two axes, of the same kind."""
    texts = {
        "strides": strides,
        "dilations": dilations,
        "pads_begin": [begin for begin, _ in pads],
        "pads_end": [end for _, end in pads],
    }
    found = {name: ",".join(map(str, numbers)) for name, numbers in texts.items()}
    return Op.registry[node.kind, 1].read({**found, "auto_pad": "explicit"})


def images_of(store: Array) -> Value:
    """A value of images that lie so."""
    count, height, width, channels = store.shape
    value = Value((count, channels, height, width), store.dtype)
    value.last, value.store = True, store
    return value


def part_of(value: Value | None, image: int, some: slice) -> Value | None:
    """What belongs to some images of one volume, of a value that is broadcast to all."""
    if value is None or len(value.shape) < 3:
        return value
    array = _of_volumes(value)
    array = array[image if array.shape[0] > 1 else 0]
    part = np.moveaxis(array[:, some] if array.shape[1] > 1 else array, 1, 0)
    if value.constant is not None:
        return constant(part)
    found = images_of(np.moveaxis(part, 1, -1))
    found.grid = value.grid
    return found


def steps_of_part(steps: Steps, image: int, some: slice) -> Steps:
    """Steps with what of their operands belongs to some images of one volume."""
    return [(op, [part_of(other, image, some) for other in others]) for op, others in steps]


def _of_volumes(value: Value) -> Array:
    """A value that is broadcast to volumes, with all their axes."""
    return value.array.reshape((1,) * (5 - len(value.shape)) + value.shape)


def convolution(
    node: Node, pads: Sequence[Pads], abreast: int, scratch: Scratch
) -> list[list[Part]]:
    """The steps of a convolution whose weights are known."""
    value, output = node.inputs[0], node.outputs[0]
    weights, op = node.inputs[1].constant, node.op
    along: Any = op
    assert weights is not None
    assert value.store is not None
    assert output.store is not None
    small = over_images(node, along.strides[1:], along.dilations[1:], pads[1:])
    numbers = None if node.is_whole else volume_points.numbers_of(node, pads)
    size = None if numbers is None else _size_of_tiles(numbers, small, node)
    if numbers is not None and size is not None:
        finish = _below_each_other(node, scratch)
        if finish is not None:
            stores = value.store, output.store
            return volume_points.steps(numbers, size, *stores, finish, abreast, scratch)
    made, taps = output.store.shape[1], weights.shape[3]
    laid_out: dict[int, object] = {}
    steps: list[list[Part]] = []
    for image, (volume, target) in enumerate(zip(value.store, output.store, strict=True)):
        scratch.volumes.reset()
        if any(pads[0]):
            room = scratch.volumes.take(0, sum(pads[0]) + len(volume), *volume.shape[1:])
            steps.append(_padded(volume, pads[0][0], room, abreast))
            volume = room
        beside = scratch.volumes.take(0, *target.shape) if taps > 1 else target
        results = [images_of(target), images_of(beside)]
        for tap in range(taps):
            result, before = (results[(taps - 1 - tap + turn) % 2] for turn in (0, 1))
            begin = tap * along.dilations[0]
            met = volume[begin : begin + (made - 1) * along.strides[0] + 1 : along.strides[0]]
            follow: Steps = [(Op.registry["Add", 1].read({}), [None, before])] if tap else []
            bias: list[Value] = []
            if tap == taps - 1:
                bias = list(node.inputs[2:])
                follow += steps_of_part(node.epilogue, image, slice(None))
            one = constant(weights[:, :, :, tap])
            part = Node(node.layer, small, [images_of(met), one, *bias], [result])
            part.set_epilogue(follow)
            part.is_whole = node.is_whole
            if tap not in laid_out:
                laid_out[tap] = lay_out(part, choose_tilings([part])[0])
            part.laid_out = laid_out[tap]
            found = prepare_images(part, abreast, scratch)
            assert found is not None
            steps += found
    return steps


def _size_of_tiles(numbers: volume_points.Numbers, small: Op, node: Node) -> int | None:
    """Of how many outputs tiles are along the first axis; None where taps take less by turns."""
    deep, (planes, height, width) = numbers.kernel[0], numbers.out
    pieces, channels = lanes(amount(node)), len(numbers.weights)
    took, size = volume_points.nanoseconds(numbers, pieces)
    given, made = (
        Value((planes, channels, *some), np.dtype(np.float32))
        for some in (numbers.size[1:], (height, width))
    )
    taps = constant(numbers.weights[:, None, None, 0])
    sizes = Sizes(Node(node.layer, small, [given, taps], [made]))
    least = depthwise.nanoseconds(sizes)
    along = at_points.quickest_size(sizes, least, pieces)
    if along is not None:
        least = at_points.nanoseconds(sizes, along, pieces)
    least = deep * planes * (least + ADDED * height * width)
    return size if took < at_points.rates().margin * least else None


def _below_each_other(node: Node, scratch: Scratch) -> Finish | None:
    """What follows a convolution, for images that are the images of a volume below each other.

    None where another operand does not lie so.
    """
    store = node.outputs[0].store
    assert store is not None
    images, deep, height, *rest = store.shape
    target = store.reshape(images, deep * height, *rest)
    if not np.may_share_memory(target, store):
        return None
    found: Steps = []
    for step, others in node.epilogue:
        given = [_rows_of(other, deep, height) for other in others]
        if any((a is None) != (b is None) for a, b in zip(given, others, strict=True)):
            return None
        found.append((step, given))
    value = images_of(target)
    op = over_images(node, (1, 1), (1, 1), [(0, 0)] * 2)
    one = constant(np.ones((rest[1], 1, 1, 1, 1), np.float32))
    small = Node(node.layer, op, [value, one, *node.inputs[2:]], [value])
    small.set_epilogue(found)
    return Finish(small, target, Sizes(small), scratch)


def _rows_of(value: Value | None, deep: int, height: int) -> Value | None:
    """A value broadcast to volumes, as their images one below the other; None if it cannot."""
    if value is None or len(value.shape) < 3:
        return value
    array = _of_volumes(value)
    if array.shape[2:4] not in ((deep, height), (1, 1)):
        return None
    last = np.moveaxis(array, 1, -1)
    images = last.reshape(len(last), -1, *last.shape[3:])
    if value.constant is not None:
        return constant(np.moveaxis(images, -1, 1))
    return images_of(images) if np.may_share_memory(images, array) else None


def _padded(volume: Array, before: int, room: Array, abreast: int) -> list[Part]:
    """Parts that put images between others of zeros."""
    after = before + len(volume)
    lanes = [
        call(np.copyto, room[before + begin : before + end], volume[begin:end])
        for begin, end in spans(len(volume), abreast)
    ]
    return [sequence([filling(room[:before], 0), filling(room[after:], 0), lanes[0]]), *lanes[1:]]
