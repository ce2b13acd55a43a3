"""Sample calls of slices and padding."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from oracle import Call
from vinoir.layers.movement_slice import span

from calls.movement import CUBE, KINDS, consts, filled, fronted, numbers, shaped

PLAIN = {"begin_mask": "0, 0", "end_mask": "0, 0"}
ENDS = {"begin_mask": "0, 1, 0", "end_mask": "1, 0, 0"}

FIXED = "OpenVINO's CPU misreads indices that are not constants"
MASKS = "OpenVINO's CPU crashes on masks and on ends that are not constants"

CALLS = [
    Call("StridedSliceV1", [CUBE, *np.array([[0, 1], [2, 3], [1, 1]])], PLAIN, (1, 2, 3)),
    Call(
        "StridedSliceV1", [CUBE, *np.array([[1, 9, -1], [9, -3, -9], [1, 1, -2]])], ENDS, (1, 2, 3)
    ),
    Call(
        "StridedSliceV1",
        [CUBE, *np.array([[0, -1, 0, 1], [0, 0, 0, 3], [1, 1, 1, 1]])],
        {
            "begin_mask": "0, 0, 0, 0",
            "end_mask": "0, 0, 0, 0",
            "new_axis_mask": "1, 0, 0, 0",
            "shrink_axis_mask": "0, 1, 0, 0",
            "ellipsis_mask": "0, 0, 1, 0",
        },
        (1, 2, 3),
    ),
    Call("SliceV8", [CUBE, *np.array([[1, -1], [9, -9], [1, -2], [1, 2]])], const=(1, 2, 3, 4)),
    Call("SliceV8", [CUBE, *np.array([[1, 0], [2, 3], [1, 2]])], const=(1, 2, 3)),
    Call(
        "SliceScatterV15", [CUBE, -CUBE[:, 1:], *np.array([[1], [9], [1], [1]])],
        const=(2, 3, 4, 5),
    ),
    *(
        Call(op, [CUBE, np.array([1, 0, 2]), np.array([0, 2, 1])], {"pad_mode": mode}, (1, 2))
        for op in ("PadV1", "PadV12")
        for mode in ("constant", "edge", "reflect", "symmetric")
    ),
    Call(
        "PadV12",
        [CUBE, np.array([-1, 1, 2]), np.array([1, -2, -1]), np.array(7, "f4")],
        {"pad_mode": "constant"},
        (1, 2, 3),
    ),
]  # fmt: skip


def draw(op: str, rng: random.Random) -> Call:
    drawn: Call = globals()[f"draw_{op.rpartition('V')[0].lower()}"](op, rng)
    return drawn


def ends(rng: random.Random, size: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice, often beyond the ends."""
    far = [2**31 - 1, -(2**31)]
    start, stop = (rng.choice([rng.randint(-size - 2, size + 2)] * 5 + far) for _ in "ab")
    return start, stop, rng.choice([1, 1, 1, 2, 3, -1, -1, -2, -5])


