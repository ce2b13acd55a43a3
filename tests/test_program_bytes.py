"""Levels kept as bytes: networks of powers of two, where every sum is exact, give every bit."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels.blocks import Scratch
from vinoir.ir.engine.kernels.quantizing import quantized, rounding
from vinoir.ir.engine.kernels.tabled import looked_up
from vinoir.ir.engine.means import means
from vinoir.ir.engine.memory import private
from vinoir.ir.engine.passes import optimize
from vinoir.ir.engine.plan import Plan, build, table
from vinoir.ir.engine.workers.integers import LANES
from vinoir.ir.inference import infer
from vinoir.layers.base import Op
from vinoir.schemas import Array

from .test_program_quantized import LIBRARY, Net, needs_library, rounding_by_library

pytestmark = pytest.mark.usefixtures("integers_are_quick")

PADDED = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1]}


class Exact(Net):
    """A network whose steps and weights are powers of two times small integers."""

    def rounded_to(self, x: Any, signed: bool = True, levels: int = 256, power: int = 5) -> Any:
        low = -(levels // 2) if signed else 0
        ends = [self.constant(np.float32(end / 2**power)) for end in (low, low + levels - 1)]
        return self.add("FakeQuantize", x, *ends, *ends, levels=levels)

    def matrix(self, *shape: int) -> Any:
        levels = self.constant(self.rng.integers(-9, 10, shape), "i8")
        made = self.add("Convert", levels, destination_type="f32")
        scale = 0.5 ** self.rng.integers(6, 9, (shape[0], *[1] * (len(shape) - 1)))
        return self.add("Multiply", made, self.constant(scale))

    def convolved(self, x: Any, inner: int, outer: int, size: int = 3) -> Any:
        words = PADDED if size == 3 else PADDED | {"pads_begin": [0, 0], "pads_end": [0, 0]}
        y = self.add("Convolution", x, self.matrix(outer, inner, size, size), **words)
        bias = self.rng.integers(-64, 64, (1, outer, 1, 1)) / 32
        return self.add("Add", y, self.constant(bias))

    def pooled(self, x: Any, size: int, kind: str = "MaxPool") -> Any:
        return self.add(
            kind, x, strides=[size - 1] * 2, kernel=[size] * 2, pads_begin=[size // 3] * 2,
            pads_end=[size // 3] * 2,
        )  # fmt: skip

    def by_channel(self, x: Any, channels: int) -> Any:
        weights = self.constant(self.rng.integers(-9, 10, (channels, 1, 1, 3, 3)) / 64)
        return self.add("GroupConvolution", x, weights, **PADDED)


def planned(model: ir.Model) -> Plan:
    """The plan of a model, verified after each pass."""
    plan = build(model, infer(model))
    plan.means = means(plan, None)
    optimize(plan, after_each=lambda plan: plan.verify())
    return plan


def same_bits(model: ir.Model, arrays: list[Array]) -> None:
    """A program gives what the definitions give, whoever helps and rounds."""
    wanted = list(ir.run(model, arrays).values())
    for asked in (True, False):
        with rounding_by_library(asked=asked):
            for threads, fork in ((1, False), (2, True), (2, False)):
                found = ir.compile(model, threads=threads, fork=fork)(arrays)
                for value, right in zip(found.values(), wanted, strict=True):
                    np.testing.assert_array_equal(value, right)


def _two_convolutions(n: Exact, x: Any) -> Any:
    return n.rounded_to(n.convolved(x, 8, 8))


def _relu(n: Exact, x: Any) -> Any:
    return n.rounded_to(n.add("ReLU", n.convolved(x, 8, 8)), signed=False)


def _fewer_levels(n: Exact, x: Any) -> Any:
    return n.rounded_to(n.convolved(x, 8, 8), levels=255)


def _pooled(n: Exact, x: Any) -> Any:
    return n.pooled(n.rounded_to(n.convolved(x, 8, 8), levels=255), 3)


def _pooled_first(n: Exact, x: Any) -> Any:
    return n.rounded_to(n.pooled(n.add("ReLU", n.convolved(x, 8, 8)), 2), signed=False)


def _averaged(n: Exact, x: Any) -> Any:
    return n.rounded_to(n.add("AvgPool", n.convolved(x, 8, 8), strides=[1, 1], kernel=[2, 2],
                              pads_begin=[0, 0], pads_end=[0, 0], exclude_pad=True))  # fmt: skip


def _residual(n: Exact, x: Any) -> Any:
    y = n.rounded_to(n.convolved(x, 8, 8), signed=False)
    z = n.rounded_to(n.convolved(y, 8, 8))
    return n.rounded_to(n.add("ReLU", n.add("Add", z, y)), signed=False, power=4)


def _difference(n: Exact, x: Any) -> Any:
    y = n.rounded_to(n.convolved(x, 8, 8), power=4)
    z = n.convolved(y, 8, 8)
    return n.rounded_to(n.add("Multiply", n.add("Subtract", y, z), y), power=3)


def _concat(n: Exact, x: Any) -> Any:
    y = n.rounded_to(n.convolved(x, 8, 3))
    z = n.rounded_to(n.add("Negative", x))
    y = n.add("Concat", y, n.rounded_to(n.convolved(x, 8, 5)), z, axis=1)
    return n.add("Split", y, n.constant(np.array(1), "i64"), num_splits=2)[1]


def _by_channel(n: Exact, x: Any) -> Any:
    y = n.rounded_to(n.convolved(x, 8, 8))
    return n.rounded_to(n.by_channel(y, 8))


def _sums(n: Exact, x: Any) -> Any:
    y = n.add("Add", n.convolved(x, 8, 8), n.convolved(x, 8, 8, size=1))
    return n.rounded_to(n.add("Multiply", n.add("Abs", y), n.constant(np.float32(0.5))), power=4)


def _scaled(n: Exact, x: Any) -> Any:
    factor = n.constant(0.5 ** n.rng.integers(0, 3, (1, 8, 1, 1)))
    y = n.add("Multiply", n.add("Abs", n.convolved(x, 8, 8)), factor)
    ends = [n.constant(np.float32(end / 32)) for end in (-36, 219)]
    return n.add("FakeQuantize", y, *ends, *ends, levels=256)


def _scaled_and_moved(n: Exact, x: Any) -> Any:
    y = n.rounded_to(n.add("ReLU", x))
    y = n.add("Multiply", y, n.constant(0.5 ** n.rng.integers(0, 3, (1, 8, 1, 1))))
    y = n.add("Add", y, n.constant(n.rng.integers(-64, 64, (1, 8, 1, 1)) / 32))
    ends = [n.constant(np.float32(end / 32)) for end in (-36, 219)]
    return n.add("FakeQuantize", y, *ends, *ends, levels=256)


def _read_by_itself(n: Exact, x: Any) -> Any:
    y, z = (n.rounded_to(n.convolved(x, 8, 8), power=4) for _ in range(2))
    both = n.add("ReLU", n.add("Subtract", y, z))
    square = n.add("SquaredDifference", y, n.rounded_to(n.convolved(z, 8, 8)))
    y = n.rounded_to(n.add("Add", n.convolved(y, 8, 8), both))
    return n.rounded_to(n.add("Add", y, square))


def _grouped(n: Exact, x: Any) -> Any:
    weights = n.constant(n.rng.integers(-9, 10, (2, 4, 4, 3, 3)) / 64)
    y = n.add("GroupConvolution", n.rounded_to(n.convolved(x, 8, 8)), weights, **PADDED)
    return n.rounded_to(y)


def _turned(n: Exact, x: Any) -> Any:
    y = n.add("Transpose", n.rounded_to(n.convolved(x, 8, 8)), n.constant([0, 1, 3, 2], "i64"))
    return n.add("Reshape", y, n.constant([0, 8, -1, 3], "i64"), special_zero=True)


def _branches(n: Exact, x: Any) -> Any:
    """All that is added are levels, and all that reads them adds them."""
    y = n.rounded_to(n.convolved(x, 8, 8), power=4)
    z = n.rounded_to(n.convolved(x, 8, 8, size=1), signed=False, power=3)
    more = n.rounded_to(n.convolved(x, 8, 8, size=1), power=2)
    return n.rounded_to(n.add("Add", n.add("Add", y, z), more), power=2)


def _rounded_before_and_after(n: Exact, x: Any) -> Any:
    y = n.rounded_to(n.convolved(x, 8, 8), power=4)
    z = n.add("Concat", n.convolved(y, 8, 3), n.add("Negative", n.convolved(y, 8, 5)), axis=1)
    return n.rounded_to(n.add("Add", n.rounded_to(z, levels=16, power=1), y), power=3)


@needs_library
@pytest.mark.parametrize(("make", "kept"), [
    (_branches, 4), (_rounded_before_and_after, 3),
    (_two_convolutions, 2), (_relu, 2), (_fewer_levels, 2), (_pooled, 3), (_pooled_first, 2),
    (_averaged, 2), (_residual, 3), (_difference, 3), (_concat, 7), (_by_channel, 3), (_sums, 2),
    (_turned, 4), (_read_by_itself, 4), (_grouped, 2), (_scaled, 2), (_scaled_and_moved, 1),
])  # fmt: skip
@pytest.mark.parametrize("levels", [256, 255])
@pytest.mark.parametrize("size", [6, 15])
def test_levels_are_kept_as_bytes(
    make: Callable[[Exact, Any], Any], kept: int, levels: int, size: int
) -> None:
    n = Exact(size + levels)
    x = n.net.parameter("x", "f32", (2, 8, size, size + 3))
    y = make(n, n.rounded_to(x, levels=levels, power=4))
    model = n.model(n.convolved(y, 8, 7, size=1))
    plan = planned(model)
    values = {value for node in plan.nodes for value in node.outputs}
    assert sum(value.type == np.int8 for value in values) == kept
    arrays = [(n.rng.integers(-900, 900, (2, 8, size, size + 3)) / 64).astype("f4")]
    same_bits(model, arrays)


@needs_library
@pytest.mark.parametrize("rows", [5, 200])
def test_rows_of_matrices_are_kept_as_bytes(rows: int) -> None:
    n = Exact(rows)
    x = n.net.parameter("x", "f32", (3, rows, 40))
    y = n.add("MatMul", n.rounded_to(x), n.matrix(70, 40), transpose_b=True)
    y = n.rounded_to(n.add("Add", y, n.constant(np.arange(70)[None, None] / 32)))
    z = n.add("MatMul", y, n.matrix(33, 70), transpose_b=True)
    turned = n.add("Transpose", y, n.constant([1, 0, 2], "i64"))
    model = n.model(z, n.add("MatMul", turned, n.matrix(4, 70), transpose_b=True))
    assert sum(node.outputs[0].type == np.int8 for node in planned(model).nodes) == 3
    same_bits(model, [(n.rng.integers(-900, 900, (3, rows, 40)) / 64).astype("f4")])


@needs_library
def test_what_somebody_reads_as_numbers_stays_numbers() -> None:
    n = Exact(4)
    x = n.net.parameter("x", "f32", (1, 8, 9, 9))
    y, z = (n.rounded_to(n.convolved(n.rounded_to(x), 8, 8)) for _ in range(2))
    model = n.model(n.convolved(y, 8, 4), y, n.convolved(z, 8, 4), n.add("SoftMax", z, axis=1))
    kept = [node.kind for node in planned(model).nodes if node.outputs[0].type == np.int8]
    assert kept == ["FakeQuantize", "FakeQuantize"]
    array = (n.rng.integers(0, 900, (1, 8, 9, 9)) / 64).astype("f4")
    pairs = zip(_compiled(model, [array]).values(), ir.run(model, [array]).values(), strict=True)
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize(("size", "stride"), [(3, 1), (3, 2), (9, 1)])
def test_convolutions_by_numbers_take_levels(
    signed: bool, zero: bool, size: int, stride: int
) -> None:
    """Limits by channel go into the weights before and after; what is padded with, too."""
    n = Exact(7)
    x = n.net.parameter("x", "f32", (1, 6, 9, 9))
    weights = n.constant(n.rng.integers(-9, 10, (5, 6, 3, 3)) / 64)
    y = n.add("Clamp", n.add("Convolution", x, weights, **PADDED), min=-9 * signed, max=99)
    step = 0.5 ** n.rng.integers(3, 6, (1, 5, 1, 1))
    low = -step * (128 if signed else 0) + (0 if zero else step / 4)
    ends = [n.constant(end) for end in (low, low + 255 * step)]
    y = n.add("FakeQuantize", y, *ends, *ends, levels=256)
    words = PADDED | {"strides": [stride] * 2, "pads_begin": [size // 2] * 2}
    filters = n.constant(n.rng.integers(-9, 10, (5, 1, 1, size, size)) / 64)
    model = n.model(n.add("GroupConvolution", y, filters, **words))
    first, second = planned(model).nodes
    assert [op.xml_type for op, _ in first.epilogue][-1] == "FakeQuantize"
    gains = [v.constant for v in first.epilogue[-1][1][3:] if v is not None]
    assert all(gain is not None and gain.size == 1 for gain in gains)
    assert float(gains[1] - gains[0]) == 255
    narrow = LIBRARY is not None
    assert second.inputs[0].type == (np.int8 if narrow else np.float32)
    assert (second.padding is None) == (zero and (signed or not narrow))
    array = (n.rng.integers(-90, 90, (1, 6, 9, 9)) / 16).astype("f4")
    (found,), (wanted,) = (list(f(model, [array]).values()) for f in (_compiled, ir.run))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


def _compiled(model: ir.Model, arrays: list[Array]) -> Any:
    return ir.compile(model)(arrays)


@pytest.mark.parametrize(("least", "most", "stays"), [
    (0.0, 6.0, False), (-1.0, 9.0, False), (0.5, 6.0, True), (0.0, 5.0, True),
])  # fmt: skip
def test_a_clamp_before_levels_goes_only_where_they_clip(
    least: float, most: float, stays: bool
) -> None:
    n = Exact(3)
    x = n.net.parameter("x", "f32", (1, 4, 6, 6))
    y = n.add("Clamp", n.by_channel(x, 4), min=least, max=most)
    ends = [n.constant(np.float32(end)) for end in (0, 6, 0, 6)]
    model = n.model(n.add("FakeQuantize", y, *ends, levels=25))
    (node,) = planned(model).nodes
    assert ("Clamp" in [op.xml_type for op, _ in node.epilogue]) == stays
    array = (n.rng.integers(-99, 99, (1, 4, 6, 6)) / 4).astype("f4")
    (found,), (wanted,) = (list(f(model, [array]).values()) for f in (_compiled, ir.run))
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    levels=st.sampled_from([2, 3, 16, 255, 256]),
    shapes=st.tuples(*[st.sampled_from(["one", "channel", "row", "all"])] * 2),
    gaps=st.tuples(st.booleans(), st.booleans()),
    turned=st.booleans(),
    odd=st.booleans(),
)
def test_a_block_is_rounded_as_the_definition_does(
    seed: int,
    levels: int,
    shapes: tuple[str, str],
    gaps: tuple[bool, bool],
    turned: bool,
    odd: bool,
) -> None:
    """Limits of any shape, into memory with gaps or without, of blocks that lie otherwise."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 40, 3))
    sizes = {"one": (), "channel": shape[-1:], "row": (shape[1], 1), "all": shape}
    low, width, first = (
        rng.standard_normal(sizes[name]).astype("f4") for name in (*shapes, shapes[0])
    )
    limits = [low, low + np.abs(width) + np.float32(0.5), first, first + np.abs(width)]
    x = (3 * rng.standard_normal(shape)).astype("f4")
    if odd:
        x.flat[:: max(1, x.size // 5)] = np.nan
        x.flat[1 :: max(1, x.size // 3)] = np.inf
    op = Op.registry["FakeQuantize", 1].read({"levels": str(levels)})
    (wanted,) = op.run(x, *limits)
    given, target = (_with_gaps(x.shape, gap) for gap in gaps)
    given[...] = x
    if turned:
        given = np.ascontiguousarray(x.T).T
    whole = [array if not array.ndim else np.broadcast_to(array, shape) for array in limits]
    numbers = rounding(levels - 1, whole)
    assert numbers is not None
    with np.errstate(all="ignore"):
        quantized(numbers, given, target, Scratch(1, private).tile, finite=not odd)()
    # What the definition gives beyond the ends is not computed of the levels there.
    np.testing.assert_allclose(target, wanted, rtol=0, atol=1e-6 * (1 + np.abs(wanted).max()))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    zero=st.sampled_from([0, 1, 37, 128, 255]),
    by_row=st.booleans(),
    same=st.booleans(),
)
def test_what_stands_for_zero_takes_no_sums(
    seed: int, zero: int, by_row: bool, same: bool
) -> None:
    """Limits whose level for zero is the same for all, and such whose is not."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 40, 3))
    size = (shape[1], 1) if by_row else ()
    step = (rng.random(size) + 0.1).astype("f4")
    levels = zero if same else rng.integers(0, 256, size)
    low, high = (np.asarray(step * end, np.float32) for end in (-levels, 255 - levels))
    # Not between two levels: those go either way, as the definition adds what is not added here.
    near = rng.uniform(-0.49, 0.49, shape)
    x = ((rng.integers(-300, 300, shape) + near) * step).astype("f4")
    op = Op.registry["FakeQuantize", 1].read({"levels": "256"})
    (wanted,) = op.run(x, low, high, low, high)
    whole = [np.broadcast_to(end, shape) if end.ndim else end for end in (low, high)]
    numbers = rounding(255, whole * 2)
    assert numbers is not None
    target = np.empty_like(x)
    quantized(numbers, x, target, Scratch(1, private).tile, finite=True)()
    np.testing.assert_allclose(target, wanted, rtol=0, atol=1e-6 * (1 + np.abs(wanted).max()))


@needs_library
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("channels", [1, 2, 3, 16, 17, 40])
@pytest.mark.parametrize("planes", [True, False])
@pytest.mark.parametrize("least", [-128, 0, -7])
def test_planes_become_levels_side_by_side(
    asked: bool, channels: int, planes: bool, least: int
) -> None:
    rng = np.random.default_rng(channels)
    x = (rng.standard_normal((2, channels, 5, 9)) * 90).astype("f4")
    given = np.moveaxis(x, 1, -1) if planes else np.ascontiguousarray(np.moveaxis(x, 1, -1))
    ends = [np.float32(end) for end in (least / 2, least / 2 + 127.5, -128, 127)]
    op = Op.registry["FakeQuantize", 1].read({"levels": "256"})
    (wanted,) = op.run(given, *ends)
    for finite in (True, False):
        target = np.zeros(given.shape, np.int8)
        numbers = rounding(255, [np.asarray(end) for end in ends])
        assert numbers is not None
        with rounding_by_library(asked=asked):
            quantized(numbers, given, target, Scratch(1, private).tile, finite=finite)()
        np.testing.assert_array_equal(target, wanted)


@needs_library
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 300))
def test_the_library_sums_as_numpy_does(seed: int, size: int) -> None:
    assert LIBRARY is not None
    rng = np.random.default_rng(seed)
    x, y, z = (rng.standard_normal(size).astype("f4") for _ in range(3))
    a, b = (float(number) for number in rng.standard_normal(2))
    found = np.empty(size, np.float32)
    for part, wanted in (
        (LIBRARY.lined(a, b, x, found), a * x + b),
        (LIBRARY.summed((a, b), x, y, found), a * x + b * y),
        (LIBRARY.fused(x, y, z, found, (a, b)), a * x * y + b * z),
    ):
        part()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def _with_gaps(shape: tuple[int, ...], gaps: bool) -> Array:
    whole = np.zeros((*shape[:-1], shape[-1] + 3 * gaps), np.float32)
    return whole[..., : shape[-1]]


@needs_library
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000), size=st.integers(1, 300),
    kind=st.sampled_from([np.int8, np.uint8]),
)  # fmt: skip
def test_the_library_rounds_as_numpy_does(seed: int, size: int, kind: Any) -> None:
    assert LIBRARY is not None
    if not LIBRARY.rounds:
        pytest.skip("this processor has no quick way to round")
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-600, 600, size).astype("f4") / rng.choice([1, 2, 3, 1e-30], size)
    numbers = numbers.astype("f4")
    numbers[rng.random(size) < 0.05] = np.nan
    ends = np.iinfo(kind)
    wanted = np.rint(np.fmin(np.fmax(numbers, ends.min), ends.max))
    found = np.empty(size, kind)
    LIBRARY.rounded(numbers, found)()
    np.testing.assert_array_equal(found, wanted)


@needs_library
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000), start=st.integers(0, 60), size=st.integers(1, 140),
    factors=st.tuples(*[st.sampled_from([1.0, 0.5, -1.0, 0.3, 1 / 6])] * 2),
    lanes=st.sampled_from([None, *LANES[1:]]), within=st.booleans(),
)  # fmt: skip
def test_a_number_is_summed_alike_in_any_run(
    seed: int,
    start: int,
    size: int,
    factors: tuple[float, float],
    lanes: int | None,
    within: bool,
) -> None:
    assert LIBRARY is not None
    if not LIBRARY.rounds:
        pytest.skip("this processor has no quick way to make sums")
    library = copy(LIBRARY)
    if lanes is not None:
        library._lanes = lanes
    x, y, z = np.random.default_rng(seed).standard_normal((3, 200)).astype("f4")
    a, b = factors

    def made(x: Array, y: Array, z: Array) -> list[Array]:
        found = []
        for make, some in (
            (partial(library.lined, a, b), (x,)),
            (partial(library.summed, factors), (x, y)),
            (lambda *arrays: library.fused(*arrays, factors), (x, y, z)),
        ):
            given = [array.copy() for array in some]
            out = given[0] if within else np.empty_like(x)
            make(*given, out)()
            found.append(out)
        return found

    run = slice(start, start + size)
    whole, few = made(x, y, z), made(x[run], y[run], z[run])
    wide = [array.astype("f8") for array in (x, y, z)]
    wanted = a * wide[0] + b, a * wide[0] + b * wide[1], a * wide[0] * wide[1] + b * wide[2]
    for all_of_it, some, right in zip(whole, few, wanted, strict=True):
        np.testing.assert_allclose(all_of_it, right, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(some, all_of_it[run])


@needs_library
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["Gelu", "Gelu by tanh", "Mish", "Elu", "Erf", "SoftPlus", "Swish"]),
    high=st.sampled_from([0.02, 0.3, 1.0, 5.0, 40.0, 1e4]),
    low=st.sampled_from([0.0, -0.17, -1.0, -9.0]),
    levels=st.sampled_from([256, 255, 16]),
    spread=st.sampled_from([0.1, 2.0, 30.0]),
)
def test_levels_that_are_looked_up_are_those_of_the_definition(
    seed: int, kind: str, high: float, low: float, levels: int, spread: float
) -> None:
    """Where numbers are not within rounding of a change from a level to the next."""
    rng = np.random.default_rng(seed)
    words = {"approximation_mode": "TANH"} if kind == "Gelu by tanh" else {}
    words = {"alpha": 0.7} if kind == "Elu" else words
    version = {"Gelu": 7, "Swish": 4, "Mish": 4, "SoftPlus": 4}.get(kind.split()[0], 1)
    activation = Op.registry[kind.split()[0], version].read(words)
    fake = Op.registry["FakeQuantize", 1].read({"levels": levels})
    limits = [np.array(x, np.float32) for x in (low, high, -128, levels - 129)]
    found = table(activation, fake, [], limits)
    if found is None:
        # Too far away, too often, or at no number at all.
        assert high != 5 or kind not in ("Gelu", "Mish", "Swish")
        return
    assert LIBRARY is not None
    x = (rng.standard_normal((5, 67, 129)) * spread).astype("f4")
    x[0, 0, :6] = [0, -0.0, 3e38, -3e38, 1e5, -1e5]
    target = np.zeros(x.shape, np.int8)
    with np.errstate(all="ignore"):
        looked_up(found, x * found.scale + found.shift, target, LIBRARY)()
    with np.errstate(all="ignore"):
        (made,) = activation.run(x)
        (wanted,) = fake.run(made, *limits)
        place = (np.clip(made.astype("f8"), *limits[:2]) - low) * (levels - 1) / (high - low)
    away = target != wanted
    assert (abs(target[away] - wanted[away]) == 1).all()
    assert (abs(place[away] % 1 - 0.5) < 1e-3).all()
    assert away.mean() < 1e-3
