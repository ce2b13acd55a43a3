"""Verbs go into bodies by one kind of path, such as ``loop/body/add``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_folder import LOOP, Call, caller
from conftest import Written
from vinoir import ir
from vinoir.ir.document import body_path
from vinoir.ir.surgery import body_at


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


@pytest.fixture(scope="module")
def holders(written: Written) -> list[Path]:
    """The files of operations that have bodies."""
    found = [path for path in written.all() if path.name.startswith(("If", "Loop", "TensorIter"))]
    assert found
    return found


def inner_layers(model: ir.Model) -> dict[str, ir.Layer]:
    """The layers of bodies, by their paths."""
    return {
        f"{body_path(layer.graph)}/{layer.name}": layer
        for layer in model.everywhere()
        if layer.graph is not None and not layer.graph.is_model
    }


def test_a_body_is_found_by_its_path(holders: list[Path]) -> None:
    for path in holders:
        model = ir.read(path)
        assert body_path(model) == ""
        for layer in inner_layers(model).values():
            assert layer.graph is not None
            assert body_at(model, body_path(layer.graph)) is layer.graph


def test_constants_are_listed_and_exported_by_their_paths(
    holders: list[Path], tmp_path: Path, call: Call
) -> None:
    for path in holders:
        inner = {k: x for k, x in inner_layers(ir.read(path)).items() if x.is_constant}
        rows = json.loads(call("weights", "list", path, "--json")[1])["constants"]
        assert {f"{row['body']}/{row['name']}" for row in rows if row["body"]} == set(inner)
        text = call("weights", "list", path)[1]
        target = tmp_path / f"{path.stem}.npz"
        assert call("weights", "export", path, "-o", target)[0] == 0
        with np.load(target) as arrays:
            assert len(arrays.files) == len(rows)
            for name, layer in inner.items():
                assert name in text
                assert np.array_equal(arrays[name], layer.value)
                told = json.loads(call("show", path, "--layer", name, "--json")[1])
                assert told["layer"]["name"] == layer.name


def test_what_is_in_a_body_is_edited_by_its_path(
    holders: list[Path], tmp_path: Path, call: Call
) -> None:
    for path in holders:
        for number, (name, layer) in enumerate(inner_layers(ir.read(path)).items()):
            target = tmp_path / f"{path.stem}{number}.xml"
            code, _, err = call("edit", path, "--rename", f"{name}=another", "-o", target)
            assert code == 0, (name, err)
            made = inner_layers(ir.read(target))
            around = name.removesuffix(layer.name)
            assert f"{around}another" in made
            assert name not in made
            assert call("check", target)[0] == 0
            if layer.is_constant:
                np.save(tmp_path / "new.npy", np.zeros_like(layer.value))
                words = ["--constant", f"{name}={tmp_path / 'new.npy'}", "-o", target, "--force"]
                assert call("edit", path, *words)[0] == 0
                assert not inner_layers(ir.read(target))[name].value.any()


def test_a_name_of_the_model_is_no_path(tmp_path: Path, call: Call) -> None:
    (tmp_path / "loop.xml").write_text(LOOP.replace('name="y"', 'name="loop/turn"'), "utf-8")
    (tmp_path / "loop.bin").write_bytes(b"")
    words = ["edit", tmp_path / "loop.xml", "--rename", "loop/turn=z", "-o", tmp_path / "z.xml"]
    assert call(*words)[0] == 0
    model = ir.read(tmp_path / "z.xml")
    assert "z" in model.layer("loop").outputs[0].names
    assert "loop/body/turn" in inner_layers(model)
    code, _, err = call("edit", tmp_path / "z.xml", "--rename", "loop/none=x", "--in-place")
    assert (code, '"loop/none"' in err) == (2, True), err


#: More turns than take the place of a loop.
TURNS = 3000


def test_a_bench_names_layers_by_their_paths(holders: list[Path], call: Call) -> None:
    found = set[str]()
    for path in holders:
        code, out, err = call("bench", path, "--runs", "1", "--layers", "--json")
        assert code == 0, err
        model = ir.read(path)
        inner = inner_layers(model)
        rows = {row["name"] for row in json.loads(out)["layers"]}
        assert rows <= {layer.name for layer in model.layers} | inner.keys()
        found |= {path.name.partition(".")[0] for name in rows if name in inner}
    assert "If" in found


@pytest.mark.parametrize("turns", [3, TURNS])
def test_a_bench_tells_the_layers_of_a_loop_in_all_turns(
    turns: int, tmp_path: Path, call: Call
) -> None:
    text = LOOP.replace("<dim>3</dim>", f"<dim>{turns}</dim>").replace('"3,2"', f'"{turns},2"')
    (tmp_path / "loop.xml").write_text(text, "utf-8")
    (tmp_path / "loop.bin").write_bytes(b"")
    code, out, _ = call("bench", tmp_path / "loop.xml", "--runs", "1", "--layers", "--json")
    assert code == 0
    rows = json.loads(out)["layers"]
    within = [row for row in rows if row["name"] == "loop/body/turn"]
    assert {row["name"] for row in rows} == {"loop/body/turn"} | ({"loop"} if turns > 3 else set())
    assert sum(row["operations"] for row in within) == 2 * turns
    assert sum(row["bytes"] for row in within) == 16 * turns
    (tmp_path / "times.json").write_text(out)
    words = [tmp_path / "loop.xml", "-o", tmp_path / "m.html", "--values", tmp_path / "times.json"]
    assert call("draw", *words)[0] == 0
