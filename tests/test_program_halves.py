"""A row by weights that are kept as float16: the product is that by the numbers they were."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import halves as by_halves
from vinoir.ir.engine.kernels import halving
from vinoir.ir.engine.plan import Node
from vinoir.ir.engine.workers import half_products, halves
from vinoir.ir.engine.workers.integers import seen
from vinoir.schemas import Array

with pytest.MonkeyPatch.context() as patch:  # as if every processor widened float16 quickly
    patch.setattr(halves, "QUICK", ("serial",))
    patch.setattr(halves, "FETCHING", ())
    half_products.cache_clear()
    LIBRARY = half_products()
half_products.cache_clear()
with_library = pytest.mark.skipif(LIBRARY is None, reason="the extra fast is not installed")


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halving, "MANY", 1)
    monkeypatch.setattr(halving, "LEAST", 1)
    for module in (halving, by_halves):
        monkeypatch.setattr(module, "half_products", lambda: LIBRARY)


def numbers(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype("f4")


def weights(net: ir.Builder, values: Array) -> ir.builder.Output:
    """Weights as files of 16 bits have them."""
    held = net.constant(values.astype("f2"), "f16")
    return net.add("Convert", "opset1", [held], destination_type="f32")


def products(program: ir.Program) -> list[Node]:
    """The products of a program's last plan."""
    planned = list(program._plans.values())[-1]
    assert planned is not None
    return [node for node in planned.plan.nodes if node.kind == "MatMul"]


def are_halves(program: ir.Program) -> list[bool]:
    return [node.inputs[1].type == np.float16 for node in products(program)]


def compared(model: ir.Model, arrays: list[Array], *, halved: bool = True, **words: Any) -> None:
    """A program multiplies so, or does not, and gives what the definitions give."""
    wanted = list(ir.run(model, arrays).values())
    first: list[Array] | None = None
    for threads in (1, 2, 3):
        program = ir.compile(model, threads=threads, **words)
        for _ in range(2):
            found = list(program(arrays).values())
        assert are_halves(program) == [halved and LIBRARY is not None] * len(products(program))
        for value, right in zip(found, wanted, strict=True):
            scale = max(float(np.abs(right).max(initial=0)), 1e-30)
            np.testing.assert_allclose(value, right, rtol=0, atol=3e-6 * scale)
        first = first or found
        for value, other in zip(found, first, strict=True):
            np.testing.assert_array_equal(value, other)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    lead=st.sampled_from([(), (1,), (1, 1), (5,), (2, 3)]),
    stacked=st.booleans(),
    inner=st.sampled_from([1, 7, 64, 129, 1000]),
    outer=st.sampled_from([1, 17, 64, 700]),
    turned=st.tuples(st.booleans(), st.booleans()),
    follows=st.booleans(),
)
def test_products_are_those_of_the_definition(
    seed: int,
    lead: tuple[int, ...],
    stacked: bool,
    inner: int,
    outer: int,
    turned: tuple[bool, bool],
    follows: bool,
) -> None:
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> Array:
        """Numbers of both signs; of one where an only sum that cancels would tell no scale."""
        found = numbers(rng, *shape)
        return np.abs(found) if outer == 1 else found

    net = ir.Builder()
    rows = (inner, 1) if turned[0] else (1, inner)
    x = net.parameter("x", "f32", (*lead, *rows))
    shape = (outer, inner) if turned[1] else (inner, outer)
    single = int(np.prod(lead)) == 1
    matrix = weights(net, drawn(*(lead if stacked or not single else ()), *shape))
    y = net.add("MatMul", "opset1", [x, matrix], transpose_a=turned[0], transpose_b=turned[1])
    if follows:
        y = net.add("Add", "opset1", [y, net.constant(drawn(outer))])
        y = net.add("ReLU", "opset1", [y])
    net.result(y)
    compared(net.model(), [drawn(*lead, *rows) * np.float32(10.0 ** rng.integers(-3, 4))])


@pytest.mark.parametrize("size", [0, 1e-44, 1e-38, 1e-30, 1e-7, 1, 6e4, 1e30, 3e38])
def test_rows_of_any_size(size: float) -> None:
    """The power of two of a row is found first: neither its size nor what is beside it matters."""
    rng = np.random.default_rng(1)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 200))
    values = rng.uniform(-1, 1, (90, 200)) / 200
    net.result(net.add("MatMul", "opset1", [x, weights(net, values)], transpose_b=True))
    row = (rng.uniform(-1, 1, (1, 200)) * size).astype("f4")
    compared(net.model(), [row])
    row[0, ::2] *= np.float32(1e-3)
    compared(net.model(), [row])


