"""Patterns that are replaced: occurrences that feed each other, and what a snippet keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lxml import etree
from vinoir import ir
from vinoir.ir.document import Graph

FED = np.float32([[-1.5, -0.25, 0.5, 1]])
Values = Callable[[Any], Any]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def chain(kinds: list[str], backwards: bool = False) -> ir.Model:
    """Layers that feed each other; a Multiply has what fed the layer before, too."""
    net = ir.Builder("chain")
    last = now = net.parameter("x", "f32", "1,4")
    for number, kind in enumerate(kinds):
        # Either order: both are the same product.
        pair = [last, now] if number % 4 == 1 else [now, last]
        inputs = pair if kind == "Multiply" else [now]
        last, now = now, net.add(kind, "opset1", inputs, name=f"n{number}")
    net.result(now, name="y")
    text, weights = ir.dumps(net.model())
    if backwards:
        root = etree.fromstring(text)
        layers = root.find("layers")
        assert layers is not None
        layers[:] = layers[::-1]
        text = etree.tostring(root)
    return ir.loads(text, weights)


def node(id: str, type: str, *inputs: str) -> dict[str, Any]:
    return {"id": id, "type": type, "inputs": [*inputs]}


TANH = [node("t", "Tanh", "x")]
GATE = [node("s", "Sigmoid", "x"), node("m", "Multiply", "x", "s")]
GATED = [*GATE, node("e", "Exp", "m")]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("kinds", "edit", "step"),
    [
        (["Tanh"], {"pattern": TANH, "with": [node("r", "Add", "t", "x")]},
         lambda x: np.tanh(x) + x),
        (["Tanh"], {"pattern": TANH, "with": [node("r", "ReLU", "x")]},
         lambda x: np.maximum(x, 0)),
        (["Tanh"], {"pattern": TANH, "with": [], "output": "x"}, lambda x: x),
        (["Tanh", "Tanh"], {"pattern": [*TANH, node("u", "Tanh", "t")],
                            "with": [node("r", "Subtract", "x", "t")]},
         lambda x: x - np.tanh(x)),
        (["Sigmoid", "Multiply"], {"pattern": GATE, "with": [node("n", "Swish", "x")]},
         lambda x: x * sigmoid(x)),
        (["Sigmoid", "Multiply"], {"pattern": GATE, "with": [node("n", "Multiply", "s", "m")]},
         lambda x: x * sigmoid(x) ** 2),
        (["Sigmoid", "Multiply"], {"pattern": GATE, "with": [], "output": "s"}, sigmoid),
        (["Sigmoid", "Multiply", "Exp"], {"pattern": GATED, "with": [node("n", "Tanh", "m")]},
         lambda x: np.tanh(x * sigmoid(x))),
        (["Sigmoid", "Multiply", "Exp"], {"pattern": GATED, "with": [], "output": "m"},
         lambda x: x * sigmoid(x)),
    ],
)  # fmt: skip
def test_occurrences_that_feed_each_other(
    kinds: list[str], edit: dict[str, Any], step: Values, backwards: bool
) -> None:
    model = chain(kinds * 3, backwards)
    made = ir.edit(model, [{"op": "replace", "count": 3, **edit}]).model
    made = ir.loads(*ir.dumps(made))
    assert not ir.check(made).errors
    np.testing.assert_allclose(ir.run(made, [FED])["y"], step(step(step(FED))), rtol=1e-5)


def test_one_constant_of_two_occurrences() -> None:
    net = ir.Builder("shared")
    x, two = net.parameter("x", "f32", "1,4"), net.constant(np.float32([2]), name="two")
    for name in "ab":
        x = net.add("Multiply", "opset1", [x, two], name=name)
    net.result(x, name="y")
    pattern = [{"id": "c", "type": "Const", "value": [2.0]}, node("m", "Multiply", "x", "c")]
    edit = {"op": "replace", "pattern": pattern, "with": [node("n", "Add", "x", "x")], "count": 2}
    made = ir.edit(net.model(), [edit]).model
    assert sorted(layer.type for layer in made) == ["Add", "Add", "Parameter", "Result"]
    np.testing.assert_array_equal(ir.run(made, [FED])["y"], 4 * FED)


def test_a_layer_whose_other_output_is_read_is_not_taken_out() -> None:
    net = ir.Builder("best")
    x, k = net.parameter("x", "f32", "1,4"), net.constant(np.int64(2), name="k")
    top = net.add("TopK", "opset3", [x, k], axis=1, mode="max", sort="value", name="top")
    net.result(top, name="values")
    net.result(top[1], name="places")
    edit = {"op": "replace", "pattern": [node("t", "TopK", "x", "k")],
            "with": [node("n", "ReLU", "x")]}  # fmt: skip
    with pytest.raises(ir.UsageError, match="the pattern is there 0 times"):
        ir.edit(net.model(), [edit])
    edit["with"] = [node("n", "ReLU", "t")]
    made = ir.run(ir.edit(net.model(), [edit]).model, [FED])
    np.testing.assert_array_equal(made["places"], [[3, 2]])
    np.testing.assert_array_equal(made["values"], [[1, 0.5]])


def joined(count: int) -> ir.Model:
    """So many products and sums, one after the other's side, that one layer joins."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", [4])
    rows = []
    for number in range(count):
        product = net.add("Multiply", "opset1", [x, np.full(4, number, np.float32)])
        rows.append(net.add("Add", "opset1", [x, product]))
    net.result(net.add("Concat", "opset1", rows, axis=0), name="y")
    return net.model()


@pytest.mark.parametrize("way", ["replace", "convert"])
def test_of_a_layer_that_joins_thousands_one_input_is_looked_up_at_a_time(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, real = [0], Graph._origin

    def counted(graph: Graph, edge: Any, target: Any) -> Any:
        asked[0] += 1
        return real(graph, edge, target)

    monkeypatch.setattr(Graph, "_origin", counted)

    def looked_up(count: int) -> int:
        model = joined(count)
        asked[0] = 0
        if way == "convert":
            ir.convert(model, target="2021.4")
        else:
            pattern = [{"id": "m", "type": "Multiply", "inputs": ["x", "k"]},
                       {"id": "a", "type": "Add", "inputs": ["x", "m"]}]  # fmt: skip
            new = [{"id": "q", "type": "Maximum", "inputs": ["x", "k"]}]
            edited = ir.edit(model, [{"op": "replace", "pattern": pattern, "with": new}]).model
            assert sum(layer.type == "Maximum" for layer in edited) == count
        return asked[0]

    assert looked_up(200) < 6 * looked_up(50)
