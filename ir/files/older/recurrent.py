"""Recurrent cells and sequences.

Blob ``weights`` [gates * hidden, input + hidden] holds W and R side by side, ``biases``
[gates * hidden] (GRU with linear_before_reset: 4 * hidden). The order of the gates is that of
today: f, i, c, o of LSTM; z, r, h of GRU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....schemas import ElementType, IRError
from ...document import Output
from .layer import NoCounterpartError, Old
from .table import Made, converts

_ATTRIBUTES = (
    "hidden_size clip=0 activations= activation_alpha= activation_beta= activations_alpha= "
    "activations_beta="
)
_GRU = "linear_before_reset=0"
_IDLE = "input_size batch_first"


@dataclass(frozen=True)
class Kind:
    """One of the three kinds of cell."""

    name: str
    gates: int
    states: int
    cell_opset: str
    usual: tuple[str, ...]


RNN = Kind("RNN", 1, 1, "opset3", ("tanh",))
GRU = Kind("GRU", 3, 1, "opset3", ("sigmoid", "tanh"))
LSTM = Kind("LSTM", 4, 2, "opset4", ("sigmoid", "tanh", "tanh"))


@dataclass(frozen=True)
class Weights:
    """W [gates * hidden, input], R [gates * hidden, hidden], B."""

    w: Output
    r: Output
    b: Output


def read_weights(old: Old, kind: Kind, given: int) -> Weights:
    """The blobs apart; ``given``: the input that holds the weights where there is no blob."""
    hidden = old.integer("hidden_size", 1)
    rows, width = kind.gates * hidden, old.dims()[-1]
    both = old.blob("weights", (rows, width + hidden))
    if both is None:
        if len(old) <= given:
            raise IRError(f"{old.layer.type} has no weights", hint="<blobs> needs <weights>")
        both = old.reshape(old.reals(given), (rows, width + hidden))
    axis = old.constant(np.array(1, np.int64))
    parts = old.add("VariadicSplit", "opset1", [both, axis, old.indices(width, hidden)])
    count = rows
    if kind is GRU and old.flag("linear_before_reset"):
        count = 4 * hidden
    bias = old.blob("biases", (count,))
    if bias is None and len(old) > given + 1:
        bias = old.reshape(old.reals(given + 1), (count,))
    if bias is None:
        bias = old.filled(0, ElementType.F32, count)
    return Weights(parts[0], parts[1], bias)


def attributes(old: Old, kind: Kind) -> dict[str, object]:
    """What cells and sequences have in common."""
    found: dict[str, object] = {
        "hidden_size": old.integer("hidden_size", 1),
        "clip": old.real("clip"),
    }
    words = [word.strip().lower() for word in old.text("activations").split(",") if word]
    # OpenVINO does not know its own defaults of the sequences.
    found["activations"] = words or list(kind.usual)
    for name in ("alpha", "beta"):
        for spelt in (f"activation_{name}", f"activations_{name}"):
            numbers = old.numbers(spelt)
            if any(numbers):  # zeros stood for "none"
                found[f"activations_{name}"] = numbers
    if kind is GRU:
        found["linear_before_reset"] = old.flag("linear_before_reset")
    return found


def cell(old: Old, kind: Kind) -> Made:
    """One step: input [N, I] and the states [N, H]."""
    old.dims(0, 2, 2)
    states = [old.reals(1 + i) for i in range(kind.states)]
    parts = read_weights(old, kind, 1 + kind.states)
    inputs = [old.reals(0), *states, parts.w, parts.r, parts.b]
    made = old.add(f"{kind.name}Cell", kind.cell_opset, inputs, attributes(old, kind))
    return list(made)


@converts("RNNCell", _ATTRIBUTES, becomes="RNNCell-3 VariadicSplit-1 Broadcast-1", idle=_IDLE)
def rnn_cell(old: Old) -> Made:
    """Tanh where nothing is said."""
    return cell(old, RNN)


@converts(
    "GRUCell", f"{_ATTRIBUTES} {_GRU}", becomes="GRUCell-3 VariadicSplit-1 Broadcast-1", idle=_IDLE
)
def gru_cell(old: Old) -> Made:
    """sigmoid, tanh where nothing is said."""
    return cell(old, GRU)


@converts(
    "LSTMCell",
    _ATTRIBUTES,
    becomes="LSTMCell-4 VariadicSplit-1 Broadcast-1",
    idle=f"{_IDLE} forget_bias",
)
def lstm_cell(old: Old) -> Made:
    """sigmoid, tanh, tanh where nothing is said."""
    return cell(old, LSTM)


def sequence(old: Old, kind: Kind) -> Made:
    """All steps: input [N, T, I], or [T, N, I] with ``axis`` 0; states [N, H] are optional."""
    dims, axis = old.dims(0, 3, 3), old.integer("axis", 0)
    if axis not in (0, 1):
        raise IRError(f"axis is {axis} for {list(dims)}, the steps lie along 0 or 1")
    directions = {"Forward": "forward", "Backward": "reverse", "Bidirectional": "bidirectional"}
    direction = old.choice("direction", directions)
    if direction == "bidirectional":
        raise NoCounterpartError(
            "a bidirectional sequence was split by the Model Optimizer, no reader ran a whole one"
        )
    hidden = old.integer("hidden_size", 1)
    one = old.reals(0)
    if axis == 0:
        one = old.add("Transpose", "opset1", [one, old.indices(1, 0, 2)])
    states = [
        old.reshape(old.reals(index), (-1, 1, hidden))
        if len(old) > index
        else _zeros(old, one, hidden)
        for index in range(1, 1 + kind.states)
    ]
    if len(old) > 1 + kind.states:
        lengths = old.flat(1 + kind.states)
    else:
        inputs = [old.sizes(one, 1), old.sizes(one, 0)]
        lengths = old.add("Broadcast", "opset1", inputs, mode="numpy")
    parts = read_weights(old, kind, 2 + kind.states)
    lead = old.constant(np.array([0], np.int64))
    weights = [
        old.add("Unsqueeze", "opset1", [part, lead]) for part in (parts.w, parts.r, parts.b)
    ]
    made = old.add(
        f"{kind.name}Sequence", "opset5", [one, *states, lengths, *weights],
        {"direction": direction, **attributes(old, kind)},
    )  # fmt: skip
    outputs = [old.reshape(made[0], (0, -1, hidden), copied=True)]
    if axis == 0:
        outputs = [old.add("Transpose", "opset1", [outputs[0], old.indices(1, 0, 2)])]
    outputs += [old.reshape(made[1 + i], (-1, hidden)) for i in range(kind.states)]
    return outputs


def _zeros(old: Old, one: Output, hidden: int) -> Output:
    """A state to begin with, [N, 1, H], for an input [N, T, I]."""
    sizes = old.add("Concat", "opset1", [old.sizes(one, 0), old.indices(1, hidden)], axis=0)
    return old.add("Broadcast", "opset1", [old.constant(0.0), sizes], mode="numpy")


_SEQUENCE = f"{_ATTRIBUTES} direction=Forward axis=1"
_AROUND = (
    "VariadicSplit-1 Broadcast-1 Transpose-1 Unsqueeze-1 Reshape-1 ShapeOf-3 Gather-1 Concat-1"
)


@converts(
    "RNNSequence", _SEQUENCE, idle=_IDLE,
    becomes=f"RNNSequence-5 {_AROUND}",
)  # fmt: skip
def rnn_sequence(old: Old) -> Made:
    """Tanh where nothing is said."""
    return sequence(old, RNN)


@converts(
    "GRUSequence", f"{_SEQUENCE} {_GRU}", idle=_IDLE,
    becomes=f"GRUSequence-5 {_AROUND}",
)  # fmt: skip
def gru_sequence(old: Old) -> Made:
    """sigmoid, tanh where nothing is said."""
    return sequence(old, GRU)


@converts(
    "LSTMSequence", _SEQUENCE, idle=_IDLE,
    becomes=f"LSTMSequence-5 {_AROUND}",
)  # fmt: skip
def lstm_sequence(old: Old) -> Made:
    """sigmoid, tanh, tanh where nothing is said."""
    return sequence(old, LSTM)


@converts(
    "RNN", f"{_SEQUENCE.replace('hidden_size', 'hidden_size?')} {_GRU} cell_type", idle=_IDLE,
    becomes=f"RNNSequence-5 GRUSequence-5 LSTMSequence-5 {_AROUND}",
)  # fmt: skip
def rnn(old: Old) -> Made:
    """The sequences of v3 and v4, all under one name."""
    kinds = {kind.name: kind for kind in (RNN, GRU, LSTM)}
    kind = kinds[old.choice("cell_type", {name: name for name in kinds})]
    if not old.has("hidden_size"):
        hidden = old.declared(least=1)[-1]
        old.layer.attributes["hidden_size"] = str(hidden)
        old.remark(f"hidden_size {hidden} is that of the declared output")
    return sequence(old, kind)
