"""Runs compared: a wrong layer that depends on constants alone is named, not what takes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from model_faults import wrong_kernel
from vinoir import ir
from vinoir.ir.comparing import divergence, judging, references, rounding
from vinoir.ir.document import Graph, Layer
from vinoir.layers import Op

#: Two samples of an input.
GIVEN = [np.random.default_rng(2).standard_normal((2, 8)).astype("f4")]


def compressed(minus: str = "Subtract", *, zero: int = 8) -> ir.Model:
    """A product by weights of bytes that are converted, moved and scaled; a sum after it."""
    net, rng = ir.Builder("net"), np.random.default_rng(1)
    x = net.parameter("x", "f32", "2,8")
    stored = net.constant(rng.integers(0, 16, (4, 8)).astype("u1"), name="stored")
    zeros = net.constant(np.full((4, 1), zero, "f4"), name="zeros")
    scales = net.constant(rng.random((4, 1)).astype("f4") + 1, name="scales")
    w = net.add("Convert", "opset1", [stored], name="converted", destination_type="f32")
    w = net.add(minus, "opset1", [w, zeros], name="moved")
    w = net.add("Multiply", "opset1", [w, scales], name="scaled")
    y = net.add("MatMul", "opset1", [x, w], name="product", transpose_b=True)
    net.result(net.add("Abs", "opset1", [y], name="abs"), name="y")
    return net.model()


def test_another_operation_on_constants_is_named() -> None:
    found = ir.compare(compressed("Add"), compressed(), GIVEN)
    assert [step.place.name for step in found.wrong] == ["moved"]
    assert found.parts == found.first
    verdicts = {step.place.name: step.verdict for step in found.steps}
    assert verdicts == {"moved": "wrong", "product": "inherited", "abs": "inherited"}


def test_a_constant_that_differs_is_named_with_the_layer_that_takes_it() -> None:
    found = ir.compare(compressed(zero=7), compressed(), GIVEN)
    assert [step.place.name for step in found.wrong] == ["moved"]
    assert found.wrong[0].constants == ("zeros",)


@pytest.mark.parametrize("against", ["openvino", "recorded", "itself"])
@pytest.mark.parametrize("kind", ["Subtract", "Multiply", "MatMul"])
def test_a_wrong_kernel_of_constants_is_named(against: str, kind: str, tmp_path: Path) -> None:
    model, op = compressed(), Op.find(kind, "opset1")
    assert op is not None
    reference: ir.Model | str = against
    if against == "recorded":
        reference = str(tmp_path / "good.npz")
        np.savez(reference, **ir.run(model, GIVEN, outputs="all"))
    if against == "openvino":
        pytest.importorskip("openvino")
    if against == "itself":
        reference = model  # its kernel is wrong in both
    with wrong_kernel(op, lambda array: array + 1):
        found = ir.compare(model, reference, GIVEN)
    name = {"Subtract": "moved", "Multiply": "scaled", "MatMul": "product"}[kind]
    wanted = [] if against == "itself" else [name]
    assert [step.place.name for step in found.wrong] == wanted, str(found)


@pytest.mark.parametrize("against", ["openvino", "compiled", "f16"])
def test_healthy_constants_are_not_at_fault(against: str) -> None:
    if against == "openvino":
        pytest.importorskip("openvino")
    assert not ir.compare(compressed(), against, GIVEN)


def chain(count: int, seed: int) -> ir.Model:
    """Products in a row, each by weights of its own that are converted from half precision."""
    net, rng = ir.Builder("net"), np.random.default_rng(seed)
    y = net.parameter("x", "f32", "2,8")
    for number in range(count):
        w = net.constant(rng.standard_normal((8, 8)).astype("f2"), name=f"w{number}")
        w = net.add("Convert", "opset1", [w], name=f"c{number}", destination_type="f32")
        y = net.add("MatMul", "opset1", [y, w], name=f"m{number}")
        y = net.add("Tanh", "opset1", [y], name=f"t{number}")
    net.result(y, name="y")
    return net.model()


def test_the_whole_model_is_not_gone_through_for_each_layer_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    order, fixed = Graph.order, references.from_constants

    def ordered(self: Graph, reachable_only: bool = True) -> list[Layer]:
        calls.append("order")
        return order(self, reachable_only)

    def from_constants(model: ir.Model) -> set[int]:
        calls.append("fixed")
        return fixed(model)

    monkeypatch.setattr(Graph, "order", ordered)
    for module in (divergence, judging, references, rounding):
        monkeypatch.setattr(module, "from_constants", from_constants)
    counts = []
    for count in (2, 8):
        calls.clear()
        found = ir.compare(chain(count, 0), chain(count, 1), GIVEN)
        assert [step.place.name for step in found.wrong] == [f"c{i}" for i in range(count)]
        counts.append((calls.count("order"), calls.count("fixed")))
    assert counts[0] == counts[1]
