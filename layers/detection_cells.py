"""The cells of regions of feature maps: their pixels, the largest of them, their samples."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ..schemas import Array, IRError
from .budget import require, steps
from .image import round_away

#: So many numbers of cells are put where they belong at once.
AT_ONCE = 1 << 18


def image_of(images: Array, number: float) -> Array:
    """The image of a batch that a region is of."""
    if not -len(images) <= number < len(images):  # nor where it is no number
        raise IRError(f"a region is of image {number:g}, the batch has {len(images)}")
    found: Array = images[int(number)]
    return found


def listed_boxes(boxes: Array) -> Array:
    """The boxes before the first of image -1, with which Proposal marks the end of its list."""
    ends = np.flatnonzero(boxes[:, 0] <= -1)
    return boxes[: ends[0]] if ends.size else boxes


def samples_of(cell: Any, ratio: int, most: float = inf) -> int:
    """How many samples a cell takes along an axis: the ratio, or without one as it has pixels."""
    if ratio:
        return ratio
    if not cell < most:
        raise IRError(
            f"a cell of {cell} pixels takes as many samples, they are below {most:g}; "
            "give a sampling_ratio"
        )
    return int(np.ceil(max(cell, 0)))


def cells(first: Array, last: Array, count: int, size: int) -> tuple[Array, Array]:
    """Where each cell of boxes, of pixels from a first to a last, begins and ends on the image."""
    # Shares of whole numbers: 57 pixels times one seventh, seven times, is more in float32.
    edges = np.maximum(last - first + 1, 1)[:, None] * np.arange(count + 1)
    begins = edges[:, :-1] // count + first[:, None]
    ends = -(-edges[:, 1:] // count) + first[:, None]
    return begins.clip(0, size), ends.clip(0, size)


def pixels(begins: Array, ends: Array) -> Array:
    """Of the cells of each box along an axis, the first pixels, the second ones and so on.

    A cell with fewer pixels than others has its last one again.
    """
    most = max(int((ends - begins).max()), 1)
    require(8 * most * begins.size)
    last = np.maximum(ends - 1, 0)[:, None]
    return np.minimum(begins[:, None] + np.arange(most)[:, None], last)


def largest_of_cells(images: Array, boxes: Array, scale: np.float32, result: Array) -> None:
    """Put the largest value in each cell of each box into a result; zero where a cell is empty.

    Channels are the last axis of the images, the second of the result. A box is the number of its
    image and its corners; of its cells first the rows are brought to one, then the columns.
    """
    boxes_count, channels, height, width = result.shape
    require(32 * boxes_count * (height + width))
    corners = round_away(boxes[:, 1:] * scale).clip(-(2.0**31), 2.0**31).astype(np.int64)
    top, bottom = cells(corners[:, 1], corners[:, 3], height, images.shape[1])
    left, right = cells(corners[:, 0], corners[:, 2], width, images.shape[2])
    if not (len(boxes) and result.size):
        return
    none: Array = np.any(top >= bottom, 1) | np.any(left >= right, 1)
    tall, wide = (bottom - top).max(1).tolist(), (right - left).max(1).tolist()
    firsts, stops = left.min(1), right.max(1).tolist()
    rows, columns = (
        pixels(top, bottom),
        pixels(*(side - firsts[:, None] for side in (left, right))),
    )
    at_once = max(1, AT_ONCE // (height * width * channels))
    found = np.empty((min(at_once, len(boxes)), height, width, channels), np.float32)
    for begin in range(0, len(boxes), at_once):
        some = range(begin, min(begin + at_once, len(boxes)))
        for index, cell in zip(some, steps(found), strict=False):
            image = image_of(images, boxes[index, 0])
            if tall[index] < 1 or wide[index] < 1:
                cell[...] = 0
                continue
            of_box = image[:, firsts[index] : stops[index]]
            lines = of_box[rows[index, 0]]
            for row in rows[index, 1 : tall[index]]:
                np.maximum(lines, of_box[row], out=lines)
            np.take(lines, columns[index, 0], 1, out=cell, mode="clip")
            for column in columns[index, 1 : wide[index]]:
                np.maximum(cell, lines[:, column], out=cell)
            if none[index]:
                cell[(top[index] >= bottom[index])[:, None] | (left[index] >= right[index])] = 0
        result[begin : some.stop] = found[: len(some)].transpose(0, 3, 1, 2)
