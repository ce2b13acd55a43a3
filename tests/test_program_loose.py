"""Small steps outside the arena: what is done without ado is what the definitions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vinoir import ir, layers
from vinoir.ir.engine.kernels import quick
from vinoir.layers.base import Op
from vinoir.layers.budget import within
from vinoir.schemas import Array, IRError

DATA = {kind: np.array([3, -1, 0, 7, 7, -5], kind) for kind in ("f4", "i4", "i8", "?", "f2", "i1")}
#: The types that are moved without ado.
PLAIN = ("f4", "i4", "i8", "?")
ODD = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45], "f4")


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def both(op: Op, *arrays: Array) -> tuple[bool, tuple[Array, ...]]:
    """Whether an operation was done without its definition, and what it gave."""
    asked: list[bool] = []

    def general(*given: Array) -> tuple[Array, ...]:
        asked.append(True)
        return op.run(*given)

    with np.errstate(all="ignore"):
        found = quick(op, general)(*arrays)
    return not asked, found


def agree(op: Op, *arrays: Array) -> bool:
    """Hold an operation against its definition; whether it did without it."""
    alone, found = both(op, *arrays)
    with np.errstate(all="ignore"):
        wanted = op.run(*arrays)
    for one, other in zip(found, wanted, strict=True):
        assert isinstance(one, np.ndarray)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)
    return alone


PAIRS = ["Add", "Subtract", "Multiply", "Maximum", "Minimum", "Divide", "Equal", "Greater",
         "GreaterEqual", "Less", "LessEqual", "NotEqual", "LogicalAnd", "LogicalOr"]  # fmt: skip


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str, kind: str) -> None:
    op = getattr(layers, f"{name}V1").read({})
    if name.startswith("Logical") is not (kind == "?"):
        return
    one = DATA[kind]
    for other in (one[::-1], one[:1], one[:1].reshape(()), one[:, None], one[:0, None]):
        alone = agree(op, one, other)
        known = {"f4"} if name == "Divide" else {"f4", "i4", "i8", "?"}
        if name in PAIRS[:6]:
            known -= {"?"}
        assert alone is (kind in known)
    if kind == "f4":
        assert agree(op, ODD, ODD[::-1])


def test_pairs_that_do_not_go_together_are_refused_by_the_definition() -> None:
    op = layers.AddV1.read({})
    asked: list[int] = []

    def general(*arrays: Array) -> tuple[Array, ...]:
        asked.append(len(arrays))
        return arrays

    quick(op, general)(np.ones(3, "f4"), np.ones(4, "f4"))
    quick(op, general)(np.ones(3, "f4"), np.ones(3, "i4"))
    pdpd = layers.AddV1.read({"auto_broadcast": "pdpd"})
    quick(pdpd, general)(np.ones(3, "f4"), np.ones(3, "f4"))
    assert asked == [2, 2, 2]


@pytest.mark.parametrize(
    ("pattern", "alone"),
    [([2, 3], True), ([-1], True), ([3, -1], True), ([-1, 1, 6], True), ([0, 1], True),
     ([6, 1, 1], True)],
)  # fmt: skip
def test_reshape(pattern: list[int], alone: bool) -> None:
    op = layers.ReshapeV1.read({"special_zero": "true"})
    assert agree(op, DATA["f4"], ints(*pattern)) is alone
    agree(op, DATA["f4"][:0], ints(0))


@pytest.mark.parametrize(
    ("shape", "pattern", "known"),
    [((0,), [-1, 1], True), ((0, 5), [-1, 1, 5], True), ((0, 5), [1, -1, 5], True),
     ((0, 5), [0, 5], True), ((3, 0), [0, 0, 1], True), ((0, 5), [-1, 0], True)],
)  # fmt: skip
def test_reshape_of_nothing(shape: tuple[int, ...], pattern: list[int], known: bool) -> None:
    op = layers.ReshapeV1.read({"special_zero": "true"})
    assert agree(op, np.zeros(shape, "f4"), ints(*pattern)) is known


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0)])
@pytest.mark.parametrize("pattern", [[-1, 0], [0, -1], [-1], [0, 0, -1], [-1, 3], [2, 0, -1]])
@pytest.mark.parametrize("special", ["true", "false"])
def test_reshape_of_nothing_is_refused_as_by_the_definition(
    shape: tuple[int, ...], pattern: list[int], special: str
) -> None:
    op = layers.ReshapeV1.read({"special_zero": special})
    data = np.zeros(shape, "f4")
    try:
        op.run(data, ints(*pattern))
    except (IRError, ValueError, IndexError) as refused:
        with pytest.raises(type(refused)):
            both(op, data, ints(*pattern))
        return
    agree(op, data, ints(*pattern))


@pytest.mark.parametrize("kind", ["f4", "i8", "?", "f2"])
def test_equal_pieces(kind: str) -> None:
    data = np.concatenate([DATA[kind]] * 4).reshape(4, 3, 2)
    for axis, count in ((0, 2), (-3, 4), (1, 3), (-1, 2), (2, 1)):
        op = layers.SplitV1.read({"num_splits": str(count)})
        assert agree(op, data, np.array(axis))
        assert agree(op, data[..., :1, :0] if axis == 0 else data[:, :, :0], np.array(axis))
    assert agree(layers.SplitV1.read({"num_splits": "3"}), data[:, :0], np.array(1))
    with pytest.raises(ValueError, match="equal division"):
        both(layers.SplitV1.read({"num_splits": "3"}), data, np.array(0))


@pytest.mark.parametrize("kind", ["f4", "i8", "?", "f2"])
def test_pieces_of_given_lengths_and_what_joins_them(kind: str) -> None:
    data = np.concatenate([DATA[kind]] * 4).reshape(4, 3, 2)
    split = layers.VariadicSplitV1.read({})
    for axis, lengths in ((0, (1, 0, 3)), (-2, (2, 1)), (2, (0, 2)), (1, (3,))):
        assert agree(split, data, np.array(axis), ints(*lengths))
        assert agree(split, data, ints(axis), ints(*lengths))
        pieces = split.run(data, np.array(axis), ints(*lengths))
        assert agree(layers.ConcatV1.read({"axis": str(axis)}), *pieces)
    assert not agree(split, data, np.array(0), ints(1, -1))
    with pytest.raises(IRError):
        both(split, data, np.array(0), ints(1, 1))
    with pytest.raises(ValueError, match="dimension"):
        both(layers.ConcatV1.read({"axis": "0"}), data, data[:, :2])


@given(
    start=st.integers(-6, 6) | st.just(-(2**31)), step=st.sampled_from([1, 2, -1]),
    stop=st.integers(-6, 6) | st.just(2**63 - 1), axis=st.integers(-2, 1),
)  # fmt: skip
def test_slices_along_an_axis(start: int, stop: int, step: int, axis: int) -> None:
    data = np.arange(12, dtype="f4").reshape(4, 3)
    op = layers.SliceV8.read({})
    assert agree(op, data, ints(start), ints(stop), ints(step), ints(axis)) is (step == 1)
    agree(op, data[:0], ints(start), ints(stop), ints(step))
    ends = [ints(1, 0), ints(3, 2), ints(1, 1)]
    assert not agree(op, data, *ends)
    assert not agree(op, data, *ends, ints(1, 0))


@given(st.data())
def test_rows_are_added_to_rows(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(-1, 3), min_size=1, max_size=5))
    rng = np.random.default_rng(len(rows))
    target, updates = rng.random((4, 3), "f4"), rng.random((len(rows), 3), "f4")
    indices = np.broadcast_to(ints(*rows)[:, None], updates.shape)
    op = layers.ScatterElementsUpdateV12.read({"reduction": "sum", "use_init_val": "true"})
    once = min(rows) >= 0 and sorted(set(rows)) == rows
    assert agree(op, target, indices, updates, np.array(0)) is once
    spoilt = indices.copy()
    spoilt[0, 1] = (rows[0] + 1) % 4
    assert not agree(op, target, spoilt, updates, np.array(-2))
    other = layers.ScatterElementsUpdateV12.read({"reduction": "sum", "use_init_val": "false"})
    assert not agree(other, target, indices, updates, np.array(0))


@given(st.data())
def test_elements_take_the_place_of_others(data: st.DataObject) -> None:
    """Single ones, and whole slices, as new keys among those of former calls."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = [data.draw(st.integers(1, size)) for size in shape]
    count[axis] = data.draw(st.integers(1, 6))
    indices = rng.integers(-shape[axis], shape[axis], count)
    if data.draw(st.booleans()):
        count[axis + len(shape) * (axis < 0) + 1 :] = shape[axis + len(shape) * (axis < 0) + 1 :]
        indices = rng.integers(0, shape[axis], count)
        indices = np.broadcast_to(indices.reshape(-1)[0], count)
    held, updates = rng.random(shape, "f4"), rng.random(count, "f4")
    op = layers.ScatterElementsUpdateV3.read({})
    assert agree(op, held, indices, updates, np.array(axis))
    wrong = indices.copy()
    wrong.flat[0] = shape[axis]
    with pytest.raises(IRError):
        both(op, held, wrong, updates, np.array(axis))
    for others in ((held, indices, updates.astype("f8")), (held.astype("f8"), indices, updates)):
        assert quick(op, lambda *arrays: arrays)(*others, np.array(axis))[0] is others[0]


