"""Operators of ONNX Runtime's own domain, which its tools for fusing and quantising write.

The package onnx has no schemas of them: what each takes stands here, beside its converter.
"""

from __future__ import annotations

from collections.abc import Callable

from ....schemas import ElementType, IRError
from ...document import Output
from .elementwise import gelu
from .image import grid_sample
from .movement import gather_nd, trilu
from .node import Function, Made, Node, converts
from .normalization import by_mean_square
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
contributed("GatherND", (2, 2))(gather_nd)
contributed("GridSample", (2, 2), align_corners=0, mode="bilinear", padding_mode="zeros")(
    grid_sample
)
contributed("Trilu", (1, 2), upper=1)(trilu)


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
    parts = [node[0], node[1]]
    for index, word in enumerate(("transBatchA", "transBatchB")):
        if node.flag(word):  # the first axis is that of rows, behind those of the batch
            last = node.rank(index) - 1
            if last < 2:
                raise IRError(f"{word} needs 3 axes or more, input {index} has {last + 1}")
            parts[index] = node.transpose(parts[index], [*range(1, last), 0, last])
    words = {"transpose_a": node.flag("transA"), "transpose_b": node.flag("transB")}
    made, alpha = node.add("MatMul-1", *parts, **words), node.real("alpha")
    return made if alpha == 1 else node.add("Multiply-1", made, node.like(alpha, made))


@contributed("Inverse", (1, 1))
def inverse(node: Node) -> Made:
    """Inverse-14."""
    return node.add("Inverse-14", node[0], adjoint=False)


@contributed("ScaledSiLU", (1, 2), alpha=1.0)
def scaled_silu(node: Node) -> Made:
    """Multiply-1, Swish-4."""
    x, alpha = node[0], node.real("alpha")
    factor = node.get(1) if node.get(1) is not None or alpha == 1 else node.like(alpha, x)
    return node.add("Swish-4", x if factor is None else node.add("Multiply-1", x, factor))


@contributed("GatedAdd", (3, 3))
def gated_add(node: Node) -> Made:
    """Add-1 of one and another times its gate."""
    return plus(node, node[0], node.add("Multiply-1", node[1], node[2]))


@contributed("GatedRMSNorm", (3, 3), activation="silu", epsilon=1e-5)
def gated_rms_norm(node: Node) -> Made:
    """The input divided by the root of its mean square, scaled, times what a gate gives."""
    x, gate, word = node[0], node[2], node.text("activation")
    specs = {"silu": "Swish-4", "swish": "Swish-4", "sigmoid": "Sigmoid-1"}
    if word not in specs:
        raise IRError(f'activation="{word}" is not one of {", ".join(specs)}')
    many, one = (node.size(part, -1) for part in (x, node[1]))
    rows = x if many == one else node.reshape(x, node.vector([node.ints64([-1]), one]))
    made = by_mean_square(node, rows, node[1], node.real("epsilon"))
    made = made if rows is x else node.reshape(made, node.shape(x))
    return node.add("Multiply-1", made, node.add(specs[word], gate))


contributed("TransposeMatMul", (2, 2), alpha=1.0, transA=0, transB=0)(fused_mat_mul)


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
    made = by_mean_square(node, whole, node[2], node.real("epsilon"))
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
    return [_normalized(node, whole, node[5], node[6]), _counted(node), whole]


def _counted(node: Node) -> Output | None:
    """How many words of each text count, by the mask of input 7: none, without one."""
    if not node.wants(1):
        return None
    ids, mask = node[0], node.get(7)
    ones = (
        node.add("NotEqual-1", ids, ids) if mask is None
        else node.add("Equal-1", mask, node.like(1, mask))
    )  # fmt: skip
    return node.add("ReduceSum-1", node.convert(ones, "i32"), node.ints64([1]), keep_dims=False)


@contributed("QEmbedLayerNormalization", (18, 18), 2, epsilon=1e-12)
def q_embed_layer_normalization(node: Node) -> Made:
    """As EmbedLayerNormalization, of tables and factors that are integers."""

    def real(first: int) -> Output:
        made = node.convert(node[first], "f32")
        zero = zero_point(node, _SCALES[first] + 5)
        if zero is not None:
            made = node.add("Subtract-1", made, node.convert(zero, "f32"))
        return node.add("Multiply-1", made, node[_SCALES[first]])

    def rows(first: int, places: Output) -> Output:
        return node.add("Gather-8", real(first), places, node.ints64(0))

    ids = node[0]
    whole = plus(node, rows(2, ids), node.cut(real(3), 0, node.size(ids, 1), 0))
    if node.get(1) is not None and node.get(4) is not None:
        whole = plus(node, whole, rows(4, node[1]))
    return [_normalized(node, whole, real(5), real(6)), _counted(node)]


#: Where the scale of an input is; its zero point is five places behind.
_SCALES = {2: 8, 3: 9, 4: 10, 5: 11, 6: 12}


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


@contributed("QLinearWhere", (9, 9))
def q_linear_where(node: Node) -> Made:
    """Select-1 of what the integers stand for, then as QuantizeLinear."""
    made = node.add("Select-1", node[0], numbers(node, 1), numbers(node, 4))
    return levels(node, made, 7, of=1)


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
