"""Orders to the surgeon that cannot be followed: each is answered, and nothing is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_folder import Call, caller, network
from oracle import ask
from vinoir import ir
from vinoir.ir.cli import main

HUGE = 10**30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ir.write(network(), tmp_path / "good.xml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


RELU = {"id": "r", "type": "ReLU", "inputs": ["x"]}

WRONG: list[tuple[Any, str]] = [
    ({}, '"op" is missing'),
    ({"op": ["rename"]}, "\"op\" is ['rename'], no edit has that name"),
    ({"op": {}}, '"op" is {}'),
    ({"op": "rename", "layer": True, "to": "x"}, '"layer" is True: it should be a valid string'),
    ({"op": "rename", "layer": ["a"], "to": "x"}, "a valid string, or a valid integer"),
    ({"op": "set-attribute", "layer": "pool1", "name": "kernel", "value": [2, None]},
     "kernel: an attribute holds"),
    ({"op": "set-attribute", "layer": "pool1", "name": "kernel", "value": [{}]},
     "kernel: an attribute holds"),
    ({"op": "set-attribute", "layer": "w1", "name": "offset", "value": 4},
     "says where its bytes are"),
    ({"op": "set-version", "layer": "pool1", "version": ""}, '"version" is empty'),
    ({"op": "set-info", "key": [""], "value": "1"}, '"key.0" is empty'),
    ({"op": "set-info", "key": ["no", "pe"], "value": None}, 'there is no entry "no/pe"'),
    ({"op": "set-constant", "layer": "w1", "value": "abc"}, "has text, which f32 does not hold"),
    ({"op": "set-constant", "layer": "w1", "value": [1, "a"]}, "has text"),
    ({"op": "set-constant", "layer": "w1", "value": 1, "type": "string"},
     "has numbers, which string does not hold"),
    ({"op": "set-constant", "layer": "w1", "value": HUGE}, "that 64 bits do not hold"),
    ({"op": "set-constant", "layer": "w1", "value": 1e39}, "has 1e+39, which f32 does not hold"),
    ({"op": "set-constant", "layer": "w1", "value": 1, "type": "dynamic"}, "cannot be dynamic"),
    ({"op": "insert", "after": "relu1", "type": "ReLU", "version": "opset99"},
     "ReLU is not in opset99"),
    ({"op": "insert", "after": "relu1", "type": "ReLU", "name": ""}, '"name" is empty'),
    ({"op": "insert", "after": "relu1", "type": "Elu", "attributes": {"alpha": {}}},
     "alpha: an attribute holds"),
    ({"op": "replace-layer", "layer": "prob", "type": "ReLU"}, "it is an output"),
    ({"op": "add-output", "tensor": "relu1", "name": ""}, '"name" is empty'),
    ({"op": "add-output", "tensor": "relu1", "in": ""}, '"in" is empty'),
    ({"op": "input-to-constant", "input": "image", "value": "a"}, "has text"),
    ({"op": "top-k", "output": "prob", "k": HUGE}, '"k" is 1000'),
    ({"op": "replace", "pattern": [{"id": "r", "type": "Result", "inputs": ["x"]}],
      "with": [{"id": "t", "type": "Abs", "inputs": ["x"]}]}, "gives nothing"),
    ({"op": "replace", "pattern": [{"id": "c", "type": "Const", "value": [[1], [1, 2]]}],
      "with": [{"id": "t", "type": "Const", "value": 1}]}, "of different lengths"),
    ({"op": "replace", "pattern": [RELU],
      "with": [{"id": "c", "type": "Const", "value": ["a", [1]]},
               {"id": "t", "type": "Add", "inputs": ["x", "c"]}]}, "of different lengths"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "said"), WRONG, ids=lambda row: str(row)[:60])
def test_what_is_wrong_with_an_edit_is_said(entry: Any, said: str) -> None:
    model = network()
    before = ir.dumps(model)
    with pytest.raises(ir.UsageError, match=re.escape(said)) as told:
        ir.edit(model, [entry])
    assert "edit 1 of 1" in str(told.value)
    assert ir.dumps(model) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'[{"op": "bypass", "layer": "relu1", "layer": "relu2"}]', '"layer" is given twice'),
        (b"[" + b"9" * 5000 + b"]", "cannot be read: Exceeds the limit"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff", "byte 0 is not UTF-8"),
    ],
)
def test_a_patch_that_is_none_is_told(text: bytes, said: str, folder: Path, call: Call) -> None:
    Path("edits.json").write_bytes(text)
    code, _, err = call("edit", "good.xml", "--patch", "edits.json", "-o", "new.xml")
    assert (code, said in err) == (2, True), err
    assert not Path("new.xml").exists()


def test_a_patch_of_windows_is_read(folder: Path, call: Call) -> None:
    entries = json.dumps([{"op": "bypass", "layer": "relu1"}])
    Path("edits.json").write_text(entries, "utf-8-sig")
    assert call("edit", "good.xml", "--patch", "edits.json", "--dry-run")[0] == 0


def test_a_field_of_text_is_given_numbers(folder: Path, call: Call) -> None:
    words = ["--do", "op=rename", "--do", "layer=relu1", "--do", "to=7"]
    assert call("edit", "good.xml", *words, "-o", "new.xml")[0] == 0
    assert ir.read("new.xml")["7"].type == "ReLU"
    code, _, err = call("edit", "good.xml", *words, "--do", "to=8", "--dry-run")
    assert (code, "\"to\" is given twice: '7' and '8'" in err) == (2, True), err


def test_a_dry_run_refuses_what_cannot_be_written(folder: Path, call: Call) -> None:
    words = ["edit", "good.xml", "--rename", "relu1=a\x01b"]
    dry, wet = call(*words, "--dry-run"), call(*words, "-o", "new.xml")
    assert dry == wet
    assert dry[0] == 1
    assert "good.xml:" in dry[2]
    assert "layer 3" in dry[2]
    assert "U+0001" in dry[2]
    assert not Path("new.xml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["extract", "good.xml", "--body", "", "--dry-run"], 'no layer with a body is named ""'),
        (["extract", "good.xml", "-o", ""], "is empty"),
        (["compress", "good.xml", "--keep", "haed/.*", "-o", "n.xml"],
         'no constant has a name that matches "haed/.*"'),
        (["compress", "good.xml", "--keep", "w1", "--back", "-o", "n.xml"], "--keep is for"),
        (["merge", "good.xml", "good.xml", "--prefix", "a", "-o", "n.xml"],
         "1 prefix is given for 2 models"),
        (["merge", "good.xml", "good.xml", "--prefix", "a", "--prefix", "b", "--share", "imag",
          "-o", "n.xml"], '"imag" is to be shared, and is an input of 0 of the models'),
        (["simplify", "good.xml", "--certify", "1", "--seed", "-1", "--dry-run"],
         "-1 is not in the range"),
        (["compare", "good.xml", "--against", "f16", "--max-seconds", "0"], "not in the range"),
    ],
)  # fmt: skip
def test_orders_that_mean_nothing_are_refused(
    words: list[str], said: str, folder: Path, call: Call
) -> None:
    before = sorted(folder.iterdir())
    code, _, err = call(*words)
    assert (code, said in err) == (2, True), err
    assert sorted(folder.iterdir()) == before


def test_what_is_left_out_is_counted_in_layers() -> None:
    done = ir.extract(network(), None, ["relu1"])
    assert done.report.counts["removed"] == done.report.layers[0] - done.report.layers[1] + 1
    assert "removed" not in ir.extract(network()).report.counts


def test_outputs_that_nobody_uses_are_not_handed_out() -> None:
    part = ir.extract(network(), layers="relu1|pool1|drop1").model
    assert [layer.name for layer in part.results] == ["drop1/sink_port_0"]


def test_a_shared_input_has_no_prefix() -> None:
    model = network()
    both = ir.merge([model, model], prefixes=["a/", "b/"], share="image").model
    assert [layer.name for layer in both.parameters] == ["image"]
    image = np.ones((1, 1, 16, 16), "f4")
    first, second = ir.run(both, {"image": image}).values()
    np.testing.assert_array_equal(first, second)


def test_an_import_does_not_write_over_what_it_imports(folder: Path, call: Call) -> None:
    onnx = pytest.importorskip("onnx")
    from cli_folder import exported

    exported(folder / "m.onnx")
    model = onnx.load("m.onnx")
    onnx.save(model, "own.xml", format="protobuf")
    onnx.save(model, "apart.onnx", save_as_external_data=True, location="new.bin",
              size_threshold=0)  # fmt: skip
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for words in (["own.xml", "-o", "own.xml"], ["apart.onnx", "-o", "new.xml"]):
        code, _, err = call("import", *words, "--force")
        assert (code, "is what is imported" in err) == (2, True), err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# What follows from an edit elsewhere.


def kept() -> ir.Model:
    """A value that is kept from call to call."""
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "2,3")
    words = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2,3"}
    read = net.add("ReadValue", "opset6", [x], name="read", **words)
    total = net.add("Add", "opset1", [read, x], name="sum")
    net.add("Assign", "opset6", [total], name="write", variable_id="v")
    net.result(total, name="y")
    return ir.loads(*ir.dumps(net.model()))


def test_a_variable_keeps_its_shape_and_its_reader() -> None:
    flat = {"op": "insert", "before": "write", "type": "Reshape",
            "inputs": ["@", {"constant": [-1], "type": "i64"}],
            "attributes": {"special_zero": False}}  # fmt: skip
    with pytest.raises(ir.IRError, match=r"\"write\".*the variable is 2,3, it is given 6"):
        ir.edit(kept(), [flat])
    whole = {"op": "insert", "before": "write", "type": "Convert",
             "attributes": {"destination_type": "i32"}}  # fmt: skip
    with pytest.raises(ir.IRError, match="the variable is f32, it is given i32"):
        ir.edit(kept(), [whole])
    lost = {"op": "set-attribute", "layer": "write", "name": "variable_id", "value": "w"}
    with pytest.raises(ir.UsageError, match='no ReadValue has the variable "w"'):
        ir.edit(kept(), [lost])
    out = {"op": "bypass", "layer": "read"}
    with pytest.raises(ir.UsageError, match=r'"write".*no ReadValue has the variable "v"'):
        ir.edit(kept(), [out])
    with pytest.raises(ir.UsageError, match="what it gives is not handed out"):
        ir.extract(kept(), ["x", "read"], ["write"])
    assert ir.edit(kept(), [out, {"op": "delete", "layer": "write"}]).model.results
    with pytest.raises(ir.IRError, match="an Assign of opset3 follows from a ReadValue"):
        ir.edit(kept(), [{"op": "set-version", "layer": "write", "version": "opset3"}])
    renamed = ir.edit(kept(), [{"op": "rename", "any": "v", "to": "w"}]).model
    assert ir.check(ir.loads(*ir.dumps(renamed))).ok


def test_an_assign_of_opset3_follows_from_its_variable() -> None:
    xml, weights = ir.dumps(kept())
    assert ir.check(xml, weights=weights).ok
    older = re.sub(rb'type="Assign" version="opset6"', b'type="Assign" version="opset3"', xml)
    assert older != xml
    (error,) = ir.check(older, weights=weights).errors
    assert error.code == "IR804"
    with pytest.raises(RuntimeError, match="variable"):
        ask("shapes", older.decode(), weights)


def test_ends_of_version_10_are_as_openvino_takes_them() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,4")
    net.result(x, name="same")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="y")
    model = ir.loads(*ir.dumps(net.model()))
    xml, weights = ir.dumps(model)
    both = xml.replace(b'version="11"', b'version="10"')
    assert b'names="' in both
    assert "IR240" in {one.code for one in ir.check(both, weights=weights).errors}
    with pytest.raises(RuntimeError, match="collisions"):
        ask("shapes", both.decode(), weights)
    # What is handed out under the name of the input is another tensor than the input.
    moved = ir.edit(model, [{"op": "insert", "before": "same", "type": "Abs"}]).model
    for one in (model, moved):
        old = ir.convert(one, ir_version=10).model
        text, weights = ir.dumps(old)
        assert ir.check(text, weights=weights).ok
        assert ask("shapes", text.decode(), weights) == ["f32[1,4]", "f32[1,4]"]
        more = ir.extract(ir.loads(text, weights), None, ["x", "relu"]).model
        text, weights = ir.dumps(more)
        assert ask("shapes", text.decode(), weights) == ["f32[1,4]", "f32[1,4]"]


def test_strings_are_not_brought_to_version_10() -> None:
    net = ir.Builder("m")
    net.result(net.parameter("x", "string", "2"), name="y")
    with pytest.raises(ir.UnsupportedError, match="no inputs and outputs of strings"):
        ir.convert(net.model(), ir_version=10)


@pytest.mark.parametrize(
    "order",
    [
        lambda model: ir.extract(model, 3),
        lambda model: ir.extract(model, [3]),
        lambda model: ir.merge(3),
        lambda model: ir.merge([model, model], "side by side"),
        lambda model: ir.merge([model, model], [("a", "b")]),
        lambda model: ir.merge([model, model], prefixes=[1, 2]),
        lambda model: ir.merge([model, model], share=3),
        lambda model: ir.edit(model, 3),
        lambda model: ir.convert(model, target=2022),
        lambda model: ir.simplify(model, only=3),
        lambda model: ir.simplify(model, certify="a"),
        lambda model: ir.simplify(model, certify=1, seed=-1),
        lambda model: ir.compare(model, 3),
        lambda model: ir.compare(model, "f16", samples=1.5),
        lambda model: ir.compare(model, "f16", samples=[]),
        lambda model: ir.compare(model, "f16", seed="a"),
        lambda model: ir.compare(model, "f16", tolerance="a"),
        lambda model: ir.compare(model, "f16", max_memory="a"),
        lambda model: ir.reduce(model, 3),
        lambda model: ir.reduce(model, "run", seed=-1),
        lambda model: ir.reduce(model, "run", max_seconds="a"),
        lambda model: ir.reduce(model, "run", output=3),
    ],
)
def test_values_of_other_types_are_told_as_such(order: Any) -> None:
    with pytest.raises(ir.UsageError):
        order(network())


def test_patterns_may_be_compiled() -> None:
    done = ir.compress(network(), keep=re.compile("w1|head/.*"))  # type: ignore[arg-type]
    assert done.report.counts == {"kept": 2, "compressed": 1}


def test_no_order_of_the_command_line_ends_in_a_bug(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("text.npy", np.array(["a"]))
    for words in (
        ["edit", "good.xml", "--constant", "w1=text.npy", "--dry-run"],
        ["edit", "good.xml", "--do", "op", "--dry-run"],
        ["edit", "good.xml", "--do", "op=set-constant", "--do", "layer=w1", "--do", "value=[[",
         "--dry-run"],
        ["extract", "good.xml", "--layers", "", "--dry-run"],
        ["convert", "good.xml", "--target", "", "--dry-run"],
    ):  # fmt: skip
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 2, capsys.readouterr().err
        capsys.readouterr()
