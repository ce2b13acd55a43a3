"""Images of other sizes as products by matrices, where IR weighs the neighbours otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....layers.image import Resized, by_size
from ....layers.image_sizes import scaled
from ....layers.image_weights import weights_of
from ....schemas import Array, UnsupportedError
from ...document import Output
from .node import Node

#: Why sizes have to be known.
REASON = "antialias, exclude_outside and half_pixel_symmetric become products by matrices"
SYMMETRIC = "half_pixel_symmetric"


def weigh(
    node: Node,
    axes: Sequence[int],
    targets: Sequence[float],
    by_scale: bool,
    scale: np.float32 | None = None,
) -> Output:
    """A product by a matrix along each axis that is to have another size.

    Args:
        node: The node, which says how neighbours are weighed.
        axes: The axes to be resized.
        targets: Their sizes, or scales.
        by_scale: Whether the targets are scales.
        scale: What sizes were made by, before they were rounded; else they say it themselves.
    """
    x, rank = node[0], node.rank()
    kind = x.tensor.type
    if not kind.is_real:
        raise UnsupportedError(f"{REASON}: of {kind} they would have to be rounded")
    for axis, target in zip(axes, targets, strict=True):
        size: Any = x.tensor.shape[axis]
        if by_scale and target == 1:
            continue
        if not isinstance(size, int):
            raise UnsupportedError(f"{REASON}: axis {axis} of the input is {size}")
        if by_scale:
            made: Any = scaled(size, target)
            step = Resized(axis, size, made, np.float32(target))
        elif scale is not None:
            step = Resized(axis, size, int(target), scale)
        else:
            step = by_size(axis, size, int(target))
        if step.new == size and (step.scale == 1 or (scale is None and not by_scale)):
            continue
        matrix = node.constant(_weights(node, step).astype(kind.dtype), kind)
        if axis == rank - 2:
            x = node.add("MatMul-1", matrix, x)
            continue
        order = [*(i for i in range(rank) if i != axis), axis]
        x = x if axis == rank - 1 else node.transpose(x, order)
        x = node.add("MatMul-1", x, matrix, transpose_b=True)
        x = x if axis == rank - 1 else node.transpose(x, [order.index(i) for i in range(rank)])
    return x


def _weights(node: Node, step: Resized) -> Array:
    """What each place of an axis counts for in each output."""
    word: Any = node.text("coordinate_transformation_mode", "half_pixel")
    return weights_of(
        step,
        "half_pixel" if word == SYMMETRIC else word,
        symmetric=word == SYMMETRIC,
        cubic=node.real("cubic_coeff_a", -0.75) if node.text("mode") == "cubic" else None,
        antialias=node.flag("antialias"),
        exclude_outside=node.flag("exclude_outside"),
    )
