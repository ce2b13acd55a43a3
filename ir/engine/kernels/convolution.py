"""Convolution, prepared: a plain product, a product of gathered windows, or Winograd's way.

Images are (H, W, C), so a product of rows of channels by a matrix (C, O) is a 1x1 convolution
with nothing copied. Larger windows are gathered by blocks of output rows that stay in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import SHUFFLE, LaidOut, Node, is_incoming_image
from ..workers import Part, shares, spans
from .blocks import (
    CACHE,
    Scratch,
    call,
    divisor,
    epilogue,
    followed,
    followers,
    lined,
    padded,
    sequence,
    taps,
)  # fmt: skip
from .deep import deep
from .products import in_blocks, multiplied
from .winograd import Way, apart, choose, winograd


class Sizes:
    """The numbers of a convolution over two spatial axes; one axis is taken as a single row."""

    def __init__(self, node: Node) -> None:
        op = node.op
        weights = node.inputs[1].constant
        assert weights is not None
        self.groups = weights.shape[0] if node.kind == "GroupConvolution" else 1
        if self.groups > 1 or node.kind == "GroupConvolution":
            weights = weights.reshape(-1, *weights.shape[2:])
        axes = weights.ndim - 2
        lead = 2 - axes
        self.kernel = _two(weights.shape[2:], lead, 1)
        self.weights = weights.reshape(*weights.shape[:2], *self.kernel)
        self.strides = _two(op.strides, lead, 1)  # type: ignore[attr-defined]  # convolutions have it
        self.dilations = _two(op.dilations, lead, 1)  # type: ignore[attr-defined]
        shape = node.inputs[0].shape
        pairs = [
            op.pads(size, axis, reach(weights.shape[2 + axis], op.dilations[axis]))  # type: ignore[attr-defined]
            for axis, size in enumerate(shape[2:])
        ]
        self.pads = [(0, 0)] * lead + [(number(a), number(b)) for a, b in pairs]
        self.reach = (
            number(reach(self.kernel[0], self.dilations[0])),
            number(reach(self.kernel[1], self.dilations[1])),
        )
        self.inner = weights.shape[1]
        self.outer = weights.shape[0]
        self.out = _two(node.outputs[0].shape[2:], lead, 1)
        self.lead = lead
        #: What it pads with.
        self.fill: float | Array = 0.0 if node.padding is None else node.padding
        #: Whether the output is not in the order of the products.
        self.shuffled = shuffles(node)

    def image(self, batch: Array) -> Array:
        """A batch kept as (N, H, W, C), whatever its number of spatial axes."""
        return batch if self.lead == 0 else batch[:, None]

    @property
    def plain(self) -> bool:
        """Whether every output is made of the one input at the same place."""
        return self.kernel == (1, 1) and self.strides == (1, 1) and not any(map(any, self.pads))


def _two(values: tuple[int, ...], lead: int, fill: int) -> tuple[int, int]:
    """Two numbers, from two or one."""
    first, second = (fill,) * lead + tuple(values)
    return first, second


def shuffles(node: Node) -> bool:
    """Whether the last that is done to a node's output is to shuffle its channels."""
    return bool(node.epilogue) and node.epilogue[-1][0].xml_type == SHUFFLE


def is_prepared(node: Node) -> bool:
    """Whether there is a kernel for a convolution here."""
    value, output = node.inputs[0], node.outputs[0]
    if node.inputs[1].constant is None or value.type != np.float32:
        return False
    return len(value.shape) in (3, 4) and (value.last or is_incoming_image(value)) and output.last


def is_depthwise(sizes: Sizes) -> bool:
    """Whether each channel is by itself."""
    return sizes.groups > 1 and sizes.inner == 1 and sizes.outer == sizes.groups


def way_to_lay_out(node: Node) -> tuple[object, ...]:
    """What the laid out weights depend on: layers may share theirs."""
    op: Any = node.op
    weights, shapes = node.inputs[1].constant, (node.inputs[0].shape, node.outputs[0].shape)
    pads = op.pads_begin, op.pads_end, op.auto_pad
    return (id(weights), node.kind, *shapes, op.strides, op.dilations, *pads, shuffles(node))


def choose_ways(nodes: Sequence[Node], allowance: float = inf) -> list[Way | None]:
    """The ways of some convolutions, with so many bytes for them to share."""
    return choose([Sizes(node) for node in nodes], allowance)


