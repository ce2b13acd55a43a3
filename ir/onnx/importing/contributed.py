"""Operators of ONNX Runtime's own domain, which its tools for fusing and quantising write.

The package onnx has no schemas of them: what each takes stands here, beside its converter.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from ....schemas import ElementType, IRError, UnsupportedError
from ...document import Output
from .elementwise import gelu
from .node import Function, Made, Node, converts
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
    "Attention", (2, 7), 2, num_heads=int, unidirectional=0, qkv_hidden_sizes=list,
    past_present_share_buffer=0, do_rotary=0, rotary_embedding_dim=0, scale=0.0,
    mask_filter_value=-10000.0,
)  # fmt: skip
def attention(node: Node) -> Made:
    """Queries, keys and values by one product, then ScaledDotProductAttention-13."""
    if any(node.get(index) is not None for index in (4, 6)) or node.wants(1):
        raise UnsupportedError("keys and values of former calls are not taken, nor handed out")
    if node.flag("do_rotary"):
        raise UnsupportedError("do_rotary is not known to this importer")
    columns = node[1].tensor.shape[1] if node[1].tensor.rank == 2 else None
    sizes = node.integers("qkv_hidden_sizes")
    if not sizes and isinstance(columns, int):
        sizes = [columns // 3] * 3
    heads = node.integer("num_heads")
    if len(sizes) != 3 or heads < 1 or any(size % heads for size in sizes):
        raise IRError(f"{heads} heads do not share the sizes {sizes} of queries, keys and values")
    joined = plus(node, node.add("MatMul-1", node[0], node[1]), node.get(2))
    parts, start = [], 0
    for size in sizes:
        parts.append(heads_apart(node, node.cut(joined, start, start + size, 2), heads, size))
        start += size
    scale = node.real("scale")
    if scale:
        factor = node.like(scale * sqrt(sizes[0] / heads), parts[0])
        parts[0] = node.add("Multiply-1", parts[0], factor)
    mask, causal = _mask(node, joined), node.flag("unidirectional")
    if mask is not None and causal:
        raise UnsupportedError("unidirectional beside a mask is not known to this importer")
    if mask is not None:
        parts.append(mask)
    made = node.add("ScaledDotProductAttention-13", *parts, causal=causal)
    return heads_together(node, made, sizes[2])


def heads_apart(node: Node, x: Output, heads: int, size: int) -> Output:
    """Numbers of heads that lie side by side, as (batch, heads, places, numbers of a head)."""
    apart = node.ints64([0, 0, heads, size // heads])
    return node.transpose(node.add("Reshape-1", x, apart, special_zero=True), [0, 2, 1, 3])


def heads_together(node: Node, x: Output, size: int) -> Output:
    """What ``heads_apart`` has put apart."""
    x = node.transpose(x, [0, 2, 1, 3])
    return node.add("Reshape-1", x, node.ints64([0, 0, size]), special_zero=True)


def _mask(node: Node, joined: Output) -> Output | None:
    """What is added to scores: of keys that are masked much below zero."""
    mask, added = node.get(3), node.get(5)
    if mask is None:
        return added
    rank = node.rank(3)
    if rank == 1:
        images, lengths = joined.tensor.shape[0], mask.tensor.shape[0]
        if isinstance(images, int) and isinstance(lengths, int) and images != lengths:
            raise UnsupportedError("a mask of where keys end and begin is not known here")
        count = node.squeeze(node.vector([node.size(joined, 1)]), [0])
        places = node.add(
            "Range-4", node.ints64(0), count, node.ints64(1), output_type=ElementType.I64
        )
        ends = node.unsqueeze(node.convert(mask, "i64"), [1])
        left_out = node.add("GreaterEqual-1", node.unsqueeze(places, [0]), ends)
    elif rank in (2, 3):
        left_out = node.add("NotEqual-1", mask, node.like(1, mask))
    else:
        raise UnsupportedError(f"a mask has {rank} axes, 1, 2 or 3 are known here")
    axes = {1: [1, 2], 2: [1, 2], 3: [1]}[rank]
    numbers = node.convert(node.unsqueeze(left_out, axes), joined.tensor.type)
    far = node.like(node.real("mask_filter_value"), numbers)
    return plus(node, node.add("Multiply-1", numbers, far), added)


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
    kind = ElementType.U4 if bits == 4 else ElementType.U8
    levels = _unpacked(node, 1, bits, (made, blocks * block)).reshape(made, blocks, block)
    scales = node.reshape(node[2], [made, blocks, 1])
    real = scales.tensor.type
    zero = node.get(3)
    if zero is None:
        middle = node.constant(np.full((1, 1, 1), 1 << (bits - 1), np.uint8).astype(kind.dtype))
    elif zero.tensor.type.is_real:
        middle = node.reshape(zero, [made, blocks, 1])
    else:
        per_row = -(-blocks * bits // 8) * 8 // bits
        points = _unpacked(node, 3, bits, (made, per_row))[:, :blocks, None]
        middle = node.constant(points.astype(kind.dtype), kind)
    weights = node.convert(node.constant(levels.astype(kind.dtype), kind), real)
    weights = node.add("Subtract-1", weights, node.convert(middle, real))
    weights = node.reshape(node.add("Multiply-1", weights, scales), [made, blocks * block])
    weights = weights if blocks * block == taken else node.cut(weights, 0, taken, 1)
    return plus(node, node.add("MatMul-1", node[0], weights, transpose_b=True), node.get(5))


def _unpacked(node: Node, index: int, bits: int, shape: tuple[int, int]) -> np.ndarray:
    """Whole numbers of a constant whose bytes hold one or two each, the lower half first."""
    packed = np.asarray(node.known(index, "packed weights"))
    if packed.dtype != np.uint8 or packed.size * 8 != shape[0] * shape[1] * bits:
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
