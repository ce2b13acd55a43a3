"""Models that declare f16 are computed in f32, as OpenVINO's CPU computes them at f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import ask
from vinoir import ir
from vinoir.schemas import Array, IRError
from vinoir.schemas.packing import NF4

RNG = np.random.default_rng(5)


def decompressed(net: ir.Builder, kind: str, shape: tuple[int, int], *, zero: bool) -> Any:
    """Weights of few bits as compressed models keep them: minus a zero point, times a scale."""
    low, high = (0, 15) if kind == "u4" else (-8, 7) if kind == "i4" else (-100, 100)
    numbers = RNG.integers(max(low, 0) if kind.startswith("u") else low, high, shape)
    if kind == "nf4":
        weights = net.constant(NF4[RNG.integers(0, 16, shape)], kind)
    elif kind == "f16":
        weights = net.constant(RNG.standard_normal(shape).astype("f2"))
    else:
        weights = net.constant(numbers.astype("u1" if kind.startswith("u") else "i1"), kind)
    y = net.add("Convert", "opset1", [weights], destination_type="f16")
    if zero:
        middle = net.constant(RNG.uniform(1, 7, (1, shape[1])).astype("f2"))
        y = net.add("Subtract", "opset1", [y, middle])
    scales = net.constant(RNG.uniform(0.01, 0.03, (1, shape[1])).astype("f2"))
    y = net.add("Multiply", "opset1", [y, scales])
    return net.add("Convert", "opset1", [y], destination_type="f32")


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("kind", ["u8", "i8", "u4", "i4", "nf4", "f16"])
@pytest.mark.parametrize("size", [16, 96], ids=["known to inference", "folded"])
def test_weights_are_decompressed_in_f32(kind: str, zero: bool, size: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (3, size))
    weights = decompressed(net, kind, (size, size), zero=zero)
    net.result(net.add("MatMul", "opset1", [x, weights]), name="y")
    check(net.model(), RNG.standard_normal((3, size)).astype("f4"))


@pytest.mark.parametrize("declared", ["f16", "f32"])
def test_f16_between_layers_neither_rounds_nor_overflows(declared: str) -> None:
    net = ir.Builder()
    x = y = net.parameter("x", declared, (2, 8))
    if declared == "f32":
        y = net.add("Convert", "opset1", [x], destination_type="f16")
    y = net.add("Multiply", "opset1", [y, net.constant(np.full((1, 8), 300, "f2"))])
    y = net.add("Power", "opset1", [y, net.constant(np.full((1, 1), 2, "f2"))])  # beyond 65504
    y = net.add("Sqrt", "opset1", [y])
    if declared == "f32":
        y = net.add("Convert", "opset1", [y], destination_type="f32")
    net.result(y, name="y")
    check(net.model(), RNG.uniform(1, 9, (2, 8)).astype("f4" if declared == "f32" else "f2"))


def check(model: ir.Model, given: Array) -> None:
    xml, weights = ir.dumps(model)
    (wanted,) = ask("values", xml.decode(), weights, [given])
    for outputs in (ir.run(model, [given]), ir.compile(model)([given])):
        assert outputs["y"].dtype == wanted.dtype
        scale = float(np.abs(wanted).max())
        rounding = 1e-3 if wanted.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(outputs["y"], wanted, rtol=rounding, atol=1e-5 * scale)


def test_what_is_handed_out_is_of_the_declared_type() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f16", (4,))
    y = net.add("Multiply", "opset1", [x, net.constant(np.float16(0.1))], name="scaled")
    net.result(net.add("Exp", "opset1", [y]), name="y")
    given = np.array([1, 2, 3, 4], "f2")
    every = ir.run(net.model(), [given], outputs="all")
    assert {array.dtype.name for array in every.values()} == {"float16"}
    assert ir.compile(net.model())([given])["y"].dtype == np.float16


def test_f16_goes_through_loops_and_state_as_f32() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f16", (2,))
    words = {"variable_id": "v", "variable_type": "f16", "variable_shape": "2"}
    kept = net.add("ReadValue", "opset6", [x], **words)
    grown = net.add("Multiply", "opset1", [kept, net.constant(np.full(2, 1000, "f2"))])
    net.add("Assign", "opset6", [grown], variable_id="v")
    small = net.add("Multiply", "opset1", [grown, net.constant(np.full(2, 1e-5, "f2"))])
    net.result(small, name="y")
    model, given, state = net.model(), [np.full(2, 2, "f2")], {}
    program = ir.compile(model)
    tiny = np.float32(np.float16(1e-5))
    for turn in (1, 2):
        wanted = np.full(2, 2 * 1000.0**turn * tiny).astype("f2")  # the state is 2e6
        np.testing.assert_allclose(program(given)["y"], wanted, rtol=1e-3)
        np.testing.assert_allclose(ir.run(model, given, state=state)["y"], wanted, rtol=1e-3)


def test_run_refuses_what_infer_refuses_with_its_error() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2,))
    other = net.parameter("other", "f32", (2,))
    net.result(net.add("Add", "opset1", [x, other], name="sum"), name="y")
    xml, weights = ir.dumps(net.model())
    head, _, tail = xml.decode().partition('name="other"')
    model = ir.loads((head + 'name="other"' + tail.replace('"f32"', '"u8"', 1)).encode(), weights)
    given = [np.ones(2, "f4"), np.ones(2, "u1")]
    ways = (
        lambda: ir.infer(model),
        lambda: ir.compile(model),
        lambda: ir.compile(model, exact=True),
        lambda: ir.run(model, given),
    )
    said = set()
    for way in ways:
        with pytest.raises(IRError, match="f32") as caught:
            way()
        said.add(str(caught.value))
    assert len(said) == 1
