"""Reductions, orders and sums along axes."""

from __future__ import annotations

import numpy as np

from ....schemas import ElementType, IRError
from ...document import Output
from .movement import axes_of
from .node import Made, Node, converts
from .pooling import scalar

#: One layer each.
PLAIN = {
    "ReduceL1": "ReduceL1-4",
    "ReduceL2": "ReduceL2-4",
    "ReduceMax": "ReduceMax-1",
    "ReduceMean": "ReduceMean-1",
    "ReduceMin": "ReduceMin-1",
    "ReduceProd": "ReduceProd-1",
    "ReduceSum": "ReduceSum-1",
}


def reduced(node: Node, x: Output, spec: str) -> Output:
    """A reduction over the axes that the node names; over all where it names none."""
    axes, keep = axes_of(node), node.flag("keepdims", True)
    if axes is not None and x.tensor.rank == 0:
        return node.add(spec, x, no_axes(node, axes), keep_dims=keep)
    if axes is not None and axes.tensor.shape.is_static and axes.tensor.shape.count == 0:
        axes = None
    noop = node.flag("noop_with_empty_axes")
    if axes is None:
        if noop:
            return x
        axes = _every_axis(node, x)
    elif axes.tensor.value is None and not axes.tensor.shape.is_static and not noop:
        # Perhaps none is fed, which stands for all of them.
        none = node.add("Equal-1", node.shape(axes), node.ints64([0]))
        every = _every_axis(node, x)
        count = node.add("Multiply-1", node.shape(every), node.convert(none, "i64"))
        every = node.cut(every, 0, count, 0)
        axes = node.add("Concat-1", node.convert(axes, "i64"), every, axis=0)
    return node.add(spec, x, axes, keep_dims=keep)


def _every_axis(node: Node, x: Output) -> Output:
    """All axes of a tensor, also where their number is not known."""
    if x.tensor.rank is not None:
        return node.ints64(list(range(x.tensor.rank)))
    return node.counted(node.add("ShapeOf-3", node.shape(x), output_type="i64"))


def no_axes(node: Node, axes: Output) -> Output:
    """The axes of a scalar: the standard lets 0 and -1 pass for the one that it has not."""
    value = axes.tensor.value
    wrong = [] if value is None else [int(a) for a in value.ravel() if a not in (0, -1)]
    if wrong:
        raise IRError(f"axis {wrong[0]} is beyond the 0 axes of the input")
    return node.ints64([])


@converts(*PLAIN)
def reduce(node: Node) -> Made:
    """The operation of the same name; of booleans, logic."""
    x, spec = node[0], PLAIN[node.kind]
    if x.tensor.type is ElementType.BOOLEAN:
        logic = {"ReduceMax": "ReduceLogicalOr-1", "ReduceMin": "ReduceLogicalAnd-1"}
        spec = logic.get(node.kind, spec)
    made = reduced(node, x, spec)
    if made is not x and x.tensor.rank and 0 in x.tensor.shape.sizes:
        made = _of_nothing(node, made, spec)
    if made is x and node.kind in ("ReduceL1", "ReduceL2"):
        return node.add("Abs-1", x)
    return made


def _of_nothing(node: Node, made: Output, spec: str) -> Output:
    """Without end where IR has the end of the numbers: the largest and least of no real ones."""
    ends = {"ReduceMax-1": -np.inf, "ReduceMin-1": np.inf}
    if spec not in ends or not made.tensor.type.is_real or node.semantics == "openvino":
        return made
    return node.add("Broadcast-3", node.like(ends[spec], made), node.shape(made), mode="numpy")


@converts("ReduceSumSquare")
def reduce_sum_square(node: Node) -> Made:
    """ReduceSum-1 of squares."""
    return reduced(node, node.add("Multiply-1", node[0], node[0]), "ReduceSum-1")


@converts("ReduceLogSum")
def reduce_log_sum(node: Node) -> Made:
    """Log-1 of ReduceSum-1; of whole numbers in f64, without what is behind the point."""
    x, kind = _as_real(node), node[0].tensor.type
    return node.convert(node.add("Log-1", reduced(node, x, "ReduceSum-1")), kind)


def _as_real(node: Node) -> Output:
    """The input, as f64 where it is whole."""
    x = node[0]
    return node.convert(x, "f64") if x.tensor.type.is_integral else x


