"""Convolution, prepared: a plain product, a product of gathered windows, or Winograd's way.

Images are (H, W, C), so a product of rows of channels by a matrix (C, O) is a 1x1 convolution
with nothing copied. Larger windows are gathered by blocks of output rows that stay in cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from ....schemas import Array
from ..memory import in_runs as in_pieces
from ..plan import Node, is_incoming_image
from ..plan import work as amount
from ..workers import Part, lanes, shares, spans
from . import banded, depthwise
from .at_points import at_points, quickest_size
from .banded import Tile, in_bands, quickest_tile
from .blocks import CACHE, Scratch, filling, sequence, taps
from .calls import call
from .convolution_work import Finish, Sizes, Work, are_alike, reached, shuffles
from .deep import deep
from .depthwise import is_depthwise
from .grouped import grouped, in_runs, quickest
from .in_use import made_once
from .products import by_runs, in_blocks, in_columns, sums, width
from .spread import by_taps_and_channels, is_spread, spread
from .winograd import Tiling, apart, choose, winograd


class LaidOut(NamedTuple):
    """Weights of a convolution as its kernel wants them, and Winograd's tiling, where it is his.

    Where each channel is by itself: its tile, or how many outputs are made at points.
    """

    tiling: Tiling | None
    matrices: list[Array]
    alone: Tile | int | None = None


def is_prepared(node: Node) -> bool:
    """Whether there is a kernel for a convolution here."""
    value, output = node.inputs[0], node.outputs[0]
    if node.inputs[1].constant is None or (value.type != np.float32 and value.grid is None):
        return False
    return len(value.shape) in (3, 4) and (value.last or is_incoming_image(value)) and output.last


def layout_key(node: Node) -> tuple[object, ...]:
    """What the laid out weights depend on: layers may share theirs."""
    op: Any = node.op
    weights, shapes = node.inputs[1].constant, (node.inputs[0].shape, node.outputs[0].shape)
    pads = op.pads_begin, op.pads_end, op.auto_pad
    return (
        id(weights),
        node.kind,
        *shapes,
        op.strides,
        op.dilations,
        *pads,
        shuffles(node),
        max(op.dilations) == 1 or are_alike(node),
        bool(node.prologue),
        node.inputs[0].grid is None,
        node.is_whole,
        None if node.padding is None else id(node.padding),
    )


def choose_tilings(nodes: Sequence[Node], allowance: float = inf) -> list[Tiling | None]:
    """The ways of some convolutions, with so many bytes for them to share."""
    return choose([Sizes(node) for node in nodes], allowance)


def lay_out(node: Node, tiling: Tiling | None) -> LaidOut:
    """The weights as the kernel wants them; for sums of shifted rows nothing is done ahead."""
    sizes = Sizes(node)
    if is_spread(sizes):
        return LaidOut(None, [by_taps_and_channels(sizes)])
    if is_depthwise(sizes):
        way = _each_alone(node, sizes)
        return LaidOut(None, [in_bands(sizes, way)] if isinstance(way, Tile) else [], way)
    each, runs = sizes.outer // sizes.groups, quickest(sizes)
    if tiling is None and runs is not None:
        return LaidOut(None, [in_runs(sizes, runs.length)])
    if tiling is not None:
        starts = range(0, sizes.outer, each)
        return LaidOut(
            tiling, [_transformed(node, sizes, tiling, start, each) for start in starts]
        )
    rows, of = prod(sizes.out), node.inputs[1].source
    if sizes.groups == 1:
        return LaidOut(None, in_columns(sizes.weights, rows, _sharing(node, sizes), of))
    laid = [
        in_blocks(sizes.weights[begin : begin + each], rows=rows, of=of, begin=begin)
        for begin in range(0, sizes.outer, each)
    ]
    return LaidOut(None, [np.stack(laid)] if sizes.plain else laid)


def _transformed(node: Node, sizes: Sizes, tiling: Tiling, start: int, each: int) -> Array:
    """The weights of a group at the points of a tile; plans for other images share them."""
    source, stride = node.inputs[1].source, sizes.strides[0]
    weights = apart(sizes.weights[start : start + each], stride)
    assert source is not None
    how = "tiles", tiling.size, tiling.points, tiling.afresh, stride, start
    return made_once(
        source, how, tiling.laid(*weights.shape[:2]), lambda: tiling.matrices(weights)
    )


def _each_alone(node: Node, sizes: Sizes) -> Tile | int | None:
    """How each channel is convolved: by tiles, so many outputs at points, or by shifted rows."""
    tile = quickest_tile(sizes)
    if node.inputs[0].grid is not None or node.is_whole:
        return tile  # sums of levels are exact
    least = depthwise.nanoseconds(sizes) if tile is None else banded.nanoseconds(sizes, tile)
    size = quickest_size(sizes, least, lanes(amount(node)))
    return tile if size is None else size


def _sharing(node: Node, sizes: Sizes) -> int:
    """Among how many blocks of columns are dealt; one, where workers share rows."""
    return lanes(amount(node)) if are_few(sizes) else 1


def are_few(sizes: Sizes) -> bool:
    """Whether there are fewer places than channels: weights are more than the image then."""
    few = sizes.images * prod(sizes.out) < sizes.outer
    return few and sizes.groups == 1 and not sizes.shuffled


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a convolution; None where there is no kernel for it here."""
    is_computed = _has_computed_weights(node)
    if not (is_computed or is_prepared(node)):
        return None
    value, output = node.inputs[0], node.outputs[0]
    sizes = Sizes(node)
    assert value.store is not None
    assert output.store is not None
    images = value.store if value.last else np.moveaxis(value.store, 1, -1)
    source, target = sizes.image(images), sizes.image(output.store)
    finish = Finish(node, target, sizes, scratch)
    work = Work(sizes, source, target, finish, abreast, scratch)
    if is_computed:
        return _computed(node, work)
    laid_out = node.laid_out
    if not isinstance(laid_out, LaidOut):
        laid_out = lay_out(node, choose([sizes])[0])
    tiling, matrices, way = laid_out
    if is_spread(sizes):
        return spread(work, matrices[0])
    if is_depthwise(sizes):
        if isinstance(way, Tile):
            return banded.banded(work, way, matrices[0])
        return depthwise.depthwise(work) if way is None else at_points(work, way)
    if tiling is not None and tiling.afresh:
        return deep(tiling, work, matrices[0])
    if tiling is not None:
        return winograd(tiling, work, matrices)
    if quickest(sizes) is not None:
        return grouped(work, matrices[0])
    if sizes.skips:
        return by_taps(work, matrices)
    if are_few(sizes):
        return by_channels(work, matrices)
    return gathered(work, matrices)


