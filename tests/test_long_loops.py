"""Calls on arrays of which one repeats what the other has not: NumPy's inner loops are long."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vinoir import ir
from vinoir.ir.engine.kernels import calls

SIZES = st.lists(st.sampled_from([1, 1, 2, 3, 4, 7, 60]), min_size=1, max_size=4)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of one shape, either of which may repeat along some axes."""
    shape = draw(SIZES)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    found = []
    for _ in range(2):
        own = [draw(st.sampled_from([1, size])) for size in shape]
        found.append(np.broadcast_to(rng.standard_normal(own, np.float32), shape))
    return found[0], found[1]


@given(both=pairs())
@settings(max_examples=200, deadline=None)
def test_what_is_called_gives_what_one_call_does(both: tuple[np.ndarray, np.ndarray]) -> None:
    target = np.full(both[0].shape, np.nan, np.float32)
    calls.called(np.subtract, *both, target)()
    np.testing.assert_array_equal(target, both[0] - both[1])


@pytest.mark.parametrize(
    ("shapes", "length"),
    [
        ([(5, 1, 2), (5, 3, 2)], 2),
        ([(5, 3, 2), (5, 3, 2)], 30),
        ([(5, 1, 1), (5, 3, 2)], 6),
        ([(1, 3, 2), (5, 3, 2)], 6),
        ([(1, 1, 1), (5, 3, 2)], 30),
        ([(5, 3, 1), (1, 3, 2)], 2),
    ],
)
def test_the_length_of_inner_loops(shapes: list[tuple[int, ...]], length: int) -> None:
    whole = np.broadcast_shapes(*shapes)
    arrays = [np.broadcast_to(np.zeros(shape, np.float32), whole) for shape in shapes]
    assert calls.inner_run(*arrays, np.zeros(whole, np.float32)) == length


def test_pairs_beside_many_are_taken_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(function: object, *arrays: np.ndarray) -> calls.Part:
        found = called(function, *arrays)
        seen.append((arrays[0].shape, found))
        return found

    called = calls.called
    monkeypatch.setattr("vinoir.ir.engine.kernels.blocks.called", watched)
    net = ir.Builder()
    shapes = (256, 1, 1, 2), (1, 7, 7, 2)
    given = [net.parameter(f"x{place}", "f32", shape) for place, shape in enumerate(shapes)]
    net.result(net.add("Add", "opset1", given), name="y")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
    (found,) = ir.compile(net.model(), threads=1)(arrays).values()
    np.testing.assert_array_equal(found, arrays[0] + arrays[1])
    assert seen
    assert all(shape[-1] == 2 and not hasattr(part, "func") for shape, part in seen)
