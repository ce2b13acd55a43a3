"""Arrays that nobody reads any more rest until others have come, and hold but little."""

from __future__ import annotations

import numpy as np
from vinoir import ir
from vinoir.ir.engine.memory import Resting, resting


def test_the_last_few_rest() -> None:
    kept = Resting()
    for size in (1 << 18, 1 << 16, 1 << 17):
        for _ in range(50):
            kept.add(np.empty(size, np.float32))
            assert kept.nbytes == sum(array.nbytes for array in kept._arrays)
            assert kept.nbytes <= resting.MOST
    assert {array.size for array in kept._arrays} == {1 << 17}


def test_neither_large_arrays_nor_views_rest() -> None:
    kept = Resting()
    kept.add(np.empty(resting.LARGEST + 1, np.uint8))
    kept.add(np.empty(1 << 24, np.uint8)[:1000])
    assert kept.nbytes == 0


def test_programs_whose_sizes_depend_on_values_keep_little() -> None:
    """What a call has made is let go of when others have come, whatever sizes they have."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (300, 64))
    places = net.add("NonZero", "opset3", [x], output_type="i64")
    rows = net.add("Gather", "opset8", [places, *map(net.constant, (np.int64(0), np.int64(0)))])
    taken = net.add("Gather", "opset8", [x, rows, net.constant(np.int64(0))])
    for _ in range(3):
        taken = net.add("Multiply", "opset1", [taken, taken])
    net.result(taken, name="y")
    model = net.model()
    program = ir.compile(model, threads=1)
    for count in (2, 50, 200, 3, 0, 100):
        given = np.zeros((300, 64), np.float32)
        given[:count, :20] = 1.5
        right = ir.run(model, [given])["y"]
        for _ in range(3):
            np.testing.assert_array_equal(program([given])["y"], right)
        (planned,) = program._plans.values()
        assert planned is not None
        assert planned.outside._resting.nbytes <= resting.MOST
    assert planned.outside._resting.nbytes