@pytest.mark.parametrize("name", ["GeluV7", "ReLUV1", "SigmoidV1", "SwishV4", "TanhV1"])
def test_nothing_is_changed(name: str) -> None:
    op = getattr(layers, name).read({})
    assert agree(op, np.zeros((0, 3), "f4"))
    assert not agree(op, DATA["f4"])


@pytest.mark.parametrize("reduction", ["none", "sum", "prod", "mean"])
@pytest.mark.parametrize("initial", ["true", "false"])
def test_nothing_is_scattered(reduction: str, initial: str) -> None:
    words = {"reduction": reduction, "use_init_val": initial}
    op = layers.ScatterElementsUpdateV12.read(words)
    data = DATA["f4"].reshape(2, 3)
    for shape, axis in (((0, 3), 0), ((0, 2), -2), ((2, 0), 1), ((1, 0), -1)):
        nothing = np.zeros(shape, "i8"), np.zeros(shape, "f4")
        assert agree(op, data, *nothing, np.array(axis))
    some = np.zeros((1, 3), "i8"), np.ones((1, 3), "f4")
    done = reduction == "none" or (reduction == "sum" and initial == "true")
    assert agree(op, data, *some, np.array(0)) is done
    with pytest.raises(IRError):
        both(op, data, np.zeros((0, 4), "i8"), np.zeros((0, 4), "f4"), np.array(0))
    for wrong in ((0,), (0, 3, 1)):  # of other ranks than the data: the rule of shapes tells
        given = data, np.zeros(wrong, "i8"), np.zeros(wrong, "f4"), np.array(0)
        assert quick(op, lambda *arrays: arrays)(*given)[1] is given[1]


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize(
    ("pattern", "known"),
    [([0, 0, 4], True), ([0, 6, -1], True), ([0, -1], True), ([0, 12], True), ([2, 0, 1, 4], True),
     ([24, 0], False), ([0, 0, 0], True), ([0, 0, 0, 1], True), ([-1, 3, 4, 0], False)],
)  # fmt: skip
def test_reshape_keeps_sizes(pattern: list[int], known: bool, special: bool) -> None:
    op = layers.ReshapeV1.read({"special_zero": str(special).lower()})
    data = np.arange(24, dtype="f4").reshape(2, 3, 4)
    try:
        op.run(data, ints(*pattern))
    except (IRError, ValueError):
        with pytest.raises((IRError, ValueError)):
            both(op, data, ints(*pattern))
        return
    assert agree(op, data, ints(*pattern)) is (known and special)


