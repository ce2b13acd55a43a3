"""Quantised networks: products of integers give what the definitions and OpenVINO give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine import means as counted_on
from vinoir.ir.engine.means import means
from vinoir.ir.engine.passes import optimize
from vinoir.ir.engine.plan import build
from vinoir.ir.engine.plan import quantized as costs
from vinoir.ir.engine.workers import integer_products
from vinoir.ir.inference import infer
from vinoir.schemas import Array

LIBRARY = integer_products()
#: What a sum takes beside its products, where tests do not say otherwise.
BESIDE = costs.SUMMED
needs_library = pytest.mark.skipif(LIBRARY is None, reason="the extra fast is not installed")


pytestmark = pytest.mark.usefixtures("integers_are_quick")


@contextmanager
def rounding_by_library(*, asked: bool) -> Iterator[None]:
    """Whether the library rounds to bytes, where it can, or NumPy does."""
    assert LIBRARY is not None
    before, LIBRARY.rounds = LIBRARY.rounds, LIBRARY.rounds and asked
    try:
        yield
    finally:
        LIBRARY.rounds = before


@contextmanager
def whatever_it_takes() -> Iterator[None]:
    """Groups are multiplied as integers, as if numbers took forever."""
    before = costs.GROUPED, costs.SUM
    costs.GROUPED = costs.SUM = 1e9
    try:
        yield
    finally:
        costs.GROUPED, costs.SUM = before


class Net:
    """A small network whose activations and weights are quantised."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.net = ir.Builder()

    def constant(self, values: Any, kind: str = "f32") -> ir.builder.Output:
        return self.net.constant(np.asarray(values), kind)

    def add(self, kind: str, *inputs: Any, opset: str = "opset1", **words: Any) -> Any:
        return self.net.add(kind, opset, list(inputs), **words)

    def quantized(self, x: Any, signed: bool, levels: int = 256, first: float = 2.0) -> Any:
        """Zero is one of the levels, as it is in all that tools write."""
        step = first / 100
        low = -step * (levels // 2) if signed else 0.0
        limits = [self.constant(np.float32(v)) for v in (low, low + step * (levels - 1)) * 2]
        return self.add("FakeQuantize", x, *limits, levels=levels)

    def weights(self, *shape: int, symmetric: bool = True) -> Any:
        levels = self.constant(self.rng.integers(-127, 128, shape), "i8")
        made = self.add("Convert", levels, destination_type="f32")
        if not symmetric:
            made = self.add("Subtract", made, self.constant(self.rng.integers(1, 9, (1,))))
        scale = self.rng.random((shape[0], *[1] * (len(shape) - 1))) / 200 + 1e-3
        return self.add("Multiply", made, self.constant(scale))

    def exact_weights(self, *shape: int) -> Any:
        """Sums of products by these are exact in float32, too."""
        levels = self.constant(self.rng.integers(-127, 128, shape), "i8")
        made = self.add("Convert", levels, destination_type="f32")
        return self.add("Multiply", made, self.constant(np.float32(2.0**-9)))

    def rounded(self, *shape: int, levels: int = 255) -> Any:
        """Weights as tools leave them before they are compressed."""
        numbers = self.rng.standard_normal(shape).astype("f4")
        most = np.abs(numbers).max(axis=tuple(range(1, len(shape))), keepdims=True)
        least = -most * (levels // 2) / ((levels - 1) // 2)
        limits = [self.constant(end) for end in (least, most) * 2]
        return self.add("FakeQuantize", self.constant(numbers), *limits, levels=levels)

    def model(self, *outputs: Any) -> ir.Model:
        for output in outputs:
            self.net.result(output)
        return self.net.model()


def integer_nodes(model: ir.Model) -> int:
    """How many nodes are products of integers."""
    plan = build(model, infer(model))
    plan.means = means(plan, None)
    optimize(plan, after_each=lambda plan: plan.verify())
    return sum(node.integers is not None for node in plan.nodes)


def compared(model: ir.Model, arrays: list[Array], **words: Any) -> None:
    """A program gives what the definitions give, whoever helps."""
    wanted = list(ir.run(model, arrays).values())
    for threads in (1, 2):
        program = ir.compile(model, threads=threads, **words)
        for value, right in zip(program(arrays).values(), wanted, strict=True):
            assert value.shape == right.shape
            # What is summed up is about 1: where sums vanish, their rounding does not.
            scale = max(float(np.abs(right).max()), 0.1)
            assert float(np.abs(value - right).max()) <= 1e-5 * scale


@needs_library
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    signed=st.booleans(),
    levels=st.sampled_from([255, 256, 16]),
    channels=st.sampled_from([1, 3, 8, 33]),
    outer=st.sampled_from([1, 5, 64, 130]),
    kernel=st.sampled_from([(1, 1), (3, 3), (2, 5), (7, 7)]),
    stride=st.sampled_from([1, 2]),
    dilation=st.sampled_from([1, 2]),
    pad=st.sampled_from([0, 1, 3]),
    size=st.sampled_from([5, 9, 17]),
    between=st.sampled_from(["nothing", "pool", "concat", "split"]),
    fork=st.booleans(),
    rounds=st.booleans(),
)
def test_convolutions(
    seed: int,
    signed: bool,
    levels: int,
    channels: int,
    outer: int,
    kernel: tuple[int, int],
    stride: int,
    dilation: int,
    pad: int,
    size: int,
    between: str,
    fork: bool,
    rounds: bool,
) -> None:
    one = Net(seed)
    rng = one.rng
    wide = size + 2 * pad
    if (max(kernel) - 1) * dilation + 1 > wide - 1:
        dilation, kernel = 1, (1, 1)
    shape = (1 + seed % 2, channels, size, size + 1)
    x = one.net.parameter("x", "f32", shape)
    y = one.quantized(x, signed, levels)
    if between == "pool":
        y = one.add(
            "MaxPool", y, strides=[1, 1], kernel=[3, 3], pads_begin=[1, 1], pads_end=[1, 1]
        )
    elif between == "concat":
        y = one.add("Concat", y, one.quantized(one.add("Negative", x), signed, levels), axis=1)
        channels *= 2
    elif between == "split":
        y = one.add("Concat", y, y, axis=1)
        y = one.add("Split", y, one.constant(np.array(1), "i64"), num_splits=2)[0]
    y = one.add(
        "Convolution", y, one.weights(outer, channels, *kernel), strides=[stride, stride],
        dilations=[dilation, dilation], pads_begin=[pad, pad], pads_end=[pad, pad],
    )  # fmt: skip
    if seed % 3:
        y = one.add("Add", y, one.constant(rng.standard_normal((1, outer, 1, 1))))
    if seed % 2:
        y = one.add("ReLU", y)
    if seed % 5 == 0:
        y = one.add("Multiply", y, one.constant(rng.standard_normal((1, outer, 1, 1))))
    model = one.model(y)
    assert integer_nodes(model) == 1
    with rounding_by_library(asked=rounds):
        compared(model, [rng.standard_normal(shape).astype("f4")], fork=fork)


@needs_library
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    signed=st.booleans(),
    groups=st.sampled_from([2, 5, 16, 24, 96]),
    inner=st.sampled_from([1, 1, 3, 16]),
    each=st.sampled_from([1, 2, 16]),
    kernel=st.sampled_from([(1, 1), (3, 3), (2, 5), (5, 2), (7, 7), (3,), (9,)]),
    stride=st.sampled_from([1, 2, 3]),
    dilation=st.sampled_from([1, 2]),
    pads=st.sampled_from([(0, 0), (1, 1), (0, 2), (3, 0)]),
    size=st.sampled_from([1, 6, 9, 33]),
    after=st.sampled_from(["", "ReLU", "Gelu", "FakeQuantize", "Add", "by channel", "shuffle"]),
    fork=st.booleans(),
)
def test_convolutions_of_groups(
    seed: int,
    signed: bool,
    groups: int,
    inner: int,
    each: int,
    kernel: tuple[int, ...],
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    size: int,
    after: str,
    fork: bool,
) -> None:
    """However groups go together, and whatever of the windows is padding."""
    one, axes = Net(seed), len(kernel)
    rng, outer = one.rng, groups * each
    if (max(kernel) - 1) * dilation + 1 > size + sum(pads):
        dilation, kernel = 1, (1,) * axes
    shape = 1 + seed % 2, groups * inner, *(size, size + 1)[:axes]
    x = one.net.parameter("x", "f32", shape)
    # Where steps and scales are powers of two there is no rounding that may go another way.
    y = one.quantized(x, signed, first=100 / 32)
    y = one.add(
        "GroupConvolution", y, one.exact_weights(groups, each, inner, *kernel),
        strides=[stride] * axes,
        dilations=[dilation] * axes, pads_begin=[pads[0]] * axes, pads_end=[pads[1]] * axes,
    )  # fmt: skip
    along = (1, outer, *[1] * axes)
    if seed % 3:
        y = one.add("Add", y, one.constant(rng.integers(-9, 9, along) / 8))
    if after in ("ReLU", "Gelu"):
        y = one.add(after, y, opset="opset7" if after == "Gelu" else "opset1")
    elif after == "FakeQuantize":
        y = one.quantized(y, signed, first=100 / 4)
        y = one.add("GroupConvolution", y, one.exact_weights(groups, 1, each, *[1] * axes),
                    strides=[1] * axes, dilations=[1] * axes, pads_begin=[0] * axes,
                    pads_end=[0] * axes)  # fmt: skip
    elif after == "Add":
        y = one.add("Multiply", y, one.add("Sigmoid", y))
    elif after == "by channel":
        y = one.add("PReLU", y, one.constant(rng.random(outer)))
    elif after == "shuffle":
        y = one.add("ShuffleChannels", y, axis=1, group=groups)
    model = one.model(y)
    with whatever_it_takes():
        assert integer_nodes(model) >= 1
        compared(model, [rng.standard_normal(shape).astype("f4")], fork=fork)


