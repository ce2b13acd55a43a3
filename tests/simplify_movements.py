"""Patterns of the rules that move elements or nothing: where each applies, and where not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from simplify_patterns import IMAGE, ROWS, Net
from vinoir import ir


def cut(n: Net, x: ir.Output, *sizes: int) -> ir.Output:
    return n("Reshape", x, list(sizes), special_zero=False)


def stack(n: Net, x: ir.Output, axis: int) -> ir.Output:
    return n("Concat", *(n("Unsqueeze", n(f, x), axis) for f in ("Sin", "Cos")), axis=axis)


def attend(n: Net, q: ir.Output, k: ir.Output, v: ir.Output, *more: Any) -> ir.Output:
    return n("ScaledDotProductAttention", q, k, v, *more, opset=13, causal=False)


def cut_attention(n: Net, x: ir.Output, mask: Any = 0.0, *sink: Any) -> ir.Output:
    """Attention of 6 matrices, once cut into 2 times 3 and put together afterwards."""
    flat = [cut(n, n(f, x), 6, 8, 16) for f in ("Sin", "Cos", "Exp")]
    return cut(n, attend(n, *flat, mask, 0.5, *sink), 2, 3, 8, 16)


def sum_of_ranks(n: Net, x: ir.Output) -> ir.Output:
    """A sum of turned tensors, of which one has fewer axes."""
    wide = n("Transpose", n("Exp", x), [0, 2, 3, 1])
    few = n("Transpose", n("ReduceMax", x, [0, 3], keep_dims=False), [1, 0])
    return n("Transpose", n("Add", wide, few), [0, 3, 1, 2])


def threes(n: Net, *sizes: int) -> ir.Output:
    return n("Broadcast", 3.0, list(sizes), opset=3, mode="numpy")


def padded_threes(n: Net, x: ir.Output) -> ir.Output:
    wide = n("Interpolate", threes(n, 1, 4, 60, 60), [80, 80], [2, 3], opset=11, mode="nearest",
             shape_calculation_mode="sizes", coordinate_transformation_mode="asymmetric",
             nearest_mode="floor", pads_begin=(0, 0, 1, 1), pads_end=(0, 0, 1, 1))  # fmt: skip
    return n("Add", x, wide)


def masked_twice(n: Net, x: ir.Output) -> ir.Output:
    scores = n.matmul(x, n("Sin", x), transpose_b=True)
    both = n("Add", n("Add", scores, n.numbers(3, 8, 8)), n.numbers(2, 1, 8, 8))
    return n.matmul(n("SoftMax", both, opset=8, axis=-1), n("Cos", x))


def window_bias(n: Net, x: ir.Output) -> ir.Output:
    """A table of which rows are taken, cut and turned, as Swin's blocks do for each pair."""
    places = n.random.integers(0, 5, 1024).tolist()
    rows = cut(n, n("Gather", n.numbers(5, 12), places, 0, opset=8), 32, 32, 12)
    return n("Add", n.matmul(x, x, transpose_b=True), n("Transpose", rows, [2, 0, 1]))


def shared_places(n: Net, x: ir.Output) -> ir.Output:
    """Two tables of which the same rows are taken, once in another order."""
    places = n.net.constant(n.random.integers(0, 5, (32, 32)))
    one, other = (n("Gather", n.numbers(5, 12), places, 0, opset=8) for _ in range(2))
    return n("Add", x, n("Add", n("Transpose", one, [1, 0, 2]), other))


def rotary(n: Net, x: ir.Output, number: float = -1.0) -> ir.Output:
    parts = n("VariadicSplit", n("Exp", x), 3, [8, 8])
    first, second = parts
    turned = n("Concat", n("Multiply", second, number), first, axis=3)
    return n("Multiply", turned, n.numbers(8, 16))


def parts(n: Net, x: ir.Output, axis: int = 1) -> ir.Output:
    found = n("Split", n("Exp", x), axis, num_splits=3)
    return n("Multiply", *(n("Squeeze", one, axis) for one in list(found)[:2]))


def assigned(n: Net, x: ir.Output, places: list[int]) -> ir.Output:
    rows = n.net.constant(np.array(places, np.int64).reshape(-1, 1))
    flat = cut(n, n("Exp", x), 12)
    new = cut(n, n("Sin", x), 12)
    return n("ScatterNDUpdate", flat, rows, new, opset=4)


def assigned_rows(n: Net, x: ir.Output, axis: int = 1) -> ir.Output:
    return n("ScatterUpdate", n("Exp", x), [0, 1, 2], n("Sin", x), axis, opset=3)


