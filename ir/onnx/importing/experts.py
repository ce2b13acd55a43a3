"""Mixtures of experts as ONNX Runtime's tools write them: rows go to a few of many networks.

All experts are two stacks of matrices, and each row is multiplied by what its router gives each
expert, which is nothing for most: so exporters write it, and who runs it may leave those out.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from ....schemas import ANY, Array, IRError, Shape, UnsupportedError
from ...document import Output
from .contributed import contributed, plus
from .few_bits import codes, weights_of
from .node import Made, Node, block_within, static
from .quantization import scaled_in_blocks

#: Of stacked matrices, every second row or all.
Rows = slice


class Stack(NamedTuple):
    """The matrices of one step of all experts, and what is added behind them."""

    #: Some of the rows, as weights (experts, rows, numbers taken).
    weights: Callable[[Rows], Output]
    bias: Callable[[Rows], Output] | None

    def of(self, node: Node, x: Output, rows: Rows = slice(None)) -> Output:
        """What some rows make of (experts, tokens, numbers)."""
        made = node.add("MatMul-1", x, self.weights(rows), transpose_b=True)
        return plus(node, made, self.bias(rows) if self.bias else None)


@contributed(
    "MoE", (5, 8), activation_type="relu", k=1, normalize_routing_weights=0, use_sparse_mixer=0,
    activation_alpha=1.0, activation_beta=0.0, swiglu_fusion=0, swiglu_limit=inf,
)  # fmt: skip
def mixture_of_experts(node: Node) -> Made:
    """MatMul-1 by all experts' weights, shares by SoftMax-8 and TopK-11, ReduceSum-1."""
    _check_known(node, node.get(6) or node.get(7))
    likely = node.add("SoftMax-8", node[1], axis=-1)
    experts = _three(node[2])[0]
    shares, chosen = _best(node, likely, experts)
    if node.flag("normalize_routing_weights"):
        shares = node.add("Divide-1", shares, _whole(node, shares))

    def stack(weights: int) -> Stack:
        values = node.known(weights, "weights of experts")
        kind = node[weights].tensor.type
        return Stack(lambda rows: node.constant(values[:, rows], kind), _bias(node, weights + 1))

    return _mixed(node, stack(2), stack(4), shares, chosen, experts)


@contributed(
    "QMoE", (7, 21), activation_type="relu", k=1, normalize_routing_weights=0,
    use_sparse_mixer=0, activation_alpha=1.0, activation_beta=0.0, swiglu_fusion=0,
    swiglu_limit=inf, expert_weight_bits=4, fc1_expert_weight_bits=0, fc2_expert_weight_bits=0,
    fc3_expert_weight_bits=0, block_size=0, quant_type="int", accuracy_level=0,
    weights_prepacked=-1,
)  # fmt: skip
def quantized_mixture_of_experts(node: Node) -> Made:
    """As MoE with weights of few bits; SoftMax-8 of the best, or shares that are given."""
    _check_known(node, next(filter(None, map(node.get, (8, 9, 10, 13, *range(15, 21)))), None))
    kind = node.text("quant_type", "int")
    if kind != "int" or node.integer("weights_prepacked", -1) > 0:
        raise UnsupportedError(f'weights of quant_type="{kind}", or prepacked, are not known here')
    experts = _three(node[2])[0]
    best, chosen = _best(node, node[1], experts)
    if node.get(14) is None:
        shares = node.add("SoftMax-8", best, axis=-1)
    else:
        shares = node.add("GatherElements-6", node[14], chosen, axis=1)
        nothing = node.like(0, shares)
        if node.flag("normalize_routing_weights"):
            whole = _whole(node, shares)
            shares = node.add("Divide-1", shares, whole)
            shares = node.add("Select-1", node.add("Equal-1", whole, nothing), nothing, shares)
        # As ONNX Runtime has it: experts of no share, or of one below nothing, are not asked.
        shares = node.add("Select-1", node.add("Greater-1", shares, nothing), shares, nothing)

    def stack(number: int) -> Stack:
        first = 3 * number - 1
        usual = node.integer("expert_weight_bits")
        bits = node.integer(f"fc{number}_expert_weight_bits") or usual
        return Stack(_few_bits(node, first, 10 + number, bits), _bias(node, first + 2))

    return _mixed(node, stack(1), stack(2), shares, chosen, experts)


def _check_known(node: Node, third: Output | None) -> None:
    """Refuse what has no answer of ONNX Runtime's to be held against."""
    if third is not None:
        raise UnsupportedError("a third stack of weights, or scales of numbers, is not known here")
    if node.flag("use_sparse_mixer"):
        raise UnsupportedError("use_sparse_mixer is not known to this importer")
    kind, fused = node.text("activation_type"), node.integer("swiglu_fusion")
    if kind not in (*_PLAIN, "swiglu") or (kind == "swiglu" and fused != 1):
        raise UnsupportedError(f'activation_type="{kind}" with swiglu_fusion={fused} is not known')


