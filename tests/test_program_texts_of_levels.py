"""Texts of ever other lengths by weights that are levels: some are made numbers at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program_levels import weights
from vinoir import ir
from vinoir.ir.engine import patterns
from vinoir.ir.engine.kernels import levels as level_kernels
from vinoir.ir.engine.kernels import loose_levels, loose_products
from vinoir.ir.engine.patterns import takes_texts
from vinoir.ir.engine.planned import Planned
from vinoir.schemas import Array

WORDS, WIDE = 40, 96


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two texts one plan holds for all, and small products are shared, too."""
    monkeypatch.setattr(patterns, "SIZES", 1)
    monkeypatch.setattr(loose_products, "SHARES", ((1 << 10, 2),))


def text(
    kind: str = "i8",
    *,
    groups: int = 0,
    zero: str = "none",
    transposed: bool = True,
    outer: int = 2 * WIDE,
    table: str = "u8",
) -> ir.Model:
    """Rows of a table, and layers of which one follows another, all of levels."""
    rng = np.random.default_rng(7)
    net = ir.Builder("levels")
    words = net.parameter("words", "i64", "1,?")
    given = weights(net, rng, (WORDS, WIDE), kind=table)
    x = net.add("Gather", "opset8", [given, words, np.int64(0)], name="embedding")

    def linear(x: ir.Output, wide: int) -> ir.Output:
        deep = int(x.tensor.shape.sizes[-1])
        shape = (wide, deep) if transposed else (deep, wide)
        many = groups if groups and deep % groups == 0 else 0
        matrix = weights(net, rng, shape, kind=kind, groups=many, transposed=transposed, zero=zero)
        y = net.add("MatMul", "opset1", [x, matrix], transpose_b=transposed)
        line = net.constant(rng.standard_normal((1, 1, wide)), "f32")
        return net.add("Add", "opset1", [y, line])

    gate = net.add("Swish", "opset4", [linear(x, outer)])
    y = net.add("Multiply", "opset1", [gate, linear(x, outer)])
    y = net.add("Add", "opset1", [x, linear(y, WIDE)], name="sum")
    net.result(linear(y, outer), name="y")
    return net.model()


def words_of(count: int) -> Array:
    return np.random.default_rng(count).integers(0, WORDS, (1, count))


def opened(program: ir.Program) -> list[Planned]:
    """The plans that hold for texts of any length."""
    found = []
    for pattern, planned in program._plans.items():
        assert isinstance(planned, Planned)
        if takes_texts(pattern):
            found.append(planned)
    return found


def agrees(program: ir.Program, model: ir.Model, count: int) -> Array:
    """What a program gives for so many words, which is what the definitions give."""
    return compared(program, model, words_of(count))


def compared(program: ir.Program, model: ir.Model, words: Array) -> Array:
    """The same for some words."""
    found, (wanted,) = program([words])[0], ir.run(model, [words]).values()
    scale = float(np.abs(wanted).max())
    assert found.shape == wanted.shape
    assert float(np.abs(found - wanted).max()) <= 1e-5 * scale
    return found


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["u8", "i8", "u4", "i4"]),
    groups=st.sampled_from([0, 2, 6]),
    zero=st.sampled_from(["whole", "between", "none"]),
    transposed=st.booleans(),
    outer=st.sampled_from([1, 17, 200, 600]),
    table=st.sampled_from(["u8", "i8", "u4", "i4"]),
    memory=st.sampled_from(["small", "fast", None]),
    sizes=st.tuples(st.sampled_from([16, 48, 192]), st.sampled_from([16, 64, 1024])),
    counts=st.lists(st.integers(2, 90), min_size=3, max_size=5),
)
def test_texts_of_any_length_by_levels(
    kind: str,
    groups: int,
    zero: str,
    transposed: bool,
    outer: int,
    table: str,
    memory: Any,
    sizes: tuple[int, int],
    counts: list[int],
) -> None:
    model = text(kind, groups=groups, zero=zero, transposed=transposed, outer=outer, table=table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "SIZES", 1)
        patch.setattr(loose_products, "SHARES", ((1 << 10, 2),))
        patch.setattr(level_kernels, "WIDE", sizes[0])
        patch.setattr(level_kernels, "DEEP", sizes[1])
        program = ir.compile(model, threads=2, memory=memory)
        for count in counts:
            agrees(program, model, count)
    assert bool(opened(program)) == (len(set(counts)) > 1)


@pytest.mark.usefixtures("few")
def test_levels_stay_levels_and_what_follows_is_done_with_them() -> None:
    model = text()
    program = ir.compile(model, memory="small")
    for count in (3, 5, 30):
        agrees(program, model, count)
    (planned,) = opened(program)
    kinds = [node.layer.type for node in planned.plan.nodes]
    assert {"Add", "Swish", "Convert", "Subtract"}.isdisjoint(kinds)
    # Numbers are nowhere: neither of the table nor of any matrix.
    assert planned.plan.numbers == 0
    assert planned.plan.levels == WORDS * WIDE + 4 * 2 * WIDE * WIDE
    assert all(x.constant is None for node in planned.plan.nodes for x in node.inputs)


