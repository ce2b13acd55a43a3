"""What OpenVINO reads and XML forbids."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from vinoir import ir
from vinoir.ir.text.repairs import repair
from vinoir.schemas import UnreadableError

NET = """<?xml version="1.0"?>
<net name="m" version="11">
	<layers>
		<layer id="0" name="{name}" type="Parameter" version="opset1">
			<data shape="1,4" element_type="f32"{data} />
			<output>
				<port id="0" precision="FP32"{port}>
					<dim>1</dim>
					<dim>4</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="r" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32">
					<dim>1</dim>
					<dim>4</dim>
				</port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="1" to-port="0" />
	</edges>
	<rt_info>{info}</rt_info>
</net>
"""


def net(name: str = "x", data: str = "", port: str = "", info: str = "") -> str:
    return NET.format(name=name, data=data, port=port, info=info)


# The document; line, column and a word of the report; the name of the first layer as OpenVINO
# reads it (control characters excepted: XML has no way to say them).
BROKEN = [
    (net("a<b"), (4, 24, '"<"'), "a<b"),
    (net("a&b"), (4, 24, '"&"'), "a&b"),
    (net("a&foo;b"), (4, 24, '"&"'), "a&foo;b"),
    (net("a&lt;&b"), (4, 28, '"&"'), "a<&b"),
    (net("x", data=' shape="9"'), (5, 41, "twice"), "x"),
    (net("x", port=' id="7"'), (7, 35, "twice"), "x"),
    (net("a&#1;b"), (4, 23, "&#1;"), "a\ufffdb"),
    (net("a\x01b"), (4, 24, "U+0001"), "a\ufffdb"),
    ("\n\n" + net(), (3, 1, "declaration"), "x"),
    (net() + "tail", (27, 1, "after the root"), "x"),
    (net() + "<net/>", (27, 1, "after the root"), "x"),
    (net() + "\0\0", (27, 1, "NUL"), "x"),
    (net().replace("<net ", '<net xmlns="urn:x" '), (2, 6, "namespace"), "x"),
    (net().replace("<layers>", '<layers xmlns="urn:x">'), (3, 10, "namespace"), "x"),
    (net().replace("<edges>", "<edges xmlns = 'urn:x'>"), (22, 9, "namespace"), "x"),
    (
        net().replace("<data ", '<data xmlns="y" xmlns:q="q" q:a="1" '),
        (5, 10, "namespace"),
        "x",
    ),
    (net().replace("<layer ", '<layer q:x="1" ', 1), (4, 10, '"q"'), "x"),
    (net(info='<q:b value="1"><c /></q:b>'), (25, 12, '"q"'), "x"),
    (net(info="<a>1 & 2</a>"), (25, 16, '"&"'), "x"),
    (net(info="<!-- a -- b -->"), (25, 11, "comment"), "x"),
]


@pytest.mark.parametrize(("text", "place", "name"), BROKEN)
def test_repaired_and_reported(text: str, place: tuple[int, int, str], name: str) -> None:
    with pytest.raises(UnreadableError, match="lenient") as caught:
        ir.loads(text)
    assert caught.value.where.line is not None
    model = ir.loads(text, lenient=True)
    assert model.layers[0].name == name
    assert model.layers[0].data["shape"] == "1,4"
    (found,) = model.repairs
    assert (found.line, found.column) == place[:2]
    assert place[2] in found.message
    assert ir.dumps(model)[0] == text.encode()  # not touched, so as it was


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("tag", ["net", "layers", "edges"])
def test_a_namespace_hides_nothing_in_any_encoding(tag: str, encoding: str) -> None:
    source = net().replace(f"<{tag}", f'<{tag} xmlns="urn:x"').encode(encoding)
    with pytest.raises(UnreadableError, match=f'<{tag}> is in the namespace "urn:x"'):
        ir.loads(source)
    assert len(ir.loads(source, lenient=True).layers) == 2


@pytest.mark.parametrize(("text", "place", "name"), BROKEN)
def test_openvino_reads_it_so(text: str, place: tuple[int, int, str], name: str) -> None:
    ov = pytest.importorskip("openvino")
    model = ov.Core().read_model(text.encode(), ov.Tensor(ov.Type.u8, ov.Shape([0])))
    read = model.get_parameters()[0]
    assert read.friendly_name.replace("\x01", "\ufffd") == name
    assert list(read.shape) == [1, 4]


#: Documents in which one prefix at least is none of XML's, and the columns of all that was mended.
PREFIXED = [
    (net(info='<b xmlns:q="u"><q:c q:d="" /></b><q:c />'), [14, 27, 31, 45]),
    (net(info='<b xmlns:q="u" q:c:d="" />'), [14, 26]),
    (net(info='<b q:x="1" q.x="2" />'), [14, 22]),
    (net(info='<b q.x="1" q:x="2" _x="3" :x="4" />'), [22, 22, 37, 37]),
    (net(info='<b :x="1" />'), [14]),
    (net(info='<:a><:a /></:a>'), [12, 16]),
    (net(info='<b q:="1" xml:="2" xml:1="3" xml:lang="en" />'), [14, 21, 30]),
    (net(info='<b xmlns:q="u" xmlns:p="u" q:x="1" p:x="2" />'), [14, 26, 38, 46]),
    (net(info='<b xmlns:q="" />'), [14]),
    (net(info='<b xmlns:="u" />'), [14]),
    (net(info='<b xmlns:xml="u" xmlns:xmlns="u" />'), [14, 28]),
    (net(info='<b xmlns:q="u" q:1="3" />'), [14, 26]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "columns"), PREFIXED)
def test_prefixes_are_parts_of_names_where_one_is_not_xml(text: str, columns: list[int]) -> None:
    with pytest.raises(UnreadableError, match="lenient"):
        ir.loads(text)
    model = ir.loads(text, lenient=True)
    assert [(found.line, found.column) for found in model.repairs] == [(25, at) for at in columns]
    assert ir.dumps(model)[0] == text.encode()
    model.layer("r").name = "out"
    assert ir.loads(ir.dumps(model)[0]).layer("out").id == 1


@pytest.mark.parametrize("text", [text for text, _ in PREFIXED])
def test_openvino_reads_any_prefix(text: str) -> None:
    test_openvino_reads_it_so(text, (0, 0, ""), "x")
    section = text[text.index("<b ") + 2 : text.index(" />")] if "<b " in text else ""
    inside = text.replace("<layer ", f"<layer{section.partition('>')[0]} ", 1)
    test_openvino_reads_it_so(inside, (0, 0, ""), "x")
    assert len(ir.loads(inside, lenient=True).layers) == 2


@pytest.mark.parametrize(
    "info",
    [
        '<b xmlns:q="u" xmlns:p="v" q:x="1" p:x="2" x="3"><q:c p:d="" /></b>',
        '<q:b xmlns:q="u" xml:lang="en"><q:c xmlns:q="v" /></q:b>',
        "<xml:b />",
    ],
)
def test_declared_prefixes_are_left_alone(info: str) -> None:
    text = net(info=info)
    assert repair(text.encode()) == (text.encode(), [])
    broken = net("a<b", info=info)
    model = ir.loads(broken, lenient=True)
    assert [found.line for found in model.repairs] == [4]
    assert model.text == broken.replace("a<b", "a&lt;b").encode()


DECLARED = re.sub(r"<\?xml.*?\?>", '<?xml version="1.0" encoding="WORD"?>', net("aéb"))
#: Documents whose declaration cannot be true, or says what nobody knows.
MISDECLARED = [
    *(DECLARED.replace("WORD", word).encode() for word in (
        "utf-16", "UTF-32", "ucs-2", "us-ascii", "klingon", "", "iso-8859-12", "utf-8-sig")),
    b"\xff\xfe\0\0" + net("aéb").encode("utf-32-le"),
    *(net("aéb").encode(coding) for coding in ("utf-32-le", "utf-32-be")),
]  # fmt: skip


@pytest.mark.parametrize("word", ["windows-1252", "cp1250", "iso-8859-15", "ISO-8859-7"])
def test_what_openvino_takes_for_utf_8_is_told(word: str) -> None:
    ov = pytest.importorskip("openvino")
    source = DECLARED.replace("WORD", word).encode()
    read = ov.Core().read_model(source, ov.Tensor(ov.Type.u8, ov.Shape([0])))
    assert ir.loads(source, lenient=True).layers[0].name == "aéb"
    assert read.get_parameters()[0].friendly_name == "aéb"
    assert ir.loads(source).layers[0].name == "aéb".encode().decode(word)
    assert "IR112" in {row.code for row in ir.check(source).findings}
    plain = source.replace("é".encode(), b"e")
    assert not ir.loads(plain, lenient=True).repairs
    assert "IR112" not in {row.code for row in ir.check(plain).findings}


@pytest.mark.parametrize("source", MISDECLARED)
def test_what_is_declared_wrongly_is_read_as_openvino_does(source: bytes) -> None:
    ov = pytest.importorskip("openvino")
    with pytest.raises(UnreadableError, match=r"encoding.*lenient"):
        ir.loads(source)
    model = ir.loads(source, lenient=True)
    read = ov.Core().read_model(source, ov.Tensor(ov.Type.u8, ov.Shape([0])))
    assert model.layers[0].name == read.get_parameters()[0].friendly_name == "aéb"
    (found,) = model.repairs
    assert "encoding" in found.message
    assert "IR112" in {row.code for row in ir.check(source).findings}


def test_a_mark_counts_more_than_a_declaration() -> None:
    source = b"\xef\xbb\xbf" + DECLARED.replace("WORD", "us-ascii").encode()
    assert ir.loads(source).layers[0].name == "aéb"
    assert not {"IR111", "IR112"} & {row.code for row in ir.check(source).findings}


def test_bytes_that_are_no_text() -> None:
    text = net("aéb").encode().replace("é".encode(), b"\xe9")
    with pytest.raises(UnreadableError):
        ir.loads(text)
    model = ir.loads(text, lenient=True)
    assert model.layers[0].name == "a\ufffdb"
    assert model.repairs == [(4, 24, "byte 0xe9 is not UTF-8")]


@pytest.mark.parametrize(
    "text",
    [
        net().replace("</net>", ""),
        net().replace("</layers>", "</layer>"),
        net("a\0b"),
        net('a"b'),
        net('a"x="1'),
        "<!DOCTYPE net><net/>",
        "",
        "<",
        "<net",
        "not XML",
    ],
)
def test_what_nobody_reads(text: str) -> None:
    with pytest.raises(UnreadableError):
        ir.loads(text, lenient=True)


def test_what_is_right_is_left_alone() -> None:
    for text in (net(), net("a&#10;&amp;&lt;é"), net(info="<![CDATA[a & b]]>") + "<!-- end -->\n"):
        assert repair(text.encode()) == (text.encode(), [])
        assert ir.loads(text, lenient=True).repairs == []


def test_an_edit_of_a_repaired_document_is_xml() -> None:
    model = ir.loads(net("a<b"), lenient=True)
    model.layer("r").name = "out"
    assert ir.loads(ir.dumps(model)[0]).layer("a<b").id == 0


@pytest.mark.parametrize(
    "piece", ["<a ", "<a b='", "<:a q:b=''>", '"', "&", "<!--", "<a>", "</a>", "\x01", "<"]
)
def test_hostile_text_takes_no_time(piece: str) -> None:
    start = time.process_time()
    with contextlib.suppress(UnreadableError):
        ir.loads(net(info="PIECE").replace("PIECE", piece * 100_000 + "]]>"), lenient=True)
    assert time.process_time() - start < 3
