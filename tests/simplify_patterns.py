"""Patterns of the rules that simplify: where each applies, and what is like it and must stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from vinoir import ir


class Net:
    """A builder with words for what patterns are made of."""

    def __init__(self, net: ir.Builder) -> None:
        self.net = net
        self.random = np.random.default_rng(7)

    def __call__(self, kind: str, *inputs: Any, opset: int = 1, **words: Any) -> ir.Output:
        fed = [one if isinstance(one, ir.Output) else self.value(one) for one in inputs]
        return self.net.add(kind, f"opset{opset}", fed, **words)

    def value(self, value: Any) -> ir.Output:
        if isinstance(value, (int, list)):
            return self.net.constant(np.array(value, np.int64))
        return self.net.constant(np.asarray(value, np.float32))

    def numbers(self, *shape: int) -> ir.Output:
        return self.net.constant(self.random.uniform(0.5, 1.5, shape).astype("f4"))

    def convolution(self, x: ir.Output, made: int = 4, pad: int = 0) -> ir.Output:
        given = x.tensor.shape.static[1]
        return self(
            "Convolution", x, self.numbers(made, given, 1, 1), strides=(1, 1), dilations=(1, 1),
            pads_begin=(pad, pad), pads_end=(pad, pad),
        )  # fmt: skip

    def norm(self, x: ir.Output, channels: int) -> ir.Output:
        rows = [self.numbers(channels) for _ in range(4)]
        return self("BatchNormInference", x, *rows, opset=5, data={"epsilon": 1e-5})

    def mean(self, x: ir.Output, axes: list[int], kind: str = "ReduceMean") -> ir.Output:
        return self(kind, x, axes, opset=4 if kind == "ReduceL2" else 1, keep_dims=True)

    def matmul(self, a: Any, b: Any, **words: Any) -> ir.Output:
        return self("MatMul", a, b, **{"transpose_a": False, "transpose_b": False, **words})


IMAGE = "2,4,6,6"
ROWS = "2,3,8,16"
WIDE = "2,9,60,60"


def gelu(n: Net, x: ir.Output) -> ir.Output:
    erf = n("Erf", n("Divide", x, np.sqrt(2)))
    return n("Multiply", n("Multiply", x, n("Add", erf, 1.0)), 0.5)


def gelu_tanh(n: Net, x: ir.Output) -> ir.Output:
    cube = n("Multiply", n("Power", x, 3.0), 0.044715)
    tanh = n("Tanh", n("Multiply", n("Add", x, cube), np.sqrt(2 / np.pi)))
    return n("Multiply", n("Multiply", x, 0.5), n("Add", tanh, 1.0))


def gelu_factors(n: Net, x: ir.Output) -> ir.Output:
    """The same with each factor by itself, as Bloom's layers write it."""
    square = n("Multiply", n("Multiply", x, 0.044715), x)
    inner = n("Multiply", n("Multiply", x, np.sqrt(2 / np.pi)), n("Add", square, 1.0))
    return n("Multiply", n("Multiply", x, 0.5), n("Add", n("Tanh", inner), 1.0))


def gelu_product(n: Net, x: ir.Output) -> ir.Output:
    square = n("Multiply", x, x)
    inside = n("Add", n("Multiply", square, 0.044715), 1.0)
    tanh = n("Tanh", n("Multiply", n("Multiply", x, np.sqrt(2 / np.pi)), inside))
    return n("Multiply", 0.5, n("Multiply", x, n("Add", 1.0, tanh)))


def mvn(n: Net, x: ir.Output) -> ir.Output:
    d = n("Subtract", x, n.mean(x, [-1]))
    spread = n("Sqrt", n("Add", n.mean(n("Power", d, 2.0), [-1]), 1e-5))
    return n("Divide", d, spread)


def mvn_inverse(n: Net, x: ir.Output) -> ir.Output:
    d = n("Subtract", x, n.mean(x, [2, 3]))
    root = n("Sqrt", n("Add", n.mean(n("Multiply", d, d), [2, 3]), 1e-5))
    return n("Multiply", n("Divide", 1.0, root), d)


def attention(n: Net, x: ir.Output) -> ir.Output:
    key, value = n("Sin", x), n("Cos", x)
    scores = n("Multiply", n.matmul(x, key, transpose_b=True), 0.25)
    mask = n.numbers(1, 1, 8, 8)
    return n.matmul(n("SoftMax", n("Add", scores, mask), opset=8, axis=-1), value)


