"""Fewer elements than before: reductions, the largest elements, and where they are."""

from __future__ import annotations

import numpy as np

from ....schemas import ElementType, IRError
from ...document import Output
from .layer import NoCounterpartError, Old
from .table import Made, converts

#: Old reductions that one operation computes.
PLAIN = {
    "ReduceL1": ("ReduceL1", "opset4"),
    "ReduceL2": ("ReduceL2", "opset4"),
    "ReduceMax": ("ReduceMax", "opset1"),
    "ReduceMean": ("ReduceMean", "opset1"),
    "ReduceMin": ("ReduceMin", "opset1"),
    "ReduceProd": ("ReduceProd", "opset1"),
    "ReduceSum": ("ReduceSum", "opset1"),
}


def _reduce(old: Old, kind: str, opset: str, one: Output) -> Output:
    """A reduction over the axes of input 1."""
    return old.add(kind, opset, [one, old.flat(1)], keep_dims=old.flag("keep_dims"))


def _enter(kind: str, name: str, opset: str) -> None:
    @converts(kind, "keep_dims=true", becomes=f"{name}-{opset.removeprefix('opset')}")
    def plain(old: Old) -> Made:
        """The same; input 1 are the axes."""
        return _reduce(old, name, opset, old[0])


for _kind, (_name, _opset) in PLAIN.items():
    _enter(_kind, _name, _opset)


@converts("ReduceAnd", "keep_dims=true", becomes="ReduceLogicalAnd-1")
def reduce_and(old: Old) -> Made:
    """Of truth; the answer is 1 or 0 of the declared type."""
    return _reduce(old, "ReduceLogicalAnd", "opset1", old.cast(old[0], ElementType.BOOLEAN))


@converts("ReduceOr", "keep_dims=true", becomes="ReduceLogicalOr-1")
def reduce_or(old: Old) -> Made:
    """Of truth; the answer is 1 or 0 of the declared type."""
    return _reduce(old, "ReduceLogicalOr", "opset1", old.cast(old[0], ElementType.BOOLEAN))


@converts("ReduceSumSquare", "keep_dims=true", becomes="ReduceSum-1 Multiply-1")
def reduce_sum_square(old: Old) -> Made:
    """The sum of x x."""
    square = old.add("Multiply", "opset1", [old[0], old[0]])
    return _reduce(old, "ReduceSum", "opset1", square)


@converts("ReduceLogSum", "keep_dims=true", becomes="ReduceSum-1 Log-1")
def reduce_log_sum(old: Old) -> Made:
    """The logarithm of the sum."""
    return old.add("Log", "opset1", [_reduce(old, "ReduceSum", "opset1", old.reals(0))])


@converts("ReduceLogSumExp", "keep_dims=true", becomes="ReduceSum-1 Log-1 Exp-1")
def reduce_log_sum_exp(old: Old) -> Made:
    """The logarithm of the sum of exponentials."""
    powers = old.add("Exp", "opset1", [old.reals(0)])
    return old.add("Log", "opset1", [_reduce(old, "ReduceSum", "opset1", powers)])


@converts("ArgMax", "top_k axis? out_max_val=0", becomes="TopK-3 Concat-1 Reshape-1")
def arg_max(old: Old) -> Made:
    """The places of the largest, as numbers of the declared type, best first.

    With an axis the values instead, where ``out_max_val``; without one of all that is behind the
    batch, [N, 1, k], and [N, 2, k] with places and values.
    """
    count, values = old.integer("top_k", 1), old.flag("out_max_val")
    dims, one = old.dims(), old.reals(0)
    if old.has("axis"):
        found = _top(old, one, count, old.integer("axis"))
        return found[0] if values else found[1]
    found = _top(old, old.reshape(one, (0, 1, -1), copied=True), count, 2)
    made = old.cast(found[1], ElementType.F32)
    if values:
        made = old.add("Concat", "opset1", [made, found[0]], axis=1)
    rank = max(3, len(dims))
    return (
        made
        if rank == 3
        else old.reshape(made, (-1, 2 if values else 1, count, *[1] * (rank - 3)))
    )


def _top(old: Old, one: Output, count: int, axis: int) -> Output:
    return old.add(
        "TopK", "opset3", [one, old.constant(np.array(count, np.int64))],
        axis=axis, mode="max", sort="value", index_element_type="i32",
    )  # fmt: skip


@converts("TopK", "axis=-1 mode=max sort=index", becomes="TopK-3 Reshape-1")
def top_k(old: Old) -> Made:
    """Input 1 says how many, in a list of one element."""
    made = old.add(
        "TopK", "opset3", [old[0], old.scalar_count(1)],
        axis=old.integer("axis"), mode=old.choice("mode", {"max": "max", "min": "min"}),
        sort=old.choice("sort", {"value": "value", "index": "index", "none": "none"}),
        index_element_type="i32",
    )  # fmt: skip
    return [made[0], made[1]]


@converts(
    "NonMaxSuppression",
    "center_point_box=false sort_result_descending=true",
    becomes="NonMaxSuppression-9 Broadcast-1 Concat-1 Slice-8 Reshape-1 ShapeOf-3 Gather-1",
)
def non_max_suppression(old: Old) -> Made:
    """Boxes and scores; then, where given, how many a class, the overlap, the least score.

    Where how many is not given, all may stay; where the overlap is not, none is too large.
    Today's gives as many rows as boxes stay, the old one the declared number, the rest -1.
    """
    old.dims(0, 3, 3)
    many = old.scalar_count(2) if len(old) > 2 else old.reshape(old.sizes(old[0], 1), ())
    # OpenVINO of today takes away a box whose overlap reaches the threshold; none reaches 2.
    overlap = old.reshape(old.reals(3), ()) if len(old) > 3 else old.constant(2.0)
    inputs = [old.reals(0), old.reals(1), many, overlap]
    if len(old) > 4:
        inputs.append(old.reshape(old.reals(4), ()))
    encoding = "center" if old.flag("center_point_box") else "corner"
    found = old.add(
        "NonMaxSuppression", "opset9", inputs, box_encoding=encoding, output_type="i32",
        sort_result_descending=old.flag("sort_result_descending"),
    )[0]  # fmt: skip
    rows = old.declared()
    if len(rows) != 2 or rows[1] != 3:
        raise IRError(f"the output is declared as {list(rows)}, it has 3 numbers a row")
    old.remark(f"as many rows as boxes stay are followed by -1 up to {rows[0]}")
    empty = old.filled(-1, ElementType.I32, *rows)
    longer = old.add("Concat", "opset1", [found, empty], axis=0)
    ends = [old.indices(number) for number in (0, rows[0], 1, 0)]
    return old.reshape(old.add("Slice", "opset8", [longer, *ends]), rows)


@converts("Unique", "sorted return_inverse return_counts")
def unique(old: Old) -> Made:
    """The output was as long as the input, filled up with its last value."""
    raise NoCounterpartError(
        "Unique filled its output up to the length of the input, today's operation gives as many "
        "as there are"
    )


@converts("CumSum", "exclusive=false reverse=false", becomes="CumSum-3")
def cumulated(old: Old) -> Made:
    """Along the axis of input 1."""
    if len(old) < 2:
        raise IRError("CumSum takes its axis from input 1, which is not there")
    return old.add(
        "CumSum", "opset3", [old[0], old.scalar_count(1)],
        exclusive=old.flag("exclusive"), reverse=old.flag("reverse"),
    )  # fmt: skip
