"""Programs with integers: products of what bytes are widened to, and numbers in other types."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir

KINDS = {"f32": "f4", "i8": "i1", "u8": "u1", "i32": "i4", "i64": "i8"}
ENDS = [0.5, -0.5, 1.5, 2.5, -2.5, 254.99, 255, 256, -129, 2.0**24 + 2, 2.0**31, -(2.0**31), 0]
BEYOND = [*ENDS, np.inf, -np.inf, np.nan, 1e30, -1e30, 2.0**63]


def kinds(model: ir.Model) -> Counter[tuple[str, str]]:
    """How often each type of node gives each type of number."""
    shapes = tuple(p.outputs[0].tensor.shape.static for p in model.parameters)
    nodes = ir.compile(model, threads=1, fork=False)._planned(shapes).plan.nodes  # type: ignore[union-attr]
    return Counter((node.kind, str(node.outputs[0].type)) for node in nodes)


def same(model: ir.Model, *inputs: np.ndarray, tolerance: float = 2e-6) -> None:
    wanted = ir.run(model, list(inputs))
    for words in ({"threads": 1}, {"threads": 2}, {"threads": 2, "fork": False}):
        found = ir.compile(model, **words)(list(inputs))
        for name, array in wanted.items():
            assert found[name].dtype == array.dtype
            if array.dtype.kind != "f":
                np.testing.assert_array_equal(found[name], array)
            else:
                room = tolerance * max(float(np.nanmax(np.abs(array), initial=0)), 1)
                np.testing.assert_allclose(found[name], array, rtol=0, atol=room)


class Products:
    """Bytes less a zero point times weights less theirs, as numbers."""

    def __init__(self, kind: str, rows: int, taken: int, made: int, **words: bool) -> None:
        rng = np.random.default_rng(rows * taken + made)
        net = self.net = ir.Builder()
        ends = np.iinfo(KINDS[kind])
        shape = (taken, rows) if words.get("transpose_a") else (rows, taken)
        self.given = [
            rng.integers(ends.min, ends.max + 1, shape).astype(KINDS[kind]),
            rng.integers(ends.min, ends.max + 1, ()).astype(KINDS[kind]),
        ]
        self.x, self.zero = (
            net.parameter(name, kind, array.shape)
            for name, array in zip("xz", self.given, strict=True)
        )
        shape = (made, taken) if words.get("transpose_b") else (taken, made)
        weights = net.constant(rng.integers(-128, 128, shape).astype("i1"))
        self.taken = net.add("Subtract", "opset1", [self.to(self.x), self.to(self.zero)])
        self.factor = net.add("Subtract", "opset1", [self.to(weights), net.constant(np.int32(3))])
        self.sums = net.add("MatMul", "opset1", [self.taken, self.factor], **words)

    def to(self, x: Any, kind: str = "i32") -> Any:
        return self.net.add("Convert", "opset1", [x], destination_type=kind)

    def model(self, *results: Any) -> ir.Model:
        for number, result in enumerate(results):
            self.net.result(result, name=f"y{number}")
        return self.net.model()


@pytest.mark.parametrize("kind", ["u8", "i8"])
@pytest.mark.parametrize(("rows", "taken", "made"), [(1, 7, 5), (64, 384, 96), (9, 3000, 40)])
@pytest.mark.parametrize("words", [{}, {"transpose_a": True}, {"transpose_b": True}])
def test_integers_of_bytes_are_multiplied_as_numbers(
    kind: str, rows: int, taken: int, made: int, words: dict[str, bool]
) -> None:
    parts = Products(kind, rows, taken, made, **words)
    numbers = parts.to(parts.sums, "f32")
    scaled = parts.net.add("Multiply", "opset1", [numbers, parts.net.constant(np.float32(0.1))])
    model = parts.model(scaled)
    assert kinds(model)["MatMul", "float32"] == 1
    assert not any(kind == "int32" for _, kind in kinds(model))
    same(model, *parts.given)


@pytest.mark.parametrize("kind", ["u8", "i8"])
@pytest.mark.parametrize("factor", ["known", "beside it"])
@pytest.mark.parametrize("to", ["i32", "f32"])
@pytest.mark.parametrize(("channels", "shape", "sizes", "stride"), [
    (64, (48, 64, 3, 3), (30, 26), 1),  # where Winograd's way would be quicker
    (64, (48, 64, 3, 3), (30, 26), 2),
    (24, (32, 24, 1, 1), (17, 19), 1),
    (3, (16, 3, 7, 7), (40, 44), 2),
    (48, (48, 1, 1, 3, 3), (33, 30), 1),  # at points
    (32, (32, 1, 1, 5, 5), (36, 40), 1),
    (24, (3, 16, 8, 3, 3), (20, 22), 1),
    (40, (24, 40, 3), (75,), 1),
    (16, (12, 16, 3, 3, 3), (9, 10, 11), 1),
    (64, (64, 64, 2, 3, 3), (5, 26, 28), 1),
    (128, (2, 64, 64, 2, 3, 3), (5, 26, 28), 1),
    (16, (16, 1, 1, 3, 3, 3), (12, 18, 19), 1),
])  # fmt: skip
def test_integers_of_bytes_are_convolved_as_numbers(
    kind: str, factor: str, to: str, channels: int, shape: tuple[int, ...],
    sizes: tuple[int, ...], stride: int,
) -> None:  # fmt: skip
    """No sum is rounded: dynamically quantised networks round what is made of it to levels.

    Importers widen bytes to floating numbers, OpenVINO's to integers.
    """
    rng, net, ends = np.random.default_rng(0), ir.Builder(), np.iinfo(KINDS[kind])
    x = net.parameter("x", kind, (2, channels, *sizes))
    zero = net.parameter("z", kind, ())
    wide = [net.add("Convert", "opset1", [value], destination_type=to) for value in (x, zero)]
    weights = net.constant(rng.integers(-99, 99, shape).astype(KINDS[to]))
    axes, name = len(sizes), "Convolution" if len(shape) == len(sizes) + 2 else "GroupConvolution"
    around = [size // 2 for size in shape[-axes:]]
    sums = net.add(
        name, "opset1", [net.add("Subtract", "opset1", wide), weights], strides=[stride] * axes,
        dilations=[1] * axes, pads_begin=around, pads_end=around,
    )  # fmt: skip
    y = sums if to == "f32" else net.add("Convert", "opset1", [sums], destination_type="f32")
    scale: Any = net.constant(np.float32(0.01))
    if factor == "beside it":
        scale = net.parameter("s", "f32", ())
    y = net.add("Multiply", "opset1", [y, scale])
    net.result(net.add("ReLU", "opset1", [net.add("Add", "opset1", [y, scale])]), name="y")
    model = net.model()
    given: list[np.ndarray] = [
        rng.integers(ends.min, ends.max + 1, array).astype(KINDS[kind])
        for array in ((2, channels, *sizes), ())
    ]
    assert kinds(model)[name, "float32"] == 1
    assert not any(kind == "int32" for _, kind in kinds(model))
    same(model, *given, *([np.float32(0.03)] if factor != "known" else []), tolerance=0)


@pytest.mark.parametrize("way", [
    "handed out", "read as integers", "wrapped around", "divided", "added, then divided",
])  # fmt: skip
def test_integers_that_others_want_stay_integers(way: str) -> None:
    parts = Products("u8", 4, 140_000 if way == "wrapped around" else 8, 3)
    numbers, more = parts.to(parts.sums, "f32"), []
    if way == "handed out":
        more = [parts.sums]
    elif way == "read as integers":
        more = [parts.net.add("Abs", "opset1", [parts.sums])]
    elif way == "added, then divided":
        bias = parts.net.parameter("b", "i32", (3,))
        beside = parts.net.add("Add", "opset1", [parts.sums, bias])
        parts.given.append(np.array([1 << 24, 5, -7], np.int32))
        more = [parts.net.add("Divide", "opset1", [beside, parts.net.constant(np.int32(7))])]
    elif way == "divided":
        more = [parts.net.add("Divide", "opset1", [parts.taken, parts.net.constant(np.int32(7))])]
    model = parts.model(numbers, *more)
    assert kinds(model)["MatMul", "int32"] == 1
    same(model, *parts.given)


def test_sums_that_numbers_hold_are_added_up_further() -> None:
    parts = Products("i8", 5, 16, 6)
    bias = parts.net.constant(np.arange(6, dtype="i4"))
    numbers = parts.to(parts.net.add("Add", "opset1", [parts.sums, bias]), "f32")
    model = parts.model(numbers, parts.to(parts.sums, "f32"))
    assert not any(kind == "int32" for _, kind in kinds(model))
    same(model, *parts.given, tolerance=0)


@pytest.mark.parametrize("kind", ["u8", "i8"])
@pytest.mark.parametrize("how", ["rounded for it", "known", "given", "given first"])
@pytest.mark.parametrize(("taken", "made"), [(24, 16), (900, 3)])
def test_integers_are_added_to_sums_as_numbers(kind: str, how: str, taken: int, made: int) -> None:
    """Biases are divided by the scale of the moment, and rounded, so that they go with sums."""
    parts, rng = Products(kind, 7, taken, made), np.random.default_rng(made)
    net, given = parts.net, list(parts.given)
    bias: Any = rng.integers(-9000, 9000, made).astype("i4")
    if how == "known":
        beside = net.constant(bias)
    elif how == "rounded for it":
        given.append(np.float32(0.037))
        scaled = net.add(
            "Divide", "opset1", [net.constant(bias.astype("f4")), net.parameter("s", "f32", ())]
        )
        beside = parts.to(net.add("Floor", "opset1", [scaled]))
    else:
        given.append(bias)
        beside = net.parameter("b", "i32", bias.shape)
    ends = [beside, parts.sums] if how == "given first" else [parts.sums, beside]
    model = parts.model(parts.to(net.add("Add", "opset1", ends), "f32"))
    assert kinds(model)["MatMul", "float32"] == 1
    assert not kinds(model)["Add", "int32"]
    same(model, *given, tolerance=0)


def test_products_of_whole_numbers_nobody_knows_are_left() -> None:
    net = ir.Builder()
    x, y = net.parameter("x", "i32", (3, 4)), net.parameter("y", "i32", (4, 5))
    product = net.add("MatMul", "opset1", [x, y])
    net.result(net.add("Convert", "opset1", [product], destination_type="f32"), name="z")
    rng = np.random.default_rng(0)
    given = [rng.integers(-(2**30), 2**30, shape).astype("i4") for shape in ((3, 4), (4, 5))]
    same(net.model(), *given, tolerance=0)


@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(), (13,), (3, 40001)])
@pytest.mark.parametrize("ends", [ENDS, BEYOND])
def test_numbers_in_other_types(
    of: str, kind: str, size: tuple[int, ...], ends: list[float]
) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.choice(ends, size).astype("f4")
    with np.errstate(invalid="ignore"):
        x = numbers.astype(KINDS[of]) if of == "f32" else np.nan_to_num(numbers).astype(KINDS[of])
    net = ir.Builder()
    # Beside the caller's own memory there is the plan's, and that of channels kept last.
    given = net.parameter("x", of, x.shape)
    moved = net.add("Concat", "opset1", [given, given], axis=0) if size else given
    net.result(net.add("Convert", "opset1", [moved], destination_type=kind), name="y")
    model = net.model()
    (wanted,) = ir.run(model, [x]).values()
    for threads in (1, 2):
        (found,) = ir.compile(model, threads=threads)([x]).values()
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("mode", ["half_to_even", "half_away_from_zero"])
@pytest.mark.parametrize("size", [(), (19,), (4, 30001)])
def test_rounded_numbers(mode: str, size: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    net = ir.Builder()
    x = net.parameter("x", "f32", size)
    y = net.add("Round", "opset5", [net.add("Add", "opset1", [x, x])], mode=mode)
    net.result(net.add("ReLU", "opset1", [y]), name="y")
    model = net.model()
    values = np.asarray(rng.choice([*BEYOND, 0.25, -0.25, 0.75, 1e-9, 4e6 + 0.25], size), "f4")
    (wanted,) = ir.run(model, [values]).values()
    for threads in (1, 2):
        (found,) = ir.compile(model, threads=threads)([values]).values()
        np.testing.assert_array_equal(found, wanted)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 40), st.integers(1, 9))
def test_numbers_quantised_as_they_come(seed: int, rows: int, taken: int, made: int) -> None:
    """Scale and zero point of the numbers at hand, as ONNX's DynamicQuantizeLinear has them."""
    rng = np.random.default_rng(seed)
    net = ir.Builder()
    x = net.parameter("x", "f32", (rows, taken))
    zero, all_axes = net.constant(np.float32(0)), net.constant([0, 1])
    high, low = (
        net.add(join, "opset1", [zero, net.add(f"Reduce{name}", "opset1", [x, all_axes])])
        for join, name in (("Maximum", "Max"), ("Minimum", "Min"))
    )
    scale = net.add(
        "Multiply",
        "opset1",
        [net.add("Subtract", "opset1", [high, low]), net.constant(np.float32(1 / 255))],
    )

    def byte(number: Any) -> Any:
        held = net.add("Clamp", "opset1", [number], min=0, max=255)
        return net.add("Convert", "opset1", [held], destination_type="u8")

    def rounded(number: Any) -> Any:
        divided = net.add("Divide", "opset1", [number, scale])
        return net.add("Round", "opset5", [divided], mode="half_to_even")

    point = byte(rounded(net.add("Subtract", "opset1", [zero, low])))
    shift = net.add("Convert", "opset1", [point], destination_type="f32")
    levels = byte(net.add("Add", "opset1", [rounded(x), shift]))
    wide = [net.add("Convert", "opset1", [v], destination_type="i32") for v in (levels, point)]
    weights = net.constant(rng.integers(-128, 128, (taken, made)).astype("i4"))
    sums = net.add("MatMul", "opset1", [net.add("Subtract", "opset1", wide), weights])
    numbers = net.add("Convert", "opset1", [sums], destination_type="f32")
    net.result(net.add("Multiply", "opset1", [numbers, scale]), name="y")
    same(net.model(), rng.standard_normal((rows, taken)).astype("f4"))