@pytest.mark.parametrize("pattern", [[4], [-1, 4], [-2, 3], [-1, -1]])
def test_reshape_refuses_what_the_definition_refuses(pattern: list[int]) -> None:
    op = layers.ReshapeV1.read({"special_zero": "true"})
    with pytest.raises(IRError):
        both(op, DATA["f4"], ints(*pattern))


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_axes_of_one(axis: int) -> None:
    data = DATA["f4"].reshape(2, 3)
    assert agree(layers.UnsqueezeV1.read({}), data, ints(axis))
    wide = np.expand_dims(data, axis)
    for op in (layers.SqueezeV1.read({}), layers.SqueezeV15.read({})):
        assert agree(op, wide, ints(axis))
        assert agree(op, wide, np.array(axis))
    assert not agree(layers.SqueezeV1.read({}), wide)
    assert not agree(layers.UnsqueezeV1.read({}), data, ints(0, 1))


def test_squeeze_of_another_size_is_the_definitions() -> None:
    alone, _ = both(layers.SqueezeV15.read({}), np.ones((1, 2), "f4"), ints(0))
    assert alone
    try:
        alone, _ = both(layers.SqueezeV15.read({}), np.ones((1, 2), "f4"), ints(1))
    except IRError:
        alone = False
    assert not alone


