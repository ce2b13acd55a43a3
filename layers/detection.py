"""Detection: regions of interest pooled to one size, and the heads of YOLO.

Specification pages: ROIPooling-1, PSROIPooling-1, ROIAlign-3, -9, RegionYolo-1, ReorgYolo-1.
Prior boxes are in ``detection_prior``, the choice among boxes in ``detection_output``.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ..schemas import ANY, Array, Dim, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Floats, Int, Ints, read_int
from ..schemas.shapes import compatible, merge
from .axes import axis_of
from .base import Op
from .budget import require, steps
from .detection_cells import image_of, largest_of_cells, listed_boxes, samples_of
from .elementwise import sigmoid
from .image import round_away
from .movement import along
from .movement_blocks import share


class RegionPooling(Op):
    """What pooling of regions shares: images, and a list of boxes upon them."""

    def regions(self, data: Tensor, boxes: Tensor) -> tuple[Size, Size]:
        """How many boxes there are, and how many channels the images have."""
        if not data.type.is_dynamic and not data.type.is_real:
            raise IRError(f"element type {data.type} is not a real one")
        data.type.merge(boxes.type)
        count, _ = of_rank(boxes, 2, "the boxes")
        _, channels, *_ = of_rank(data, 4, "the input")
        return count, channels


class Boxed(RegionPooling):
    """Boxes of five numbers: the batch, then the corners."""

    spatial_scale: Float

    def regions(self, data: Tensor, boxes: Tensor) -> tuple[Size, Size]:
        _, five = of_rank(boxes, 2, "the boxes")
        if not compatible(five, 5):
            raise IRError(f"boxes of {five} numbers, they have 5: the batch and the corners")
        if not 0 < self.spatial_scale < inf:
            raise IRError(f"spatial_scale is {self.spatial_scale}, it is above 0 and finite")
        return super().regions(data, boxes)


class ROIPoolingV1(Boxed):
    """The largest value in each cell of a box, or one sample of it."""

    since = 2
    also = frozenset({"opset1"})
    written: ClassVar[tuple[str, ...]] = (
        "output_size", "output_roi", "pooled_h", "pooled_w", "spatial_scale", "method",
    )  # fmt: skip

    #: The same as ``pooled_h`` and ``pooled_w``, as OpenVINO writes them.
    output_size: Ints = (0, 0)
    output_roi: Ints = (0, 0)
    pooled_h: Int
    pooled_w: Int
    spatial_scale: Float
    method: Literal["max", "bilinear"] = "max"

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Write the sizes out where OpenVINO repeats them."""
        if {"pooled_h", "pooled_w"} <= data.keys():
            sizes = (read_int(data["pooled_h"]), read_int(data["pooled_w"]))
            return {"output_size": sizes, "output_roi": sizes} | data
        return data

    def infer(self, data: Tensor, boxes: Tensor) -> tuple[Tensor, ...]:
        count, channels = self.regions(data, boxes)
        for name in ("output_size", "output_roi"):
            if len(getattr(self, name)) != 2:
                raise IRError(f"{name} has {len(getattr(self, name))} numbers, it has two")
        for name in ("pooled_h", "pooled_w"):
            if getattr(self, name) < 1:
                raise IRError(f"{name} is {getattr(self, name)}, the least is 1")
        shape = Shape((count, channels, self.pooled_h, self.pooled_w))
        return (Tensor(data.type.merge(boxes.type), shape),)

    def run(self, data: Array, boxes: Array) -> tuple[Array, ...]:
        pooled, channels = (self.pooled_h, self.pooled_w), data.shape[1]
        # The images with their channels last, and before that in wider numbers; cells twice, the
        # lines they are of, and their edges.
        cells = 8 * channels * prod(pooled) + 128 * sum(pooled)
        lines = 8 * channels * self.pooled_h * data.shape[3]
        require(data.size * (4 if data.dtype == np.float32 else 8) + cells * len(boxes) + lines)
        wide = np.ascontiguousarray(data.astype(np.float32, copy=False).transpose(0, 2, 3, 1))
        result = np.zeros((len(boxes), channels, *pooled), np.float32)
        found = listed_boxes(boxes.astype(np.float32))
        if self.method == "bilinear":
            self.sample(wide, found, result)
            return (result.astype(data.dtype, copy=False),)
        largest_of_cells(wide, found, np.float32(self.spatial_scale), result)
        return (result.astype(data.dtype, copy=False),)

    def sample(self, images: Array, boxes: Array, result: Array) -> None:
        """One sample for each cell; the corners are parts of the image, channels the last axis."""
        if not result.size:
            return
        at_once = max(1, SAMPLES // result[0].size)
        for begin in steps(range(0, len(boxes), at_once)):
            some = boxes[begin : begin + at_once]
            which = some[:, 0]
            known = (which >= -len(images)) & (which < len(images))
            check_pixels(image_of(images, which[known.argmin()])[..., 0])
            left, top, right, bottom = (some[:, place, None] for place in range(1, 5))
            y = spread(top, bottom, self.pooled_h, images.shape[1])
            x = spread(left, right, self.pooled_w, images.shape[2])
            inside = [
                (p >= 0) & (p <= n - 1) for p, n in zip((y, x), images.shape[1:3], strict=True)
            ]
            y, x = (np.where(within, p, 0) for within, p in zip(inside, (y, x), strict=True))
            values = between_all(images, which.astype(int), y, x)
            values[~(inside[0][:, :, None] & inside[1][:, None])] = 0
            result[begin : begin + len(some)] = values.transpose(0, 3, 1, 2)


#: Numbers that are sampled at once.
SAMPLES = 1 << 17


class PSROIPoolingV1(Boxed):
    """The mean of each cell of a box, or samples of it, from channels of its own."""

    output_dim: Int
    group_size: Int = 1
    spatial_scale: Float
    mode: Literal["average", "bilinear"] = "average"
    spatial_bins_x: Int = 1
    spatial_bins_y: Int = 1

    written: ClassVar[tuple[str, ...]] = ("output_dim", "group_size", "spatial_scale", "mode")

    def infer(self, data: Tensor, boxes: Tensor) -> tuple[Tensor, ...]:
        count, channels = self.regions(data, boxes)
        cells = (
            self.group_size**2
            if self.mode == "average"
            else self.spatial_bins_x * self.spatial_bins_y
        )
        if self.group_size < 1 or cells < 1:
            raise IRError(f"group_size {self.group_size} and bins {cells} are from 1 on")
        if not compatible(channels, cells * self.output_dim):
            raise IRError(f"{channels} channels, {cells} cells of {self.output_dim} are expected")
        shape = Shape((count, self.output_dim, self.group_size, self.group_size))
        return (Tensor(data.type.merge(boxes.type), shape),)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, data: Array, boxes: Array) -> tuple[Array, ...]:
        require(data.size * (1 if data.dtype == np.float32 else 5))
        wide, listed = data.astype(np.float32, copy=False), listed_boxes(boxes.astype(np.float32))
        size = self.group_size
        result = np.zeros((len(boxes), self.output_dim, size, size), np.float32)
        if self.mode == "average" and np.isfinite(wide).all():
            result[: len(listed)] = self.all_averages(wide, listed)
            return (result.astype(data.dtype),)
        of = self.averages if self.mode == "average" else self.samples
        for index, (batch, *corners) in enumerate(steps(listed)):
            result[index] = of(image_of(wide, batch), np.array(corners, np.float32))
        return (result.astype(data.dtype),)

    def all_averages(self, images: Array, boxes: Array) -> Array:
        """The means of the cells of all boxes, from the sums of all before each pixel."""
        size, (height, width) = self.group_size, images.shape[2:]
        summed = (*images.shape[:2], height + 1, width + 1)
        require(8 * prod(summed) + 64 * len(boxes) * self.output_dim * size * size)
        for number in np.unique(boxes[:, 0]):
            image_of(images, number)
        sums = np.zeros(summed)
        for row in range(height):
            line = np.cumsum(images[:, :, row], 2, np.float64)
            np.add(sums[:, :, row, 1:], line, out=sums[:, :, row + 1, 1:])
        ends = self.ends(boxes[:, 1:])
        tops, bottoms = self.edges(ends[:, 1, None], ends[:, 3, None], height)
        lefts, rights = self.edges(ends[:, 0, None], ends[:, 2, None], width)
        channels, flat = images.shape[1], sums.reshape(-1)
        planes = np.arange(channels).reshape(self.output_dim, size, size)
        first = boxes[:, 0].astype(np.int64) % len(images) * channels
        result = np.empty((len(boxes), *planes.shape), np.float32)
        at_once = max(1, SAMPLES // (4 * max(channels, 1)))
        for begin in steps(range(0, len(boxes), at_once)):
            some = slice(begin, begin + at_once)
            top, bottom, left, right = (ends[some] for ends in (tops, bottoms, lefts, rights))
            starts = (first[some, None, None, None] + planes) * ((height + 1) * (width + 1))
            total = np.zeros(starts.shape)
            for y, x, sign in (
                (bottom, right, np.add), (bottom, left, np.subtract),
                (top, right, np.subtract), (top, left, np.add),
            ):  # fmt: skip
                places = y[:, None, :, None] * (width + 1) + x[:, None, None]
                sign(total, flat.take(starts + places), out=total)
            counts = np.maximum(bottom - top, 0)[:, :, None] * np.maximum(right - left, 0)[:, None]
            np.copyto(result[some], total / np.maximum(counts, 1)[:, None], casting="unsafe")
            result[some] *= counts[:, None] > 0
        return result

    def ends(self, corners: Array) -> Array:
        """Where boxes begin and end on the image."""
        ends = round_away(corners + np.array([0, 0, 1, 1], np.float32))
        scaled: Array = ends * np.float32(self.spatial_scale)
        return scaled

    def edges(self, begin: Any, end: Any, size: int) -> tuple[Array, Array]:
        """The first pixels of the cells along one axis, and those behind the last."""
        step = np.maximum(end - begin, np.float32(0.1)) / np.float32(self.group_size)
        cell = np.arange(self.group_size + 1, dtype=np.float32)
        first, last = np.floor(begin + cell[:-1] * step), np.ceil(begin + cell[1:] * step)
        # What is no number, of a box without an end or a beginning, is the first pixel.
        first, last = (np.clip(np.nan_to_num(ends), 0, size) for ends in (first, last))
        return first.astype(np.int64), last.astype(np.int64)

    def averages(self, image: Array, box: Array) -> Array:
        """The mean of each cell, each from a channel of its own."""
        size = self.group_size
        ends = self.ends(box)
        planes = image.reshape(self.output_dim, size, size, *image.shape[1:])
        result = np.zeros((self.output_dim, size, size), np.float32)
        tops, bottoms = self.edges(ends[1], ends[3], image.shape[1])
        lefts, rights = self.edges(ends[0], ends[2], image.shape[2])
        for i, j in steps(np.ndindex(size, size)):
            cell = planes[:, i, j, tops[i] : bottoms[i], lefts[j] : rights[j]]
            if cell.size:
                result[:, i, j] = cell.mean((1, 2))
        return result

    def samples(self, image: Array, box: Array) -> Array:
        """Samples of each cell's bins, each from channels of its own."""
        left, top, right, bottom = box * np.float32(self.spatial_scale)
        bins = self.spatial_bins_y, self.spatial_bins_x
        planes = image.reshape(prod(bins), self.output_dim, *image.shape[1:])
        apart = (bottom - top) / np.float32(bins[0]), (right - left) / np.float32(bins[1])
        total = np.zeros((self.output_dim, self.group_size, self.group_size), np.float32)
        for plane, (i, j) in zip(planes, steps(np.ndindex(*bins)), strict=True):
            starts = top + np.float32(i) * apart[0], left + np.float32(j) * apart[1]
            places, inside = [], []
            for start, step, size in zip(starts, apart, image.shape[1:], strict=True):
                place = spread(start, start + step, self.group_size, size, exact_end=False)
                inside.append((place >= 0) & (place <= size - 1))
                places.append(np.where(inside[-1], place, 0))
            values = between(plane, *places)
            total += np.where(inside[0][:, None] & inside[1], values, 0)
        return total / np.float32(prod(bins))


class ROIAlignV3(RegionPooling):
    """Samples of each cell of a box, their mean or the largest."""

    pooled_h: Int
    pooled_w: Int
    sampling_ratio: Int
    spatial_scale: Float
    mode: Literal["avg", "max"]

    #: Added to corners before scaling and after it; whether boxes are at least one pixel wide.
    shifts: ClassVar[dict[str, tuple[float, float, bool]]] = {
        "asymmetric": (0, 0, True),
        "half_pixel_for_nn": (0, -0.5, False),
        "half_pixel": (0.5, -0.5, False),
    }

    def infer(self, data: Tensor, rois: Tensor, batch_indices: Tensor) -> tuple[Tensor, ...]:
        count, channels = self.regions(data, rois)
        if not batch_indices.type.is_dynamic and not batch_indices.type.is_integral:
            raise IRError(f"element type {batch_indices.type} of batch_indices is no integer")
        _, four = of_rank(rois, 2, "the boxes")
        if not compatible(four, 4):
            raise IRError(f"boxes of {four} numbers, they have 4: the corners")
        (batches,) = of_rank(batch_indices, 1, "batch_indices")
        try:
            count = merge(count, batches)
        except IRError:
            raise IRError(f"{batches} batch indices for {count} boxes") from None
        if min(self.pooled_h, self.pooled_w) < 1:
            raise IRError(f"{self.pooled_h} x {self.pooled_w} cells, the least is 1")
        shape = Shape((count, channels, self.pooled_h, self.pooled_w))
        return (Tensor(data.type.merge(rois.type), shape),)

    def aligned(self) -> str:
        """How pixels are aligned."""
        return "asymmetric"

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, data: Array, rois: Array, batch_indices: Array) -> tuple[Array, ...]:
        before, after, at_least_one = self.shifts[self.aligned()]
        wide = data.astype(np.float32, copy=False)
        # Means of samples are sums of pixels with weights for each row and each column.
        flat = self.mode == "avg" and bool(np.isfinite(wide).all())
        if flat:
            require(wide.nbytes)
            wide = np.ascontiguousarray(wide.transpose(0, 2, 3, 1))
        scale = np.float32(self.spatial_scale)
        corners = (rois.astype(np.float32) + np.float32(before)) * scale + np.float32(after)
        result = np.zeros((len(rois), data.shape[1], self.pooled_h, self.pooled_w), np.float32)
        axes = [
            (corners[:, axis], corners[:, 2 + axis] - corners[:, axis], cells, size)
            for axis, cells, size in (
                (1, self.pooled_h, data.shape[2]),
                (0, self.pooled_w, data.shape[3]),
            )
        ]
        alike = self.sampling_ratio > 0 and len(rois) > 0  # where it is negative, there are none
        if flat and alike:
            check_pixels(data)
            shared = [self.weights(*axis, at_least_one=at_least_one) for axis in axes]
            for index, (down, across, batch) in enumerate(
                zip(*shared, steps(batch_indices.tolist()), strict=True)
            ):
                result[index] = self.means(image_of(wide, batch), down, across)
            return (result.astype(data.dtype),)
        if self.mode == "max" and alike:
            self.largest(wide, batch_indices, axes, result, at_least_one=at_least_one)
            return (result.astype(data.dtype, copy=False),)
        for index, batch in enumerate(steps(batch_indices.tolist())):
            (y, in_y), (x, in_x) = (
                self.places(start[index], extent[index], *rest, at_least_one=at_least_one)
                for start, extent, *rest in axes
            )
            if not (y.size and x.size):
                continue
            if flat:
                check_pixels(data)
                image = image_of(wide, batch)
                result[index] = self.means(image, weights(y, in_y), weights(x, in_x))
                continue
            values = between(image_of(wide, batch), y.ravel(), x.ravel())
            values = np.where(in_y.ravel()[:, None] & in_x.ravel(), values, 0)
            apart = values.reshape(data.shape[1], *y.shape, *x.shape)
            result[index] = (
                apart.mean((2, 4)) if self.mode == "avg" else apart.max((2, 4), initial=0)
            )
        return (result.astype(data.dtype, copy=False),)

    def largest(
        self, images: Array, which: Array, axes: list[Any], result: Array, *, at_least_one: bool
    ) -> None:
        """The largest sample of each cell of boxes, where each has as many."""
        check_pixels(images)
        for batch in np.unique(which):
            image_of(images, batch)
        wide = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        at_once = max(1, SAMPLES // max(1, result[0].size * self.sampling_ratio**2))
        for begin in steps(range(0, len(which), at_once)):
            some = slice(begin, begin + at_once)
            (y, in_y), (x, in_x) = (
                self.places(
                    *(part[some].reshape(-1, 1, 1) for part in axis[:2]),
                    *axis[2:],
                    at_least_one=at_least_one,
                )
                for axis in axes
            )
            count = len(y)
            numbers = which[some].astype(np.int64)
            values = between_all(wide, numbers, y.reshape(count, -1), x.reshape(count, -1))
            within = in_y.reshape(count, -1, 1) & in_x.reshape(count, 1, -1)
            if not within.all():
                values[~within] = 0
            apart = values.reshape(*y.shape, *x.shape[1:], -1)
            result[some] = apart.max(4).max(2, initial=0).transpose(0, 3, 1, 2)

    def means(self, image: Array, down: Weights, across: Weights) -> Array:
        """The means of the cells of one box, by the weights of rows and of columns."""
        (of_rows, by_row), (of_columns, by_column) = down, across
        count = by_row.shape[1]
        require(4 * (count + len(by_row)) * len(by_column) * image.shape[2])
        lines = np.matmul(by_column, image[of_rows, of_columns]).reshape(count, -1)
        means = (by_row @ lines).reshape(len(by_row), len(by_column), -1)
        return means.transpose(2, 0, 1)

    def weights(
        self, start: Array, extent: Array, cells: int, size: int, *, at_least_one: bool
    ) -> list[Weights]:
        """Those of an axis for each box, where each cell has as many samples."""
        require(24 * len(start) * cells * (size + 1 + 2 * self.sampling_ratio))
        starts, extents = (part.reshape(-1, 1, 1) for part in (start, extent))
        found = self.places(starts, extents, cells, size, at_least_one=at_least_one)
        return weights_of_all(*found, size)

    def places(
        self, start: Any, extent: Any, cells: int, size: int, *, at_least_one: bool
    ) -> tuple[Array, Array]:
        """Where the samples are along an axis, per cell, and whether on the image."""
        extent = np.maximum(extent, np.float32(1)) if at_least_one else extent
        width = extent / np.float32(cells)
        samples = samples_of(width, self.sampling_ratio)
        require(16 * cells * max(samples, 0))
        distance = width / np.float32(max(samples, 1))
        cell = along(np.arange(cells, dtype=np.float32), 0, 2)
        sample = along(np.arange(samples, dtype=np.float32), 1, 2)
        place = start + cell * width + distance * (sample + np.float32(0.5))
        inside = (place >= -1) & (place <= size)
        return np.where(inside, np.clip(place, 0, size - 1), 0), inside


class ROIAlignV9(ROIAlignV3):
    """ROIAlign-3 with a choice of how pixels are aligned."""

    aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = "asymmetric"

    def aligned(self) -> str:
        return self.aligned_mode


class RegionYoloV1(Op):
    """The head of YOLO: boxes' centres and confidences squashed, classes made probabilities."""

    anchors: Floats = ()
    axis: Int
    coords: Int
    classes: Int
    end_axis: Int
    num: Int
    do_softmax: Bool = True
    mask: Ints = ()

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        if not data.type.is_dynamic and not data.type.is_real:
            raise IRError(f"element type {data.type} is not a real one")
        if data.rank is None:
            return (Tensor(data.type, Shape.UNKNOWN),)
        if data.rank != 4:
            raise IRError(f"the input has {data.rank} axes ({data.shape}), it has 4")
        if not self.do_softmax:
            channels = (self.classes + self.coords + 1) * len(self.mask)
            return (Tensor(data.type, data.shape.with_size(1, channels)),)
        first, last = axis_of(self.axis, 4), axis_of(self.end_axis, 4, "end_axis")
        joined = Shape(data.shape[first : last + 1]).count
        rest = data.shape[max(first, last) + 1 :]
        return (Tensor(data.type, Shape((*data.shape[:first], joined, *rest))),)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, data: Array) -> tuple[Array, ...]:
        (result,) = self.infer(Tensor.of(data))
        regions = self.num if self.do_softmax else len(self.mask)
        entries = self.coords + self.classes + 1
        batch, channels, height, width = data.shape
        if channels < regions * entries or (self.do_softmax and channels > regions * entries):
            raise IRError(f"{channels} channels, {regions} regions of {entries} are expected")
        require(2 * 4 * batch * regions * entries * height * width)
        wide = data[:, : regions * entries].astype(np.float32, order="C")
        boxes = wide.reshape(batch, regions, entries, height * width)
        squashed = [slice(0, 2), slice(self.coords, self.coords + 1 if self.do_softmax else None)]
        for rows in squashed:
            boxes[:, :, rows] = sigmoid(boxes[:, :, rows])
        if self.do_softmax and self.classes:
            classes = boxes[:, :, self.coords + 1 :]
            classes -= classes.max(2, keepdims=True)
            np.exp(classes, out=classes)
            classes /= classes.sum(2, keepdims=True)
        return (boxes.reshape(result.shape.static).astype(data.dtype, copy=False),)


