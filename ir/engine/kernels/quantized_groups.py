"""Convolutions of groups, by products of integers: some groups at a time, zeros between them.

The windows of neighbours along a row of the image share most of what they meet. Levels are laid
out so that what the windows of one row of the output meet lies together, column by column: there
every window is a run of bytes, and begins a column after the one before it. So windows are not
gathered; rows of a matrix that overlap are multiplied where they lie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import MIDDLE, Node, groups_together
from ..workers import IntegerProducts, Part, integer_products, spans
from .blocks import Scratch, sequence
from .calls import call
from .convolution_work import Finish, Sizes
from .quantized import images_of_levels
from .repeats import repeats

#: So many numbers are made of sums at a time: they, the sums and what they are scaled by.
PANEL = 16384
#: Columns are copied as one element each, as fast as memory allows where they have so many bytes.
LINE = 64


class Weights(NamedTuple):
    """Blocks of columns as the library wants them, and ``factor * sums + shift`` by block."""

    blocks: list[Any]
    factor: Array
    shift: Array


class Rows(NamedTuple):
    """How what windows of rows of the output meet is laid out: column by column, each of taps."""

    #: Of the kernel: taps down and what it reaches across; stops are so far apart.
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilation: int
    #: Padding above and on the left.
    pads: tuple[int, int]
    #: Columns of the image that are met, columns from one row to the next, and after the last.
    met: int
    pitch: int
    tail: int
    #: Windows in a row, and those of them that are wanted.
    stops: int
    wanted: int


def convolution(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """Levels are laid out, multiplied and scaled panel by panel: some blocks, some rows."""
    library, integers = integer_products(), node.integers
    assert library is not None
    assert integers is not None
    sizes = Sizes(node)
    value, output = node.inputs[0], node.outputs[0]
    assert value.store is not None
    assert output.store is not None
    stored = value.store if value.last else np.moveaxis(value.store, 1, -1)
    source, target = sizes.image(stored), sizes.image(output.store)
    finish = Finish(node, target, sizes, scratch)
    scratch.shared.reset()
    images, before = images_of_levels(source, sizes, integers, abreast, scratch)
    each = groups_together(sizes.groups, sizes.inner, sizes.outer // sizes.groups, _taps(sizes))
    weights = _weights(node, library, sizes, each)
    height, width = sizes.out
    wide = sizes.outer // len(weights.blocks)
    blocks, rows = _panel(len(weights.blocks), height, width * wide, abreast)
    if sizes.shuffled:
        blocks = 1  # all of them
    panels = [
        (image, block, row)
        for image in range(len(target))
        for block in spans(len(weights.blocks), blocks)
        for row in spans(height, rows)
    ]
    parts: list[Part] = []
    for part, (first, stop) in scratch.dealt(spans(len(panels), abreast)):
        steps: list[Part] = []
        for image, block, row in panels[first:stop]:
            scratch.reset()
            (top, _), (left, _) = sizes.pads
            given = images.levels[image]
            if images.padded:
                given = given[top : top + source.shape[1], left : left + source.shape[2]]
            made = scratch.take(part, block[1] - block[0], row[1] - row[0], width, wide)
            steps += _sums(
                given, sizes, weights, block, row, made, images.zero, library, part, scratch
            )
            steps += _finished(made, finish, image, slice(*row), block, part, scratch)
        parts.append(sequence(steps))
    return [*before, parts]


def _taps(sizes: Sizes) -> tuple[int, int]:
    """How many taps of each column are met, and how many columns."""
    return (1, sizes.reach[0]) if sizes.narrow else (sizes.kernel[0], sizes.reach[1])


def _panel(blocks: int, height: int, row: int, abreast: int) -> tuple[int, int]:
    """Into how many pieces blocks and rows are cut, for all workers to get as many."""
    if 2 * height * row <= PANEL and blocks >= abreast:
        pieces = -(-blocks * height * row // PANEL)
        return min(blocks, -(-pieces // abreast) * abreast), 1
    pieces = -(-height * row // PANEL)
    if blocks % abreast:
        pieces = -(-pieces // abreast) * abreast
    return blocks, min(height, pieces)


def _rows(sizes: Sizes, width: int) -> Rows:
    """How the windows of some rows are laid out."""
    (tall, _), (down, across) = _taps(sizes), sizes.strides
    (top, _), (left, _) = sizes.pads
    reach, stops, dilation = sizes.reach[1], sizes.out[1], sizes.dilations[0]
    if sizes.narrow:  # what is met one below the other is so along a row
        down, across, top, left = 1, down, 0, top
        reach, dilation = sizes.reach[0], 1
    return Rows((tall, reach), (down, across), dilation, (top, left), width, 0, 0, stops, stops)


def _laid(sizes: Sizes, image: Array, rows: tuple[int, int]) -> tuple[Rows, Array, int]:
    """The layout of some rows of the output, the image in its order, the first row there."""
    found, first, count = _rows(sizes, 0), rows[0], rows[1] - rows[0]
    across, left = found.strides[1], found.pads[1]
    if sizes.narrow:
        # The stops of a line are cut as rows are elsewhere.
        begin = first * across - left
        image, left = image[max(begin, 0) :].swapaxes(0, 1), max(-begin, 0)
        first, stops = 0, count
    else:
        stops = found.stops
    needed = (stops - 1) * across + found.kernel[1]
    met = max(0, min(image.shape[1], needed - left))
    # Of padding on the right stands as much on the left of the next row.
    begun = max(stops, -(-max(left + met, needed - left) // across))
    pitch = begun * across
    found = found._replace(
        pads=(found.pads[0], left), met=met, pitch=pitch, tail=max(0, needed - pitch),
        stops=begun, wanted=stops,
    )  # fmt: skip
    return found, image, first


def _sums(
    image: Array,
    sizes: Sizes,
    weights: Weights,
    block: tuple[int, int],
    rows: tuple[int, int],
    made: Array,
    zero: np.int8,
    library: IntegerProducts,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """What some blocks make of some rows: laid out, multiplied and scaled."""
    laid, image, first = _laid(sizes, image, rows)
    count = 1 if sizes.narrow else rows[1] - rows[0]
    blocks, wide = block[1] - block[0], made.shape[-1]
    channels = image.shape[2] // len(weights.blocks)
    tall, reach = laid.kernel
    column = tall * channels
    length = -(-(count * laid.pitch + laid.tail) * column // LINE) * LINE
    room = scratch.take_bytes(part, blocks, length)
    some = image[..., block[0] * channels : block[1] * channels]
    steps = _filled(laid, some, first, count, room, channels, zero)
    windows = (count - 1) * laid.stops + laid.wanted
    sums = scratch.take(part, blocks, count * laid.stops, wide).view(np.int32)
    step = laid.strides[1] * column
    for number in range(blocks):
        left = np.ndarray((windows, reach * column), np.int8, room, number * length, (step, 1))
        out = sums[number, :windows]
        steps.append(library.multiplied(left, weights.blocks[block[0] + number], out))
    wanted = sums.reshape(blocks, count, laid.stops, wide)[:, :, : laid.wanted]
    flat = made.reshape(wanted.shape)
    steps.append(lambda: np.copyto(flat, wanted, casting="unsafe"))
    places = made[0].size // wide
    times = repeats(places, wide)
    lines = made.reshape(blocks, -1, times * wide)
    for function, row in ((np.multiply, weights.factor), (np.add, weights.shift)):
        each = row[slice(*block)]
        if function is np.add and not each.any():
            continue
        beside = np.tile(each, (1, times))[:, None]
        steps.append(call(function, lines, beside, out=lines))
    return steps


def _filled(
    laid: Rows, image: Array, first: int, count: int, room: Array, channels: int, zero: np.int8
) -> list[Part]:
    """What lays out levels: columns of so many taps, of padding where there is no image."""
    tall = laid.kernel[0]
    (top, left), column = laid.pads, laid.kernel[0] * channels
    body = room[:, : count * laid.pitch * column].reshape(len(room), count, laid.pitch, -1)
    borders = [
        body[:, :, :left], body[:, :, left + laid.met :],
        room[:, count * laid.pitch * column :][:, : laid.tail * column],
    ]  # fmt: skip
    kind = np.dtype(f"V{channels}")
    taken = np.moveaxis(image.view(kind), -1, 0)
    pixels = body.view(kind)[:, :, left : left + laid.met]
    steps: list[Part] = []
    for tap in range(tall):
        start = first * laid.strides[0] + tap * laid.dilation - top
        begin = min(count, max(0, -(start // laid.strides[0])))
        end = max(begin, min(count, -((start - image.shape[0]) // laid.strides[0])))
        of_tap = body.reshape(*body.shape[:3], tall, -1)[:, :, left : left + laid.met, tap]
        borders += [of_tap[:, :begin], of_tap[:, end:]]
        if begin < end and laid.met:
            lines = slice(start + begin * laid.strides[0], None, laid.strides[0])
            given = taken[:, lines][:, : end - begin, : laid.met]
            steps.append(call(np.copyto, pixels[:, begin:end, :, tap], given))
    return [*(_padded(border, zero) for border in borders if border.size), *steps]


def _padded(border: Array, zero: np.int8) -> Part:
    return lambda: border.fill(zero)


def _finished(
    made: Array,
    finish: Finish,
    image: int,
    rows: slice,
    block: tuple[int, int],
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """What follows, done to blocks as they lie where it is alike for all channels; then a copy."""
    wide = made.shape[-1]
    channels = slice(block[0] * wide, block[1] * wide)
    target = finish.target(image, rows, channels)
    if not finish.is_uniform:
        room = scratch.take(part, *made.shape[1:3], channels.stop - channels.start)
        return [_side_by_side(made, room), *finish.parts(room, image, rows, channels)]
    if target.dtype == np.int8:
        levels = scratch.take_bytes(part, *made.shape)
        return [*finish.everywhere(made, levels), _side_by_side(levels, target)]
    return [*finish.everywhere(made), _side_by_side(made, target)]


def _side_by_side(made: Array, target: Array) -> Part:
    """What copies blocks of channels to where they stand side by side, each as one element."""
    kind = np.dtype(f"V{made.shape[-1] * made.itemsize}")
    return call(np.copyto, target.view(kind), np.moveaxis(made.view(kind)[..., 0], 0, -1))


def _weights(node: Node, library: IntegerProducts, sizes: Sizes, each: int) -> Weights:
    """The columns of so many groups packed together; plans share these."""
    packed, integers = node.inputs[1].packed, node.integers
    assert packed is not None
    assert integers is not None
    key = "groups", each, sizes.kernel, sizes.dilations
    found = packed.laid_out.get(key)
    if found is None:
        outer, (tall, wide) = sizes.outer // sizes.groups, sizes.kernel
        dilation = sizes.dilations[1]
        if sizes.narrow:
            (tall, wide), dilation = (1, tall), sizes.dilations[0]
        levels = packed.signed.reshape(-1, each, outer, sizes.inner, tall, wide)
        _, reach = _taps(sizes)
        shape = len(levels), each, outer, reach, tall, each, sizes.inner
        rows = np.zeros(shape, np.int8)
        for group in range(each):
            some = levels[:, group].transpose(0, 1, 4, 3, 2)
            rows[:, group, :, ::dilation, :, group] = some
        rows = rows.reshape(len(levels), each * outer, -1)
        found = packed.laid_out[key] = [library.pack(some) for some in rows], rows.sum(2, np.int64)
    blocks, totals = found
    grid, shape = integers.grid, totals.shape
    middle = grid.first + MIDDLE * grid.step
    shift = integers.scale.reshape(shape) * middle * totals + integers.shift.reshape(shape)
    factor = integers.scale.reshape(shape) * grid.step
    return Weights(blocks, factor.astype(np.float32), shift.astype(np.float32))


__all__ = ["convolution"]
