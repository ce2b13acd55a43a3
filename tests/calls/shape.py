"""Sample calls of the shape operations."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

DATA = np.arange(24, dtype="f4").reshape(1, 2, 1, 12)

CALLS = [
    Call("ShapeOfV1", [DATA]),
    Call("ShapeOfV3", [DATA], {"output_type": "i32"}),
    Call("ShapeOfV3", [np.float32(1)], {"output_type": "i64"}),
    Call("ReshapeV1", [DATA, np.array([0, -1, 3])], {"special_zero": "true"}, const=(1,)),
    Call("ReshapeV1", [DATA, np.array([4, 6], "i4")], {"special_zero": "false"}, const=(1,)),
    Call("ReshapeV1", [DATA[0, 0, :, :1], np.array([], "i8")], {"special_zero": "false"}, (1,)),
    Call("SqueezeV1", [DATA]),
    Call("SqueezeV1", [DATA, np.array([0, -2])], const=(1,)),
    Call("SqueezeV15", [DATA, np.array([0, 1])], {"allow_axis_skip": "true"}, const=(1,)),
    Call("UnsqueezeV1", [DATA, np.array([0, -1])], const=(1,)),
]


def draw(op: str, rng: random.Random) -> Call:
    few = {"SqueezeV1": 1, "SqueezeV15": 1}.get(op, 3)
    shape = [
        rng.choice([0, 1, 1, 2, 3, 4][: None if rng.random() < 0.2 else 9][1:])
        for _ in range(rng.randint(0, 5))
    ]
    if rng.random() < 0.1 and shape:
        shape[rng.randrange(len(shape))] = 0
    if few == 1:
        shape = [rng.choice([1, size]) for size in shape]
    kind = rng.choice(["f4", "f4", "i4", "i8", "u1", "?", "f2"])
    data = np.random.default_rng(rng.randint(0, 99)).integers(0, 2, shape).astype(kind)
    index = rng.choice(["i8", "i8", "i4"])
    const = (1,) if rng.random() < 0.8 else ()
    if op == "ShapeOfV1":
        return Call(op, [data])
    if op == "ShapeOfV3":
        return Call(op, [data], {"output_type": rng.choice(["i32", "i64"])})
    if op == "ReshapeV1":
        zero = rng.random() < 0.5
        pattern = np.array(target(shape, zero, rng), index)
        return Call(op, [data, pattern], {"special_zero": str(zero).lower()}, const=const)
    rank = len(shape)
    if op == "UnsqueezeV1":
        new = rng.randint(1, 2)
        chosen = rng.sample(range(rank + new), new)
        axes = [axis - rng.choice([0, rank + new]) for axis in chosen]
        given: Any = np.array(axes if rng.random() < 0.7 or new > 1 else axes[0], index)
        return Call(op, [data, given], const=const)
    attributes = {}
    if op == "SqueezeV15":
        attributes["allow_axis_skip"] = rng.choice(["true", "false"])
    if rng.random() < 0.3 or not rank:
        return Call(op, [data], attributes)
    axes = [axis - rng.choice([0, rank]) for axis in rng.sample(range(rank), rng.randint(0, rank))]
    given = np.array(axes[0] if len(axes) == 1 and rng.random() < 0.5 else axes, index)
    return Call(op, [data, given], attributes, const=const)


def target(shape: list[int], zero: bool, rng: random.Random) -> list[int]:
    """A pattern that a shape can be brought to."""
    count = int(np.prod(shape))
    if not count:
        return [0 if zero else size for size in shape]
    kept = rng.randint(0, len(shape)) if zero else 0
    rest = int(np.prod(shape[kept:]))
    pattern = [0] * kept
    while rest > 1 and rng.random() < 0.8:
        factor = rng.choice([n for n in range(1, rest + 1) if rest % n == 0])
        pattern.append(factor)
        rest //= factor
    pattern.append(rest)
    if rng.random() < 0.5:
        pattern[rng.randrange(kept, len(pattern))] = -1
    return pattern