def attention_bare(n: Net, x: ir.Output) -> ir.Output:
    key = n("Transpose", n("Sin", x), [0, 1, 3, 2])
    return n.matmul(n("SoftMax", n.matmul(x, key), opset=8, axis=3), n("Cos", x))


def attention_scaled(n: Net, x: ir.Output) -> ir.Output:
    key = n("Multiply", n("Transpose", n("Sin", x), [0, 1, 3, 2]), 0.5)
    scores = n.matmul(n("Divide", x, 2.0), key)
    return n.matmul(n("SoftMax", scores, opset=8, axis=-1), n("Cos", x))


def attention_turned(n: Net, x: ir.Output) -> ir.Output:
    key = n("Transpose", n("Sin", x), [0, 2, 3, 1])
    query, value = (n("Transpose", n(f, x), [0, 2, 1, 3]) for f in ("Exp", "Cos"))
    return n.matmul(n("SoftMax", n.matmul(query, key), opset=8, axis=-1), value)


def scaled_fake(n: Net, x: ir.Output) -> ir.Output:
    quantized = n("FakeQuantize", x, -1.0, 2.0, -1.0, 2.0, levels=256)
    return n("Multiply", quantized, n.numbers(1, 4, 1, 1))


def dynamic_reshape(n: Net, x: ir.Output) -> ir.Output:
    first = n("Gather", n("ShapeOf", x, opset=3, output_type="i64"), [0], 0, opset=8)
    return n("Reshape", n("Exp", x), n("Concat", first, [2, 12], axis=0), special_zero=False)


def turned_halves(n: Net, x: ir.Output) -> ir.Output:
    """The halves of an axis, the other way around, as rotary positions take them."""
    last = n("Slice", x, [8], [2**62], [1], [3], opset=8)
    first = n("Slice", x, [0], [8], [1], [-1], opset=8)
    return n("Concat", n("Negative", last), first, axis=3)


def ones(n: Net, x: ir.Output, number: float = 1.0) -> ir.Output:
    """A tensor like another, all of one number."""
    return n(
        "Broadcast", number, n("ShapeOf", x, opset=3, output_type="i64"), opset=3, mode="numpy"
    )


def tenths(n: Net, x: ir.Output) -> ir.Output:
    """What is summed in some order, in which it is rounded."""
    rows = n("Broadcast", 0.1, [4000, 6], opset=3, mode="numpy")
    return n("Add", n("ReduceSum", rows, [0], keep_dims=False), x)


def shared_ones(n: Net, x: ir.Output) -> ir.Output:
    """A Broadcast that is there in any case."""
    shared = n("Broadcast", 2.0, [40, 60], opset=3, mode="numpy")
    first = n("Concat", shared, n("Sin", shared), axis=0)
    return n("Add", n("ReduceMax", first, [0, 1], keep_dims=False), x)


def hswish(n: Net, x: ir.Output) -> ir.Output:
    six = n("Clamp", n("Add", x, 3.0), min=0.0, max=6.0)
    return n("Divide", n("Multiply", x, six), 6.0)


def hsigmoid(n: Net, x: ir.Output) -> ir.Output:
    return n("Multiply", n("Minimum", n("ReLU", n("Add", x, 3.0)), 6.0), 1 / 6)


def shuffle(n: Net, x: ir.Output) -> ir.Output:
    y = n("Reshape", x, [2, 2, 2, 6, 6], special_zero=False)
    y = n("Transpose", y, [0, 2, 1, 3, 4])
    return n("Reshape", y, [2, 4, 6, 6], special_zero=False)


def spread(n: Net, x: ir.Output) -> ir.Output:
    y = n("Reshape", x, [2, 1, 2, 2, 6, 6], special_zero=False)
    y = n("Transpose", y, [0, 1, 4, 2, 5, 3])
    return n("Reshape", y, [2, 1, 12, 12], special_zero=False)


def gathered(n: Net, x: ir.Output) -> ir.Output:
    y = n("Reshape", x, [2, 4, 3, 2, 3, 2], special_zero=False)
    y = n("Transpose", y, [0, 3, 5, 1, 2, 4])
    return n("Reshape", y, [2, 16, 3, 3], special_zero=False)


def residual_transposed(n: Net, x: ir.Output) -> ir.Output:
    one = n("Transpose", n("Sin", x), [0, 2, 3, 1])
    other = n("Transpose", n("Cos", x), [0, 2, 3, 1])
    both = n("Add", n("ReLU", one), n("Multiply", other, n.numbers(4)))
    return n("Transpose", both, [0, 3, 1, 2])


