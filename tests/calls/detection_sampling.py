"""Sample calls of regions sampled from feature maps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call
from vinoir.schemas import Array

from calls.sort_nms import upright

NUMBERS = np.random.default_rng(8)


def picture(numbers: Any, *shape: int) -> Array:
    return numbers.standard_normal(shape).astype("f4")


def turned(numbers: Any, count: int) -> Array:
    """Centre, width, height, angle."""
    place, angle = numbers.uniform(1, 30, (count, 4)), numbers.uniform(-3, 3, (count, 1))
    return np.concatenate([place, angle], 1).astype("f4")


def numbered(numbers: Any, count: int, images: int) -> Array:
    """Regions of images, their number before the corners."""
    corners = np.round(upright(numbers, count) * 6)
    return np.concatenate([numbers.integers(0, images, (count, 1)), corners], 1).astype("f4")


ROTATED = {"pooled_h": "3", "pooled_w": "2", "sampling_ratio": "2", "spatial_scale": "0.25"}
FEATURES = {"output_size": "3", "sampling_ratio": "2", "pyramid_scales": "4, 8"}
PARTS = {"output_dim": "2", "spatial_scale": "0.25", "group_size": "3", "trans_std": "0.1"}
BINS = {"spatial_bins_x": "2", "spatial_bins_y": "3", "part_size": "3"}
MAP = picture(NUMBERS, 2, 18, 6, 7)

CALLS = [
    Call(
        "ExperimentalDetectronROIFeatureExtractorV6",
        [upright(NUMBERS, 4) * 9, picture(NUMBERS, 1, 3, 12, 13), picture(NUMBERS, 1, 3, 6, 7)],
        FEATURES,
    ),
    Call("ROIAlignRotatedV15", [MAP, turned(NUMBERS, 3), np.array([0, 1, 1])], ROTATED),
    Call("DeformablePSROIPoolingV1", [MAP, numbered(NUMBERS, 3, 2)], PARTS | BINS),
    Call(
        "DeformablePSROIPoolingV1",
        [MAP, numbered(NUMBERS, 3, 2), picture(NUMBERS, 3, 4, 3, 3)],
        PARTS | BINS,
    ),
]


def draw(op: str, rng: random.Random) -> Call:
    numbers = np.random.default_rng(rng.randint(0, 999))
    height, width, images = rng.randint(2, 8), rng.randint(2, 8), rng.randint(1, 2)
    count, near = rng.randint(1, 4), 1e-4
    if op == "ExperimentalDetectronROIFeatureExtractorV6":
        levels = rng.randint(1, 4)
        maps = [picture(numbers, 1, 2, height * n, width * n) for n in range(levels, 0, -1)]
        data = {
            "output_size": str(rng.randint(1, 4)),
            "sampling_ratio": str(rng.randint(-1, 3)),
            "pyramid_scales": ", ".join(str(4 * 2**i) for i in range(levels)),
            "aligned": rng.choice(["true", "false"]),
        }
        return Call(
            op, [upright(numbers, count) * rng.choice([4, 30, 80]), *maps], data, (), near, near
        )
    if op == "ROIAlignRotatedV15":
        data = {
            "pooled_h": str(rng.randint(1, 4)),
            "pooled_w": str(rng.randint(1, 4)),
            "sampling_ratio": str(rng.randint(0, 3)),
            "spatial_scale": rng.choice(["0.25", "1"]),
            "clockwise_mode": rng.choice(["true", "false"]),
        }
        image = numbers.integers(0, images, count).astype(rng.choice(["i4", "i8"]))
        inputs = [picture(numbers, images, 3, height, width), turned(numbers, count), image]
        return Call(op, inputs, data, (), near, near)
    side, channels, part = rng.randint(1, 3), rng.choice([1, 2, 4]), rng.randint(1, 3)
    data = {
        "output_dim": str(channels),
        "group_size": str(side),
        "spatial_scale": rng.choice(["0.25", "0.0625"]),
        "spatial_bins_x": str(rng.randint(1, 3)),
        "spatial_bins_y": str(rng.randint(1, 3)),
        "trans_std": rng.choice(["0.1", "1"]),
        "part_size": str(part),
    }
    maps = picture(numbers, images, channels * side * side, height, width)
    inputs = [maps, numbered(numbers, count, images)]
    if rng.random() < 0.6:
        inputs.append(picture(numbers, count, 2 * rng.choice([1, channels]), part, part))
    return Call(op, inputs, data, (), near, near)
