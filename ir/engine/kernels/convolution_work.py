"""What every way to convolve shares: the numbers of a convolution, what is done to its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import BINARY, SHUFFLE, Node, Value
from ..workers import Part
from .blocks import QUANTIZE, Scratch, epilogue, followed, followers, kept, lined, padded
from .calls import call

#: What is done with other tensors, by their place.
PLACED = BINARY | {"PReLU", QUANTIZE}
#: Fewer channels are not worth a product for each tap, and no more may be met by windows.
WORTH, MOST_SEEN = 32, 0.75


class Sizes:
    """The numbers of a convolution over two spatial axes.

    One axis is taken as rows of one pixel, which workers share as they do those of images.
    """

    def __init__(self, node: Node) -> None:
        op = node.op
        weights, packed = node.inputs[1].constant, node.inputs[1].packed
        if weights is None:  # the sizes are asked of it
            shape = node.inputs[1].shape if packed is None else packed.shape
            weights = np.broadcast_to(np.int8(0), shape)
        self.groups = weights.shape[0] if node.kind == "GroupConvolution" else 1
        if self.groups > 1 or node.kind == "GroupConvolution":
            weights = weights.reshape(-1, *weights.shape[2:])
        axes = weights.ndim - 2
        self.narrow = axes == 1
        self.kernel = _two(weights.shape[2:])
        self.weights = weights.reshape(*weights.shape[:2], *self.kernel)
        self.strides = _two(op.strides)  # type: ignore[attr-defined]  # convolutions have it
        self.dilations = _two(op.dilations)  # type: ignore[attr-defined]
        shape = node.inputs[0].shape
        pairs = [
            op.pads(size, axis, reach(weights.shape[2 + axis], op.dilations[axis]))  # type: ignore[attr-defined]
            for axis, size in enumerate(shape[2:])
        ]
        self.pads = [*((number(a), number(b)) for a, b in pairs), (0, 0)][:2]
        self.reach = (
            number(reach(self.kernel[0], self.dilations[0])),
            number(reach(self.kernel[1], self.dilations[1])),
        )
        self.inner = weights.shape[1]
        self.outer = weights.shape[0]
        self.images = node.outputs[0].shape[0]
        self.size = _two(shape[2:])
        self.out = _two(node.outputs[0].shape[2:])
        #: What it pads with.
        self.fill: float | Array = 0.0 if node.padding is None else node.padding
        #: Whether the output is not in the order of the products.
        self.shuffled = shuffles(node)
        #: Whether sums have to be exact.
        self.whole = node.is_whole
        #: Whether something is done to the input before.
        self.led = bool(node.prologue)
        #: Whether what follows does the same to all numbers, bias apart.
        self.alike = are_alike(node)

    def image(self, batch: Array) -> Array:
        """A batch kept as (N, H, W, C), whatever its number of spatial axes."""
        return batch[:, :, None] if self.narrow else batch

    def dense(self) -> Sizes | None:
        """Of a window with gaps, the same without them, on each of the images that it meets.

        A window with gaps of d meets every d-th row and column alone: an image as large as it is,
        cut into d * d. None where these would not lie alike in their paddings, or where what
        follows needs the whole.
        """
        gaps = self.dilations
        if gaps == (1, 1) or self.strides != (1, 1) or not self.alike or self.led:
            return None
        if any(pads[0] % gap for pads, gap in zip(self.pads, gaps, strict=True)):
            return None
        other = copy(self)
        other.dilations, other.reach = (1, 1), self.kernel
        other.pads = [(p // gap, p // gap) for (p, _), gap in zip(self.pads, gaps, strict=True)]
        other.size, other.out = (
            (-(-sizes[0] // gaps[0]), -(-sizes[1] // gaps[1])) for sizes in (self.size, self.out)
        )
        other.images = self.images * gaps[0] * gaps[1]
        return other

    def met_at(self, axis: int, tap: int, stops: tuple[int, int]) -> slice:
        """What a tap of a window meets along an axis, from one stop to another."""
        stride, start = self.strides[axis], tap * self.dilations[axis] - self.pads[axis][0]
        return slice(stops[0] * stride + start, (stops[1] - 1) * stride + start + 1, stride)

    @property
    def met(self) -> list[list[tuple[int, int]]]:
        """For each axis and tap of a window, the first and last stops where it meets the image."""
        found = []
        for axis, (size, count) in enumerate(zip(self.size, self.out, strict=True)):
            stride, gap, begin = self.strides[axis], self.dilations[axis], self.pads[axis][0]
            taps = range(self.kernel[axis])
            first = [-(-(begin - tap * gap) // stride) for tap in taps]
            last = [(size - 1 + begin - tap * gap) // stride for tap in taps]
            found.append(
                [(max(a, 0), min(b + 1, count)) for a, b in zip(first, last, strict=True)]
            )
        return found

    @property
    def seen(self) -> float:
        """How much of what windows reach is no padding."""
        stops = prod(sum(max(b - a, 0) for a, b in taps) for taps in self.met)
        return stops / (prod(self.kernel) * prod(self.out))

    @property
    def skips(self) -> bool:
        """Whether so much of what windows reach is padding that it is worth to go tap by tap."""
        if self.groups > 1 or self.shuffled or max(self.dilations) == 1 or self.inner < WORTH:
            return False
        # What others make of padding is no number.
        return self.seen < MOST_SEEN and bool(np.isfinite(self.weights).all())

    @property
    def plain(self) -> bool:
        """Whether every output is made of the one input at the same place."""
        return self.kernel == (1, 1) and self.strides == (1, 1) and not any(map(any, self.pads))


def _two(values: tuple[int, ...]) -> tuple[int, int]:
    """Two numbers, from two or one."""
    first, second = (*values, 1)[:2]
    return first, second


def shuffles(node: Node) -> bool:
    """Whether the last that is done to a node's output is to shuffle its channels."""
    return bool(node.epilogue) and node.epilogue[-1][0].xml_type == SHUFFLE


