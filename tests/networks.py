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
        for _ in range(layers):
            steps = [self.convolution, self.convolution, self.pooling, self.scale, self.activation,
                     self.depthwise, self.join, self.residual]  # fmt: skip
            made.append(rng.choice(steps)(made[-1] if rng.random() < 0.8 else rng.choice(made)))
        self.net.result(made[-1], name="last")
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
        made = self.rng.choice([4, 8, 17, 64, 70])
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
