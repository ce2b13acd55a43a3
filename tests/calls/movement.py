"""Sample calls of movement: reordering, joining, splitting, repeating, reversing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from oracle import Call
from vinoir.schemas import Array

CUBE = np.arange(24, dtype="f4").reshape(2, 3, 4)

ONE_SHIFT = "OpenVINO's CPU does not take one shift for many axes"
TILE_RANK = "OpenVINO's CPU garbles what gets a fifth axis"

CALLS = [
    Call("TransposeV1", [CUBE, np.array([2, 0, 1])], const=(1,)),
    Call("TransposeV1", [CUBE, np.array([], "i8")], const=(0, 1)),
    Call("ConcatV1", [CUBE, CUBE[:, :1], CUBE], {"axis": "-2"}),
    Call("SplitV1", [CUBE, np.array(-1)], {"num_splits": "2"}, const=(1,)),
    Call("VariadicSplitV1", [CUBE, np.array([2]), np.array([1, -1, 2])], const=(1, 2)),
    Call("BroadcastV1", [CUBE[:1], np.array([5, 2, 3, 4])], {"mode": "numpy"}, const=(1,)),
    *(
        Call(
            "BroadcastV1",
            # OpenVINO wants a third input, and does not look at it.
            [CUBE[:, :1], np.array([5, 2, 3, 4]), np.array(0, "u1")],
            {"mode": "pdpd", "mode.auto_broadcast_axis": axis},
            const=(1, 2),
        )
        for axis in ("1", "-1")
    ),
    Call("BroadcastV3", [CUBE, np.array([1, 1, 1])], {"mode": "bidirectional"}, const=(1,)),
    Call(
        "BroadcastV3", [CUBE[0], np.array([3, 2, 4]), np.array([0, 2])], {"mode": "explicit"},
        const=(1, 2),
    ),
    Call("TileV1", [CUBE, np.array([2, 1, 1, 3])], const=(1,)),
    Call("RollV7", [CUBE, np.array([2, -1, 1]), np.array([-1, 0, 2])], const=(1, 2)),
    Call("RollV7", [CUBE, np.array(5), np.array([1, 2], "i4")], const=(1, 2), differs=ONE_SHIFT),
    Call("ReverseV1", [CUBE, np.array([0, 2])], {"mode": "index"}, const=(1,)),
    Call("ReverseV1", [CUBE, np.array([False, True, False])], {"mode": "mask"}, const=(1,)),
    Call(
        "ReverseSequenceV1", [CUBE, np.array([2, 1, 4])], {"batch_axis": "1", "seq_axis": "2"},
    ),
]  # fmt: skip

KINDS = ["f4", "f4", "f4", "f2", "f8", "i4", "i8", "u1", "i1", "?"]
INDEX = ["i8", "i8", "i4"]


def shaped(rng: random.Random, least: int = 0, most: int = 5, low: int = 1) -> list[int]:
    return [rng.randint(low, 4) for _ in range(rng.randint(least, most))]


def filled(rng: random.Random, shape: Sequence[int], kinds: Sequence[str] = KINDS) -> Array:
    kind = rng.choice(kinds)
    values = np.random.default_rng(rng.randint(0, 99)).permutation(prod(shape)).reshape(shape)
    return (values % 2 if kind == "?" else values - 3 * (kind[0] in "if")).astype(kind)


def numbers(rng: random.Random, values: Sequence[int], kinds: Sequence[str] = INDEX) -> Array:
    return np.array(values, rng.choice(kinds))


def consts(rng: random.Random, *inputs: int) -> tuple[int, ...]:
    """Mostly all of these inputs, sometimes not one of them or fewer."""
    if rng.random() < 0.75:
        return inputs
    return tuple(i for i in inputs if rng.random() < 0.5)


def fronted(rng: random.Random, axis: int, rank: int) -> int:
    """The axis, perhaps counted from the end."""
    return axis - rank if rng.random() < 0.4 else axis


def draw(op: str, rng: random.Random) -> Call:
    drawn: Call = globals()[f"draw_{op.rpartition('V')[0].lower()}"](op, rng)
    return drawn


def draw_transpose(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 1)
    order = [] if rng.random() < 0.2 else rng.sample(range(len(shape)), len(shape))
    kinds = ["i8", "i4", "u1", "i1"]
    inputs = [filled(rng, shape), numbers(rng, order, kinds)]
    # OpenVINO makes a scalar of an unknown rank that is reversed.
    return Call(op, inputs, const=consts(rng, 1) if order else (0, 1))


def draw_concat(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 1)
    axis = rng.randrange(len(shape))
    kind = rng.choice(KINDS)
    parts = [
        filled(
            rng,
            [*shape[:axis], rng.randint(0 if kind == "f4" else 1, 3), *shape[axis + 1 :]],
            [kind],
        )
        for _ in range(rng.randint(1, 4))
    ]
    return Call(op, parts, {"axis": str(fronted(rng, axis, len(shape)))})


def draw_split(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 1)
    axis, count = rng.randrange(len(shape)), rng.randint(1, 4)
    shape[axis] = count * rng.randint(1, 3)
    place = numbers(rng, fronted(rng, axis, len(shape)), [*INDEX, "i1", "i2"])  # type: ignore[arg-type]
    return Call(op, [filled(rng, shape), place], {"num_splits": str(count)}, consts(rng, 1))


def draw_variadicsplit(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 1)
    axis = rng.randrange(len(shape))
    lengths = [rng.randint(0 if rng.random() < 0.1 else 1, 3) for _ in range(rng.randint(1, 4))]
    shape[axis] = sum(lengths)
    if rng.random() < 0.5:
        lengths[rng.randrange(len(lengths))] = -1
    place: Any = fronted(rng, axis, len(shape))
    inputs = [
        filled(rng, shape),
        numbers(rng, [place] if rng.random() < 0.3 else place),
        numbers(rng, lengths),
    ]
    # Without their number the outputs cannot be counted.
    return Call(op, inputs, const=(*consts(rng, 1), 2))


def draw_broadcast(op: str, rng: random.Random) -> Call:
    modes = (
        ["numpy", "numpy", "explicit"]
        + (["bidirectional"] * 2 if op == "BroadcastV3" else [])
        + ["pdpd"]
    )
    mode = rng.choice(modes)
    target = shaped(rng, 1)
    rank = rng.randint(0, len(target))
    kinds = ["i8", "i4", "u1", "i2"]
    if mode == "explicit":
        axes = sorted(rng.sample(range(len(target)), rank))
        shape = [rng.choice([target[a], 1]) for a in axes]
        inputs = [filled(rng, shape), numbers(rng, target, kinds), numbers(rng, axes)]
        return Call(op, inputs, {"mode": mode}, consts(rng, 1, 2))
    shape = [rng.choice([size, size, 1]) for size in target[len(target) - rank :]]
    if mode == "bidirectional":
        target = [rng.choice([size, size, 1]) for size in target]
        if rng.random() < 0.3:
            shape, target = target, shape or [1]
    if mode == "pdpd":
        target, shape = target[-rank:] if rank else [1], shape or [1]
    inputs = [filled(rng, shape), numbers(rng, target, kinds)]
    if mode == "pdpd" and op == "BroadcastV1":
        inputs.append(np.array([0]))  # not used; without it OpenVINO stumbles
    return Call(op, inputs, {"mode": mode}, consts(rng, 1))


def draw_tile(op: str, rng: random.Random) -> Call:
    repeats = shaped(rng, 1, 5, 0 if rng.random() < 0.1 else 1)
    repeats = [min(value, 3) for value in repeats]
    kinds = ["i8", "i4", "u1", "i2"]
    data = filled(rng, shaped(rng, 0, 4))
    differs = TILE_RANK if data.ndim == 4 < len(repeats) else ""
    return Call(op, [data, numbers(rng, repeats, kinds)], const=consts(rng, 1), differs=differs)


def draw_roll(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 1)
    axes = [rng.randint(-len(shape), len(shape) - 1) for _ in range(rng.randint(1, 4))]
    shift: Any = [rng.randint(-7, 7) for _ in axes]
    if rng.random() < 0.3:
        shift = rng.randint(-5, 5)
    elif rng.random() < 0.2:
        shift, axes = shift[0], axes[0]  # type: ignore[assignment]
    inputs = [filled(rng, shape), numbers(rng, shift), numbers(rng, axes)]
    differs = ONE_SHIFT if np.ndim(shift) < np.ndim(axes) else ""
    return Call(op, inputs, const=consts(rng, 1, 2), differs=differs)


def draw_reverse(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 1)
    axes = [axis for axis in range(len(shape)) if rng.random() < 0.6]
    if rng.random() < 0.5:
        mask = np.array([axis in axes for axis in range(len(shape))])
        return Call(op, [filled(rng, shape), mask], {"mode": "mask"}, consts(rng, 1))
    kinds = ["i8", "i4", "u1"]
    return Call(
        op, [filled(rng, shape), numbers(rng, axes, kinds)], {"mode": "index"}, consts(rng, 1)
    )


def draw_reversesequence(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 2)
    batch, axis = rng.sample(range(len(shape)), 2)
    lengths = [rng.randint(1, shape[axis]) for _ in range(shape[batch])]
    places = {"batch_axis": batch, "seq_axis": axis}
    data = {name: str(place) for name, place in places.items()}
    if rng.random() < 0.3:  # a negative seq_axis OpenVINO only takes where it knows the rank
        data["batch_axis"] = str(batch - len(shape))
    kinds = ["i8", "i4", "f4"]
    return Call(op, [filled(rng, shape), numbers(rng, lengths, kinds)], data)
