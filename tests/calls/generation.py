"""Sample calls of generation."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

ALL = (0, 1, 2)
SHAPE = np.array([2, 3, 5])
SEEDS = {"global_seed": "150", "op_seed": "10"}

CALLS = [
    Call("RangeV1", [np.float32(1), np.float32(-2), np.float32(-0.5)], const=ALL),
    Call("RangeV1", [np.int64(2), np.int64(23), np.int64(3)], const=ALL),
    Call("RangeV4", [np.float32(1.7), np.float32(8.9), np.int32(2)], {"output_type": "i32"}, ALL),
    Call("RangeV4", [np.int64(0), np.int64(5), np.float32(1.5)], {"output_type": "f32"}, ALL),
    Call("EyeV9", [np.int64(3), np.int64(4), np.int64(-1)], {"output_type": "f32"}, ALL),
    Call(
        "EyeV9",
        [np.int32(2), np.int32(3), np.array([1]), np.array([2, 1])],
        {"output_type": "i8"},
        (*ALL, 3),
    ),
    *(
        Call(
            "RandomUniformV8",
            [SHAPE, np.array(2, kind), np.array(10, kind)],
            SEEDS | {"output_type": name, "alignment": alignment},
            ALL,
            differs="" if name in ("f32", "i32") else "the CPU and the reference differ",
        )
        for name, kind in {"f32": "f4", "i32": "i4", "i64": "i8", "f16": "f2", "f64": "f8"}.items()
        for alignment in ("tensorflow", "pytorch")
    ),
    *(
        Call(
            "RandomUniformV8",
            [SHAPE, np.array(-3, kind), np.array(5, kind)],
            SEEDS | {"output_type": name, "alignment": "pytorch"},
            ALL,
        )
        for name, kind in {"i32": "i4", "i64": "i8"}.items()
    ),
    Call(
        "MultinomialV13",
        [np.array([[0.1, 0.5, 0.4], [0.7, 0.2, 0.1]], "f4"), np.int64(2)],
        SEEDS | {"convert_type": "i64", "with_replacement": "false", "log_probs": "false"},
        (1,),
    ),
]


def draw(op: str, rng: random.Random) -> Call:
    known = tuple(index for index in range(4) if rng.random() < 0.8)
    if op.startswith("Range"):
        kind = rng.choice(["i4", "i8", "f4"])
        step = rng.choice([-3, -2, -1, 1, 2, 3])
        ends = [rng.randint(-5, 5), rng.randint(-5, 15)][:: 1 if step > 0 else -1]
        inputs: list[Any] = [np.array(n, kind) for n in (*ends, step)]
        if kind == "f4":
            inputs = [n + np.float32(rng.choice([0, 0.25, 0.5])) * np.sign(n) for n in inputs]
        # Where there is nothing between the ends, the CPU counts all the same.
        known = known if (inputs[1] > inputs[0]) == (step > 0) else ALL
        if op == "RangeV1":
            return Call(op, inputs, const=known)
        output = rng.choice(["f32", "f16"] if kind == "f4" else ["i32", "i64", "f32", "f64"])
        return Call(op, inputs, {"output_type": output}, known)
    if op == "EyeV9":
        kind = rng.choice(["i4", "i8"])
        inputs = [np.array(rng.randint(low, 5), kind) for low in (0, 0, -6)]
        inputs = [n.reshape(1) if rng.random() < 0.3 else n for n in inputs]
        if rng.random() < 0.5:
            batch = [rng.randint(1, 3) for _ in range(rng.randint(1, 2))]
            inputs.append(np.array(batch, kind))
        output = rng.choice(["f32", "i32", "i64", "i8", "u8"])
        return Call(
            op, inputs, {"output_type": output}, tuple(i for i in known if i < len(inputs))
        )
    seeds = {"global_seed": str(rng.randint(1, 999)), "op_seed": str(rng.randint(0, 999))}
    if op == "RandomUniformV8":
        kind, output = rng.choice([("f4", "f32"), ("i4", "i32")])
        low = rng.randint(-9, 3)
        ends = [np.array(low, kind), np.array(low + rng.randint(1, 90), kind)]
        shape = np.array(
            [rng.randint(1, 5) for _ in range(rng.randint(1, 3))], rng.choice(["i4", "i8"])
        )
        seeds |= {"output_type": output, "alignment": rng.choice(["tensorflow", "pytorch"])}
        return Call(op, [shape, *ends], seeds, tuple(i for i in known if i < 3))
    chances = np.random.default_rng(rng.randint(0, 9)).random((rng.randint(1, 3), 6), "f4")
    samples = np.array(rng.randint(1, 4), rng.choice(["i4", "i8"]))
    seeds |= {name: rng.choice(["true", "false"]) for name in ("with_replacement", "log_probs")}
    seeds["convert_type"] = rng.choice(["i32", "i64"])
    return Call(op, [chances, samples], seeds, tuple(i for i in known if i == 1))
