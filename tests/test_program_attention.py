"""Attention and normalisations of sizes that networks have give what their definitions give."""

from __future__ import annotations

import gc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import attention, in_use, lines, matrices, scaling
from vinoir.ir.engine.plan import Node, Scales
from vinoir.schemas import Array


def agree(model: ir.Model, inputs: list[Array], within: float = 3e-6) -> None:
    """A program gives what the definitions give, whoever works, bit for bit the same."""
    wanted = ir.run(model, inputs)
    answers = [ir.compile(model, threads=threads)(inputs) for threads in (1, 2)]
    threaded = ir.compile(model, threads=2, fork=False)(inputs)
    for name, expected in wanted.items():
        np.testing.assert_array_equal(np.isnan(answers[0][name]), np.isnan(expected))
        scale = max(float(np.nanmax(np.abs(expected))), 1e-30)
        assert np.nanmax(np.abs(answers[0][name] - expected)) <= within * scale
        np.testing.assert_array_equal(answers[0][name], answers[1][name])
        np.testing.assert_array_equal(answers[0][name], threaded[name])


def attending(
    seed: int, sizes: tuple[int, int, int, int], heads: int, mask: str, large: float
) -> tuple[ir.Model, list[Array]]:
    """Queries, keys and values as they lie side by side in rows, and attention of them."""
    rows, keys, depth, wide = sizes
    rng = np.random.default_rng(seed)
    net = ir.Builder()
    cut, inputs = [], []
    for name, length, each in (("q", rows, depth), ("k", keys, depth), ("v", keys, wide)):
        inputs.append((rng.standard_normal((1, length, heads, each)) * large).astype("f4"))
        given = net.parameter(name, "f32", inputs[-1].shape)
        given = net.add("Abs", "opset1", [given]) if name == "k" else given
        cut.append(net.add("Transpose", "opset1", [given, net.constant([0, 2, 1, 3])]))
    if mask == "seen":
        seen = rng.random((1, 1, rows, keys)) < 0.6
        seen[..., 0] = True
        cut.append(net.constant(seen))
    elif mask == "added":
        cut.append(net.parameter("m", "f32", (rows, keys)))
        inputs.append(rng.standard_normal((rows, keys)).astype("f4"))
    net.result(net.add("ScaledDotProductAttention", "opset13", cut, causal=mask == "causal"))
    return net.model(), inputs


@pytest.mark.parametrize("large", [1.0, 30.0])
@pytest.mark.parametrize("mask", ["", "seen", "added", "causal"])
@pytest.mark.parametrize(
    "sizes",
    [(197, 197, 64, 64), (49, 49, 32, 32), (400, 77, 64, 40), (30, 130, 16, 24), (25, 700, 64, 64),
     (40, 40, 600, 8), (23, 50, 16, 16), (100, 1, 8, 8), (700, 1500, 64, 64), (650, 1100, 40, 80)],
)  # fmt: skip
def test_attention_of_any_size(sizes: tuple[int, int, int, int], mask: str, large: float) -> None:
    # Powers of large scores are far apart, whichever way they are found.
    agree(*attending(1, sizes, 3, mask, large), within=1e-5 if large == 1 else 3e-4)


@settings(max_examples=15, deadline=None)
@given(
    st.tuples(*[st.integers(1, 150)] * 2, *[st.integers(1, 70)] * 2),
    st.integers(1, 3), st.sampled_from(["", "seen", "added", "causal"]), st.integers(0, 9),
)  # fmt: skip
def test_attention_drawn(
    sizes: tuple[int, int, int, int], heads: int, mask: str, seed: int
) -> None:
    agree(*attending(seed, sizes, heads, mask, 1.0), within=1e-5)


def test_rows_without_numbers_stay_alone() -> None:
    model, inputs = attending(2, (60, 131, 16, 16), 2, "", 1.0)
    inputs[0][0, 7, 1, 3] = np.nan
    found = ir.compile(model, threads=1)(inputs)
    (answer,) = found.values()
    assert np.argwhere(np.isnan(answer).any(-1)).tolist() == [[0, 1, 7]]


