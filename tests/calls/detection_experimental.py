"""Sample calls of boxes proposed from anchors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call
from vinoir.schemas import Array

from calls.sort_nms import marks, upright


def deltas(numbers: Any, *shape: int) -> Array:
    return numbers.normal(0, 0.3, shape).astype("f4")


def anchored(rng: random.Random, *, batch: bool) -> list[Array]:
    """Image sizes, anchors, deltas and scores of a small feature map."""
    numbers = np.random.default_rng(rng.randint(0, 999))
    kinds, height, width = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 4)
    images = rng.randint(1, 2)
    anchors = upright(numbers, height, width, kinds) * 4
    if batch:
        size = numbers.uniform(20, 40, (images, rng.choice([3, 4]))).astype("f4")
        size[:, 2:] = 1
        moves = deltas(numbers, images, kinds * 4, height, width)
        return [size, anchors, moves, marks(numbers, images, kinds, height, width)]
    size = np.array([30, 25, 1], "f4")
    moves = deltas(numbers, kinds * 4, height, width)
    return [size, anchors.reshape(-1, 4), moves, marks(numbers, kinds, height, width)]


def proposal(rng: random.Random) -> list[Array]:
    numbers = np.random.default_rng(rng.randint(0, 999))
    # With less than eight boxes the CPU of OpenVINO crashes.
    images, height, width = rng.randint(1, 2), rng.randint(2, 4), rng.randint(2, 4)
    size = np.array([60, 50, 1, 1], "f4")[: rng.choice([3, 4])]
    scores = marks(numbers, images, 8, height, width)
    return [scores, deltas(numbers, images, 16, height, width), size]


def detected(rng: random.Random, kinds: int) -> list[Array]:
    numbers = np.random.default_rng(rng.randint(0, 999))
    count = rng.randint(1, 9)
    boxes, scores = upright(numbers, count) * 4, marks(numbers, count, kinds)
    return [boxes, deltas(numbers, count, kinds * 4), scores, np.array([[40, 40, 1]], "f4")]


FIRST = random.Random(1)
LIMITS = {"min_size": "1", "nms_threshold": "0.5", "post_nms_count": "9", "pre_nms_count": "12"}
GRID = [
    upright(np.random.default_rng(1), 3),
    np.zeros((1, 2, 4, 5), "f4"),
    np.zeros((1, 3, 8, 9), "f4"),
]
PROPOSAL = {
    "base_size": "8", "pre_nms_topn": "20", "post_nms_topn": "6", "nms_thresh": "0.9",
    "feat_stride": "8", "min_size": "1", "ratio": "0.5, 2", "scale": "1, 3",
}  # fmt: skip
DETECTION = {
    "score_threshold": "0.1", "nms_threshold": "0.4", "max_delta_log_wh": "4", "num_classes": "3",
    "post_nms_count": "5", "max_detections_per_image": "12", "deltas_weights": "1, 1, 1, 1",
}  # fmt: skip

CALLS = [
    Call("ExperimentalDetectronPriorGridGeneratorV6", GRID),
    Call(
        "ExperimentalDetectronGenerateProposalsSingleImageV6",
        anchored(FIRST, batch=False),
        LIMITS,
    ),
    Call("GenerateProposalsV9", anchored(FIRST, batch=True), LIMITS),
    Call("ExperimentalDetectronDetectionOutputV6", detected(FIRST, 3), DETECTION),
    *(Call(op, proposal(FIRST), PROPOSAL) for op in ("ProposalV1", "ProposalV4")),
]


def draw(op: str, rng: random.Random) -> Call:
    yes = {name: rng.choice(["true", "false"]) for name in ("a", "b", "c")}
    near = 1e-4
    if op == "ExperimentalDetectronPriorGridGeneratorV6":
        numbers = np.random.default_rng(rng.randint(0, 99))
        images = rng.randint(1, 2)
        inputs = [
            upright(numbers, rng.randint(1, 3)),
            np.zeros((images, 2, rng.randint(1, 4), rng.randint(1, 4)), "f4"),
            np.zeros((images, 3, rng.randint(1, 20), rng.randint(1, 20)), "f4"),
        ]
        strides = {"stride_x": rng.choice(["0", "4"]), "stride_y": rng.choice(["0", "3"])}
        return Call(op, inputs, {"flatten": yes["a"]} | strides, (), near)
    limits = {
        "min_size": rng.choice(["0", "1", "8"]),
        "nms_threshold": rng.choice(["0.3", "0.7"]),
        "post_nms_count": str(rng.randint(1, 12)),
        "pre_nms_count": str(rng.randint(1, 40)),
    }
    if op == "ExperimentalDetectronGenerateProposalsSingleImageV6":
        # Small boxes score 0, and those of equal scores come in any order.
        limits["min_size"] = "0"
        return Call(op, anchored(rng, batch=False), limits, (), near)
    if op == "GenerateProposalsV9":
        kind = rng.choice(["i32", "i64"])
        limits |= {"normalized": yes["a"], "roi_num_type": kind}
        return Call(op, anchored(rng, batch=True), limits, (), near)
    if op == "ExperimentalDetectronDetectionOutputV6":
        data = DETECTION | {
            "score_threshold": rng.choice(["0", "0.3"]),
            "nms_threshold": rng.choice(["0.2", "0.6"]),
            "max_delta_log_wh": rng.choice(["0.1", "4"]),
            "post_nms_count": str(rng.randint(1, 9)),
            "deltas_weights": rng.choice(["1, 1, 1, 1", "10, 10, 5, 5"]),
            "num_classes": str(rng.randint(2, 4)),
        }
        return Call(op, detected(rng, int(data["num_classes"])), data, (), near)
    # Small boxes score 0, and those of equal scores come in any order; ProposalV4 does not
    # write the scores of rows that are left over.
    data = PROPOSAL | {
        "pre_nms_topn": str(rng.randint(8, 70)),
        "post_nms_topn": str(rng.randint(1, 12) if op == "ProposalV1" else rng.randint(1, 3)),
        "nms_thresh": rng.choice(["0.2", "0.7"] if op == "ProposalV1" else ["0.8", "0.9"]),
        "min_size": "0",
        "framework": rng.choice(["", "tensorflow"]),
        "clip_before_nms": yes["a"],
        "clip_after_nms": yes["b"],
        "normalize": yes["c"],
        "box_size_scale": rng.choice(["1", "5"]),
        "box_coordinate_scale": rng.choice(["1", "10"]),
    }
    return Call(op, proposal(rng), data, (), near)
