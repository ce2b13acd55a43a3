"""A program stays what its model was when it was compiled, or says that it cannot."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_program_regions import either
from vinoir import ir
from vinoir.schemas import UsageError

ONE, TWO = np.ones((1, 4), "f4"), np.ones((2, 4), "f4")


def scaled(shape: str) -> ir.Model:
    """Three times the input, and one more."""
    net = ir.Builder("scaled")
    x = net.parameter("x", "f32", shape)
    three = net.constant(np.float32([3]), name="three")
    x = net.add("Multiply", "opset1", [x, three], name="times")
    x = net.add("Add", "opset1", [x, net.constant(np.float32([1]), name="one")], name="more")
    x = net.add("Elu", "opset1", [x], name="elu", alpha=1.0)
    net.result(x, name="y")
    return net.model()


def other_value(model: ir.Model) -> None:
    model["three"].value = np.float32([5])


def other_type(model: ir.Model) -> None:
    model["more"].type = "Subtract"


def other_attribute(model: ir.Model) -> None:
    model["elu"].alpha = 0.5


def other_wiring(model: ir.Model) -> None:
    model.edit.bridge("elu")


EDITS = [other_value, other_type, other_attribute, other_wiring]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("edit", EDITS)
def test_edits_do_not_reach_a_program(edit: Callable[[ir.Model], None], exact: bool) -> None:
    model = scaled("?,4")
    program = ir.compile(model, exact=exact, fork=False)
    assert (program([ONE])[0] == 4).all()
    edit(model)
    assert (program([ONE])[0] == 4).all()
    assert (program([ONE.tolist()])[0] == 4).all()
    with pytest.raises(UsageError, match="'scaled' was edited after it was compiled") as caught:
        program([TWO])
    assert caught.value.hint == "compile the model anew"
    for made in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UsageError, match="was edited"):
            made(program)
    assert (program([ONE])[0] == 4).all()
    assert ir.compile(model)([TWO])[0].shape == (2, 4)


def test_a_program_that_was_never_called_refuses_an_edited_model() -> None:
    model = scaled("?,4")
    program = ir.compile(model, fork=False)
    other_value(model)
    with pytest.raises(UsageError, match="was edited"):
        program([ONE])


def test_edits_in_bodies_are_seen() -> None:
    for edit in (_another_layer, _another_wire):
        model = either("f32", None)
        program = ir.compile(model, fork=False)
        copy.copy(program)
        edit(next(one for one in model.layers if one.bodies))
        with pytest.raises(UsageError, match="was edited"):
            copy.copy(program)


def _another_layer(layer: ir.Layer) -> None:
    layer.bodies["else_body"].results[0].type = "Sink"


def _another_wire(layer: ir.Layer) -> None:
    layer.port_maps["then_body"].entries[0].attributes["external_port_id"] = "0"


def test_what_changes_nothing_that_is_computed_is_no_edit(tmp_path: Path) -> None:
    ir.write(scaled("?,4"), tmp_path / "m.xml")
    model = ir.read(tmp_path / "m.xml")
    program = ir.compile(model, fork=False)
    program([ONE])
    model["times"].name = "scaled"
    ir.check(model)
    ir.infer(model, {"x": "7,4"})
    ir.write(model, tmp_path / "other.xml")
    ir.dumps(model)
    assert (program([TWO])[0] == 4).all()
