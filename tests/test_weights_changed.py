"""A .bin that another program writes to while a model holds it."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import UnreadableError

SIZE = 200_000
USES: dict[str, Callable[[Any], object]] = {
    "run": lambda m: ir.run(m, [np.ones(SIZE, np.float32)]),
    "compile": ir.compile,
    "check": ir.check,
    "infer": ir.infer,
    "dumps": ir.dumps,
    "write": lambda m: ir.write(m, Path(m.path).with_name("other.xml")),
    "pickle": pickle.dumps,
}


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A model of one long constant."""
    net = ir.Builder("m")
    x = net.parameter("x", "f32", [SIZE])
    net.result(ir.ops.Add(x, net.constant(np.arange(SIZE, dtype=np.float32), name="w")), name="y")
    ir.write(net.model(), tmp_path / "a.xml")
    return tmp_path / "a.xml"


def rewrite(path: Path, content: bytes) -> None:
    """What programs do that do not replace files."""
    with open(path, "r+b") as file:
        file.truncate(len(content))
        file.write(content)
    later = os.stat(path).st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(later, later))


@pytest.mark.parametrize("use", USES.values(), ids=list(USES))
@pytest.mark.parametrize("size", [4 * SIZE, 400])
def test_weights_that_were_rewritten_in_place_are_refused(
    pair: Path, use: Callable[[Any], object], size: int
) -> None:
    model = ir.read(pair)
    use(model)
    rewrite(pair.with_suffix(".bin"), bytes(size))
    with pytest.raises(UnreadableError, match="was changed after it was read") as caught:
        use(model)
    assert caught.value.where.file == str(pair.with_suffix(".bin"))
    assert caught.value.hint == "read it again"
    assert f"{4 * SIZE} bytes then, {size} now" in caught.value.message
    if size != 400:
        use(ir.read(pair))


def test_weights_that_were_cut_do_not_end_the_process(pair: Path) -> None:
    text = (
        "import os, sys, numpy as np\nfrom vinoir import ir\nfrom vinoir.schemas import IRError\n"
        f"model = ir.read({str(pair)!r})\nos.truncate({str(pair.with_suffix('.bin'))!r}, 0)\n"
        f"try: ir.run(model, [np.ones({SIZE}, np.float32)])\n"
        "except IRError as error: print(error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"was changed after it was read: {4 * SIZE} bytes then, 0 now\n"


@pytest.mark.parametrize("size", [4 * SIZE, 400])
@pytest.mark.parametrize("exact", [False, True])
def test_a_program_that_was_called_before_refuses_them(pair: Path, size: int, exact: bool) -> None:
    x = np.zeros(SIZE, np.float32)
    program = ir.compile(ir.read(pair), threads=1, exact=exact)
    for _ in range(3):
        program([x])
    rewrite(pair.with_suffix(".bin"), bytes(size))
    with pytest.raises(UnreadableError, match="was changed after it was read"):
        program([x])


def test_a_program_plans_for_new_sizes_only_with_the_weights_that_were_read(pair: Path) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", ["?", SIZE])
    net.result(ir.ops.Add(x, net.constant(np.arange(SIZE, dtype=np.float32))), name="y")
    ir.write(net.model(), pair)
    program = ir.compile(ir.read(pair))
    program([np.ones((1, SIZE), np.float32)])
    rewrite(pair.with_suffix(".bin"), bytes(400))
    with pytest.raises(UnreadableError, match="was changed after it was read"):
        program([np.ones((3, SIZE), np.float32)])


def test_files_that_were_replaced_renamed_or_removed_are_still_mapped(pair: Path) -> None:
    bin_path = pair.with_suffix(".bin")
    for change in (
        lambda: shutil.copy(bin_path, pair.with_name("copy")).replace(bin_path),
        lambda: os.chmod(bin_path, 0o600),
        lambda: os.link(bin_path, pair.with_name("link")),
        lambda: bin_path.unlink(),
    ):
        model = ir.read(pair)
        change()
        for use in USES.values():
            use(model)


def test_weights_that_our_own_writer_makes_longer_are_what_they_were(pair: Path) -> None:
    edited, other = ir.read(pair), ir.read(pair)
    inode = os.stat(pair.with_suffix(".bin")).st_ino
    edited.layer("w").value = np.full(SIZE, 3, np.float32)
    ir.write(edited, pair, keep_unused=True)
    assert os.stat(pair.with_suffix(".bin")).st_ino == inode
    for model in (edited, other):
        for use in USES.values():
            use(model)


def test_a_pickled_model_notices_bytes_whose_time_was_kept(pair: Path) -> None:
    data = pickle.dumps(ir.read(pair))
    before = os.stat(pair.with_suffix(".bin"))
    os.chmod(pair.with_suffix(".bin"), 0o600)
    assert pickle.loads(data).layer("w").value[-1] == SIZE - 1
    with open(pair.with_suffix(".bin"), "r+b") as file:
        file.seek(1000)
        file.write(bytes(1000))
    os.utime(pair.with_suffix(".bin"), ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UnreadableError, match="is not what it was when the model"):
        pickle.loads(data)
