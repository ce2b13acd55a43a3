"""Single edits: what they do, also against OpenVINO, and what they say when wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import ask
from vinoir import ir
from vinoir.ir.surgery import EDITS


def network() -> ir.Model:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "1,3,16,12")
    numbers = np.random.default_rng(0).standard_normal((5, 3, 3, 3)).astype("f4")
    y = net.add("Convolution", "opset1", [x, net.constant(numbers, name="w")], strides=(1, 1),
                dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), name="conv")  # fmt: skip
    y = net.add("ReLU", "opset1", [y], name="relu")
    axes = net.constant(np.array([2, 3]), name="axes")
    net.result(net.add("ReduceMean", "opset1", [y, axes], keep_dims=False, name="mean"),
               name="logits")  # fmt: skip
    return ir.loads(*ir.dumps(net.model()))


def edited(*edits: dict[str, Any]) -> ir.Model:
    """The network after edits, written and read; OpenVINO agrees on its shapes."""
    model = network()
    before = ir.dumps(model)
    made = ir.loads(*ir.dumps(ir.edit(model, edits).model))
    assert ir.dumps(model) == before
    assert not ir.check(made).errors
    xml, weights = ir.dumps(made)
    assert ask("shapes", xml.decode(), weights) == [
        f"{t.type}[{t.shape.spelling}]" for t in ir.infer(made).values()
    ]
    return made


def picture(model: ir.Model) -> Any:
    port = model.parameters[0].outputs[0]
    rng = np.random.default_rng(1)
    return rng.integers(0, 255, port.dims).astype(port.type.dtype)


def test_names() -> None:
    made = edited(
        {"op": "rename", "input": "x", "to": "image"},
        {"op": "rename", "output": "logits", "to": "scores"},
        {"op": "rename", "layers": "(conv|relu)", "to": r"block/\1"},
    )
    assert [p.name for p in made.parameters] == ["image"]
    assert list(ir.infer(made)) == ["scores"]
    assert made.results[0].output_names == "scores"
    assert made.layer("block/conv").type == "Convolution"
    back = ir.edit(made, [{"op": "rename", "layers": "block/(.*)", "to": r"\1"}]).model
    ends = [("input", "image", "x"), ("output", "scores", "logits")]
    again = ir.edit(back, [{"op": "rename", end: old, "to": new} for end, old, new in ends]).model
    assert ir.dumps(again) == ir.dumps(network())


def test_attributes_versions_and_information() -> None:
    made = edited(
        {"op": "set-attribute", "layer": "conv", "name": "strides", "value": [2, 1]},
        {"op": "set-info", "key": ["model_info", "model_type"], "value": "Classifier"},
        {"op": "set-info", "layer": "conv", "key": ["affinity"], "value": "CPU"},
    )
    assert made.layer("relu").outputs[0].dims == (1, 5, 7, 10)
    assert made.rt_info is not None
    found = made.rt_info.find("model_info", "model_type")
    assert found is not None
    assert found.value == "Classifier"


def test_constants_and_ends(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.ones((5, 3, 1, 1)))
    patch = tmp_path / "edits.json"
    patch.write_text(json.dumps([{"op": "set-constant", "layer": "w", "file": "w.npy"}]))
    made = ir.edit(network(), patch).model
    assert made.layer("w").data["element_type"] == "f32"
    assert made.layer("conv").outputs[0].dims == (1, 5, 16, 12)
    made = edited({"op": "constant-to-input", "layer": "w"})
    assert [p.name for p in made.parameters] == ["x", "w"]
    made = edited({"op": "input-to-constant", "input": "x", "value": [[[[0.5] * 12] * 16] * 3]})
    assert not made.parameters
    made = edited({"op": "add-output", "tensor": "relu", "name": "features"})
    assert list(ir.infer(made)) == ["logits", "features"]
    made = edited({"op": "add-input", "tensor": "relu"}, {"op": "remove-input", "input": "x"})
    assert {layer.name for layer in made} == {"relu", "axes", "mean", "logits"}
    made = edited(
        {"op": "add-output", "tensor": "relu"}, {"op": "remove-output", "output": "logits"}
    )
    assert "mean" not in {layer.name for layer in made}
    made = edited({"op": "set-shape", "input": "x", "shape": "N,3,H,W"},
                  {"op": "set-layout", "input": "x", "layout": "NCHW"})  # fmt: skip
    assert ir.infer(made)["logits"].shape.spelling == "?,5"


def test_layers_in_between() -> None:
    made = edited({"op": "insert", "after": "relu", "type": "Multiply",
                   "inputs": ["@", {"constant": 2.0}]},
                  {"op": "insert", "before": "mean:0", "type": "Sigmoid"},
                  {"op": "insert", "after": "logits", "type": "Tanh"})  # fmt: skip
    x = picture(made)
    middle = ir.run(edited({"op": "add-output", "tensor": "relu"}), [x])["relu"]
    wanted = np.tanh((1 / (1 + np.exp(-2 * middle))).mean((2, 3)))
    np.testing.assert_allclose(ir.run(made, [x])["logits"], wanted, rtol=1e-5, atol=1e-6)
    assert {x.name for x in edited({"op": "bypass", "type": "ReLU"})} == {
        "x", "w", "conv", "axes", "mean", "logits"
    }  # fmt: skip
    made = edited({"op": "connect", "from": "conv", "to": "mean:0"})
    assert "relu" not in {layer.name for layer in made}


@pytest.mark.parametrize("layer", [{}, {"layer": "relu"}])
def test_an_entry_that_is_taken_away_leaves_the_file_as_it_was(layer: dict[str, str]) -> None:
    model = network()
    entry = {"op": "set-info", **layer, "key": ["a", "b", "c"]}
    given, taken = {**entry, "value": "1"}, {**entry, "value": None}
    assert ir.dumps(ir.edit(model, [given]).model) != ir.dumps(model)
    assert ir.dumps(ir.edit(model, [given, taken]).model) == ir.dumps(model)
    # What else is there stays.
    other = {**given, "key": ["a", "d"]}
    both = ir.edit(model, [other, given, taken]).model
    assert ir.dumps(both) == ir.dumps(ir.edit(model, [other]).model)
    twice = network()
    rows = [ir.Info("a", children=[ir.Info(key, {"value": "1"})]) for key in ("d", "c")]
    twice.rt_info = ir.Info("rt_info", children=rows)
    left = ir.edit(twice, [{"op": "set-info", "key": ["a", "c"], "value": None}]).model.rt_info
    assert left == ir.Info("rt_info", children=rows[:1])


def test_a_pattern_by_a_snippet() -> None:
    swish = {"op": "replace",
             "pattern": [{"id": "s", "type": "Sigmoid", "inputs": ["x"]},
                         {"id": "m", "type": "Multiply", "inputs": ["x", "s"]}],
             "with": [{"id": "n", "type": "Swish", "inputs": ["x"]}]}  # fmt: skip
    there = {"op": "replace", "pattern": [{"id": "r", "type": "ReLU", "inputs": ["x"]}],
             "with": [{"id": "s", "type": "Sigmoid", "inputs": ["x"]},
                      {"id": "m", "type": "Multiply", "inputs": ["s", "x"]}]}  # fmt: skip
    made = edited(there, swish)
    assert made.layer("relu").type == "Swish"
    assert len(made) == len(network())
    with pytest.raises(ir.UsageError, match="the pattern is there 0 times"):
        edited(swish)
    with pytest.raises(ir.UsageError, match="1 times, 2 is expected"):
        edited(there | {"count": 2})
    used = {"op": "add-output", "tensor": "relu/s"}
    with pytest.raises(ir.UsageError, match="the pattern is there 0 times"):
        edited(there, used, swish)


@pytest.mark.parametrize(
    "words",
    [
        {"type": "u8", "layout": "NHWC", "mean": [1, 2, 3], "scale": [4, 5, 6.5],
         "reverse_channels": True},
        {"type": "u8", "layout": "NHWC", "resize": [20, 30]},
        {"type": "u8", "layout": "NHWC", "resize": [7, 5], "mode": "nearest"},
        {"layout": "NHWC", "resize": True, "mode": "cubic"},
        {"scale": 255.0},
        {"type": "f16"},
        {"type": "f16", "mean": [123.675, 116.28, 103.53], "scale": [0.0584, 0.0571, 0.0574]},
        {"type": "bf16", "mean": [123.675, 116.28, 103.53], "scale": [0.0584, 0.0571, 0.0574]},
        {"type": "f16", "scale": 70000.0, "mean": -5e6},
        {"type": "f16", "resize": [21, 33], "scale": 0.01},
    ],
)  # fmt: skip
def test_preprocessing_as_openvino(words: dict[str, Any]) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import preprocess

    made = ir.edit(network(), [{"op": "preprocess", "input": "x", **words}]).model
    xml, weights = ir.dumps(network())
    core = openvino.Core()
    builder = preprocess.PrePostProcessor(
        core.read_model(xml, openvino.Tensor(np.frombuffer(weights, np.uint8).copy()))
    )
    entry = builder.input("x")
    entry.model().set_layout(openvino.Layout("NCHW"))
    if "type" in words:
        entry.tensor().set_element_type(getattr(openvino.Type, words["type"]))
    if "layout" in words:
        entry.tensor().set_layout(openvino.Layout(words["layout"]))
    if isinstance(words.get("resize"), list):
        entry.tensor().set_spatial_static_shape(*words["resize"])
    elif words.get("resize"):
        entry.tensor().set_spatial_dynamic_shape()
    if "type" in words:
        entry.preprocess().convert_element_type(openvino.Type.f32)
    if "resize" in words:
        mode = f"RESIZE_{words.get('mode', 'linear').upper()}"
        entry.preprocess().resize(getattr(preprocess.ResizeAlgorithm, mode))
    if "reverse_channels" in words:
        entry.preprocess().reverse_channels()
    if "mean" in words:
        entry.preprocess().mean(words["mean"])
    if "scale" in words:
        entry.preprocess().scale(words["scale"])
    theirs = core.compile_model(builder.build(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    port = made.parameters[0].outputs[0]
    sizes = [size if size > 0 else 21 for size in port.dims]
    x = np.random.default_rng(1).integers(0, 255, sizes).astype(port.type.dtype)
    given = x
    if words.get("type") == "bf16":  # which OpenVINO takes as its bits
        given = openvino.Tensor(x.view(np.uint16), x.shape, openvino.Type.bf16)
    found = theirs([given])[0]
    np.testing.assert_allclose(ir.run(made, [x])["logits"], found, rtol=2e-4, atol=1e-3)
    assert theirs.inputs[0].partial_shape.to_string().strip("[]") == ",".join(
        "?" if size < 0 else str(size) for size in port.dims
    )


@pytest.mark.parametrize(
    ("inner", "given"), [("??HW", None), ("N??C", None), ("N??C", "?N?C"), ("N??C", "CN??")]
)
def test_axes_without_a_letter_keep_their_order_as_in_openvino(
    inner: str, given: str | None
) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import preprocess

    net = ir.Builder("layouts")
    net.result(net.add("Exp", "opset1", [net.parameter("x", "f32", "2,3,4,5")]), name="y")
    words = {"type": "f16", "model_layout": inner, **({"layout": given} if given else {})}
    made = ir.edit(net.model(), [{"op": "preprocess", "input": "x", **words}]).model
    core = openvino.Core()
    builder = preprocess.PrePostProcessor(core.read_model(ir.dumps(net.model())[0]))
    entry = builder.input("x")
    entry.model().set_layout(openvino.Layout(inner))
    entry.tensor().set_element_type(openvino.Type.f16)
    if given:
        entry.tensor().set_layout(openvino.Layout(given))
    theirs = core.compile_model(builder.build(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert list(made.parameters[0].outputs[0].dims) == list(theirs.inputs[0].shape)
    x = np.random.default_rng(1).random(made.parameters[0].outputs[0].dims).astype(np.float16)
    np.testing.assert_allclose(ir.run(made, [x])["y"], theirs([x])[0], rtol=1e-6)


def test_scores_and_boxes() -> None:
    x = picture(network())
    logits = ir.run(network(), [x])["logits"]
    soft = ir.run(edited({"op": "softmax", "output": "logits", "axis": 1}), [x])["logits"]
    np.testing.assert_allclose(soft.sum(), 1, rtol=1e-5)
    best = ir.run(edited({"op": "argmax", "output": "logits"}), [x])["logits"]
    assert best.tolist() == logits.argmax(1).tolist()
    top = ir.run(edited({"op": "top-k", "output": "logits", "k": 2}), [x])
    assert top["logits/indices"].tolist() == np.argsort(-logits, 1)[:, :2].tolist()
    net = ir.Builder("boxes")
    for name, sizes in (("boxes", "1,6,4"), ("scores", "1,2,6")):
        y = net.parameter(f"in_{name}", "f32", sizes)
        net.result(net.add("ReLU", "opset1", [y], name=name), name=f"{name}_out")
    done = ir.edit(net.model(), [
        {"op": "nms", "boxes": "boxes", "scores": "scores", "max_boxes": 3, "iou_threshold": 0.4}
    ]).model  # fmt: skip
    assert list(ir.infer(done)) == ["selected_indices", "selected_scores", "valid_outputs"]
    rng = np.random.default_rng(2)
    corners = np.sort(rng.random((1, 6, 2, 2)), 2).reshape(1, 6, 4).astype("f4")
    found = ir.run(done, [corners, rng.random((1, 2, 6)).astype("f4")])
    assert 2 <= int(found["valid_outputs"][0]) <= 6


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"op": "renam"}, "did you mean rename"),
        ({"op": "rename", "layer": "x"}, '"to" is missing'),
        ({"op": "bypass", "layr": "conv"}, "did you mean layer"),
        ({"op": "bypass", "layer": "cnv"}, "did you mean conv"),
        ({"op": "bypass", "layers": "("}, "is no regular expression"),
        ({"op": "delete", "layer": "conv"}, 'it feeds input 0 of layer "relu"'),
        ({"op": "delete", "layer": "mean"}, "remove the output first"),
        ({"op": "rename", "layer": "conv", "to": "relu"}, r"layer \d+ \(ReLU\) has that name"),
        ({"op": "rename", "tensor": "logits", "to": "x"}, 'has that name'),
        ({"op": "set-attribute", "layer": "conv", "name": "stride", "value": 1}, "mean strides"),
        ({"op": "set-attribute", "layer": "conv", "name": "strides", "value": "a"}, "strides"),
        ({"op": "set-version", "layer": "relu", "version": "opset99"}, "not in opset99"),
        ({"op": "set-constant", "layer": "w", "value": [1.5]}, '"conv".*the filters have 1 axes'),
        ({"op": "set-constant", "layer": "axes", "value": [1.5]}, "which i64 does not hold"),
        ({"op": "set-constant", "layer": "axes", "value": [[1], [1, 2]]}, "different lengths"),
        ({"op": "set-constant", "layer": "axes"}, 'one of "value" and "file"'),
        ({"op": "set-constant", "layer": "axes", "file": "none.npy"}, "cannot be read"),
        ({"op": "set-type", "input": "x", "type": "u8"}, '"conv".*u8 and f32 differ'),
        ({"op": "set-layout", "input": "x", "layout": "NHC"}, "has 3 axes, the tensor 4"),
        ({"op": "preprocess", "input": "x", "mean": [1, 2]}, "2 numbers are given for 3 channels"),
        ({"op": "preprocess", "input": "x", "scale": 0}, "a scale is 0"),
        ({"op": "preprocess", "input": "x", "scale": 1e39}, "more than f32 holds"),
        ({"op": "preprocess", "input": "x"}, "asks for nothing"),
        ({"op": "insert", "after": "conv", "type": "Sigmod"}, "did you mean Sigmoid"),
        ({"op": "insert", "after": "conv", "type": "Add", "inputs": ["@", {"x": 1}]}, "constant"),
        ({"op": "remove-input", "input": "x"}, "feeds input 0"),
        ({"op": "remove-output", "output": "logits"}, "no output would be left"),
        ({"op": "input-to-constant", "input": "x", "value": [1]}, "has the shape"),
        ({"op": "connect", "from": "mean", "to": "conv"}, "cycle"),
        ({"op": "replace", "pattern": [{"id": "a", "type": "ReLU", "inputs": ["x"]}], "with": []},
         'needs the "output"'),
        ({"op": "replace", "pattern": [{"name": "a", "type": "ReLU"}], "with": []},
         'no field "pattern.0.name".*it needs "id"; it has id, type'),
        ({"op": "replace", "pattern": [{"id": "a", "tipe": "ReLU"}], "with": []}, "mean type"),
        ({"op": "insert", "after": "conv", "type": "Add", "inputs": ["@", 1.5]},
         'written {"constant": 1.5}'),
        ({"op": "set-type", "input": "x", "type": "float"}, 'write "f32"'),
        ({"op": "bypass", "layer": "conv", "in": "relu"}, "no layer has a body"),
        ("bypass", "not an object"),
    ],
)  # fmt: skip
def test_wrong_edits_say_where_and_what(entry: Any, said: str) -> None:
    with pytest.raises(ir.IRError, match=f"(?s){said}"):
        ir.edit(network(), [entry])


def test_patch_files_that_are_none(tmp_path: Path) -> None:
    for text, said in [("[", "is no JSON"), ("3", "holds no list"), ('{"edits": 1}', "no list")]:
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(ir.UsageError, match=said):
            ir.edit(network(), tmp_path / "p.json")


def test_the_schema_describes_every_edit() -> None:
    schema = ir.edit_schema()
    assert len(schema["items"]["oneOf"]) == len(EDITS)
    for name, kind in EDITS.items():
        assert kind.__doc__, name
        for field in schema["$defs"][kind.__name__]["properties"].values():
            assert "description" in field or field.get("const") == name
