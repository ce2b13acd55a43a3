"""Detection's end: boxes decoded from their priors, and the best of them chosen.

Specification pages: DetectionOutput-1, -8.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..schemas import ANY, Array, Dim, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Int, Ints
from ..schemas.shapes import compatible
from .base import Op
from .budget import require, steps
from .detection import of_rank
from .shape import real
from .sort import descending, real_type
from .sort_pairs import OF_A_BOX
from .sort_rows import OF_A_GOOD_ONE, best_of_rows
from .sort_suppression import above, overlaps

F = np.float32


class Detection(Op):
    """Boxes of the best scores, less those that overlap a better one of their class."""

    background_label_id: Int = 0
    top_k: Int = -1
    variance_encoded_in_target: Bool = False
    keep_top_k: Ints
    code_type: Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"] = (
        "caffe.PriorBoxParameter.CORNER"
    )
    share_location: Bool = True
    nms_threshold: Float
    confidence_threshold: Float = 0
    clip_after_nms: Bool = False
    clip_before_nms: Bool = False
    decrease_label_id: Bool = False
    normalized: Bool = False
    input_height: Int = 1
    input_width: Int = 1
    objectness_score: Float = 0

    def classes(self, *inputs: Tensor) -> int | None:
        """The number of classes, None where it cannot be told."""
        raise NotImplementedError

    @property
    def prior_size(self) -> int:
        """How many numbers a prior box has: the corners, behind a batch unless normalized."""
        return 4 if self.normalized else 5

    def infer(
        self,
        box_logits: Tensor,
        class_preds: Tensor,
        proposals: Tensor,
        aux_class_preds: Tensor | None = None,
        aux_box_preds: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        if not self.keep_top_k:
            raise IRError("keep_top_k is empty, it has at least one number")
        if (aux_class_preds is None) != (aux_box_preds is None):
            raise IRError("4 inputs, there are 3 or 5")
        kind = real_type(box_logits, class_preds)
        real(proposals, "proposals")
        images, boxes = of_rank(box_logits, 2, "the box logits")
        more, scores = of_rank(class_preds, 2, "the class predictions")
        batch, rows, numbers = of_rank(proposals, 3, "the proposals")
        given = [box_logits, class_preds, proposals]
        if aux_class_preds is not None and aux_box_preds is not None:
            given += [aux_class_preds, aux_box_preds]
        classes = self.classes(*given)
        priors = self.priors(*given) if classes is None or self.number == 8 else None
        places = 1 if self.share_location else classes
        if places is not None:
            priors = agree(priors, boxes, places * 4, "box logits")
        if isinstance(images, Dim) and not isinstance(more, Dim):
            images = more
        elif not compatible(images, more):
            raise IRError(f"box logits of {images} images, class predictions of {more}")
        if classes is not None:
            priors = agree(priors, scores, classes, "class predictions")
        priors = agree(priors, numbers, self.prior_size, "proposals")
        if not (compatible(batch, 1) or compatible(batch, images)):
            raise IRError(f"proposals of {batch} images, there are {images}")
        expected = 1 if self.variance_encoded_in_target else 2
        if not compatible(rows, expected):
            raise IRError(f"proposals have {rows} rows, {expected} are expected")
        if aux_class_preds is not None and aux_box_preds is not None:
            also, objects = of_rank(aux_class_preds, 2, "the additional class predictions")
            if not compatible(also, images):
                raise IRError(f"additional class predictions of {also} images, of {images}")
            priors = agree(priors, objects, 2, "additional class predictions")
            box_logits.shape.merge(aux_box_preds.shape)
        return (Tensor(kind, Shape((1, 1, self.results(images, priors, classes), 7))),)

    def results(self, images: Size, priors: int | None, classes: int | None) -> Size:
        """How many boxes come out at most."""
        if self.keep_top_k[0] > 0:
            return images * self.keep_top_k[0]
        many: Size = ANY if classes is None else classes
        if self.keep_top_k[0] == -1 and self.top_k > 0:
            return images * self.top_k * many
        return images * (ANY if priors is None else priors) * many

    def priors(self, *inputs: Tensor) -> int | None:
        """The number of prior boxes, from the proposals or the additional predictions."""
        *_, numbers = of_rank(inputs[2], 3, "the proposals")
        found = agree(None, numbers, self.prior_size, "proposals")
        if found is None and len(inputs) == 5:
            *_, objects = of_rank(inputs[3], 2, "the additional class predictions")
            found = agree(None, objects, 2, "additional class predictions")
        return found

    def run(
        self,
        box_logits: Array,
        class_preds: Array,
        proposals: Array,
        aux_class_preds: Array | None = None,
        aux_box_preds: Array | None = None,
    ) -> tuple[Array, ...]:
        arrays = [box_logits, class_preds, proposals]
        self.require_room(*arrays)
        scores = class_preds.astype(F)
        if aux_class_preds is not None and aux_box_preds is not None:
            arrays += [aux_class_preds, aux_box_preds]
        (result,) = self.infer(*(Tensor.of(array) for array in arrays))
        count = proposals.shape[2] // self.prior_size
        images = len(box_logits)
        if not count or not box_logits.shape[1]:
            raise IRError(
                f"no boxes: proposals of shape {proposals.shape}, boxes of {box_logits.shape}"
            )
        scores = scores.reshape(images, count, -1)
        places = box_logits.reshape(images, count, -1, 4).astype(F)
        priors = proposals[:, 0].reshape(-1, count, self.prior_size)[..., -4:].astype(F)
        variances = np.ones_like(priors)
        if not self.variance_encoded_in_target:
            variances = proposals[:, 1, : count * 4].reshape(-1, count, 4).astype(F)
        boxes = priors[:, :, None]
        if aux_class_preds is not None and aux_box_preds is not None:
            objects = aux_class_preds.reshape(images, count, 2)[..., 1] < self.objectness_score
            background = np.arange(scores.shape[2]) == self.background_label_id
            scores = np.where(objects[..., None], background.astype(F), scores)
            refined = aux_box_preds.reshape(places.shape).astype(F)
            boxes = self.decode(boxes, variances[:, :, None], refined)
        boxes = self.decode(boxes, variances[:, :, None], places)
        rows = [np.zeros((0, 7), F)]
        for image in steps(range(images)):
            labels, chosen = self.choose(boxes[image], scores[image])
            found = boxes[image, chosen, 0 if self.share_location else labels]
            if self.clip_after_nms:
                found = np.clip(found, 0, 1)
            told = [np.full(len(labels), image), labels - self.decrease_label_id]
            told.append(scores[image, chosen, labels])
            rows.append(np.concatenate([np.stack(told, 1), found], 1, dtype=F))
        output = np.zeros(result.shape.static, F)
        size = output.shape[2]
        all_rows = np.concatenate(rows)[:size]
        output[0, 0, : len(all_rows)] = all_rows
        if len(all_rows) < size:
            output[0, 0, len(all_rows), 0] = -1
        return (output.astype(box_logits.dtype),)

    def require_room(self, boxes: Array, scores: Array, proposals: Array) -> None:
        """Refuse what there is no memory to decode, and to choose from for an image."""
        count = proposals.shape[2] // self.prior_size
        decoded = 4 * (5 * boxes.size + 3 * scores.size + 3 * proposals.size)
        kinds = scores.shape[1] // max(count, 1)
        places = 1 if self.share_location else kinds
        require(decoded + count * (places * OF_A_BOX + kinds * OF_A_GOOD_ONE))

    def decode(self, priors: Array, variances: Array, places: Array) -> Array:
        """The corners of boxes that are given relative to their priors."""
        if not self.normalized:
            priors = priors / np.array([self.input_width, self.input_height] * 2, F)
        moved = variances * places
        if self.code_type.endswith("CORNER"):
            corners = priors + moved
        else:
            sides = priors[..., 2:] - priors[..., :2]
            centres = moved[..., :2] * sides + (priors[..., :2] + priors[..., 2:]) / 2
            halves = np.exp(moved[..., 2:]) * sides / 2
            corners = np.concatenate([centres - halves, centres + halves], -1)
        clipped: Array = np.clip(corners, 0, 1) if self.clip_before_nms else corners
        return clipped

    def choose(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """The labels and priors of the boxes of one image that are kept, by class."""
        measure = overlaps if np.isfinite(boxes).all() else shared_part
        count, kinds = scores.shape
        together = boxes.swapaxes(0, 1).reshape(-1, 4)
        first = np.zeros(kinds, np.int64) if self.share_location else np.arange(kinds) * count
        # Of a number below -1 OpenVINO makes none.
        most = count if self.top_k == -1 else max(self.top_k, 0)
        marks = np.ascontiguousarray(scores.T)
        good = self.candidates(marks, most)
        ranked = best_of_rows(
            together, first, marks, good, count, above(self.nms_threshold), measure, 1, most
        )
        labels, priors, score, _ = ranked
        keep = self.keep_top_k[0]
        if -1 < keep < len(labels):
            some = np.arange(len(labels))
            if 0 < 2 * keep < len(labels):
                some = (score >= np.partition(score, -keep)[-keep]).nonzero()[0]
            some = some[np.lexsort((priors[some], -score[some]))[:keep]]
            some = some[labels[some].argsort(kind="stable")]
            labels, priors = labels[some], priors[some]
        return labels, priors

    def candidates(self, scores: Array, most: int) -> Array:
        """Of each class (a row) the priors whose scores suffice."""
        least = F(self.confidence_threshold)
        if not self.decrease_label_id:
            good: Array = scores > least
            if 0 <= self.background_label_id < len(good):
                good[self.background_label_id] = False
            return good
        # So MXNet has it: each prior stands for its best class alone.
        good = np.zeros(scores.shape, np.bool_)
        labels = [label for label in range(1, len(scores)) if label != self.background_label_id]
        if labels:
            picked = np.array(labels)[scores[labels].argmax(0)]
            values = scores[picked, np.arange(len(picked))]
            some = ((values >= least) & (values > -1)).nonzero()[0]
            some = some[descending(values[some], 0)[:most]]
            good[picked[some], some] = True
        return good


class DetectionOutputV1(Detection):
    """Detection with the number of classes given."""

    until = 7
    written = ("num_classes",)

    num_classes: Int

    def classes(self, *inputs: Tensor) -> int | None:
        if self.num_classes < 1:
            raise IRError(f"num_classes is {self.num_classes}, the least is 1")
        return self.num_classes


class DetectionOutputV8(Detection):
    """DetectionOutput-1 with the number of classes told from the inputs."""

    def classes(self, *inputs: Tensor) -> int | None:
        priors = self.priors(*inputs)
        if priors is None:
            return None
        found = whole(
            of_rank(inputs[1], 2, "the class predictions")[1], priors, "class predictions"
        )
        for tensor in (inputs[0], *inputs[4:]) if not self.share_location else ():
            if found is None:
                found = whole(of_rank(tensor, 2, "the box logits")[1], priors * 4, "box logits")
        return found


def whole(size: Size, divisor: int, what: str) -> int | None:
    """How often a size has so many numbers, None where it is not known."""
    if isinstance(size, Dim):
        return None
    if size % divisor:
        raise IRError(f"{size} {what} are not a multiple of {divisor}")
    return size // divisor or None


def agree(priors: int | None, size: Size, each: int, what: str) -> int | None:
    """The number of prior boxes, of which each has so many of these numbers."""
    if priors is None:
        return whole(size, each, what)
    if not compatible(size, priors * each):
        raise IRError(f"{size} {what}, {priors} prior boxes have {priors * each}")
    return priors


def shared_part(box: Array, others: Array) -> Array:
    """The shared part of a box and each of others: intersection over union."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.where((sides > 0).all(1), sides[:, 0] * sides[:, 1], F(0))
    areas = [np.clip(b[..., 2:] - b[..., :2], 0, None).prod(-1) for b in (box, others)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(shared > 0, shared / (areas[0] + areas[1] - shared), F(0))
