"""Detection: regions of feature maps, sampled between the pixels.

Specification pages: ExperimentalDetectronROIFeatureExtractor-6, ROIAlignRotated-15,
DeformablePSROIPooling-1. All is worked out in float32.
"""

from __future__ import annotations

import numpy as np

from ..schemas import ANY, Array, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Int, Ints, Text
from ..schemas.shapes import merge
from .base import Op
from .budget import require, steps
from .detection import ROIAlignV3, check_pixels, of_rank
from .detection_cells import image_of, listed_boxes, samples_of
from .detection_experimental import OLD
from .image import round_away
from .sort import real_type

#: No cell has as many pixels, on either side.
MOST = 2**16


class ExperimentalDetectronROIFeatureExtractorV6(Op):
    """Each region from the one map of a pyramid that suits its size."""

    output_count = (2, 2)
    also = OLD

    output_size: Int
    sampling_ratio: Int
    pyramid_scales: Ints
    aligned: Bool = False

    def unknown_inputs(self) -> list[Tensor]:
        return super().unknown_inputs() * 2

    def infer(self, rois: Tensor, *pyramid: Tensor) -> tuple[Tensor, ...]:
        if not pyramid:
            raise IRError("there is no feature map")
        count, width = of_rank(rois, 2, "the regions")
        merge(width, 4)
        channels: Size = ANY
        for layer in pyramid:
            images, found, *_ = of_rank(layer, 4, "the feature maps")
            merge(images, 1)
            channels = merge(channels, found)
        kind = real_type(rois, *pyramid)
        side = self.output_size
        if side < 1:
            raise IRError(f"output_size is {side}, the least is 1")
        return Tensor(kind, Shape((count, channels, side, side))), Tensor(kind, Shape((count, 4)))

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, rois: Array, *pyramid: Array) -> tuple[Array, ...]:
        if len(self.pyramid_scales) < len(pyramid):  # further ones are of no use, and often there
            raise IRError(
                f"{len(self.pyramid_scales)} pyramid_scales for {len(pyramid)} feature maps"
            )
        side, channels = self.output_size, pyramid[0].shape[1]
        align = ROIAlignV3(
            pooled_h=side,
            pooled_w=side,
            sampling_ratio=max(self.sampling_ratio, 0),  # below none it is none, here alone
            spatial_scale=1,
            mode="avg",
        )
        result = np.zeros((len(rois), channels, side, side), pyramid[0].dtype)
        levels = self.levels(rois, len(pyramid))
        for level, (layer, scale) in enumerate(zip(pyramid, self.pyramid_scales, strict=False)):
            of_level = levels == level
            placed = rois[of_level].astype(np.float32) / np.float32(scale)
            placed -= np.float32(0.5 * self.aligned)
            (result[of_level],) = align.run(layer, placed, np.zeros(len(placed), np.int64))
        return result, rois.copy()

    def levels(self, rois: Array, count: int) -> Array:
        """The number of the map for each region; -1 for none, where it has no extent."""
        wide = rois.astype(np.float32)
        area = (wide[:, 2:] - wide[:, :2]).prod(1)
        # The size of the pictures of ImageNet belongs to the third map.
        side = np.sqrt(np.maximum(area, 0)) / np.float32(224)
        level = np.floor(np.log2(side + np.float32(1e-6)) + 2).clip(0, count - 1)
        there = (area > 0) & np.isfinite(area)
        return np.where(there, level, -1).astype(np.int64)


