"""Convolution by windows whose elements are moved: pixels gathered, weighted and multiplied.

``y[place] = sum over taps of W[tap] (sum over corners of share * x[pixel])``. All channels of a
group share a place, and lie side by side: each corner is one run of memory. So many places are
taken together that what is gathered of them stays in cache until it is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..plan import Node
from ..workers import Part, shares, spans
from .blocks import CACHE, Scratch, epilogue, followed, sequence
from .copies import copied
from .lines import laid_out

#: Bytes of weighted pixels that are multiplied together.
GATHERED = 1 << 20


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a deformable convolution of numbers; None where there is no kernel for it."""
    op: Any = node.op
    output, (data, offsets, filters, *masks) = node.outputs[0], node.inputs
    weights = filters.constant
    if weights is None or any(value.type != np.float32 for value in (*node.inputs, output)):
        return None
    if not output.last or not data.nbytes or not output.nbytes or not weights.size:
        return None
    assert output.store is not None
    images, channels, high, wide = data.shape
    kernel, groups = weights.shape[2:], op.deformable_group
    pads, counts = op.settled(data.array, kernel)
    taps, inner = prod(kernel), channels // groups
    # Pixels of each group of channels.
    scratch.shared.reset()
    table = scratch.shared.take(0, images, groups, high * wide, inner)
    into = table.reshape(images, groups, high, wide, inner)
    source = np.moveaxis(data.array, 1, -1).reshape(images, high, wide, groups, inner)
    moved = copied(np.moveaxis(source, 3, 1), into, abreast)
    columns = max(1, counts[1])
    together = max(1, GATHERED // (4 * columns * taps * channels))
    work = Work(
        op,
        (high, wide),
        [_by_places(place[None])[0] for place in op.places(kernel, counts, pads)],
        _laid_out(weights, op.group),
        table,
    )
    chain, store = epilogue(node, scratch), output.store
    rows = [
        (image, slice(first + begin, first + end))
        for image, (first, stop) in shares(images, counts[0], abreast)
        for begin, end in spans(stop - first, -(-(stop - first) // together))
    ]
    given = [(value.array, groups) for value in (offsets, *masks)]
    parts: list[Part] = []
    for part, (image, some) in scratch.dealt(rows):
        scratch.reset()
        block = store[image, some]
        run = work.multiply(image, some, given, block, part, scratch)
        parts.append(sequence([run, *followed(chain, block, (image, some))]))
    return [moved, parts]


def _by_places(array: Array) -> Array:
    """What there is for each tap and place, as (..., rows, columns, taps)."""
    return np.ascontiguousarray(np.moveaxis(array, -3, -1), np.float32)


def _laid_out(weights: Array, groups: int) -> list[Array]:
    """For each group of filters a matrix (taps * inner channels, outer channels)."""
    outer, inner, *_ = weights.shape
    grouped = weights.reshape(groups, outer // groups, inner, -1).transpose(0, 3, 2, 1)
    matrices = np.ascontiguousarray(grouped).reshape(groups, -1, outer // groups)
    return [laid_out(matrix) for matrix in matrices]


class Work(NamedTuple):
    """A deformable convolution to be done."""

    op: Any
    #: Of the images.
    size: tuple[int, int]
    #: Rows and columns from which elements are moved, each (rows, columns, taps).
    places: Sequence[Array]
    #: Of each group of filters.
    weights: Sequence[Array]
    #: (images, groups that are moved alike, pixels, channels)
    table: Array

    def multiply(
        self,
        image: int,
        some: slice,
        given: Sequence[tuple[Array, int]],
        block: Array,
        part: int,
        scratch: Scratch,
    ) -> Part:
        """Gather the elements of some rows' windows, and multiply them."""
        places = [place[some] for place in self.places]
        shape, groups, inner = places[0].shape, self.table.shape[1], self.table.shape[3]
        count, taps = prod(shape), shape[-1]
        each = max(1, min(count, CACHE // (4 * inner * 5)))
        weighted = scratch.take(part, count, groups, inner)
        room = scratch.take(part, each, 4, inner)
        indices = scratch.take(part, 2 * count * 4).view(np.intp).reshape(*shape, 4)
        factors = scratch.take(part, *shape, 4)
        taken = weighted.reshape(-1, taps, len(self.weights), groups * inner // len(self.weights))
        beside = scratch.take(part, *taken[:, :, 0].shape) if len(self.weights) > 1 else None
        target = block.reshape(-1, block.shape[-1])
        straight = np.may_share_memory(target, block) and len(self.weights) == 1
        made = target if straight else scratch.take(part, *target.shape)
        flat = indices.reshape(-1, 4), factors.reshape(-1, 4)
        op, table = self.op, self.table[image]
        (offsets, _), *masks = given
        split = [array[image].reshape(groups, -1, *array.shape[2:])[:, :, some]
                 for array, groups in ((offsets, groups), *masks)]  # fmt: skip

        def run() -> None:
            for group in range(groups):
                down, across = (
                    np.add(np.moveaxis(split[0][group, axis::2], 0, -1), places[axis])
                    for axis in (0, 1)
                )
                mask = np.moveaxis(split[1][group], 0, -1) if masks else None
                found = op.corners(down, across, self.size, mask)
                for corner, (index, share) in enumerate(found):
                    indices[..., corner], factors[..., corner] = index, share
                for begin in range(0, count, each):
                    end = min(begin + each, count)
                    picked, goal = room[: end - begin], weighted[begin:end, group]
                    np.take(table[group], flat[0][begin:end], 0, out=picked, mode="clip")
                    np.einsum("pt,ptc->pc", flat[1][begin:end], picked, out=goal)
            outer = made.shape[1] // len(self.weights)
            for group, matrix in enumerate(self.weights):
                windows = taken[:, :, group]
                if beside is not None:
                    np.copyto(beside, windows)
                    windows = beside
                columns = made[:, outer * group :][:, :outer]
                np.matmul(windows.reshape(len(windows), -1), matrix, out=columns)
            if not straight:
                np.copyto(block, made.reshape(block.shape))

        return run
