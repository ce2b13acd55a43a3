"""Models in which a pattern is all but there: the rule stays away, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from simplify_patterns import Net, row_of_patterns
from test_simplify import alike, by_openvino, feeds
from vinoir import ir

Build = Callable[[ir.Builder, Net], None]


def modelled(build: Build) -> ir.Model:
    net = ir.Builder("limits")
    build(net, Net(net))
    return net.model()


def unchanged(model: ir.Model, rule: str, *fed: np.ndarray) -> None:
    """A rule stays away from a model, and what is left of it computes the same."""
    new, done = ir.simplify(model)
    assert rule not in done.rules
    before, after = ir.run(model, list(fed)), ir.run(new, list(fed))
    assert list(before) == list(after)
    for name, array in before.items():
        assert array.shape == after[name].shape
        np.testing.assert_allclose(array, after[name], rtol=1e-6)


def widened_rows(shape: str) -> Build:
    def build(net: ir.Builder, n: Net) -> None:
        x = net.parameter("x", "f32", shape)
        net.result(n.matmul(n("Multiply", x, n.numbers(4)), n.numbers(4, 5)), name="y")

    return build


def widened_image(net: ir.Builder, n: Net) -> None:
    x = net.parameter("x", "f32", "2,1,6,6")
    net.result(n.convolution(n("Multiply", x, n.numbers(1, 4, 1, 1))), name="y")


@pytest.mark.parametrize(
    ("build", "given"),
    [
        (widened_rows("3,1"), (3, 1)),
        (widened_rows("3,?"), (3, 1)),
        (widened_rows("3,?"), (3, 4)),
        (widened_image, (2, 1, 6, 6)),
    ],
)
def test_a_scale_that_makes_more_channels_stays(build: Build, given: tuple[int, ...]) -> None:
    fed = np.random.default_rng(3).random(given, np.float32)
    unchanged(modelled(build), "scale-into-weights", fed)


@pytest.mark.parametrize(
    ("shape", "sizes", "gathered"),
    [
        ("2,?,?", [-1, 0], False),
        ("2,?,5", [5, -1], False),
        ("2,?,?", [0, -1], False),
        ("2,?,5", [-1, 5], True),
    ],
)
def test_parts_that_get_another_shape_stay(shape: str, sizes: list[int], gathered: bool) -> None:
    def build(net: ir.Builder, n: Net) -> None:
        parts = n("Split", net.parameter("x", "f32", shape), 0, num_splits=2)
        for part, name in zip(parts, "yz", strict=True):
            net.result(n("Exp", n("Reshape", part, sizes, special_zero=True)), name=name)

    model, fed = modelled(build), np.random.default_rng(3).random((2, 3, 5), np.float32)
    if not gathered:
        unchanged(model, "parts-into-gathers", fed)
        return
    new, done = ir.simplify(model)
    assert done.rules["parts-into-gathers"] == 1
    np.testing.assert_array_equal(ir.run(new, [fed])["z"], np.exp(fed[1]))


@pytest.mark.parametrize("seed", range(12))
def test_what_feeds_no_output_keeps_its_edges_where_it_is_left(seed: int) -> None:
    model = row_of_patterns(seed)
    for layer in [layer for layer in model.layers if layer.type != "Result"]:
        port = layer.outputs[0]
        if str(port.type) != "f32" or seed % 3 == len(layer.name) % 3:
            continue
        ports = [ir.Port(0, port.precision, port.dims)], [ir.Port(1, port.precision, port.dims)]
        dead = ir.Layer("Exp", "opset1", f"dead {layer.id}", inputs=ports[0], outputs=ports[1])
        model.connect((layer, 0), model.add(dead), 0)
    dead = [layer.name for layer in model.layers if layer.name.startswith("dead")]
    new, done = ir.simplify(model, skip="dead-layers", certify=1)
    assert done.rules
    left = [layer for layer in new.layers if layer.name.startswith("dead")]
    assert [layer.name for layer in left] == dead
    assert all(new.producer(layer, 0) for layer in left)
    assert ir.check(new).ok, list(ir.check(new))
    alike(model, new)
    by_openvino(new, feeds(new))


def negated_parts(shapes: tuple[str, str]) -> Build:
    def build(net: ir.Builder, n: Net) -> None:
        x, y = (net.parameter(name, "f32", one) for name, one in zip("xy", shapes, strict=True))
        net.result(n("Multiply", n("Concat", n("Negative", x), y, axis=1), n.numbers(4)), name="z")

    return build


def attention_of_nothing(net: ir.Builder, n: Net) -> None:
    shapes = {"q": "1,2,3,0", "k": "1,2,4,0", "v": "1,2,4,5"}
    fed = [net.parameter(name, "f32", shape) for name, shape in shapes.items()]
    net.result(n("ScaledDotProductAttention", *fed, opset=13, causal=False), name="y")


def product_of_no_columns(net: ir.Builder, n: Net) -> None:
    rows = n("Reshape", net.parameter("x", "f32", "2,3,4"), [6, 4], special_zero=False)
    product = n.matmul(rows, n.numbers(4, 0))
    net.result(n("Reshape", product, [2, 5, 0], special_zero=False), name="y")


@pytest.mark.parametrize(
    ("rule", "build", "shapes"),
    [
        ("scale-into-attention", attention_of_nothing, [(1, 2, 3, 0), (1, 2, 4, 0), (1, 2, 4, 5)]),
        ("matmul-between-reshapes", product_of_no_columns, [(2, 3, 4)]),
        ("signs-into-constants", negated_parts(("3,?", "3,2")), [(3, 2), (3, 2)]),
        ("signs-into-constants", negated_parts(("?,?", "3,2")), [(3, 2), (3, 2)]),
        ("signs-into-constants", negated_parts(("...", "3,2")), [(3, 2), (3, 2)]),
    ],
)
def test_sizes_of_nothing_and_open_ones(
    rule: str, build: Build, shapes: list[tuple[int, ...]]
) -> None:
    random = np.random.default_rng(3)
    unchanged(modelled(build), rule, *(random.random(one, np.float32) for one in shapes))


def test_signs_go_into_constants_also_where_another_axis_is_open() -> None:
    model = modelled(negated_parts(("?,2", "3,2")))
    new, done = ir.simplify(model)
    assert done.rules["signs-into-constants"] == 1
    fed = [np.random.default_rng(seed).random((3, 2), np.float32) for seed in (1, 2)]
    np.testing.assert_array_equal(ir.run(new, fed)["z"], ir.run(model, fed)["z"])


@pytest.mark.parametrize(
    ("ends", "levels"), [((0, 0, -1, 1), 2), ((1, -1, 0, 10), 3), ((0.5, 0.5, 2, 3), 256)]
)
@pytest.mark.parametrize("kind", ["Clamp", "ReLU"])
def test_ranges_that_are_empty_or_reversed_are_fed_as_before(
    kind: str, ends: tuple[float, ...], levels: int
) -> None:
    def build(net: ir.Builder, n: Net) -> None:
        x, words = net.parameter("x", "f32", "5"), {"min": -1.0, "max": 1.0}
        clamped = n(kind, x, **(words if kind == "Clamp" else {}))
        rows = [n.value(np.float32([end])) for end in ends]
        net.result(n("FakeQuantize", clamped, *rows, levels=levels), name="y")

    x = np.float32([-2, -0.5, 0, 0.5, 3])
    unchanged(modelled(build), "clamp-into-fake-quantize", x)


SMALL = np.float32(1e-30)


def small_products(n: Net, x: ir.Output) -> ir.Output:
    return n("Multiply", n("Multiply", x, SMALL), SMALL)


def small_quotients(n: Net, x: ir.Output) -> ir.Output:
    return n("Divide", n("Transpose", n("Multiply", x, SMALL), [1, 0]), n.value(1 / SMALL))


def small_shift(n: Net, x: ir.Output) -> ir.Output:
    return n("Multiply", n("Add", n("Multiply", x, 3.0), SMALL), SMALL)


def small_weights(n: Net, x: ir.Output) -> ir.Output:
    return n("Multiply", n.matmul(x, n.value(np.full((4, 3), SMALL))), SMALL)


def small_before_weights(n: Net, x: ir.Output) -> ir.Output:
    return n.matmul(n("Multiply", x, SMALL), n.value(np.full((4, 3), SMALL)))


def small_range(n: Net, x: ir.Output) -> ir.Output:
    ends = [n.value(np.float32([end])) for end in (0, 1e35, SMALL, 5 * SMALL)]
    return n("Multiply", n("FakeQuantize", x, *ends, levels=5), SMALL)


def small_gamma(n: Net, x: ir.Output) -> ir.Output:
    rows = [n.value(np.full(4, number, np.float32)) for number in (SMALL, 1e-20, 0, 1)]
    norm = n("BatchNormInference", x, *rows, opset=5, data={"epsilon": 1e-5})
    return n("Multiply", norm, SMALL)


@pytest.mark.parametrize(
    ("rule", "make"),
    [
        ("linear-chains", small_products),
        ("linear-through-movements", small_quotients),
        ("linear-chains", small_shift),
        ("scale-into-weights", small_weights),
        ("scale-into-weights", small_before_weights),
        ("scale-into-fake-quantize", small_range),
        ("linear-into-batch-norm", small_gamma),
    ],
)
def test_numbers_whose_product_is_none_stay_two(
    rule: str, make: Callable[[Net, ir.Output], ir.Output]
) -> None:
    def build(net: ir.Builder, n: Net) -> None:
        net.result(make(n, net.parameter("x", "f32", "2,4")), name="y")

    x = np.random.default_rng(3).uniform(1e34, 1e35, (2, 4)).astype(np.float32)
    model = modelled(build)
    assert np.all(ir.run(model, [x])["y"] != 0) or rule == "scale-into-fake-quantize"
    unchanged(model, rule, x)


def test_a_scale_of_attention_that_is_none_stays_outside() -> None:
    def build(net: ir.Builder, n: Net) -> None:
        q, k, v = (net.parameter(name, "f32", "1,4,4") for name in "qkv")
        scale = n.value(SMALL)
        fed = [n("Multiply", q, SMALL), k, v, n.value(0.0), scale]
        net.result(n("ScaledDotProductAttention", *fed, opset=13, causal=False), name="y")

    random = np.random.default_rng(3)
    q, k, v = random.random((3, 1, 4, 4), np.float32)
    unchanged(modelled(build), "scale-into-attention", q * np.float32(1e35), k * 1e25, v)


def test_weights_that_are_next_to_nothing_hinder_no_other() -> None:
    weights = np.random.default_rng(3).random((4, 3), np.float32)
    weights[:, 1] = 1e-37

    def build(net: ir.Builder, n: Net) -> None:
        product = n.matmul(net.parameter("x", "f32", "2,4"), n.value(weights))
        net.result(n("Multiply", product, 0.01), name="y")

    model = modelled(build)
    new, done = ir.simplify(model)
    assert done.rules["scale-into-weights"] == 1
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(
        ir.run(new, [x])["y"], ir.run(model, [x])["y"], rtol=1e-6, atol=1e-30
    )


def half_gelu(net: ir.Builder, n: Net) -> None:
    x = net.parameter("x", "f32", "...")
    erf = n("Erf", n("Divide", x, n.value(np.full((1, 1), np.sqrt(2)))))
    net.result(n("Multiply", n("Multiply", x, n("Add", erf, 1.0)), 0.5), name="y")


def gelu_of_half(net: ir.Builder, n: Net) -> None:
    x = net.parameter("x", "f32", "...")
    erf = n("Erf", n("Divide", x, np.sqrt(2)))
    half = n.value(np.full((1, 1), 0.5))
    net.result(n("Multiply", n("Multiply", x, n("Add", erf, 1.0)), half), name="y")


def half_swish(net: ir.Builder, n: Net) -> None:
    x = net.parameter("x", "f32", "...")
    net.result(n("Multiply", x, n("Sigmoid", n("Multiply", x, n.numbers(1, 1)))), name="y")


@pytest.mark.parametrize(
    ("rule", "build"), [("gelu", half_gelu), ("gelu", gelu_of_half), ("swish", half_swish)]
)
def test_numbers_with_axes_stay_where_the_rank_is_open(rule: str, build: Build) -> None:
    unchanged(modelled(build), rule, np.random.default_rng(3).random(4, np.float32))


def test_a_number_without_axes_is_neutral_where_the_rank_is_open() -> None:
    def build(net: ir.Builder, n: Net) -> None:
        net.result(n("Exp", n("Add", net.parameter("x", "f32", "..."), 0.0)), name="y")

    new, done = ir.simplify(modelled(build), certify=0)
    assert done.rules == {"neutral-elements": 1}
    assert ir.run(new, [np.zeros(3, np.float32)])["y"].tolist() == [1, 1, 1]


def test_bytes_that_a_body_shares_with_others_are_not_free(tmp_path: Path) -> None:
    """Weights of a body that would become others stay, where the file holds them for another."""
    ov = pytest.importorskip("openvino")
    ops = pytest.importorskip("openvino.opset13")
    held = np.random.default_rng(0).standard_normal((64, 64)).astype("f4")
    x, turns = ops.parameter([4, 64], ov.Type.f32), ops.parameter([], ov.Type.i64)
    kept, yes = ops.parameter([4, 64], ov.Type.f32), ops.constant(np.array(True))
    weights = ops.add(ops.constant(held), ops.constant(np.float32(0.5)))
    product = ops.matmul(kept, weights, False, False)
    loop = ops.loop(turns, yes)
    loop.set_function(ov.Model([ops.result(yes), ops.result(product)], [kept], "body"))
    loop.set_special_body_ports([-1, 0])
    before = ops.matmul(x, ops.constant(held), False, False)
    loop.set_merged_input(kept, before.output(0), product.output(0))
    path = tmp_path / "m.xml"
    ov.serialize(ov.Model([loop.get_iter_value(product.output(0), -1)], [x, turns], "m"), path)
    before_size = path.with_suffix(".bin").stat().st_size
    assert held.nbytes <= before_size < 2 * held.nbytes
    simplified, _ = ir.simplify(path)
    assert len(ir.dumps(simplified)[1]) <= before_size


@pytest.mark.parametrize(
    "kind", ["bf16", "f8e4m3", "f16", "f64", "u1", "u4", "i4", "nf4", "boolean", "string"]
)
def test_models_with_inputs_of_any_type_are_certified(kind: str) -> None:
    net = ir.Builder("types")
    x = net.parameter("x", kind, "2,4")
    row = net.add("Reshape", "opset1", [x, np.array([4, 2])], special_zero=False)
    net.result(net.add("Reshape", "opset1", [row, np.array([8])], special_zero=False), name="y")
    _, done = ir.simplify(net.model(), certify=2)
    assert done.certificate is not None
    assert done.certificate.runs == 2


def test_what_cannot_be_certified_says_why() -> None:
    net = ir.Builder("large")
    x = net.parameter("x", "f32", [1 << 13, 1 << 13])
    net.result(net.add("ReLU", "opset1", [x]), name="y")
    with pytest.raises(ir.UnsupportedError, match=r'input "x": it is f32\[8192,8192\]'):
        ir.simplify(net.model(), certify=1)
