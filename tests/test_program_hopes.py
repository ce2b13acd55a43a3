"""Cuts that values may make shorter: planned for what is asked for, until it is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vinoir import ir, layers
from vinoir.ir.engine.hopes import LoosenedError, watched
from vinoir.schemas import Array, Dim, Shape, Tensor

WIDE, PLACES = 4, 12
KINDS = ("Slice", "no axes", "StridedSlice", "masked", "other axes")


def cut(
    net: ir.Builder, kind: str, table: ir.Output, start: ir.Output, stop: ir.Output
) -> ir.Output:
    """The rows of a table from one place to another."""
    ones, none, wide = (net.constant([number]) for number in (1, 0, WIDE))
    if kind == "Slice":
        return net.add("Slice", "opset8", [table, start, stop, ones, net.constant([-2])])
    lists = [(none, none, start), (none, none, stop)]
    if kind != "other axes":
        lists = [(start, none), (stop, wide)]
    begin, end = (net.add("Concat", "opset1", list(ends), axis=0) for ends in lists)
    if kind == "no axes":
        return net.add("Slice", "opset8", [table, begin, end, net.constant([1, 1])])
    words = {"begin_mask": (0, 0), "end_mask": (0, 0)}
    if kind == "masked":
        words = {"begin_mask": (0, 1), "end_mask": (0, 1)}
    elif kind == "other axes":
        # One axis is new and one stays whole before the one that is cut.
        table = net.add("Unsqueeze", "opset1", [table, none])
        words = {
            "begin_mask": (0, 1, 0), "end_mask": (0, 1, 0), "new_axis_mask": (1, 0, 0),
        }  # fmt: skip
    found = net.add("StridedSlice", "opset1", [table, begin, end], **words)
    if kind == "other axes":
        return net.add("Squeeze", "opset1", [found, net.constant([0, 1])])
    return found


def model(kind: str, rng: np.random.Generator) -> ir.Model:
    """Rows of a table for what is new, as many places on as there were before."""
    net = ir.Builder()
    new = net.parameter("new", "f32", f"1,?,{WIDE}")
    told = {"variable_id": "past", "variable_type": "f32", "variable_shape": f"1,?,{WIDE}"}
    past = net.add("ReadValue", "opset6", [], data=told)
    joined = net.add("Concat", "opset1", [past, new], axis=1)
    net.add("Assign", "opset6", [joined], variable_id="past")
    stop, count = (
        net.add(
            "Gather", "opset8",
            [net.add("ShapeOf", "opset3", [value]), net.constant([1]), net.constant(0)],
        )
        for value in (joined, new)
    )  # fmt: skip
    start = net.add("Subtract", "opset1", [stop, count])
    table = net.constant(rng.standard_normal((PLACES, WIDE)).astype("f4"))
    rows = cut(net, kind, table, start, stop)
    weights = net.constant(rng.standard_normal((WIDE, 8)).astype("f4"))
    made = net.add("Exp", "opset1", [net.add("MatMul", "opset1", [rows, weights])])
    net.result(net.add("ReduceSum", "opset1", [made, net.constant([0])]), name="sum")
    net.result(net.add("ReduceSum", "opset1", [joined, net.constant([1])]), name="kept")
    return net.model()


def of_plans(program: ir.Program, kind: str) -> list[bool]:
    """Of each plan, whether its nodes of a kind lie in the arena; of none, nothing."""
    plans = [planned.plan for planned in program._plans.values() if planned is not None]
    return [
        not node.is_outside for plan in plans for node in plan.nodes if node.layer.type == kind
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_cut_beyond_the_end(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    made = model(kind, rng)
    ir.write(made, tmp_path / "m.xml")
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    request = ov.Core().compile_model(tmp_path / "m.xml", "CPU", exact).create_infer_request()
    program = ir.compile(made, threads=1)
    for step, length in enumerate([3, *[1] * (PLACES + 2)]):
        new = rng.standard_normal((1, length, WIDE)).astype("f4")
        found, wanted = program([new]), list(request.infer([new]).values())
        for one, other in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        if step == 5:
            # The plan for any length knows that there is one row.
            assert of_plans(program, "MatMul")[-1]
            assert len(program._plans) <= 3
    assert not of_plans(program, "MatMul")[-1]
    assert None not in program._plans.values()
    assert not found["sum"].any()


@pytest.mark.parametrize("kind", KINDS)
def test_cut_as_asked(kind: str) -> None:
    rng = np.random.default_rng(8)
    made = model(kind, rng)
    program, exact = ir.compile(made, threads=1), ir.compile(made, exact=True)
    for length in (2, 1, 1, 1, 3, 1, 1):
        new = rng.standard_normal((1, length, WIDE)).astype("f4")
        for one, other in zip(program([new]).values(), exact([new]).values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert all(of_plans(program, "MatMul"))


def test_watched() -> None:
    def kernel(array: Array) -> tuple[Array, ...]:
        return (array,)

    kept = watched(kernel, Shape([2, Dim(), 3]))
    for size in (0, 5):
        (found,) = kept(np.zeros((2, size, 3)))
        assert found.shape == (2, size, 3)
    for shape in [(1, 5, 3), (2, 5, 4)]:
        with pytest.raises(LoosenedError):
            kept(np.zeros(shape))


@given(st.integers(0, 3), st.integers(0, 3), st.sampled_from([-1, 1, 2]))
def test_cuts_of_known_ends(start: int, more: int, step: int) -> None:
    """What is cut place by place is what the shape rule gives, if it is there."""
    op = layers.SliceV8.read({})
    lists = [np.array([number]) for number in (start, start + more, step, 1)]
    given_ = [Tensor("f32", [2, 8]), *map(Tensor.of, lists)]
    found = list(op.cuts(*given_))
    if step == 1:
        assert [(axis, end - begin) for axis, begin, end in found] == [(1, more)]
        (made,) = op.infer(*given_)
        assert made.shape == Shape([2, more])
    else:
        assert not found


def test_cuts_past_axes_that_come_and_go() -> None:
    words = {"begin_mask": "0,0,0", "end_mask": "0,0,0", "new_axis_mask": "1,0,0"}
    op = layers.StridedSliceV1.read(words | {"shrink_axis_mask": "0,1,0"})
    given_ = [Tensor("f32", [1, 8, 4]), *map(Tensor.of, np.array([[0, 0, 2], [0, 0, 5]]))]
    assert list(op.cuts(*given_)) == [(1, 2, 5)]


@pytest.mark.parametrize(
    ("strides", "begin_mask", "end_mask", "cuts"),
    [
        ([1, 1], "0,0", "0,0", [(0, 2, 5), (1, 1, 3)]),
        ([2, 1], "0,0", "0,0", [(1, 1, 3)]),
        ([1, -1], "0,0", "0,0", [(0, 2, 5)]),
        (None, "1,0", "0,1", [(0, 0, 5)]),
        (None, "0,1", "0,0", [(0, 2, 5), (1, 0, 3)]),
        (None, "0,0", "1,1", []),
    ],
)
def test_cuts_by_masks_and_strides(
    strides: list[int] | None, begin_mask: str, end_mask: str, cuts: list[tuple[int, ...]]
) -> None:
    op = layers.StridedSliceV1.read({"begin_mask": begin_mask, "end_mask": end_mask})
    ends = [np.array([2, 1]), np.array([5, 3]), *([] if strides is None else [np.array(strides)])]
    given_ = [Tensor("f32", [8, 4]), *map(Tensor.of, ends)]
    assert list(op.cuts(*given_)) == cuts
