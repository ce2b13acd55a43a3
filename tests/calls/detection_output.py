"""Sample calls of DetectionOutput."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call
from vinoir.schemas import Array

CENTER = "caffe.PriorBoxParameter.CENTER_SIZE"


def inputs(
    seed: int, images: int, priors: int, classes: int, attributes: dict[str, str]
) -> list[Array]:
    """Random inputs that go with the attributes."""
    source = np.random.default_rng(seed)
    normalized = attributes.get("normalized") == "true"
    places = 1 if attributes.get("share_location", "true") == "true" else classes
    corners = source.uniform(0, 0.5, (images, priors, 2))
    boxes = np.concatenate([corners, corners + source.uniform(0.1, 0.5, corners.shape)], -1)
    if not normalized:
        boxes = np.concatenate([np.zeros((images, priors, 1)), boxes * 10], -1)
    rows = boxes.reshape(images, 1, -1)
    if attributes.get("variance_encoded_in_target") != "true":
        rows = np.concatenate([rows, source.uniform(0.1, 0.3, rows.shape)], 1)
    # Scores apart, so that the order is certain.
    scores = source.permutation(images * priors * classes) / (images * priors * classes)
    return [
        source.normal(0, 0.3, (images, priors * places * 4)).astype("f4"),
        scores.reshape(images, -1).astype("f4"),
        rows.astype("f4"),
    ]


PLAIN = {"nms_threshold": "0.5", "keep_top_k": "10", "normalized": "true"}
MXNET = PLAIN | {"decrease_label_id": "true", "code_type": CENTER, "clip_after_nms": "true"}
OWN = {"share_location": "false", "input_width": "10", "input_height": "10", "top_k": "4"}

CALLS = [
    Call("DetectionOutputV1", inputs(1, 2, 8, 3, PLAIN), PLAIN | {"num_classes": "3"}),
    Call("DetectionOutputV1", inputs(2, 1, 8, 4, MXNET), MXNET | {"num_classes": "4"}),
    Call("DetectionOutputV8", inputs(3, 2, 8, 3, PLAIN), PLAIN),
    Call(
        "DetectionOutputV8",
        inputs(4, 2, 8, 3, OWN),
        OWN | {"nms_threshold": "0.4", "keep_top_k": "5", "code_type": CENTER},
    ),
]


def draw(op: str, rng: random.Random) -> Call:
    def flag() -> str:
        return rng.choice(["true", "false"])

    images, priors, classes = rng.randint(1, 2), rng.randint(2, 12), rng.randint(2, 4)
    data = {
        "background_label_id": rng.choice(["0", "0", "-1", "1"]),
        "top_k": rng.choice(["-2", "-1", "3", "8"]),
        "variance_encoded_in_target": flag(),
        "keep_top_k": rng.choice(["-1", "3", "10", "50"]),
        "code_type": rng.choice([CENTER, "caffe.PriorBoxParameter.CORNER"]),
        "share_location": flag(),
        "nms_threshold": rng.choice(["0.3", "0.5", "0.7"]),
        "confidence_threshold": rng.choice(["0", "0.3", "0.6"]),
        "clip_after_nms": flag(),
        "clip_before_nms": flag(),
        "decrease_label_id": rng.choice(["false", "false", "true"]),
        "normalized": flag(),
        "input_height": "10",
        "input_width": "10",
    }
    if data["decrease_label_id"] == "true":
        data["background_label_id"] = "0"  # the only one that OpenVINO's CPU takes then
    if op.endswith("1"):
        data["num_classes"] = str(classes)
    arrays = inputs(rng.randint(0, 999), images, priors, classes, data)
    if rng.random() < 0.3:
        data["objectness_score"] = "0.3"
        source = np.random.default_rng(rng.randint(0, 999))
        arrays.append(source.uniform(0, 1, (images, priors * 2)).astype("f4"))
        arrays.append(source.normal(0, 0.2, arrays[0].shape).astype("f4"))
    # Where it cannot tell the number of classes, OpenVINO divides by none.
    unsure = op.endswith("8") and data["share_location"] == "false"
    const = tuple(range(len(arrays))) if unsure else ()
    return Call(op, arrays, data, const, rtol=1e-4, atol=1e-5)
