"""Weights that stay levels: products and rows of them are those of the numbers they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine import means as counted_on
from vinoir.ir.engine.kernels import digits as digit_kernels
from vinoir.ir.engine.kernels import levels as level_kernels
from vinoir.ir.engine.plan import Compressed, as_quick
from vinoir.ir.engine.workers import integer_products
from vinoir.schemas import Array, UsageError

LIBRARY = integer_products()
WAYS = [
    "numpy",
    pytest.param(
        "numkong",
        marks=pytest.mark.skipif(LIBRARY is None, reason="the extra fast is not installed"),
    ),
]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Products with the library of the extra and without it."""
    if request.param == "numpy":
        monkeypatch.setattr(counted_on, "integer_products", lambda: None)
        monkeypatch.setattr(level_kernels, "integer_products", lambda: None)
    return str(request.param)


def weights(
    net: ir.Builder,
    rng: np.random.Generator,
    shape: tuple[int, int],
    *,
    kind: str = "u8",
    groups: int = 0,
    transposed: bool = True,
    zero: str = "whole",
    half: bool = False,
) -> ir.builder.Output:
    """A matrix of levels with the layers that make numbers of it, as NNCF writes them."""
    outer, inner = shape if transposed else shape[::-1]
    sizes: list[int] = [outer, groups, inner // groups] if groups else [outer, inner]
    beside = [outer, groups, 1] if groups else [outer, 1]
    if not transposed:
        sizes = [groups, inner // groups, outer] if groups else [inner, outer]
        beside = [groups, 1, outer] if groups else [1, outer]
    low, high = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}[kind]
    real = "f16" if half else "f32"

    def integers(sizes: list[int]) -> ir.builder.Output:
        values = net.constant(rng.integers(low, high, sizes), kind)
        return net.add("Convert", "opset1", [values], destination_type=real)

    made = integers(sizes)
    if zero == "whole":
        made = net.add("Subtract", "opset1", [made, integers(beside)])
    elif zero == "between":
        made = net.add("Subtract", "opset1", [made, net.constant(rng.random(beside) * 8, real)])
    scale = net.constant((rng.random(beside) / 50 + 0.001), real)
    made = net.add("Multiply", "opset1", [made, scale])
    if groups:
        whole = net.constant(np.array(shape))
        made = net.add("Reshape", "opset1", [made, whole], special_zero=False)
    if half:
        made = net.add("Convert", "opset1", [made], destination_type="f32")
    return made


def compared(
    model: ir.Model, arrays: list[Array], *, usual: float = 1e-9, **words: Any
) -> ir.Program:
    """A program that gives what the definitions give, called twice.

    Args:
        model: what is compiled.
        arrays: its inputs.
        usual: how large results are where they do not cancel, the least they are held against.
        words: what `compile` is told.
    """
    wanted = list(ir.run(model, arrays).values())
    program = ir.compile(model, threads=2, **words)
    for _ in range(2):
        for value, right in zip(program(arrays).values(), wanted, strict=True):
            scale = max(float(np.abs(right).max()), usual)
            assert value.shape == right.shape
            assert float(np.abs(value - right).max()) <= 1e-5 * scale
    return program


@example(  # a single sum of thousands, which cancel each other but for 1.6
    seed=6701,
    rows=1,
    inner=16,
    outer=1,
    kind="u8",
    groups=0,
    transposed=True,
    zero="whole",
    half=False,
    memory="small",
    library=True,
)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.sampled_from([1, 2, 3, 24, 70, 150]),
    inner=st.sampled_from([16, 48, 129, 256]),
    outer=st.sampled_from([1, 17, 64, 200, 600]),
    kind=st.sampled_from(["u8", "i8", "u4", "i4"]),
    groups=st.sampled_from([0, 0, 2, 8]),
    transposed=st.booleans(),
    zero=st.sampled_from(["whole", "between", "none"]),
    half=st.booleans(),
    memory=st.sampled_from(["small", "fast", None]),
    library=st.booleans(),
)
def test_products_by_levels(
    seed: int,
    rows: int,
    inner: int,
    outer: int,
    kind: str,
    groups: int,
    transposed: bool,
    zero: str,
    half: bool,
    memory: str | None,
    library: bool,
) -> None:
    rng = np.random.default_rng(seed)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, rows, inner) if seed % 2 else (rows, inner))
    shape = (outer, inner) if transposed else (inner, outer)
    groups = groups if groups and not inner % groups else 0
    matrix = weights(
        net, rng, shape, kind=kind, groups=groups, transposed=transposed, zero=zero, half=half
    )
    y = net.add("MatMul", "opset1", [x, matrix], transpose_b=transposed)
    if seed % 3:
        y = net.add("Add", "opset1", [y, net.constant(rng.standard_normal((1, outer)), "f32")])
    if seed % 5 == 0:
        y = net.add("ReLU", "opset1", [y])
    net.result(y)
    model = net.model()
    with pytest.MonkeyPatch.context() as patch:
        if not library:
            patch.setattr(counted_on, "integer_products", lambda: None)
            patch.setattr(level_kernels, "integer_products", lambda: None)
        array = (
            rng.standard_normal(x.tensor.shape.static) * 10.0 ** float(rng.integers(-3, 4))
        ).astype("f4")
        (factors,) = ir.run(model, [array], outputs=[matrix.layer.name]).values()
        factors = factors.reshape(shape) if transposed else factors.reshape(shape).T
        usual = float(np.sqrt(array**2 @ factors.T**2).max())  # of terms that have any sign
        compared(model, [array], usual=usual, memory=memory)


