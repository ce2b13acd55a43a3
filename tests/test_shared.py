"""Further: files that others wrote, where the folder ``shared`` lies beside the checkout.

Everything tested here is tested elsewhere on files that are made or shipped; and the tests that
go through files of OpenVINO take those of the shared data as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHARED
from lxml import etree
from test_inference import compared
from test_schemas_out import keeps_to_the_schema
from test_writer import everything
from vinoir import ir
from vinoir.ir.document.definitions import document_schema
from vinoir.ir.files.patch import Patch
from vinoir.layers import Op
from vinoir.schemas import IRError

pytestmark = pytest.mark.shared
if not SHARED.is_dir():
    pytest.skip("the folder of shared data is not beside the checkout", allow_module_level=True)

#: Real files of other people, and a table of OpenVINO's operations.
CORPUS = sorted((SHARED / "corpus").rglob("*.xml"))
REFERENCE = SHARED / "reference"


def is_legacy(path: Path) -> bool:
    """Whether OpenVINO of today refuses the version."""
    head = path.read_bytes()[:400]
    return b'version="10"' not in head and b'version="11"' not in head


def test_every_real_file_comes_back() -> None:
    count, refused = 0, []
    for path in CORPUS:
        try:
            model = ir.read(path, need_weights=False)
        except IRError:
            refused.append(path.stem)
            continue
        if model.origin is not None:
            continue  # upgraded: it is written as another document
        everything(model)
        assert not Patch(model, {}, model.pre_process).changed, path.name
        assert ir.dumps(model)[0] == path.read_bytes()
        count += 1
    assert count > 70
    # A dump of what was executed, which OpenVINO refuses too.
    assert all("execution" in name for name in refused)


def test_what_openvino_reads_is_read() -> None:
    count = 0
    for path in CORPUS:
        if is_legacy(path):
            continue  # see the tests of older files
        if path.with_suffix(".bin").exists():
            everything(ir.read(path))
            count += 1
    assert count > 30


def test_every_readable_file_keeps_to_the_schema() -> None:
    schema = etree.XMLSchema(etree.fromstring(document_schema().encode()))
    readable = [p for p in CORPUS if not is_legacy(p) and "execution" not in p.name]
    for path in readable:
        keeps_to_the_schema(path, schema)
    assert len(readable) > 70


def test_real_files_infer_to_what_openvino_infers() -> None:
    count, found = 0, {}
    for path in CORPUS:
        try:
            ours, theirs = compared(path)
        except RuntimeError:
            continue  # OpenVINO does not read it
        count += 1
        if ours != theirs:
            found[path.stem] = ours, theirs
    assert found == {}
    assert count > 30


def test_operations_have_the_attributes_of_the_table() -> None:
    table = json.loads((REFERENCE / "operations.json").read_text("utf-8"))
    rows = {(row["type"], row["version"]): row for row in table}
    for op in Op.registry.values():
        row = rows[op.xml_type, op.version()]
        assert set(op.opsets()) == set(row["read_versions"]), op.spec()
        # OpenVINO writes the axis only beside "pdpd", which the table never saw.
        names = {a.name for a in op.describe() if not a.name.endswith(".auto_broadcast_axis")}
        assert names == {a["name"] for a in row["attrs"]}, op.spec()


def examples() -> list[tuple[str, dict[str, Any]]]:
    table = json.loads((REFERENCE / "pooling_examples.json").read_text("utf-8"))
    return [(name, row) for row in table if "input" in row for name in row["op"]]


@pytest.mark.parametrize(("name", "row"), examples(), ids=str)
def test_pooling_examples_of_the_specification(name: str, row: dict[str, Any]) -> None:
    kind, number = name.split("-")
    data = {
        key: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in row["attrs"].items()
    }
    outputs = Op.registry[kind, int(number)].read(data).run(np.array(row["input"], np.float32))
    np.testing.assert_array_equal(outputs[0], row["output0"])
    if "output1" in row and len(outputs) > 1:
        np.testing.assert_array_equal(outputs[1], row["output1"])
