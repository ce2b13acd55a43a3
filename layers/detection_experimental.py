"""Detection: boxes proposed from anchors, moved by deltas and thinned out.

Specification pages: ExperimentalDetectronDetectionOutput-6,
ExperimentalDetectronGenerateProposalsSingleImage-6, ExperimentalDetectronPriorGridGenerator-6,
GenerateProposals-9, Proposal-1, -4. All is worked out in float32.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Floats, Int, Text, Type
from ..schemas.shapes import compatible, interval, limits, merge
from .base import Op, index_type
from .budget import require, steps
from .detection import of_rank
from .sort import descending, first_few, real_type
from .sort_nms import product
from .sort_pairs import OF_A_BOX
from .sort_rows import best, best_of_rows
from .sort_suppression import above, grown, overlaps_met

#: The names under which the first files with these operations know their opset.
OLD = frozenset({"experimental", "extension"})

#: No box grows by more than this at once: the logarithm of 1000 pixels over 16.
GROWTH = np.float32(np.log(1000 / 16))


class ExperimentalDetectronPriorGridGeneratorV6(Op):
    """The priors, moved to the middle of every cell of the feature map."""

    also = OLD

    flatten: Bool = True
    h: Int = 0
    w: Int = 0
    stride_x: Float = 0
    stride_y: Float = 0

    def infer(self, priors: Tensor, feature_map: Tensor, im_data: Tensor) -> tuple[Tensor, ...]:
        count, width = of_rank(priors, 2, "the priors")
        merge(width, 4)
        images, _, height, width = of_rank(feature_map, 4, "the feature map")
        merge(images, of_rank(im_data, 4, "the image")[0])
        kind = real_type(priors, feature_map, im_data)
        grid = (height * width * count,) if self.flatten else (height, width, count)
        return (Tensor(kind, Shape((*grid, 4))),)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, priors: Array, feature_map: Array, im_data: Array) -> tuple[Array, ...]:
        height, width = feature_map.shape[2:]
        rows, columns = self.h or height, self.w or width
        steps = np.float32(self.stride_x), np.float32(self.stride_y)
        step_x = steps[0] or np.float32(im_data.shape[3]) / np.float32(columns)
        step_y = steps[1] or np.float32(im_data.shape[2]) / np.float32(rows)
        require(8 * (rows * columns * priors.size + rows + columns))
        x = (np.arange(columns, dtype=np.float32) + np.float32(0.5)) * step_x
        y = (np.arange(rows, dtype=np.float32) + np.float32(0.5)) * step_y
        centre = np.stack(np.broadcast_arrays(x, y[:, None]), -1)
        moved = priors.astype(np.float32, copy=False) + np.tile(centre, 2)[:, :, None]
        # A grid smaller than the feature map leaves the rest at zero.
        result = np.zeros((height * width * len(priors), 4), priors.dtype)
        result[: moved.size // 4] = moved.reshape(-1, 4).astype(priors.dtype, copy=False)
        return (result if self.flatten else result.reshape(height, width, len(priors), 4),)


class Anchored(Op):
    """Anchors moved by deltas: of the most probable, those that do not overlap too much."""

    min_size: Float
    nms_threshold: Float
    post_nms_count: Int
    pre_nms_count: Int

    def first(self, scores: Array) -> Array:
        """The anchors of the greatest scores of one image, the best first.

        Anchors of a cell lie side by side, scores of a kind of anchor.
        """
        marks = scores.astype(np.float32, copy=False).transpose(1, 2, 0).ravel()
        count = len(marks) if self.pre_nms_count < 0 else min(self.pre_nms_count, len(marks))
        return first_few(marks, 0, count, largest=True)

    def proposed(
        self, image: Array, anchors: Array, deltas: Array, scores: Array, extra: int, some: Array
    ) -> tuple[Array, Array, Array]:
        """Boxes and scores of some anchors of an image, and whether the boxes are large enough."""
        image, anchors, deltas, scores = (
            a.astype(np.float32, copy=False) for a in (image, anchors, deltas, scores)
        )
        count = len(scores)
        if len(deltas) != 4 * count:
            raise IRError(f"{len(deltas)} planes of deltas, {count} of scores ask for {4 * count}")
        if anchors.size != 4 * scores.size:
            raise IRError(f"{anchors.size // 4} anchors, there are {scores.size} scores")
        cell, kind = np.divmod(some, max(count, 1))
        cells = scores[0].size if count else 0
        turned = deltas.reshape(count, 4, cells)[kind, :, cell]
        marks = scores.reshape(count, cells)[kind, cell]
        boxes = moved(anchors.reshape(-1, 4)[some], turned, GROWTH, extra)
        boxes = np.clip(boxes, 0, np.tile(image[1::-1], 2) - extra)
        # Of the sizes of an image, the third and the fourth are its scales.
        scale = image[2:4][::-1] if len(image) > 2 else np.ones(2, np.float32)
        least = np.float32(self.min_size) * scale
        large: Array = np.all(boxes[:, 2:] - boxes[:, :2] + extra >= least, 1)
        return boxes, marks, large


class ExperimentalDetectronGenerateProposalsSingleImageV6(Anchored):
    """Boxes and scores of one image; those left over are zeros, as are scores of small boxes."""

    output_count = (2, 2)
    also = OLD

    written: ClassVar[tuple[str, ...]] = (
        "min_size", "nms_threshold", "post_nms_count", "pre_nms_count",
    )  # fmt: skip

    def infer(
        self, im_info: Tensor, anchors: Tensor, deltas: Tensor, scores: Tensor
    ) -> tuple[Tensor, ...]:
        merge(of_rank(im_info, 1, "the image size")[0], 3)
        merge(of_rank(anchors, 2, "the anchors")[1], 4)
        areas = of_rank(deltas, 3, "the deltas")[1:], of_rank(scores, 3, "the scores")[1:]
        for one, other in zip(*areas, strict=True):
            merge(one, other)
        kind = real_type(im_info, anchors, deltas, scores)
        count = self.post_nms_count
        return Tensor(kind, Shape((count, 4))), Tensor(kind, Shape((count,)))

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(
        self, im_info: Array, anchors: Array, deltas: Array, scores: Array
    ) -> tuple[Array, ...]:
        # The third number is not looked at: sizes are those of the image as it is.
        given = im_info[:2], anchors, deltas, scores, 1
        boxes, marks, large = self.proposed(*given, self.first(scores))
        if not (large & (marks > 0)).all():  # others may come before them
            boxes, marks, large = self.proposed(*given, np.arange(scores.size))
            marks = np.where(large, marks, 0)
        order = descending(marks, 0)[: self.pre_nms_count]
        chosen = best(boxes, order, self.post_nms_count, above(self.nms_threshold), overlaps_met)
        result = np.zeros((self.post_nms_count, 4), scores.dtype)
        left = np.zeros(self.post_nms_count, scores.dtype)
        result[: len(chosen)], left[: len(chosen)] = boxes[chosen], marks[chosen]
        return result, left


#: Bytes of what is kept of an image beside its boxes and scores.
_OF_AN_IMAGE = 500


class GenerateProposalsV9(Anchored):
    """Boxes and scores of all images in one row, and how many there are of each."""

    output_count = (3, 3)
    written: ClassVar[tuple[str, ...]] = (
        *ExperimentalDetectronGenerateProposalsSingleImageV6.written, "normalized", "nms_eta",
        "roi_num_type",
    )  # fmt: skip

    normalized: Bool = True
    nms_eta: Float = 1
    roi_num_type: Type = ElementType.I64

    def infer(
        self, im_info: Tensor, anchors: Tensor, deltas: Tensor, scores: Tensor
    ) -> tuple[Tensor, ...]:
        if self.nms_eta != 1:
            raise IRError(f"nms_eta is {self.nms_eta}, it can only be 1")
        for name in ("pre_nms_count", "post_nms_count"):
            if getattr(self, name) < 1:
                raise IRError(f"{name} is {getattr(self, name)}, the least is 1")
        index_type("roi_num_type", self.roi_num_type)
        images, width = of_rank(im_info, 2, "the image sizes")
        if not compatible(width, 3) and not compatible(width, 4):
            raise IRError(f"the size of an image has {width} numbers, not 3 or 4")
        height, along, count, four = of_rank(anchors, 4, "the anchors")
        merge(four, 4)
        batch, kinds, rows, columns = of_rank(scores, 4, "the scores")
        others = of_rank(deltas, 4, "the deltas")
        if deltas.rank is not None and scores.rank is not None:
            for one, other in zip(others, (batch, kinds * 4, rows, columns), strict=True):
                merge(one, other)
        for one, other in ((height, rows), (along, columns), (count, kinds)):
            merge(one, other)
        for given in (others[0], batch):
            images = merge(given, images)
        # OpenVINO does not compare the types of the inputs.
        kind = im_info.type
        room = interval(0, product(limits(images)[1], self.post_nms_count))
        return (
            Tensor(kind, Shape((room, 4))),
            Tensor(kind, Shape((room,))),
            Tensor(self.roi_num_type, Shape((images,))),
        )

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(
        self, im_info: Array, anchors: Array, deltas: Array, scores: Array
    ) -> tuple[Array, ...]:
        extra = 0 if self.normalized else 1
        rows, marks, counts = [], [], []
        # Of each image two arrays of its boxes, and all of them together.
        most = min(self.post_nms_count, anchors.size // 4)
        require(len(im_info) * (_OF_AN_IMAGE + 40 * most) + OF_A_BOX * (anchors.size // 4))
        for image in zip(steps(im_info), deltas, scores, strict=True):
            size, its_deltas, its_scores = image
            some = self.first(its_scores)
            boxes, each, large = self.proposed(size, anchors, its_deltas, its_scores, extra, some)
            chosen = best(
                boxes,
                large.nonzero()[0],
                self.post_nms_count,
                above(self.nms_threshold),
                grown(overlaps_met, extra),
            )
            rows.append(boxes[chosen])
            marks.append(each[chosen])
            counts.append(len(chosen))
        return (
            np.concatenate([np.zeros((0, 4), np.float32), *rows]).astype(im_info.dtype),
            np.concatenate([np.zeros(0, np.float32), *marks]).astype(im_info.dtype),
            np.array(counts, self.roi_num_type.dtype),
        )


class ExperimentalDetectronDetectionOutputV6(Op):
    """The best boxes of all classes but the first; those left over are zeros."""

    output_count = (3, 3)
    also = OLD

    score_threshold: Float
    nms_threshold: Float
    max_delta_log_wh: Float
    num_classes: Int
    post_nms_count: Int
    max_detections_per_image: Int
    class_agnostic_box_regression: Bool = False
    deltas_weights: Floats

    def infer(
        self, input_rois: Tensor, input_deltas: Tensor, input_scores: Tensor, input_im_info: Tensor
    ) -> tuple[Tensor, ...]:
        widths = (4, self.num_classes * 4, self.num_classes)
        rows: Size = ANY
        for name, tensor, width in zip(
            ("the boxes", "the deltas", "the scores"),
            (input_rois, input_deltas, input_scores),
            widths,
            strict=True,
        ):
            count, found = of_rank(tensor, 2, name)
            merge(found, width)
            rows = merge(rows, count)
        input_im_info.shape.merge(Shape((1, 3)))
        kind = real_type(input_rois, input_deltas, input_scores, input_im_info)
        count = self.max_detections_per_image
        return (
            Tensor(kind, Shape((count, 4))),
            Tensor(ElementType.I32, Shape((count,))),
            Tensor(kind, Shape((count,))),
        )

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(
        self, input_rois: Array, input_deltas: Array, input_scores: Array, input_im_info: Array
    ) -> tuple[Array, ...]:
        rois, scores = input_rois.astype(np.float32), input_scores.astype(np.float32)
        deltas: Array = input_deltas.astype(np.float32).reshape(len(rois), self.num_classes, 4)
        deltas = deltas / np.array(self.deltas_weights, np.float32)
        refined = moved(rois[:, None], deltas, np.float32(self.max_delta_log_wh), 1)
        refined = np.maximum(refined, 0)
        # A box without extent has no detections.
        there: Array = np.all(rois[:, 2:] > rois[:, :2], 1)
        marks = np.ascontiguousarray(scores.T)
        good = there & (marks > np.float32(self.score_threshold))
        good[0] = False
        many = len(rois) if self.post_nms_count == -1 else self.post_nms_count
        limit, measure = above(self.nms_threshold), grown(overlaps_met, 1)
        each = refined.swapaxes(0, 1).reshape(-1, 4)
        first = np.arange(self.num_classes) * len(rois)
        ranked = best_of_rows(each, first, marks, good, many, limit, measure)
        count = self.max_detections_per_image
        kind, index, mark = ranked.row, ranked.place, ranked.score
        if len(kind) > count:
            some = descending(mark, 0)[:count]
            kind, index, mark = kind[some], index[some], mark[some]
        boxes = np.zeros((count, 4), input_rois.dtype)
        kinds, left = np.zeros(count, np.int32), np.zeros(count, input_scores.dtype)
        boxes[: len(kind)], kinds[: len(kind)] = refined[index, kind], kind
        left[: len(kind)] = mark
        return boxes, kinds, left


class ProposalV1(Op):
    """Boxes of the most probable anchors; those left over are zeros, the first of them -1."""

    base_size: Int
    pre_nms_topn: Int
    post_nms_topn: Int
    nms_thresh: Float
    feat_stride: Int
    min_size: Int
    ratio: Floats
    scale: Floats
    clip_before_nms: Bool = True
    clip_after_nms: Bool = False
    normalize: Bool = False
    box_size_scale: Float = 1
    box_coordinate_scale: Float = 1
    framework: Text = ""

    @property
    def tensorflow(self) -> bool:
        """Whether boxes are TensorFlow's: without rounding, their ends not counted."""
        return self.framework == "tensorflow"

    def infer(
        self, class_probs: Tensor, bbox_deltas: Tensor, image_shape: Tensor
    ) -> tuple[Tensor, ...]:
        for tensor in (class_probs, bbox_deltas, image_shape):
            real_type(tensor)
        images, kinds, *_ = of_rank(class_probs, 4, "the probabilities")
        others, width, *_ = of_rank(bbox_deltas, 4, "the deltas")
        merge(width, kinds * 2)
        (count,) = of_rank(image_shape, 1, "the image size")
        if isinstance(count, int) and count not in (3, 4):
            raise IRError(f"the size of the image has {count} numbers, not 3 or 4")
        if self.post_nms_topn < 0:
            raise IRError(f"post_nms_topn is {self.post_nms_topn}, the least is 0")
        return (Tensor(class_probs.type, Shape((merge(images, others) * self.post_nms_topn, 5))),)

    def run(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, ...]:
        return self.proposed(class_probs, bbox_deltas, image_shape)[:1]

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def proposed(
        self, class_probs: Array, bbox_deltas: Array, image_shape: Array
    ) -> tuple[Array, Array]:
        """Boxes with the number of their image, and their scores."""
        image = image_shape.astype(np.float32)
        # TensorFlow's boxes give rows before columns.
        end = np.tile(image[:2] if self.tensorflow else image[1::-1], 2)
        least = np.float32(self.min_size) * image[-1:1:-1]
        images, kinds, *area = class_probs.shape
        anchors = self.cells(*area)
        extra = 0 if self.tensorflow else 1
        if self.tensorflow:
            anchors = np.clip(anchors, 0, end)
        deltas: Array = bbox_deltas.astype(np.float32)
        if prod(deltas.shape) != 2 * prod(class_probs.shape):
            raise IRError(f"deltas of shape {deltas.shape}, probabilities of {class_probs.shape}")
        # The deltas in another order, and of one image's boxes all that is told of them.
        require(2 * deltas.nbytes + 128 * len(anchors))
        deltas = deltas.reshape(images, kinds // 2, 4, *area)
        weights = [self.box_coordinate_scale] * 2 + [self.box_size_scale] * 2
        deltas = deltas.transpose(0, 3, 4, 1, 2).reshape(images, len(anchors), 4)
        deltas /= np.array(weights, np.float32)
        scores = class_probs[:, kinds // 2 :].astype(np.float32).transpose(0, 2, 3, 1)
        count = self.post_nms_topn
        result = np.zeros((images, count, 5), class_probs.dtype)
        marks = np.zeros((images, count), class_probs.dtype)
        for i in steps(range(images)):
            boxes = moved(anchors, deltas[i], np.float32(np.inf), extra)
            boxes[:, 2:] += extra
            if self.clip_before_nms:
                boxes = np.clip(boxes, 0, end - extra)
            large = (boxes[:, 2:] - boxes[:, :2] + extra >= least).all(1)
            each = np.where(large, scores[i].ravel(), 0)
            chosen = best(
                boxes,
                descending(each, 0)[: self.pre_nms_topn],
                count,
                above(self.nms_thresh),
                grown(overlaps_met, extra),
            )
            kept = np.clip(boxes[chosen], 0, end) if self.clip_after_nms else boxes[chosen]
            result[i, : len(chosen), 1:] = kept / end if self.normalize else kept
            result[i, : len(chosen), 0] = i
            result[i, len(chosen) : len(chosen) + 1, 0] = -1
            marks[i, : len(chosen)] = each[chosen]
        return result.reshape(-1, 5), marks.ravel()

    def cells(self, height: int, width: int) -> Array:
        """The anchors of every cell of the feature map."""
        x, y = (np.arange(n, dtype=np.float32) * self.feat_stride for n in (width, height))
        corner = np.stack(np.broadcast_arrays(x, y[:, None]), -1)
        if self.tensorflow:
            corner = corner[..., ::-1]
        return (np.tile(corner, 2)[:, :, None] + self.anchors()).reshape(-1, 4)

    def anchors(self) -> Array:
        """One box for each ratio and scale, about the middle of a cell."""
        ratio = np.array(self.ratio, np.float32)
        width = np.sqrt(np.float32(self.base_size**2) / ratio)
        width = width if self.tensorflow else np.floor(width + np.float32(0.5))
        height = width * ratio
        height = height if self.tensorflow else np.floor(height + np.float32(0.5))
        extra = 0 if self.tensorflow else 1
        scale = np.array(self.scale, np.float32)
        size = np.stack([width, height], -1)[:, None] * scale[:, None] - extra
        centre = np.float32(0.5) * (self.base_size - extra)
        if self.tensorflow:
            centre -= self.base_size * np.float32(0.5)
        half = np.float32(0.5) * size.reshape(-1, 2)
        return np.concatenate([centre - half, centre + half], 1)


class ProposalV4(ProposalV1):
    """Proposal-1 with the scores of the boxes."""

    output_count = (2, 2)
    also = OLD

    def infer(
        self, class_probs: Tensor, bbox_deltas: Tensor, image_shape: Tensor
    ) -> tuple[Tensor, ...]:
        (boxes,) = super().infer(class_probs, bbox_deltas, image_shape)
        return boxes, Tensor(boxes.type, Shape(boxes.shape[:1]))

    def run(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, ...]:
        return self.proposed(class_probs, bbox_deltas, image_shape)


def moved(boxes: Array, deltas: Array, growth: np.float32, extra: int) -> Array:
    """Boxes whose centres move by parts of their sizes, and whose sizes grow exponentially."""
    half = np.float32(0.5)
    size = boxes[..., 2:] - boxes[..., :2] + extra
    centre = boxes[..., :2] + half * size
    centre = deltas[..., :2] * size + centre
    reach = half * (np.exp(np.minimum(deltas[..., 2:], growth)) * size)
    return np.concatenate([centre - reach, centre + reach - extra], -1)