def shape_dance(n: Net, x: ir.Output) -> ir.Output:
    sizes = n("ShapeOf", x, opset=3, output_type="i64")
    first = n("Gather", sizes, [0], 0, opset=8)
    pattern = n("Concat", first, [-1], axis=0)
    return n("Reshape", n("Exp", x), pattern, special_zero=False)


def fake(n: Net, x: ir.Output, low: float = 0.0) -> ir.Output:
    return n("FakeQuantize", n("ReLU", x), low, 2.0, 0.0, 2.0, levels=256)


def turn(n: Net, x: ir.Output) -> ir.Output:
    """The same layers twice."""
    return n("Add", n("Exp", n("Sin", x)), n("Exp", n("Sin", x)))


def sizes_on_two_ways(n: Net, x: ir.Output) -> ir.Output:
    """A product with as many columns as x, found before and after another layer."""
    one = n("Gather", n("ShapeOf", x, opset=3, output_type="i64"), [0], 0, opset=8)
    late = n("ShapeOf", n("Exp", x), opset=3, output_type="i64")
    other = n("Unsqueeze", n("Gather", late, 0, 0, opset=8), [0])
    wide = n("Broadcast", n.numbers(1, 4), n("Concat", one, [4], axis=0), opset=3, mode="numpy")
    more = n("Broadcast", n.numbers(1, 4), n("Concat", other, [4], axis=0), opset=3, mode="numpy")
    return n("Concat", n("Exp", x), wide, more, axis=0)


def padded(n: Net, x: ir.Output, value: float = 0.0) -> ir.Output:
    wide = n("Pad", n("Exp", x), [0, 0, 1, 0], [0, 0, 1, 2], value, pad_mode="constant")
    return n.convolution(wide, pad=1)


def table_of_halves(n: Net, x: ir.Output) -> ir.Output:
    """A row of a table that is kept in 16 bits."""
    table = n("Convert", n.net.constant(np.ones((40, 6), np.float16)), destination_type="f32")
    return n("Add", x, n("Gather", n("Negative", table), 3, 0, opset=8))


def counted(n: Net, x: ir.Output) -> ir.Output:
    """As many numbers as x has rows, and how many these are."""
    rows = n("Gather", n("ShapeOf", x, opset=3, output_type="i64"), 0, 0, opset=8)
    numbers = n("Range", 0, rows, 1, opset=4, output_type="f32")
    again = n("ShapeOf", n("Sin", numbers), opset=3, output_type="i64")
    more = n("Range", 0, n("Squeeze", again, [0]), 1, opset=4, output_type="f32")
    return n("Add", x, n("Add", n("Unsqueeze", numbers, [1]), n("Unsqueeze", more, [1])))


def turned_heads(n: Net, x: ir.Output) -> ir.Output:
    flat = n("Reshape", n("Exp", x), [6, 8, 16], special_zero=False)
    turned = n("Transpose", flat, [0, 2, 1])
    return n("Reshape", turned, [2, 3, 16, 8], special_zero=False)


def turned_rows(n: Net, x: ir.Output) -> ir.Output:
    apart = n("Reshape", n("Exp", x), [2, 3, 8, 4, 4], special_zero=False)
    turned = n("Transpose", apart, [0, 1, 3, 4, 2])
    return n("Reshape", turned, [2, 3, 16, 8], special_zero=False)


def flat_product(n: Net, x: ir.Output, columns: int = 5, made: int = 5) -> ir.Output:
    flat = n("Reshape", n("Exp", x), [48, 16], special_zero=False)
    y = n("Add", n.matmul(flat, n.numbers(16, columns)), n.numbers(columns))
    return n("Reshape", n("Swish", y, opset=4), [2, 3, -1, made], special_zero=False)


def flat_products(n: Net, x: ir.Output, made: int = 8) -> ir.Output:
    rows = n("Reshape", n("Exp", x), [6, 8, 16], special_zero=False)
    others = n("Reshape", n("Sin", x), [6, 8, 16], special_zero=False)
    return n("Reshape", n.matmul(rows, others, transpose_b=True), [2, 3, 8, made],
             special_zero=False)  # fmt: skip


def rows_of_table(n: Net, x: ir.Output) -> ir.Output:
    """Each row of a table for itself."""
    table = n.numbers(3, 4000)
    for row in range(3):
        x = n("Add", n("Tanh", x), n("Gather", table, row, 0, opset=8))
    return x


