"""Sample calls of the prior boxes."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call

from calls.movement import INDEX, numbers

GRID, IMAGE = np.array([3, 2]), np.array([48, 32])
SIZED = {"min_size": "16, 20", "max_size": "38", "aspect_ratio": "2, 3", "offset": "0.5"}
DENSE = {"fixed_size": "16, 32", "fixed_ratio": "1, 2", "density": "2, 3", "offset": "0.5"}
PARAMETERS = "OpenVINO crashes on sizes that are not constants"

SCALED = {"min_size": "0.2", "aspect_ratio": "2", "offset": "0.5", "step": "-1"}
FOUR = {"variance": "0.1, 0.2, 0.3, 0.4"}
SIDES = {"width": "8, 13", "height": "4, 10", "offset": "0.5"}

CALLS = [
    Call(op, [GRID, IMAGE], data, (0, 1))
    for op, data in [
        ("PriorBoxV1", SIZED | {"flip": "true", "step": "16"}),
        ("PriorBoxV1", SCALED | {"scale_all_sizes": "false"}),
        ("PriorBoxV8", SIZED | {"min_max_aspect_ratios_order": "false"}),
        ("PriorBoxV8", DENSE | FOUR | {"clip": "true"}),
        ("PriorBoxClusteredV1", SIDES | FOUR),
    ]
]


def some(rng: random.Random, values: list[float], least: int = 0) -> str:
    return ", ".join(map(str, rng.sample(values, rng.randint(least, len(values)))))


def draw(op: str, rng: random.Random) -> Call:
    kind = [rng.choice(INDEX)]
    grid = [rng.randint(1, 4), rng.randint(1, 4)]
    inputs = [numbers(rng, grid, kind), numbers(rng, [n * rng.randint(5, 20) for n in grid], kind)]
    const, differs = ((0, 1), "") if rng.random() < 0.75 else ((), PARAMETERS)
    data = {
        "clip": rng.choice(["true", "false"]),
        "offset": rng.choice(["0", "0.5", "0.3"]),
        "variance": rng.choice(["", "0.2", "0.1, 0.1, 0.2, 0.2"]),
        "step": rng.choice(["0", "8", "16"]),
    }
    if op == "PriorBoxClusteredV1":
        count = rng.randint(1, 4)
        for side in ("width", "height"):
            data[side] = ", ".join(str(rng.randint(1, 40)) for _ in range(count))
            if rng.random() < 0.3:
                data[f"step_{side[0]}"] = str(rng.randint(4, 20))
        return Call(op, inputs, data, const, differs=differs)
    data |= {"aspect_ratio": some(rng, [2, 3, 0.5, 1]), "flip": rng.choice(["true", "false"])}
    style = rng.choice(["sized", "sized", "mxnet", "dense"])
    if style == "sized":
        data |= {"min_size": some(rng, [8, 16, 21.5], 1)}
        data |= {"max_size": some(rng, [30, 40, 55][: data["min_size"].count(",") + 1])}
    elif style == "mxnet":
        data |= {"min_size": some(rng, [0.2, 0.3, 0.45], 1), "scale_all_sizes": "false"}
        data |= {"step": rng.choice(["-1", "0", "0.1"])}
    else:
        count = rng.randint(1, 3)
        data |= {"fixed_size": some(rng, [16, 24, 32], count)}
        count = data["fixed_size"].count(",") + 1
        data |= {"density": ", ".join(str(rng.randint(1, 3)) for _ in range(count))}
        if rng.random() < 0.5:
            data |= {"fixed_ratio": some(rng, [1, 2, 0.5], 1), "aspect_ratio": ""}
    if op == "PriorBoxV8":
        data |= {"min_max_aspect_ratios_order": rng.choice(["true", "false"])}
    return Call(op, inputs, data, const, differs=differs)
