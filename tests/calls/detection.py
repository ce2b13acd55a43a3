"""Sample calls of detection: regions of interest and the heads of YOLO."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call
from vinoir.schemas import Array

from calls.movement import filled

IMAGES = np.random.default_rng(5).normal(size=(2, 4, 8, 9)).astype("f4")
BOXES = np.array([[0, 1, 2, 30, 40], [1, 10, 4, 60, 20], [1, 5, 5, 5, 5]], "f4")
PARTS = np.array([[0, 0.1, 0.2, 0.8, 0.9], [1, 0, 0, 1, 1]], "f4")
#: Boxes that end where they begin, before that, and at the last pixel of all.
NARROW = np.array([[0, 15, 15, 15, 15], [1, 31, 20, 29, 18], [1, 40, 31, 40, 31]], "f4")
#: One that ends half a pixel before the image, which rounds to the first row once 1 is added.
UP = np.array([[0, 3, -1, 9, -0.5]], "f4")
#: One that reaches beyond the last pixel by less than another.
BEYOND = np.array([[0, 0.5, 0.9, 1.1, 1.12], [1, 1, 1, 1, 1], [1, -0.01, 0.2, 1, 0.9]], "f4")
SCALE = {"spatial_scale": "0.125"}
POOLED = {"pooled_h": "3", "pooled_w": "2"} | SCALE
YOLO = {"anchors": "1, 2", "axis": "1", "coords": "4", "classes": "3", "end_axis": "3"}

CALLS = [
    Call("ROIPoolingV1", [IMAGES, BOXES], POOLED | {"method": "max"}),
    Call("ROIPoolingV1", [IMAGES, PARTS], POOLED | {"method": "bilinear"}),
    Call("PSROIPoolingV1", [IMAGES, BOXES], {"output_dim": "1", "group_size": "2"} | SCALE),
    Call(
        "PSROIPoolingV1", [IMAGES, PARTS],
        {"output_dim": "2", "group_size": "3", "mode": "bilinear", "spatial_scale": "1",
         "spatial_bins_x": "2", "spatial_bins_y": "1"},
    ),
    Call(
        "PSROIPoolingV1", [IMAGES, NARROW],
        {"output_dim": "1", "group_size": "2", "spatial_scale": "0.0625"},
    ),
    Call(
        "PSROIPoolingV1", [IMAGES, UP],
        {"output_dim": "1", "group_size": "2", "spatial_scale": "1"},
    ),
    Call(
        "PSROIPoolingV1", [IMAGES, BEYOND],
        {"output_dim": "2", "group_size": "3", "mode": "bilinear", "spatial_scale": "1",
         "spatial_bins_x": "1", "spatial_bins_y": "2"},
    ),
    *(
        Call(
            op, [IMAGES, BOXES[:, 1:], np.array([0, 1, 1])],
            POOLED | {"sampling_ratio": "2", "mode": "avg"},
        )
        for op in ("ROIAlignV3", "ROIAlignV9")
    ),
    Call("RegionYoloV1", [IMAGES.reshape(2, 16, 6, 3)], YOLO | {"num": "2"}),
    Call(
        "RegionYoloV1", [IMAGES.reshape(2, 16, 6, 3)],
        YOLO | {"num": "4", "do_softmax": "false", "mask": "0, 1"},
    ),
    Call(
        "RegionYoloV1", [IMAGES.reshape(2, 16, 6, 3)],
        YOLO | {"num": "2", "coords": "7", "classes": "0"},
    ),
    Call("ReorgYoloV1", [IMAGES.reshape(2, 4, 12, 6)], {"stride": "2"}),
]  # fmt: skip


def draw(op: str, rng: random.Random) -> Call:
    drawn: Call = globals()[f"draw_{op.rpartition('V')[0].lower()}"](op, rng)
    return drawn


def images(rng: random.Random, channels: int) -> Array:
    shape = (rng.randint(1, 2), channels, rng.randint(4, 9), rng.randint(4, 9))
    return np.random.default_rng(rng.randint(0, 99)).normal(size=shape).astype("f4")


def boxes(rng: random.Random, data: Array, far: float) -> Array:
    rows = []
    for _ in range(rng.randint(1, 4)):
        left, top = rng.uniform(0, far * 0.6), rng.uniform(0, far * 0.6)
        right, bottom = rng.uniform(left, far), rng.uniform(top, far)
        rows.append([rng.randrange(len(data)), left, top, right, bottom])
    return np.array(rows, "f4")


def draw_roipooling(op: str, rng: random.Random) -> Call:
    method, data = rng.choice(["max", "bilinear"]), images(rng, rng.randint(1, 5))
    scale = rng.choice([1, 0.5, 0.0625])
    far = 1 if method == "bilinear" else 9 / scale
    attributes = {
        "pooled_h": str(rng.randint(1, 4)),
        "pooled_w": str(rng.randint(1, 4)),
        "spatial_scale": str(scale),
        "method": method,
    }
    return Call(op, [data, boxes(rng, data, far)], attributes)


def draw_psroipooling(op: str, rng: random.Random) -> Call:
    mode, size, channels = (
        rng.choice(["average", "bilinear"]),
        rng.randint(1, 3),
        rng.randint(1, 3),
    )
    bins = [rng.randint(1, 3), rng.randint(1, 3)] if mode == "bilinear" else [size, size]
    data = images(rng, channels * bins[0] * bins[1])
    scale = 1 if mode == "bilinear" else rng.choice([1, 0.5, 0.0625])
    attributes = {
        "output_dim": str(channels),
        "group_size": str(size),
        "spatial_scale": str(scale),
        "mode": mode,
        "spatial_bins_x": str(bins[0]),
        "spatial_bins_y": str(bins[1]),
    }
    far = 1 if mode == "bilinear" else (min(data.shape[2:]) - 1) / scale
    return Call(op, [data, boxes(rng, data, far)], attributes, rtol=1e-4, atol=1e-5)


def draw_roialign(op: str, rng: random.Random) -> Call:
    data, scale = images(rng, rng.randint(1, 5)), rng.choice([1, 0.5, 0.0625])
    rows = boxes(rng, data, 9 / scale)
    attributes = {
        "pooled_h": str(rng.randint(1, 4)),
        "pooled_w": str(rng.randint(1, 4)),
        "sampling_ratio": str(rng.randint(-1, 3)),
        "spatial_scale": str(scale),
        "mode": rng.choice(["avg", "max"]),
    }
    if op.endswith("9"):
        modes = ["asymmetric", "half_pixel_for_nn", "half_pixel"]
        attributes["aligned_mode"] = rng.choice(modes)
    indices = rows[:, 0].astype(rng.choice(["i4", "i8"]))
    return Call(op, [data, rows[:, 1:], indices], attributes, rtol=1e-4, atol=1e-5)


def draw_regionyolo(op: str, rng: random.Random) -> Call:
    classes, coords, regions = rng.randint(1, 4), 4, rng.randint(1, 3)
    data = images(rng, regions * (classes + coords + 1))
    softmax = rng.random() < 0.5
    attributes = {
        "anchors": "1, 2",
        "axis": "1",
        "coords": str(coords),
        "classes": str(classes),
        "end_axis": rng.choice(["3", "-1", "2"]),
        "num": str(regions if softmax else 3),
        "do_softmax": str(softmax).lower(),
        "mask": ", ".join(str(i) for i in range(regions)),
    }
    return Call(op, [data], attributes)


def draw_reorgyolo(op: str, rng: random.Random) -> Call:
    stride = rng.randint(1, 3)
    shape = [rng.randint(1, 2), stride**2 * rng.randint(1, 2)]
    shape += [stride * rng.randint(1, 3), stride * rng.randint(1, 3)]
    return Call(op, [filled(rng, shape, ["f4", "f2", "i4"])], {"stride": str(stride)})
