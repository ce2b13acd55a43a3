"""Inference over whole models: new shapes, what blocks them, and OpenVINO's own answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Written
from oracle import ask
from vinoir import ir
from vinoir.schemas import Shape, Tensor

DIGITS = Path(__file__).parents[1] / "samples" / "digits.xml"


def compared(path: Path) -> tuple[list[str], list[str]]:
    """The types and shapes of a file's outputs, as we and as OpenVINO infer them.

    Raises RuntimeError where OpenVINO does not read the file.
    """
    weights = path.with_suffix(".bin")
    theirs = ask("file", str(path), str(weights) if weights.exists() else "")
    inferred = ir.infer(ir.read(path))
    return [f"{t.type}[{t.shape.spelling}]" for t in inferred.values()], theirs


def test_files_infer_to_what_openvino_infers(written: Written) -> None:
    found = {path.stem: compared(path) for path in written.all()}
    assert {name: both for name, both in found.items() if both[0] != both[1]} == {}


@pytest.mark.parametrize(
    "shapes",
    [{"image": "N,1,16,16"}, {0: "N,1,16,16"}, ["N,1,16,16"], {"image": Shape.parse("?,1,16,16")},
     {"image": (4, 1, 16, 16)}],
)  # fmt: skip
def test_inputs_are_named_in_many_ways(shapes: object) -> None:
    tensors = ir.infer(ir.read(DIGITS), shapes)
    given = str(tensors["image"].shape).partition(",")[0]
    assert str(tensors["digit"].shape) == f"{given},10"
    assert tensors["pool1"].type == "f32"


def test_an_unknown_input_is_met_with_the_known_ones() -> None:
    with pytest.raises(ir.UsageError, match=r'no input is named "imag"; the inputs are "image"'):
        ir.infer(ir.read(DIGITS), {"imag": "1,1,16,16"})


def test_symbols_keep_equal_sizes_equal() -> None:
    net = ir.Builder()
    x, y = net.parameter("x", "f32", "?,?"), net.parameter("y", "f32", "?,?")
    both = net.add("Add", "opset1", [x, y], name="both")
    net.result(net.add("Concat", "opset1", [both, x], name="joined", axis=1))
    tensors = ir.infer(net.model(), {"x": "N,T", "y": "N,T"})
    assert str(tensors["both"].shape) == "N,T"
    assert str(tensors["joined"].shape) == "N,2*T"


def test_a_shape_subgraph_is_followed() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,3,?,?")
    sizes = net.add("ShapeOf", "opset3", [x], output_type="i64")
    zero = net.constant(np.int64(0))
    batch = net.add("Gather", "opset8", [sizes, net.constant(np.array([0])), zero], batch_dims=0)
    rest = net.constant(np.array([-1]))
    pattern = net.add("Concat", "opset1", [batch, rest], axis=0)
    net.result(net.add("Reshape", "opset1", [x, pattern], name="flat", special_zero=False))
    tensors = ir.infer(net.model(), {"x": "N,3,H,W"})
    assert str(tensors["flat"].shape) == "N,3*H*W"
    # Without names, an interval over an interval: as OpenVINO has it.
    model = net.model()
    ir.reshape(model, {"x": "2..5,3,4,4"})
    xml, weights = ir.dumps(model)
    assert ask("shapes", xml.decode(), weights) == [f"f32[{ir.infer(model)['flat'].shape}]"]


def test_a_pinned_batch_is_named_with_what_would_free_it() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,4,2")
    flat = net.constant(np.array([1, 8]), name="pattern")
    y = net.add("Reshape", "opset1", [x, flat], name="flatten", special_zero=True)
    net.result(net.add("MatMul", "opset1", [y, net.constant(np.ones((8, 3), "f4"))]))
    model = net.model()
    assert ir.infer(model, {"x": "1,2,4"})
    with pytest.raises(ir.IRError) as caught:
        ir.infer(model, {"x": "6,4,2"})
    assert 'layer 2 "flatten" (Reshape opset1)' in str(caught.value)
    assert caught.value.hint is not None
    assert "[1, 8]" in caught.value.hint
    assert '"pattern"' in caught.value.hint
    assert caught.value.hint.endswith("the batch is free")


def test_a_pinned_size_behind_the_batch_is_no_batch() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,4,6")
    pattern = net.constant(np.array([0, 2, 12]), name="pattern")
    net.result(net.add("Reshape", "opset1", [x, pattern], name="cut", special_zero=True))
    with pytest.raises(ir.IRError) as caught:
        ir.infer(net.model(), {"x": "1,4,8"})
    assert caught.value.hint is not None
    assert '-1 in place of a later size (constant "pattern")' in caught.value.hint
    assert "batch" not in caught.value.hint


def test_a_reshape_that_new_sizes_do_not_reach_pins_nothing() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,4,6")
    other = net.add("Exp", "opset1", [net.constant(np.ones((2, 12), "f4"))])
    pattern = net.constant(np.array([1, 4, 6]))
    other = net.add("Reshape", "opset1", [other, pattern], special_zero=True)
    net.result(net.add("Add", "opset1", [x, other]), name="y")
    with pytest.raises(ir.IRError, match="do not broadcast") as caught:
        ir.infer(net.model(), {"x": "1,4,8"})
    assert caught.value.hint is None


def test_a_pattern_that_copies_what_is_new_pins_nothing() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "2,4,6")
    pattern = net.constant(np.array([0, 8, 3]))
    y = net.add("Reshape", "opset1", [x, pattern], special_zero=True)
    held = net.constant(np.ones((2, 8, 3), "f4"), name="held")
    net.result(net.add("Add", "opset1", [y, held]), name="y")
    with pytest.raises(ir.IRError, match="do not broadcast") as caught:
        ir.infer(net.model(), {"x": "5,4,6"})
    assert 'constant "held" has the shape 2,8,3' in (caught.value.hint or "")


def test_a_batch_is_freed_where_it_is_taken_in() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,4,6")
    for name, pattern in (("first", [1, -1, 3]), ("second", [1, 24])):
        held = net.constant(np.array(pattern), name=name)
        x = net.add("Reshape", "opset1", [x, held], special_zero=True)
    net.result(x, name="y")
    with pytest.raises(ir.IRError) as caught:
        ir.infer(net.model(), {"x": "2,4,6"})
    assert '(constant "first") the batch is free' in (caught.value.hint or "")


def test_a_batch_that_is_the_same_is_not_what_a_pattern_pins() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,4,6")
    pattern = net.constant(np.array([2, -1, 6]))
    y = net.add("Reshape", "opset1", [x, pattern], special_zero=True)
    anchors = net.constant(np.ones((1, 2, 6), "f4"), name="anchors")
    net.result(net.add("Add", "opset1", [y, anchors]), name="y")
    with pytest.raises(ir.IRError, match="do not broadcast") as caught:
        ir.infer(net.model(), {"x": "1,12,6"})
    assert caught.value.hint is not None
    assert 'constant "anchors" has the shape 1,2,6' in caught.value.hint
    assert "batch" not in caught.value.hint


def test_layers_of_unknown_types_are_trusted() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,2")
    odd = net.add("Odd", "extension", [x], outputs=[Tensor("i64", (5, 7))])
    net.result(odd, name="y")
    assert ir.infer(net.model())["y"] == Tensor("i64", (5, 7))


def test_version_10_looks_as_openvino_makes_it_look() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f16", "2")
    net.result(x, name="y")
    net.result(net.add("ShapeOf", "opset3", [x], output_type="i64"), name="z")
    model = net.model()
    model.version = 10
    assert [str(t) for t in ir.infer(model).values()] == ["f32[2]", "i32[1]"]
    outputs = ir.run(model, [np.array([1, 2], np.float32)])
    assert [array.dtype for array in outputs.values()] == [np.float32, np.int32]


def test_a_reshaped_model_declares_what_it_infers() -> None:
    model = ir.read(DIGITS)
    ir.reshape(model, {"image": "32,1,16,16"})
    again = ir.loads(*ir.dumps(model))
    assert again.layer("look1").outputs[0].dims == (32, 12, 16, 16)
    assert again.layer("pool1").inputs[0].dims == (32, 12, 16, 16)
    assert again.layer("image").data["shape"] == "32,1,16,16"
    with pytest.raises(ir.UsageError, match="shapes are given by input name"):
        ir.infer(model, "1,1,16,16")  # type: ignore[arg-type]  # the mistake is the point
