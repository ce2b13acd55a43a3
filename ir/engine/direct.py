"""Inputs and outputs whose memory is the caller's own, so that nothing is copied at the ends.

Some kernels look up the memory of their input and output at each call (``Node.looks_up``).
Forked helpers know the arena only: what they read is copied there, and what they made from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from ...schemas import Array
from .graph import Node, Plan, Value
from .team import Team, spans


class Direct:
    """A value in the caller's memory for the length of a call."""

    def __init__(self, value: Value, steps: list[int], planes: int) -> None:
        assert value.store is not None
        self.value, self.steps = value, steps
        self.room = value.store.reshape(-1)
        #: Where the planes begin that the caller leaves to helpers.
        self.begin = planes * prod(value.shape[2:])

    def put(self, array: Array, team: Team) -> None:
        """Let the value be an array for now."""
        self.value.store = np.ascontiguousarray(array)
        if self._is_shared(team):
            np.copyto(self.room[self.begin :], self.value.store.reshape(-1)[self.begin :])

    def open(self) -> None:
        """Let the value be a new array."""
        self.value.store = np.empty(self.value.shape, self.value.type)

    def collect(self, team: Team) -> Array:
        """The array, with what helpers made of it."""
        assert self.value.store is not None
        if self._is_shared(team):
            np.copyto(self.value.store.reshape(-1)[self.begin :], self.room[self.begin :])
        return self.value.store

    def close(self) -> None:
        """Let the value be in the arena again."""
        self.value.store = self.room.reshape(self.value.shape)

    def _is_shared(self, team: Team) -> bool:
        return self.begin < len(self.room) and not all(team.alone[step] for step in self.steps)


def direct_values(
    plan: Plan, spans_of: Mapping[Node, range], team: Team, workers: int
) -> dict[Value, Direct]:
    """Those inputs and outputs that only such kernels touch; ``workers``: processes."""
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
        steps = [step for node in nodes if node is not None for step in spans_of[node]]
        steps = [step for step in steps if not team.alone[step]]
        planes = value.shape[0] * value.shape[1]
        found[value] = Direct(value, steps, spans(planes, workers)[0][1] if steps else planes)
    return found
