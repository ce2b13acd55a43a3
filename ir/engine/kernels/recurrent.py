"""Recurrence along sequences, prepared: the inputs of many steps are multiplied at once.

Each direction is a lane of work of its own. Where there is one, and its weights are more than
stays in a core's cache, the hidden units are cut into two lanes, which meet after each step.
Weights of gates with a sigmoid are kept negative, since that is what its exponential takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....layers.budget import steps
from ....schemas import Array
from ..plan import Node
from ..workers import Part
from .blocks import CACHE, Scratch
from .products import columns_in_blocks, cuts, multiplied

#: Of the gates in the file's order, those with a sigmoid; then the others. These come last.
GATES = {
    "LSTMSequence": ((0, 1, 3), (2,)),
    "GRUSequence": ((0, 1), (2,)),
    "RNNSequence": ((), (0,)),
}
#: Bytes of weights that are worth being shared in each step.
WORTH = 1 << 20
#: Bytes of what the inputs of many steps are multiplied to.
AHEAD = 1 << 24
#: Steps beyond which lanes do not meet: each is an entry of the program.
MANY = 2048


def prepare(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a sequence of float32 numbers; None where there is no kernel for it."""
    op: Any = node.op
    x, *states, lengths, w, r, b = node.inputs
    weights = [value.constant for value in (w, r, b)]
    if any(value.type != np.float32 for value in (*node.outputs, x, *states, w, r, b)):
        return None
    if lengths.constant is None or any(array is None for array in weights):
        return None
    # A name for each gate of each direction: the first direction's stand for all.
    names = tuple(name.lower() for name in op.activations[: len(op.usual)]) or op.usual
    if names != op.usual or op.clip > 0 or any(value.last for value in (x, *node.outputs)):
        return None
    (batch, count, taken), hidden = x.shape, r.shape[-1]
    if (lengths.constant < count).any() or w.shape[-1] != taken:
        return None
    if [value.shape for value in (w, r)] != [
        (len(op.backward()), op.gates * hidden, n) for n in (taken, hidden)
    ]:
        return None
    meeting = (
        len(op.backward()) == 1
        and 4 * prod(r.shape) >= WORTH
        and hidden % 32 == 0
        and count <= MANY
        and (node.kind != "GRUSequence" or op.linear_before_reset)
    )
    scratch.shared.reset()
    cut = ((0, hidden // 2), (hidden // 2, hidden)) if meeting else ((0, hidden),)
    lanes: list[Lane] = []
    for way, backward in enumerate(op.backward()):
        both = [scratch.shared.take(0, batch, hidden) for _ in range(2)]
        lanes += [Lane(node, way, units, both, scratch, backward=backward) for units in cut]
    if not meeting:
        return [[lane.run for lane in lanes]]
    found: list[list[Part]] = []
    for first, stop in lanes[0].runs():
        found.append([partial(lane.begin, first, stop) for lane in lanes])
        found += [[partial(lane.step, time) for lane in lanes] for time in range(first, stop)]
    return found


class Lane:
    """Some hidden units along one direction."""

    def __init__(
        self,
        node: Node,
        way: int,
        units: tuple[int, int],
        both: list[Array],
        scratch: Scratch,
        *,
        backward: bool,
    ) -> None:
        op: Any = node.op
        x, *states, _, w, r, b = node.inputs
        self._x, self._backward = x.array.swapaxes(0, 1), backward
        count, batch, taken = self._x.shape
        first, stop = units
        wide, some = stop - first, slice(first, stop)
        self._some, self._wide, self._count = some, wide, count
        smooth, others = GATES[node.kind]
        self._smooth = len(smooth) * wide

        def chosen(array: Array | None, gates: tuple[int, ...]) -> Array:
            assert array is not None
            rows = array[way].reshape(-1, r.shape[-1], *array.shape[2:])
            return np.concatenate([rows[gate][some] for gate in gates])

        order = (*smooth, *others)
        sign = np.ones(len(order) * wide, np.float32)
        sign[: self._smooth] = -1
        self._w = np.ascontiguousarray((chosen(w.constant, order) * sign[:, None]).T)
        recurrent = chosen(r.constant, order) * sign[:, None]
        self._bias = chosen(b.constant, order) * sign
        #: What is added to the product of the hidden state alone, before that is reset.
        self._inner = None
        if node.kind == "GRUSequence" and op.linear_before_reset:
            self._inner = chosen(b.constant, (3,))
        self._ahead = max(1, AHEAD // (4 * batch * len(sign)))
        self._ahead = min(self._ahead, count)
        take = scratch.shared.take
        self._given = take(0, self._ahead, batch, len(sign))
        self._gates = take(0, batch, len(sign))
        self._inputs = take(0, self._ahead, batch, taken)
        self._rooms = [take(0, batch, wide) for _ in range(2)]
        self._cell = take(0, batch, wide)
        self._begin = [state.array[:, way] for state in states]
        self._hidden = both
        steps_, *last = (value.array[:, way] for value in node.outputs)
        self._outputs, self._last = steps_, last
        turn: dict[str, Callable[[Array, Array, Array], None]] = {
            "LSTMSequence": self._long_short, "GRUSequence": self._gated,
            "RNNSequence": self._plain,
        }  # fmt: skip
        self._turn = turn[node.kind]
        # Of gates that look at the state after it was reset, the last is multiplied apart.
        self._apart = node.kind == "GRUSequence" and not op.linear_before_reset
        cut = self._smooth if self._apart else len(sign)
        self._products = _products(both, recurrent[:cut], self._gates[:, :cut])
        if self._apart:
            self._reset = take(0, batch, wide)
            (self._reset_product,) = _products(
                [self._reset], recurrent[cut:], self._gates[:, cut:]
            )  # fmt: skip

    def runs(self) -> Iterator[tuple[int, int]]:
        """From which step to which inputs are multiplied together."""
        for first in range(0, self._count, self._ahead):
            yield first, min(first + self._ahead, self._count)

    def run(self) -> None:
        """All steps."""
        for first, stop in self.runs():
            self.begin(first, stop)
            for time in steps(range(first, stop)):
                self.step(time)

    def begin(self, first: int, stop: int) -> None:
        """Multiply the inputs of some steps."""
        if not first:
            np.copyto(self._hidden[0][:, self._some], self._begin[0][:, self._some])
            if len(self._begin) > 1:
                np.copyto(self._cell, self._begin[1][:, self._some])
        inputs, given = self._inputs[: stop - first], self._given[: stop - first]
        x = self._x[::-1] if self._backward else self._x
        np.copyto(inputs, x[first:stop])
        flat = given.reshape(-1, given.shape[2])
        np.matmul(inputs.reshape(-1, inputs.shape[2]), self._w, out=flat)
        np.add(flat, self._bias, out=flat)

    def step(self, time: int) -> None:
        """One step: from one of two hidden states to the other."""
        for part in self._products[time % 2]:
            part()
        before = self._hidden[time % 2][:, self._some]
        after = self._hidden[(time + 1) % 2][:, self._some]
        self._turn(self._given[time % self._ahead], before, after)
        place = self._count - 1 - time if self._backward else time
        np.copyto(self._outputs[:, place, self._some], after)
        if time == self._count - 1:
            np.copyto(self._last[0][:, self._some], after)
            if len(self._last) > 1:
                np.copyto(self._last[1][:, self._some], self._cell)

    def _long_short(self, given: Array, before: Array, after: Array) -> None:
        gates, wide, (one, _) = self._gates, self._wide, self._rooms
        np.add(gates, given, gates)
        _sigmoid(gates[:, : 3 * wide])
        forget, into, out, cell = (gates[:, wide * n : wide * (n + 1)] for n in range(4))
        np.tanh(cell, cell)
        np.multiply(self._cell, forget, self._cell)
        np.multiply(into, cell, one)
        np.add(self._cell, one, self._cell)
        np.tanh(self._cell, one)
        np.multiply(out, one, after)

    def _gated(self, given: Array, before: Array, after: Array) -> None:
        gates, wide, (new, kept) = self._gates, self._wide, self._rooms
        smooth = gates[:, : 2 * wide]
        np.add(smooth, given[:, : 2 * wide], smooth)
        _sigmoid(smooth)
        update, reset, inner = (gates[:, wide * n : wide * (n + 1)] for n in range(3))
        if self._inner is not None:
            np.add(inner, self._inner, inner)
            np.multiply(inner, reset, inner)
        else:
            np.multiply(before, reset, self._reset)
            for part in self._reset_product:
                part()
        np.add(inner, given[:, 2 * wide :], new)
        np.tanh(new, new)
        np.multiply(update, before, kept)
        np.subtract(1, update, update)
        np.multiply(new, update, new)
        np.add(new, kept, after)

    def _plain(self, given: Array, before: Array, after: Array) -> None:
        np.add(self._gates, given, self._gates)
        np.tanh(self._gates, after)


def _products(states: Sequence[Array], weights: Array, out: Array) -> list[list[Part]]:
    """For each state, all of one shape: parts that multiply it by weights (outer, inner)."""
    rows, taken = states[0].shape
    if rows == 1:
        matrix = np.ascontiguousarray(weights.T)
        return [[partial(np.matmul, state[0], matrix, out[0])] for state in states]
    blocks = columns_in_blocks(weights.T, rows)
    room = np.empty(CACHE // 4, np.float32) if cuts(taken, rows) > 1 else None
    return [multiplied(state, blocks, out, rows=rows, room=room) for state in states]


def _sigmoid(negative: Array) -> None:
    """``1 / (1 + exp(-x))`` of what is negative already, in its place."""
    np.exp(negative, negative)
    np.add(negative, 1, negative)
    np.reciprocal(negative, negative)
