"""Attributes of elements that were read and changed: the wanted ones, in the wanted order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from vinoir import ir

MANY = 30_000
TENSOR = '<port id="0" precision="FP32"><dim>2</dim></port>'


def document(data: str = "", layer: str = "", port: str = "", net: str = "") -> bytes:
    """A layer between an input and an output, with more attributes where they are given."""
    return (
        f'<net name="m" version="11" {net}><layers>'
        '<layer id="0" name="x" type="Parameter" version="opset1">'
        f'<data shape="2" element_type="f32"/><output>{TENSOR}</output></layer>'
        f'<layer id="1" name="y" type="ReLU" version="opset1" {layer}><data {data}/>'
        f'<input>{TENSOR}</input><output><port id="1" precision="FP32" {port}><dim>2</dim></port>'
        "</output></layer>"
        '<layer id="2" name="r" type="Result" version="opset1">'
        f"<input>{TENSOR}</input></layer></layers><edges>"
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
        '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'
    ).encode()


WORDS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["1", "2", 'a"b&é']))


@settings(deadline=None)
@given(WORDS, st.data())
def test_any_attributes_become_any_others(before: dict[str, str], draw: st.DataObject) -> None:
    words = draw.draw(WORDS | st.permutations(list(before.items())).map(dict))
    model = ir.loads(document("".join(f" {key}={_quoted(text)}" for key, text in before.items())))
    assert list(model.layer("y").data.items()) == list(before.items())
    model.layer("y").data = words
    again = ir.loads(ir.dumps(model)[0])
    assert list(again.layer("y").data.items()) == list(words.items())


def _quoted(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace('"', "&quot;")
    return f'"{escaped}"'


@pytest.mark.parametrize("where", ["data", "layer", "port", "net"])
def test_one_change_among_very_many_attributes(where: str) -> None:
    model = ir.loads(document(**{where: " ".join(f'a{n}="{n}"' for n in range(MANY))}))
    layer = model.layer("y")
    model.name = "other"
    layer.name = "z"
    layer.data["more"] = "1"
    layer.outputs[0].names = ("u",)
    root = etree.fromstring(ir.dumps(model)[0])
    found = {"net": root, "layer": root[0][1], "data": root[0][1][0], "port": root[0][1][2][0]}
    assert found["net"].get("name") == "other"
    assert found["layer"].get("name") == "z"
    assert found["data"].get("more") == "1"
    assert found["port"].get("names") == "u"
    left = [key for key in found[where].keys() if key.startswith("a")]  # noqa: SIM118  # no dict
    assert left == [f"a{n}" for n in range(MANY)]


XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="ir.xsd"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<net ", f"<net {XSI} "),
        ("<net ", '<net xml:lang="en" '),
        ("<layers>", '<layers xml:space="preserve" xmlns:q="urn:a&amp;b" q:w="1">'),
        ("</layers>", '</layers><q:s xmlns:q="urn:q"><q:b q:c="1"/></q:s>'),
        ("<net ", '<net xmlns:q="urn:q" '),
        ("<data />", '<data xmlns:q="urn:q" q:w="1"/>'),
        ("<data />", '<data/><rt_info><q:b xmlns:q="urn:q" value="1"/></rt_info>'),
    ],
)
def test_names_in_namespaces_stay_as_they_are(before: str, after: str) -> None:
    text = document().decode().replace("<data />", "<data/>").replace("<data/>", "<data />")
    if after.endswith('urn:q" '):  # declared at the root and used further in
        text = text.replace("</edges>", '</edges><rt_info><q:b value="1" q:w="2"/></rt_info>')
    source = text.replace(before, after).encode()
    model = ir.loads(source)
    model.layer("y").name = "z"
    written = ir.dumps(model)[0]
    assert ir.loads(written).layer("z").type == "ReLU"
    assert _canonical(written) == _canonical(source.replace(b'name="y"', b'name="z"'))
    assert written.count(b"xmlns") == source.count(b"xmlns")


@pytest.mark.parametrize("aside", ["<!-- rows -->2", "<?tool x?> 2 ", " <!-- 7 --> 2"])
def test_a_comment_before_a_size_is_no_size_and_stays(aside: str) -> None:
    source = document().decode().replace("<dim>2</dim>", f"<dim>{aside}</dim>")
    model = ir.loads(source.encode())
    assert model.layer("y").outputs[0].dims == (2,)
    model.layer("y").outputs[0].dims = (3,)
    written = ir.dumps(model)[0]
    assert ir.loads(written).layer("y").outputs[0].dims == (3,)
    assert ir.loads(written).layer("y").inputs[0].dims == (2,)
    kept = aside[: aside.index(">") + 1].strip().encode()
    assert written.count(kept) == source.encode().count(kept)


def _canonical(source: bytes) -> bytes:
    return bytes(etree.tostring(etree.fromstring(source), method="c14n"))


def test_names_in_namespaces_are_not_printed_anew() -> None:
    """A layer taken to another document leaves behind what its prefixes mean."""
    info = '/><rt_info><q:b xmlns:q="urn:q" value="1"/></rt_info'
    model = ir.loads(document().replace(b"<data /", f"<data {info}".encode()))
    model.layer("y").rt_info.set("k", "v")
    assert b'<q:b xmlns:q="urn:q" value="1"' in ir.dumps(model)[0]
    other = ir.loads(document())
    other.layer("y").rt_info = model.layer("y").rt_info
    with pytest.raises(ir.IRError, match="in a namespace"):
        ir.dumps(other)
    net = ir.Builder("m")
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "2")], name="y"))
    made = net.model()
    made.layer("y").rt_info = model.layer("y").rt_info
    with pytest.raises(ir.IRError, match="in a namespace"):
        ir.dumps(made)
    assert ir.check(made).errors
