"""Recurrent cells, and the same along sequences.

Specification pages: RNNCell-3, GRUCell-3, LSTMCell-1 (LSTMCell-4 has none), RNNSequence-5,
GRUSequence-5, LSTMSequence-5.

All are calculated in float32, and rounded to the type of the data at the end of each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Floats, Int, Words
from ..schemas.shapes import compatible, merge
from .base import Op
from .budget import require, turns
from .casting import fractional, narrowed

#: The states that a step leaves, the output first.
States: TypeAlias = tuple[Array, ...]

#: What one step calculates, from its input and the states before.
Step: TypeAlias = Callable[[Array, States], States]


#: The functions that a layer may name.
ACTIVATIONS = ("sigmoid", "tanh", "relu", "hardsigmoid")


class Recurrent(Op):
    """What cells and sequences share: the gates, their activations, the step."""

    hidden_size: Int
    activations: Words = ()
    activations_alpha: Floats = ()
    activations_beta: Floats = ()
    clip: Float = 0.0

    #: Gates in the weights; activations where none are named.
    gates: ClassVar[int] = 1
    usual: ClassVar[tuple[str, ...]] = ("tanh",)

    def check_attributes(self) -> None:
        super().check_attributes()
        for name in self.activations:
            if name.lower() not in ACTIVATIONS:
                known = ", ".join(ACTIVATIONS)
                raise IRError(f'activations: "{name}" is not one of {known}')

    def biases(self) -> int:
        """Gates in the bias."""
        return self.gates

    def activate(self, values: Array, index: int) -> Array:
        """The activation of this number; what comes from the gates is clipped before."""
        names = self.activations or self.usual
        if self.clip > 0 and index < 2:
            values = np.clip(values, -self.clip, self.clip)
        name = names[index].lower() if index < len(names) else "(none)"
        if name == "tanh":
            return np.tanh(values)
        if name == "sigmoid":
            return 1 / (1 + np.exp(-values))
        if name == "relu":
            return np.maximum(values, 0)
        if name == "hardsigmoid":
            slope = self.activations_alpha[index] if index < len(self.activations_alpha) else 0.2
            start = self.activations_beta[index] if index < len(self.activations_beta) else 0.5
            return np.clip(slope * values + start, 0, 1)
        raise IRError(f"activation {index} is {name}, not sigmoid, tanh, relu or hardsigmoid")

    def multiply_adds(self, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
        """Each gate of each step: what comes in, and the state."""
        return prod(output) * self.gates * (inputs[0][-1] + output[-1])

    def taken(self, x: Array, count: int) -> int:
        """Bytes of a step with states of so many numbers: of each gate a few, and wider inputs."""
        wide = max(x.itemsize, 4)
        return wide * (3 * self.gates * count + (x.size if wide > x.itemsize else 0))

    def step(self, w: Array, r: Array, b: Array) -> Step:
        """One step with these weights: input, recurrence, bias."""
        raise NotImplementedError

    def check_weights(self, hidden: Size, axis: int, w: Shape, r: Shape, b: Shape) -> Size:
        """The hidden size, of which all weights tell; ``axis`` is that of their gates."""
        for name, shape, gates in (
            ("W", w, self.gates), ("R", r, self.gates), ("B", b, self.biases()),
        ):  # fmt: skip
            if shape.rank is None:
                continue
            if isinstance(hidden, int) and not compatible(shape[axis], hidden * gates):
                raise IRError(f"{name} has {shape[axis]} rows for {gates} gates of {hidden}")
        if not isinstance(hidden, int):
            for shape in (w, r):
                # The first axis decides, also where it is not that of the gates.
                if shape.rank is not None and isinstance(shape[0], int):
                    hidden = merge(hidden, -(-shape[axis] // self.gates))
        return hidden


def check_width(given: Size, taken: Size) -> None:
    """Refuse weights that do not take as many numbers at each step as X has."""
    if not compatible(given, taken):
        raise IRError(f"X has {given} numbers at each step, W takes {taken}")


class Cell(Recurrent):
    """One step."""

    def outputs(
        self, x: Tensor, states: Sequence[Tensor], w: Tensor, r: Tensor, b: Tensor
    ) -> tuple[Tensor, ...]:
        """Type and shape of the states."""
        given = {"X": (x, 2)} | {f"state {i}": (s, 2) for i, s in enumerate(states)}
        kind = check_inputs(given | {"W": (w, 2), "R": (r, 2), "B": (b, 1)})
        batch, hidden = size(x.shape, 0), size(states[0].shape, 1)
        for state in states:
            batch = merge(batch, size(state.shape, 0))
            hidden = merge(hidden, size(state.shape, 1))
        hidden = merge(hidden, size(r.shape, 1))
        # OpenVINO reads such a layer, and refuses it when it compiles or runs it.
        check_width(size(x.shape, 1), size(w.shape, 1))
        hidden = self.check_weights(hidden, 0, w.shape, r.shape, b.shape)
        return tuple(Tensor(kind, Shape((batch, self.hidden(hidden)))) for _ in states)

    def hidden(self, found: Size) -> Size:
        """The hidden size, as far as the inputs tell it."""
        return found

    def ran(self, x: Array, states: States, w: Array, r: Array, b: Array) -> States:
        """The states after the step."""
        check_width(x.shape[-1], w.shape[-1])
        require(sum(4 * array.size for array in (w, r, b)) + self.taken(x, states[0].size))
        return self.stepped(self.step(*(fractional(array) for array in (w, r, b))), x, states)

    def stepped(self, step: Step, x: Array, states: States) -> States:
        """The states after one step, in the type of the data."""
        require(self.taken(x, states[0].size))
        with np.errstate(over="ignore"):
            after = step(fractional(x), tuple(fractional(state) for state in states))
        return tuple(narrowed(state, x.dtype) for state in after)


class Along(Recurrent):
    """Steps along a sequence, forward, in reverse, or both."""

    direction: Literal["forward", "reverse", "bidirectional"]

    def attributes(self) -> dict[str, str]:
        texts = super().attributes()
        if self.activations or "activations" in self.model_fields_set:
            return texts
        # OpenVINO writes nothing where no functions are named, and does not compile what it wrote.
        return texts | {"activations": ", ".join(self.usual)}

    def outputs(
        self,
        x: Tensor,
        states: Sequence[Tensor],
        lengths: Tensor,
        weights: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        """Type and shape of all outputs of the steps, and of the last states."""
        w, r, b = weights
        given = {"X": (x, 3)} | {f"state {i}": (s, 3) for i, s in enumerate(states)}
        kind = check_inputs(given | {"W": (w, 3), "R": (r, 3), "B": (b, 2)})
        check_inputs({"sequence_lengths": (lengths, 1)})
        batch, hidden = size(x.shape, 0), size(states[0].shape, 2)
        for tensor in (*states, lengths):
            batch = merge(batch, size(tensor.shape, 0))
        for state in states:
            hidden = merge(hidden, size(state.shape, 2))
        hidden = merge(hidden, size(r.shape, 2))
        ways: Size = 2 if self.direction == "bidirectional" else 1
        for state in states:
            ways = merge(ways, size(state.shape, 1))
        for tensor in weights:
            ways = merge(ways, size(tensor.shape, 0))
        check_width(size(x.shape, 2), size(w.shape, 2))
        hidden = self.check_weights(hidden, 1, w.shape, r.shape, b.shape)
        steps = Shape((batch, ways, size(x.shape, 1), hidden))
        last = Tensor(kind, Shape((batch, ways, hidden)))
        return Tensor(kind, steps), *[last] * len(states)

    def ran(
        self, x: Array, states: States, lengths: Array, weights: Sequence[Array]
    ) -> tuple[Array, ...]:
        """All outputs of the steps, and the last states."""
        check_width(x.shape[-1], weights[0].shape[-1])
        # All outputs of each way, both together, and in the type of the data.
        made = states[0].size * x.shape[1] * max(x.itemsize, 4)
        require(3 * made + self.taken(x, states[0].size))
        rows = []
        for way, backward in enumerate(self.backward()):
            step = self.step(*(fractional(array[way]) for array in weights))
            first = tuple(fractional(state[:, way]) for state in states)
            rows.append(walk(step, fractional(x), first, lengths.astype(np.int64), backward))
        stacked = (np.stack(parts, 1) for parts in zip(*rows, strict=True))
        return tuple(narrowed(values, x.dtype) for values in stacked)

    def backward(self) -> tuple[bool, ...]:
        """For each way, whether it goes from the end to the begin."""
        return {"forward": (False,), "reverse": (True,)}.get(self.direction, (False, True))


class RNN(Recurrent):
    """``H = f(X W' + H R' + B)``."""

    def step(self, w: Array, r: Array, b: Array) -> Step:
        def step(x: Array, states: States) -> States:
            return (self.activate(x @ w.T + states[0] @ r.T + b, 0),)

        return step


class GRU(Recurrent):
    """Gates update, reset, hidden; ``linear_before_reset``: reset after the product."""

    linear_before_reset: Bool = False

    gates: ClassVar[int] = 3
    usual: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh")

    def biases(self) -> int:
        return 4 if self.linear_before_reset else 3

    def step(self, w: Array, r: Array, b: Array) -> Step:
        recurrent = np.split(r, 3)
        bias = np.split(b, self.biases())

        def step(x: Array, states: States) -> States:
            (h,) = states
            update, reset, hidden = np.split(x @ w.T, 3, axis=1)
            z = self.activate(update + h @ recurrent[0].T + bias[0], 0)
            a = self.activate(reset + h @ recurrent[1].T + bias[1], 0)
            if self.linear_before_reset:
                hidden = hidden + a * (h @ recurrent[2].T + bias[3]) + bias[2]
            else:
                hidden = hidden + (a * h) @ recurrent[2].T + bias[2]
            return ((1 - z) * self.activate(hidden, 1) + z * h,)

        return step


class LSTM(Recurrent):
    """Gates forget, input, cell, output; the second state is that of the cell."""

    gates: ClassVar[int] = 4
    usual: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh", "tanh")

    def is_coupled(self) -> bool:
        """Whether the input gate is what the forget gate leaves."""
        return False

    def step(self, w: Array, r: Array, b: Array, p: Array | None = None) -> Step:
        """One step; ``p``: what the cell state adds to the gates forget, input, output."""

        def step(x: Array, states: States) -> States:
            h, c = states
            forget, into, cell, out = np.split(x @ w.T + h @ r.T + b, 4, axis=1)
            looks = np.zeros((3, 1), w.dtype) if p is None else p.reshape(3, -1)
            forget = self.activate(forget + looks[0] * c, 0)
            into = 1 - forget if self.is_coupled() else self.activate(into + looks[1] * c, 0)
            c = forget * c + into * self.activate(cell, 1)
            return self.activate(out + looks[2] * c, 0) * self.activate(c, 2), c

        return step


class PlainCell(Cell):
    """One step with a single state."""

    def infer(
        self, x: Tensor, initial_hidden_state: Tensor, w: Tensor, r: Tensor, b: Tensor
    ) -> tuple[Tensor, ...]:
        return self.outputs(x, [initial_hidden_state], w, r, b)

    def run(
        self, x: Array, initial_hidden_state: Array, w: Array, r: Array, b: Array
    ) -> tuple[Array, ...]:
        return self.ran(x, (initial_hidden_state,), w, r, b)


class RNNCellV3(PlainCell, RNN):
    """One step of a plain recurrence."""

    since = 1
    absent = frozenset({2})
    also = frozenset({"experimental", "extension"})

    activations: Words = ("tanh",)


class GRUCellV3(PlainCell, GRU):
    """One step of gated recurrence."""

    also = frozenset({"experimental", "extension"})
    written: ClassVar[tuple[str, ...]] = ("linear_before_reset", "hidden_size")

    activations: Words = ("sigmoid", "tanh")


class LSTMCell(Cell, LSTM):
    """One step of long short-term memory."""

    output_count = (2, 2)

    activations: Words = ("sigmoid", "tanh", "tanh")

    def hidden(self, found: Size) -> Size:
        # Of all, only this one falls back on the attribute.
        return found if isinstance(found, int) else self.hidden_size


class LSTMCellV4(LSTMCell):
    """One step of long short-term memory."""

    def infer(
        self,
        x: Tensor,
        initial_hidden_state: Tensor,
        initial_cell_state: Tensor,
        w: Tensor,
        r: Tensor,
        b: Tensor,
    ) -> tuple[Tensor, ...]:
        return self.outputs(x, [initial_hidden_state, initial_cell_state], w, r, b)

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        w: Array,
        r: Array,
        b: Array,
    ) -> tuple[Array, ...]:
        return self.ran(x, (initial_hidden_state, initial_cell_state), w, r, b)


class LSTMCellV1(LSTMCell):
    """LSTMCell-4 whose gates may stand in another order, and look at the cell's state."""

    until = 3

    input_forget: Bool = False
    weights_format: Literal["fico", "icof", "ifco", "ifoc", "iofc"] = "ifco"

    def is_coupled(self) -> bool:
        return self.input_forget

    def infer(
        self,
        x: Tensor,
        initial_hidden_state: Tensor,
        initial_cell_state: Tensor,
        w: Tensor,
        r: Tensor,
        b: Tensor | None = None,
        p: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        bias = Tensor(w.type, Shape((ANY,))) if b is None else b
        if p is not None:
            check_inputs({"P": (p, 1)})
        return self.outputs(x, [initial_hidden_state, initial_cell_state], w, r, bias)

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        p: Array | None = None,
    ) -> tuple[Array, ...]:
        bias = np.zeros(len(w), w.dtype) if b is None else b
        check_width(x.shape[-1], w.shape[-1])
        # Wider weights, and in another order.
        each = 8 if w.itemsize < 4 else w.itemsize
        require(each * (w.size + r.size + bias.size) + self.taken(x, initial_hidden_state.size))
        weights = [self.ordered(fractional(array)) for array in (w, r, bias)]
        step = self.step(weights[0], weights[1], weights[2], None if p is None else fractional(p))
        return self.stepped(step, x, (initial_hidden_state, initial_cell_state))

    def ordered(self, weights: Array) -> Array:
        """The gates in the order forget, input, cell, output."""
        gates = weights.reshape(4, len(weights) // 4, *weights.shape[1:])
        return gates[[self.weights_format.index(gate) for gate in "fico"]].reshape(weights.shape)


class PlainSequence(Along):
    """Steps with a single state."""

    output_count = (2, 2)

    def infer(
        self, x: Tensor, h_t: Tensor, sequence_lengths: Tensor, w: Tensor, r: Tensor, b: Tensor
    ) -> tuple[Tensor, ...]:
        return self.outputs(x, [h_t], sequence_lengths, [w, r, b])

    def run(
        self, x: Array, h_t: Array, sequence_lengths: Array, w: Array, r: Array, b: Array
    ) -> tuple[Array, ...]:
        return self.ran(x, (h_t,), sequence_lengths, [w, r, b])


class RNNSequenceV5(PlainSequence, RNN):
    """Steps of a plain recurrence."""

    written: ClassVar[tuple[str, ...]] = ("direction",)


class GRUSequenceV5(PlainSequence, GRU):
    """Steps of gated recurrence."""

    written: ClassVar[tuple[str, ...]] = ("direction", "linear_before_reset")


class LSTMSequenceV5(Along, LSTM):
    """Steps of long short-term memory."""

    output_count = (3, 3)
    written: ClassVar[tuple[str, ...]] = ("direction",)

    def infer(
        self,
        x: Tensor,
        initial_hidden_state: Tensor,
        initial_cell_state: Tensor,
        sequence_lengths: Tensor,
        w: Tensor,
        r: Tensor,
        b: Tensor,
    ) -> tuple[Tensor, ...]:
        states = [initial_hidden_state, initial_cell_state]
        return self.outputs(x, states, sequence_lengths, [w, r, b])

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        sequence_lengths: Array,
        w: Array,
        r: Array,
        b: Array,
    ) -> tuple[Array, ...]:
        states = (initial_hidden_state, initial_cell_state)
        return self.ran(x, states, sequence_lengths, [w, r, b])


