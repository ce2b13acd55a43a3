"""Products by weights: whatever BLAS is there, rows, sums and columns cut however they are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import convolution, matrices, products, recurrent, winograd

ROWS = [2, 13, 24, 49, 130]


@pytest.fixture(params=["small as they lie", "all copied"], autouse=True)
def _library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways are gone, whatever this processor's own is."""
    kernels = ["Haswell", "SkylakeX"][request.param == "small as they lie"]
    monkeypatch.setattr(products, "blas", lambda: Library("OpenBLAS", kernels))


class Library:
    """What is asked of a library."""

    def __init__(self, name: str, kernels: str) -> None:
        self.name, self.kernels = name, kernels


def same(net: ir.Builder, *inputs: np.ndarray) -> None:
    """A program gives what the definitions give."""
    model = net.model()
    for threads in (1, 2):
        found = ir.compile(model, threads=threads)(list(inputs))
        for name, wanted in ir.run(model, list(inputs)).items():
            scale = np.abs(wanted).max()
            np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize(("rows", "halved"), [(100, False), (260, False), (700, True)])
def test_large_products_have_twice_as_many_parts_where_nothing_is_copied(
    rows: int, halved: bool
) -> None:
    """So that slower cores are left with less of them; pieces of few products are not halved."""
    rng = np.random.default_rng(0)
    net = ir.Builder()
    x = net.parameter("x", "f32", (rows, 384))
    net.result(net.add("MatMul", "opset1", [x, net.constant(numbers(rng, 384, 1152))]))
    model, given = net.model(), numbers(rng, rows, 384)
    program = ir.compile(model, threads=2)
    program([given])
    (planned,) = program._plans.values()
    assert planned is not None
    library = products.blas()
    assert library is not None
    is_halved = halved and library.kernels == "SkylakeX"
    assert [len(step) for step in planned.team.steps] == [8 if is_halved else 4]
    same(net, given)


def test_sums_of_which_there_is_no_room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "CACHE", 1 << 14)
    rng = np.random.default_rng(0)
    net = ir.Builder()
    for rows, deep in ((24, 6000), (40, 7168)):
        x = net.parameter(f"x{rows}", "f32", (rows, deep))
        weights = net.constant(numbers(rng, deep, 192) / np.float32(deep) ** 0.5)
        net.result(net.add("MatMul", "opset1", [x, weights]), name=f"{rows}")
    same(net, numbers(rng, 24, 6000), numbers(rng, 40, 7168))


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("stack", "fewer", "deep", "columns"),
    [((), (), 1536, 300), ((), (), 2310, 128), ((3,), (3,), 768, 130), ((2, 2), (1, 2), 520, 192),
     ((2, 3), (2, 1), 1031, 96), ((2,), (2,), 300, 576)],
)  # fmt: skip
def test_rows_by_long_columns(
    rows: int, stack: tuple[int, ...], fewer: tuple[int, ...], deep: int, columns: int
) -> None:
    rng = np.random.default_rng(rows + deep)
    net = ir.Builder()
    x = net.parameter("x", "f32", (*stack, rows, deep))
    for turned in (False, True):
        right = (columns, deep) if turned else (deep, columns)
        weights = net.constant(numbers(rng, *fewer, *right) / np.float32(deep) ** 0.5)
        y = net.add("MatMul", "opset1", [x, weights], transpose_b=turned)
        y = net.add("Add", "opset1", [y, net.constant(numbers(rng, columns))])
        net.result(net.add("Swish", "opset4", [y]), name=f"turned {turned}")
    same(net, numbers(rng, *stack, rows, deep))


