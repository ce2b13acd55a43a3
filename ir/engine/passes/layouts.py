"""Keep (N, C, H, W) as (N, H, W, C) in memory where convolutions and poolings work.

Their neighbours follow, so that nothing is turned between them. Where nothing but poolings would
want it, it is not worth the copies at both ends.
"""

from __future__ import annotations

from ..plan import EITHER_WAY, POOLINGS, SPATIAL, Plan, Value, is_incoming_image


def choose_layouts(plan: Plan) -> None:
    """Apply the pass."""
    if not any(node.kind in SPATIAL - POOLINGS for node in plan.nodes):
        return
    spread: list[Value] = []

    def mark(value: Value) -> None:
        if value.last or value.constant is not None or is_incoming_image(value):
            return
        if len(value.shape) in (3, 4, 5):
            value.last = True
            spread.append(value)

    for node in plan.nodes:
        if node.kind in SPATIAL:
            for value in (node.inputs[0], *node.outputs):
                mark(value)
    while spread:
        value = spread.pop()
        for node in [*value.users, *([value.producer] if value.producer else [])]:
            if node.kind in EITHER_WAY or node.epilogue:
                for other in (*node.reads, *node.outputs):
                    if len(other.shape) == len(value.shape):
                        mark(other)
