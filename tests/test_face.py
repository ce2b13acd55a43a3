"""The face: what people meet first, by Tab, by guessing and at the prompt."""

from __future__ import annotations

import copy
import doctest
import inspect
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typed_user
from pydantic import ValidationError
from vinoir import ir, layers
from vinoir.ir.display import html
from vinoir.schemas import ElementType, Tensor, UsageError

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
POOL = {"strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, in which the test is."""
    for old, new in (("digits.xml", "model.xml"), ("digits.bin", "model.bin")):
        shutil.copy(SAMPLES / old, tmp_path / new)
    shutil.copy(SAMPLES / "seven.npy", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder: Path) -> ir.Model:
    return ir.read("model.xml")


def test_the_tasks_of_people(folder: Path) -> None:
    found = doctest.testfile(
        str(ROOT / "tests/tasks.rst"),
        module_relative=False,
        encoding="utf-8",
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert found.attempted > 60
    assert not found.failed


# Discovery.


def test_operations_are_imported_by_their_names() -> None:
    for op in layers.Op.registry.values():
        if op.__module__.startswith("vinoir."):
            assert getattr(layers, op.__name__) is op
            assert op.__name__ in dir(layers)
    with pytest.raises(AttributeError, match="MaxPoolV9"):
        _ = layers.MaxPoolV9  # type: ignore[attr-defined]


def test_type_checkers_see_every_operation() -> None:
    text = (ROOT / "layers/__init__.py").read_text("utf-8")
    for op in layers.Op.registry.values():
        if op.__module__.startswith("vinoir."):
            assert f"{op.__name__} as {op.__name__}" in text


def test_one_operation_imports_one_family() -> None:
    program = (
        "import sys; from vinoir.layers import MaxPoolV14; "
        "sys.exit('vinoir.layers.convolution' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# Paths in the place of models.

ON_MODELS: dict[str, Callable[[Any], Any]] = {
    "check": lambda m: str(ir.check(m)),
    "compare": lambda m: str(ir.compare(m, m)),
    "compile": lambda m: ir.compile(m, threads=1)([np.load("seven.npy")])[0],
    "compress": lambda m: str(ir.compress(m).report),
    "convert": lambda m: str(ir.convert(m, target="2022.1").report),
    "decompress": lambda m: str(ir.decompress(m).report),
    "diff": lambda m: str(ir.diff(m, m)),
    "draw": lambda m: ir.draw(m, title="one").svg(),
    "dumps": lambda m: ir.dumps(m),
    "edit": lambda m: str(ir.edit(m, [{"op": "rename", "input": "image", "to": "x"}]).report),
    "extract": lambda m: str(ir.extract(m, outputs=["pool1:0"]).report),
    "fix": lambda m: list(ir.fix(m)),
    "infer": lambda m: str(dict(ir.infer(m))),
    "merge": lambda m: str(ir.merge([m, m], prefixes=["a", "b"]).report),
    "reduce": lambda m: len(ir.reduce(m, lambda *_: True).model),
    "reshape": lambda m: str(dict(ir.reshape(m, {"image": "2,1,16,16"}))),
    "run": lambda m: ir.run(m, [np.load("seven.npy")])[0],
    "simplify": lambda m: repr(ir.simplify(m)[1]),
    "write": lambda m: ir.write(m, "out.xml") or Path("out.xml").read_bytes(),
}
#: What takes no model.
OTHERS = {"edit_schema", "explain", "from_onnx", "loads", "read", "sweep"}


def test_every_verb_that_takes_a_model_is_listed() -> None:
    verbs = {name for name in ir.__all__ if inspect.isfunction(getattr(ir, name))}
    assert verbs == ON_MODELS.keys() | OTHERS


@pytest.mark.parametrize("verb", ON_MODELS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_does_where_a_model_does(verb: str, kind: type, folder: Path) -> None:
    wanted = ON_MODELS[verb](ir.read("model.xml"))
    found = ON_MODELS[verb](kind("model.xml"))
    np.testing.assert_array_equal(found, wanted)


def test_what_was_made_of_a_path_is_at_hand(folder: Path) -> None:
    batch = ir.reshape("model.xml", {"image": "2,1,16,16"}).model
    assert isinstance(batch, ir.Model)
    assert str(batch.outputs[0].shape) == "2,10"
    assert ir.check(ir.fix("model.xml").model).ok


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UsageError, match="a model or the path of one is wanted, not int"):
        ir.infer(5)  # type: ignore[arg-type]


# Models, layers, ports.


def split() -> ir.Model:
    """Two halves, one of them without a name, and two layers of one name."""
    net = ir.Builder("split")
    x = net.parameter("x", "f32", "2,4", names=["x", "given"])
    parts = net.add("Split", "opset1", [x, net.constant(np.int64(1))], num_splits=2, name="n2")
    left = net.add("ReLU", "opset1", [parts[0]], name="same")
    right = net.add("Sigmoid", "opset1", [parts[1]], name="other")
    right.layer.name = "same"
    net.result(net.add("Add", "opset1", [left, right]), name="sum")
    return net.model()


def test_inputs_and_outputs_tell_names_types_and_shapes() -> None:
    model = split()
    end = model.inputs["given"]
    assert (end.name, end.names, str(end.type), end.shape.static) == (
        "x", ("x", "given"), "f32", (2, 4)
    )  # fmt: skip
    assert end.layer is model.inputs[0].layer
    assert repr(model.inputs) == "[x: f32[2,4]]"
    assert repr(model.outputs["sum"]) == "<output sum: f32[2,2]>"
    with pytest.raises(
        UsageError, match=r'nothing is named "gven"; there are x .did you mean give'
    ):
        model.inputs["gven"]


def test_outputs_of_version_10_have_the_types_of_their_interface() -> None:
    net = ir.Builder()
    net.result(net.parameter("x", "i64", "3"), name="y")
    model = net.model()
    model.version = 10
    assert str(model.outputs[0].type) == str(ir.infer(model)["y"].type) == "i32"


def test_ports_know_the_tensor_that_is_there() -> None:
    model = split()
    halves = model["n2"]
    assert [port.name for port in halves.inputs] == ["data", "axis"]
    assert [port.name for port in halves.outputs] == ["n2:0", "n2:1"]
    taker = halves.outputs[1].targets[0]
    assert taker.layer is halves.outputs[1].consumers[0]
    assert taker.source is halves.outputs[1]
    assert taker.producer is halves
    assert halves.inputs["axis"].producer is model.constants[0]
    assert (halves.inputs["axis"].index, halves.outputs[1].index) == (1, 1)
    assert [layer.type for layer in halves.consumers] == ["ReLU", "Sigmoid"]
    assert halves.producers == [model["x"], model.constants[0]]
    with pytest.raises(UsageError, match=r'no input is named "axes".*did you mean axis'):
        halves.inputs["axes"]
    with pytest.raises(UsageError, match="port 3 is in no layer"):
        _ = ir.Port(3).producer


def test_variadic_inputs_are_counted() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1")
    net.result(net.add("Concat", "opset1", [x, x, x], axis=0, name="all"))
    names = [port.name for port in net.model()["all"].inputs]
    assert len(set(names)) == 3
    assert names[1].endswith("[1]")


def test_ports_that_are_added_know_their_layer() -> None:
    layer = ir.Layer("Mine", "extension", "mine")
    layer.inputs.append(ir.Port(0))
    layer.inputs += [ir.Port(1)]
    layer.outputs = [ir.Port(2)]
    layer.outputs[0] = ir.Port(5)
    layer.inputs.insert(0, ir.Port(7))
    assert all(port.layer is layer for port in (*layer.inputs, *layer.outputs))
    assert [port.producer for port in layer.inputs] == [None] * 3
    assert layer.outputs[0].producer is layer


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_ports_of_a_copy_are_of_its_layers(again: Callable[[ir.Model], ir.Model]) -> None:
    model = split()
    assert model["n2"].inputs[0].producer is model["x"]
    other = again(model)
    assert other["n2"].inputs[0].producer is other["x"]
    assert other["n2"].inputs[0].layer is not model["n2"]
    assert other["n2"].inputs == model["n2"].inputs


def test_a_layer_takes_another_id() -> None:
    model = split()
    wanted = ir.run(model, [np.ones((2, 4), "f4")])[0]
    halves = model["n2"]
    halves.id = 77
    assert model[77] is halves
    assert len(halves.consumers) == 2
    with pytest.raises(UsageError, match="cannot have the id 77: <layer 77"):
        model["x"].id = 77
    assert model["x"].id != 77
    np.testing.assert_array_equal(ir.run(model, [np.ones((2, 4), "f4")])[0], wanted)
    assert ir.loads(*ir.dumps(model))["n2"].consumers[0].type == "ReLU"


def test_ids_in_a_body_are_meant_by_port_maps() -> None:
    net = ir.Builder("loop")
    x = net.parameter("x", "f32", "3,2")
    inner = ir.Builder("body", into=ir.Graph())
    row = inner.parameter("row", "f32", "1,2")
    inner.result(inner.add("ReLU", "opset1", [row]), name="done")
    wiring = ir.PortMap()
    body = inner.graph
    wiring.add("input", external_port_id=0, internal_layer_id=body.parameters[0].id, axis=0,
               start=0, end=-1, stride=1, part_size=1)  # fmt: skip
    wiring.add("output", external_port_id=1, internal_layer_id=body.results[0].id, axis=0,
               start=0, end=-1, stride=1, part_size=1)  # fmt: skip
    made = net.add("TensorIterator", "opset1", [x], outputs=[Tensor("f32", (3, 2))])
    made.layer.add_body("body", body, wiring)
    net.result(made, name="y")
    model = net.model()
    body.parameters[0].id, body.results[0].id = 40, 41
    given = np.float32([[-1, 1], [2, -2], [3, 3]])
    np.testing.assert_array_equal(ir.run(model, [given])["y"], given.clip(0))


# Attributes.


def test_attributes_are_read_and_given_by_value(model: ir.Model) -> None:
    pool = model["pool1"]
    assert pool.kernel == (2, 2)
    assert "kernel" in dir(pool)
    pool.kernel = np.array([3, 3])
    assert (pool.data["kernel"], pool.kernel) == ("3, 3", (3, 3))
    pool.rounding_type = "CEIL"
    assert pool.data["rounding_type"] == "ceil"
    pool.rounding_type = None
    assert "rounding_type" not in pool.data
    assert pool.rounding_type == "floor"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("kernal", (3, 3), "MaxPool has no attribute kernal (did you mean kernel?)"),
        ("rounding_type", "up", '"up" is not one of floor, ceil, ceil_torch'),
        ("kernel", None, "required attribute kernel is missing"),
        ("kernel", object(), "kernel"),
        ("kernel", 3, "kernel: 3 is one number, a list is expected, such as (3, 3)"),
        ("kernel", np.int64(3), "kernel: 3 is one number, a list is expected"),
        ("kernel", (3,), "strides has 2 axes, kernel has 1 (attributes that go together"),
        ("kernel", (2, 2, 2), "strides has 2 axes, kernel has 3 (attributes that go together"),
        ("strides", (1,), "strides has 1 axes, kernel has 2 (attributes that go together"),
        ("index_element_type", "i31", "i31"),
        ("index_element_type", np.float32, "f32, it is i32 or i64"),
        ("index_element_type", np.complex64, "no element type holds NumPy's complex64"),
        ("index_element_type", np.floating, "numpy.floating'> is not an element type"),
        ("index_element_type", np.ndarray, "numpy.ndarray'> is not an element type"),
    ],
)
def test_a_wrong_attribute_is_refused_at_once(
    name: str, value: object, said: str, model: ir.Model
) -> None:
    pool = model["pool1"]
    before = dict(pool.data)
    with pytest.raises(UsageError) as error:
        setattr(pool, name, value)
    assert said in str(error.value)
    assert 'layer 4 "pool1" (MaxPool opset14)' in str(error.value)
    assert str(error.value).startswith("model.xml:")
    assert pool.data == before


def test_types_of_numpy_are_taken_where_a_type_is_meant(model: ir.Model) -> None:
    pool = model["pool1"]
    pool.index_element_type = np.int32
    assert (pool.data["index_element_type"], pool.index_element_type) == ("i32", "i32")
    model.edit.set(pool, index_element_type=np.dtype("i8"))
    assert pool.data["index_element_type"] == "i64"
    net = ir.Builder()
    half = ir.ops.Convert(net.parameter("x", np.float32, "2"), destination_type=np.float16)
    made = net.add("Convert", "opset1", [half], destination_type=np.dtype("f8"))
    net.result(made)
    assert [str(layer.outputs[0].type) for layer in net.model().layers[:3]] == [
        "f32",
        "f16",
        "f64",
    ]
    assert layers.ConvertV1(destination_type=bool).destination_type == "boolean"  # type: ignore[arg-type]
    assert layers.ParameterV1(element_type=np.uint8, shape="1").element_type == "u8"  # type: ignore[arg-type]


def test_a_name_that_is_no_attribute_is_missing_as_python_says_it(model: ir.Model) -> None:
    assert not hasattr(model["pool1"], "kernal")
    assert getattr(model["look1"], "axes", None) is None
    with pytest.raises(AttributeError):
        model["pool1"]._mine = 1


def test_attributes_of_unknown_operations_are_text() -> None:
    layer = ir.Layer("Mine", "extension", "mine", data={"speed": "3"})
    assert layer.speed == "3"
    layer.speed = 2.5
    assert layer.data == {"speed": "2.5"}
    with pytest.raises(UsageError, match=r"Mine has no attribute sped .did you mean speed"):
        layer.sped = 1


def test_names_in_the_file_are_known_too() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,1,4,4")
    pool = net.add("AvgPool", "opset14", [x], data={"exclude-pad": True}, **POOL).layer
    assert pool.exclude_pad is True
    pool.exclude_pad = False
    assert pool.data["exclude-pad"] == "false"
    pool.set_attribute("exclude-pad", True)
    assert pool.op is not None
    assert pool.op.attributes()["exclude-pad"] == "true"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((3, 3), "3, 3"), ([0.5, 2.0], "0.5, 2"), (True, "true"), (np.bool_(False), "false"),
        (0.1, "0.10000000000000001"), (np.int64(4), "4"), (np.arange(3), "0, 1, 2"),
        (ElementType.F16, "f16"), (np.float16, "f16"), (np.dtype("u1"), "u8"),
        ("as it is", "as it is"),
    ],
)  # fmt: skip
def test_what_is_put_into_data_is_spelt_as_text(value: object, text: str, model: ir.Model) -> None:
    data = model["pool1"].data
    data["kernel"] = value  # type: ignore[assignment]  # any value is spelt
    data.update(other=value)  # type: ignore[arg-type]
    assert data["kernel"] == data["other"] == text
    assert ir.Layer("Mine", "extension", data={"one": value}).data == {"one": text}  # type: ignore[dict-item]


