"""Questions of passes and kernels about nodes: scales and shifts by channel, windows, pads."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from .formulas import is_numpy
from .nodes import Node, Steps, Value, constant
from .operations import BINARY, UNARY

#: Channels that an image as it comes in may have to stay as it is.
FEW = 4
#: What may be given an image as it comes in.
TURNING = ("Convolution", "FakeQuantize")
#: Convolutions of volumes with more groups are sums over the taps of the first axis.
MOST_VOLUME_GROUPS = 8


def has_many_groups(node: Node) -> bool:
    """Whether a convolution of volumes is done tap by tap, for the sake of its many groups."""
    weights = node.inputs[1].shape
    return len(weights) == 6 and weights[0] > MOST_VOLUME_GROUPS


def is_depthwise(node: Node) -> bool:
    """Whether each channel of images is convolved by itself, with weights that are known."""
    weights = node.inputs[1].constant if node.kind == "GroupConvolution" else None
    return weights is not None and weights.ndim == 5 and weights.shape[1:3] == (1, 1)


def is_pointwise(node: Node) -> bool:
    """Whether a node is a 1x1 convolution with known weights, stride 1 and no pads."""
    weights = node.inputs[1].constant if node.kind == "Convolution" else None
    op: Any = node.op
    return (
        weights is not None
        and weights.dtype == np.float32
        and len(weights.shape) == 4
        and weights.shape[2:] == (1, 1)
        and set(op.strides) == {1}
        and node.inputs[0].shape[2:] == node.outputs[0].shape[2:]
    )


def multiplies_channels(node: Node) -> bool:
    """Whether a node is such a convolution and nothing else: no bias, nothing before or after."""
    return (
        is_pointwise(node)
        and len(node.inputs) == 2
        and node.integers is None
        and node.padding is None
        and not node.prologue
        and not node.epilogue
    )


def has_single_place_windows(node: Node) -> bool:
    """Whether a convolution of images has 1x1 windows and pads nothing."""
    op: Any = node.op
    shape = node.inputs[0].shape
    return (
        len(shape) == 4
        and node.inputs[1].shape[-2:] == (1, 1)
        and not any(
            number(pad) for axis, size in enumerate(shape[2:]) for pad in op.pads(size, axis, 1)
        )
    )


def pads_nothing(node: Node) -> bool:
    """Whether the windows of an average lie within the image, all of them."""
    op: Any = node.op
    sizes = enumerate(node.inputs[0].shape[2:])
    pads = [
        op.pads(size, axis, reach(taps, gap))
        for (axis, size), taps, gap in zip(sizes, op.kernel, op.gaps(), strict=True)
    ]
    return op.rounding_type == "floor" and not any(number(pad) for pair in pads for pad in pair)


def sees_the_image(node: Node) -> bool:
    """Whether each window of a pooling holds some of the image."""
    op: Any = node.op
    sizes, stops = node.inputs[0].shape[2:], node.outputs[0].shape[2:]
    for axis, (size, stop) in enumerate(zip(sizes, stops, strict=True)):
        gap, window = op.gaps()[axis], op.kernel[axis]
        begin = number(op.pads(size, axis, reach(window, gap))[0])
        # With gaps a window may meet the padding on either side, and nothing between.
        before = begin < window if gap == 1 else begin == 0
        if not before or (stop - 1) * op.strides[axis] - begin >= size:
            return False
    return True


@np.errstate(all="ignore")
def scale_and_shift(
    steps: Steps, shape: tuple[int, ...], axis: int = 1
) -> tuple[Array, Array, int]:
    """The scale and shift by channel that the first steps apply; how many steps those are."""
    scale, shift = np.ones(shape[axis]), np.zeros(shape[axis])
    for count, (op, others) in enumerate(steps):
        given = next((value for value in others if value is not None), None)
        if given is None or given.constant is None:
            return scale, shift, count
        each = per_channel(given.constant, shape, axis)
        first = others[0] is None
        if each is None or op.xml_type not in ("Add", "Subtract", "Multiply", "Divide"):
            return scale, shift, count
        if op.xml_type == "Add":
            shift = shift + each
        elif op.xml_type == "Subtract":
            scale, shift = (scale, shift - each) if first else (-scale, each - shift)
        elif op.xml_type == "Multiply":
            scale, shift = scale * each, shift * each
        elif first:
            scale, shift = scale / each, shift / each
        else:
            return scale, shift, count
    return scale, shift, len(steps)


def per_channel(array: Array, shape: tuple[int, ...], axis: int = 1) -> Array | None:
    """A constant as one number for each channel; None if it varies along other axes."""
    if array.size == 1:
        return np.full(shape[axis], array.reshape(()), np.float64)
    sizes = (1,) * (len(shape) - array.ndim) + array.shape
    if len(sizes) != len(shape) or sizes[axis] != shape[axis] or array.size != shape[axis]:
        return None
    return array.reshape(-1).astype(np.float64)


def elementwise_steps(node: Node) -> Steps:
    """A node as elementwise steps with constants by channel; none if it is not that."""
    shape = node.outputs[0].shape
    if node.outputs[0].type != np.float32 or len(shape) != 4 or not is_numpy(node):
        return []
    if node.kind in UNARY:
        head: list[Value | None] = [None, *node.inputs[1:]]
    elif node.kind in BINARY and node.inputs[0].constant is None:
        if node.inputs[0].shape != shape:
            return []  # a constant repeats it
        head = [None, node.inputs[1]]
    else:
        return []
    steps = [(node.op, head), *node.epilogue]
    for op, others in steps:
        constants = [value.constant for value in others if value is not None]
        if any(c is None or per_channel(c, shape) is None for c in constants):
            return []
        if op.xml_type == "PReLU":
            return []
    return steps


def add_through(node: Node, amount: Array) -> None:
    """Add to the bias of a convolution what it makes of an amount in each input channel."""
    weights = node.inputs[1].constant
    assert weights is not None
    # (groups, outputs, inputs), all taps of a window together.
    by_group = weights.reshape(-1, *weights.shape[-4:]).astype(np.float64).sum((-1, -2))
    added = np.matmul(by_group, amount.reshape(len(by_group), -1, 1)).ravel()
    if len(node.inputs) > 2:
        added = added + node.inputs[2].constant
    node.set_inputs([*node.inputs[:2], constant(added.astype(np.float32))])


def is_incoming_image(value: Value) -> bool:
    """Whether a value is an image as it comes in, with few channels, for convolutions alone.

    They put its channels side by side when they pad it, or who rounds it for them when it does
    so, sooner than a copy of all of it.
    """
    return (
        value.producer is None
        and value.constant is None
        and len(value.shape) == 4
        and value.shape[1] <= FEW
        and all(node.kind in TURNING and not node.prologue for node in value.users)
    )
