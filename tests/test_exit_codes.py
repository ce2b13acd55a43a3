"""The exit codes of the README: by verb and by what is wrong with what it is given."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_folder import Call, caller, fill_folder

#: Verbs that look at all of a model, with what they need beside it.
VERBS = (
    "show MODEL", "draw MODEL -o made.html", "infer MODEL", "run MODEL", "run MODEL --compiled",
    "bench MODEL --runs 1", "simplify MODEL --dry-run", "compare MODEL --against f16",
    "diff model.xml MODEL", "copy MODEL -o made.xml", "extract MODEL --to relu1 -o made.xml",
    "edit MODEL --do op=rename --do any=image --do to=picture --dry-run",
    "compress MODEL --dry-run", "convert MODEL --target 2022.1 --dry-run",
    "merge MODEL head.xml --chain --dry-run", "reduce MODEL --fails compare -o made",
    "weights list MODEL", "weights export MODEL -o made.npz",
)  # fmt: skip
#: Those that want the numbers of constants.
COMPUTING = [verb for verb in VERBS if verb.split()[0] in ("run", "bench", "simplify", "compare",
             "compress") or "export" in verb]  # fmt: skip
#: Those that work out the shapes of every port.
INFERRING = [verb for verb in VERBS if verb.split()[0] in ("infer", "run", "bench", "simplify")]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, and beside a model the same with each damage."""
    folder = tmp_path_factory.mktemp("codes")
    fill_folder(folder)
    text, data = (folder / "model.xml").read_text("utf-8"), (folder / "model.bin").read_bytes()
    whole = {"cut": text[: len(text) // 2], "short": text, "wrong": text, "custom": text}
    whole["wrong"] = text.replace('kernel="2, 2"', 'kernal="2, 2"')
    whole["custom"] = text.replace('type="Sigmoid"', 'type="Sigmund"')
    assert len(set(whole.values())) == 4
    for name, said in whole.items():
        (folder / f"{name}.xml").write_text(said, "utf-8")
        (folder / f"{name}.bin").write_bytes(data[:100] if name == "short" else data)
    shutil.copy(folder / "model.xml", folder / "alone.xml")
    np.save(folder / "large.npy", np.zeros((1, 1, 20, 20), "f4"))
    np.savez(folder / "wrong.npz", prob=np.zeros((1, 10), "f4"))
    (folder / "text.npy").write_text("hello")
    return folder


@pytest.fixture
def call(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Call]:
    monkeypatch.chdir(damaged)
    yield caller(capsys)
    for made in damaged.glob("made*"):
        shutil.rmtree(made) if made.is_dir() else made.unlink()


@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_read_is_3(verb: str, call: Call) -> None:
    for name in ("nowhere", "cut", "short"):
        code, _, err = call(*verb.replace("MODEL", f"{name}.xml").split())
        assert code == 3, (name, err)
        assert name in err


@pytest.mark.parametrize("verb", COMPUTING)
def test_a_bin_that_is_needed_and_not_there_is_3(verb: str, call: Call) -> None:
    code, _, err = call(*verb.replace("MODEL", "alone.xml").split())
    assert code == 3, err
    assert "there is no .bin" in err


@pytest.mark.parametrize("verb", INFERRING)
def test_a_model_that_is_wrong_is_1(verb: str, call: Call) -> None:
    code, _, err = call(*verb.replace("MODEL", "wrong.xml").split())
    assert (code, "kernel is missing" in err) == (1, True), err


def test_findings_of_a_check_are_1_whatever_they_are_of(call: Call) -> None:
    for name in ("cut", "short", "alone", "wrong"):
        assert call("check", f"{name}.xml")[0] == 1, name
    assert call("check", "nowhere.xml")[0] == 3


@pytest.mark.parametrize("verb", ["run", "run --compiled", "bench --runs 1"])
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("image=image.npy", 0), ("image=random:1,1,16,16", 0),
        ("image=large.npy", 2), ("image=random:1,1,20,20", 2), ("image=zeros:16", 2),
        ("image=ones:x", 2), ("image=", 2), ("picture=zeros", 2), ("image=w.npz/", 3),
        ("image=nowhere.npy", 3), ("image=text.npy", 3),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_are_2_and_what_is_no_array_is_3(
    verb: str, given: str, code: int, call: Call
) -> None:
    name, *more = verb.split()
    found, _, err = call(name, "model.xml", *more, "--input", given)
    assert found == code, err


def test_what_is_not_supported_is_4_and_numbers_that_differ_are_5(call: Call) -> None:
    assert call("run", "custom.xml")[0] == 4
    assert call("bench", "custom.xml", "--runs", "1")[0] == 4
    assert call("run", "model.xml", "-i", "image=image.npy", "--expect", "ref.npz")[0] == 0
    assert call("run", "model.xml", "-i", "image=image.npy", "--expect", "wrong.npz")[0] == 5
    assert call("run", "model.xml", "-i", "image=image.npy", "--expect", "nowhere.npz")[0] == 3
    assert call("diff", "model.xml", "backbone.xml")[0] == 1
