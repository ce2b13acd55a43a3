"""FakeQuantize, prepared: a few passes over what is in the nearest cache.

What is clipped to the limits first needs no choice after: at the lower limit stands level 0, at
the upper one the last; NaN goes to one of them in a pass of its own. The level itself is computed
as the definition does, so that halves fall to the same side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..workers import Part, sequence, spans
from .activations import NEAR


def limits_apart(limits: Sequence[Array | None]) -> bool:
    """Whether each lower limit is below its upper one, and all are numbers."""
    known = [limit for limit in limits if limit is not None]
    finite = all(bool(np.isfinite(limit).all()) for limit in known)
    return finite and len(known) == 4 and bool((known[0] < known[1]).all())


def quantized(op: Op, block: Array, limits: Sequence[Array], target: Array) -> Part:
    """A block rounded to levels; each limit is one number, or as large as the block."""
    axis = next((axis for axis, size in enumerate(block.shape) if size > 1), 0)
    lead = (slice(None),) * axis
    parts: list[Part] = []
    for run in spans(block.shape[axis], -(-block.size // NEAR)):
        some = (*lead, slice(*run))
        each = [limit[some] if limit.ndim else limit for limit in limits]
        parts.append(_quantized(op, block[some], each, target[some]))
    return sequence(parts)


def _quantized(op: Any, block: Array, limits: Sequence[Array], target: Array) -> Part:
    low, high, first, last = limits
    steps = np.float32(op.levels - 1)
    scale, gain = steps / (high - low), (last - first) / steps
    shift = -low * scale
    # Where they are not, numbers are levels themselves.
    scaled, shifted, lifted = bool((scale != 1).any()), bool(low.any()), bool(first.any())

    settle: Any = np.fmax if op.levels > 2 else np.fmin
    end = low if op.levels > 2 else high

    def run() -> None:
        np.clip(block, low, high, out=target)
        settle(target, end, target)
        if scaled:
            np.multiply(target, scale, target)
        if shifted:
            np.add(target, shift, target)
        np.rint(target, target)
        np.multiply(target, gain, target)
        if lifted:
            np.add(target, first, target)

    return run
