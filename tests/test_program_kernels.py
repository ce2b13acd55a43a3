"""Every prepared kernel gives what the definition gives, drawn at random."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine.kernels import pointwise
from vinoir.ir.engine.memory.arena import allocate
from vinoir.schemas import Array

Net: TypeAlias = "Draw"
DRAWS = int(os.environ.get("VINOIR_KERNELS", "12"))


LATER = {"HSwish": "opset4", "Mish": "opset4", "HSigmoid": "opset5", "Swish": "opset4"}
FOLLOWERS = (
    "Add", "Multiply", "Gelu", "Sigmoid", "Tanh", "ReLU", "Clamp", "Elu", "PReLU", "more", *LATER,
)  # fmt: skip


class Draw:
    """A small network under way: numbers at random, and what may stand around a kernel."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.net = ir.Builder()
        self._inputs = 0

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *choices: Any) -> Any:
        return choices[self.number(0, len(choices) - 1)]

    def array(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype("f4")

    def input(self, *shape: int) -> ir.builder.Output:
        self._inputs += 1
        return self.net.parameter(f"x{self._inputs}", "f32", shape)

    def constant(self, values: Any) -> ir.builder.Output:
        return self.net.constant(np.asarray(values))

    def add(self, kind: str, version: str, *inputs: Any, **words: Any) -> ir.builder.Output:
        return self.net.add(kind, version, list(inputs), **words)

    def sizes(self, x: ir.builder.Output) -> tuple[int, ...]:
        return x.tensor.shape.static

    def image(self, axes: int, channels: int | None = None) -> ir.builder.Output:
        """An image (or row, or volume), perhaps with neighbours that keep channels last."""
        given = self.number(1, 9) if channels is None else channels
        sizes = [self.number(3, 9) for _ in range(axes)]
        x = self.input(self.number(1, 3), given, *sizes)
        if self.chance():
            weights = self.array(given, given, *[1] * axes) / given
            x = self.add("Convolution", "opset1", x, self.constant(weights), **windows(axes))
        return x

    def surrounded(self, x: ir.builder.Output, place: bool = True) -> ir.builder.Output:
        """Some followers: those that are computed together with a kernel."""
        for _ in range(self.number(0, 3)):
            shape = self.sizes(x)
            kind = self.pick(*FOLLOWERS)
            if kind in ("Add", "Multiply"):
                other = [size if self.chance() else 1 for size in shape]
                value = self.array(*other)
                x = self.add(
                    kind, "opset1", x, self.constant(value) if self.chance() else self._fed(value)
                )
            elif kind == "Gelu":
                x = self.add(kind, "opset7", x, approximation_mode=self.pick("ERF", "TANH"))
            elif kind == "Clamp":
                x = self.add(kind, "opset1", x, min=-0.5, max=0.75)
            elif kind in LATER:
                x = self.add(kind, LATER[kind], x)
            elif kind == "Elu":
                x = self.add(kind, "opset1", x, alpha=0.5)
            elif kind == "PReLU":
                slopes = self.array(*self.pick((1,), shape[1:2] if len(shape) > 1 else (1,)))
                x = self.add(kind, "opset1", x, self.constant(slopes))
            elif kind == "more":
                x = self.add("Add", "opset1", x, self.input(*shape))
            else:
                x = self.add(kind, "opset1", x)
        return x

    def _fed(self, value: Array) -> ir.builder.Output:
        return self.input(*value.shape)

    def check(self, *results: ir.builder.Output) -> None:
        for number, result in enumerate(results):
            self.net.result(result, name=f"y{number}")
        model = self.net.model()
        inferred = ir.infer(model)
        feeds = [
            [self.array(*inferred.of(p)[0].shape.static) for p in model.parameters]
            for _ in range(2)
        ]
        for threads in (1, 2, 3):
            program = ir.compile(model, threads=threads)
            for given in (*feeds, feeds[0]):
                wanted = ir.run(model, given)
                for name, found in program(given).items():
                    scale = max(float(np.abs(np.nan_to_num(wanted[name])).max(initial=0)), 1e-6)
                    np.testing.assert_allclose(
                        found, wanted[name], rtol=1e-4, atol=1e-5 * scale, strict=True
                    )


def windows(axes: int, **words: Any) -> dict[str, Any]:
    ones, none = (1,) * axes, (0,) * axes
    return {"strides": ones, "dilations": ones, "pads_begin": none, "pads_end": none, **words}


def matmul(draw: Draw) -> None:
    """Stacks of matrices, broadcast, turned, constant or not, wide and narrow."""
    stack = [draw.number(1, 3) for _ in range(draw.number(0, 2))]
    rows, deep, columns = draw.number(1, 40), draw.number(1, 40), draw.pick(1, 5, 32, 64, 192)
    turns = {"transpose_a": draw.chance(), "transpose_b": draw.chance()}
    left = (deep, rows) if turns["transpose_a"] else (rows, deep)
    right = (columns, deep) if turns["transpose_b"] else (deep, columns)
    fewer = [size if draw.chance(0.7) else 1 for size in stack]
    a = draw.input(*stack, *left)
    if draw.chance(0.3):
        order = [*range(len(stack)), len(stack) + 1, len(stack)]
        a = draw.add("Transpose", "opset1", draw.input(*stack, *left[::-1]), draw.constant(order))
    kind = draw.pick("weights", "constant", "input")
    if kind == "weights":
        b = draw.constant(draw.array(*right))
    elif kind == "constant":
        b = draw.constant(draw.array(*fewer, *right))
    else:
        b = draw.input(*fewer, *right)
    draw.check(draw.surrounded(draw.add("MatMul", "opset1", a, b, **turns)))


def attention(draw: Draw) -> None:
    """Heads cut out of rows and put together again: views all the way."""
    batch, length, heads, each = draw.number(1, 2), draw.number(1, 20), draw.number(1, 4), 8
    x = draw.input(batch, length, heads * each)

    def cut(order: tuple[int, ...]) -> ir.builder.Output:
        weights = draw.constant(draw.array(heads * each, heads * each) / 8)
        y = draw.add("MatMul", "opset1", x, weights, transpose_a=False, transpose_b=draw.chance())
        pattern = draw.constant([0, 0, heads, each])
        y = draw.add("Reshape", "opset1", y, pattern, special_zero=True)
        return draw.add("Transpose", "opset1", y, draw.constant(order))

    turns = {"transpose_a": False, "transpose_b": False}
    scores = draw.add("MatMul", "opset1", cut((0, 2, 1, 3)), cut((0, 2, 3, 1)), **turns)
    scores = draw.add("SoftMax", "opset8", draw.surrounded(scores), axis=draw.pick(-1, 3, 2, 1))
    y = draw.add("MatMul", "opset1", scores, cut((0, 2, 1, 3)), **turns)
    y = draw.add("Transpose", "opset1", y, draw.constant([0, 2, 1, 3]))
    y = draw.add("Reshape", "opset1", y, draw.constant([0, 0, -1]), special_zero=True)
    normal = draw.add(
        "MVN", "opset6", draw.add("Add", "opset1", x, y), draw.constant([draw.pick(-1, 2, 1)]),
        normalize_variance=draw.chance(0.8), eps=1e-6,
        eps_mode=draw.pick("INSIDE_SQRT", "OUTSIDE_SQRT"),
    )  # fmt: skip
    draw.check(normal, y)


def rows(draw: Draw) -> None:
    """What joins along axes, of images with channels first and last."""
    rank = draw.number(1, 5)
    x = draw.image(rank - 2) if rank > 2 else draw.input(*(draw.number(1, 9) for _ in range(rank)))
    if draw.chance(0.3):  # in whose memory the axes have another order
        x = draw.add("Transpose", "opset1", x, draw.constant(draw.rng.permutation(rank)))
    axes = sorted({draw.number(-rank, rank - 1) % rank for _ in range(draw.number(1, rank))})
    kind = draw.pick(
        "SoftMax", "MVN", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"
    )
    if kind == "SoftMax":
        y = draw.add(kind, "opset8", x, axis=draw.number(-rank, rank - 1))
    elif kind == "MVN":
        y = draw.add(
            kind, "opset6", x, draw.constant(axes), normalize_variance=draw.chance(0.8), eps=1e-5,
            eps_mode=draw.pick("INSIDE_SQRT", "OUTSIDE_SQRT"),
        )  # fmt: skip
    else:
        y = draw.add(kind, "opset1", x, draw.constant(axes), keep_dims=draw.chance())
    draw.check(draw.surrounded(y))


def cutting(draw: Draw) -> None:
    """Splits, slices, turns and reshapes, one after the other, and what reads their outputs."""
    x = draw.surrounded(draw.image(draw.number(1, 3), draw.pick(2, 4, 6)))
    results = []
    for _ in range(draw.number(1, 4)):
        shape = draw.sizes(x)
        kind = draw.pick("Split", "Slice", "Transpose", "Reshape", "Unsqueeze", "Pad", "Concat")
        if kind == "Split":
            axis = draw.pick(*[i for i, size in enumerate(shape) if size > 1] or [0])
            cut = draw.number(1, shape[axis]) if shape[axis] > 1 else 1
            lengths = [cut, shape[axis] - cut]
            pieces = draw.add(
                "VariadicSplit", "opset1", x, draw.constant(np.int64(axis)), draw.constant(lengths)
            )
            results.append(draw.surrounded(pieces[1]))
            x = pieces[0]
        elif kind == "Slice":
            axis = draw.number(0, len(shape) - 1)
            ends = draw.pick((0, 10**6, 2), (-1, -(10**6), -1), (1, 10**6, 1), (0, -1, 1))
            if shape[axis] > 1:
                words = [draw.constant([end]) for end in (*ends, axis)]
                x = draw.add("Slice", "opset8", x, *words)
        elif kind == "Transpose":
            x = draw.add("Transpose", "opset1", x, draw.constant(draw.rng.permutation(len(shape))))
        elif kind == "Reshape":
            pattern = draw.pick([-1], [0, -1], [shape[0], 1, -1], [0, -1, shape[-1]])
            pattern = pattern if len(shape) > 1 else [-1]
            x = draw.add("Reshape", "opset1", x, draw.constant(pattern), special_zero=True)
        elif kind == "Unsqueeze" and len(shape) < 6:
            x = draw.add("Unsqueeze", "opset1", x, draw.constant([draw.number(0, len(shape))]))
        elif kind == "Pad":
            margins = [[draw.number(0, 2) for _ in shape] for _ in range(2)]
            fill = draw.constant(np.float32(0.5))
            words = [*map(draw.constant, margins), fill]
            x = draw.add("Pad", "opset1", x, *words, pad_mode="constant")
        elif kind == "Concat":
            others = [x, draw.input(*shape), draw.constant(draw.array(*shape))]
            x = draw.add("Concat", "opset1", *others, axis=draw.number(0, len(shape) - 1))
        if draw.chance(0.3):
            x = draw.surrounded(x)
    draw.check(x, *results)


def joining(draw: Draw) -> None:
    """Concatenations that are written in place, of each other's outputs."""
    axes = draw.number(1, 3)
    x = draw.image(axes, 4)
    shape = draw.sizes(x)
    axis = draw.pick(0, 1, len(shape) - 1)
    pieces = [draw.add("ReLU", "opset1", x), draw.add("Tanh", "opset1", x)]
    both = draw.add("Concat", "opset1", *pieces, axis=axis)
    more = draw.add("Concat", "opset1", both, draw.surrounded(pieces[0]), axis=axis)
    pattern = draw.constant([-1, shape[-1]])
    flat = draw.add("Reshape", "opset1", draw.pick(both, more), pattern, special_zero=False)
    draw.check(draw.surrounded(more), flat)


def gather(draw: Draw) -> None:
    """Rows of a table; some indices count from the end, some are evenly spaced."""
    shape = [draw.number(2, 7) for _ in range(draw.number(1, 3))]
    axis = draw.number(0, len(shape) - 1)
    low = draw.pick(0, -shape[axis])
    indices = draw.rng.integers(low, shape[axis], [draw.number(1, 5)] * draw.number(0, 2))
    if draw.chance(0.3):
        indices = np.arange(draw.number(0, shape[axis] - 1), shape[axis], draw.number(1, 2))
    where = draw.constant(np.int64(axis))
    y = draw.add("Gather", "opset8", draw.input(*shape), draw.constant(indices), where)
    draw.check(draw.surrounded(y))


def volumes(draw: Draw) -> None:
    """Convolutions of rows and volumes, in groups or not, padded, with strides and dilations."""
    axes = draw.pick(1, 3, 3)
    groups = draw.pick(1, 1, 2, 3, 9)
    given, made = groups * draw.number(1, 4), groups * draw.number(1, 9)
    x = draw.image(axes, given)
    kernel = [draw.number(1, 3) for _ in range(axes)]
    words = {
        name: [draw.number(low, 2) for _ in range(axes)]
        for name, low in (("strides", 1), ("dilations", 1), ("pads_begin", 2), ("pads_end", 1))
    }
    if groups > 1:
        weights = draw.array(groups, made // groups, given // groups, *kernel)
        y = draw.add("GroupConvolution", "opset1", x, draw.constant(weights), **words)
    else:
        y = draw.add(
            "Convolution", "opset1", x, draw.constant(draw.array(made, given, *kernel)), **words
        )
    bias = draw.array(1, made, *[1] * axes)
    draw.check(draw.surrounded(draw.add("Add", "opset1", y, draw.constant(bias))))


def transposed(draw: Draw) -> None:
    """Convolutions the other way round, of rows, images and volumes."""
    axes = draw.pick(1, 2, 2, 2, 3)
    groups = draw.pick(1, 1, 2, 10)
    depthwise = groups == 10
    given, made = (1, 1) if depthwise else (draw.number(1, 4), draw.number(1, 5))
    x = draw.image(axes, groups * given)
    kernel = [draw.number(1, 4) for _ in range(axes)]
    strides, dilations = ([draw.number(1, 3) for _ in range(axes)] for _ in range(2))
    reach = [(size - 1) * gap + 1 for size, gap in zip(kernel, dilations, strict=True)]
    words = {
        "strides": strides, "dilations": dilations,
        "pads_begin": [draw.number(0, (size - 1) // 2) for size in reach],
        "pads_end": [draw.number(0, (size - 1) // 2) for size in reach],
        "output_padding": [draw.number(0, stride - 1) for stride in strides],
    }  # fmt: skip
    weights = draw.array(given, made, *kernel)
    if groups == 1:
        y = draw.add("ConvolutionBackpropData", "opset1", x, draw.constant(weights), **words)
    else:
        weights = draw.array(groups, given, made, *kernel)
        y = draw.add("GroupConvolutionBackpropData", "opset1", x, draw.constant(weights), **words)
    bias = draw.array(1, groups * made, *[1] * axes)
    draw.check(draw.surrounded(draw.add("Add", "opset1", y, draw.constant(bias))))


def pooling(draw: Draw) -> None:
    """Poolings of rows, images and volumes."""
    axes = draw.number(1, 3)
    x = draw.image(axes, draw.number(1, 5))
    kernel = [draw.number(1, 3) for _ in range(axes)]
    words = {
        "kernel": kernel,
        "strides": [draw.number(1, size) for size in kernel],
        "pads_begin": [draw.number(0, size - 1) for size in kernel],
        "pads_end": [draw.number(0, size - 1) for size in kernel],
        "rounding_type": draw.pick("floor", "ceil"),
    }
    if draw.chance():
        y = draw.add("MaxPool", "opset1", x, **words)
    else:
        y = draw.add(
            "AvgPool", "opset1", x, data={"exclude-pad": draw.pick("true", "false")}, **words
        )
    draw.check(draw.surrounded(y))


def response(draw: Draw) -> None:
    """Channels weighed by their neighbours, of which there may be few."""
    words = {
        "alpha": draw.pick(0.5, 0.0), "beta": draw.pick(0.75, 0.75, 0.5, 1.0),
        "bias": draw.pick(2.0, 0.1), "size": draw.number(1, 6),
    }  # fmt: skip
    x = draw.image(2, draw.number(1, 12))
    draw.check(draw.surrounded(draw.add("LRN", "opset1", x, draw.constant([1]), **words)))


def enlarging(draw: Draw) -> None:
    """Images whose pixels are repeated."""
    x = draw.image(2)
    times = [draw.number(1, 3), draw.number(1, 3)]
    sizes = [size * n for size, n in zip(draw.sizes(x)[2:], times, strict=True)]
    y = draw.add(
        "Interpolate", "opset4", x, draw.constant(sizes), draw.constant(np.array(times, "f4")),
        draw.constant([2, 3]), mode="nearest", shape_calculation_mode=draw.pick("sizes", "scales"),
        coordinate_transformation_mode=draw.pick("asymmetric", "half_pixel", "align_corners"),
        nearest_mode=draw.pick("floor", "round_prefer_floor", "simple"), antialias=False,
        pads_begin=(0,), pads_end=(0,), cube_coeff=-0.75,
    )  # fmt: skip
    draw.check(draw.surrounded(y))


def resizing(draw: Draw) -> None:
    """Images, rows and volumes of any other size, of the same pixels, some of them padding."""
    axes = draw.number(1, 3)
    x = draw.image(axes)
    sizes = [draw.number(1, 12) for _ in range(axes)]
    times = [draw.pick(0.4, 0.5, 1.0, 1.5, 2.0) for _ in range(axes)]
    pads = [0] * (axes + 2) if draw.chance(0.8) else [0, 0, *(draw.number(0, 2),) * axes]
    y = draw.add(
        "Interpolate", "opset4", x, draw.constant(sizes), draw.constant(np.array(times, "f4")),
        draw.constant([*range(2, axes + 2)]), mode="nearest",
        shape_calculation_mode=draw.pick("sizes", "scales"),
        coordinate_transformation_mode=draw.pick("asymmetric", "half_pixel", "align_corners"),
        nearest_mode=draw.pick("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
        antialias=False, pads_begin=pads, pads_end=(0,), cube_coeff=-0.75,
    )  # fmt: skip
    draw.check(draw.surrounded(y))


def sampling(draw: Draw) -> None:
    """Images sampled inside and beyond their borders, however they and the places lie."""
    x = draw.image(2, draw.pick(1, 2, 7, 40))
    images, channels, height, width = draw.sizes(x)
    if draw.chance():
        # The channels of a pixel side by side, as those of heads cut out of rows.
        x = draw.input(images, height * width, 2 * channels)
        lengths, axis = draw.constant([channels, channels]), draw.constant(np.int64(2))
        x = draw.add("VariadicSplit", "opset1", x, axis, lengths)[draw.number(0, 1)]
        x = draw.add("Transpose", "opset1", x, draw.constant([0, 2, 1]))
        pattern = draw.constant([images, channels, height, width])
        x = draw.add("Reshape", "opset1", x, pattern, special_zero=False)
    rows, columns = draw.number(1, 30), draw.number(1, 30)
    if draw.chance(0.3):
        # Few places of each of many images.
        x = draw.input(draw.number(20, 300), *draw.sizes(x)[1:])
        images, rows, columns = draw.sizes(x)[0], draw.number(1, 5), draw.number(1, 5)
    if draw.chance():
        grid = draw.input(images, rows, columns, 2)
    else:
        order = draw.constant([0, 2, 1, 3])
        grid = draw.add("Transpose", "opset1", draw.input(images, columns, rows, 2), order)
    y = draw.add(
        "GridSample", "opset9", x, grid, align_corners=draw.chance(),
        mode=draw.pick("bilinear", "bicubic", "nearest"),
        padding_mode=draw.pick("zeros", "border", "reflection"),
    )  # fmt: skip
    if draw.chance(0.3):
        weights = draw.constant(draw.array(2, channels, 1, 1))
        y = draw.add("Convolution", "opset1", y, weights, **windows(2))
    draw.check(draw.surrounded(y))


def deforming(draw: Draw) -> None:
    """Convolutions whose windows' elements are moved, by groups, near and beyond the borders."""
    groups, moves = draw.pick(1, 1, 2), draw.pick(1, 1, 2)
    x = draw.image(2, groups * moves * draw.number(1, 4))
    images, channels, *sizes = draw.sizes(x)
    kernel = [draw.number(1, 3), draw.number(1, 3)]
    words = {
        "strides": (draw.number(1, 2), draw.number(1, 2)),
        "dilations": (draw.number(1, 2), 1),
        "pads_begin": (draw.number(0, 2), draw.number(0, 2)),
        "pads_end": (4, draw.number(1, 4)),
    }
    weights = draw.array(groups * draw.number(1, 5), channels // groups, *kernel)
    counts = [
        (size + begin + end - (taps - 1) * dilation - 1) // stride + 1
        for size, begin, end, taps, dilation, stride in zip(
            sizes, words["pads_begin"], words["pads_end"], kernel, words["dilations"],
            words["strides"], strict=True,
        )
    ]  # fmt: skip
    taps = kernel[0] * kernel[1] * moves
    offsets = draw.input(images, 2 * taps, *counts)
    if draw.chance():
        one = draw.constant(2 * np.eye(2 * taps, dtype="f4")[:, :, None, None])
        offsets = draw.add("Convolution", "opset1", offsets, one, **windows(2))
    inputs = [x, offsets, draw.constant(weights)]
    version = draw.pick("opset1", "opset8")
    if version == "opset8":
        words["bilinear_interpolation_pad"] = draw.chance()
        if draw.chance():
            inputs.append(draw.input(images, taps, *counts))
    y = draw.add(
        "DeformableConvolution", version, *inputs, group=groups, deformable_group=moves, **words
    )
    draw.check(draw.surrounded(y))


def choosing(draw: Draw) -> None:
    """The best along an axis, of few rows or many, with equals among them."""
    shape = [draw.pick(1, 40, 300), draw.pick(2, 70, 700), draw.pick(1, 3, 8)]
    axis = draw.number(0, 2)
    x = draw.input(*shape)
    if draw.chance():
        x = draw.add("Round", "opset5", x)
    count = draw.constant(draw.number(1, min(shape[axis], 20)))
    words = {"mode": draw.pick("max", "min"), "sort": draw.pick("value", "index")}
    best, where = draw.add("TopK", draw.pick("opset3", "opset11"), x, count, axis=axis, **words)
    draw.check(draw.surrounded(best), where)


KERNELS: list[Callable[[Draw], None]] = [
    matmul, attention, rows, cutting, joining, gather, volumes, transposed, pooling, response,
    enlarging, resizing, sampling, deforming, choosing,
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(DRAWS))
def test_a_kernel_gives_what_the_definition_gives(
    kernel: Callable[[Draw], None], seed: int
) -> None:
    kernel(Draw(seed))


@pytest.mark.parametrize("columns", [48, 200, 1152])
@pytest.mark.parametrize("deep", [30, 300, 1100])
@pytest.mark.parametrize("rows", [2, 24, 40, 60, 100, 300, 600])
def test_rows_by_weights_of_any_size(rows: int, deep: int, columns: int) -> None:
    rng = np.random.default_rng(rows + deep + columns)
    given, matrix, bias, other = (
        rng.standard_normal(shape).astype("f4")
        for shape in ((rows // 2, 2, deep), (columns, deep), columns, (2, rows // 2, columns))
    )
    net = ir.Builder()
    x, y = net.parameter("x", "f32", given.shape), net.parameter("y", "f32", other.shape)
    # Rows that do not follow each other in memory are gathered first.
    x = net.add("Transpose", "opset1", [x, net.constant([1, 0, 2])])
    product = net.add("MatMul", "opset1", [x, net.constant(matrix / deep**0.5)], transpose_b=True)
    biased = net.add("Add", "opset1", [product, net.constant(bias)])
    net.result(net.add("Add", "opset1", [net.add("Gelu", "opset7", [biased]), y]), name="plain")
    net.result(net.add("MatMul", "opset1", [x, net.constant(matrix.T)]), name="alone")
    model, inputs = net.model(), [given, other]
    wanted = ir.run(model, inputs)
    answers = [ir.compile(model, threads=threads)(inputs) for threads in (1, 2)]
    for name, expected in wanted.items():
        scale = np.abs(expected).max()
        assert np.abs(answers[0][name] - expected).max() <= 3e-6 * scale
        assert np.abs(answers[1][name] - expected).max() <= 3e-6 * scale


def test_responses_by_square_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointwise, "QUICK_POWERS", not pointwise.QUICK_POWERS)
    for seed in range(DRAWS):
        response(Draw(seed))


def test_what_depends_on_constants_alone_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?")
    half = net.add("Exp", "opset1", [net.constant(np.float32(-1))])
    kept = net.add("NonZero", "opset3", [x], output_type="i64")
    net.result(net.add("Multiply", "opset1", [x, half]), name="y")
    net.result(kept, name="z")
    program = ir.compile(net.model(), shapes=[(4,)])
    exp = type(half.layer.op)
    calls: list[Array] = []
    true = exp.run
    monkeypatch.setattr(exp, "run", lambda op, *given: calls.append(given) or true(op, *given))
    for value in (1, 2, 3):
        found = program([np.full(4, value, "f4")])
        np.testing.assert_allclose(found["y"], np.full(4, value * np.exp(-1)), rtol=1e-6)
    assert not calls  # nor later: it was computed when the plan was made


@pytest.mark.parametrize("seed", range(5))
def test_values_that_live_together_lie_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    firsts = rng.integers(-1, 400, 300)
    lengths = np.where(rng.random(300) < 0.1, rng.integers(0, 400, 300), rng.integers(0, 4, 300))
    wanted = [
        (int(nbytes), int(first), int(first + length), key)
        for key, (nbytes, first, length) in enumerate(
            zip(rng.integers(1, 5000, 300), firsts, lengths, strict=True)
        )
    ]
    places, size = allocate(wanted)
    for nbytes, first, last, key in wanted:
        assert places[key] % 64 == 0
        assert places[key] + nbytes <= size
        for others, begins, ends, other in wanted:
            if other < key and begins <= last and first <= ends:
                apart = (
                    places[key] + nbytes <= places[other],
                    places[other] + others <= places[key],
                )
                assert any(apart)
    # No more than a little above what is needed at once.
    needed = max(
        sum(nbytes for nbytes, first, last, _ in wanted if first <= step <= last)
        for step in range(-1, 800)
    )
    assert size <= 1.25 * needed
