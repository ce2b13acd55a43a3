"""Random networks of levels in which every sum is exact, so that all programs give every bit.

Images are large enough for the kernels that small ones do not come to: those that share work,
look results up in tables, or work block by block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from vinoir import ir
from vinoir.schemas import Array

from .test_program_bytes import Exact

PLAIN = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}


@dataclass(frozen=True)
class Image:
    """A value of a network; whether it is of levels, which alone are multiplied."""

    value: Any
    rounded: bool

    @property
    def channels(self) -> int:
        return int(self.value.tensor.shape.static[1])

    @property
    def sizes(self) -> tuple[int, int]:
        _, _, height, width = self.value.tensor.shape.static
        return height, width


class Levels:
    """Draws one network: each step takes what some step before it gave."""

    def __init__(self, seed: int) -> None:
        self.net = Exact(seed)
        self.rng = self.net.rng

    def drawn(self, steps: int) -> tuple[ir.Model, list[Array]]:
        """A model of so many steps, and its input."""
        size = 2 * int(self.rng.integers(6, 15))
        shape = int(self.rng.integers(1, 3)), int(self.pick(3, 8, 16, 24)), size, size + 4
        made = [self.rounded(self.net.net.parameter("x", "f32", shape))]
        ways: list[Callable[[Image], Image]] = [
            self.convolution, self.convolution, self.depthwise, self.grouped, self.transposed,
            self.pooling, self.activation, self.activation, self.lookup, self.beside, self.beside,
            self.sum, self.gate, self.halves, self.shuffle, self.turned, self.enlarged, self.again,
        ]  # fmt: skip
        for _ in range(steps):
            recent = made[-4:]
            image = recent[self.rng.integers(len(recent))]
            made.append(self.pick(*ways)(image))
            if self.rng.random() < 0.4 and not made[-1].rounded:
                made.append(self.rounded(made[-1].value))
        wanted = {len(made) - 1, *self.rng.integers(1, len(made), 2).tolist()}
        model = self.net.model(*[made[place].value for place in sorted(wanted)])
        return model, [(self.rng.integers(-300, 300, shape) / 64).astype("f4")]

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def rounded(self, value: Any) -> Image:
        """To levels about zero, from zero on, or about another of them; a step may be larger."""
        if self.rng.random() < 0.25:
            return Image(self.as_onnx_says(value), True)
        power, levels = int(self.pick(3, 4, 5)), int(self.pick(256, 256, 255, 16))
        low = int(self.pick(-(levels // 2), 0, -3))
        ends = [np.float32(end / 2**power) for end in (low, low + levels - 1)]
        held = [self.net.constant(end) for end in ends]
        return Image(self.net.add("FakeQuantize", value, *held, *held, levels=levels), True)

    def as_onnx_says(self, value: Any) -> Any:
        """The same by bytes, an even one of which is zero: halves fall to the same side."""
        kind, zero = self.pick(("u8", 128), ("u8", 0), ("u8", 4), ("i8", 0), ("i8", -6))
        scale, point = self.net.constant(np.float32(0.5) ** 5), self.net.constant(np.float32(zero))
        low = 0 if kind == "u8" else -128
        y = self.net.add("Divide", value, scale)
        y = self.net.add("Round", y, opset="opset5", mode="half_to_even")
        y = self.net.add("Clamp", self.net.add("Add", y, point), min=low, max=low + 255)
        y = self.net.add("Convert", y, destination_type=kind)
        y = self.net.add("Convert", y, destination_type="f32")
        return self.net.add("Multiply", self.net.add("Subtract", y, point), scale)

    def levels(self, image: Image) -> Image:
        return image if image.rounded else self.rounded(image.value)

    def biased(self, value: Any) -> Any:
        if self.rng.random() < 0.3:
            return value
        channels = value.tensor.shape.static[1]
        bias = self.net.constant(self.rng.integers(-64, 64, (1, channels, 1, 1)) / 32)
        return self.net.add("Add", value, bias)

    def convolution(self, image: Image) -> Image:
        image, outer = self.levels(image), int(self.pick(8, 16, 24, 33))
        size = int(self.pick(1, 3))
        weights = self.net.matrix(outer, image.channels, size, size)
        words = dict(PLAIN, strides=[int(self.pick(1, 1, 2)) if min(image.sizes) > 12 else 1] * 2)
        if size == 3:
            apart = int(self.pick(1, 2))
            words |= {"dilations": [apart] * 2, "pads_begin": [apart] * 2, "pads_end": [apart] * 2}
        return Image(
            self.biased(self.net.add("Convolution", image.value, weights, **words)), False
        )

    def grouped(self, image: Image) -> Image:
        image, groups = self.levels(image), 2
        if image.channels % groups:
            return self.convolution(image)
        inner = image.channels // groups
        weights = self.net.matrix(groups * int(self.pick(4, 16)), inner, 3, 3)
        _, *rest = weights.tensor.shape.static
        split = self.net.constant([groups, -1, *rest], "i64")
        weights = self.net.add("Reshape", weights, split, special_zero=False)
        words = PLAIN | {"pads_begin": [1, 1], "pads_end": [1, 1]}
        return Image(
            self.biased(self.net.add("GroupConvolution", image.value, weights, **words)), False
        )

    def depthwise(self, image: Image) -> Image:
        image, size = self.levels(image), int(self.pick(3, 5))
        shape = image.channels, 1, 1, size, size
        weights = self.net.constant(self.rng.integers(-9, 10, shape) / 64)
        words = PLAIN | {"pads_begin": [size // 2] * 2, "pads_end": [size // 2] * 2}
        words["strides"] = [int(self.pick(1, 2)) if min(image.sizes) > 12 else 1] * 2
        return Image(
            self.biased(self.net.add("GroupConvolution", image.value, weights, **words)), False
        )

    def transposed(self, image: Image) -> Image:
        image = self.levels(image)
        if max(image.sizes) > 32:
            return self.convolution(image)
        size = int(self.pick(2, 4))
        numbers = self.rng.integers(-9, 10, (image.channels, int(self.pick(4, 8)), size, size))
        words = PLAIN | {"strides": [2, 2], "pads_begin": [size // 2 - 1] * 2}
        words |= {"pads_end": [size // 2 - 1] * 2, "output_padding": [0, 0]}
        weights = self.net.constant(numbers / 64)
        return Image(self.net.add("ConvolutionBackpropData", image.value, weights, **words), False)

    def pooling(self, image: Image) -> Image:
        image = self.levels(image)
        if min(image.sizes) < 8:
            return self.activation(image)
        words = {"kernel": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0], "strides": [2, 2]}
        if self.rng.random() < 0.3:
            value = self.net.add("AvgPool", image.value, **words, exclude_pad="true")
            return Image(value, False)
        if self.rng.random() < 0.5:
            words = dict(words, kernel=[3, 3], pads_begin=[1, 1], pads_end=[1, 1])
            words["strides"] = [int(self.pick(1, 2))] * 2
        return Image(self.net.add("MaxPool", image.value, **words), True)

    def activation(self, image: Image) -> Image:
        kind = self.pick("ReLU", "Abs", "Clamp", "Negative", "PReLU", "Multiply")
        words = {"min": -1, "max": 2} if kind == "Clamp" else {}
        slopes = {"PReLU": 0.5, "Multiply": 2.0}.get(kind)
        others = [] if slopes is None else [self.net.constant(np.full(1, slopes, "f4"))]
        if image.rounded or kind != "Multiply":
            return Image(self.net.add(kind, image.value, *others, **words), False)
        return self.rounded(image.value)

    def lookup(self, image: Image) -> Image:
        """What a table of levels is made for: several steps that end with levels."""
        image = self.levels(image)
        y = image.value
        for _ in range(int(self.rng.integers(1, 3))):
            y = self.rounded(self.net.add("Multiply", y, self.pick(image.value, y))).value
        return Image(y, True)

    def alike(self, image: Image, *, channels: bool) -> list[Image]:
        """What may lie beside an image: of its sizes, perhaps of as many channels."""
        height, width = image.sizes
        words = PLAIN | {"pads_begin": [1, 1], "pads_end": [1, 1]}
        outer = image.channels if channels else int(self.pick(4, 16))
        levels = self.levels(image)
        weights = self.net.matrix(outer, image.channels, 3, 3)
        other = self.net.add("Convolution", levels.value, weights, **words)
        assert other.tensor.shape.static[2:] == (height, width)
        return [Image(other, False), *([image] if channels else [])]

    def beside(self, image: Image) -> Image:
        others = self.alike(image, channels=False)
        some = [image, self.pick(*others), *([self.rounded(image.value)] * self.pick(0, 1))]
        self.rng.shuffle(some)  # type: ignore[arg-type]  # lists may be shuffled
        values = [one.value for one in some]
        return Image(self.net.add("Concat", *values, axis=int(self.pick(1, -3))), False)

    def sum(self, image: Image) -> Image:
        other = self.levels(self.pick(*self.alike(image, channels=True)))
        kind = self.pick("Add", "Add", "Subtract", "Maximum", "Multiply")
        return Image(self.net.add(kind, self.levels(image).value, other.value), False)

    def gate(self, image: Image) -> Image:
        image = self.levels(image)
        axes = self.net.constant([2, 3], "i64")
        mean = self.net.add("ReduceMax", image.value, axes, keep_dims=True)
        weights = self.net.matrix(image.channels, image.channels, 1, 1)
        y = self.net.add("Convolution", mean, weights, **PLAIN)
        y = self.rounded(self.net.add("Clamp", self.biased(y), min=0, max=4))
        return Image(self.net.add("Multiply", image.value, y.value), False)

    def halves(self, image: Image) -> Image:
        if image.channels % 2:
            return self.beside(image)
        parts = self.net.add("Split", image.value, self.net.constant(1, "i64"), num_splits=2)
        one, other = (Image(part, image.rounded) for part in (parts[0], parts[1]))
        if self.rng.random() < 0.5:
            one = self.pick(self.depthwise, self.activation, self.lookup)(one)
        if one.sizes != other.sizes:
            return one
        together = self.net.add("Concat", one.value, other.value, axis=1)
        return Image(together, one.rounded and other.rounded)

    def shuffle(self, image: Image) -> Image:
        if image.channels % 2:
            return self.activation(image)
        groups = [0, 2, image.channels // 2, *image.sizes]
        apart = self.net.constant(groups, "i64")
        y = self.net.add("Reshape", image.value, apart, special_zero=True)
        y = self.net.add("Transpose", y, self.net.constant([0, 2, 1, 3, 4], "i64"))
        back = self.net.constant([0, image.channels, *image.sizes], "i64")
        return Image(self.net.add("Reshape", y, back, special_zero=True), image.rounded)

    def turned(self, image: Image) -> Image:
        """Something in the other layout, as TensorFlow has images."""
        last = self.net.constant([0, 2, 3, 1], "i64")
        y = self.net.add("Transpose", image.value, last)
        rounded = image.rounded
        if self.rng.random() < 0.6:
            y, rounded = self.net.add(self.pick("ReLU", "Abs"), y), False
        if self.rng.random() < 0.6:
            y, rounded = self.rounded(y).value, True
        return Image(self.net.add("Transpose", y, self.net.constant([0, 3, 1, 2], "i64")), rounded)

    def enlarged(self, image: Image) -> Image:
        image = self.levels(image)
        if max(image.sizes) > 32:
            return self.pooling(image)
        words = {"shape_calculation_mode": "scales", "antialias": False, "cube_coeff": -0.75}
        words |= {"pads_begin": [0], "pads_end": [0], "nearest_mode": "floor"}
        mode = str(self.pick("nearest", "linear_onnx"))
        ways = {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
        sizes = self.net.constant([2 * size for size in image.sizes], "i64")
        scales, axes = self.net.constant([2.0, 2.0]), self.net.constant([2, 3], "i64")
        y = self.net.add(
            "Interpolate", image.value, sizes, scales, axes, opset="opset4", **words, **ways
        )
        return Image(y, image.rounded and mode == "nearest")

    def again(self, image: Image) -> Image:
        return self.rounded(image.value)
