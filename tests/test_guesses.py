"""What somebody guesses who has not read the manual: it works, or is refused with a remedy."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vinoir.layers
from vinoir import ir
from vinoir.ir.cli import main

POOL = {"kernel": (2, 2), "strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0)}


def network() -> ir.Model:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "?,3,8,8")
    y = net.add("ReLU", "opset1", [x], name="relu")
    y = net.add("MaxPool", "opset14", [y], name="pool", **POOL)
    net.result(y, name="out")
    return ir.loads(*ir.dumps(net.model()))


@pytest.mark.parametrize(
    ("layer", "name", "value", "text"),
    [
        ("relu", "slope", 1, "ReLU has no attribute slope (it has none)"),
        ("pool", "kernal", "2,2", "MaxPool has no attribute kernal (did you mean kernel?)"),
        ("pool", "index_element_type", "f32", "index_element_type is f32, it is i32 or i64"),
    ],
)
def test_an_edit_refuses_what_its_operation_does_not_take(
    layer: str, name: str, value: Any, text: str
) -> None:
    entry = {"op": "set-attribute", "layer": layer, "name": name, "value": value}
    with pytest.raises(ir.IRError) as error:
        ir.edit(network(), [entry])
    assert text in str(error.value)
    assert f'"{layer}"' in str(error.value)


def test_an_operation_that_nobody_knows_takes_any_attribute() -> None:
    model = network()
    model["relu"].type = "Mine"
    entry = {"op": "set-attribute", "layer": "relu", "name": "slope", "value": 1}
    assert ir.edit(model, [entry]).model["relu"].data["slope"] == "1"


def test_attributes_that_fit_only_together_are_set_one_by_one() -> None:
    model = network()
    edits = [
        {"op": "set-attribute", "layer": "pool", "name": name, "value": value}
        for name, value in (("auto_pad", "valid"), ("strides", "1,1"), ("kernel", "3,3"))
    ]
    assert ir.edit(model, edits).model["pool"].kernel == (3, 3)


def test_one_name_is_no_list_of_letters() -> None:
    model = network()
    assert ir.extract(model, outputs="relu").model.outputs[0].shape == model.inputs[0].shape
    assert ir.simplify(model, only="fold-constants")[1].layers_after == len(model)
    assert not ir.check(model, select="IR4").findings
    with pytest.raises(ir.UsageError, match='no rule is named "foo"'):
        ir.simplify(model, skip="foo")
    with pytest.raises(ir.UsageError, match="no finding has the code XX"):
        ir.check(model, ignore="XX")


def test_one_edit_is_a_list_of_one() -> None:
    entry = {"op": "rename", "layer": "relu", "to": "bent"}
    assert "bent" in [layer.name for layer in ir.edit(network(), entry).model]


Guess = Callable[[ir.Model], Any]
GUESSES: list[tuple[Guess, str]] = [
    (lambda m: ir.merge(m), "one model is given, two or more are merged .give them as a list"),
    (lambda m: ir.simplify(m, certify=-1), "certify is -1, the least is 0"),
    (lambda m: setattr(m["relu"], "name", 5), "a name is text, not int"),
    (lambda m: setattr(m["relu"], "op", "ReLU"), "an operation is wanted, not str"),
    (lambda m: m[None], "a layer has a name or an id, not NoneType"),  # type: ignore[index]
    (lambda m: ir.read(5), "a path or an open file is wanted, not int"),  # type: ignore[arg-type]
    (lambda m: ir.read(b"<net>"), "ir.loads"),  # type: ignore[arg-type]
    (lambda m: ir.loads(5), "a document is text or bytes, not int"),  # type: ignore[arg-type]
    (lambda m: ir.write(m, None), "a path is wanted, not NoneType"),  # type: ignore[arg-type]
    (lambda m: setattr(m["pool"], "index_element_type", "f32"), "it is i32 or i64"),
    (lambda m: setattr(m["pool"], "strides", (0, 1)), "strides has 0, the least is 1"),
    (lambda m: ir.compile(m, threads="a"), "threads is 'a', it is a whole number"),  # type: ignore[arg-type]
    (lambda m: ir.infer(m)[5], "a tensor is asked for by its name, not by int"),  # type: ignore[index]
    (lambda m: ir.Predictor(5), "the path of a model is wanted, not int"),  # type: ignore[arg-type]
    (lambda m: ir.run(m, {}, outputs=5), "outputs=5: give a list of names"),  # type: ignore[arg-type]
    (lambda m: ir.infer(m, {None: "1"}), 'no input is named "None"'),  # type: ignore[dict-item]
    (lambda m: setattr(m["pool"], "strides", (1,)), "strides has 1 axes, kernel has 2 .*together"),
]


@pytest.mark.parametrize(("guess", "text"), GUESSES)
def test_a_wrong_guess_is_told_what_is_right(guess: Guess, text: str) -> None:
    model = network()
    before = ir.dumps(model)
    with pytest.raises(ir.UsageError, match=text):
        guess(model)
    assert ir.dumps(model) == before


def test_attributes_that_fit_only_together_are_set_in_any_order() -> None:
    model = network()
    model.edit.set("pool", auto_pad="valid", strides=(1, 1), kernel=(3, 3))
    assert model["pool"].kernel == (3, 3)


def test_a_message_tells_the_choices_once() -> None:
    with pytest.raises(ir.UsageError) as error:
        network()["pool"].rounding_type = "cel"
    assert str(error.value).count("ceil_torch") == 1


def test_names_of_the_faces_are_guessed() -> None:
    with pytest.raises(AttributeError, match=r"did you mean check\?"):
        _ = ir.chek  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"did you mean MaxPoolV14\?"):
        _ = vinoir.layers.MaxPool
    with pytest.raises(AttributeError, match=r"did you mean MaxPoolV14\?"):
        _ = vinoir.layers.MaxPoolV15


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"op": "rename", "layer": "relu", "too": "x"}, 'no field "too" (did you mean to?)'),
        ({"op": "rename", "layer": "relu"}, '"to" is missing (it is the new name'),
        ({"op": "rename", "layer": "relu", "to": ""}, '"to" is empty'),
        ({"op": "rename", "layer": "relu", "to": 5}, '"to" is 5: it should be a valid string'),
        ({"op": "rename", "any": "rel", "to": "y"}, "(did you mean relu?)"),
        ({"op": "set-constant", "layer": "relu", "file": "no.npy"}, "has no value"),
    ],
)
def test_an_edit_tells_which_field_is_wrong(entry: dict[str, Any], text: str) -> None:
    with pytest.raises(ir.UsageError) as error:
        ir.edit(network(), [entry])
    assert text in str(error.value)


def command(words: list[str], monkeypatch: pytest.MonkeyPatch, given: bytes = b"") -> int:
    """The exit code of a command line, with this on its standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ir.write(network(), "m.xml")
    return tmp_path / "m.xml"


