"""States: what variables hold, as programs and runs are given it, show, save and load it."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.schemas import ElementType, IRError, UsageError


def counter() -> ir.Model:
    net = ir.Builder("counter")
    step = net.parameter("step", "f32", "1")
    kind = {"variable_id": "count", "variable_type": "f32", "variable_shape": "1"}
    before = net.add("ReadValue", "opset6", [net.constant(np.float32([0]))], **kind)
    after = net.add("Add", "opset1", [before, step])
    net.add("Assign", "opset6", [after], variable_id="count")
    net.result(after, name="total")
    return net.model()


@pytest.mark.parametrize("exact", [False, True])
def test_a_programs_state_is_shown_kept_and_taken_back(exact: bool, tmp_path: Path) -> None:
    program = ir.compile(counter(), exact=exact)
    assert list(program.state.declared) == ["count"]
    with pytest.raises(UsageError, match='variable "count" has no value yet'):
        program.state["count"]
    program([[2.0]])
    program([[3.0]])
    assert program.state["count"].tolist() == [5]
    file = tmp_path / "state.npz"
    program.state.save(file)
    with pytest.raises(UsageError, match="already there"):
        program.state.save(file)
    program.state.reset()
    assert program([[1.0]])["total"] == 1
    program.state.load(file)
    assert program([[1.0]])["total"] == 6
    program.state["count"] = [np.float32(10)]
    assert program([[1.0]])["total"] == 11
    assert pickle.loads(pickle.dumps(program)).state["count"].tolist() == [11]
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("cont", np.zeros(1, "f4"), 'no variable is named "cont"; there are count (did you mean'),
        ("count", np.zeros(2, "f4"), 'variable "count" has the shape 1, the array (2,)'),
        ("count", np.zeros(1, "i8"), 'variable "count" is f32, the array is int64'),
    ],
)
def test_a_wrong_state_is_refused(
    name: str, value: np.ndarray[Any, Any], said: str, tmp_path: Path
) -> None:
    program = ir.compile(counter())
    program([[2.0]])
    np.savez(tmp_path / "wrong.npz", **{name: value})
    for give in (
        lambda: program.state.__setitem__(name, value),
        lambda: program.state.update({name: value}),
        lambda: program.state.__ior__({name: value}),
        lambda: ir.run(program.model, [[1.0]], state={name: value}),
        lambda: program.state.load(tmp_path / "wrong.npz"),
    ):
        with pytest.raises(UsageError) as error:
            give()
        assert said in str(error.value)
    assert program.state["count"] == [2]


def test_show_names_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ir.write(counter(), tmp_path / "m.xml")
    with pytest.raises(SystemExit):
        main(["show", str(tmp_path / "m.xml")])
    assert re.search(
        r"variables\n +name +type +shape\n +count +f32 +\[1\]\n", capsys.readouterr().out
    )
    with pytest.raises(SystemExit):
        main(["show", str(tmp_path / "m.xml"), "--json"])
    rows = json.loads(capsys.readouterr().out)["variables"]
    assert rows == [{"name": "count", "type": "f32", "shape": "[1]"}]


def test_a_default_is_looked_at_as_any_value() -> None:
    state = ir.compile(counter()).state
    with pytest.raises(UsageError, match="has the shape 1"):
        state.setdefault("count", np.zeros(2, "f4"))
    assert state.setdefault("count", np.ones(1, "f4")).tolist() == [1]
    assert state.setdefault("count", np.zeros(1, "f4")).tolist() == [1]
    state |= {"count": np.full(1, 3, "f4")}
    assert state["count"].tolist() == [3]


def test_a_run_takes_its_state_for_what_the_model_declares() -> None:
    model = counter()
    state: dict[str, Any] = {"count": [np.float32(1)]}
    assert ir.run(model, [[0.5]], state=state)["total"] == 1.5
    assert state["count"].dtype == np.float32
    with pytest.raises(UsageError, match="is f32, the array is int64"):
        ir.run(model, [[0.5]], state={"count": np.array([1])})
    for wrong in ([1], "count"):
        with pytest.raises(UsageError, match="state"):
            ir.run(model, [[0.5]], state=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["bf16", "f16", "f8e4m3", "f8e5m2", "i4", "u4", "u2", "u1", "nf4",
                                  "boolean", "u16", "f64"])  # fmt: skip
def test_a_state_of_any_type_is_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    net = ir.Builder()
    x = net.parameter("x", kind, "2")
    declared = {"variable_id": "v", "variable_type": kind, "variable_shape": "2"}
    net.result(net.add("ReadValue", "opset6", [], **declared), name="y")
    net.add("Assign", "opset6", [x], variable_id="v")
    program = ir.compile(net.model())
    given = np.array([1, 0]).astype(ElementType(kind).dtype)
    program([given])
    held = program.state["v"]
    program.state.save(tmp_path / "state.npz")
    # What was saved before: bytes whose type NumPy has no name for.
    np.savez(tmp_path / "bytes.npz", v=held.view(f"V{held.itemsize}"))
    files = ["state.npz"] if held.dtype.type.__module__ == "numpy" else ["state.npz", "bytes.npz"]
    for name in files:
        program.reset()
        program.state.load(tmp_path / name)
        assert program.state["v"].dtype == held.dtype
        np.testing.assert_array_equal(program.state["v"], held)
        np.testing.assert_array_equal(program([given])["y"], given)


def test_a_variable_does_not_become_larger_than_it_is_declared(tmp_path: Path) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "?")
    declared = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1..3"}
    before = net.add("ReadValue", "opset6", [net.constant(np.zeros(1, "f4"))], **declared)
    after = net.add("Concat", "opset1", [before, x], axis=0)
    net.add("Assign", "opset6", [after], variable_id="v")
    net.result(after, name="y")
    model, state = net.model(), dict[str, Any]()
    programs = [ir.compile(model), ir.compile(model, exact=True)]
    for call, held in (
        (lambda: ir.run(model, [np.ones(1, "f4")], state=state), state),
        (lambda: programs[0]([np.ones(1, "f4")]), programs[0].state),
        (lambda: programs[1]([np.ones(1, "f4")]), programs[1].state),
    ):
        call()
        call()
        for _ in range(2):
            with pytest.raises(IRError, match=r'"v" has the shape 1\.\.3, it is assigned \(4,\)'):
                call()
            assert held["v"].shape == (3,)
    programs[0].state.save(tmp_path / "state.npz")
    programs[0].state.load(tmp_path / "state.npz")


@pytest.mark.parametrize("shape", ["...", "1,?,2", "?,?,2"])
@pytest.mark.parametrize("kind", ["dynamic", "f32"])
def test_a_run_goes_by_the_shapes_that_variables_have(kind: str, shape: str) -> None:
    net = ir.Builder()
    x, mask = net.parameter("x", "f32", "1,?,2"), net.parameter("mask", "f32", "1,?,1")
    declared = {"variable_id": "v", "variable_type": kind, "variable_shape": shape}
    first = net.constant(np.zeros((1, 0, 2), "f4"))
    before = net.add("ReadValue", "opset6", [first], **declared)
    after = net.add("Concat", "opset1", [before, x], axis=1)
    net.add("Assign", "opset6", [after], variable_id="v")
    net.result(net.add("Add", "opset1", [after, mask]), name="y")
    model, state, seen = net.model(), dict[str, Any](), 0
    program = ir.compile(model)
    for length in (2, 1, 1, 3):
        seen += length
        given = [np.ones((1, length, 2), "f4"), np.full((1, seen, 1), 2, "f4")]
        for outputs in (program(given), ir.run(model, given, state=state)):
            np.testing.assert_array_equal(outputs["y"], np.full((1, seen, 2), 3))


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    program = ir.compile(counter())
    (tmp_path / "text.npz").write_text("no zip")
    np.save(tmp_path / "one.npy", np.zeros(1))
    for name in ("text.npz", "one.npy", "none.npz"):
        with pytest.raises(UsageError, match=name) as error:
            program.state.load(tmp_path / name)
        assert "pickle" not in str(error.value)
        assert ("it is no .npz, as save writes it" in str(error.value)) == (name != "none.npz")


def test_a_state_whose_numbers_do_not_unpack_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    np.savez_compressed(path, v=np.zeros(99))
    packed = bytearray(path.read_bytes())
    packed[55:59] = b"\xff" * 4  # behind the name: a block of no kind
    path.write_bytes(packed)
    with pytest.raises(UsageError, match=r"state\.npz cannot be read"):
        ir.compile(counter()).state.load(path)


def test_a_value_of_no_declared_type_has_the_declared_shape() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,2")
    words = {"variable_id": "v", "variable_type": "dynamic", "variable_shape": "1,2"}
    y = net.add("Add", "opset1", [net.add("ReadValue", "opset6", [x], **words), x])
    net.add("Assign", "opset6", [y], variable_id="v")
    net.result(y)
    program = ir.compile(net.model())
    with pytest.raises(ir.UsageError, match=r'"v" has the shape 1,2, the array \(5, 2\)'):
        program.state["v"] = np.ones((5, 2), "f4")
    with pytest.raises(ir.UsageError, match=r'"v" has the shape 1,2, the array \(5, 2\)'):
        ir.run(net.model(), [np.ones((1, 2), "f4")], state={"v": np.ones((5, 2), "f4")})


def test_what_nobody_assigns_is_handed_on_as_it_is() -> None:
    """A body, or a run, that reads a variable makes no copy of it, and of a constant one."""
    net = ir.Builder()
    x = net.parameter("x", "f32", (2,))
    for name in ("read", "told"):
        words = {"variable_id": name, "variable_type": "f32", "variable_shape": "2"}
        held = net.add("ReadValue", "opset6", [net.constant(np.zeros(2, "f4"))], **words)
        kept = held if name == "read" else net.constant(np.ones(2, "f4"))
        net.add("Assign", "opset6", [kept], variable_id=name)
        net.result(net.add("Add", "opset1", [held, x]))
    mine = np.full(2, 7, "f4")
    state = {"read": mine, "told": mine.copy()}
    ir.run(net.model(), [np.ones(2, "f4")], state=state)
    assert state["read"] is mine
    assert state["told"].tolist() == [1, 1]
    assert state["told"].flags.writeable
