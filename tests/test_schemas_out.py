"""The shipped definitions are current, and files keep to them."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
import vinoir.schemas
from conftest import shared, witness
from lxml import etree
from pydantic import ValidationError
from vinoir import ir
from vinoir.ir.document.definitions import document_schema, operations_schema
from vinoir.layers.base import Op
from vinoir.schemas.document import Net, read


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.fromstring(document_schema().encode()))


def test_the_shipped_files_are_current() -> None:
    made = {"ir.xsd": document_schema(), "operations.json": operations_schema()}
    folder = files(vinoir.schemas)
    shipped = {name: (folder / name).read_text("utf-8") for name in made}
    stale = [name for name in made if made[name] != shipped[name]]
    assert not stale, (
        f"{stale}: make them anew with `python -m vinoir.ir.document.definitions schemas`"
    )


def test_every_readable_file_keeps_to_the_schema(schema: etree.XMLSchema) -> None:
    count = 0
    for path in [*witness(), *sorted(shared("corpus").rglob("*.xml"))]:
        root = etree.parse(path).getroot()
        if root.get("version") not in ("10", "11") or "execution" in path.name:
            continue
        assert schema.validate(root), f"{path.name}: {schema.error_log}"
        net = read(Net, root)
        model = ir.read(path, need_weights=False)
        # Two readers of one format say the same.
        assert net.layers is not None
        assert [(x.id, x.name, x.type, x.version) for x in net.layers.layer] == [
            (x.id, x.name, x.type, x.version) for x in model.layers
        ]
        for layer, record in zip(model.layers, net.layers.layer, strict=True):
            for ports, side in ((layer.inputs, record.input), (layer.outputs, record.output)):
                assert [(p.id, p.precision, p.dims) for p in ports] == [
                    (p.id, p.precision, tuple(size.text for size in p.dim))
                    for p in (side.port if side is not None else [])
                ]
        edges = net.edges.edge if net.edges is not None else []
        assert [tuple(edge) for edge in model.edges] == [
            (e.from_layer, e.from_port, e.to_layer, e.to_port) for e in edges
        ]
        count += 1
    assert count > 370


NET = """<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1" extra="free">
<data shape="1" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="1" name="r" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>
<rt_info><any where="free"><thing/></any></rt_info></net>"""


@pytest.mark.parametrize(
    ("old", "new"),
    [('version="11"', 'version="7"'), ('id="1" name', 'id="0" name'), (' type="Result"', ""),
     ('to-layer="1"', 'to-layer="5"'), ("<dim>1</dim>", "<dim>1..5</dim>"),
     ("<dim>1</dim>", "<dim>-2</dim>"), ("<edges>", "<edges/><edges>"), ("<data ", "<Data "),
     (' to-port="0"', ""), ('<layer id="1"', '<layer id="-1"')],
)  # fmt: skip
def test_the_schema_refuses(schema: etree.XMLSchema, old: str, new: str) -> None:
    assert schema.validate(etree.fromstring(NET)), schema.error_log
    assert old in NET
    assert not schema.validate(etree.fromstring(NET.replace(old, new, 1)))


def test_records_refuse_too() -> None:
    assert read(Net, etree.fromstring(NET)).version == 11
    with pytest.raises(ValidationError, match="to-layer"):
        read(Net, etree.fromstring(NET.replace(' to-layer="1"', "")))


def test_attributes_that_openvino_wrote_keep_to_the_json_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    made = json.loads(operations_schema())
    jsonschema.Draft202012Validator.check_schema(made)
    checked = 0
    for path in witness():
        for layer in ir.read(path).everywhere():
            op = Op.find(layer.type, layer.version)
            if op is not None and not layer.is_constant:
                rules = jsonschema.Draft202012Validator(made["$defs"][op.spec()])
                errors = [
                    f"{path.name}: {error.message}" for error in rules.iter_errors(layer.data)
                ]
                assert errors == []
                checked += 1
    if not checked:
        pytest.skip("the witness files are not beside the checkout")