def test_products_are_cut_where_small_ones_are_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    q = np.zeros((2, 197, 64), np.float32)
    monkeypatch.setattr(attention, "cuts", lambda taken: 1)
    assert attention._sizes(q, 197, 208, 64) == (66, 208, 68)  # with what keys are padded by
    assert attention._sizes(q[:, :20], 197, 208, 64) is None  # too few
    assert attention._sizes(q, 2000, 2000, 64) == (100, 128, 4)  # too many keys for all
    assert attention._sizes(q, 2000, 2000, 80) == (100, 128, 0)  # BLAS would pad rows of these
    assert attention._sizes(q.swapaxes(1, 2), 197, 208, 64) is None  # BLAS would copy it
    monkeypatch.setattr(attention, "cuts", lambda taken: 0)
    assert attention._sizes(q, 197, 208, 64) is None


@pytest.mark.parametrize("other", ["last", "rows", "all"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1, 197, 384), [2]), ((2, 7, 9, 33), [3]), ((1, 1, 768), [-1]), ((2, 3, 50, 64), [2, 3]),
     ((2, 8, 16, 16), [1, 2, 3]), ((2, 8, 5, 6), [1]), ((4, 1000, 96), [2]), ((300, 300), [1]),
     ((3, 2, 400, 100), [1, 3])],
)  # fmt: skip
def test_what_follows_a_normalisation(shape: tuple[int, ...], axes: list[int], other: str) -> None:
    rng = np.random.default_rng(len(shape))
    sizes = {"last": shape[-1:], "rows": (*shape[:-1], 1), "all": shape}[other]
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    factor = net.constant(rng.standard_normal(sizes).astype("f4"))
    y = net.add(
        "MVN", "opset6", [x, net.constant(axes)],
        normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt",
    )  # fmt: skip
    y = net.add("Multiply", "opset1", [y, factor])
    net.result(net.add("Gelu", "opset7", [net.add("Add", "opset1", [y, x])]))
    agree(net.model(), [(rng.standard_normal(shape) + 3).astype("f4")])


def test_plans_share_weights_that_begin_on_cache_lines() -> None:
    source = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    blocks = source.reshape(64, 2, 48).transpose(1, 0, 2)
    first = matrices._shared(source, blocks, source.strides)
    second = matrices._shared(source, blocks, source.strides)
    assert np.shares_memory(first, second)
    np.testing.assert_array_equal(second, blocks)
    assert first.ctypes.data % 64 == 0
    before = len(in_use._made)
    part = second[1:]
    del first, second
    gc.collect()
    assert len(in_use._made) == before  # parts keep it
    del part
    gc.collect()
    assert len(in_use._made) == before - 1


def kinds(model: ir.Model, inputs: list[Array]) -> list[str]:
    """The types of the nodes that a program has after all passes."""
    return [node.kind for node, *_ in ir.compile(model, threads=1).times(inputs, 1) or []]


@pytest.mark.parametrize("told", [None, 0.3])
@pytest.mark.parametrize("mask", ["", "constant", "given", "causal"])
@pytest.mark.parametrize(
    ("factors", "gone"),
    [((0.25, None), True), ((None, 3.0), True), ((-0.5, 0.5), True), ((0.0, None), False),
     ((1e-8, None), False)],
)  # fmt: skip
def test_what_multiplies_queries_is_part_of_the_scale(
    factors: tuple[float | None, ...], gone: bool, mask: str, told: float | None
) -> None:
    rng, net = np.random.default_rng(3), ir.Builder()
    shape = (2, 3, 49, 32)
    inputs = [rng.standard_normal(shape).astype("f4") for _ in range(3)]
    given = [net.parameter(name, "f32", shape) for name in "qkv"]
    for place, factor in enumerate(factors):
        if factor is not None:
            number = net.constant(np.full((1,) * (4 * place), factor, "f4"))
            pair = [given[place], number] if place else [number, given[place]]
            given[place] = net.add("Multiply", "opset1", pair)
    if mask in ("constant", "given"):
        numbers = rng.standard_normal((3, 49, 49)).astype("f4")
        given.append(
            net.constant(numbers) if mask == "constant" else net.parameter("m", "f32", (3, 49, 49))
        )
        inputs += [numbers] if mask == "given" else []
    elif told is not None:
        given.append(net.constant(np.zeros((1, 1), "f4")))
    given += [] if told is None else [net.constant(np.array(told, "f4"))]
    net.result(net.add("ScaledDotProductAttention", "opset13", given, causal=mask == "causal"))
    agree(net.model(), inputs, within=1e-5)
    assert ("Multiply" in kinds(net.model(), inputs)) != gone


