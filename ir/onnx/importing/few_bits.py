"""Weights that ONNX Runtime's tools keep in few bits, with a scale for each block of them."""

from __future__ import annotations

from math import prod

import numpy as np

from ....schemas import ElementType, IRError, UnsupportedError
from ....schemas.packing import NF4
from ...document import Output
from .contributed import contributed, plus
from .node import Made, Node, normal
from .quantization import scaled_in_blocks

#: Of whole numbers from zero on, by how many bits each takes.
KINDS = {2: ElementType.U2, 4: ElementType.U4, 8: ElementType.U8}
#: What the codes of bitsandbytes' FP4 stand for: a sign, then these.
FP4 = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], np.float32)


@contributed(
    "MatMulNBits", (3, 6), K=int, N=int, bits=4, block_size=int, accuracy_level=0,
    weight_prepacked=0,
)  # fmt: skip
def mat_mul_n_bits(node: Node) -> Made:
    """MatMul-1 by weights of few bits, less a zero point and scaled block by block."""
    taken, made, bits, block = (node.integer(name) for name in ("K", "N", "bits", "block_size"))
    if bits not in KINDS or block < 1 or taken < 1 or made < 1:
        raise UnsupportedError(f"weights of {bits} bits in blocks of {block} are not known here")
    blocks = -(-taken // block)
    levels = codes(node, 1, bits, (made, blocks * block))
    scales = node.reshape(node[2], [made, blocks])
    zero = zero_codes(node, 3, bits, (made, blocks))
    apart = node.get(4) is not None
    if apart:
        groups = _groups(node, taken, blocks * block, blocks)
        weights = _scaled_by(node, weights_of(node, levels.T[:taken], bits), scales, zero, groups)
    else:
        weights = scaled_in_blocks(node, weights_of(node, levels, bits), scales, zero, 1, block)
        weights = weights if blocks * block == taken else node.cut(weights, 0, taken, 1)
    return plus(node, node.add("MatMul-1", node[0], weights, transpose_b=not apart), node.get(5))


def _groups(node: Node, taken: int, padded: int, blocks: int) -> Output:
    """Of each column of the weights, the place of its scale: they need not lie in blocks."""
    zero = node.get(3)
    if zero is not None and not zero.tensor.type.is_real:
        raise UnsupportedError(
            "zero points of few bits (input 3) beside g_idx (input 4): ONNX Runtime's CPU leaves "
            "them out, against what it says of them",
            hint="give zero points as floats, one to each scale",
        )
    given = node.known(4, "g_idx").reshape(-1)
    if given.size not in (taken, padded):
        raise IRError(f"g_idx (input 4) has {given.size} places, the weights have {taken} columns")
    given = given[:taken]
    least, most = int(given.min()), int(given.max())
    if least < 0 or most >= blocks:
        raise IRError(
            f"g_idx (input 4) has places from {least} to {most}, of {blocks} scales to a row"
        )
    return node.ints64([int(place) for place in given])


def _scaled_by(node: Node, levels: Output, scales: Output, zero: Output, groups: Output) -> Output:
    """Numbers of levels whose rows have their scales, and their zero points, at given places."""

    def of_rows(x: Output) -> Output:
        if x.tensor.shape[1] == 1 and not x.tensor.type.is_real:  # one for all
            return x
        return node.add("Gather-8", node.transpose(x, [1, 0]), groups, node.ints64(0))

    # Blocks of one: each level has a scale of its own.
    return scaled_in_blocks(node, levels, of_rows(scales), of_rows(zero), 0, 1)


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
    if kind == "u8" and bits in KINDS:
        # Several lie in a byte, along the last axis.
        shape[-1] *= 8 // bits
        table = weights_of(node, codes(node, 0, bits, tuple(shape)), bits)
        sizes = [-(-size // block) if axis == along else size for axis, size in enumerate(shape)]
        zero = zero_codes(node, 3, bits, tuple(sizes))
    elif kind not in ("u4", "i4"):
        raise UnsupportedError(f"a table of {kind} in {bits} bits is not known here")
    table = scaled_in_blocks(node, table, node[2], zero, along, block)
    return node.add("Gather-8", table, node[1], node.ints64(across))


@contributed(
    "MatMulBnb4", (3, 3), K=int, N=int, block_size=int, quant_type=int, training_mode=0, transB=1
)
def mat_mul_bnb4(node: Node) -> Made:
    """MatMul-1 by weights of 4 bits that a table has numbers for, scaled block by block."""
    taken, made, block = (node.integer(name) for name in ("K", "N", "block_size"))
    kind = node.integer("quant_type")
    if not node.flag("transB"):
        raise UnsupportedError("transB=0: such weights have no order that ONNX Runtime knows")
    if kind not in (0, 1) or block < 1 or taken < 1 or made < 1 or taken * made % block:
        raise UnsupportedError(f"weights {made} x {taken} in blocks of {block} of type {kind}")
    # The upper half of a byte comes first.
    found = _unpacked(node, 1, 4, (taken * made // 2, 2))[:, ::-1].reshape(-1, block)
    real = node[2].tensor.type
    if kind == 1:
        levels = node.constant(NF4[found], ElementType.NF4)
    else:
        levels = node.constant(np.concatenate([FP4, -FP4])[found], real)
    weights = node.add("Multiply-1", node.convert(levels, real), node.reshape(node[2], [-1, 1]))
    weights = node.reshape(weights, [made, taken])
    return node.add("MatMul-1", node[0], weights, transpose_b=True)


def weights_of(node: Node, levels: np.ndarray, bits: int) -> Output:
    """Whole numbers as a constant of so many bits each."""
    kind = KINDS[bits]
    return node.constant(levels.astype(kind.dtype), kind)


def codes(node: Node, index: int, bits: int, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers of a constant whose bytes hold one or several, rows of bytes of their own."""
    wide = -(-shape[-1] * bits // 8) * 8 // bits
    return _unpacked(node, index, bits, (*shape[:-1], wide))[..., : shape[-1]]


def zero_codes(node: Node, index: int, bits: int, shape: tuple[int, ...]) -> Output:
    """The zero points of blocks: an input's, as numbers or in bits, or the middle."""
    zero = node.get(index)
    if zero is None:
        return weights_of(node, np.full([1] * len(shape), 1 << (bits - 1)), bits)
    if zero.tensor.type.is_real:
        return node.reshape(zero, shape)
    return weights_of(node, codes(node, index, bits, shape), bits)


def _unpacked(node: Node, index: int, bits: int, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers of a constant whose bytes hold one or several, the lowest bits first."""
    packed = np.asarray(node.known(index, "packed weights"))
    if packed.dtype != np.uint8 or packed.size * 8 != prod(shape) * bits:
        raise IRError(f"input {index} has {packed.size} bytes of {shape} numbers of {bits} bits")
    flat, most = packed.reshape(-1), (1 << bits) - 1
    if bits < 8:
        flat = np.stack([flat >> first & most for first in range(0, 8, bits)], -1)
    return flat.reshape(shape)
