"""Inputs and outputs whose memory is the caller's own, so that nothing is copied at the ends.

Some kernels look up the memory of their input and output at each call (``Node.looks_up``).
Forked helpers know the arena only: where they take part in a step, its values stay there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ....schemas import Array
from ..plan import Node, Plan, Value
from .arena import LINE


class Direct:
    """A value in the caller's memory for the length of a call."""

    def __init__(self, value: Value) -> None:
        assert value.store is not None
        self.value, self.room = value, value.store

    def put(self, array: Array) -> None:
        """Bind the value to an array for this call."""
        self.value.store = np.asarray(array, self.value.type, order="C")

    def open(self) -> None:
        """Bind the value to a new array."""
        self.value.store = new_array(self.value)

    def collect(self) -> Array:
        """The array."""
        assert self.value.store is not None
        return self.value.store

    def close(self) -> None:
        """Bind the value to its place in the arena again."""
        self.value.store = self.room


def new_array(value: Value) -> Array:
    """Memory for a value, beginning where its kernel stores soonest."""
    if value.lead is None:
        return np.empty(value.shape, value.type)
    room = np.empty(value.nbytes + LINE, np.uint8)
    place = room.__array_interface__["data"][0]
    return np.ndarray(value.shape, value.type, room, (4 * value.lead - place) % LINE)


def direct_values(
    plan: Plan, spans_of: Mapping[Node, range], stays: Sequence[bool]
) -> dict[Value, Direct]:
    """Inputs and outputs that may lie in the caller's arrays: ``stays`` allows all their steps."""
    inputs = [
        value for value in plan.inputs.values()
        if not value.is_output and value.users and all(node.looks_up for node in value.users)
    ]  # fmt: skip
    outputs = [
        value for value in plan.outputs
        if value.producer is not None and value.producer.looks_up
        and not value.users and sum(value is other for other in plan.outputs) == 1
    ]  # fmt: skip
    found = {}
    for value in (*inputs, *outputs):
        nodes = [*value.users] if value in inputs else [value.producer]
        if all(stays[step] for node in nodes if node is not None for step in spans_of[node]):
            found[value] = Direct(value)
    return found


def unshared_copy(array: Array, others: Iterable[Array], kind: np.dtype | None = None) -> Array:
    """An array; a copy where its type differs, it overlaps others, is strided or read-only."""
    shared = any(np.may_share_memory(array, other) for other in others)
    flags = array.flags
    if shared or kind not in (None, array.dtype) or not (flags.c_contiguous and flags.writeable):
        return np.array(array, kind, order="C")
    return array