class ROIAlignRotatedV15(Op):
    """Means of samples of regions given as centre, width, height and angle in radians."""

    pooled_h: Int
    pooled_w: Int
    sampling_ratio: Int
    spatial_scale: Float
    clockwise_mode: Bool = False

    def infer(self, data: Tensor, rois: Tensor, batch_indices: Tensor) -> tuple[Tensor, ...]:
        channels = of_rank(data, 4, "the data")[1]
        count, width = of_rank(rois, 2, "the regions")
        (numbers,) = of_rank(batch_indices, 1, "the image numbers")
        kind = real_type(data, rois)
        index = batch_indices.type
        if not index.is_integral and not index.is_dynamic:
            raise IRError(f"image numbers are of type {index}, not of an integer type")
        merge(width, 5)
        if min(self.pooled_h, self.pooled_w) < 1:
            raise IRError(f"{self.pooled_h} x {self.pooled_w} cells, the least is 1")
        return (
            Tensor(kind, Shape((merge(count, numbers), channels, self.pooled_h, self.pooled_w))),
        )

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, data: Array, rois: Array, batch_indices: Array) -> tuple[Array, ...]:
        scale, half = np.float32(self.spatial_scale), np.float32(0.5)
        result = np.zeros((len(rois), data.shape[1], self.pooled_h, self.pooled_w), data.dtype)
        for i, (roi, image) in enumerate(
            zip(steps(rois.astype(np.float32)), batch_indices, strict=True)
        ):
            centre, size = roi[:2] * scale - half, roi[2:4] * scale
            angle = -roi[4] if self.clockwise_mode else roi[4]
            y, x = cells(size, self.pooled_h, self.pooled_w, self.sampling_ratio)
            if 0 in y.shape or 0 in x.shape:
                continue
            y, x = y - size[1] / 2, x - size[0] / 2
            cosine, sine = np.cos(angle), np.sin(angle)
            rows, columns = y * cosine - x * sine + centre[1], y * sine + x * cosine + centre[0]
            values = bilinear(image_of(data, image).astype(np.float32, copy=False), rows, columns)
            result[i] = values.mean((-3, -1))
        return (result,)


def cells(size: Array, rows: int, columns: int, ratio: int) -> tuple[Array, Array]:
    """Samples of a region (width, height) cut into cells, from its corner: ``y`` and ``x``.

    They broadcast to ``(rows, samples, columns, samples)``; without a ratio there are as many
    samples as a cell has pixels.
    """
    places = []
    for extent, count in ((size[1], rows), (size[0], columns)):
        cell = extent / np.float32(count)
        samples = samples_of(cell, ratio, MOST)
        require(16 * count * max(samples, 0))
        within = (np.arange(samples, dtype=np.float32) + np.float32(0.5)) * cell
        first = np.arange(count, dtype=np.float32)[:, None] * cell
        places.append(first + within / np.float32(max(samples, 1)))
    return places[0][:, :, None, None], places[1]


def bilinear(data: Array, y: Array, x: Array) -> Array:
    """Values of all channels at places; those more than a pixel outside are zero."""
    check_pixels(data)
    _, height, width = data.shape
    y, x = np.broadcast_arrays(y, x)
    require(y.size * (6 * data.itemsize * len(data) + 48))
    there = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    y = np.where(there, np.clip(y, 0, height - 1), 0).astype(np.float32)
    x = np.where(there, np.clip(x, 0, width - 1), 0).astype(np.float32)
    top, left = y.astype(np.int64), x.astype(np.int64)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down, along = y - top.astype(np.float32), x - left.astype(np.float32)
    upper = data[:, top, left] * (1 - along) + data[:, top, right] * along
    lower = data[:, bottom, left] * (1 - along) + data[:, bottom, right] * along
    return np.where(there, upper * (1 - down) + lower * down, np.float32(0))