@pytest.mark.parametrize("rows", [24, 70])
@pytest.mark.parametrize(("inner", "groups"), [(1100, 0), (4096, 0), (4099, 0), (2048, 16)])
def test_long_sums_of_numbers_all_of_one_sign(
    way: str, rows: int, inner: int, groups: int
) -> None:
    """What zeros take from products is as large as these: nothing of them may be lost."""
    rng = np.random.default_rng(inner)
    net = ir.Builder()
    x = net.parameter("x", "f32", (rows, inner))
    matrix = weights(net, rng, (150, inner), groups=groups)
    net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True))
    compared(net.model(), [rng.random((rows, inner)).astype("f4")], memory="small")


@pytest.mark.skipif(LIBRARY is None, reason="the extra fast is not installed")
@pytest.mark.parametrize("by_tiles", [True, False])
@pytest.mark.parametrize("zero", ["none", "between"])
@pytest.mark.parametrize("columns", [30, 1500])
@pytest.mark.parametrize(
    ("inner", "groups"),
    [
        (512, 16), (512, 32), (480, 15), (960, 20), (512, 0), (900, 0), (100, 0), (2048, 4),
        (2300, 0), (3200, 50), (2400, 75),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rows", [1, 4])
def test_few_rows_by_packed_levels_and_by_streamed_ones(
    by_tiles: bool,
    zero: str,
    columns: int,
    inner: int,
    groups: int,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LIBRARY, "by_tiles", by_tiles)
    monkeypatch.setattr(level_kernels, "by_digits", lambda *told: True)
    rng = np.random.default_rng(columns)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, rows, inner))
    matrix = weights(net, rng, (columns, inner), groups=groups, zero=zero)
    y = net.add("MatMul", "opset1", [x, matrix], transpose_b=True)
    net.result(net.add("Add", "opset1", [y, net.constant(rng.random((1, columns)), "f32")]))
    array = rng.standard_normal((1, rows, inner)).astype("f4")
    program = compared(net.model(), [array], memory="small")
    (planned,) = program._plans.values()
    assert planned is not None
    (product,) = (node for node in planned.plan.nodes if node.kind == "MatMul")
    assert product.inputs[1].packed is not None
    assert {way for way, _ in product.inputs[1].packed.laid_out} == {
        "packed" if by_tiles else "streamed"
    }
    (found,) = program([array]).values()
    for threads in (1, 3):
        (other,) = ir.compile(net.model(), threads=threads, memory="small")([array]).values()
        np.testing.assert_array_equal(found, other)
    array[0, 0, 7] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = ir.run(net.model(), [array])
    for found, right in zip(program([array]).values(), wanted.values(), strict=True):
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(right))


