"""Sample calls of the normalizations."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call

DATA = np.random.default_rng(4).normal(size=(2, 4, 3, 5)).astype("f4")
LISTS = [np.random.default_rng(n).random(4).astype("f4") + 0.1 for n in range(4)]
NORM = {"epsilon": "0.001"}
LOCAL = {"alpha": "0.5", "beta": "0.75", "bias": "2", "size": "3"}
GROUPS = {"num_groups": "2", "epsilon": "0.001"}
OLD = {"eps": "1e-9", "normalize_variance": "true"}
MEAN = OLD | {"eps_mode": "INSIDE_SQRT"}

CALLS = [
    Call("BatchNormInferenceV1", [*LISTS[:2], DATA, *LISTS[2:]], NORM),
    Call("BatchNormInferenceV5", [DATA, *LISTS], NORM),
    Call("GRNV1", [DATA], {"bias": "0.5"}),
    Call("GroupNormalizationV12", [DATA, *LISTS[:2]], GROUPS),
    Call("LRNV1", [DATA, np.array([1])], LOCAL, const=(1,)),
    Call("LRNV1", [DATA, np.array([2, 3])], LOCAL, const=(1,)),
    Call("MVNV1", [DATA], OLD | {"across_channels": "true", "reduction_axes": "1, 2, 3"}),
    Call("MVNV1", [DATA], OLD | {"across_channels": "false", "reduction_axes": ""}),
    Call("MVNV6", [DATA, np.array([2, 3])], MEAN, const=(1,)),
    Call("NormalizeL2V1", [DATA, np.array([1])], {"eps": "0.5", "eps_mode": "add"}, const=(1,)),
    Call("NormalizeL2V1", [DATA, np.array([-1])], {"eps": "9", "eps_mode": "max"}, const=(1,)),
]

BOOLS = ("true", "false")


def draw(op: str, rng: random.Random) -> Call:
    numbers = np.random.default_rng(rng.randint(0, 9999))
    least = 1 if op in ("MVNV6", "NormalizeL2V1") else 3 if op == "MVNV1" else 2
    most = 4 if op == "GRNV1" else 5
    rank = rng.randint(least, most)
    groups = rng.choice([1, 2, 3])
    shape = [rng.randint(1, 4) for _ in range(rank)]
    if rank > 1:
        shape[1] = groups * rng.randint(1, 3)
    kind = rng.choice(["f4", "f4", "f4", "f2"])
    data = (numbers.normal(size=shape) * rng.choice([1, 4])).astype(kind)
    lists = [(numbers.random(shape[1:2] or [1]) + 0.1).astype(kind) for _ in range(4)]
    small = f"{rng.choice([0.001, 0.01, 0.5, 2]):g}"
    rough = {"rtol": 5e-3, "atol": 5e-3} if kind == "f2" else {"rtol": 1e-4, "atol": 1e-4}
    axes = np.array(
        sorted(rng.sample(range(rank), rng.randint(1, rank))), rng.choice(["i4", "i8"])
    )
    if op == "BatchNormInferenceV1":
        return Call(op, [*lists[:2], data, *lists[2:]], {"epsilon": small}, **rough)
    if op == "BatchNormInferenceV5":
        return Call(op, [data, *lists], {"epsilon": small}, **rough)
    if op == "GRNV1":
        return Call(op, [data], {"bias": small}, **rough)
    if op == "GroupNormalizationV12":
        attributes = {"num_groups": str(groups), "epsilon": small}
        return Call(op, [data, *lists[:2]], attributes, **rough)
    if op == "LRNV1":
        # OpenVINO's CPU has the channels, and all spatial axes of images.
        axes = rng.choice([np.array([1]), np.arange(2, rank)]) if rank > 3 else np.array([1])
        attributes = {
            "alpha": f"{rng.choice([0.001, 0.5, 1]):g}",
            "beta": f"{rng.choice([0.5, 0.75, 1]):g}",
            # The CPU knows whole biases only.
            "bias": f"{rng.choice([1, 2]):g}",
            "size": str(rng.choice([1, 3, 5])),
        }
        return Call(op, [data, axes], attributes, const=(1,), **rough)
    attributes = {"eps": small, "normalize_variance": rng.choice(BOOLS)}
    if op == "MVNV1":
        across = rng.choice(BOOLS)
        first = 1 if across == "true" else 2
        listed = rng.choice(["", ", ".join(map(str, range(first, rank)))])
        attributes |= {"across_channels": across, "reduction_axes": listed}
        return Call(op, [data], attributes, **rough)
    if rng.random() < 0.3:
        axes = axes - rank
    if op == "MVNV6":
        attributes |= {"eps_mode": rng.choice(["INSIDE_SQRT", "OUTSIDE_SQRT"])}
    else:
        attributes = {"eps": small, "eps_mode": rng.choice(["add", "max"])}
        axes = axes if rng.random() < 0.9 else axes[:0]
    # Without axes the specification wants 1 for all but 0; the CPU keeps signs, sometimes.
    differs = "" if axes.size else "signs"
    return Call(op, [data, axes], attributes, const=(1,), differs=differs, **rough)