class ReorgYoloV1(Op):
    """Blocks of space moved to the channels, in the order of YOLO."""

    since = 2
    also = frozenset({"opset1"})

    stride: Ints

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        if not self.stride or self.stride[0] < 1:
            raise IRError(f"stride {list(self.stride)} is not a number from 1 on")
        if data.rank is None:
            return (Tensor(data.type, Shape.UNKNOWN),)
        batch, channels, *space = of_rank(data, 4, "the input")
        block = self.stride[0] ** 2
        if not isinstance(channels, Dim) and channels < block:
            raise IRError(f"{channels} channels, at least {block} are needed")
        sizes = (share(size, self.stride[0]) for size in space)
        return (Tensor(data.type, Shape((batch, channels * block, *sizes))),)

    def run(self, data: Array) -> tuple[Array, ...]:
        (result,) = self.infer(Tensor.of(data))
        batch, channels, height, width = data.shape
        step = self.stride[0]
        if channels % step**2:
            raise IRError(f"{channels} channels are no multiple of {step**2}, of stride {step}")
        # As if the input were the output of the way back: fewer channels, more space.
        blocks = data.reshape(batch, channels // step**2, height, step, width, step)
        return (blocks.transpose(0, 3, 5, 1, 2, 4).reshape(result.shape.static),)


def of_rank(tensor: Tensor, rank: int, what: str) -> tuple[Size, ...]:
    """The sizes of a tensor of this rank."""
    if tensor.rank is None:
        return (ANY,) * rank
    if tensor.rank != rank:
        raise IRError(f"{what} have {tensor.rank} axes ({tensor.shape}), {rank} are expected")
    return tensor.shape.sizes


def spread(start: Any, end: Any, count: int, size: int, *, exact_end: bool = True) -> Array:
    """Places from start to end, which are parts of the axis; of one only, the middle."""
    most = np.float32(size - 1)
    if count == 1:
        return np.atleast_1d(np.float32(0.5) * (start + end) * most).astype(np.float32)
    step = (end - start) * most / np.float32(count - 1)
    places = np.arange(count, dtype=np.float32) * step + start * most
    if exact_end:
        places[..., -1:] = most * end
    return places


def check_pixels(image: Array) -> None:
    """Refuse an image, its axes the last, that has no pixel to be sampled."""
    if 0 in image.shape[-2:]:
        raise IRError(f"an image of {image.shape[-2]} x {image.shape[-1]} has no pixels to sample")


#: Which pixels of an axis count, and how much each does in the mean of each cell's samples.
Weights: TypeAlias = tuple[slice, Array]


def weights(places: Array, inside: Array) -> Weights:
    """The weights of an axis of one box."""
    (found,) = weights_of_all(places[None], inside[None], int(np.ceil(places.max())) + 1)
    return found


def weights_of_all(places: Array, inside: Array, size: int) -> list[Weights]:
    """The weights of an axis for each of several boxes: places are (boxes, cells, samples).

    A place between two pixels is so much of either as it lies near to it.
    """
    boxes, cells, samples = places.shape
    low = np.floor(places)
    part = np.where(inside, places - low, 0) / samples
    before = low.astype(np.int64)
    into = before + (size + 1) * np.arange(boxes * cells).reshape(boxes, cells, 1)
    near = np.where(inside, np.float32(1) / samples, 0) - part
    found = np.bincount(
        np.concatenate([into, into + 1], None),
        np.concatenate([near, part], None),
        boxes * cells * (size + 1),
    )
    tables = found.reshape(boxes, cells, size + 1).astype(np.float32)
    firsts = before.min((1, 2)).tolist()
    ends = np.ceil(places).max((1, 2)).astype(np.int64).tolist()
    return [
        (slice(first, end + 1), table[:, first : end + 1])
        for first, end, table in zip(firsts, ends, tables, strict=True)
    ]


def between_all(images: Array, which: Array, y: Array, x: Array) -> Array:
    """The same of several images at once, at places of their own; channels are the last axis."""
    require(4 * images.shape[-1] * 6 * y.size * x.shape[1])
    rows, columns = (
        (np.floor(places).astype(int), np.minimum(np.ceil(places).astype(int), size - 1))
        for places, size in zip((y, x), images.shape[1:3], strict=True)
    )
    part_y, part_x = (
        (places - lines[0]).astype(np.float32) for places, lines in ((y, rows), (x, columns))
    )
    top, bottom = (
        mixed(
            images[which[:, None, None], row[:, :, None], columns[0][:, None]],
            images[which[:, None, None], row[:, :, None], columns[1][:, None]],
            part_x[:, None, :, None],
        )
        for row in rows
    )
    return mixed(top, bottom, part_y[:, :, None, None])


def mixed(one: Array, other: Array, part: Array) -> Array:
    """What lies between values of their own: so great a part of the other."""
    other -= one
    other *= part
    other += one
    return other


def between(image: Array, y: Array, x: Array) -> Array:
    """Values between the pixels, at every pair of places on the image."""
    check_pixels(image)
    # Rows of the image, above and below, then what lies between at each place.
    require(4 * len(image) * (2 * len(y) * image.shape[2] + 4 * len(y) * len(x)))
    low_y, low_x = np.floor(y).astype(int), np.floor(x).astype(int)
    high_y = np.minimum(np.ceil(y).astype(int), image.shape[1] - 1)
    high_x = np.minimum(np.ceil(x).astype(int), image.shape[2] - 1)
    part_y, part_x = (y - low_y)[:, None].astype(np.float32), (x - low_x).astype(np.float32)
    upper, lower = image[:, low_y], image[:, high_y]
    top, bottom = (
        row[..., low_x] + (row[..., high_x] - row[..., low_x]) * part_x for row in (upper, lower)
    )
    values: Array = top + (bottom - top) * part_y
    return values