def lay_out(node: Node, way: Way | None) -> LaidOut:
    """The weights as the kernel wants them; for depthwise ones nothing is worth doing ahead."""
    sizes = Sizes(node)
    if is_depthwise(sizes):
        return LaidOut(None, [])
    each = sizes.outer // sizes.groups
    groups = [sizes.weights[start : start + each] for start in range(0, sizes.outer, each)]
    if way is not None:
        stride = sizes.strides[0]
        return LaidOut(way, [way.matrices(apart(weights, stride)) for weights in groups])
    laid = [in_blocks(weights) for weights in groups]
    return LaidOut(None, [np.stack(laid)] if sizes.plain and len(laid) > 1 else laid)


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a convolution; None where there is no kernel for it here."""
    if not is_prepared(node):
        return None
    value, output = node.inputs[0], node.outputs[0]
    sizes = Sizes(node)
    assert value.store is not None
    assert output.store is not None
    images = value.store if value.last else np.moveaxis(value.store, 1, -1)
    source, target = sizes.image(images), sizes.image(output.store)
    finish = Finish(node, target, sizes, scratch)
    work = Work(sizes, source, target, finish, abreast, scratch)
    if is_depthwise(sizes):
        return depthwise(work)
    way, matrices = node.laid_out or lay_out(node, choose([sizes])[0])
    if way is not None and way.afresh:
        return deep(way, work, matrices[0])
    if way is not None:
        return winograd(way, work, matrices)
    few = target.shape[0] * prod(sizes.out) < sizes.outer
    if few and sizes.groups == 1 and not sizes.shuffled:
        return by_channels(work, matrices[0])
    return gathered(work, matrices)


class Finish:
    """What is done to a block of the output before it leaves the cache."""

    def __init__(self, node: Node, target: Array, sizes: Sizes, scratch: Scratch) -> None:
        self.bias = node.inputs[2].constant if len(node.inputs) > 2 else None
        self._target, self._lead, self._scratch = target, sizes.lead, scratch
        self._shuffled = sizes.shuffled
        #: Whether what follows does the same to all numbers, bias apart.
        self.alike = not any(
            op.xml_type == SHUFFLE or any(value is not None for value in others)
            for op, others in node.epilogue
        )
        self._followers = epilogue(node, scratch)
        self._leaders = followers(node.prologue, node.inputs[0], scratch)

    def __bool__(self) -> bool:
        return self.bias is not None or bool(self._followers)

    def room(self, part: int, image: int, rows: slice) -> Array:
        """Where products go: to the output itself, or beside it where that has gaps."""
        block = self._target[image, rows]
        beside = self._shuffled or not block.flags.c_contiguous
        return self._scratch.take(part, *block.shape) if beside and self else block

    def target(self, image: int, rows: slice, channels: slice) -> Array:
        """Rows and channels of one image of the output."""
        return self._target[image, rows, :, channels]

    def everywhere(self, block: Array) -> list[Part]:
        """What follows, if it is the same for all numbers, wherever they are."""
        return followed(self._followers, block, ())

    @property
    def leads(self) -> bool:
        """Whether something is done to the input before it is multiplied."""
        return bool(self._leaders)

    @property
    def put(self) -> Callable[[Array, Array], list[Part]] | None:
        """What brings any piece of the input to where it is wanted, if that is no copy."""
        if not self._leaders:
            return None
        (first,) = self._leaders
        return lambda given, room: first(given, (), room)

    def prepared(self, source: Array, image: int, rows: slice, room: Array) -> list[Part]:
        """What is done to rows of the input before they are multiplied, from there to a room."""
        first, *others = self._leaders
        index = (image, rows)
        return first(source[image, rows], index, room) + followed(others, room, index)

    def parts(
        self, room: Array, image: int, rows: slice, channels: slice, *, biased: bool = False
    ) -> list[Part]:
        """Bias, sums, activations on rows and channels of one image, from a room to the output."""
        target = self.target(image, rows, channels)
        index: Any = (image, rows, slice(None), channels)
        if self._lead:
            index, room, target = (image, slice(None), channels), room[0], target[0]
        if room.__array_interface__ == target.__array_interface__:
            room = target
        # Results are sooner copied to where they have gaps than made there, in short runs.
        gaps = not target.flags.c_contiguous and target.shape[-1] < LONG
        out = room if gaps and room.flags.c_contiguous and not self._shuffled else target
        found = []
        if self.bias is not None and not biased:
            bias = np.broadcast_to(self.bias[channels], room.shape)
            into = room if self._followers else out
            found.append(lined(np.add, room, bias, into, self._scratch))
            room = into
        found += followed(self._followers, room, index, out)
        return found if out is target else [*found, call(np.copyto, target, out)]


#: So many numbers make a run long.
LONG = 512


class Work(NamedTuple):
    """A convolution to be done: from images to images (N, H, W, C)."""

    sizes: Sizes
    source: Array
    target: Array
    finish: Finish
    abreast: int
    scratch: Scratch


def gathered(work: Work, blocks: list[Array]) -> list[list[Part]]:
    """Windows gathered into the rows of a matrix, times the weights of each group."""
    sizes, source, target, finish, abreast, scratch = work
    taken = prod(sizes.kernel) * sizes.inner
    # Groups of a plain convolution are multiplied together, else one by one.
    given = source.shape[3] // len(blocks)
    each = sizes.outer // len(blocks)
    height, width = sizes.out
    images = target.shape[0]
    per_row = width * ((0 if sizes.plain else taken) + sizes.outer) * 4
    at_once = max(1, CACHE * 2 // max(per_row, 1))
    steps: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(images, height, abreast)):
        parts: list[Part] = []
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
            if finish.leads:
                room_before = scratch.take(part, *block.shape)
                parts += finish.prepared(source, image, rows, room_before)
                block = room_before
            for group, matrix in enumerate(blocks):
                inner = slice(group * given, (group + 1) * given)
                windows, gather = _windows(
                    sizes, block[:, :, inner], (rows.start, rows.stop), part, scratch
                )
                out = flat[:, group * each : (group + 1) * each]
                parts += gather + multiplied(windows, matrix, out)
            parts += finish.parts(room, image, rows, slice(None))
        steps.append(sequence(parts))
    return [steps]


def by_channels(work: Work, blocks: Array) -> list[list[Part]]:
    """For small images with many channels: all windows first, then each worker some channels.

    Weights are then more than anything else, and each is fetched by one worker alone.
    """
    sizes, _, target, finish, abreast, scratch = work
    steps: list[list[Part]] = []
    (height, width), wide = sizes.out, blocks.shape[2]
    for image in range(target.shape[0]):
        windows, gather = _all_windows(work, image)
        if gather:
            steps.append(gather)
        lanes: list[Part] = []
        for part, (first, stop) in scratch.dealt(spans(len(blocks), abreast)):
            scratch.reset()
            channels = slice(first * wide, stop * wide)
            room = scratch.take(part, height, width, (stop - first) * wide)
            products = multiplied(windows, blocks[first:stop], room.reshape(height * width, -1))
            after = finish.parts(room, image, slice(0, height), channels)
            lanes.append(sequence([*products, *after]))
        steps.append(lanes)
    return steps


def _all_windows(work: Work, image: int) -> tuple[Array, list[Part]]:
    """All windows of an image for all workers to see, and the step that fills them."""
    sizes, source, _, finish, abreast, scratch = work
    (height, width), taken = sizes.out, prod(sizes.kernel) * sizes.inner
    flat = source[image].reshape(-1, sizes.inner)
    if sizes.plain and not finish.leads and np.shares_memory(flat, source):
        return flat, []
    scratch.shared.reset()
    windows = scratch.shared.take(0, height * width, taken)
    gather: list[Part] = []
    for part, (top, bottom) in scratch.dealt(spans(height, abreast)):
        scratch.reset()
        rows = slice(top, bottom)
        into = windows[top * width : bottom * width]
        if finish.leads:
            room = into.reshape(bottom - top, width, taken)
            parts = finish.prepared(source, image, rows, room)
        elif sizes.plain:
            parts = [call(np.copyto, into.reshape(source[image, rows].shape), source[image, rows])]
        else:
            parts = _filled(sizes, source[image], (top, bottom), into, part, scratch)
        gather.append(sequence(parts))
    return windows, gather


#: Numbers in one row of a window that are too few to copy together.
SHORT = 16


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
    if sizes.kernel[1] * channels > SHORT:
        windows = scratch.take(part, count * width, taken)
    else:
        # Runs along the row are longer than those of a window: the matrix is filled by columns,
        # of planes if there are some.
        windows = scratch.take(part, taken, count * width).T
    return windows, _filled(sizes, image, rows, windows, part, scratch)


def _filled(
    sizes: Sizes, image: Array, rows: tuple[int, int], windows: Array, part: int, scratch: Scratch
) -> list[Part]:
    """Parts that gather the windows of some output rows into the rows of a matrix."""
    by_columns = not windows.flags.c_contiguous
    room, parts = _reached(sizes, image, rows, part, scratch, planes=by_columns)
    counts = (rows[1] - rows[0], sizes.out[1])
    view = taps(room, sizes.kernel, sizes.strides, sizes.dilations, counts)
    if not by_columns:
        return [*parts, call(np.copyto, windows.reshape(view.shape), view)]
    view = view.transpose(2, 3, 4, 0, 1)
    return [*parts, call(np.copyto, windows.T.reshape(view.shape), view)]


def _reached(
    sizes: Sizes,
    image: Array,
    rows: tuple[int, int],
    part: int,
    scratch: Scratch,
    *,
    planes: bool = False,
    put: Callable[[Array, Array], list[Part]] | None = None,
) -> tuple[Array, list[Part]]:
    """All that the windows of some output rows reach, padding included, and what fills it.

    An image of planes may remain that; what is more than a copy is done by ``put``.
    """
    begin, end = rows
    tall = (end - begin - 1) * sizes.strides[0] + sizes.reach[0]
    wide = (sizes.out[1] - 1) * sizes.strides[1] + sizes.reach[1]
    top, left = begin * sizes.strides[0] - sizes.pads[0][0], -sizes.pads[1][0]
    planes = planes and image.strides[2] != image.itemsize
    inside = top >= 0 and left >= 0 and top + tall <= image.shape[0]
    inside = inside and left + wide <= image.shape[1]
    if put is None and inside and (planes or image.strides[2] == image.itemsize):
        return image[top : top + tall, left : left + wide], []
    if planes:
        room = scratch.take(part, image.shape[2], tall, wide).transpose(1, 2, 0)
    else:
        room = scratch.take(part, tall, wide, image.shape[2])
    return room, padded(image, (top, top + tall), (left, left + wide), room, sizes.fill, put)


def depthwise(work: Work) -> list[list[Part]]:
    """Each channel with a window of its own: weighted sums of shifted rows.

    Weights are tiled along the row, so that whole runs of pixels are multiplied at once; where
    the window skips columns, what each of its columns meets is copied together before.
    """
    sizes, source, target, finish, abreast, scratch = work
    height, width = sizes.out
    channels, images = sizes.outer, target.shape[0]
    times = divisor(width, TAPS_TILE // (channels * prod(sizes.kernel)))
    taken = np.ascontiguousarray(sizes.weights[:, 0].transpose(1, 2, 0))
    weights = np.tile(taken, (1, 1, times))
    close = sizes.strides[1] == 1
    across = 1 if close else sizes.kernel[1]
    per_row = width * channels * 4 * (1 + across * sizes.strides[0])
    at_once = max(1, CACHE // per_row)
    steps: list[Part] = []
    for part, (image, (top, bottom)) in scratch.dealt(shares(images, height, abreast)):
        parts: list[Part] = []
        for begin, end in spans(bottom - top, -(-(bottom - top) // at_once)):
            scratch.reset()
            first, stop = top + begin, top + end
            room, gather = _reached(
                sizes, source[image], (first, stop), part, scratch, put=finish.put
            )
            parts += gather
            if close and not room.flags.c_contiguous:
                whole = scratch.take(part, *room.shape)
                parts.append(call(np.copyto, whole, room))
                room = whole
            if not close:
                columns = taps(
                    room, (1, sizes.kernel[1]), (1, sizes.strides[1]), (1, sizes.dilations[1]),
                    (room.shape[0], width),
                )[:, :, 0].transpose(0, 2, 1, 3)  # fmt: skip
                room = scratch.take(part, *columns.shape)
                parts.append(call(np.copyto, room, columns))
            line, step = room.strides[0], 4 * channels
            windows = as_strided(
                room,
                (stop - first, width // times, *sizes.kernel, times * channels),
                (
                    line * sizes.strides[0],
                    step * times,
                    line * sizes.dilations[0],
                    step * sizes.dilations[1] if close else room.strides[1],
                    4,
                ),
            )
            rows = slice(first, stop)
            block = target[image, rows]
            if finish or not block.flags.c_contiguous:
                block = scratch.take(part, *block.shape)
            out = block.reshape(stop - first, width // times, times * channels)
            parts.append(_summed(windows, weights, out))
            parts += finish.parts(block, image, rows, slice(None))
        steps.append(sequence(parts))
    return [steps]


#: Tiled weights of a depthwise convolution have at most so many numbers.
TAPS_TILE = 36864


def _summed(windows: Array, weights: Array, out: Array) -> Part:
    def run() -> None:
        np.einsum("hwijx,ijx->hwx", windows, weights, out=out)

    return run


__all__ = ["Sizes", "prepare"]
