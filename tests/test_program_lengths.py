"""Regions whose length is known at a call only: planned for each that comes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_program import assert_close
from vinoir import ir
from vinoir.ir.engine import outside
from vinoir.ir.engine.patterns import OPEN
from vinoir.ir.engine.plan import regions
from vinoir.ir.engine.planned import Planned
from vinoir.layers.base import Op
from vinoir.schemas import Array, IRError

CHANNELS, LONG = 6, 24


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "WEIGHTS", 1)


def numbers(*shape: int, seed: int = 5) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def voice(*, twice: bool = False, kept: bool = False, least: int = 1) -> ir.Model:
    """Chosen columns are convolved and enlarged; once more chosen and convolved, if that is asked.

    Args:
        twice: Whether values decide once more, after the first convolutions.
        kept: Whether what was convolved is assigned to a variable.
        least: How many columns the last convolution looks at.
    """
    net = ir.Builder("voice")
    x = net.parameter("x", "f32", f"1,{CHANNELS},{LONG}")
    wanted = net.parameter("wanted", "boolean", f"{LONG}")
    seed = 0

    def constant(*shape: int) -> ir.Output:
        nonlocal seed
        seed += 1
        return net.constant(numbers(*shape, seed=seed) / 3)

    def convolved(value: ir.Output, taps: int) -> ir.Output:
        side = str(taps // 2)
        found = net.add("Convolution", "opset1", [value, constant(CHANNELS, CHANNELS, taps)],
                        strides="1", dilations="1", pads_begin=side, pads_end=side)  # fmt: skip
        found = net.add("Add", "opset1", [found, constant(1, CHANNELS, 1)])
        return net.add("PReLU", "opset1", [found, net.constant(np.float32([0.1]))])

    def chosen(value: ir.Output, mask: ir.Output) -> ir.Output:
        places = net.add("NonZero", "opset3", [mask], output_type="i64")
        row = net.add("Squeeze", "opset1", [places, net.constant(np.int64([0]))])
        return net.add("Gather", "opset8", [value, row, net.constant(np.int64(2))])

    short = chosen(net.add("Tanh", "opset1", [x]), wanted)
    y = short
    for taps in (3, 1, 5, 3):
        y = net.add("Add", "opset1", [convolved(y, taps), y])
    mean = net.add("ReduceMean", "opset1", [y, net.constant(np.int64([2]))], keep_dims=True)
    if twice:
        sums = net.add("ReduceSum", "opset1", [y, net.constant(np.int64([0, 1]))])
        loud = net.add("Greater", "opset1", [sums, net.constant(np.float32(0))])
        y = net.add("Multiply", "opset1", [chosen(y, loud), mean])
        for taps in (1, 3, 3, 1):
            y = convolved(y, taps)
    if kept:
        net.add("Assign", "opset6", [mean], variable_id="mean")
        before = net.add("ReadValue", "opset6", [net.constant(numbers(1, CHANNELS, 1))],
                         variable_id="mean", variable_type="f32",
                         variable_shape=f"1,{CHANNELS},1")  # fmt: skip
        y = net.add("Multiply", "opset1", [y, before])
    wide = net.add("ConvolutionBackpropData", "opset1", [y, constant(CHANNELS, 2, 4)],
                   strides="2", dilations="1", pads_begin="1", pads_end="1")  # fmt: skip
    last = net.add("Convolution", "opset1", [wide, constant(3, 2, least)],
                   strides="1", dilations="1", pads_begin="0", pads_end="0")  # fmt: skip
    net.result(last, name="y")
    net.result(mean, name="mean")
    return net.model()


def columns(count: int, seed: int = 1) -> list[Array]:
    wanted = np.zeros(LONG, bool)
    wanted[np.random.default_rng(seed).permutation(LONG)[:count]] = True
    return [numbers(1, CHANNELS, LONG, seed=seed), wanted]


def region_of(program: ir.Program) -> outside.Planning:
    (planned,) = program._plans.values()
    assert isinstance(planned, Planned)
    (region,) = planned.outside.regions.values()
    return region


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("fork", [False, True])
def test_each_length_gives_what_the_definitions_give(twice: bool, fork: bool) -> None:
    model = voice(twice=twice)
    program, alone = ir.compile(model, threads=2, fork=fork), ir.compile(model, threads=1)
    for count in (9, 9, 4, 24, 9, 1, 4):
        given = columns(count)
        found, wanted = program(given), ir.run(model, given)
        assert_close(found, wanted)
        again = program(given)
        for name, array in alone(given).items():
            np.testing.assert_array_equal(found[name], array)
            np.testing.assert_array_equal(again[name], array)


@settings(max_examples=15, deadline=None)
@given(count=st.integers(2, LONG), seed=st.integers(0, 99))
def test_any_columns(count: int, seed: int) -> None:
    model = voice()
    program = ir.compile(model, threads=1)
    found = program(columns(count, seed))
    assert len(region_of(program)._plans) == 1
    assert_close(found, ir.run(model, columns(count, seed)))


def test_few_lengths_are_kept() -> None:
    program = ir.compile(voice(), threads=1)
    region = region_of(program)
    for count in (3, 8, 3, 5, 8):
        program(columns(count))
    kept = [shapes[0] for shapes in region._plans]
    assert len(kept) == outside.LENGTHS
    assert {shape[-1] for shape in kept} == {5, 8}
    one = region._plans[next(reversed(region._plans))]
    program(columns(8, seed=7))
    assert region._plans[next(reversed(region._plans))] is one


def test_a_region_begins_anew_where_values_decide_again() -> None:
    program = ir.compile(voice(twice=True), threads=1)
    program(columns(7))
    region = region_of(program)
    (planned,) = region._plans.values()
    assert isinstance(planned, Planned)
    (second,) = planned.outside.regions.values()
    assert len(second._plans) == 1
    timed = program.times(columns(7), 2)
    assert timed is not None
    assert sum(node.layer.type == "Convolution" for node, *_ in timed) == 9


def test_nodes_of_regions_are_timed_one_by_one() -> None:
    program = ir.compile(voice(), threads=1)
    timed = program.times(columns(7), 2)
    assert timed is not None
    convolutions = [node for node, *_ in timed if node.layer.type == "Convolution"]
    assert len(convolutions) == 5
    assert all(node.outputs[0].shape[-1] in (7, 14) for node in convolutions)


def test_variables_are_assigned_what_regions_give() -> None:
    model = voice(kept=True)
    program, state = ir.compile(model), dict[str, Array]()
    for count in (6, 11, 6):
        wanted = ir.run(model, columns(count), state=state)
        assert_close(program(columns(count)), wanted)
    np.testing.assert_allclose(program.state["mean"], state["mean"], atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_columns_are_refused_as_by_the_definitions(count: int) -> None:
    model = voice(least=5)
    said: list[str] = []
    for run in (ir.compile(model), lambda given: ir.run(model, given)):
        with pytest.raises(IRError) as caught:
            run(columns(count))
        said.append(str(caught.value))
    assert "Convolution" in said[0]
    assert said[0] == said[1]


def test_small_convolutions_have_no_plan_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "WEIGHTS", 1 << 20)
    program = ir.compile(voice())
    (planned,) = program._plans.values()
    assert planned is not None
    assert not planned.outside.regions
    assert_close(program(columns(5)), ir.run(voice(), columns(5)))


def test_lengths_that_grow_with_each_call_are_not_planned_for() -> None:
    net = ir.Builder("growing")
    x = net.parameter("x", "f32", f"1,{CHANNELS},?")
    past = net.add("ReadValue", "opset6", [net.constant(np.zeros((1, CHANNELS, 0), "f4"))],
                   variable_id="past", variable_type="f32",
                   variable_shape=f"1,{CHANNELS},?")  # fmt: skip
    y = net.add("Concat", "opset1", [past, x], axis=2)
    net.add("Assign", "opset6", [y], variable_id="past")
    for seed in range(4):
        weights = net.constant(numbers(CHANNELS, CHANNELS, 1, seed=seed))
        y = net.add("Convolution", "opset1", [y, weights],
                    strides="1", dilations="1", pads_begin="0", pads_end="0")  # fmt: skip
    net.result(y, name="y")
    model = net.model()
    program, whole = ir.compile(model, threads=1), numbers(1, CHANNELS, 16)
    for length in range(1, 16):
        found = program([whole[:, :, length - 1 : length]])
        assert_close(found, ir.run(model, [whole[:, :, :length]]))
    pattern, planned = next(reversed(program._plans.items()))
    assert planned is not None
    assert pattern[1] is not None
    assert OPEN in pattern[1]
    assert not planned.outside.regions


def growing(model: ir.Model, inputs: int) -> ir.Program:
    """A program that has planned for any length, as lengths went on growing by one."""
    program = ir.compile(model, threads=1)
    for count in range(2, 7):
        program([np.ones((1, count, 3), "f4")] * inputs)
    assert any(-1 in shape for pattern in program._plans for shape in pattern if shape)
    return program


def test_limits_of_a_size_hold_where_a_plan_leaves_it_open() -> None:
    net = ir.Builder()
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "1,1..6,3")]), name="y")
    program = growing(net.model(), 1)
    assert program([np.ones((1, 6, 3), "f4")])["y"].shape == (1, 6, 3)
    for count in (7, 8, 0):
        with pytest.raises(ir.UsageError, match=rf"1,1\.\.6,3, the array \(1, {count}, 3\)"):
            program([np.ones((1, count, 3), "f4")])


@pytest.mark.parametrize("rule", ["none", "pdpd"])
@pytest.mark.parametrize("kind", ["Add", "Less", "LogicalAnd", "Select"])
def test_rules_of_broadcasting_hold_where_a_plan_leaves_sizes_open(kind: str, rule: str) -> None:
    net = ir.Builder()
    x, z = net.parameter("x", "f32", "1,?,3"), net.parameter("z", "f32", "1,?,3")
    given = [x, z]
    if kind == "LogicalAnd":
        given = [net.add("Greater", "opset1", [end, net.constant(np.float32(0))]) for end in given]
    if kind == "Select":
        given = [net.add("Greater", "opset1", [x, net.constant(np.float32(0))]), x, z]
    net.result(net.add(kind, "opset1", given, auto_broadcast=rule), name="y")
    model = net.model()
    program = growing(model, 2)
    unlike = [np.ones((1, 1, 3), "f4"), np.ones((1, 5, 3), "f4")]
    for call in (program, lambda arrays: ir.run(model, arrays)):
        with pytest.raises(ir.IRError, match=f"{kind}.*shape"):
            call(unlike)


def test_limits_of_levels_are_not_repeated_where_nothing_is() -> None:
    op = Op.registry["FakeQuantize", 1].read({"levels": "4", "auto_broadcast": "none"})
    data, limit = np.ones((2, 3), "f4"), np.ones((1, 3), "f4")
    with pytest.raises(IRError, match="2,3 and 1,3 differ"):
        op.run(data, limit, limit, limit, limit)


def test_an_axis_that_is_not_dropped_after_all_is_there() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "3,6,4")

    def chosen(value: ir.Output, name: str, count: int, axis: int) -> ir.Output:
        places = net.add("NonZero", "opset3", [net.parameter(name, "i32", [count])])
        row = net.add("Squeeze", "opset1", [places, net.constant(np.int64([0]))])
        return net.add("Gather", "opset8", [value, row, net.constant(np.int64(axis))])

    rows = chosen(chosen(x, "rows", 3, 0), "columns", 6, 1)
    y = net.add("Squeeze", "opset1", [rows, net.constant(np.int64([0]))])
    squares = net.add("Multiply", "opset1", [y, y])
    mean = net.add("ReduceMean", "opset1", [squares, net.constant(np.int64([-1]))], keep_dims=True)
    net.result(net.add("Divide", "opset1", [y, net.add("Sqrt", "opset1", [mean])]), name="y")
    sizes = net.add("ShapeOf", "opset3", [y])
    net.result(net.add("ShapeOf", "opset3", [sizes]), name="rank")
    program = ir.compile(net.model(), threads=1)
    for count in (1, 2, 1, 3):
        picked = np.arange(3) < count, np.arange(6) < 3
        given = [numbers(3, 6, 4), *(mask.astype("i4") for mask in picked)]
        found = program(given)
        wanted = given[0][:count, :3]
        wanted = wanted[0] if count == 1 else wanted
        wanted = wanted / np.sqrt((wanted**2).mean(-1, keepdims=True))
        np.testing.assert_allclose(found["y"], wanted, rtol=1e-5)
        assert found["rank"].tolist() == [wanted.ndim]
