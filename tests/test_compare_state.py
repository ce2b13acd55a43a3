"""Runs of models with variables compared: what is remembered counts as what comes out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Written
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.document import Layer
from vinoir.schemas import UsageError

#: Three calls, one after another.
CALLS = [[np.full(2, value, "f4")] for value in (1, 2, 3)]
V = {"variable_type": "f32", "variable_shape": "2"}


def sums(assigned: str = "sum", *, name: str = "v") -> ir.Model:
    """Hands out the sum of a variable and the input; one of both, or its double, is assigned."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2,))
    zeros = net.constant(np.zeros(2, "f4"), name="zeros")
    before = net.add("ReadValue", "opset6", [zeros], name="before", variable_id=name, **V)
    held = {"x": x, "sum": net.add("Add", "opset1", [before, x], name="sum")}
    held["twice"] = net.add("Add", "opset1", [held["sum"], held["sum"]], name="twice")
    net.add("Assign", "opset6", [held[assigned]], name="assign", variable_id=name)
    net.result(held["sum"], name="y")
    net.result(held["twice"], name="z")
    return net.model()


def outputs(model: ir.Model) -> list[float]:
    """What a model hands out in three calls."""
    program = ir.compile(model)
    return [float(program(call)["y"][0]) for call in CALLS]


def test_what_is_assigned_is_compared_though_outputs_are_the_same() -> None:
    one, two = sums(), sums("twice")
    found = ir.compare(one, two, samples=CALLS)
    assert found
    assert not found.wrong
    assert [(step.variable, step.place.name) for step in found.differing] == [("v", "assign")]
    assert "no layer is wrong, but 1 of 2 outputs and 1 variable differs" in str(found)
    assert 'variable "v", assigned by layer' in str(found)
    assert not ir.compare(one, one, samples=CALLS)


def test_what_only_later_calls_tell_apart_is_found_in_a_sequence() -> None:
    one, two = sums(), sums("x")
    assert (outputs(one), outputs(two)) == ([1, 3, 6], [1, 3, 5])
    anew = ir.compare(one, two, samples=CALLS)
    assert not anew  # the first call of each: it assigns the same
    assert "1 variable begins anew in each sample: v" in str(anew)
    found = ir.compare(one, two, samples=CALLS, sequence=True)
    assert [step.variable for step in found.differing] == ["v"]
    assert found.parts is not None
    assert found.parts.place.name == "before"
    assert not found.wrong  # every layer is right for what it takes
    assert "begins anew" not in str(found)


@pytest.mark.parametrize("against", ["openvino", "compiled", "f16", "itself"])
def test_a_healthy_model_is_right_in_a_sequence(against: str) -> None:
    if against == "openvino":
        pytest.importorskip("openvino")
    found = ir.compare(sums(), sums() if against == "itself" else against,
                       samples=CALLS, sequence=True)  # fmt: skip
    assert not found, str(found)
    assert found.parts is None


def test_a_wrong_layer_is_named_once_whatever_is_remembered_of_it() -> None:
    two = sums()
    layer = two.layer("sum")
    layer.type = "Subtract"
    found = ir.compare(sums(), two, samples=CALLS, sequence=True)
    assert [step.place.name for step in found.wrong] == ["sum"]


def test_a_variable_that_another_reads_there_is_wrong() -> None:
    def crossed(names: str) -> ir.Model:
        net = ir.Builder("net")
        x = net.parameter("x", "f32", (2,))
        y = net.add("Add", "opset1", [x, x], name="twice")
        for number, name in enumerate(names):
            zeros = net.constant(np.zeros(2, "f4"), name=f"zeros{number}")
            before = net.add("ReadValue", "opset6", [zeros], name=f"before{number}",
                             variable_id=name, **V)  # fmt: skip
            net.result(net.add("Abs", "opset1", [before], name=f"abs{number}"), name=f"y{number}")
        for name, value in (("a", x), ("b", y)):
            net.add("Assign", "opset6", [value], name=f"assign_{name}", variable_id=name)
        return net.model()

    found = ir.compare(crossed("ab"), crossed("ba"), samples=CALLS, sequence=True)
    assert found.wrong
    assert {x.place.name for x in found.wrong} <= {"before0", "before1", "abs0", "abs1"}
    assert not ir.compare(crossed("ab"), crossed("ab"), samples=CALLS, sequence=True)


def test_a_variable_without_a_counterpart_is_named() -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2,))
    net.result(net.add("Add", "opset1", [x, x], name="sum"), name="y")
    net.result(net.add("Abs", "opset1", [x], name="twice"), name="z")
    assert "assign" in ir.compare(sums(), net.model()).uncompared


def test_the_command_line_tells_of_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, model in (("one", sums()), ("two", sums("x"))):
        ir.write(model, tmp_path / f"{name}.xml")
    words = ["compare", str(tmp_path / "one.xml"), "--against", str(tmp_path / "two.xml")]
    for more, code in (([], 0), (["--sequence"], 5)):
        with pytest.raises(SystemExit) as left:
            main([*words, "--samples", "3", "--json", *more])
        assert left.value.code == code
        told = json.loads(capsys.readouterr().out)
        assert (told["variables"], told["sequence"]) == (["v"], bool(more))
        assert [row["variable"] for row in told["outputs"]] == ["v", "", ""]


def test_a_body_that_remembers_is_in_no_sequence(written: Written) -> None:
    model = ir.read(written.first("Loop.5.0"))
    body = next(layer for layer in model if layer.bodies).bodies["body"]
    body.add(Layer("Assign", "opset6", "kept", data={"variable_id": "v"}))
    with pytest.raises(UsageError, match='"kept" assigns variable "v" in a body'):
        ir.compare(model, "compiled", sequence=True)
