"""The examples that end each verb's help run, and what they print as JSON fits its schema."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from cli_folder import fill_folder
from vinoir.ir.cli import VERBS, cli, main
from vinoir.ir.cli.documents import output_schema

#: What examples end with that find something: a difference, findings under --strict.
FINDING = dict.fromkeys(
    (
        "diff model.xml small.xml",
        "diff model.xml small.xml --names --json",
        "diff model.xml small.xml -o diff.html",
    ),
    1,
)
#: What an example needs beside the project.
NEEDED = {"import": "onnx", "ops --onnx": "onnx", "openvino,onnxruntime": "openvino",
          "--against onnxruntime": "onnxruntime"}  # fmt: skip


def commands() -> Iterator[tuple[str, click.Command]]:
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        yield verb, command
        if isinstance(command, click.Group):
            yield from ((f"{verb} {name}", inner) for name, inner in command.commands.items())


EXAMPLES = list(
    dict.fromkeys(
        example
        for _, command in commands()
        for example in command.examples  # type: ignore[attr-defined]  # of Verb
    )
)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("full")
    fill_folder(folder)
    return folder


@pytest.fixture
def folder(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(full, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return tmp_path


def call(words: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def test_every_verb_has_two_examples_of_its_own() -> None:
    for verb, command in commands():
        examples = command.examples  # type: ignore[attr-defined]  # of Verb
        assert len(examples) >= (1 if " " in verb else 2), verb
        assert all(example.startswith(verb) for example in examples), verb


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for word, package in NEEDED.items():
        if word in example:
            pytest.importorskip(package)
    plain = re.sub(r" > \S+$", "", example)
    words = shlex.split(plain)
    if "-o" in words:
        # What another example reads is there already.
        (folder / words[words.index("-o") + 1]).with_suffix(".bin").unlink(missing_ok=True)
        (folder / words[words.index("-o") + 1]).unlink(missing_ok=True)
    code = call(words)
    assert code == FINDING.get(example, 0), capsys.readouterr().err


#: Calls whose documents are looked at, by their verbs.
DOCUMENTS = [
    "show model.xml", "show model.xml --layers", "show model.xml --layer w1", "show old.xml",
    "show model.xml --layer pool1", "show model.xml --tree", "show model.xml --tree --depth 1",
    "show loop.xml", "show loop.xml --layer loop", "check model.xml", "check models model.onnx",
    "check none.xml", "check model.xml --fix -o mended.xml", "explain IR203", "explain",
    "infer model.xml", "infer model.xml -i image=?,1,16,16", "run model.xml",
    "run model.xml --trace --top 2", "run model.xml --compiled --trace", "run failing.xml",
    "run model.xml --expect ref.npz", "run model.xml -i image=image.npy --expect ref.npz",
    "run model.xml -i image=inputs --all", "bench model.xml --runs 1 --layers",
    "simplify model.xml --dry-run --certify 1", "simplify model.xml -o s.xml",
    "diff model.xml small.xml", "diff model.xml head.xml", "compare model.xml --against f16",
    "reduce failing.xml --fails run -o failing", "edit model.xml --rename image=x --dry-run",
    "extract model.xml --to features -o part.xml", "merge backbone.xml head.xml --chain -o m.xml",
    "compress model.xml -o c.xml", "convert old.xml -o new.xml", "convert old.xml --dry-run",
    "convert model.xml --target 2022.1 --dry-run", "weights list model.xml",
    "import model.onnx --dry-run", "import model.onnx -o i.xml", "ops", "ops MaxPool",
    "ops --onnx", "ops --older", "edit --list", "edit insert --list", "edit model.xml --list",
]  # fmt: skip


def strict(text: str) -> Any:
    """JSON as other readers take it: without NaN and Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", DOCUMENTS)
def test_documents_fit_their_schema(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    verb = words.split()[0]
    assert call([*words.split(), "--json"]) in (0, 1, 3, 5)
    document = strict(capsys.readouterr().out)
    assert document["verb"] == verb
    assert call(["schema", "output", verb]) == 0
    schema = strict(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"more": 1}, schema)
    if verb == "run":
        # The comparison is in the document, where there is one.
        assert (document["comparison"] is None) == ("--expect" not in words)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        "show model.xml loop.xml none.xml", "show model.xml old.xml --layers",
        "check model.xml none.xml --jobs 2", "infer model.xml none.xml",
        "run failing.xml model.xml", "bench model.xml model.xml --runs 1",
        "simplify model.xml loop.xml --dry-run", "import model.onnx none.onnx --dry-run",
        "show model.xml loop.xml --jobs 1 --max-seconds 1e-9",
    ],
)  # fmt: skip
def test_lines_of_many_models_fit_the_schema_of_their_verb(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    verb = words.split()[0]
    assert call([*words.split(), "--json"]) in (0, 1, 3, 5)
    lines = [strict(line) for line in capsys.readouterr().out.splitlines()]
    assert call(["schema", "output", verb]) == 0
    schema = strict(capsys.readouterr().out)
    for line in lines:
        assert (line["schema_version"], line["verb"]) == (1, verb)
        jsonschema.validate(line, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(line | {"more": 1}, schema)


def test_every_verb_over_many_models_has_lines_in_its_schema() -> None:
    for verb, command in commands():
        if any(option.name == "jobs" for option in command.params):
            defined = output_schema(verb)["$defs"]
            assert f"{verb.capitalize()}Line" in defined, verb


def test_every_verb_that_prints_json_has_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["schema", "output"]) == 0
    told = strict(capsys.readouterr().out)["verbs"]
    able = {
        verb.split()[0]
        for verb, command in commands()
        if any(option.name == "format_" for option in command.params)
    }
    assert set(told) == able


@pytest.mark.usefixtures("folder")
def test_one_file_and_several_have_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    documents = []
    for words in (["model.xml"], ["models", "model.xml"]):
        call(["check", *words, "--json"])
        documents.append(strict(capsys.readouterr().out))
    one, several = documents
    assert one.keys() == several.keys()
    assert one["reports"][0].keys() == several["reports"][2].keys()
    assert (len(one["reports"]), len(several["reports"])) == (1, 3)
