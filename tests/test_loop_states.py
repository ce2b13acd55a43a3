"""What is inferred of loops holds in every turn, against OpenVINO; wrong wiring is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import IRError, Shape
from vinoir.schemas.errors import InternalError

ov = pytest.importorskip("openvino")
import openvino.opset13 as ops  # noqa: E402  # only where openvino is there

Step = Callable[..., Sequence[Any]]


def parameter(shape: str, kind: Any = ov.Type.f32) -> Any:
    return ops.parameter(ov.PartialShape(f"[{shape}]"), kind)


def opened(shape: str) -> Any:
    """A Parameter of the rank of a shape."""
    return parameter(shape if shape == "..." else ",".join("?" for _ in shape.split(",")))


def turned(kind: str, shapes: list[str], step: Step, told: int = 0) -> Any:
    """A model whose states begin with its first inputs and are what ``step`` makes of them.

    The step is given the states and the first of them as it began; what else it gives than
    states is ``told`` in every turn. The model's last input is the number of turns, or a list
    with a place for each.
    """
    begun = [parameter(shape) for shape in shapes]
    states, first = [opened(shape) for shape in shapes], opened(shapes[0])
    given = list(step(*states, first))
    if kind == "loop":
        turns: Any = parameter("", ov.Type.i64)
        made = ops.loop(turns, ops.constant(np.array(True)))
        always = [ops.constant(np.array(True))]
        made.set_function(ov.Model([*always, *given], [*states, first], "body"))
        made.set_special_body_ports([-1, 0])
    else:
        turns, place = parameter("?"), parameter("1")
        given[0] = ops.multiply(given[0], place)
        made = ops.tensor_iterator()
        made.set_body(ov.Model(given, [*states, first, place], "body"))
        made.set_sliced_input(place, turns.output(0), 0, 1, 1, -1, 0)
    for state, begin, one in zip(states, begun, given, strict=False):
        made.set_merged_input(state, begin.output(0), one.output(0))
    made.set_invariant_input(first, begun[0].output(0))
    ends = [made.get_iter_value(one.output(0), -1) for one in given[: len(states)]]
    told_of = [
        made.get_concatenated_slices(one.output(0), 0, 1, 1, -1, 0) for one in given[len(states) :]
    ]
    assert len(told_of) == told
    # What a program or a rewriting takes for known becomes a constant here.
    sizes = [ops.shape_of(end) for end in ends]
    found = [*ends, *told_of, *(size.output(0) for size in sizes)]
    found.extend(ops.subtract(size, ops.shape_of(begun[0])).output(0) for size in sizes)
    return ov.Model(found, [*begun, turns], kind)


def compare(model: Any, tmp_path: Path, arrays: list[Any], turns: int) -> None:
    """That run, compile and both of the simplified model give what OpenVINO gives."""
    path = tmp_path / "m.xml"
    ov.serialize(model, path)
    number = np.int64(turns) if model.friendly_name == "loop" else np.ones(turns, "f4")
    given = [*arrays, number]
    wanted = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)
    ours = ir.read(path)
    simple = ir.simplify(path)[0]
    ways = [ir.run(ours, given), ir.compile(ours)(given), ir.run(simple, given),
            ir.compile(simple)(given)]  # fmt: skip
    for way in ways:
        for found, right in zip(way.values(), wanted.values(), strict=True):
            np.testing.assert_array_equal(found, right)
    for tensor, right in zip(ir.infer(ours).values(), wanted.values(), strict=True):
        tensor.shape.merge(Shape(right.shape))


def longer(state: Any, first: Any) -> list[Any]:
    return [ops.concat([state, state], 0), ops.subtract(ops.shape_of(state), ops.shape_of(first))]


def swapped(one: Any, other: Any, first: Any) -> list[Any]:
    """The states change places, and how far the one is from what it began with."""
    away = ops.subtract(ops.shape_of(one), ops.shape_of(first))
    return [ops.negative(other), ops.abs(one), away]


@pytest.mark.parametrize("kind", ["loop", "iterator"])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_size_that_grows_does_not_keep_its_name(kind: str, turns: int, tmp_path: Path) -> None:
    compare(turned(kind, ["?"], longer, 1), tmp_path, [np.ones(2, "f4")], turns)


@pytest.mark.parametrize("kind", ["loop", "iterator"])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_sizes_that_change_places_do_not_keep_their_names(
    kind: str, turns: int, tmp_path: Path
) -> None:
    arrays = [np.arange(2, dtype="f4"), np.arange(5, dtype="f4")]
    model = turned(kind, ["?", "?"], swapped, 1)
    compare(model, tmp_path, arrays, turns)
    ends = list(ir.infer(tmp_path / "m.xml", {0: "N", 1: "M"}).values())[:2]
    assert [str(end.shape) for end in ends] == ["?", "?"]


@pytest.mark.parametrize("kind", ["loop", "iterator"])
def test_a_size_that_stays_keeps_its_name(kind: str, tmp_path: Path) -> None:
    model = turned(kind, ["?,4"], lambda state, first: [ops.add(ops.relu(state), first)])
    ov.serialize(model, tmp_path / "m.xml")
    assert str(next(iter(ir.infer(tmp_path / "m.xml", {0: "N,4"}).values())).shape) == "N,4"


def test_what_a_loop_gives_without_a_turn_may_have_the_size_it_began_with(tmp_path: Path) -> None:
    model = turned("loop", ["?", "?"], lambda one, other, first: [ops.relu(first), ops.abs(first)])
    ov.serialize(model, tmp_path / "m.xml")
    given = [np.ones(2, "f4"), np.ones(5, "f4"), np.int64(0)]
    for model in (ir.read(tmp_path / "m.xml"), ir.simplify(tmp_path / "m.xml")[0]):
        for way in (ir.run(model, given), ir.compile(model)(given)):
            # OpenVINO's CPU hands out nothing.
            assert [array.tolist() for array in way.values()][2:] == [[2], [5], [0], [3]]


@pytest.mark.parametrize("rank", [2, 3, 4, 5, 6])
def test_growth_goes_from_axis_to_axis(rank: int, tmp_path: Path) -> None:
    order = ops.constant([rank - 1, *range(rank - 1)])

    def step(state: Any, first: Any) -> list[Any]:
        return [ops.transpose(ops.concat([state, state], rank - 1), order)]

    model = turned("loop", [",".join("1" * rank)], step)
    compare(model, tmp_path, [np.ones((1,) * rank, "f4")], 2 * rank + 1)


@pytest.mark.parametrize("many", [3, 40])
def test_growth_goes_from_state_to_state(many: int, tmp_path: Path) -> None:
    def step(*states: Any) -> list[Any]:
        *given, _ = states
        grown = ops.transpose(ops.concat([given[-1], given[-1]], 0), ops.constant([1, 0]))
        return [grown, *(ops.relu(state) for state in given[:-1])]

    model = turned("loop", ["1,1"] * many, step)
    compare(model, tmp_path, [np.ones((1, 1), "f4")] * many, 2 * many + 1)


def test_ranks_go_from_state_to_state(tmp_path: Path) -> None:
    """From so many to so many, that nothing is followed to the end."""

    def step(*states: Any) -> list[Any]:
        *given, _ = states
        wide = ops.reshape(given[0], ops.constant([1, -1]), special_zero=False)
        return [wide, *(ops.relu(state) for state in given[:-1])]

    model = turned("loop", ["..."] * 60, step)
    ov.serialize(model, tmp_path / "m.xml")
    ends = list(ir.infer(tmp_path / "m.xml", ["3"] * 60).values())
    assert {end.shape.rank for end in ends[1:60]} == {None}


def test_a_state_of_an_iterator_that_becomes_wider_has_no_static_shape_inside(
    tmp_path: Path,
) -> None:
    """OpenVINO takes the first size for that of every turn, and says 1 in each of them."""

    def step(state: Any, first: Any) -> list[Any]:
        size = ops.unsqueeze(ops.shape_of(state), ops.constant(0))
        return [ops.add(state, ops.constant(np.zeros(4, "f4"))), size]

    ov.serialize(turned("iterator", ["1"], step, 1), tmp_path / "m.xml")
    given = [np.ones(1, "f4"), np.ones(3, "f4")]
    for model in (ir.read(tmp_path / "m.xml"), ir.simplify(tmp_path / "m.xml")[0]):
        for way in (ir.run(model, given), ir.compile(model)(given)):
            assert list(way.values())[1].tolist() == [[1], [4], [4]]


def sliced(trips: int | None, begins: bool | None, shape: str, *, goes: bool = True) -> Any:
    """A Loop over rows: its state, what its turns give joined, and how long that is."""
    x = parameter(shape)
    count = parameter("", ov.Type.i64) if trips is None else ops.constant(np.int64(trips))
    if begins is None:
        condition = parameter("", ov.Type.boolean)
    else:
        condition = ops.constant(np.array(begins))
    state, part = parameter("?,?"), parameter("1,?")
    new, row = ops.add(state, ops.constant(np.float32(1))), ops.negative(part)
    made = ops.loop(count.output(0), condition.output(0))
    made.set_function(ov.Model([ops.constant(np.array(goes)), new, row], [state, part], "body"))
    made.set_special_body_ports([-1, 0])
    made.set_merged_input(state, x.output(0), new.output(0))
    made.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    last = made.get_iter_value(new.output(0), -1)
    every = made.get_concatenated_slices(row.output(0), 0, 1, 1, -1, 0)
    size = ops.shape_of(every).output(0)
    inputs = [x, *([count] if trips is None else []), *([condition] if begins is None else [])]
    return ov.Model([last, every, size], inputs, "loop")


ROWS = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize("shape", ["2,3", "?,?"])
@pytest.mark.parametrize("trips", [None, 0, 2])
@pytest.mark.parametrize("begins", [None, True, False])
@pytest.mark.parametrize("turns", [0, 2])
@pytest.mark.parametrize("when", [True, False])
@pytest.mark.parametrize("goes", [True, False])
def test_what_a_loop_gives_is_what_is_inferred_of_it(
    shape: str,
    trips: int | None,
    begins: bool | None,
    turns: int,
    when: bool,
    goes: bool,
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.xml"
    ov.serialize(sliced(trips, begins, shape, goes=goes), path)
    given = [ROWS, *([np.int64(turns)] if trips is None else []),
             *([np.array(when)] if begins is None else [])]  # fmt: skip
    done = (turns if trips is None else trips) if (when if begins is None else begins) else 0
    done = done if goes else min(done, 1)
    simple = ir.simplify(path)[0]
    for model in (ir.read(path), simple):
        for way in (ir.run(model, given), ir.compile(model)(given)):
            last, every, size = way.values()
            np.testing.assert_array_equal(last, ROWS + done)
            assert size.tolist() == list(every.shape)
            assert every.size == 3 * done
            for tensor, array in zip(ir.infer(model).values(), way.values(), strict=True):
                tensor.shape.merge(Shape(array.shape))
            if done:
                np.testing.assert_array_equal(every, -ROWS[:done])
    if begins is False and shape == "?,?":  # of static shapes OpenVINO refuses to compile it
        wanted = ov.Core().compile_model(path, "CPU")(given)
        found = ir.run(path, given)
        for one, other in zip(found.values(), wanted.values(), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("old", "new", "told"), [
    ('purpose="current_iteration"', 'purpose="Current_Iteration"', "current_iteration or none"),
    ('purpose="execution_condition"', 'purpose="go"', "execution_condition or none"),
    ('<input external_port_id="-1"[^>]*>', "", 'Parameter "turn"'),
    ('(<edge from-layer=)"[0-9]+"( to-layer="[0-9]+" />\\s*</back_edges>)', '\\1"99"\\2', "99 to"),
    ('(<edge from-layer="[0-9]+" to-layer=)"[0-9]+"( />\\s*</back_edges>)', '\\1"77"\\2', "to 77"),
    ('(<input external_port_id="2" internal_layer_id=)"[0-9]+"', '\\1"55"', "55 of the body"),
    ('(<output external_port_id="3" internal_layer_id=)"[0-9]+"', '\\1"0"', "which is no Result"),
    ('(<output external_port_id="-1" internal_layer_id=)"[0-9]+"', '\\1"1"', "which is no Result"),
])  # fmt: skip
def test_wrong_wiring_of_a_body_is_told(old: str, new: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "loop.xml"
    x, kept, turn = parameter("2"), parameter("2"), parameter("", ov.Type.i64)
    turn.set_friendly_name("turn")
    total = ops.add(kept, ops.convert(turn, ov.Type.f32))
    yes = ops.constant(np.array(True))
    body = ov.Model([ops.result(yes), ops.result(total)], [turn, kept], "body")
    made = ops.loop(ops.constant(np.int64(3)), yes)
    made.set_function(body)
    made.set_special_body_ports([0, 0])
    made.set_merged_input(kept, x.output(0), total.output(0))
    ov.serialize(ov.Model([ops.result(made.get_iter_value(total.output(0), -1))], [x]), path)
    sound = path.read_text("utf-8")
    damaged, count = re.subn(old, new, sound)
    assert count == 1
    path.write_text(damaged, "utf-8")
    assert any(finding.severity == "error" for finding in ir.check(path).findings)
    model, inputs = ir.read(path), [np.zeros(2, "f4")]
    for run in (lambda: ir.run(model, inputs), lambda: ir.compile(model)(inputs)):
        with pytest.raises(IRError, match=re.escape(told)) as caught:
            run()
        assert not isinstance(caught.value, InternalError)
    path.write_text(sound, "utf-8")
    assert next(iter(ir.run(path, inputs).values())).tolist() == [3, 3]


def test_a_loop_with_one_input_is_told_and_no_bug(tmp_path: Path) -> None:
    path = tmp_path / "loop.xml"
    x, kept = parameter("", ov.Type.i64), parameter("", ov.Type.i64)
    made = ops.loop(x.output(0), ops.constant(np.array(True)).output(0))
    twice = ops.relu(kept)
    made.set_function(ov.Model([ops.constant(np.array(True)), twice], [kept], "body"))
    made.set_special_body_ports([-1, 0])
    made.set_invariant_input(kept, x.output(0))
    ov.serialize(ov.Model([made.get_iter_value(twice.output(0), -1)], [x], "m"), path)
    text = path.read_text("utf-8")
    loop = re.search(r'<layer id="(\d+)"[^>]*type="Loop".*?(<input>.*?</input>)', text, re.S)
    assert loop is not None
    text = text.replace(loop[2], '<input><port id="0" precision="I64" /></input>', 1)
    text = re.sub(rf'<edge [^>]*to-layer="{loop[1]}" to-port="[12]" />', "", text)
    text = re.sub(r'<input external_port_id="\d+"', '<input external_port_id="0"', text)
    path.write_text(text, "utf-8")
    assert "IR602" in {finding.code for finding in ir.check(path).findings}
