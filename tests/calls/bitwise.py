"""Sample calls of bitwise operations."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from oracle import Call

from .arithmetic import binary

LOGIC = ("BitwiseAndV13", "BitwiseOrV13", "BitwiseXorV13")
SHIFTS = ("BitwiseLeftShiftV15", "BitwiseRightShiftV15")
LEFT, RIGHT = np.array([[-7, 3, 100], [0, 12, -1]], "i4"), np.array([3, 1, 2], "i4")

CALLS = [
    *(Call(op, [LEFT, RIGHT]) for op in (*LOGIC, *SHIFTS)),
    *(Call(op, [LEFT > 2, RIGHT > 1]) for op in LOGIC),
    Call("BitwiseNotV13", [LEFT]),
    Call("BitwiseNotV13", [LEFT > 2]),
]


def draw(op: str, rng: random.Random) -> Call:
    shape = [rng.choice([*[1, 2, 3, 5] * 3, 0]) for _ in range(rng.choice([0, 1, 2, 3, 4, 5]))]
    kind = rng.choice(
        ["i4", "i8", "i1", "u1", "i2", "u2", "u4", *([] if op in SHIFTS else ["b1"])]
    )
    seeded = np.random.default_rng(rng.randint(0, 999))
    data = seeded.integers(0 if kind[0] in "ub" else -100, 100, shape).astype(kind)
    if op == "BitwiseNotV13":
        return Call(op, [data])
    call = binary(op, rng, data, {})
    if op in SHIFTS:
        return replace(call, inputs=[call.inputs[0], np.abs(call.inputs[1]) % 7])
    return call
