"""What holds for every operation version: a sample call, attributes both ways, rule and kernel."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import calls
import numpy as np
import pytest
from lxml import etree
from oracle import Call, disagreements
from vinoir.layers import Op

SHARED = Path(__file__).parents[2] / "shared"

#: Random calls of each operation; more of them by hand.
CASES = int(os.environ.get("VINOIR_CASES", "3"))

OPS = sorted(f"{kind}V{number}" for kind, number in Op.registry)
#: They have no inputs to be called with; the document's tests have them.
ENDS = {
    "ParameterV1",
    "ConstV1",
    "ResultV1",
    "ReadValueV3",
    "ReadValueV6",
    "AssignV3",
    "AssignV6",
    "IfV8",
    "LoopV5",
    "TensorIteratorV1",
}


def test_every_operation_has_a_sample_call() -> None:
    assert not set(OPS) - {call.op for call in calls.samples()} - ENDS


@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_kernel_gives_what_the_rule_says(call: Call) -> None:
    op = call.make()
    given = call.arrays()
    before = [array.copy() for array in given]
    outputs, inferred = op.run(*given), op.infer_outputs(call.tensors())
    assert len(outputs) == len(inferred)
    for array, tensor in zip(outputs, inferred, strict=True):
        if not op.rows_vary:
            tensor.shape.merge(type(tensor.shape)(array.shape))
        assert array.dtype == tensor.type.dtype
    for array, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, old, "a kernel wrote to its input")


@pytest.mark.parametrize("call", calls.samples(), ids=str)
def test_attributes_come_back_as_they_went(call: Call) -> None:
    op = call.make()
    assert type(op).read(op.attributes()) == op


@pytest.mark.parametrize("name", [op for op in OPS if op not in ENDS])
def test_openvino_agrees_on_samples_and_random_calls(name: str) -> None:
    pytest.importorskip("openvino")
    drawn = (calls.drawn(name, seed) for seed in range(CASES))
    table = [call for call in calls.samples() if call.op == name]
    found = [
        line
        for index, call in enumerate([*table, *filter(None, drawn)])
        for line in disagreements(call, random.Random(index))
    ]
    assert not found, "\n".join(found)


def witnesses() -> list[Path]:
    return sorted((SHARED / "witness").glob("*.xml"))


@pytest.mark.parametrize("path", witnesses(), ids=lambda path: path.stem)
def test_attributes_of_written_files_print_back_identically(path: Path) -> None:
    for layer in etree.parse(path).iter("layer"):
        op = Op.find(layer.get("type"), layer.get("version"))
        if op is not None:
            data = layer.find("data")
            written = {} if data is None else dict(data.attrib)
            assert list(op.read(written).attributes().items()) == list(written.items())


def test_opsets_list_what_openvino_lists() -> None:
    table = SHARED / "reference" / "operations.json"
    if not table.exists():
        pytest.skip("the table of operations is not beside the checkout")
    rows = {(row["type"], row["version"]): row for row in json.loads(table.read_text())}
    for op in Op.registry.values():
        row = rows[op.xml_type, op.version()]
        assert set(op.opsets()) == set(row["read_versions"]), op.spec()
        # OpenVINO writes the axis only beside "pdpd", which the table never saw.
        names = {a.name for a in op.describe() if not a.name.endswith(".auto_broadcast_axis")}
        assert names == {a["name"] for a in row["attrs"]}, op.spec()


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("Relu", "opset1", "ReLU-1"),
        ("SOFTMAX", "opset5", "SoftMax-1"),
        ("PRelu", "opset1", "PReLU-1"),
        ("maxpool", "opset8", "MaxPool-8"),
        ("maxpool", "Opset8", None),
        ("const", "opset1", None),
        ("parameter", "opset1", None),
        ("Constant", "opset1", None),
    ],
)
def test_types_are_found_in_any_letter_case_but_roles_are_not(
    kind: str, version: str, spec: str | None
) -> None:
    found = Op.find(kind, version)
    assert (found and found.spec()) == spec
