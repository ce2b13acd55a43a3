"""Networks drawn at random: a program gives what the definitions give, rounded or not."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_networks import Rounded, Tokens
from test_program import NETWORKS, assert_close, feed
from vinoir import ir
from vinoir.ir.engine import means as counted_on
from vinoir.ir.engine.plan.quantized import MOVING
from vinoir.ir.engine.program import Program
from vinoir.schemas import Array

#: A number at the edge between two levels may fall to either side: so far apart are some.
STEP, SOME = 0.08, 0.04


def assert_rounded_alike(found: ir.Outputs, wanted: ir.Outputs) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].shape == array.shape
        apart = np.abs(found[name] - array) > STEP * max(float(np.abs(array).max()), 0.01)
        assert apart.mean() <= SOME


def assert_answers_again(program: Program, inputs: list[Array], found: ir.Outputs) -> None:
    """Called again, and by threads, it gives the same to the bit."""
    again = ir.compile(program.model, threads=2, fork=False)(inputs)
    for name, array in program(inputs).items():
        np.testing.assert_array_equal(array, found[name])
        np.testing.assert_array_equal(array, again[name])


@pytest.mark.parametrize("library", [True, False], ids=["integers", "numbers"])
@pytest.mark.parametrize("seed", range(NETWORKS))
def test_rounded_networks(seed: int, library: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not library:
        monkeypatch.setattr(counted_on, "integer_products", lambda: None)
    model = Rounded(seed).model(batch=1 + seed % 2)
    program, inputs = ir.compile(model, threads=1 + seed % 2), feed(model)
    found = program(inputs)
    assert_rounded_alike(found, ir.run(model, inputs))
    assert_answers_again(program, inputs, found)


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_networks_of_tokens(seed: int) -> None:
    model = Tokens(seed).model(batch=1 + seed % 2)
    program, inputs = ir.compile(model, threads=1 + seed % 2), feed(model)
    found = program(inputs)
    assert_close(found, ir.run(model, inputs))
    assert_answers_again(program, inputs, found)


@pytest.mark.parametrize("kind", sorted(MOVING - {"MaxPool"}))
@pytest.mark.parametrize("further", [False, True])
def test_levels_that_are_moved_are_handed_out_as_numbers(kind: str, further: bool) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 4, 1, 6))
    ends = [net.constant(np.array(end, "f4")) for end in (-2, 1.984375)] * 2
    x = net.add("FakeQuantize", "opset1", [x, *ends], levels=256)

    def whole(*numbers: int) -> ir.Output:
        return net.constant(np.array(numbers, "i8"))

    one = net.constant(np.array(1, "i8"))
    moved = {
        "Concat": lambda: net.add("Concat", "opset1", [x, x], axis=1),
        "Identity": lambda: net.add("Identity", "opset16", [x]),
        "Reshape": lambda: net.add("Reshape", "opset1", [x, whole(1, 2, 2, 6)], special_zero=True),
        "ShuffleChannels": lambda: net.add("ShuffleChannels", "opset3", [x], axis=1, group=2),
        "Slice": lambda: net.add("Slice", "opset8", [x, *map(whole, (1, 3, 1, 1))]),
        "Split": lambda: net.add("Split", "opset1", [x, one], num_splits=2),
        "Squeeze": lambda: net.add("Squeeze", "opset1", [x, whole(2)]),
        "StridedSlice": lambda: net.add(
            "StridedSlice", "opset1", [x, whole(0, 1), whole(1, 3), whole(1, 1)],
            begin_mask=(0, 0), end_mask=(0, 0),
        ),
        "Transpose": lambda: net.add("Transpose", "opset1", [x, whole(0, 2, 3, 1)]),
        "Unsqueeze": lambda: net.add("Unsqueeze", "opset1", [x, whole(1)]),
        "VariadicSplit": lambda: net.add("VariadicSplit", "opset1", [x, one, whole(1, 3)]),
    }  # fmt: skip
    made = moved[kind]()
    parts = [made[0], made[1]] if "Split" in kind else [made]
    for number, part in enumerate(parts):
        net.result(part, name=f"y{number}")
    if further:  # and somebody multiplies them
        weights = net.constant(np.full((3, parts[0].tensor.shape.static[-1]), 0.25, "f4"))
        net.result(
            net.add("MatMul", "opset1", [parts[0], weights], transpose_a=False, transpose_b=True),
            name="z",
        )
    model = net.model()
    assert_close(ir.compile(model)(feed(model)), ir.run(model, feed(model)))


@pytest.mark.parametrize("weights", ["f4", "f2", "f8", "i1", "u1", "turned", "cut"])
@pytest.mark.parametrize("limits", ["f4", "f2", "number", "negative"])
def test_weights_that_are_rounded_however_they_are_said(weights: str, limits: str) -> None:
    net = ir.Builder()
    rng = np.random.default_rng(7)
    x = net.parameter("x", "f32", (1, 8, 6, 6))
    numbers = rng.integers(-127, 128, (16, 8, 3, 3)).astype("f4")
    numbers = abs(numbers) if weights == "u1" else numbers

    def converted(array: np.ndarray) -> ir.Output:
        return net.add("Convert", "opset1", [net.constant(array)], destination_type="f32")

    def end(value: float) -> ir.Output:
        array = np.full(() if limits == "number" else (1, 1, 1, 1), value, "f4")
        if limits == "f2":
            return converted(array.astype("f2"))
        if limits == "negative":
            return net.add("Negative", "opset1", [net.constant(-array)])
        return net.constant(array)

    if weights == "turned":
        held = net.constant(np.ascontiguousarray(numbers.transpose(3, 2, 1, 0)))
        given = net.add("Transpose", "opset1", [held, net.constant(np.array([3, 2, 1, 0], "i8"))])
    elif weights == "cut":
        halves = [net.constant(numbers[:8]), net.constant(numbers[8:])]
        given = net.add("Concat", "opset1", halves, axis=0)
    else:
        given = net.constant(numbers) if weights == "f4" else converted(numbers.astype(weights))
    ends = [end(value) for value in (-127, 127, -0.5, 0.5)]
    w = net.add("FakeQuantize", "opset1", [given, *ends], levels=255)
    steps = [net.constant(np.array(value, "f4")) for value in (0, 2, 0, 2)]
    x = net.add("FakeQuantize", "opset1", [x, *steps], levels=256)
    words = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
    net.result(net.add("Convolution", "opset1", [x, w], **words), name="y")
    model = net.model()
    inputs = feed(model)
    assert_close(ir.compile(model)(inputs), ir.run(model, inputs))


@pytest.mark.parametrize("sizes", [(), (1,), (1, 1), (16, 1, 1, 1)])
@pytest.mark.parametrize("zero", [None, (), (1,), (16, 1, 1, 1)])
def test_scales_of_levels_of_any_shape(
    sizes: tuple[int, ...], zero: tuple[int, ...] | None
) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 8, 6, 6))
    levels = np.random.default_rng(3).integers(0, 256, (16, 8, 3, 3)).astype("u1")
    w = net.add("Convert", "opset1", [net.constant(levels)], destination_type="f32")
    if zero is not None:
        w = net.add("Subtract", "opset1", [w, net.constant(np.full(zero, 128, "f4"))])
    w = net.add("Multiply", "opset1", [w, net.constant(np.full(sizes, 0.01, "f4"))])
    steps = [net.constant(np.array(value, "f4")) for value in (0, 2, 0, 2)]
    x = net.add("FakeQuantize", "opset1", [x, *steps], levels=256)
    words = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
    net.result(net.add("Convolution", "opset1", [x, w], **words), name="y")
    model = net.model()
    inputs = feed(model)
    for memory in ("small", "fast"):
        assert_close(ir.compile(model, memory=memory)(inputs), ir.run(model, inputs))


@pytest.mark.parametrize("sizes", [(3, 0), (0, 3), (0, 0), (3, 2)])
def test_attention_to_nothing(sizes: tuple[int, int]) -> None:
    net = ir.Builder()
    q, k, v = (net.parameter(name, "f32", "1,4,?,8") for name in "qkv")
    net.result(net.add("ScaledDotProductAttention", "opset13", [q, k, v], causal=False), name="y")
    model, (rows, keys) = net.model(), sizes
    rng = np.random.default_rng(2)
    inputs = [rng.standard_normal((1, 4, count, 8)).astype("f4") for count in (rows, keys, keys)]
    wanted = ir.run(model, inputs)
    assert wanted["y"].shape == (1, 4, rows, 8)
    program = ir.compile(model)
    for _ in range(3):
        assert_close(program(inputs), wanted)


@pytest.mark.parametrize("levels", [256, 255, 16, 15, 4])
@pytest.mark.parametrize(
    "ends",
    [
        (-3, 12),
        (-1, 1),
        (0, 4),
        (-128, 127),
        (-127, 127),
        (-4, 11),
        (-7.5, 7.5),
        (-8, 7),
        (-1.5, 6),
    ],
)
@pytest.mark.parametrize("before", [None, (256, -8, 7.9375), (16, -2, 5.5)])
def test_halves_fall_to_the_side_of_the_definition(
    levels: int, ends: tuple[float, float], before: tuple[int, float, float] | None
) -> None:
    net = ir.Builder()
    y = net.parameter("x", "f32", (1, 4, 20, 20))
    for count, *limits in [*([] if before is None else [before]), (levels, *ends)]:
        words = [net.constant(np.array(limit, "f4")) for limit in [*limits, *limits]]
        y = net.add("FakeQuantize", "opset1", [y, *words], levels=count)
        net.result(y)  # so that each is rounded by itself
    model = net.model()
    given = (np.arange(1600, dtype="f4").reshape(1, 4, 20, 20) - 800) / 80
    given = np.rint(2 * given) / 2 if before is None else given
    wanted = ir.run(model, [given])
    assert_close(ir.compile(model)([given]), wanted)
