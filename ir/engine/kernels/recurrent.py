"""Recurrence along sequences, prepared: the inputs of many steps are multiplied at once.

Each direction is a lane of work of its own, or several that have some of the samples each. Where
there is one, and its weights are more than stays in a core's cache, the hidden units are cut into
two lanes, which meet after each step; as where the weights of two are more than stays in the cache
that cores share, and one direction is gone through after the other.

A step is a few calls on a few numbers: what counts is how many there are, and that each meets one
run of memory. So gates lie one after the other, each of all samples; states of many steps are
kept until they are put out together; and a sigmoid is half of what one more than the tangent of
half its input is. The halves are in the weights, and in what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....layers.budget import steps
from ....schemas import Array
from ..plan import Node, Value
from ..workers import Part, integer_products, spans
from .activations import HALF, ONE
from .blocks import CACHE, Scratch, sequence
from .in_use import made_once
from .lines import laid_out
from .products import MILLION, columns_in_blocks, cuts, multiplied, width

#: The gates of the file in the order in which their inputs are multiplied; and how many of these,
#: the first, have a sigmoid.
GATES = {"LSTMSequence": (3, 1, 0, 2), "GRUSequence": (0, 1, 2), "RNNSequence": (0,)}
SMOOTH = {"LSTMSequence": 3, "GRUSequence": 2, "RNNSequence": 0}
#: Bytes of weights that are worth being shared in each step, of one direction and of two.
WORTH, WORTH_OF_TWO = 1 << 20, 24 << 20
#: Bytes of what the inputs of many steps are multiplied to; and the most steps of a run, whose
#: calls are all made beforehand.
AHEAD, RUN = 1 << 22, 64
#: How many lanes there are, where each has two samples and so many states at least: of fewer, a
#: step takes as long as of more. Of so many samples each there are as many as can be.
LANES, ENOUGH, MANY_SAMPLES = 2, 256, 16
#: Sums of products are made of so many numbers at a time.
VECTOR = 16
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
    known = names == op.usual or (node.kind == "RNNSequence" and names == ("relu",))
    if not known or op.clip > 0 or any(value.last for value in (x, *node.outputs)):
        return None
    (batch, count, taken), hidden = x.shape, r.shape[-1]
    if (lengths.constant < count).any() or w.shape[-1] != taken:
        return None
    if [value.shape for value in (w, r)] != [
        (len(op.backward()), op.gates * hidden, n) for n in (taken, hidden)
    ]:
        return None
    directions = len(op.backward())
    meeting = (
        4 * prod(r.shape) >= (WORTH if directions == 1 else WORTH_OF_TWO)
        and hidden % 32 == 0
        and count <= MANY
        and (node.kind != "GRUSequence" or op.linear_before_reset)
    )
    scratch.shared.reset()
    units = spans(hidden, 2 if meeting else 1)
    few, most = batch // max(2, ENOUGH // max(hidden, 1)), abreast // directions
    pieces = min(most, max(min(LANES // directions, few), batch // MANY_SAMPLES))
    samples = spans(batch, 1 if meeting else max(1, pieces))
    alone: list[Part] = []
    found: list[list[Part]] = []
    for way, backward in enumerate(op.backward()):
        for some in samples:
            size = some[1] - some[0]
            ahead = min(count, RUN, max(1, AHEAD // (4 * size * r.shape[1])))
            kept = scratch.shared.take(0, ahead + 1, size, hidden)
            lanes = [
                Lane(node, way, slice(*some), slice(*cut), kept, scratch, backward=backward)
                for cut in units
            ]
            if meeting:
                found += _together(lanes)
            else:
                alone += [lane.run for lane in lanes]
    return found or [alone]


def _together(lanes: list[Lane]) -> list[list[Part]]:
    """The steps of lanes that meet after each."""
    found: list[list[Part]] = []
    for first, stop in lanes[0].runs():
        found.append([partial(lane.begin, first, stop) for lane in lanes])
        found += [[partial(lane.step, time) for lane in lanes] for time in range(first, stop)]
    return found


class _Weights:
    """The weights of some hidden units along one direction, as a lane wants them.

    Plans for other lengths share them.
    """

    def __init__(self, node: Node, way: int, units: slice) -> None:
        op: Any = node.op
        *_, self._w, self._r, b = node.inputs
        self._kind, self._way, self._units = node.kind, way, units
        self._order = GATES[node.kind]
        halves = np.ones(len(self._order), np.float32)
        halves[: SMOOTH[node.kind]] = HALF
        self._halves = halves[:, None, None]
        #: Whether what is made of the state alone comes first, and that of inputs alone last.
        self._apart = node.kind == "GRUSequence" and op.linear_before_reset
        self.bias = self._chosen(b, self._order)[:, None] * self._halves
        self.inner = self._chosen(b, (3,))[:, None] * HALF if self._apart else None

    def of_inputs(self) -> Array:
        """The matrix that rows of inputs are multiplied by, gate beside gate."""
        taken = self._w.shape[-1]
        shape = taken, len(self._order) * (self._units.stop - self._units.start)

        def made() -> Array:
            weights = self._chosen(self._w, self._order) * self._halves
            return laid_out(weights.reshape(-1, taken).T)

        return self._shared(self._w, shape, made)

    def of_states(self, batch: int) -> Array:
        """The matrices that so many states are multiplied by, in blocks."""
        wide, hidden = self._units.stop - self._units.start, self._r.shape[-1]
        # As it lies, one matrix is sooner multiplied than some.
        together = wide if batch * wide * hidden <= MILLION else width(wide, hidden, batch)
        shape = len(self._order), wide // together, hidden, together

        def made() -> Array:
            recurrent = self._chosen(self._r, self._order) * self._halves
            if self._kind == "LSTMSequence":
                recurrent *= HALF  # since states are doubled
            elif self._kind == "GRUSequence":
                recurrent[2] *= HALF  # since what resets it is doubled
            if self._apart:
                recurrent = recurrent[[2, 0, 1]]
            return columns_in_blocks(recurrent.swapaxes(1, 2), batch, together)

        return self._shared(self._r, shape, made)

    def _chosen(self, value: Value, gates: tuple[int, ...]) -> Array:
        """The units of some gates."""
        rows = value.array[self._way].reshape(-1, self._r.shape[-1], *value.shape[2:])
        return np.stack([rows[gate][self._units] for gate in gates])

    def _shared(self, value: Value, shape: tuple[int, ...], make: Callable[[], Array]) -> Array:
        assert value.source is not None
        how = self._kind, self._apart, self._way, self._units.start, shape
        return made_once(value.source, how, shape, make)


class Lane:
    """Some hidden units of some samples along one direction."""

    def __init__(
        self,
        node: Node,
        way: int,
        samples: slice,
        units: slice,
        states: Array,
        scratch: Scratch,
        *,
        backward: bool,
    ) -> None:
        op: Any = node.op
        x, *given, _, _, r, _ = node.inputs
        kind, hidden = node.kind, r.shape[-1]
        self._x, self._backward = x.array[samples].swapaxes(0, 1), backward
        self._count, batch, taken = self._x.shape
        self._states, self._ahead, self._units = states, len(states) - 1, units
        wide = units.stop - units.start
        weights = _Weights(node, way, units)
        gated = kind == "GRUSequence"
        #: Of a gated unit the state is reset, or what its last gate makes of that.
        self._resets_state = gated and not op.linear_before_reset
        self._w, self._bias, self._inner = weights.of_inputs(), weights.bias, weights.inner
        #: Whether no unit is below zero, where a tangent is usual.
        self._rectified = [name.lower() for name in op.activations[:1]] == ["relu"]
        #: A long short-term memory keeps its state doubled, which saves to halve it at each step.
        self._doubled = kind == "LSTMSequence"
        count = len(GATES[kind])
        take = scratch.shared.take
        first = int(self._inner is not None)
        self._flat = take(0, self._ahead * batch, len(self._w[0]))
        self._given = take(0, self._ahead, count + first, batch, wide)
        self._inputs = take(0, self._ahead, batch, taken)
        #: The gates, one after the other; behind those of a long short-term memory is its cell.
        self._gates = take(0, count + 1, batch, wide)
        self._rooms = take(0, 2, batch, wide)
        self._begin = [state.array[samples, way, units] for state in given]
        outputs, *last = (value.array[samples, way] for value in node.outputs)
        self._outputs, self._last = outputs[..., units], [value[:, units] for value in last]
        blocks = weights.of_states(batch)
        room = np.empty(CACHE // 4, np.float32) if cuts(hidden, batch) > 1 else None
        library = integer_products()
        quick = library is not None and library.rounds and wide == hidden
        #: What makes sums of products in one pass, where those are of whole vectors.
        self._library = library if quick and batch * wide % VECTOR == 0 else None
        make: dict[str, Callable[[int, list[Part], Array, Array], list[Part]]] = {
            "LSTMSequence": self._long_short, "GRUSequence": self._gated,
            "RNNSequence": self._plain,
        }  # fmt: skip
        met = blocks
        if self._resets_state:
            met, apart = blocks[:2], blocks[2:]
            self._reset = take(0, batch, hidden)
            self._reset_product = _products(self._reset, apart, self._gates[2:3], room)
        self._steps = [
            sequence(
                make[kind](
                    slot,
                    _products(states[slot], met, self._gates[: len(met)], room),
                    states[slot][:, units],
                    states[slot + 1][:, units],
                )
            )
            for slot in range(self._ahead)
        ]

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
        """Multiply the inputs of some steps, which begin where those before ended."""
        state = self._states[0][:, self._units]
        if first:
            np.copyto(state, self._states[self._ahead][:, self._units])
        else:
            np.multiply(self._begin[0], 2 if self._doubled else 1, out=state)
            if self._doubled:
                np.copyto(self._gates[4], self._begin[1])
        inputs, flat = self._inputs[: stop - first], self._flat[: (stop - first) * state.shape[0]]
        x = self._x[::-1] if self._backward else self._x
        np.copyto(inputs, x[first:stop])
        np.matmul(inputs.reshape(-1, inputs.shape[2]), self._w, out=flat)
        made = flat.reshape(*inputs.shape[:2], len(self._bias), -1).swapaxes(1, 2)
        given = self._given[: stop - first]
        if self._inner is not None:
            np.copyto(given[:, :1], self._inner)
            given = given[:, 1:]
        np.add(made, self._bias, out=given)

    def step(self, time: int) -> None:
        """One step: from one of the states to the next; after the last, they are put out."""
        slot = time % self._ahead
        self._steps[slot]()
        if slot < self._ahead - 1 and time < self._count - 1:
            return
        places = slice(time - slot, time + 1)
        if self._backward:
            places = slice(self._count - 1 - time, self._count - time + slot)
        made = self._states[1 : slot + 2, :, self._units].swapaxes(0, 1)
        scale = HALF if self._doubled else ONE
        out = self._outputs[:, places]
        np.multiply(made, scale, out=out[:, ::-1] if self._backward else out)
        if time == self._count - 1:
            np.multiply(made[:, -1], scale, out=self._last[0])
            if self._doubled:
                np.copyto(self._last[1], self._gates[4])

    def _long_short(
        self, slot: int, products: list[Part], before: Array, after: Array
    ) -> list[Part]:
        """``c = f * c + i * g`` and ``o * tanh(c)``: gates lie as o, i, f, g, and then c."""
        gates, cell, both = self._gates, self._gates[4], self._rooms
        halved: list[Part] = [
            partial(np.add, both[0], both[1], cell),
            partial(np.multiply, cell, HALF, cell),
        ]
        if self._library is not None:
            halved = [self._library.summed((0.5, 0.5), both[0], both[1], cell)]
        return [
            *products,
            partial(np.add, gates[:4], self._given[slot], gates[:4]),
            partial(np.tanh, gates[:4], gates[:4]),
            partial(np.add, gates[:3], ONE, gates[:3]),
            partial(np.multiply, gates[1:3], gates[3:5], both),
            *halved,
            partial(np.tanh, cell, both[0]),
            partial(np.multiply, gates[0], both[0], after),
        ]

    def _gated(self, slot: int, products: list[Part], before: Array, after: Array) -> list[Part]:
        """``n + z * (h - n)``, n being ``tanh(x + r * m)``: gates lie as m, z, r, or z, r, m."""
        gates, given, (new, less) = self._gates, self._given[slot], self._rooms
        if self._resets_state:
            smooth, (update, reset, inner) = gates[:2], gates[:3]
            added, last = gates[:2], given[2]
            resetting: list[Part] = [
                partial(np.multiply, before, reset, self._reset),
                *self._reset_product,
                partial(np.add, inner, last, new),
            ]
        else:
            smooth, (inner, update, reset) = gates[1:3], gates[:3]
            added, last = gates[:3], given[3]
            resetting = [
                partial(np.multiply, reset, inner, new),
                partial(np.add, new, last, new),
            ]
        ending: list[Part] = [
            partial(np.multiply, less, update, less),
            partial(np.multiply, less, HALF, less),
            partial(np.add, new, less, after),
        ]
        if self._library is not None:
            if not self._resets_state:
                resetting = [self._library.fused(reset, inner, last, new)]
            ending = [self._library.fused(less, update, new, after, (0.5, 1))]
        return [
            *products,
            partial(np.add, added, given[: len(added)], added),
            partial(np.tanh, smooth, smooth),
            partial(np.add, smooth, ONE, smooth),
            *resetting,
            partial(np.tanh, new, new),
            partial(np.subtract, before, new, less),
            *ending,
        ]

    def _plain(self, slot: int, products: list[Part], before: Array, after: Array) -> list[Part]:
        (gate,), (given,) = self._gates[:1], self._given[slot]
        ending: Part = partial(np.tanh, gate, after)
        if self._rectified:
            ending = partial(np.maximum, gate, np.zeros_like(gate), out=after)
        return [*products, partial(np.add, gate, given, gate), ending]


def _products(state: Array, blocks: Array, out: Array, room: Array | None) -> list[Part]:
    """Parts that multiply a state by the blocks of each gate, into (gates, samples, units)."""
    gates, count, taken, _ = blocks.shape
    rows = len(state)
    if rows == 1 and count == 1:
        return [partial(np.matmul, state, blocks[:, 0], out)]
    windows = np.broadcast_to(state[:, None], (rows, gates, taken))
    return multiplied(windows, blocks, out.swapaxes(0, 1), rows=rows, room=room)
