"""A .bin that is not named after a model may be that of others: written in place it only grows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cli_folder import Call, caller
from vinoir import ir
from vinoir.schemas import UsageError

GIVEN = np.linspace(-1, 1, 8, dtype="f4")


def layered() -> ir.Model:
    net, rng = ir.Builder("m"), np.random.default_rng(0)
    x = net.parameter("x", "f32", [8])
    for number in range(3):
        w = net.constant(rng.standard_normal(8).astype("f4"), name=f"w{number}")
        x = net.add("Multiply", "opset1", [x, w], name=f"times{number}")
    net.result(x, name="y")
    return net.model()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two documents of one .bin."""
    ir.write(layered(), tmp_path / "one.xml", tmp_path / "common.bin")
    (tmp_path / "two.xml").write_bytes((tmp_path / "one.xml").read_bytes())
    np.save(tmp_path / "w.npy", np.ones(8, "f4"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


def other() -> np.ndarray:
    """What the model gives that nobody edited."""
    return ir.run(ir.read("two.xml", "common.bin"), [GIVEN])["y"]


#: What is done with one of the two, and whether its weights become others.
VERBS = [
    (["edit", "--constant", "w0=w.npy"], True),
    (["edit", "--bypass", "times0"], False),
    (["edit", "--rename", "x=image"], False),
    (["compress"], True),
    (["simplify"], True),
    (["extract", "--to", "times1"], False),
    (["infer", "-i", "x=8"], False),
    (["copy"], False),
]


@pytest.mark.parametrize(("words", "grows"), VERBS)
def test_what_others_use_stays(words: list[str], grows: bool, folder: Path, call: Call) -> None:
    before, held = other(), Path("common.bin").read_bytes()
    verb, *rest = words
    code, _, err = call(verb, "one.xml", "--weights", "common.bin", *rest, "--in-place")
    assert code == 0, err
    now = Path("common.bin").read_bytes()
    assert now[: len(held)] == held
    assert (len(now) > len(held)) == grows == ("kept as it is, and lengthened" in err)
    assert np.array_equal(other(), before)
    assert ir.check("one.xml", weights="common.bin").ok
    assert not Path("one.bin").exists()


def test_what_would_change_is_refused_unless_forced(folder: Path, call: Call) -> None:
    held = Path("common.bin").read_bytes()
    place = ("one.xml", "--weights", "common.bin", "--in-place")
    assert call("edit", *place, "--bypass", "times0")[0] == 0
    document = Path("one.xml").read_bytes()
    code, _, err = call("copy", *place, "--repack")
    assert code == 2
    assert "common.bin: error: would not stay what it is for other models: of its 96 bytes" in err
    assert "give --force if none does" in " ".join(err.split())
    assert Path("common.bin").read_bytes() == held
    assert Path("one.xml").read_bytes() == document
    assert sorted(os.listdir()) == ["common.bin", "one.xml", "two.xml", "w.npy"]
    assert call("copy", *place, "--repack", "--force")[0] == 0
    assert Path("common.bin").stat().st_size < len(held)


def test_its_own_weights_are_written_as_ever(folder: Path, call: Call) -> None:
    for name in ("one.xml", os.path.abspath("one.xml")):
        ir.write(layered(), "one.xml")
        before = Path("one.bin").stat().st_size
        words = [] if name == "one.xml" else ["--weights", "one.bin"]
        code, _, err = call("edit", name, *words, "--bypass", "times0", "--in-place")
        assert code == 0, err
        assert Path("one.bin").stat().st_size < before


def test_python_says_that_weights_are_shared(folder: Path) -> None:
    model = ir.read("one.xml", "common.bin")
    before = other()
    model["w0"].value = np.ones(8, "f4")
    with pytest.raises(UsageError, match="would not stay what it is for other models"):
        ir.write(model, "one.xml", "common.bin", shared=True, repack=True)
    ir.write(model, "one.xml", "common.bin", shared=True)
    assert np.array_equal(other(), before)
    assert (ir.read("one.xml", "common.bin")["w0"].value == 1).all()


def test_a_shared_file_that_is_not_there_is_told(folder: Path, call: Call) -> None:
    code, _, err = call("check", "one.xml", "--weights", "no.bin", "--fix", "--in-place")
    assert code in (1, 3)
    assert "Traceback" not in err
    assert not Path("no.bin").exists()
