"""Operators of ONNX Runtime's own domain, which its tools for fusing and quantising write.

The package onnx has no schemas of them: what each takes stands here, beside its converter.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ....schemas import ElementType, IRError, UnsupportedError
from ...document import Output
from .elementwise import gelu
from .node import Function, Made, Node, converts, normal
from .quantization import dequantize_linear, narrowed, quantize_linear, zero_point
from .recurrent import lstm
from .versions import declare

DOMAIN = "com.microsoft"


def contributed(
    name: str, inputs: tuple[int, int], outputs: int = 1, **attributes: object
) -> Callable[[Function], Function]:
    """Declare a converter, and what its operator takes: attributes by what they are left out."""
    declare(DOMAIN, name, inputs, outputs, attributes)
    return converts(name, domain=DOMAIN)


contributed("Gelu", (1, 1), approximate="none")(gelu)
contributed("QuantizeLinear", (2, 3), axis=1)(quantize_linear)
contributed("DequantizeLinear", (2, 3), axis=1)(dequantize_linear)


def plus(node: Node, x: Output, *others: Output | None) -> Output:
    """A sum, of what there is."""
    for other in others:
        x = x if other is None else node.add("Add-1", x, other)
    return x


@contributed("BiasGelu", (2, 2))
def bias_gelu(node: Node) -> Made:
    """Add-1, Gelu-7."""
    return node.add("Gelu-7", plus(node, node[0], node[1]), approximation_mode="ERF")


@contributed("FastGelu", (1, 2))
def fast_gelu(node: Node) -> Made:
    """Add-1 where there is a bias, Gelu-7 by tanh."""
    return node.add("Gelu-7", plus(node, node[0], node.get(1)), approximation_mode="TANH")


@contributed("QuickGelu", (1, 1), alpha=1.702)
def quick_gelu(node: Node) -> Made:
    """Swish-4."""
    return node.add("Swish-4", node[0], node.like(node.real("alpha"), node[0]))


@contributed(
    "FusedMatMul", (2, 2), alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0
)  # fmt: skip
def fused_mat_mul(node: Node) -> Made:
    """MatMul-1, Multiply-1 where there is a factor."""
    if node.flag("transBatchA") or node.flag("transBatchB"):
        raise UnsupportedError("transBatchA and transBatchB turn the batch, which MatMul does not")
    words = {"transpose_a": node.flag("transA"), "transpose_b": node.flag("transB")}
    made, alpha = node.add("MatMul-1", node[0], node[1], **words), node.real("alpha")
    return made if alpha == 1 else node.add("Multiply-1", made, node.like(alpha, made))


@contributed("SkipLayerNormalization", (3, 5), 4, epsilon=1e-12)
def skip_layer_normalization(node: Node) -> Made:
    """The sum of both inputs and the bias; MVN-6, scaled and moved."""
    whole = plus(node, node[0], node[1], node.get(4))
    return [_normalized(node, whole, node[2], node.get(3)), None, None, whole]


def _normalized(node: Node, x: Output, scale: Output, shift: Output | None) -> Output:
    """Mean and variance along the last axis, then a scale and a shift."""
    axes, eps = node.ints64([-1]), node.real("epsilon", 1e-12)
    words = {"normalize_variance": True, "eps_mode": "INSIDE_SQRT"}
    made = node.add("Multiply-1", node.add("MVN-6", x, axes, eps=eps, **words), scale)
    return plus(node, made, shift)


@contributed("SkipSimplifiedLayerNormalization", (3, 4), 4, epsilon=1e-12)
def skip_simplified_layer_normalization(node: Node) -> Made:
    """The sum of both inputs and the bias, divided by the root of its mean square, scaled."""
    whole = plus(node, node[0], node[1], node.get(3))
    square = node.add("Multiply-1", whole, whole)
    mean = node.add("ReduceMean-1", square, node.ints64([-1]), keep_dims=True)
    spread = node.add("Sqrt-1", plus(node, mean, node.like(node.real("epsilon"), mean)))
    made = node.add("Multiply-1", node.add("Divide-1", whole, spread), node[2])
    return [made, None, None, whole]


@contributed("EmbedLayerNormalization", (7, 9), 3, epsilon=1e-12, mask_index_type=0)
def embed_layer_normalization(node: Node) -> Made:
    """The vectors of words, places and segments added up and normalised; how many words count."""
    ids, place = node[0], node.get(8)
    if place is None:
        count = node.size(ids, 1)
        place = node.cut(node[3], 0, count, 0)
    else:
        place = node.add("Gather-8", node[3], place, node.ints64(0))
    whole = plus(node, node.add("Gather-8", node[2], ids, node.ints64(0)), place)
    if node.get(1) is not None and node.get(4) is not None:
        whole = plus(node, whole, node.add("Gather-8", node[4], node[1], node.ints64(0)))
    counted = None
    if node.wants(1):
        mask = node.get(7)
        ones = (
            node.add("NotEqual-1", ids, ids) if mask is None
            else node.add("Equal-1", mask, node.like(1, mask))
        )  # fmt: skip
        counted = node.add(
            "ReduceSum-1", node.convert(ones, "i32"), node.ints64([1]), keep_dims=False
        )
    return [_normalized(node, whole, node[5], node[6]), counted, whole]


@contributed(
    "MatMulNBits", (3, 6), K=int, N=int, bits=4, block_size=int, accuracy_level=0,
    weight_prepacked=0,
)  # fmt: skip
def mat_mul_n_bits(node: Node) -> Made:
    """MatMul-1 by weights of 4 or 8 bits, less a zero point and scaled block by block."""
    taken, made, bits, block = (node.integer(name) for name in ("K", "N", "bits", "block_size"))
    if bits not in (4, 8) or node.get(4) is not None or block < 1 or taken < 1 or made < 1:
        raise UnsupportedError(f"weights of {bits} bits in blocks of {block} are not known here")
    blocks = -(-taken // block)
    weights = _weights(node, 1, bits, (made, blocks * block))
    kind = weights.tensor.type
    zero = node.get(3)
    if zero is not None and not zero.tensor.type.is_real:
        per_row = -(-blocks * bits // 8) * 8 // bits
        zero = node.constant(_unpacked(node, 3, bits, (made, per_row))[:, :blocks], kind)
    middle = np.full((1, 1), 1 << (bits - 1), kind.dtype)
    zero = node.constant(middle, kind) if zero is None else node.reshape(zero, [made, blocks])
    scales = node.reshape(node[2], [made, blocks])
    weights = _scaled_in_blocks(node, weights, scales, zero, 1, block)
    weights = weights if blocks * block == taken else node.cut(weights, 0, taken, 1)
    return plus(node, node.add("MatMul-1", node[0], weights, transpose_b=True), node.get(5))


@contributed(
    "GatherBlockQuantized", (3, 4), bits=4, block_size=128, gather_axis=0, quantize_axis=1
)
def gather_block_quantized(node: Node) -> Made:
    """Gather-8 of rows of few bits, less a zero point and scaled block by block."""
    bits, block, given = node.integer("bits"), node.integer("block_size"), node[0].tensor
    if block < 1 or not given.shape.is_static:
        raise UnsupportedError(f"a table of the shape {given.shape} in blocks of {block}")
    shape, kind = list(given.shape.static), given.type
    along = normal(node.integer("quantize_axis", 1), len(shape))
    across = normal(node.integer("gather_axis", 0), len(shape))
    table, zero = node[0], node.get(3)
    if kind == "u8" and bits in (4, 8):
        # Several lie in a byte, along the last axis.
        shape[-1] *= 8 // bits
        table = _weights(node, 0, bits, tuple(shape))
        kind = table.tensor.type
        sizes = [-(-size // block) if axis == along else size for axis, size in enumerate(shape)]
        if zero is not None:
            wide = [*sizes[:-1], -(-sizes[-1] * bits // 8) * 8 // bits]
            zero = node.constant(_unpacked(node, 3, bits, tuple(wide))[..., : sizes[-1]], kind)
        else:
            zero = node.constant(np.full([1] * len(shape), 1 << (bits - 1), kind.dtype), kind)
    elif kind not in ("u4", "i4"):
        raise UnsupportedError(f"a table of {kind} in {bits} bits is not known here")
    if shape[along] % block:
        raise UnsupportedError(f"{shape[along]} numbers are no whole blocks of {block}")
    table = _scaled_in_blocks(node, table, node[2], zero, along, block)
    return node.add("Gather-8", table, node[1], node.ints64(across))


def _scaled_in_blocks(
    node: Node, levels: Output, scales: Output, zero: Output | None, axis: int, block: int
) -> Output:
    """Numbers of levels of a known shape: each block of them along an axis has a scale."""
    shape, real = levels.tensor.shape.static, scales.tensor.type

    def of_blocks(x: Output) -> Output:
        held = x.tensor.shape.static
        return node.reshape(x, [*held[: axis + 1], 1, *held[axis + 1 :]])

    apart = [*shape[:axis], shape[axis] // block, block, *shape[axis + 1 :]]
    made = node.convert(node.reshape(levels, apart), real)
    if zero is not None:
        made = node.add("Subtract-1", made, node.convert(of_blocks(zero), real))
    return node.reshape(node.add("Multiply-1", made, of_blocks(scales)), shape)


def _weights(node: Node, index: int, bits: int, shape: tuple[int, ...]) -> Output:
    """Whole numbers that lie in the bytes of a constant, as one of 4 or 8 bits each."""
    kind = ElementType.U4 if bits == 4 else ElementType.U8
    return node.constant(_unpacked(node, index, bits, shape).astype(kind.dtype), kind)


def _unpacked(node: Node, index: int, bits: int, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers of a constant whose bytes hold one or two each, the lower half first."""
    packed = np.asarray(node.known(index, "packed weights"))
    if packed.dtype != np.uint8 or packed.size * 8 != prod(shape) * bits:
        raise IRError(f"input {index} has {packed.size} bytes of {shape} numbers of {bits} bits")
    flat = packed.reshape(-1)
    if bits == 4:
        flat = np.stack([flat & 15, flat >> 4], -1)
    return flat.reshape(shape)


