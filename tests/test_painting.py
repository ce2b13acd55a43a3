"""Boxes painted by what is known of layers, in bodies too, and by comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_pictures import call, content_of
from test_program_regions import either
from vinoir import ir
from vinoir.ir.cli.draw import findings_of
from vinoir.ir.display.pictures.painting import Paint


def alike() -> ir.Model:
    """An If between two others, both sides of which have layers of the same ids and names."""
    model = either("f32", None)
    (chosen,) = [layer for layer in model if layer.bodies]
    chosen.name = "if"
    for body in chosen.bodies.values():
        for layer in body.layers:
            layer.name = layer.type
    return model


def painted(drawing: ir.Drawing) -> dict[str, float | str]:
    """The last paint's values by the layers' paths."""
    paint: Paint = drawing._paints[-1]
    sheet = drawing.picture.sheet
    return {
        "/".join([*(f"{holder.name}/{tag}" for holder, tag in sheet.around_body(number)),
                  sheet.layers[number].name]): value
        for number, value in paint.values.items()
    }  # fmt: skip


def test_findings_are_painted_where_they_are_though_others_have_that_name(tmp_path: Path) -> None:
    ir.write(alike(), tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text("utf-8")
    head, _, tail = text.rpartition('transpose_b="')
    assert head.rfind("<else_body") > head.rfind("<then_body")
    (tmp_path / "m.xml").write_text(f'{head}transpos_b="{tail}', "utf-8")
    model = ir.read(tmp_path / "m.xml")
    (found,) = ir.check(model).errors
    assert (found.code, found.body) == ("IR402", f"{model['if'].id}/else_body")
    assert found.to_json()["body"] == found.body
    drawing = ir.draw(model)
    drawing.paint("findings", **findings_of(model, drawing))
    errors = [path for path, word in painted(drawing).items() if word == "error"]
    assert errors == [f"if/else_body/{found.name}"]


def test_layers_of_bodies_are_painted_by_paths_and_by_themselves() -> None:
    model = alike()
    kinds = {layer.type for layer in model["if"].bodies["then_body"].layers}
    assert "MatMul" in kinds
    drawing = ir.draw(model).paint("v", {"if/then_body/MatMul": 2.0, "Tanh": 1.0, "MatMul": 3})
    both = {path: value for path, value in painted(drawing).items() if "MatMul" in path}
    assert both == {"if/then_body/MatMul": 2.0, "if/else_body/MatMul": 3}
    drawing.paint("v", {"if/MatMul": 5.0})
    assert set(painted(drawing)) == {"if/then_body/MatMul", "if/else_body/MatMul"}
    inner = model["if"].bodies["else_body"].layer("MatMul")
    drawing.paint("v", {inner: 7.0}, notes={inner: "slow"})
    assert painted(drawing) == {"if/else_body/MatMul": 7.0}
    assert list(drawing._paints[-1].notes.values()) == ["slow"]
    with pytest.raises(ir.UsageError, match='such as "if/other_body/MatMul"'):
        drawing.paint("v", {"if/other_body/MatMul": 1.0})
    with pytest.raises(ir.UsageError, match='such as "MatMul"'):
        drawing.paint("v", {alike()["if"].bodies["else_body"].layer("MatMul"): 1.0})


def scaled(factor: float) -> ir.Model:
    net = ir.Builder("scaled")
    x = net.parameter("x", "f32", (4,))
    x = net.add("Multiply", "opset1", [x, net.constant(np.float32(factor))], name="scale")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="y")
    return net.model()


def test_a_comparison_is_painted_from_python_and_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ir.write(scaled(2), tmp_path / "a.xml")
    ir.write(scaled(3), tmp_path / "b.xml")
    found = ir.compare(tmp_path / "a.xml", tmp_path / "b.xml", [np.ones(4, "f4")])
    own = painted(ir.draw(tmp_path / "a.xml").paint("error", found))
    assert own["scale"] > 0.1
    assert own["relu"] == 0  # right for what it is given
    drawing = ir.draw(tmp_path / "a.xml").paint("accumulated", found)
    assert painted(drawing)["relu"] > 0.1
    assert any("inherited" in note for note in drawing._paints[-1].notes.values())

    assert call("compare", tmp_path / "a.xml", "--against", tmp_path / "b.xml", "--json") == 5
    (tmp_path / "cmp.json").write_text(capsys.readouterr().out)
    page = tmp_path / "m.html"
    words = ["draw", tmp_path / "a.xml", "-o", page, "--force", "--values", tmp_path / "cmp.json"]
    for name in (None, "error", "accumulated"):
        assert call(*words, *(["--paint", name] if name else [])) == 0
        paint = content_of(page.read_text("utf-8"))["paints"][-1]
        assert (paint["name"], paint["kind"]) == (name or "error", "number")
        assert len(paint["values"]) == 2
        assert any("wrong" in note for note in paint["notes"].values())
    ir.write(alike(), tmp_path / "other.xml")
    words[1] = tmp_path / "other.xml"
    assert call(*words) == 2
    assert "no layer of this model" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["[]", "[1]", '[{"own": "a"}]', '[{"own": 1}]'])
def test_a_comparison_without_layers_is_refused(steps: str, tmp_path: Path) -> None:
    ir.write(scaled(2), tmp_path / "a.xml")
    (tmp_path / "cmp.json").write_text(f'{{"steps": {steps}}}')
    words = ("draw", tmp_path / "a.xml", "-o", tmp_path / "m.html", "--values")
    assert call(*words, tmp_path / "cmp.json") == 2


def test_an_endless_error_is_the_largest(tmp_path: Path) -> None:
    ir.write(scaled(2), tmp_path / "a.xml")
    places = [{"id": ir.read(tmp_path / "a.xml")[name].id, "name": name, "body": []}
              for name in ("scale", "relu")]  # fmt: skip
    steps = [
        {"place": places[0], "output": 0, "own": "Infinity", "verdict": "NaN"},
        {"place": places[1], "output": 0, "own": 0.5, "verdict": "wrong"},
    ]
    (tmp_path / "cmp.json").write_text(json.dumps({"steps": steps}))
    page = tmp_path / "m.html"
    assert call("draw", tmp_path / "a.xml", "-o", page, "--values", tmp_path / "cmp.json") == 0
    paint = content_of(page.read_text("utf-8"))["paints"][-1]
    endless, wrong = paint["values"]
    assert endless > wrong == 0.5
    assert any(note.startswith("NaN: own error inf") for note in paint["notes"].values())
