"""Sample calls of comparisons."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call

from .arithmetic import binary

PAIRS = ("EqualV1", "NotEqualV1", "GreaterV1", "GreaterEqualV1", "LessV1", "LessEqualV1")
QUESTIONS = ("IsFiniteV10", "IsInfV10", "IsNaNV10")
ODD = np.array([[-np.inf, -2, 0, np.nan], [1, np.inf, 65504, -0.0]], "f4")
LEFT, RIGHT = np.array([[1, 2, 3], [4, 5, 6]], "i4"), np.array([3, 2, 3], "i4")

CALLS = [
    *(Call(op, [LEFT, RIGHT]) for op in PAIRS),
    *(Call(op, [LEFT > 2, RIGHT > 2]) for op in PAIRS),
    *(Call(op, [ODD]) for op in QUESTIONS),
    Call("IsInfV10", [ODD], {"detect_negative": "false", "detect_positive": "true"}),
]


def draw(op: str, rng: random.Random) -> Call:
    shape = [rng.choice([*[1, 2, 3, 5] * 3, 0]) for _ in range(rng.choice([0, 1, 2, 3, 4, 5]))]
    seeded = np.random.default_rng(rng.randint(0, 999))
    if op in QUESTIONS:
        flags = {
            name: rng.choice(["true", "false"]) for name in ("detect_negative", "detect_positive")
        }
        data = seeded.choice(ODD.ravel(), shape).astype(rng.choice(["f4", "f2"]))
        return Call(op, [data], flags if op == "IsInfV10" else {})
    kind = rng.choice(["f4", "f2", "f8", "i4", "i8", "i1", "u1", "b1"])
    return binary(op, rng, seeded.integers(0, 4, shape).astype(kind), {})
