"""Replace `AdaptivePool(x)` by `Pool(x)`, where its windows are of one size and evenly apart.

So they are wherever an axis is a multiple of the places wanted, and for 13 to 6 and the like. Of a
single place it is a reduction.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ....layers.base import Op
from ....layers.pooling import AdaptiveAvgPoolV8, AdaptiveMaxPoolV8, edge
from ..plan import Node, Plan, constant

#: What pools by windows alike, and what all at once.
KINDS: dict[type[Op], tuple[str, str]] = {
    AdaptiveAvgPoolV8: ("AvgPool", "ReduceMean"),
    AdaptiveMaxPoolV8: ("MaxPool", "ReduceMax"),
}


def pool_evenly(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: [made] for node in plan.nodes if (made := _pooling(node)) is not None})


def _pooling(node: Node) -> Node | None:
    """What takes the place of a node; None if windows are not alike, or places are wanted."""
    kinds = KINDS.get(type(node.op))
    if kinds is None or node.is_outside or node.inputs[0].type != np.float32:
        return None
    data, (output, *indices) = node.inputs[0], node.outputs
    if any(value.users or value.is_output for value in indices):
        return None
    by_windows, at_once = kinds
    if {*output.shape[2:]} == {1}:
        whole = Op.registry[at_once, 1].read({"keep_dims": "true"})
        node.detach()
        axes = constant(np.arange(2, len(data.shape)))
        return Node(node.layer, whole, [data, axes], [output])
    windows = [_even(*sizes) for sizes in zip(data.shape[2:], output.shape[2:], strict=True)]
    steps = [step for step in windows if step is not None]
    if len(steps) < len(windows):
        return None
    kernel, strides = (",".join(map(str, numbers)) for numbers in zip(*steps, strict=True))
    pads = ",".join("0" * len(steps))
    words = {"kernel": kernel, "strides": strides, "pads_begin": pads, "pads_end": pads}
    if by_windows == "AvgPool":
        words["exclude-pad"] = "true"
    op = Op.registry[by_windows, 1].read(words)
    node.detach()
    return Node(node.layer, op, [data], [output])


def _even(size: int, count: int) -> tuple[int, int] | None:
    """Of how many places windows are, and how far apart; None if that is not the same for all."""
    if not size or not count:
        return None
    windows = [edge(place, count, size) for place in range(count)]
    lengths = {window.stop - window.start for window in windows}
    strides = {after.start - before.start for before, after in pairwise(windows)}
    if len(lengths) > 1 or len(strides) > 1 or 0 in strides:  # the same place again and again
        return None
    (length,) = lengths
    return length, max(strides, default=1)
