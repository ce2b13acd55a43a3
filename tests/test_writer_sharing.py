"""Equal constants share their bytes, but where OpenVINO would take one as it reads the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir


@pytest.mark.parametrize("form", ["plain", "shaped", "i8"])
@pytest.mark.parametrize("way", ["made", "edited", "repacked"])
def test_equal_weights_are_apart_where_one_is_transposed(form: str, way: str) -> None:
    """OpenVINO's CPU takes weights of one place for the same, however a product reads them."""
    ov = pytest.importorskip("openvino")
    rng = np.random.default_rng(0)
    matrix = rng.integers(-3, 4, (8, 8)).astype(np.float32)
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "?,8")
    for turned in (False, True, True):
        if form == "plain":
            weight = net.constant(matrix)
        elif form == "shaped":
            flat = net.constant(matrix.reshape(-1))
            weight = net.add("Reshape", "opset1", [flat, np.array([8, 8])], special_zero=False)
        else:
            small = net.constant(matrix.astype(np.int8))
            weight = net.add("Convert", "opset1", [small], destination_type="f32")
            weight = net.add("Multiply", "opset1", [weight, np.float32(1 / 8)])
        x = net.add("MatMul", "opset1", [x, weight], transpose_b=turned)
    net.result(x, name="y")
    model = net.model()
    if way != "made":
        model = ir.loads(*ir.dumps(model))
        for constant in model.constants if way == "edited" else ():
            constant.value = constant.value.copy()
    xml, weights = ir.dumps(model, repack=way == "repacked")
    # The two that are read alike share their bytes.
    assert 2 <= len(weights) // matrix.astype("i1" if form == "i8" else "f4").nbytes < 3
    feed = rng.integers(-3, 4, (3, 8)).astype(np.float32)
    read = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8)))
    run = ov.Core().compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    factor = 1 if form != "i8" else 1 / 512
    expected = feed @ matrix @ matrix.T @ matrix.T * np.float32(factor)
    np.testing.assert_allclose(run(feed)[0], expected, rtol=1e-4, atol=1e-3)


_MOVED: dict[str, list[Any]] = {
    "Transpose": [np.array([1, 0])],
    "Unsqueeze": [np.array([0])],
    "Squeeze": [np.array([0])],
    "StridedSlice": [np.array([0, 0]), np.array([8, 8]), np.array([1, 1])],
    "VariadicSplit": [np.int64(0), np.array([8])],
    "Gather": [np.arange(8), np.int64(0)],
}


@pytest.mark.parametrize("kind", ["f4", "i1"])
@pytest.mark.parametrize("move", _MOVED)
def test_equal_weights_are_apart_where_one_is_turned_by_way_of_what_changes_nothing(
    move: str, kind: str
) -> None:
    ov = pytest.importorskip("openvino")
    rng = np.random.default_rng(0)
    matrix = rng.integers(-3, 4, (8, 8)).astype(kind)
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "3,8")

    def weights(one: bool = False) -> ir.Output:
        held = net.constant(matrix[None] if one else matrix)
        if kind == "f4":
            return held
        wide = net.add("Convert", "opset1", [held], destination_type="f32")
        return net.add("Multiply", "opset1", [wide, np.ones((8, 1), "f4")])

    net.result(net.add("MatMul", "opset1", [x, weights()]), name="straight")
    data = {"begin_mask": [1, 1], "end_mask": [1, 1]} if move == "StridedSlice" else {}
    version = "opset8" if move == "Gather" else "opset1"
    moved = net.add(move, version, [weights(move == "Squeeze"), *_MOVED[move]], **data)
    other = net.add("MatMul", "opset1", [x, moved], transpose_b=move != "Transpose")
    net.result(other, name="turned")
    xml, data_written = ir.dumps(net.model())
    feed = rng.integers(-3, 4, (3, 8)).astype(np.float32)
    read = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(data_written, np.uint8)))
    run = ov.Core().compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = run(feed)
    np.testing.assert_allclose(found["straight"], feed @ matrix, rtol=1e-5)
    np.testing.assert_allclose(np.reshape(found["turned"], (3, 8)), feed @ matrix.T, rtol=1e-5)
    places = {
        layer.byte_range for layer in ir.loads(xml, data_written).constants
        if layer.value.size == matrix.size and layer.value.dtype == kind
    }  # fmt: skip
    assert len(places) == 2


