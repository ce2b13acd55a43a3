"""Non-maximum suppression over many classes, with the boxes themselves as outputs.

Specification pages: MatrixNonMaxSuppression-8; MulticlassNonMaxSuppression-8, -9. The attribute
they call ``sort_result`` is ``sort_result_type`` in files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ..schemas import ANY, Array, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Int, Type
from ..schemas.shapes import compatible, interval, limits
from .base import element_type
from .budget import require, steps
from .sort import Indexed, descending
from .sort_nms import REAL, Found, check_boxes, product
from .sort_suppression import Columns, best, crossed, grown, overlaps, overlaps_met

COMMON = (
    "sort_result_type", "output_type", "nms_top_k", "keep_top_k", "sort_result_across_batch",
)  # fmt: skip


class ManyClasses(Indexed):
    """The best boxes of each image over all classes; of a limit, -1 stands for none."""

    sort_result_type: Literal["none", "score", "classid"] = "none"
    output_type: Type = ElementType.I64
    nms_top_k: Annotated[Int, Field(ge=-1)] = -1
    keep_top_k: Annotated[Int, Field(ge=-1)] = -1
    sort_result_across_batch: Bool = False
    score_threshold: Float = 0
    background_class: Annotated[Int, Field(ge=-1)] = -1
    normalized: Bool = True

    @property
    def extra(self) -> int:
        """What adds to a length: pixels are counted with both ends."""
        return 0 if self.normalized else 1

    def told(self, boxes: Tensor, images: Size, kinds: Size | None) -> tuple[Tensor, ...]:
        """What is known of the outputs, for so many images and classes."""
        rows: Size = ANY
        if boxes.rank is not None and kinds is not None:
            each = at_most(limits(boxes.shape[1])[1], self.nms_top_k)
            each = at_most(product(each, limits(kinds)[1]), self.keep_top_k)
            rows = interval(0, product(each, limits(images)[1]))
        return (
            Tensor(boxes.type, Shape((rows, 6))),
            Tensor(self.output_type, Shape((rows, 1))),
            Tensor(self.output_type, Shape((images,))),
        )

    def shared(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
        """What is known of the outputs where all classes have the same boxes."""
        check_boxes(boxes.shape, scores.shape)
        images = ANY if boxes.rank is None else boxes.shape[0]
        if scores.rank is None:
            return self.told(boxes, images, None)
        rows, places, _ = self.told(boxes, scores.shape[0], scores.shape[1])
        return rows, places, Tensor(self.output_type, Shape((images,)))

    def run(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        images, count, _ = boxes.shape
        kinds = scores.shape[1]
        parts = [
            self.kept(i, i * count, np.broadcast_to(boxes[i], (kinds, count, 4)), scores[i])
            for i in range(images)
        ]
        found = self.ordered(parts)
        return self.outputs(found, found.box, boxes.reshape(-1, 4)[found.box], images)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def kept(self, image: int, first: int, boxes: Array, scores: Array) -> Found:
        """The boxes of an image that stay, best first; ``first`` is the number of its first."""
        boxes, scores = boxes.astype(np.float32), scores.astype(np.float32)
        parts = []
        for kind in steps(range(len(scores))):
            if kind != self.background_class:
                chosen, left = self.suppressed(boxes[kind], scores[kind])
                parts.append(Found.of(image, kind, chosen + first, left))
        found = Found.all(parts)
        order = found.by_score
        return found.at(order if self.keep_top_k == -1 else order[: self.keep_top_k])

    def suppressed(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """The boxes of a class that stay, and their scores."""
        raise NotImplementedError

    def candidates(self, scores: Array, enough: Array) -> Array:
        """The boxes of a class to be looked at, by falling score."""
        good = enough.nonzero()[0]
        order = good[descending(scores[good], 0)]
        return order if self.nms_top_k == -1 else order[: self.nms_top_k]

    def ordered(self, parts: Sequence[Found]) -> Found:
        """The boxes of all images in the order asked for."""
        found = Found.all(parts)
        if not self.sort_result_across_batch or self.sort_result_type == "none":
            return found
        if self.sort_result_type == "score":
            return found.at(found.by_score)
        return found.at(np.lexsort((found.box, -found.score, found.image, found.kind)))

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def outputs(self, found: Found, places: Array, boxes: Array, images: int) -> tuple[Array, ...]:
        """Classes, scores and boxes; their places; how many there are of each image."""
        rows = np.concatenate([np.stack([found.kind, found.score], 1), boxes], 1)
        dtype = self.output_type.dtype
        counts = np.bincount(found.image, minlength=images)
        return rows.astype(boxes.dtype), places[:, None].astype(dtype), counts.astype(dtype)


class MatrixNmsV8(ManyClasses):
    """Scores fall with the overlap, all at once; none of a box that itself overlaps a better one.

    OpenVINO does not sort by class within an image, nor does this.
    """

    output_count = (3, 3)
    written: ClassVar[tuple[str, ...]] = (
        *COMMON, "score_threshold", "background_class", "decay_function", "gaussian_sigma",
        "post_threshold", "normalized",
    )  # fmt: skip

    decay_function: Literal["linear", "gaussian"] = "linear"
    gaussian_sigma: Float = 2
    post_threshold: Float = 0

    def infer(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
        check_types(boxes, scores)
        return self.shared(boxes, scores)

    def suppressed(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = self.candidates(scores, scores > np.float32(self.score_threshold))
        boxes, scores = boxes[order], scores[order]
        if not len(order):
            return order, scores
        # Row by row, the overlap with each better box.
        measure = grown(overlaps_met, self.extra)
        require(16 * len(boxes) ** 2)
        columns = Columns.of(boxes, np.arange(len(boxes)), self.extra)
        if np.isfinite(columns.area).all():
            shared = np.maximum(crossed(columns, columns, measure), 0)
        else:
            shared = np.array([measure(box, boxes) for box in boxes])
        shared = np.tril(shared, -1)
        most = shared.max(1)
        if self.decay_function == "gaussian":
            sigma = np.float32(self.gaussian_sigma)
            decay = np.exp((most * most - shared * shared) * sigma)
        else:
            decay = (1 - shared.astype(np.float64)) / (1 - most.astype(np.float64) + 1e-10)
        better = np.tri(len(order), k=-1, dtype=np.bool_)
        scores = scores * np.where(better, decay, 1).min(1).clip(max=1).astype(np.float32)
        stays = scores > np.float32(self.post_threshold)
        return order[stays], scores[stays]


class MulticlassNmsV8(ManyClasses):
    """Suppression class by class, with a threshold that falls by ``nms_eta`` at every box."""

    output_count = (3, 3)
    written: ClassVar[tuple[str, ...]] = (
        *COMMON, "iou_threshold", "score_threshold", "background_class", "nms_eta", "normalized",
    )  # fmt: skip

    iou_threshold: Float = 0
    nms_eta: Annotated[Float, Field(ge=0, le=1)] = 1

    def infer(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
        check_types(boxes, scores)
        return self.shared(boxes, scores)

    def suppressed(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = self.candidates(scores, scores >= np.float32(self.score_threshold))
        chosen = best(
            boxes,
            order,
            len(order),
            np.float32(self.iou_threshold),
            grown(overlaps, self.extra),
            self.nms_eta,
        )
        return chosen, scores[chosen]

    def ordered(self, parts: Sequence[Found]) -> Found:
        if self.sort_result_type == "classid":
            parts = [part.at(np.lexsort((part.box, -part.score, part.kind))) for part in parts]
        return super().ordered(parts)


class MulticlassNmsV9(MulticlassNmsV8):
    """With a third input, every class has boxes of its own, those of all images in one row."""

    def infer(
        self, boxes: Tensor, scores: Tensor, roisnum: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        if roisnum is None:
            return super().infer(boxes, scores)
        check_types(boxes, scores)
        element_type(roisnum, ElementType.I32, ElementType.I64)
        for name, tensor, rank in (
            ("boxes", boxes, 3),
            ("scores", scores, 2),
            ("rois", roisnum, 1),
        ):
            if tensor.rank not in (None, rank):
                raise IRError(f"{name} have {tensor.rank} axes ({tensor.shape}), not {rank}")
        if boxes.rank is None or scores.rank is None or roisnum.rank is None:
            return self.told(boxes, ANY, None)
        check_rows(boxes.shape, scores.shape)
        return self.told(boxes, roisnum.shape[0], boxes.shape[0])

    def run(self, boxes: Array, scores: Array, roisnum: Array | None = None) -> tuple[Array, ...]:
        if roisnum is None:
            return super().run(boxes, scores)
        counts = np.maximum(roisnum.astype(np.int64), 0)
        stops = counts.cumsum()
        if len(stops) and stops[-1] > boxes.shape[1]:
            raise IRError(f"{stops[-1]} boxes of all images, there are {boxes.shape[1]}")
        parts = [
            self.kept(
                i, stop - count, boxes[:, stop - count : stop], scores[:, stop - count : stop]
            )
            for i, (count, stop) in enumerate(zip(counts, stops, strict=True))
        ]
        found = self.ordered(parts)
        places = found.box * len(boxes) + found.kind
        return self.outputs(found, places, boxes[found.kind, found.box], len(counts))


def check_types(boxes: Tensor, scores: Tensor) -> None:
    """Refuse boxes and scores that are not of one real type."""
    element_type(boxes, *REAL)
    boxes.type.merge(scores.type)


def check_rows(boxes: Shape, scores: Shape) -> None:
    """Refuse boxes and scores that are not of the same classes, or not as many."""
    if not compatible(boxes[2], 4):
        raise IRError(f"a box has {boxes[2]} numbers, not 4")
    for what, axis in (("classes", 0), ("boxes", 1)):
        if not compatible(boxes[axis], scores[axis]):
            raise IRError(f"boxes ({boxes}) and scores ({scores}) are not of as many {what}")


def at_most(count: int | None, limit: int) -> int | None:
    """A number that may be limited; None is without limit and stays so, as in OpenVINO."""
    return count if count is None or limit == -1 else min(count, limit)