def test_what_no_attribute_holds_is_refused(model: ir.Model) -> None:
    with pytest.raises(UsageError, match="kernel: an attribute holds text, numbers"):
        model["pool1"].data["kernel"] = {"height": 3}  # type: ignore[assignment]
    ir.dumps(model)


def test_an_operation_is_put_in(model: ir.Model) -> None:
    pool = model["pool1"]
    before = dict(pool.data)
    assert isinstance(pool.op, layers.MaxPoolV14)
    pool.op = pool.op.with_(strides=(1, 2))
    assert pool.data == {**before, "strides": "1, 2"}
    pool.op = layers.AvgPoolV1(exclude_pad=True, **POOL)
    assert (pool.type, pool.version, pool.exclude_pad) == ("AvgPool", "opset1", True)
    wrong = "kernal is not an attribute of AvgPool-1, did you mean kernel"
    with pytest.raises(ValidationError, match=wrong):
        pool.op.with_(kernal=3)
    with pytest.raises(ValidationError, match="rounding_type"):
        pool.op.with_(rounding_type="up")


# Names that come out go in.


def test_names_that_come_out_go_in() -> None:
    model, given = split(), [np.arange(8, dtype="f4").reshape(2, 4)]
    every = ir.run(model, given, outputs="all")
    assert {"n2:0", "n2:1"} <= every.keys()
    for name in every:
        np.testing.assert_array_equal(ir.run(model, given, outputs=[name])[name], every[name])
        np.testing.assert_array_equal(ir.compile(model, outputs=[name])(given)[name], every[name])
        assert ir.infer(model)[name].shape.static == every[name].shape
        assert name in model
        layer = model[name]
        if layer.type != "Result":  # of that name, which is the output's
            assert any(port is layer.outputs[name] for port in layer.outputs)
        if name != "x":
            part, _ = ir.extract(model, outputs=[name])
            taken = given[: len(part.inputs)]
            np.testing.assert_array_equal(ir.run(part, taken)[0], every[name])
    assert list(ir.compile(model, outputs="all")(given)) == list(every)
    with pytest.raises(UsageError, match='layer "n2" has 2 outputs, 5 is asked for'):
        ir.run(model, given, outputs=["n2:5"])
    assert model["n2:1"] is model["n2"]
    assert model["n2"].outputs["n2:1"] is model["n2"].outputs[1]
    second = next(layer for layer in model if layer.type == "Sigmoid")
    assert model[f"same#{second.id}"] is second
    assert second.outputs[f"same#{second.id}"] is second.outputs[0]
    assert "n2:5" not in model
    with pytest.raises(UsageError, match=r'no layer or tensor is named "n2:5"'):
        model["n2:5"]
    with pytest.raises(UsageError, match=r'no output is named "n2:2"; there are n2:0, n2:1'):
        model["n2"].outputs["n2:2"]