class DeformablePSROIPoolingV1(Op):
    """Each cell of a region from channels of its own, moved by learnt offsets."""

    output_dim: Int
    spatial_scale: Float
    group_size: Int = 1
    mode: Text = "bilinear_deformable"
    spatial_bins_x: Int = 1
    spatial_bins_y: Int = 1
    trans_std: Float = 1
    part_size: Int = 1

    def infer(
        self, data: Tensor, rois: Tensor, offsets: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        of_rank(data, 4, "the data")
        count, _ = of_rank(rois, 2, "the regions")
        if offsets is not None:
            of_rank(offsets, 4, "the offsets")
        for name in ("output_dim", "group_size", "part_size"):
            if getattr(self, name) < 1:
                raise IRError(f"{name} is {getattr(self, name)}, the least is 1")
        side = self.group_size
        return (Tensor(data.type, Shape((count, self.output_dim, side, side))),)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, data: Array, rois: Array, offsets: Array | None = None) -> tuple[Array, ...]:
        side, scale, half = self.group_size, np.float32(self.spatial_scale), np.float32(0.5)
        if data.dtype != np.float32:
            require(4 * data.size)
        wide = data.astype(np.float32, copy=False)
        result = np.zeros((len(rois), self.output_dim, side, side), data.dtype)
        if rois.shape[1] != 5:
            raise IRError(f"regions of {rois.shape[1]} numbers, they have 5: image and corners")
        if offsets is not None:
            self.check_offsets(offsets, len(rois))
        for i, roi in enumerate(steps(listed_boxes(rois.astype(np.float32)))):
            image = image_of(wide, roi[0])
            corner = round_away(roi[1:3]) * scale - half
            end = (round_away(roi[3:]) + 1) * scale - half
            size = np.maximum(end - corner, np.float32(0.1))
            x, y = (
                corner[n] + np.arange(side, dtype=np.float32) * (size[n] / np.float32(side))
                for n in (0, 1)
            )
            moves = self.moves(None if offsets is None else offsets[i]) * size[:, None, None]
            left, top = x + moves[:, 0], y[:, None] + moves[:, 1]
            result[i] = self.means(image, left, top, size / np.float32(side))
        return (result,)

    def check_offsets(self, offsets: Array, count: int) -> None:
        """Refuse offsets that are not there for each region, class and part."""
        regions, planes, *parts = offsets.shape
        if regions < count:
            raise IRError(f"offsets of {regions} regions, there are {count}")
        if planes < 2 or planes % 2 or self.output_dim % (planes // 2):
            raise IRError(f"{planes} planes of offsets, output_dim is {self.output_dim}")
        if min(parts) < self.part_size:
            raise IRError(f"offsets of {parts[0]} x {parts[1]} parts, part_size {self.part_size}")

    def moves(self, offsets: Array | None) -> Array:
        """How far each cell moves, in parts of its region: ``x`` and ``y``; of each class."""
        side = self.group_size
        if offsets is None:
            return np.zeros((1, 2, side, side), np.float32)
        part = np.arange(side) * self.part_size // side
        pairs = offsets.astype(np.float32).reshape(-1, 2, *offsets.shape[1:])
        moves: Array = pairs[:, :, part[:, None], part] * np.float32(self.trans_std)
        return moves

    def means(self, data: Array, left: Array, top: Array, cell: Array) -> Array:
        """Means of the samples of each cell that lie inside the map."""
        check_pixels(data)
        _, height, width = data.shape
        count = self.output_dim * left[0].size
        require(64 * count * self.spatial_bins_x * self.spatial_bins_y)
        across = np.arange(self.spatial_bins_x, dtype=np.float32) / self.spatial_bins_x * cell[0]
        down = np.arange(self.spatial_bins_y, dtype=np.float32) / self.spatial_bins_y * cell[1]
        x, y = np.broadcast_arrays(
            left[..., None, None] + across, top[..., None, None] + down[:, None]
        )
        half = np.float32(0.5)
        there = (x >= -half) & (x <= width - half) & (y >= -half) & (y <= height - half)
        x = np.where(there, np.clip(x, 0, width - 1), 0)
        y = np.where(there, np.clip(y, 0, height - 1), 0)
        # Channels that move together are sampled at the same places.
        planes = np.arange(count) * (height * width)
        planes = planes.reshape(len(left), -1, *left.shape[1:], 1, 1)
        columns, rows = np.floor(x), np.floor(y)
        flat = data[:count].reshape(count * height * width)
        total = np.zeros((*planes.shape[:-2], *x.shape[-2:]), np.float32)
        for row, by_row in ((rows, 1 - (y - rows)), (np.ceil(y), y - rows)):
            for column, by_column in ((columns, 1 - (x - columns)), (np.ceil(x), x - columns)):
                index = (row * width + column).astype(np.int64)
                picked = flat.take(planes + index[:, None])
                picked *= by_row[:, None]
                picked *= by_column[:, None]
                total += picked
        total = np.where(there[:, None], total, 0).sum((-2, -1))
        means: Array = total / np.maximum(there.sum((-2, -1)), 1)[:, None]
        return means.reshape(-1, *left.shape[1:])