def are_alike(node: Node) -> bool:
    """Whether what follows a node does the same to all numbers: with none, or with numbers."""
    return not any(
        op.xml_type == SHUFFLE
        or (op.xml_type in PLACED and any(value is not None for value in others))
        for op, others in node.epilogue
    )


class Finish:
    """What is done to a block of the output before it leaves the cache."""

    def __init__(self, node: Node, target: Array, sizes: Sizes, scratch: Scratch) -> None:
        self.bias = node.inputs[2].constant if len(node.inputs) > 2 else None
        self._target: Sequence[Array] | Array = target
        self._narrow, self._scratch, self._outer = sizes.narrow, scratch, sizes.outer
        self._shuffled = sizes.shuffled
        self.alike = sizes.alike
        #: Whether all that is done is the same for all numbers.
        self.is_uniform = self.bias is None and all(
            op.xml_type not in BINARY | {SHUFFLE, "PReLU"}
            and all(value is None or _is_number(value) for value in others)
            for op, others in node.epilogue
        )
        self._followers = epilogue(node, scratch)
        self._leaders = followers(node.prologue, node.inputs[0], scratch)
        self._factors = factors(node)

    def __bool__(self) -> bool:
        return self.bias is not None or bool(self._followers)

    def room(self, part: int, image: int, rows: slice) -> Array:
        """Where products go: to the output itself, or beside it where that has gaps."""
        block = self._target[image][rows]
        beside = self._shuffled or not block.flags.c_contiguous or block.dtype != np.float32
        return self._scratch.take(part, *block.shape) if beside and self else block

    def target(self, image: int, rows: slice, channels: slice) -> Array:
        """Rows and channels of one image of the output."""
        return self._target[image][rows, :, channels]

    def into(self, targets: Sequence[Array]) -> Finish:
        """The same for images that are cut from those of the output."""
        other = copy(self)
        other._target = targets
        return other

    def everywhere(self, block: Array, target: Array | None = None) -> list[Part]:
        """What follows, if it is the same for all numbers, wherever they are."""
        return followed(self._followers, block, (), target)

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

    def factors(self, image: int, positions: int) -> Array | None:
        """What each input channel is multiplied by, where weights are sooner multiplied by it."""
        if self._factors is None or positions < MORE * self._outer:
            return None
        return self._factors[image]

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
        if self._narrow:
            index, room, target = (image, rows, channels), room[:, 0], target[:, 0]
        if room.__array_interface__ == target.__array_interface__:
            room = target
        # Results are sooner copied to where they have gaps than made there, in short runs.
        gaps = not target.flags.c_contiguous and target.shape[-1] < LONG
        gaps &= target.dtype == np.float32
        out = room if gaps and room.flags.c_contiguous and not self._shuffled else target
        found = []
        if self.bias is not None and not biased:
            bias = np.broadcast_to(self.bias[channels], room.shape)
            into = room if self._followers else out
            found.append(lined(np.add, room, bias, into, self._scratch))
            room = into
        found += followed(self._followers, room, index, out)
        return found if out is target else [*found, call(np.copyto, target, out)]


def _is_number(value: Value) -> bool:
    return value.constant is not None and value.constant.size == 1


def factors(node: Node) -> Array | None:
    """The factors of each image's channels that are all there is of a prologue."""
    if len(node.prologue) != 1 or node.prologue[0][0].xml_type != "Multiply":
        return None
    given = next(value for value in node.prologue[0][1] if value is not None)
    shape, source = given.shape, node.inputs[0].shape
    if given.constant is not None or shape != (*source[:2], 1, 1):
        return None
    return kept(given, shape, last=False)[:, :, 0, 0]


#: For so many times as many places as output channels, weights are less than the image.
MORE = 2
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


def reached(
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
    # What are levels become numbers in the room.
    inside = inside and image.dtype == np.float32
    inside = inside and left + wide <= image.shape[1]
    if put is None and inside and (planes or image.strides[2] == image.itemsize):
        return image[top : top + tall, left : left + wide], []
    if planes:
        room = scratch.take(part, image.shape[2], tall, wide).transpose(1, 2, 0)
    else:
        room = scratch.take(part, tall, wide, image.shape[2])
    return room, padded(image, (top, top + tall), (left, left + wide), room, sizes.fill, put)


def untiled(tiled: Array, out: Array) -> list[Part]:
    """Parts that copy tiles (rows and columns of a tile, of tiles, channels) to where they belong.

    At the end, down or across, there may be less than a tile.
    """
    high, long, _, _, *channels = tiled.shape
    parts: list[Part] = []
    for top, bottom, tall in _whole_and_rest(len(out), high):
        for left, right, wide in _whole_and_rest(out.shape[1], long):
            piece = out[top * high :, left * long :]
            piece = piece[: (bottom - top) * tall, : (right - left) * wide]
            into = piece.reshape(bottom - top, tall, right - left, wide, *channels)
            given = tiled[:tall, :wide, top:bottom, left:right]
            parts.append(call(np.copyto, into, np.moveaxis(given, (2, 0, 3, 1), (0, 1, 2, 3))))
    return parts


def _whole_and_rest(length: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Runs of tiles, from which on to which, and how much of them is wanted."""
    whole, rest = divmod(length, size)
    if whole:
        yield 0, whole, size
    if rest:
        yield whole, whole + 1, rest
