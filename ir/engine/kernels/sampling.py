"""Images sampled at given places, prepared: pixels gathered, weighted and summed up.

Which pixels make up a place, and with which weights, is worked out for some places at a time, and
all channels share it. Where the channels of a pixel lie side by side, or there are many numbers to
sum up, whole pixels are gathered; else the places of each channel. Where samples are weighted and
summed up, the pixels of all of them are one product with their weights.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import Node
from ..workers import Part, spans
from .blocks import CACHE, Scratch, sequence
from .calls import call
from .copies import copied
from .matrices import pieces

#: So many places are worked out together: few calls, and what they need stays in cache.
PLACES = 8192
#: From so many numbers to each place on it pays to put the channels of pixels side by side.
MANY = 128
#: Rows of fewer numbers are cleared together with what is beside them.
SHORT = 256
#: How wide a frame is. Of neighbours, both are beyond the border, or one is, or none.
BORDER = 2
#: Images with fewer numbers to make of each are sampled together: calls would take longest.
TOGETHER = 4096


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a GridSample of float32 numbers; None where there is no kernel for it."""
    data, grid = (value.array for value in node.inputs)
    output, op = node.outputs[0], node.op
    if any(value.type != np.float32 for value in (*node.inputs, output)) or not prod(data.shape):
        return None
    if not prod(output.shape) or output.store is None:
        return None
    images, channels, height, width = data.shape
    frame = Frame(op, height, width)
    corners = len(frame.corners(np.zeros((1, 2), np.float32)))
    beside = data.strides[1] == data.itemsize
    summed = None if node.summed is None else node.summed.array[:, 0]
    by_pixels = channels > 1 and (output.last or beside)
    by_pixels = by_pixels or summed is not None or corners * channels >= MANY
    # Places in a row, with the channels where the output has them.
    shape = (images, -1, channels) if output.last else (images, channels, -1)
    target = output.store.reshape(shape)
    if not np.may_share_memory(target, output.store):
        return None
    target = target if output.last else target.swapaxes(1, 2)
    scratch.shared.reset()
    if by_pixels:
        table = scratch.shared.take(0, images, frame.pixels, channels)
        moved = copied(np.moveaxis(data, 1, -1), frame.inside(table), abreast)
    else:
        table = scratch.shared.take(0, images, channels, frame.pixels).swapaxes(1, 2)
        moved = copied(data, np.moveaxis(frame.inside(table), -1, 1), abreast)
    # Before, not beside: others may move pixels next to these.
    cleared = sequence([call(some.fill, 0) for some in frame.beyond(table)])
    places = grid if summed is not None else grid.reshape(images, -1, 2)
    if not np.may_share_memory(places, grid):
        places = scratch.shared.take(0, *places.shape)
        moved += copied(grid, places.reshape(grid.shape), abreast)
    total, each = images * places.shape[1], prod(places.shape[2:-1])
    # As many for each worker as for any other.
    turns = -(-total * each // (PLACES * abreast))
    found = list(pieces(places.shape[:2], -(-total // (turns * abreast))))
    parts: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(found), abreast)):
        steps: list[Part] = []
        for index in found[begin:end]:
            scratch.reset()
            given = places[index], table[index[0]], target[index]
            if summed is not None:
                factors = summed[index]
                steps.append(_summed(frame, factors, *given, corners, part, scratch))
                continue
            make = _by_pixels if by_pixels else _by_channels
            steps.append(make(frame, *given, corners, part, scratch))
        parts.append(sequence(steps))
    return [[cleared], moved, parts]


class Frame(NamedTuple):
    """Where the pixels of an image lie in a table, and which of them make up a place.

    What lies beyond the border and is zero is one more pixel. Of four neighbours it is a frame,
    two pixels wide: then all four are in the table, always the same way from the first of them,
    which is brought into the frame if it is farther out.
    """

    op: Any
    height: int
    width: int

    @property
    def is_around(self) -> bool:
        """Whether there is a frame: a few pixels more, and one index where there were four."""
        return bool(self.op.mode == "bilinear" and self.op.padding_mode == "zeros")

    @property
    def pitch(self) -> int:
        """From a row to the next."""
        return self.width + 2 * BORDER if self.is_around else self.width

    @property
    def pixels(self) -> int:
        """How many the table has for an image."""
        if self.is_around:
            return (self.height + 2 * BORDER) * self.pitch
        return self.height * self.width + 1

    def inside(self, table: Array) -> Array:
        """The pixels of the images (images, height, width, channels)."""
        images, _, channels = table.shape
        if not self.is_around:
            inner = table[:, : self.pixels - 1]
            return inner.reshape(images, self.height, self.width, channels)
        rows = table.reshape(images, -1, self.pitch, channels)
        return rows[:, BORDER:-BORDER, BORDER:-BORDER]

    def beyond(self, table: Array) -> list[Array]:
        """What is to be made zero before the pixels are there: those beyond the border."""
        if not self.is_around:
            return [table[:, self.pixels - 1]]
        if self.width * table.shape[2] < SHORT:
            return [table]  # sooner done than many short runs
        rows = table.reshape(len(table), -1, self.pitch, table.shape[2])
        sides = rows[:, BORDER:-BORDER]
        ends = rows[:, :BORDER], rows[:, -BORDER:]
        return [*ends, sides[:, :, :BORDER], sides[:, :, -BORDER:]]

    def corners(self, places: Array, begins: Array | int = 0) -> list[tuple[Array, Array | None]]:
        """The pixels that make up each place, with weights; those of an image begin somewhere."""
        op = self.op
        if not self.is_around:
            found = op.corners(places, self.height, self.width)
            return [(index + begins, weight) for index, weight in found]
        by_axis = []
        for axis, size in enumerate((self.width, self.height)):
            (first, weight), (_, other) = op.taps(op.place(places[..., axis], size))
            by_axis.append((np.clip(first, -BORDER, size), (weight, other)))
        (column, across), (row, down) = by_axis
        # Of small images float32 counts all pixels.
        index = row.astype("f4" if self.pixels < 1 << 24 else "f8", copy=False) * self.pitch
        index += column
        above = index.astype(np.intp)
        above += begins + BORDER * (self.pitch + 1)
        below = above + self.pitch
        indices = above, above + 1, below, below + 1
        return list(zip(indices, (y * x for y in down for x in across), strict=True))


def _by_pixels(
    frame: Frame,
    places: Array,
    table: Array,
    target: Array,
    corners: int,
    part: int,
    scratch: Scratch,
) -> Part:
    """Whole pixels are gathered, all corners of some places at once."""
    (images, count), channels = places.shape[:2], table.shape[-1]
    # One table of all images, and one list of places where that is how they lie.
    pixels, begins = table.reshape(-1, channels), _begins(table)[:, None]
    whole = target.reshape(-1, channels)
    runs = [(0, whole)] if np.may_share_memory(whole, target) else [
        (image * count, goal) for image, goal in enumerate(target)
    ]  # fmt: skip
    longest = max(len(goal) for _, goal in runs)
    each = max(1, min(longest, CACHE // (4 * channels * (corners + 1))))
    room = scratch.take(part, each, corners, channels)
    made = scratch.take(part, each, channels)
    indices = scratch.take(part, 2 * images * count * corners).view(np.intp)
    indices = indices.reshape(images, count, corners)
    weights = scratch.take(part, images, count, corners)
    straight = target.strides[-1] == target.itemsize
    rows, factors = indices.reshape(-1, corners), weights.reshape(-1, corners)

    def run() -> None:
        for corner, (index, weight) in enumerate(frame.corners(places, begins)):
            indices[..., corner] = index
            if weight is not None:
                weights[..., corner] = weight
        for first, goals in runs:
            for begin in range(0, len(goals), each):
                end = min(begin + each, len(goals))
                goal, some = goals[begin:end], slice(first + begin, first + end)
                result = goal if straight else made[: end - begin]
                if corners == 1:
                    picked = room[: end - begin, 0]
                    np.take(pixels, rows[some, 0], 0, out=picked, mode="clip")
                    result = picked
                else:
                    picked = room[: end - begin]
                    np.take(pixels, rows[some], 0, out=picked, mode="clip")
                    np.einsum("pt,ptc->pc", factors[some], picked, out=result)
                if result is not goal:
                    np.copyto(goal, result)

    return run


def _begins(table: Array) -> Array:
    """Where the pixels of each image begin."""
    return np.arange(len(table)) * table.shape[1]


def _summed(
    frame: Frame,
    factors: Array,
    places: Array,
    table: Array,
    target: Array,
    corners: int,
    part: int,
    scratch: Scratch,
) -> Part:
    """Whole pixels are gathered, all corners of the places that make up some sums."""
    images, count, samples = factors.shape
    channels, terms = table.shape[-1], samples * corners
    each = max(1, min(count, CACHE // (4 * channels * (terms + 1))))
    room = scratch.take(part, each, terms, channels)
    made = scratch.take(part, each, 1, channels)
    indices = scratch.take(part, 2 * factors.size * corners).view(np.intp)
    indices = indices.reshape(*factors.shape, corners)
    weights = scratch.take(part, *factors.shape, corners)
    rows = indices.reshape(images, count, terms), weights.reshape(images, count, 1, terms)

    def run() -> None:
        for corner, (index, weight) in enumerate(frame.corners(places)):
            indices[..., corner] = index
            if weight is None:
                weights[..., corner] = factors
            else:
                np.multiply(weight, factors, weights[..., corner])
        for pixels, goal, index, weight in zip(table, target, *rows, strict=True):
            for begin in range(0, count, each):
                some = slice(begin, min(begin + each, count))
                picked = room[: some.stop - begin]
                np.take(pixels, index[some], 0, out=picked, mode="clip")
                np.matmul(weight[some], picked, out=made[: some.stop - begin])
                np.copyto(goal[some], made[: some.stop - begin, 0])

    return run


def _by_channels(
    frame: Frame,
    places: Array,
    table: Array,
    target: Array,
    corners: int,
    part: int,
    scratch: Scratch,
) -> Part:
    """The places of each channel are gathered, a corner at a time; of few, those of all images."""
    (images, count), channels = places.shape[:2], table.shape[-1]
    pixels, goals = table.swapaxes(1, 2), target.swapaxes(1, 2)
    together = images if images > 1 and channels * count < TOGETHER else 1
    room = scratch.take(part, together, channels, count)
    total = scratch.take(part, together, channels, count)
    flat = pixels.reshape(-1)
    begins = _begins(flat.reshape(images * channels, -1)).reshape(images, channels, 1)
    each = begins[:, 0] if together > 1 and channels == 1 else 0

    def run() -> None:
        found = frame.corners(places, each)
        for image in range(0, images, together):
            some = slice(image, image + together)
            for corner, (index, weight) in enumerate(found):
                if together > 1:
                    chosen = index[some, None]
                    if channels > 1:
                        chosen = chosen + begins[some]
                    np.take(flat, chosen, out=room, mode="clip")
                else:
                    np.take(pixels[image], index[image], 1, out=room[0], mode="clip")
                if weight is None:
                    np.copyto(total, room)
                elif not corner:
                    np.multiply(room, weight[some, None], total)
                else:
                    np.multiply(room, weight[some, None], room)
                    np.add(total, room, total)
            np.copyto(goals[some], total)

    return run
