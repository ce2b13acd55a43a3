"""Sample calls of choices."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call

DATA = np.array([[0, 1, -2], [3, 0, 0.5]], "f4")
ENDS = np.array([0, 0.5, 1, 3], "f4")

CALLS = [
    Call("SelectV1", [DATA > 0, DATA, np.array([9], "f4")]),
    Call("SelectV1", [np.array([True, False]), DATA.T, DATA[0, :2]]),
    Call("NonZeroV3", [DATA]),
    Call("NonZeroV3", [DATA], {"output_type": "i32"}, const=(0,)),
    Call("BucketizeV3", [DATA, ENDS], {"output_type": "i64", "with_right_bound": "false"}),
    Call("BucketizeV3", [DATA, ENDS], {"output_type": "i32"}),
]


def draw(op: str, rng: random.Random) -> Call:
    shape = [rng.choice([*[1, 2, 3, 5] * 3, 0]) for _ in range(rng.choice([0, 1, 2, 3, 4, 5]))]
    seeded = np.random.default_rng(rng.randint(0, 999))
    kind = rng.choice(["f4", "f2", "i4", "i8", "i1", "u1", "b1"])
    data = seeded.integers(0, 4, shape)
    indices = {"output_type": rng.choice(["i32", "i64"])}
    if op == "NonZeroV3":
        return Call(op, [data.astype(kind)], indices, const=rng.choice([(), (), (0,)]))
    if op == "BucketizeV3":
        ends = np.unique(seeded.integers(-1, 6, rng.randint(0, 4)))
        attributes = indices | {"with_right_bound": rng.choice(["true", "false"])}
        kinds = rng.choice([("f4", "f4"), ("i4", "i4"), ("i8", "i4"), ("f4", "i4"), ("i4", "f4")])
        return Call(op, [data.astype(kinds[0]), ends.astype(kinds[1])], attributes)
    rule = rng.choice(["numpy", "numpy", "none"])

    def smaller() -> list[int]:
        if rule == "none":
            return shape
        return [rng.choice([1, size]) for size in shape][rng.randint(0, len(shape)) :]

    sizes = [smaller() for _ in range(3)]
    rng.shuffle(sizes)
    inputs = [
        seeded.integers(0, 2, sizes[0]).astype("b1"),
        *(seeded.integers(0, 100, size).astype(kind) for size in sizes[1:]),
    ]
    return Call(op, inputs, {"auto_broadcast": rule}, const=rng.choice([(), (0,)]))
