"""Keys and values of attention, that grow with each call: one step reads, continues, keeps them.

Models write that as ReadValue, a Gather that puts rows in the order of the hypotheses, Concat and
Assign. Between two layers all that was in the caches is gone: four steps of Python take as long
as what they do.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ...layers.base import Kernel
from ...schemas import Array
from ..execution import State, by_definition, read_variable
from .memory import Growing
from .plan import Node, Plan, Value, claimed_type, only_user


class Variables(Protocol):
    """The variables of a call: as they were before it, and what is assigned in it."""

    state: State
    assigned: State


class Cache(NamedTuple):
    """The nodes that a Concat stands for, whose inputs are then what is new, and theirs."""

    read: Node
    order: Node | None
    join: Node
    kept: Node | None

    def kernel(self, variables: Variables, general: Kernel | None) -> Kernel:
        """What carries them out; ``general`` chooses rows where their order is another one."""
        op, join, growing = self.read.op, self.join.op, Growing(self.join.op.axis)  # type: ignore[attr-defined]  # Concat has it
        name: str | None = None if self.kept is None else self.kept.op.variable_id  # type: ignore[attr-defined]  # Assign has it
        order = self.order
        at = None if order is None else order.layer.at

        def joined(new: Array, *others: Array) -> tuple[Array, ...]:
            if at is None or general is None:
                past = read_variable(op, others, variables.state)
            else:
                places, axis, *initial = others
                past = read_variable(op, initial, variables.state)
                if not is_all(places, past):
                    with at():
                        (past,) = general(past, places, axis)
            found = growing.join(past, new)
            if found is None:
                (found,) = by_definition(join, past, new)
            if name is not None:
                variables.assigned[name] = found
            return (found,)

        return joined


def join_caches(plan: Plan) -> dict[Node, Cache]:
    """Let a Concat stand for those around it; of each that does, what they are."""
    found: dict[Node, Cache] = {}
    for node in plan.nodes:
        cache = _cache(node)
        if cache is not None:
            found[node] = cache
    for node, (read, order, _, kept) in found.items():
        given = [] if order is None else order.inputs[1:]
        node.set_inputs([node.inputs[1], *given, *read.inputs])
        if kept is not None:
            kept.detach()
    if found:
        gone = {cache.kept for cache in found.values()}
        plan.replace({node: [] for node in plan.nodes if node in gone})
        plan.prune()
    return found


def _cache(node: Node) -> Cache | None:
    if not node.is_outside or claimed_type(type(node.op)) != "Concat" or len(node.inputs) != 2:
        return None
    past, (made,) = node.inputs[0], node.outputs
    order = _alone(past)
    if order is not None and claimed_type(type(order.op)) == "Gather":
        if len(order.inputs) != 3 or not chooses_rows(order):
            return None
        past = order.inputs[0]
        read = _alone(past)
    else:
        order, read = None, order
    if read is None or read.layer.type != "ReadValue":
        return None
    keepers = [user for user in made.users if user.layer.type == "Assign"]
    kept = keepers[0] if len(keepers) == 1 and not _is_read(keepers[0]) else None
    return Cache(read, order, node, kept)


def _alone(value: Value) -> Node | None:
    """What makes a value that one other alone reads."""
    return value.producer if only_user(value) is not None else None


def _is_read(node: Node) -> bool:
    return any(value.users or value.is_output for value in node.outputs)


def chooses_rows(node: Node) -> bool:
    """Whether a Gather takes slices along the first axis, by a list of indices."""
    op: Any = node.op
    axis = node.inputs[2].constant
    return (
        axis is not None and axis.size == 1 and not axis.any() and not getattr(op, "batch_dims", 0)
    )


def is_all(indices: Array, data: Array) -> bool:
    """Whether indices name every slice in order."""
    count = len(data) if data.ndim else -1
    if indices.shape != (count,):
        return False
    if count == 1:
        return not indices[0]
    return bool((indices == np.arange(count)).all())
