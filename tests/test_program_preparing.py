"""What prepares a program on several threads does all of it, and tells what went wrong."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine.workers import side_by_side


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_call_is_made_once(threads: int) -> None:
    made: list[int] = []
    side_by_side((partial(made.append, number) for number in range(40)), threads)
    assert sorted(made) == list(range(40))


def test_two_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=30)
    side_by_side([meeting.wait, meeting.wait], 2)
    assert not meeting.broken


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_when_all_rest(threads: int) -> None:
    before = threading.active_count()

    def fail(number: int) -> None:
        if number == 3:
            raise MemoryError("no room for the third")

    with pytest.raises(MemoryError, match="the third"):
        side_by_side((partial(fail, number) for number in range(9)), threads)
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_constants_in_half_precision_are_what_they_were(threads: int) -> None:
    rng = np.random.default_rng(5)
    net = ir.Builder()
    last = net.parameter("x", "f32", (3, 40))
    for _ in range(4):
        weights = net.constant((rng.standard_normal((40, 40)) / 6).astype("f2"))
        wide = net.add("Convert", "opset1", [weights], data={"destination_type": "f32"})
        ways = {"transpose_a": False, "transpose_b": True}
        last = net.add("MatMul", "opset1", [last, wide], data=ways)
    net.result(last, name="y")
    model = net.model()
    given = rng.standard_normal((3, 40)).astype("f4")
    wanted = ir.run(model, [given])["y"]
    found = ir.compile(model, threads=threads)([given])["y"]
    np.testing.assert_allclose(
        found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max(), strict=True
    )