def test_a_program_of_other_outputs_is_copied(model: ir.Model) -> None:
    program = ir.compile(model, outputs=["pool1:0", "digit"])
    again = pickle.loads(pickle.dumps(program))
    image = np.load("seven.npy")
    for name, array in program([image]).items():
        np.testing.assert_array_equal(again([image])[name], array)
    assert len(model.outputs) == 1


# Prompt and notebook.


def shown(model: ir.Model) -> dict[str, Any]:
    program = ir.compile(model, threads=1)
    return {
        "model": model,
        "layer": model["pool1"],
        "constant": model.constants[0],
        "ends": model.inputs,
        "report": ir.check(model),
        "inferred": ir.infer(model),
        "program": program,
        "state": program.state,
        "outputs": ir.run(model, [np.load("seven.npy")], outputs="all"),
        "differences": ir.diff(model, ir.convert(model, target="2022.1").model),
        "comparison": ir.compare(model, "f16"),
        "surgery": ir.convert(model, target="2022.1").report,
        "simplified": ir.simplify(model)[1],
    }


def test_everything_shows_itself(model: ir.Model) -> None:
    for name, one in shown(model).items():
        line, table = repr(one), one._repr_html_()
        assert "\n" not in line, name
        assert len(line) < 500, name
        assert " at 0x" not in line, name
        assert table.startswith("<p>"), name
        assert len(table) < 300_000, name
    assert "<svg" in model.constants[0]._repr_html_()
    assert Tensor.of(np.int64([1, 2]))._repr_html_() == "<code>i64[2] = [1 2]</code>"


