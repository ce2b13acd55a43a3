"""Non-maximum suppression: of overlapping boxes, the one with the greatest score stays.

Specification pages: NonMaxSuppression-1, -3, -4, -5, -9; NMSRotated-13. All is worked out in
float32. Boxes go that overlap more than the threshold, as the specification says; OpenVINO's CPU
lets those go, too, that overlap exactly as much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Type
from ..schemas.shapes import compatible, interval, limits
from .base import element_type
from .budget import budget, steps
from .sort import Indexed, descending

#: How much one box overlaps each of others: the intersection over the union.
Overlaps: TypeAlias = Callable[[Array, Array], Array]


class Grown(Protocol):
    """The same for boxes to whose lengths something may be added."""

    def __call__(self, one: Array, others: Array, extra: float = 0, /) -> Array: ...


#: So many pairs of boxes are held against each other at once.
PAIRS = 1 << 17
#: So many boxes are looked at before it is known whether further ones are needed.
CHUNK = 512

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


class Judgement(NamedTuple):
    """When a box goes: overlaps more than ``overlap``, or its score is no more than ``score``.

    With a ``sigma``, scores fade with the overlap; with ``fades_only``, they do nothing else.
    """

    overlap: np.float32
    score: np.float32
    sigma: np.float32 = np.float32(0)
    fades_only: bool = False


class Boxes(Indexed):
    """Suppression of upright boxes."""

    box_encoding: Literal["corner", "center"] = "corner"
    sort_result_descending: Bool = True

    def kept(
        self, boxes: Array, scores: Array, count: Array | None, judgement: Judgement
    ) -> Found:
        """The boxes that stay."""
        corners = [self.corners(image) for image in boxes.astype(np.float32)]
        found = suppressed(corners, scores, number_of(count), judgement, overlaps)
        return found.at(found.by_score) if self.sort_result_descending else found

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def corners(self, boxes: Array) -> Array:
        """The boxes as their least coordinates, then their greatest."""
        one, other = boxes[:, :2], boxes[:, 2:]
        if self.box_encoding == "center":
            return np.concatenate([one - other / 2, one + other / 2], 1)
        return np.concatenate([np.minimum(one, other), np.maximum(one, other)], 1)


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
        found = suppressed(list(turned), scores, count, judgement, overlaps_rotated)
        if self.sort_result_descending:
            found = found.at(found.by_score)
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
    boxes: Sequence[Array], scores: Array, count: int, judgement: Judgement, overlaps: Overlaps
) -> Found:
    """The boxes of every image and class that stay, those of a class by falling score."""
    parts = []
    for image, (its_boxes, its_scores) in enumerate(
        zip(boxes, scores.astype(np.float32), strict=True)
    ):
        for kind, row in enumerate(steps(its_scores)):
            if judgement.sigma > 0:
                chosen, left = faded(its_boxes, row, count, judgement, overlaps)
            else:
                order = descending(row, 0)
                order = order[row[order] > judgement.score]
                chosen = best(its_boxes, order, count, above(judgement.overlap), overlaps)
                left = row[chosen]
            parts.append(Found.of(image, kind, chosen, left))
    return Found.all(parts)


def above(threshold: float | np.float32) -> np.float32:
    """The limit of those who may reach a threshold."""
    return np.nextafter(np.float32(threshold), np.float32(np.inf))


def best(
    boxes: Array,
    order: Array,
    count: int,
    limit: np.float32,
    overlaps: Overlaps,
    eta: float = 1,
) -> Array:
    """Of boxes in order, each that overlaps the chosen ones less; ``eta`` lowers the limit."""
    if overlaps in UPRIGHT and eta == 1 and limit > 0 and np.isfinite(boxes).all():
        return order[swept(boxes[order], count, limit, overlaps)]
    chosen: list[int] = []
    counted = budget()
    for first in range(0, len(order), CHUNK):
        part = order[first : first + CHUNK]
        worst: Array = np.full(len(part), -np.inf, np.float32)
        for index in steps(chosen):
            worst = np.maximum(worst, overlaps(boxes[index], boxes[part]))
        while len(chosen) < count:
            counted.step()
            part, worst = part[worst < limit], worst[worst < limit]
            if not len(part):
                break
            chosen.append(int(part[0]))
            if limit > 0.5:
                limit *= eta
            worst = np.maximum(worst[1:], overlaps(boxes[part[0]], boxes[part[1:]]))
            part = part[1:]
        if len(chosen) >= count:
            break
    return np.array(chosen, np.int64)


def swept(boxes: Array, count: int, limit: np.float32, overlaps: Overlaps) -> Array:
    """The places of those of all boxes that overlap the chosen ones before them less."""
    chosen: list[int] = []
    counted = budget()
    for first in range(0, len(boxes), CHUNK):
        if len(chosen) >= count:
            break
        before, new = np.array(chosen, np.int64), np.arange(first, min(first + CHUNK, len(boxes)))
        for one, other in ((before, new), (new, before)):
            pairs = rivals(boxes, one, other, limit, overlaps)
            new = np.setdiff1d(new, pairs[1 if one is before else 0], assume_unique=True)
        one, other = rivals(boxes, new, new, limit, overlaps)
        better, worse = np.minimum(one, other), np.maximum(one, other)
        by_better = better.argsort()
        worse = worse[by_better] - first
        edges = np.searchsorted(better[by_better], new).tolist()
        stays = np.ones(CHUNK, np.bool_)
        for place, begin, end in zip(new.tolist(), edges, [*edges[1:], len(worse)], strict=True):
            if stays[place - first]:
                counted.step()
                chosen.append(place)
                if len(chosen) == count:
                    break
                if begin != end:
                    stays[worse[begin:end]] = False
    return np.array(chosen, np.int64)


def rivals(
    boxes: Array, some: Array, others: Array, limit: np.float32, overlaps: Overlaps
) -> tuple[Array, Array]:
    """Pairs of some boxes and others that overlap too much, where the other begins within the one.

    By where they begin others are put in order: each is only held against those of a run there.
    """
    left, top, right, bottom = np.ascontiguousarray(boxes.T)
    others = others[left[others].argsort()]
    begins = np.searchsorted(left[others], left[some])
    counts = np.searchsorted(left[others], right[some]) - begins
    before = np.concatenate([[0], np.maximum(counts, 0).cumsum()])
    found: list[tuple[Array, Array]] = [(some[:0], others[:0])]
    begin = 0
    while begin < len(some):
        end = max(int(np.searchsorted(before, before[begin] + PAIRS, "right")) - 1, begin + 1)
        each = np.diff(before[begin : end + 1])
        one = np.repeat(some[begin:end], each)
        starts = np.repeat(begins[begin:end] - before[begin:end], each)
        other = others[starts + np.arange(before[begin], before[end])]
        near = (top[one] < bottom[other]) & (top[other] < bottom[one]) & (one != other)
        one, other = one[near], other[near]
        much = ~(overlaps(boxes[one], boxes[other]) < limit)
        found.append((one[much], other[much]))
        begin = end
    one, other = (np.concatenate(side) for side in zip(*found, strict=True))
    return one, other


def faded(
    boxes: Array, scores: Array, count: int, judgement: Judgement, overlaps: Overlaps
) -> tuple[Array, Array]:
    """Boxes whose score stays great enough while it fades with each overlap, and the scores."""
    scores, chosen = scores.copy(), list[int]()
    waiting = scores > judgement.score
    # How many of the chosen boxes each score has already been held against.
    met = np.zeros(len(scores), np.int64)
    counted = budget()
    while waiting.any() and len(chosen) < count:
        counted.step()
        index = int(np.where(waiting, scores, -np.inf).argmax())
        shared = overlaps(boxes[index], boxes[chosen[met[index] :]])
        score = scores[index] * np.exp(shared * shared / (-2 * judgement.sigma)).prod()
        met[index] = len(chosen)
        if score == scores[index]:
            chosen.append(index)
            waiting[index] = False
        too_much = not judgement.fades_only and (shared > judgement.overlap).any()
        # A score that is no number goes, too.
        if too_much or not score > judgement.score:
            waiting[index] = False
        scores[index] = score
    return np.array(chosen, np.int64), scores[chosen]


def overlaps(one: Array, others: Array, extra: float = 0) -> Array:
    """The intersection of a box with others over the union; ``extra`` adds to each length."""
    sides, size = others[..., 2:] - others[..., :2] + extra, one[..., 2:] - one[..., :2] + extra
    low = np.maximum(one[..., :2], others[..., :2])
    high = np.minimum(one[..., 2:], others[..., 2:])
    shared = np.maximum(high - low + extra, 0).prod(-1)
    return ratio(shared, size.prod(-1), sides.prod(-1))


def overlaps_met(one: Array, others: Array, extra: float = 0) -> Array:
    """The same, where boxes that lie apart do not overlap, however much a length is added to."""
    apart = (others[..., :2] > one[..., 2:]) | (others[..., 2:] < one[..., :2])
    return np.where(apart.any(-1), np.float32(0), overlaps(one, others, extra))


def grown(measure: Grown, extra: float) -> Overlaps:
    """The same of boxes to whose lengths something is added; where that is nothing, as it is."""
    if not extra:
        return measure
    return lambda one, others: measure(one, others, extra)


#: The overlaps of upright boxes; those that do not reach into each other have none.
UPRIGHT: tuple[Overlaps, ...] = (overlaps, overlaps_met)


def ratio(shared: Array, one: Array, others: Array) -> Array:
    """The intersection over the union of areas; nothing where an area is nothing."""
    there = (one > 0) & (others > 0)
    return np.divide(shared, one + others - shared, out=np.zeros_like(shared), where=there)


def overlaps_rotated(one: Array, others: Array) -> Array:
    """The intersection of one rotated box with others over the union."""
    first, rest = vertices(one[None]), vertices(others)
    shared = shared_area(np.broadcast_to(first, rest.shape), rest)
    return ratio(shared, one[2] * one[3], others[:, 2] * others[:, 3])


def vertices(boxes: Array) -> Array:
    """The four vertices of rotated boxes, in order: ``(boxes, 4, 2)``."""
    signs = np.array([(-1, 1), (-1, -1), (1, -1), (1, 1)], np.float32) / 2
    along, across = (signs * boxes[:, None, 2:4]).transpose(2, 0, 1)
    cosine, sine = np.cos(boxes[:, None, 4]), np.sin(boxes[:, None, 4])
    turned = [along * cosine - across * sine, along * sine + across * cosine]
    return np.stack(turned, -1) + boxes[:, None, :2]


def shared_area(one: Array, other: Array) -> Array:
    """Areas that pairs of rectangles share: those of the polygons of their common points."""
    inside = [contained(one, other), contained(other, one)]
    crossings, crossed = intersections(one, other)
    points = np.concatenate([one, other, crossings], 1)
    there = np.concatenate([*inside, crossed], 1)
    count = there.sum(1, keepdims=True)
    centre = (points * there[..., None]).sum(1) / np.maximum(count, 1)
    points = np.where(there[..., None], points - centre[:, None], 0)
    angle = np.where(there, np.arctan2(points[..., 1], points[..., 0]), np.inf)
    order = angle.argsort(1)[..., None]
    # Those not there come last; they stand where the first stands, and enclose nothing.
    points = np.take_along_axis(points, order, 1)
    last = np.take_along_axis(there, order[..., 0], 1)[..., None]
    points = np.where(last, points, points[:, :1])
    following = np.roll(points, -1, 1)
    return np.abs(cross(points, following).sum(1)) / 2


def cross(one: Array, other: Array) -> Array:
    """The cross product of pairs of vectors in the plane."""
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def contained(points: Array, rectangles: Array) -> Array:
    """Which points lie in their rectangle."""
    corner = rectangles[:, :1]
    there = np.ones(points.shape[:2], np.bool_)
    for edge in (rectangles[:, 1:2] - corner, rectangles[:, 3:4] - corner):
        along = ((points - corner) * edge).sum(-1)
        there &= (along >= 0) & (along <= (edge * edge).sum(-1))
    return there


def intersections(one: Array, other: Array) -> tuple[Array, Array]:
    """Where the edges of pairs of rectangles cross: 16 points, and whether they are there."""
    start, begin = one[:, :, None], other[:, None]
    edge, side = np.roll(one, -1, 1)[:, :, None] - start, np.roll(other, -1, 1)[:, None] - begin
    turn = cross(edge, side)
    parallel = np.abs(turn) <= 1e-14
    turn = np.where(parallel, 1, turn)
    t, u = cross(begin - start, side) / turn, cross(begin - start, edge) / turn
    there = ~parallel & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    points = start + edge * t[..., None]
    return points.reshape(len(one), 16, 2), there.reshape(len(one), 16)
