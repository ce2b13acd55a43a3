"""Random small networks of other kinds: some are rounded to levels, some work on tokens."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from networks import Drawer
from vinoir import ir

Step = Callable[[ir.Output], ir.Output]


class Rounded(Drawer):
    """Images whose values and weights are rounded to levels, moved, and handed out anywhere."""

    def model(self, *, layers: int = 9, batch: int = 1) -> ir.Model:
        rng = self.rng
        shape = batch, rng.choice([4, 8, 16]), rng.randint(6, 15), rng.randint(6, 15)
        made = [self.rounding(self.net.parameter("x", "f32", shape))]
        steps: list[Step] = [
            self.convolution, self.depthwise, self.pooling, self.scale, self.activation, self.join,
            self.residual, self.gate, self.swap, self.half, self.twice, self.rounding,
        ]  # fmt: skip
        for _ in range(layers):
            y = rng.choice(steps)(rng.choice(made[-3:]))
            made.append(self.rounding(y) if rng.random() < 0.4 else y)
        for number, output in enumerate(rng.sample(made[1:], rng.randint(1, 3))):
            self.net.result(output, name=f"y{number}")
        return self.net.model()

    def constant(self, *shape: int) -> ir.Output:
        weights = super().constant(*shape)
        if len(shape) < 4 or self.rng.random() < 0.2:
            return weights
        sizes = self.rng.choice([(), (1,), (shape[0], *[1] * (len(shape) - 1))])
        most = self.said(np.full(sizes, 1.5, "f4"))
        least = self.net.add("Negative", "opset1", [most]) if self.rng.random() < 0.3 else None
        least = self.said(np.full(sizes, -1.5, "f4")) if least is None else least
        ends = [least, most, least, most]
        return self.net.add("FakeQuantize", "opset1", [weights, *ends], levels=255)

    def said(self, numbers: np.ndarray) -> ir.Output:
        """A constant, or what converters write for one."""
        kind = self.rng.choice(["f4", "f4", "f2", "f8"])
        held = self.net.constant(numbers.astype(kind))
        if kind == "f4":
            return held
        return self.net.add("Convert", "opset1", [held], destination_type="f32")

    def rounding(self, x: ir.Output) -> ir.Output:
        """To levels of one grid, or of one for each channel; from other limits, perhaps."""
        levels, low = self.rng.choice([256, 256, 255, 16]), self.rng.choice([0.0, -2.0, -1.0])
        high = self.rng.choice([2.0, 3.0, 1.0])
        if low and self.rng.random() < 0.7:
            high = -low * (levels // 2 - 1) / (levels // 2)
        each = np.ones((1, 1, 1, 1), "f4")
        if self.rng.random() < 0.2:
            each = self.numbers.uniform(0.5, 1.5, (1, x.tensor.shape.static[1], 1, 1))
        limits = [low, high] + ([low, high] if self.rng.random() < 0.8 else [low / 2, 2 * high])
        ends = [self.net.constant((each * end).astype("f4")) for end in limits]
        return self.net.add("FakeQuantize", "opset1", [x, *ends], levels=levels)

    def swap(self, x: ir.Output) -> ir.Output:
        order = self.rng.choice([(0, 1, 3, 2), (0, 2, 3, 1), (0, 3, 1, 2)])
        return self.net.add("Transpose", "opset1", [x, self.whole(order)])

    def half(self, x: ir.Output) -> ir.Output:
        """Some of the channels: a part of a split, or a slice."""
        count = x.tensor.shape.static[1]
        if count % 2 == 0 and self.rng.random() < 0.5:
            parts = self.net.add("Split", "opset1", [x, self.whole(1)], num_splits=2)
            return parts[self.rng.randint(0, 1)]
        first = self.rng.randint(0, count - 1)
        ends = [self.whole([number]) for number in (first, count, 1, 1)]
        return self.net.add("Slice", "opset8", [x, *ends])

    def twice(self, x: ir.Output) -> ir.Output:
        return self.net.add("Concat", "opset1", [x, x], axis=self.rng.choice([1, -1]))


class Tokens:
    """Rows of numbers: products by weights, attention, norms, and what moves them about."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.net = ir.Builder(f"tokens{seed}")

    def model(self, *, layers: int = 9, batch: int = 1) -> ir.Model:
        rng = self.rng
        shape = batch, rng.choice([1, 5, 16, 49, 77]), rng.choice([16, 24, 32, 64])
        made = [self.net.parameter("x", "f32", shape)]
        steps: list[Step] = [
            self.dense, self.dense, self.norm, self.attention, self.attention, self.gated,
            self.activation, self.turned, self.joined, self.some, self.mean, self.soft,
        ]  # fmt: skip
        for _ in range(layers):
            x = rng.choice(made[-3:])
            y = rng.choice(steps)(x)
            if y.tensor.shape == x.tensor.shape and rng.random() < 0.4:
                y = self.net.add("Add", "opset1", [x, y])
            if max(y.tensor.shape.static) < 300:
                made.append(y)
        for number, output in enumerate(rng.sample(made, min(len(made), rng.randint(1, 3)))):
            self.net.result(output, name=f"y{number}")
        return self.net.model()

    def number(self, value: float) -> ir.Output:
        return self.net.constant(np.array(value, "f4"))

    def row(self, size: int) -> ir.Output:
        return self.net.constant(self.numbers.standard_normal((1, 1, size)).astype("f4"))

    def whole(self, *numbers: int) -> ir.Output:
        return self.net.constant(np.array(numbers, "i8"))

    def product(self, x: ir.Output, made: int) -> ir.Output:
        taken, turned = x.tensor.shape.static[-1], self.rng.random() < 0.6
        weights = self.numbers.standard_normal((made, taken)) / np.sqrt(taken)
        matrix = self.net.constant((weights if turned else weights.T).astype("f4"))
        y = self.net.add("MatMul", "opset1", [x, matrix], transpose_a=False, transpose_b=turned)
        return self.net.add("Add", "opset1", [y, self.row(made)]) if self.rng.random() < 0.8 else y

    def dense(self, x: ir.Output) -> ir.Output:
        y = self.product(x, self.rng.choice([x.tensor.shape.static[-1], 16, 48, 96]))
        return self.activation(y) if self.rng.random() < 0.5 else y

    def activation(self, x: ir.Output) -> ir.Output:
        kind, opset = self.rng.choice(
            [("ReLU", "opset1"), ("Tanh", "opset1"), ("Gelu", "opset7"), ("Swish", "opset4")]
        )
        return self.net.add(kind, opset, [x])

    def norm(self, x: ir.Output) -> ir.Output:
        """A layer's norm, or one by the root of the mean of squares; with what follows."""
        size = x.tensor.shape.static[-1]
        if self.rng.random() < 0.5:
            y = self.net.add(
                "MVN", "opset6", [x, self.whole(-1)], normalize_variance=True, eps=0.01,
                eps_mode="inside_sqrt",
            )  # fmt: skip
        else:
            squares = self.net.add("Power", "opset1", [x, self.number(2)])
            mean = self.net.add("ReduceMean", "opset1", [squares, self.whole(-1)], keep_dims=True)
            more = self.net.add("Add", "opset1", [mean, self.number(0.01)])
            by = self.net.add("Power", "opset1", [more, self.number(-0.5)])
            y = self.net.add("Multiply", "opset1", [x, by])
        y = self.net.add("Multiply", "opset1", [y, self.row(size)])
        return self.net.add("Add", "opset1", [y, self.row(size)]) if self.rng.random() < 0.7 else y

    def attention(self, x: ir.Output) -> ir.Output:
        """In one layer or in several, with a mask, one that is added, or none."""
        batch, count, size = x.tensor.shape.static
        heads = self.rng.choice([n for n in (1, 2, 4) if size % n == 0])
        split = self.whole(batch, count, heads, size // heads)

        def apart(y: ir.Output) -> ir.Output:
            y = self.net.add("Reshape", "opset1", [y, split], special_zero=False)
            return self.net.add("Transpose", "opset1", [y, self.whole(0, 2, 1, 3)])

        q, k, v = (apart(self.product(x, size)) for _ in range(3))
        hidden = self.rng.choice([-np.inf, -100, -1e4])
        seen = np.where(np.tri(count, dtype=bool), 0, hidden).astype("f4")[None, None]
        mask = self.net.constant(seen) if self.rng.random() < 0.5 else None
        if self.rng.random() < 0.5:
            words = [q, k, v, *([] if mask is None else [mask])]
            causal = mask is None and self.rng.random() < 0.5
            y = self.net.add("ScaledDotProductAttention", "opset13", words, causal=causal)
        else:
            y = self.net.add("MatMul", "opset1", [q, k], transpose_a=False, transpose_b=True)
            y = self.net.add("Multiply", "opset1", [y, self.number((size / heads) ** -0.5)])
            y = y if mask is None else self.net.add("Add", "opset1", [y, mask])
            y = self.net.add("SoftMax", "opset8", [y], axis=-1)
            y = self.net.add("MatMul", "opset1", [y, v], transpose_a=False, transpose_b=False)
        y = self.net.add("Transpose", "opset1", [y, self.whole(0, 2, 1, 3)])
        y = self.net.add(
            "Reshape", "opset1", [y, self.whole(batch, count, size)], special_zero=False
        )
        return self.product(y, size)

    def gated(self, x: ir.Output) -> ir.Output:
        """One half of a row by the other."""
        size = x.tensor.shape.static[-1]
        if size % 2:
            return self.activation(x)
        parts = self.net.add(
            "VariadicSplit", "opset1", [x, self.whole(-1), self.whole(size // 2, -1)]
        )
        gate = self.net.add("Sigmoid", "opset1", [parts[0]])
        return self.net.add("Multiply", "opset1", [gate, parts[1]])

    def turned(self, x: ir.Output) -> ir.Output:
        return self.net.add("Transpose", "opset1", [x, self.whole(0, 2, 1)])

    def joined(self, x: ir.Output) -> ir.Output:
        axis = self.rng.choice([1, 2])
        return self.net.add("Concat", "opset1", [x, self.activation(x)], axis=axis)

    def some(self, x: ir.Output) -> ir.Output:
        """Rows that are chosen one by one, or all from one on."""
        count = x.tensor.shape.static[1]
        if self.rng.random() < 0.5:
            chosen = self.numbers.integers(0, count, self.rng.choice([1, 3, count]))
            axis = self.net.constant(np.array(1, "i8"))
            return self.net.add("Gather", "opset8", [x, self.whole(*chosen), axis], batch_dims=0)
        ends = [self.whole(number) for number in (self.rng.randint(0, count - 1), count, 1, 1)]
        return self.net.add("Slice", "opset8", [x, *ends])

    def mean(self, x: ir.Output) -> ir.Output:
        axis = self.rng.choice([1, 2])
        y = self.net.add("ReduceMean", "opset1", [x, self.whole(axis)], keep_dims=True)
        return self.net.add("Subtract", "opset1", [x, y])

    def soft(self, x: ir.Output) -> ir.Output:
        return self.net.add("SoftMax", "opset8", [x], axis=self.rng.choice([-1, 1]))
