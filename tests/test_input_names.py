"""Inputs whose layers have the names of other inputs' tensors, as exporters leave them."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_folder import Call
from oracle import ask
from test_cli_run import call as call
from vinoir import ir
from vinoir.ir.fleet import Predictor

#: Names of layers, each with that of its tensor.
NAMES = [("ids.1", "ids"), ("mask", "attention_mask"), ("ids", "decoder_ids")]
#: What is given for each, by the name of its tensor.
GIVEN = {
    "ids": np.float32([[1, 2]]),
    "attention_mask": np.float32([[3, 4]]),
    "decoder_ids": np.float32([[5, 6]]),
}

any_order = pytest.mark.parametrize("names", list(permutations(NAMES)))


def weighed(names: Any) -> ir.Model:
    """A model that adds up its inputs, named in this order, times 1, 10 and 100."""
    net = ir.Builder()
    terms = [
        net.add("Multiply", "opset1", [net.parameter(name, "f32", (1, 2)), np.float32(10**place)])
        for place, (name, _) in enumerate(names)
    ]
    y = net.add("Add", "opset1", terms[:2])
    net.result(net.add("Add", "opset1", [y, terms[2]]), name="y")
    model = net.model()
    for parameter, (_, tensor) in zip(model.parameters, names, strict=True):
        parameter.outputs[0].names = (tensor,)
    return model


def wanted(names: Any) -> Any:
    return sum(10.0**place * GIVEN[tensor] for place, (_, tensor) in enumerate(names))


@any_order
def test_a_tensor_has_its_name_before_a_layer_of_another_input(names: Any) -> None:
    """So it is given in OpenVINO, which knows no names of layers there."""
    model = weighed(names)
    theirs = ask("inputs", *texts(model))
    assert theirs == [[tensor] for _, tensor in names]
    for found in (ir.run(model, GIVEN), ir.compile(model)(GIVEN)):
        np.testing.assert_array_equal(found[0], wanted(names))


def texts(model: ir.Model) -> tuple[str, bytes]:
    xml, weights = ir.dumps(model)
    return xml.decode(), weights


@any_order
def test_the_names_that_a_model_tells_are_those_it_takes(names: Any, tmp_path: Path) -> None:
    model = weighed(names)
    given = {end.name: GIVEN[tensor] for end, (_, tensor) in zip(model.inputs, names, strict=True)}
    assert len(given) == 3
    for found in (ir.run(model, given), ir.compile(model)(given)):
        np.testing.assert_array_equal(found[0], wanted(names))
    for end in model.inputs:
        for name in end.names:
            assert model.inputs[name].layer is end.layer
    ir.write(model, tmp_path / "model.xml")
    found = Predictor(tmp_path / "model.xml")(given)
    np.testing.assert_array_equal(found["y"], wanted(names))


@any_order
def test_an_input_that_is_missing_or_wrong_is_told_by_a_name_it_takes(names: Any) -> None:
    model = weighed(names)
    for end, (_, tensor) in zip(model.inputs, names, strict=True):
        some = {name: array for name, array in GIVEN.items() if name != tensor}
        with pytest.raises(ir.UsageError) as told:
            ir.run(model, some)
        assert str(told.value).endswith(f'1 of the inputs: "{end.name}"')
        with pytest.raises(
            ir.UsageError, match=f'input "{end.name}" has the shape 1,2, the array'
        ):
            ir.run(model, GIVEN | {tensor: np.zeros((1, 3), "f4")})


def test_the_surgeon_knows_inputs_that_have_the_name_of_one_that_is_gone() -> None:
    net = ir.Builder()
    one, other = (net.parameter(name, "f32", (1, 2)) for name in ("one", "other"))
    net.result(net.add("Add", "opset1", [one, other]), name="y")
    made = ir.edit(net.model(), [
        {"op": "input-to-constant", "input": "one", "value": [[1, 2]]},
        {"op": "rename", "layer": "one", "to": "former"},
        {"op": "rename", "input": "other", "to": "one"},
        {"op": "set-shape", "input": "one", "shape": "?,2"},
    ]).model  # fmt: skip
    (end,) = made.inputs
    assert (end.name, str(end.shape)) == ("one", "?,2")


@any_order
def test_verbs_and_the_surgeon_mean_the_same_inputs(names: Any, call: Call) -> None:
    model = weighed(names)
    ir.write(model, "model.xml")
    np.savez("given.npz", **GIVEN)
    words = [word for tensor in GIVEN for word in ("-i", f"{tensor}=given.npz")]
    code, _, err = call("run", "model.xml", *words, "--save", "found.npz")
    assert code == 0, err
    with np.load("found.npz") as found:
        np.testing.assert_array_equal(found["y"], wanted(names))
    # What is made for all inputs reaches each of them.
    report = ir.simplify(model, certify=2)[1]
    assert report.certificate is not None
    code, out, err = call("compare", "model.xml", "--against", "compiled", "--seed", "3")
    assert code == 0, out + err
    pinned = ir.edit(model, [{"op": "input-to-constant", "input": "ids", "value": [[7, 7]]}]).model
    assert "ids.1" not in [layer.name for layer in pinned.parameters]
