"""Where OpenVINO does not look at the lengths of sequences, `check` says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
from vinoir import ir

GATES = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}
USUAL = {
    "LSTMSequence": "sigmoid, tanh, tanh", "GRUSequence": "sigmoid, tanh", "RNNSequence": "tanh",
}  # fmt: skip
X = np.random.default_rng(0).standard_normal((3, 5, 2)).astype("f4")
LENGTHS = np.array([5, 2, 3])


def sequences(kind: str, sizes: str, source: str, first: str, **words: Any) -> ir.Model:
    """Sequences whose lengths are given, are those of their number of steps, or pass layers."""
    rng = np.random.default_rng(1)
    ways = 2 if words.get("direction") == "bidirectional" else 1
    net = ir.Builder()
    x = net.parameter("x", "f32", sizes)
    given = net.parameter("lengths", "i64", sizes.split(",")[:1])
    shape = net.add("ShapeOf", "opset3", [x])[0]
    zero = net.constant(np.int64(0))
    batch = net.add("Gather", "opset8", [shape, net.constant(np.array([0])), zero])
    state = net.add("Broadcast", "opset3", [
        net.constant(np.zeros((1, 1, 1), "f4")),
        net.add("Concat", "opset1", [batch, net.constant(np.array([ways, 3]))], axis=0),
    ])  # fmt: skip
    if source == "steps":
        steps = net.add("Gather", "opset8", [shape, net.constant(np.int64(1)), zero])
        lengths = net.add("Broadcast", "opset3", [steps, batch])
        lengths = net.add("Minimum", "opset1", [lengths, lengths])
    else:
        lengths = net.add("Maximum", "opset1", [given, net.constant(np.int64(1))])
    gates, others = GATES[kind], USUAL[kind].split(", ")[1:]
    weights = [
        net.constant(rng.standard_normal(size).astype("f4"))
        for size in ((ways, gates * 3, 2), (ways, gates * 3, 3), (ways, gates * 3))
    ]
    settled = {"direction": "forward", "hidden_size": 3, "clip": 0.0} | words
    made = net.add(
        kind, "opset5", [x, *[state] * (1 + (gates == 4)), lengths, *weights],
        activations=[first, *others], **settled,
    )  # fmt: skip
    net.result(made[0], name="y")
    net.result(given, name="same")
    return net.model()


@pytest.mark.parametrize("kind", list(GATES))
@pytest.mark.parametrize(("sizes", "source", "words"), [
    ("3,5,2", "given", {}),
    ("?,5,2", "given", {}),
    ("3,?,2", "given", {}),
    ("?,?,2", "given", {"direction": "bidirectional"}),
    ("?,?,2", "given", {"direction": "reverse"}),
    ("?,?,2", "given", {"clip": 0.5}),
    ("?,?,2", "given", {"first": "relu"}),
    ("?,?,2", "steps", {}),
])  # fmt: skip
def test_lengths_are_told_where_openvino_does_not_look_at_them(
    kind: str, sizes: str, source: str, words: dict[str, Any]
) -> None:
    model = sequences(kind, sizes, source, **{"first": USUAL[kind].split(", ")[0]} | words)
    wanted = ir.run(model, {"x": X, "lengths": LENGTHS})["y"]
    xml, weights = ir.dumps(model)
    theirs, _ = oracle.ask("values", xml.decode(), weights, [X, LENGTHS])
    told = [finding.code for finding in ir.check(model, ignore="IR515")]
    assert told == ["IR613"] * (not np.allclose(theirs, wanted, atol=1e-5))
