"""Weights of few bits and mixtures of experts, imported: their answers are ONNX Runtime's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import IRError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402  # only where onnx is there
from onnx_contributed import DOMAIN, RNG, model, real, same, whole  # noqa: E402
from oracle import ask  # noqa: E402


@pytest.mark.parametrize(
    ("bits", "block", "taken"), [(2, 32, 64), (4, 16, 64), (4, 32, 80), (8, 16, 48)]
)
@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_products_by_blocks_of_few_bits(
    bits: int, block: int, taken: int, zero: bool, bias: bool
) -> None:
    made, blocks = 6, -(-taken // block)
    packed = whole("u1", made, blocks, block * bits // 8)
    points = whole("u1", made, -(-blocks * bits // 8)) if zero else None
    inputs = [
        real(3, taken),
        packed,
        real(made, blocks),
        points,
        None,
        real(made) if bias else None,
    ]
    words = {"K": taken, "N": made, "bits": bits, "block_size": block}
    while inputs[-1] is None:
        inputs.pop()
    same(model("MatMulNBits", inputs, 1, **words), inputs[:1])


@pytest.mark.parametrize(("block", "taken"), [(16, 64), (32, 80), (16, 16)])
@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_products_whose_columns_tell_their_scale(
    block: int, taken: int, zero: bool, padded: bool
) -> None:
    made, blocks = 6, -(-taken // block)
    groups = RNG.permutation(np.repeat(np.arange(blocks), block))[: None if padded else taken]
    points = real(made, blocks) if zero else None
    inputs = [
        real(3, taken), whole("u1", made, blocks, block // 2), real(made, blocks), points,
        groups.astype("i4"),
    ]  # fmt: skip
    words = {"K": taken, "N": made, "bits": 4, "block_size": block}
    same(model("MatMulNBits", inputs, 1, **words), inputs[:1])


@pytest.mark.parametrize(("kind", "bits"), [("u1", 4), ("u1", 8), ("uint4", 4), ("int4", 4)])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("places", [3, [1], [[0, -1], [4, 2]]])
@pytest.mark.parametrize("shape", [(6, 64), (6, 3, 32)])
def test_rows_of_few_bits(kind: str, bits: int, zero: bool, places: Any, shape: Any) -> None:
    low = -8 if kind == "int4" else 0
    blocks = (*shape[:-1], shape[-1] // 16)
    table, zeros = (RNG.integers(low, low + (1 << bits), sizes) for sizes in (shape, blocks))
    axis = len(shape) - 1

    def held(array: np.ndarray, name: str) -> Any:
        if kind == "u1":
            halves = array[..., ::2] | array[..., 1::2] << 4 if bits == 4 else array
            return numpy_helper.from_array(halves.astype("u1"), name)
        number = getattr(onnx.TensorProto, kind.upper())
        return helper.make_tensor(name, number, array.shape, array.ravel().tolist())

    places = np.array(places)
    words = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": axis}
    names = ["table", "places", "scale", "zero"][: 4 if zero else 3]
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain=DOMAIN, **words)
    constants = [held(table, "table"), numpy_helper.from_array(real(*blocks), "scale")]
    constants += [held(zeros, "zero")] if zero else []
    given = [helper.make_tensor_value_info("places", onnx.TensorProto.INT64, places.shape)]
    results = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "g", given, results, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    same(helper.make_model(graph, opset_imports=opsets, ir_version=10), [places])


def test_a_row_within_one_large_block() -> None:
    block = 1 << 40  # more than any memory has
    table, scales, places = whole("u1", 6, 16), real(6, 1), np.array([3, 0])
    inputs = [places, table, scales]
    names = ["table", "places", "scale"]
    node = helper.make_node(
        "GatherBlockQuantized", names, ["y"], domain=DOMAIN, bits=4, block_size=block
    )
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("places", 7, places.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(inputs[1], "table"), numpy_helper.from_array(scales, "scale")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    same(helper.make_model(graph, opset_imports=opsets, ir_version=10), [places])


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("block", [16, 64])
def test_products_by_codes_of_four_bits(kind: int, block: int) -> None:
    taken, made = 32, 24
    packed, scales = whole("u1", taken * made // 2), real(taken * made // block)
    words = {"K": taken, "N": made, "block_size": block, "quant_type": kind}
    inputs = [real(3, taken), packed, scales]
    same(model("MatMulBnb4", inputs, 1, **words), inputs[:1])


SWIGLU = {"activation_type": "swiglu", "swiglu_fusion": 1}
LIMITED = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.5}
ACTIVATIONS = [
    {"activation_type": "relu"}, {"activation_type": "gelu"}, {"activation_type": "silu"},
    {"activation_type": "identity"}, SWIGLU, {**SWIGLU, **LIMITED},
]  # fmt: skip


def stacks(words: dict[str, Any], taken: int, inner: int) -> list[tuple[int, int, int]]:
    """The shapes of both steps of four experts."""
    wide = 2 * inner if words["activation_type"] == "swiglu" else inner
    return [(4, wide, taken), (4, taken, inner)]


@pytest.mark.parametrize("words", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8)])
@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("bias", [True, False])
def test_experts(words: dict[str, Any], shape: Any, normalized: int, bias: bool) -> None:
    inputs: list[Any] = [real(*shape), real(int(np.prod(shape[:-1])), 4)]
    for sizes in stacks(words, 8, 6):
        inputs += [real(*sizes) / 3, real(*sizes[:2]) if bias else None]
    while inputs[-1] is None:
        inputs.pop()
    words = {**words, "k": 2, "normalize_routing_weights": normalized}
    same(model("MoE", inputs, 2, **words), inputs[:2])


@pytest.mark.parametrize("words", ACTIVATIONS[2::2])
@pytest.mark.parametrize(
    ("bits", "block"), [(2, 0), (2, 16), (4, 0), (4, 16), (4, 32), (4, 2**14), (8, 0)]
)
@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_experts_of_few_bits(
    words: dict[str, Any], bits: int, block: int, zero: bool, bias: bool
) -> None:
    inputs: list[Any] = [real(5, 32), real(5, 4)]
    zeros: list[Any] = []
    for experts, made, taken in stacks(words, 32, 64):
        sizes = (experts, made, -(-taken // block)) if block else (experts, made)
        inputs += [whole("u1", experts, made, taken * bits // 8), np.abs(real(*sizes)) / 50]
        inputs += [real(experts, made) if bias else None]
        zeros += [whole("u1", *sizes[:-1], -(-sizes[-1] * bits // 8))]
    inputs += [None] * 3 + zeros if zero else []
    while inputs[-1] is None:
        inputs.pop()
    words = {**words, "k": 2, "expert_weight_bits": bits}
    same(model("QMoE", inputs, 2, **words, **({"block_size": block} if block else {})), inputs[:2])


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_an_expert_that_is_not_asked_may_overflow(activation: str) -> None:
    weights = np.ones((2, 3, 4), "f4")
    weights[1] *= 1e20
    rows, router = np.full((2, 4), 1e20, "f4"), np.array([[9, 0], [8, 0]], "f4")
    inputs = [rows, router, weights, None, np.ones((2, 4, 3), "f4")]
    same(model("MoE", inputs, 2, activation_type=activation, k=1), inputs[:2])


@pytest.mark.parametrize(
    ("kind", "weights"),
    [("MoE", [real(4, 6, 8), None, real(4, 8, 6)]),
     ("QMoE", [whole("u1", 4, 6, 4), real(4, 6), None, whole("u1", 4, 8, 3), real(4, 8)])],
)  # fmt: skip
def test_weights_say_how_many_experts_there_are(kind: str, weights: list[Any]) -> None:
    inputs = [real(5, 8), real(5, 4), *weights]
    proto = model(kind, inputs, 2, k=2)
    for given in proto.graph.input:
        for axis, dim in enumerate(given.type.tensor_type.shape.dim):
            dim.dim_param = f"{given.name}_{axis}"
    same(proto, inputs[:2])


UNLIKELY = [[0, 0, 0, 0], [-1, 1, 0, 0], [-1, -2, -3, -0.5], [0.5, -2, 0, 1], [-0.25, 1, 2, 3]]


@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("shares", [RNG.random((5, 4)), np.array(UNLIKELY)])
def test_shares_that_are_given(normalized: int, shares: np.ndarray) -> None:
    shares = shares.astype("f4")
    weights = [whole("u1", 4, 6, 4), real(4, 6), None, whole("u1", 4, 8, 3), real(4, 8)]
    inputs = [real(5, 8), real(5, 4), *weights, *[None] * 7, shares]
    words = {"k": 3, "normalize_routing_weights": normalized}
    same(model("QMoE", inputs, 2, **words), inputs[:2])


FIRST = [real(5, 8), real(5, 4)]
ROWS = [real(3, 64), whole("u1", 6, 2, 16), real(6, 2)]
WORDS = {"K": 64, "N": 6, "bits": 4, "block_size": 32}
HALVES = [whole("u1", 4, 6, 4), real(4, 6), None, whole("u1", 4, 8, 3), real(4, 8)]


@pytest.mark.parametrize(
    ("kind", "inputs", "fed", "words", "said"),
    [
        ("MatMulNBits", [real(3, 64), whole("u1", 6, 2, 9), real(6, 2)], 1,
         {"K": 64, "N": 6, "bits": 4, "block_size": 32}, "bytes"),
        ("MatMulNBits", [real(3, 64), whole("u1", 6, 2, 8), real(6, 2)], 1,
         {"K": 64, "N": 6, "bits": 3, "block_size": 32}, "3 bits"),
        ("MatMulNBits", [*ROWS, None, np.arange(63)], 1, WORDS, "63 places, .* 64 columns"),
        ("MatMulNBits", [*ROWS, None, np.arange(64)], 1, WORDS, "from 0 to 63, .* 2 scales"),
        ("MatMulNBits", [*ROWS, whole("u1", 6, 1), np.arange(64) % 2], 1, WORDS,
         "input 3. beside g_idx"),
        ("MatMulBnb4", [real(3, 32), whole("u1", 384), real(48)], 1,
         {"K": 32, "N": 24, "block_size": 16, "quant_type": 1, "transB": 0}, "transB=0"),
        ("MatMulBnb4", [real(3, 32), whole("u1", 383), real(48)], 1,
         {"K": 32, "N": 24, "block_size": 16, "quant_type": 1}, "383 bytes"),
        ("GatherBlockQuantized", [whole("u1", 5, 8), np.array([1]), real(5, 1)], 1,
         {"bits": 4, "block_size": 16}, "not constant"),
        ("MoE", [*FIRST, real(4, 6, 8), None, real(4, 8, 6)], 3, {}, "weights of experts"),
        ("MoE", [*FIRST, real(4, 6, 8), None, real(4, 8, 6)], 2, {"k": 5}, "4 experts 5"),
        ("MoE", [*FIRST, real(3, 6, 8), None, real(3, 8, 6)], 2, {}, r"\[5,4\], .* of 3 experts"),
        ("MoE", [*FIRST, real(4, 6, 8), None, real(4, 8, 6), None, real(4, 6, 8)], 2, {}, "third"),
        ("MoE", [*FIRST, real(4, 6, 8), None, real(4, 8, 6)], 2,
         {"activation_type": "tanh"}, '"tanh"'),
        ("QMoE", [*FIRST, *HALVES], 2, {"block_size": 3}, "blocks of 3"),
        ("QMoE", [*FIRST, *HALVES], 2, {"expert_weight_bits": 5}, "5 bits"),
        ("QMoE", [*FIRST, *HALVES[:4], real(4, 7)], 2, {}, r"\(4, 7\)"),
        ("QMoE", [*FIRST, *HALVES], 2, {"quant_type": "fp8"}, "fp8"),
        ("QMoE", [*FIRST, HALVES[0][0], *HALVES[1:]], 2, {}, "3 axes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    kind: str, inputs: list[Any], fed: int, words: dict[str, Any], said: str
) -> None:
    with pytest.raises(IRError, match=said):
        ir.from_onnx(model(kind, inputs, fed, **words).SerializeToString())


def in_openvino(proto: Any, x: np.ndarray, folder: Path) -> np.ndarray:
    """What OpenVINO computes of the imported model, which crashed it."""
    made = folder / "made.xml"
    ir.write(ir.from_onnx(proto), made)
    (found,) = ask("values", made.read_text(), made.with_suffix(".bin").read_bytes(), [x])
    return np.asarray(found)


@pytest.mark.parametrize(("kind", "low"), [("int4", -8), ("uint4", 0)])
@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize(
    ("sizes", "axis", "block"),
    [((32, 8), 0, 16), ((40, 8), 0, 16), ((8, 32), 1, 16), ((8, 32), 1, 64), ((32, 8), 0, 1)],
)
def test_levels_of_four_bits_scaled_in_blocks_run_in_openvino(
    kind: str, low: int, zero: bool, sizes: tuple[int, int], axis: int, block: int, tmp_path: Path
) -> None:
    blocks = [-(-size // block) if at == axis else size for at, size in enumerate(sizes)]
    levels, zeros = (RNG.integers(low, low + 16, shape) for shape in (sizes, blocks))
    number = getattr(onnx.TensorProto, kind.upper())
    held = [
        helper.make_tensor("w", number, sizes, levels),
        numpy_helper.from_array(scales := real(*blocks), "s"),
        *([helper.make_tensor("z", number, blocks, zeros)] if zero else []),
    ]
    words = [one.name for one in held]
    nodes = [
        helper.make_node("DequantizeLinear", words, ["d"], axis=axis, block_size=block),
        helper.make_node("Gemm", ["x", "d"], ["y"], transB=axis),
    ]
    x = real(3, sizes[axis])
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
    graph = helper.make_graph(
        nodes, "g", [given], [helper.make_empty_tensor_value_info("y")], held
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    wide = np.repeat(np.arange(blocks[axis]), block)[: sizes[axis]]
    apart = levels - (np.take(zeros, wide, axis) if zero else 0)
    weights = apart * np.take(scales, wide, axis).astype("f8")
    wanted = x @ (weights.T if axis else weights)
    made = ir.from_onnx(proto)
    for found in (
        *ir.run(made, [x]).values(), *ir.compile(made)([x]).values(),
        in_openvino(proto, x, tmp_path),
    ):  # fmt: skip
        np.testing.assert_allclose(found, wanted, 0, 1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("zero", [True, False])
def test_products_whose_columns_tell_their_scale_run_in_openvino(
    zero: bool, tmp_path: Path
) -> None:
    groups = RNG.permutation(np.repeat(np.arange(4), 16)).astype("i4")
    inputs = [
        real(3, 64), whole("u1", 6, 4, 8), real(6, 4), real(6, 4) if zero else None, groups,
    ]  # fmt: skip
    proto = model("MatMulNBits", inputs, 1, K=64, N=6, bits=4, block_size=16)
    (wanted,) = ir.run(ir.from_onnx(proto), inputs[:1]).values()
    found = in_openvino(proto, inputs[0], tmp_path)
    np.testing.assert_allclose(found, wanted, 0, 1e-5 * np.abs(wanted).max())
