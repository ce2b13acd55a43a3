"""Numbers that overflow, odd attributes and open shapes: ONNX nodes against their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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