@needs_library
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.sampled_from([1, 7, 130, 300]),
    inner=st.sampled_from([1, 32, 100]),
    outer=st.sampled_from([1, 16, 100, 300]),
    transposed=st.booleans(),
    signed=st.booleans(),
)
def test_rows(
    seed: int, rows: int, inner: int, outer: int, transposed: bool, signed: bool
) -> None:
    one = Net(seed)
    x = one.net.parameter("x", "f32", (2, rows, inner))
    y = one.quantized(x, signed)
    if seed % 2:
        order = one.constant(np.array([1, 0, 2]), "i64")
        y = one.add("Transpose", y, order)
    matrix = one.weights(outer, inner)
    if not transposed:
        levels = one.constant(one.rng.integers(-128, 128, (inner, outer)), "i8")
        made = one.add("Convert", levels, destination_type="f32")
        matrix = one.add("Multiply", made, one.constant(one.rng.random((1, outer)) / 100))
    y = one.add("MatMul", y, matrix, transpose_b=transposed)
    y = one.add("Add", y, one.constant(one.rng.standard_normal((1, 1, outer))))
    if seed % 3:
        y = one.add("Gelu", y, opset="opset7")
    model = one.model(y)
    assert integer_nodes(model) == 1
    compared(model, [one.rng.standard_normal((2, rows, inner)).astype("f4")])


