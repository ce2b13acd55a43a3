"""Time within a layer: where it is looked at, and which layer is told to have taken it."""

from __future__ import annotations

import time
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.document import Model
from vinoir.ir.execution import fill
from vinoir.layers import sequence
from vinoir.layers.budget import budget, forget, within
from vinoir.layers.condition import BucketizeV3
from vinoir.schemas import LimitError

#: How a program is made: with helpers, alone, with threads.
PROGRAMS: dict[str, dict[str, Any]] = {
    "forks": {"threads": 2},
    "alone": {"threads": 1},
    "threads": {"threads": 2, "fork": False},
}


def attention(places: int) -> tuple[Model, list[np.ndarray]]:
    """Attention of one head over many places."""
    net = ir.Builder("m")
    x = net.parameter("x", "f32", [1, 1, places, 8])
    net.result(ir.ops.ScaledDotProductAttention(x, x, x, causal=False, name="all"), name="y")
    return net.model(), [np.random.default_rng(0).random((1, 1, places, 8), np.float32)]


def test_time_is_looked_at_within_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    done, shares = list[int](), sequence.shares
    monkeypatch.setattr(sequence, "shares", lambda *given: done.append(1) or shares(*given))
    model, given = attention(10_000)
    ir.run(model, given)
    parts = len(done)
    assert parts > 50
    done.clear()
    with pytest.raises(LimitError, match=r"more than 0\.05 seconds") as caught:
        ir.run(model, given, max_seconds=0.05)
    assert caught.value.where.name == "all"
    assert len(done) < parts


@pytest.mark.parametrize("how", PROGRAMS.values(), ids=list(PROGRAMS))
def test_time_is_looked_at_after_the_only_step_of_a_program(how: dict[str, Any]) -> None:
    model, given = attention(10_000)
    program = ir.compile(model, **how)
    wanted = program(given)[0]
    program.max_seconds = 0.02
    for _ in range(2):
        with pytest.raises(LimitError, match=r"more than 0\.02 seconds") as caught:
            program(given)
        assert caught.value.where.name == "all"
    program.max_seconds = None
    np.testing.assert_array_equal(program(given)[0], wanted)


def test_time_is_looked_at_while_causal_attention_is_prepared() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", [1, 1, 12_000, 8])
    net.result(ir.ops.ScaledDotProductAttention(x, x, x, causal=True, name="all"), name="y")
    model = net.model()
    with pytest.raises(LimitError, match=r"more than 0\.05 seconds"):
        ir.compile(model, max_seconds=0.05)
    with pytest.raises(LimitError, match="not enough memory") as caught:
        ir.compile(model, max_memory=50_000_000)
    assert caught.value.where.name == "all"


@pytest.mark.parametrize("compiled", [False, True])
def test_the_layer_is_told_that_took_the_time(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(self: BucketizeV3, data: np.ndarray, buckets: np.ndarray) -> tuple[np.ndarray, ...]:
        time.sleep(0.6)
        return (np.zeros(data.shape, np.int64),)

    monkeypatch.setattr(BucketizeV3, "run", slow)
    net = ir.Builder("m")
    x = net.parameter("x", "f32", [8])
    net.result(ir.ops.Bucketize(x, np.ones(1, np.float32), name="slow"), name="y")
    call = (
        ir.compile(net.model(), max_seconds=0.5)
        if compiled
        else partial(ir.run, net.model(), max_seconds=0.5)
    )
    with pytest.raises(LimitError, match=r"more than 0\.5 seconds are .*, [\d.]+ of") as caught:
        call([np.ones(8, np.float32)])
    assert caught.value.where.name == "slow"


@pytest.mark.parametrize("kind", ["f32", "i64", "boolean", "f16"])
def test_numbers_for_inputs_are_drawn_in_pieces_within_the_time(kind: str) -> None:
    net = ir.Builder("m")
    shape = (3, 700_001)
    net.result(net.parameter("x", kind, shape), name="y")
    (parameter,) = net.model().parameters
    made = fill(parameter, "random", np.random.default_rng(3))
    rng = np.random.default_rng(3)
    wanted = {
        "f32": lambda: rng.standard_normal(shape).astype(np.float32),
        "f16": lambda: rng.standard_normal(shape).astype(np.float16),
        "i64": lambda: rng.integers(0, 10, shape),
        "boolean": lambda: rng.integers(0, 2, shape).astype(np.bool_),
    }[kind]()
    assert made.dtype == wanted.dtype
    np.testing.assert_array_equal(made, wanted)
    with within(max_seconds=0), pytest.raises(LimitError, match="more than 0 seconds"):
        fill(parameter, "random", rng)


@pytest.mark.parametrize("name", ["Bucketize", "SearchSorted"])
@pytest.mark.parametrize("right", [False, True])
def test_places_among_ends_are_found_in_pieces(name: str, right: bool) -> None:
    rng = np.random.default_rng(0)
    data, ends = rng.integers(0, 99, (3, 500_000)), np.sort(rng.integers(0, 99, 50))
    net = ir.Builder("m")
    x = net.parameter("x", "i64", data.shape)
    if name == "Bucketize":
        found = ir.ops.Bucketize(x, ends, with_right_bound=not right)
    else:
        found = ir.ops.SearchSorted(ends, x, right_mode=right)
    net.result(found, name="y")
    made = ir.run(net.model(), [data])[0]
    counted = (ends <= data[..., None]) if right else (ends < data[..., None])
    np.testing.assert_array_equal(made, counted.sum(-1))


def test_a_copy_of_the_process_is_in_no_call() -> None:
    def copied() -> bool:
        forget()
        return budget() is not outer

    with within(max_seconds=9) as outer:
        assert copy_context().run(copied)
        assert budget() is outer


def test_programs_whose_first_call_is_long_over_go_on() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", [64, 4096])
    net.result(ir.ops.Elu(ir.ops.Selu(x, 1.67, 1.05), alpha=1.0), name="y")
    model, given = net.model(), np.linspace(-3, 3, 64 * 4096, dtype=np.float32).reshape(64, 4096)
    program, wanted = ir.compile(model, max_seconds=0.5, threads=2), ir.run(model, [given])[0]
    for _ in range(8):
        np.testing.assert_allclose(program([given])[0], wanted, rtol=1e-5, atol=1e-6)
        time.sleep(0.1)
