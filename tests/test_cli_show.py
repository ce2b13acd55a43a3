"""``vinoir show`` tells what follows from the file, and what it cannot know."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vinoir import ir
from vinoir.ir.cli import main

SAMPLES = Path(__file__).parents[1] / "samples"
Show = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Show:
    def shown(path: Path, *words: str) -> tuple[dict[str, Any], str]:
        with pytest.raises(SystemExit) as ended:
            main(["show", str(path), "--json", *words])
        assert not ended.value.code
        told = capsys.readouterr()
        return json.loads(told.out), told.err

    return shown


def test_shapes_are_those_that_infer_tells(show: Show) -> None:
    facts, noted = show(SAMPLES / "digits.xml")
    assert facts["outputs"][0]["shape"] == "[1..64,10]"
    assert (facts["macs"], facts["macs_unknown"], noted) == (None, 3, "")


def test_what_follows_from_an_input_is_known(show: Show, tmp_path: Path) -> None:
    text = (SAMPLES / "digits.xml").read_text("utf-8")
    (tmp_path / "m.xml").write_text(text.replace('shape="1..64,', 'shape="5,'), "utf-8")
    shutil.copy(SAMPLES / "digits.bin", tmp_path / "m.bin")
    facts, _ = show(tmp_path / "m.xml")
    assert facts == {
        **show(SAMPLES / "digits.xml", "--input", "image=5,1,16,16")[0],
        "path": str(tmp_path / "m.xml"),
    }
    assert facts["outputs"][0]["shape"] == "[5,10]"
    assert facts["macs"] > 0
    rows = show(tmp_path / "m.xml", "--layers")[0]["layers"]
    assert all("?" not in shape for row in rows for shape in row["outputs"])
    # Of one layer the file is told.
    layer = show(tmp_path / "m.xml", "--layer", "look1")[0]["layer"]
    assert layer["outputs"][0]["shape"] == "[?,12,16,16]"


def test_that_there_are_no_weights_is_said(show: Show, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "digits.xml", tmp_path)
    facts, noted = show(tmp_path / "digits.xml")
    assert facts["outputs"][0]["shape"] == "[?,10]"
    assert "there is no .bin" in noted


def test_a_model_with_a_layer_that_refuses_is_shown_as_declared(
    show: Show, tmp_path: Path
) -> None:
    net = ir.Builder("m")
    pool = net.add("MaxPool", "opset1", [net.parameter("x", "f32", "1,1,4,4")], strides=(1, 1),
                   pads_begin=(0, 0), pads_end=(0, 0), kernel=(2, 2))  # fmt: skip
    net.result(pool, name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text("utf-8")
    assert text.count('kernel="2, 2"') == 1
    (tmp_path / "m.xml").write_text(text.replace('kernel="2, 2"', 'kernel="9, 9"'), "utf-8")
    assert show(tmp_path / "m.xml")[0]["outputs"][0]["shape"] == "[1,1,3,3]"
