"""Sample calls of Fourier transforms."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

AS_IS = "the CPU of OpenVINO fails on a signal size of -1"
LONGER = "the CPU of OpenVINO reads beyond the data instead of adding zeros"
NEAR: Any = {"rtol": 1e-4, "atol": 1e-4}


def values(*shape: int, kind: Any = "f4", seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype(kind)


def number(value: int) -> Any:
    return np.array(value)


FRAMES = [np.hanning(9)[:8].astype("f4"), number(8), number(4)]
STRAIGHT = {"center": "false", "normalized": "false"}

CALLS = [
    *(Call(op, [values(2, 5, 6, 2), np.array([1, 2])], const=(1,), **NEAR)
      for op in ("DFTV7", "IDFTV7", "IRDFTV9")),
    Call("RDFTV9", [values(2, 5, 6), np.array([1, 2])], const=(1,), **NEAR),
    *(Call(op, [values(2, 5, 6, 2), np.array([0, -1]), np.array([4, -1])], const=(1, 2), **NEAR)
      for op in ("DFTV7", "IDFTV7")),
    Call("RDFTV9", [values(2, 5, 6), np.array([0, -1]), np.array([1, 5])], {}, (1, 2), **NEAR),
    Call("IRDFTV9", [values(2, 5, 6, 2), np.array([0, -1]), np.array([1, 9])], {}, (1, 2), **NEAR),
    Call("STFTV15", [values(2, 21), *FRAMES], {"transpose_frames": "false"}, (2, 3), **NEAR),
    Call("STFTV15", [values(21), *FRAMES], {"transpose_frames": "true"}, (2, 3), **NEAR),
    Call("ISTFTV16", [values(2, 5, 3, 2), *FRAMES], STRAIGHT, (2, 3), **NEAR),
    Call("ISTFTV16", [values(5, 3, 2), *FRAMES, number(20)],
         {"center": "true", "normalized": "true"}, (2, 3, 4), **NEAR),
]  # fmt: skip


def draw(op: str, rng: random.Random) -> Call:
    seed = rng.randint(0, 99)
    index = rng.choice(["i4", "i8"])
    if op.endswith(("STFTV15", "STFTV16")):
        return frames(op, rng, seed, index)
    sizes = [rng.randint(1, 7) for _ in range(rng.randint(1, 4))]
    axes = rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))
    if op == "IRDFTV9":
        sizes[axes[-1]] += 1
    differs = ""
    inputs = [
        values(*sizes, *([] if op == "RDFTV9" else [2]), seed=seed),
        np.array([a - rng.choice([0, len(sizes)]) for a in axes], index),
    ]
    if rng.random() < 0.5:
        inputs.append(np.array([rng.choice([-1, rng.randint(1, 9)]) for _ in axes], index))
        have = [sizes[a] for a in axes]
        if op == "IRDFTV9":
            have[-1] = 2 * have[-1] - 1
        if "RDFT" in op and (inputs[-1] > have).any():
            differs = LONGER
        if "RDFT" in op and -1 in inputs[-1]:
            differs = AS_IS
    # The CPU of OpenVINO crashes where axes are no constant; the other shapes it gives for
    # unknown signal sizes do not hold.
    const = (1, 2) if "RDFT" in op or rng.random() < 0.7 else rng.choice([(), (1,), (2,)])
    const = tuple(i for i in const if i < len(inputs))
    return Call(op, inputs, const=const, differs=differs, **NEAR)


def frames(op: str, rng: random.Random, seed: int, index: str) -> Call:
    size, step = rng.randint(2, 12), rng.randint(1, 6)
    window = values(rng.randint(1, size), seed=seed) + np.float32(2)
    batch = rng.choice([[], [rng.randint(1, 3)]])
    settings = [window, np.array(size, index), np.array(step, index)]
    known = rng.random() < 0.8
    const: tuple[int, ...] = (2, 3) if known else ()

    def flag() -> str:
        return rng.choice(["true", "false"])

    if op == "STFTV15":
        signal = values(*batch, size + rng.randint(0, 20), seed=seed)
        return Call(op, [signal, *settings], {"transpose_frames": flag()}, const, **NEAR)
    count = rng.randint(2, 5)
    inputs = [values(*batch, size // 2 + 1, count, 2, seed=seed), *settings]
    if rng.random() < 0.5:
        inputs.append(np.array([count * step + rng.randint(-1, 9)], index))
        inputs[-1] = inputs[-1].reshape(rng.choice([(), (1,)]))
        const = (*const, 4) if rng.random() < 0.7 else const
    return Call(op, inputs, {"center": flag(), "normalized": flag()}, const, **NEAR)