def clamped(n: Net, x: ir.Output, most: float) -> ir.Output:
    ends = (0.0, 5.0, 0.0, 5.0)
    return n("FakeQuantize", n("Clamp", n("Multiply", x, 4.0), min=0.0, max=most), *ends, levels=9)


#: Rule, input shape, network, types that are left.
APPLIES: list[tuple[str, str, Callable[[Net, ir.Output], ir.Output], str]] = [
    ("elementwise-between-reshapes", ROWS, lambda n, x: cut(n, n("Add", cut(
        n, x, 1, 6, 8, 16), n.numbers(6, 1, 16)), 2, 3, 8, 16), "Add"),
    ("elementwise-between-reshapes", ROWS, lambda n, x: n("Squeeze", n("Exp", n(
        "Subtract", n.numbers(8, 16), n("Unsqueeze", x, 0))), 0), "Exp Subtract"),
    ("elementwise-between-reshapes", "?,3,8,16", lambda n, x: n("Squeeze", n("Multiply", n(
        "Unsqueeze", x, 3), n.numbers(3, 8, 1, 16)), 3), "Multiply"),
    ("elementwise-between-reshapes", "1,4,6,6", lambda n, x: n("Unsqueeze", n("Add", n(
        "Gather", x, 0, 0, opset=8), n.numbers(4, 1, 1)), 0), "Add"),
    ("attention-between-reshapes", ROWS, cut_attention,
     "Cos Exp ScaledDotProductAttention Sin"),
    ("attention-between-reshapes", ROWS, lambda n, x: cut_attention(n, x, n.numbers(6, 8, 8)),
     "Cos Exp ScaledDotProductAttention Sin"),
    ("scale-into-attention", ROWS, lambda n, x: attend(n, n("Multiply", x, 0.25), n(
        "Sin", x), n("Cos", x)), "Cos ScaledDotProductAttention Sin"),
    ("scale-into-attention", ROWS, lambda n, x: attend(n, x, n("Divide", n("Sin", x), 2.0), n(
        "Cos", x), n.numbers(8, 8), 0.5), "Cos ScaledDotProductAttention Sin"),
    ("scale-into-attention", ROWS, lambda n, x: attend(n, n("Multiply", x, 0.25), n(
        "Sin", x), n("Cos", x), n.numbers(8, 8), 0.5, n.numbers(1, 3, 1, 1)),
     "Cos ScaledDotProductAttention Sin"),
    ("attention", ROWS, masked_twice, "Cos ScaledDotProductAttention Sin"),
    ("concat-between-reshapes", ROWS, lambda n, x: cut(n, stack(n, x, 3), 2, 3, 8, 32),
     "Concat Cos Sin"),
    ("concat-between-reshapes", ROWS, lambda n, x: stack(n, x, 3), "Concat Cos Reshape Sin"),
    ("concat-between-reshapes", "?,1", lambda n, x: n("Reshape", n("Concat", n(
        "Unsqueeze", x, 2), n("Unsqueeze", n("Exp", x), 2), axis=2), [0, 2], special_zero=True),
     "Concat Exp"),
    ("concat-between-reshapes", "1,3,4", lambda n, x: cut(n, n("Concat", n(
        "Squeeze", x, 0), n.numbers(5, 4), axis=0), 1, 8, 4), "Concat"),
    ("gathered-constants", "2,12,32,4", window_bias, "Add Gather MatMul"),
    ("parts-into-gathers", ROWS, parts, "Exp Gather Gather Multiply"),
    ("reduce-before-transpose", IMAGE, lambda n, x: n("Reshape", n.mean(n(
        "Transpose", n("Exp", x), [0, 3, 1, 2]), [2, 3]), [2, 6], special_zero=False),
     "Exp ReduceMean Reshape"),
    ("reduce-before-transpose", IMAGE, lambda n, x: n("ReduceMax", n(
        "Transpose", n("Exp", x), [2, 3, 0, 1]), [-1, 2], keep_dims=False), "Exp ReduceMax"),
    ("signs-into-constants", ROWS, rotary, "Concat Exp Multiply VariadicSplit"),
    ("leading-ones", "3,8", lambda n, x: n("Multiply", n("Unsqueeze", n(
        "Exp", x), [0, 1]), n.numbers(1, 4, 3, 8)), "Exp Multiply"),
    ("transpose-through-reshape", ROWS, lambda n, x: n("Transpose", cut(n, n(
        "Transpose", n("Exp", x), [0, 2, 1, 3]), 2, 4, 2, 3, 16), [0, 3, 1, 2, 4]),
     "Exp Reshape"),
    ("transpose-through-reshape", ROWS, lambda n, x: n("Transpose", cut(n, n(
        "Transpose", n("Exp", x), [0, 2, 1, 3]), 2, 4, 2, 3, 16), [4, 3, 1, 2, 0]),
     "Exp Reshape Transpose"),
    ("transpose-through-reshape", "1,8,4,16", lambda n, x: cut(n, n("Exp", n("Transpose", cut(n, n(
        "Transpose", n("Sin", x), [0, 2, 1, 3]), 4, 8, 16), [0, 2, 1])), 1, 4, 16, 8),
     "Exp Sin Transpose"),
    ("reshape-chains", "1,3,8", lambda n, x: n("Unsqueeze", n("Gather", n(
        "Exp", x), 0, 0, opset=8), 2), "Exp Reshape"),
    ("clamp-into-fake-quantize", ROWS, lambda n, x: clamped(n, x, 6.0), "FakeQuantize Multiply"),
    ("whole-scatters", "3,4", lambda n, x: assigned(n, x, list(range(12))), "Reshape Sin"),
    ("whole-scatters", ROWS, assigned_rows, "Sin"),
]  # fmt: skip

