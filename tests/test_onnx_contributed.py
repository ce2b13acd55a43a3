"""Operators of ONNX Runtime's own domain: what the importer makes of them gives its answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import IRError, UnsupportedError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import helper  # noqa: E402  # only where onnx is there
from onnx_contributed import (  # noqa: E402
    DOMAIN,
    RNG,
    byte,
    few,
    model,
    narrow,
    real,
    same,
    whole,
)

X = real(2, 5, 12)
MASKS = {
    "lengths": np.array([3, 5], "i4"),
    "keys": np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], "i4"),
    "above one": np.array([[2, 3, 0, 1, 0], [1, 2, 1, -1, 1]], "i4"),
    "each": RNG.integers(0, 2, (2, 5, 5)).astype("i4"),
    "none": None,
}


@pytest.mark.parametrize(
    ("kind", "inputs", "words"),
    [
        ("Gelu", [X], {}),
        ("BiasGelu", [X, real(12)], {}),
        ("FastGelu", [X], {}),
        ("FastGelu", [X, real(12)], {}),
        ("QuickGelu", [X], {"alpha": 1.5}),
        ("FusedMatMul", [X, real(2, 7, 12)], {"transB": 1, "alpha": 0.25}),
        ("FusedMatMul", [real(2, 5, 4), real(2, 5, 3)], {"transA": 1}),
        ("SkipLayerNormalization", [X, real(2, 5, 12), real(12)], {"epsilon": 1e-5}),
        ("SkipLayerNormalization", [X, real(2, 5, 12), real(12), real(12), real(12)], {}),
        ("SkipSimplifiedLayerNormalization", [X, real(2, 5, 12), real(12)], {"epsilon": 1e-5}),
        ("SkipSimplifiedLayerNormalization", [X, real(2, 5, 12), real(12), real(12)], {}),
        ("TransposeMatMul", [X, real(2, 7, 12)], {"transB": 1, "alpha": 0.5}),
        ("ScaledSiLU", [X], {"alpha": 1.3}),
        ("ScaledSiLU", [X], {}),
        ("ScaledSiLU", [X, few(0.7)], {"alpha": 1.3}),
        ("GatedAdd", [X, real(2, 5, 12), real(2, 5, 1)], {}),
        ("GatedRMSNorm", [X, real(12), real(2, 5, 12)], {}),
        ("GatedRMSNorm", [X, real(4), real(2, 5, 12)], {"activation": "sigmoid"}),
        ("Inverse", [real(2, 4, 4)], {}),
        ("GatherND", [X, np.array([[0, 1], [1, 4]])], {}),
        ("GridSample", [real(1, 2, 5, 4), real(1, 3, 3, 2) / 2], {"align_corners": 1}),
        ("Trilu", [X], {}),
        ("Trilu", [X, np.array(-1)], {"upper": 0}),
    ],
)
def test_fused_operators(kind: str, inputs: list[Any], words: dict[str, Any]) -> None:
    same(model(kind, inputs, 1, **words), inputs[:1])


@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_the_sum_before_a_norm_is_handed_out(kind: str) -> None:
    inputs = [X, real(2, 5, 12), real(12)]
    proto = model(kind, inputs, 2, 4)
    node = proto.graph.node[0]
    node.output[1] = node.output[2] = ""
    del proto.graph.output[1:3]
    same(proto, inputs[:2])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("words", [{}, {"scale": 0.3}, {"qkv_hidden_sizes": [12, 12, 8]}])
def test_attention(mask: str, words: dict[str, Any]) -> None:
    columns = sum(words.get("qkv_hidden_sizes", [12, 12, 12]))
    inputs = [X, real(12, columns), real(columns), MASKS[mask]]
    proto = model("Attention", inputs, 1, num_heads=4, **words)
    same(proto, inputs[:1])


def test_attention_to_what_came_before() -> None:
    inputs = [X, real(12, 36), real(36)]
    same(model("Attention", inputs, 1, num_heads=3, unidirectional=1), inputs[:1])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("segments", [True, False])
def test_embeddings(masked: bool, segments: bool) -> None:
    ids = RNG.integers(0, 20, (2, 5)).astype("i4")
    kinds = RNG.integers(0, 2, (2, 5)).astype("i4") if segments else None
    mask = MASKS["keys"] if masked else None
    tables = [real(20, 8), real(9, 8), real(2, 8) if segments else None, real(8), real(8)]
    same(model("EmbedLayerNormalization", [ids, kinds, *tables, mask], 2, 2), [ids, kinds])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("segments", [True, False])
def test_embeddings_of_bytes(masked: bool, segments: bool) -> None:
    ids = RNG.integers(0, 20, (2, 5)).astype("i4")
    kinds = RNG.integers(0, 2, (2, 5)).astype("i4") if segments else None
    mask = MASKS["keys"] if masked else None
    table = whole("u1", 2, 8) if segments else None
    inputs = [ids, kinds, whole("u1", 20, 8), whole("u1", 9, 8), table, *whole("u1", 2, 8), mask]
    inputs += [few(0.02), few(0.01), few(0.03) if segments else None, few(0.05), few(0.01)]
    inputs += [byte(3), byte(0), byte(9) if segments else None, byte(100), byte(120)]
    same(model("QEmbedLayerNormalization", inputs, 2, 2), [ids, kinds])


@pytest.mark.parametrize("kind", ["u1", "i1"])
def test_integers_are_chosen(kind: str) -> None:
    x, y = whole(kind, 3, 4), whole(kind, 3, 4)
    chosen = RNG.random((3, 4)) < 0.5
    steps = [few(0.2), byte(5, kind), few(0.15), byte(4, kind)]
    inputs = [chosen, x, few(0.1), byte(3, kind), y, *steps]
    same(model("QLinearWhere", inputs, 1), [chosen])


@pytest.mark.parametrize("kind", ["u1", "i1"])
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("QLinearAdd", lambda x, s, z, t, k: [x, s, z, x[:, :1], few(0.02), z, t, z]),
        ("QLinearMul", lambda x, s, z, t, k: [x, s, z, x[:1], few(0.02), z, t, z]),
        ("QLinearSigmoid", lambda x, s, z, t, k: [x, s, z, few(1 / 256), z]),
        ("QLinearLeakyRelu", lambda x, s, z, t, k: [x, s, z, t, z]),
        ("QLinearGlobalAveragePool", lambda x, s, z, t, k: [x, s, z, t, z]),
    ],
)
def test_integers_stand_for_numbers(name: str, build: Any, kind: str) -> None:
    x = whole(kind, 2, 3, 4, 5)
    inputs = build(x, few(0.05), byte(7, kind), few(0.11), kind)
    same(model(name, inputs, 1), [x])


def test_integers_are_joined() -> None:
    x, y = whole("u1", 2, 3, 4), whole("u1", 2, 5, 4)
    inputs = [few(0.1), byte(9), x, few(0.05), byte(3), y, few(0.2), byte(100)]
    proto = model("QLinearConcat", inputs, 0, axis=1)
    # Of two that are constant nothing but constants would come.
    names = {"x2": x, "x5": y}
    kept = [one for one in proto.graph.initializer if one.name not in names]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    proto.graph.input.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, array.shape)
        for name, array in names.items()
    )
    same(proto, [x, y])


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("turned", [0, 1])
def test_products_of_integers(rounded: bool, turned: int) -> None:
    a, b = whole("u1", 4, 16), narrow(*((6, 16) if turned else (16, 6)))
    bias = RNG.integers(-500, 500, 6).astype("i4")
    inputs = [a, few(0.02), byte(100), b, few(0.01), byte(0, "i1"), bias]
    inputs += [few(0.15), byte(120)] if rounded else []
    same(model("QGemm", inputs, 1, alpha=1.0, transB=turned), [a])


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_sequences_with_weights_of_bytes(direction: str) -> None:
    ways, hidden, taken = 2 if direction == "bidirectional" else 1, 6, 5
    x = real(7, 2, taken)
    weights = [narrow(ways, n, 4 * hidden) for n in (taken, hidden)]
    scales = [np.full(ways, 0.004, "f4"), np.zeros(ways, "i1")]
    inputs = [x, *weights, real(ways, 8 * hidden), None, None, None, None, *scales, *scales]
    words = {"direction": direction, "hidden_size": hidden}
    # There what is multiplied is rounded to bytes as well.
    same(model("DynamicQuantizeLSTM", inputs, 1, 3, **words), [x], tolerance=3e-2)


@pytest.mark.parametrize("batch", [(2,), (2, 3)])
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("moved", [(0, 1), (1, 0), (1, 1)])
def test_products_whose_rows_lie_before_the_batch(
    batch: tuple[int, ...], turned: tuple[int, int], moved: tuple[int, int]
) -> None:
    fed = []
    for rows, back, ahead in zip([(4, 6), (6, 5)], turned, moved, strict=True):
        first, last = rows[::-1] if back else rows
        fed.append(real(*((first, *batch) if ahead else (*batch, first)), last))
    words = {"transA": turned[0], "transB": turned[1]}
    words |= {"transBatchA": moved[0], "transBatchB": moved[1]}
    same(model("FusedMatMul", fed, 2, **words), fed)


@pytest.mark.parametrize(
    ("kind", "inputs", "words", "said"),
    [
        ("Attention", [X, real(12, 36), real(36)], {"num_heads": 5}, "5 heads"),
        ("Attention", [X, real(12, 36), real(36)], {}, "num_heads"),
        ("Attention", [X, real(12, 36), None, None, real(2, 2, 3, 1, 4)],
         {"num_heads": 3, "past_present_share_buffer": 1}, "share"),
        ("FusedMatMul", [real(3, 4), real(4, 2)], {"transBatchA": 1}, "needs 3 axes .* 0 has 2"),
        ("FusedMatMul", [X], {}, "1 inputs"),
        ("BiasGelu", [X, real(12)], {"alpha": 1.0}, "no attribute alpha"),
        ("QuickGelu", [X], {"alpha": 1}, "FLOAT"),
        ("QLinearConcat", [few(1), byte(0), *[byte(0), few(1)] * 2], {"axis": 0}, "three"),
        ("GatedRMSNorm", [X, real(12), X], {"activation": "tanh"}, "silu, swish, sigmoid"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    kind: str, inputs: list[Any], words: dict[str, Any], said: str
) -> None:
    with pytest.raises(IRError, match=said):
        ir.from_onnx(model(kind, inputs, 1, **words).SerializeToString())


CONV = {"kernel_shape": [3, 3], "pads": [1, 1, 0, 0], "strides": [2, 1]}


@pytest.mark.parametrize(
    ("kind", "inputs", "fed", "words"),
    [
        ("FusedConv", [real(1, 4, 9, 8), real(6, 2, 3, 3), real(6)], 1,
         {"activation": "Relu", "group": 2, **CONV}),
        ("FusedConv", [real(1, 4, 9, 8), real(6, 4, 3, 3), real(6), real(1, 6, 4, 7)], 1,
         {"activation": "LeakyRelu", "activation_params": [0.2], **CONV}),
        ("FusedConv", [real(1, 2, 9, 8), real(2, 2, 3, 3)], 1,
         {"activation": "Clip", "activation_params": [0.0, 1.5], **CONV}),
        ("FusedConv", [real(1, 2, 9, 8), real(2, 2, 3, 3)], 1,
         {"activation": "Clip", "activation_params": [2.0, 1.0], **CONV}),
        ("FusedConv", [real(1, 2, 9, 8), real(2, 2, 3, 3)], 1,
         {"activation": "HardSigmoid", "activation_params": [0.3, 0.4], **CONV}),
        ("FusedGemm", [real(3, 5), real(4, 5), real(4)], 1,
         {"transB": 1, "alpha": 0.5, "activation": "Tanh"}),
        ("FusedGemm", [real(3, 5), real(5, 4), real(4)], 1,
         {"activation": "LeakyRelu", "activation_alpha": 0.3}),
        ("DynamicQuantizeMatMul",
         [real(3, 7), whole("u1", 7, 4), few(0.02), byte(120), real(4)], 1, {}),
        ("DynamicQuantizeMatMul", [real(3, 7), narrow(7, 4), few(0.02)], 1, {}),
        ("MatMulIntegerToFloat",
         [whole("u1", 3, 7), narrow(7, 4), few(0.1), few(0.02), byte(3), byte(1, "i1")],
         1, {}),
        ("QLinearSoftmax", [whole("u1", 3, 7), few(0.05), byte(9), few(1 / 256), byte(0)], 1,
         {"axis": -1, "opset": 13}),
        ("QLinearConv", [whole("u1", 1, 5, 6, 3), few(0.05), byte(9), whole("u1", 4, 3, 3, 3),
                         few(0.02), byte(128), few(0.1), byte(120)], 1,
         {"channels_last": 1, "pads": [1, 1, 1, 1]}),
        ("QLinearAveragePool", [whole("u1", 1, 3, 6, 6), few(0.05), byte(9), few(0.05), byte(9)],
         1, {"kernel_shape": [2, 2], "strides": [2, 2]}),
        *(("QLinearAveragePool",
           [whole("u1", 1, 4, 8, 7), few(0.05), byte(9), few(0.04), byte(7)], 1,
           {"kernel_shape": [3, 2], "strides": [2, 4], "ceil_mode": 1, "pads": pads,
            "count_include_pad": 1, "channels_last": last})
          for pads in ([0] * 4, [1] * 4, [2, 0, 1, 0]) for last in (0, 1)),
        ("NhwcMaxPool", [whole("u1", 1, 7, 6, 3)], 1, {"kernel_shape": [3, 2]}),
        ("MultiHeadAttention", [X, real(2, 4, 12), real(2, 4, 12)], 3, {"num_heads": 3}),
        ("MultiHeadAttention", [X, X, X, real(36), None, real(2, 3, 5, 5)], 3,
         {"num_heads": 3, "scale": 0.2}),
        ("MultiHeadAttention", [X, X, X], 3, {"num_heads": 2, "unidirectional": 1}),
        ("QGemm", [whole("u1", 3, 5), few(0.1), byte(7), narrow(4, 5), np.full(4, 0.2, "f4"),
                   np.zeros(4, "i1"), np.array([90, -7, 0, 3], "i4"), few(0.5), byte(9)], 1,
         {"transB": 1}),
    ],
)  # fmt: skip
def test_what_the_optimiser_writes(
    kind: str, inputs: list[Any], fed: int, words: dict[str, Any]
) -> None:
    same(model(kind, inputs, fed, **words), inputs[:fed])


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize(
    ("kind", "inputs"),
    [("SimplifiedLayerNormalization", [X, real(12)]),
     ("LayerNormalization", [X, real(12), real(12)])],
)  # fmt: skip
def test_norms_of_before_they_were_in_onnx(kind: str, inputs: list[Any], opset: int) -> None:
    proto = model(kind, inputs, 1, epsilon=1e-3)
    proto.graph.node[0].domain = ""
    proto.opset_import[0].version = opset
    same(proto, inputs[:1])


def test_a_norm_that_is_deprecated_has_scales_of_groups() -> None:
    inputs = [real(2, 6, 5), real(3), real(3)]
    proto = model("GroupNormalization", inputs, 1, num_groups=3)
    proto.graph.node[0].domain = ""
    proto.opset_import[0].version = 18
    same(proto, inputs[:1])


def test_indices_may_be_shorter_along_other_axes() -> None:
    inputs = [real(4, 5, 3), np.array([[[1, -1]], [[0, 4]]])]
    proto = model("GatherElements", inputs, 2, axis=1)
    proto.graph.node[0].domain = ""
    same(proto, inputs)


def test_zeros_are_quantised_in_steps_of_one() -> None:
    inputs = [np.zeros((2, 3), "f4")]
    proto = model("DynamicQuantizeLinear", inputs, 1, outputs=3)
    proto.graph.node[0].domain = ""
    same(proto, inputs)


def test_what_is_not_known_is_told_before_what_it_leads_to() -> None:
    nodes = [
        helper.make_node("Strange", ["x"], ["a"], name="strange", domain=DOMAIN),
        helper.make_node("Transpose", ["a"], ["b"], name="turned"),
        helper.make_node("DynamicQuantizeLinear", ["b"], ["y", "s", "z"], name="bytes"),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, (2, 3))],
        [helper.make_empty_tensor_value_info("y")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    with pytest.raises(UnsupportedError, match="Strange is not an operator"):
        ir.from_onnx(proto.SerializeToString())