def resized_ones(n: Net, x: ir.Output) -> ir.Output:
    wide = n("Interpolate", ones(n, x), [4, 4], np.ones(2), [2, 3], opset=4, mode="nearest",
             shape_calculation_mode="sizes")  # fmt: skip
    return n("Add", n("Exp", x), n.mean(wide, [2, 3]))


def convolved_parts(n: Net, x: ir.Output, made: int = 3) -> ir.Output:
    """A convolution of each half of the channels."""
    first, second = n("Split", n("Exp", x), 1, num_splits=2)
    return n("Concat", n.convolution(first, 3), n.convolution(second, made), axis=1)


def chosen(n: Net, x: ir.Output, sides: tuple[bool, ...]) -> ir.Output:
    condition = n.net.constant(np.array(sides))
    return n("Select", condition, n("Exp", x), n("Sin", x), auto_broadcast="numpy")


#: Rule, input shape, network, and the types that are left between input and output, sorted.
APPLIES: list[tuple[str, str, Callable[[Net, ir.Output], ir.Output], str]] = [
    ("share-constants", IMAGE,
     lambda n, x: n("Add", n("Power", x, 2.0), n("Multiply", x, 2.0)), "Add Multiply Power"),
    ("share-expressions", IMAGE, turn, "Add Exp Sin"),
    ("fold-constants", IMAGE, shape_dance, "Exp Reshape"),
    ("whole-movements", IMAGE,
     lambda n, x: n("Exp", n("Transpose", x, [0, 1, 2, 3])), "Exp"),
    ("whole-movements", IMAGE,
     lambda n, x: n("Exp", n("Pad", x, [0] * 4, [0] * 4, pad_mode="constant")), "Exp"),
    ("whole-movements", IMAGE, lambda n, x: n("Exp", n("Tile", x, [1, 1])), "Exp"),
    ("whole-movements", IMAGE, lambda n, x: n("Exp", n("Concat", x, axis=1)), "Exp"),
    ("whole-movements", IMAGE,
     lambda n, x: n("Exp", n("Slice", x, [0], [6], [1], [2], opset=8)), "Exp"),
    ("whole-movements", "?,4",
     lambda n, x: n("Exp", n("Slice", x, [0], [2**31 - 1], [1], [0], opset=8)), "Exp"),
    ("whole-movements", IMAGE,
     lambda n, x: n("Exp", n("StridedSlice", x, [0, 0], [2, 4], [1, 1],
                             begin_mask=(0, 0), end_mask=(0, 0))), "Exp"),
    ("whole-movements", IMAGE,
     lambda n, x: n("Exp", n("Gather", x, [0, 1, 2, 3], 1, opset=8)), "Exp"),
    ("whole-movements", IMAGE,
     lambda n, x: n("Exp", n("Broadcast", x, [2, 4, 6, 6], opset=3, mode="numpy")), "Exp"),
    ("whole-movements", IMAGE,
     lambda n, x: n("Exp", n("Convert", x, destination_type="f32")), "Exp"),
    ("whole-movements", "?,1,6",
     lambda n, x: n("Exp", n("Reshape", x, [-1, 1, 6], special_zero=False)), "Exp"),
    ("whole-movements", "2,1,6", lambda n, x: n("Exp", n.mean(x, [1])), "Exp"),
    ("neutral-elements", IMAGE, lambda n, x: n("Exp", n("Add", x, 0.0)), "Exp"),
    ("neutral-elements", IMAGE, lambda n, x: n("Exp", n("Divide", x, 1.0)), "Exp"),
    ("neutral-elements", IMAGE, lambda n, x: n("Select", n("LogicalAnd", n("Greater", x, 0.0),
     n.net.constant(np.array(True))), x, n("Exp", x), auto_broadcast="numpy"),
     "Exp Greater Select"),
    ("share-sizes", "?,4", sizes_on_two_ways, "Broadcast Broadcast Concat Exp ShapeOf"),
    ("share-sizes", "?,1", counted, "Add Add Gather Range ShapeOf Unsqueeze"),
    ("select-one-side", IMAGE, lambda n, x: chosen(n, x, (True, True, True, True, True, True)),
     "Exp"),
    ("select-one-side", IMAGE, lambda n, x: chosen(n, x, (False,)), "Sin"),
    ("transpose-between-reshapes", ROWS, turned_heads, "Exp Transpose"),
    ("transpose-between-reshapes", ROWS, turned_rows, "Exp Transpose"),
    ("matmul-between-reshapes", ROWS, flat_product, "Add Exp MatMul Swish"),
    ("split-concat", IMAGE,
     lambda n, x: n("Exp", n("Concat", *n("Split", x, 1, num_splits=2), axis=-3)), "Exp"),
    ("convert-pairs", IMAGE,
     lambda n, x: n("Exp", n("Convert", n("Convert", x, destination_type="f64"),
                             destination_type="f32")), "Exp"),
    ("reshape-chains", IMAGE,
     lambda n, x: n("Reshape", n("Unsqueeze", n("Exp", x), [0]), [2, 4, 36],
                    special_zero=False), "Exp Reshape"),
    ("reshape-chains", "?,4,6",
     lambda n, x: n("Sin", n("Squeeze", n("Unsqueeze", n("Exp", x), [1]), [1])), "Exp Sin"),
    ("reshape-chains", "2,1,6",
     lambda n, x: n("Reshape", n("Transpose", n("Exp", x), [1, 0, 2]), [12],
                    special_zero=False), "Exp Reshape"),
    ("transpose-pairs", IMAGE, lambda n, x: n(
        "Transpose", n("ReLU", n("Transpose", n("Exp", x), [0, 2, 3, 1])), [0, 3, 1, 2]
    ), "Exp ReLU"),
    ("transpose-pairs", IMAGE, lambda n, x: n(
        "Transpose", n("Transpose", n("Exp", x), [0, 2, 3, 1]), [0, 2, 3, 1]), "Exp Transpose"),
    ("transpose-pairs", IMAGE, residual_transposed, "Add Cos Multiply ReLU Sin"),
    ("transpose-into-matmul", ROWS, lambda n, x: n.matmul(
        x, n("Transpose", n("Exp", x), [0, 1, 3, 2])), "Exp MatMul"),
    ("broadcast-into-elementwise", IMAGE, lambda n, x: n("Add", x, n(
        "Broadcast", n.mean(x, [2, 3]), [2, 4, 6, 6], opset=3, mode="numpy")), "Add ReduceMean"),
    ("uniform-values", WIDE, lambda n, x: n("Divide", x, n("Maximum", n(
        "ReduceSum", ones(n, x), [2], keep_dims=True), 1.0)), "Divide"),
    ("uniform-values", WIDE, lambda n, x: n("Multiply", n(
        "Transpose", n("Sqrt", ones(n, x)), [0, 1, 3, 2]), x), "Multiply"),
    ("uniform-values", WIDE, lambda n, x: n("Add", n("Negative", ones(n, x)), ones(n, x, 3.0)),
     "Broadcast"),
    ("slices-into-split", ROWS, turned_halves, "Concat Negative VariadicSplit"),
    ("neutral-elements", "2,?", lambda n, x: n("Exp", n("Add", x, n.value(np.zeros((1, 1))))),
     "Exp"),
    ("shuffle-channels", IMAGE, shuffle, "ShuffleChannels"),
    ("depth-to-space", IMAGE, spread, "DepthToSpace"),
    ("depth-to-space", IMAGE, gathered, "SpaceToDepth"),
    ("clamp-into-fake-quantize", IMAGE, fake, "FakeQuantize"),
    ("softplus", IMAGE, lambda n, x: n("Log", n("Add", n("Exp", x), 1.0)), "SoftPlus"),
    ("mish", IMAGE,
     lambda n, x: n("Multiply", x, n("Tanh", n("SoftPlus", x, opset=4))), "Mish"),
    ("swish", IMAGE, lambda n, x: n("Multiply", x, n("Sigmoid", x)), "Swish"),
    ("swish", IMAGE,
     lambda n, x: n("Multiply", n("Sigmoid", n("Multiply", x, 1.7)), x), "Swish"),
    ("hswish", IMAGE, hswish, "HSwish"),
    ("hswish", IMAGE, lambda n, x: n("Multiply", x, hsigmoid(n, x)), "HSwish"),
    ("clamp", IMAGE, lambda n, x: n("Minimum", n("Maximum", x, -1.0), 2.0), "Clamp"),
    ("clamp", IMAGE, lambda n, x: n("Maximum", -1.0, n("Minimum", 2.0, x)), "Clamp"),
    ("pad-into-convolution", IMAGE, padded, "Convolution Exp"),
    ("fold-constants", IMAGE, table_of_halves, "Add"),
    ("slices-into-split", "?,3,8,16", turned_halves, "Concat Negative VariadicSplit"),
    ("products-between-reshapes", ROWS, flat_products, "Exp MatMul Sin"),
    ("convolutions-of-split", IMAGE, convolved_parts, "Exp GroupConvolution"),
    ("fold-constants", "2,4000", rows_of_table, "Add Add Add Tanh Tanh Tanh"),
    ("uniform-values", WIDE, resized_ones, "Add Exp"),
    ("hsigmoid", IMAGE, hsigmoid, "HSigmoid"),
    ("hsigmoid", IMAGE, lambda n, x: n("HardSigmoid", x, 1 / 6, 0.5), "HSigmoid"),
    ("gelu", IMAGE, gelu, "Gelu"),
    ("gelu", IMAGE, gelu_tanh, "Gelu"),
    ("gelu", IMAGE, gelu_product, "Gelu"),
    ("gelu", IMAGE, gelu_factors, "Gelu"),
    ("mvn", ROWS, mvn, "MVN"),
    ("mvn", IMAGE, mvn_inverse, "MVN"),
    ("normalize-l2", IMAGE, lambda n, x: n(
        "Divide", x, n("Maximum", n.mean(x, [1], "ReduceL2"), 1e-6)), "NormalizeL2"),
    ("normalize-l2", IMAGE, lambda n, x: n("Divide", x, n("Sqrt", n(
        "Add", n.mean(n("Power", x, 2.0), [1], "ReduceSum"), 1e-6))), "NormalizeL2"),
    ("attention", ROWS, attention, "Cos ScaledDotProductAttention Sin"),
    ("attention", ROWS, attention_scaled, "Cos ScaledDotProductAttention Sin"),
    ("scale-into-fake-quantize", IMAGE, scaled_fake, "FakeQuantize"),
    ("reshape-patterns", "?,4,6", dynamic_reshape, "Exp Reshape"),
    ("attention", ROWS, attention_turned,
     "Cos Exp ScaledDotProductAttention Sin Transpose Transpose Transpose"),
    ("linear-chains", ROWS, lambda n, x: n("Multiply", n("Add", n(
        "Multiply", x, n.numbers(16)), n.numbers(16)), n.numbers(16)), "Add Multiply"),
    ("attention", ROWS, attention_bare, "Cos ScaledDotProductAttention Sin"),
    ("batch-norm", IMAGE, lambda n, x: n.norm(n.convolution(x), 4), "Add Convolution"),
    ("batch-norm", IMAGE, lambda n, x: n.norm(
        n("Add", n.convolution(x), n.numbers(1, 4, 1, 1)), 4), "Add Convolution"),
    ("linear-into-batch-norm", IMAGE, lambda n, x: n("Add", n("Multiply", n.norm(
        n("Exp", x), 4), n.numbers(1, 4, 1, 1)), n.numbers(4, 1, 1)), "BatchNormInference Exp"),
    ("scale-into-weights", IMAGE,
     lambda n, x: n("Multiply", n.convolution(x), n.numbers(1, 4, 1, 1)), "Convolution"),
    ("scale-into-weights", IMAGE, lambda n, x: n("Divide", n(
        "Add", n.convolution(x), n.numbers(1, 4, 1, 1)), n.numbers(4, 1, 1)), "Add Convolution"),
    ("scale-into-weights", IMAGE,
     lambda n, x: n.convolution(n("Multiply", x, n.numbers(4, 1, 1)), pad=1), "Convolution"),
    ("scale-into-weights", ROWS, lambda n, x: n("Multiply", n.matmul(
        x, n.numbers(16, 5)), n.numbers(5)), "MatMul"),
    ("scale-into-weights", ROWS, lambda n, x: n.matmul(n(
        "Multiply", x, n.numbers(16)), n.numbers(5, 16), transpose_b=True), "MatMul"),
    ("linear-chains", IMAGE, lambda n, x: n("Subtract", n(
        "Add", x, n.numbers(4, 1, 1)), n.numbers(4, 1, 1)), "Add"),
    ("linear-chains", IMAGE, lambda n, x: n("Multiply", n(
        "Divide", x, n.numbers(4, 1, 1)), 3.0), "Multiply"),
    ("linear-through-movements", ROWS, lambda n, x: n("Multiply", n("Gather", n("Add", n(
        "Multiply", x, n.numbers(16)), n.numbers(16)), 0, 2, opset=8), n.numbers(3, 16)),
     "Add Gather Multiply"),
    ("linear-through-movements", IMAGE, lambda n, x: n("Subtract", n("Transpose", n(
        "Add", x, n.numbers(4, 1, 1)), [0, 2, 3, 1]), n.numbers(4)), "Add Transpose"),
    ("linear-through-movements", ROWS, lambda n, x: n("Divide", n("Transpose", n(
        "Reshape", n("Multiply", x, n.numbers(16)), [2, 24, 16], special_zero=False), [0, 2, 1]),
        n.numbers(16, 1)), "Multiply Reshape Transpose"),
    ("softmax-between-reshapes", "2,1000,1,1", lambda n, x: n("Reshape", n("SoftMax", n(
        "Reshape", x, [2, 1000], special_zero=False), opset=8, axis=-1), [2, 1000, 1, 1],
        special_zero=False), "SoftMax"),
    ("softmax-between-reshapes", ROWS, lambda n, x: n("Reshape", n("LogSoftmax", n(
        "Reshape", x, [6, 8, 16], special_zero=False), opset=5, axis=1), [2, 3, 128],
        special_zero=False), "LogSoftmax Reshape"),
]  # fmt: skip