@pytest.mark.parametrize("zero", ["none", "between"])
@pytest.mark.parametrize("columns", [30, 700])
@pytest.mark.parametrize(
    ("inner", "groups"),
    [
        (64, 0),
        (100, 0),
        (512, 16),
        (512, 32),
        (480, 15),
        (896, 0),
        (896, 7),
        (1200, 3),
        (2048, 16),
        (2304, 0),
        (2309, 0),
        (4800, 2),
    ],
)
@pytest.mark.parametrize("rows", [1, 9, 31, 130, 300])
def test_any_rows_by_streamed_levels(
    rows: int, inner: int, groups: int, columns: int, zero: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of one length and of two, short and long, as numbers in a core's own cache."""
    monkeypatch.setattr(level_kernels, "by_digits", lambda *told: False)
    rng = np.random.default_rng(rows + columns)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, rows, inner))
    matrix = weights(net, rng, (columns, inner), groups=groups, zero=zero)
    y = net.add("MatMul", "opset1", [x, matrix], transpose_b=True)
    net.result(net.add("Add", "opset1", [y, net.constant(rng.random((1, columns)), "f32")]))
    array = rng.standard_normal((1, rows, inner)).astype("f4")
    (found,) = compared(net.model(), [array], memory="small")([array]).values()
    for threads in (1, 3):
        (other,) = ir.compile(net.model(), threads=threads, memory="small")([array]).values()
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("groups", [0, 4])
def test_prompts_and_tokens_share_what_levels_lie_in(way: str, groups: int) -> None:
    """Of some levels there is one array beside the file, whatever the rows that come."""
    rng = np.random.default_rng(6)
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,?,512")
    y = net.add(
        "MatMul", "opset1", [x, weights(net, rng, (160, 512), groups=groups, kind="u4")],
        transpose_b=True,
    )  # fmt: skip
    net.result(net.add("ReLU", "opset1", [y]))
    program = ir.compile(net.model(), threads=1, memory="small")
    for rows in (40, 1, 3, 90):
        (found,) = program([rng.random((1, rows, 512)).astype("f4")]).values()
        assert found.shape == (1, rows, 160)
    kept = {
        value.packed
        for planned in program._plans.values() if planned is not None
        for node in planned.plan.nodes for value in node.inputs if value.packed is not None
    }  # fmt: skip
    (one,) = kept
    assert one is not None
    tiles = LIBRARY is not None and way == "numkong" and LIBRARY.by_tiles
    laid_out = {key[0]: found for key, found in one.laid_out.items()}
    assert set(laid_out) <= {"streamed", *(["packed"] if tiles else [])}
    for run in laid_out["streamed"].alike:
        assert run.dtype == np.int8
    assert sum(run.size for run in laid_out["streamed"].alike) == 160 * 512
    # Of the rest only what goes with them is kept.
    assert laid_out["streamed"].beside.shape == (groups or 1, 512 // (groups or 1), 160)


@pytest.mark.parametrize("groups", [0, 4])
def test_large_and_small_numbers_in_a_row(way: str, groups: int) -> None:
    """Digits reach below the last bit of the largest: what is small beside it counts."""
    rng = np.random.default_rng(3)
    net = ir.Builder()
    x = net.parameter("x", "f32", (3, 128))
    matrix = weights(net, rng, (70, 128), groups=groups)
    net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True))
    array = rng.standard_normal((3, 128)).astype("f4")
    array[0, 5] = 3e4
    array[1] *= np.float32(1e-30)
    array[2] = 0
    compared(net.model(), [array])
    tiny = ir.compile(net.model())([array])
    assert (next(iter(tiny.values()))[2] == 0).all()


def test_numbers_that_are_not_finite(way: str) -> None:
    rng = np.random.default_rng(5)
    net = ir.Builder()
    x = net.parameter("x", "f32", (3, 64))
    net.result(net.add("MatMul", "opset1", [x, weights(net, rng, (40, 64))], transpose_b=True))
    array = rng.standard_normal((3, 64)).astype("f4")
    array[0, 3], array[2, 7] = np.inf, np.nan
    (wanted,) = ir.run(net.model(), [array]).values()
    (found,) = ir.compile(net.model())([array]).values()
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found[0], wanted[0])


