"""Normalizations and products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....schemas import ElementType, IRError, UnsupportedError
from ...document import Output
from .convolution import along_channels
from .node import Made, Node, converts
from .pooling import spatial_axes
from .tensors import kind_of


@converts("BatchNormalization")
def batch_normalization(node: Node) -> Made:
    """BatchNormInference-5; by the batch's own statistics, ReduceMean-1 and arithmetic."""
    if node[0].tensor.rank == 1:  # the axis of its one channel is left out
        node.inputs[0] = node.unsqueeze(node[0], [1])
        y, *more = _normalized(node)
        return [None if y is None else node.squeeze(y, [1]), *more]
    return _normalized(node)


def _normalized(node: Node) -> list[Output | None]:
    """What becomes of at least two axes, the second that of the channels."""
    trains = node.flag("training_mode") or (
        node.version < 7
        and node.version >= 1
        and node.gives("is_test")
        and not node.integer("is_test")
    )
    if trains:
        return _trained(node)
    if any(node.wants(index) for index in range(1, 5)):
        raise UnsupportedError("the statistics of training are asked for")
    x = node[0]
    if not node.flag("spatial", True):
        raise UnsupportedError("spatial=0: IR normalizes by channel only")
    kind = x.tensor.type
    scales = [node[index] for index in range(1, 5)]
    if not kind.is_dynamic:
        scales = [node.convert(one, kind) for one in scales]
    return [node.add("BatchNormInference-5", x, *scales, epsilon=node.real("epsilon", 1e-5))]


def _trained(node: Node) -> list[Output | None]:
    """Normalization by the batch's own statistics, and the running ones."""
    x, rank = node[0], node.rank()
    axes = node.ints64([0, *range(2, rank)])
    mean = node.add("ReduceMean-1", x, axes, keep_dims=True)
    away = node.add("Subtract-1", x, mean)
    variance = node.add("ReduceMean-1", node.add("Multiply-1", away, away), axes, keep_dims=True)
    spread = node.add("Sqrt-1", node.add(
        "Add-1", variance, node.like(node.real("epsilon", 1e-5), variance)
    ))  # fmt: skip
    scaled = node.add("Multiply-1", node.add("Divide-1", away, spread),
                      along_channels(node, node[1], rank))  # fmt: skip
    made: list[Output | None] = [node.add("Add-1", scaled, along_channels(node, node[2], rank))]
    momentum = node.real("momentum", 0.9)
    for index, now in ((3, mean), (4, variance)):
        flat = node.reshape(now, [-1])
        old = node.add("Multiply-1", node[index], node.like(momentum, node[index]))
        new = node.add("Multiply-1", flat, node.like(1 - momentum, flat))
        made.append(node.add("Add-1", old, new))
    return made if any(node.wants(i) for i in range(1, 5)) else made[:1]


@converts("InstanceNormalization")
def instance_normalization(node: Node) -> Made:
    """MVN-6 over the spatial axes, scaled and moved by channel."""
    x, rank = node[0], node.rank()
    normal = node.add(
        "MVN-6", x, spatial_axes(node), eps=node.real("epsilon", 1e-5),
        normalize_variance=True, eps_mode="INSIDE_SQRT",
    )  # fmt: skip
    scaled = node.add("Multiply-1", normal, along_channels(node, node[1], rank))
    return node.add("Add-1", scaled, along_channels(node, node[2], rank))


