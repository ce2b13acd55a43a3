"""Files of verbs over many models: what is written lies in its folder, over nothing of others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.fleet import targets_of

Call = Callable[..., tuple[int, list[Any], str]]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    def call(*words: object) -> tuple[int, list[Any], str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        return int(left.value.code or 0), [json.loads(line) for line in out.splitlines()], err

    return call


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with two models of one name in folders of their own."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        ir.write(small(name), tmp_path / name / "m.xml")
    return tmp_path


def small(name: str = "m", kind: str = "Exp") -> ir.Model:
    builder = ir.Builder(name)
    x = builder.parameter("x", "f32", "2")
    builder.result(builder.add(kind, "opset1", [x]), name="y")
    return builder.model()


def test_models_of_one_name_are_written_to_their_own_places(here: Path, call: Call) -> None:
    code, lines, _ = call("simplify", "a", "b", "-o", "out", "--jobs", 2)
    assert (code, len(lines)) == (0, 2)
    assert {ir.read(f"out/{name}/m.xml").name for name in "ab"} == {"a", "b"}


def test_nothing_is_written_outside_of_the_folder(here: Path, call: Call) -> None:
    before = (here / "b/m.xml").read_bytes()
    words = ("simplify", "a/m.xml", "a/../b/m.xml", "--jobs", 1, "-o")
    assert call(*words, "out")[0] == 0
    assert sorted(str(path) for path in Path("out").rglob("*.xml")) == [
        "out/a/m.xml",
        "out/b/m.xml",
    ]
    code, _, err = call(*words, "new/../out")
    assert (code, "is already there" in err) == (2, True)
    (here / "in").mkdir()
    os.chdir("in")
    assert call("simplify", "../a/m.xml", "../b/m.xml", "--jobs", 1, "-o", "out")[0] == 0
    assert sorted(map(str, Path("out").rglob("*.xml"))) == ["out/a/m.xml", "out/b/m.xml"]
    assert (here / "b/m.xml").read_bytes() == before


def test_two_models_have_not_one_place(here: Path, call: Call) -> None:
    code, lines, err = call("simplify", "a/m.xml", "./a/m.xml", "--jobs", 1, "-o", "out")
    assert (code, lines) == (2, [])
    assert f"a/m.xml and ./a/m.xml would both be written to {os.path.join('out', 'm.xml')}" in err
    assert not Path("out").exists()
    shutil.copytree("a", "a/a")
    with pytest.raises(ir.UsageError, match=r"written over a/a/m\.xml, which is read"):
        targets_of(["a/m.xml", "a/a/m.xml"], "a/a")
    with pytest.raises(ir.UsageError, match="is not in out"):
        targets_of(["s3://bucket/../../../../m.xml", "a/m.xml"], "out")
    assert call("bench", "a", "b", "--jobs", 1, "--plot", "x.svg")[0] == 2


def test_a_journal_of_something_else_lets_nothing_be_overwritten(here: Path, call: Call) -> None:
    precious = here / "out/a/m.xml"
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    assert call("check", "a", "b", "--jobs", 1, "--journal", "j.jsonl")[0] == 0
    words = ("simplify", "a", "b", "-o", "out", "--jobs", 1, "--journal")
    for journal in ("j.jsonl", "new.jsonl"):
        code, lines, err = call(*words, journal)
        assert (code, lines) == (2, [])
        assert "is already there" in err
    assert precious.read_text() == "precious"
    assert not Path("new.jsonl").exists()
    # What was begun is gone on with, over what it was at when it was ended.
    precious.unlink()
    assert call(*words, "j.jsonl")[0] == 0
    rows = Path("j.jsonl").read_text().splitlines(keepends=True)
    Path("j.jsonl").write_text("".join(rows[:-1]))
    code, lines, _ = call(*words, "j.jsonl")
    assert (code, len(lines)) == (0, 1)
