"""Sample calls of logic."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call

from .arithmetic import binary

PAIRS = ("LogicalAndV1", "LogicalOrV1", "LogicalXorV1", "XorV1")
LEFT, RIGHT = np.array([[True, False], [True, False]]), np.array([[True], [False]])

CALLS = [
    *(Call(op, [LEFT, RIGHT]) for op in PAIRS),
    Call("LogicalNotV1", [LEFT]),
    Call("LogicalNotV1", [np.array([0.0, 2, -1], "f4")]),
]


def draw(op: str, rng: random.Random) -> Call:
    shape = [rng.choice([*[1, 2, 3, 5] * 3, 0]) for _ in range(rng.choice([0, 1, 2, 3, 4, 5]))]
    data = np.random.default_rng(rng.randint(0, 999)).integers(0, 2, shape)
    if op == "LogicalNotV1":
        return Call(op, [data.astype(rng.choice(["b1", "b1", "f4", "i4", "u1"]))])
    return binary(op, rng, data.astype("b1"), {})
