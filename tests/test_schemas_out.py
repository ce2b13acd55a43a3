"""The shipped definitions are current, and files keep to them."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vinoir.schemas
from conftest import Written
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


def test_every_readable_file_keeps_to_the_schema(
    schema: etree.XMLSchema, written: Written
) -> None:
    for path in written.all():
        keeps_to_the_schema(path, schema)


def keeps_to_the_schema(path: Path, schema: etree.XMLSchema) -> None:
    """A file is valid, and the records read from it are those of the model."""
    root = etree.parse(path).getroot()
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


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", ["If", "Loop"])
def test_bodies_may_be_in_bodies(
    schema: etree.XMLSchema, kind: str, depth: int, tmp_path: Path
) -> None:
    ov = pytest.importorskip("openvino")
    import openvino.opset13 as ops

    def made(depth: int) -> tuple[Any, Any]:
        """An input, and what a layer with bodies as deep makes of it."""
        x = ops.parameter(ov.PartialShape([1, 4]), ov.Type.f32)
        if not depth:
            return x, ops.relu(x)
        inner = [made(depth - 1), made(0)]
        bodies = [ov.Model([ops.result(y)], [given], "body") for given, y in inner]
        if kind == "If":
            outer = ops.if_op(ops.constant(np.array(True)))
            outer.set_then_body(bodies[0])
            outer.set_else_body(bodies[1])
            outer.set_input(x.output(0), inner[0][0], inner[1][0])
            outer.set_output(bodies[0].results[0], bodies[1].results[0])
            return x, outer
        outer = ops.loop(ops.constant(np.int64(2)), ops.constant(np.array(True)))
        bodies[0].add_results([ops.result(ops.constant(np.array(True)))])
        outer.set_function(bodies[0])
        outer.set_special_body_ports([-1, 1])
        outer.set_merged_input(inner[0][0], x.output(0), bodies[0].results[0].output(0))
        outer.get_iter_value(bodies[0].results[0].output(0), -1)
        return x, outer

    x, outer = made(depth)
    ov.serialize(ov.Model([outer.output(0)], [x], "m"), tmp_path / "m.xml")
    keeps_to_the_schema(tmp_path / "m.xml", schema)


def test_ids_are_given_once_in_a_body(schema: etree.XMLSchema) -> None:
    body = NET[NET.index("<layers>") : NET.index("<rt_info>")]
    owner = '<layer id="2" name="l" type="Loop" version="opset5"><body>{}</body></layer></layers>'
    good = NET.replace("</layers>", owner.format(body), 1)
    assert schema.validate(etree.fromstring(good)), schema.error_log
    bad = NET.replace("</layers>", owner.format(body.replace('id="1" name', 'id="0" name')), 1)
    assert not schema.validate(etree.fromstring(bad))


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


def test_attributes_that_openvino_wrote_keep_to_the_json_schema(written: Written) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    made = json.loads(operations_schema())
    jsonschema.Draft202012Validator.check_schema(made)
    for path in written.all():
        for layer in ir.read(path).everywhere():
            op = Op.find(layer.type, layer.version)
            if op is not None and not layer.is_constant:
                rules = jsonschema.Draft202012Validator(made["$defs"][op.spec()])
                errors = [
                    f"{path.name}: {error.message}" for error in rules.iter_errors(layer.data)
                ]
                assert errors == []
