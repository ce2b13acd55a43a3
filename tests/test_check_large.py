"""What is checked of large and hostile documents: as much as of small ones, with work that grows
with the document alone; and what a limit of time leaves unchecked."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from lxml import etree
from vinoir import ir
from vinoir.ir.checking.rules.known import near, near_type
from vinoir.ir.cli import cli
from vinoir.ir.text import attributes_of

MANY = 400


def layer(number: int, kind: str, inputs: int, outputs: int, inside: str = "") -> str:
    ports = [f'<port id="{port}" precision="FP32"/>' for port in range(inputs + outputs)]
    return (
        f'<layer id="{number}" name="l{number}" type="{kind}" version="opset1">'
        f"<input>{''.join(ports[:inputs])}</input><output>{''.join(ports[inputs:])}</output>"
        f"{inside}</layer>"
    )


def document(layers: str, edges: str) -> bytes:
    return (
        f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    ).encode()


def ports_that_are_not_there(many: int) -> bytes:
    edges = "".join(
        f'<edge from-layer="0" from-port="{many + n}" to-layer="1" to-port="{2 * many + n}"/>'
        for n in range(many)
    )
    return document(layer(0, "Split", 0, many) + layer(1, "Concat", many, 0), edges)


def lines_of_a_body(many: int) -> bytes:
    inner = "".join(
        layer(n, "Parameter", 0, 1) + layer(many + n, "Result", 1, 0) for n in range(many)
    )
    inner_edges = "".join(
        f'<edge from-layer="{n}" from-port="0" to-layer="{many + n}" to-port="0"/>'
        for n in range(many)
    )
    lines = "".join(
        f'<input external_port_id="{n}" internal_layer_id="{n}"/>'
        f'<output external_port_id="{many + n}" internal_layer_id="{3 * many + n}"/>'
        for n in range(many)
    )
    body = f"<body><layers>{inner}</layers><edges>{inner_edges}</edges></body>"
    parts = f"<port_map>{lines}</port_map><back_edges/>{body}"
    return document(layer(0, "TensorIterator", many, many, parts), "")


def work(document: bytes) -> int:
    """How many lines of Python it takes to check a document."""
    count = 0

    def step(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)  # type: ignore[arg-type]
    try:
        ir.check(document)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("make", [ports_that_are_not_there, lines_of_a_body])
def test_work_grows_with_the_document(make: object) -> None:
    assert callable(make)
    ir.check(make(4))  # what is read once
    assert work(make(MANY)) < 5 * work(make(MANY // 4))


def test_a_port_of_more_axes_than_arrays_have_is_a_finding_at_most() -> None:
    port = f'<port id="0" precision="FP32">{"<dim>1</dim>" * 70}</port>'
    odd = layer(0, "Nothing", 0, 1).replace('<port id="0" precision="FP32"/>', port)
    assert "IR401" not in {finding.code for finding in ir.check(document(odd, ""))}


@pytest.mark.parametrize("count", [0, 3, 99, 100, 1000])
def test_attributes_are_those_that_lxml_tells(count: int) -> None:
    text = " ".join(f'a{n}="{n % 7}&amp;é"' for n in range(count))
    element = etree.fromstring(f'<x xmlns:q="urn:q" {text} q:b="1"/>')
    assert list(attributes_of(element).items()) == list(element.items())


@pytest.mark.parametrize(
    ("word", "words", "meant"),
    [
        ("kernal", ["kernel", "strides", "pads_begin"], "kernel"),
        ("pad_begins", ["pads_begin", "pads_end", "dilations"], "pads_begin"),
        ("zzzzzzz", ["axis", "kernel"], None),
        ("name9999", [f"name{n}" for n in range(5000)], "name999"),
    ],
)
def test_the_word_that_is_meant(word: str, words: list[str], meant: str | None) -> None:
    assert near(word, words) == meant


@pytest.mark.parametrize("kind", ["Convolutoin", "convolution", "MaxPoool", "SoftMaxx"])
def test_the_type_that_is_meant(kind: str) -> None:
    assert (near_type(kind) or "").lower()[:3] == kind.lower()[:3]


def test_files_that_take_too_long_do_not_keep_others_from_being_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        net = ir.Builder()
        net.result(net.parameter("x", "f32", "1"), name="y")
        ir.write(net.model(), tmp_path / f"{name}.xml")
    said = CliRunner().invoke(cli, ["check", str(tmp_path), "--max-seconds", "1e-9"])
    assert said.exit_code == 4
    assert "a.xml" in said.output
    assert "b.xml" in said.output
    assert CliRunner().invoke(cli, ["check", str(tmp_path)]).exit_code == 0


def test_a_document_that_is_its_own_weights_is_a_finding(tmp_path: Path) -> None:
    net = ir.Builder()
    net.result(net.parameter("x", "f32", "1"), name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    (tmp_path / "m.bin").unlink(missing_ok=True)
    os.link(tmp_path / "m.xml", tmp_path / "m.bin")
    assert [finding.code for finding in ir.check(tmp_path / "m.xml")] == ["IR514"]


def chain(count: int, name: str, kind: str = "ReLU", attribute: str = "") -> bytes:
    """So many layers after each other; the last is of a kind of its own."""
    port = '<port id="{}" precision="FP32"><dim>3</dim></port>'
    first, second = port.format(0), port.format(1)
    rows = [
        '<layer id="0" name="x" type="Parameter" version="opset1">'
        f'<data shape="3" element_type="f32"/><output>{first}</output></layer>'
    ]
    rows += [
        f'<layer id="{n}" name="{name}{n}" type="{kind if n == count else "ReLU"}" '
        f'version="opset1"{attribute}><input>{first}</input><output>{second}</output></layer>'
        for n in range(1, count + 1)
    ]
    rows.append(
        f'<layer id="{count + 1}" name="r" type="Result" version="opset1">'
        f"<input>{first}</input></layer>"
    )
    edges = [
        f'<edge from-layer="{n}" from-port="{min(n, 1)}" to-layer="{n + 1}" to-port="0"/>'
        for n in range(count + 1)
    ]
    return document("\n".join(rows), "".join(edges))


TOLERATED = pytest.mark.parametrize(
    ("name", "attribute", "code"),
    [("&", "", "IR106"), ("<", "", "IR104"), ("&nbsp;", "", "IR106"), ("\x01", "", "IR110"),
     ("&#1;", "", "IR110"), ("r", ' version="opset1"', "IR105")],
)  # fmt: skip


@TOLERATED
@pytest.mark.parametrize("count", [49, 50, 60, 300])
def test_what_openvino_reads_is_read_to_the_end(
    name: str, attribute: str, code: str, count: int
) -> None:
    source = chain(count, name, attribute=attribute)
    if importlib.util.find_spec("openvino") is not None:
        import openvino

        assert len(openvino.Core().read_model(source, b"").get_ops()) == count + 2
    report = ir.check(source)
    assert Counter(finding.code for finding in report) == {code: count}


def test_what_is_wrong_behind_many_breaches_is_found() -> None:
    report = ir.check(chain(60, "&", "ReLUU"))
    assert Counter(finding.code for finding in report) == {"IR106": 60, "IR311": 1}
    assert [finding.layer for finding in report if finding.code == "IR311"] == [60]


def test_more_breaches_than_are_told_are_counted() -> None:
    report = ir.check(chain(1200, "&"))
    assert len(report.findings) == 1000
    assert report.left_out == {"IR106": 200}
    assert ir.check(chain(1200, "&"), ignore="IR106").left_out == {}


def test_what_is_not_read_is_told_and_not_judged() -> None:
    report = ir.check(chain(60, "r", attribute=" odd=1"))
    assert Counter(finding.code for finding in report) == {"IR104": 50, "IR101": 1}
    assert [finding.line for finding in report if finding.code == "IR101"] == [51]
    assert ir.check(chain(49, "r", attribute=" odd=1")).left_out == {}
