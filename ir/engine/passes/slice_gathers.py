"""Replace `Gather(x, [a, a + s, a + 2s, ...])` by `Reshape(Slice(x, a, s))`: a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant, reshaping


def slice_gathers(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: made for node in plan.nodes if (made := _sliced(node))})


def _sliced(node: Node) -> list[Node]:
    """What takes the place of a node; nothing if its indices are unknown, or not evenly spaced."""
    if node.kind != "Gather" or any(value.constant is None for value in node.inputs[1:]):
        return []
    source, (output,) = node.inputs[0], node.outputs
    indices, axes = (value.array.ravel() for value in node.inputs[1:])
    op: Any = node.op
    if getattr(op, "batch_dims", 0) or source.is_fixed or not source.shape:
        return []
    axis = int(axes[0]) % len(source.shape)
    size = source.shape[axis]
    places = indices.astype(np.int64)
    steps = np.diff(places)
    step = int(steps[0]) if steps.size else 1
    if step < 1 or (steps != step).any() or places[0] < 0 or places[-1] >= size:
        return []
    shape = (*source.shape[:axis], len(places), *source.shape[axis + 1 :])
    whole = shape == output.shape
    cut = output if whole else Value(shape, output.type, element=output.element)
    words = [constant(np.array([n])) for n in (places[0], places[-1] + 1, step, axis)]
    node.detach()
    made = [Node(node.layer, Op.registry["Slice", 8].read({}), [source, *words], [cut])]
    if not whole:
        made.append(reshaping(node.layer, cut, output))
    return made
