"""Prepared weights that processes share: the same bytes, in memory that nobody can change."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.engine.memory import shared_weights, shelved

fcntl = pytest.importorskip("fcntl")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is so on Linux only")


@pytest.fixture(autouse=True)
def _own_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def notes() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob("vinoir-*/*"))


def memories() -> set[str]:
    """The inodes of the shared memory that this process maps."""
    text = Path("/proc/self/maps").read_text()
    return set(re.findall(r"(\d+)\s+/memfd:vinoir", text))


def large(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, 1 << 20), np.float32)


def test_equal_arrays_lie_in_one_memory_and_others_do_not() -> None:
    array = large(0)
    first, second, other = shelved(array), shelved(array.copy()), shelved(large(1))
    for found, wanted in ((first, array), (second, array), (other, large(1))):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found, wanted)
        assert not found.flags.writeable
    assert len(memories()) == len(notes()) == 2
    del first, second, other, found
    gc.collect()
    assert (memories(), notes()) == (set(), [])
    small = np.ones(10)
    assert shelved(small) is small


def test_it_lies_where_large_pages_can_and_large_arrays_of_numpy_do() -> None:
    found = [shelved(large(seed)) for seed in range(5)]
    assert {array.ctypes.data % (2 << 20) for array in found} == {16}
    for seed, array in enumerate(found):
        np.testing.assert_array_equal(array, large(seed))


def test_another_process_finds_it() -> None:
    program = (
        "import sys, tempfile, re, numpy as np\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "from vinoir.ir.engine.memory import shelved\n"
        "a = np.random.default_rng(0).standard_normal((2, 1 << 20), np.float32)\n"
        "b = shelved(a)\n"
        "assert (a == b).all()\n"
        "print(re.findall(r'(\\d+)\\s+/memfd:vinoir', open('/proc/self/maps').read())[0])"
    )
    kept = shelved(large(0))
    done = subprocess.run(
        [sys.executable, "-c", program, tempfile.gettempdir()],
        capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert {done.stdout.strip()} == memories()
    assert kept.size


@pytest.mark.parametrize(
    "text",
    ["", "x", "1 2 3", "999999999 3", f"{os.getpid()} 0"],
    ids=["nothing", "letter", "three", "nobody", "itself"],
)
def test_notes_that_lead_nowhere_are_written_anew(text: str) -> None:
    array = large(0)
    kept = shelved(array)
    (note,) = notes()
    note.write_text(text)
    again = shelved(array)
    np.testing.assert_array_equal(again, array)
    assert note.read_text().split()[0] == str(os.getpid())
    assert len(memories()) == 2
    assert kept.size


def test_a_note_is_free_when_its_array_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was forked meanwhile has it open for as long as it lives."""
    opened: list[int] = []
    locked = fcntl.flock

    def forked(file: int, how: int) -> None:
        opened.append(os.dup(file))
        locked(file, how)

    monkeypatch.setattr(fcntl, "flock", forked)
    kept = shelved(large(0))
    (note,) = notes()
    with note.open() as file:
        locked(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused, where it is not
    for other in opened:
        os.close(other)
    assert kept.size


def test_where_others_can_write_nothing_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / f"vinoir-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    array = large(0)
    assert shelved(array) is array


@pytest.mark.parametrize("rows", [1, 16])
def test_programs_share_their_weights_only_where_it_is_wished(rows: int) -> None:
    builder = ir.Builder("m")
    x = builder.parameter("x", "f32", [rows, 1024])
    rng = np.random.default_rng(0)
    # Turned, so that they are laid out anew wherever the file's bytes happen to begin.
    w = builder.constant(rng.standard_normal((2048, 1024), np.float32))
    builder.result(builder.add("MatMul", "opset1", [x, w], transpose_b=True))
    model = builder.model()
    given = rng.standard_normal((rows, 1024), np.float32)
    alone = ir.compile(ir.loads(*ir.dumps(model)), threads=1)
    expected = alone([given])[0]
    assert not memories()
    with shared_weights():
        program = ir.compile(ir.loads(*ir.dumps(model)), threads=1)
    assert len(memories()) == 1
    np.testing.assert_array_equal(program([given])[0], expected)
