"""Convolutions and what is close to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....schemas import Dim, IRError, UnsupportedError
from ...document import Output
from .node import Made, Node, converts
from .pooling import Window, window_of


def kernel_of(node: Node, weights: int = 1) -> list[int]:
    """The sizes of the kernel: stated, or those of the weights."""
    stated = node.integers("kernel_shape")
    shape = node[weights].tensor.shape
    if shape.rank is not None and shape.rank < 3:
        raise IRError(f"the weights have {shape.rank} axes, at least 3 are needed")
    held = None if shape.rank is None else [None if isinstance(s, Dim) else s for s in shape[2:]]
    if held is None or None in held:
        if not stated:
            raise UnsupportedError("the sizes of the kernel are not known")
        return stated
    sizes = [size for size in held if size is not None]
    if stated and stated != sizes:
        raise IRError(f"kernel_shape is {stated}, the weights have {sizes}")
    return sizes


def sliding(window: Window) -> dict[str, Any]:
    """The attributes of a convolution in IR."""
    return {
        "strides": window.strides,
        "dilations": window.dilations,
        "pads_begin": window.begin,
        "pads_end": window.end,
        "auto_pad": window.auto_pad,
    }


def grouped(node: Node, weights: Output, group: int, channels: int = 0) -> Output:
    """Weights with an axis of groups in front, as IR wants them."""
    shape = weights.tensor.shape
    first = shape[0]
    if group < 1:
        raise IRError(f"group is {group}, the least is 1")
    if isinstance(first, Dim):
        raise UnsupportedError("the number of filters is not known")
    if first % group:
        raise IRError(f"{first} filters do not divide into {group} groups")
    if shape.is_static:
        return node.reshape(weights, [group, first // group, *shape.static[1:]])
    sizes: list[Any] = [group, first // group]
    sizes += [node.size(weights, axis) for axis in range(1, len(shape))]
    return node.reshape(weights, node.vector(sizes))


def along_channels(node: Node, values: Output, rank: int) -> Output:
    """One value for each channel, as a tensor that broadcasts."""
    return node.reshape(values, [1, -1, *[1] * (rank - 2)]) if values.tensor.value is None or (
        not values.is_constant
    ) else node.constant(
        values.tensor.value.reshape(1, -1, *[1] * (rank - 2)), values.tensor.type
    )  # fmt: skip


@converts("Conv")
def conv(node: Node) -> Made:
    """Convolution-1 or GroupConvolution-1, and Add for the bias."""
    window = window_of(node, kernel_of(node))
    group = node.integer("group", 1)
    x, w = node[0], node[1]
    check_channels(x, w, group)
    if group == 1:
        made = node.add("Convolution-1", x, w, **sliding(window))
    else:
        made = node.add("GroupConvolution-1", x, grouped(node, w, group), **sliding(window))
    return biased(node, made, node.get(2), len(window.kernel))


def check_channels(x: Output, w: Output, group: int) -> None:
    """Refuse weights for another number of channels."""
    if x.tensor.rank is None or w.tensor.rank is None:
        return
    channels, each = x.tensor.shape[1], w.tensor.shape[1]
    if isinstance(channels, int) and isinstance(each, int) and channels != each * group:
        raise IRError(f"the input has {channels} channels, the weights take {each} x {group}")


def biased(node: Node, made: Output, bias: Output | None, axes: int) -> Output:
    """With a number added to each channel."""
    if bias is None:
        return made
    return node.add("Add-1", made, along_channels(node, bias, axes + 2))


@converts("ConvTranspose")
def conv_transpose(node: Node) -> Made:
    """ConvolutionBackpropData-1 or GroupConvolutionBackpropData-1."""
    window = window_of(node, kernel_of(node))
    group, axes = node.integer("group", 1), len(window.kernel)
    x, w = node[0], node[1]
    attributes = sliding(window)
    attributes["output_padding"] = more = node.integers("output_padding") or [0] * axes
    shape = node.integers("output_shape")
    if len(more) != axes:
        raise IRError(f"output_padding has {len(more)} entries, the kernel has {axes} axes")
    if len(shape) not in (0, axes, axes + 2):
        raise IRError(f"output_shape has {len(shape)} sizes, the kernel has {axes} axes")
    if shape or not window.explicit:
        # The paddings follow from the sizes that the output is to have.
        sizes = shape[-axes:] or None
        begin, end = _paddings(node, window, more, sizes)
        attributes |= {
            "output_padding": more,
            "pads_begin": begin,
            "pads_end": end,
            "auto_pad": "explicit",
        }
    if group == 1:
        made = node.add("ConvolutionBackpropData-1", x, w, **attributes)
    else:
        made = node.add("GroupConvolutionBackpropData-1", x, grouped(node, w, group), **attributes)
    return biased(node, made, node.get(2), axes)


def _paddings(
    node: Node, window: Window, more: list[int], sizes: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """What is cut from each end, so that the output has the sizes; ``more`` grows as needed."""
    begin, end = [], []
    upper = window.auto_pad == "same_upper"
    for axis, kernel in enumerate(window.kernel):
        stride, reach = window.strides[axis], (kernel - 1) * window.dilations[axis] + 1
        size = node[0].tensor.shape[axis + 2]
        if window.auto_pad == "valid" and sizes is None:
            total = 0
        elif sizes is None:
            total = reach + more[axis] - stride  # the output is size * stride
        elif isinstance(size, Dim):
            raise UnsupportedError(
                f"output_shape is given, axis {axis + 2} of the input is {size}"
            )
        else:
            total = stride * (size - 1) + more[axis] + reach - sizes[axis]
        if total < 0:
            more[axis] -= total
        total = max(total, 0)
        # As ONNX has it: the larger half goes to the end for SAME_UPPER only.
        half = total // 2
        begin.append(half if upper else total - half)
        end.append(total - half if upper else half)
    return begin, end


@converts("DeformConv")
def deform_conv(node: Node) -> Made:
    """DeformableConvolution-8, with the mask where there is one."""
    window = window_of(node, kernel_of(node))
    inputs = [node[0], node[2], node[1], *([node[4]] if node.get(4) is not None else [])]
    made = node.add(
        "DeformableConvolution-8", *inputs, **sliding(window), group=node.integer("group", 1),
        deformable_group=node.integer("offset_group", 1), bilinear_interpolation_pad=True,
    )  # fmt: skip
    return biased(node, made, node.get(3), len(window.kernel))


@converts("ConvInteger")
def conv_integer(node: Node) -> Made:
    """Convolution-1 of what is left after the zero points, in f32: exact up to sums of 2^24."""
    window = window_of(node, kernel_of(node))
    x = node.convert(node[0], "f32")
    w = node.convert(node[1], "f32")
    if node.get(2) is not None:
        x = node.add("Subtract-1", x, node.convert(node[2], "f32"))
    if node.get(3) is not None:
        zero = node.convert(node[3], "f32")
        if zero.tensor.rank == 1 and zero.tensor.shape[0] != 1:
            zero = node.reshape(zero, [-1, *[1] * (len(window.kernel) + 1)])
        w = node.add("Subtract-1", w, zero)
    group = node.integer("group", 1)
    if group == 1:
        made = node.add("Convolution-1", x, w, **sliding(window))
    else:
        made = node.add("GroupConvolution-1", x, grouped(node, w, group), **sliding(window))
    return node.convert(made, "i32")
