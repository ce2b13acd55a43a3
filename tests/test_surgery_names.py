"""Names of inputs and outputs after edits: OpenVINO feeds and asks for each by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.surgery import Session
from vinoir.ir.surgery.workbench import Source, Workbench
from vinoir.schemas import IRError, UsageError

FED = {"x": np.float32([[1, -2, 3]])}


def asked(model: ir.Model, fed: dict[str, Any] = FED) -> dict[str, Any]:
    """What OpenVINO gives under each name of each output; inputs are fed by their names."""
    openvino = pytest.importorskip("openvino")
    text, weights = ir.dumps(model)
    assert list(ir.check(text, weights=weights)) == []
    held = openvino.Tensor(np.frombuffer(weights or b"\0", np.uint8).copy())
    core = openvino.Core()
    found = core.compile_model(core.read_model(text, held), "CPU")(fed)
    return {name: array for port, array in found.items() for name in port.get_names()}


def handing_on() -> ir.Model:
    """A model whose input is an output, too."""
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="y")
    net.result(x, name="same")
    return ir.loads(*ir.dumps(net.model()))


def in_turn(first: str = "y") -> ir.Model:
    """A model with two outputs, one of which is a Reshape that may be left out of the other."""
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3")
    relu = net.add("ReLU", "opset1", [x], name="relu")
    whole = net.add("Reshape", "opset1", [relu, np.int64([1, 3])], special_zero=False, name="one")
    for name in ("y", "z") if first == "y" else ("z", "y"):
        net.result(whole if name == "y" else relu, name=name)
    return ir.loads(*ir.dumps(net.model()))


SOFT = np.exp(FED["x"]) / np.exp(FED["x"]).sum()


@pytest.mark.parametrize(
    ("entry", "y", "same"),
    [
        ({"op": "insert", "after": "x", "type": "Negative"}, [[0, 2, 0]], -FED["x"]),
        ({"op": "preprocess", "input": "x", "mean": 1.0, "model_layout": "NC"},
         [[0, 0, 2]], FED["x"] - 1),
        ({"op": "softmax", "output": "same"}, [[1, 0, 3]], SOFT),
        ({"op": "argmax", "output": "same"}, [[1, 0, 3]], [2]),
        ({"op": "top-k", "output": "same", "k": 1}, [[1, 0, 3]], [[3]]),
    ],
)  # fmt: skip
def test_an_input_that_is_an_output_is_fed_by_its_name_after_an_edit(
    entry: dict[str, Any], y: Any, same: Any
) -> None:
    model = ir.edit(handing_on(), [entry]).model
    for found in (asked(model), ir.run(model, FED)):
        np.testing.assert_allclose(found["y"], y, rtol=1e-6)
        np.testing.assert_allclose(found["same"], same, rtol=1e-6)


def test_an_output_of_an_inputs_only_name_gets_a_name_of_its_own() -> None:
    model = handing_on()
    result = model.results[1]
    model.parameters[0].outputs[0].names = ("x",)
    result.output_names, result.name = "x", "x/sink_port_0"
    model.edit.insert("Negative", after="x", name="less")
    for found in (asked(model), ir.run(model, FED)):
        np.testing.assert_array_equal(found["less"], -FED["x"])
    assert model.parameters[0].outputs[0].names == ("x",)


@pytest.mark.parametrize("also", ["input", "output"])
@pytest.mark.parametrize("names", [("asked", "other"), ("other", "asked"), ("asked",)])
@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"op": "softmax"}, np.exp([[1, 2, 3]]) / np.exp([1, 2, 3]).sum()),
        ({"op": "argmax"}, [2]), ({"op": "top-k", "k": 1}, [[3]]),
    ],
)  # fmt: skip
def test_what_an_output_is_made_goes_by_the_name_that_was_asked(
    entry: dict[str, Any], wanted: Any, names: tuple[str, ...], also: str
) -> None:
    """As OpenVINO writes a tensor that is two things: its Results have names of their own."""
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3")
    source = x if also == "input" else net.add("Abs", "opset1", [x], name="asked")
    for number in range(1 + (also == "output")):
        result = net.result(source, name=f"r/sink_port_{number}", names=())
        result.output_names = ",".join(names)
    source.layer.outputs[0].names = (*(("x",) if also == "input" else ()), *names)
    model = ir.loads(*ir.dumps(net.model()))
    model = ir.edit(model, [entry | {"output": "asked"}]).model
    fed = {"x": np.float32([[1, 2, 3]])}
    for found in (asked(model, fed), ir.run(model, fed)):
        np.testing.assert_allclose(found["asked"], wanted, rtol=1e-6)
    if also == "input":
        assert "asked" not in model.parameters[0].outputs[0].names
        return
    # What is still an output goes by what is left of its names.
    assert (set(names) - {"asked"} or {"asked_1"}) <= asked(model, fed).keys()


PATTERN = [{"id": "r", "type": "Reshape", "inputs": ["d", "s"]}]


@pytest.mark.parametrize("first", ["y", "z"])
@pytest.mark.parametrize(
    "entry",
    [
        {"op": "bypass", "layer": "one"},
        {"op": "connect", "from": "relu", "to": "y"},
        {"op": "replace", "pattern": PATTERN, "with": [], "output": "d"},
    ],
)
def test_two_outputs_that_become_one_tensor_are_asked_for_by_either_name(
    entry: dict[str, Any], first: str
) -> None:
    model = ir.edit(in_turn(first), [entry]).model
    assert list(ir.run(model, FED)) == [first, "z" if first == "y" else "y"]
    for found in (asked(model), ir.run(model, FED)):
        for name in ("y", "z"):
            np.testing.assert_array_equal(found[name], [[1, 0, 3]])


def test_of_two_outputs_of_one_tensor_one_is_given_another() -> None:
    model = ir.edit(in_turn(), [{"op": "bypass", "layer": "one"}]).model
    model.edit.insert("Negative", before="y:0")
    for found in (asked(model), ir.run(model, FED)):
        np.testing.assert_array_equal(found["y"], [[-1, 0, -3]])
        np.testing.assert_array_equal(found["z"], [[1, 0, 3]])


def test_outputs_that_stay_when_models_are_joined_keep_their_names() -> None:
    first, second = ir.Builder("first"), ir.Builder("second")
    x = first.parameter("x", "f32", "1,3")
    first.result(first.add("ReLU", "opset1", [x]), name="middle")
    y = second.parameter("given", "f32", "1,3")
    second.result(second.add("Exp", "opset1", [y]), name="end")
    second.result(y, name="same")
    models = [first.model(), second.model()]
    model = ir.merge(models, connect={"middle": "given"}, keep_outputs=True).model
    found = asked(model)
    for name in ("middle", "same"):
        np.testing.assert_array_equal(found[name], [[1, 0, 3]])
    np.testing.assert_allclose(found["end"], np.exp([[1, 0, 3]]), rtol=1e-6)


@pytest.mark.parametrize("told", ["port", "place", "layer", "tensor"])
def test_a_tensor_is_renamed_for_those_who_ask_for_it(told: str) -> None:
    model = in_turn()
    if told == "port":
        model.edit.rename(model["one"].outputs[0], "new")
    else:
        entry = {"place": {"tensor": "one:0"}, "layer": {"output": "one"}, "tensor": {"any": "y"}}
        model = ir.edit(model, [{"op": "rename", "to": "new", **entry[told]}]).model
    assert list(ir.run(model, FED)) == ["new", "z"]
    assert asked(model).keys() == {"new", "z"}


def test_a_layer_that_feeds_an_output_is_renamed_by_its_name() -> None:
    model = in_turn()
    model.edit.rename("one", "new")
    assert model["new"].type == "Reshape"
    assert model.outputs.names == ["y", "z"]
    model = in_turn()  # as on the command line
    model = ir.edit(model, [{"op": "rename", "any": "relu", "to": "new"}]).model
    assert model["new"].type == "ReLU"
    assert asked(model).keys() == {"y", "z"}


def test_an_output_that_shares_its_tensor_is_renamed_alone() -> None:
    net = ir.Builder("m")
    relu = ir.ops.ReLU(net.parameter("x", "f32", "1,3"), name="relu")
    net.result(relu, name="a")
    net.result(relu, name="b")
    for names in ("a", ""):  # as OpenVINO writes it, and without names
        model = net.model().copy()
        model["relu"].outputs[0].names = (names,) if names else ()
        for result in model.results:
            result.output_names = names or None
        assert model.outputs.names == ["a", "b"]
        model.edit.rename("b", "new")
        assert model.outputs.names == ["a", "new"]
        found = ir.run(ir.loads(*ir.dumps(model)), FED)
        np.testing.assert_array_equal(found["new"], [[1, 0, 3]])
        np.testing.assert_array_equal(found["a"], [[1, 0, 3]])
        with pytest.raises(UsageError, match="has that name"):
            model.edit.rename("new", "a")
        with pytest.raises(UsageError, match="has that name"):
            model.edit.rename("new", "x")


def test_one_more_output_of_an_output_is_asked_for_by_either_name() -> None:
    model = in_turn()
    model.edit.output("one", "more")
    assert asked(model).keys() == {"y", "more", "z"}


TWO = np.float32([1, 2])


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (lambda e: e.output("a", name="tb"), "two tensors would be named"),
        (lambda e: e.rename("x", "tb"), "has that name"),
        (lambda e: e.rename("a", "b"), "has that name"),
        (lambda e: e.insert("Add", after="a", inputs=["@", TWO]), "do not broadcast"),
        (lambda e: e.insert("ReLU", after="a", output=4), "4 is handed on"),
        (lambda e: e.insert("Add", after="a", inputs=["@", TWO], foo=3), "no attribute foo"),
        (lambda e: e.replace("a", "ReLU", name="b"), "has that name"),
        (lambda e: e.replace("a", "Add", inputs=["@", TWO]), "do not broadcast"),
    ],
)
def test_an_edit_that_is_refused_leaves_the_model_as_it_was(
    verb: Callable[[Any], Any], said: str
) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3")
    a = net.add("ReLU", "opset1", [x], name="a").named("ta")
    b = net.add("Sigmoid", "opset1", [a], name="b").named("tb")
    net.result(net.add("Add", "opset1", [b, np.float32([1, 2, 3])], name="c"), name="y")
    model = ir.loads(*ir.dumps(net.model()))
    before = ir.dumps(model)
    with pytest.raises(IRError, match=said):
        verb(model.edit)
    assert ir.dumps(model) == before


@pytest.mark.parametrize(
    "entry",
    [
        {"op": "set-version", "layer": "soft", "version": "opset20"},
        {"op": "set-attribute", "layer": "top", "name": "mode", "value": "other"},
        {"op": "preprocess", "input": "x", "layout": "NHWC", "type": "u8", "mean": [1, 2]},
        {"op": "rename", "layers": "(soft|top)", "to": "same"},
        {"op": "rename", "tensors": "(inner|y)", "to": "same"},
        {"op": "nms", "boxes": "soft", "scores": "soft", "max_boxes": 1},
    ],
    ids=lambda entry: entry["op"],
)
def test_an_edit_that_is_refused_halfway_takes_back_what_it_did(entry: dict[str, Any]) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3,4,4")
    soft = net.add("SoftMax", "opset8", [x], axis=1, name="soft").named("inner")
    words = {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i32"}
    top = net.add("TopK", "opset11", [soft, np.int64(1)], name="top", **words)
    net.result(top[0], name="y")
    model = ir.loads(*ir.dumps(net.model()))
    before, session = ir.dumps(model), Session(model)
    with pytest.raises(IRError):
        session.apply(None, entry)
    session.end(infer=False)
    assert ir.dumps(model) == before


def test_all_names_of_a_tensor_are_renamed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    net = ir.Builder("m")
    source = net.add("ReLU", "opset1", [net.parameter("x", "f32", "1,3")])
    for number in range(20):
        net.result(source, name=f"o{number}")
    model, told = net.model(), []
    tell = Workbench.tell_outputs

    def counted(bench: Workbench, end: Source) -> None:
        told.append(end)
        tell(bench, end)

    monkeypatch.setattr(Workbench, "tell_outputs", counted)
    new = ir.edit(model, [{"op": "rename", "tensors": "o(.*)", "to": r"o1\1"}]).model
    assert len(told) == 1
    wanted = {f"o1{number}" for number in range(20)}
    assert set(new["ReLU"].outputs[0].names) == wanted
    for end in new.results:
        assert set((end.output_names or "").split(",")) == wanted


def test_two_names_that_become_one_are_one_for_outputs_too() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3")
    y = net.add("ReLU", "opset1", [x], name="r")
    net.result(y, name="o1")
    net.result(y, name="o2")
    model = net.model()
    before = [layer.output_names for layer in model.results]
    edited, _ = ir.edit(model, [{"op": "rename", "tensors": "o.*", "to": "y"}])
    assert edited["r"].outputs[0].names == ("y",)
    assert {layer.output_names for layer in edited.results} == {"y"}
    assert [layer.output_names for layer in model.results] == before
