"""Models edited by their own short verbs: shapes follow, names are found, mistakes are told."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import ask
from test_face import folder, model, split
from test_states import counter
from vinoir import ir
from vinoir.schemas import IRError, Tensor, UsageError

__all__ = ["folder", "model"]  # fixtures


def settled(model: ir.Model) -> ir.Model:
    """The model that is read again; nothing is wrong with it, and OpenVINO infers the same."""
    xml, weights = ir.dumps(model)
    again = ir.loads(xml, weights)
    assert ask("shapes", xml.decode(), weights) == [
        f"{t.type}[{t.shape.spelling}]" for t in ir.infer(again).values()
    ]
    assert str(ir.check(again)).endswith("nothing found"), str(ir.check(again))
    for layer, index, tensor in ir.infer(again).ports():
        assert layer.outputs[index].tensor == Tensor(tensor.type, layer.outputs[index].shape)
    return again


def chain() -> ir.Model:
    net = ir.Builder("chain")
    x = net.parameter("x", "f32", "?,4")
    w = net.constant(np.float32([1, 2, 3, 4]), name="w")
    scaled = net.add("Multiply", "opset1", [x, w], name="scaled").named("times")
    net.result(net.add("Tanh", "opset1", [scaled], name="end"), name="y")
    return net.model()


X = np.float32([[-1, 0.5, 2, 0]])
W = np.float32([1, 2, 3, 4])


def test_plain_numbers_take_the_type_of_what_they_meet() -> None:
    model = chain()
    model.edit.insert("Reshape", after="scaled", inputs=["@", [2, -1]], special_zero=False)
    model.edit.insert("Add", after="scaled", inputs=["@", [2] * 4])
    kinds = {layer.name: str(layer.element_type) for layer in model.constants}
    assert kinds["Add/constant_1"] == "f32"
    assert kinds["Reshape/constant_1"] == "i64"
    again = settled(model)
    (found,) = ir.run(again, [X]).values()
    np.testing.assert_allclose(found, np.tanh(X * W + 2).reshape(2, -1), rtol=1e-6)
    with pytest.raises(IRError, match="i64"):  # an array says its type
        chain().edit.insert("Add", after="scaled", inputs=["@", np.array(2)])


def test_a_layer_is_inserted_after_and_before() -> None:
    model = chain()
    relu = model.edit.insert("ReLU", after=model["scaled"].outputs[0], name="positive")
    assert relu.consumers == [model["end"]]
    add = model.edit.insert("Add", before="end:0", inputs=["@", np.float32(1)])
    assert add.producers[0] is relu
    found = ir.run(settled(model), [X])["y"]
    np.testing.assert_allclose(found, np.tanh((X * W).clip(0) + 1), rtol=1e-6)


def test_a_layer_is_bridged_and_several_are_removed() -> None:
    model = chain()
    model.edit.bridge("scaled")
    assert [layer.type for layer in model] == ["Parameter", "Tanh", "Result"]
    np.testing.assert_allclose(ir.run(settled(model), [X])["y"], np.tanh(X), rtol=1e-6)
    model = chain()
    model.edit.output("times", "seen")
    with pytest.raises(UsageError, match="it feeds input 0 of layer"):
        model.edit.remove("end")
    model.edit.remove("end", model.results[0])
    assert model.outputs.names == ["times"]
    settled(model)


def test_a_layer_is_replaced() -> None:
    model = chain()
    made = model.edit.replace("end", "Clamp", min=-1, max=1)
    assert (made.name, made.op.spec() if made.op else "") == ("end", "Clamp-1")
    assert model.outputs.names == ["y"]
    np.testing.assert_allclose(ir.run(settled(model), [X])["y"], (X * W).clip(-1, 1))
    model.edit.replace("scaled", "Add", inputs=["@", 2.0])
    np.testing.assert_allclose(ir.run(settled(model), [X])["y"], (X + 2).clip(-1, 1))
    assert "w" not in model
    with pytest.raises(UsageError, match=r"Clamp has no attribute least .it has min, max"):
        model.edit.replace("end", "Clamp", least=0)


def test_everything_that_has_a_name_is_renamed() -> None:
    model = chain()
    with model.edit as edit:
        edit.rename("x", "image")
        edit.rename("y", "z")
        edit.rename("times", "product")
        edit.rename("w", "weights")
    assert (model.inputs.names, model.outputs.names) == (["image"], ["z"])
    assert model["product"] is model["scaled"]
    assert ir.run(settled(model), {"image": X}, outputs=["product"])["product"].shape == (1, 4)
    with pytest.raises(UsageError, match='cannot be renamed to "end"'):
        model.edit.rename(model["weights"], "end")


def test_variables_are_renamed_where_they_are_read_and_written() -> None:
    model = counter()
    model.edit.rename("count", "seen")
    program = ir.compile(settled(model))
    program({"step": [2.0]})
    assert program.state["seen"] == [2]


def test_constants_get_values_and_types() -> None:
    model = chain()
    model.edit.constant("w", np.float32([[2.0]]))
    assert model["w"].outputs[0].shape.static == (1, 1)
    np.testing.assert_allclose(ir.run(settled(model), [X])["y"], np.tanh(X * 2), rtol=1e-6)
    with pytest.raises(IRError, match="Multiply"):
        model.edit.constant("w", type="f16")  # f32 times f16: the shape rule refuses it
    model.edit.constant("w", type="f32")
    settled(model)
    with pytest.raises(UsageError, match="which i8 does not hold"):
        model.edit.constant("w", np.float32([0.5]), "i8")
    with pytest.raises(UsageError, match="only Const has one"):
        model.edit.constant("end", 1.0)


def test_attributes_are_set_and_shapes_follow(model: ir.Model) -> None:
    before = model["pool1"].outputs[0].dims
    model.edit.set("pool2", rounding_type="ceil", index_element_type="i32")
    assert model["pool1"].outputs[0].dims == before
    assert str(model["pool2"].outputs[1].type) == "i32"
    with pytest.raises(UsageError, match="rounding_type"):
        model.edit.set("pool2", index_element_type="i64", rounding_type="up")
    assert str(model["pool2"].index_element_type) == "i32"
    model["pool2"].index_element_type = "i64"
    model.settle()
    assert str(model["pool2"].outputs[1].type) == "i64"


def test_what_a_layer_refuses_is_said_and_can_be_mended() -> None:
    model = chain()
    with pytest.raises(IRError, match='"scaled"'):
        model.edit.constant("w", np.ones(3, "f4"))
    model.edit.constant("w", np.ones(4, "f4"))
    settled(model)


def test_layers_of_one_name_are_told_apart_by_objects() -> None:
    model = split()
    second = next(layer for layer in model if layer.type == "Sigmoid")
    made = model.edit.insert("Tanh", after=second.outputs[0])
    assert made.producers == [second]
    model.edit.bridge(second)
    assert "Sigmoid" not in {layer.type for layer in model}
    with pytest.raises(UsageError, match="did you mean ReLU"):
        model.edit.insert("Relu", after="n2:1")


def with_body() -> ir.Model:
    """A model whose layer ``turns`` takes its rows through the body's ``r``."""
    net = ir.Builder()
    x = net.parameter("x", "f32", "3,2")
    inner = ir.Builder("body", into=ir.Graph())
    half = inner.constant(np.float32(0.5), name="half")
    scaled = inner.add("Multiply", "opset1", [inner.parameter("row", "f32", "1,2"), half])
    inner.result(inner.add("ReLU", "opset1", [scaled], name="r"))
    wiring, body = ir.PortMap(), inner.graph
    for kind, number, layer in (("input", 0, body.parameters[0]), ("output", 1, body.results[0])):
        wiring.add(kind, external_port_id=number, internal_layer_id=layer.id, axis=0, start=0,
                   end=-1, stride=1, part_size=1)  # fmt: skip
    made = net.add("TensorIterator", "opset1", [x], outputs=[Tensor("f32", (3, 2))], name="turns")
    made.layer.add_body("body", body, wiring)
    last = net.add("Multiply", "opset1", [made, net.constant(np.float32(4), name="four")])
    net.result(last, name="y")
    return net.model()


