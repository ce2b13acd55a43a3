"""Convolution over three axes, either way round, prepared by way of those over two.

A volume is a row of images; the convolution of a volume is that of images which have, as further
channels, the channels of their neighbours. So all ways to convolve images serve here too. The
other way round it is one for each phase along the row: images that are made of the same taps.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import Node, constant, has_many_groups
from ..workers import Part, spans
from . import volume_groups
from .blocks import Scratch, filling, followers, sequence
from .calls import call
from .convolution import LaidOut, choose_tilings, lay_out
from .convolution import prepare as prepare_images
from .transposed import GROUPS, Work, axes_of
from .volume_groups import images_of, over_images, steps_of_part

#: Images with the channels of their neighbours take at most so many bytes at a time.
STACKED = 4 << 20


def convolution(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a convolution of volumes; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    weights = node.inputs[1].constant
    if weights is None or value.type != np.float32:
        return None
    assert value.store is not None
    assert output.store is not None
    pads = pads_of(node.op, value.shape[2:], weights.shape[-3:])
    if has_many_groups(node):
        return volume_groups.convolution(node, pads, abreast, scratch)
    groups = weights.shape[0] if node.kind == "GroupConvolution" else 1
    deep = weights.shape[-3]
    inner = value.shape[1] // groups
    flat = np.moveaxis(weights, -3, -4)
    flat = flat.reshape(*weights.shape[: weights.ndim - 4], deep * inner, *weights.shape[-2:])
    along: Any = node.op
    op = over_images(node, along.strides[1:], along.dilations[1:], pads[1:])
    near = Neighbours(groups, deep, -pads[0][0], along.strides[0], along.dilations[0])
    images, depth = output.store.shape[:2]
    each = 4 * deep * int(np.prod(value.store.shape[2:]))
    at_once = max(abreast, STACKED // max(each, 1))
    steps: list[list[Part]] = []
    laid_out: LaidOut | None = None
    for image in range(images):
        for begin, end in spans(depth, -(-depth // at_once)):
            scratch.volumes.reset()
            stacked = value.store[image, begin:end]
            if not near.are_the_images(depth, value.store.shape[1]):
                shape = end - begin, *stacked.shape[1:3], deep * value.shape[1]
                stacked = scratch.volumes.take(0, *shape)
                steps.append(put_beside(value.store[image], stacked, (begin, end), near, abreast))
            source = images_of(stacked)
            target = images_of(output.store[image, begin:end])
            small = Node(node.layer, op, [source, constant(flat), *node.inputs[2:]], [target])
            small.set_epilogue(steps_of_part(node.epilogue, image, slice(begin, end)))
            small.is_whole = node.is_whole
            small.laid_out = laid_out or lay_out(small, choose_tilings([small])[0])
            laid_out = small.laid_out
            found = prepare_images(small, abreast, scratch)
            assert found is not None
            steps += found
    return steps


def transposed(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a transposed convolution of volumes; None where there is no kernel for it."""
    value, output = node.inputs[0], node.outputs[0]
    weights = node.inputs[1].constant
    if weights is None or value.type != np.float32 or not (value.last and output.last):
        return None
    grouped = weights if node.kind.startswith("Group") else weights[None]
    if not value.nbytes or not output.nbytes or len(grouped) > GROUPS:
        return None
    assert value.store is not None
    assert output.store is not None
    deep, *axes = axes_of(node)
    phases = list(deep.phases(0, output.store.shape[1]))
    if not all(phase.taps for phase in phases):
        return None
    steps: list[list[Part]] = []
    for phase in phases:
        # (groups, taps * inner, outer, kh, kw)
        chosen = grouped[:, :, :, phase.taps].transpose(0, 3, 1, 2, 4, 5)
        chosen = chosen.reshape(len(grouped), -1, grouped.shape[2], *grouped.shape[4:])
        each = 4 * chosen.shape[1] * len(grouped) * prod(value.store.shape[2:4])
        runs = spans(phase.stops, -(-phase.stops * each // STACKED))
        for image, (begin, end) in product(range(len(value.store)), runs):
            scratch.volumes.reset()
            volume, first = value.store[image], phase.first + begin
            inside = first >= 0 and first + end - begin <= len(volume)
            if len(phase.taps) == 1 and inside:
                stacked = volume[first : first + end - begin]
            else:
                shape = (end - begin, *volume.shape[1:3], chosen.shape[1] * len(grouped))
                stacked = scratch.volumes.take(0, *shape)
                near = Neighbours(len(grouped), len(phase.taps), phase.first, 1, phase.step)
                steps.append(put_beside(volume, stacked, (begin, end), near, abreast))
            start = phase.start + begin * deep.stride
            some = slice(start, phase.start + end * deep.stride, deep.stride)
            target = images_of(output.store[image, some])
            chain = followers(steps_of_part(node.epilogue, image, some), target, scratch)
            store = output.store[image, some]
            work = Work(chosen, (axes[0], axes[1]), stacked, store, chain, scratch)
            steps += work.steps(abreast)
    return steps


def pads_of(op: Any, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> list[tuple[int, int]]:
    """The padding of each axis, before and after."""
    pairs = [
        op.pads(size, axis, reach(kernel[axis], op.dilations[axis]))
        for axis, size in enumerate(sizes)
    ]
    return [(number(begin), number(end)) for begin, end in pairs]


class Neighbours(NamedTuple):
    """Which images of a volume are put side by side for each that is made."""

    groups: int
    taps: int
    #: The first for the first, how far the first of the next is, and how far those of one are.
    first: int
    stride: int
    step: int

    def are_the_images(self, made: int, given: int) -> bool:
        """Whether what belongs to each is but the one image at its place."""
        return self.taps == self.stride == 1 and made == given


def put_beside(
    volume: Array,
    stacked: Array,
    run: tuple[int, int],
    near: Neighbours,
    abreast: int,
    fill: float | np.int8 = 0.0,
) -> list[Part]:
    """Parts that put the images of each window side by side, group by group."""
    inner = volume.shape[-1] // near.groups
    taken = stacked.reshape(*stacked.shape[:3], near.groups, near.taps, inner)
    lanes: list[Part] = []
    for first, stop in spans(run[1] - run[0], abreast):
        parts: list[Part] = []
        for image in range(first, stop):
            for tap in range(near.taps):
                place = (run[0] + image) * near.stride + near.first + tap * near.step
                room = taken[image, :, :, :, tap]
                if 0 <= place < len(volume):
                    source = volume[place].reshape(room.shape)
                    parts.append(call(np.copyto, room, source))
                else:
                    parts.append(filling(room, fill))
        lanes.append(sequence(parts))
    return lanes
