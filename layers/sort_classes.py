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
from .sort import Indexed
from .sort_nms import REAL, Found, check_boxes, product
from .sort_pairs import pairs_of
from .sort_rows import COMPARED, Clashes, Ranked, best_of_rows, require_room
from .sort_suppression import Upright, above, grown, overlaps, overlaps_met

COMMON = (
    "sort_result_type", "output_type", "nms_top_k", "keep_top_k", "sort_result_across_batch",
)  # fmt: skip


#: Bytes of the arrays that are kept of an image, and of each box in them and when they are joined.
_OF_AN_IMAGE, _OF_A_KEPT_ONE = 900, 80


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
        self.require_room(scores, images)
        parts = [self.kept(i, i * count, boxes[i, None], scores[i]) for i in range(images)]
        found = self.ordered(parts)
        return self.outputs(found, found.box, boxes.reshape(-1, 4)[found.box], images)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def require_room(self, scores: Array, images: int) -> None:
        """Refuse more boxes than there is memory to keep of all images, and to join."""
        require(scores.size)
        room = int(np.count_nonzero(self.is_enough(scores)))
        if self.keep_top_k != -1:
            room = min(room, images * self.keep_top_k)
        require(_OF_AN_IMAGE * images + _OF_A_KEPT_ONE * room)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def kept(self, image: int, first: int, boxes: Array, scores: Array) -> Found:
        """The boxes of an image that stay, best first; ``first`` is the number of its first.

        Classes have the same boxes, or each its own.
        """
        boxes, scores = boxes.astype(np.float32, copy=False), scores.astype(np.float32, copy=False)
        good = self.is_enough(scores)
        if 0 <= self.background_class < len(good):
            good[self.background_class] = False
        each = boxes.shape[1] if len(boxes) > 1 else 0
        starts = np.arange(len(scores)) * each
        most = boxes.shape[1] if self.nms_top_k == -1 else self.nms_top_k
        ranked = self.suppressed(boxes.reshape(-1, 4), starts, scores, good, most)
        found = Found(
            np.full(len(ranked.row), image), ranked.row, ranked.place + first, ranked.score
        )
        return found.greatest(len(ranked.row) if self.keep_top_k == -1 else self.keep_top_k)

    def is_enough(self, scores: Array) -> Array:
        """Which scores suffice."""
        raise NotImplementedError

    def suppressed(
        self, boxes: Array, first: Array, scores: Array, good: Array, most: int
    ) -> Ranked:
        """The boxes of each class that stay, of the first ``most`` that are good enough."""
        raise NotImplementedError

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

    def is_enough(self, scores: Array) -> Array:
        enough: Array = scores > np.float32(self.score_threshold)
        return enough

    def suppressed(
        self, boxes: Array, first: Array, scores: Array, good: Array, most: int
    ) -> Ranked:
        require_room(len(boxes), good)
        ranked = Ranked.of(scores, good, most)
        measure, sigma = grown(overlaps_met, self.extra), np.float32(self.gaussian_sigma)
        gaussian = self.decay_function == "gaussian"
        pairs = pairs_of(boxes, above(0), measure) if sigma >= 0 or not gaussian else None
        factors = np.ones(len(ranked.row))
        starts = ranked.counts.cumsum() - ranked.counts
        for begin, end in steps(spans(ranked.counts, 0 if pairs is None else COMPARED)):
            counts = ranked.counts[begin:end]
            if pairs is None:
                if not counts[0]:
                    continue
                places = starts[begin] + np.arange(counts[0])
                factors[places] = self.faded(boxes[ranked.place[places] + first[begin]], measure)
                continue
            within = np.arange(counts.max())
            places = np.where(within < counts[:, None], starts[begin:end, None] + within, -1)
            box = np.append(ranked.place + first[ranked.row], len(boxes))
            worse, row, better, shared = Clashes.of(
                pairs, box[places], box[places], above(0), behind=True
            )
            worse, better = places[row, worse], places[row, better]
            most_of = np.zeros(len(ranked.row), np.float32)
            heads = np.flatnonzero(np.diff(worse, prepend=-1))
            if len(heads):
                most_of[worse[heads]] = np.maximum.reduceat(shared, heads)
                decay = self.decay(shared, most_of[better])
                factors[worse[heads]] = np.minimum.reduceat(decay, heads)
        scores = ranked.score * factors.clip(max=1).astype(np.float32)
        stays = scores > np.float32(self.post_threshold)
        return ranked._replace(score=scores).at(stays)

    def decay(self, shared: Array, most: Array) -> Array:
        """What is left of a score beside a better box, which itself shares with one ``most``.

        One that shares nothing leaves the whole.
        """
        if self.decay_function == "gaussian":
            sigma = np.float32(self.gaussian_sigma)
            powers: Array = np.exp((most * most - shared * shared) * sigma)
            return powers
        return (1 - shared.astype(np.float64)) / (1 - most.astype(np.float64) + 1e-10)

    def faded(self, boxes: Array, measure: Upright) -> Array:
        """What is left of the scores of one class, by each pair of its boxes."""
        # Row by row, the overlap with each better box.
        require(32 * len(boxes) ** 2)
        shared = np.tril(np.array([measure(box, boxes) for box in boxes]), -1)
        decay = self.decay(shared, shared.max(1))
        better = np.tri(len(boxes), k=-1, dtype=np.bool_)
        left: Array = np.where(better, decay, 1).min(1)
        return left


def spans(counts: Array, room: int) -> list[tuple[int, int]]:
    """Rows whose pairs have room together: from the first to behind the last."""
    found, begin, widest = [], 0, 0
    for row, count in enumerate(steps(counts.tolist())):
        widest = max(widest, count)
        if row > begin and (row + 1 - begin) * widest * widest > room:
            found.append((begin, row))
            begin, widest = row, count
    return [*found, (begin, len(counts))] if len(counts) else []


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

    def is_enough(self, scores: Array) -> Array:
        enough: Array = scores >= np.float32(self.score_threshold)
        return enough

    def suppressed(
        self, boxes: Array, first: Array, scores: Array, good: Array, most: int
    ) -> Ranked:
        limit, measure = np.float32(self.iou_threshold), grown(overlaps, self.extra)
        count = scores.shape[1]
        return best_of_rows(boxes, first, scores, good, count, limit, measure, self.nms_eta, most)

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
        self.require_room(scores, len(roisnum))
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
