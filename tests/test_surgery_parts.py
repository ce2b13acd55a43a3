"""Parts of models, and models joined: what they compute, hold and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import openvino
import pytest
from conftest import Written
from networks import Drawer
from oracle import ask
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.schemas import UsageError


def network() -> ir.Model:
    """Two branches with constants of different sizes, and a shared input."""
    net = ir.Builder("two")
    x = net.parameter("x", "f32", "1,4")
    left = net.add("MatMul", "opset1", [x, net.constant(np.ones((4, 6), "f4"), name="w1")],
                   transpose_a=False, transpose_b=False, name="left")  # fmt: skip
    right = net.add("Multiply", "opset1", [x, net.constant(np.arange(4, dtype="f4"), name="w2")],
                    name="right")  # fmt: skip
    parts = net.add("Split", "opset1", [left, net.constant(np.int64(1), name="axis")],
                    num_splits=2, name="parts")  # fmt: skip
    total = net.add("Add", "opset1", [parts[0], parts[1]], name="total")
    net.result(total.named("sum"), name="y")
    net.result(net.add("ReLU", "opset1", [right], name="relu"), name="z")
    return ir.loads(*ir.dumps(net.model()))


def names(layers: list[ir.Layer]) -> list[str]:
    return [layer.name for layer in layers]


def test_between_tensors() -> None:
    model = network()
    done = ir.extract(model, ["left"], ["sum"])
    part = ir.loads(*ir.dumps(done.model))
    assert names(part.parameters) == ["left"]
    assert names(part.results) == ["y"]
    assert part.parameters[0].outputs[0].names == ("left",)
    assert part.weights is not None
    assert part.weights.size == 8
    row = np.arange(6, dtype="f4")[None]
    np.testing.assert_array_equal(ir.run(part, {"left": row})["sum"], row[:, :3] + row[:, 3:])
    assert ir.dumps(model) == ir.dumps(network()), "the model was changed"


def test_one_of_two_outputs_and_the_order_that_is_asked_for() -> None:
    model = network()
    part = ir.extract(model, ["parts:1", "x"], ["relu", "total", "parts:0"]).model
    assert names(part.parameters) == ["parts:1", "x"]
    assert names(part.results) == ["z", "y", "parts/sink_port_0"]
    x, half = np.ones((1, 4), "f4"), np.full((1, 3), 5, "f4")
    relu, total, first = ir.run(part, [half, x]).values()
    np.testing.assert_array_equal(first + 5, total)
    np.testing.assert_array_equal(relu, np.arange(4, dtype="f4")[None])


def test_outputs_alone_and_layers_by_pattern() -> None:
    model = network()
    part = ir.extract(model, None, ["z"]).model
    assert {layer.name for layer in part} == {"x", "w2", "right", "relu", "z"}
    part = ir.extract(model, layers="parts|total").model
    assert names(part.parameters) == ["left"]
    assert names(part.results) == ["y"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        (["left"], None, 'needs input "x", by layer "right"'),
        (["left"], ["z"], "needs input"),
        (["x", "left"], ["sum"], 'input "x" feeds none of the outputs'),
        (["x"], ["summ"], "did you mean sum"),
        (["x"], ["parts"], 'write "parts:0"'),
        (["x"], ["parts:2"], "has 2 outputs, 2 is asked for"),
        (["x", "x"], ["sum"], "named twice"),
        (None, [], "without outputs"),
    ],
)
def test_refused(inputs: list[str] | None, outputs: list[str] | None, said: str) -> None:
    with pytest.raises(ir.UsageError, match=said):
        ir.extract(network(), inputs, outputs)


def test_every_network_cut_in_two_and_joined_again_is_itself() -> None:
    cut = 0
    for seed in range(8):
        model = ir.loads(*ir.dumps(Drawer(seed).model()))
        middle = [x.name for x in model.order() if x.type in ("Concat", "ReLU", "AvgPool")]
        array = np.random.default_rng(seed).standard_normal(model.parameters[0].outputs[0].dims)
        for name in middle[:3]:
            try:
                after = ir.extract(model, [name], None).model
            except ir.UsageError:
                continue  # what comes before is used later, too
            before = ir.extract(model, None, [name]).model
            whole = ir.merge([before, after], "order").model
            assert not ir.check(ir.loads(*ir.dumps(whole))).errors
            x = array.astype("f4")
            for one, two in zip(
                ir.run(model, [x]).values(), ir.run(whole, [x]).values(), strict=True
            ):
                np.testing.assert_array_equal(one, two)
            cut += 1
    assert cut > 3


def test_bodies_become_models(written: Written) -> None:
    seen = 0
    for path in [*written.all("Loop.5.*"), *written.all("If.8.*")]:
        model = ir.read(path)
        for layer in model.layers:
            for tag, body in layer.bodies.items():
                done = ir.extract(model, body=f"{layer.name}/{tag}").model
                xml, weights = ir.dumps(done)
                assert len(ask("shapes", xml.decode(), weights)) == len(body.results)
                seen += 1
    assert seen >= 3


def state() -> ir.Model:
    net = ir.Builder("state")
    x = net.parameter("x", "f32", "1,2")
    kept = net.add("ReadValue", "opset6", [x], variable_id="v", variable_type="f32",
                   variable_shape="1,2", name="kept")  # fmt: skip
    total = net.add("Add", "opset1", [kept, x], name="total")
    sink = ir.Layer("Assign", "opset6", "sink", data={"variable_id": "v"})
    sink.inputs = [ir.Port(0, "FP32", (1, 2))]
    sink.outputs = [ir.Port(1, "FP32", (1, 2))]
    net.graph.add(sink)
    net.graph.connect((total.layer, 0), sink, 0)
    net.result(net.add("ReLU", "opset1", [kept], name="relu"), name="y")
    return net.model()


def counting() -> ir.Model:
    """A sum over runs, kept in a variable."""
    net = ir.Builder("counting")
    x = net.parameter("x", "f32", "1,4")
    words = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1,4"}
    held = net.add("ReadValue", "opset6", [np.zeros((1, 4), "f4")], name="held", **words)
    total = net.add("Add", "opset1", [x, held], name="total")
    net.add("Assign", "opset6", [net.add("Multiply", "opset1", [total, np.float32(2)])],
            variable_id="v", name="keep")  # fmt: skip
    net.result(total, name="y")
    return ir.loads(*ir.dumps(net.model()))


@pytest.mark.parametrize("layers", [".*", "held|total|keep", "held|total", "x|total|keep"])
def test_what_a_variable_is_given_is_no_output(layers: str, tmp_path: Path) -> None:
    part = ir.extract(counting(), layers=layers).model
    assert names(part.results) == ["y"]
    ir.write(part, tmp_path / "part.xml")
    fed = [np.full((1, 4), number + 1, "f4") for number in range(len(part.parameters))]
    program = openvino.Core().compile_model(tmp_path / "part.xml", "CPU")
    np.testing.assert_array_equal(next(iter(program(fed).values())), ir.run(part, fed)["y"])


def test_what_an_assign_gives_is_not_handed_out() -> None:
    with pytest.raises(UsageError, match=r"is not handed out.*name the tensor"):
        ir.extract(counting(), outputs=["keep"])
    with pytest.raises(UsageError, match="is not handed out"):
        counting().edit.output("keep")
    with pytest.raises(UsageError, match="a part without outputs computes nothing"):
        ir.extract(counting(), layers="keep")


def test_variables_are_kept_whole_and_apart() -> None:
    model = state()
    part = ir.extract(model, None, ["kept"]).model
    assert {layer.type for layer in part} == {"Parameter", "ReadValue", "Add", "Assign", "Result"}
    part = ir.extract(model, ["kept"], ["relu"]).model
    assert {layer.type for layer in part} == {"Parameter", "ReLU", "Result"}
    whole = ir.merge([model, model], "order").model
    ids = sorted(x.data["variable_id"] for x in whole if "variable_id" in x.data)
    assert ids == ["v", "v", "v_1", "v_1"]
    xml, weights = ir.dumps(whole)
    assert ask("shapes", xml.decode(), weights) == ["f32[1,2]"]


def test_side_by_side_shared_and_chained() -> None:
    model = network()
    with pytest.raises(ir.UsageError, match='have an input named "x"'):
        ir.merge([model, model])
    whole = ir.merge([model, model], prefixes=["a/", "b/"]).model
    assert names(whole.parameters) == ["a/x", "b/x"]
    assert list(ir.infer(whole)) == ["a/sum", "a/z", "b/sum", "b/z"]
    shared = ir.merge([model, ir.extract(model, None, ["left"]).model], share=["x"]).model
    assert names(shared.parameters) == ["x"]
    net = ir.Builder("head")
    net.result(net.add("Sigmoid", "opset1", [net.parameter("in", "f32", "?,4")]), name="p")
    head = net.model()
    done = ir.merge([model, head], {"z": "in"})
    assert list(ir.infer(done.model)) == ["sum", "p"]
    assert ir.infer(done.model)["p"].shape.static == (1, 4)
    assert list(ir.infer(ir.merge([model, head], {"z": "in"}, keep_outputs=True).model)) == [
        "sum", "z", "p"
    ]  # fmt: skip
    with pytest.raises(ir.UsageError, match=r'"sum" gives 1,3, input "in" takes \?,4'):
        ir.merge([model, head], {"sum": "in"})
    with pytest.raises(ir.UsageError, match="no output of an earlier model"):
        ir.merge([model, head], {"zz": "in"})


def test_ir_versions_are_reconciled() -> None:
    net = ir.Builder("old")
    x = net.parameter("x", "f16", "1,4")
    net.result(net.add("ShapeOf", "opset3", [x], name="sizes"), name="s")
    old = net.model()
    old.version = 10
    done = ir.merge([old, network()], prefixes=["old/", ""]).model
    assert done.version == 11
    assert next(str(t) for t in ir.infer(done).values()) == "i32[2]"
    assert done.parameters[0].data["element_type"] == "f32"


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ir.write(network(), tmp_path / "m.xml")
    model, out = str(tmp_path / "m.xml"), str(tmp_path / "out.xml")

    def call(*words: str) -> str:
        with pytest.raises(SystemExit) as left:
            main(list(words))
        assert left.value.code == 0, capsys.readouterr().err
        return capsys.readouterr().out

    said = json.loads(
        call("extract", model, "--from", "left", "--to", "sum", "--dry-run", "--json")
    )
    assert said["written"] is None
    assert said["counts"]["input"] == 1
    assert not (tmp_path / "out.xml").exists()
    call("extract", model, "--to", "z", "-o", out)
    assert len(ir.read(out)) == 5
    call("merge", model, model, "--prefix", "a_", "--prefix", "b_", "-o", out, "--force")
    assert len(ir.read(out).parameters) == 2
    call("compress", model, "-o", out, "--force")
    assert {str(x.element_type) for x in ir.read(out).constants} == {"f16", "i64"}
    call("compress", out, "--back", "--in-place")
    assert {str(x.element_type) for x in ir.read(out).constants} == {"f32", "i64"}
    call("convert", model, "--target", "2022.3", "-o", out, "--force")
    edits = [{"op": "rename", "input": "x", "to": "image"}, {"op": "softmax", "output": "z"}]
    (tmp_path / "edits.json").write_text(json.dumps({"edits": edits}))
    np.save(tmp_path / "w.npy", np.full(4, 7, "f4"))
    call("edit", model, "--patch", str(tmp_path / "edits.json"), "--rename", "sum=total_sum",
         "--constant", f"w2={tmp_path / 'w.npy'}", "--add-output", "left", "-o", out,
         "--force")  # fmt: skip
    new = ir.read(out)
    assert list(ir.infer(new)) == ["total_sum", "z", "left"]
    assert new.layer("w2").value.tolist() == [7, 7, 7, 7]
    assert "preprocess" in call("edit", "--list")
    assert "preprocess" in call("edit", model, "--list")
    told = call("edit", "insert", "--list")
    assert "the type of the new layer" in told
    assert "--do op=insert --do type=TYPE" in told
    assert json.loads(call("edit", "--schema"))["type"] == "array"


def test_a_tensor_without_names_gets_one_that_is_free() -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "2,3")
    half = net.constant(np.ones((3, 3), "f2"), name="w_compressed")
    weight = net.add("Convert", "opset1", [half], destination_type="f32", name="w")
    net.result(net.add("MatMul", "opset1", [x, weight], transpose_b=True), name="y")
    model = net.model()
    # As OpenVINO compresses weights: the tensor's name stays at the constant.
    model["w_compressed"].outputs[0].names = ("w",)
    handed = ir.extract(model, outputs="w:0").model
    assert [result.output_names for result in handed.results] == ["w_1"]
    fed = ir.extract(model, inputs=["x", "w:0"]).model
    assert fed["w"].type == "Parameter"
    answer = ir.run(fed, {"x": np.ones((2, 3), "f4"), "w": np.ones((3, 3), "f4")})
    assert next(iter(answer.values())).tolist() == [[3.0] * 3] * 2
