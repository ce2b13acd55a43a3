"""Convolutions as networks of today have them give what the definition gives, drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_program_families import Same
from test_program_kernels import DRAWS, Draw, windows
from vinoir import ir
from vinoir.ir.engine.kernels import activations, convolution, depthwise, winograd
from vinoir.ir.engine.kernels.convolution_work import Sizes
from vinoir.ir.engine.kernels.grouped import MOST, Runs, quickest
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


KERNELS = [bundles, alone, excited, grown]


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


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("beta", [None, 1.0, 0.5, -2.0])
def test_swish_by_either_way(
    quick: bool, beta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activations, "QUICK_TANH", quick)
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
