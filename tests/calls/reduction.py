"""Sample calls of the reductions."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call
from vinoir.schemas import ElementType

LOGICAL = ("ReduceLogicalAndV1", "ReduceLogicalOrV1")
NUMERIC = (
    "ReduceL1V4", "ReduceL2V4", "ReduceMaxV1", "ReduceMeanV1", "ReduceMinV1", "ReduceProdV1",
    "ReduceSumV1",
)  # fmt: skip
DATA = np.random.default_rng(2).normal(size=(2, 3, 4)).astype("f4")
KEEP = {"keep_dims": "true"}

CALLS = [
    *(Call(op, [DATA, np.array([1, -1])], KEEP, const=(1,)) for op in NUMERIC),
    *(Call(op, [DATA, np.array(0)], const=(1,)) for op in NUMERIC),
    *(Call(op, [DATA > 0, np.array([-1])], const=(1,)) for op in LOGICAL),
    *(Call(op, [DATA > 0, np.array([0, 2])], KEEP) for op in LOGICAL),
    *(Call(op, [DATA, np.array([0])], const=(1,)) for op in NUMERIC),
]

#: Small enough that OpenVINO's CPU, which calculates integers of 8 bits in 8, does not overflow.
SMALL = 4


def draw(op: str, rng: random.Random) -> Call:
    rank = rng.choice([0, 1, 2, 3, 3, 4, 4, 5])
    shape = [rng.choice([1, 2, 3, 4, rng.choice([0, 5])]) for _ in range(rank)]
    numbers = np.random.default_rng(rng.randint(0, 999))
    if op in LOGICAL:
        data = numbers.random(shape) < rng.choice([0.1, 0.5, 0.9])
    else:
        kind = rng.choice(["f32"] * 4 + ["f16", "bf16", "f64", "i32", "i64", "i8", "u8", "u32"])
        if ElementType(kind).is_real:
            data = numbers.normal(size=shape) * 2
        elif "Prod" in op:
            data = numbers.integers(1, 3, shape)
        else:
            data = numbers.integers(0 if kind[0] == "u" else -SMALL, SMALL, shape)
        data = np.asarray(data, dtype=ElementType(kind).dtype)
    count = rng.randint(0 if rng.random() < 0.1 else min(1, rank), rank)
    axes = np.array(rng.sample(range(rank), count), rng.choice(["i8", "i8", "i4", "i1"]))
    axes = np.where(numbers.random(count) < 0.3, axes - rank, axes).astype(axes.dtype)
    if count == 1 and rng.random() < 0.3:
        axes = axes.reshape(())
    const = rng.choice([(1,), (1,), ()])
    # OpenVINO's CPU wants axes that are constants, and some; its reference has few types.
    missing = (not const or count == 0) and data.dtype not in (np.float32, np.bool_)
    # The ends of nothing are those of 32 bits in many types, and infinity in f16.
    missing |= data.size == 0 and (not const or data.dtype not in (np.float32, np.int32))
    rough = 1e-2 if data.dtype.itemsize == 2 else 1e-5
    return Call(
        op,
        [data, axes],
        {"keep_dims": rng.choice(["true", "false"])},
        const=const,
        rtol=rough,
        atol=max(rough, 1e-5),
        differs="no kernel" if missing else "",
    )
