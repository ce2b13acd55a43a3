"""Replace `q(a(W x))`, a an activation and q a FakeQuantize to bytes, by `T[s (W x) + t]`.

T has the levels of a and q at so many places; products of integers give the places at once.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ..plan import CONVOLUTIONS, CURVES, Node, Plan, Table, table
from .fold_affine import fold

#: For fewer numbers it takes longer to make a table.
MANY = 1 << 15


def look_up_levels(plan: Plan) -> None:
    """Apply the pass."""
    if not plan.means.rounds:
        return
    for node in plan.nodes:
        found = _table(node)
        if found is None:
            continue
        channels = node.outputs[0].shape[1 if node.kind in CONVOLUTIONS else -1]
        scale, shift = (np.full(channels, float(x)) for x in (found.scale, found.shift))
        if fold(node, scale, shift):
            node.table = found


def _table(node: Node) -> Table | None:
    """The table of an epilogue that is sooner looked up."""
    output = node.outputs[0]
    if node.integers is None or len(node.epilogue) != 2 or output.type != np.int8:
        return None
    (activation, others), (rounding, limits) = node.epilogue
    if activation.xml_type not in CURVES or rounding.xml_type != "FakeQuantize":
        return None
    if prod(output.shape) < MANY or others[0] is not None or limits[0] is not None:
        return None
    given, ends = (
        [value.constant for value in some if value is not None and value.constant is not None]
        for some in (others, limits)
    )
    if len(given) < len(others) - 1 or len(ends) < 4 or any(x.size != 1 for x in given + ends):
        return None
    return table(activation, rounding, given, ends)