def test_what_makes_numbers_is_bound_once_for_all_calls(
    few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of blocks that are as large as can be, and of several products that share a room."""
    made: list[int] = []

    class Counted(level_kernels.Blocks):
        def __init__(self, *words: Any) -> None:
            super().__init__(*words)
            made.append(self.memory.size)

    monkeypatch.setattr(loose_levels, "Blocks", Counted)
    rng, net = np.random.default_rng(4), ir.Builder()
    words = net.parameter("words", "i64", "1,?")
    x = net.add("Gather", "opset8", [weights(net, rng, (WORDS, 64)), words, np.int64(0)])
    for wide in (1024, 768, 1024, 768):
        shape = (wide, int(x.tensor.shape.sizes[-1]))
        x = net.add("MatMul", "opset1", [x, weights(net, rng, shape)], transpose_b=True)
        x = net.add("Tanh", "opset1", [x])
    net.result(x)
    program = ir.compile(net.model(), threads=2, memory="small")
    for count in (3, 5, 9):
        program([words_of(count)])
    before = len(made)
    for count in (4, 30, 4):
        program([words_of(count)])
    assert max(made) > 160 << 10
    # As others need a larger room, smaller ones may be bound anew, once.
    assert before <= 4 * 2 * 2
    assert len(made) == before


@pytest.mark.usefixtures("few")
def test_any_number_of_threads_gives_the_same() -> None:
    model = text(zero="between", groups=2, outer=700)
    programs = [ir.compile(model, threads=count, memory="small") for count in (1, 2, 3, 5)]
    for count in (3, 5, 8, 65, 8):
        first, *others = (agrees(program, model, count) for program in programs)
        for other in others:
            np.testing.assert_array_equal(other, first)


@pytest.mark.usefixtures("few")
def test_long_texts_are_multiplied_so_many_rows_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loose_levels, "MOST", 16 * level_kernels.WIDE)
    model = text(zero="between")
    program = ir.compile(model, memory="small")
    for count in (3, 5, 16, 17, 100):
        agrees(program, model, count)
    assert opened(program)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.usefixtures("few")
def test_rows_that_are_not_finite_are_multiplied_by_numbers(bad: float) -> None:
    """Infinity less infinity is no number, where the levels of a column have a zero."""
    rng = np.random.default_rng(2)
    net = ir.Builder()
    words = net.parameter("words", "i64", "1,?")
    rows = rng.standard_normal((WORDS, WIDE)).astype("f4")
    rows[0, 0] = bad
    x = net.add("Gather", "opset8", [rows, words, np.int64(0)])
    matrix = weights(net, rng, (WIDE, WIDE), zero="between")
    y = net.add("MatMul", "opset1", [x, matrix], transpose_b=True)
    net.result(net.add("ReLU", "opset1", [y]))
    model = net.model()
    program = ir.compile(model, memory="small")
    for count in (3, 5, 9):
        arrays = [np.arange(count)[None]]
        (wanted,) = ir.run(model, arrays).values()
        np.testing.assert_allclose(program(arrays)[0], wanted, rtol=1e-4, atol=1e-4)
    assert opened(program)


@pytest.mark.usefixtures("few")
def test_words_from_the_end_and_beyond_are_those_of_the_definition() -> None:
    model = text()
    program = ir.compile(model, memory="small")
    for count in (3, 5):
        program([words_of(count)])
    for words in ([1, -1, 2], [1, WORDS, 2, 3], [-WORDS, 4, WORDS + 7]):
        compared(program, model, np.int64([words]))
    assert opened(program)


@pytest.mark.parametrize("memory", ["small", "fast"])
@pytest.mark.usefixtures("few")
def test_memory_is_wanted_for_numbers_alone(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none for another copy as numbers, levels do without."""
    model, asked = text(), list[int]()
    monkeypatch.setattr(patterns.budget, "fits", lambda nbytes: asked.append(nbytes) or False)
    program = ir.compile(model, memory=memory)
    for count in (3, 5):
        program([words_of(count)])
    levels = WORDS * WIDE + 4 * 2 * WIDE * WIDE
    least = levels * (4 if memory == "fast" else 1)
    assert least <= max(asked) <= least + 6 * levels // 10
    assert not opened(program)


@pytest.mark.usefixtures("few")
def test_what_is_rounded_at_each_call_is_planned_for_each_length() -> None:
    """FakeQuantize outside takes several times as long."""
    net = ir.Builder()
    words = net.parameter("words", "i64", "1,?")
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((WORDS, WIDE)).astype("f4")
    x = net.add("Gather", "opset8", [rows, words, np.int64(0)])
    ends = [np.float32(-2), np.float32(2)] * 2
    x = net.add("FakeQuantize", "opset1", [x, *ends], levels=256)
    matrix = weights(net, rng, (WIDE, WIDE))
    net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True))
    program = ir.compile(net.model())
    for count in (3, 5, 9):
        program([words_of(count)])
    assert not opened(program)