@needs_library
@pytest.mark.parametrize("levels", [255, 256])
@pytest.mark.parametrize("kernel", [1, 3])
def test_weights_that_are_rounded_in_the_file(levels: int, kernel: int) -> None:
    one = Net(7)
    x = one.net.parameter("x", "f32", (1, 12, 9, 9))
    pads = [kernel // 2] * 2
    y = one.add(
        "Convolution", one.quantized(x, True), one.rounded(20, 12, kernel, kernel, levels=levels),
        strides=[1, 1], dilations=[1, 1], pads_begin=pads, pads_end=pads,
    )  # fmt: skip
    rows = one.add("Reshape", one.quantized(y, True), one.constant(np.array([20, 81]), "i64"),
                   special_zero=False)  # fmt: skip
    z = one.add("MatMul", rows, one.rounded(30, 81, levels=levels), transpose_b=True)
    model = one.model(y, z)
    assert integer_nodes(model) == 2
    compared(one.model(y), [one.rng.standard_normal((1, 12, 9, 9)).astype("f4")])


@needs_library
@pytest.mark.parametrize("what", ["limits by channel", "no zero", "many levels", "not symmetric"])
def test_what_is_more_than_a_product_of_integers(what: str) -> None:
    one = Net(1)
    x = one.net.parameter("x", "f32", (1, 4, 8, 8))
    if what == "limits by channel":
        ends = [
            np.full((1, 4, 1, 1), end, "f4") * [[[[1]], [[2]], [[3]], [[4]]]] for end in (-1, 1)
        ]
        y = one.add("FakeQuantize", x, *[one.constant(e) for e in ends * 2], levels=256)
    elif what == "no zero":
        limits = [one.constant(np.float32(v)) for v in (-0.011, 1.0, -0.011, 1.0)]
        y = one.add("FakeQuantize", x, *limits, levels=256)
    else:
        y = one.quantized(x, True, 1000 if what == "many levels" else 256)
    matrix = one.weights(6, 4, 3, 3, symmetric=what != "not symmetric")
    y = one.add(
        "Convolution", y, matrix, strides=[1, 1], dilations=[1, 1], pads_begin=[1, 1],
        pads_end=[1, 1],
    )  # fmt: skip
    model = one.model(y)
    assert integer_nodes(model) == 0
    compared(model, [one.rng.standard_normal((1, 4, 8, 8)).astype("f4")])


@pytest.mark.parametrize("low", [0.0, 0.5, -0.5])
def test_a_relu_before_levels_goes_only_where_they_clip(low: float) -> None:
    one = Net(2)
    x = one.net.parameter("x", "f32", (1, 4, 6, 6))
    y = one.add(
        "Convolution", x, one.constant(one.rng.standard_normal((5, 4, 1, 1))), strides=[1, 1],
        dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
    )  # fmt: skip
    limits = [one.constant(np.float32(v)) for v in (low, 2.0, low - 1, 3.0)]
    y = one.add("FakeQuantize", one.add("ReLU", y), *limits, levels=16)
    model = one.model(y)
    plan = build(model, infer(model))
    optimize(plan, after_each=lambda plan: plan.verify())
    (node,) = plan.nodes
    kept = [op.xml_type for op, _ in node.epilogue]
    assert kept == (["FakeQuantize"] if low >= 0 else ["ReLU", "FakeQuantize"])
    ends = [value.constant for value in node.epilogue[-1][1][1:3] if value is not None]
    assert [float(end) for end in ends if end is not None] == ([0, 15] if low >= 0 else [-0.5, 2])
    compared(model, [one.rng.standard_normal((1, 4, 6, 6)).astype("f4")])


@pytest.mark.parametrize("grows", [True, False])
def test_the_largest_are_found_before_levels(grows: bool) -> None:
    """Of levels that fall as numbers grow the largest is another one."""
    one = Net(3)
    x = one.net.parameter("x", "f32", (1, 5, 8, 8))
    y = one.add(
        "Convolution", x, one.constant(one.rng.standard_normal((6, 5, 1, 1))), strides=[1, 1],
        dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
    )  # fmt: skip
    ends = (-2.0, 2.0, -1.0, 1.0) if grows else (-2.0, 2.0, 1.0, -1.0)
    y = one.add("FakeQuantize", y, *[one.constant(np.float32(v)) for v in ends], levels=16)
    y = one.add("MaxPool", y, strides=[2, 2], kernel=[2, 2], pads_begin=[0, 0], pads_end=[0, 0])
    model = one.model(y)
    plan = build(model, infer(model))
    optimize(plan, after_each=lambda plan: plan.verify())
    pooling = next(node for node in plan.nodes if node.kind == "MaxPool")
    assert [op.xml_type for op, _ in pooling.epilogue] == (["FakeQuantize"] if grows else [])
    compared(model, [one.rng.standard_normal((1, 5, 8, 8)).astype("f4")])


def network(seed: int) -> ir.Model:
    """A few layers as tools quantise them: convolutions, a sum, a pooling, a last matrix."""
    one = Net(seed)
    rng, channels = one.rng, int(one.rng.integers(4, 20))
    words = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1]}
    x = one.net.parameter("x", "f32", (1, 3, 16, 16))
    y = one.quantized(x, True, 256, 3.0)
    y = one.add("Convolution", y, one.weights(channels, 3, 3, 3), **words)
    y = one.add("Add", y, one.constant(rng.standard_normal((1, channels, 1, 1))))
    y = one.quantized(one.add("ReLU", y), False, 256, 2.0)
    z = one.add("Convolution", y, one.weights(channels, channels, 3, 3), **words)
    z = one.quantized(z, True, 255, 4.0)
    y = one.quantized(one.add("ReLU", one.add("Add", y, z)), False, 256, 3.0)
    y = one.add("MaxPool", y, strides=[2, 2], kernel=[2, 2], pads_begin=[0, 0], pads_end=[0, 0])
    y = one.add("Reshape", y, one.constant(np.array([1, -1]), "i64"), special_zero=False)
    return one.model(one.add("MatMul", y, one.weights(10, channels * 64), transpose_b=True))


