"""Where runs part inside a body, the layer in it is named, and the turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_faults import wrong_kernel
from test_painting import call, painted
from test_reduce_bodies import EVERY, ROWS, condition, long, loop, nested, read
from vinoir import ir
from vinoir.ir.comparing import walking
from vinoir.layers import Op

ov = pytest.importorskip("openvino")
import openvino.opset13 as ops  # noqa: E402  # only where openvino is there

ELU = Op.find("Elu", "opset1")
assert ELU is not None


def elu(x: Any) -> Any:
    made = ops.elu(ops.negative(x), 1.0)  # below zero, where the slope counts
    made.set_friendly_name("bent")
    return made


def innermost(step: Any) -> Any:
    while step.inner is not None:
        step = step.inner
    return step


@pytest.mark.parametrize("against", ["model", "openvino", "compiled"])
@pytest.mark.parametrize("around", EVERY)
def test_the_layer_in_a_body_is_named(
    around: Callable[..., Any], against: str, tmp_path: Path
) -> None:
    model = read(around(long(elu)), tmp_path)
    other: Any = against
    if against == "model":
        other = ir.read(tmp_path / "m.xml")
        (changed,) = (x for x in other.everywhere() if x.type == "Elu")
        changed.data = {**changed.data, "alpha": "0.5"}
    wrong = nullcontext() if against == "model" else wrong_kernel(ELU, lambda x: x * np.float32(2))
    with wrong:
        found = ir.compare(model, other, [ROWS])
    assert found.first is not None
    assert found.first.place.type in ("Loop", "TensorIterator", "If")
    step = innermost(found.first)
    assert (step.place.name, step.place.type, step.verdict) == ("bent", "Elu", "wrong")
    holders = ["turns", "inner"] if around is nested else [found.first.place.name]
    assert step.place.body[0] == found.first.place.name
    assert len(step.place.body) == len(holders)
    told = "then_body" if around is condition else "body, turn 0"
    assert found.first.inner is not None
    assert found.first.inner.within == told
    assert f"in its {told}: layer" in str(found)
    json.dumps(found.as_json())


@pytest.mark.parametrize("turn", [0, 3, 16, 39])
def test_the_turn_is_the_first_of_those_looked_at_that_is_wrong(turn: int, tmp_path: Path) -> None:
    """Only where a row is negative the slope of Elu counts."""
    rows, row = np.ones((40, 1, 3), "f4"), ops.parameter([1, 1, 3], np.float32)
    rows[turn] = -1
    after = ops.elu(row, 1.0)
    made = ops.tensor_iterator()
    made.set_body(ov.Model([ops.result(after)], [row], "body"))
    given = ops.parameter([40, 1, 3], np.float32)
    made.set_sliced_input(row, given.output(0), 0, 1, 1, -1, 0)
    told = made.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 0)
    model = read(ov.Model([told], [given], "around"), tmp_path)
    other = ir.read(tmp_path / "m.xml")
    (changed,) = (x for x in other.everywhere() if x.type == "Elu")
    changed.data = {**changed.data, "alpha": "0.5"}
    found = ir.compare(model, other, samples=[[np.ones_like(rows)], [rows]])
    assert found.first is not None
    assert found.first.inner is not None
    assert (found.first.inner.turn, found.first.inner.sample) == (turn, 1)


def test_a_weight_in_a_body_is_named_with_the_layer_that_takes_it(tmp_path: Path) -> None:
    def step(state: Any, row: Any) -> Any:
        weight = ops.constant(np.ones((1, 3), "f4"))
        weight.set_friendly_name("weight")
        scaled = ops.multiply(row, weight)
        scaled.set_friendly_name("scaled")
        return ops.add(state, scaled)

    model = read(loop(step), tmp_path)
    other = ir.read(tmp_path / "m.xml")
    (changed,) = (x for x in other.everywhere() if x.name == "weight")
    changed.set_value(changed.value * np.float32(1.25))
    found = ir.compare(model, other, [ROWS])
    assert found.first is not None
    inner = found.first.inner
    assert inner is not None
    assert (inner.place.name, inner.constants, inner.turn) == ("scaled", ("weight",), 0)


def test_where_the_loop_itself_is_another_no_layer_inside_is_blamed(tmp_path: Path) -> None:
    model = read(loop(long(ops.abs)), tmp_path)
    other = ir.read(tmp_path / "m.xml")
    (count,) = (x for x in other.layers if x.is_constant and x.element_type == "i64")
    count.set_value(np.int64(2))
    found = ir.compare(model, other, [ROWS])
    assert found.first is not None
    assert found.first.inner is None
    assert "in its" not in str(found)


def test_the_command_names_it_and_a_picture_paints_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = read(loop(long(elu)), tmp_path)
    (changed,) = (x for x in model.everywhere() if x.type == "Elu")
    changed.data = {**changed.data, "alpha": "0.5"}
    ir.write(model, tmp_path / "other.xml")
    np.save(tmp_path / "x.npy", ROWS)
    words = ["compare", str(tmp_path / "m.xml"), "--against", str(tmp_path / "other.xml")]
    words += ["-i", f"{model.inputs[0].name}={tmp_path / 'x.npy'}"]
    assert call(*words) == 5
    out = " ".join(capsys.readouterr().out.split())
    assert "in its body, turn 0: layer" in out
    assert '"bent" (Elu opset1) in turns: wrong' in out
    found = ir.compare(model, tmp_path / "m.xml", [ROWS])
    assert found.first is not None
    errors = painted(ir.draw(model).paint("error", found))
    assert errors["turns/body/bent"] == innermost(found.first).own > 0.1
    assert errors["turns"] == found.first.own


def test_turns_are_not_run_where_nothing_tells_of_bodies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = read(loop(long(elu)), tmp_path)
    (right,) = ir.run(model, ROWS, outputs=["turns"]).values()
    np.savez(tmp_path / "recorded.npz", turns=right + 1)

    def refuse(*_: object) -> None:
        raise AssertionError("the turns of a loop are run")

    monkeypatch.setattr(walking, "models_of_turns", refuse)
    found = ir.compare(model, str(tmp_path / "recorded.npz"), [ROWS])
    assert found.first is not None
    assert (found.first.place.type, found.first.inner) == ("Loop", None)