@converts("GroupNormalization")
def group_normalization(node: Node) -> Made:
    """GroupNormalization-12; before version 21 the scales are one for each group."""
    x, scale, bias = node[0], node[1], node[2]
    groups = node.integer("num_groups")
    if node.version < 21:
        channels = x.tensor.shape[1]
        if not isinstance(channels, int) or groups < 1 or channels % groups:
            raise IRError(f"{channels} channels do not divide into {groups} groups")
        scale, bias = (_repeated(node, one, channels // groups) for one in (scale, bias))
    return node.add(
        "GroupNormalization-12", x, scale, bias, num_groups=groups,
        epsilon=node.real("epsilon", 1e-5),
    )  # fmt: skip


def _repeated(node: Node, values: Output, times: int) -> Output:
    """Each element so many times."""
    column = node.unsqueeze(values, [1])
    return node.reshape(node.add("Tile-1", column, node.ints64([1, times])), [-1])


@converts("LayerNormalization")
def layer_normalization(node: Node) -> Made:
    """Mean and variance over the last axes in the stash type; MVN-6 where only Y is asked for."""
    x, rank = node[0], node.rank()
    axis = node.axis(-1)
    axes = node.ints64(list(range(axis, rank)))
    epsilon, kind = node.real("epsilon", 1e-5), x.tensor.type
    mean = inverse = None
    if not node.wants(1) and not node.wants(2):
        normal = node.add(
            "MVN-6", x, axes, eps=epsilon, normalize_variance=True, eps_mode="INSIDE_SQRT"
        )
    else:
        wide = node.convert(x, "f32") if kind in (ElementType.F16, ElementType.BF16) else x
        mean = node.add("ReduceMean-1", wide, axes, keep_dims=True)
        away = node.add("Subtract-1", wide, mean)
        square = node.add("ReduceMean-1", node.add("Multiply-1", away, away), axes, keep_dims=True)
        spread = node.add("Sqrt-1", node.add("Add-1", square, node.like(epsilon, square)))
        inverse = node.add("Divide-1", node.like(1, spread), spread)
        normal = node.convert(node.add("Multiply-1", away, inverse), kind)
        stash = kind_of(node.integer("stash_type", 1))
        mean, inverse = node.convert(mean, stash), node.convert(inverse, stash)
    made = node.add("Multiply-1", normal, node[1])
    if node.get(2) is not None:
        made = node.add("Add-1", made, node[2])
    return [made, mean, inverse]


@converts("RMSNormalization")
def rms_normalization(node: Node) -> Made:
    """The input divided by the root of its mean square."""
    axes = range(node.axis(-1), node.rank())
    return by_mean_square(node, node[0], node[1], node.real("epsilon", 1e-5), axes)


def by_mean_square(
    node: Node, x: Output, scale: Output, eps: float, axes: Sequence[int] = (-1,)
) -> Output:
    """Numbers divided by the root of their mean square along some axes, and scaled."""
    kind = x.tensor.type
    wide = node.convert(x, "f32") if kind in (ElementType.F16, ElementType.BF16) else x
    square = node.add("Multiply-1", wide, wide)
    mean = node.add("ReduceMean-1", square, node.ints64(list(axes)), keep_dims=True)
    spread = node.add("Sqrt-1", node.add("Add-1", mean, node.like(eps, mean)))
    return node.add("Multiply-1", node.convert(node.add("Divide-1", wide, spread), kind), scale)


@converts("MeanVarianceNormalization")
def mean_variance_normalization(node: Node) -> Made:
    """MVN-6; its epsilon stands outside the root."""
    axes = node.integers("axes", [0, 2, 3])
    return node.add(
        "MVN-6", node[0], node.ints64(axes), eps=1e-9, normalize_variance=True,
        eps_mode="OUTSIDE_SQRT",
    )  # fmt: skip


@converts("LpNormalization")
def lp_normalization(node: Node) -> Made:
    """The input divided by its norm along one axis; zero where that is zero."""
    x, order = node[0], node.integer("p", 2)
    if order not in (1, 2):
        raise IRError(f"p is {order}, it is 1 or 2")
    axis = node.ints64([node.integer("axis", -1)])
    norm = node.add(f"ReduceL{order}-4", x, axis, keep_dims=True)
    zero = node.add("Equal-1", norm, node.like(0, norm))
    return node.add("Divide-1", x, node.add("Select-1", zero, node.like(1, norm), norm))


@converts("LRN")
def lrn(node: Node) -> Made:
    """LRN-1 across channels."""
    size = node.integer("size")
    if size % 2 == 0 and node.semantics != "openvino":
        raise UnsupportedError(
            f"size={size}: ONNX looks at {size - size // 2 - 1} channels before and {size // 2} "
            f"behind, IR as many on either side"
        )
    return node.add(
        "LRN-1", node[0], node.ints64([1]), size=size,
        alpha=node.real("alpha", 1e-4), beta=node.real("beta", 0.75),
        bias=node.real("bias", 1.0),
    )  # fmt: skip


# Products.


@converts("MatMul")
def mat_mul(node: Node) -> Made:
    """MatMul-1."""
    return node.add("MatMul-1", node[0], node[1])


@converts("Gemm")
def gemm(node: Node) -> Made:
    """MatMul-1, its factors, and Add-1."""
    a, b, c = node[0], node[1], node.get(2)
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    made = node.add(
        "MatMul-1", a, b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB")
    )
    if alpha != 1:
        made = node.add("Multiply-1", made, node.like(alpha, made))
    if c is None or beta == 0:
        return made
    if beta != 1:
        c = node.add("Multiply-1", c, node.like(beta, c))
    return node.add("Add-1", made, c)


@converts("Einsum")
def einsum(node: Node) -> Made:
    """Einsum-7, its output written out."""
    equation = node.text("equation").replace(" ", "")
    if "->" not in equation:
        # What is named once, in order; IR asks how many terms have a name.
        names = [name for name in sorted(set(equation) - set(",.")) if equation.count(name) == 1]
        equation += "->" + "..." * ("..." in equation) + "".join(names)
    return node.add("Einsum-7", *[node[i] for i in range(len(node.inputs))], equation=equation)


@converts("Det")
def det(node: Node) -> Made:
    """Sums of products, for matrices up to 3 x 3."""
    x, rank = node[0], node.rank()
    size = x.tensor.shape[-1] if rank else 0
    if rank < 2 or not isinstance(size, int) or size > 3:
        raise UnsupportedError(f"a determinant of {size} rows; IR has no such operation")

    def at(row: int, column: int) -> Output:
        one = node.add("Gather-8", x, node.ints64(row), node.ints64(-2))
        return node.add("Gather-8", one, node.ints64(column), node.ints64(-1))

    def minor(rows: Sequence[int], columns: Sequence[int]) -> Output:
        if len(rows) == 1:
            return at(rows[0], columns[0])
        total: Output | None = None
        for index, column in enumerate(columns):
            rest = [other for other in columns if other != column]
            part = node.add("Multiply-1", at(rows[0], column), minor(rows[1:], rest))
            spec = "Subtract-1" if index % 2 else "Add-1"
            total = part if total is None else node.add(spec, total, part)
        if total is None:
            raise IRError("a matrix of no columns has no determinant here")
        return total

    return minor(range(size), range(size))


@converts("MatMulInteger")
def mat_mul_integer(node: Node) -> Made:
    """MatMul-1 of what is left after the zero points, in f32: exact up to sums of 2^24."""
    parts: list[Any] = []
    for index in range(2):
        x = node.convert(node[index], "f32")
        if node.get(index + 2) is not None:
            zero = node.convert(node[index + 2], "f32")
            if zero.tensor.rank == 1 and index == 0 and zero.tensor.shape[0] != 1:
                zero = node.unsqueeze(zero, [1])  # one for each row
            x = node.add("Subtract-1", x, zero)
        parts.append(x)
    return node.convert(node.add("MatMul-1", *parts), "i32")