#: What looks like a pattern and is none: rule, input shape, network.
STAYS: list[tuple[str, str, Callable[[Net, ir.Output], ir.Output]]] = [
    # What is added varies along a part of an axis that the Reshape takes apart.
    ("elementwise-between-reshapes", ROWS, lambda n, x: cut(n, n("Add", cut(
        n, x, 2, 24, 2, 8), n.numbers(2, 1)), 2, 3, 8, 16)),
    # The sum has more elements than what comes out of the Reshape.
    ("elementwise-between-reshapes", ROWS, lambda n, x: cut(n, n("Add", cut(
        n, x, 6, 1, 8, 16), n.numbers(2, 8, 16)), 2, 3, 16, 16)),
    # Rows of the three come apart, not whole matrices.
    ("attention-between-reshapes", ROWS, lambda n, x: cut(n, attend(n, *(cut(
        n, n(f, x), 12, 4, 16) for f in ("Sin", "Cos", "Exp"))), 2, 3, 8, 16)),
    # A sink would need as many axes as the matrices.
    ("attention-between-reshapes", ROWS, lambda n, x: cut_attention(
        n, x, n.numbers(6, 8, 8), n.numbers(6, 1, 1))),
    ("scale-into-attention", ROWS, lambda n, x: attend(n, n("Multiply", x, n.numbers(16)), n(
        "Sin", x), n("Cos", x))),
    # One Reshape alone goes, and another comes.
    ("concat-between-reshapes", ROWS, lambda n, x: n("Concat", n("Unsqueeze", n(
        "Sin", x), 4), n("Exp", n("Unsqueeze", x, 4)), axis=4)),
    # Sizes differ beside the axis along which parts would be put together.
    ("concat-between-reshapes", ROWS, lambda n, x: n("Exp", n("Concat", cut(n, n(
        "Sin", x), 6, 128), cut(n, n("Transpose", n("Cos", x), [0, 1, 3, 2]), 6, 128), axis=0))),
    ("gathered-constants", "2,32,32,12", shared_places),
    ("parts-into-gathers", ROWS, lambda n, x: n("Multiply", *list(n(
        "Split", n("Exp", x), 1, num_splits=3))[:2])),
    ("reduce-before-transpose", IMAGE, lambda n, x: n.mean(n(
        "Transpose", n("Exp", x), [3, 2, 1, 0]), [0])),
    ("transpose-pairs", IMAGE, sum_of_ranks),
    # Zeros come beside: of pads, and of places beyond the axis.
    ("uniform-values", "1,4,80,80", padded_threes),
    ("uniform-values", "2,8000", lambda n, x: n("Add", x, n(
        "Gather", threes(n, 8, 8000), [0, 9], 0, opset=8))),
    ("signs-into-constants", ROWS, lambda n, x: rotary(n, x, -2.0)),
    ("leading-ones", "3,8", lambda n, x: n("Multiply", n("Unsqueeze", n("Exp", x), 1), n.numbers(
        3, 4, 8))),
    ("leading-ones", "3,8", lambda n, x: n("Multiply", n("Unsqueeze", n("Exp", x), 0), n.numbers(
        3, 8))),
    ("transpose-through-reshape", ROWS, lambda n, x: n("Transpose", cut(n, n(
        "Transpose", n("Exp", x), [0, 2, 1, 3]), 2, 24, 16), [2, 1, 0])),
    ("clamp-into-fake-quantize", ROWS, lambda n, x: clamped(n, x, 2.0)),
    ("whole-scatters", "3,4", lambda n, x: assigned(n, x, [1, 0, *range(2, 12)])),
    ("whole-scatters", "3,3", lambda n, x: n("ScatterUpdate", n("Exp", x), [0, 2, 1], n(
        "Sin", x), 0, opset=3)),
]  # fmt: skip
