"""Keep `a b`, a convolution of whole floating numbers, exact where those hold all of its sums.

Bytes less a zero point are widened to floating numbers, too, and integers made of the sums, or
levels of what is made of these: what tiles and points leave of 42 may be less, and cut to 41.
"""

from __future__ import annotations

import numpy as np

from ..plan import CONVOLUTIONS, Node, Plan, Value
from .multiply_whole import BYTES, EXACT, JOINED, Limits, joined, terms, weight


def sum_exactly(plan: Plan) -> None:
    """Apply the pass."""
    limits: dict[Value, Limits] = {}
    for node in plan.nodes:
        found = _limits(node, limits)
        if found is not None and max(map(abs, found)) <= EXACT:
            limits[node.outputs[0]] = found
            node.is_whole |= node.kind in CONVOLUTIONS


def _limits(node: Node, limits: dict[Value, Limits]) -> Limits | None:
    """Between which whole numbers a floating output lies, if it is such."""
    if len(node.outputs) != 1 or node.epilogue or node.prologue or node.is_outside:
        return None
    if node.outputs[0].type != np.float32:
        return None
    if node.kind == "Convert":
        return _widened(node.inputs[0])
    if node.kind not in JOINED | CONVOLUTIONS or not any(x in limits for x in node.inputs):
        return None
    found = [_known(value, limits) for value in node.inputs]
    ends = [one for one in found if one is not None]
    if len(ends) != 2 or len(found) != 2:
        return None
    if node.kind in JOINED:
        return joined(node.kind, *ends)
    weights, farthest = node.inputs[1].constant, max(map(abs, ends[0]))
    each = terms(node) * max(map(abs, ends[1])) if weights is None else weight(node, weights)
    return -farthest * each, farthest * each


def _widened(value: Value) -> Limits | None:
    """The limits of bytes."""
    if value.type not in BYTES or value.is_outside or value.packed is not None:
        return None
    ends = np.iinfo(value.type)
    return int(ends.min), int(ends.max)


def _known(value: Value, limits: dict[Value, Limits]) -> Limits | None:
    """Between which whole numbers a value lies."""
    known = value.constant
    if value in limits or known is None:
        return limits.get(value)
    if known.dtype != np.float32 or not known.size or not (known == np.rint(known)).all():
        return None
    low, high = float(known.min()), float(known.max())
    return (int(low), int(high)) if max(-low, high) <= EXACT else None