def _best(node: Node, likely: Output, experts: int) -> tuple[Output, Output]:
    """The highest numbers of each row, and which ones they are: of equal ones the last."""
    count = node.integer("k")
    shape = likely.tensor.shape
    try:
        shape.merge(Shape([ANY, experts]))
    except IRError:
        raise IRError(
            f"the router (input 1) gives [{shape}], for weights of {experts} experts it is "
            f"[rows,{experts}]"
        ) from None
    if not 1 <= count <= experts:
        raise IRError(f"of {experts} experts {count} cannot be chosen")
    turned = node.cut(likely, -1, np.iinfo(np.int32).min, 1, -1)
    values, places = node.add(
        "TopK-11", turned, node.ints64(count), axis=-1, mode="max", sort="value",
        index_element_type="i64", stable=True,
    )  # fmt: skip
    return values, node.add("Subtract-1", node.ints64(experts - 1), places)


def _whole(node: Node, shares: Output) -> Output:
    """What the shares of each row add up to."""
    return node.add("ReduceSum-1", shares, node.ints64([1]), keep_dims=True)


def _mixed(
    node: Node, into: Stack, back: Stack, shares: Output, chosen: Output, experts: int
) -> Output:
    """What the chosen experts make of each row, by their shares."""
    x = node[0]
    shape, wide = node.shape(x), node.size(x, -1)
    rows = node.reshape(x, node.vector([node.ints64([1, -1]), wide]))
    rows = node.add("Tile-1", rows, node.ints64([experts, 1, 1]))
    found = back.of(node, _activated(node, into, rows))
    nothing = node.add("Broadcast-3", node.like(0, shares), node.shape(node[1]))
    each = node.add(
        "ScatterElementsUpdate-12", nothing, chosen, shares, node.ints64(1), reduction="none"
    )
    each = node.unsqueeze(node.transpose(each, [1, 0]), [2])
    each = node.convert(each, found.tensor.type)
    nothing = node.like(0, found)
    weighed = node.add("Multiply-1", found, each)
    # Of an expert that is not asked, what is not finite does not count either.
    weighed = node.add("Select-1", node.add("Equal-1", each, nothing), nothing, weighed)
    whole = node.add("ReduceSum-1", weighed, node.ints64([0]), keep_dims=False)
    return node.reshape(whole, shape)


_PLAIN: dict[str, Callable[[Node, Output], Output]] = {
    "relu": lambda node, x: node.add("ReLU-1", x),
    "gelu": lambda node, x: node.add("Gelu-7", x, approximation_mode="TANH"),
    "silu": lambda node, x: node.add("Swish-4", x),
    "identity": lambda node, x: x,
}


def _activated(node: Node, into: Stack, x: Output) -> Output:
    """The first step of all experts, and its activation."""
    plain = _PLAIN.get(node.text("activation_type"))
    if plain is not None:
        return plain(node, into.of(node, x))
    # Of each pair of rows the first opens the gate for what the second makes.
    gate, value = into.of(node, x, slice(0, None, 2)), into.of(node, x, slice(1, None, 2))
    most = node.real("swiglu_limit")
    if isfinite(most):
        gate = node.add("Minimum-1", gate, node.like(most, gate))
        value = node.add("Clamp-1", value, min=-most, max=most)
    gate = node.add("Swish-4", gate, node.like(node.real("activation_alpha"), gate))
    beta = node.real("activation_beta")
    value = plus(node, value, node.like(beta, value) if beta else None)
    return node.add("Multiply-1", gate, value)


def _bias(node: Node, index: int) -> Callable[[Rows], Output] | None:
    """What is added behind some rows, the same to each token."""
    if node.get(index) is None:
        return None
    values, kind = node.known(index, "biases of experts"), node[index].tensor.type
    return lambda rows: node.constant(values[:, None, rows], kind)


def _few_bits(node: Node, first: int, zeros: int, bits: int) -> Callable[[Rows], Output]:
    """Weights of an input, with their scales behind it and their zero points elsewhere."""
    experts, made, wide = _three(node[first])
    taken = wide * 8 // bits if bits in (2, 4, 8) else 0
    block = node.integer("block_size") and block_within(node.integer("block_size"), taken)
    if not taken or (block and taken % block):
        raise UnsupportedError(f"{wide} bytes of {bits} bits in blocks of {block} are not known")
    sizes = (experts, made, taken // block) if block else (experts, made)
    levels = codes(node, first, bits, (experts, made, taken))
    scales = node.known(first + 1, "scales of experts")
    if scales.shape != sizes:
        raise IRError(f"scales are {scales.shape}, of these weights they are {sizes}")
    zero = np.full(1, 1 << (bits - 1))
    if node.get(zeros) is not None:
        zero = codes(node, zeros, bits, sizes)
    kind = node[first + 1].tensor.type

    def weights(rows: Rows) -> Output:
        part = weights_of(node, levels[:, rows], bits)
        scale = node.constant(_of_blocks(scales, rows), kind)
        points = weights_of(node, _of_blocks(zero, rows), bits)
        return scaled_in_blocks(node, part, scale, points, 2, block or taken)

    return weights


def _three(x: Output) -> tuple[int, int, int]:
    """The shape of stacked matrices."""
    shape = static(x.tensor.shape, "the weights of experts")
    if len(shape) != 3:
        raise IRError(f"weights of experts have 3 axes, these have {len(shape)}")
    experts, made, wide = shape
    return experts, made, wide


def _of_blocks(values: Array, rows: Rows) -> Array:
    """Scales or zero points of some rows: one for each block, for each row, or for all."""
    if values.ndim == 1:
        return values.reshape(1, 1, 1)
    some = values[:, rows]
    return some if some.ndim == 3 else some[..., None]
