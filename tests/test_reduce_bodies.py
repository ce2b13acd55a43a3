"""A failure inside of a body comes down to the layers in it, or is told to be left as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_faults import wrong_kernel
from test_reduce import operations, tried
from vinoir import ir
from vinoir.ir.comparing.turns import turns_of
from vinoir.layers import Op
from vinoir.schemas import Array

ov = pytest.importorskip("openvino")
import openvino.opset13 as ops  # noqa: E402  # only where openvino is there

#: Operations around the one that fails, in each body.
AROUND = 12
TURNS = 5
ROWS = np.random.default_rng(0).uniform(0.5, 0.9, (TURNS, 1, 3)).astype("f4")

#: From the state and the turn's own row, the next state.
Step = Callable[[Any, Any], Any]
#: A model around a step, whose input is the rows.
Around = Callable[[Step], Any]


def long(bad: Callable[[Any], Any]) -> Step:
    """A step with a good many layers before and after a bad one."""

    def step(state: Any, row: Any) -> Any:
        x = ops.add(state, row)
        for _ in range(AROUND):
            x = ops.multiply(ops.tanh(x), ops.constant(np.float32(1.01)))
        y = bad(x)
        for _ in range(AROUND):
            x = ops.sigmoid(x)
        return ops.add(x, y)

    return step


def cells() -> tuple[Any, Any]:
    return ops.parameter([1, 3], np.float32), ops.parameter([1, 1, 3], np.float32)


def squeezed(row: Any) -> Any:
    return ops.squeeze(row, ops.constant(np.array([0])))


def loop(step: Step) -> Any:
    state, row = cells()
    after = step(state, squeezed(row))
    made = ops.loop(ops.constant(np.int64(TURNS)), ops.constant(np.array(True)))
    going = ops.result(ops.constant(np.array(True)))
    made.set_function(ov.Model([going, ops.result(after)], [state, row], "body"))
    made.set_special_body_ports([-1, 0])
    return _joined(made, state, row, after)


def iterator(step: Step) -> Any:
    state, row = cells()
    after = step(state, squeezed(row))
    made = ops.tensor_iterator()
    made.set_body(ov.Model([ops.result(after)], [state, row], "body"))
    return _joined(made, state, row, after)


def _joined(made: Any, state: Any, row: Any, after: Any) -> Any:
    rows = ops.parameter(list(ROWS.shape), np.float32)
    made.set_friendly_name("turns")
    made.set_sliced_input(row, rows.output(0), 0, 1, 1, -1, 0)
    begun = ops.constant(np.zeros((1, 3), "f4"))
    made.set_merged_input(state, begun.output(0), after.output(0))
    end = made.get_iter_value(after.output(0), -1)
    return ov.Model([ops.relu(end)], [rows], "around")


def condition(step: Step) -> Any:
    """The step in one side, and another layer in the other."""
    rows = ops.parameter(list(ROWS.shape), np.float32)
    taken, other = (
        ops.parameter(list(ROWS.shape), np.float32),
        ops.parameter([-1, 1, 3], np.float32),
    )
    done, left = ops.result(step(taken, taken)), ops.result(ops.negative(other))
    sum_ = ops.reduce_sum(rows, ops.constant(np.array([0, 1, 2])))
    made = ops.if_op(ops.greater(sum_, ops.constant(np.float32(0))).output(0))
    made.set_then_body(ov.Model([done], [taken], "then"))
    made.set_else_body(ov.Model([left], [other], "else"))
    made.set_input(rows.output(0), taken, other)
    return ov.Model([ops.relu(made.set_output(done, left))], [rows], "around")


def nested(step: Step) -> Any:
    """A loop in a loop: the inner one is all that the outer one does."""

    def outer(state: Any, row: Any) -> Any:
        one, other = ops.parameter([1, 3], np.float32), ops.parameter([1, 3], np.float32)
        after = step(one, other)
        made = ops.loop(ops.constant(np.int64(2)), ops.constant(np.array(True)))
        going = ops.result(ops.constant(np.array(True)))
        made.set_function(ov.Model([going, ops.result(after)], [one, other], "inner"))
        made.set_special_body_ports([-1, 0])
        made.set_merged_input(one, state.output(0), after.output(0))
        made.set_invariant_input(other, row.output(0))
        return ops.add(made.get_iter_value(after.output(0), -1), ops.constant(np.float32(0.1)))

    return loop(outer)


def read(model: Any, tmp_path: Path) -> ir.Model:
    ov.serialize(model, tmp_path / "m.xml")
    return ir.read(tmp_path / "m.xml")


EVERY = [loop, iterator, condition, nested]


def log_of_less(x: Any) -> Any:
    return ops.log(ops.negative(ops.abs(x)))


@pytest.mark.parametrize("around", EVERY)
def test_nan_inside_comes_down_and_its_test_fails(around: Around, tmp_path: Path) -> None:
    model = read(around(long(log_of_less)), tmp_path)
    found = ir.reduce(model, "run", [ROWS], output=tmp_path / "out")
    assert (operations(found.model), found.after, found.finished) == (["Log"], 1, True)
    assert found.before > 3 * AROUND  # with those inside
    assert len(found.opened) == (2 if around is nested else 1)
    note = (tmp_path / "out" / "NOTE.md").read_text("utf-8")
    assert all(origin in note for origin in found.opened)
    assert "not reduced" not in note
    done = tried(tmp_path / "out")
    assert done.returncode == 1, done.stdout
    assert "isnan" in done.stdout


@pytest.mark.parametrize("turn", [0, 3, 21, 39])
def test_the_turn_that_fails_is_found(turn: int, tmp_path: Path) -> None:
    """Of many turns one takes the logarithm of what is below zero."""
    rows, state = np.ones((40, 1, 3), "f4"), cells()
    rows[turn] = -1
    after = ops.log(squeezed(state[1]))
    made = ops.tensor_iterator()
    made.set_body(ov.Model([ops.result(after)], [state[1]], "body"))
    given = ops.parameter([40, 1, 3], np.float32)
    made.set_sliced_input(state[1], given.output(0), 0, 1, 1, -1, 0)
    told = made.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 0)
    model = read(ov.Model([told], [given], "around"), tmp_path)
    found = ir.reduce(model, "run", samples=[[np.ones_like(rows)], [rows]])
    assert (operations(found.model), found.failing) == (["Log"], [0])
    assert f"(turn {turn}, sample 1)" in found.opened[0]


@pytest.mark.parametrize("around", EVERY)
@pytest.mark.parametrize("fails", ["compile", "compare"])
def test_a_wrong_kernel_inside_comes_down(around: Around, fails: str, tmp_path: Path) -> None:
    """Elu is wrong where it runs by its definition, in one body of the model."""
    model = read(around(long(lambda x: ops.elu(x, 1.0))), tmp_path)
    kind = Op.find("Elu", "opset1")
    assert kind is not None
    with wrong_kernel(kind, lambda array: array * np.float32(1.5)):
        found = ir.reduce(model, fails, [ROWS])
    assert (operations(found.model), found.after) == (["Elu"], 1)


@pytest.mark.parametrize("around", EVERY)
@pytest.mark.parametrize("fails", ["infer", "run"])
def test_a_layer_that_is_refused_inside_is_left_alone(
    around: Around, fails: str, tmp_path: Path
) -> None:
    model = read(around(long(lambda x: ops.softmax(x, 1))), tmp_path)
    (layer,) = (x for x in model.everywhere() if x.type == "SoftMax")
    layer.data = {**layer.data, "axis": "77"}
    found = ir.reduce(model, fails, [ROWS])
    assert (operations(found.model), found.after) == (["SoftMax"], 1)
    assert ("sample" in found.opened[-1]) == (fails == "run")


@pytest.mark.parametrize("room", [0, 1, 2, 5, 100])
def test_turns_are_kept_as_far_as_there_is_room(room: int, tmp_path: Path) -> None:
    """But for the first, the one that makes NaN, and the last: of a large state each is a copy."""
    size, bad = 10_000, 21
    row, state = ops.parameter([1, 1], np.float32), ops.parameter([1, size], np.float32)
    after = ops.add(ops.abs(state), ops.log(row))
    made = ops.tensor_iterator()
    made.set_body(ov.Model([ops.result(after)], [row, state], "body"))
    rows = ops.parameter([40, 1], np.float32)
    begun = ops.parameter([1, size], np.float32)
    made.set_sliced_input(row, rows.output(0), 0, 1, 1, -1, 0)
    made.set_merged_input(state, begun.output(0), after.output(0))
    model = read(
        ov.Model([made.get_iter_value(after.output(0), -1)], [rows, begun], "a"), tmp_path
    )
    (layer,) = (x for x in model if x.bodies)
    given = np.ones((40, 1), "f4"), np.zeros((1, size), "f4")
    given[0][bad] = -1
    one = 4 * size + 4
    turns = turns_of(layer, given, None, room * one)
    numbers = [turn.number for turn in turns]
    every = [bad, *range(8), 8, 16, 32, 39]
    assert numbers[0] == bad
    assert numbers[-1] == 39
    assert set(numbers) == ({bad, *every[1:][: max(room, 1)], 39} if room < 100 else {*every})
    held = {id(array): array.nbytes for turn in turns for array in turn.arrays.values()}
    assert sum(held.values()) <= (max(room, 1) + 2) * one or room == 100


def test_a_body_that_does_not_fail_alone_is_told_to_be_left(tmp_path: Path) -> None:
    """What fails is the loop itself; what is left is counted with what is inside."""
    model = read(loop(long(ops.abs)), tmp_path)

    def fails(model: ir.Model, samples: Sequence[Sequence[Array]]) -> bool:
        return "Loop" in operations(model)

    found = ir.reduce(model, fails, [ROWS], output=tmp_path / "out")
    assert operations(found.model) == ["Loop"]
    assert found.before == found.after + 1 > 3 * AROUND
    note = (tmp_path / "out" / "NOTE.md").read_text("utf-8")
    assert f'Loop "turns" around {found.after - 1} layers' in note
    assert "not reduced" in note
    assert f"around {found.after - 1} layers" in str(found)


def test_a_reduction_of_a_body_is_gone_on_with(tmp_path: Path) -> None:
    model = read(loop(long(log_of_less)), tmp_path)

    def stop(line: str) -> None:
        if "body of" in line:
            raise KeyboardInterrupt

    rows = [[ROWS], [-ROWS]]
    with pytest.raises(KeyboardInterrupt):
        ir.reduce(model, "run", samples=rows, output=tmp_path / "out", progress=stop)
    found = ir.reduce(model, "run", samples=rows, output=tmp_path / "out")
    again = ir.reduce(model, "run", samples=rows, output=tmp_path / "out")
    for one in (found, again):
        assert (operations(one.model), one.after, len(one.samples)) == (["Log"], 1, 1)
        assert one.before > 3 * AROUND
        assert len(one.opened) == 1
