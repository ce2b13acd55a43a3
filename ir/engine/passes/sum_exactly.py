"""Keep `a b`, a convolution of whole floating numbers, exact where those hold all of its sums.

Bytes less a zero point are widened to floating numbers, too, and integers made of the sums, or
levels of what is made of these: what tiles and points leave of 42 may be less, and cut to 41.
"""

from __future__ import annotations

import numpy as np

from ..plan import CONVOLUTIONS, MOVING, Node, Plan, Value
from .multiply_whole import EXACT, JOINED, Limits, joined, known, most

#: What gives numbers that it is given, or zeros.
_MOVERS = MOVING | {
    "BatchToSpace", "Broadcast", "DepthToSpace", "Gather", "Pad", "ReLU", "SpaceToBatch",
    "SpaceToDepth", "Tile",
}  # fmt: skip


def sum_exactly(plan: Plan) -> None:
    """Apply the pass."""
    limits: dict[Value, Limits] = {}
    for node in plan.nodes:
        moved = _moved(node, limits)
        if moved is not None:
            limits.update(dict.fromkeys(node.outputs, moved))
            continue
        found = _limits(node, limits)
        if found is not None and max(map(abs, found)) <= EXACT:
            limits[node.outputs[0]] = found
            node.is_whole |= node.kind in CONVOLUTIONS


def _moved(node: Node, limits: dict[Value, Limits]) -> Limits | None:
    """Between which whole numbers, or zeros, those lie that are only moved."""
    if node.op.xml_type not in _MOVERS or not node.op.is_standard or node.is_outside:
        return None
    if node.epilogue or node.prologue:
        return None
    given = [value for value in node.inputs if value.type == np.float32]
    ends = [one for one in (known(value, limits) for value in given) if one is not None]
    if not ends or len(ends) < len(given):
        return None
    return min(0, *(low for low, _ in ends)), max(0, *(high for _, high in ends))


def _limits(node: Node, limits: dict[Value, Limits]) -> Limits | None:
    """Between which whole numbers a floating output lies, if it is such."""
    if len(node.outputs) != 1 or node.epilogue or node.prologue or node.is_outside:
        return None
    if node.outputs[0].type != np.float32:
        return None
    if node.kind == "Convert":
        return known(node.inputs[0], limits)
    if node.kind not in JOINED | CONVOLUTIONS or not any(x in limits for x in node.inputs):
        return None
    found = [known(value, limits) for value in node.inputs]
    ends = [one for one in found if one is not None]
    if len(ends) != 2 or len(found) != 2:
        return None
    if node.kind in JOINED:
        return joined(node.kind, *ends)
    farthest = most(node, ends, EXACT)
    return -farthest, farthest