def test_small_numbers_beside_a_large_one_count() -> None:
    """What is lost of them is below the last bit of the large one by many bits."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 3))
    net.result(
        net.add("MatMul", "opset1", [x, weights(net, np.array([[0, 0], [1, 0], [0, 1]], "f4"))])
    )
    row = np.array([[30000, 1.2345678, 3.1e-4]], "f4")
    (found,) = ir.compile(net.model())([row]).values()
    np.testing.assert_allclose(found, row[:, 1:], rtol=1e-6, atol=30000 * 2.0**-39)


@with_library
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_a_row_that_is_not_finite(odd: float) -> None:
    rng = np.random.default_rng(2)
    net = ir.Builder()
    x = net.parameter("x", "f32", (3, 1, 300))
    net.result(net.add("MatMul", "opset1", [x, weights(net, numbers(rng, 3, 300, 40))]))
    array = numbers(rng, 3, 1, 300)
    array[1, 0, 7] = odd
    program = ir.compile(net.model())
    with np.errstate(invalid="ignore"):
        (wanted,) = ir.run(net.model(), [array]).values()
    (found,) = program([array]).values()
    assert are_halves(program) == [True]
    np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_allclose(found[::2], wanted[::2], rtol=0, atol=1e-4)


@pytest.mark.parametrize("spoiled", ["third", "infinite", "large", "last"])
def test_weights_that_float16_does_not_hold_stay_as_they_are(spoiled: str) -> None:
    rng = np.random.default_rng(3)
    values = numbers(rng, 400, 80).astype("f2").astype("f4")
    if spoiled == "third":
        values[0, 1] = 1 / 3
    elif spoiled == "last":
        values[-1, -1] += np.float32(1e-5)
    else:
        values[5, 5] = np.inf if spoiled == "infinite" else 1e6
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 400))
    net.result(net.add("MatMul", "opset1", [x, net.constant(values)]))
    row = numbers(rng, 1, 400)
    program = ir.compile(net.model())
    (wanted,) = ir.run(net.model(), [row]).values()
    (found,) = program([row]).values()
    assert are_halves(program) == [False]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2])
def test_only_single_rows_and_many_weights(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows share what comes from memory; few weights do not come from there, or lack room."""
    rng = np.random.default_rng(4)
    net = ir.Builder()
    x = net.parameter("x", "f32", (rows, 100))
    net.result(net.add("MatMul", "opset1", [x, weights(net, numbers(rng, 100, 80))]))
    compared(net.model(), [numbers(rng, rows, 100)], halved=rows == 1)
    compared(net.model(), [numbers(rng, rows, 100)], halved=False, memory="small")
    with monkeypatch.context() as little:
        little.setattr(halving, "fits", lambda nbytes: False)
        compared(net.model(), [numbers(rng, rows, 100)], halved=False)
    monkeypatch.setattr(halving, "MANY", 100 * 80 + 1)
    compared(net.model(), [numbers(rng, rows, 100)], halved=False)


@with_library
def test_experts_that_nobody_asks_are_left_out() -> None:
    rng = np.random.default_rng(5)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 1, 40))
    factor = net.parameter("factor", "f32", (6, 1, 1))
    many = net.add("Tile", "opset1", [x, net.constant([6, 1, 1])])
    y = net.add("MatMul", "opset1", [many, weights(net, numbers(rng, 6, 40, 70))])
    net.result(net.add("Multiply", "opset1", [y, factor]))
    program = ir.compile(net.model())
    for count in (0, 1, 4, 6):
        factors = np.zeros((6, 1, 1), "f4")
        factors[rng.permutation(6)[:count]] = 0.5
        arrays = [numbers(rng, 1, 1, 40), factors]
        (wanted,) = ir.run(net.model(), arrays).values()
        (found,) = program(arrays).values()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
        assert not found[factors[:, 0, 0] == 0].any()
    (product,) = products(program)
    assert product.wanted is not None
    assert are_halves(program) == [True]


