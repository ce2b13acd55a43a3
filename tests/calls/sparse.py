"""Sample calls of bags of rows and sparse matrices."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

TABLE = np.random.default_rng(0).integers(-5, 6, (5, 2, 3)).astype("f4")
INDICES, STARTS = np.array([0, 4, 2, 2]), np.array([0, 2, 2])
WEIGHTS = np.array([0.5, 2, -1, 4], "f4")

CALLS = [
    *(
        Call(op, inputs)
        for op in ("EmbeddingBagOffsetsSumV3", "EmbeddingBagOffsetsV15")
        for inputs in (
            [TABLE, INDICES, STARTS],
            [TABLE, INDICES, STARTS, np.array(1), WEIGHTS],
        )
    ),
    Call("EmbeddingBagOffsetsV15", [TABLE, INDICES, STARTS], {"reduction": "mean"}),
    *(
        Call(op, [TABLE, INDICES.reshape(2, 2), WEIGHTS.reshape(2, 2)])
        for op in ("EmbeddingBagPackedSumV3", "EmbeddingBagPackedV15")
    ),
    Call("EmbeddingBagPackedV15", [TABLE, INDICES.reshape(2, 2)], {"reduction": "mean"}),
    Call(
        "EmbeddingSegmentsSumV3",
        [TABLE, INDICES, np.array([0, 0, 2, 3]), np.array(5), np.array(1), WEIGHTS],
        const=(3,),
    ),
    Call(
        "SparseFillEmptyRowsV16",
        [np.array([1, 2, 3], "f4"), np.array([4, 5]),
         np.array([[0, 1], [2, 0], [2, 1]]), np.array(9, "f4")],
        const=(1,),
    ),
]  # fmt: skip


def draw(op: str, rng: random.Random) -> Call:
    index = rng.choice(["i4", "i8"])
    if op == "SparseFillEmptyRowsV16":
        return sparse(op, rng, index)
    kind = rng.choice(["f4", "f4", "f2", "i4", "u1"])
    numpy = np.random.default_rng(rng.randint(0, 99))
    shape = [rng.randint(1, 5), *(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))]
    table = numpy.integers(0, 6, shape).astype(kind)
    length = rng.randint(1, 6)
    weights = (numpy.integers(1, 5, length) / 2).astype(kind)
    default = np.array(rng.randrange(shape[0]), index)
    indices = numpy.integers(0, shape[0], length).astype(index)
    data: dict[str, str] = {}
    if op.endswith("V15"):
        data["reduction"] = rng.choice(["sum", "mean"])
    weighted = rng.random() < 0.5 and data.get("reduction") != "mean"
    inputs: list[Any] = [table, indices]
    if "Packed" in op:
        inputs = [table, np.stack([indices] * 2)]
        return Call(op, [*inputs, np.stack([weights] * 2)] if weighted else inputs, data)
    bags, const = rng.randint(1, 4), ()
    if op == "EmbeddingSegmentsSumV3":
        inputs.append(np.sort(numpy.integers(0, bags, length)).astype(index))
        inputs.append(np.array(bags, index))
        const = rng.choice([(3,), (3,), ()])
    else:
        starts = [0, *sorted(rng.randint(0, length - 1) for _ in range(bags - 1))]
        inputs.append(np.array(starts, index))
    if rng.random() < 0.6:
        inputs.append(default)
        if weighted:
            inputs.append(weights)
    return Call(op, inputs, data, const)


def sparse(op: str, rng: random.Random, index: str) -> Call:
    rows, columns = rng.randint(1, 6), rng.randint(1, 5)
    places = [(row, column) for row in range(rows) for column in range(columns)]
    # Of no value at all, the CPU of OpenVINO makes garbage.
    taken = rng.sample(places, rng.randint(1, min(len(places), 6)))
    kind = rng.choice(["f4", "f4", "i4", "f2"])
    inputs = [
        np.arange(1, len(taken) + 1).astype(kind),
        np.array([rows, columns], index),
        np.array(taken, index).reshape(-1, 2),
        np.array(-7).astype(kind),
    ]
    return Call(op, inputs, {}, rng.choice([(1, 2), (1,), ()]))