@pytest.mark.parametrize("kind", ["u8", "i4"])
@pytest.mark.parametrize("groups", [0, 4])
def test_rows_of_a_table(kind: str, groups: int) -> None:
    rng = np.random.default_rng(1)
    net = ir.Builder()
    places = net.parameter("places", "i64", (2, 5))
    table = weights(net, rng, (30, 16), kind=kind, groups=groups, half=True)
    net.result(net.add("Gather", "opset8", [table, places, net.constant(np.array(0))]))
    # Rows that follow each other are a view of an array, which levels are not.
    end = net.add("ShapeOf", "opset3", [places], output_type="i64")
    end = net.add("Gather", "opset8", [end, *(net.constant(np.array(n)) for n in ([1], 0))])
    ends = [net.constant(np.array([0])), end, *[net.constant(np.array([n])) for n in (1, 0)]]
    first = net.add("Slice", "opset8", [net.constant(np.arange(9)), *ends])
    net.result(net.add("Gather", "opset8", [table, first, net.constant(np.array(0))]))
    program = compared(net.model(), [rng.integers(-30, 30, (2, 5))])
    assert "480 weights as levels, 0 as numbers" in repr(program)


@pytest.mark.parametrize("places", [(), (3,), (2, 3)])
@pytest.mark.parametrize("zeros", [(1, 1, 1), (30, 1, 1), (1, 4, 1), (30, 4, 1)])
def test_rows_of_a_table_by_places_of_any_rank(
    places: tuple[int, ...], zeros: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(1)
    net = ir.Builder()
    given = net.parameter("places", "i64", places)
    levels = net.constant(rng.integers(0, 255, (30, 4, 16)).astype(np.uint8))
    table = net.add("Convert", "opset1", [levels], destination_type="f32")
    middle = net.constant(rng.integers(90, 140, zeros).astype(np.float32))
    scale = net.constant(rng.random((30, 4, 1), np.float32))
    table = net.add("Multiply", "opset1", [net.add("Subtract", "opset1", [table, middle]), scale])
    table = net.add("Reshape", "opset1", [table, np.array([30, 64])], special_zero=False)
    net.result(net.add("Gather", "opset8", [table, given, net.constant(np.array(0))]))
    program = compared(net.model(), [rng.integers(0, 30, places)])
    assert "as levels, 0 as numbers" in repr(program)


def test_one_matrix_for_rows_and_products(way: str) -> None:
    """A language model's first table is often its last matrix."""
    rng = np.random.default_rng(2)
    net = ir.Builder()
    places = net.parameter("places", "i32", (1, 4))
    table = weights(net, rng, (90, 32))
    x = net.add("Gather", "opset8", [table, places, net.constant(np.array(0))])
    net.result(net.add("MatMul", "opset1", [x, table], transpose_b=True))
    program = compared(net.model(), [rng.integers(0, 90, (1, 4)).astype("i4")], memory="small")
    assert "2880 weights as levels, 0 as numbers" in repr(program)


def test_many_rows_are_multiplied_by_numbers_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counted_on, "integer_products", lambda: None)
    rng = np.random.default_rng(2)
    net = ir.Builder()
    x = net.parameter("x", "f32", (128, 32))
    net.result(net.add("MatMul", "opset1", [x, weights(net, rng, (64, 32))], transpose_b=True))
    array = rng.standard_normal((128, 32)).astype("f4")
    ways = ("fast", "small", None)
    told = [repr(compared(net.model(), [array], memory=memory)) for memory in ways]
    assert "memory fast: 0 weights as levels, 2048 as numbers" in told[0]
    assert "memory small: 2048 weights as levels, 0 as numbers" in told[1]
    # So few numbers take next to no memory, and many calls as levels.
    assert "memory balanced: 0 weights as levels, 2048 as numbers" in told[2]


