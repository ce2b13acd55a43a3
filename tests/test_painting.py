"""Boxes painted by what is known of layers, in bodies too, and by comparisons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from test_pictures import call, content_of
from test_program_regions import either
from vinoir import ir
from vinoir.ir.cli.draw import findings_of
from vinoir.ir.display.pictures.page_file import _read
from vinoir.ir.display.pictures.painting import _TURNS, _WORDS, Paint
from vinoir.ir.display.pictures.palette import FAMILIES, inks, ramp


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


@pytest.mark.parametrize(
    ("content", "right", "wrong", "hint"),
    [
        (
            {"steps": [{"place": {"name": "scale"}, "own": 0.5, "accumulated": 0.5}]},
            ["error", "own", "accumulated"],
            ["acumulated", "bytes", "type", "findings", "time"],
            "did you mean accumulated?",
        ),
        (
            {"layers": [{"name": "scale", "seconds": 0.5}]},
            ["time"],
            ["tme", "bytes", "type", "findings", "error"],
            "it tells time",
        ),
    ],
)
def test_what_a_file_does_not_tell_is_not_painted(
    content: dict[str, object], right: list[str], wrong: list[str], hint: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    ir.write(scaled(2), tmp_path / "a.xml")
    (tmp_path / "told.json").write_text(json.dumps(content))
    page = tmp_path / "m.html"
    words = ("draw", tmp_path / "a.xml", "-o", page, "--values", tmp_path / "told.json")
    for name in wrong:
        assert call(*words, "--paint", name) == 2, name
        said = capsys.readouterr().err
        assert f'does not tell "{name}" of layers' in said
        assert (hint in said) or name != wrong[0]
        assert not page.exists()
    for name in right:
        assert call(*words, "--paint", name, "--force") == 0, name
        assert content_of(page.read_text("utf-8"))["paints"][-1]["name"] == name


def test_what_has_no_time_of_its_own_is_told_in_the_legend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ir.write(scaled(2), tmp_path / "a.xml")
    assert call("bench", tmp_path / "a.xml", "--runs", "1", "--layers", "--json") == 0
    (tmp_path / "times.json").write_text(capsys.readouterr().out)
    page = tmp_path / "m.html"
    assert call("draw", tmp_path / "a.xml", "-o", page, "--values", tmp_path / "times.json") == 0
    paint = content_of(page.read_text("utf-8"))["paints"][-1]
    assert "computed with another layer" in paint["without"]
    drawing = ir.draw(scaled(2)).paint("v", {"relu": 1.0})
    assert drawing._paints[-1].without == "not told"


def test_what_a_comparison_does_not_tell_is_not_painted_in_python() -> None:
    found = ir.compare(scaled(2), scaled(3), [np.ones(4, "f4")])
    with pytest.raises(ir.UsageError, match='does not tell "MACs"'):
        ir.draw(scaled(2)).paint("MACs", found)


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


def contrast(*colours: str) -> float:
    """The ratio that WCAG asks to be 4.5."""
    found = []
    for colour in colours:
        parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        found.append(float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(found) / min(found)


def test_texts_are_legible_on_all_that_boxes_are_painted_with() -> None:
    looks = re.findall(r'fg: "(#\w{6})", dim: "(#\w{6})"', _read("paint.js"))
    assert len(looks) == 2
    drawing = ir.draw(scaled(2)).paint("v", {"scale": 1.0, "relu": 0.0})
    svg = drawing.svg()
    fills = [*FAMILIES.values(), *_TURNS, *_WORDS.values(), *(ramp(k / 20) for k in range(21))]
    for pair in fills:
        for texts, fill, ink in zip(looks, pair, inks(pair) or (None, None), strict=True):
            assert all(text in svg for text in texts)
            assert min(contrast(ink or text, fill) for text in texts) >= 4.5, (fill, ink)
    # Both kinds of pictures write with it, where a box is painted so.
    assert all(inks(pair) is None for pair in FAMILIES.values())
    worst, least = ramp(1), ramp(0)
    assert inks(worst) == ("#000000", "#ffffff")
    (name,) = re.findall(rf"\.(p\d+){{fill:{worst[0]}}}\.\1~text{{fill:#000000}}", svg)
    assert f".{name}~text{{fill:#ffffff}}" in svg
    assert svg.count(f'class="n {name}"') == 1
    pairs = content_of(drawing.html())["paints"][-1]["pairs"]
    assert [*worst, "#000000", "#ffffff"] in pairs
    assert [*least, *(inks(least) or ())] in pairs
