"""Convolutions as networks of today have them give what the definition gives, drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from test_program_families import Same
from test_program_kernels import DRAWS, Draw, windows
from vinoir import ir
from vinoir.ir.engine import means, planned
from vinoir.ir.engine.kernels import activations, convolution, depthwise, winograd
from vinoir.ir.engine.kernels.convolution_work import Sizes
from vinoir.ir.engine.kernels.grouped import MOST, Runs, quickest
from vinoir.ir.engine.kernels.rooms import Rooms
from vinoir.ir.engine.passes import optimize
from vinoir.ir.engine.passes.trim_windows import meets
from vinoir.ir.engine.plan import build


def words(draw: Draw, kernel: list[int], most: int = 2) -> dict[str, Any]:
    """Strides, dilations and pads of a window over an image."""
    dilations = [draw.pick(1, 1, 2) for _ in kernel]
    reach = [(size - 1) * gap for size, gap in zip(kernel, dilations, strict=True)]
    return {
        "strides": [draw.number(1, most) for _ in kernel],
        "dilations": dilations,
        "pads_begin": [draw.pick(0, n // 2, n) for n in reach],
        "pads_end": [draw.pick(n // 2, n) for n in reach],
    }


def filters(draw: Draw, *shape: int) -> ir.builder.Output:
    """Weights that leave numbers about as large as they are."""
    return draw.constant(draw.array(*shape) / np.float32(np.sqrt(np.prod(shape[1:]))))


def image(draw: Draw, channels: int, low: int, high: int) -> ir.builder.Output:
    """An image as it comes in, or with channels kept last by what is before."""
    sizes = draw.number(low, high), draw.number(low, high)
    x = draw.input(draw.number(1, 2), channels, *sizes)
    if draw.chance(0.7):
        offsets = draw.constant(draw.array(1, channels, 1, 1))
        x = draw.add(draw.pick("Add", "Multiply"), "opset1", x, offsets)
    return x


def finished(draw: Draw, y: ir.builder.Output) -> None:
    """A bias, what follows, perhaps a shuffle; the network is checked."""
    channels = draw.sizes(y)[1]
    if draw.chance(0.8):
        y = draw.add("Add", "opset1", y, draw.constant(draw.array(1, channels, 1, 1)))
    y = draw.surrounded(y)
    if draw.chance(0.3):
        groups = next(n for n in (4, 3, 2, 1) if channels % n == 0)
        y = draw.add("ShuffleChannels", "opset3", y, axis=1, group=groups)
    draw.check(y)


def bundles(draw: Draw) -> None:
    """Many small groups: neighbours made by one product, rows or groups shared."""
    groups = draw.pick(2, 4, 20, 36)
    inner, each = draw.pick(2, 4, 8, 16), draw.pick(1, 4, 8, 16)
    x = image(draw, groups * inner, 5, 15)
    kernel = [draw.number(1, 4), draw.number(2, 4)]
    weights = filters(draw, groups, each, inner, *kernel)
    finished(draw, draw.add("GroupConvolution", "opset1", x, weights, **words(draw, kernel, 3)))


def sides(draw: Draw) -> None:
    """A few large groups of pixels as they are: their products are made together."""
    groups, inner, each = draw.pick(2, 3, 4), draw.pick(8, 24, 96), draw.pick(24, 64, 100, 128)
    x = draw.input(1, groups * inner, *draw.pick((64,), (9, 30), (2, 3)))
    weights = filters(draw, groups, each, inner, *[1] * (len(draw.sizes(x)) - 2))
    ways = windows(len(draw.sizes(x)) - 2)
    finished(draw, draw.add("GroupConvolution", "opset1", x, weights, **ways))


def alone(draw: Draw) -> None:
    """Each channel by itself, of many: channels shared; strided runs where they lie."""
    channels, each = draw.pick(16, 80, 130, 400), draw.pick(1, 1, 2)
    x = image(draw, channels, 6, 12)
    kernel = [draw.pick(3, 5, 7), draw.pick(3, 5)]
    if draw.chance(0.3):
        x = draw.add("ShuffleChannels", "opset3", x, axis=1, group=2)
    weights = filters(draw, channels, each, 1, *kernel)
    finished(draw, draw.add("GroupConvolution", "opset1", x, weights, **words(draw, kernel)))


def excited(draw: Draw) -> None:
    """A factor of each channel, computed, before a 1x1 convolution: of images large and small."""
    channels, made = draw.pick(3, 24, 96), draw.pick(2, 16, 200)
    x = image(draw, channels, 1, 14)
    factors = draw.add("ReduceMean", "opset1", x, draw.constant([2, 3]), keep_dims=True)
    if draw.chance(0.3):
        factors = draw.input(1, channels, 1, 1)
    pair = draw.pick((x, factors), (factors, x))
    y = draw.add("Multiply", "opset1", *pair)
    weights = filters(draw, made, channels, 1, 1)
    finished(draw, draw.add("Convolution", "opset1", y, weights, **windows(2)))


def grown(draw: Draw) -> None:
    """Small images made larger: element by element, or all positions of a phase at once."""
    axes = draw.pick(1, 2, 2)
    given, made = draw.pick(3, 40), draw.pick(2, 32, 100)
    x = draw.input(draw.number(1, 2), given, *(draw.number(1, 5) for _ in range(axes)))
    kernel = [draw.number(1, 5) for _ in range(axes)]
    dilations = [draw.pick(1, 1, 2) for _ in range(axes)]
    sizes = draw.sizes(x)[2:]
    strides = [draw.number(1, 3) for _ in range(axes)]
    # No more is cut off than leaves something.
    most = [
        ((size - 1) * stride + (tall - 1) * gap) // 2
        for size, stride, tall, gap in zip(sizes, strides, kernel, dilations, strict=True)
    ]
    cut = [min(draw.number(0, 2), n) for n in most]
    y = draw.add(
        "ConvolutionBackpropData", "opset1", x, filters(draw, given, made, *kernel),
        strides=strides, dilations=dilations, pads_begin=cut, pads_end=cut,
        output_padding=[draw.number(0, stride - 1) for stride in strides],
    )  # fmt: skip
    bias = draw.constant(draw.array(1, made, *[1] * axes))
    draw.check(draw.surrounded(draw.add("Add", "opset1", y, bias)))


def branches(draw: Draw) -> None:
    """Convolutions of one image, scales of it and the image itself, summed in any order."""
    channels, groups = draw.pick((4, 1), (6, 6), (8, 2), (40, 40))
    each = draw.pick(1, 1, 2) if groups == channels else channels // groups
    x = image(draw, channels, 5, 14)
    stride = [draw.number(1, 2) for _ in range(2)] if draw.chance(0.3) else [1, 1]
    found = []
    for _ in range(draw.number(2, 4)):
        tall, gap = draw.pick((1, 1), (3, 1), (3, 2), (5, 1))
        kind = draw.pick("same", "scaled", "grouped", "grouped", "dense")
        if (kind in ("same", "scaled") and (stride != [1, 1] or each * groups != channels)) or (
            kind == "dense" and groups > 8
        ):
            kind = "grouped"
        ways = windows(
            2, strides=stride, dilations=[gap, gap],
            pads_begin=[tall // 2 * gap] * 2, pads_end=[tall // 2 * gap] * 2,
        )  # fmt: skip
        y = x
        if kind == "grouped":
            weights = filters(draw, groups, each, channels // groups, tall, tall)
            y = draw.add("GroupConvolution", "opset1", x, weights, **ways)
        elif kind == "dense":
            weights = filters(draw, each * groups, channels, tall, tall)
            y = draw.add("Convolution", "opset1", x, weights, **ways)
        found.append(draw.surrounded(scaled(draw, y)) if draw.chance(0.1) else scaled(draw, y))
    y = found[0]
    for other in found[1:]:
        pair = draw.pick((y, other), (other, y))
        y = scaled(draw, draw.add(draw.pick("Add", "Subtract"), "opset1", *pair))
    if draw.sizes(y) == draw.sizes(x) and draw.chance():
        y = draw.add("Add", "opset1", x, y)
    finished(draw, y)


def scaled(draw: Draw, x: ir.builder.Output) -> ir.builder.Output:
    """A scale and a shift of each channel, or neither."""
    shape = 1, draw.sizes(x)[1], 1, 1
    for kind in ("Multiply", "Add", "Subtract"):
        if draw.chance(0.3):
            numbers = draw.constant(draw.array(*shape))
            x = draw.add(kind, "opset1", *draw.pick((x, numbers), (numbers, x)))
    return x


def skipping(draw: Draw) -> None:
    """Each channel by itself, with windows that skip columns, of runs short and long."""
    channels, each = draw.pick(2, 24, 95, 96), draw.pick(1, 1, 3)
    x = image(draw, channels, 6, 16)
    kernel, gaps = [draw.number(1, 5), draw.number(1, 7)], [draw.pick(1, 1, 2, 3) for _ in "hw"]
    reach = [(size - 1) * gap for size, gap in zip(kernel, gaps, strict=True)]
    ways = windows(
        2, strides=[draw.number(1, 3), draw.number(2, 4)], dilations=gaps,
        pads_begin=[draw.pick(n // 2, n) for n in reach], pads_end=reach,
    )  # fmt: skip
    weights = filters(draw, channels, each, 1, *kernel)
    finished(draw, draw.add("GroupConvolution", "opset1", x, weights, **ways))


def few(draw: Draw) -> None:
    """Sounds and images of few channels under long windows: what is gathered are short runs."""
    channels, axes = draw.pick(1, 3, 4, 11, 12, 16, 17), draw.pick(1, 1, 2)
    x = draw.input(draw.number(1, 2), channels, *[draw.number(9, 700 // 20 ** (axes - 1))] * axes)
    if draw.chance(0.7):
        offsets = draw.constant(draw.array(1, channels, *[1] * axes))
        x = draw.add(draw.pick("Add", "Multiply"), "opset1", x, offsets)
    kernel = [draw.pick(1, 2, 3, 7, 11) for _ in range(axes)]
    ways = words(draw, kernel) | {"pads_begin": [10] * axes}
    weights = filters(draw, draw.pick(1, 5, 16), channels, *kernel)
    y = draw.add("Convolution", "opset1", x, weights, **ways)
    draw.check(draw.surrounded(y))


KERNELS = [bundles, sides, alone, excited, grown, branches, skipping, few]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(2 * DRAWS))
def test_a_kernel_gives_what_the_definition_gives(
    kernel: Callable[[Draw], None], seed: int
) -> None:
    kernel(Draw(seed))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(100, 104))
def test_the_answer_is_one_whoever_works(kernel: Callable[[Draw], None], seed: int) -> None:
    kernel(Same(seed))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 2)])
def test_neighbours_of_any_number_are_made_together(
    length: int,
    strides: tuple[int, int],
    dilations: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = []

    def forced(sizes: Sizes) -> Runs | None:
        lengths.append(length)
        return Runs(length, 0.0, 0)

    for module in (convolution, winograd):
        monkeypatch.setattr(module, "quickest", forced)
    model = model_of((4, 6, 5, 3, 3), 9, strides=strides, dilations=dilations)
    given = [np.random.default_rng(1).standard_normal((1, 20, 9, 9)).astype("f4")]
    wanted = ir.run(model, given)["y"]
    for threads in (1, 3):
        found = ir.compile(model, threads=threads)(given)["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, strict=True)
    assert lengths


def test_groups_of_many_channels_are_multiplied_as_they_are() -> None:
    few, many, single = (sizes_of((4, n, n, 3, 3)) for n in (16, MOST + 1, 1))
    assert quickest(few) is not None
    assert quickest(many) is None
    assert quickest(sizes_of((1, 16, 16, 3, 3))) is None
    assert quickest(sizes_of((4, 16, 16, 3, 3), dilations=(4, 4))) is None
    assert depthwise.is_depthwise(single)


def test_longer_runs_of_smaller_groups() -> None:
    lengths = [quickest(sizes_of((32, n, n, 3, 3))) for n in (2, 4, 8, 16)]
    found = [runs.length for runs in lengths if runs is not None]
    assert len(found) == 4
    assert found == sorted(found, reverse=True)
    assert found[0] > 1


def model_of(weights: tuple[int, ...], size: int, **given: Any) -> ir.Model:
    """A convolution in groups, padded by one."""
    net, rng = ir.Builder(), np.random.default_rng(0)
    x = net.parameter("x", "f32", (1, weights[0] * weights[2], size, size))
    filters = net.constant(rng.standard_normal(weights).astype("f4"))
    ways = windows(2, pads_begin=(1, 1), pads_end=(1, 1), **given)
    net.result(net.add("GroupConvolution", "opset1", [x, filters], **ways), name="y")
    return net.model()


def sizes_of(weights: tuple[int, ...], **given: Any) -> Sizes:
    """The numbers of a convolution of an image of 14x14."""
    model = model_of(weights, 14, **given)
    plan = build(model, ir.infer(model))
    (node,) = (node for node in plan.nodes if node.kind == "GroupConvolution")
    return Sizes(node)


#: The branches of one image: kinds, windows and gaps; and how many convolutions are left of them.
BRANCHES = [
    ("a 3x3 and a 1x1", [("dense", 3, 1), ("dense", 1, 1)], 1),
    ("the image too", [("dense", 3, 1), ("dense", 1, 1), ("same", 1, 1)], 1),
    ("channels by themselves", [("alone", 7, 1), ("alone", 3, 1), ("same", 1, 1)], 1),
    ("taps apart, within taps", [("alone", 5, 1), ("alone", 3, 2)], 1),
    ("channels by themselves in a dense one", [("dense", 3, 1), ("alone", 3, 1)], 1),
    ("a dense one that is smaller", [("alone", 3, 1), ("dense", 1, 1)], 2),
    ("taps between taps", [("dense", 3, 2), ("dense", 3, 1)], 2),
]


@pytest.mark.parametrize(
    ("kinds", "left"), [row[1:] for row in BRANCHES], ids=[row[0] for row in BRANCHES]
)
def test_branches_are_one_where_windows_fit(kinds: list[tuple[str, int, int]], left: int) -> None:
    net, rng = ir.Builder(), np.random.default_rng(3)
    x = net.parameter("x", "f32", (1, 6, 9, 9))
    total = None
    for kind, tall, gap in kinds:
        pads = [tall // 2 * gap] * 2
        ways = windows(2, dilations=[gap, gap], pads_begin=pads, pads_end=pads)
        shape = (6, 6, tall, tall) if kind == "dense" else (6, 1, 1, tall, tall)
        weights = net.constant(rng.standard_normal(shape).astype("f4"))
        name = "Convolution" if kind == "dense" else "GroupConvolution"
        y = x if kind == "same" else net.add(name, "opset1", [x, weights], **ways)
        total = y if total is None else net.add("Add", "opset1", [total, y])
    assert total is not None
    net.result(net.add("ReLU", "opset1", [total]), name="y")
    model = net.model()
    plan = build(model, ir.infer(model))
    optimize(plan, after_each=lambda plan: plan.verify())
    assert len([node for node in plan.nodes if "Convolution" in node.kind]) == left
    given = rng.standard_normal((1, 6, 9, 9)).astype("f4")
    wanted, found = ir.run(model, [given])["y"], ir.compile(model)([given])["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, strict=True)


def test_a_branch_that_others_read_stays() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 4, 5, 5))
    one, two = (
        net.add("Convolution", "opset1", [x, net.constant(np.eye(4, dtype="f4")[..., None, None])],
                **windows(2))
        for _ in range(2)
    )  # fmt: skip
    net.result(net.add("Add", "opset1", [one, two]), name="sum")
    net.result(one, name="one")
    model = net.model()
    plan = build(model, ir.infer(model))
    optimize(plan)
    assert len([node for node in plan.nodes if node.kind == "Convolution"]) == 2
    given = np.arange(100, dtype="f4").reshape(1, 4, 5, 5)
    found = ir.compile(model)([given])
    np.testing.assert_array_equal(found["sum"], 2 * given)
    np.testing.assert_array_equal(found["one"], given)


@pytest.mark.parametrize("kind", ["Convolution", "GroupConvolution"])
@pytest.mark.parametrize("factor", sorted(activations.SWISH_OF))
@pytest.mark.parametrize("beta", [None, 1.0, 0.5])
def test_a_convolution_multiplies_for_swish(
    kind: str, factor: float, beta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(means, "SWISH_FACTOR", factor)
    plans = []
    monkeypatch.setattr(
        planned, "optimize", lambda plan: (optimize(plan), plans.append(plan), plan.verify())
    )
    net, rng = ir.Builder(), np.random.default_rng(5)
    x = net.parameter("x", "f32", (2, 6, 9, 8))
    shape = (4, 6, 3, 3) if kind == "Convolution" else (6, 1, 1, 3, 3)
    y = net.add(
        kind, "opset1", [x, net.constant(rng.standard_normal(shape).astype("f4"))], **windows(2)
    )
    y = net.add("Add", "opset1", [y, net.constant(np.full((1, 1, 1, 1), 0.3, "f4"))])
    numbers = [] if beta is None else [net.constant(np.float32(beta))]
    net.result(net.add("Swish", "opset4", [y, *numbers]), name="y")
    model = net.model()
    given = (5 * rng.standard_normal((2, 6, 9, 8))).astype("f4")
    wanted, found = ir.run(model, [given])["y"], ir.compile(model)([given])["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, strict=True)
    found = [node.premultiplied for plan in plans for node in plan.nodes if node.kind == kind]
    assert found == [None if beta == 0.5 else factor]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def soft_plus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def gelu_by_tanh(x: float) -> float:
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def gelu(x: float) -> float:
    return x / 2 * math.erfc(-x / math.sqrt(2))


@pytest.mark.parametrize(
    ("way", "definition"),
    [
        (activations.GELU, gelu),
        (activations.GELU_BY_QUICK_TANH, gelu),
        (activations.GELU_BY_TANH, gelu_by_tanh),
        (activations.swish_of(1), lambda x: x * sigmoid(x)),
        (activations.swish_of(1.702), lambda x: x * sigmoid(1.702 * x)),
        (activations.swish_of(-0.5), lambda x: x * sigmoid(-0.5 * x)),
        (activations.SWISH_OF_HALF, lambda half: 2 * half * sigmoid(2 * half)),
        (activations.SWISH_OF_NEGATIVE, lambda negative: -negative * sigmoid(-negative)),
        (activations.swish_by_powers(1.702, by_two=False), lambda x: x * sigmoid(1.702 * x)),
        (activations.swish_by_powers(1.702, by_two=True), lambda x: x * sigmoid(1.702 * x)),
        (activations.swish_by_powers(-0.5, by_two=True), lambda x: x * sigmoid(-0.5 * x)),
        (activations.SWISH_OF_POWER, lambda h: -h * math.log(2) * sigmoid(-h * math.log(2))),
        (activations.Way(0, partial(activations.sigmoid, by_two=True)), sigmoid),
        (activations.Way(0, partial(activations.sigmoid, by_two=False)), sigmoid),
        (activations.GELU_BY_POWERS, gelu_by_tanh),
        (activations.MISH, lambda x: x * math.tanh(soft_plus(x))),
        (activations.SOFT_PLUS, soft_plus),
        (activations.SOFT_PLUS_BY_LOGARITHMS, soft_plus),
        (activations.HSIGMOID, lambda x: min(max(x + 3, 0), 6) / 6),
        (activations.HSWISH, lambda x: x * min(max(x + 3, 0), 6) / 6),
    ],
)
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("summed", [True, False])
@np.errstate(over="ignore")
def test_activations_are_as_near_whatever_makes_them(
    way: activations.Function | activations.Way,
    definition: Callable[[float], float],
    own: bool,
    summed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not summed:
        monkeypatch.setattr(activations, "integer_products", lambda: None)
    rooms = Rooms() if own else None
    x = np.concatenate([np.linspace(-20, 20, 40001), np.geomspace(-1, -1e-30, 999)]).astype("f4")
    wanted = np.array(list(map(definition, x.astype("f8").tolist())))
    given, found = x.copy(), np.empty_like(x)
    activations.done(way, given, found, rooms)()
    np.testing.assert_array_equal(given, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1.3e-6)
    # With gaps, and into itself.
    square = found.reshape(200, 205).copy()
    activations.done(way, given.reshape(200, 205)[:, 5:], square[:, 5:], rooms)()
    np.testing.assert_array_equal(square, found.reshape(200, 205))
    activations.done(way, given, given, rooms)()
    np.testing.assert_array_equal(given, found)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("kind", ["Mish", "SoftPlus"])
def test_activations_of_what_is_endless_and_of_very_little(
    kind: str, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As near as the definition, relative to what it gives, be that next to nothing."""
    way = activations.SOFT_PLUS if quick else activations.SOFT_PLUS_BY_LOGARITHMS
    monkeypatch.setitem(activations.FUNCTIONS, "SoftPlus", way)
    net = ir.Builder()
    x = net.parameter("x", "f32", (8, 1001))
    net.result(net.add(kind, "opset4", [x]), name="y")
    model = net.model()
    given = np.linspace(-80, 80, 8008).astype("f4").reshape(8, 1001)
    given[0, :8] = [np.inf, -np.inf, np.nan, 0, -0.0, 3e38, -3e38, 1e-40]
    with np.errstate(all="ignore"):
        wanted = ir.run(model, [given])["y"]
    found = ir.compile(model)([given])["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-38, strict=True)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("mode", ["ERF", "TANH"])
@pytest.mark.parametrize("shape", [(3, 1001), (1, 3003), (3003,), (7, 3, 143)])
def test_gelu_by_either_way(
    mode: str, quick: bool, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activations, "QUICK_TANH", quick)
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    sums = net.add("Add", "opset1", [x, net.constant(np.float32(0))])
    net.result(net.add("Gelu", "opset7", [sums], approximation_mode=mode), name="y")
    model = net.model()
    near, far = np.linspace(-8, 8, 3003), np.geomspace(1e-30, 1e38, 1400)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, -11, 11, 1e-45]
    for numbers in (near, [*far, *-far, *odd, *[1.0] * 195]):
        given = np.array(numbers, "f4").reshape(shape)
        with np.errstate(all="ignore"):
            wanted = ir.run(model, [given])["y"]
        found = ir.compile(model)([given])["y"]
        np.testing.assert_allclose(found, wanted, rtol=6e-6, atol=1.2e-6, strict=True)


