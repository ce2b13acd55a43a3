"""Sample calls of pooling."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call

IMAGE = np.random.default_rng(1).permutation(2 * 3 * 7 * 6).reshape(2, 3, 7, 6).astype("f4")
PLAIN = {"kernel": "2, 2", "strides": "2, 2", "pads_begin": "0, 0", "pads_end": "0, 0"}
PADDED = {"kernel": "3, 2", "strides": "2, 1", "pads_begin": "1, 0", "pads_end": "0, 1"}
MEAN = {"exclude-pad": "true"}
#: The CPU of OpenVINO has no 64-bit places here.
NARROW = {"index_element_type": "i32"}
WIDE = {"dilations": "2, 1"}

CALLS = [
    *(Call(op, [IMAGE], PLAIN) for op in ("MaxPoolV1", "MaxPoolV8", "MaxPoolV14")),
    *(Call(op, [IMAGE], PADDED | WIDE | {"axis": "-2"}) for op in ("MaxPoolV8", "MaxPoolV14")),
    *(
        Call(op, [IMAGE.astype("f2")], PADDED | {"rounding_type": "ceil", "kernel": "1, 1"})
        for op in ("MaxPoolV1", "MaxPoolV8", "MaxPoolV14")
    ),
    *(Call(op, [IMAGE], PADDED | MEAN) for op in ("AvgPoolV1", "AvgPoolV14")),
    Call("AvgPoolV16", [IMAGE], PADDED | MEAN | WIDE),
    Call("AdaptiveAvgPoolV8", [IMAGE, np.array([3, 4])], const=(1,)),
    Call("AdaptiveMaxPoolV8", [IMAGE, np.array([3, 4])], NARROW, const=(1,)),
]


def draw(op: str, rng: random.Random) -> Call:
    axes = rng.choice([1, 2, 2, 3])
    shape = [rng.randint(1, 2), rng.randint(1, 3), *(rng.randint(3, 8) for _ in range(axes))]
    # Distinct values: of equal ones any may be the largest.
    data = np.random.default_rng(rng.randint(0, 99)).permutation(int(np.prod(shape)))
    image = data.reshape(shape).astype("f4") - 9
    if op.startswith("Adaptive"):
        sizes = np.array([rng.randint(1, 6) for _ in range(axes)])
        return Call(op, [image, sizes], NARROW if op == "AdaptiveMaxPoolV8" else {}, const=(1,))

    def per_axis(low: int, high: int) -> str:
        return ", ".join(str(rng.randint(low, high)) for _ in range(axes))

    number = int(op.rpartition("V")[2])
    attributes = {
        "kernel": per_axis(2, 3),
        "strides": per_axis(1, 3),
        "pads_begin": per_axis(0, 1),
        "pads_end": per_axis(0, 1),
        "auto_pad": rng.choice(["explicit", "explicit", "valid", "same_upper", "same_lower"]),
        "rounding_type": rng.choice(["floor", "ceil", *(["ceil_torch"] if number >= 14 else [])]),
    }
    if op.startswith("AvgPool"):
        # A window that holds padding alone has no mean: OpenVINO gives NaN or -0 as it comes.
        exclude = "true" if attributes["rounding_type"] == "floor" else "false"
        attributes["exclude-pad"] = rng.choice([exclude, "false"])
    if op in ("MaxPoolV8", "MaxPoolV14", "AvgPoolV16"):
        attributes["dilations"] = per_axis(1, 2)
    if op in ("MaxPoolV8", "MaxPoolV14"):
        attributes["axis"] = str(rng.randint(-axes - 2, axes + 1))
        attributes["index_element_type"] = rng.choice(["i32", "i64"])
    return Call(op, [image], attributes)