def numbers(node: Node, first: int, rows: bool = False) -> Output:
    """What the integers of an input stand for, its scale and zero point behind it.

    Lists of scales and zero points belong to the last axis, or to the rows of a matrix.
    """

    def spread(values: Output) -> Output:
        values = node.convert(values, "f32")
        return node.unsqueeze(values, [1]) if rows and values.tensor.rank == 1 else values

    made, zero = node.convert(node[first], "f32"), zero_point(node, first + 2)
    if zero is not None:
        made = node.add("Subtract-1", made, spread(zero))
    return node.add("Multiply-1", made, spread(node[first + 1]))


def levels(
    node: Node, made: Output, first: int, of: int = 0, kind: ElementType | None = None
) -> Output:
    """Numbers as integers of the scale and zero point of two inputs."""
    zero = node.get(first + 1)
    kind = kind or (node[of].tensor.type if zero is None else zero.tensor.type)
    made = node.add("Divide-1", made, node.convert(node[first], "f32"))
    zero = zero_point(node, first + 1)
    return narrowed(node, made, None if zero is None else node.convert(zero, "f32"), kind)


@contributed("QLinearAdd", (7, 8))
def q_linear_add(node: Node) -> Made:
    """Add-1 of what the integers stand for, then as QuantizeLinear."""
    return levels(node, plus(node, numbers(node, 0), numbers(node, 3)), 6)