@pytest.mark.parametrize("factor", sorted(activations.SWISH_OF))
@pytest.mark.parametrize("beta", [None, 1.0, 0.5, -2.0])
def test_swish_by_either_way(
    factor: float, beta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activations, "SWISH_FACTOR", factor)
    net = ir.Builder()
    x = net.parameter("x", "f32", (3, 1001))
    numbers = [] if beta is None else [net.constant(np.float32(beta))]
    net.result(net.add("Swish", "opset4", [x, *numbers]), name="y")
    model = net.model()
    given = np.linspace(-120, 120, 3003, dtype="f4").reshape(3, 1001)
    with np.errstate(over="ignore"):
        wanted = ir.run(model, [given])["y"]
    found = ir.compile(model)([given])["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6, strict=True)


@pytest.mark.parametrize(
    ("size", "taps", "most"),
    [(2, 3, 2e-7), (3, 3, 2e-7), (4, 3, 3.3e-7), (3, 4, 3.3e-7), (2, 5, 4e-7)],
)
def test_tiles_lose_little(size: int, taps: int, most: float) -> None:
    rng = np.random.default_rng(size + taps)
    way = winograd.tiling(size, taps)
    values = rng.standard_normal((64, way.points, way.points, 90))
    weights = rng.standard_normal((8, 64, taps, taps))
    wanted = sum(
        np.einsum("oc,chwt->ohwt", weights[:, :, a, b], values[:, a : a + size, b : b + size])
        for a, b in np.ndindex(taps, taps)
    )
    # The weights are transformed in more digits: what is lost later is seen.
    spread = np.einsum("pa,qb,ocab->pqoc", way.taps.astype("f8"), way.taps, weights).astype("f4")
    points = values.astype("f4")
    for _ in range(2):
        points = np.einsum("pa,cabt->cbpt", way.inputs, points)
    found = np.matmul(spread, points.transpose(1, 2, 0, 3)).transpose(2, 0, 1, 3)
    for _ in range(2):
        found = np.einsum("pa,oabt->obpt", way.outputs, found)
    assert found.dtype == np.float32
    assert np.sqrt(np.square(found - wanted).mean()) < most * np.abs(wanted).max()


def test_offsets_that_outgrow_what_they_are_part_of_stay() -> None:
    """Each convolution doubles what it is given as offsets, and lets activations grow by one."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 6, 7))
    doubling = np.kron(np.eye(4), [[1, -1], [-1, 1]]).astype("f4").reshape(8, 8, 1, 1)
    ways = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    last = x
    for _ in range(20):
        last = net.add("Convolution", "opset1", [last, net.constant(doubling)], data=ways)
        bias = np.tile(np.array([1, -1], "f4"), 4).reshape(1, 8, 1, 1)
        last = net.add("ReLU", "opset1", [net.add("Add", "opset1", [last, net.constant(bias)])])
    net.result(last, name="y")
    model = net.model()
    given = np.random.default_rng(3).standard_normal((1, 8, 6, 7)).astype("f4")
    wanted = ir.run(model, [given])["y"]
    assert 15 < np.abs(wanted).max() < 30
    found = ir.compile(model)([given])["y"]
    np.testing.assert_allclose(
        found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max(), strict=True
    )


@pytest.mark.parametrize(
    "slopes",
    [[0.2], [1.0], [0.0], [1.5], [-0.5], [0.1, 0.9, -2.0, 1e-30], [0.1, 0.0, 0.3, 2.0]],
)
@pytest.mark.parametrize("shape", [(1, 4, 190, 201), (3, 4, 5), (2, 4, 1, 1)])
@pytest.mark.parametrize("beside", [True, False])
def test_slopes_below_zero(slopes: list[float], shape: tuple[int, ...], beside: bool) -> None:
    net = ir.Builder()
    x = y = net.parameter("x", "f32", shape)
    if beside:  # next to a convolution channels are kept last
        axes = len(shape) - 2
        weights = np.eye(4, dtype="f4").reshape(4, 4, *[1] * axes)
        pads = {name: [0] * axes for name in ("pads_begin", "pads_end")}
        words = {name: [1] * axes for name in ("strides", "dilations")}
        y = net.add("Convolution", "opset1", [x, net.constant(weights)], **words, **pads)
    net.result(net.add("PReLU", "opset1", [y, net.constant(np.float32(slopes))]), name="y")
    model, given = net.model(), np.random.default_rng(0).standard_normal(shape).astype("f4")
    if not beside:  # of which products would make something else
        given[0, :, 0].reshape(4, -1)[:, 0] = np.inf, -np.inf, np.nan, 0
    for threads in (1, 2):
        found = ir.compile(model, threads=threads)([given])["y"]
        np.testing.assert_allclose(found, ir.run(model, [given])["y"], rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, 2.0, -1.0])
def test_what_bends_below_zero(alpha: float) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (3, 4001))
    net.result(net.add("Elu", "opset1", [x], alpha=alpha), name="y")
    model = net.model()
    given = np.random.default_rng(0).standard_normal((3, 4001)).astype("f4") * 5
    given[0, :6] = np.inf, -np.inf, np.nan, 0, 1e-7, -1e-7
    found = ir.compile(model)([given])["y"]
    np.testing.assert_allclose(found, ir.run(model, [given])["y"], rtol=1e-6)


@pytest.mark.parametrize("outer", [63, 64, 65, 84, 126, 128, 190])
def test_channels_of_small_images_are_dealt_out_whole(outer: int) -> None:
    net, rng = ir.Builder(), np.random.default_rng(outer)
    x = net.parameter("x", "f32", (1, 256, 5, 5))
    filters = net.constant(rng.standard_normal((outer, 256, 3, 3)).astype("f4") / 48)
    ways = windows(2, pads_begin=(1, 1), pads_end=(1, 1))
    net.result(net.add("Convolution", "opset1", [x, filters], **ways), name="y")
    model, given = net.model(), rng.standard_normal((1, 256, 5, 5)).astype("f4")
    (wanted,) = ir.run(model, [given]).values()
    for threads in (1, 2, 3):
        (found,) = ir.compile(model, threads=threads, fork=False)([given]).values()
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("stride", [1, 2, 3, 7])
def test_taps_that_meet_an_image_are_told(stride: int) -> None:
    for start in range(-12, 6):
        for stops in range(5):
            for size in range(5):
                met = any(0 <= start + stop * stride < size for stop in range(stops))
                assert meets(start, stride, stops, size) == met