def _has_computed_weights(node: Node) -> bool:
    """Whether a node's weights are other ones in each run."""
    value, weights, output = node.inputs[0], node.inputs[1], node.outputs[0]
    if weights.is_fixed or weights.packed is not None:
        return False
    if not value.type == weights.type == output.type == np.float32 or value.grid is not None:
        return False
    return len(value.shape) in (3, 4) and value.last and output.last and weights.store is not None


def _computed(node: Node, work: Work) -> list[list[Part]]:
    """Weights are turned before, then windows are gathered, or rows summed of each channel."""
    sizes, shared = work.sizes, work.scratch.shared
    each, taken = sizes.outer // sizes.groups, prod(sizes.kernel) * sizes.inner
    given = node.inputs[1].array
    if sizes.narrow:
        given = given[..., None]
    if is_depthwise(sizes):
        shared.reset()
        taps = shared.take(0, *sizes.kernel, sizes.groups, each)
        turn = call(np.copyto, taps, given[:, :, 0].transpose(2, 3, 0, 1))
        return [[turn], *depthwise.depthwise(work, taps.reshape(*sizes.kernel, sizes.outer))]
    wide = width(each, taken, prod(sizes.out))
    shared.reset()
    blocks = shared.take(0, sizes.groups, each // wide, taken, wide)
    if node.kind == "Convolution":
        given = given[None]
    groups, _, inner, tall, across = given.shape
    given = given.reshape(groups, each // wide, wide, inner, tall, across)
    assert np.may_share_memory(given, node.inputs[1].array)
    turned = blocks.reshape(groups, each // wide, tall, across, inner, wide)
    turn = call(np.copyto, turned, given.transpose(0, 1, 4, 5, 3, 2))
    return [[turn], *gathered(work, list(blocks))]


def gathered(work: Work, blocks: list[Array]) -> list[list[Part]]:
    """Windows gathered into the rows of a matrix, times the weights of each group."""
    sizes, source, target, finish, abreast, scratch = work
    taken = prod(sizes.kernel) * sizes.inner
    # Groups of a plain convolution are multiplied together, else one by one; runs of columns of
    # one group are made of the same.
    runs = [blocks] if sizes.groups == 1 else [[block] for block in blocks]
    given, each = source.shape[3] // len(runs), sizes.outer // len(runs)
    height, width = sizes.out
    images = target.shape[0]
    before = sizes.inner * finish.leads if sizes.plain else taken
    per_row = width * (before + sizes.outer) * 4
    at_once = max(1, CACHE * 2 // max(per_row, 1))
    steps: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(images, height, abreast)):
        parts: list[Part] = []
        factors, matrices = finish.factors(image, (bottom - top) * width), runs
        if factors is not None:
            matrices = [[np.empty_like(matrix) for matrix in run] for run in runs]
            parts += [
                call(np.multiply, matrix, factors[:, None], out=scaled)
                for run, made in zip(runs, matrices, strict=True)
                for matrix, scaled in zip(run, made, strict=True)
            ]
        for begin, end in spans(bottom - top, -(-(bottom - top) // at_once)):
            # The same memory serves every block of the part.
            scratch.reset()
            rows = slice(top + begin, top + end)
            room = finish.room(part, image, rows)
            flat = room.reshape(-1, sizes.outer)
            if not np.shares_memory(flat, room):
                room = scratch.take(part, *room.shape)
                flat = room.reshape(-1, sizes.outer)
            block = source[image, rows] if sizes.plain else source[image]
            if finish.leads and factors is None:
                room_before = scratch.take(part, *block.shape)
                parts += finish.prepared(source, image, rows, room_before)
                block = room_before
            added = sums(scratch, part, taken, height * width)
            for group, run in enumerate(matrices):
                inner = slice(group * given, (group + 1) * given)
                windows, gather = _windows(
                    sizes, block[:, :, inner], (rows.start, rows.stop), part, scratch
                )
                out = flat[:, group * each : (group + 1) * each]
                parts += gather
                parts += by_runs(windows, run, out, rows=height * width, room=added)
            parts += finish.parts(room, image, rows, slice(None))
        steps.append(sequence(parts))
    return [steps]


def by_channels(work: Work, blocks: list[Array]) -> list[list[Part]]:
    """For small images with many channels: all windows first, then each worker some channels.

    Weights are then more than anything else, and each is fetched by one worker alone, once.
    """
    sizes, _, target, finish, abreast, scratch = work
    images, (height, width) = target.shape[0], sizes.out
    (count, taken, wide), *rest = (some.shape for some in blocks)
    windows, gather = _all_windows(work)
    lanes: list[Part] = []
    for part, (first, stop) in scratch.dealt(spans(count + len(rest), abreast)):
        scratch.reset()
        # What is left may be wider than a block, or narrower.
        channels = slice(first * wide, sizes.outer if stop > count else stop * wide)
        room = scratch.take(part, images, height, width, channels.stop - channels.start)
        some = [blocks[0][first:stop]] if first < count else []
        some += blocks[1:] if stop > count else []
        parts = by_runs(
            windows, some, room.reshape(len(windows), -1), rows=height * width,
            room=sums(scratch, part, taken, height * width),
        )  # fmt: skip
        for image, made in enumerate(room):
            parts += finish.parts(made, image, slice(0, height), channels)
        lanes.append(sequence(parts))
    return [gather, lanes] if gather else [lanes]


def _all_windows(work: Work) -> tuple[Array, list[Part]]:
    """All windows of all images for all workers to see, and the step that fills them."""
    sizes, source, target, finish, abreast, scratch = work
    images, (height, width), taken = target.shape[0], sizes.out, prod(sizes.kernel) * sizes.inner
    flat = source.reshape(-1, sizes.inner)
    if sizes.plain and not finish.leads and np.shares_memory(flat, source):
        return flat, []
    scratch.shared.reset()
    windows = scratch.shared.take(0, images, height * width, taken)
    gather: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(images, height, abreast)):
        scratch.reset()
        rows = slice(top, bottom)
        into = windows[image, top * width : bottom * width]
        if finish.leads:
            room = into.reshape(bottom - top, width, taken)
            parts = finish.prepared(source, image, rows, room)
        elif sizes.plain:
            parts = [call(np.copyto, into.reshape(source[image, rows].shape), source[image, rows])]
        else:
            parts = _filled(sizes, source[image], (top, bottom), into, part, scratch)
        gather.append(sequence(parts))
    return windows.reshape(-1, taken), gather


def by_taps(work: Work, blocks: list[Array]) -> list[list[Part]]:
    """Tap by tap, of the stops where it meets the image, a product that is added to the others."""
    sizes, source, target, finish, abreast, scratch = work
    width, inner = sizes.out[1], sizes.inner
    rows_met, columns_met = sizes.met
    per_row = width * (inner + 2 * sizes.outer) * 4
    steps: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(
        shares(target.shape[0], sizes.out[0], abreast)
    ):
        parts: list[Part] = []
        for begin, end in spans(bottom - top, -(-(bottom - top) * per_row // (4 * CACHE))):
            scratch.reset()
            rows = slice(top + begin, top + end)
            room = finish.room(part, image, rows)
            parts.append(filling(room, 0.0))
            given = source[image]
            if finish.leads:
                given = scratch.take(part, *given.shape)
                parts += finish.prepared(source, image, slice(None), given)
            gathered = scratch.take(part, (end - begin) * width, inner)
            made = scratch.take(part, (end - begin) * width, sizes.outer)
            added = sums(scratch, part, inner, prod(sizes.out))
            for tap, (down, across) in enumerate(np.ndindex(sizes.kernel)):
                low, high = rows_met[down]
                low, high = max(low, rows.start), min(high, rows.stop)
                first, stop = columns_met[across]
                if low >= high or first >= stop:
                    continue
                stops = (
                    sizes.met_at(0, down, (low, high)),
                    sizes.met_at(1, across, (first, stop)),
                )
                shape = high - low, stop - first
                left, out = gathered[: prod(shape)], made[: prod(shape)]
                into = room[low - rows.start : high - rows.start, first:stop]
                parts.append(call(np.copyto, left.reshape(*shape, inner), given[stops]))
                some = [block[:, tap * inner : (tap + 1) * inner] for block in blocks]
                parts += by_runs(left, some, out, rows=prod(sizes.out), room=added)
                parts.append(call(np.add, into, out.reshape(*shape, -1), out=into))
            parts += finish.parts(room, image, rows, slice(None))
        steps.append(sequence(parts))
    return [steps]


#: Runs of so few numbers are not worth copying one by one: of planes, and where channels are last.
SHORT, SHORTEST = 16, 11
#: From so often on it is worth to lay out what windows meet with the gaps of a stride.
OFTEN = 2


def _windows(
    sizes: Sizes, image: Array, rows: tuple[int, int], part: int, scratch: Scratch
) -> tuple[Array, list[Part]]:
    """The windows of some output rows as a matrix, and what fills it.

    Of a plain convolution the image is these rows.
    """
    begin, end = rows
    width, count, channels = sizes.out[1], end - begin, image.shape[2]
    if sizes.plain:
        flat = image.reshape(count * width, channels)
        if np.shares_memory(flat, image):
            return flat, []
        flat = scratch.take(part, count * width, channels)
        return flat, [call(np.copyto, flat.reshape(image.shape), image)]
    taken = prod(sizes.kernel) * channels
    of_planes = image.strides[2] != image.itemsize
    if _run(sizes, channels) > (SHORT if of_planes else SHORTEST):
        windows = scratch.take(part, count * width, taken)
    else:
        # Runs along the row are longer than those of a window: the matrix is filled by columns,
        # of planes if there are some.
        windows = scratch.take(part, taken, count * width).T
    return windows, _filled(sizes, image, rows, windows, part, scratch)


def _run(sizes: Sizes, channels: int) -> int:
    """How many numbers of a window lie side by side."""
    (tall, wide), (down, across) = sizes.kernel, sizes.dilations
    if wide > 1 and across > 1:
        return channels
    # A window as wide as the image is one run, whatever its height.
    is_whole = sizes.out[1] == 1 and (tall == 1 or down == 1)
    return channels * wide * (tall if is_whole else 1)


def _filled(
    sizes: Sizes, image: Array, rows: tuple[int, int], windows: Array, part: int, scratch: Scratch
) -> list[Part]:
    """Parts that gather the windows of some output rows into the rows of a matrix."""
    by_columns = not windows.flags.c_contiguous
    room, parts = reached(sizes, image, rows, part, scratch, planes=by_columns)
    counts = (rows[1] - rows[0], sizes.out[1])
    view = taps(room, sizes.kernel, sizes.strides, sizes.dilations, counts)
    if not by_columns:
        runs, into = in_pieces(view, windows.reshape(view.shape))
        return [*parts, call(np.copyto, into, runs)]
    view = view.transpose(2, 3, 4, 0, 1)
    columns = windows.T.reshape(view.shape)
    if sizes.dilations[1] == 1 < sizes.strides[1] and _is_met_often(sizes):
        return [*parts, *_columns_apart(sizes, room, counts, columns, part, scratch)]
    return [*parts, call(np.copyto, columns, view)]


def _is_met_often(sizes: Sizes) -> bool:
    """Whether windows meet every pixel so often that it is worth to lay them out for that."""
    return prod(sizes.kernel) >= OFTEN * prod(sizes.strides)


def _columns_apart(
    sizes: Sizes, room: Array, counts: tuple[int, int], columns: Array, part: int, scratch: Scratch
) -> list[Part]:
    """Parts that gather windows (kh, kw, channels, stops down, stops across) of planes.

    Of a stride, columns that are met by the same taps are put side by side before: gaps between
    numbers are stepped over once, and not for every tap.
    """
    step, (tall, wide, channels) = sizes.strides[1], room.shape
    (high, long), (down, _) = sizes.kernel, sizes.strides
    beside = scratch.take(part, step, channels, tall, -(-wide // step))
    parts: list[Part] = []
    for first, planes in enumerate(beside[:long]):
        given = room[:, first::step].transpose(2, 0, 1)
        parts.append(call(np.copyto, planes[..., : given.shape[2]], given))
        some = columns[:, first::step]
        kernel, gaps = (high, some.shape[1]), (sizes.dilations[0], 1)
        view = taps(planes.transpose(1, 2, 0), kernel, (down, 1), gaps, counts)
        parts.append(call(np.copyto, some, view.transpose(2, 3, 4, 0, 1)))
    return parts


__all__ = ["Sizes", "prepare"]
