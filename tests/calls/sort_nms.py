"""Sample calls of non-maximum suppression."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call
from vinoir.schemas import Array


def upright(numbers: Any, *shape: int) -> Array:
    """Boxes as two corners, whose scores are distinct and overlaps all different."""
    corner = numbers.uniform(0, 6, (*shape, 2))
    return np.concatenate([corner, corner + numbers.uniform(1, 5, (*shape, 2))], -1).astype("f4")


def marks(numbers: Any, *shape: int) -> Array:
    """Distinct scores between 0 and 1."""
    count = int(np.prod(shape))
    return ((numbers.permutation(count) + 1) / (count + 1)).reshape(shape).astype("f4")


NUMBERS = np.random.default_rng(6)
BOXES, SCORES = upright(NUMBERS, 2, 7), marks(NUMBERS, 2, 3, 7)
TURNED = np.concatenate([BOXES, NUMBERS.uniform(-2, 2, (2, 7, 1)).astype("f4")], -1)
LIMITS = [np.array(2), np.array(0.3, "f4"), np.array(0.1, "f4")]
FALLING = {"decay_function": "gaussian", "gaussian_sigma": "-1"}
#: A box without an end, for classes of which the second has no candidate.
ENDLESS = np.array([[[0, 0, np.inf, 4], [1, 1, 3, 3], [5, 5, 7, 7]]], "f4")
ONE_CLASS = np.array([[[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]]], "f4")

CALLS = [
    *(
        Call(f"NonMaxSuppressionV{n}", [BOXES, SCORES, *LIMITS], const=(2, 3, 4))
        for n in (1, 3, 4, 5, 9)
    ),
    Call("NonMaxSuppressionV9", [BOXES, SCORES, *LIMITS, np.array(0.4, "f4")], const=(2, 3, 4, 5)),
    Call("NMSRotatedV13", [TURNED, SCORES, *LIMITS], const=(2, 3, 4)),
    *(
        Call(op, [BOXES, SCORES], {"nms_top_k": "5", "keep_top_k": "6"} | more)
        for op, more in (
            ("MatrixNmsV8", {"decay_function": "gaussian"}),
            ("MulticlassNmsV8", {"iou_threshold": "0.4"}),
            # Of a class there is no candidate, and pairs are gone through one by one.
            ("MatrixNmsV8", FALLING | {"background_class": "0", "sort_result_type": "score"}),
            ("MulticlassNmsV9", {"iou_threshold": "0.6", "nms_eta": "0.8"}),
        )
    ),
    Call("MatrixNmsV8", [ENDLESS, ONE_CLASS], {"score_threshold": "0.5"}),
    Call(
        "MulticlassNmsV9",
        [np.concatenate(list(BOXES))[None].repeat(3, 0), SCORES.reshape(3, 14), np.array([5, 9])],
        {"iou_threshold": "0.4"},
    ),
]


def draw(op: str, rng: random.Random) -> Call:
    numbers = np.random.default_rng(rng.randint(0, 999))
    if op.startswith("M"):
        return draw_classes(op, rng, numbers)
    images, kinds, count = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 9)
    boxes, scores = upright(numbers, images, count), marks(numbers, images, kinds, count)
    data = {
        "sort_result_descending": rng.choice(["true", "false"]),
        "box_encoding": rng.choice(["corner", "center"]),
        "output_type": rng.choice(["i64", "i32"]),
    }
    if op == "NonMaxSuppressionV1":
        del data["output_type"]
    if op == "NMSRotatedV13":
        data["clockwise"] = rng.choice(["true", "false"])
        del data["box_encoding"]
        angle = numbers.uniform(-4, 4, (images, count, 1)).astype("f4")
        boxes = np.concatenate([boxes, angle], -1)
    limits = [
        np.array(rng.randint(1, 10), rng.choice(["i4", "i8"])),
        np.array(rng.choice([0.2, 0.45, 0.7]), "f4"),
        np.array(rng.choice([0, 0.3]), "f4"),
    ]
    if op == "NonMaxSuppressionV9" and rng.random() < 0.5:
        limits.append(np.array(rng.choice([0, 0.2, 0.8]), "f4"))
    if op in ("NonMaxSuppressionV5", "NonMaxSuppressionV9", "NMSRotatedV13") and (
        rng.random() < 0.2
    ):
        limits = [limit[None] for limit in limits]
    const = tuple(range(2 if rng.random() < 0.8 else 3, 2 + len(limits)))
    return Call(op, [boxes, scores, *limits], data, const, 1e-4)


def draw_classes(op: str, rng: random.Random, numbers: Any) -> Call:
    images, kinds, count = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 8)
    data = {
        "sort_result_type": rng.choice(["none", "score", "classid"]),
        "sort_result_across_batch": rng.choice(["true", "false"]),
        "output_type": rng.choice(["i32", "i64"]),
        "nms_top_k": rng.choice(["-1", "3", "9"]),
        "keep_top_k": rng.choice(["-1", "2", "9"]),
        # OpenVINO's CPU crashes where the background is the only class.
        "background_class": rng.choice(["-1", "4", *["0"] * (kinds > 1)]),
        "score_threshold": rng.choice(["0", "0.3"]),
        "normalized": rng.choice(["true", "false"]),
    }
    if op == "MatrixNmsV8":
        data |= {
            "decay_function": rng.choice(["linear", "gaussian"]),
            "gaussian_sigma": rng.choice(["2", "0.7"]),
            "post_threshold": rng.choice(["0", "0.2"]),
        }
    else:
        data |= {
            "iou_threshold": rng.choice(["0.3", "0.55", "0.8"]),
            "nms_eta": rng.choice(["1", "0.9", "0.5"]),
        }
    if op == "MulticlassNmsV9" and rng.random() < 0.5:
        counts = np.array([rng.randint(1, 4) for _ in range(images)], rng.choice(["i4", "i8"]))
        shape = kinds, int(counts.sum())
        return Call(op, [upright(numbers, *shape), marks(numbers, *shape), counts], data)
    return Call(op, [upright(numbers, images, count), marks(numbers, images, kinds, count)], data)
