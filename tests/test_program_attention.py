"""Attention and normalisations of sizes that networks have give what their definitions give."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import attention, matrices
from vinoir.schemas import Array


def agree(model: ir.Model, inputs: list[Array], within: float = 3e-6) -> None:
    """A program gives what the definitions give, whoever works, bit for bit the same."""
    wanted = ir.run(model, inputs)
    answers = [ir.compile(model, threads=threads)(inputs) for threads in (1, 2)]
    threaded = ir.compile(model, threads=2, fork=False)(inputs)
    for name, expected in wanted.items():
        np.testing.assert_array_equal(np.isnan(answers[0][name]), np.isnan(expected))
        scale = max(float(np.nanmax(np.abs(expected))), 1e-30)
        assert np.nanmax(np.abs(answers[0][name] - expected)) <= within * scale
        np.testing.assert_array_equal(answers[0][name], answers[1][name])
        np.testing.assert_array_equal(answers[0][name], threaded[name])


def attending(
    seed: int, sizes: tuple[int, int, int, int], heads: int, mask: str, large: float
) -> tuple[ir.Model, list[Array]]:
    """Queries, keys and values as they lie side by side in rows, and attention of them."""
    rows, keys, depth, wide = sizes
    rng = np.random.default_rng(seed)
    net = ir.Builder()
    cut, inputs = [], []
    for name, length, each in (("q", rows, depth), ("k", keys, depth), ("v", keys, wide)):
        inputs.append((rng.standard_normal((1, length, heads, each)) * large).astype("f4"))
        given = net.parameter(name, "f32", inputs[-1].shape)
        given = net.add("Abs", "opset1", [given]) if name == "k" else given
        cut.append(net.add("Transpose", "opset1", [given, net.constant([0, 2, 1, 3])]))
    if mask == "seen":
        seen = rng.random((1, 1, rows, keys)) < 0.6
        seen[..., 0] = True
        cut.append(net.constant(seen))
    elif mask == "added":
        cut.append(net.parameter("m", "f32", (rows, keys)))
        inputs.append(rng.standard_normal((rows, keys)).astype("f4"))
    net.result(net.add("ScaledDotProductAttention", "opset13", cut, causal=mask == "causal"))
    return net.model(), inputs


@pytest.mark.parametrize("large", [1.0, 30.0])
@pytest.mark.parametrize("mask", ["", "seen", "added", "causal"])
@pytest.mark.parametrize(
    "sizes",
    [(197, 197, 64, 64), (49, 49, 32, 32), (400, 77, 64, 40), (30, 130, 16, 24), (25, 700, 64, 64),
     (40, 40, 600, 8), (23, 50, 16, 16), (100, 1, 8, 8), (700, 1500, 64, 64), (650, 1100, 40, 80)],
)  # fmt: skip
def test_attention_of_any_size(sizes: tuple[int, int, int, int], mask: str, large: float) -> None:
    # Powers of large scores are far apart, whichever way they are found.
    agree(*attending(1, sizes, 3, mask, large), within=1e-5 if large == 1 else 3e-4)


@settings(max_examples=15, deadline=None)
@given(
    st.tuples(*[st.integers(1, 150)] * 2, *[st.integers(1, 70)] * 2),
    st.integers(1, 3), st.sampled_from(["", "seen", "added", "causal"]), st.integers(0, 9),
)  # fmt: skip
def test_attention_drawn(
    sizes: tuple[int, int, int, int], heads: int, mask: str, seed: int
) -> None:
    agree(*attending(seed, sizes, heads, mask, 1.0), within=1e-5)


def test_rows_without_numbers_stay_alone() -> None:
    model, inputs = attending(2, (60, 131, 16, 16), 2, "", 1.0)
    inputs[0][0, 7, 1, 3] = np.nan
    found = ir.compile(model, threads=1)(inputs)
    (answer,) = found.values()
    assert np.argwhere(np.isnan(answer).any(-1)).tolist() == [[0, 1, 7]]


def test_products_are_cut_where_small_ones_are_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    q = np.zeros((2, 197, 64), np.float32)
    monkeypatch.setattr(attention, "cuts", lambda taken: 1)
    assert attention._sizes(q, 197, 64) == (66, 197, 68)
    assert attention._sizes(q[:, :20], 197, 64) is None  # too few
    assert attention._sizes(q, 2000, 64) == (100, 128, 4)  # too many keys for all
    assert attention._sizes(q, 2000, 80) == (100, 128, 0)  # BLAS would pad rows of these
    assert attention._sizes(q.swapaxes(1, 2), 197, 64) is None  # BLAS would copy it
    monkeypatch.setattr(attention, "cuts", lambda taken: 0)
    assert attention._sizes(q, 197, 64) is None


@pytest.mark.parametrize("other", ["last", "rows", "all"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1, 197, 384), [2]), ((2, 7, 9, 33), [3]), ((1, 1, 768), [-1]), ((2, 3, 50, 64), [2, 3]),
     ((2, 8, 16, 16), [1, 2, 3]), ((2, 8, 5, 6), [1]), ((4, 1000, 96), [2]), ((300, 300), [1]),
     ((3, 2, 400, 100), [1, 3])],
)  # fmt: skip
def test_what_follows_a_normalisation(shape: tuple[int, ...], axes: list[int], other: str) -> None:
    rng = np.random.default_rng(len(shape))
    sizes = {"last": shape[-1:], "rows": (*shape[:-1], 1), "all": shape}[other]
    net = ir.Builder()
    x = net.parameter("x", "f32", shape)
    factor = net.constant(rng.standard_normal(sizes).astype("f4"))
    y = net.add(
        "MVN", "opset6", [x, net.constant(axes)],
        normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt",
    )  # fmt: skip
    y = net.add("Multiply", "opset1", [y, factor])
    net.result(net.add("Gelu", "opset7", [net.add("Add", "opset1", [y, x])]))
    agree(net.model(), [(rng.standard_normal(shape) + 3).astype("f4")])


def test_plans_share_weights_that_begin_on_cache_lines() -> None:
    source = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    blocks = source.reshape(64, 2, 48).transpose(1, 0, 2)
    first = matrices._shared(source, blocks, source.strides)
    second = matrices._shared(source, blocks, source.strides)
    assert np.shares_memory(first, second)
    np.testing.assert_array_equal(second, blocks)
    assert first.ctypes.data % 64 == 0
    before = len(matrices._in_use)
    part = second[1:]
    del first, second
    gc.collect()
    assert len(matrices._in_use) == before  # parts keep it
    del part
    gc.collect()
    assert len(matrices._in_use) == before - 1
