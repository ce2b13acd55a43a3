"""Kernels of the networks of today give what the definitions give, drawn at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from test_program_kernels import DRAWS, Draw, windows
from vinoir import ir
from vinoir.ir.engine.workers.denormals import flushes, flushing


def attention(draw: Draw) -> None:
    """Queries and keys of any number, stacked and broadcast, masked or causal."""
    stack = [draw.number(1, 3) for _ in range(draw.number(1, 3))]
    rows, depth = draw.pick(1, 5, 40, 300), draw.number(1, 20)
    keys, deep = draw.pick(1, 7, 33, 500), draw.number(1, 20)
    fewer = [size if draw.chance(0.8) else 1 for size in stack]
    inputs = [
        draw.input(*stack, rows, depth),
        draw.input(*fewer, keys, depth),
        draw.input(*fewer, keys, deep),
    ]
    if draw.chance(0.3):  # turned where they lie
        order = [*range(len(stack)), len(stack) + 1, len(stack)]
        inputs[1] = draw.add(
            "Transpose", "opset1", draw.input(*fewer, depth, keys), draw.constant(order)
        )
    causal = draw.chance(0.3)
    if draw.chance():
        mask = [size if draw.chance() else 1 for size in (*stack, rows, keys)]
        mask = mask[draw.number(0, len(stack)) :]
        kind = draw.pick("input", "constant", "bool")
        if kind == "input":
            inputs.append(draw.input(*mask))
        elif kind == "constant":
            inputs.append(draw.constant(draw.array(*mask)))
        else:
            allowed = draw.array(*mask) > -0.5
            if draw.chance():
                allowed = np.ones_like(allowed)
            allowed[..., 0] = True
            inputs.append(draw.constant(allowed))
        if draw.chance():
            inputs.append(draw.constant(np.float32(0.5)))
    y = draw.add("ScaledDotProductAttention", "opset13", *inputs, causal=causal)
    draw.check(draw.surrounded(y))


def put_together(draw: Draw) -> None:
    """Attention as exporters write it: products, a scale, a mask, in all their spellings."""
    stack = [draw.number(1, 3) for _ in range(draw.number(1, 3))]
    rows, depth = draw.pick(5, 16, 40, 300), draw.number(1, 20)
    keys, deep = draw.pick(1, 7, 33, 500), draw.number(1, 20)
    rank = len(stack) + 2
    turned = [*range(rank - 2), rank - 1, rank - 2]

    def operand(down: int, along: int, *, turn: bool) -> ir.builder.Output:
        """Stacked matrices, which may be turned by what reads them, or before."""
        sizes = [size if draw.chance(0.9) else 1 for size in stack]
        if draw.chance(0.3):
            x = draw.input(*sizes, along, down)
            x = draw.add("Transpose", "opset1", x, draw.constant(turned))
            x = x if not turn else draw.add("Transpose", "opset1", x, draw.constant(turned))
        else:
            x = draw.input(*sizes, *((along, down) if turn else (down, along)))
        return draw.add("Tanh", "opset1", x) if draw.chance(0.3) else x

    left, right = draw.chance(0.2), draw.chance()
    query = operand(rows, depth, turn=left)
    key = operand(depth, keys, turn=right)
    x = draw.add("MatMul", "opset1", query, key, transpose_a=left, transpose_b=right)
    lead = draw.sizes(x)[:-2]
    for _ in range(draw.number(0, 4)):
        x = scored(draw, x, lead)
    if draw.chance(0.1):
        draw.net.result(x, name="scores")
    axis = len(draw.sizes(x)) - 1
    x = draw.add("SoftMax", "opset8", x, axis=draw.pick(-1, -1, -1, axis, axis - 1))
    if draw.chance() or len(draw.sizes(x)) != rank:
        x = draw.add(
            "Reshape", "opset1", x, draw.constant([*lead, rows, keys]), special_zero=False
        )
    turn = draw.chance(0.3)
    value = operand(keys, deep, turn=turn)
    draw.check(draw.surrounded(draw.add("MatMul", "opset1", x, value, transpose_b=turn)))


def scored(draw: Draw, x: ir.builder.Output, lead: tuple[int, ...]) -> ir.builder.Output:
    """One of what may become of scores before they are weights."""
    shape = draw.sizes(x)
    kind = draw.pick("Multiply", "Divide", "commuted", "Add", "Add", "Subtract", "Select", "axes")
    if kind in ("Multiply", "Divide", "commuted"):
        number = draw.constant(np.full([1] * draw.number(0, len(shape)), 0.6, np.float32))
        pair = (number, x) if kind == "commuted" else (x, number)
        return draw.add("Multiply" if kind == "commuted" else kind, "opset1", *pair)
    if kind == "axes":
        seen = draw.pick([-1], [1, *lead], [*lead, 1], [lead[0], -1], [*lead[:-1], 1, lead[-1]])
        pattern = draw.constant([*seen, *shape[-2:]])
        return draw.add("Reshape", "opset1", x, pattern, special_zero=False)
    sizes = [size if draw.chance() else 1 for size in shape][draw.number(0, len(shape) - 1) :]
    if kind == "Select":
        shown = draw.array(*sizes) < 1
        number = draw.constant(np.float32(draw.pick(-1e4, -1e33, -1e36)))
        condition = draw.constant(shown if draw.chance() else ~shown)
        if draw.chance():
            condition = draw.add(
                "Less", "opset1", draw.input(*sizes), draw.constant(np.float32(1))
            )
        return draw.add("Select", "opset1", condition, *draw.pick((x, number), (number, x)))
    other = draw.constant(draw.array(*sizes)) if draw.chance() else draw.input(*sizes)
    return draw.add(kind, "opset1", *draw.pick((x, other), (x, other), (other, x)))


def raised(draw: Draw) -> None:
    """Powers of numbers, of which few are whole; the base may be of any sign where they are."""
    if draw.chance():
        x = draw.image(draw.number(1, 3))
    else:
        x = draw.input(*(draw.number(1, 40) for _ in range(draw.number(1, 4))))
    shape = draw.sizes(x)
    exponent = draw.pick(2.0, 2.0, 3.0, 3.0, 1.0, 0.5, -1.5, 2.5, None)
    wide = [size if draw.chance(0.3) else 1 for size in shape]
    if exponent is None:  # many, known or not
        exponents = draw.pick(draw.constant(draw.array(*wide)), draw.input(*wide))
    else:
        exponents = draw.constant(np.full(draw.pick([], [1], wide), exponent, np.float32))
    if exponent is None or exponent % 1:
        x = draw.add("Sigmoid", "opset1", x)
    y = draw.add("Power", "opset1", x, exponents)
    y = draw.add("Multiply", "opset1", y, x) if draw.chance() else y
    draw.check(draw.surrounded(y))


@pytest.mark.parametrize("exponent", [0.0, 2.0, 3.0, 0.5, -1.0, -0.5, -2.0])
def test_powers_of_what_is_no_number_are_those_of_the_definition(exponent: float) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (4, 9))
    power = net.add("Power", "opset1", [x, net.constant(np.float32(exponent))])
    net.result(net.add("Abs", "opset1", [power]), name="y")
    model = net.model()
    given = np.float32([0, -0.0, np.inf, -np.inf, np.nan, -3, 1e30, -1e30, 1e-30])
    given = np.broadcast_to(given, (4, 9)).copy()
    np.testing.assert_allclose(
        ir.compile(model)([given])["y"], ir.run(model, [given])["y"], rtol=1e-6
    )


def rolled(draw: Draw) -> None:
    """Shifts along some axes, more than once along one, by more than there is."""
    if draw.chance():
        x = draw.image(draw.number(1, 3))
    elif draw.chance(0.2):
        x = draw.add("Tanh", "opset1", draw.input(2, 60, 60, 40))
    else:
        x = draw.input(*(draw.number(1, 9) for _ in range(draw.number(1, 5))))
    rank = len(draw.sizes(x))
    axes = [draw.number(-rank, rank - 1) for _ in range(draw.number(1, 4))]
    shift = [draw.number(-12, 12) for _ in axes] if draw.chance() else draw.number(-12, 12)
    y = draw.add("Roll", "opset7", x, draw.constant(np.int64(shift)), draw.constant(axes))
    draw.check(draw.surrounded(y))


def quantized(draw: Draw) -> None:
    """Limits for all, for each channel or for each number, some of them in no order."""
    shape = [draw.number(1, 6) for _ in range(draw.number(1, 5))]
    # What is computed before may lie this side of a half here and that side there: of few levels
    # that is unlikely.
    exact = draw.chance()
    if exact:
        x = draw.input(*shape)
    else:
        x = draw.image(len(shape) - 2) if len(shape) > 2 else draw.input(*shape)
        x = draw.surrounded(x)
    shape = list(draw.sizes(x))
    each = [size if draw.chance(0.3) else 1 for size in shape]
    each = each[draw.number(0, len(shape)) :]
    low = -np.abs(draw.array(*each)) * draw.pick(0, 1)
    wide = np.abs(draw.array(*each)) + 0.5
    high = low + draw.pick(wide, wide, wide, -wide, 0 * wide)
    first, last = draw.pick((low, high), (np.float32(-1), np.float32(0.5)), (high, low))
    limits = [draw.constant(np.float32(limit)) for limit in (low, high, first, last)]
    y = draw.add(
        "FakeQuantize", "opset1", x, *limits, levels=draw.pick(2, 16, 255, 256) if exact else 2
    )
    draw.check(draw.surrounded(y) if draw.chance() else y)


def recurrent(draw: Draw) -> None:
    """Sequences either way or both, in batches, of units that are cut and that are not."""
    kind = draw.pick("LSTMSequence", "GRUSequence", "RNNSequence")
    direction = draw.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    batch, count, taken = draw.number(1, 4), draw.number(1, 9), draw.number(1, 12)
    hidden = draw.pick(1, 5, 32, 48, 288, 512)
    gates, states = {"LSTMSequence": (4, 2), "GRUSequence": (3, 1), "RNNSequence": (1, 1)}[kind]
    words: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    biases = gates
    if kind == "GRUSequence" and draw.chance():
        words["linear_before_reset"] = True
        biases = 4
    if draw.chance(0.2):
        words["clip"] = 0.5
    lengths = np.full(batch, count)
    if draw.chance(0.2):
        lengths = draw.rng.integers(0, count + 1, batch)
    weights = [
        draw.array(ways, gates * hidden, n) * np.float32(0.5 / np.sqrt(n)) for n in (taken, hidden)
    ]
    inputs = [
        draw.input(batch, count, taken),
        *(draw.input(batch, ways, hidden) for _ in range(states)),
        draw.constant(lengths),
        *map(draw.constant, weights),
        draw.constant(draw.array(ways, biases * hidden)),
    ]
    outputs = draw.add(kind, "opset5", *inputs, **words)
    draw.check(draw.surrounded(outputs[0]), *(outputs[n] for n in range(1, 1 + states)))


def resized(draw: Draw) -> None:
    """Images made larger or smaller by all rules that weigh pixels."""
    axes = draw.number(1, 3)
    x = draw.image(axes)
    shape = draw.sizes(x)
    places = [2 + axis for axis in range(axes)] if draw.chance(0.8) else [len(shape) - 1]
    new = [draw.number(1, draw.pick(20, 90)) for _ in places]
    mode = draw.pick("linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow")
    if mode == "linear_onnx" or mode.endswith("pillow"):
        mode = mode if len(places) == 2 else "linear"
    words = {
        "mode": mode,
        "coordinate_transformation_mode": draw.pick("half_pixel", "asymmetric", "align_corners"),
        "antialias": draw.chance(),
    }
    if draw.chance():
        wanted, by = draw.constant(new), "sizes"
    else:
        by = "scales"
        wanted = draw.constant(
            np.float32([n / shape[axis] for n, axis in zip(new, places, strict=True)])
        )
    y = draw.add(
        "Interpolate",
        "opset11",
        x,
        wanted,
        draw.constant(places),
        shape_calculation_mode=by,
        **words,
    )
    if draw.chance(0.4):  # written where it is wanted
        whole = draw.add("Concat", "opset1", y, draw.add("Exp", "opset1", y), axis=1)
        draw.check(whole)
    else:
        draw.check(draw.surrounded(y))


def test_pixels_that_are_no_numbers_reach_as_far_as_by_the_definition() -> None:
    for mode in ("linear", "cubic"):
        net = ir.Builder()
        x = net.parameter("x", "f32", (1, 2, 6, 5))
        sizes, axes = net.constant(np.array([40, 35])), net.constant(np.array([2, 3]))
        y = net.add(
            "Interpolate", "opset11", [x, sizes, axes], mode=mode, shape_calculation_mode="sizes"
        )
        net.result(y, name="y")
        model = net.model()
        given = np.random.default_rng(0).standard_normal((1, 2, 6, 5)).astype("f4")
        given[0, 0, 2, 3], given[0, 1, 0, 0] = np.inf, np.nan
        wanted = ir.run(model, [given])["y"]
        found = ir.compile(model)([given])["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def dilated(draw: Draw) -> None:
    """Windows that reach beyond small images."""
    axes = draw.pick(1, 2, 2, 3)
    groups = draw.pick(1, 1, 3)
    given, made = groups * draw.pick(2, 11, 40), groups * draw.number(1, 9)
    sizes = [draw.number(1, 9) for _ in range(axes)]
    x = draw.input(draw.number(1, 2), given, *sizes)
    if draw.chance():
        x = draw.add("ReLU", "opset1", x)
    kernel = [draw.number(1, 4) for _ in range(axes)]
    dilations = [draw.number(1, 7) for _ in range(axes)]
    reach = [(size - 1) * gap for size, gap in zip(kernel, dilations, strict=True)]
    words = {
        "strides": [draw.number(1, 3) for _ in range(axes)],
        "dilations": dilations,
        "pads_begin": [draw.pick(n // 2, n, n + 2) for n in reach],
        "pads_end": [draw.pick(n, n - n // 2, n + 1) for n in reach],
    }
    shape = (made, given) if groups == 1 else (groups, made // groups, given // groups)
    kind = "Convolution" if groups == 1 else "GroupConvolution"
    y = draw.add(kind, "opset1", x, draw.constant(draw.array(*shape, *kernel)), **words)
    bias = draw.array(1, made, *[1] * axes)
    draw.check(draw.surrounded(draw.add("Add", "opset1", y, draw.constant(bias))))


def several(draw: Draw) -> None:
    """A few channels made of each, and long rows."""
    axes, groups, each = draw.number(1, 2), draw.number(2, 9), draw.number(1, 5)
    x = draw.image(axes, groups)
    if axes == 1 and draw.chance():
        x = draw.add("ReLU", "opset1", draw.input(1, groups, 3000))
    kernel = [draw.number(1, 3) for _ in range(axes)]
    words = {
        "strides": [draw.number(1, 3) for _ in range(axes)],
        "dilations": [draw.number(1, 2) for _ in range(axes)],
        "pads_begin": [2] * axes,
        "pads_end": [draw.number(0, 2) for _ in range(axes)],
    }
    if draw.chance(0.7):
        weights = draw.constant(draw.array(groups, each, 1, *kernel))
        y = draw.add("GroupConvolution", "opset1", x, weights, **words)
    else:
        weights = draw.constant(draw.array(each * 4, groups, *kernel))
        y = draw.add("Convolution", "opset1", x, weights, **words)
    bias = draw.constant(draw.array(1, draw.sizes(y)[1], *[1] * axes))
    draw.check(draw.surrounded(draw.add("Add", "opset1", y, bias)))


def mirrored(draw: Draw) -> None:
    """Margins that repeat what is inside."""
    x = draw.surrounded(draw.image(draw.number(1, 3)))
    shape = draw.sizes(x)
    mode = draw.pick("edge", "reflect", "symmetric")
    margins = [
        [draw.number(0, min(n - (mode == "reflect"), 4) if mode != "edge" else 4) for n in shape]
        for _ in range(2)
    ]
    y = draw.add("Pad", "opset1", x, *map(draw.constant, margins), pad_mode=mode)
    draw.check(draw.surrounded(y))


def grouped(draw: Draw) -> None:
    """Groups of channels made alike, of images large and small."""
    axes, groups = draw.number(0, 3), draw.pick(1, 2, 3)
    channels = groups * draw.number(1, 5)
    x = draw.image(axes, channels) if axes else draw.input(draw.number(1, 3), channels)
    if axes == 2 and draw.chance(0.3):
        x = draw.add("ReLU", "opset1", draw.input(1, channels, 200, 300))
    scale, bias = (draw.constant(draw.array(channels)) for _ in range(2))
    words = {"num_groups": groups, "epsilon": 1e-4}
    y = draw.surrounded(draw.add("GroupNormalization", "opset12", x, scale, bias, **words))
    if axes and draw.chance(0.4):
        # Its channels lie among others.
        weights = draw.constant(draw.array(3, channels, *[1] * axes))
        other = draw.add("Convolution", "opset1", x, weights, **windows(axes))
        y = draw.add("Concat", "opset1", *draw.pick((y, other), (other, y)), axis=1)
        if draw.chance():
            weights = draw.constant(draw.array(2, channels + 3, *[1] * axes))
            y = draw.add("Convolution", "opset1", y, weights, **windows(axes))
    draw.check(y)


def excited(draw: Draw) -> None:
    """Images and a number for each channel, which are computed."""
    axes = draw.number(1, 3)
    x = draw.surrounded(draw.image(axes))
    means = draw.add(
        "ReduceMean", "opset1", x, draw.constant(list(range(2, 2 + axes))), keep_dims=True
    )
    kind = draw.pick("Multiply", "Add", "Subtract", "Maximum", "SquaredDifference")
    pair = draw.pick((x, means), (means, x))
    draw.check(draw.surrounded(draw.add(kind, "opset1", *pair)))


KERNELS = [
    attention,
    put_together,
    raised,
    rolled,
    quantized,
    recurrent,
    resized,
    dilated,
    several,
    mirrored,
    grouped,
    excited,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(DRAWS))
def test_a_kernel_gives_what_the_definition_gives(
    kernel: Callable[[Draw], None], seed: int
) -> None:
    kernel(Draw(seed))


class Same(Draw):
    """A network whose answers are held against each other, bit by bit."""

    def check(self, *results: ir.builder.Output) -> None:
        for number, result in enumerate(results):
            self.net.result(result, name=f"y{number}")
        model = self.net.model()
        inferred = ir.infer(model)
        given = [self.array(*inferred.of(p)[0].shape.static) for p in model.parameters]
        wanted: dict[str, bytes] = {}
        for threads, fork in ((1, False), (2, True), (3, False), (4, True)):
            program = ir.compile(model, threads=threads, fork=fork)
            for _ in range(3):
                found = {name: array.tobytes() for name, array in program(given).items()}
                assert found == (wanted := wanted or found)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(100, 102))
def test_the_answer_is_one_whoever_works(kernel: Callable[[Draw], None], seed: int) -> None:
    kernel(Same(seed))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (0.0, 1.0), (1.0, 1.0), (2.0, -1.0)])
def test_what_is_no_number_is_rounded_as_the_definition_does(low: float, high: float) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 1000))
    limits = [net.constant(np.float32(limit)) for limit in (low, high, -3, 5)]
    net.result(net.add("FakeQuantize", "opset1", [x, *limits], levels=17), name="y")
    model = net.model()
    odd = np.random.default_rng(0).standard_normal((2, 1000)).astype("f4") * 3
    odd[:, :6] = np.nan, np.inf, -np.inf, low, high, -0.0
    wanted = ir.run(model, [odd])["y"]
    np.testing.assert_allclose(ir.compile(model)([odd])["y"], wanted, rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize("hidden", [-100.0, -1e4, -np.inf, 95.0, -3.4028235e38])
def test_weights_are_right_however_large_scores_are(scale: float, hidden: float) -> None:
    net = ir.Builder()
    q, k, v = (net.parameter(name, "f32", (2, 50, 8)) for name in "qkv")
    rng = np.random.default_rng(2)
    mask = np.where(rng.random((50, 50)) < 0.5, hidden, 0).astype("f4")
    mask[3] = hidden if np.isfinite(hidden) else 0
    mask[:, 7] = 0
    inputs = [q, k, v, net.constant(mask), net.constant(np.float32(scale))]
    net.result(net.add("ScaledDotProductAttention", "opset13", inputs, causal=False), name="y")
    scores = net.add("MatMul", "opset1", [q, k], transpose_a=False, transpose_b=True)
    scores = net.add("Add", "opset1", [scores, net.constant(mask)])
    net.result(net.add("SoftMax", "opset8", [scores], axis=-1), name="z")
    model = net.model()
    given = [rng.standard_normal((2, 50, 8)).astype("f4") for _ in range(3)]
    wanted, found = ir.run(model, given), ir.compile(model)(given)
    for name in "yz":
        np.testing.assert_allclose(found[name], wanted[name], rtol=2e-3, atol=1e-5 * scale**0.5)


def test_what_is_not_normal_is_zero_only_where_a_mask_hides_it() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 4, 64))
    net.result(net.add("Multiply", "opset1", [x, net.constant(np.float32(1e-20))]), name="y")
    tiny = np.full((1, 4, 64), 1e-20, "f4")
    mask = net.constant(np.tril(np.full((4, 4), -90, "f4"), -1))
    net.result(
        net.add("ScaledDotProductAttention", "opset13", [x, x, x, mask], causal=False), name="z"
    )
    wanted = ir.run(net.model(), [tiny])
    assert wanted["y"].min() > 0
    for fork in (True, False):
        found = ir.compile(net.model(), threads=2, fork=fork)([tiny])
        np.testing.assert_array_equal(found["y"], wanted["y"])
        np.testing.assert_allclose(found["z"], wanted["z"], atol=1e-30)
        assert (tiny * tiny > 0).all()  # nor afterwards, in the thread that called
    with flushing:
        assert (tiny * tiny == 0).all() == flushes()


def test_rows_that_see_nothing_are_no_numbers() -> None:
    net = ir.Builder()
    q, k, v = (net.parameter(name, "f32", (1, 3, 4)) for name in "qkv")
    mask = np.array([[True, False, True], [False] * 3, [True] * 3])
    inputs = [q, k, v, net.constant(mask)]
    net.result(net.add("ScaledDotProductAttention", "opset13", inputs, causal=False), name="y")
    model = net.model()
    rng = np.random.default_rng(1)
    given = [rng.standard_normal((1, 3, 4)).astype("f4") for _ in range(3)]
    given[2][0, 2, 1] = np.inf
    wanted = ir.run(model, given)["y"]
    assert np.isnan(wanted[0, 1]).all()
    np.testing.assert_allclose(ir.compile(model)(given)["y"], wanted, rtol=1e-5)
