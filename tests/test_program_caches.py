"""Caches that grow from call to call: one step does what the layers say, in whatever order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import Array, IRError

HEADS, DEPTH = 3, 4


def numbers(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype("f4")


def model(*, ordered: bool, initial: str, kept: str, also: str = "", axis: int = 2) -> ir.Model:
    """What is new, joined to what a variable has, and weighted by a query."""
    net = ir.Builder()
    new = net.parameter("new", "f32", f"?,{HEADS},?,{DEPTH}")
    order = net.parameter("order", "i32", "?")
    told: dict[str, Any] = {
        "variable_id": "past", "variable_type": "f32", "variable_shape": f"?,{HEADS},?,{DEPTH}",
    }  # fmt: skip
    start: list[ir.Output] = []
    if initial == "constant":
        start = [net.constant(np.full((2, HEADS, 1, DEPTH), 0.5, "f4"))]
    elif initial == "computed":
        start = [net.add("Negative", "opset1", [new])]
    past = before = net.add("ReadValue", "opset6", start, data=told)
    if ordered:
        past = net.add("Gather", "opset8", [past, order, net.constant(0)], batch_dims=0)
    joined = net.add("Concat", "opset1", [past, new], axis=axis)
    if kept != "nothing":
        value = net.add("Abs", "opset1", [joined]) if kept == "another" else joined
        net.add("Assign", "opset6", [value], variable_id="past")
    if kept == "twice":
        net.add("ReadValue", "opset6", [], data=told | {"variable_id": "copy"})
        net.add("Assign", "opset6", [joined], variable_id="copy")
    if also == "before":
        net.result(net.add("ReduceSum", "opset1", [before, net.constant([2])]), name="before")
    elif also == "handed out":
        net.result(joined, name="joined")
    net.result(net.add("ReduceMax", "opset1", [joined, net.constant([axis])]), name="most")
    net.result(net.add("Add", "opset1", [order, net.constant(np.int32(1))]), name="order")
    return net.model()


def steps(rng: np.random.Generator, batch: int = 2, count: int = 5) -> list[dict[str, Array]]:
    lengths = [3, *[1] * (count - 1)]
    orders = [np.arange(batch), rng.permutation(batch), np.zeros(batch), np.arange(batch)]
    return [
        {"new": numbers(rng, batch, HEADS, length, DEPTH), "order": orders[turn % 4].astype("i4")}
        for turn, length in enumerate(lengths)
    ]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("also", ["", "before", "handed out"])
@pytest.mark.parametrize("kept", ["joined", "another", "nothing", "twice"])
@pytest.mark.parametrize("initial", ["none", "constant", "computed"])
@pytest.mark.parametrize("ordered", [True, False])
def test_calls_give_what_the_definitions_give(
    ordered: bool, initial: str, kept: str, also: str, batch: int
) -> None:
    if initial == "none" or (initial == "constant" and batch == 1):
        ordered = False  # of no rows there is no order
    net = model(ordered=ordered, initial=initial, kept=kept, also=also)
    quick, slow = ir.compile(net), ir.compile(net, exact=True)
    for again in range(2):
        rng = np.random.default_rng(7 + again)
        made: list[list[Array]] = []
        for inputs in steps(rng, batch):
            try:
                wanted = slow(inputs)
            except IRError:
                with pytest.raises(IRError):
                    quick(inputs)
                break
            found = quick(inputs)
            for name, array in wanted.items():
                np.testing.assert_array_equal(found[name], array)
            assert quick.state.keys() == slow.state.keys()
            for name, array in slow.state.items():
                np.testing.assert_array_equal(quick.state[name], array)
            made.append([array.copy() for array in found.values()])
            made.append(list(found.values()))
        # What was handed out stays as it was.
        for before, after in zip(made[::2], made[1::2], strict=True):
            for one, other in zip(before, after, strict=True):
                np.testing.assert_array_equal(one, other)
        quick.reset()
        slow.reset()


def test_the_nodes_are_one() -> None:
    program = ir.compile(model(ordered=True, initial="computed", kept="joined"))
    for inputs in steps(np.random.default_rng(0)):
        program(inputs)
    planned = list(program._plans.values())[-1]
    assert planned is not None
    kinds = {node.layer.type for node in planned.plan.nodes}
    assert "Concat" in kinds
    assert not kinds & {"ReadValue", "Gather", "Assign"}


@pytest.mark.parametrize("order", [[0, 5], [-3, 0], [7, 7]])
def test_an_order_that_names_no_row_is_refused_where_it_is_written(order: list[int]) -> None:
    program = ir.compile(model(ordered=True, initial="computed", kept="joined"))
    first, second, *_ = steps(np.random.default_rng(0))
    program(first)
    before = program.state["past"].copy()
    slow = ir.compile(program.model, exact=True)
    slow(first)
    given = second | {"order": np.array(order, "i4")}
    try:
        wanted = slow(given)
    except IRError as error:
        with pytest.raises(type(error), match="Gather"):
            program(given)
        np.testing.assert_array_equal(program.state["past"], before)
    else:
        np.testing.assert_array_equal(program(given)["most"], wanted["most"])
