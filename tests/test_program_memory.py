"""Memory of plans: let go of at once, laid side by side, there in forked processes."""

from __future__ import annotations

import gc
import os
import signal
import time
import weakref

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine import kept_plans
from vinoir.ir.engine.kernels.blocks import Room
from vinoir.ir.engine.memory import private, slabs
from vinoir.layers.budget import budget, within
from vinoir.schemas import Array, LimitError


def product() -> ir.Model:
    net = ir.Builder("product")
    x = net.parameter("x", "f32", "?,64")
    weights = np.random.default_rng(3).standard_normal((64, 96)).astype("f4")
    net.result(
        net.add("Gelu", "opset7", [net.add("MatMul", "opset1", [x, net.constant(weights)])])
    )
    return net.model()


def held(program: ir.Program) -> list[weakref.ref[Array]]:
    """The arena and the weights of the last plan."""
    planned = next(reversed(program._plans.values()))
    assert planned is not None
    arrays = [value.store for node in planned.plan.nodes for value in node.outputs]
    found = [array if array.base is None else array.base for array in arrays if array is not None]
    assert found
    return [weakref.ref(array) for array in found if isinstance(array, np.ndarray)]


def test_plans_that_are_dropped_wait_for_no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_plans, "KEPT", 1)
    monkeypatch.setattr(kept_plans.KeptPlans, "is_hasty", lambda self, pattern: False)
    program = ir.compile(product(), threads=1)
    gc.collect()
    gc.disable()
    try:
        program([np.ones((300, 64), "f4")])
        first = held(program)
        program([np.ones((200, 64), "f4")])
        second = held(program)
        assert first
        assert all(array() is None for array in first)
        assert all(array() is not None for array in second)
        del program
        assert all(array() is None for array in second)
    finally:
        gc.enable()


@pytest.mark.parametrize("fork", [False, True])
def test_a_program_that_is_dropped_waits_for_no_collection(fork: bool) -> None:
    """Its helpers and its memory go with it: nothing that ran for it holds it."""
    program = ir.compile(product(), threads=2, fork=fork)
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            program([np.ones((20_000, 64), "f4")])
        planned = next(iter(program._plans.values()))
        assert planned is not None
        assert planned.team._helpers is not None
        left = [weakref.ref(program), weakref.ref(planned), weakref.ref(planned.team._helpers)]
        left += held(program)
        del program, planned
        # Without the interpreter's lock each thread lets go of what others held a little later.
        deadline = time.monotonic() + 5
        while any(one() is not None for one in left) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [type(one()).__name__ for one in left] == ["NoneType"] * len(left)
    finally:
        gc.enable()


def test_weights_lie_side_by_side_while_a_plan_is_made() -> None:
    with slabs.together():
        one, other = slabs.side_by_side(100), slabs.side_by_side(200)
        large = slabs.side_by_side(slabs.LARGE)
        assert one.base is other.base
        assert other.ctypes.data - one.ctypes.data == 128
        assert large.base is not one.base
        one[:], other[:] = 1, 2
        assert one.sum() == 100
    after = slabs.side_by_side(100)
    assert after.base is not one.base
    assert not any(array.ctypes.data % slabs.LINE for array in (one, other, large, after))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_waits_for_no_thread_that_is_not_there() -> None:
    with slabs._slabs._lock:  # as another thread may have it
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            with slabs.together():
                size = slabs.side_by_side(10).size
            os._exit(0 if size == 10 else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("fork", [False, True])
def test_what_a_call_hands_out_is_counted_beside_the_arena(fork: bool) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,8,512,512")
    convolution = ir.ops.Convolution(
        x, np.full((8, 8, 7, 7), 1 / 64, np.float32), strides=(1, 1), dilations=(1, 1),
        pads_begin=(3, 3), pads_end=(3, 3),
    )  # fmt: skip
    net.result(convolution, name="y")
    model, tensor = net.model(), 4 * 8 * 512 * 512
    # Its input and its output lie in the arena, and each call gives a copy.
    with pytest.raises(LimitError, match=rf"{tensor} bytes are needed beside the"):
        ir.compile(model, threads=2, fork=fork, max_memory=int(2.9 * tensor))
    program = ir.compile(model, threads=2, fork=fork, max_memory=5 * tensor)
    (found,) = program([np.ones((1, 8, 512, 512), np.float32)]).values()
    np.testing.assert_allclose(found[0, 0, 9, 9], 8 * 49 / 64, rtol=1e-5)


def test_rooms_of_kernels_are_counted_once_however_often_they_are_taken() -> None:
    room, part = Room(private), 1_000_000
    with within(max_memory=4 * 3 * part + 1000):
        for _ in range(5):
            room.reset()
            room.take(0, part)
            room.take(0, part)
        assert 8 * part <= budget().held < 8 * part + 1000
        room.take(0, part)
        with pytest.raises(LimitError):
            room.take(0, part)
