"""Fourier transforms, boxes that are kept, and tensors made of nothing."""

from __future__ import annotations

from math import isfinite

import numpy as np

from ....schemas import ElementType, IRError, UnsupportedError
from ...document import Output
from .node import Made, Node, converts, normal
from .pooling import scalar
from .tensors import kind_of


@converts("DFT")
def dft(node: Node) -> Made:
    """DFT-7 or IDFT-7; RDFT-9 or IRDFT-9 where one side is enough."""
    x, rank = node[0], node.rank()
    if node.version >= 20:
        given = node.single(2, "axis")
        if node.get(2) is not None and given is None:
            # Counted from the front, as the last axis may be taken away.
            axis = node.reshape(node.convert(node[2], "i64"), [1])
            axes = node.add("FloorMod-1", axis, node.ints64(rank))
        else:
            axes = node.ints64([normal(-2 if given is None else int(given), rank)])
    else:
        axes = node.ints64([normal(node.integer("axis", 1), rank)])
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    if onesided and axes.tensor.value is None:
        raise UnsupportedError("onesided, and axis (input 2) is not constant: OpenVINO crashes")
    last = x.tensor.shape[-1]
    if last not in (1, 2):
        raise IRError(f"the last axis has {last} elements, 1 (real) or 2 (complex) are needed")
    length = []
    if node.get(1) is not None:
        length = [node.reshape(node.convert(node[1], "i64"), [1])]
    if onesided and not inverse:
        if last != 1:
            raise IRError("onesided needs a real input")
        return node.add("RDFT-9", node.squeeze(x, [rank - 1]), axes, *length)
    if last == 1:
        zeros = node.add("Subtract-1", x, x)
        x = node.add("Concat-1", x, zeros, axis=rank - 1)
    if onesided:
        return node.unsqueeze(node.add("IRDFT-9", x, axes, *length), [rank - 1])
    return node.add("IDFT-7" if inverse else "DFT-7", x, axes, *length)


@converts("STFT")
def stft(node: Node) -> Made:
    """STFT-15 of a real signal, one side."""
    x, step, window, length = node[0], node[1], node.get(2), node.get(3)
    rank, last = node.rank(), node[0].tensor.shape[-1]
    if rank == 3:
        if last != 1:
            more = "" if isinstance(last, int) else "; 1 would say that the signal is real"
            raise UnsupportedError(
                f"the last axis is {last}, IR transforms frames of real signals (1) only{more}"
            )
        x = node.squeeze(x, [2])
    if not node.flag("onesided", True):
        raise UnsupportedError("onesided=0: IR gives one side")
    if length is None:
        if window is None:
            raise IRError("neither window nor frame_length is given")
        size = node.size(window, 0)
        length = node.squeeze(size, [0]) if isinstance(size, Output) else node.ints64(size)
    if window is None:
        count = node.reshape(node.convert(length, "i64"), [1])
        window = node.add("Broadcast-3", node.like(1, x), count)
    return node.add("STFT-15", x, window, length, step, transpose_frames=False)


@converts("NonMaxSuppression")
def non_max_suppression(node: Node) -> Made:
    """NonMaxSuppression-9."""
    most = scalar(node, node[2]) if node.get(2) is not None else node.ints64(0)
    overlap = scalar(node, node[3]) if node.get(3) is not None else node.constant(np.float32(0))
    least = (
        scalar(node, node[4])
        if node.get(4) is not None
        else node.constant(np.float32(np.finfo(np.float32).min))
    )
    return node.add(
        "NonMaxSuppression-9", node[0], node[1], most, overlap, least,
        box_encoding="center" if node.flag("center_point_box") else "corner",
        sort_result_descending=False, output_type="i64",
    )  # fmt: skip


@converts("EyeLike")
def eye_like(node: Node) -> Made:
    """Eye-9."""
    number = node.integer("dtype", 0)
    kind = kind_of(number) if number else node[0].tensor.type
    rows, columns = (node.size(node[0], axis) for axis in (0, 1))
    inputs = [
        node.squeeze(one, [0]) if isinstance(one, Output) else node.ints64(one)
        for one in (rows, columns)
    ]
    return node.add("Eye-9", *inputs, node.ints64(node.integer("k", 0)), output_type=kind)


@converts("RandomUniform", "RandomUniformLike")
def random_uniform(node: Node) -> Made:
    """RandomUniform-8."""
    return uniform(node, node.real("low", 0.0), node.real("high", 1.0), random_kind(node))


def random_kind(node: Node) -> ElementType:
    """The type of random numbers."""
    number = node.integer("dtype", 0)
    return kind_of(number) if number else (
        node[0].tensor.type if node.inputs else ElementType.F32
    )  # fmt: skip


def uniform(node: Node, low: float, high: float, kind: ElementType, more: int = 0) -> Output:
    """Numbers between two, in the shape that the node says."""
    shape = node.shape(node[0]) if node.inputs else node.ints64(node.integers("shape"))
    limits = [node.constant(np.asarray(value).astype(kind.dtype), kind) for value in (low, high)]
    given = node.real("seed", 0.0)
    if not isfinite(given):
        raise IRError(f"seed is {given}, a finite number is needed")
    seed = int(abs(given)) + more
    return node.add(
        "RandomUniform-8", shape, *limits, output_type=kind, op_seed=seed, global_seed=0
    )


@converts("RandomNormal", "RandomNormalLike")
def random_normal(node: Node) -> Made:
    """Two RandomUniform-8, and from them the normal distribution (Box and Muller)."""
    kind = random_kind(node)
    one = uniform(node, float(np.finfo(np.float32).tiny), 1.0, ElementType.F32, 1)
    other = uniform(node, 0.0, float(2 * np.pi), ElementType.F32, 2)
    away = node.add("Sqrt-1", node.add("Multiply-1", node.add("Log-1", one), node.like(-2, one)))
    made = node.add("Multiply-1", away, node.add("Cos-1", other))
    made = node.add("Multiply-1", made, node.like(node.real("scale", 1.0), made))
    made = node.add("Add-1", made, node.like(node.real("mean", 0.0), made))
    return node.convert(made, kind)
