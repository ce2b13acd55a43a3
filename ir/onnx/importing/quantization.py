"""Numbers as small integers, and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ....schemas import ElementType, IRError, UnsupportedError
from ...document import Output
from .convolution import check_channels, grouped, kernel_of, sliding
from .elementwise import saturated
from .node import Made, Node, block_within, converts, normal
from .pooling import window_of
from .tensors import kind_of


def spread(node: Node, values: Output, x: Output) -> Output:
    """Scales or zero points so that they broadcast: one, one for each place of an axis, or blocks.

    Args:
        node: The node, whose axis and block_size count.
        values: The scales or zero points.
        x: What they belong to.
    """
    rank, own = x.tensor.rank, values.tensor.rank
    if own == 0 or (own == 1 and values.tensor.shape[0] == 1):
        return values if own == 0 else node.reshape(values, node.ints64([]))
    if own is None or rank is None:
        raise UnsupportedError("the ranks of the input and its scale must be known")
    axis = normal(node.integer("axis", 1), rank)
    block = node.integer("block_size", 0)
    if block:
        size = x.tensor.shape[axis]
        if isinstance(size, int):
            block = block_within(block, size)
        wide = node.unsqueeze(values, [axis + 1])
        times = [1] * (rank + 1)
        times[axis + 1] = block
        wide = node.add("Tile-1", wide, node.ints64(times))
        sizes = [node.size(values, i) for i in range(rank)]
        sizes[axis] = -1
        wide = node.reshape(wide, node.vector(sizes))
        return node.cut(wide, 0, node.size(x, axis), axis)
    if own == 1:
        return node.reshape(values, [-1 if i == axis else 1 for i in range(rank)])
    return values


def zero_point(node: Node, index: int) -> Output | None:
    """What stands for zero; None where that is zero itself."""
    known = node.value(index)
    return None if known is not None and not np.any(known) else node.get(index)


@converts("QuantizeLinear")
def quantize_linear(node: Node) -> Made:
    """Divide-1, Round-5, Add-1, the limits of the type, Convert-1."""
    x, scale, zero = node[0], node[1], node.get(2)
    stated = node.integer("output_dtype", 0)
    kind = kind_of(stated) if stated else ElementType.U8
    kind = zero.tensor.type if zero is not None else kind
    wide = ElementType.F32 if x.tensor.type.bits < 32 or not x.tensor.type.is_real else (
        x.tensor.type
    )  # fmt: skip
    precision = node.integer("precision", 0)
    division = kind_of(precision) if precision else (
        x.tensor.type if x.tensor.type.is_real else scale.tensor.type
    )  # fmt: skip
    parts = [node.convert(one, division) for one in (x, scale)]
    made = node.add("Divide-1", parts[0], spread(node, parts[1], x))
    zero = zero_point(node, 2)
    return narrowed(node, node.convert(made, wide), None if zero is None else (
        spread(node, node.convert(zero, wide), x)), kind)  # fmt: skip


def narrowed(node: Node, made: Output, zero: Output | None, kind: ElementType) -> Output:
    """Rounded, moved by the zero point, and held within a type."""
    if kind.is_real:
        if kind is ElementType.F8E8M0:
            raise UnsupportedError("IR rounds to f8e8m0 otherwise than ONNX")
        if node.flag("saturate", True):
            made = saturated(node, made, kind)
        return node.convert(made, kind)
    made = node.add("Round-5", made, mode="half_to_even")
    if zero is not None:
        made = node.add("Add-1", made, zero)
    limits: Any = ml_dtypes.iinfo  # it has no annotations
    limits = limits(kind.dtype)
    made = node.add("Maximum-1", made, node.like(int(limits.min), made))
    made = node.add("Minimum-1", made, node.like(int(limits.max), made))
    return node.convert(made, kind)


@converts("DequantizeLinear")
def dequantize_linear(node: Node) -> Made:
    """Convert-1, Subtract-1 of the zero point, Multiply-1 by the scale."""
    x, scale = node[0], node[1]
    stated = node.integer("output_dtype", 0)
    kind = ElementType.F32 if scale.tensor.type is ElementType.F8E8M0 else scale.tensor.type
    wanted = kind_of(stated) if stated else kind
    if kind.bits < 32 and x.tensor.type.bits > 8:
        # A float of 16 bits is exact for differences of 8 bits; of more they round or overflow.
        kind = ElementType.F32
    zero, scale = zero_point(node, 2), node.convert(scale, kind)
    block = _known_block(node, x, scale)
    if block is not None:
        made = scaled_in_blocks(node, x, scale, zero, *block)
        return node.convert(made, wanted)
    made = node.convert(x, kind)
    if zero is not None:
        made = node.add("Subtract-1", made, spread(node, node.convert(zero, kind), x))
    made = node.add("Multiply-1", made, spread(node, scale, x))
    return node.convert(made, wanted)


def _known_block(node: Node, x: Output, scale: Output) -> tuple[int, int] | None:
    """The axis and the size of blocks that are taken apart, and not their scales repeated.

    OpenVINO's processor plugin divides by zero in products by weights of 4 bits, each of which
    has a scale of its own.
    """
    block, shape = node.integer("block_size", 0), x.tensor.shape
    if not (block and shape.is_static and scale.tensor.shape.is_static):
        return None
    axis = normal(node.integer("axis", 1), len(shape.static))
    size = shape.static[axis]
    whole = size % block_within(block, size) == 0
    return (axis, block) if whole or x.tensor.value is not None else None


def scaled_in_blocks(
    node: Node, levels: Output, scales: Output, zero: Output | None, axis: int, block: int
) -> Output:
    """Numbers of levels of a known shape: each block of them along an axis has a scale.

    The last block may lack some where the levels are constant.
    """
    shape, real = levels.tensor.shape.static, scales.tensor.type
    block = block_within(block, shape[axis])
    missing = -shape[axis] % block
    if missing:
        levels = _longer(node, levels, axis, missing)

    def of_blocks(x: Output) -> Output:
        held = x.tensor.shape.static
        return node.reshape(x, [*held[: axis + 1], 1, *held[axis + 1 :]])

    whole = levels.tensor.shape.static
    apart = [*whole[:axis], whole[axis] // block, block, *whole[axis + 1 :]]
    made = node.convert(node.reshape(levels, apart), real)
    if zero is not None:
        made = node.add("Subtract-1", made, node.convert(of_blocks(zero), real))
    made = node.reshape(node.add("Multiply-1", made, of_blocks(scales)), whole)
    return node.cut(made, 0, shape[axis], axis) if missing else made


def _longer(node: Node, levels: Output, axis: int, more: int) -> Output:
    """A constant of levels with some more along an axis."""
    values = levels.tensor.value
    if values is None:
        raise UnsupportedError("levels that are not constant have whole blocks only")
    margins = [(0, more if place == axis else 0) for place in range(values.ndim)]
    return node.constant(np.pad(values, margins), levels.tensor.type)


def restored(node: Node, first: int, axis: int | None = None, rank: int = 0) -> Output:
    """An integer tensor without its zero point: inputs ``first`` and ``first + 2``."""
    made, zero = node.convert(node[first], "f32"), zero_point(node, first + 2)
    if zero is None:
        return made
    return node.add("Subtract-1", made, lined_up(node, node.convert(zero, "f32"), axis, rank))


def lined_up(node: Node, values: Output, axis: int | None, rank: int) -> Output:
    """One value, or one for each place of an axis."""
    if values.tensor.rank == 1:
        if values.tensor.shape[0] == 1:
            return node.reshape(values, node.ints64([]))
        if axis is not None:
            return node.reshape(values, [-1 if i == axis else 1 for i in range(rank)])
    return values


@converts("QLinearMatMul")
def q_linear_mat_mul(node: Node) -> Made:
    """MatMul-1 of what the integers stand for, then as QuantizeLinear."""
    a, b = restored(node, 0, 0, 2), restored(node, 3, 1, 2)
    made = node.add("MatMul-1", a, b)
    scale = node.add("Multiply-1", lined_up(node, node.convert(node[1], "f32"), 0, 2),
                     lined_up(node, node.convert(node[4], "f32"), 1, 2))  # fmt: skip
    made = node.add("Multiply-1", made, scale)
    made = node.add("Divide-1", made, lined_up(node, node.convert(node[6], "f32"), 1, 2))
    zero = lined_up(node, node.convert(node[7], "f32"), 1, 2)
    return narrowed(node, made, zero, node[7].tensor.type)


@converts("QLinearConv")
def q_linear_conv(node: Node) -> Made:
    """Convolution of what the integers stand for, then as QuantizeLinear."""
    window, group = window_of(node, kernel_of(node, 3)), node.integer("group", 1)
    rank = len(window.kernel) + 2
    check_channels(node[0], node[3], group)
    x, w = restored(node, 0), restored(node, 3, 0, rank)
    if group == 1:
        made = node.add("Convolution-1", x, w, **sliding(window))
    else:
        made = node.add("GroupConvolution-1", x, grouped(node, w, group), **sliding(window))
    if node.get(8) is not None:
        bias = node.convert(node[8], "f32")
        made = node.add("Add-1", made, node.reshape(bias, [1, -1, *[1] * (rank - 2)]))
    scale = node.add("Multiply-1", node[1], node[4])
    scale = node.add("Divide-1", lined_up(node, scale, 0, 1), node[6])
    made = node.add("Multiply-1", made, lined_up(node, scale, 1, rank))
    zero = lined_up(node, node.convert(node[7], "f32"), None, 0)
    return narrowed(node, made, zero, node[7].tensor.type)


@converts("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node) -> Made:
    """The range of the values, widened to zero, in 255 steps."""
    x, zero = node[0], node.constant(np.float32(0))
    axes = node.ints64(list(range(node.rank())))
    most = node.add("Maximum-1", node.add("ReduceMax-1", x, axes, keep_dims=False), zero)
    least = node.add("Minimum-1", node.add("ReduceMin-1", x, axes, keep_dims=False), zero)
    step = node.add(
        "Divide-1", node.add("Subtract-1", most, least), node.constant(np.float32(255))
    )
    # Nothing but zeros: ONNX Runtime's step is one.
    empty = node.add("Equal-1", step, zero)
    step = node.add("Select-1", empty, node.constant(np.float32(1)), step)
    start = node.add("Divide-1", node.add("Subtract-1", zero, least), step)
    start = node.add("Round-5", node.add("Clamp-1", start, min=0.0, max=255.0))
    if x.tensor.type is not ElementType.F32:
        raise IRError(f"the input is {x.tensor.type}, f32 is needed")
    made = narrowed(node, node.add("Divide-1", x, step), start, ElementType.U8)
    return [made, step, node.convert(start, "u8")]
