"""Sample calls of taking and putting elements by index."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracle import Call

GRID = np.arange(24, dtype="f4").reshape(2, 3, 4)
ROWS = np.array([[0, 2], [1, 0]])
SOME = np.array([2, -1, 0])
BEAMS = [
    np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]], "f4"),
    np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]], "f4"),
    np.array([3], "f4"),
    np.float32(10),
]
REPEATED = np.array([2, 1, 1, 3, 2, 9], "f4")

CALLS = [
    *(
        Call(op, [GRID, ROWS, np.int64(1)], const=(2,))
        for op in ("GatherV1", "GatherV7", "GatherV8")
    ),
    Call("GatherV7", [GRID, ROWS, np.array([2])], {"batch_dims": "1"}, const=(2,)),
    Call("GatherV8", [GRID, SOME, np.int64(-2)], {"batch_dims": "0"}, const=(2,)),
    Call("GatherV8", [GRID, ROWS - 1, np.int32(-1)], {"batch_dims": "-1"}, const=(2,)),
    Call(
        "GatherElementsV6",
        [GRID, np.array([[[1, 0, 1, 0]], [[0, 0, 1, 1]]])[:, [0, 0, 0]]],
        {"axis": "0"},
    ),
    *(Call(op, [GRID, ROWS], {"batch_dims": "0"}) for op in ("GatherNDV5", "GatherNDV8")),
    *(
        Call(op, [GRID, np.array([[[1], [0], [3]]] * 2)], {"batch_dims": "2"})
        for op in ("GatherNDV5", "GatherNDV8")
    ),
    Call("GatherTreeV1", BEAMS),
    Call("ScatterUpdateV3", [GRID, np.array([2, 0]), -GRID[:, :2], np.int64(1)], const=(3,)),
    Call(
        "ScatterElementsUpdateV3",
        [REPEATED, np.array([1, 0, 3]), REPEATED[:3] * 10, np.int64(0)],
        const=(3,),
    ),
    *(
        Call(
            "ScatterElementsUpdateV12",
            [REPEATED, np.array([1, -5, 3, 1]), REPEATED[:4] * 10, np.int64(0)],
            {"reduction": rule, "use_init_val": first},
            const=(3,),
        )
        for rule in ("sum", "prod", "min", "max", "mean")
        for first in ("true", "false")
    ),
    Call("ScatterNDUpdateV3", [GRID, ROWS, -GRID[0, :2]]),
    *(
        Call("ScatterNDUpdateV15", [GRID, ROWS[[0, 1, 0]], -GRID[0]], {"reduction": rule})
        for rule in ("none", "sum", "sub", "prod", "min", "max")
    ),
    Call("UniqueV10", [REPEATED], {"sorted": "false"}),
    Call("UniqueV10", [GRID[[0, 1, 0]], np.int64(0)], {"count_element_type": "i32"}, const=(1,)),
]


def numbers(shape: list[int], rng: random.Random, kinds: tuple[str, ...] = ()) -> Any:
    """Random small numbers of a random type."""
    kind = rng.choice(kinds or ("f4", "f4", "f2", "i4", "i8", "u1", "i1", "?"))
    source = np.random.default_rng(rng.randint(0, 999))
    return source.integers(
        0 if kind in ("u1", "?") else -9, 2 if kind == "?" else 9, shape
    ).astype(kind)


def places(shape: list[int], size: int, rng: random.Random, low: int = 0) -> Any:
    """Random indices below a size."""
    source = np.random.default_rng(rng.randint(0, 999))
    return source.integers(low, max(size, 1), shape).astype(rng.choice(["i4", "i8", "i8"]))


def apart(shape: list[int], axis: int, size: int, rng: random.Random) -> Any:
    """Random indices that are different along an axis."""
    source = np.random.default_rng(rng.randint(0, 999))
    free = [n for i, n in enumerate(shape) if i != axis]
    rows = np.array([source.permutation(size)[: shape[axis]] for _ in range(int(np.prod(free)))])
    indices = np.moveaxis(rows.reshape([*free, shape[axis]]), -1, axis)
    return np.ascontiguousarray(indices).astype(rng.choice(["i4", "i8"]))


def draw(op: str, rng: random.Random) -> Call:
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    rank = len(shape)
    axis = rng.randrange(rank)
    given: Any = np.array(axis - rng.choice([0, rank]), rng.choice(["i8", "i4"]))
    if rng.random() < 0.3:
        given = given.reshape(1)
    if op.startswith("Gather") and op[6:7] == "V":
        batch = 0 if op == "GatherV1" else rng.randint(0, min(axis, 2))
        # The CPU crashes where the shared axes have size 1.
        shape[:batch] = [size + 1 for size in shape[:batch]]
        wide = [*shape[:batch], *(rng.randint(1, 3) for _ in range(rng.randint(0, 2)))]
        low = -shape[axis] if op == "GatherV8" and rng.random() < 0.5 else 0
        sign = -len(wide) if wide and batch < len(wide) and rng.random() < 0.3 else 0
        data = {} if op == "GatherV1" else {"batch_dims": str(batch + sign)}
        known = (2,) if op == "GatherV1" or rng.random() < 0.8 else ()
        inputs = [numbers(shape, rng), places(wide, shape[axis], rng, low), given]
        # The CPU crashes on an axis that is not constant.
        return Call(op, inputs, data, known, differs="" if known else "crash")
    if op == "GatherElementsV6":
        wide = [rng.randint(1, 5) if i == axis else n for i, n in enumerate(shape)]
        data = {"axis": str(axis - rng.choice([0, rank]))}
        return Call(op, [numbers(shape, rng), places(wide, shape[axis], rng)], data)
    if op.startswith("GatherND"):
        return draw_gather_nd(op, shape, rng)
    if op == "GatherTreeV1":
        steps, batches, beams = (rng.randint(1, 4) for _ in range(3))
        kind = rng.choice(["f4", "i4"])
        ids = places([steps, batches, beams], 6, rng).astype(kind)
        parents = places([steps, batches, beams], beams, rng).astype(kind)
        return Call(
            op,
            [ids, parents, places([batches], steps + 2, rng, 1).astype(kind), np.array(3, kind)],
        )
    if op == "ScatterUpdateV3":
        # Of a single number for a list OpenVINO makes nothing but a crash.
        wide = [rng.randint(1, 2) for _ in range(rng.randint(1 if rank == 1 else 0, 2))]
        shape[axis] += 3
        count = int(np.prod(wide))
        flat = apart([count], 0, shape[axis], rng).reshape(wide)
        target = numbers(shape, rng)
        new = numbers([*shape[:axis], *wide, *shape[axis + 1 :]], rng, (target.dtype.str[1:],))
        known = (3,) if rng.random() < 0.8 else ()
        return Call(op, [target, flat, new, given], const=known)
    if op.startswith("ScatterElements"):
        wide = [rng.randint(1, n) for n in shape]
        attributes = {}
        kinds: tuple[str, ...] = ()
        narrow = wide
        if rng.random() < 0.4:  # whole slices
            wide = [*wide[: axis + 1], *shape[axis + 1 :]]
            narrow = [*wide[: axis + 1], *[1] * len(shape[axis + 1 :])]
        indices = apart(narrow, axis, shape[axis], rng)
        if op.endswith("V12"):
            rule = rng.choice(["none", "sum", "prod", "min", "max", "mean"])
            attributes = {"reduction": rule, "use_init_val": rng.choice(["true", "false"])}
            if rule != "none":
                kinds = ("f4", "f4", "i4", "i4")
                indices = places(narrow, shape[axis], rng, -shape[axis])
        indices = np.array(np.broadcast_to(indices, wide))
        target = numbers(shape, rng, kinds)
        new = numbers(wide, rng, (target.dtype.str[1:],))
        mean = target.dtype.kind == "i" and attributes.get("reduction") == "mean"
        differs = "the CPU rounds a mean towards zero, the specification down" if mean else ""
        return Call(op, [target, indices, new, given], attributes, (3,), differs=differs)
    if op.startswith("ScatterND"):
        return draw_scatter_nd(op, shape, rng)
    attributes = {"sorted": rng.choice(["true", "false"])}
    attributes |= {f"{w}_element_type": rng.choice(["i32", "i64"]) for w in ("index", "count")}
    if rng.random() < 0.4:
        return Call(op, [numbers(shape, rng, ("f4", "i4", "u1", "i1"))], attributes)
    few = np.array(numbers(shape, rng, ("f4", "i4", "i1"))) % 2
    # Of slices, the CPU leaves places and counts unset, or has them wrong.
    return Call(op, [few, given], attributes, (1,), differs="unset")


def draw_gather_nd(op: str, shape: list[int], rng: random.Random) -> Call:
    batch = rng.randint(0, min(2, len(shape) - 1))
    length = rng.randint(1, len(shape) - batch)
    wide = [*shape[:batch], *(rng.randint(1, 3) for _ in range(rng.randint(0, 2)))]
    columns = [places(wide, n, rng).astype("i8") for n in shape[batch : batch + length]]
    indices = np.stack(columns, -1).astype(rng.choice(["i4", "i8"]))
    return Call(op, [numbers(shape, rng), indices], {"batch_dims": str(batch)})


def draw_scatter_nd(op: str, shape: list[int], rng: random.Random) -> Call:
    length = rng.randint(1, len(shape))
    rule = (
        rng.choice(["none", "sum", "sub", "prod", "min", "max"]) if op.endswith("15") else "none"
    )
    whole = np.array(list(np.ndindex(*shape[:length])))
    # Where two updates meet, only a reduction tells what is right.
    count = rng.randint(1, len(whole))
    rows = (
        rng.sample(range(len(whole)), count)
        if rule == "none"
        else rng.choices(range(len(whole)), k=count)
    )
    indices = whole[rows].reshape(count, length).astype(rng.choice(["i4", "i8"]))
    if count % 2 == 0 and rng.random() < 0.5:
        indices = indices.reshape(2, count // 2, length)
    target = numbers(shape, rng, () if rule == "none" else ("f4", "f4", "i4"))
    new = numbers([*indices.shape[:-1], *shape[length:]], rng, (target.dtype.str[1:],))
    return Call(op, [target, indices, new], {"reduction": rule} if op.endswith("15") else {})
