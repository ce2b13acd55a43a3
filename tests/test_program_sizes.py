"""Every sample call with other sizes: axes of one, of nothing, of odd lengths, and open ones."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from typing import Any

import calls
import numpy as np
import pytest
from oracle import Call
from test_program_kernels import Draw
from test_program_neighbours import KERNELS
from test_program_normalizing import convolved
from vinoir import ir
from vinoir.schemas import Array, ElementType, IRError

DRAWS = 9
#: What takes the place of a size; most of what breaks does so at one.
SIZES = (1, 1, 1, 0, 2, 3, 17, 33)


def resized(call: Call, seed: int) -> tuple[ir.Model, list[Array]]:
    """The call as a network: each of its sizes, wherever it stands, may have become another.

    Every third one has a ReLU before and behind each float32, every third one open sizes.
    """
    rng = np.random.default_rng([zlib.crc32(str(call).encode()), seed])
    old = sorted({size for array in call.arrays() for size in array.shape if size > 1})
    new = {size: int(rng.choice(SIZES)) for size in old if rng.random() < 0.6}
    way = ("plain", "between", "open")[seed % 3]
    net, given, feeds = ir.Builder(), [], []

    def relu(x: ir.builder.Output) -> ir.builder.Output:
        between = way == "between" and x.tensor.type is ElementType.F32
        return net.add("ReLU", "opset1", [x]) if between else x

    for tensor, array in zip(call.tensors(), call.arrays(), strict=True):
        if array.dtype.kind == "f" or array.ndim > 1:  # and no list of axes, sizes or places
            shape = tuple(new.get(size, size) for size in array.shape)
            array = np.resize(array, shape).astype(array.dtype) if array.size else array
        if tensor.value is not None:
            given.append(net.constant(array, tensor.type))
            continue
        sizes: Any = ",".join("?" * array.ndim) if way == "open" and array.ndim else array.shape
        given.append(relu(net.parameter(f"x{len(feeds)}", tensor.type, sizes)))
        feeds.append(array)
    op = call.make()
    found = net.add(op.xml_type, op.version(), given, **op.attributes())
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    for number, y in enumerate(results):
        net.result(relu(y), name=f"y{number}")
    return net.model(), feeds


def compare(call: Call, seed: int) -> None:
    """Hold a program of the call, resized, against the definition."""
    try:
        model, feeds = resized(call, seed)
    except IRError:
        return  # they do not fit the operation
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none reaches the user
        try:
            wanted = ir.run(model, feeds)
        except IRError:
            try:
                ir.compile(model, threads=2)(feeds)
            except IRError:
                return
            raise AssertionError("a program answers what the definition refuses") from None
        made = ir.compile(model, threads=2)(feeds)
    for name, right in wanted.items():
        assert (made[name].shape, made[name].dtype) == (right.shape, right.dtype)
        if right.dtype.kind == "f":
            scale = np.abs(right[np.isfinite(right)]).max(initial=1)
            np.testing.assert_allclose(made[name], right, rtol=1e-4, atol=1e-5 * scale)
        else:
            np.testing.assert_array_equal(made[name], right)


@pytest.mark.parametrize(
    "call",
    [c for c in calls.samples() if not (c.kind.is_random or c.kind.rows_vary)],
    ids=str,
)
def test_other_sizes_give_what_the_definition_gives(call: Call) -> None:
    failures: list[Exception] = []
    for seed in range(DRAWS):
        try:
            compare(call, seed)
        except Exception as error:
            error.add_note(f"{call}, drawn with {seed}")
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {DRAWS} draws", failures)


class Tiny(Draw):
    """A network at random of which half of all sizes are the least that they may be."""

    ready = False

    def number(self, low: int, high: int) -> int:
        return low if self.chance() else super().number(low, high)

    def image(self, axes: int, channels: int | None = None) -> ir.builder.Output:
        given = self.number(1, 3) if channels is None else channels
        sizes = [self.pick(1, 1, 2, 3, 5) for _ in range(axes)]
        x = self.input(self.number(1, 3), given, *sizes)
        shape = x.tensor.shape.static
        return convolved(self.net, x, self.rng, shape) if self.chance() else x

    def check(self, *results: ir.builder.Output) -> None:
        self.ready = True
        super().check(*results)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("seed", range(12))
def test_kernels_give_what_definitions_give_for_least_sizes(
    kernel: Callable[[Draw], None], seed: int
) -> None:
    draw = Tiny(seed)
    try:
        kernel(draw)
    except IRError:  # windows that are larger than an image, and the like
        assert not draw.ready


ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "MVN": ("opset6", {"eps": 0.1, "eps_mode": "INSIDE_SQRT", "normalize_variance": True}),
    "NormalizeL2": ("opset1", {"eps": 0.1, "eps_mode": "add"}),
    "SoftMax": ("opset8", {}),
    "LogSoftmax": ("opset5", {}),
    "ReduceL2": ("opset4", {"keep_dims": True}),
    "ReduceMax": ("opset1", {"keep_dims": True}),
    "ReduceMean": ("opset1", {"keep_dims": True}),
    "ReduceSum": ("opset1", {"keep_dims": False}),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("seed", range(25))
def test_rows_along_any_axes_with_what_follows(kind: str, seed: int) -> None:
    draw = Draw(seed)
    shape = [draw.pick(1, 1, 2, 3, 7, 16) for _ in range(draw.number(2, 5))]
    first = draw.number(0, len(shape) - 1)
    axes = list(range(first, draw.number(first + 1, len(shape))))
    if draw.chance(0.3):
        axes = sorted(draw.rng.choice(len(shape), draw.number(1, len(shape)), replace=False))
    x = draw.input(*shape)
    if draw.chance():
        x = draw.add("ReLU", "opset1", x)
    version, words = ROWS[kind]
    if kind.lower().endswith("softmax"):
        y = draw.add(kind, version, x, axis=int(axes[0]))
    else:
        y = draw.add(kind, version, x, draw.constant(np.array(axes)), **words)
    draw.check(draw.surrounded(y))


@pytest.mark.parametrize("made", ["constant", "ReLU", "convolved"])
@pytest.mark.parametrize("kind", ["Add", "Multiply"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 8, 4), (1, 8, 1, 1)), ((1, 8, 4), (2, 8, 8, 4)), ((1, 4, 4), (1, 4, 4, 4)),
        ((1, 8, 4), (2, 3, 1, 1, 1)), ((1, 1, 5, 4), (1, 8, 1, 1)), ((1, 1, 5, 4), (8, 1, 1)),
        ((1, 8, 1, 1), (1, 8, 5, 4)), ((1, 8, 1, 4), (1, 8, 5, 1)), ((1, 8, 5, 4), (2, 8, 1, 1)),
        ((1, 1, 5, 4, 3), (1, 8, 1, 1, 1)), ((1, 1, 4), (1, 8, 1)),
    ],
)  # fmt: skip
def test_what_is_repeated_between_convolutions(
    one: tuple[int, ...], other: tuple[int, ...], kind: str, made: str
) -> None:
    draw = Draw(4)
    x = draw.input(*one)
    x = convolved(draw.net, x, draw.rng, one)
    y = draw.constant(draw.array(*other)) if made == "constant" else draw.input(*other)
    if made == "ReLU":
        y = draw.add("ReLU", "opset1", y)
    elif made == "convolved":
        y = convolved(draw.net, y, draw.rng, other)
    z = draw.add(kind, "opset1", x, y)
    draw.check(convolved(draw.net, draw.add("ReLU", "opset1", z), draw.rng, draw.sizes(z)))


@pytest.mark.parametrize("factor", [1.0, 0.25, -0.5])
def test_what_two_masks_hide_is_hidden_as_by_the_later_one(factor: float) -> None:
    """A query that sees nothing sees all keys alike, also those that a mask hid before."""
    draw = Draw(1)
    q, k, v = draw.input(2, 3, 20, 8), draw.input(2, 3, 24, 8), draw.input(2, 3, 24, 8)
    scores = draw.add("MatMul", "opset1", q, k, transpose_b=True)
    scores = draw.add("Add", "opset1", scores, draw.input(1, 1, 20, 24))
    number = draw.constant(np.float32(-1e36))
    keys = draw.constant(np.arange(24).reshape(1, 1, 1, 24) % 3 == 0)
    queries = draw.constant(np.arange(20).reshape(20, 1) % 2 == 0)
    scores = draw.add("Select", "opset1", keys, number, scores)
    scores = draw.add("Select", "opset1", queries, number, scores)
    scores = draw.add("Multiply", "opset1", scores, draw.constant(np.float32(factor)))
    shares = draw.add("SoftMax", "opset8", scores, axis=-1)
    draw.check(draw.add("MatMul", "opset1", shares, v))


def test_a_transform_of_nothing_is_zero() -> None:
    # Neither NumPy's memory of before nor OpenVINO's.
    for kind, pair, count in (("IRDFT", (2,), 8), ("RDFT", (), 12), ("DFT", (2,), 16)):
        net = ir.Builder()
        x = net.parameter("x", "f32", (2, 0, *pair))
        version = "opset7" if kind == "DFT" else "opset9"
        net.result(net.add(kind, version, [x, net.constant([1]), net.constant([4])]), name="y")
        model, given = net.model(), np.zeros((2, 0, *pair), "f4")
        for found in (ir.run(model, [given])["y"], ir.compile(model)([given])["y"]):
            assert found.size == count
            assert not found.any()


def test_heads_of_no_numbers_see_all_keys_alike() -> None:
    net = ir.Builder()
    given = [net.parameter(n, "f32", s) for n, s in (
        ("q", (1, 2, 3, 0)), ("k", (1, 2, 4, 0)), ("v", (1, 2, 4, 5)))]  # fmt: skip
    net.result(net.add("ScaledDotProductAttention", "opset13", given, causal=False), name="y")
    values = np.arange(40, dtype="f4").reshape(1, 2, 4, 5)
    feeds = [np.zeros((1, 2, 3, 0), "f4"), np.zeros((1, 2, 4, 0), "f4"), values]
    right = np.broadcast_to(values.mean(2, keepdims=True), (1, 2, 3, 5))
    for made in (ir.run(net.model(), feeds), ir.compile(net.model())(feeds)):
        np.testing.assert_allclose(made["y"], right, rtol=1e-6)


@pytest.mark.parametrize("kind", ["AdaptiveAvgPool", "AdaptiveMaxPool"])
@pytest.mark.parametrize(("given", "wanted"), [((1, 1), (6, 6)), ((1, 4), (3, 2)), ((1,), (5,))])
def test_a_single_pixel_is_pooled_to_many(
    kind: str, given: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 5, *given))
    found = net.add(kind, "opset8", [x, net.constant(np.array(wanted))])
    net.result(found[0] if kind == "AdaptiveMaxPool" else found, name="y")
    image = np.random.default_rng(3).standard_normal((2, 5, *given)).astype("f4")
    right = ir.run(net.model(), [image])["y"]
    np.testing.assert_allclose(right[:, :, 0], right[:, :, -1])
    np.testing.assert_allclose(ir.compile(net.model())([image])["y"], right, rtol=1e-6)