def answer(model: ir.Model) -> float:
    """What the model gives for ones, all alike."""
    (found,) = {float(x) for x in ir.run(model, [np.ones((3, 2), "f4")])["y"].flat}
    return found


def test_bodies_are_edited_from_outside() -> None:
    model = with_body()
    model.edit.replace("r", "Negative", within="turns")
    assert answer(model) == -2


def test_layers_of_a_body_mean_themselves() -> None:
    for number in range(4):  # of each id there is another layer outside
        model = with_body()
        body = model["turns"].bodies["body"]
        layer = body.layer(number)
        model.edit.rename(layer, "other")
        assert layer.name == "other"
        assert "other" not in model
    model = with_body()
    body = model["turns"].bodies["body"]
    with model.edit as edit:
        edit.constant(body["half"], np.float32(3))
        made = edit.insert("Negative", after=body["r"].outputs[0])
        edit.insert("Abs", after=made, within="turns/body")
        edit.replace(made, "Sqrt")
    assert answer(model) == pytest.approx(3**0.5 * 4)
    model.edit.bridge(body["r"])
    assert "r" not in body
    with pytest.raises(UsageError, match="a body has no outputs of its own"):
        model.edit.output(body["half"])


def test_layers_of_no_part_of_the_model_are_refused() -> None:
    model, other = with_body(), with_body()
    before = ir.dumps(model)
    gone = model.copy()
    taken = gone["turns"]
    gone.edit.bridge(taken)
    edits = [
        lambda: gone.edit.rename(taken, "again"),
        lambda: model.edit.set(ir.Layer("ReLU", "opset1", "x"), a=1),
    ]
    for layer in (other["four"], other["turns"].bodies["body"].layer("half"), gone["four"]):
        edits += [
            lambda layer=layer: model.edit.rename(layer, "z"),
            lambda layer=layer: model.edit.rename(layer.outputs[0], "z"),
            lambda layer=layer: model.edit.bridge(layer),
            lambda layer=layer: model.edit.remove("y", layer),
            lambda layer=layer: model.edit.replace(layer, "ReLU"),
            lambda layer=layer: model.edit.set(layer, a=1),
            lambda layer=layer: model.edit.constant(layer, 2),
            lambda layer=layer: model.edit.insert("Add", after="x", inputs=["@", layer]),
            lambda layer=layer: model.edit.connect(layer, "turns:0"),
            lambda layer=layer: model.edit.output(layer),
        ]
    for edit in edits:
        with pytest.raises(UsageError, match="it is not in the model that is edited"):
            edit()
    inner = model["turns"].bodies["body"]
    with pytest.raises(UsageError, match="it is in the model itself, not in the graph"):
        model.edit.rename(model["four"], "z", within="turns")
    with pytest.raises(UsageError, match="it is in another body, not in the graph"):
        model.edit.insert("Add", after=model["four"], inputs=["@", inner["half"]])
    assert ir.dumps(model) == before
