"""Replace `ScatterElementsUpdate(x, Broadcast(i), u, 0)` by `ScatterNDUpdate(x, i, u)`: slices.

Who sums up what edges of a graph, or experts, give to rows writes one index of a row for each of
its elements.
"""

from __future__ import annotations

from typing import Any

from ....layers.base import Op
from ..plan import Node, Plan, Value, claimed_type, reshaping

#: What both operations can do with what is there.
REDUCTIONS = frozenset({"none", "sum", "prod", "min", "max"})


def scatter_slices(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: made for node in plan.nodes if (made := _by_slices(node))})


def _by_slices(node: Node) -> list[Node]:
    """What takes the place of a node; nothing if it does not replace whole slices."""
    if node.kind != "ScatterElementsUpdate" or node.inputs[3].constant is None:
        return []
    data, indices, updates, axis = node.inputs
    op: Any = node.op
    reduction = getattr(op, "reduction", "none")
    if reduction not in REDUCTIONS or not getattr(op, "use_init_val", True):
        return []
    if axis.array.any() or not data.shape or indices.shape[1:] != data.shape[1:]:
        return []
    if updates.shape != indices.shape:
        return []
    source, conversions = indices, []
    while source.producer is not None and claimed_type(type(source.producer.op)) == "Convert":
        conversions.append(source.producer)
        source = source.producer.inputs[0]
    single = _repeated(source)
    if single is None or single.is_outside:
        return []
    count = (indices.shape[0], 1)
    rows = Value(count, single.type, element=single.element)
    made = [reshaping(node.layer, single, rows)]
    for conversion in reversed(conversions):
        output = conversion.outputs[0]
        turned = Value(count, output.type, element=output.element)
        made.append(Node(conversion.layer, conversion.op, [rows], [turned]))
        rows = turned
    output = node.outputs[0]
    node.detach()
    by_rows = Op.registry["ScatterNDUpdate", 15].read({"reduction": reduction})
    return [*made, Node(node.layer, by_rows, [data, rows, updates], [output])]


def _repeated(value: Value) -> Value | None:
    """What a value repeats along all axes but the first."""
    node = value.producer
    if node is None or node.kind not in ("Broadcast", "Tile") or len(node.inputs) != 2:
        return None
    mode: str = getattr(node.op, "rule", "numpy")
    source = node.inputs[0]
    if mode not in ("numpy", "bidirectional") or len(source.shape) != len(value.shape):
        return None
    alone = (value.shape[0], *[1] * (len(value.shape) - 1))
    return source if source.shape == alone else None