@converts("ReduceLogSumExp")
def reduce_log_sum_exp(node: Node) -> Made:
    """Log-1 of ReduceSum-1 of Exp-1, with the largest taken out first; whole ones in f64."""
    return node.convert(_log_sum_exp(node, _as_real(node)), node[0].tensor.type)


def _log_sum_exp(node: Node, x: Output) -> Output:
    axes, rank = axes_of(node), x.tensor.rank
    known = axes.tensor.value if axes is not None else None
    empty = axes is None or (known is not None and not known.size)
    if empty and node.flag("noop_with_empty_axes"):
        return x
    if not rank or (not empty and known is None) or 0 in x.tensor.shape.sizes:
        return node.add("Log-1", reduced(node, node.add("Exp-1", x), "ReduceSum-1"))
    over = node.ints64(list(range(rank)) if empty else [int(a) for a in known.ravel()]
                       if known is not None else [])  # fmt: skip
    most = node.add("ReduceMax-1", x, over, keep_dims=True)
    # Where the largest is infinite, the difference would be no number.
    finite = node.add("Less-1", node.add("Abs-1", most), node.like(np.inf, most))
    most = node.add("Select-1", finite, most, node.like(0, most))
    total = node.add(
        "ReduceSum-1", node.add("Exp-1", node.add("Subtract-1", x, most)), over, keep_dims=True
    )
    made = node.add("Add-1", node.add("Log-1", total), most)
    return made if node.flag("keepdims", True) else node.add("Squeeze-1", made, over)


@converts("ArgMax", "ArgMin")
def arg_best(node: Node) -> Made:
    """TopK-11 of one; the last of equals is found from the end."""
    x, axis = node[0], node.axis(0)
    keep, last = node.flag("keepdims", True), node.flag("select_last_index")
    if last:
        x = _reversed(node, x, axis)
    best = node.add(
        "TopK-11", x, node.ints64(1), axis=axis, mode="max" if node.kind == "ArgMax" else "min",
        sort="value", index_element_type="i64", stable=True,
    )[1]  # fmt: skip
    if last:
        size = node.size(x, axis)
        end = size if isinstance(size, Output) else node.ints64([size])
        best = node.add("Subtract-1", node.add("Subtract-1", end, node.ints64([1])), best)
    return best if keep else node.squeeze(best, [axis])


def _reversed(node: Node, x: Output, axis: int) -> Output:
    least = np.iinfo(np.int64).min
    return node.cut(x, -1, least, axis, -1)


@converts("TopK")
def top_k(node: Node) -> Made:
    """TopK-11."""
    k: Output
    if node.version < 10:
        k = node.ints64(node.integer("k"))
    else:
        k = node[1]
        if k.tensor.rank != 0:
            k = node.squeeze(k, [0])
    made = node.add(
        "TopK-11", node[0], k, axis=node.integer("axis", -1),
        mode="max" if node.flag("largest", True) else "min",
        sort="value" if node.flag("sorted", True) else "none",
        index_element_type="i64", stable=node.flag("sorted", True),
    )  # fmt: skip
    return [made, made[1]]


@converts("CumSum")
def cum_sum(node: Node) -> Made:
    """CumSum-3."""
    axis = node[1]
    if axis.tensor.rank != 0:
        axis = node.squeeze(axis, [0])
    return node.add(
        "CumSum-3", node[0], axis, exclusive=node.flag("exclusive"), reverse=node.flag("reverse")
    )


@converts("NonZero")
def non_zero(node: Node) -> Made:
    """NonZero-3."""
    return node.add("NonZero-3", node[0], output_type="i64")


@converts("Range")
def range_(node: Node) -> Made:
    """Range-4."""
    kind = node[0].tensor.type
    if kind.is_dynamic:
        raise IRError("the type of start is not known")
    limits = [scalar(node, node[index]) for index in range(3)]
    return node.add("Range-4", *limits, output_type=kind)


@converts("Unique")
def unique(node: Node) -> Made:
    """Unique-10."""
    axis = [node.ints64(node.integer("axis"))] if node.gives("axis") else []
    made = node.add(
        "Unique-10", node[0], *axis, sorted=node.flag("sorted", True),
        index_element_type="i64", count_element_type="i64",
    )  # fmt: skip
    return list(made)
