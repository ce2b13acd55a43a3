"""Standard streams that are closed, that hold few signs, or that nobody reads to the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_folder import network
from vinoir import ir

if os.name != "posix":
    pytest.skip("needs a POSIX shell", allow_module_level=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ir.write(network(), tmp_path / "model.xml")
    ir.write(network(), tmp_path / "日.xml")
    text = (tmp_path / "model.xml").read_text("utf-8")
    assert 'kernel="' in text
    (tmp_path / "typo.xml").write_text(text.replace('kernel="', 'kernal="'), "utf-8")
    (tmp_path / "typo.bin").write_bytes((tmp_path / "model.bin").read_bytes())
    return tmp_path


def shell(folder: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """What a line of a shell gives, in which VINOIR is the program."""
    program = f'"{sys.executable}" -m vinoir.ir'
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | more
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line.replace('VINOIR', program)}"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("VINOIR copy model.xml -o new.xml 2>&-", 0),
        ("VINOIR check model.xml 2>&-", 0),
        ("VINOIR run model.xml >&-", 0),
        ("VINOIR show model.xml >&- 2>&- <&-", 0),
        ("VINOIR show - <&-", 3),
    ],
)
def test_streams_that_are_closed(line: str, code: int, folder: Path) -> None:
    done = shell(folder, line)
    assert done.returncode == code, done.stderr
    assert "bug" not in done.stderr
    if "copy" in line:
        assert ir.diff(folder / "new.xml", folder / "model.xml").found == []


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_signs_that_an_output_does_not_have(encoding: str, folder: Path) -> None:
    done = shell(folder, "VINOIR diff model.xml typo.xml", PYTHONIOENCODING=encoding)
    assert done.returncode == 1, done.stderr
    first, *rest = done.stdout.splitlines()
    arrow = "→" if encoding == "ascii" else "->"  # click writes UTF-8 where ASCII is asked for
    assert first == f"model.xml {arrow} typo.xml: 2 differences"
    assert f"    kernel: 2, 2 {arrow} nothing" in rest
    assert "opset14 ->" not in done.stdout  # the operation is the same
    done = shell(folder, "VINOIR show 日.xml", PYTHONIOENCODING="cp1252")
    assert done.returncode == 0, done.stderr
    assert r"\u65e5.xml" in done.stdout


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("VINOIR show model.xml --layers | head -c 1", 0),
        ("VINOIR schema output | head -c 1", 0),  # more than a pipe holds
        ("VINOIR ops --json | head -c 1", 0),
    ],
)
def test_who_reads_no_further_makes_no_failure(line: str, code: int, folder: Path) -> None:
    done = shell(folder, line)
    assert done.returncode == code, done.stderr
    assert "Broken pipe" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [("show none.xml", 3), ("show model.xml --layer none", 2), ("show --none", 2)],
)
def test_a_traceback_changes_no_exit_code(words: str, code: int, folder: Path) -> None:
    done = shell(folder, f"VINOIR {words} --debug")
    assert done.returncode == code
    assert "Traceback" in done.stderr
    assert shell(folder, f"VINOIR {words}").returncode == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_an_output_without_room_is_told(folder: Path) -> None:
    done = shell(folder, "VINOIR show model.xml > /dev/full")
    assert done.returncode == 3
    assert "No space left on device" in done.stderr
    assert "Exception ignored" not in done.stderr
