"""Products of matrices: FullyConnected and Gemm."""

from __future__ import annotations

import math

from .layer import Old
from .table import Made, converts


@converts(
    "FullyConnected InnerProduct",
    "out-size",
    becomes="MatMul-1 Reshape-1 Add-1",
    idle="alpha beta axis transpose_a transpose_b transpose_weights",
)
def fully_connected(old: Old) -> Made:
    """Weights [O, I]: I are all axes of the input after the first, flat, unless O keeps them.

    Where the declared output has as many axes as the input of three, only the last is I.
    """
    size, dims = old.integer("out-size", 1), old.dims(least=2)
    declared = old.declared()
    kept = len(dims) == 3 and len(declared) == 3
    count = dims[-1] if kept else math.prod(dims[1:])
    one = old.reals(0)
    if len(dims) != 2 and not kept:
        one = old.reshape(one, (0, -1), copied=True)
    if "weights" not in old.layer.blobs and len(old) > 1:
        weights = old.reshape(old.reals(1), (size, count))
    else:
        weights = old.weights("weights", (size, count))
    made = old.add("MatMul", "opset1", [one, weights], transpose_a=False, transpose_b=True)
    bias = old.blob("biases", (1,) * (len(made.tensor.shape.static) - 1) + (size,))
    if bias is None and len(old) > 2:
        bias = old.reshape(old.reals(2), (1, size))
    if bias is not None:
        made = old.add("Add", "opset1", [made, bias])
    found = made.tensor.shape.static
    if found != declared and math.prod(found) == math.prod(declared):
        made = old.reshape(
            made, (0, *declared[1:]) if found[0] == declared[0] else declared, copied=True
        )
    return made


@converts(
    "Gemm", "alpha=1 beta=1 transpose_a=false transpose_b=false",
    becomes="MatMul-1 Multiply-1 Add-1",
)  # fmt: skip
def gemm(old: Old) -> Made:
    """Alpha * A B + beta * C; both products only where they are not by 1."""
    made = old.add(
        "MatMul", "opset1", [old.reals(0), old.reals(1)],
        transpose_a=old.flag("transpose_a"), transpose_b=old.flag("transpose_b"),
    )  # fmt: skip
    alpha, beta = old.real("alpha"), old.real("beta")
    if alpha != 1:
        made = old.add("Multiply", "opset1", [made, old.constant(alpha)])
    if len(old) < 3 or beta == 0:
        return made
    more = old.reals(2)
    if beta != 1:
        more = old.add("Multiply", "opset1", [more, old.constant(beta)])
    return old.add("Add", "opset1", [made, more])