def test_levels_are_worth_some_time_where_nobody_says_otherwise(way: str) -> None:
    rng = np.random.default_rng(3)
    net = ir.Builder()
    x = net.parameter("x", "f32", (24, 768))
    net.result(net.add("MatMul", "opset1", [x, weights(net, rng, (768, 768))], transpose_b=True))
    array = rng.standard_normal((24, 768)).astype("f4")
    told = [repr(compared(net.model(), [array], memory=memory)) for memory in ("fast", None)]
    if way == "numpy":
        assert "0 weights as levels, 589824 as numbers" in told[0]
    assert "balanced: 589824 weights as levels, 0 as numbers" in told[1]


@pytest.mark.parametrize(
    ("rows", "columns", "groups", "integers", "stay"),
    [
        (1, 128, 1, 11.0, False), (1, 4096, 1, 11.0, True), (1, 4096, 8, 11.0, True),
        (32, 4096, 1, 11.0, True), (32, 4096, 8, 11.0, False), (1, 128, 1, 0.0, False),
        (1, 16384, 1, 0.0, True), (200, 16384, 1, 0.0, False), (1, 16384, 64, 0.0, False),
    ],
)  # fmt: skip
def test_levels_stay_where_they_are_as_quick(
    rows: int, columns: int, groups: int, integers: float, stay: bool
) -> None:
    sizes = (columns, groups, 512 // groups) if groups > 1 else (columns, 512)
    net = ir.Builder()
    net.result(net.constant(np.zeros(sizes, "u1")))
    levels = next(layer for layer in net.model().order() if layer.is_constant)
    packed = Compressed(levels, None, np.ones(1, "f4"), (columns, 512))
    assert as_quick(packed, rows, columns, integers) is stay
    assert as_quick(packed, rows, columns, integers, patience=1e9)
    assert not as_quick(packed, rows, columns, integers, patience=0)


def test_little_memory_keeps_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_on, "fits", lambda nbytes: False)
    rng = np.random.default_rng(2)
    net = ir.Builder()
    x = net.parameter("x", "f32", (200, 32))
    net.result(net.add("MatMul", "opset1", [x, weights(net, rng, (64, 32))], transpose_b=True))
    assert "memory small" in repr(ir.compile(net.model()))


def test_who_else_reads_weights_gets_numbers() -> None:
    """A sum over them, and weights that are handed out, are not products."""
    rng = np.random.default_rng(4)
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 32))
    matrix = weights(net, rng, (24, 32))
    net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True))
    net.result(matrix)
    program = compared(net.model(), [rng.standard_normal((2, 32)).astype("f4")])
    assert "levels" not in repr(program)


def test_scales_along_what_is_summed_become_numbers() -> None:
    rng = np.random.default_rng(4)
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 32))
    levels = net.constant(rng.integers(0, 256, (24, 32)), "u8")
    made = net.add("Convert", "opset1", [levels], destination_type="f32")
    scale = net.constant(rng.random((1, 32)), "f32")
    matrix = net.add("Multiply", "opset1", [made, scale])
    net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True))
    program = compared(net.model(), [rng.standard_normal((2, 32)).astype("f4")])
    assert "0 weights as levels, 768 as numbers" in repr(program)


def test_a_memory_that_is_none() -> None:
    net = ir.Builder()
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", (1,))]))
    with pytest.raises(UsageError, match="memory is 'tiny', it is small or fast"):
        ir.compile(net.model(), memory="tiny")  # type: ignore[arg-type]


def digits_made(model: ir.Model, arrays: list[Array]) -> int:
    """How many products of a program have a step of their own that makes digits of rows."""
    whole, steps = digit_kernels._rows_as_digits, []

    def noted(*words: Any) -> Any:
        making, taken = whole(*words)
        steps.extend([making] if making else [])
        return making, taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digit_kernels, "_rows_as_digits", noted)
        compared(model, arrays, memory="small")
    return len(steps)


