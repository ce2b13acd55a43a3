"""Sample calls of activation functions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

REAL = np.array([-np.inf, -90, -5, -2.5, -0.5, 0, 0.5, 1.5, 5, 90], "f4").reshape(2, 5)
WHOLE = np.arange(-6, 6).reshape(3, 4)
TENTH = np.array(0.2, "f4")

#: Functions of one input, with their attributes.
SINGLE: dict[str, dict[str, str]] = {
    "ReLUV1": {},
    "ClampV1": {"min": "-1.5", "max": "2.5"},
    "EluV1": {"alpha": "0.75"},
    "ExpV1": {},
    "SigmoidV1": {},
    "HSigmoidV5": {},
    "HSwishV4": {},
    "MishV4": {},
    "SoftPlusV4": {},
    "SoftSignV9": {},
    "GeluV2": {},
    "GeluV7": {"approximation_mode": "TANH"},
    "SoftMaxV1": {"axis": "1"},
    "SoftMaxV8": {"axis": "-2"},
    "LogSoftmaxV5": {"axis": "0"},
    "IdentityV16": {},
    "SwishV4": {},
}
#: They take no integers.
FRACTIONS = ("MishV4", "SoftPlusV4", "SoftSignV9", "GeluV2", "GeluV7", "SwishV4", "SeluV1")

CALLS = [
    *(Call(op, [REAL[:, 1:]], data) for op, data in SINGLE.items()),
    *(Call(op, [WHOLE], data) for op, data in SINGLE.items() if op not in FRACTIONS),
    Call("SwishV4", [REAL[:, 1:], np.array(1.5, "f4")], const=(1,)),
    Call("PReLUV1", [REAL, np.array([0.5, 2, -1, 0, 3], "f4")]),
    Call("PReLUV1", [REAL, TENTH]),
    Call("HardSigmoidV1", [REAL, TENTH, np.array(0.5, "f4")], const=(1, 2)),
    Call("SeluV1", [REAL, np.array(1.7, "f4"), np.array(1.05, "f4")], const=(1, 2)),
]


def draw(op: str, rng: random.Random) -> Call:
    shape = [
        rng.choice([*[1, 2, 3, 5, 8] * 3, 0]) for _ in range(rng.choice([0, 1, 2, 2, 3, 4, 5]))
    ]
    seeded = np.random.default_rng(rng.randint(0, 999))
    kinds = ["f4", "f4", "f4", "f2", "f8", *([] if op in FRACTIONS else ["i4", "i8", "i1", "u1"])]
    kind = rng.choice(kinds)
    data: Any = (seeded.integers(-40, 40, shape) / 8).astype(kind)
    data = np.abs(data) if kind[0] == "u" else data
    close: dict[str, Any] = {"rtol": 2e-3, "atol": 1e-3} if kind == "f2" else {"atol": 2e-6}
    attributes = dict(SINGLE.get(op, {}))
    if op == "ClampV1":
        low = rng.choice([-3, -0.5, 0, 1.25, -1e30])
        attributes = {"min": str(low), "max": str(low + rng.choice([0, 0.5, 2, 3e30]))}
        # For 8 bits the CPU rounds the limits to the nearest, and it has no 64 bits.
        data = data.astype("i4") if kind in ("i1", "u1", "i8") else data
    if op == "EluV1":
        attributes = {"alpha": str(rng.choice([0, 0.5, 1, 2]))}
    if op == "GeluV7":
        attributes = {"approximation_mode": rng.choice(["ERF", "TANH", "erf"])}
    if op in ("SoftMaxV1", "SoftMaxV8", "LogSoftmaxV5"):
        rank = max(len(shape), 1)
        attributes = {"axis": str(rng.randrange(0 if op == "SoftMaxV1" else -rank, rank))}
        # With integers, rounding decides.
        data = data.astype("f4") if kind[0] in "iu" else data
    if op == "ExpV1" and kind == "u1":
        # What is too much for 8 bits becomes 0 on the CPU.
        data = data % 6
    inputs = [data]
    if op == "PReLUV1":
        sizes = rng.choice([[], [1], shape, *([[shape[min(1, len(shape) - 1)]]] if shape else [])])
        inputs.append((seeded.integers(-8, 8, sizes) / 4).astype(data.dtype))
    if op == "HardSigmoidV1":
        inputs = [data.astype("f4"), TENTH, np.array(rng.choice([0.5, -1, 0.25]), "f4")]
        return Call(op, inputs, const=(1, 2))
    if op == "SeluV1":
        parameters = [np.array(rng.choice([0.5, 1, 1.75]), data.dtype) for _ in range(2)]
        return Call(op, [data, *parameters], const=(1, 2), **close)
    if op == "SwishV4" and rng.random() < 0.5:
        inputs.append(np.array(rng.choice([0.5, 1, 2]), data.dtype))
    return Call(op, inputs, attributes, **close)
