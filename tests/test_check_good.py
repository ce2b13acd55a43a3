"""No alarm on good files: those that OpenVINO's own users write, and those of other people."""

from __future__ import annotations

import re
from pathlib import Path

import oracle
import pytest
from conftest import SHARED
from vinoir import ir

#: A TensorIterator as OpenVINO's own examples build it: slices of two inputs, an input that is
#: the same in every turn, the last value of the sum and all of them joined.
ITERATOR = """\
<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4,6,2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>4</dim><dim>6</dim><dim>2</dim></port></output></layer>
<layer id="1" name="m" type="Parameter" version="opset1"><data shape="4,2,2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port></output></layer>
<layer id="2" name="turns" type="TensorIterator" version="opset1">
<port_map>
<input external_port_id="0" internal_layer_id="0" axis="1" part_size="2" stride="2"/>
<input external_port_id="1" internal_layer_id="1"/>
<output external_port_id="2" internal_layer_id="3"/>
<output external_port_id="3" internal_layer_id="3" axis="1" part_size="2" stride="2"/>
</port_map>
<input>
<port id="0" precision="FP32"><dim>4</dim><dim>6</dim><dim>2</dim></port>
<port id="1" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port>
</input><output>
<port id="2" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port>
<port id="3" precision="FP32"><dim>4</dim><dim>6</dim><dim>2</dim></port>
</output>
<body><layers>
<layer id="0" name="xi" type="Parameter" version="opset1">
<data shape="4,2,2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port></output></layer>
<layer id="1" name="mi" type="Parameter" version="opset1">
<data shape="4,2,2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port></output></layer>
<layer id="2" name="add" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port>
<port id="1" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port></input>
<output><port id="2" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port></output></layer>
<layer id="3" name="ri" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
</edges></body>
</layer>
<layer id="3" name="last" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>4</dim><dim>2</dim><dim>2</dim></port></input></layer>
<layer id="4" name="all" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>4</dim><dim>6</dim><dim>2</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="3" to-layer="4" to-port="0"/>
</edges></net>"""


def test_an_input_that_is_the_same_in_every_turn_is_no_lost_state() -> None:
    assert oracle.ask("shapes", ITERATOR, b"") == ["f32[4,2,2]", "f32[4,6,2]"]
    found = [(finding.code, finding.severity) for finding in ir.check(ITERATOR.encode())]
    assert found == [("IR724", "info")]


def real_files() -> list[Path]:
    """Files of other people."""
    return sorted((SHARED / "corpus").rglob("*.xml"))


@pytest.mark.shared
@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.stem)
def test_what_openvino_reads_of_other_people_has_no_errors(path: Path) -> None:
    text, beside = path.read_bytes(), path.with_suffix(".bin")
    if beside.exists():
        weights = beside.read_bytes()
    else:
        places = re.findall(rb'offset="(\d+)"[^>]*?size="(\d+)"', text)
        places += [(a, b) for b, a in re.findall(rb'size="(\d+)"[^>]*?offset="(\d+)"', text)]
        held = max((int(begin) + int(size) for begin, size in places), default=0)
        if held > 100_000_000:
            pytest.skip(f"its weights would take {held} bytes")
        weights = bytes(held)
    try:
        oracle.ask("shapes", text.decode(), weights)
    except RuntimeError:
        return
    assert [str(finding) for finding in ir.check(text, weights=weights).errors] == []
