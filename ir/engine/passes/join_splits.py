"""Replace `Concat(a, b, c)`, a and b being all parts of a split x, by `Concat(x, c)`.

Whoever makes x writes it where it is wanted, and who reads a part looks at it there.
"""

from __future__ import annotations

from ..plan import Node, Plan, Value


def join_splits(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if node.kind == "Concat":
            joined = _joined(node)
            if len(joined) < len(node.inputs):
                node.set_inputs(joined)
    plan.prune()


def _joined(node: Node) -> list[Value]:
    """The inputs of a concatenation, with wholes in place of all their parts."""
    axis = node.op.axis % len(node.outputs[0].shape)  # type: ignore[attr-defined]  # Concat has it
    found: list[Value] = []
    values = list(node.inputs)
    while values:
        split = values[0].producer
        count = 0 if split is None else _parts(split, axis)
        if split is not None and count > 1 and values[:count] == split.outputs:
            found.append(split.inputs[0])
            del values[:count]
        else:
            found.append(values.pop(0))
    return found


def _parts(node: Node, axis: int) -> int:
    """Into how many parts a node cuts along an axis; 0 if it does something else."""
    if node.kind not in ("Split", "VariadicSplit") or node.inputs[0].is_fixed:
        return 0
    along = node.inputs[1].constant
    if along is None or int(along.reshape(())) % len(node.inputs[0].shape) != axis:
        return 0
    return len(node.outputs)