def two_uses(n: Net, x: ir.Output) -> ir.Output:
    y = n.convolution(x)
    return n("Concat", y, n("Multiply", y, n.numbers(1, 4, 1, 1)), axis=1)


def other_norm(n: Net, x: ir.Output) -> ir.Output:
    """The mean is over other axes than the variance."""
    d = n("Subtract", x, n.mean(x, [-1]))
    spread = n("Sqrt", n("Add", n.mean(n("Power", d, 2.0), [-2]), 1e-5))
    return n("Divide", d, spread)


#: What looks like a pattern and is none: rule, input shape, network.
STAYS: list[tuple[str, str, Callable[[Net, ir.Output], ir.Output]]] = [
    ("scale-into-weights", IMAGE, two_uses),
    ("scale-into-weights", IMAGE,
     lambda n, x: n("Multiply", n.convolution(x), n.numbers(1, 4, 6, 6))),
    ("scale-into-weights", IMAGE,
     lambda n, x: n("Multiply", n.convolution(x, 1), n.numbers(1, 4, 1, 1))),
    ("softmax-between-reshapes", ROWS, lambda n, x: n("Reshape", n("SoftMax", n(
        "Reshape", x, [6, 128], special_zero=False), opset=8, axis=1), [2, 3, 8, 16],
        special_zero=False)),
    # It varies along the axis from which rows are taken; or along one that is cut in two.
    ("linear-through-movements", ROWS, lambda n, x: n("Multiply", n("Gather", n(
        "Multiply", x, n.numbers(16)), [0, 1], 2, opset=8), n.numbers(2, 1))),
    ("linear-through-movements", ROWS, lambda n, x: n("Multiply", n("Reshape", n(
        "Multiply", x, n.numbers(16)), [2, 3, 8, 4, 4], special_zero=False), n.numbers(4))),
    ("neutral-elements", "4,1", lambda n, x: n("Add", x, np.zeros((1, 3)))),
    ("neutral-elements", IMAGE, lambda n, x: n("Subtract", 0.0, x)),
    ("whole-movements", IMAGE,
     lambda n, x: n("Slice", x, [-1], [-7], [-1], [2], opset=8)),
    ("whole-movements", "2,1,6", lambda n, x: n.mean(x, [1], "ReduceL2")),
    ("whole-movements", IMAGE, lambda n, x: n("Gather", x, [0, 1, 3, 2], 1, opset=8)),
    ("whole-movements", "3,3", lambda n, x: n("Transpose", x, [1, 0])),
    ("split-concat", IMAGE,
     lambda n, x: n("Concat", *reversed(list(n("Split", x, 1, num_splits=2))), axis=1)),
    ("split-concat", "4,4",
     lambda n, x: n("Concat", *n("Split", x, 1, num_splits=2), axis=0)),
    ("convert-pairs", IMAGE, lambda n, x: n(
        "Convert", n("Convert", x, destination_type="f16"), destination_type="f32")),
    ("convert-pairs", IMAGE, lambda n, x: n(
        "Convert", n("Convert", x, destination_type="i32"), destination_type="f32")),
    ("softplus", IMAGE, lambda n, x: n("Log", n("Add", n("Exp", x), 2.0))),
    ("swish", IMAGE, lambda n, x: n("Multiply", x, n("Sigmoid", n("Add", x, 1.0)))),
    ("gelu", IMAGE, lambda n, x: n("Multiply", n("Multiply", x, n("Add", n(
        "Erf", n("Divide", x, 2.0)), 1.0)), 0.5)),
    ("hswish", IMAGE, lambda n, x: n("Divide", n("Multiply", x, n("Clamp", n(
        "Add", x, 3.0), min=0.0, max=5.0)), 6.0)),
    ("mvn", "2,3,8,8", other_norm),
    ("normalize-l2", IMAGE, lambda n, x: n(
        "Divide", n("Sin", x), n("Maximum", n.mean(x, [1], "ReduceL2"), 1e-6))),
    ("attention", ROWS, lambda n, x: n.matmul(n("SoftMax", n.matmul(
        x, n("Sin", x), transpose_b=True), opset=8, axis=2), n("Cos", x))),
    ("transpose-into-matmul", "4,4,4",
     lambda n, x: n.matmul(x, n("Transpose", n("Exp", x), [1, 0, 2]))),
    ("shuffle-channels", "2,2,2", lambda n, x: n("Reshape", n("Transpose", n(
        "Reshape", x, [2, 2, 2], special_zero=False), [2, 1, 0]), [2, 2, 2],
        special_zero=False)),
    ("clamp-into-fake-quantize", IMAGE, lambda n, x: fake(n, x, -1.0)),
    ("linear-chains", IMAGE, lambda n, x: n("Add", n(
        "Add", x, n.numbers(1, 4, 1, 1)), n.numbers(1, 1, 6, 6))),
    ("fold-constants", IMAGE, lambda n, x: n("Add", x, n("Broadcast", n.numbers(1), n.value(
        [2, 4, 6, 6]), opset=3, mode="numpy"))),
    ("neutral-elements", "?", lambda n, x: n("Exp", n("Add", x, n.value(np.zeros((1, 1)))))),
    ("slices-into-split", ROWS, lambda n, x: n("Concat", n(
        "Slice", x, [8], [2**62], [1], [3], opset=8), n(
        "Slice", x, [0], [7], [1], [-1], opset=8), axis=3)),
    ("slices-into-split", ROWS, lambda n, x: n("Concat", n(
        "Slice", x, [0], [2**62], [2], [3], opset=8), n(
        "Slice", x, [1], [2**62], [2], [3], opset=8), axis=3)),
    ("uniform-values", IMAGE, tenths),
    ("uniform-values", IMAGE, shared_ones),
    ("broadcast-into-elementwise", "1,4,1,1", lambda n, x: n("Exp", n(
        "Broadcast", x, [2, 4, 6, 6], opset=3, mode="numpy"))),
    ("clamp", IMAGE, lambda n, x: n("Minimum", n("Maximum", x, 2.0), -1.0)),
    ("products-between-reshapes", "3,2,8,16", flat_products),
    ("convolutions-of-split", IMAGE, lambda n, x: convolved_parts(n, x, 2)),
    ("clamp", IMAGE, lambda n, x: n("Minimum", n("Maximum", x, n.numbers(6)), 2.0)),
    ("pad-into-convolution", IMAGE, lambda n, x: padded(n, x, 1.0)),
    ("pad-into-convolution", IMAGE, lambda n, x: n.convolution(n(
        "Pad", x, [0, 1, 0, 0], [0] * 4, pad_mode="constant"))),
    ("select-one-side", IMAGE, lambda n, x: chosen(n, x, (True, True, False, True, True, True))),
    ("transpose-between-reshapes", ROWS, lambda n, x: n("Reshape", n("Transpose", n(
        "Reshape", n("Exp", x), [6, 8, 16], special_zero=False), [2, 1, 0]),
        [16, 8, 2, 3][::-1], special_zero=False)),
    ("matmul-between-reshapes", ROWS, lambda n, x: flat_product(n, x, 6, 3)),
]  # fmt: skip


def network(shape: str, build: Callable[[Net, ir.Output], ir.Output]) -> ir.Model:
    """A model of one input and one output."""
    net = ir.Builder("pattern")
    x = net.parameter("x", "f32", shape)
    net.result(build(Net(net), x).named("inner"), name="y")
    return net.model()


def row_of_patterns(seed: int, length: int = 6) -> ir.Model:
    """A network of random patterns, one after the other, which share tensors here and there."""
    random = np.random.default_rng(seed)
    rows = [row[2] for row in (*APPLIES, *STAYS) if row[1] == IMAGE]
    net = ir.Builder("patterns")
    n = Net(net)
    made = [net.parameter("x", "f32", IMAGE)]
    while len(made) < length:
        x = made[-1] if random.random() < 0.7 else made[int(random.integers(len(made)))]
        y = rows[int(random.integers(len(rows)))](n, x)
        if y.tensor.shape != made[0].tensor.shape:
            continue
        # Bounded, so that an error is none of the numbers' size.
        made.append(n("Tanh", y) if random.random() < 0.5 else n("Add", y, x))
    for number, y in enumerate(made[-2:]):
        net.result(y, name=f"y{number}")
    return net.model()
