"""The command line as a newcomer meets it: what each verb prints, and how it fails."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import VERBS, main
from vinoir.layers import Op

SAMPLES = Path(__file__).parents[1] / "samples"
DIGITS = str(SAMPLES / "digits.xml")
SEVEN = str(SAMPLES / "seven.npy")


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def vinoir(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def call(*words: object) -> Done:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Done(int(left.value.code or 0), out, err)

    return call


Vinoir = Callable[..., Done]


def test_show_tells_what_is_in_a_model(vinoir: Vinoir) -> None:
    done = vinoir("show", DIGITS)
    assert done.code == 0
    for line in ("IR version  11", "image  f32   [1..64,1,16,16]", "MaxPool-14         2"):
        assert line in done.out


def test_show_as_json(vinoir: Vinoir) -> None:
    facts = vinoir("show", DIGITS, "--format", "json").json
    assert facts["schema_version"] == 1
    assert facts["layers"]["Convolution-1"] == 2
    assert facts["inputs"][0]["shape"] == "[1..64,1,16,16]"
    assert facts["weights"]["f32"]["elements"] == 12 * 9 + 32 * 12 * 9 + 512 * 10


def test_show_one_layer_and_all(vinoir: Vinoir) -> None:
    one = vinoir("show", DIGITS, "--layer", "pool1", "--json").json["layer"]
    assert one["attributes"]["kernel"] == "2, 2"
    assert one["inputs"] == [{"layer": "found1", "output": 0, "operation": "ReLU-1"}]
    assert "look1" in vinoir("show", DIGITS, "--layers").out
    value = vinoir("show", DIGITS, "--layer", "flat", "--json").json["layer"]["value"]
    assert value["first"] == [0, -1]
    assert "first     [0, -1]" in vinoir("show", DIGITS, "--layer", "flat").out


def test_a_misspelt_layer_is_met_with_the_nearest(vinoir: Vinoir) -> None:
    done = vinoir("show", DIGITS, "--layer", "pool3")
    assert done.code == 2
    assert 'no layer or tensor is named "pool3"' in done.err
    assert "pool2" in done.err


def test_infer_agrees_with_what_the_file_declares(vinoir: Vinoir) -> None:
    done = vinoir("infer", DIGITS)
    assert done.code == 0
    assert "!=" not in done.out


def test_infer_with_a_new_shape_writes_a_model_of_it(vinoir: Vinoir, tmp_path: Path) -> None:
    target = tmp_path / "batch.xml"
    done = vinoir("infer", DIGITS, "--input", "image=8,1,16,16", "-o", target, "--json")
    assert done.code == 0
    assert done.json["outputs"] == {"digit": "[8,10]"}
    assert vinoir("infer", target).code == 0
    assert vinoir("show", target, "--json").json["outputs"][0]["shape"] == "[8,10]"
    assert vinoir("infer", DIGITS, "-o", target).code == 2  # not without --force


def test_infer_marks_what_the_file_declares_otherwise(vinoir: Vinoir, tmp_path: Path) -> None:
    wrong = tmp_path / "digits.xml"
    text = Path(DIGITS).read_text("utf-8")
    wrong.write_text(text.replace("<dim>12</dim>", "<dim>13</dim>", 1), "utf-8")
    shutil.copy(SAMPLES / "digits.bin", tmp_path)
    # The first 12 is that of the constant, which nobody infers otherwise than it is.
    done = vinoir("infer", wrong, "--json")
    assert done.code == 1
    (row,) = [row for row in done.json["ports"] if not row["same"]]
    assert (row["name"], row["inferred"], row["declared"]) == (
        "filters1", "f32[12,1,3,3]", "f32[13,1,3,3]"
    )  # fmt: skip
    assert "!=" in vinoir("infer", wrong).out
    assert vinoir("infer", wrong, "--in-place").code == 0
    assert vinoir("infer", wrong).code == 0
    assert wrong.read_bytes() == Path(DIGITS).read_bytes()


def test_infer_names_the_reshape_that_pins_a_shape(vinoir: Vinoir) -> None:
    done = vinoir("infer", DIGITS, "--input", "image=1,1,20,20")
    assert done.code == 1
    assert 'layer 12 "scores" (MatMul opset1)' in done.err


def test_run_reads_a_seven(vinoir: Vinoir, tmp_path: Path) -> None:
    saved = tmp_path / "out.npz"
    done = vinoir("run", DIGITS, "-i", f"image={SEVEN}", "--save", saved, "--json")
    assert done.code == 0
    assert int(np.argmax(done.json["outputs"][0]["first"])) == 7
    assert vinoir("run", DIGITS, "-i", f"image={SEVEN}", "--expect", saved).code == 0
    with np.load(saved) as content:
        np.savez(saved, digit=content["digit"] + 0.01)
    wrong = vinoir("run", DIGITS, "-i", f"image={SEVEN}", "--expect", saved)
    assert wrong.code == 5
    assert "expected" in wrong.err


def test_run_with_words_for_inputs_is_repeatable(vinoir: Vinoir) -> None:
    once = vinoir("run", DIGITS, "--seed", "3", "--json")
    assert once.json == vinoir("run", DIGITS, "--seed", "3", "--json").json
    assert once.json != vinoir("run", DIGITS, "--seed", "4", "--json").json
    assert vinoir("run", DIGITS, "-i", "image=zeros").code == 0


def test_trace_lists_every_layer(vinoir: Vinoir) -> None:
    done = vinoir("run", DIGITS, "--trace", "--json")
    names = [row["name"] for row in done.json["trace"]]
    assert {"look1", "pool1", "scores"} <= set(names)
    assert "look1" in vinoir("run", DIGITS, "--trace").out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run", DIGITS, "-i", "picture=zeros"], 2, 'the inputs are "image"'),
        (["run", DIGITS, "-i", "image=nothing.npy"], 3, "nothing.npy is not there"),
        (["run", DIGITS, "-i", f"image={DIGITS}"], 3, "is no .npy or .npz"),
        (["run", DIGITS, "-i", "zeros"], 2, "is not NAME=VALUE"),
        (["show", "missing.xml"], 3, "missing.xml"),
        (["show", str(SAMPLES / "seven.npy")], 3, "seven.npy"),
        (["infer", DIGITS, "-i", "image=1,1,x y"], 2, "is not a size"),
        (["ops", "MaxPol"], 2, "did you mean MaxPool?"),
        (["shwo", DIGITS], 2, "Did you mean 'show'?"),
        (["show"], 2, "Missing argument 'MODEL"),
        (["weights", "export", DIGITS, "-o", DIGITS], 2, "does not end in .npz"),
        (["copy", DIGITS, DIGITS], 2, "is already there"),
    ],
)
def test_mistakes_are_told_in_a_line(
    vinoir: Vinoir, words: list[str], code: int, says: str
) -> None:
    done = vinoir(*words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err


def test_an_unknown_layer_stops_before_anything_runs(vinoir: Vinoir, tmp_path: Path) -> None:
    text = Path(DIGITS).read_text("utf-8")
    (tmp_path / "m.xml").write_text(text.replace('type="ReLU"', 'type="Fancy"'), "utf-8")
    shutil.copy(SAMPLES / "digits.bin", tmp_path / "m.bin")
    done = vinoir("run", tmp_path / "m.xml")
    assert done.code == 4
    assert '"found1" (Fancy opset1)' in done.err
    assert '"found2" (Fancy opset1)' in done.err


def test_copy_is_byte_for_byte(vinoir: Vinoir, tmp_path: Path) -> None:
    target = tmp_path / "copy.xml"
    assert vinoir("copy", DIGITS, target).code == 0
    for suffix in (".xml", ".bin"):
        assert target.with_suffix(suffix).read_bytes() == (
            Path(DIGITS).with_suffix(suffix).read_bytes()
        )
    assert vinoir("copy", DIGITS, target).code == 2
    assert vinoir("copy", DIGITS, target, "--force").code == 0


def test_weights_are_listed_and_exported(vinoir: Vinoir, tmp_path: Path) -> None:
    rows = vinoir("weights", "list", DIGITS, "--json").json["constants"]
    assert [row["name"] for row in rows] == ["filters1", "filters2", "flat", "reading"]
    target = tmp_path / "weights.npz"
    assert vinoir("weights", "export", DIGITS, "-o", target).code == 0
    with np.load(target) as content:
        np.testing.assert_array_equal(content["reading"], ir.read(DIGITS).layer("reading").value)


def test_ops_tells_of_one_operation_and_of_all(vinoir: Vinoir) -> None:
    done = vinoir("ops", "maxpool")
    versions = [op for op in Op.registry.values() if op.xml_type == "MaxPool"]
    assert done.out.count("in the XML") == len(versions) >= 3
    assert "floor, ceil, ceil_torch" in done.out
    rows = vinoir("ops", "--json").json["operations"]
    assert all(row["summary"].endswith((".", ":")) for row in rows)
    pooling = [op for op in Op.registry.values() if op.family == "pooling"]
    assert f"| pooling ({len(pooling)}) |" in vinoir("ops", "--format", "markdown").out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(vinoir: Vinoir, verb: str) -> None:
    done = vinoir(verb, "--help")
    assert done.code == 0
    assert f"vinoir {verb}" in done.out


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f'"{sys.executable}" -m vinoir.ir ops --json | head -c 10'
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.startswith("{")
    assert done.stderr == ""
