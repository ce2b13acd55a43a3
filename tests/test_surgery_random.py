"""Random edits of files that OpenVINO wrote: what is accepted is a model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Written
from oracle import ask
from vinoir import ir
from vinoir.ir.cli import main

#: Random operations on each file.
STEPS = 3


def shapes_of_openvino(model: ir.Model) -> list[str]:
    xml, weights = ir.dumps(model)
    found: list[str] = ask("shapes", xml.decode(), weights)
    return found


def ours(model: ir.Model) -> list[str]:
    inferred = ir.infer(model)
    return [
        f"{inferred.of(result)[0].type}[{inferred.of(result)[0].shape.spelling}]"
        for result in model.results
    ]


def tensors(model: ir.Model) -> list[str]:
    """What can be named as a tensor."""
    return [
        layer.name if len(layer.outputs) == 1 else f"{layer.name}:{index}"
        for layer in model.layers
        if layer.type != "Result"
        for index in range(len(layer.outputs))
    ]


def one_edit(model: ir.Model, rng: random.Random) -> dict[str, Any]:
    """An edit that may or may not be possible."""
    layer = rng.choice(model.layers).name
    tensor = rng.choice(tensors(model))
    return rng.choice([
        {"op": "rename", "layer": layer, "to": f"new {layer}"},
        {"op": "rename", "tensor": tensor, "to": f"new_{rng.random()}"},
        {"op": "bypass", "layer": layer},
        {"op": "delete", "layer": layer},
        {"op": "insert", "after": tensor, "type": "ReLU"},
        {"op": "insert", "after": tensor, "type": "Multiply", "inputs": ["@", {"constant": 2}]},
        {"op": "add-output", "tensor": tensor},
        {"op": "remove-output", "output": layer},
        {"op": "add-input", "tensor": tensor},
        {"op": "constant-to-input", "layer": layer},
        {"op": "connect", "from": tensor, "to": layer},
        {"op": "set-type", "input": layer, "type": rng.choice(["f16", "i32", "f64"])},
        {"op": "set-shape", "input": layer, "shape": rng.choice(["?,3", "...", "2,3,4"])},
        {"op": "softmax", "output": layer, "axis": 0},
        {"op": "argmax", "output": layer, "axis": 0},
        {"op": "replace", "pattern": [{"id": "r", "type": "ReLU", "inputs": ["x"]}],
         "with": [{"id": "t", "type": "Tanh", "inputs": ["x"]}]},
        {"op": "replace", "pattern": [{"id": "r", "type": rng.choice(model.layers).type,
                                       "inputs": ["x"]}],
         "with": [{"id": "t", "type": "Abs", "inputs": ["x"]}]},
        {"op": "replace-layer", "layer": layer, "type": rng.choice(["Abs", "ShapeOf", "Add"])},
        {"op": "insert", "before": f"{layer}:{rng.randrange(2)}", "type": "Abs"},
        {"op": "insert", "after": tensor, "type": "Split", "inputs": ["@", {"constant": 0}],
         "attributes": {"num_splits": rng.choice([1, 2])}, "output": rng.randrange(2)},
        {"op": "insert", "after": tensor, "type": "Reshape",
         "inputs": ["@", {"constant": rng.choice([[-1], [0, -1]]), "type": "i64"}],
         "attributes": {"special_zero": True}},
        {"op": "set-version", "layer": layer, "version": f"opset{rng.randrange(1, 18)}"},
        {"op": "set-info", "key": ["a", "b"], "value": rng.choice(["<&>", None])},
        {"op": "rename", "layers": "(.*)", "to": r"p/\1"},
        {"op": "rename", "tensors": "(.*)", "to": r"p,\1"},
        {"op": "top-k", "output": layer, "k": 1},
        {"op": "preprocess", "input": layer, "type": rng.choice(["u8", "f16"]), "mean": 1.0},
    ])  # fmt: skip


def operations(rng: random.Random) -> list[Callable[[ir.Model], ir.Operated]]:
    def part(model: ir.Model) -> ir.Operated:
        names = tensors(model)
        inputs = None if rng.random() < 0.5 else rng.sample(names, min(2, len(names)))
        return ir.extract(model, inputs, [rng.choice(names)])

    return [
        lambda model: ir.edit(model, [one_edit(model, rng)]),
        lambda model: ir.edit(model, [one_edit(model, rng)]),
        lambda model: ir.edit(model, [one_edit(model, rng) for _ in range(4)]),
        part,
        lambda model: ir.merge([model, model], prefixes=["a/", "b/"]),
        lambda model: ir.merge([model, model], "order", prefixes=["a/", "b/"]),
        lambda model: ir.merge(
            [model, model], prefixes=["a/", "b/"], share=[x.name for x in model.parameters]
        ),
        lambda model: ir.extract(model, layers=rng.choice([".*", ".*[0-9]", "[A-M].*"])),
        lambda model: ir.convert(model, ir_version=rng.choice([10, 11])),
        lambda model: ir.convert(model, opset=rng.randrange(1, 18)),
        lambda model: ir.Operated(ir.simplify(model)[0], ir.Surgery("simplify")),
        ir.compress,
        ir.decompress,
    ]


def errors(model: ir.Model) -> Counter[str]:
    xml, weights = ir.dumps(model)
    return Counter(x.code for x in ir.check(ir.loads(xml, weights)).errors)


def settled(model: ir.Model) -> bool:
    """Whether the file is one that our inference and OpenVINO agree on to begin with."""
    try:
        return ours(model) == shapes_of_openvino(model)
    except (ir.IRError, RuntimeError):
        return False


def chosen(written: Written, share: int) -> Iterator[tuple[int, Path]]:
    paths = written.all()
    for seed in range(share):
        yield seed, paths[(seed * 37) % len(paths)]


def accepted(written: Written, count: int) -> int:
    """Random sequences; how many operations were accepted."""
    done = 0
    for seed, path in chosen(written, count):
        rng = random.Random(seed)
        model = ir.read(path)
        if not settled(model):
            continue
        known = errors(model)
        for _ in range(STEPS):
            before = ir.dumps(model)
            try:
                made = rng.choice(operations(rng))(model).model
            except ir.IRError:
                assert ir.dumps(model) == before
                continue
            assert ir.dumps(model) == before, f"{path.name}, seed {seed}: the model was changed"
            new = errors(made)
            assert set(new) <= set(known), f"{path.name}, seed {seed}: {new}"
            if made.results or made.layers:
                assert ours(made) == shapes_of_openvino(made), f"{path.name}, seed {seed}"
            done, model = done + 1, made
            if not any(layer.type != "Result" for layer in model.layers):
                break
    return done


def test_random_sequences(written: Written) -> None:
    assert accepted(written, 40) > 20


@pytest.mark.shared
def test_many_random_sequences(written: Written) -> None:
    assert accepted(written, 700) > 350


def test_an_edit_and_its_reverse_give_the_file_back(written: Written) -> None:
    for path in written.all()[::3]:
        model = ir.read(path)
        layer = next((x for x in model.layers if x.type not in ("Result",)), None)
        if layer is None:
            continue
        there = [{"op": "rename", "layer": layer.name, "to": "other"}]
        back = [{"op": "rename", "layer": "other", "to": layer.name}]
        try:
            once = ir.edit(model, there).model
        except ir.IRError:
            continue  # what cannot be inferred
        again = ir.edit(ir.loads(*ir.dumps(once)), back).model
        unchanged = ir.edit(model, []).model
        assert ir.dumps(again) == ir.dumps(unchanged), path.name


def test_inserted_and_bypassed_is_as_before() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,4")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="y")
    model = ir.loads(*ir.dumps(net.model()))
    more = ir.edit(model, [{"op": "insert", "after": "relu", "type": "Tanh", "name": "t"}]).model
    less = ir.edit(ir.loads(*ir.dumps(more)), [{"op": "bypass", "layer": "t"}]).model
    assert ir.dumps(less)[0] == ir.dumps(model)[0]


@pytest.mark.parametrize("half", [400, pytest.param(5000, marks=pytest.mark.shared)])
def test_long_models_by_every_verb(half: int) -> None:
    net = ir.Builder("long")
    x = net.parameter("x", "f32", "1,4")
    one = net.constant(np.arange(4, dtype="f4"), name="one")
    for number in range(half):
        x = net.add("Add", "opset1", [x, one], name=f"add{number}")
        x = net.add("ReLU", "opset1", [x], name=f"relu{number}")
    net.result(x, name="y")
    model = ir.loads(*ir.dumps(net.model()))
    done = ir.edit(model, [{"op": "bypass", "type": "ReLU"}])
    assert len(done.model) == half + 3
    each = [{"op": "bypass", "layer": f"relu{number}"} for number in range(half)]
    assert ir.dumps(ir.edit(model, each).model) == ir.dumps(done.model)
    inserts = [{"op": "insert", "after": f"add{n}", "type": "Tanh"} for n in range(half // 2)]
    assert len(ir.edit(model, inserts).model) == len(model) + half // 2
    cut = [{"op": "add-input", "tensor": f"add{half - 1}"}, {"op": "remove-input", "input": "x"}]
    assert len(ir.edit(model, cut).model) == 3
    part = ir.extract(model, ["relu9"], [f"relu{half // 2}"]).model
    assert len(part) == 2 * (half // 2 - 9) + 3
    assert len(ir.merge([model, model], "order").model) == 2 * len(model) - 2
    assert ir.convert(model, opset=1).report.refusals == []
    assert len(ir.compress(model).model) == len(model) + 1


def test_bad_orders_write_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = ir.Builder("m")
    x, z = net.parameter("x", "f32", "1,4"), net.parameter("z", "f32", "1,4")
    net.result(net.add("Add", "opset1", [x, z], name="sum"), name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model, new = str(tmp_path / "m.xml"), str(tmp_path / "new.xml")
    for words, said in [
        (["extract", model, "--to", "summ", "-o", new], 'no tensor or layer is named "summ"'),
        (["extract", model, "--from", "x", "-o", new], 'needs input "z"'),
        (["merge", model, model, "-o", new], 'have an input named "x"'),
        (["merge", model, model, "--prefix", "a", "--prefix", "b", "--map", "y=w", "-o", new],
         "of the map"),
        (["edit", model, "--bypass", "nothing", "-o", new], 'no layer is named "nothing"'),
        (["edit", model, "--delete", "sum", "-o", new], "remove the output first"),
        (["edit", model, "--set", "sum.auto_broadcast=none", "--do", "op=set-shape", "--do",
          "input=x", "--do", 'shape="1,1"', "-o", new], '"sum"'),
        (["edit", model, "--add-output", "sum"], "there is nothing to write to"),
        (["edit", model, "--add-output", "sum", "-o", model], "is already there"),
        (["convert", model, "-o", new], "it is not said to what"),
        (["edit", model, "--do", "op=set-type", "--do", "input=x", "--do", "type=u8",
          "--in-place"], "differ"),
    ]:  # fmt: skip
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code in (1, 2)
        assert said in capsys.readouterr().err, words
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
