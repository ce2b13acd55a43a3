"""Operators that ONNX Runtime's optimiser puts in the place of several, for any processor.

What it writes for the one that it runs on (``ORT_ENABLE_ALL``: layouts by blocks of channels) no
other runtime can read; models that are to be handed on are saved with ``ORT_ENABLE_EXTENDED``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....schemas import IRError, UnsupportedError
from ...document import Output
from .contributed import contributed, levels, numbers, plus
from .convolution import conv
from .node import Function, Made, Node, converts
from .normalization import gemm, rms_normalization
from .pooling import average_pool, by_whole_kernels, max_pool, whole, window_of
from .quantization import dynamic_quantize_linear, q_linear_conv
from .versions import declare

F32 = np.finfo(np.float32)
#: What all that slide a window share.
WINDOW: dict[str, Any] = {
    "auto_pad": "NOTSET", "dilations": list, "kernel_shape": list, "pads": list, "strides": list,
}  # fmt: skip

# It fuses norms before the opset in which ONNX has them, in ONNX's own domain.
_NORM = {"axis": -1, "epsilon": 1e-5, "stash_type": 1}
declare("", "LayerNormalization", (2, 3), 3, _NORM)
declare("", "SimplifiedLayerNormalization", (2, 2), 1, _NORM)
converts("SimplifiedLayerNormalization")(rms_normalization)


def activated(node: Node, x: Output, kind: str, values: Sequence[float]) -> Output:
    """What follows a product in the same node; its numbers in the order of its attributes."""
    plain = {"": None, "Relu": "ReLU-1", "Tanh": "Tanh-1", "Sigmoid": "Sigmoid-1"}
    usual = {
        "LeakyRelu": [0.01],
        "HardSigmoid": [0.2, 0.5],
        "Clip": [float(F32.min), float(F32.max)],
    }
    if kind in plain:
        spec = plain[kind]
        return x if spec is None else node.add(spec, x)
    if kind not in usual:
        raise UnsupportedError(f'activation="{kind}" is not known to this importer')
    given = [*values, *usual[kind][len(values) :]]
    if kind == "LeakyRelu":
        return node.add("PReLU-1", x, node.like(given[:1], x))
    if kind == "Clip":
        low, high = given[:2]
        if low <= high:
            return node.add("Clamp-1", x, min=low, max=high)
        # As ONNX Runtime has it, the upper limit counts.
        made = node.add("Maximum-1", x, node.like(low, x))
        return node.add("Minimum-1", made, node.like(high, x))
    return node.add("HardSigmoid-1", x, node.like(given[0], x), node.like(given[1], x))


def first(made: Made) -> Output:
    """The output of a converter that makes but one."""
    found = made if isinstance(made, Output) else made[0]
    if found is None:
        raise IRError("the first output is not made")
    return found


@contributed(
    "FusedConv", (2, 4), group=1, activation="", activation_params=list[float], **WINDOW
)  # fmt: skip
def fused_conv(node: Node) -> Made:
    """As Conv; Add-1 of a further input, the activation."""
    made = plus(node, first(conv(node)), node.get(3))
    values = [float(value) for value in node.attribute("activation_params", [])]
    return activated(node, made, node.text("activation"), values)


@contributed(
    "FusedGemm", (2, 3), alpha=1.0, beta=1.0, transA=0, transB=0, activation="",
    activation_alpha=0.0, activation_beta=0.0, activation_gamma=0.0,
)  # fmt: skip
def fused_gemm(node: Node) -> Made:
    """As Gemm, and the activation."""
    names = ["activation_alpha", "activation_beta"]
    values = [node.real(name) for name in names if node.gives(name)]
    return activated(node, first(gemm(node)), node.text("activation"), values)


# Integers.


def product(node: Node, rows: Output, columns: Output) -> Output:
    """A product of integers that were made f32, so exact where no sum goes beyond 2^24."""
    made = node.convert(node.add("MatMul-1", rows, columns), "i32")
    return node.convert(made, "f32")


def moved(node: Node, x: Output, zero: Output | None) -> Output:
    """Integers as real numbers, less their zero point."""
    made = node.convert(x, "f32")
    return made if zero is None else node.add("Subtract-1", made, node.convert(zero, "f32"))


@contributed("DynamicQuantizeMatMul", (3, 5))
def dynamic_quantize_mat_mul(node: Node) -> Made:
    """As DynamicQuantizeLinear, MatMulInteger, Multiply-1 by both scales, Add-1."""
    quantized, step, start = dynamic_quantize_linear(node)
    if not (isinstance(quantized, Output) and isinstance(step, Output)):
        raise IRError("nothing is quantised")
    made = product(node, moved(node, quantized, start), moved(node, node[1], node.get(3)))
    scale = node.add("Multiply-1", step, node[2])
    return plus(node, node.add("Multiply-1", made, scale), node.get(4))


@contributed("MatMulIntegerToFloat", (4, 7))
def mat_mul_integer_to_float(node: Node) -> Made:
    """As MatMulInteger, Multiply-1 by both scales, Add-1."""
    made = product(node, moved(node, node[0], node.get(4)), moved(node, node[1], node.get(5)))
    scale = node.add("Multiply-1", node[2], node[3])
    return plus(node, node.add("Multiply-1", made, scale), node.get(6))


@contributed("QLinearSoftmax", (5, 5), axis=-1, opset=int)
def q_linear_softmax(node: Node) -> Made:
    """SoftMax-8 of what the integers stand for, then as QuantizeLinear."""
    axis = node.axis(-1)
    if node.integer("opset") < 13 and axis != node.rank() - 1:
        raise UnsupportedError("before opset 13 all axes behind the first count as one")
    return levels(node, node.add("SoftMax-8", numbers(node, 0), axis=axis), 3)


def channels_second(node: Node, convert: Function) -> Made:
    """What a converter makes, of images whose channels stand last unless the node says no."""
    if not node.flag("channels_last", default=True):
        return convert(node)
    rank = node.rank()
    node.inputs[0] = node.transpose(node[0], [0, rank - 1, *range(1, rank - 1)])
    return node.transpose(first(convert(node)), [0, *range(2, rank), 1])


@contributed("QLinearConv", (8, 9), group=1, channels_last=0, **WINDOW)
def last_q_linear_conv(node: Node) -> Made:
    """As QLinearConv, of images whose channels stand last too."""
    return channels_second(node, q_linear_conv)


@contributed(
    "QLinearAveragePool", (4, 5), channels_last=0, ceil_mode=0, count_include_pad=0, **WINDOW
)  # fmt: skip
def q_linear_average_pool(node: Node) -> Made:
    """As AveragePool of what the integers stand for, then as QuantizeLinear."""

    def pooled(node: Node) -> Output:
        node.inputs[0] = numbers(node, 0)
        window = window_of(node)
        counted = node.flag("count_include_pad") and window.ceil and window.explicit
        if counted and not whole(node, window):
            # Of an AveragePool what overhangs the padding does not count, here it does.
            return by_whole_kernels(node, node[0], window)
        return first(average_pool(node))

    kind = node[0].tensor.type
    return levels(node, first(channels_second(node, pooled)), 3, kind=kind)


@contributed("NhwcMaxPool", (1, 1), ceil_mode=0, **WINDOW)
def nhwc_max_pool(node: Node) -> Made:
    """As MaxPool, of images whose channels stand last."""
    return channels_second(node, max_pool)
