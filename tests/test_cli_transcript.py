"""Forty things that people do with a model file, as they would type them, and what they see.

``cli_transcript.txt`` holds the commands, each behind a sign of the shell, with what they print
on both outputs and their exit code where it is not 0; numbers that vary from machine to machine
are masked. After a change that is meant, ``python tests/test_cli_transcript.py`` writes it anew:
read what changed.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

TRANSCRIPT = Path(__file__).with_name("cli_transcript.txt")
#: What varies: times, rates, measured memory, errors of rounding, long fractions.
VARYING = [
    (re.compile(r"-?\d+(\.\d+)?e[-+]\d+"), "*"),
    (re.compile(r"\d+\.\d+ ms"), "* ms"),
    (re.compile(r"-?\d+\.\d{3,}"), "*"),
]
#: Lines of measurements, in which every number varies.
MEASURED = re.compile(
    r"GFLOP|BLAS|memory| ms|(?<![.\d])\d+%|certified|error of a layer|rounding|half"
)


def commands() -> Iterator[tuple[str, str]]:
    """Each command and what follows it, with the comments above it."""
    for block in re.split(r"^(?=\$ )", TRANSCRIPT.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        command, _, said = block.partition("\n")
        yield command[2:], re.sub(r"^# .*\n?", "", said, flags=re.MULTILINE).strip("\n")


def masked(text: str) -> str:
    """A text without what varies, and without the spaces that align it."""
    lines = []
    for line in text.split("\n"):
        varies = MEASURED.search(line)
        for pattern, sign in VARYING:
            line = pattern.sub(sign, line)
        if varies:
            line = re.sub(r"\d[\d.,]*( [KMG]?B\b)?", "*", line)
        lines.append(re.sub(r" +", " ", line).rstrip())
    return "\n".join(lines).strip("\n")


def run(command: str) -> str:
    """What a command prints, and its exit code where it is not 0."""
    from vinoir.ir.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(shlex.split(command)[1:])
        except SystemExit as left:
            code = left.code or 0
    text = masked(out.getvalue().rstrip("\n") + "\n" + err.getvalue().rstrip("\n"))
    return text if code == 0 else f"{text}\n[exit {code}]"


COMMANDS = list(commands()) if TRANSCRIPT.exists() else []


def test_there_are_forty_tasks() -> None:
    assert len(COMMANDS) >= 40


def test_what_people_do_prints_what_they_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx")
    from cli_folder import fill_folder

    fill_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    for command, said in COMMANDS:
        assert run(command).split("\n") == said.split("\n"), command


def rewrite() -> None:
    """Run the commands of the transcript, and put what they print behind them."""
    from cli_folder import fill_folder

    blocks = []
    with tempfile.TemporaryDirectory() as folder:
        fill_folder(Path(folder))
        os.chdir(folder)
        os.environ["COLUMNS"] = "80"
        for line in TRANSCRIPT.read_text("utf-8").split("\n"):
            if line.startswith("# "):
                blocks.append(line)
            elif line.startswith("$ "):
                blocks.append(f"{line}\n{run(line[2:])}\n")
    TRANSCRIPT.write_text("\n".join(blocks), "utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    rewrite()
