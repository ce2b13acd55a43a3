"""LSTM, GRU and RNN along sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....layers.sequence_recurrent import ACTIVATIONS
from ....schemas import IRError, UnsupportedError
from ...document import Output
from .node import Made, Node, converts

#: Those that ONNX gives an alpha (first) or a beta; what these are unless they are given.
_SLOPES = {"activation_alpha": {"hardsigmoid": 0.2}, "activation_beta": {"hardsigmoid": 0.5}}

#: The order of the gates is written out as numbers.
_MOST_HIDDEN = 1 << 20


class Sequences:
    """What the three share: the layout of inputs, and the directions."""

    def __init__(self, node: Node, gates: int, usual: Sequence[str]) -> None:
        self.node, self.gates = node, gates
        self.direction = node.text("direction", "forward")
        self.count = 2 if self.direction == "bidirectional" else 1
        self.batch_first = node.flag("layout")
        rank = node[0].tensor.rank
        if rank not in (3, None):
            raise IRError(f"X has {rank} axes, 3 are needed")
        self.x = node[0] if self.batch_first else node.transpose(node[0], [1, 0, 2])
        self.hidden = node.integer("hidden_size") or self._hidden()
        for index in (1, 2):
            rows = node[index].tensor.shape
            if rows.rank == 3 and isinstance(rows[1], int) and rows[1] != gates * self.hidden:
                raise IRError(
                    f"{rows[1]} rows of weights, {gates} gates of {self.hidden} need more"
                )
        words = [word.lower() for word in node.attribute("activations", [])]
        each = len(usual)
        if not node.gives("activations"):
            words = list(usual) * self.count
        if len(words) != each * self.count:
            raise IRError(f"{len(words)} activations, {each * self.count} are needed")
        if words[:each] != words[-each:]:
            raise UnsupportedError("the directions have different activations")
        for word in words:
            if word not in ACTIVATIONS:
                raise UnsupportedError(
                    f"activation {word} is not among those of IR: {', '.join(ACTIVATIONS)}"
                )
        self.activations = words[:each]
        self.slopes = {name: self._slopes(name, words) for name in _SLOPES}

    def _hidden(self) -> int:
        size = self.node[2].tensor.shape[-1]
        if not isinstance(size, int):
            raise UnsupportedError("hidden_size is not known")
        return size

    def _slopes(self, name: str, words: Sequence[str]) -> list[float]:
        """A number for each activation of a direction; ONNX gives them to those that take one."""
        taking = _SLOPES[name]
        given = [float(str(np.float32(value))) for value in self.node.attribute(name, [])]
        left = iter(given)
        every = [next(left, taking[word]) if word in taking else 0.0 for word in words]
        each = len(self.activations)
        if every[:each] != every[-each:]:
            raise UnsupportedError(f"the directions have different numbers in {name}")
        return every[:each] if given else []

    def state(self, index: int) -> Output:
        """An initial state: batch, directions, hidden."""
        given = self.node.get(index)
        if given is not None:
            return given if self.batch_first else self.node.transpose(given, [1, 0, 2])
        batch = self.node.size(self.x, 0)
        shape = self.node.vector([batch, self.count, self.hidden])
        return self.node.add("Broadcast-3", self.node.like(0, self.x), shape)

    def lengths(self, index: int) -> Output:
        """The length of each sequence of the batch."""
        given = self.node.get(index)
        if given is not None:
            return given
        length = self.node.size(self.x, 1)
        full = length if isinstance(length, Output) else self.node.ints64([length])
        batch = self.node.vector([self.node.size(self.x, 0)])
        return self.node.add("Broadcast-3", full, batch)

    def gates_in(self, values: Output, order: Sequence[int]) -> Output:
        """Weights with the gates in another order."""
        if list(order) == list(range(self.gates)):
            return values
        if self.hidden > _MOST_HIDDEN:
            raise UnsupportedError(f"hidden_size is {self.hidden}, the most is {_MOST_HIDDEN}")
        rows = np.arange(self.gates * self.hidden).reshape(self.gates, -1)[list(order)].ravel()
        return self.node.add("Gather-8", values, self.node.constant(rows), self.node.ints64(1))

    def bias(self, index: int) -> tuple[Output, Output]:
        """The biases of the input and of the state."""
        size = self.gates * self.hidden
        given = self.node.get(index)
        if given is None:
            shape = self.node.ints64([self.count, size])
            zeros = self.node.add("Broadcast-3", self.node.like(0, self.x), shape)
            return zeros, zeros
        return self.node.cut(given, 0, size, 1), self.node.cut(given, size, 2 * size, 1)

    def attributes(self) -> dict[str, object]:
        """The attributes in IR."""
        made: dict[str, object] = {
            "hidden_size": self.hidden,
            "direction": self.direction,
            "activations": self.activations,
        }
        for name, values in self.slopes.items():
            if values:
                made[name.replace("activation", "activations")] = values
        if self.node.gives("clip"):
            made["clip"] = self.node.real("clip")
        return made

    def outputs(self, made: Output) -> list[Output | None]:
        """Y and the last states, laid out as ONNX has them."""
        order = [0, 2, 1, 3] if self.batch_first else [2, 1, 0, 3]
        states = [made[i] for i in range(1, len(made))]
        if not self.batch_first:
            states = [self.node.transpose(one, [1, 0, 2]) for one in states]
        return [self.node.transpose(made, order), *states]


@converts("LSTM")
def lstm(node: Node) -> Made:
    """LSTMSequence-5."""
    if node.flag("input_forget"):
        raise UnsupportedError("input_forget: IR does not couple the gates")
    peepholes = node.get(7)
    if peepholes is not None and (peepholes.tensor.value is None or peepholes.tensor.value.any()):
        raise UnsupportedError("peepholes (input P): IR has none")
    rows = Sequences(node, 4, ("sigmoid", "tanh", "tanh"))
    order = [2, 0, 3, 1]  # ONNX: input, output, forget, cell; IR: forget, input, cell, output
    of_input, of_state = rows.bias(3)
    bias = rows.gates_in(node.add("Add-1", of_input, of_state), order)
    made = node.add(
        "LSTMSequence-5", rows.x, rows.state(5), rows.state(6), rows.lengths(4),
        rows.gates_in(node[1], order), rows.gates_in(node[2], order), bias, **rows.attributes(),
    )  # fmt: skip
    return rows.outputs(made)


@converts("GRU")
def gru(node: Node) -> Made:
    """GRUSequence-5; the order of the gates is the same."""
    rows = Sequences(node, 3, ("sigmoid", "tanh"))
    of_input, of_state = rows.bias(3)
    apart = node.flag("linear_before_reset")
    if apart:
        # The last gate keeps two biases.
        both, end = 2 * rows.hidden, 3 * rows.hidden
        shared = node.add("Add-1", node.cut(of_input, 0, both, 1), node.cut(of_state, 0, both, 1))
        last = [node.cut(of_input, both, end, 1), node.cut(of_state, both, end, 1)]
        bias = node.add("Concat-1", shared, *last, axis=1)
    else:
        bias = node.add("Add-1", of_input, of_state)
    made = node.add(
        "GRUSequence-5", rows.x, rows.state(5), rows.lengths(4), node[1], node[2], bias,
        **rows.attributes(), linear_before_reset=apart,
    )  # fmt: skip
    return rows.outputs(made)


@converts("RNN")
def rnn(node: Node) -> Made:
    """RNNSequence-5."""
    rows = Sequences(node, 1, ("tanh",))
    of_input, of_state = rows.bias(3)
    bias = node.add("Add-1", of_input, of_state)
    made = node.add(
        "RNNSequence-5", rows.x, rows.state(5), rows.lengths(4), node[1], node[2], bias,
        **rows.attributes(),
    )  # fmt: skip
    return rows.outputs(made)
