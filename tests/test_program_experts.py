"""Rows that are made zero later are not computed, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine import passes
from vinoir.ir.engine.plan import Plan

EXPERTS, TOKENS, WIDE, INNER = 6, 9, 40, 72


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many products of each plan know which rows are wanted."""
    found: list[int] = []

    def counting(plan: Plan) -> None:
        passes.skip_idle_rows(plan)
        plan.verify()
        found.append(sum(node.wanted is not None for node in plan.nodes))

    chosen = [counting if one is passes.skip_idle_rows else one for one in passes.PASSES]
    monkeypatch.setattr(passes, "PASSES", tuple(chosen))
    return found


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype("f4") / np.float32(shape[-1] ** 0.5)


def experts(rng: np.random.Generator, between: str = "reshape", *, tokens: int = TOKENS) -> Any:
    """Gated experts that all tokens go through, then factors of tokens and experts."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, tokens, WIDE))
    factor = net.parameter("factor", "f32", (EXPERTS, tokens, 1))
    many = net.add("Tile", "opset1", [x, net.constant([EXPERTS, 1, 1])])
    first, gate = (
        net.add("MatMul", "opset1", [many, net.constant(numbers(rng, EXPERTS, INNER, WIDE))],
                transpose_b=True)
        for _ in range(2)
    )  # fmt: skip
    gated = net.add("Multiply", "opset1", [net.add("Swish", "opset4", [gate]), first])
    last = net.constant(numbers(rng, EXPERTS, INNER, WIDE))
    y = net.add("MatMul", "opset1", [gated, last])
    y = net.add("Add", "opset1", [y, net.constant(numbers(rng, EXPERTS, 1, WIDE))])
    if between == "reshape":
        pattern = net.constant([EXPERTS, tokens, WIDE])
        y = net.add("Reshape", "opset1", [y, pattern], special_zero=False)
    elif between == "divide":
        y = net.add("Divide", "opset1", [y, net.add("Exp", "opset1", [many])])
    elif between == "handed out":
        net.result(y, name="each")
    y = net.add("Multiply", "opset1", [y, factor])
    net.result(net.add("ReduceSum", "opset1", [y, net.constant([0])]), name="y")
    return net.model()


FACTORS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "none": lambda rng, n: np.zeros((EXPERTS, n, 1)),
    "one": lambda rng, n: np.eye(EXPERTS * n)[n // 2].reshape(EXPERTS, n, 1),
    "some": lambda rng, n: (rng.random((EXPERTS, n, 1)) < 0.2) * rng.random((EXPERTS, n, 1)),
    "half": lambda rng, n: (rng.random((EXPERTS, n, 1)) < 0.5) * -1.5,
    "all": lambda rng, n: rng.random((EXPERTS, n, 1)) + 1,
    "an expert": lambda rng, n: (
        np.ones((EXPERTS, n, 1)) * (np.arange(EXPERTS) == 2)[:, None, None]
    ),
}


@pytest.mark.parametrize("tokens", [1, TOKENS, 70])
@pytest.mark.parametrize("between", ["", "reshape", "divide", "handed out"])
def test_rows_are_those_of_the_definition(between: str, tokens: int, marked: list[int]) -> None:
    rng = np.random.default_rng(tokens)
    model = experts(rng, between, tokens=tokens)
    programs = [
        ir.compile(model, threads=1), ir.compile(model, threads=2),
        ir.compile(model, threads=2, fork=False),
    ]  # fmt: skip
    x = numbers(rng, 1, tokens, WIDE)
    for make in FACTORS.values():
        inputs = [x, make(rng, tokens).astype("f4")]
        wanted = ir.run(model, inputs)
        for program in programs:
            for name, found in program(inputs).items():
                np.testing.assert_allclose(found, wanted[name], rtol=0, atol=1e-6)
    assert set(marked) == {0 if between in ("divide", "handed out") else 3}


def test_an_expert_that_nobody_asks_is_not_computed() -> None:
    rng = np.random.default_rng(4)
    net = ir.Builder()
    x = net.parameter("x", "f32", (EXPERTS, TOKENS, WIDE))
    factor = net.parameter("factor", "f32", (EXPERTS, TOKENS, 1))
    weights = numbers(rng, EXPERTS, WIDE, INNER)
    weights[3] = np.inf
    y = net.add("MatMul", "opset1", [x, net.constant(weights)])
    net.result(net.add("Multiply", "opset1", [y, factor]), name="y")
    model, asked = net.model(), np.zeros((EXPERTS, TOKENS, 1), np.float32)
    asked[2, 4] = 1
    given = [numbers(rng, EXPERTS, TOKENS, WIDE), asked]
    (found,) = ir.compile(model)(given).values()
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[2, 4], given[0][2, 4] @ weights[2], rtol=0, atol=1e-6)


def test_a_row_that_is_no_number_is_computed_and_spreads(marked: list[int]) -> None:
    rng = np.random.default_rng(3)
    model = experts(rng)
    factor = np.zeros((EXPERTS, TOKENS, 1), np.float32)
    factor[1, 4], factor[2, 5] = np.nan, 1
    x = numbers(rng, 1, TOKENS, WIDE)
    x[0, 5, 0] = np.nan
    (found,) = ir.compile(model)([x, factor]).values()
    assert np.flatnonzero(np.isnan(found).all(-1)).tolist() == [4, 5]
    assert marked == [3]


def test_factors_that_depend_on_the_products_wait_for_them(marked: list[int]) -> None:
    rng = np.random.default_rng(5)
    net = ir.Builder()
    x = net.parameter("x", "f32", (EXPERTS, TOKENS, WIDE))
    y = net.add("MatMul", "opset1", [x, net.constant(numbers(rng, EXPERTS, WIDE, INNER))])
    factor = net.add("ReduceMax", "opset1", [x, net.constant([2])], keep_dims=True)
    z = net.add("MatMul", "opset1", [y, net.constant(numbers(rng, EXPERTS, INNER, WIDE))])
    own = net.add("ReduceMax", "opset1", [z, net.constant([2])], keep_dims=True)
    net.result(net.add("Multiply", "opset1", [z, own]), name="own")
    net.result(net.add("Multiply", "opset1", [z, factor]), name="both")
    model, given = net.model(), numbers(rng, EXPERTS, TOKENS, WIDE)
    for name, found in ir.compile(model)([given]).items():
        np.testing.assert_allclose(found, ir.run(model, [given])[name], rtol=0, atol=1e-6)
    assert marked == [0]
