"""Sample calls of the colour conversions."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call
from vinoir.schemas import Array

BYTES = np.random.default_rng(3).integers(0, 256, (2, 6, 4, 1), np.uint8)
NOWHERE = "OpenVINO has no implementation"

CALLS = [
    *(Call(f"{kind}V8", [BYTES]) for kind in ("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR")),
    *(
        Call(f"{kind}V17", [BYTES.reshape(1, 4, 4, 3)], {"single_plane": single}, differs=NOWHERE)
        for kind in ("RGBtoNV12", "BGRtoNV12")
        for single in ("true", "false")
    ),
]


def plane(rng: random.Random, kind: str, *shape: int) -> Array:
    values = np.random.default_rng(rng.randint(0, 99)).integers(0, 256, shape)
    return values.astype(kind)


def draw(op: str, rng: random.Random) -> Call:
    kind = rng.choice(["f4", "f4", "f2", "u1"])
    batch, height, width = rng.randint(1, 2), 2 * rng.randint(1, 4), 2 * rng.randint(1, 4)
    if "toNV12" in op:
        data = {"single_plane": rng.choice(["true", "false"])}
        return Call(op, [plane(rng, kind, batch, height, width, 3)], data, differs=NOWHERE)
    channels = [2] if op.startswith("NV12") else [1, 1]
    inputs = [plane(rng, kind, batch, height * 3 // 2, width, 1)]
    if rng.random() < 0.6:
        inputs = [plane(rng, kind, batch, height, width, 1)]
        inputs += [plane(rng, kind, batch, height // 2, width // 2, c) for c in channels]
    return Call(op, inputs)