@pytest.mark.parametrize("how", ["Subtract", "Add", "Add given"])
def test_sums_that_floating_numbers_do_not_hold_stay_integers(how: str) -> None:
    net = ir.Builder()
    x = net.parameter("x", "u8", (4, 1100))
    rng = np.random.default_rng(6)
    weights = rng.integers(240, 256, (1100, 8)).astype("u1")
    left = net.add("Convert", "opset1", [x], destination_type="i32")
    right = net.add("Convert", "opset1", [net.constant(weights)], destination_type="i32")
    y = net.add("MatMul", "opset1", [left, right], transpose_a=False, transpose_b=False)
    beside = np.array(67_000_001 if how == "Subtract" else -67_000_001, "i4")
    other = net.parameter("b", "i32", ()) if how == "Add given" else net.constant(beside)
    y = net.add(how.split()[0], "opset1", [y, other])
    net.result(net.add("Convert", "opset1", [y], destination_type="f32"), name="y")
    model = net.model()
    given = rng.integers(240, 256, (4, 1100)).astype("u1")
    wanted = given.astype("i8") @ weights.astype("i8") - 67_000_001
    inputs = [given, beside] if how == "Add given" else [given]
    np.testing.assert_array_equal(ir.compile(model)(inputs)["y"], wanted)


@pytest.mark.parametrize("beyond", [(1 << 24) + 1, -(1 << 24) - 3, 67_000_001])
def test_integers_that_floating_numbers_do_not_hold_are_added_as_such(beyond: int) -> None:
    parts = Products("u8", 3, 8, 2)
    bias = parts.net.constant(np.array(beyond, "i4"))
    model = parts.model(parts.to(parts.net.add("Add", "opset1", [parts.sums, bias]), "f32"))
    assert kinds(model)["Add", "int32"] == 1
    same(model, *parts.given, tolerance=0)
