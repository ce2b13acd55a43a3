"""Products of values of few levels by weights of few: int8 matrices, int32 sums, one scale each.

The input is brought to its levels once, padding included; windows are then gathered of bytes, a
quarter of what numbers are. Where a number was rounded to a level, its integer is known for sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..memory import in_runs
from ..plan import MIDDLE, Integers, Node
from ..workers import IntegerProducts, Part, integer_products, shares, spans
from .blocks import CACHE, Room, Scratch, epilogue, followed, lined, padded, sequence, taps
from .calls import call
from .convolution_work import Finish, Sizes
from .matrices import even_pieces, lying
from .quantizing import quantized, rounding

#: Into so many blocks columns are packed, at least, where there are few rows for workers to share.
BLOCKS = 4
#: Runs of so few bytes are sooner copied in loops as long as rows of the image.
SHORT = 48
#: So many products are done before another worker has begun.
ALONE = 1 << 18
#: So many rows are worth to be shared sooner than the columns, if so many of them are multiplied
#: at a time.
FEW, MANY = 128, 64


class Block(NamedTuple):
    """Some columns as the library wants them, which makes sums of so many."""

    columns: slice
    wide: int
    matrix: Any


class Weights(NamedTuple):
    """All columns in blocks, and ``factor * sums + shift`` for each."""

    blocks: list[Block]
    factor: Array
    shift: Array

    def columns(self, first: int, stop: int) -> slice:
        """The columns of a run of blocks."""
        return slice(self.blocks[first].columns.start, self.blocks[stop - 1].columns.stop)


def convolution(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """Levels of the images first, unless they are kept so; then windows times weights.

    Where rows are few, all windows are gathered before workers share the columns.
    """
    library, integers = _means(node)
    sizes = Sizes(node)
    value, output = node.inputs[0], node.outputs[0]
    assert value.store is not None
    assert output.store is not None
    assert output.last
    stored = value.store if value.last else np.moveaxis(value.store, 1, -1)
    source, target = sizes.image(stored), sizes.image(output.store)
    finish = Finish(node, target, sizes, scratch)
    scratch.shared.reset()
    images, before = images_of_levels(source, sizes, integers, abreast, scratch)
    places = prod(sizes.out)
    by_columns = places < FEW and not sizes.shuffled
    taken = prod(sizes.kernel) * sizes.inner
    per_row, at_once = sizes.out[1] * (taken + 8 * sizes.outer), places
    if not by_columns:
        tall = min(len(target) * sizes.out[0] // abreast, 2 * CACHE // per_row)
        at_once = max(1, min(tall, sizes.out[0])) * sizes.out[1]
    weights = _weights(node, library, integers, at_once, by_columns=by_columns)
    if by_columns:
        return [*before, *_by_columns(images, weights, finish, library, abreast, scratch)]
    whole = (0, len(weights.blocks))
    parts: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(len(target), sizes.out[0], abreast)):
        given, steps = images.reached(image, top, bottom)
        for first, stop in spans(bottom - top, -(-(bottom - top) * per_row // (2 * CACHE))):
            scratch.reset()
            rows = slice(top + first, top + stop)
            windows, gather = _windows(given, sizes, slice(first, stop), part, scratch)
            followed_up = finish or finish.target(image, rows, slice(None)).dtype != np.float32
            made = (
                scratch.take(part, stop - first, sizes.out[1], sizes.outer)
                if followed_up
                else finish.room(part, image, rows)
            )
            flat = made.reshape(-1, sizes.outer)
            steps += gather
            steps += _columns(windows, weights, whole, flat, library, part, scratch)
            steps += finish.parts(made, image, rows, slice(None))
        parts.append(sequence(steps))
    return [*before, parts]


def _by_columns(
    images: Images,
    weights: Weights,
    finish: Finish,
    library: IntegerProducts,
    abreast: int,
    scratch: Scratch,
) -> list[list[Part]]:
    """All windows first, then each worker some columns: each weight is fetched by one alone."""
    sizes = images.sizes
    (height, width), taken = sizes.out, prod(sizes.kernel) * sizes.inner
    count = len(images.levels)
    if count * height * width * taken * sizes.outer <= ALONE:
        abreast = 1
    gather: list[Part] = []
    if sizes.plain and images.levels.flags.c_contiguous:
        given = images.levels.reshape(count, height * width, taken)
    else:
        given = scratch.shared.take_bytes(0, count, height * width, taken)
        for _, (image, (top, bottom)) in scratch.dealt(shares(count, height, abreast)):
            into = given[image, top * width : bottom * width]
            reached, steps = images.reached(image, top, bottom)
            steps.append(_gathered(reached, sizes, slice(0, bottom - top), into))
            gather.append(sequence(steps))
    parts: list[Part] = []
    for part, (first, stop) in scratch.dealt(spans(len(weights.blocks), abreast)):
        channels = weights.columns(first, stop)
        steps = []
        for image, windows in enumerate(given):
            scratch.reset()
            made = scratch.take(part, height, width, channels.stop - channels.start)
            flat = made.reshape(height * width, -1)
            steps += _columns(windows, weights, (first, stop), flat, library, part, scratch)
            steps += finish.parts(made, image, slice(0, height), channels)
        parts.append(sequence(steps))
    if abreast == 1:
        return [[sequence([*gather, *parts])]]
    return [gather, parts] if gather else [parts]


def multiplied(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """The same for rows of matrices."""
    library, integers = _means(node)
    left, output = node.inputs[0], node.outputs[0]
    assert output.store is not None
    before: list[list[Part]] = []
    scratch.shared.reset()
    a = lying(left, before, abreast, scratch)
    a = np.broadcast_to(a, (*output.shape[:-2], *a.shape[-2:]))
    rows, columns = prod(output.shape[:-1]), output.shape[-1]
    # Who has some of the columns has room for more rows, of which products are the quicker.
    by_columns = rows < FEW or _rows_at_once(a.shape[-1], columns) < MANY
    made = output.type != np.float32
    lanes = abreast if rows * columns * a.shape[-1] > ALONE else 1
    at_once = _rows_at_once(a.shape[-1], -(-columns // lanes) if by_columns else columns)
    if not by_columns:
        at_once = min(at_once, -(-rows // lanes))
    found = even_pieces(output.shape[:-1], at_once, 1 if by_columns else lanes)
    if a.dtype == np.int8 and all(a[index].flags.c_contiguous for index in found):
        levels = [a[index].reshape(-1, a.shape[-1]) for index in found]
    else:
        levels, making = _rows(a, found, integers, abreast, scratch)
        before.append(making)
    followers = epilogue(node, scratch)
    weights = _weights(node, library, integers, min(rows, at_once), by_columns=by_columns)
    whole = (0, len(weights.blocks))
    work = [
        [(number, span) for number in some]
        for some, span in (
            [(range(len(found)), span) for span in spans(len(weights.blocks), lanes)]
            if by_columns
            else [(range(*span), whole) for span in spans(len(found), lanes)]
        )
    ]
    parts: list[Part] = []
    for part, pairs in scratch.dealt(work):
        steps = []
        for number, (first, stop) in pairs:
            scratch.reset()
            some = weights.columns(first, stop)
            place = (*found[number], ..., some)
            target = output.store[place]
            block = scratch.take(part, *target.shape) if made else target
            out = block if made else output.store[found[number]]
            out = out.reshape(-1, target.shape[-1] if made else columns)
            out = out if made else out[:, some]
            steps += _columns(levels[number], weights, (first, stop), out, library, part, scratch)
            steps += followed(followers, block, place, target)
        parts.append(sequence(steps))
    return [*before, parts]


def _rows_at_once(taken: int, columns: int) -> int:
    """How many rows stay in cache with their sums and what is made of these."""
    return max(1, 2 * CACHE // (taken + 8 * columns))


def _rows(
    a: Array, found: Sequence[Any], integers: Integers, abreast: int, scratch: Scratch
) -> tuple[list[Array], list[Part]]:
    """Some rows at a time as levels, and what makes them."""
    levels = [
        scratch.shared.take_bytes(0, prod(a[index].shape[:-1]), a.shape[-1]) for index in found
    ]
    making: list[Part] = []
    for _, (begin, end) in scratch.dealt(spans(len(found), abreast)):
        steps: list[Part] = []
        for index, into in list(zip(found, levels, strict=True))[begin:end]:
            scratch.reset()
            given, target = a[index], into.reshape(a[index].shape)
            if a.dtype == np.int8:
                steps.append(call(np.copyto, target, given))
            else:
                steps.append(to_levels(given, integers, target, scratch))
        making.append(sequence(steps))
    return levels, making


def _means(node: Node) -> tuple[IntegerProducts, Integers]:
    library = integer_products()
    assert library is not None
    assert node.integers is not None
    return library, node.integers


class Images(NamedTuple):
    """Images as levels (N, H, W, C), with padding or without."""

    sizes: Sizes
    levels: Array
    padded: bool
    zero: np.int8
    room: Room

    def reached(self, image: int, top: int, bottom: int) -> tuple[Array, list[Part]]:
        """What the windows of some rows of the output meet, and what fills it."""
        sizes, levels = self.sizes, self.levels[image]
        start, stride = top * sizes.strides[0], sizes.strides[0]
        if self.padded:
            return levels[start:], []
        tall = (bottom - top - 1) * stride + sizes.reach[0]
        (above, _), (left, right) = sizes.pads
        height, width, channels = levels.shape
        inside = above <= start and start - above + tall <= height
        lies = levels.flags.c_contiguous
        lies |= sizes.plain and levels.strides[0] == width * levels.strides[1]
        if inside and not left and not right and lies:
            return levels[start - above :], []
        room = self.room.take_bytes(0, tall, left + width + right, channels)
        rows, columns = (start - above, start - above + tall), (-left, width + right)
        return room, padded(levels, rows, columns, room, self.zero)


def images_of_levels(
    source: Array, sizes: Sizes, integers: Integers, abreast: int, scratch: Scratch
) -> tuple[Images, list[list[Part]]]:
    """All images as levels, and the step that makes them, padding included."""
    images, height, width, channels = source.shape
    (top, bottom), (left, right) = sizes.pads
    zero = np.int8((integers.grid.zero or 0) - MIDDLE)
    if source.dtype == np.int8:
        return Images(sizes, source, False, zero, scratch.shared), []
    shape = images, top + height + bottom, left + width + right, channels
    room = scratch.shared.take_bytes(0, *shape)
    parts: list[Part] = []
    for _, (image, (begin, end)) in scratch.dealt(shares(images, height, abreast)):
        scratch.reset()
        inner = room[image, top + begin : top + end]
        borders = [
            *([room[image, :top]] if not begin else []),
            *([room[image, top + height :]] if end == height else []),
            inner[:, :left], inner[:, left + width :],
        ]  # fmt: skip
        steps = [_filled(border, zero) for border in borders if border.size]
        into = inner[:, left : left + width]
        steps.append(to_levels(source[image, begin:end], integers, into, scratch))
        parts.append(sequence(steps))
    return Images(sizes, room, True, zero, scratch.shared), [parts]


def _filled(border: Array, zero: np.int8) -> Part:
    return lambda: border.fill(zero)


def to_levels(source: Array, integers: Integers, into: Array, scratch: Scratch) -> Part:
    """What brings numbers to their levels, less the middle one."""
    grid = integers.grid
    steps = grid.levels - 1
    ends = integers.limits or (grid.first, grid.first + steps * grid.step)
    numbers = rounding(steps, np.array([*ends, -MIDDLE, steps - MIDDLE], np.float32))
    assert numbers is not None
    return quantized(numbers, source, into, scratch.tile, own=scratch.own)


def _cut(numbers: Array, into: Array) -> Part:
    return lambda: np.copyto(into, numbers, casting="unsafe")


def _windows(
    image: Array, sizes: Sizes, rows: slice, part: int, scratch: Scratch
) -> tuple[Array, list[Part]]:
    """The windows of some output rows as a matrix of levels, and what fills it."""
    count = (rows.stop - rows.start) * sizes.out[1]
    taken = prod(sizes.kernel) * sizes.inner
    if sizes.plain:
        return image[rows].reshape(count, taken), []
    into = scratch.take_bytes(part, count, taken)
    return into, [_gathered(image, sizes, rows, into)]


def _gathered(image: Array, sizes: Sizes, rows: slice, into: Array) -> Part:
    """What copies the windows of some output rows."""
    counts = rows.stop - rows.start, sizes.out[1]
    given = image[rows.start * sizes.strides[0] :]
    view = taps(given, sizes.kernel, sizes.strides, sizes.dilations, counts)
    target = into.reshape(view.shape)
    if sizes.dilations[1] != 1 or not given.flags.c_contiguous:
        runs, made = in_runs(view, target)
        return call(np.copyto, made, runs)
    # Rows of a window are runs of bytes, each copied as one.
    run = np.dtype(f"V{sizes.kernel[1] * sizes.inner}")
    view = np.ndarray(view.shape[:3], run, given, 0, view.strides[:3])
    target = into.reshape(-1).view(run).reshape(view.shape)
    if run.itemsize > SHORT:
        return call(np.copyto, target, view)
    rows_apart = [
        call(np.copyto, target[:, :, tap], view[:, :, tap]) for tap in range(len(view[0, 0]))
    ]
    return sequence(rows_apart)


def _columns(
    rows: Array,
    weights: Weights,
    span: tuple[int, int],
    out: Array,
    library: IntegerProducts,
    part: int,
    scratch: Scratch,
) -> list[Part]:
    """Parts that multiply rows of levels by some blocks of columns, and scale."""
    columns, blocks = weights.columns(*span), weights.blocks[slice(*span)]
    numbers = out if out.flags.c_contiguous else scratch.take(part, *out.shape)
    memory = scratch.take(part, len(rows) * max(block.wide for block in blocks)).view(np.int32)
    steps: list[Part] = []
    for some, wide, matrix in blocks:
        made = numbers[:, some.start - columns.start : some.stop - columns.start]
        sums = memory[: len(rows) * wide].reshape(len(rows), wide)
        steps += [library.multiplied(rows, matrix, sums), _cut(sums[:, : made.shape[1]], made)]
    steps.append(_scaled(np.multiply, numbers, weights.factor[columns], numbers, scratch))
    if weights.shift.any():
        steps.append(_scaled(np.add, numbers, weights.shift[columns], out, scratch))
    elif numbers is not out:
        steps.append(call(np.copyto, out, numbers))
    return steps


def _scaled(function: Any, numbers: Array, row: Array, out: Array, scratch: Scratch) -> Part:
    return lined(function, numbers, np.broadcast_to(row, numbers.shape), out, scratch)


def _weights(
    node: Node, library: IntegerProducts, integers: Integers, rows: int, *, by_columns: bool
) -> Weights:
    """The columns packed, in blocks that suit so many rows at a time; plans share these."""
    packed = node.inputs[1].packed
    op: Any = node.op
    assert packed is not None
    turned = node.kind == "MatMul" and not op.transpose_b
    levels = packed.signed
    count = levels.shape[-1 if turned else 0]
    wide = library.blocks(rows, levels.size // count, count, BLOCKS if by_columns else 1)
    key = "quantized", turned, *wide
    found = packed.laid_out.get(key)
    if found is None:
        # The channels of a window side by side.
        columns = levels.T if turned else np.moveaxis(levels, 1, -1).reshape(count, -1)
        some = [
            slice(begin, min(end, count)) for begin, end in pairwise(accumulate(wide, initial=0))
        ]
        blocks = [
            Block(each, width, library.pack(columns[each], width))
            for each, width in zip(some, wide, strict=True)
        ]
        found = packed.laid_out[key] = blocks, columns.sum(1, dtype=np.int64)
    blocks, totals = found
    grid = integers.grid
    # Of a level less the middle one.
    shift = integers.scale * (grid.first + MIDDLE * grid.step) * totals + integers.shift
    factor = integers.scale * grid.step
    return Weights(blocks, factor.astype(np.float32), shift.astype(np.float32))


__all__ = ["convolution", "images_of_levels", "multiplied", "to_levels"]
