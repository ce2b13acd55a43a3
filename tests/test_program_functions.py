"""Whatever is made of each number of few levels, step by step, is what a table of levels says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import pointwise
from vinoir.schemas import Array

from .test_program_bytes import Exact, planned, same_bits
from .test_program_quantized import needs_library

pytestmark = [needs_library, pytest.mark.usefixtures("integers_are_quick")]

#: Steps that lose no bit, so that all programs give all bits.
STEPS = ["Multiply", "Add", "ReLU", "itself times", "itself less", "Abs", "Clamp", "rounded"]


def made_of(net: Exact, x: Any, steps: list[str]) -> Any:
    """A chain of steps that take their own last result, a number, and what was given."""
    y = x
    for step in steps:
        if step in ("Multiply", "Add"):
            number = net.constant(np.full((1,) * int(net.rng.integers(0, 4)), 0.5, "f4"))
            y = net.add(step, *((y, number) if net.rng.integers(2) else (number, y)))
        elif step == "itself times":
            y = net.rounded_to(net.add("Multiply", y, x))
        elif step == "itself less":
            y = net.add("Subtract", x, y)
        elif step == "Clamp":
            y = net.add("Clamp", y, min=-2, max=3)
        elif step == "rounded":
            y = net.rounded_to(y, power=4)
        else:
            y = net.add(step, y)
    return y


def network(seed: int, steps: list[str], *, by_product: bool, out: str) -> tuple[ir.Model, Array]:
    """A convolution or a sum that makes levels, the chain, and who takes what comes of it."""
    net = Exact(seed)
    shape = (1, 8, 32, 20)
    x = net.rounded_to(net.net.parameter("x", "f32", shape))
    x = net.rounded_to(net.convolved(x, 8, 8) if by_product else net.add("Add", x, x), power=4)
    y = made_of(net, x, steps)
    if out == "levels":
        y = net.convolved(net.rounded_to(y), 8, 8)
    elif out == "both":
        y = net.add("Add", net.convolved(net.rounded_to(y), 8, 8), y)
    elif out == "part":  # of what is joined, there where it lies
        y = net.add("Concat", net.add("Abs", x), y, axis=1)
        y = net.convolved(net.rounded_to(y), 16, 8)
    return net.model(y), np.round(net.rng.standard_normal(shape) * 64).astype("f4") / 32


@pytest.mark.parametrize("out", ["numbers", "levels", "both", "part"])
@pytest.mark.parametrize("by_product", [True, False])
def test_tables_of_levels(out: str, by_product: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found, real = [], pointwise.tabulated

    def watched(node: Any, *words: Any) -> Any:
        found.append(node)
        return real(node, *words)

    monkeypatch.setattr(pointwise, "tabulated", watched)
    steps = ["Multiply", "rounded", "Add", "itself times", "Abs"]
    model, x = network(0, steps, by_product=by_product, out=out)
    same_bits(model, [x])
    assert found


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 99),
    st.lists(st.sampled_from(STEPS), min_size=2, max_size=7),
    st.booleans(),
    st.sampled_from(["numbers", "levels", "both", "part"]),
)
def test_any_steps(seed: int, steps: list[str], by_product: bool, out: str) -> None:
    model, x = network(seed, steps, by_product=by_product, out=out)
    planned(model)
    same_bits(model, [x])


def test_numbers_beside_those_of_levels_need_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Exact(0)
    shape = (1, 8, 32, 20)
    x, other = (net.net.parameter(name, "f32", shape) for name in ("x", "other"))
    levels = net.rounded_to(net.convolved(net.rounded_to(x), 8, 8), power=4)
    y = net.add("Add", made_of(net, levels, ["Multiply", "Abs", "rounded"]), other)
    each = net.constant(np.arange(8, dtype="f4").reshape(1, 8, 1, 1))
    z = net.add("Multiply", made_of(net, levels, ["Add", "Abs", "rounded"]), each)

    def refused(*_: Any) -> Any:
        raise AssertionError("more than one number makes this")

    monkeypatch.setattr(pointwise, "tabulated", refused)
    arrays = [np.round(net.rng.standard_normal(shape) * 64).astype("f4") / 32] * 2
    same_bits(net.model(y, z), arrays)
