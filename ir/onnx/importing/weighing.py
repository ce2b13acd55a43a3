"""Images of other sizes as products by matrices, where IR weighs the neighbours otherwise.

A place ``p`` of the input counts for output ``o`` by ``kernel((p - centre(o)) * w)``, where ``w``
is 1, or below 1 where antialias widens the kernel over the places that an output stands for. The
weights of an output add up to one; what lies outside counts for the edge, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor

import numpy as np

from ....schemas import Array, UnsupportedError
from ...document import Output
from .node import Node

#: Why sizes have to be known.
REASON = "antialias, exclude_outside and half_pixel_symmetric become products by matrices"


def linear(away: Array) -> Array:
    """A tent over the two neighbours."""
    return np.maximum(1 - away, 0)


def cubic(a: float) -> Callable[[Array], Array]:
    """Two cubic parabolas over the four neighbours."""

    def weigh(away: Array) -> Array:
        near = ((a + 2) * away - (a + 3)) * away**2 + 1
        far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
        return np.where(away < 1, near, np.where(away < 2, far, 0))

    return weigh


def centres(word: str, count: int, size: int, scale: float) -> Array:
    """Where in the input each output lies."""
    places = np.arange(count, dtype=np.float64)
    if word == "align_corners":
        return places * (size - 1) / max(count - 1, 1)
    if word == "asymmetric":
        return places / scale
    if word == "pytorch_half_pixel" and count == 1:
        return places
    if word in ("half_pixel", "pytorch_half_pixel"):
        return (places + 0.5) / scale - 0.5
    if word == "half_pixel_symmetric":
        # As half_pixel, its middle that of the input where the size was rounded.
        return size / 2 * (1 - count / (size * scale)) + (places + 0.5) / scale - 0.5
    raise UnsupportedError(f"coordinate_transformation_mode={word}: IR has no such")


def weights(node: Node, size: int, count: int, scale: float) -> Array:
    """What each place of an axis counts for in each output: a row an output."""
    wide = 1 / min(scale, 1) if node.flag("antialias") else 1.0
    if node.text("mode") == "cubic":
        kernel, reach = cubic(node.real("cubic_coeff_a", -0.75)), 2 * wide
    else:
        kernel, reach = linear, wide
    word = node.text("coordinate_transformation_mode", "half_pixel")
    made = np.zeros((count, size))
    for row, centre in enumerate(centres(word, count, size, scale)):
        places = np.arange(floor(centre - reach) + 1, int(np.ceil(centre + reach)))
        counts = kernel(np.abs(places - centre) / wide)
        if node.flag("exclude_outside"):
            counts = np.where((places < 0) | (places >= size), 0, counts)
        np.add.at(made[row], places.clip(0, size - 1), counts / counts.sum())
    return made


def weigh(node: Node, axes: Sequence[int], targets: Sequence[float], by_scale: bool) -> Output:
    """A product by a matrix along each axis that is to have another size."""
    x, rank = node[0], node.rank()
    for axis, target in zip(axes, targets, strict=True):
        size = x.tensor.shape[axis]
        if by_scale and target == 1:
            continue
        if not isinstance(size, int):
            raise UnsupportedError(f"{REASON}: axis {axis} of the input is {size}")
        count = floor(size * target) if by_scale else int(target)
        if count == size and not by_scale:
            continue
        rows = weights(node, size, count, target if by_scale else count / size)
        matrix = node.constant(rows.astype(x.tensor.type.dtype), x.tensor.type)
        if axis == rank - 2:
            x = node.add("MatMul-1", matrix, x)
            continue
        order = [*(i for i in range(rank) if i != axis), axis]
        x = x if axis == rank - 1 else node.transpose(x, order)
        x = node.add("MatMul-1", x, matrix, transpose_b=True)
        x = x if axis == rank - 1 else node.transpose(x, [order.index(i) for i in range(rank)])
    return x
