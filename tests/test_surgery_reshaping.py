"""New input shapes reach the bodies of layers, and variables that do not take them are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from test_subgraphs import choice, iterator, loop
from vinoir import ir
from vinoir.ir.cli import main

RNG = np.random.default_rng(4)
MODELS = [
    (lambda: loop("2,3,4", 3, True, False), {0: "5,1,2"}),
    (lambda: iterator("2,6,3", 2, 0, -1, 2), {0: "2,8,3"}),
    (lambda: choice("2,6", None, "2,6"), {0: "4,5", 1: "4,5"}),
]


@pytest.mark.parametrize("way", ["reshape", "infer", "simplify"])
@pytest.mark.parametrize(("build", "shapes"), MODELS, ids=["loop", "iterator", "if"])
def test_new_shapes_are_those_of_the_bodies_too(
    build: Any, shapes: dict[int, str], way: str, tmp_path: Path
) -> None:
    given, made = tmp_path / "given.xml", tmp_path / "made.xml"
    ov.serialize(build(), given)
    model = ir.read(given)
    names = {model.parameters[place].name: shape for place, shape in shapes.items()}
    if way == "infer":
        inputs = [word for pair in names.items() for word in ("--input", "=".join(pair))]
        with pytest.raises(SystemExit) as left:
            main(["infer", str(given), *inputs, "-o", str(made)])
        assert left.value.code == 0
    elif way == "reshape":
        ir.reshape(model, names)
        ir.write(model, made)
    else:
        ir.write(ir.simplify(model, names)[0], made)
    assert ir.check(made).ok, list(ir.check(made))
    fed = []
    for parameter in ir.read(made).parameters:
        tensor = parameter.outputs[0].tensor
        array = RNG.standard_normal(tensor.shape.static).astype("f4")
        fed.append(np.array(True) if str(tensor.type) == "boolean" else array)
    wanted = ov.Core().compile_model(made, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(fed)
    found = ir.run(ir.read(made), fed)
    for array, expected in zip(found.values(), wanted.values(), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


def test_a_variable_that_does_not_take_the_new_shape_is_told() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,4")
    words = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1,4"}
    kept = net.add("ReadValue", "opset6", [np.zeros((1, 4), np.float32)], **words)
    total = net.add("Add", "opset1", [x, kept])
    net.add("Assign", "opset6", [total], variable_id="v")
    net.result(total, name="y")
    model = ir.loads(*ir.dumps(net.model()))
    before = ir.dumps(model)
    with pytest.raises(ir.IRError, match="the variable is 1,4, it is given 2,4"):
        ir.reshape(model, {"x": "2,4"})
    assert ir.dumps(model) == before