def test_how_constants_are_read_is_found_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0, 0]
    looked = ir.Graph.consumers

    def counted(graph: ir.Graph, *args: Any) -> list[tuple[ir.Layer, int]]:
        calls[step] += 1
        return looked(graph, *args)

    monkeypatch.setattr(ir.Graph, "consumers", counted)
    for step, length in enumerate((200, 400)):
        net = ir.Builder()
        x = net.parameter("x", "f32", "1,4")
        fixed = net.constant(np.ones((4, 4), "f4"))
        for number in range(length):
            x = net.add("Multiply", "opset1", [x, np.float32(number)])
            fixed = net.add("Multiply", "opset1", [fixed, np.float32(number)])
        net.result(net.add("MatMul", "opset1", [x, fixed], transpose_b=True))
        model, calls[step] = net.model(), 0
        ir.dumps(model)
    assert calls[1] < 3 * calls[0]


def test_what_many_constants_make_and_many_read_is_gone_through_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = [0, 0]
    asked = ir.Layer.port_ids

    def counted(layer: ir.Layer, kind: Any) -> Any:
        looks[step] += 1
        return asked(layer, kind)

    monkeypatch.setattr(ir.Layer, "port_ids", counted)
    for step, number in enumerate((200, 400)):
        net = ir.Builder()
        parts = [net.constant(np.full((4, 4), n, "f4")) for n in range(number)]
        hub = net.add("Concat", "opset1", parts, axis=0)
        for n in range(number):
            net.result(net.add("Multiply", "opset1", [hub, np.float32(n + 0.5)]))
        x = net.parameter("x", "f32", "4,4")
        net.result(net.add("MatMul", "opset1", [x, np.ones((4, 4), "f4")]))
        model, looks[step] = net.model(), 0
        ir.dumps(model)
    assert looks[1] < 3 * looks[0]


def _openvino(model: ir.Model, feed: Any) -> list[Any]:
    """What OpenVINO's CPU makes of a model as it is written."""
    ov = pytest.importorskip("openvino")
    xml, weights = ir.dumps(model)
    read = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8)))
    run = ov.Core().compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return [*run(feed).values()]


#: Products of x and a square matrix, as it is and turned.
_PRODUCTS: dict[str, tuple[str, dict[str, Any]]] = {
    "x M": ("MatMul", {"transpose_b": False}),
    "x M'": ("MatMul", {"transpose_b": True}),
    "ab,bc->ac": ("Einsum", {"equation": "ab,bc->ac"}),
    "ab,cb->ac": ("Einsum", {"equation": "ab,cb->ac"}),
    "bc,ab->ac": ("Einsum", {"equation": "bc,ab->ac"}),
    "cb,ab->ac": ("Einsum", {"equation": "cb,ab->ac"}),
}


@pytest.mark.parametrize("second", _PRODUCTS)
@pytest.mark.parametrize("first", _PRODUCTS)
@pytest.mark.parametrize("simplified", [False, True])
def test_equal_weights_are_apart_where_an_einsum_turns_them(
    first: str, second: str, simplified: bool
) -> None:
    rng = np.random.default_rng(0)
    matrix, feed = (rng.integers(-3, 4, size).astype("f4") for size in ((8, 8), (3, 8)))
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "3,8")
    for number, name in enumerate((first, second)):
        kind, data = _PRODUCTS[name]
        inputs = [x, net.constant(matrix)]
        inputs = inputs[::-1] if name in ("bc,ab->ac", "cb,ab->ac") else inputs
        version = "opset7" if kind == "Einsum" else "opset1"
        net.result(net.add(kind, version, inputs, **data), name=f"y{number}")
    model = net.model()
    found = _openvino(ir.simplify(model)[0] if simplified else model, feed)
    for name, one in zip((first, second), found, strict=True):
        turned = name in ("x M'", "ab,cb->ac", "cb,ab->ac")
        np.testing.assert_allclose(one, feed @ (matrix.T if turned else matrix), rtol=1e-5)


@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("backwards", [(False, True), (True, False), (True, True)])
def test_equal_kernels_are_apart_where_one_is_convolved_backwards(
    side: int, backwards: tuple[bool, bool]
) -> None:
    rng = np.random.default_rng(0)
    kernel = rng.integers(-3, 4, (8, 8, side, side)).astype("f4")
    feed = rng.integers(-3, 4, (3, 8, 1, 1)).astype("f4")
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "3,8,1,1")
    pads = [side // 2] * 2
    data = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": pads, "pads_end": pads}
    for back in backwards:
        kind = "ConvolutionBackpropData" if back else "Convolution"
        net.result(net.add(kind, "opset1", [x, net.constant(kernel)], **data))
    model = net.model()
    # Two that are read alike share their bytes.
    assert len(ir.dumps(model)[1]) // kernel.nbytes == len({*backwards})
    middle = kernel[:, :, side // 2, side // 2]  # all else falls on the border
    for back, one in zip(backwards, _openvino(model, feed), strict=True):
        expected = feed[:, :, 0, 0] @ (middle if back else middle.T)
        np.testing.assert_allclose(one[:, :, 0, 0], expected, rtol=1e-5)
