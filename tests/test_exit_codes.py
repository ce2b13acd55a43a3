"""The exit codes of the README: by verb and by what is wrong with what it is given."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_folder import Call, caller, fill_folder
from vinoir.ir.cli.documents import DOCUMENTS, output_schema

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


#: Calls of verbs that print JSON, which are wrong whatever the model is.
MISUSED = (
    "show --jsn", "show model.xml --depth 1", "show model.xml --layer nobody", "show",
    "run model.xml -i image=x", "run model.xml --out runs.npz --trace", "check", "check --jobs 0",
    "infer model.xml -i nobody=1", "bench model.xml --runs none", "simplify model.xml",
    "diff model.xml", "compare model.xml --against none.npz",
    "reduce model.xml --fails never -o made",
    "edit model.xml --rename nobody=x --dry-run", "extract model.xml --to nobody -o made.xml",
    "merge model.xml", "compress model.xml -o text.npy", "convert model.xml --target 1.1 -o m.xml",
    "weights list", "weights nothing model.xml", "import nowhere.onnx --dry-run",
    "explain IR000", "ops Nothing", "show model.xml model.xml --layers --weights w.bin",
    "shw model.xml", "run model.xml --max-memory much",
    "bench model.xml --runs 1000000 --max-seconds 0.1",
    "show cut.xml --max-seconds 60", "run model.xml --max-memory 1K", "draw model.xml",
)  # fmt: skip


def one_document(words: list[str], call: Call) -> tuple[int, Any]:
    """What a call exits with, and what it prints: one document of its schema, or of any verb."""
    jsonschema = pytest.importorskip("jsonschema")
    code, out, err = call(*words)
    assert out, (words, code, err)
    document = json.loads(out)
    verb = document["verb"]
    jsonschema.validate(document, output_schema(verb if verb in DOCUMENTS else "show"))
    if "error" in document:
        said = " ".join(err.split())
        assert document["error"]["code"] == code > 0, (words, document)
        assert " ".join(document["error"]["message"].split()) in said, (words, document, err)
    return code, document


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.split()[0] in DOCUMENTS])
def test_a_refused_call_prints_a_document_where_json_is_asked_for(verb: str, call: Call) -> None:
    if "export" in verb:
        return
    for name in ("nowhere", "cut", "short", "alone", "wrong", "custom"):
        words = verb.replace("MODEL", f"{name}.xml").split()
        code, document = one_document([*words, "--json"], call)
        assert document["verb"] == words[0]
        if code == 3 and "error" in document:
            assert name in document["error"]["where"]["file"]


def test_both_ways_to_ask_for_json_are_one_and_of_many_models_there_are_lines(call: Call) -> None:
    said = call("show", "nowhere.xml", "--json")
    assert call("show", "nowhere.xml", "--format", "json") == said
    assert call("show", "nowhere.xml", "--format=json") == said
    code, out, _ = call("show", "model.xml", "nowhere.xml", "--json", "--sort", "bytes")
    assert code == 3
    assert [json.loads(line)["state"] for line in out.splitlines()] == ["refused", "refused"]


@pytest.mark.parametrize("words", MISUSED)
def test_a_misused_verb_prints_a_document_where_json_is_asked_for(words: str, call: Call) -> None:
    code, document = one_document([*words.split(), "--json"], call)
    assert code in (1, 2, 3, 4)
    assert "error" in document, words
    assert call(*words.split())[1] == ""


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
