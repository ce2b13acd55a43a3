"""Sample calls of matrix products."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
from oracle import Call

ADJOINT = "the CPU of OpenVINO ignores adjoint"
NO_KERNEL = "OpenVINO has no kernel in the package"


def values(*shape: int, kind: Any = "f4", seed: int = 0) -> Any:
    """Small whole numbers, whose sums are exact in every type."""
    low = 0 if np.dtype(kind).kind == "u" else -3
    return np.random.default_rng([seed, *shape]).integers(low, 4, shape).astype(kind)


ENDS = np.array([1, 4], "i4")

CALLS = [
    Call("MatMulV1", [values(2, 3, 4), values(4, 5)]),
    Call("MatMulV1", [values(4), values(3, 5, 4)], {"transpose_b": "true"}),
    Call("EinsumV7", [values(2, 3), values(3, 4)], {"equation": "ab,bc->ac"}),
    Call("EinsumV7", [values(2, 3, 4), values(4, 3)], {"equation": "a...b,b...->...a"}),
    Call("EinsumV7", [values(2, 2, 3)], {"equation": "aab->b"}),
    Call("InverseV14", [values(2, 3, 3) + 5 * np.eye(3, dtype="f4")]),
    Call("InverseV14", [5 * np.eye(3, dtype="f4")], {"adjoint": "true"}, differs=ADJOINT),
    Call("GroupedMatMulV17", [values(4, 2), values(2, 3, 2), ENDS], differs=NO_KERNEL),
    Call("GroupedMatMulV17", [values(2, 4, 2), values(2, 3, 2)], differs=NO_KERNEL),
]

EQUATIONS = [
    "ab,bc->ac", "ab,bc", "ab->ba", "ab->", "ab->a", "ab,ab->ab", "ab,cb->", "a,b->ab", "a,b",
    "aab->ab", "aa->a", "aa->", "ab,bc,cd->ad", "abc,bd->acd", "abc,acd->abd", "ba", "bA,Ac",
    "...ab,...bc->...ac", "...ab,bc->...ac", "a...,a...->...", "...a->a...", "a...b->...",
    "...,...->...", "a...b,b...->...a", "ab,b->a", "abcd,acd->bd", "ab...,b...->a...", "a,->a",
    "abc,abc->", "abb,bc->ac", "...a,...b->...ab",
]  # fmt: skip


def draw(op: str, rng: random.Random) -> Call:
    kind = rng.choice(["f4", "f4", "f4", "f2", "f8", "i4", "i8", "i1", ml_dtypes.bfloat16])
    seed = rng.randint(0, 99)
    if op == "MatMulV1":
        return matmul(rng, kind, seed)
    if op == "EinsumV7":
        equation = rng.choice(EQUATIONS)
        sizes = {label: rng.randint(1, 4) for label in "abcdA"}
        rest = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
        inputs = []
        for term in equation.partition("->")[0].split(","):
            start = rng.randint(0, len(rest))
            spread = [rng.choice([1, n, n]) for n in rest[start:]]
            before, dots, after = term.partition("...")
            shape = [sizes[n] for n in before] + spread * bool(dots) + [sizes[n] for n in after]
            inputs.append(values(*shape, kind=rng.choice(["f4", "i4"]), seed=seed))
        first = inputs[0].dtype
        return Call(op, [a.astype(first) for a in inputs], {"equation": equation})
    if op == "InverseV14":
        size = rng.randint(1, 4)
        kind = rng.choice(["f4", "f4", "f8", "f2"])
        matrices = values(*[rng.randint(1, 3) for _ in range(rng.randint(0, 2))], size, size)
        matrices = (matrices + 9 * np.eye(size)).astype(kind)
        adjoint = rng.choice(["true", "false"])
        differs = ADJOINT if adjoint == "true" else ""
        tolerance = 1e-2 if kind == "f2" else 1e-4
        return Call(
            op, [matrices], {"adjoint": adjoint}, rtol=tolerance, atol=1e-5, differs=differs
        )
    groups, rows, inner, columns = (rng.randint(1, 4) for _ in range(4))
    right = values(groups, columns, inner, kind=kind, seed=seed)
    if rng.random() < 0.3:
        left = values(groups, rows, inner, kind=kind, seed=seed)
        return Call(op, [left, right], differs=NO_KERNEL)
    ends = np.sort([rng.randint(0, 6) for _ in range(groups - 1)] + [6]).astype(
        rng.choice(["i4", "i8"])
    )
    return Call(op, [values(6, inner, kind=kind, seed=seed), right, ends], differs=NO_KERNEL)


def matmul(rng: random.Random, kind: Any, seed: int) -> Call:
    rows, inner, columns = (rng.randint(1, 4) for _ in range(3))
    flags = [rng.random() < 0.4, rng.random() < 0.4]
    batch = [rng.randint(1, 3) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    shapes = []
    for matrix, vector, flag in zip(
        ([rows, inner], [inner, columns]), ([inner], [inner]), flags, strict=True
    ):
        start = rng.randint(0, len(batch))
        stack = [rng.choice([1, n, n]) for n in batch[start:]]
        shape = [*stack, *(matrix[::-1] if flag else matrix)]
        shapes.append(vector if rng.random() < 0.15 else shape)
    data = {
        name: str(flag).lower()
        for name, flag in zip(("transpose_a", "transpose_b"), flags, strict=True)
    }
    const: tuple[int, ...] = (1,) if rng.random() < 0.4 else ()
    inputs = [values(*shape, kind=kind, seed=seed) for shape in shapes]
    return Call("MatMulV1", inputs, data, const=const)
