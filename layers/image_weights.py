"""Weights of resized axes as ONNX has them where IR weighs the neighbours otherwise.

A place ``p`` of the input counts for output ``o`` by ``filter(abs(p - centre(o)) / wide)``, where
``wide`` is 1, or above 1 where the filter goes over the places that an output stands for. The
weights of an output add up to one; what lies outside counts for the edge, or not at all.
"""

from __future__ import annotations

import numpy as np

from ..schemas import Array, IRError
from .budget import pieces, require
from .image import Coordinates, Resized, bicubic, places, tent


def weights_of(
    step: Resized,
    rule: Coordinates,
    *,
    symmetric: bool = False,
    cubic: float | None = None,
    antialias: bool = False,
    exclude_outside: bool = False,
) -> Array:
    """What each place of an axis counts for in each output: a row an output.

    Args:
        step: The axis and its sizes.
        rule: Where outputs lie in the input.
        symmetric: Whether their middle is that of the input, also where a size was rounded.
        cubic: The coefficient of cubic parabolas; else there is a tent.
        antialias: Whether the filter is as wide as an output is in the input.
        exclude_outside: Whether what lies outside counts for nothing.
    """
    require(8 * step.new * step.old)
    made = np.zeros((step.new, step.old), np.float32)
    if not step.new:
        return made
    if not step.old:
        raise IRError(f"axis {step.axis} has no places, {step.new} are to be made of them")
    wide = max(1 / float(step.scale), 1.0) if antialias else 1.0
    reach = wide if cubic is None else 2 * wide
    centres = places(step, rule).astype(np.float64)
    if symmetric:
        centres += step.old / 2 * (1 - step.new / (step.old * float(step.scale)))
    first = np.floor(centres - reach).astype(np.int64) + 1
    numbers = np.ceil(centres + reach).astype(np.int64) - first
    # Rows of as many neighbours are made together; sums of others would be rounded otherwise.
    for number in np.unique(numbers).tolist():
        rows = np.flatnonzero(numbers == number)
        for piece in pieces(len(rows), 8 * number):
            some = rows[piece]
            index = first[some, None] + np.arange(number)
            away = np.abs(index - centres[some, None]) / wide
            counts = tent(away) if cubic is None else bicubic(away, cubic)
            if exclude_outside:
                counts = np.where((index < 0) | (index >= step.old), 0, counts)
            targets = some[:, None] * step.old + index.clip(0, step.old - 1)
            shares = counts / counts.sum(1, keepdims=True)
            np.add.at(made.reshape(-1), targets.reshape(-1), shares.reshape(-1))
    return made
