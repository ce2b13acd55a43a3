"""Numbers that overflow, odd attributes and open shapes: ONNX nodes against their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from vinoir import ir
from vinoir.schemas import UnsupportedError

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx_models import one_node  # noqa: E402  # only where onnx is there

RNG = np.random.default_rng(0)


def real(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def feed_of(proto: Any, inputs: list[Any]) -> dict[str, Any]:
    names = [value.name for value in proto.graph.input]
    return dict(zip(names, inputs, strict=True))


def by_runtime(proto: Any, inputs: list[Any]) -> list[Any]:
    session = runtime.InferenceSession(proto.SerializeToString())
    found: list[Any] = session.run(None, feed_of(proto, inputs))
    return found


def ours(proto: Any, inputs: list[Any], **how: Any) -> list[list[Any]]:
    """What the imported model gives, and what it gives compiled."""
    model, feed = ir.from_onnx(proto, **how), feed_of(proto, inputs)
    compiled = ir.compile(model, fork=False, threads=1)
    return [list(ir.run(model, feed).values()), list(compiled(feed).values())]


def same(proto: Any, inputs: list[Any], wanted: list[Any] | None = None) -> None:
    """As ONNX Runtime has it, or as another says who knows."""
    wanted = by_runtime(proto, inputs) if wanted is None else wanted
    for found in ours(proto, inputs):
        for one, other in zip(found, wanted, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, 1e-5, 1e-6)


# Bytes.

ENDS = {"u1": [0, 1, 127, 128, 255], "i1": [-128, -127, -1, 1, 127]}
CASES = [(kind, op) for kind in ENDS for op in ("Abs", "Add", "Div", "Mul", "Neg", "Sub")
         if (kind, op) != ("u1", "Neg")]  # fmt: skip


def every_pair(kind: str, op: str) -> list[np.ndarray]:
    ends = np.array(ENDS[kind], kind)
    if op in ("Abs", "Neg"):
        return [ends]
    return [ends[:, None], ends[ends != 0] if op == "Div" else ends]


@pytest.mark.parametrize(("kind", "op"), CASES)
def test_bytes_wrap_around(kind: str, op: str) -> None:
    inputs = every_pair(kind, op)
    proto = one_node(op, 14 if len(inputs) == 2 else 13, inputs)
    same(proto, inputs)
    ov = pytest.importorskip("openvino")
    xml, weights = ir.dumps(ir.from_onnx(proto))
    loaded = ov.Core().read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
    (found,) = ov.Core().compile_model(loaded, "CPU")(inputs).values()
    np.testing.assert_array_equal(found, by_runtime(proto, inputs)[0])


@pytest.mark.parametrize(("kind", "op"), [case for case in CASES if case != ("i1", "Sub")])
def test_bytes_stop_where_openvino_is_asked_for(kind: str, op: str) -> None:
    # Of i8 it subtracts -128 by adding 127.
    ov = pytest.importorskip("openvino")
    inputs = every_pair(kind, op)
    proto = one_node(op, 14 if len(inputs) == 2 else 13, inputs)
    loaded = ov.Core().read_model(proto.SerializeToString())
    (wanted,) = ov.Core().compile_model(loaded, "CPU")(inputs).values()
    for (found,) in ours(proto, inputs, semantics="openvino"):
        np.testing.assert_array_equal(found, wanted)


# Activations and powers.


@pytest.mark.parametrize(
    "x", [np.arange(-4, 5, dtype="i4"), np.arange(9, dtype="u1"), real(9)], ids=["i4", "u1", "f4"]
)
@pytest.mark.parametrize(("bias", "lambd"), [(1.5, 1.0), (0.2, -0.3), (0, 2.5), (2, 2)])
def test_shrink(x: Any, bias: float, lambd: float) -> None:
    if x.dtype == "u1" and lambd < 0:
        return  # what is below zero has no byte
    same(one_node("Shrink", 9, [x], bias=float(bias), lambd=float(lambd)), [x])


@pytest.mark.parametrize("alpha", [-0.7, -2.0, 0.5, 3.0])
def test_celu(alpha: float) -> None:
    same(one_node("Celu", 12, [x := real(20)], alpha=alpha), [x])


@pytest.mark.parametrize("exponent", [[20, 9, 0.5, -1], [2, 17, 3.5, 0]])
@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_powers_of_whole_numbers_by_broken_ones(kind: str, exponent: list[float]) -> None:
    base = np.array([2 if kind == "i4" else 3, 3, 90000, 2], kind)
    inputs = [base, np.array(exponent, "f4")]
    proto = one_node("Pow", 15, inputs)
    wanted = by_runtime(proto, inputs)
    for (found,) in ours(proto, inputs):
        np.testing.assert_array_equal(found, wanted[0])


def test_booleans_as_small_reals() -> None:
    x = np.array([True, False])
    for (found,) in ours(one_node("Cast", 19, [x], to=onnx.TensorProto.FLOAT8E4M3FN), [x]):
        assert found.astype("f4").tolist() == [1, 0]


@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_logarithms_of_whole_sums_lose_their_fraction(kind: str) -> None:
    x = np.array([[3, 17], [1, 0]], kind)
    words = {"keepdims": 0}
    inputs = [x, np.array([1])]
    same(one_node("ReduceLogSum", 18, inputs, 1, **words), inputs, [np.array([2, 0], kind)])
    # log(e^3 + e^17) = 17.0, log(e + 1) = 1.3
    same(one_node("ReduceLogSumExp", 18, inputs, 1, **words), inputs, [np.array([17, 1], kind)])


# Norms and products.


@pytest.mark.parametrize("training", [0, 1])
def test_a_norm_whose_channels_have_no_axis(training: int) -> None:
    inputs = [real(4), real(1), real(1), real(1), np.abs(real(1))]
    proto = one_node("BatchNormalization", 15, inputs, 1 + 2 * training, training_mode=training)
    same(proto, inputs)


def test_mean_and_deviation_are_of_the_stash_type() -> None:
    inputs = [real(2, 4).astype("f8"), real(4).astype("f8")]
    same(one_node("LayerNormalization", 17, inputs, 3), inputs)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ii", [(3, 3)]),
        ("iij", [(3, 3, 2)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("...ii", [(2, 3, 3)]),
        ("i...,i...", [(3, 2), (3, 2)]),
        ("ii,i", [(3, 3), (3,)]),
    ],
)
def test_equations_without_an_arrow(equation: str, shapes: list[Any]) -> None:
    inputs = [real(*shape) for shape in shapes]
    wanted = np.einsum(equation, *inputs, dtype="f4")
    same(one_node("Einsum", 12, inputs, equation=equation), inputs, [np.asarray(wanted)])


def test_channels_around_an_even_number_are_refused() -> None:
    x = real(1, 6, 2, 2)
    with pytest.raises(UnsupportedError, match="0 channels before and 1 behind"):
        ir.from_onnx(one_node("LRN", 13, [x], size=2))
    same(one_node("LRN", 13, [x], size=3), [x])


# Functions of recurrent layers.


def gru(activations: list[str], directions: int = 1, **words: Any) -> tuple[Any, list[Any]]:
    inputs = [real(4, 3, 2), real(directions, 9, 2), real(directions, 9, 3), real(directions, 18)]
    if directions == 2:
        words["direction"] = "bidirectional"
    words |= {"hidden_size": 3, "activations": activations}
    return one_node("GRU", 14, inputs, 2, **words), inputs


@pytest.mark.parametrize(
    ("alpha", "beta", "activations"),
    [
        ([0.3], [0.4], ["Sigmoid", "HardSigmoid"]),
        ([0.3, 0.1], [0.4], ["HardSigmoid", "HardSigmoid"]),
        ([], [0.4], ["Tanh", "HardSigmoid"]),
        ([0.9, 0.3], [0.4], ["Tanh", "HardSigmoid"]),
        ([0.9], [0.3], ["Sigmoid", "Relu"]),
    ],
)
def test_numbers_go_to_those_functions_that_take_one(
    alpha: list[float], beta: list[float], activations: list[str]
) -> None:
    words = {"activation_alpha": alpha, "activation_beta": beta}
    given = {name: values for name, values in words.items() if values}
    same(*gru(activations, **given))
    both = {name: values * 2 for name, values in given.items()} if len(alpha) < 2 else {}
    if both:
        same(*gru(activations * 2, 2, **both))


def test_functions_that_ir_has_not_are_refused() -> None:
    proto, _ = gru(["HardSigmoid", "Tanh"] * 2, 2, activation_alpha=[0.3, 0.1])
    with pytest.raises(UnsupportedError, match="different numbers in activation_alpha"):
        ir.from_onnx(proto)
    for name in ("Elu", "Softsign"):
        proto, _ = gru(["Sigmoid", name])
        with pytest.raises(UnsupportedError, match=f"activation {name.lower()} is not among"):
            ir.from_onnx(proto)


# Open shapes.


@pytest.mark.parametrize("open_axis", [False, True])
@pytest.mark.parametrize(("size", "count"), [(5, 3), (6, 3), (6, 5), (2, 3), (1, 3), (0, 2)])
def test_the_last_parts_are_shorter(size: int, count: int, open_axis: bool) -> None:
    x = real(size, 2)
    shapes = [[None, 2]] if open_axis else None
    proto = one_node("Split", 18, [x], count, shapes, axis=0, num_outputs=count)
    each = -(-size // count)
    same(proto, [x], [x[each * i : each * (i + 1)] for i in range(count)])


def test_lengths_of_parts_whose_number_the_node_says() -> None:
    inputs = [real(5), np.array([2, 3])]
    same(one_node("Split", 13, inputs, 2, [[5], [None]]), inputs)


@pytest.mark.parametrize("shape", [[2, 3], [None, None], None])
@pytest.mark.parametrize("axes", [[], [1], [-1, 0]])
@pytest.mark.parametrize(
    ("op", "opset"), [("Sum", 13), ("Max", 18), ("LogSumExp", 18), ("L2", 18)]
)
def test_reductions_over_axes_that_may_be_none(
    op: str, opset: int, axes: list[int], shape: list[None] | None
) -> None:
    inputs = [real(2, 3), np.array(axes, np.int64)]
    for keep in (0, 1):
        for noop in (0, 1):
            words = {"keepdims": keep, "noop_with_empty_axes": noop}
            same(one_node(f"Reduce{op}", opset, inputs, 1, [shape, [None]], **words), inputs)


@pytest.mark.parametrize("shape", [(2, 0, 4), (2, 3, 0), (0, 3, 4), (2, 3, 4)])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_a_matrix_of_an_open_shape(axis: int, shape: tuple[int, ...]) -> None:
    x = real(*shape)
    for known in ([None, None, None], [None, *shape[1:]], [*shape[:2], None]):
        if axis == 1 and not shape[0] and known[-1] is None:
            continue  # of no elements, the reshape's -1 stands for one
        same(one_node("Flatten", 13, [x], 1, [known], axis=axis), [x])


@pytest.mark.parametrize("shapes", [[[None, None], [None, None]], [[2, None], [None, 2]], None])
def test_fewer_rows_of_indices(shapes: Any) -> None:
    inputs = [real(2, 3), np.array([[2, 0]])]
    proto = one_node("GatherElements", 13, inputs, 1, shapes, axis=1)
    same(proto, inputs, [np.take_along_axis(inputs[0][:1], inputs[1], 1)])


def test_one_scale_of_what_has_no_known_rank() -> None:
    inputs = [np.array([1, 2], "u1"), np.array(0.5, "f4")]
    same(one_node("DequantizeLinear", 13, inputs, 1, [None, []]), inputs, [np.float32([0.5, 1])])
    inputs = [real(5), np.array(0.5, "f4"), np.array(3, "u1")]
    same(one_node("QuantizeLinear", 13, inputs, 1, [None, [], []]), inputs)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("levels", [
    np.array([-667136, 139776, 442880, 1446912], "i4"), np.array([0, 65535, 65520, 40001], "u2"),
    np.array([-32768, 32767, 30001, 2049], "i2"), np.array([0, 255, 254, 129], "u1"),
])  # fmt: skip
def test_many_levels_with_a_scale_of_16_bits(levels: Any, apart: bool) -> None:
    zero = levels.dtype.type({"i4": 0, "u2": 40000, "i2": 2047, "u1": 128}[levels.dtype.str[1:]])
    inputs = [levels, np.array([1e-4, 3e-5, 2e-6, 0.01] if apart else 1e-4, "f2")]
    inputs.append(np.full(4 if apart else (), zero))
    same(one_node("DequantizeLinear", 21, inputs, axis=0), inputs)
    # ONNX Runtime knows no bfloat16 here: by the definition.
    factor = inputs[1].astype(bfloat16)
    exact = (levels.astype("f8") - np.float64(zero)) * factor.astype("f8")
    proto = one_node("DequantizeLinear", 21, [levels, factor, inputs[2]], axis=0)
    for (found,) in ours(proto, [levels, factor, inputs[2]]):
        assert found.dtype == bfloat16
        np.testing.assert_allclose(found.astype("f8"), exact, 2**-8)


def test_frames_of_a_signal_whose_last_axis_is_open() -> None:
    inputs = [real(1, 16, 1), np.array(4), real(8)]
    proto = one_node("STFT", 17, inputs, 1, [[1, 16, None], [], [8]])
    with pytest.raises(UnsupportedError, match=r"the last axis is \?, .* 1 would say"):
        ir.from_onnx(proto)


@pytest.mark.parametrize("shape", [(1, 3, 1), ()])
def test_no_new_axes(shape: tuple[int, ...]) -> None:
    inputs = [real(*shape), np.zeros(0, "i8")]
    same(one_node("Unsqueeze", 13, inputs), inputs)


@pytest.mark.parametrize("block", [6, 20, 1 << 40])  # the last is more than any memory has
def test_scales_of_blocks_that_are_not_whole(block: int) -> None:
    x = RNG.integers(0, 256, (3, 16)).astype("u1")
    inputs = [x, real(3, -(-16 // block))]
    same(one_node("DequantizeLinear", 21, inputs, axis=1, block_size=block), inputs)


@pytest.mark.parametrize("pads", [(2, -1), (-1, 2), (-1, -2), (6, -2), (-2, 0)])
@pytest.mark.parametrize("size", [5, None])
@pytest.mark.parametrize("known", [True, False])
def test_what_is_taken_away_does_not_come_back_by_wrapping(
    pads: tuple[int, int], size: int | None, known: bool
) -> None:
    inputs = [real(2, 5), np.array([1, pads[0], 0, pads[1]])]
    proto = one_node("Pad", 19, inputs, 1, [[2, size], [4]], mode="wrap")
    wanted = by_runtime(proto, inputs)
    if known:
        del proto.graph.input[1]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(inputs[1], "x1"))
        inputs.pop()
    same(proto, inputs, wanted)


@pytest.mark.parametrize("kind", ["f4", "f8", "i4"])
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_ends_of_no_numbers_are_without_end(kind: str, op: str, axis: int) -> None:
    inputs = [np.zeros((2, 0), kind)]
    same(one_node(op, 13, inputs, axes=[axis], keepdims=0), inputs)
