"""Networks of sounds and series: causal convolutions, sines, tall windows, products between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_program_families import Same
from test_program_kernels import DRAWS, Draw, windows
from vinoir import ir
from vinoir.ir.engine.plan import Node
from vinoir.schemas import Array, ElementType

#: Functions of one number that are fused with what is around them.
WAVES = (
    "Acos", "Asin", "Atan", "Ceiling", "Cos", "Cosh", "Sign", "Sin", "Sinh", "SoftSign", "Tan",
    "Acosh", "Asinh", "Atanh",
)  # fmt: skip
SINCE = {"SoftSign": "opset9", "Acosh": "opset4", "Asinh": "opset4", "Atanh": "opset4"}


def steps(program: ir.Program) -> list[Node]:
    (plan,) = program._plans.values()
    assert plan is not None
    return [node for node, *_ in plan.spans]


def cut(draw: Draw, y: ir.builder.Output, begins: list[int], ends: list[int]) -> Any:
    """What lies between two places of each axis of images, said in one way or another."""
    rank = len(draw.sizes(y))
    stops = [
        n - less if draw.chance() else -less if less else n + 3
        for n, less in zip(draw.sizes(y)[2:], ends, strict=True)
    ]
    ones = np.ones(rank - 2, np.int64)
    if draw.chance():
        given = [np.array(begins), np.array(stops), ones, np.arange(2, rank)]
        return draw.add("Slice", "opset8", y, *map(draw.constant, given))
    masks = ",".join("1" if axis < 2 else "0" for axis in range(rank))
    given = [np.array([0, 0, *begins]), np.array([0, 0, *stops]), np.ones(rank, np.int64)]
    none = ",".join("0" * rank)
    words = {"begin_mask": masks, "end_mask": masks, "new_axis_mask": none}
    words |= {"shrink_axis_mask": none, "ellipsis_mask": none}
    return draw.add("StridedSlice", "opset1", y, *map(draw.constant, given), **words)


def causal(draw: Draw) -> None:
    """Windows over what is padded, of which some is cut off, forward and the other way round."""
    axes = draw.number(1, 2)
    channels = draw.pick(4, 8)
    x = draw.input(draw.number(1, 2), channels, *[draw.number(9, 30) for _ in range(axes)])
    kernel = [draw.number(1, 5) for _ in range(axes)]
    spread = draw.chance(0.4)
    grouped = draw.chance(0.4)
    lead = (channels, 1, 1) if grouped else (channels, channels)
    weights = draw.constant(draw.array(*lead, *kernel))
    dilations = [draw.pick(1, 2, 3) for _ in range(axes)]
    margins = [(size - 1) * gap for size, gap in zip(kernel, dilations, strict=True)]
    words = {"strides": [draw.number(1, 3) for _ in kernel], "dilations": dilations}
    pads = [draw.number(0, n) for n in margins], [draw.number(0, n) for n in margins]
    words |= {"pads_begin": pads[0], "pads_end": pads[1]}
    kind = "Group" * grouped + "Convolution" + "BackpropData" * spread
    y = draw.add(kind, "opset1", x, weights, **words)
    if draw.chance(0.7):
        slopes = draw.array(1, channels, *[1] * axes)
        y = draw.add(draw.pick("Add", "Multiply"), "opset1", y, draw.constant(slopes))
    if draw.chance(0.3):
        y = draw.add("PReLU", "opset1", y, draw.constant(draw.array(channels)))
    if draw.chance(0.2):  # which is not alike everywhere
        y = draw.add("Add", "opset1", y, draw.constant(draw.array(*draw.sizes(y)[1:])))
    sizes = draw.sizes(y)[2:]
    begins = [draw.number(0, min(2, n - 1)) for n in sizes]
    ends = [draw.number(0, min(4, n - 1 - b)) for n, b in zip(sizes, begins, strict=True)]
    z = cut(draw, y, begins, ends)
    draw.check(draw.surrounded(z), *([y] if draw.chance(0.2) else []))


def waves(draw: Draw) -> None:
    """Functions of sound and what follows them, beside convolutions or not."""
    x = draw.image(draw.number(1, 2)) if draw.chance() else draw.input(3, draw.number(1, 4000))
    kind = draw.pick(*WAVES)
    if kind in ("Acos", "Asin", "Atanh"):
        x = draw.add("Tanh", "opset1", x)
        x = draw.add("Multiply", "opset1", x, draw.constant(np.float32(0.99)))
    if kind == "Acosh":
        x = draw.add("Add", "opset1", draw.add("Abs", "opset1", x), draw.constant(np.float32(1)))
    y = draw.add(kind, SINCE.get(kind, "opset1"), x)
    draw.check(draw.surrounded(y))


def tall(draw: Draw) -> None:
    """Windows nearly as tall as images of few channels."""
    height, width, inner = draw.number(32, 60), draw.number(1, 20), draw.number(1, 2)
    taps = draw.number(height // 2, height)
    x = draw.input(draw.number(1, 2), inner, height, width)
    weights = draw.constant(draw.array(draw.number(1, 3), inner, taps, 1))
    words = windows(2, strides=[draw.number(1, 2), 1])
    words |= {"pads_begin": [draw.number(0, taps), 0], "pads_end": [taps - 1, 0]}
    y = draw.add("Convolution", "opset1", x, weights, **words)
    if draw.chance():
        bias = draw.array(1, draw.sizes(y)[1], 1, 1)
        y = draw.add("Add", "opset1", y, draw.constant(bias))
    draw.check(draw.surrounded(y))


def mixed(draw: Draw) -> None:
    """Products of rows between convolutions that take what these call channels."""
    images, channels, width = draw.number(1, 2), draw.pick(5, 16), draw.pick(6, 32)
    x = draw.input(images, channels, width)
    if draw.chance():
        x = draw.add("Convolution", "opset1", x,
                     draw.constant(draw.array(channels, channels, 1)), **windows(1))  # fmt: skip
    y = x
    for _ in range(draw.number(1, 3)):
        made = draw.pick(width, 24)
        weights = draw.constant(draw.array(made, draw.sizes(y)[2]) / np.float32(4))
        y = draw.add("MatMul", "opset1", y, weights, transpose_a=False, transpose_b=True)
        if draw.chance(0.7):
            y = draw.add("Add", "opset1", y, draw.constant(draw.array(made)))
        y = draw.surrounded(y)
        if draw.chance():
            weights = draw.constant(draw.array(channels, channels, 1) / np.float32(4))
            y = draw.add("Convolution", "opset1", y, weights, **windows(1))
        if draw.sizes(y) == draw.sizes(x) and draw.chance():
            y = draw.add("Add", "opset1", y, x)
    draw.check(y)


def single(draw: Draw) -> None:
    """A step of a recurrence, with what is before and after it."""
    batch, taken, hidden = draw.number(1, 5), draw.number(1, 40), draw.pick(3, 16, 64)
    x = draw.add("Tanh", "opset1", draw.input(batch, taken))
    kind, gates, states, since = draw.pick(
        ("LSTMCell", 4, 2, "opset4"), ("GRUCell", 3, 1, "opset3"), ("RNNCell", 1, 1, "opset1")
    )
    given = [
        draw.constant(draw.array(batch, hidden)) if draw.chance() else draw.input(batch, hidden)
        for _ in range(states)
    ]
    words: dict[str, Any] = {"hidden_size": hidden}
    biases = gates
    if kind == "GRUCell" and draw.chance():
        words["linear_before_reset"], biases = True, 4
    if draw.chance(0.2):
        words["clip"] = 0.7
    sizes = (gates * hidden, taken), (gates * hidden, hidden), (biases * hidden,)
    weights = [draw.constant(draw.array(*size) / np.float32(4)) for size in sizes]
    found = draw.add(kind, since, x, *given, *weights, **words)
    outputs = [found] if states == 1 else list(found)
    draw.check(*(draw.surrounded(y) for y in outputs))


def uneven(draw: Draw) -> None:
    """Means over windows of several sizes, beside convolutions or not."""
    x = draw.image(draw.number(1, 3))
    wanted = [draw.number(1, n + 2) for n in draw.sizes(x)[2:]]
    y = draw.add("AdaptiveAvgPool", "opset8", x, draw.constant(np.array(wanted)))
    draw.check(draw.surrounded(y))


KERNELS = (causal, waves, tall, mixed, single, uneven)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(3 * DRAWS))
def test_a_kernel_gives_what_the_definition_gives(
    kernel: Callable[[Draw], None], seed: int
) -> None:
    kernel(Draw(seed))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(100, 103))
def test_the_answer_is_one_whoever_works(kernel: Callable[[Draw], None], seed: int) -> None:
    kernel(Same(seed))


@pytest.mark.parametrize("spread", [False, True])
def test_what_is_cut_off_is_not_computed(spread: bool) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 40))
    weights = net.constant(np.random.default_rng(0).standard_normal((8, 8, 3)).astype("f4"))
    pads = 0 if spread else 6
    words = {"strides": "1", "dilations": "3", "pads_begin": str(pads), "pads_end": str(pads)}
    kind = "ConvolutionBackpropData" if spread else "Convolution"
    y = net.add(kind, "opset1", [x, weights], **words)
    y = net.add("Add", "opset1", [y, net.constant(np.ones((1, 8, 1), "f4"))])
    ends = [net.constant(np.array([n])) for n in (0, 40, 1, 2)]
    z = net.add("ReLU", "opset1", [net.add("Slice", "opset8", [y, *ends])])
    net.result(z, name="z")
    model = net.model()
    program = ir.compile(model, threads=2)
    data = np.random.default_rng(1).standard_normal((1, 8, 40)).astype("f4")
    np.testing.assert_allclose(program([data])["z"], ir.run(model, [data])["z"], atol=1e-5)
    assert [node.kind for node in steps(program)] == [kind]
    assert steps(program)[0].outputs[0].shape == (1, 8, 40)


def test_a_product_beside_convolutions_is_one_by_rows() -> None:
    """Not by its definition, which has nobody to share it with."""
    net = ir.Builder()
    rng = np.random.default_rng(0)
    x = net.parameter("x", "f32", (2, 16, 64))
    y = net.add("MatMul", "opset1", [x, net.constant(rng.standard_normal((64, 96)).astype("f4"))],
                transpose_a=False, transpose_b=False)  # fmt: skip
    y = net.add("Gelu", "opset7", [y], approximation_mode="ERF")
    weights = net.constant(rng.standard_normal((16, 16, 3)).astype("f4"))
    z = net.add("Convolution", "opset1", [y, weights], **windows(1))
    net.result(z, name="z")
    model = net.model()
    program = ir.compile(model, threads=2)
    data = rng.standard_normal((2, 16, 64)).astype("f4")
    program([data])
    product, *_ = (node for node in steps(program) if node.kind == "MatMul")
    assert [op.xml_type for op, _ in product.epilogue] == ["Gelu"]
    assert not product.outputs[0].last
    np.testing.assert_allclose(program([data])["z"], ir.run(model, [data])["z"], atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "version", "types"),
    [("CumSum", "opset3", "f4"), ("LogSoftmax", "opset5", "f4"), ("Bucketize", "opset3", "f4"),
     ("Sign", "opset1", "f4"), ("Less", "opset1", "f4"), ("LogicalAnd", "opset1", "?"),
     ("LogicalNot", "opset1", "?"), ("Add", "opset1", "i8"), ("Mod", "opset1", "f4"),
     ("BitwiseXor", "opset13", "i4"), ("IsNaN", "opset10", "f4"), ("Selu", "opset1", "f4"),
     ("FloorMod", "opset1", "i4")],
)  # fmt: skip
@pytest.mark.parametrize("narrow", [False, True])
def test_each_element_by_itself_block_by_block(
    kind: str, version: str, types: str, narrow: bool
) -> None:
    """The same bits, whoever works, however many there are, one broadcast to the other or not."""
    rng = np.random.default_rng(2)
    shape = (3, 200, 170)

    def numbers(*sizes: int) -> Array:
        found = rng.integers(1, 9, sizes) * rng.choice([-1, 1], sizes)
        return found.astype(types) if types != "?" else found > 0

    net = ir.Builder()
    x = net.parameter("x", ElementType.of(np.dtype(types)), shape)
    moved = net.add("Transpose", "opset1", [x, net.constant(np.array([0, 2, 1]))])
    words: dict[str, Any] = {}
    if kind == "CumSum":
        others, words = [net.constant(np.int64(2 * narrow))], {"reverse": narrow}
    elif kind == "LogSoftmax":
        others, words = [], {"axis": 1 + narrow}
    elif kind == "Bucketize":
        others = [net.constant(np.arange(-8, 8, 2, np.float32))]
    elif kind == "Selu":
        others = [net.constant(np.float32(1.6)), net.constant(np.float32(1.05))]
    elif kind in ("LogicalNot", "IsNaN", "Sign"):
        others = []
    else:
        others = [net.constant(numbers(*((170, 1) if narrow else (3, 170, 200))))]
    net.result(net.add(kind, version, [moved, *others], **words), name="y")
    model = net.model()
    data = numbers(*shape)
    wanted = ir.run(model, [data])["y"]
    bits = set()
    for threads in (1, 2, 3):
        program = ir.compile(model, threads=threads)
        found = program([data])["y"]
        (plan,) = program._plans.values()
        assert plan is not None
        _, begin, end = plan.spans[-1]
        assert len(plan.team.steps[begin:end][-1]) > 1  # parts that workers share
        assert found.dtype == wanted.dtype
        bits.add(found.tobytes())
        if kind != "LogSoftmax":  # sums of what lies otherwise
            assert found.tobytes() == wanted.tobytes()
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert len(bits) == 1


def test_windows_as_tall_as_images_are_a_matrix() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 1, 64, 100))
    weights = np.random.default_rng(0).standard_normal((2, 1, 65, 1)).astype("f4")
    words = windows(2, pads_begin=(32, 0), pads_end=(32, 0))
    net.result(net.add("Convolution", "opset1", [x, net.constant(weights)], **words), name="y")
    model = net.model()
    program = ir.compile(model, threads=2)
    data = np.random.default_rng(1).standard_normal((1, 1, 64, 100)).astype("f4")
    np.testing.assert_allclose(program([data])["y"], ir.run(model, [data])["y"], atol=1e-4)
    assert [node.kind for node in steps(program)] == ["MatMul"]


def weights(net: ir.Builder, kind: str, rng: np.random.Generator, *shape: int) -> Any:
    """Weights as files have them: numbers, halves, bytes, or numbers rounded to levels."""
    numbers = (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype("f4")
    if kind == "f16":
        return net.add("Convert", "opset1", [net.constant(numbers.astype("f2"))],
                       destination_type="f32")  # fmt: skip
    step = np.float32(np.abs(numbers).max() / 127)
    levels = np.round(numbers / step)
    if kind == "u8":
        bytes_ = net.constant((levels + 128).astype("u1"))
        found = net.add("Convert", "opset1", [bytes_], destination_type="f32")
        found = net.add("Subtract", "opset1", [found, net.constant(np.full((1, 1), 128, "f4"))])
        return net.add("Multiply", "opset1", [found, net.constant(np.full((1, 1), step, "f4"))])
    if kind == "levels":
        ends = [net.constant(np.float32(n * step)) for n in (-127, 127, -127, 127)]
        return net.add("FakeQuantize", "opset1", [net.constant(levels * step), *ends], levels=255)
    return net.constant(numbers)


@pytest.mark.usefixtures("integers_are_quick")
@pytest.mark.parametrize("kind", ["f32", "f16", "u8", "levels"])
@pytest.mark.parametrize("follower", ["", "Add", "ReLU"])
@pytest.mark.parametrize("images", [(2, 16, 64), (2, 16, 8, 64)])
def test_what_a_product_makes_is_turned_for_the_convolution_after_it(
    kind: str, follower: str, images: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    net = ir.Builder()
    y = x = net.parameter("x", "f32", images)
    if kind == "levels":
        ends = [net.constant(np.float32(n)) for n in (-4, 4, -4, 4)]
        y = net.add("FakeQuantize", "opset1", [x, *ends], levels=256)
    y = net.add("MatMul", "opset1", [y, weights(net, kind, rng, 64, 96)],
                transpose_a=False, transpose_b=False)  # fmt: skip
    if follower:
        other = [net.constant(rng.standard_normal(96).astype("f4"))] * (follower == "Add")
        y = net.add(follower, "opset1", [y, *other])
    axes = len(images) - 2
    filters = net.constant(rng.standard_normal((16, 16, *[3] * axes)).astype("f4"))
    net.result(net.add("Convolution", "opset1", [y, filters], **windows(axes)), name="y")
    model = net.model()
    data = rng.standard_normal(images).astype("f4")
    wanted = ir.run(model, [data])["y"]
    for threads in (1, 2):
        found = ir.compile(model, threads=threads, memory="small")([data])["y"]
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


def test_a_cell_is_a_sequence_of_one_step() -> None:
    draw = Draw(0)
    x, h, c = draw.input(2, 8), draw.input(2, 16), draw.input(2, 16)
    given = [draw.constant(draw.array(*size)) for size in ((64, 8), (64, 16), (64,))]
    found = draw.add("LSTMCell", "opset4", x, h, c, *given, hidden_size=16)
    for number, y in enumerate(found):
        draw.net.result(y, name=f"y{number}")
    model = draw.net.model()
    program, feeds = ir.compile(model), [draw.array(2, n) for n in (8, 16, 16)]
    made, wanted = program(feeds), ir.run(model, feeds)
    assert "LSTMSequence" in {node.kind for node in steps(program)}
    for name, right in wanted.items():
        np.testing.assert_allclose(made[name], right, atol=1e-5)
