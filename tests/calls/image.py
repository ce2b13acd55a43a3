"""Sample calls of images."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
from oracle import Call
from vinoir.schemas import Array

PICTURE = np.random.default_rng(2).standard_normal((1, 2, 5, 6)).astype("f4")
SIZES, AXES, ONES = np.array([8, 3]), np.array([2, 3]), np.ones(2, "f4")
BY_SIZES = {"shape_calculation_mode": "sizes"}
BY_SCALES = {"shape_calculation_mode": "scales"}
GRID = np.random.default_rng(3).uniform(-1.3, 1.3, (1, 3, 4, 2)).astype("f4")

CALLS = [
    Call("InterpolateV1", [PICTURE, SIZES], {"axes": "2, 3", "mode": "linear"}, (1,)),
    Call("InterpolateV4", [PICTURE, SIZES, ONES, AXES], {"mode": "cubic"} | BY_SIZES, (1, 2, 3)),
    Call(
        "InterpolateV4",
        [PICTURE, SIZES, np.array([1.5, 0.4], "f4"), AXES],
        {"mode": "linear_onnx", "pads_begin": "0, 0, 1"} | BY_SCALES,
        (1, 2, 3),
    ),
    Call("InterpolateV11", [PICTURE, SIZES, AXES], {"mode": "bilinear_pillow"} | BY_SIZES, (1, 2)),
    Call("GridSampleV9", [PICTURE, GRID]),
]

COORDINATES = [
    "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners",
]  # fmt: skip
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]
TYPES = ["f4", "f4", "f4", "f2", "f8", "u1", "i1", "i4", "i8", ml_dtypes.bfloat16]


def picture(rng: random.Random, shape: list[int], dtype: Any) -> Array:
    data = np.random.default_rng(rng.randint(0, 99)).uniform(0, 90, shape)
    return data.astype(dtype)


def draw(op: str, rng: random.Random) -> Call:
    dtype = np.dtype(rng.choice(TYPES))
    # Half a step more or less, where a sum lies near the middle of two.
    near = {"f2": 1e-3, "bf16": 1e-2}.get("bf16" if dtype.kind == "V" else dtype.str[1:], 1e-5)
    if op == "GridSampleV9":
        return draw_grid(rng, np.dtype(rng.choice(["f4", "f4", "f2"])))
    rank = rng.choice([1, 2, 3, 4, 4, 4, 5])
    count = rng.randint(1, min(rank, 2 if rank < 5 else 3))
    axes = list(range(rank - count, rank))
    shape = [rng.randint(1, 3) for _ in range(rank - count)] + [
        rng.randint(1, 8) for _ in range(count)
    ]
    sizes = [rng.randint(1, 12) for _ in range(count)]
    if op == "InterpolateV1":
        mode = rng.choice(["linear", "nearest", "cubic" if rank == 4 else "linear"])
        data = {
            "mode": mode,
            "axes": ", ".join(map(str, axes)),
            "align_corners": rng.choice(["true", "false"]),
        }
        if mode != "nearest":
            dtype = np.dtype("f4")
        return Call(op, [picture(rng, shape, dtype), np.array(sizes)], data, (1,), near)
    modes = ["nearest", "nearest", "linear", "linear_onnx", *(["cubic"] if rank in (2, 4) else [])]
    if op == "InterpolateV11" and rank == 4 and count == 2:
        modes += ["bilinear_pillow", "bicubic_pillow"]
    mode = rng.choice(modes)
    if mode != "nearest":
        # Sums in another order end on the other side of a half.
        dtype = np.dtype(rng.choice(["f4", "f4", "f8"]))
    scales = [rng.choice([0.5, 2.0, 1.5, 1.0, 0.7, 1.3]) for _ in range(count)]
    by_scale = rng.random() < 0.4
    if by_scale and any(int(n * s) < 1 for n, s in zip(shape[-count:], scales, strict=True)):
        scales = [2.0] * count
    data = {
        "mode": mode,
        "coordinate_transformation_mode": rng.choice(COORDINATES),
        "nearest_mode": rng.choice(ROUNDINGS),
    } | (BY_SCALES if by_scale else BY_SIZES)
    reference = ""
    if mode in ("cubic", "bicubic_pillow"):
        data["cube_coeff"] = rng.choice(["-0.75", "-0.5"])
    elif mode == "linear" and rng.random() < 0.4:
        data["antialias"] = "true"
        reference = "the CPU takes no notice of antialias up to four axes"
    if reference:
        # The reference does not know double precision.
        dtype = np.dtype("f4")
    if rng.random() < 0.2 and rank > 3:
        data |= {"pads_begin": ", ".join("0" * (rank - 1) + "1"), "pads_end": "0"}
    inputs: list[Any] = [picture(rng, shape, dtype)]
    size, scale = np.array(sizes, rng.choice(["i4", "i8"])), np.array(scales, "f4")
    inputs += [size, scale] if op == "InterpolateV4" else [scale if by_scale else size]
    const = [i for i in range(1, len(inputs)) if rng.random() < 0.8]
    if count < rank or rng.random() < 0.5:
        inputs.append(np.array(axes))
        const.append(len(inputs) - 1)
    return Call(op, inputs, data, tuple(const), near, reference=reference)


def draw_grid(rng: random.Random, dtype: Any) -> Call:
    shape = [rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 6), rng.randint(1, 6)]
    spots = np.random.default_rng(rng.randint(0, 99))
    grid = spots.uniform(-1.7, 1.7, (shape[0], rng.randint(1, 4), rng.randint(1, 4), 2))
    data = {
        "mode": rng.choice(["bilinear", "bicubic", "nearest"]),
        "padding_mode": rng.choice(["zeros", "border", "reflection"]),
        "align_corners": rng.choice(["true", "false"]),
    }
    wide = picture(rng, shape, dtype)
    return Call(
        "GridSampleV9", [wide, grid.astype("f4")], data, (), 1e-3 if dtype == "f2" else 1e-4, 1e-3
    )