@pytest.mark.parametrize("kind", ["f4", "i4", "i8", "?", "f2"])
def test_rows_and_slices(kind: str) -> None:
    data = np.concatenate([DATA[kind]] * 4).reshape(4, 3, 2)
    rows = ints(3, 0, -1, 2, 2)
    known = kind != "f2"
    for op in (layers.GatherNDV8.read({}), layers.GatherNDV5.read({})):
        assert agree(op, data, rows[:, None]) is known
        assert agree(op, data, rows[:4].reshape(2, 2, 1)) is known
        assert not agree(op, data, ints(1, 2, 3, 0)[:, None] * ints(1, 0))
    for axis in (0, 1, -1):
        chosen = ints(1, 0, -1, 1)
        op = layers.GatherV8.read({})
        assert agree(op, data, chosen, np.array(axis)) is known
        assert agree(op, data, chosen.reshape(2, 2), ints(axis)) is known
        assert agree(op, data, chosen[0].reshape(()), ints(axis)) is known
        # What lies beyond the axis, the definition makes zeros of.
        if known:
            assert not agree(op, data, ints(9, 0), ints(axis))
    with pytest.raises(IRError):
        both(layers.GatherNDV8.read({}), data, ints(4)[:, None])


def test_gather_nd_by_several_indices_is_that_by_one() -> None:
    rng = np.random.default_rng(0)
    for batch in (0, 1, 2):
        data = rng.random((2, 3, 4, 5)).astype("f4")
        for depth in range(1, 5 - batch):
            sizes = data.shape[batch : batch + depth]
            indices = np.stack([rng.integers(-n, n, (2, 3, 6)) for n in sizes], -1)
            (found,) = layers.GatherNDV8.read({"batch_dims": str(batch)}).run(data, indices)
            for place in np.ndindex(2, 3, 6):
                wanted = data[(*place[:batch], *indices[place])]
                np.testing.assert_array_equal(found[place], wanted)


def test_what_repeats_converts_and_counts() -> None:
    broadcast = layers.BroadcastV3.read({})
    assert agree(broadcast, np.array(2.5, "f4"), ints(2, 3))
    assert agree(broadcast, np.array(True), ints())
    assert agree(broadcast, DATA["f4"], ints(2, 6))
    assert agree(layers.BroadcastV1.read({}), DATA["?"], ints(3, 1, 6))
    assert not agree(layers.BroadcastV1.read({"mode": "none"}), DATA["f4"], ints(6), ints(0))
    both_ways = layers.BroadcastV3.read({"mode": "bidirectional"})
    for data, shape in ((DATA["f4"], (2, 1)), (np.array(3), (2,)), (np.ones((4, 1)), (1, 6))):
        assert agree(both_ways, data, ints(*shape)) is (data.ndim <= len(shape))
    for op in (broadcast, both_ways):
        for data, shape in ((DATA["f4"], (2, 5)), (DATA["f4"].reshape(2, 3), (3,))):
            if op is broadcast or data.ndim == 1:
                with pytest.raises(ValueError, match=r"shape|dimensions"):
                    both(op, data, ints(*shape))
    assert agree(layers.ShapeOfV3.read({"output_type": "i32"}), np.ones((2, 0, 3)))
    for kind in ("f32", "i32", "i64", "u8", "f16", "boolean", "nf4"):
        op = layers.ConvertV1.read({"destination_type": kind})
        for data in DATA.values():
            plain = kind in ("f32", "i32", "i64", "boolean") and data.dtype in PLAIN
            same = data.dtype.kind != "f" or kind in ("f32", "boolean")
            assert agree(op, data) is (plain and same)


@pytest.mark.parametrize("keep", ["true", "false"])
@pytest.mark.parametrize("name", ["ReduceMin", "ReduceMax"])
def test_extremes(name: str, keep: str) -> None:
    op = getattr(layers, f"{name}V1").read({"keep_dims": keep})
    for data in (DATA["f4"], DATA["i8"], ODD):
        assert agree(op, data, ints(0))
        assert not agree(op, data, ints(-1))
    assert not agree(op, DATA["f4"].reshape(2, 3), ints(0))
    assert not agree(op, DATA["f4"][:0], ints(0))


@pytest.mark.parametrize("keep", ["true", "false"])
@pytest.mark.parametrize("name", ["ReduceProd", "ReduceSum"])
def test_sums_and_products_of_whole_numbers(name: str, keep: str) -> None:
    op = getattr(layers, f"{name}V1").read({"keep_dims": keep})
    for data in DATA.values():
        if data.dtype != np.bool_:
            assert agree(op, data, ints(0)) is (data.dtype in ("i4", "i8"))
    large = np.array([1 << 30, 7, -(1 << 29), 3], "i4")
    assert agree(op, large, ints(0))
    assert not agree(op, DATA["i8"], ints(-1))


