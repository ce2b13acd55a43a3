"""Rearrangements by blocks: between space and depth or batch, and patches of images.

Specification pages: ShuffleChannels-1, SpaceToDepth-1, DepthToSpace-1, SpaceToBatch-2,
BatchToSpace-2, Col2Im-15, ExtractImagePatches-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Int, Ints
from ..schemas.shapes import LARGEST, at_least, interval, limits, not_below
from .axes import axis_of
from .base import Op, element_type
from .budget import require, steps
from .movement import listed, shape_of
from .shape import integral
from .windows import Pads, reach, same_pads, stops_same, surrounded, windows


class ShuffleChannelsV1(Op):
    """The channels dealt out in turn: the first of each group, then the second of each."""

    absent: ClassVar[frozenset[int]] = frozenset({2})

    axis: Int = 1
    group: Int = 1

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        if self.group < 1:
            raise IRError(f"group is {self.group}, the least is 1")
        if data.rank is not None:
            size = data.shape[axis_of(self.axis, data.rank)]
            if not isinstance(size, Dim) and size % self.group:
                raise IRError(f"{size} channels do not divide into {self.group} groups")
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array) -> tuple[Array, ...]:
        axis = axis_of(self.axis, data.ndim)
        groups = (self.group, data.shape[axis] // self.group)
        dealt = data.reshape(*data.shape[:axis], *groups, *data.shape[axis + 1 :])
        return (dealt.swapaxes(axis, axis + 1).reshape(data.shape),)


class Blocked(Op):
    """An operation that moves blocks of space to the channels, or back."""

    block_size: Int = 1
    mode: Literal["blocks_first", "depth_first"]

    def blocks(self, data: Shape) -> int | None:
        """How many elements a block has; None where the number of axes is not known."""
        if self.block_size < 1:
            raise IRError(f"block_size is {self.block_size}, the least is 1")
        if data.rank is None:
            return None
        if len(data) < 3:
            raise IRError(f"the input has {len(data)} axes ({data}), at least 3 are needed")
        return int(self.block_size ** (len(data) - 2))


class SpaceToDepthV1(Blocked):
    """Each block of space becomes one element of space with more channels."""

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        blocks = self.blocks(data.shape)
        if blocks is None:
            return (Tensor(data.type, data.shape),)
        depth = data.shape[1:2][0] * blocks
        space = (share(size, self.block_size) for size in data.shape[2:])
        return (Tensor(data.type, Shape((data.shape[0], depth, *space))),)

    def run(self, data: Array) -> tuple[Array, ...]:
        block, axes = self.block_size, data.ndim - 2
        rows = [(size // block, block) for size in data.shape[2:]]
        apart = data.reshape(*data.shape[:2], *(n for row in rows for n in row))
        outer, inner = range(2, 2 + 2 * axes, 2), range(3, 3 + 2 * axes, 2)
        depth = (*inner, 1) if self.mode == "blocks_first" else (1, *inner)
        moved = apart.transpose(0, *depth, *outer)
        channels = data.shape[1] * block**axes
        return (moved.reshape(data.shape[0], channels, *(row[0] for row in rows)),)


class DepthToSpaceV1(Blocked):
    """Each element of space becomes a block of space with fewer channels."""

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        blocks = self.blocks(data.shape)
        if blocks is None:
            return (Tensor(data.type, data.shape),)
        depth = share(data.shape[1], blocks)
        space = (size * self.block_size for size in data.shape[2:])
        return (Tensor(data.type, Shape((data.shape[0], depth, *space))),)

    def run(self, data: Array) -> tuple[Array, ...]:
        block, axes = self.block_size, data.ndim - 2
        channels = data.shape[1] // block**axes
        blocks = [block] * axes
        first = self.mode == "blocks_first"
        depth = [*blocks, channels] if first else [channels, *blocks]
        apart = data.reshape(data.shape[0], *depth, *data.shape[2:])
        inner = range(1, 1 + axes) if first else range(2, 2 + axes)
        outer = range(2 + axes, 2 + 2 * axes)
        pairs = (axis for pair in zip(outer, inner, strict=True) for axis in pair)
        moved = apart.transpose(0, 1 + axes if first else 1, *pairs)
        space = (size * block for size in data.shape[2:])
        return (moved.reshape(data.shape[0], channels, *space),)


class SpaceToBatchV2(Op):
    """Each element of a block of space goes to a batch of its own; space is padded before."""

    rooms = 1

    def infer(
        self, data: Tensor, block_shape: Tensor, pads_begin: Tensor, pads_end: Tensor
    ) -> tuple[Tensor, ...]:
        check_lists(data, block_shape=block_shape, pads_begin=pads_begin, pads_end=pads_end)
        if data.rank is None:
            return (Tensor(data.type, data.shape),)
        blocks, begins, ends = block_shape.ints(), pads_begin.ints(), pads_end.ints()
        if blocks is None:
            return (Tensor(data.type, Shape.of_rank(data.rank)),)
        check_blocks(blocks)
        sizes = [data.shape[0] * prod(blocks)]
        if begins is None or ends is None:
            return (Tensor(data.type, Shape((*sizes, *[ANY] * (data.rank - 1)))),)
        for size, block, begin, end in list(zip(data.shape, blocks, begins, ends, strict=True))[
            1:
        ]:
            sizes.append(part(size + (begin + end), block))
        return (Tensor(data.type, Shape(sizes)),)

    def run(
        self, data: Array, block_shape: Array, pads_begin: Array, pads_end: Array
    ) -> tuple[Array, ...]:
        blocks = block_shape.tolist()
        check_blocks(blocks)
        if blocks[0] != 1:
            raise IRError(f"block_shape begins with {blocks[0]}, the batch is not divided")
        widths = list(zip(pads_begin.tolist(), pads_end.tolist(), strict=True))
        space = surrounded(data, widths)
        rows = [(size // block, block) for size, block in zip(space.shape, blocks, strict=True)]
        apart = space.reshape([n for row in rows for n in row])
        moved = apart.transpose(*range(1, apart.ndim, 2), *range(0, apart.ndim, 2))
        batch = rows[0][0] * prod(blocks)
        return (moved.reshape(batch, *(row[0] for row in rows[1:])),)


class BatchToSpaceV2(Op):
    """The batches become the elements of blocks of space again; space is cropped after."""

    rooms = 3

    def infer(
        self, data: Tensor, block_shape: Tensor, crops_begin: Tensor, crops_end: Tensor
    ) -> tuple[Tensor, ...]:
        check_lists(data, block_shape=block_shape, crops_begin=crops_begin, crops_end=crops_end)
        block_shape.type.merge(crops_begin.type).merge(crops_end.type)
        if data.rank is None:
            return (Tensor(data.type, data.shape),)
        blocks, begins, ends = block_shape.ints(), crops_begin.ints(), crops_end.ints()
        batch: Size = ANY
        if blocks is not None:
            check_blocks(blocks)
            batch = share(data.shape[0], prod(blocks))
        if begins is None or ends is None:
            return (Tensor(data.type, Shape((batch, *[ANY] * (data.rank - 1)))),)
        if min(*begins, *ends) < 0:
            raise IRError(f"a crop is {min(*begins, *ends)}, the least is 0")
        factors: Sequence[Size] = blocks or [Dim(1)] * data.rank
        sizes = [batch]
        for size, factor, begin, end in list(zip(data.shape, factors, begins, ends, strict=True))[
            1:
        ]:
            sizes.append(cropped(size * factor, begin + end))
        return (Tensor(data.type, Shape(sizes)),)

    def run(
        self, data: Array, block_shape: Array, crops_begin: Array, crops_end: Array
    ) -> tuple[Array, ...]:
        self.infer(*map(Tensor.of, (data, block_shape, crops_begin, crops_end)))
        blocks = block_shape.tolist()
        rest = (data.shape[0] // prod(blocks), *data.shape[1:])
        apart = data.reshape(*blocks, *rest)
        rank = data.ndim
        moved = apart.transpose([axis for i in range(rank) for axis in (rank + i, i)])
        space = moved.reshape([n * block for n, block in zip(rest, blocks, strict=True)])
        crops = zip(space.shape, crops_begin.tolist(), crops_end.tolist(), strict=True)
        return (space[tuple(slice(begin, size - end) for size, begin, end in crops)],)


class Col2ImV15(Op):
    """Columns of windows added up to the image they were taken from."""

    strides: Ints = (1, 1)
    dilations: Ints = (1, 1)
    pads_begin: Ints = (0, 0)
    pads_end: Ints = (0, 0)

    def infer(self, data: Tensor, output_size: Tensor, kernel_size: Tensor) -> tuple[Tensor, ...]:
        output_size.type.merge(kernel_size.type)
        for name, least in (("strides", 1), ("dilations", 1), ("pads_begin", 0), ("pads_end", 0)):
            values = getattr(self, name)
            if len(values) != 2:
                raise IRError(f"{name} has {len(values)} numbers, it has two")
            if min(values) < least:
                raise IRError(f"{name} has {min(values)}, the least is {least}")
        for tensor, name in ((output_size, "output_size"), (kernel_size, "kernel_size")):
            element_type(tensor, ElementType.I32, ElementType.I64, what=name)
            count = listed(tensor, name)
            if not isinstance(count, Dim) and count != 2:
                raise IRError(f"{name} has {count} elements, it has two")
        if data.rank is None:
            return (Tensor(data.type, data.shape),)
        if data.rank not in (2, 3):
            raise IRError(f"the input has {data.rank} axes ({data.shape}), Col2Im takes 2 or 3")
        *batch, channels, columns = data.shape
        kernel, image = kernel_size.ints(), shape_of(output_size)
        depth: Size = ANY
        if kernel is not None and min(kernel) < 1:
            raise IRError(f"a kernel is {min(kernel)} wide, the least is 1")
        if kernel is not None and not isinstance(channels, Dim):
            depth = part(channels, prod(kernel))
        if image is None:
            return (Tensor(data.type, Shape((*batch, depth, ANY, ANY))),)
        if kernel is not None and image.is_static and not isinstance(columns, Dim):
            stops = prod(self.stops(image.static, kernel))
            if columns != stops:
                raise IRError(f"there are {columns} columns, {stops} windows make {image}")
        return (Tensor(data.type, Shape((*batch, depth, *image))),)

    def stops(self, image: Sequence[int], kernel: Sequence[int]) -> list[int]:
        """How often the window stops along each axis of the image."""
        pads = zip(self.pads_begin, self.pads_end, strict=True)
        spans = (int(reach(k, d)) for k, d in zip(kernel, self.dilations, strict=True))  # type: ignore[arg-type]
        rows = zip(image, pads, spans, self.strides, strict=True)
        return [(size + sum(pad) - span) // stride + 1 for size, pad, span, stride in rows]

    def run(self, data: Array, output_size: Array, kernel_size: Array) -> tuple[Array, ...]:
        self.infer(*map(Tensor.of, (data, output_size, kernel_size)))
        image, kernel = output_size.tolist(), kernel_size.tolist()
        rows, columns = self.stops(image, kernel)
        *batch, channels, _ = data.shape
        depth = channels // prod(kernel)
        windows = data.reshape(*batch, depth, *kernel, rows, columns)
        (top, left), (bottom, right) = self.pads_begin, self.pads_end
        whole = (image[0] + top + bottom, image[1] + left + right)
        wide = (
            np.float32 if data.dtype.itemsize < 4 and data.dtype.kind not in "iub" else data.dtype
        )
        require(prod(batch) * depth * prod(whole) * 8)
        canvas = np.zeros((*batch, depth, *whole), wide)
        for i, j in steps(np.ndindex(*kernel)):
            at = [
                slice(k * d, k * d + (n - 1) * s + 1, s)
                for k, d, n, s in zip(
                    (i, j), self.dilations, (rows, columns), self.strides, strict=True
                )
            ]
            place: Any = (..., *at)
            canvas[place] += windows[..., i, j, :, :]
        inner = canvas[..., top : top + image[0], left : left + image[1]]
        return (inner.astype(data.dtype),)


class ExtractImagePatchesV3(Op):
    """Windows of an image, each laid out along the channels of one element."""

    rooms = 1

    sizes: Ints
    strides: Ints
    rates: Ints
    auto_pad: Literal["same_lower", "same_upper", "valid"]

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        for name in ("sizes", "strides", "rates"):
            values = getattr(self, name)
            if len(values) != 2 or min(values) < 1:
                raise IRError(f"{name} {list(values)} are not two numbers from 1 on")
        if data.rank is None:
            return (Tensor(data.type, Shape.of_rank(4)),)
        if data.rank != 4:
            raise IRError(f"the input has {data.rank} axes ({data.shape}), it is an image with 4")
        batch, channels, *space = data.shape
        stops = (self.stops(size, axis) for axis, size in enumerate(space))
        return (Tensor(data.type, Shape((batch, channels * prod(self.sizes), *stops))),)

    def stops(self, size: Size, axis: int) -> Size:
        """How often the window stops along an axis."""
        if self.auto_pad == "valid":
            size = at_least(size - (self.span(axis) - 1), 0)
        return stops_same(size, self.strides[axis])

    def span(self, axis: int) -> int:
        """Extent of the window along an axis."""
        return (self.sizes[axis] - 1) * self.rates[axis] + 1

    def pads(self, size: int, axis: int) -> Pads:
        """Padding before and after an axis."""
        if self.auto_pad == "valid":
            return 0, 0
        upper = self.auto_pad == "same_upper"
        begin, end = same_pads(size, self.span(axis), self.strides[axis], upper=upper)
        return int(begin), int(end)  # type: ignore[arg-type]

    def run(self, data: Array) -> tuple[Array, ...]:
        (result,) = self.infer(Tensor.of(data))
        shape = result.shape.static
        pads = [self.pads(size, axis) for axis, size in enumerate(data.shape[2:])]
        # Only moved: as plain bits, which NumPy can lay windows over whatever they mean.
        bits = data.view(f"u{data.dtype.itemsize}")
        view = windows(bits, self.sizes, self.strides, self.rates, pads, shape[2:], 0)
        return (view.transpose(0, 4, 5, 1, 2, 3).reshape(shape).view(data.dtype),)


def part(size: Size, count: int) -> Size:
    """The size of ``count`` equal parts of a size, which has to be divisible."""
    if not isinstance(size, Dim):
        if size % count:
            raise IRError(f"size {size} is not divisible by {count}")
        return size // count
    if count == 1:
        return size
    low, high = limits(size)
    least, most = -(-(low or 0) // count), None if high is None else high // count
    if most is not None and most < least:
        raise IRError(f"no size of {size} is divisible by {count}")
    quotient = size // count
    return interval(least, most, quotient.symbol if isinstance(quotient, Dim) else None)


def share(size: Size, count: int) -> Size:
    """Such a part where OpenVINO divides the largest number, as a double, for no limit."""
    result = part(size, count)
    if count > 1 and isinstance(result, Dim) and result.low and result.high is None:
        return Dim(result.low, int(float(LARGEST) / count), result.symbol)
    return result


def cropped(size: Size, crop: int) -> Size:
    """A size less its crop."""
    if not isinstance(size, Dim) and crop > size:
        raise IRError(f"a crop of {crop} is larger than the size of {size}")
    return not_below(size - crop, 0)


def check_lists(data: Tensor, **lists: Tensor) -> None:
    """Refuse lists that do not have one entry for each axis of the data."""
    if data.rank is not None and data.rank < 2:
        raise IRError(f"the input has {data.rank} axes ({data.shape}), at least 2 are needed")
    shape = Shape.of_rank(1) if data.rank is None else Shape([data.rank])
    for name, tensor in lists.items():
        integral(tensor, name)
        try:
            shape = shape.merge(tensor.shape)
        except IRError:
            raise IRError(f"{name} has shape {tensor.shape}, it is expected as {shape}") from None


def check_blocks(blocks: Sequence[int]) -> None:
    """Refuse blocks without elements."""
    if min(blocks) < 1:
        raise IRError(f"a block size is {min(blocks)}, the least is 1")