def test_names_of_a_file_are_no_markup() -> None:
    evil = "<script>alert(1)</script>\x1b[2J"
    net = ir.Builder(evil)
    x = net.parameter(evil, "f32", "1")
    net.result(net.add("ReLU", "opset1", [x], name=evil), name=evil + "2")
    model = net.model()
    outputs = ir.run(model, [np.float32([1])], outputs="all")
    for one in (model, model.layers[1], model.inputs, outputs, ir.infer(model), ir.compile(model)):
        assert "\x1b" not in one._repr_html_() + repr(one)
        assert "<script" not in one._repr_html_()


def test_tables_of_large_models_are_short() -> None:
    net = ir.Builder("wide")
    x = net.parameter("x", "f32", "1")
    for _ in range(300):
        net.result(net.add("ReLU", "opset1", [x]))
    model = net.model()
    for one in (model, model.outputs, ir.infer(model), ir.run(model, [np.float32([1])])):
        assert len(one._repr_html_()) < 40_000
        assert len(repr(one)) < 1000
        assert "more" in one._repr_html_()


def test_arrays_of_any_kind_have_a_picture() -> None:
    for array in (np.float32(1), np.zeros((0, 3)), np.array([np.nan, np.inf, -np.inf]),
                  np.ones((2, 3, 500, 400), "u1"), np.array(["a"], "T")):  # fmt: skip
        text = html(ir.Outputs({"x": np.asarray(array)}, {}))
        assert len(text) < 60_000