def near(rng: random.Random, size: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice within the ends, forward."""
    start, stop = sorted((rng.randint(0, size), rng.randint(0, size)))
    return start, stop, rng.randint(1, 3)


def draw_stridedslice(op: str, rng: random.Random) -> Call:
    shape, count = shaped(rng, 1), rng.randint(1, 5)
    news = [int(rng.random() < 0.2) for _ in range(count)]
    ellipsis = [0] * count
    if rng.random() < 0.3:
        ellipsis[rng.randrange(count)] = 1
    news = [0 if dots else new for new, dots in zip(news, ellipsis, strict=True)]
    while count - sum(news) - sum(ellipsis) > len(shape):
        news[next(i for i, (n, e) in enumerate(zip(news, ellipsis, strict=True)) if not n + e)] = 1
    axis, rows, drops = 0, [], []
    own = count - sum(news) - sum(ellipsis)
    for new, dots in zip(news, ellipsis, strict=True):
        drop = 0
        if dots:
            axis += len(shape) - own
        start, stop, step = ends(rng, 3)
        if not new and not dots:
            start, stop, step = ends(rng, shape[axis])
            if rng.random() < 0.2:
                drop, start, step = 1, rng.randint(-shape[axis], shape[axis] - 1), 1
            axis += 1
        rows.append((start, stop, step))
        drops.append(drop)
    masks = {
        "begin_mask": [0 if drop else int(rng.random() < 0.3) for drop in drops],
        "end_mask": [int(rng.random() < 0.3) for _ in range(count)],
        "new_axis_mask": news,
        "shrink_axis_mask": drops,
        "ellipsis_mask": ellipsis,
    }
    for name in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask"):
        if not any(masks[name]) and rng.random() < 0.5:
            del masks[name]
    texts = {name: ", ".join(map(str, mask)) for name, mask in masks.items()}
    kind = rng.choice(["i8", "i8", "i4"])
    lists: list[Any] = [np.array(column, kind) for column in zip(*rows, strict=True)]
    if all(step == 1 for _, _, step in rows) and rng.random() < 0.3:
        lists.pop()
    # Without its values OpenVINO does not see the new axes behind an ellipsis.
    fixed = (1,) if any(news) and any(ellipsis) else ()
    const = tuple(sorted({*fixed, *consts(rng, *range(1, 1 + len(lists)))}))
    # The CPU is asked where it can be trusted.
    simple = len(const) == len(lists) and not any(news) and not any(ellipsis)
    return Call(op, [filled(rng, shape), *lists], texts, const, reference="" if simple else MASKS)


def draw_slice(op: str, rng: random.Random) -> Call:
    shape, columns, _ = sliced(rng, ends)
    inputs = [filled(rng, shape), *columns]
    const = consts(rng, *range(1, len(inputs)))
    return Call(op, inputs, const=const, reference="" if len(const) == len(columns) else MASKS)


def draw_slicescatter(op: str, rng: random.Random) -> Call:
    wild = rng.random() < 0.3
    shape, columns, sizes = sliced(rng, ends if wild else near)
    kind = rng.choice(KINDS)
    inputs = [filled(rng, shape, [kind]), filled(rng, sizes, [kind]), *columns]
    indices = tuple(range(2, len(inputs)))
    if wild:  # of partly known sizes OpenVINO may expect an interval that ends before it begins
        return Call(op, inputs, const=(0, 1, *indices))
    const = consts(rng, *indices)
    return Call(op, inputs, const=const, differs="" if const == indices else FIXED)


def sliced(
    rng: random.Random, ends: Callable[[random.Random, int], tuple[int, int, int]]
) -> tuple[list[int], list[Any], list[int]]:
    """A shape, the inputs that slice it, and the shape of the slice."""
    shape = shaped(rng, 1)
    axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
    plain = rng.random() < 0.4
    if plain:
        axes = list(range(len(axes)))
    rows = [ends(rng, shape[axis]) for axis in axes]
    sizes = list(shape)
    for axis, row in zip(axes, rows, strict=True):
        sizes[axis] = len(span(shape[axis], *row))
    columns = [np.array(column, rng.choice(["i8", "i4"])) for column in zip(*rows, strict=True)]
    if not plain:
        columns.append(numbers(rng, [fronted(rng, axis, len(shape)) for axis in axes]))
    return shape, columns, sizes


def draw_pad(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 1)
    mode = rng.choice(["constant", "constant", "edge", "reflect", "symmetric"])
    most = {"reflect": -1, "symmetric": 0}.get(mode, 3)
    least = -1 if op == "PadV12" else 0

    def margins() -> list[int]:
        return [rng.randint(least if size > 2 else 0, min(3, size + most)) for size in shape]

    data = filled(rng, shape)
    kinds = ["i8", "i4", "i1"]
    inputs: list[Any] = [data, numbers(rng, margins(), kinds), numbers(rng, margins(), kinds)]
    if rng.random() < 0.6:
        inputs.append(filled(rng, [], [data.dtype.str[1:]]) + data.dtype.type(1))
    const = tuple(sorted({*consts(rng, *range(1, len(inputs))), *range(3, len(inputs))}))
    return Call(op, inputs, {"pad_mode": mode}, const)
