"""Non-maximum suppression: of overlapping boxes, the one with the greatest score stays.

Specification pages: NonMaxSuppression-1, -3, -4, -5, -9; NMSRotated-13. All is worked out in
float32. Boxes go that overlap more than the threshold, as the specification says; OpenVINO's CPU
lets those go, too, that overlap exactly as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Type
from ..schemas.shapes import compatible, interval, limits
from .base import element_type
from .sort import Indexed, descending
from .sort_rotated import overlaps_rotated
from .sort_rows import best_of_rows, faded_of_rows
from .sort_suppression import Judgement, Overlaps, above, overlaps

REAL = tuple(map(ElementType, ("f32", "f16", "bf16")))


class Found(NamedTuple):
    """Boxes that stay: of which image and class, which box, with which score."""

    image: Array
    kind: Array
    box: Array
    score: Array

    @classmethod
    def of(cls, image: int, kind: int, box: Array, score: Array) -> Found:
        """Boxes of one class of one image."""
        return cls(np.full(len(box), image), np.full(len(box), kind), box, score)

    @classmethod
    def all(cls, parts: Sequence[Found]) -> Found:
        """Those of several classes and images."""
        none = cls.of(0, 0, np.zeros(0, np.int64), np.zeros(0, np.float32))
        return cls(*map(np.concatenate, zip(none, *parts, strict=True)))

    def at(self, order: Array) -> Found:
        """Some of them, in a given order."""
        return Found(*(column[order] for column in self))

    @property
    def by_score(self) -> Array:
        """Their order by falling score; of equals, that of images, classes and boxes."""
        return np.lexsort((self.box, self.kind, self.image, -self.score))

    def greatest(self, count: int) -> Found:
        """So many of the greatest scores, in that order."""
        if 0 < 2 * count < len(self.score):
            self = self.at(self.score >= np.partition(self.score, -count)[-count])
        return self.at(self.by_score[:count])


class Boxes(Indexed):
    """Suppression of upright boxes."""

    box_encoding: Literal["corner", "center"] = "corner"
    sort_result_descending: Bool = True

    def kept(
        self, boxes: Array, scores: Array, count: Array | None, judgement: Judgement
    ) -> Found:
        """The boxes that stay."""
        corners = self.corners(boxes.astype(np.float32))
        found = suppressed(corners, scores, number_of(count), judgement, overlaps)
        if not self.sort_result_descending:
            return found
        # Fading changes the order of equals within a class, which is else that of the boxes.
        return found.at(found.by_score if judgement.sigma > 0 else descending(found.score, 0))

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def corners(self, boxes: Array) -> Array:
        """The boxes as their least coordinates, then their greatest."""
        one, other = boxes[..., :2], boxes[..., 2:]
        if self.box_encoding == "center":
            return np.concatenate([one - other / 2, one + other / 2], -1)
        return np.concatenate([np.minimum(one, other), np.maximum(one, other)], -1)


class NonMaxSuppressionV1(Boxes):
    """Places of the boxes that stay, as many rows as there are boxes.

    The rule gives the number of rows of the specification, which fills those left over with
    -1 and has no room for several images; as OpenVINO's CPU, it gives each box, and no more.
    """

    rows_vary: ClassVar[bool] = True

    @property
    def index_type(self) -> ElementType:
        """The element type of the places."""
        return ElementType.I64

    def infer(
        self,
        boxes: Tensor,
        scores: Tensor,
        max_output_boxes_per_class: Tensor | None = None,
        iou_threshold: Tensor | None = None,
        score_threshold: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        check_boxes(boxes.shape, scores.shape)
        check_limits(0, max_output_boxes_per_class, iou_threshold, score_threshold)
        count: Size = 0
        if max_output_boxes_per_class is not None:
            count = count_of(max_output_boxes_per_class)
        return (Tensor(self.index_type, Shape((self.rows(boxes.shape, scores.shape, count), 3))),)

    def rows(self, boxes: Shape, scores: Shape, count: Size) -> Size:
        """The number of rows, for so many boxes of each class."""
        if boxes.rank is None:
            return ANY
        room = count if scores.rank is None else count * scores[1]
        if isinstance(boxes[1], Dim) or isinstance(room, Dim):
            return ANY
        return min(boxes[1], room)

    def run(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
    ) -> tuple[Array, ...]:
        judgement = Judgement(fraction(iou_threshold), fraction(score_threshold))
        found = self.kept(boxes, scores, max_output_boxes_per_class, judgement)
        return told(found, self.index_type)[:1]


class NonMaxSuppressionV3(NonMaxSuppressionV1):
    """NonMaxSuppression-1 with a choice of the index type."""

    output_type: Type = ElementType.I64

    @property
    def index_type(self) -> ElementType:
        return self.output_type


class NonMaxSuppressionV4(NonMaxSuppressionV3):
    """NonMaxSuppression-3 with room for the boxes of every class of every image."""

    def rows(self, boxes: Shape, scores: Shape, count: Size) -> Size:
        if boxes.rank is None or scores.rank is None or isinstance(count, Dim):
            return ANY
        each = None if isinstance(boxes[1], Dim) else min(boxes[1], count)
        room = product(each, limits(scores[0])[1], limits(scores[1])[1])
        return ANY if room is None else room


class NonMaxSuppressionV5(Boxes):
    """As many rows as boxes stay; scores may fade with the overlap as far as it is allowed."""

    output_count = (3, 3)

    output_type: Type = ElementType.I64

    #: Whether boxes stay that overlap too much, where scores fade.
    fades_only: ClassVar[bool] = False

    def infer(
        self,
        boxes: Tensor,
        scores: Tensor,
        max_output_boxes_per_class: Tensor | None = None,
        iou_threshold: Tensor | None = None,
        score_threshold: Tensor | None = None,
        soft_nms_sigma: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        thresholds = (iou_threshold, score_threshold, soft_nms_sigma)
        for tensor in (boxes, scores, *thresholds):
            if tensor is not None:
                element_type(tensor, *REAL)
        check_boxes(boxes.shape, scores.shape)
        check_limits(1, max_output_boxes_per_class, *thresholds)
        room = rows(boxes.shape, scores.shape, max_output_boxes_per_class)
        return counted(room, self.output_type)

    def run(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
        soft_nms_sigma: Array | None = None,
    ) -> tuple[Array, ...]:
        judgement = Judgement(
            fraction(iou_threshold),
            fraction(score_threshold),
            fraction(soft_nms_sigma),
            self.fades_only,
        )
        found = self.kept(boxes, scores, max_output_boxes_per_class, judgement)
        return told(found, self.output_type)


class NonMaxSuppressionV9(NonMaxSuppressionV5):
    """NonMaxSuppression-5 where scores that fade are the only way to go."""

    fades_only: ClassVar[bool] = True


class NMSRotatedV13(Indexed):
    """Suppression of boxes given as centre, width, height and angle in radians."""

    output_count = (3, 3)

    sort_result_descending: Bool = True
    output_type: Type = ElementType.I64
    clockwise: Bool = True

    def infer(
        self,
        boxes: Tensor,
        scores: Tensor,
        max_output_boxes_per_class: Tensor,
        iou_threshold: Tensor,
        score_threshold: Tensor,
    ) -> tuple[Tensor, ...]:
        for tensor in (boxes, scores, iou_threshold, score_threshold):
            if not tensor.type.is_real and not tensor.type.is_dynamic:
                raise IRError(f"element type {tensor.type} is not a real type")
        kind = max_output_boxes_per_class.type
        if not kind.is_integral and not kind.is_dynamic:
            raise IRError(f"the number of boxes is of type {kind}, not of an integer type")
        check_boxes(boxes.shape, scores.shape, 5)
        check_limits(1, max_output_boxes_per_class, iou_threshold, score_threshold)
        room = rows(boxes.shape, scores.shape, max_output_boxes_per_class)
        return counted(room, self.output_type)

    def run(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array,
        iou_threshold: Array,
        score_threshold: Array,
    ) -> tuple[Array, ...]:
        turned = boxes.astype(np.float32)
        if not self.clockwise:
            turned = turned * np.array([1, 1, 1, 1, -1], np.float32)
        judgement = Judgement(fraction(iou_threshold), fraction(score_threshold))
        count = number_of(max_output_boxes_per_class)
        found = suppressed(turned, scores, count, judgement, overlaps_rotated)
        if self.sort_result_descending:
            found = found.at(descending(found.score, 0))
        return told(found, self.output_type)


# What is known of the outputs.


def check_boxes(boxes: Shape, scores: Shape, width: int = 4) -> None:
    """Refuse boxes and scores that do not belong together."""
    for name, shape in (("boxes", boxes), ("scores", scores)):
        if shape.rank not in (None, 3):
            raise IRError(f"{name} have {shape.rank} axes ({shape}), not 3")
    if boxes.rank is None:
        return
    if not compatible(boxes[2], width):
        raise IRError(f"a box has {boxes[2]} numbers, not {width}")
    if scores.rank is None:
        return
    if not compatible(boxes[0], scores[0]):
        raise IRError(f"boxes of {boxes[0]} images, scores of {scores[0]}")
    if not compatible(boxes[1], scores[2]):
        raise IRError(f"{boxes[1]} boxes, scores of {scores[2]}")


def check_limits(rank: int, *tensors: Tensor | None) -> None:
    """Refuse limits that are more than one number, perhaps in a list of one."""
    for tensor in tensors:
        if tensor is None or tensor.rank is None:
            continue
        if tensor.rank > rank or not all(compatible(size, 1) for size in tensor.shape):
            raise IRError(f"a limit is of shape ({tensor.shape}), it is a single number")


def count_of(tensor: Tensor) -> Size:
    """The greatest number of boxes of a class; any where it is not known, or negative."""
    value = tensor.value
    return ANY if value is None or value.item() < 0 else int(value.item())


def rows(boxes: Shape, scores: Shape, count: Tensor | None) -> Size:
    """The number of boxes that may stay."""
    if boxes.rank is None or scores.rank is None:
        return ANY
    each, room = ANY if count is None else count_of(count), limits(boxes[1])[1]
    room = None if room is None or isinstance(each, Dim) else min(room, each)
    return interval(0, product(room, limits(scores[0])[1], limits(scores[1])[1]))


def product(*factors: int | None) -> int | None:
    """A product, where None is without limit; nothing of it is nothing."""
    if 0 in factors:
        return 0
    total = 1
    for factor in factors:
        if factor is None:
            return None
        total *= factor
    return total


def counted(rows: Size, kind: ElementType) -> tuple[Tensor, ...]:
    """Places, scores and number of boxes, so many at most."""
    scores = Tensor(ElementType.F32, Shape((rows, 3)))
    return Tensor(kind, Shape((rows, 3))), scores, Tensor(kind, Shape((1,)))


@np.errstate(all="ignore")  # what is infinite or no number goes its way
def told(found: Found, kind: ElementType) -> tuple[Array, ...]:
    """Places, scores and number of boxes."""
    places = np.stack(found[:3], 1).astype(kind.dtype)
    scores = np.stack([found.image, found.kind, found.score], 1).astype(np.float32)
    return places, scores, np.array([len(places)], kind.dtype)


# Suppression.


def number_of(count: Array | None) -> int:
    """The greatest number of boxes of a class; none where it is not given."""
    return 0 if count is None else max(int(count.item()), 0)


def fraction(threshold: Array | None) -> np.float32:
    """A threshold; zero where it is not given."""
    return np.float32(0 if threshold is None else threshold.item())


@np.errstate(all="ignore")  # what is infinite or no number goes its way
def suppressed(
    boxes: Array, scores: Array, count: int, judgement: Judgement, measure: Overlaps
) -> Found:
    """The boxes of every image and class that stay, those of a class by falling score."""
    images, kinds, each = scores.shape
    rows = scores.astype(np.float32, copy=False).reshape(images * kinds, each)
    good = rows > judgement.score
    together = boxes.reshape(images * each, boxes.shape[2])
    first = np.repeat(np.arange(images) * each, kinds)
    if judgement.sigma > 0:
        ranked = faded_of_rows(together, first, rows, good, count, judgement, measure)
    else:
        limit = above(judgement.overlap)
        ranked = best_of_rows(together, first, rows, good, count, limit, measure)
    return Found(*np.divmod(ranked.row, kinds), ranked.place, ranked.score)