@pytest.fixture
def by_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of integers, whether they are sooner done or not."""
    if LIBRARY is None:
        pytest.skip("the extra fast is not installed")
    monkeypatch.setattr(level_kernels, "by_digits", lambda *_: True)


@pytest.mark.parametrize("zero", ["none", "whole", "between"])
@pytest.mark.parametrize(
    ("inner", "groups"),
    [(1000, 0), (1025, 0), (1025, 5), (2048, 0), (2048, 16), (2100, 0), (4864, 0), (4864, 2)],
)
@pytest.mark.parametrize("rows", [6, 33, 300])
def test_sums_of_any_length(rows: int, inner: int, groups: int, zero: str) -> None:
    """Long ones are cut where pieces of columns are, or in the middle of these."""
    rng = np.random.default_rng(inner)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, rows, inner))
    matrix = weights(net, rng, (50, inner), groups=groups, zero=zero)
    net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level_kernels, "integer_products", lambda: None)
        patch.setattr(level_kernels, "ROWS", 1 << 16)
        array = rng.standard_normal((1, rows, inner)).astype("f4")
        compared(net.model(), [array], memory="small")


@pytest.mark.usefixtures("by_digits")
@pytest.mark.parametrize("rows", [1, 24, 150])
def test_rows_become_digits_once_for_all_who_want_them(rows: int) -> None:
    """Queries, keys and values; whoever sees them in other groups or with sums has his own."""
    rng = np.random.default_rng(rows)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, rows, 768))
    for number, (groups, zero) in enumerate([(0, "none")] * 3 + [(4, "none"), (4, "whole")]):
        matrix = weights(net, rng, (768, 768), kind="i8", groups=groups, zero=zero)
        made = net.add("MatMul", "opset1", [x, matrix], transpose_b=True)
        net.result(net.add("ReLU", "opset1", [made]), name=f"y{number}")
    array = rng.standard_normal((1, rows, 768)).astype("f4")
    assert digits_made(net.model(), [array]) == 3


@pytest.mark.usefixtures("by_digits")
@pytest.mark.parametrize("columns", [17, 1111, 10_673, 21_333])
@pytest.mark.parametrize(("inner", "groups"), [(256, 0), (256, 4), (256, 8), (1792, 7)])
@pytest.mark.parametrize("rows", [1, 3])
def test_any_number_of_workers_gives_the_same(
    columns: int, inner: int, groups: int, rows: int
) -> None:
    """Wherever columns are cut: BLAS sums up the last of an odd number otherwise."""
    rng = np.random.default_rng(columns)
    net = ir.Builder()
    x = net.parameter("x", "f32", (rows, inner))
    matrix = weights(net, rng, (columns, inner), groups=groups, kind="i8", zero="none")
    net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True))
    model = net.model()
    programs = [ir.compile(model, threads=count, memory="small") for count in (1, 2, 3, 5)]
    for _ in range(12):
        array = rng.standard_normal((rows, inner)).astype("f4")
        first, *others = (next(iter(program([array]).values())) for program in programs)
        for other in others:
            np.testing.assert_array_equal(other, first)


@pytest.mark.usefixtures("by_digits")
def test_digits_of_other_rows_come_between() -> None:
    """Those of the first rows are gone when others were made, and are made again."""
    rng = np.random.default_rng(1)
    net = ir.Builder()
    x = net.parameter("x", "f32", (4, 768))
    y = net.parameter("y", "f32", (4, 768))
    for number, rows in enumerate((x, y, x)):
        matrix = weights(net, rng, (768, 768), kind="i8", zero="none")
        net.result(net.add("MatMul", "opset1", [rows, matrix], transpose_b=True), name=f"{number}")
    both = [rng.standard_normal((4, 768)).astype("f4") for _ in range(2)]
    assert digits_made(net.model(), both) == 3


@pytest.mark.usefixtures("by_digits")
def test_rows_that_are_not_finite_are_found_by_all_who_share_digits() -> None:
    rng = np.random.default_rng(5)
    net = ir.Builder()
    x = net.parameter("x", "f32", (20, 768))
    for number in range(3):
        matrix = weights(net, rng, (768, 768), kind="i8", zero="none")
        net.result(net.add("MatMul", "opset1", [x, matrix], transpose_b=True), name=f"{number}")
    array = rng.standard_normal((20, 768)).astype("f4")
    array[3, 7], array[15, 0] = np.inf, np.nan
    wanted = ir.run(net.model(), [array])
    found = ir.compile(net.model(), threads=2, memory="small")([array])
    for name, right in wanted.items():
        scale = np.abs(right[0]).max()
        np.testing.assert_allclose(found[name], right, rtol=1e-5, atol=1e-5 * scale)
