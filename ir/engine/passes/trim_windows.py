"""Replace `[0 W 0] * pad(x)` by `W * x`: taps that meet nothing but padding are left out.

Windows with great dilations reach far beyond images that are small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ....layers.windows import reach
from ....schemas import Array
from ....schemas.shapes import number
from ..plan import CONVOLUTIONS, Node, Plan, kept_as_levels, part_of


def trim_windows(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.kind in CONVOLUTIONS and node.inputs[1].is_fixed:
            _trim(node)


def _trim(node: Node) -> None:
    op: Any = node.op
    weights, packed = node.inputs[1], node.inputs[1].packed
    lead = len(weights.shape) - len(op.strides)
    stops = node.outputs[0].shape[2:]
    kept, begins, ends = [], [], []
    for axis, (size, kernel) in enumerate(
        zip(node.inputs[0].shape[2:], weights.shape[lead:], strict=True)
    ):
        stride, dilation = op.strides[axis], op.dilations[axis]
        begin, end = map(number, op.pads(size, axis, reach(kernel, dilation)))
        met = [
            tap for tap in range(kernel)
            if meets(tap * dilation - begin, stride, stops[axis], size)
        ]  # fmt: skip
        if not met:
            return
        begins.append(begin - met[0] * dilation)
        ends.append(end - (kernel - 1 - met[-1]) * dilation)
        kept.append(slice(met[0], met[-1] + 1))
    sizes = tuple(taps.stop - taps.start for taps in kept)
    if sizes == weights.shape[lead:] or min(*begins, *ends) < 0:
        return
    if weights.constant is not None and not np.isfinite(weights.constant).all():
        return
    texts = {
        "strides": op.strides,
        "dilations": op.dilations,
        "pads_begin": begins,
        "pads_end": ends,
    }
    words = {name: ",".join(map(str, numbers)) for name, numbers in texts.items()}
    node.op = Op.registry[node.kind, 1].read({**words, "auto_pad": "explicit"})
    which = "taps", *((taps.start, taps.stop) for taps in kept)

    def choose(array: Array) -> Array:
        return np.ascontiguousarray(array[(slice(None),) * lead + tuple(kept)])

    if packed is None:
        node.replace_input(1, part_of(weights, which, choose(weights.array)))
    else:
        node.replace_input(1, kept_as_levels(packed.chosen(which, choose)))


def meets(start: int, stride: int, stops: int, size: int) -> bool:
    """Whether any of the places ``start + stop * stride`` lies on an axis."""
    first = max(-(start // stride), 0)
    return first < stops and start + first * stride < size
