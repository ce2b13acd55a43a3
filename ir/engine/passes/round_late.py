"""Replace `W q(x)`, q a FakeQuantize, by a product of integers that rounds x itself.

Its input is brought to levels in any case: what q makes of a level, it need not take back. So
where who makes x cannot give bytes (``keep_levels``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan import Node, Plan, Value


def round_late(plan: Plan) -> None:
    """Apply the pass."""
    gone: set[Node] = set()
    for node in plan.nodes:
        last = node.epilogue[-1] if node.epilogue else (node.op, [None, *node.inputs[1:]])
        if last[0].xml_type != "FakeQuantize" or last[1][0] is not None:
            continue
        value = node.outputs[0]
        limits = _limits(last[1][1:])
        if limits is None or value.type != np.float32 or not _is_read_as_levels(value):
            continue
        users = list(value.users)
        if node.epilogue:
            node.set_epilogue(node.epilogue[:-1])
        elif node.inputs[0].producer is None or node.prologue:
            continue  # an image of planes is turned at the same time
        else:
            for user in users:
                user.replace_input(0, node.inputs[0])
            node.detach()
            gone.add(node)
        for user in users:
            assert user.integers is not None
            user.integers = user.integers._replace(limits=limits)
    plan.replace({node: [] for node in gone})


def _is_read_as_levels(value: Value) -> bool:
    """Whether none but products of integers read a value."""
    return (
        not value.is_output
        and bool(value.users)
        and all(
            user.integers is not None and user.inputs[0] is value and count == 1
            for user, count in value.users.items()
        )
    )


def _limits(values: list[Any]) -> tuple[float, float] | None:
    """The input limits of a FakeQuantize that treats all numbers alike."""
    known = [value.constant for value in values if value is not None]
    if any(array is None or array.size != 1 for array in known):
        return None
    low, high = (float(array.reshape(())) for array in known[:2])
    return (low, high) if low < high and np.isfinite([low, high]).all() else None