@pytest.mark.parametrize("library", [False, pytest.param(True, marks=needs_library)])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("small", [True, False], ids=["all sums", "long sums"])
def test_whole_networks_are_as_near_as_openvino_is_to_itself(
    small: bool, seed: int, library: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding near halves goes either way, which OpenVINO's int8 and its f32 show, too."""
    ov = pytest.importorskip("openvino")
    if not library:
        monkeypatch.setattr(counted_on, "integer_products", lambda: None)
    if not small:
        if LIBRARY is not None:
            monkeypatch.setattr(LIBRARY, "rate", 2.0)
        monkeypatch.setattr(costs, "SUMMED", BESIDE)
        monkeypatch.setattr(counted_on, "quickness", lambda: 1.0)
    model = network(seed)
    assert not library or integer_nodes(model) == (3 if small else 2)
    path = tmp_path / "model.xml"
    ir.write(model, path)
    array = np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype("f4")
    given = ov.Core().read_model(path)
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    theirs = [
        next(iter(ov.Core().compile_model(given, "CPU", exact | more)([array]).values()))
        for more in ({}, {"LP_TRANSFORMS_MODE": "NO"})
    ]
    (ours,) = ir.compile(model)([array]).values()
    scale = float(np.abs(theirs[0]).max())
    apart = float(np.abs(theirs[0] - theirs[1]).max())
    nearest = min(float(np.abs(ours - other).max()) for other in theirs)
    assert nearest <= max(apart, 1e-5 * scale)


@needs_library
@pytest.mark.parametrize("kind", ["Convolution", "MatMul"])
@pytest.mark.parametrize("taken", [16, 27, 64, 128, 256])
@pytest.mark.parametrize("quicker", [1.0, 2.0])
def test_short_sums_are_of_numbers(
    taken: int, kind: str, quicker: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LIBRARY is not None
    monkeypatch.setattr(LIBRARY, "rate", 2.0)
    monkeypatch.setattr(costs, "SUMMED", BESIDE)
    monkeypatch.setattr(counted_on, "quickness", lambda: quicker)
    net = Net(taken)
    if kind == "MatMul":
        shape: tuple[int, ...] = (1, 200, taken)
        words: dict[str, Any] = {"transpose_b": True}
        weights = net.weights(48, taken)
    else:
        shape = (1, taken, 15, 15)
        words = {
            "strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]
        }  # fmt: skip
        weights = net.weights(48, taken, 1, 1)
    x = net.net.parameter("x", "f32", shape)
    model = net.model(net.add(kind, net.quantized(x, True), weights, **words))
    assert integer_nodes(model) == (taken >= 64 * quicker)
    compared(model, [net.rng.standard_normal(shape).astype("f4")])


@pytest.mark.parametrize("behind", [0, 10, 64])
@pytest.mark.parametrize("taken", [1, 16, 27, 64, 100, 147])
def test_the_library_that_is_there_is_used_whatever_lies_behind_rows(
    taken: int, behind: int
) -> None:
    """Rows may be read up to whole vectors, if there is memory."""
    pytest.importorskip("numkong")
    assert LIBRARY is not None
    rng = np.random.default_rng(taken)
    memory = rng.integers(-128, 128, 9 * taken + behind).astype("i1")
    rows = memory[: 9 * taken].reshape(9, taken)
    columns = rng.integers(-128, 128, (130, taken)).astype("i1")
    out = np.empty((9, 130), "i4")
    part = LIBRARY.multiplied(rows, LIBRARY.pack(columns), out)
    for _ in range(2):
        part()
        np.testing.assert_array_equal(out, rows.astype("i4") @ columns.astype("i4").T)
        memory[:] = rng.integers(-128, 128, memory.size)


@needs_library
@pytest.mark.parametrize("shares", [1, 4])
def test_columns_are_packed_in_blocks_that_suit_the_rows(
    shares: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LIBRARY is not None
    monkeypatch.setattr(LIBRARY, "by_tiles", False)
    rng = np.random.default_rng(shares)
    for rows, columns in product((1, 4, 7, 42, 64, 99), (1, 3, 8, 12, 64, 100, 127, 384, 516)):
        left, right = rng.integers(-128, 128, (2, max(rows, columns), 320)).astype("i1")
        left, right = left[:rows], right[:columns]
        found = LIBRARY.blocks(rows, 320, columns, shares)
        assert sum(found[:-1]) < columns <= sum(found) < columns + 8
        if columns >= 127:
            assert len(found) % shares == 0
        if columns >= 128 and rows > 40:
            # Four rows meet four columns wherever they lie: else it takes half as long again.
            assert all(wide % 8 == 4 or wide < 2 * min(rows % 64 or 64, 64) for wide in found)
        ends = np.cumsum([0, *found])
        for begin, wide in zip(ends, found, strict=False):
            some = right[begin : begin + wide]
            out = np.full((rows, wide), 7, "i4")
            LIBRARY.multiplied(left, LIBRARY.pack(some, wide), out)()
            wanted = left.astype("i4") @ some.astype("i4").T
            np.testing.assert_array_equal(out[:, : len(some)], wanted)
            assert not out[:, len(some) :].any()
