"""The examples in docstrings do what they say: each is run, with a small model at hand."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from vinoir import ir

ROOT = Path(__file__).parents[1]
#: What an example needs that is not there everywhere.
NEEDS = {
    "measuring/bench": "openvino", "comparing/divergence": "openvino",
    "onnx/importing/entry": "onnx",
}  # fmt: skip
#: Examples that are no whole: of one line of a table, of a failure, of what calls a predictor.
PARTS = {"files/older/table", "comparing/reduction", "fleet/predictor"}


@cache
def examples() -> dict[str, str]:
    """The examples by file."""
    found = {}
    for path in sorted((ROOT / "ir").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                block = re.search(r"Example::\n\n((?:    .*\n|\n)+)", text + "\n")
                if block is not None:
                    name = path.relative_to(ROOT / "ir").with_suffix("").as_posix()
                    assert name not in found, "one example for each file"
                    found[name] = dedent(block[1])
    return found


def network() -> ir.Model:
    """A model with the names that examples use."""
    net = ir.Builder("network")
    x = net.parameter("x", "f32", "?,3,?,?")
    weights = np.ones((2, 3, 1, 1), "f4")
    conv = ir.ops.Convolution(x, weights, strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0),
                              dilations=(1, 1), name="conv1")  # fmt: skip
    kept = ir.ops.ReLU(conv, name="dropout")
    logits = ir.ops.ReduceMean(kept, np.int64([2, 3]), keep_dims=False, name="mean")
    net.result(logits, name="logits")
    net.result(ir.ops.SoftMax(logits, axis=1, name="soft"), name="prob")
    return net.model()


def counter() -> ir.Model:
    """A model with the variable ``cache``."""
    net = ir.Builder("counter")
    token = net.parameter("token", "i64", "1")
    kind = {"variable_id": "cache", "variable_type": "i64", "variable_shape": "1"}
    before = net.add("ReadValue", "opset6", [net.constant(np.int64([0]))], **kind)
    after = ir.ops.Add(before, token)
    net.add("Assign", "opset6", [after], variable_id="cache")
    net.result(after, name="total")
    return net.model()


def onnx_model(path: Path) -> None:
    """An ONNX file of one layer."""
    import onnx

    value = onnx.helper.make_tensor_value_info
    ends = [value(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    opset = [onnx.helper.make_opsetid("", 17)]
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def test_examples_are_found() -> None:
    usual = {"__init__", "document/builder", "execution/variables"}
    assert usual | PARTS | NEEDS.keys() <= examples().keys()


@pytest.mark.parametrize("name", sorted(examples().keys() - PARTS))
def test_an_example_runs_as_it_is_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    model = counter() if name == "execution/variables" else network()
    if name == "onnx/importing/entry":
        onnx_model(tmp_path / "model.onnx")
    else:
        for path in ("model.xml", "before.xml", "after.xml", "models/one.xml"):
            ir.write(model, path)
        model = ir.read("model.xml")
    given: dict[str, Any] = {
        "ir": ir, "np": np, "Builder": ir.Builder, "model": model,
        "image": np.ones((1, 3, 8, 8), "f4"),
    }  # fmt: skip
    exec(compile(examples()[name], name, "exec"), given)
