"""Sample calls of recurrent cells and sequences."""

from __future__ import annotations

import random

import numpy as np
from oracle import Call
from vinoir.schemas import Array

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
CELLS = ("RNNCellV3", "GRUCellV3", "LSTMCellV1", "LSTMCellV4")
SEQUENCES = ("RNNSequenceV5", "GRUSequenceV5", "LSTMSequenceV5")


def draw(op: str, rng: random.Random) -> Call:
    kind = next(name for name in GATES if op.startswith(name))
    gates, states = GATES[kind], 2 if kind == "LSTM" else 1
    numbers = np.random.default_rng(rng.randint(0, 9999))
    batch, size, hidden = rng.randint(1, 3), rng.randint(1, 5), rng.randint(1, 6)

    half = "f2" if op in CELLS and rng.random() < 0.2 else "f4"
    rough = 1e-4 if half == "f4" else 1e-2

    def make(*shape: int) -> Array:
        return numbers.normal(size=shape).astype(half)

    data = {"hidden_size": str(hidden)}
    if rng.random() < 0.4:
        data["clip"] = f"{rng.choice([0.3, 1.5]):g}"
    # OpenVINO cannot run sequences whose activations are left out.
    if rng.random() < 0.5 or op in SEQUENCES:
        usual = {"RNN": 1, "GRU": 2, "LSTM": 3}[kind]
        names = [rng.choice(["tanh", "sigmoid", "relu"]) for _ in range(usual)]
        data["activations"] = ", ".join(names)
    bias = gates
    if kind == "GRU":
        data["linear_before_reset"] = rng.choice(["true", "false"])
        bias += data["linear_before_reset"] == "true"
    if op in CELLS:
        carried = [make(batch, hidden) for _ in range(states)]
        weights = [make(gates * hidden, size), make(gates * hidden, hidden), make(bias * hidden)]
        if op == "LSTMCellV1":
            # The CPU takes any order for this one, and couples no gates.
            data["weights_format"] = "fico"
        return Call(op, [make(batch, size), *carried, *weights], data, rtol=rough, atol=rough)
    data["direction"] = rng.choice(["forward", "reverse", "bidirectional"])
    ways, steps = 2 if data["direction"] == "bidirectional" else 1, rng.randint(1, 5)
    carried = [make(batch, ways, hidden) for _ in range(states)]
    lengths = np.array([rng.randint(1, steps) for _ in range(batch)], rng.choice(["i4", "i8"]))
    if rng.random() < 0.3:
        lengths[...] = steps
    weights = [
        make(ways, gates * hidden, size),
        make(ways, gates * hidden, hidden),
        make(ways, bias * hidden),
    ]
    inputs = [make(batch, steps, size), *carried, lengths, *weights]
    const = tuple(range(len(inputs) - 3, len(inputs)))
    return Call(op, inputs, data, const=const, rtol=1e-4, atol=1e-4)


CALLS = [draw(op, random.Random(n)) for op in (*CELLS, *SEQUENCES) for n in range(2)]