# Type checkers.


def test_a_users_script_runs(folder: Path) -> None:
    assert typed_user.use(folder / "model.xml") == pytest.approx(2, abs=1e-4)


CHECKERS = {
    "mypy": ["mypy", "--strict", "--no-incremental", "--follow-imports=silent"],
    "pyright": ["pyright", "--pythonpath", sys.executable],
}


def checked(checker: str, scripts: list[Path], folder: Path) -> str:
    """What a type checker says of scripts, run once for all from a folder that is not ours."""
    pytest.importorskip(checker, reason=f"{checker} is not installed")
    command = [sys.executable, "-m", *CHECKERS[checker], *map(str, scripts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return done.stdout + done.stderr


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_users_script_is_typed_and_misspelt_names_are_found(
    checker: str, tmp_path: Path
) -> None:
    lines = [
        "from vinoir import ir",
        "from vinoir.layers import MaxPoolV99",
        "from vinoir.ir import compil",
        "from vinoir.ir.surgery import edti",
        'ir.chekc("model.xml")',
        "ir.bench",
        'ir.check("model.xml")',
        'x = ir.Builder("m").parameter("x", np.float32, [1])',
        "ir.ops.Convert(x, destination_type=np.float16)",
    ]
    script = tmp_path / "script.py"
    script.write_text("\n".join(["import numpy as np", *lines]))
    said = checked(checker, [ROOT / "tests/typed_user.py", script], tmp_path)
    found = re.findall(r"(\w+\.py):(\d+):.*error", said)
    assert set(found) == {("script.py", line) for line in "34567"}, said


def test_a_program_tells_what_it_takes_and_gives(model: ir.Model) -> None:
    program = ir.compile(model)
    taken, given = model.inputs[0], model.outputs[0]
    assert program.inputs[taken.name].tensor == taken.tensor
    assert [str(end) for end in program.inputs] == [str(end) for end in model.inputs]
    assert program.outputs[given.name].name == given.name
