"""What other tools read: SARIF, annotations, JSON; and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_check import ADD, BIN
from vinoir import ir
from vinoir.ir.checking.reports import to_github, to_sarif
from vinoir.ir.cli.check import check_command, explain_command
from vinoir.schemas import UsageError

jsonschema = pytest.importorskip("jsonschema")

#: The part of the SARIF 2.1.0 schema that a log like ours touches: names, types, limits.
SARIF: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "items": {"$ref": "#/definitions/run"}},
    },
    "definitions": {
        "text": {
            "type": "object",
            "additionalProperties": False,
            "required": ["text"],
            "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}},
        },
        "level": {"enum": ["none", "note", "warning", "error"]},
        "run": {
            "type": "object",
            "additionalProperties": False,
            "required": ["tool"],
            "properties": {
                "tool": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["driver"],
                    "properties": {"driver": {"$ref": "#/definitions/driver"}},
                },
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": {"$ref": "#/definitions/result"}},
            },
        },
        "driver": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "semanticVersion": {"type": "string"},
                "rules": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["id"],
                        "properties": {
                            "id": {"type": "string"},
                            "shortDescription": {"$ref": "#/definitions/text"},
                            "fullDescription": {"$ref": "#/definitions/text"},
                            "help": {"$ref": "#/definitions/text"},
                            "defaultConfiguration": {
                                "type": "object",
                                "additionalProperties": False,
                                "properties": {"level": {"$ref": "#/definitions/level"}},
                            },
                            "properties": {"type": "object"},
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "additionalProperties": False,
            "required": ["message"],
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": -1},
                "level": {"$ref": "#/definitions/level"},
                "message": {"$ref": "#/definitions/text"},
                "locations": {"type": "array", "items": {"$ref": "#/definitions/location"}},
            },
        },
        "location": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["artifactLocation"],
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {"uri": {"type": "string", "format": "uri-reference"}},
                        },
                        "region": {
                            "type": "object",
                            "additionalProperties": False,
                            "properties": {
                                "startLine": {"type": "integer", "minimum": 1},
                                "startColumn": {"type": "integer", "minimum": 1},
                            },
                        },
                    },
                },
                "logicalLocations": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {"name": {"type": "string"}, "kind": {"type": "string"}},
                    },
                },
            },
        },
    },
}

BAD = ADD.replace('size="8"', 'size="6"').replace('names="y"><dim>1', 'names="y"><dim>4')


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad one,100%.xml"
    path.write_text(BAD)
    path.with_suffix(".bin").write_bytes(BIN)
    return path


def test_sarif_keeps_to_its_schema(bad: Path) -> None:
    log = json.loads(json.dumps(to_sarif([ir.check(bad), ir.check(bad.parent / "none.xml")])))
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {result["ruleId"] for result in run["results"]} == {"IR100", "IR505", "IR606"}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    first = next(result for result in run["results"] if result["ruleId"] == "IR505")
    place = first["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 9, "startColumn": 49}
    assert place["artifactLocation"]["uri"].endswith("bad%20one%2C100%25.xml")


def test_annotations_escape_what_the_command_would_end_at(bad: Path) -> None:
    lines = to_github([ir.check(bad)]).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("::error file=")
    assert "bad one%2C100%25.xml,line=9,col=49,title=IR505::layer 1" in lines[0]


@pytest.mark.parametrize(("options", "code"), [
    ([], 1), (["--ignore", "IR505"], 0), (["--ignore", "IR505", "--strict"], 1),
    (["--select", "IR6"], 0), (["--format", "json"], 1), (["--format", "sarif"], 1),
    (["--format", "github"], 1),
])  # fmt: skip
def test_exit_codes(bad: Path, options: list[str], code: int) -> None:
    assert CliRunner().invoke(check_command, [str(bad), *options]).exit_code == code


def test_many_files_and_folders(bad: Path) -> None:
    good = bad.parent / "inner" / "good.xml"
    good.parent.mkdir()
    good.write_text(ADD)
    good.with_suffix(".bin").write_bytes(BIN)
    done = CliRunner().invoke(check_command, [str(bad.parent), "--format", "json"])
    content = json.loads(done.stdout)
    assert done.exit_code == 1
    assert [report["ok"] for report in content["reports"]] == [False, True]
    assert content["counts"]["error"] == 1
    done = CliRunner().invoke(check_command, [str(good), str(good.parent / "none.xml")])
    assert done.exit_code == 3


def test_explain() -> None:
    done = CliRunner().invoke(explain_command, ["IR203"])
    assert done.exit_code == 0
    assert "Bad:" in done.stdout
    assert "Good:" in done.stdout
    assert "IR505" in CliRunner().invoke(explain_command, []).stdout
    assert isinstance(CliRunner().invoke(explain_command, ["IR999"]).exception, UsageError)


# Repairs.


def test_fix_mends_what_is_safe_and_names_it(tmp_path: Path) -> None:
    text = ADD.replace('names="y"><dim>1', 'names="y"><dim>4').replace('name="w"', 'name="x"')
    text = text.replace(
        "</layers>",
        '\t<layer id="9" name="dead" type="Const" version="opset1"><data element_type="f32" '
        'shape="2" offset="0" size="8" /><output><port id="0" precision="FP32"><dim>2</dim>'
        "</port></output></layer>\n</layers>",
    )
    model = ir.loads(text, BIN)
    assert {f.code for f in ir.check(model)} == {"IR216", "IR307", "IR606"}
    done = ir.fix(model)
    assert {row.code for row in done} == {"IR216", "IR307", "IR606"}
    assert [str(f) for f in ir.check(model)] == []
    xml, _ = ir.dumps(model)
    assert xml.decode() == ADD.replace('name="w"', 'name="x_1"')


def test_fix_writes_out_what_openvino_crashes_without() -> None:
    text = ADD.replace('type="Add" version="opset1"', 'type="AvgPool" version="opset16"')
    text = text.replace(
        '<data auto_broadcast="numpy" />',
        '<data kernel="2, 2" strides="1, 1" pads_begin="0, 0" pads_end="0, 0" '
        'exclude-pad="true" rounding_type="floor" />',
    )
    model = ir.loads(text, BIN)
    assert "IR407" in {f.code for f in ir.check(model)}
    assert 'dilations="1, 1" written out' in [row.message for row in ir.fix(model)]
    assert "IR407" not in {f.code for f in ir.check(model)}


def test_fix_leaves_a_sound_model_alone() -> None:
    model = ir.loads(ADD, BIN)
    assert ir.fix(model) == []
    assert ir.dumps(model) == (ADD.encode(), BIN)


def test_check_fix_writes_the_output(bad: Path) -> None:
    bad.write_text(bad.read_text().replace('size="6"', 'size="8"'))
    output = bad.parent / "mended.xml"
    done = CliRunner().invoke(check_command, [str(bad), "--fix", "-o", str(output)])
    assert done.exit_code == 0, done.output
    assert "IR606" in done.stdout
    assert [str(f) for f in ir.check(output)] == []
    assert isinstance(CliRunner().invoke(check_command, [str(bad), "--fix"]).exception, UsageError)


@pytest.mark.parametrize("kind", ["LSTMSequence", "GRUSequence", "RNNSequence"])
def test_sequences_name_their_functions(kind: str, tmp_path: Path) -> None:
    """OpenVINO writes an empty list where none are named, and does not compile what it wrote."""
    gates = {"L": 4, "G": 3, "R": 1}[kind[0]]
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 3, 2))
    states = [net.constant(np.zeros((1, 1, 6), "f4"))] * (2 if gates == 4 else 1)
    shapes = [(1, gates * 6, 2), (1, gates * 6, 6), (1, gates * 6)]
    weights = [net.constant(np.ones(shape, "f4")) for shape in shapes]
    lengths = net.constant(np.array([3]))
    found = net.add(
        kind, "opset5", [x, *states, lengths, *weights], hidden_size=6, direction="forward"
    )
    net.result(found[0], name="y")
    model = net.model()
    assert [str(finding) for finding in ir.check(model)] == []
    layer = next(layer for layer in model.layers if layer.type == kind)
    named = layer.data["activations"]
    layer.data = {**layer.data, "activations": ""}
    assert [finding.code for finding in ir.check(model)] == ["IR411"]
    assert [row.message for row in ir.fix(model)] == [f'activations="{named}" written out']
    assert [str(finding) for finding in ir.check(model)] == []
    ov = pytest.importorskip("openvino")
    ir.write(model, tmp_path / "m.xml")
    compiled = ov.Core().compile_model(
        tmp_path / "m.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    given = np.ones((1, 3, 2), "f4")
    np.testing.assert_allclose(ir.run(model, [given])["y"], compiled([given])[0], atol=1e-6)