@pytest.mark.parametrize("size", [3, 7])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize(
    ("given", "made", "groups"), [(640, 96, 1), (1100, 256, 1), (1280, 64, 2)]
)
def test_convolutions_of_many_channels(
    size: int, kernel: int, stride: int, given: int, made: int, groups: int
) -> None:
    rng = np.random.default_rng(given)
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, given, size, size))
    x = net.add("ReLU", "opset1", [x])
    weights = numbers(rng, groups, made // groups, given // groups, kernel, kernel)
    words = {"strides": (stride,) * 2, "dilations": (1, 1)}
    pads = {"pads_begin": (kernel // 2,) * 2, "pads_end": (kernel // 2,) * 2}
    kind = "Convolution" if groups == 1 else "GroupConvolution"
    constant = net.constant(weights[0] if groups == 1 else weights)
    y = net.add(kind, "opset1", [x, constant], **words, **pads)
    net.result(net.add("Sigmoid", "opset1", [y]), name="y")
    same(net, numbers(rng, 2, given, size, size) / np.float32(given * kernel))


@pytest.mark.parametrize("made", [40, 72, 136, 144, 200, 772, 880])
@pytest.mark.parametrize(("size", "kernel", "gap"), [(5, 1, 1), (14, 1, 1), (21, 1, 1), (9, 3, 4)])
def test_columns_that_are_left_over(made: int, size: int, kernel: int, gap: int) -> None:
    rng = np.random.default_rng(made)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 40, size, size))
    factors = net.add("ReduceMean", "opset1", [x, net.constant(np.int64([2, 3]))], keep_dims=True)
    words = {"strides": (1, 1), "dilations": (gap,) * 2}
    pads = {"pads_begin": (kernel // 2 * gap,) * 2, "pads_end": (kernel // 2 * gap,) * 2}
    weights = net.constant(numbers(rng, made, 40, kernel, kernel) / np.float32(20))
    bias = net.constant(numbers(rng, 1, made, 1, 1))
    for name, image in (("plain", x), ("scaled", net.add("Multiply", "opset1", [x, factors]))):
        y = net.add("Convolution", "opset1", [image, weights], **words, **pads)
        y = net.add("Add", "opset1", [y, bias])
        net.result(net.add("Tanh", "opset1", [y]), name=name)
    same(net, numbers(rng, 1, 40, size, size))


@given(
    outer=st.integers(1, 1200),
    inner=st.integers(1, 600),
    rows=st.integers(1, 800),
    lanes=st.sampled_from([1, 2, 4, 8]),
)
def test_blocks_and_what_is_left_are_all_columns(
    outer: int, inner: int, rows: int, lanes: int
) -> None:
    weights = np.arange(outer * inner, dtype="f4").reshape(outer, inner, 1, 1)
    blocks, *rest = products.in_columns(weights, rows, lanes)
    assert len(rest) <= 1
    columns = [block.swapaxes(0, 1).reshape(inner, -1) for block in (blocks, *rest)]
    np.testing.assert_array_equal(np.concatenate(columns, 1), weights[:, :, 0, 0].T)
    for block in rest:
        assert blocks.shape[2] % 16 == 0
        assert block.shape[2] < (products.WIDE if lanes == 1 else blocks.shape[2])


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("size", [4, 7, 13])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("room", [1 << 24, 1 << 16])
def test_weights_are_transformed_once_for_some_images(
    images: int, size: int, stride: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(winograd, "ROOM", room)
    taps = 3 if stride == 1 else 2
    way = winograd.tiling(winograd.TRIED[taps][0] if taps in winograd.TRIED else 4, taps)
    monkeypatch.setattr(convolution, "choose", lambda found, _=0: [way._replace(afresh=True)])
    rng = np.random.default_rng(size)
    given, made = 64, 160
    net = ir.Builder()
    x = net.parameter("x", "f32", (images, given, size, size))
    weights = net.constant(numbers(rng, made, given, 3, 3) / np.float32(24))
    words = {"strides": (stride,) * 2, "dilations": (1, 1)}
    places = -(-size // stride)
    other = net.parameter("other", "f32", (images, made, places, places))
    bias = net.constant(numbers(rng, 1, made, 1, 1))
    for following in ("alike", "each its own"):
        y = net.add(
            "Convolution", "opset1", [net.add("ReLU", "opset1", [x]), weights], **words,
            pads_begin=(1, 1), pads_end=(1, 1),
        )  # fmt: skip
        y = net.add("Add", "opset1", [y, bias])
        y = net.add("Multiply", "opset1", [y, other]) if following != "alike" else y
        net.result(net.add("Sigmoid", "opset1", [y]), name=following)
    same(net, numbers(rng, images, given, size, size), numbers(rng, images, made, places, places))


@pytest.mark.parametrize(
    ("taken", "rows", "parts"),
    [(512, None, 1), (513, None, 0), (768, 8, 1), (768, 24, 2), (3072, 24, 6), (512, 4000, 1),
     (640, 49, 2), (1031, 49, 0), (1031, 24, 1), (4096, 384, 4), (4096, 385, 0), (1024, 385, 1)],
)  # fmt: skip
def test_sums_are_cut_evenly_where_that_pays(
    taken: int,
    rows: int | None,
    parts: int,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "is_zen_5", bool)
    small = "copied" not in request.node.name
    assert products.cuts(taken, rows) == (parts if small else 0)


@pytest.mark.parametrize(
    ("taken", "rows", "parts"),
    [(512, 4000, 1), (1024, 385, 1), (1536, 385, 2), (2048, 1000, 4), (3072, 1500, 4),
     (4096, 384, 4), (1031, 400, 0)],
)  # fmt: skip
def test_long_sums_of_many_rows_are_cut_on_zen_5(
    taken: int,
    rows: int,
    parts: int,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "is_zen_5", lambda: True)
    small = "copied" not in request.node.name
    assert products.cuts(taken, rows) == (parts if small else 0)
    rng = np.random.default_rng(taken)
    net = ir.Builder()
    x = net.parameter("x", "f32", (rows, taken))
    y = net.add("MatMul", "opset1", [x, net.constant(numbers(rng, taken, 100))])
    net.result(net.add("Gelu", "opset7", [y]), name="y")
    same(net, numbers(rng, rows, taken))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("size", "given"), [((1, 2), 700), ((4, 4), 512), ((3, 20), 600)])
def test_transposed_convolutions_of_many_channels(
    size: tuple[int, int], given: int, groups: int
) -> None:
    rng = np.random.default_rng(given)
    net = ir.Builder()
    x = net.add("ReLU", "opset1", [net.parameter("x", "f32", (2, given, *size))])
    words = {"strides": (2, 2), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
    weights = numbers(rng, groups, given // groups, 96, 4, 4) / np.float32(given**0.5)
    kind = "ConvolutionBackpropData" if groups == 1 else "GroupConvolutionBackpropData"
    constant = net.constant(weights[0] if groups == 1 else weights)
    y = net.add(kind, "opset1", [x, constant], output_padding=(0, 0), **words)
    net.result(net.add("Tanh", "opset1", [y]), name="y")
    same(net, numbers(rng, 2, given, *size))


@pytest.mark.parametrize(("kind", "gates"), [("LSTMSequence", 4), ("GRUSequence", 3)])
@pytest.mark.parametrize("batch", [1, 16, 30])
def test_states_of_many_units(kind: str, gates: int, batch: int) -> None:
    rng = np.random.default_rng(batch)
    hidden, count = 1100, 3
    net = ir.Builder()
    shapes = [(batch, count, 8), *[(batch, 1, hidden)] * (2 if gates == 4 else 1)]
    given = [net.parameter(f"x{n}", "f32", shape) for n, shape in enumerate(shapes)]
    weights = [(8, 0.3), (hidden, 0.03), (None, 1)]
    constants = [
        net.constant(
            numbers(rng, 1, gates * hidden, *[size] * (size is not None)) * np.float32(by)
        )
        for size, by in weights
    ]
    lengths = net.constant(np.full(batch, count))
    words = {"hidden_size": hidden, "direction": "forward"}
    found = net.add(kind, "opset5", [*given, lengths, *constants], **words)
    net.result(found[0], name="y")
    same(net, *(numbers(rng, *shape) for shape in shapes))


KINDS = ["LSTM", "GRU of a reset state", "GRU that resets sums", "RNN", "RNN, rectified"]


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("batch", "count", "hidden"),
    [(1, 130, 16), (3, 64, 20), (4, 65, 128), (9, 70, 40), (33, 129, 32), (2, 66, 320)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_sequences_of_several_runs(
    kind: str,
    batch: int,
    count: int,
    hidden: int,
    direction: str,
    library: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Samples, or units, that are shared among lanes, and states that are put out run by run."""
    if not library:
        monkeypatch.setattr(recurrent, "integer_products", lambda: None)
    sequences(kind, batch, count, hidden, direction)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_directions_of_many_units_one_after_the_other(
    kind: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent, "WORTH_OF_TWO", 0)
    monkeypatch.setattr(recurrent, "RUN", 16)
    met: list[int] = []
    meet = recurrent._together
    monkeypatch.setattr(
        recurrent, "_together", lambda lanes: met.append(len(lanes)) or meet(lanes)
    )
    sequences(kind, batch, 37, 64, "bidirectional")
    assert not met if "state" in kind else met and set(met) == {2}


def sequences(kind: str, batch: int, count: int, hidden: int, direction: str) -> None:
    """Hold the sequence of some kind against its definition."""
    rng = np.random.default_rng(count)
    net = ir.Builder()
    ways = 2 if direction == "bidirectional" else 1
    gates = {"L": 4, "G": 3, "R": 1}[kind[0]]
    name = kind.replace(",", "").split()[0] + "Sequence"
    shapes = [(batch, count, 8), *[(batch, ways, hidden)] * (2 if gates == 4 else 1)]
    given = [net.parameter(f"x{n}", "f32", shape) for n, shape in enumerate(shapes)]
    words: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    if "sums" in kind:
        words["linear_before_reset"] = True
    if "rectified" in kind:
        words["activations"] = ["ReLU"]
    weights = [(ways, gates * hidden, 8), (ways, gates * hidden, hidden)]
    weights.append((ways, (gates + ("sums" in kind)) * hidden))
    # Of larger ones a state of many steps is what rounding makes it.
    constants = [
        net.constant(numbers(rng, *shape) * np.float32(0.5 * min(shape[-1], hidden) ** -0.5))
        for shape in weights
    ]
    lengths = net.constant(np.full(batch, count))
    found = net.add(name, "opset5", [*given, lengths, *constants], **words)
    for place in range(len(shapes)):
        net.result(found[place], name=f"y{place}")
    same(net, *(numbers(rng, *shape) for shape in shapes))


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize(
    ("deep", "columns"), [(100, 2047), (100, 2100), (1600, 2100), (300, 5000), (31, 9001), (9, 70)]
)
def test_a_row_by_long_runs_of_columns(
    deep: int, columns: int, follows: bool, turned: bool
) -> None:
    """However many threads there are, and whichever way weights lie, the row is the same."""
    rng = np.random.default_rng(columns)
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 1, deep))
    shape = (columns, deep) if turned else (deep, columns)
    y = net.add("MatMul", "opset1", [x, net.constant(numbers(rng, *shape))], transpose_b=turned)
    if follows:
        y = net.add("Add", "opset1", [y, net.constant(numbers(rng, columns))])
    net.result(y)
    model, row = net.model(), numbers(rng, 1, 1, deep)
    same(net, row)
    rows = [next(iter(ir.compile(model, threads=count)([row]).values())) for count in (1, 2, 3)]
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])


@pytest.mark.parametrize("rows", range(1, 6))
def test_two_or_three_rows_go_one_by_one_where_weights_would_be_copied(rows: int) -> None:
    rng = np.random.default_rng(rows)
    left, weights = (rng.standard_normal(shape).astype("f4") for shape in ((rows, 40), (40, 96)))
    out, copies = np.empty((rows, 96), "f4"), products.blas_copies()
    blocks = products.columns_in_blocks(weights, rows)
    parts = products.multiplied(left, blocks, out, rows=rows)
    for part in parts:
        part()
    np.testing.assert_allclose(out, left @ weights, rtol=0, atol=1e-5)
    if copies:
        (part,) = parts
        assert isinstance(part, partial)
        assert part.args[0].shape[-2] == (rows if rows >= products.FOUR else 1)


def test_many_small_matrices_by_a_row_each_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a call for each")

    monkeypatch.setattr(matrices, "rows_by_weights", refused)
    net, rng = ir.Builder(), np.random.default_rng(0)
    x = net.parameter("x", "f32", (300, 1, 8))
    weights = net.constant(rng.standard_normal((300, 8, 8)).astype("f4"))
    net.result(net.add("MatMul", "opset1", [x, weights], transpose_b=True), name="y")
    same(net, rng.standard_normal((300, 1, 8)).astype("f4"))