def test_a_patch_comes_from_standard_input(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = b'[{"op": "rename", "layer": "relu", "to": "bent"}]'
    words = ["edit", "m.xml", "--patch", "-", "-o", "n.xml"]
    assert command(words, monkeypatch, patch) == 0
    assert ir.read("n.xml")["bent"].type == "ReLU"
    assert command([*words, "--force"], monkeypatch, b"\xff") == 2
    assert "<stdin> is no JSON: byte 0 is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["edit", "infer", "copy", "compress", "draw"])
def test_nothing_is_written_into_a_file_named_as_standard_output(
    verb: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [verb, "m.xml", "-o", "-"] + (["--rename", "relu=x"] if verb == "edit" else [])
    assert command(words, monkeypatch) == 2
    assert "goes to a file, not to -" in capsys.readouterr().err
    assert sorted(os.listdir()) == sorted(path.name for path in file.parent.glob("m.*"))


def test_files_that_cannot_be_read_are_told_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["edit", "m.xml", "--patch", "none.json", "--dry-run"], ["show", "empty"]):
        Path("empty").mkdir(exist_ok=True)
        command(words, monkeypatch)
        said = capsys.readouterr().err
        assert said.count(words[-1] if words[0] == "show" else "none.json") == 1
        assert "Errno" not in said


def test_diff_prints_nothing_where_its_page_cannot_be_written(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("page.png", "m.xml"):
        assert command(["diff", "m.xml", "m.xml", "-o", name], monkeypatch) == 2
        assert not capsys.readouterr().out


Making = Callable[[ir.Builder, ir.Output], Any]
MADE: list[tuple[Making, str]] = [
    (lambda net, x: net.parameter("z", "float32", [1]), 'z.* write "f32"'),
    (lambda net, x: net.parameter("z", object(), [1]), "is not an element type"),  # type: ignore[arg-type]
    (lambda net, x: net.parameter("z", "f32", [1, -2]), '"z".* a size of -2'),
    (lambda net, x: net.constant([1, [2]]), "rows of the value are of different lengths"),
    (lambda net, x: net.constant(None), "the value is no array of numbers or text"),
    (lambda net, x: net.constant(object()), "the value is no array of numbers or text"),
    (lambda net, x: net.constant([300], "u8"), "has 300, which u8 does not hold"),
    (lambda net, x: net.constant([1.5], "i32"), "has 1.5, which i32 does not hold"),
    (lambda net, x: net.constant([1.5], "foo"), '"foo" is not an element type'),
    (lambda net, x: net.result(5), "5 is no output of a layer"),  # type: ignore[arg-type]
    (lambda net, x: net.result(x.layer), "is no output of a layer"),  # type: ignore[arg-type]
    (lambda net, x: net.add("ReLU", [x]), "needs a version, such as opset1, not "),  # type: ignore[arg-type]
    (lambda net, x: ir.Builder(opset=18), "opset is 18, it is a whole number from 1 to 17"),
    (lambda net, x: ir.Builder(opset="13"), "opset is '13'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("making", "text"), MADE)
def test_a_builder_refuses_what_it_cannot_make(making: Making, text: str) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3")
    with pytest.raises(ir.IRError, match=text):
        making(net, x)
    assert len(net.graph) == 1


def test_types_are_named_as_numpy_and_python_do() -> None:
    net = ir.Builder("m")
    for kind, name in ((np.float16, "f16"), (np.dtype("int8"), "i8"), (bool, "boolean")):
        assert net.parameter("x", kind, [1, 2]).tensor.type == name  # type: ignore[arg-type]
    assert net.constant(["a", "b"]).tensor.type == "string"
    assert net.constant([1, 2], "f16").tensor.type == "f16"
    assert repr(net) == "<builder of <model 'm', version 11, 5 layers>>"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["check", "m.xml", "-o", "n.xml"], "-o n.xml is where --fix writes to"),
        (["check", "m.xml", "--in-place"], "--in-place is where --fix writes to"),
        (["run", "m.xml", "--tolerance", "nan"], "'nan' is not a number"),
        (["compare", "m.xml", "--tolerance", "nan"], "'nan' is not a number"),
        (["show", ""], "the name of a file is empty"),
    ],
)
def test_an_option_that_means_nothing_is_refused(
    words: list[str],
    text: str,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(words, monkeypatch) == 2
    assert text in capsys.readouterr().err
    assert not Path("n.xml").exists()


def test_nobody_is_told_to_run_what_is_pickled(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("x.npy").write_bytes(b"no array at all")
    assert command(["run", "m.xml", "--input", "x=x.npy"], monkeypatch) == 3
    said = capsys.readouterr().err
    assert "x.npy is no .npy or .npz of plain arrays" in said
    assert "pickle" not in said


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_plain_numbers_are_of_the_type_of_the_data(kind: str) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", kind, "1,3")
    made = [ir.ops.PReLU(x, 1), ir.ops.FakeQuantize(x, 0, 1, 0, 2, levels=4), ir.ops.Power(x, 2)]
    for one in made:
        types = {source.element_type for source in one.layer.producers[1:] if source is not None}
        assert types == {kind}
    # What names places stays a whole number; an array keeps its own type.
    assert ir.ops.Squeeze(x, [0]).layer.producers[1].element_type == "i64"  # type: ignore[union-attr]
    slope = ir.ops.PReLU(x, np.ones(1, np.int8)).layer.producers[1]
    assert slope is not None
    assert slope.element_type == "i8"


def test_everything_says_what_it_is() -> None:
    model = network()
    assert repr(model.edit).startswith("<editor of <model 'm'")
    assert "insert, replace, bridge" in repr(model.edit)
    assert repr(ir.draw(model)).startswith("<drawing of 'm'")
    assert repr(ir.sweep(ir.check, [])) == "<sweep of check over 0 models, 0 done>"
