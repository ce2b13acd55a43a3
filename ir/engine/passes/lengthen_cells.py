"""Replace `Cell(x, h)` by `Sequence([x], h)`, of one step: for sequences there are kernels.

Decoders of speech take a step at each call, and so do detectors of voices.
"""

from __future__ import annotations

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant, reshaping

#: The sequence of each version of a cell that computes as it does.
SEQUENCES = {
    ("LSTMCell", 4): "LSTMSequence", ("GRUCell", 3): "GRUSequence", ("RNNCell", 3): "RNNSequence",
}  # fmt: skip


def lengthen_cells(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: made for node in plan.nodes if (made := _sequence(node))})


def _sequence(node: Node) -> list[Node]:
    """What takes the place of a cell; nothing if its weights are not known numbers."""
    kind = SEQUENCES.get((node.op.xml_type, node.op.number))
    if kind is None or node.is_outside or not node.op.is_standard:
        return []
    x, *rest = node.inputs
    states, weights = rest[: len(node.outputs)], rest[len(node.outputs) :]
    if any(value.type != np.float32 for value in (*node.inputs, *node.outputs)):
        return []
    if any(value.constant is None for value in weights):
        return []
    if any(value.packed is not None for value in node.inputs):
        return []
    made: list[Node] = []

    def longer(value: Value) -> Value:
        """Rows with an axis more: of one step, or of one direction."""
        if value.is_fixed:
            return constant(value.array[:, None])
        found = Value((value.shape[0], 1, *value.shape[1:]), value.type)
        made.append(reshaping(node.layer, value, found))
        return found

    batch, hidden = node.outputs[0].shape
    words = node.op.attributes() | {"direction": "forward"}
    given = [longer(x), *map(longer, states), constant(np.ones(batch, np.int32))]
    given += [constant(value.array[None]) for value in weights]
    steps = Value((batch, 1, 1, hidden), x.type)
    last = [Value((batch, 1, hidden), x.type) for _ in states]
    outputs = node.outputs
    node.detach()
    made.append(Node(node.layer, Op.registry[kind, 5].read(words), given, [steps, *last]))
    return made + [
        reshaping(node.layer, value, output) for value, output in zip(last, outputs, strict=True)
    ]