def walk(
    step: Step, x: Array, states: States, lengths: Array, backward: bool
) -> tuple[Array, ...]:
    """The outputs of all steps, zero beyond each row's length, and the last states."""
    rows, count = x.shape[:2]
    outputs = np.zeros((rows, count, states[0].shape[1]), x.dtype)
    lengths = np.clip(lengths, 0, count)
    for time in turns(range(int(lengths.max(initial=0)))):
        running = np.flatnonzero(time < lengths)
        place = lengths[running] - 1 - time if backward else np.full(len(running), time)
        with np.errstate(over="ignore"):
            after = step(x[running, place], tuple(state[running] for state in states))
        states = tuple(state.copy() for state in states)
        for state, new in zip(states, after, strict=True):
            state[running] = new
        outputs[running, place] = after[0]
    # A row without steps ends with zeros, not with what it began with.
    return outputs, *(np.where(lengths[:, None] > 0, state, 0) for state in states)


def size(shape: Shape, axis: int) -> Size:
    """The size of an axis, as far as it is known."""
    return ANY if shape.rank is None else shape[axis]


def check_inputs(inputs: dict[str, tuple[Tensor, int]]) -> ElementType:
    """The element type that all share; refuses inputs that have not the axes they should."""
    kind = ElementType.DYNAMIC
    for name, (tensor, rank) in inputs.items():
        kind = kind.merge(tensor.type)
        if tensor.rank not in (None, rank):
            raise IRError(f"{name} has {tensor.rank} axes ({tensor.shape}), it should have {rank}")
    return kind
