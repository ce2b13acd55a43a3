"""Sample calls of arithmetic."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

REAL = np.array([-7.5, -2, -0.5, -0.25, 0, 0.25, 0.75, 1, 2.5, 30], "f4").reshape(2, 5)
WHOLE = np.array([[-7, -2, -1, 0], [1, 2, 3, 30]], "i4")
POSITIVE = np.array([1.5, 2, 0.5, 3, 0.25], "f4")

UNARY = (
    "AbsV1", "CeilingV1", "CosV1", "ErfV1", "FloorV1", "NegativeV1", "RoundV5", "SignV1", "SinV1",
    "TanV1", "AtanV1", "AsinhV3", "TanhV1",
)  # fmt: skip
#: They are defined for some numbers only, or grow fast.
LIMITED = {
    "AcosV1": (-0.98, 0.98),
    "AsinV1": (-1, 1),
    "AtanhV3": (-0.99, 0.99),
    "AcoshV3": (1, 9),
    "ErfInvV17": (-0.9, 0.9),
    "LogV1": (0.01, 50),
    "SqrtV1": (0, 50),
    "SinhV1": (-5, 5),
    "CoshV1": (-5, 5),
}
#: The CPU itself is not as close to the true value as elsewhere.
NEARLY = {"ErfInvV17": {"rtol": 1e-4, "atol": 1e-5}}
BINARY = (
    "AddV1", "DivideV1", "FloorModV1", "MaximumV1", "MinimumV1", "ModV1", "MultiplyV1", "PowerV1",
    "SquaredDifferenceV1", "SubtractV1",
)  # fmt: skip
IDS = np.array([0, 0, 2])
PDPD = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "0"}

CALLS = [
    *(Call(op, [REAL]) for op in UNARY),
    *(Call(op, [WHOLE]) for op in UNARY),
    *(
        Call(op, [np.linspace(*ends, 8).astype("f4")], **NEARLY.get(op, {}))
        for op, ends in LIMITED.items()
    ),
    *(Call(op, [np.abs(REAL) + 0.5, POSITIVE]) for op in BINARY),
    *(Call(op, [np.abs(WHOLE) + 1, np.array([[2], [3]], "i4")]) for op in BINARY),
    Call("RoundV5", [REAL], {"mode": "half_away_from_zero"}),
    Call("AddV1", [REAL, np.array([1, 2], "f4")], PDPD),
    Call("DivideV1", [WHOLE, np.array(2, "i4")], {"m_pythondiv": "false"}),
    Call("CumSumV3", [REAL, np.array(1)], {"exclusive": "true", "reverse": "true"}),
    Call("CumSumV3", [WHOLE, np.array(-2)], const=(1,)),
    Call("SegmentMaxV16", [REAL[:, :3].T, IDS], {"fill_mode": "zero"}, const=(1,)),
    Call("SegmentMaxV16", [REAL[:, :3].T, IDS, np.array(5)], {"fill_mode": "lowest"}),
]


def draw(op: str, rng: random.Random) -> Call:
    seeded = np.random.default_rng(rng.randint(0, 999))
    shape = [
        rng.choice([*[1, 2, 3, 5, 8] * 3, 0]) for _ in range(rng.choice([0, 1, 2, 2, 3, 4, 5]))
    ]
    kind = rng.choice(["f4", "f4", "f2", "f8", "i4", "i8", "i2", "i1", "u1"])
    if op in LIMITED:
        kind = rng.choice(["f4", "f2", "f8"])
    close: dict[str, Any] = {"rtol": 2e-3, "atol": 1e-3} if kind == "f2" else {}
    if op in LIMITED:
        low, high = LIMITED[op]
        data = (low + (high - low) * seeded.random(shape)).astype(kind)
        return Call(op, [data], **(close if kind == "f2" else NEARLY.get(op, {"atol": 2e-6})))
    data = (seeded.integers(-60, 60, shape) / (4 if kind[0] == "f" else 5)).astype(kind)
    data = np.abs(data) if kind[0] == "u" else data
    if op in UNARY:
        if op == "NegativeV1" and kind[0] == "u":
            data = data.astype("i4")
        modes = {"mode": rng.choice(["half_to_even", "half_away_from_zero"])}
        return Call(op, [data], modes if op == "RoundV5" else {}, **close)
    if op == "CumSumV3":
        flags = {name: rng.choice(["true", "false"]) for name in ("exclusive", "reverse")}
        rank = max(len(shape), 1)
        axis = np.array(rng.randrange(-rank, rank), rng.choice(["i4", "i8"]))
        data = data.astype("i4") if kind in ("i1", "u1") else data
        return Call(op, [data, axis], flags, const=rng.choice([(), (1,)]), **close)
    if op == "SegmentMaxV16":
        fill = rng.choice(["zero", "lowest"])
        if fill == "lowest":
            # The CPU gives the lowest value of another type to these.
            data = data.astype({"f2": "f4", "f8": "f4", "i8": "i4", "i2": "i4"}.get(kind, kind))
        rows = rng.randint(1, 6)
        data = seeded.integers(-9 if kind[0] != "u" else 0, 9, [rows, *shape]).astype(data.dtype)
        ids = np.sort(seeded.integers(0, 5, rows)).astype(rng.choice(["i4", "i8"]))
        inputs = [data, ids]
        if rng.random() < 0.5:
            inputs.append(np.array(rng.randint(0, 7), ids.dtype))
        const = rng.choice([(), (1,), (1, 2), (2,)])
        const = tuple(index for index in const if index < len(inputs))
        return Call(op, inputs, {"fill_mode": fill}, const=const)
    return binary(op, rng, data, close)


def binary(op: str, rng: random.Random, data: Any, close: dict[str, Any]) -> Call:
    """Two operands that broadcast, on one of the three ways."""
    seeded = np.random.default_rng(rng.randint(0, 999))
    attributes = {"auto_broadcast": rng.choice(["numpy", "numpy", "numpy", "none", "pdpd"])}
    sizes = list(data.shape)
    if attributes["auto_broadcast"] == "numpy":
        sizes = [rng.choice([1, size]) for size in sizes][rng.randint(0, len(sizes)) :]
    elif attributes["auto_broadcast"] == "pdpd":
        start = rng.randint(0, len(sizes))
        sizes = sizes[start : start + rng.randint(0, 2)]
        attributes["auto_broadcast.auto_broadcast_axis"] = str(start)
    kind = data.dtype.kind
    if op in ("DivideV1", "ModV1", "FloorModV1", "PowerV1"):
        other = seeded.integers(1, 4, sizes).astype(data.dtype)
        data = np.abs(data) if kind == "i" or op == "PowerV1" else data
    else:
        other = (seeded.integers(0 if kind == "u" else -40, 40, sizes) / 4).astype(data.dtype)
    differs = ""
    if data.dtype.itemsize == 1 and op in ("PowerV1", "SquaredDifferenceV1"):
        differs = "the CPU gives other numbers for 8 bits"
    if attributes["auto_broadcast"] == "pdpd" and data.shape != tuple(sizes):
        differs = "the CPU refuses, or lays the operand at the end"
    inputs = [data, other]
    if attributes["auto_broadcast"] == "numpy" and rng.random() < 0.5:
        inputs.reverse()
        if op in ("DivideV1", "ModV1", "FloorModV1"):
            inputs = [inputs[0], np.abs(inputs[1]) + data.dtype.type(1)]
        if op == "PowerV1":
            inputs = [inputs[0], np.minimum(inputs[1], data.dtype.type(3))]
    return Call(op, inputs, attributes, differs=differs, **close)