@contributed("QLinearMul", (7, 8))
def q_linear_mul(node: Node) -> Made:
    """Multiply-1 of what the integers stand for, then as QuantizeLinear."""
    return levels(node, node.add("Multiply-1", numbers(node, 0), numbers(node, 3)), 6)


@contributed("QLinearSigmoid", (4, 5))
def q_linear_sigmoid(node: Node) -> Made:
    """Sigmoid-1 of what the integers stand for, then as QuantizeLinear."""
    return levels(node, node.add("Sigmoid-1", numbers(node, 0)), 3)


@contributed("QLinearLeakyRelu", (4, 5), alpha=0.01)
def q_linear_leaky_relu(node: Node) -> Made:
    """PReLU-1 of what the integers stand for, then as QuantizeLinear."""
    x = numbers(node, 0)
    return levels(node, node.add("PReLU-1", x, node.like([node.real("alpha")], x)), 3)


@contributed("QLinearGlobalAveragePool", (5, 5), channels_last=0)
def q_linear_global_average_pool(node: Node) -> Made:
    """ReduceMean-1 of what the integers stand for, then as QuantizeLinear."""
    first = 1 if node.flag("channels_last") else 2
    axes = node.ints64(list(range(first, first + node.rank() - 2)))
    return levels(node, node.add("ReduceMean-1", numbers(node, 0), axes, keep_dims=True), 3)


@contributed("QLinearConcat", (5, -1), axis=int)
def q_linear_concat(node: Node) -> Made:
    """Concat-1 of what the integers stand for, then as QuantizeLinear."""
    if (len(node.inputs) - 2) % 3:
        raise IRError(f"{len(node.inputs)} inputs: after two, three belong together")
    parts = [numbers(node, first) for first in range(2, len(node.inputs), 3)]
    return levels(node, node.add("Concat-1", *parts, axis=node.integer("axis")), 0, of=2)


@contributed("QGemm", (6, 9), alpha=1.0, transA=0, transB=0)
def q_gemm(node: Node) -> Made:
    """MatMul-1 of what the integers stand for; a bias in steps of their product."""
    words = {"transpose_a": node.flag("transA"), "transpose_b": node.flag("transB")}
    columns = numbers(node, 3, rows=words["transpose_b"])
    made = node.add("MatMul-1", numbers(node, 0), columns, **words)
    alpha = node.real("alpha")
    if node.get(6) is not None:
        step = node.add("Multiply-1", node[1], node[4])
        made = plus(node, made, node.add("Multiply-1", node.convert(node[6], "f32"), step))
    made = made if alpha == 1 else node.add("Multiply-1", made, node.like(alpha, made))
    return made if node.get(7) is None else levels(node, made, 7)


@contributed(
    "DynamicQuantizeLSTM", (12, 12), 3, direction="forward", hidden_size=int, input_forget=0,
    activations=list[str], activation_alpha=list[float], activation_beta=list[float], clip=0.0,
)  # fmt: skip
def dynamic_quantize_lstm(node: Node) -> Made:
    """LSTMSequence-5 of what the weights stand for; what they multiply is not rounded."""
    for place, first in ((1, 8), (2, 10)):
        made = node.convert(node[place], "f32")
        for spec, index in (("Subtract-1", first + 1), ("Multiply-1", first)):
            each = node.convert(node[index], "f32")
            # One for each direction, or for each of its gates and units.
            rank = each.tensor.rank or 0
            if rank:
                each = node.unsqueeze(each, [1, 2] if rank == 1 else [1])
            made = node.add(spec, made, each)
        node.inputs[place] = node.transpose(made, [0, 2, 1])
    node.inputs[8:] = []
    return lstm(node)
