"""Sample calls of sorting."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

DATA = np.random.default_rng(4).permutation(24).reshape(2, 3, 4).astype("f4")
BEST = {"axis": "1", "mode": "max", "sort": "value"}
ROWS = np.array([[1, 3, 3, 5, 7], [0, 1, 1, 1, 9]], "f4")
BOXES = np.random.default_rng(5).uniform(0, 9, (6, 4)).astype("f4")

CALLS = [
    *(Call(op, [DATA, np.array(2)], BEST, (1,)) for op in ("TopKV1", "TopKV3", "TopKV11")),
    Call("TopKV11", [DATA // 5, np.array(3)], BEST | {"axis": "-1", "stable": "true"}, (1,)),
    Call("SearchSortedV15", [ROWS, np.array([[3, 0, 8], [1, 1, 9]], "f4")]),
    Call("SearchSortedV15", [ROWS[0], np.array(3, "f4")], {"right_mode": "true"}),
    Call(
        "ExperimentalDetectronTopKROIsV6",
        [BOXES, np.array([3, 1, 5, 2, 9, 4], "f4")],
        {"max_rois": "4"},
    ),
]


def draw(op: str, rng: random.Random) -> Call:
    numbers = np.random.default_rng(rng.randint(0, 999))
    if op == "ExperimentalDetectronTopKROIsV6":
        count = rng.randint(1, 9)
        boxes = numbers.uniform(0, 9, (count, 4)).astype("f4")
        probabilities = numbers.permutation(count).astype("f4")
        return Call(op, [boxes, probabilities], {"max_rois": str(rng.randint(1, count))})
    shape = [rng.randint(1, 6) for _ in range(rng.randint(1, 5))]
    if op == "SearchSortedV15":
        return draw_search(rng, shape, numbers)
    axis = rng.randrange(len(shape))
    data = numbers.permutation(int(np.prod(shape))).reshape(shape)
    dtype = np.dtype(rng.choice(["f4", "f4", "f2", "f8", "i4", "i8"]))
    if dtype.kind == "f":
        data = data - 7
    attributes = {
        "axis": str(rng.choice([axis, axis - len(shape)])),
        "mode": rng.choice(["max", "min"]),
        "sort": rng.choice(["value", "index", "none"]),
        "index_element_type": rng.choice(["i32", "i64"]),
    }
    if op == "TopKV11":
        stable = attributes["sort"] != "none" and rng.random() < 0.5
        attributes["stable"] = "true" if stable else "false"
        # Of equal elements in the order of their indices, the CPU does not always take the first.
        data = data % 3 if stable and attributes["sort"] == "value" else data
    count = np.array(rng.randint(1, shape[axis]), rng.choice(["i4", "i8"]))
    return Call(op, [data.astype(dtype), count], attributes, (1,) if rng.random() < 0.7 else ())


def draw_search(rng: random.Random, shape: list[int], numbers: Any) -> Call:
    dtype = rng.choice(["f4", "f2", "f8", "i4", "i8", "u1", "i1"])
    rows = np.sort(numbers.integers(0, 9, shape), -1).astype(dtype)
    if len(shape) == 1:
        wanted = [rng.randint(1, 4) for _ in range(rng.randint(0, 3))]
    else:
        wanted = [*shape[:-1], rng.randint(1, 7)]
    values = numbers.integers(0, 10, wanted).astype(dtype)
    attributes = {
        "right_mode": rng.choice(["true", "false"]),
        "output_type": rng.choice(["i32", "i64"]),
    }
    return Call("SearchSortedV15", [rows, values], attributes)
