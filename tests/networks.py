"""Random small networks of images, for comparing the ways to run them."""

from __future__ import annotations

import random

import numpy as np
from vinoir import ir


class Drawer:
    """Draws a network layer by layer; every choice comes from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.net = ir.Builder(f"random{seed}")

    def model(self, *, layers: int = 8, batch: int = 1) -> ir.Model:
        rng = self.rng
        axes = rng.choice([2, 2, 2, 1])
        sizes = [rng.randint(6, 19) for _ in range(axes)]
        x = self.net.parameter("x", "f32", (batch, rng.choice([1, 3, 8]), *sizes))
        made = [x]
        planar = rng.random() < 0.15
        for _ in range(layers):
            steps = [self.convolution, self.convolution, self.pooling, self.scale, self.activation,
                     self.depthwise, self.join, self.residual, self.shuffle, self.dense,
                     self.response, self.gate, self.transition]  # fmt: skip
            if planar:
                steps = [self.pooling, self.pooling, self.activation, self.scale, self.residual]
            made.append(rng.choice(steps)(made[-1] if rng.random() < 0.8 else rng.choice(made)))
        last = made[-1] if rng.random() < 0.8 else self.head(made[-1])
        self.net.result(last, name="last")
        if rng.random() < 0.3:
            self.net.result(rng.choice(made[1:]), name="another")
        return self.net.model()

    def constant(self, *shape: int) -> ir.Output:
        # Sane scales: a network whose values explode tells nothing of the way it was run.
        fan_in = max(1, int(np.prod(shape[1:])) if len(shape) > 2 else 1)
        numbers = self.numbers.standard_normal(shape) / np.sqrt(fan_in)
        return self.net.constant(numbers.astype("f4"))

    def window(self, axes: int) -> dict[str, object]:
        same = self.rng.random() < 0.3
        return {
            "strides": tuple(self.rng.choice([1, 1, 2]) for _ in range(axes)),
            "pads_begin": tuple(self.rng.randint(0, 1) for _ in range(axes)),
            "pads_end": tuple(self.rng.randint(0, 1) for _ in range(axes)),
            "auto_pad": self.rng.choice(["same_upper", "same_lower"]) if same else "explicit",
        }

    def convolution(self, x: ir.Output) -> ir.Output:
        shape = x.tensor.shape.static
        axes, given = len(shape) - 2, shape[1]
        made = self.rng.choice([4, 8, 17, 64, 70, 128])
        kernel = [self.rng.choice([1, 1, 3, 3, 2]) for _ in range(axes)]
        if self.rng.random() < 0.3:
            kernel = [3] * axes
        window = self.window(axes)
        dilations = tuple(self.rng.choice([1, 1, 1, 2]) for _ in range(axes))
        reaches = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        if any(r > n for r, n in zip(reaches, shape[2:], strict=True)):
            return self.activation(x)
        return self.net.add(
            "Convolution", "opset1", [x, self.constant(made, given, *kernel)],
            dilations=dilations, **window,
        )  # fmt: skip

    def depthwise(self, x: ir.Output) -> ir.Output:
        shape = x.tensor.shape.static
        axes, given = len(shape) - 2, shape[1]
        groups = self.rng.choice([g for g in (given, 2, 4) if given % g == 0] or [given])
        if min(shape[2:]) < 3:
            return self.activation(x)
        weights = self.constant(groups, self.rng.randint(1, 3), given // groups, *[3] * axes)
        return self.net.add(
            "GroupConvolution", "opset1", [x, weights], dilations=(1,) * axes, **self.window(axes)
        )

    def pooling(self, x: ir.Output) -> ir.Output:
        shape = x.tensor.shape.static
        axes = len(shape) - 2
        kernel = tuple(self.rng.randint(2, min(6, max(2, *shape[2:]))) for _ in range(axes))
        if any(k > n for k, n in zip(kernel, shape[2:], strict=True)):
            return self.activation(x)
        words = {**self.window(axes), "kernel": kernel}
        words["rounding_type"] = self.rng.choice(["floor", "ceil_torch"])
        if self.rng.random() < 0.5:
            return self.net.add("MaxPool", "opset14", [x], **words)[0]
        words["data"] = {"exclude-pad": self.rng.choice(["true", "false"])}
        return self.net.add("AvgPool", "opset14", [x], **words)

    def scale(self, x: ir.Output) -> ir.Output:
        shape = x.tensor.shape.static
        each = self.constant(1, shape[1], *[1] * (len(shape) - 2))
        pair = [x, each] if self.rng.random() < 0.7 else [each, x]
        return self.net.add(self.rng.choice(["Add", "Multiply", "Subtract"]), "opset1", pair)

    def activation(self, x: ir.Output) -> ir.Output:
        kind = self.rng.choice(["ReLU", "Sigmoid", "Tanh", "Clamp", "HSwish"])
        version = "opset4" if kind == "HSwish" else "opset1"
        words = {"min": -1.0, "max": 2.0} if kind == "Clamp" else {}
        return self.net.add(kind, version, [x], **words)

    def residual(self, x: ir.Output) -> ir.Output:
        y = self.net.add("Multiply", "opset1", [x, self.constant()])
        if self.rng.random() < 0.5:
            y = self.activation(y)
        return self.net.add(self.rng.choice(["Add", "Maximum"]), "opset1", [x, y])

    def join(self, x: ir.Output) -> ir.Output:
        parts = [x, self.activation(x)]
        if self.rng.random() < 0.5:
            shape = x.tensor.shape.static
            axes = len(shape) - 2
            none = (0,) * axes
            parts.append(
                self.net.add(
                    "Convolution", "opset1", [x, self.constant(5, shape[1], *[1] * axes)],
                    strides=(1,) * axes, dilations=(1,) * axes, pads_begin=none, pads_end=none,
                )
            )  # fmt: skip
        return self.net.add("Concat", "opset1", parts, axis=1)

    def plain(self, x: ir.Output, made: int) -> ir.Output:
        """A 1x1 convolution with a bias."""
        shape = x.tensor.shape.static
        axes = len(shape) - 2
        none, ones = (0,) * axes, (1,) * axes
        y = self.net.add(
            "Convolution", "opset1", [x, self.constant(made, shape[1], *ones)],
            strides=ones, dilations=ones, pads_begin=none, pads_end=none,
        )  # fmt: skip
        return self.net.add("Add", "opset1", [y, self.constant(1, made, *ones)])

    def shuffle(self, x: ir.Output) -> ir.Output:
        """Channels dealt out in turn, said in one layer or in three, perhaps after a product."""
        if self.rng.random() < 0.5:
            x = self.activation(self.plain(x, self.rng.choice([8, 12])))
        shape = x.tensor.shape.static
        groups = self.rng.choice([g for g in (2, 4, 1) if shape[1] % g == 0])
        if self.rng.random() < 0.5:
            return self.net.add("ShuffleChannels", "opset3", [x], axis=1, group=groups)
        split = [shape[0], groups, shape[1] // groups, *shape[2:]]
        order = [0, 2, 1, *range(3, len(split))]
        y = self.net.add("Reshape", "opset1", [x, self.whole(split)], special_zero=False)
        y = self.net.add("Transpose", "opset1", [y, self.whole(order)])
        return self.net.add("Reshape", "opset1", [y, self.whole(shape)], special_zero=False)

    def whole(self, numbers: object) -> ir.Output:
        """A constant of integers."""
        return self.net.constant(np.array(numbers, "i8"))

    def dense(self, x: ir.Output) -> ir.Output:
        """A layer of a dense block: what came in, and what was made of it, side by side."""
        y = self.net.add("ReLU", "opset1", [self.scale(self.scale(x))])
        return self.net.add("Concat", "opset1", [x, self.plain(y, 6)], axis=1)

    def transition(self, x: ir.Output) -> ir.Output:
        """A 1x1 convolution, then an average that leaves fewer places."""
        axes = len(x.tensor.shape.static) - 2
        if min(x.tensor.shape.static[2:]) < 2:
            return x
        y = self.net.add(
            "AvgPool", "opset1", [self.plain(x, 7)], kernel=(2,) * axes, strides=(2,) * axes,
            pads_begin=(0,) * axes, pads_end=(0,) * axes, rounding_type="floor",
            data={"exclude-pad": "true"},
        )  # fmt: skip
        return self.activation(y)

    def response(self, x: ir.Output) -> ir.Output:
        words = {"alpha": 0.5, "beta": 0.75, "bias": 2.0, "size": self.rng.choice([1, 3, 5])}
        return self.net.add("LRN", "opset1", [x, self.whole([1])], **words)

    def gate(self, x: ir.Output) -> ir.Output:
        """Channels weighed by what is on average in them."""
        y = self.net.add("Sigmoid", "opset1", [self.mean(x)])
        return self.net.add("Multiply", "opset1", [x, y])

    def mean(self, x: ir.Output) -> ir.Output:
        axes = list(range(2, len(x.tensor.shape.static)))
        return self.net.add("ReduceMean", "opset1", [x, self.whole(axes)], keep_dims=True)

    def head(self, x: ir.Output) -> ir.Output:
        """What classifiers end with."""
        shape = x.tensor.shape.static
        flat = self.net.add(
            "Reshape", "opset1", [self.mean(x), self.whole([shape[0], -1])], special_zero=False
        )
        weights = self.constant(10, shape[1])
        y = self.net.add("MatMul", "opset1", [flat, weights], transpose_a=False, transpose_b=True)
        return self.net.add("SoftMax", "opset1", [y], axis=1)