def test_queries_that_others_want_are_multiplied() -> None:
    rng, net = np.random.default_rng(4), ir.Builder()
    q, k, v = (net.parameter(name, "f32", (1, 2, 9, 8)) for name in "qkv")
    q = net.add("Multiply", "opset1", [q, net.constant(np.float32(0.5))])
    net.result(net.add("ScaledDotProductAttention", "opset13", [q, k, v], causal=False), name="y")
    net.result(net.add("Tanh", "opset1", [q]), name="t")
    inputs = [rng.standard_normal((1, 2, 9, 8)).astype("f4") for _ in range(3)]
    agree(net.model(), inputs)
    assert "Multiply" in kinds(net.model(), inputs)


def test_even_heads_go_round_whole() -> None:
    """Six heads of many keys, among four workers, and as many as there are."""
    agree(*attending(5, (197, 197, 64, 64), 6, "", 1.0), within=1e-5)
    agree(*attending(6, (400, 300, 32, 32), 10, "added", 1.0), within=1e-5)


class Normed:
    """A norm of rows, what follows it, and products of these."""

    def __init__(self, shape: tuple[int, ...], norm: str) -> None:
        self.rng, self.shape, self.net = np.random.default_rng(len(shape)), shape, ir.Builder()
        self.x = self.net.parameter("x", "f32", shape)
        self.given = [(self.rng.standard_normal(shape) * 2 + 1).astype("f4")]
        axes = self.net.constant([len(shape) - 1])
        if norm == "MVN":
            words = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
            y = self.net.add("MVN", "opset6", [self.x, axes], **words)
        else:
            y = self.net.add("NormalizeL2", "opset1", [self.x, axes], eps=1e-5, eps_mode="add")
        self.norm, self.normed = y, self.followed("Multiply", y, 1.0)

    def row(self, spread: float, *, wide: int | None = None) -> ir.Output:
        """A row of numbers around one."""
        wide = self.shape[-1] if wide is None else wide
        numbers = 1 + spread * self.rng.standard_normal(wide)
        return self.net.constant(numbers.astype("f4"))

    def followed(
        self, kind: str, y: ir.Output, spread: float, wide: int | None = None
    ) -> ir.Output:
        return self.net.add(kind, "opset1", [y, self.row(spread, wide=wide)])

    def times(self, y: ir.Output, columns: int, *, turned: bool = False) -> ir.Output:
        """Rows by a matrix."""
        shape = (columns, self.shape[-1]) if turned else (self.shape[-1], columns)
        matrix = self.net.constant(self.rng.standard_normal(shape).astype("f4"))
        return self.net.add("MatMul", "opset1", [y, matrix], transpose_b=turned)

    def passes(self) -> int:
        """How many elementwise steps follow the norm, but for one that adds one."""
        steps = sum(len(node.epilogue) for node in self.nodes() if node.kind in NORMS)
        return steps - self.is_raised()

    def is_raised(self) -> bool:
        """Whether one is added to the norm in place of biases after products."""
        return any(node.scales.raised is not None for node in self.nodes())

    def nodes(self) -> list[Node]:
        """What is computed."""
        program = ir.compile(self.net.model(), threads=1)
        return [node for node, *_ in program.times(self.given, 1) or []]


NORMS = ("MVN", "NormalizeL2")
SHAPES = [(1, 197, 96), (2, 50, 64), (3, 7, 9, 33), (40, 128), (1, 1, 48), (1, 2, 30)]


