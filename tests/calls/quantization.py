"""Sample calls of the quantizations."""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
from oracle import Call

DATA = np.random.default_rng(3).normal(size=(2, 3, 4)).astype("f4")
LOW = np.array([-1, -0.5, -2], "f4").reshape(1, 3, 1)
ENDS = [np.float32(-1), np.float32(1.5), np.float32(0), np.float32(10)]

CALLS = [
    Call("FakeQuantizeV1", [DATA, *map(np.array, ENDS)], {"levels": "16"}),
    Call("FakeQuantizeV1", [DATA, LOW, -LOW, LOW * 2, -LOW * 3], {"levels": "255"}),
    Call("FakeConvertV13", [DATA, LOW], {"destination_type": "f8e4m3"}),
    Call("FakeConvertV13", [DATA, LOW, -LOW], {"destination_type": "f8e5m2"}),
]


def draw(op: str, rng: random.Random) -> Call:
    numbers = np.random.default_rng(rng.randint(0, 9999))
    rank = rng.choice([0, 1, 2, 3, 4, 4, 5])
    shape = [rng.randint(1, 4) for _ in range(rank)]
    kinds = ["f4", "f4", "f4", "f2", ml_dtypes.bfloat16]
    kind = np.dtype(rng.choice(kinds if op == "FakeConvertV13" else ["f4", "f4", "f2"]))
    data = (numbers.normal(size=shape) * rng.choice([1, 5, 300])).astype(kind)

    rule = rng.choice(["numpy", "numpy", "numpy", "pdpd", "none"])

    def part() -> list[int]:
        sizes = [size if rng.random() < 0.5 else 1 for size in shape]
        # OpenVINO infers shapes by PaddlePaddle's rule, and calculates by NumPy's.
        return sizes[rng.randint(0, rank) :] if rng.random() < 0.5 and rule != "pdpd" else sizes

    if op == "FakeConvertV13":
        given = part()
        scale = (numbers.random(given) + 0.2) * rng.choice([-1, 1, 10])
        inputs = [data, scale.astype(kind), numbers.normal(size=given).astype(kind)]
        rough = 1e-5 if kind == np.float32 else 2e-3
        return Call(
            op,
            inputs[: rng.choice([2, 3])],
            {"destination_type": rng.choice(["f8e4m3", "f8e5m2"])},
            rtol=rough,
            atol=rough * 10,
            differs="rounded to bf16 after each step" if kind == ml_dtypes.bfloat16 else "",
        )
    whole = rule == "none"
    sizes = shape if whole else part()
    low = -numbers.random(sizes) * 2
    high = low + numbers.random(sizes if whole or rng.random() < 0.5 else []) + 0.3
    first, last = (numbers.normal(size=shape if whole else part()) * 3 for _ in range(2))
    levels = rng.choice([2, 3, 16, 255, 256, 257, 1000])
    ends = [end.astype(kind) for end in (low, high, first, last)]
    return Call(
        op,
        [data, *ends],
        {"levels": str(levels), "auto_broadcast": rule},
        const=rng.choice([(), (1, 2, 3, 4)]),
        differs="one level up or down" if kind == np.float16 else "",
        reference="the CPU calculates a step and an offset beforehand, which move halves",
    )
