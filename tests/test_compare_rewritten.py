"""Runs of a model and of what simplification and conversion make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simplify_movements
import simplify_patterns
from simplify_patterns import Net, network
from vinoir import ir

ROWS = [*simplify_patterns.APPLIES, *simplify_movements.APPLIES]
Build = Callable[[Net, ir.Output], ir.Output]


def weights_of(model: ir.Model) -> list[ir.Layer]:
    return [x for x in model.order() if x.is_constant and x.value.dtype == np.float32]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}-{n}" for n, row in enumerate(ROWS)])
def test_what_is_simplified_is_right_and_a_change_in_it_is_found(row: Any) -> None:
    _, shape, build, _ = row
    model = network(shape, build)
    new, _ = ir.simplify(network(shape, build))
    given = {"x": [3 if size == "?" else int(size) for size in shape.split(",")]}
    fed = {"x": np.random.default_rng(0).standard_normal(given["x"]).astype("f4")}
    assert not ir.compare(model, new, fed), str(ir.compare(model, new, fed))
    right = ir.run(new, fed)["y"]
    for constant in weights_of(new):
        kept = constant.value.copy()
        constant.set_value(kept * np.float32(1.01))
        far = np.abs(ir.run(new, fed)["y"] - right).max() > 1e-3 * np.abs(right).max()
        found = ir.compare(model, new, fed)
        assert found or not far, f"{constant.name}: {found}"
        constant.set_value(kept)


def attention(size: int) -> ir.Model:
    """An attention of 8 rows of a size, and what follows."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (1, 2, 8, size))
    heads = [net.add(kind, "opset1", [x], name=kind) for kind in ("Sin", "Cos", "Exp")]
    y = net.add("ScaledDotProductAttention", "opset13", heads, name="attention", causal=False)
    net.result(net.add("Tanh", "opset1", [y.named("attended")], name="tanh"), name="y")
    return net.model()


@pytest.mark.parametrize("size", [8, 16])
def test_one_layer_is_paired_with_the_last_of_several_that_it_has_become(size: int) -> None:
    model = attention(size)
    new = ir.convert(attention(size), target="2023.0").model
    assert len(new) > len(model)
    found = ir.compare(model, new)
    assert not found, str(found)
    assert "attention" in {step.place.name for step in found.steps}
    pairs = {(x.one.name, x.two.name) for x in ir.diff(model, new) if x.one and x.two}
    assert ("attention", "attention") in pairs
    assert not any("attention" in pair and pair != ("attention",) * 2 for pair in pairs)


def branches(*, turned: bool = False, factor: float = 2.0) -> ir.Model:
    """A product between two layers; ``turned``: in other names, between transpositions."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2, 3))
    y = net.add("Exp", "opset1", [x], name="b" if turned else "a")
    if turned:
        order = net.constant(np.array([1, 0]), name="order")
        y = net.add("Transpose", "opset1", [y, order], name="t")
    y = net.add("Multiply", "opset1", [y, net.constant(np.float32(factor))], name=f"m{turned}")
    if turned:
        y = net.add("Transpose", "opset1", [y, order], name="u")
    y = net.add("Tanh", "opset1", [y], name="tanh")
    net.result(y, name="y")
    return net.model()


def test_a_guess_of_another_shape_has_no_counterpart() -> None:
    model = branches()
    found = ir.compare(model, branches(turned=True))
    assert not found, str(found)
    assert found.uncompared == ["mFalse"]
    changed = ir.compare(model, branches(turned=True, factor=2.1))
    # It is found where the next layer that has a counterpart takes it.
    assert [step.place.name for step in changed.wrong] == ["tanh"]


def scaled(*, fused: bool, weight: float = 3.0) -> ir.Model:
    """Two products, or one under the name of the first, and what is subtracted."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2, 3))
    first = net.constant(np.float32(weight * 0.5 if fused else weight), name="w")
    y = net.add("Multiply", "opset1", [x, first], name="first")
    one = net.constant(np.float32(1), name="one")
    if fused:
        y = net.add(
            "Subtract", "opset1", [y, net.constant(np.float32(0.5), name="c")], name="last"
        )
    else:
        y = net.add("Subtract", "opset1", [y, one], name="between")
        half = net.constant(np.float32(0.5), name="half")
        y = net.add("Multiply", "opset1", [y, half], name="last")
    net.result(net.add("Tanh", "opset1", [y], name="tanh"), name="y")
    return net.model()


def test_what_two_layers_make_up_for_is_no_fault_of_either() -> None:
    found = ir.compare(scaled(fused=False), scaled(fused=True))
    assert not found, str(found)
    assert found.parts is None
    assert found.right_together == ["first", "last"]
    assert "other layers there, right together: first, last" in str(found)
    assert found.as_json()["right_together"] == ["first", "last"]
    # What was compared has a counterpart: one layer has none.
    assert found.uncompared == ["between"]
    assert "not compared: between" in str(found)
    wrong = ir.compare(scaled(fused=False), scaled(fused=True, weight=3.1))
    assert wrong
    assert {step.place.name for step in wrong.wrong} >= {"first"}