@pytest.mark.parametrize("given", [(1, 1), (2, 1), (1, 3), (2, 3)])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_rows_that_are_repeated_and_results_that_lie_apart(
    given: tuple[int, int], axis: int
) -> None:
    rng = np.random.default_rng(7)
    net = ir.Builder()
    x = net.parameter("x", "f32", (*given, 1, 50))
    x = net.add("Tanh", "opset1", [x])
    made = [
        net.add("MatMul", "opset1", [x, weights(net, numbers(rng, 2, 3, 50, 70))])
        for _ in range(2)
    ]
    joined = net.add(
        "Concat", "opset1", [*made, net.add("Negative", "opset1", made[:1])], axis=axis
    )
    net.result(net.add("Sigmoid", "opset1", [joined]))
    compared(net.model(), [numbers(rng, *given, 1, 50)])


@with_library
def test_plans_share_what_was_rounded() -> None:
    rng = np.random.default_rng(6)
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,100")
    several = net.parameter("several", "f32", "?")
    y = net.add("MatMul", "opset1", [x, weights(net, numbers(rng, 100, 80))])
    net.result(y)
    net.result(several)
    program = ir.compile(net.model())
    for count in (2, 3):
        program([numbers(rng, 1, 100), numbers(rng, count)])
    plans = [planned.plan for planned in program._plans.values() if planned is not None]
    given = [node.inputs[1].constant for plan in plans for node in plan.nodes if node.inputs]
    first, second = (array for array in given if array is not None)
    assert np.shares_memory(first, second)


class Other:
    """A library that is absent, has other names, or does some things in another way."""

    def __init__(self, wrong: str | None, instead: dict[str, Any]) -> None:
        self.wrong, self.instead = wrong, instead
        self.asked: list[str] = []
        real = wrong not in ("absent", "otherwise")
        self._library: Any = pytest.importorskip("numkong") if real else None

    def get_capabilities(self) -> dict[str, bool]:
        return {"skylake": self.wrong != "slow", "sapphire": self.wrong == "fetching"}

    def __getattr__(self, name: str) -> Any:
        if self.wrong == "otherwise":
            raise AttributeError(name)
        self.asked.append(name)
        if name in self.instead and self.wrong == "inexact":
            return self.instead[name]
        return getattr(self._library, name)

    def imported(self, name: str) -> Any:
        if self.wrong == "absent":
            raise ImportError(name)
        return self


@pytest.mark.parametrize("wrong", ["absent", "slow", "fetching", "inexact", "otherwise"])
def test_without_such_a_library_numbers_are_multiplied(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not there, not quicker, or does not give what a product is, is not used."""
    library = Other(wrong, {"dots_packed": lambda given, few, out: None})
    monkeypatch.setattr(importlib, "import_module", library.imported)
    assert halves.half_products.__wrapped__() is None


@pytest.fixture
def anew() -> Iterator[None]:
    """The library that converts is looked for again."""
    halves._conversions.cache_clear()
    yield
    halves._conversions.cache_clear()


def zeros_instead(given: Any, kind: str, out: Any) -> None:
    """Convert zeros, whatever is given."""
    numkong: Any = importlib.__import__("numkong")
    zeros = np.zeros(given.shape, np.float32 if kind == "float16" else np.float16)
    numkong.astype(seen(numkong, zeros), kind, out=out)


@pytest.mark.parametrize("wrong", [None, "absent", "otherwise", "inexact"])
def test_float16_is_converted_as_numpy_does(
    wrong: str | None, anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a library or without, whatever the number is, and wherever it lies."""
    library = Other(wrong, {"astype": zeros_instead})
    monkeypatch.setattr(importlib, "import_module", library.imported)
    assert (halves._conversions() is None) == (wrong is not None)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    odd = np.frombuffer(b"\0" + every.tobytes(), np.float16, every.size, 1)
    for given_ in (every, odd, every.reshape(256, 256), every.reshape(256, 256).T, every[:5]):
        with np.errstate(all="ignore"):
            wide = given_.astype(np.float32)
            more = wide * np.float32(1.0003)
            rounded = more.astype(np.float16)
        np.testing.assert_array_equal(halves.floats_of(given_), wide, strict=True)
        np.testing.assert_array_equal(halves.halves_of(more), rounded, strict=True)
    assert ("astype" in library.asked) == (wrong in (None, "inexact"))
