"""``vinoir infer``: what contradicts a declaration, and what says more or less."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Written
from vinoir import ir
from vinoir.ir.cli import main

SAMPLES = Path(__file__).parents[1] / "samples"


def infer(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, str, list[dict[str, Any]]]:
    codes, texts = [], []
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["infer", str(path), *more])
        codes.append(int(str(ended.value.code)))
        texts.append(capsys.readouterr().out)
    assert codes[0] == codes[1]
    return codes[0], texts[0], json.loads(texts[1])["ports"]


def infer_said(capsys: pytest.CaptureFixture[str], path: Path) -> str:
    with pytest.raises(SystemExit):
        main(["infer", str(path)])
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("known", "stated", "mark"),
    [
        ("3", 3, ""), ("3", 4, "!="), ("3", -1, "~"), ("?", 4, "~"), ("1..8", 4, "~"),
        ("1..8", 40, "!="), ("1..8", -1, ""),
    ],
)  # fmt: skip
def test_a_port_contradicts_only_what_excludes_it_as_check_says(
    known: str, stated: int, mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = ir.Builder("m")
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", f"2,{known}")], name="relu"))
    model = net.model()
    model.layer("relu").outputs[0].dims = (2, stated)
    ir.write(model, tmp_path / "m.xml")
    code, text, rows = infer(capsys, tmp_path / "m.xml")
    (row,) = [row for row in rows if row["name"] == "relu"]
    (line,) = [line.split() for line in text.splitlines() if "relu" in line]
    assert line[4:5] == ([mark] if mark else [])
    assert (row["same"], row["contradicts"]) == (not mark, mark == "!=")
    assert code == (mark == "!=")
    codes = [finding.code for finding in ir.check(tmp_path / "m.xml")]
    assert ("IR606" in codes) == (mark == "!=")


def test_what_is_not_known_without_weights_contradicts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAMPLES / "digits.xml", tmp_path / "lone.xml")
    code, text, rows = infer(capsys, tmp_path / "lone.xml")
    assert code == 0
    assert "!=" not in text
    (row,) = [row for row in rows if not row["same"]]
    assert (row["inferred"], row["declared"]) == ("f32[?,?]", "f32[?,512]")
    assert infer_said(capsys, tmp_path / "lone.xml").count("lone.xml: there is no .bin") == 1


def test_an_output_that_no_port_is_for_is_no_contradiction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3,8,8")
    pool = net.add("MaxPool", "opset8", [x], name="pool", strides=(2, 2), dilations=(1, 1),
                   pads_begin=(0, 0), pads_end=(0, 0), kernel=(2, 2))  # fmt: skip
    net.result(pool[0])
    model = net.model()
    del model.layer("pool").outputs[1]
    ir.write(model, tmp_path / "m.xml")
    code, text, rows = infer(capsys, tmp_path / "m.xml")
    assert (code, [row["port"] for row in rows if row["name"] == "pool"]) == (0, [1, None])
    lines = [line.split() for line in text.splitlines() if "pool" in line]
    assert [line[2] for line in lines] == ["1", "-"]
    assert "None" not in text


def test_ports_in_bodies_are_gone_through_as_check_does(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    holders = [
        path for path in written.all() if path.name.startswith(("If", "Loop", "TensorIter"))
    ]
    assert holders
    for path in holders:
        code, _, rows = infer(capsys, path)
        assert code == 0
        assert {row["name"] for row in rows if row["body"]} >= {
            layer.name
            for layer in ir.read(path).everywhere()
            if layer.type == "Const" and layer.graph is not None and not layer.graph.is_model
        }
        model = ir.read(path)
        layer = next(x for x in model.layers if x.bodies)
        tag, body = next(reversed(layer.bodies.items()))
        inner = next(x for x in body.layers if x.outputs and x.type != "Parameter")
        inner.outputs[0].dims = (*inner.outputs[0].dims, 7)
        ir.write(model, tmp_path / "wrong.xml")
        code, text, rows = infer(capsys, tmp_path / "wrong.xml")
        assert code == 1
        (row,) = [row for row in rows if row["contradicts"]]
        assert (row["body"], row["name"]) == (f"{layer.name}/{tag}", inner.name)
        (line,) = [line for line in text.splitlines() if "!=" in line]
        name = f"{layer.name}/{tag}/{inner.name}"
        assert line.split()[0] == name
        # It is looked at by the name that is printed.
        with pytest.raises(SystemExit) as ended:
            main(["show", str(tmp_path / "wrong.xml"), "--layer", name, "--json"])
        assert not ended.value.code
        assert json.loads(capsys.readouterr().out)["layer"]["name"] == inner.name