@pytest.mark.parametrize("norm", ["MVN", "NormalizeL2"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_take_the_scale_of_norms(shape: tuple[int, ...], turned: bool, norm: str) -> None:
    n = Normed(shape, norm)
    y = n.followed("Add", n.normed, 0.5)
    first = n.followed("Add", n.times(y, 130, turned=turned), 0.5, 130)
    n.net.result(n.net.add("Gelu", "opset7", [first]), name="a")
    scaled = n.followed("Multiply", n.times(y, shape[-1], turned=turned), 2.0)
    n.net.result(n.net.add("Add", "opset1", [n.followed("Subtract", scaled, 1.0), n.x]), name="b")
    agree(n.net.model(), n.given, within=1e-5)


def test_scales_are_in_weights_where_these_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    n = Normed((1, 50, 64), "MVN")
    y = n.followed("Add", n.normed, 0.5)
    moved = n.net.add("Reshape", "opset1", [y, n.net.constant([2, 25, 64])], special_zero=False)
    moved = n.net.add("Transpose", "opset1", [moved, n.net.constant([1, 0, 2])])
    n.net.result(n.times(moved, 96), name="a")
    n.net.result(n.times(y, 32), name="b")
    agree(n.net.model(), n.given, within=1e-5)
    assert n.passes() == 0
    monkeypatch.setattr(matrices, "cuts", lambda *words: 0)
    monkeypatch.setattr(matrices, "MANY", 1)  # as BLAS takes them that copies them anyway
    agree(n.net.model(), n.given, within=1e-5)
    assert n.passes() == 2


@pytest.mark.parametrize(
    "other", ["output", "elementwise", "second", "turned", "columns", "added", "huge"]
)
def test_norms_keep_the_scale_that_others_want(other: str) -> None:
    n = Normed((2, 64, 64), "MVN")
    y = n.followed("Add", n.normed, 0.5)
    made = n.times(y, 64)
    if other == "output":
        n.net.result(y, name="y")
    elif other == "elementwise":
        n.net.result(n.net.add("Tanh", "opset1", [y]), name="y")
    elif other == "second":
        n.net.result(n.net.add("MatMul", "opset1", [n.x, y]), name="y")
    elif other == "turned":
        matrix = n.net.constant(n.rng.standard_normal((64, 32)).astype("f4"))
        n.net.result(n.net.add("MatMul", "opset1", [y, matrix], transpose_a=True), name="y")
    elif other == "columns":
        turned = n.net.add("Transpose", "opset1", [y, n.net.constant([0, 2, 1])])
        n.net.result(n.times(turned, 8), name="y")
    elif other == "huge":
        y = n.net.add("Multiply", "opset1", [n.normed, n.net.constant(np.full(64, 1e20, "f4"))])
        made = n.net.add("Multiply", "opset1", [n.times(y, 8), n.net.constant(np.float32(1e-20))])
    else:
        y = n.net.add("Add", "opset1", [y, n.x])
        n.net.result(n.times(y, 8), name="y")
    n.net.result(made, name="made")
    agree(n.net.model(), n.given, within=1e-5)
    assert n.passes() > 0


#: Rows by which a norm is known to be the right one, and such as leave nothing of it.
ROWS = {
    "usual": lambda x: x,
    "far from zero": lambda x: x + 300,
    "one number each": lambda x: np.repeat(x[..., :1], x.shape[-1], axis=-1),
    "zero": np.zeros_like,
    "nearly one number": lambda x: 3 + x * 1e-4,
    "outliers": lambda x: np.where(np.arange(x.shape[-1]) == 5, 1e4, x).astype("f4"),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(("mean", "bias"), [(0, 1), (3, 1), (0, 10)])
def test_biases_of_products_go_into_weights_that_meet_rows_without_mean(
    kind: str, mean: int, bias: int
) -> None:
    """What is made so is as near to what it should be as what is made step by step."""
    n = Normed((2, 25, 96), "MVN")
    n.given = [ROWS[kind](n.given[0])]
    exact = n.given[0] - n.given[0].mean(axis=-1, keepdims=True, dtype=np.float64)
    spread = np.sqrt((exact**2).mean(axis=-1, keepdims=True) + 1e-5)
    exact /= spread
    # By so much the mean may be rounded, which all weights of a sum meet.
    rounded = 2e-7 * (np.abs(n.given[0]).max(axis=-1, keepdims=True) / spread).max()
    numbers = n.rng.standard_normal((2, 96)).astype("f4") + 1
    scale, shift = map(n.net.constant, numbers)
    y = n.net.add("Add", "opset1", [n.net.add("Multiply", "opset1", [n.norm, scale]), shift])
    exact = exact * numbers[0] + numbers[1]
    wanted, sums = {}, {}
    for columns, name in ((192, "a"), (40, "b")):
        matrix = (mean + n.rng.standard_normal((96, columns))).astype("f4")
        row = (bias * n.rng.standard_normal(columns)).astype("f4")
        product = n.net.add("MatMul", "opset1", [y, n.net.constant(matrix)])
        wanted[name] = exact @ matrix
        sums[name] = np.abs(numbers[0] @ matrix).max() + 3 * bias
        if name == "a":
            product = n.net.add("Add", "opset1", [product, n.net.constant(row)])
            wanted[name] = np.maximum(wanted[name] + row, 0)
            product = n.net.add("ReLU", "opset1", [product])
        n.net.result(product, name=name)
    assert n.is_raised()
    plain = ir.run(n.net.model(), n.given)
    for name, found in ir.compile(n.net.model(), threads=2)(n.given).items():
        off, usual = (np.abs(some - wanted[name]).max() for some in (found, plain[name]))
        allowed = 1e-6 * max(np.abs(wanted[name]).max(), 10) + rounded * sums[name]
        assert off <= 3 * usual + allowed


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("deep", [1, 31, 32, 100, 3072])
def test_weights_are_summed_up_with_digits_to_spare(deep: int, turned: bool) -> None:
    rng = np.random.default_rng(deep)
    rows, matrix = (rng.standard_normal(shape).astype("f4") for shape in ((2, deep), (deep, 40)))
    lying = np.ascontiguousarray(matrix.T).T if turned else matrix
    wanted = rows.astype("f8") @ matrix
    found = scaling._multiplied(rows, lying)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=6e-7 * np.abs(wanted).max())


@pytest.mark.parametrize("shifted", [False, True])
def test_what_is_too_large_for_weights_stays_after_products(shifted: bool) -> None:
    n = Normed((2, 25, 96), "MVN")
    y = n.followed("Add", n.normed, 0.5) if shifted else n.normed
    product = n.times(y, 192)
    product = n.net.add("Multiply", "opset1", [product, n.net.constant(np.float32(1e16))])
    n.net.result(n.followed("Add", product, 1e16, 192), name="y")
    model = n.net.model()
    (wanted,), (found,) = (
        f(n.given).values() for f in (partial(ir.run, model), ir.compile(model))
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e12)


@pytest.mark.parametrize(
    "other", ["no variance", "images", "lengths", "few columns", "no bias", "endless", "residual"]
)
def test_rows_that_have_a_mean_or_gain_nothing_are_not_raised(other: str) -> None:
    n = Normed((2, 30, 32), "NormalizeL2" if other == "lengths" else "MVN")
    y, columns = n.normed, 24 if other == "few columns" else 64
    if other in ("no variance", "images"):
        words = {"normalize_variance": other != "no variance", "eps": 1e-5}
        axes = n.net.constant([1, 2] if other == "images" else [2])
        y = n.net.add("MVN", "opset6", [n.x, axes], **words, eps_mode="inside_sqrt")
    matrix = n.rng.standard_normal((32, columns)).astype("f4")
    if other == "endless":
        matrix[3, 4] = np.inf
    product = n.net.add("MatMul", "opset1", [y, n.net.constant(matrix)])
    if other != "no bias":
        product = n.followed("Add", product, 1.0, columns)
    n.net.result(product, name="y")
    if other == "residual":
        n.net.result(n.net.add("Tanh", "opset1", [y]), name="z")
    assert not n.is_raised()
    with np.errstate(all="ignore"):
        agree(n.net.model(), n.given, within=1e-5)


def test_plans_share_scaled_weights() -> None:
    """Of two lengths, and of another norm before the same weights."""
    net, rng = ir.Builder(), np.random.default_rng(6)
    x = net.parameter("x", "f32", (1, -1, 64))
    matrix = net.constant(rng.standard_normal((64, 192)).astype("f4"))
    for name in "ab":
        words = {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}
        y = net.add("MVN", "opset6", [x, net.constant([2])], **words)
        y = net.add("Multiply", "opset1", [y, net.constant(rng.random(64).astype("f4"))])
        net.result(net.add("MatMul", "opset1", [y, matrix]), name=name)
    model = net.model()
    program = ir.compile(model, threads=1)
    before = len(in_use._made)
    for length in (40, 100, 40):
        given = [rng.standard_normal((1, length, 64)).astype("f4")]
        wanted = ir.run(model, given)
        for name, found in program(given).items():
            np.testing.assert_allclose(found, wanted[name], rtol=1e-5, atol=1e-5)
    assert len(in_use._made) - before <= 2


@pytest.mark.parametrize("wide", [48, 64, 192])
@pytest.mark.parametrize("raised", [False, True])
@pytest.mark.parametrize("scaled", [(True, False), (False, True), (True, True), (False, False)])
def test_weights_of_a_file_stay_as_they_are(
    wide: int, scaled: tuple[bool, bool], raised: bool
) -> None:
    """They change in copies, also where they lie as wanted, and where none are left over."""
    numbers = np.random.default_rng(7).standard_normal((64, 192)).astype("f4")
    aligned = lines.on_lines(64, 192)
    aligned[:] = numbers
    aligned.flags.writeable = False
    scales = [np.arange(1, size + 1, dtype="f4") if told else None
              for told, size in zip(scaled, numbers.shape, strict=True)]  # fmt: skip
    wanted = numbers.copy()
    for scale, axis in zip(scales, (1, 0), strict=True):
        if scale is not None:
            wanted *= np.expand_dims(scale, axis)
    more = np.arange(192, dtype="f4") if raised else None
    if more is not None:
        wanted += more
    found = matrices.kept_columns(aligned, aligned, wide, scales=Scales(*scales, more))
    columns = [part.transpose(1, 0, 2).reshape(64, -1) for part in found]
    rounded = 4e-5 if raised else 0  # what comes near zero was rounded before
    np.testing.assert_allclose(np.concatenate(columns, 1), wanted, rtol=2e-7, atol=rounded)
    np.testing.assert_array_equal(aligned, numbers)


def test_attention_keeps_its_sink_when_it_takes_a_scale() -> None:
    rng, net = np.random.default_rng(8), ir.Builder()
    inputs = [rng.standard_normal((1, 2, 9, 8)).astype("f4") for _ in range(3)]
    q, k, v = (net.parameter(name, "f32", (1, 2, 9, 8)) for name in "qkv")
    q = net.add("Multiply", "opset1", [q, net.constant(np.float32(0.5))])
    more = [net.constant(np.zeros((1, 1), "f4")), net.constant(np.float32(0.3))]
    more.append(net.constant(rng.standard_normal((1, 2, 1, 1)).astype("f4")))
    net.result(
        net.add("ScaledDotProductAttention", "opset13", [q, k, v, *more], causal=False), name="y"
    )
    agree(net.model(), inputs, within=1e-5)
    assert "Multiply" not in kinds(net.model(), inputs)


@pytest.mark.parametrize(
    ("kind", "numbers", "moves_rows"),
    [("Transpose", [[1, 0, 2]], True), ("Transpose", [[]], False),
     ("Transpose", [[2, 1, 0]], False), ("Roll", [[3], [0]], True),
     ("Roll", [[3, 1], [1, -3]], True), ("Roll", [[3], [2]], False), ("Roll", [[3], [-1]], False)],
)  # fmt: skip
def test_scales_go_past_what_moves_whole_rows(
    kind: str, numbers: list[list[int]], moves_rows: bool
) -> None:
    n = Normed((12, 20, 12), "MVN")  # few rows: every BLAS has their weights laid out
    y = n.followed("Add", n.normed, 0.5)
    told = [n.net.constant(np.array(some, np.int64)) for some in numbers]
    moved = n.net.add(kind, "opset7" if kind == "Roll" else "opset1", [y, *told])
    n.net.result(n.times(moved, 40), name="y")
    agree(n.net.model(), n.given, within=1e-5)
    assert (n.passes() == 0) == moves_rows
