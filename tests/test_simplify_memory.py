"""Large constants that rules make lie in files without names until the model is written."""

from __future__ import annotations

import errno
import pickle
import tempfile
import tracemalloc
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from vinoir import ir
from vinoir.ir.storage import map_of
from vinoir.ir.surgery import scratch as scratches
from vinoir.ir.surgery.scratch import Scratch

Weights = NDArray[np.float32]
#: A weight's sides, of 16 MB, and how many there are.
SIDE, COUNT = 2048, 6
ROW = np.linspace(0.5, 2, SIDE, dtype="f4")


def scaled(net: ir.Builder, x: ir.Output, w: ir.Output) -> ir.Output:
    y = net.add("MatMul", "opset1", [x, w], transpose_a=False, transpose_b=False)
    return net.add("Multiply", "opset1", [y, net.constant(ROW[None])])


def computed(net: ir.Builder, x: ir.Output, w: ir.Output) -> ir.Output:
    w = net.add("Multiply", "opset1", [w, net.constant(ROW[None])])
    return net.add("MatMul", "opset1", [x, w], transpose_a=False, transpose_b=False)


def turned(net: ir.Builder, x: ir.Output, w: ir.Output) -> ir.Output:
    w = net.add("Transpose", "opset1", [w, net.constant([1, 0])])
    return net.add("Add", "opset1", [x, w])


@pytest.mark.parametrize(
    ("step", "meant"),
    [(scaled, lambda w: w * ROW), (computed, lambda w: w * ROW), (turned, lambda w: w.T)],
)
def test_large_new_constants_do_not_fill_the_memory(
    tmp_path: Path,
    step: Callable[[ir.Builder, ir.Output, ir.Output], ir.Output],
    meant: Callable[[Weights], Weights],
) -> None:
    net = ir.Builder("large")
    x = net.parameter("x", "f32", f"1,{SIDE}")
    given = []
    for number in range(COUNT):
        weights = np.zeros((SIDE, SIDE), "f4")
        weights[number, 1:] = 1.5
        given.append(weights)
        x = net.add("ReLU", "opset1", [step(net, x, net.constant(weights))])
    net.result(x, name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    tracemalloc.start()
    try:
        new, done = ir.simplify(tmp_path / "m.xml")
        ir.write(new, tmp_path / "n.xml")
        ir.write(deepcopy(new), tmp_path / "copy.xml")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert done.layers_after == 3 * COUNT + 2
    # Some are held in memory, until they are more than usual networks have.
    assert most < 64 * 2**20 < COUNT * SIDE * SIDE * 4
    written = [x.value for x in ir.read(tmp_path / "n.xml").constants if x.value.size > SIDE]
    for value, weights in zip(written, given, strict=True):
        np.testing.assert_array_equal(value, meant(weights))
    assert (tmp_path / "n.bin").read_bytes() == (tmp_path / "copy.bin").read_bytes()


def large(number: int = 1) -> Weights:
    return np.full((40, 1000), number, "f4")


def test_what_is_in_a_file_is_a_value_like_any_other() -> None:
    with Scratch() as scratch:
        kept = scratch.keep(large().T)
        assert map_of(kept) is not None
        assert not kept.flags.writeable
        assert kept.flags.c_contiguous
        assert scratch.keep(kept) is kept, "it is there"
        assert map_of(scratch.keep(np.ones(5, "f4"))) is None, "small ones stay in memory"
    layer = ir.Layer("Const", "opset1", "c")
    layer.set_value(kept)
    for copy in (deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(copy.value, large().T)
    assert map_of(deepcopy(layer).value) is map_of(kept)


def test_memory_holds_the_first_values() -> None:
    with Scratch(held=large().nbytes) as scratch:
        first, second = large(1), large(2)
        assert scratch.keep(first) is first
        assert map_of(scratch.keep(second)) is not None


def test_a_file_goes_with_its_last_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> int:
        return Path("/proc/self/maps").read_text().count("(deleted)")

    if not Path("/proc/self/maps").exists():
        pytest.skip("maps are told by /proc")
    monkeypatch.setattr(scratches, "_ROOM", 1)
    before = files()
    with Scratch() as scratch:
        value = scratch.keep(large())
        for number in range(5):
            value = scratch.put(value.shape, value.dtype, [value + np.float32(number)])
            # That of the value, and that which was the last to be made.
            assert files() <= before + 2
    assert files() == before + 1
    del value
    assert files() == before


def test_values_stay_in_memory_where_no_file_can_be_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with Scratch() as scratch:
        kept = scratch.keep(large().T)
    assert map_of(kept) is None
    np.testing.assert_array_equal(kept, large().T)


@pytest.mark.parametrize("held", [0, 1 << 30])
@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_pieces_that_do_not_make_the_value_are_a_mistake(held: int, count: int) -> None:
    """Nothing is handed out that nobody wrote."""
    pieces = np.ones((count, 20_000), "f4")
    with Scratch(held) as scratch, pytest.raises((AssertionError, ValueError)):
        scratch.put((4, 20_000), pieces.dtype, iter(pieces))


@pytest.mark.parametrize("after", [0, 1, 3])
def test_values_stay_in_memory_when_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    write, calls = Scratch._write, [0]

    def fails(self: Scratch, at: int, plain: Any) -> None:
        calls[0] += 1
        if calls[0] > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, at, plain)

    monkeypatch.setattr(Scratch, "_write", fails)
    whole = np.arange(80_000, dtype="f4").reshape(4, 20_000)
    with Scratch() as scratch:
        made = scratch.put(whole.shape, whole.dtype, iter(whole))
        np.testing.assert_array_equal(made, whole)
        assert map_of(made) is None
        again = scratch.put(whole.shape, whole.dtype, iter(whole))
    assert calls[0] == after + 1, "it is not tried again"
    np.testing.assert_array_equal(again, whole)
