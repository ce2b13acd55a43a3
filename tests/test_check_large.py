"""What is checked of large and hostile documents: as much as of small ones, with work that grows
with the document alone; and what a limit of time leaves unchecked."""

from __future__ import annotations

import os
import sys
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