@pytest.mark.parametrize("ends", [(0, 9, 2), (9, 0, -4), (3, 3, 1), (5, 2, 1), (-7, 8, 3)])
@pytest.mark.parametrize("kind", ["i32", "i64", "f32", "u8"])
def test_ranges(kind: str, ends: tuple[int, int, int]) -> None:
    op = layers.RangeV4.read({"output_type": kind})
    for types in (("i4", "i4", "i4"), ("i8", "i4", "i8"), ("f4", "i4", "i4")):
        arrays = [np.array(x, dtype) for x, dtype in zip(ends, types, strict=True)]
        if kind == "u8" and ends[0] < 0:
            continue
        assert agree(op, *arrays) is (kind in ("i32", "i64") and "f4" not in types)
    old = layers.RangeV1.read({})
    assert agree(old, *(np.array(x, "i8") for x in ends))
    assert not agree(op, np.array(1 << 40), np.array((1 << 40) + 3), np.array(1))


def test_choices_and_bits() -> None:
    select = layers.SelectV1.read({})
    chosen = DATA["?"]
    for name in ("f4", "i4", "i8", "?"):
        data = DATA[name]
        assert agree(select, chosen, data, data[::-1])
        assert agree(select, chosen.reshape(6, 1), data, data[0].reshape(()))
    assert not agree(select, chosen, DATA["f2"], DATA["f2"])
    with pytest.raises(ValueError, match="shape"):
        both(select, chosen, DATA["f4"][:4], DATA["f4"])
    for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        op = getattr(layers, f"{name}V13").read({})
        for kind in ("i4", "i8", "?"):
            assert agree(op, DATA[kind], DATA[kind][2].reshape(()))


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_places_of_what_is_there(kind: str) -> None:
    op = layers.NonZeroV3.read({"output_type": kind})
    for data in (*DATA.values(), ODD):
        assert agree(op, data) is (data.dtype in ("f4", "i4", "i8", "?"))
        assert not agree(op, data.reshape(2, 3))
        assert not agree(op, data[0].reshape(()))
    assert agree(op, DATA["f4"][:0])


@pytest.mark.parametrize("sort", ["value", "none", "index"])
@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("version", [1, 3, 11])
def test_the_best_of_a_list(version: int, mode: str, sort: str) -> None:
    kind = layers.TopKV3.registry["TopK", version]
    op = kind.read({"axis": "-1", "mode": mode, "sort": sort})
    rng = np.random.default_rng(0)
    many = rng.integers(0, 90, 1000)
    for data in (*(DATA[kind] for kind in ("f4", "i4", "i8")), ODD, many.astype("f4")):
        for count in (0, 1, 3, len(data)):
            assert agree(op, data, np.array(count)) is (sort != "index")
    assert not agree(op, DATA["f4"].reshape(2, 3), np.array(2))
    assert not agree(op, DATA["f2"], np.array(2))
    for count in (-1, 7):
        with pytest.raises(IRError):
            both(op, DATA["f4"], np.array(count))


def test_where_bytes_are_counted_the_definition_is_asked() -> None:
    op: Any = layers.GatherNDV8.read({})
    assert agree(op, DATA["f4"], ints(0)[:, None])
    with within(max_memory=1 << 20):
        assert not agree(op, DATA["f4"], ints(0)[:, None])


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize(
    ("shape", "columns"),
    [((700, 256), 300), ((2, 40, 512), 2000), ((5, 4096), 3000), ((3, 16), 8), ((0, 4096), 9000)],
)
def test_large_products_of_what_is_chosen(
    shape: tuple[int, ...], columns: int, turned: bool
) -> None:
    rng = np.random.default_rng(columns)
    weights = rng.standard_normal((columns, shape[-1]) if turned else (shape[-1], columns))
    net = ir.Builder()
    x, mask = net.parameter("x", "f32", shape), net.parameter("mask", "boolean", shape[:1])
    places = net.add("NonZero", "opset3", [mask], output_type="i64")
    listed = net.add("Squeeze", "opset1", [places, net.constant([0])])
    rows = net.add("Gather", "opset8", [x, listed, net.constant(0)])
    made = net.add(
        "MatMul", "opset1", [rows, net.constant(weights.astype("f4"))], transpose_b=turned
    )
    net.result(made)
    model, data = net.model(), rng.standard_normal(shape).astype("f4")
    data[:1] = np.inf
    inputs = [data, np.arange(len(data)) % 3 < 2]
    (wanted,) = ir.run(model, inputs).values()
    answers = [
        next(iter(ir.compile(model, threads=threads, fork=fork)(inputs).values()))
        for threads, fork in ((1, False), (2, True), (2, False))
    ]
    scale = np.abs(wanted[1:]).max(initial=1)
    np.testing.assert_allclose(answers[0][1:], wanted[1:], atol=3e-6 * scale)
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])
