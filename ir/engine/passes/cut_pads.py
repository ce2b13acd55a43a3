"""Replace `pad(x, -n)` by `Slice(x, n, size - n)`, a view, and put what is added around that."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant


def cut_pads(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: made for node in plan.nodes if (made := _cut(node))})


def _cut(node: Node) -> list[Node]:
    """What takes the place of a node; nothing where it cuts nothing off."""
    if node.kind != "Pad" or node.is_outside:
        return []
    source, begins, ends, *fill = node.inputs
    if source.is_fixed or begins.constant is None or ends.constant is None:
        return []
    around = np.array([begins.array.ravel(), ends.array.ravel()], np.int64)
    sizes = np.array(source.shape, np.int64)
    off, on = np.maximum(-around, 0), np.maximum(around, 0)
    op: Any = node.op
    # Mirrored are those who are there before anything is cut off.
    if not off.any() or (on.any() and op.pad_mode != "constant") or (off.sum(0) > sizes).any():
        return []
    (output,) = node.outputs
    kept = tuple(int(size) for size in sizes - off.sum(0))
    cut = Value(kept, output.type, element=output.element) if on.any() else output
    words = [constant(numbers) for numbers in (off[0], sizes - off[1], np.ones_like(sizes))]
    node.detach()
    made = [Node(node.layer, Op.registry["Slice", 8].read({}), [source, *words], [cut])]
    if cut is not output:
        made.append(Node(node.layer, op, [cut, *map(constant, on), *fill], [output]))
    return made
