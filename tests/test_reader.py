"""What is read, what is refused, and where the error says it is."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import subprocess
import sys
import time
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, Written
from hypothesis import given, settings
from hypothesis import strategies as st
from older.network import small
from vinoir import ir
from vinoir.ir.storage import Weights
from vinoir.schemas import IRError, UnreadableError, UnsupportedError, UsageError

NET = """<?xml version="1.0"?>
<net name="m" version="11">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="4" element_type="f32" />
			<output>
				<port id="0" precision="FP32" names="x">
					<dim>4</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="w" type="Const" version="opset1">
			<data element_type="f32" shape="4" offset="0" size="16" />
			<output>
				<port id="0" precision="FP32">
					<dim>4</dim>
				</port>
			</output>
		</layer>
		<layer id="2" name="y" type="Add" version="opset1">
			<input>
				<port id="0" precision="FP32">
					<dim>4</dim>
				</port>
				<port id="1" precision="FP32">
					<dim>4</dim>
				</port>
			</input>
			<output>
				<port id="2" precision="FP32">
					<dim>4</dim>
				</port>
			</output>
		</layer>
		<layer id="3" name="r" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32">
					<dim>4</dim>
				</port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
		<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
		<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
	</edges>
	<rt_info>
		<framework value="demo" />
	</rt_info>
</net>
"""

BIN = np.arange(4, dtype=np.float32).tobytes()


def everything(model: ir.Model) -> None:
    """Read every part of a model."""
    for layer in model.everywhere():
        _ = layer.data, layer.inputs, layer.outputs, layer.rt_info, layer.back_edges
        with layer.at("port_map"):
            for wiring in layer.port_maps.values():
                for entry in wiring.entries:
                    _ = entry.external_port_id, entry.internal_layer_id, entry.axis, entry.stride
        if layer.is_constant:
            _ = layer.value
        if layer.graph is not None:
            layer.graph.sources(layer)
            layer.graph.consumers(layer)
    model.order()


def put(folder: Path, name: str = "m") -> Path:
    (folder / f"{name}.xml").write_text(NET)
    (folder / f"{name}.bin").write_bytes(BIN)
    return folder / f"{name}.xml"


def test_ways_to_name_a_pair(tmp_path: Path) -> None:
    xml = put(tmp_path, "m.v1")
    weights = xml.with_name("m.v1.bin")
    files: list[tuple[Any, Any]] = [
        (xml, None), (str(xml), None), (weights, None), (tmp_path, None), (xml, weights),
        (io.BytesIO(NET.encode()), io.BytesIO(BIN)), (io.StringIO(NET), weights),
        (xml, BIN), (xml, bytearray(BIN)), (xml, memoryview(BIN)), (xml, Weights(BIN)),
        (xml, np.frombuffer(BIN, np.uint8)), (io.StringIO(NET), BIN),
    ]  # fmt: skip
    for path, bytes_ in files:
        model = ir.read(path, bytes_)
        everything(model)
        assert model.layer("w").value.tolist() == [0, 1, 2, 3]
        assert model.layer("w").value.base is not None
        assert (model.name, model.version) == ("m", 11)
        assert model.rt_info is not None
        assert model.rt_info.find("framework").value == "demo"  # type: ignore[union-attr]  # it is there
    assert ir.loads(NET, BIN).layer("w").value.tolist() == [0, 1, 2, 3]
    assert ir.loads(NET.encode(), bytearray(BIN)).path is None
    with open(weights, "rb") as file:
        mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
    for _ in range(2):
        assert ir.read(xml, mapped).layer("w").value.tolist() == [0, 1, 2, 3]


def test_weights_that_are_no_bytes(tmp_path: Path) -> None:
    xml = put(tmp_path, "m")
    for path in (xml, io.StringIO(NET)):
        with pytest.raises(UsageError, match="weights are bytes, not dict") as caught:
            ir.read(path, {})  # type: ignore[arg-type]  # on purpose
        assert "ir.read take paths" in str(caught.value)


def test_folder_and_names_in_vain(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"0 \.xml files"):
        ir.read(tmp_path)
    put(tmp_path, "a")
    put(tmp_path, "b")
    with pytest.raises(UnreadableError, match=r"2 \.xml files \(a.xml, b.xml\)"):
        ir.read(tmp_path)
    with pytest.raises(UnreadableError, match=r"none\.xml: no such file"):
        ir.read(tmp_path / "none.xml")
    with pytest.raises(UnreadableError, match=r"other\.bin: no such file"):
        ir.read(tmp_path / "a.xml", tmp_path / "other.bin")


def test_what_is_no_ordinary_file(tmp_path: Path) -> None:
    xml = put(tmp_path)
    os.mkfifo(tmp_path / "fifo.xml")
    (tmp_path / "loop.xml").symlink_to("loop.xml")
    (tmp_path / "dir.bin").mkdir()
    for path, weights in (
        (tmp_path / "fifo.xml", None), (Path("/dev/zero"), None), (tmp_path / "loop.xml", None),
        (xml, tmp_path / "fifo.xml"), (xml, tmp_path / "dir.bin"), (xml, Path("/dev/zero")),
        (tmp_path / "a\0b", None),
    ):  # fmt: skip
        with pytest.raises(UnreadableError, match=r"ordinary|opened"):
            ir.read(path, weights)


def test_missing_weights(tmp_path: Path) -> None:
    xml = put(tmp_path)
    xml.with_suffix(".bin").unlink()
    says = (
        f'{xml}:13:4: layer 1 "w" (Const opset1): bytes 0 to 16 are needed, but there is no .bin '
        f"(looked for {xml.with_suffix('.bin')})"
    )
    with pytest.raises(IRError) as caught:
        ir.read(xml, need_weights=True)
    assert str(caught.value) == says
    # Without a .bin there is still much to see; the error comes when the value is asked for.
    model = ir.read(xml)
    assert model.layer("w").sizes == (4,)
    with pytest.raises(IRError) as caught:
        _ = model.layer("w").value
    assert str(caught.value) == says
    # An open file has a name, but nobody looked beside it.
    asked = "but there is no .bin (name it: --weights FILE, in Python weights=)"
    with open(xml, "rb") as file, pytest.raises(IRError) as caught:
        _ = ir.read(file).layer("w").value
    assert str(caught.value).endswith(asked)
    with pytest.raises(IRError) as caught:
        ir.loads(NET, need_weights=True)
    assert str(caught.value).endswith(asked)
    old = small(6)
    (tmp_path / "old.xml").write_bytes(old.xml)
    with pytest.raises(IRError, match=r"no \.bin \(looked for .*old\.bin\)"):
        ir.read(tmp_path / "old.xml", need_weights=True)
    with pytest.raises(IRError, match=r"no \.bin \(name it: --weights FILE"):
        ir.loads(old.xml, need_weights=True)
    xml.with_suffix(".bin").write_bytes(BIN[:10])
    with pytest.raises(IRError, match=r"bytes 0 to 16 are needed, .*m\.bin has 10: 6 are missing"):
        ir.read(xml)
    # Nobody needs a constant that feeds no output, nor a .bin where there is no constant.
    unused = NET.replace('to-layer="2" to-port="1"', 'to-layer="9" to-port="1"')
    assert len(ir.loads(unused)) == 4


# A text of the document and its replacement; what the error says.
WRONG = [
    ('version="11"', 'version="12"', "2:1: IR version 12 is newer"),
    ('version="11"', 'version="7"', "2:1: IR version 7 was written by .* dropped in 2021.1"),
    ('version="11"', 'version="11.0"', '2:1: <net> has version "11.0"'),
    (' version="11"', "", "2:1: <net> has no version"),
    ("<net ", "<model ", "not well-formed"),
    ('id="2" name="y"', 'id="-2" name="y"', '20:3: .*"y".*layer id is -2'),
    ('id="2" name="y"', 'name="y"', '20:3: layer "y" .*has no id'),
    ('name="y" type="Add"', 'name="y"', '20:3: layer 2 "y": <layer> has no type'),
    ('from-layer="1"', 'from-layer="1.5"', '45:3: from-layer of an edge is "1.5"'),
    (' to-port="1"', "", "45:3: an edge has no to-port"),
    ('offset="0"', 'offset="-4"', '13:4: layer 1 "w" .*offset is -4'),
    ('offset="0"', 'offset="8"', '13:4: layer 1 "w" .*bytes 8 to 24 .*: 8 are missing'),
    ('offset="0"', 'offset="99999999999999999999"', '13:4: layer 1 "w" .*offset'),
    ('offset="0" ', "", '13:4: layer 1 "w" .*offset is missing'),
    ('size="16"', 'size="12"', r"13:4: .*f32\[4\] takes 16 bytes, size says 12"),
    ('shape="4" offset', 'shape="4294967296,4294967296" offset', "do not fit 64 bits"),
    ('element_type="f32" shape', 'element_type="float" shape', '13:4: .*"float"'),
    ('precision="FP32" names', 'precision="FOO" names', '6:4: layer 0 "x" .*"FOO"'),
    ("<dim>4</dim>", "<dim>1..5</dim>", '6:4: .*a dim is "1..5"'),
    ("<dim>4</dim>", "<dim>-2</dim>", "6:4: .*a dim is -2"),
    ('<port id="0" precision="FP32" names', '<port precision="FP32" names', "6:4: .*no id"),
    ("</layers>", "</layer>", "not well-formed"),
    ("<?xml", "<!DOCTYPE net [<!ENTITY a 'b'>]><?xml", "1:1: a DOCTYPE is not allowed"),
    ("<net ", "<!-- x --><!DOCTYPE net SYSTEM 'file:///etc/passwd'><net ", "2:11: a DOCTYPE"),
    ('name="y"', 'name="&undefined;"', "20:.*not well-formed"),
    ("<net ", '<net xmlns="urn:x" ', "2:1: <net> is in the namespace"),
]


@pytest.mark.parametrize(("old", "new", "words"), WRONG)
def test_refused_at_its_place(old: str, new: str, words: str) -> None:
    assert old in NET
    with pytest.raises(IRError, match=words) as caught:
        everything(ir.loads(NET.replace(old, new, 1), BIN))
    assert caught.value.where.line is not None
    assert caught.value.where.column is not None


@pytest.mark.parametrize("cut", range(NET.index("<layer "), NET.index("</layers>"), 7))
def test_a_truncated_document_is_told_by_its_layer(cut: int) -> None:
    begun = NET[:cut]
    with pytest.raises(UnreadableError, match="the file ends") as caught:
        ir.loads(begun, BIN)
    place = caught.value.where
    assert (place.line or 0) <= begun.count("\n") + 1
    names = re.findall(r'<layer id="\d+" name="(\w+)" type="\w+"', begun)
    if names and begun.count("</layer>") < len(names):
        assert place.name == names[-1] or f'"{names[-1]}"' in caught.value.message
    assert "vinoir check" in (caught.value.hint or "")


def test_of_a_long_broken_document_the_parser_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vinoir.ir.text.parsing.SEARCHED", 100)
    begun = NET[: NET.index("</layer>") + 4]
    with pytest.raises(UnreadableError, match="not well-formed XML") as caught:
        ir.loads(begun, BIN)
    assert caught.value.where.line == begun.count("\n") + 1
    assert "the file ends" not in caught.value.message
    assert "vinoir check" in (caught.value.hint or "")


def test_what_would_be_repaired_is_said() -> None:
    broken = NET.replace('name="y"', 'name="a & b"')
    with pytest.raises(UnreadableError, match="a bare &") as caught:
        ir.loads(broken, BIN)
    assert (caught.value.hint or "").startswith("write &amp;; lenient=True")
    mended = ir.loads(broken, BIN, lenient=True)
    assert [layer.type for layer in mended.layers if layer.name == "a & b"] == ["Add"]


@pytest.mark.parametrize(
    ("source", "kind"),
    [(b"", UnreadableError), (b"\x89PNG", UnreadableError), (b"\x08\x07\x12", UnreadableError),
     (b"<a/>", UnreadableError), (b"\xff\xfe<", UnreadableError), (b"<net", UnreadableError),
     (b'<net version="6"/>', UnreadableError), (b'<net version="8"/>', UnsupportedError),
     (b'<?xml version="1.0" encoding="utf-7"?><net/>', UnreadableError),
     (b'<?xml version="1.0" encoding="ebcdic-cp-us"?><net/>', UnreadableError),
     ('<?xml version="1.0"?><!DOCTYPE net><net version="11"/>'.encode("utf-16"), UnreadableError)],
)  # fmt: skip
def test_what_is_no_ir(source: bytes, kind: type[IRError]) -> None:
    with pytest.raises(kind):
        ir.loads(source)


@pytest.mark.parametrize("version", [" 11", "011", "+11", "10"])
def test_versions_as_openvino_reads_them(version: str) -> None:
    model = ir.loads(NET.replace('version="11"', f'version="{version}"'), BIN)
    assert model.version == int(version)
    assert b'version="' + version.encode() + b'"' in ir.dumps(model)[0]


def test_kept_as_it_is() -> None:
    text = NET.replace("<net ", "<Net ").replace("</net>", "</Net>")
    text = text.replace('type="Add" version="opset1"', 'type="Frob" version="extension" more="1"')
    model = ir.loads(text, BIN)
    everything(model)
    assert model.layer("y").type == "Frob"
    assert model.layer("y").op is None
    assert ir.dumps(model) == (text.encode(), BIN)


def test_ids_with_gaps_and_layers_in_any_order() -> None:
    text = NET.replace('id="2" name', 'id="9000000000000000000" name')
    text = text.replace('layer="2"', 'layer="9000000000000000000"')
    head, rest = text.split("\t\t<layer", 1)
    body, tail = rest.split("\t</layers>")
    layers = ["\t\t<layer" + part for part in body.split("\t\t<layer")]
    model = ir.loads(head + "".join(reversed(layers)) + "\t</layers>" + tail, BIN)
    everything(model)
    assert [layer.name for layer in model.order()] == ["x", "w", "y", "r"]


def test_entities_and_depth_do_no_harm() -> None:
    bombs = [
        NET.replace("<framework", "<a>" * 100_000 + "<framework"),
        NET.replace("<framework", "<a>" * 3000 + "</a>" * 3000 + "<framework"),
        NET.replace('name="x"', f'name="{"x" * 11_000_000}"'),
        NET.replace("<data shape", "<data " + " ".join(f'a{i}="1"' for i in range(100_000))),
        NET.replace("<edges>", "<edges>" + "<edge/>" * 100_000),
    ]
    for bomb in bombs:
        start = time.process_time()
        with contextlib.suppress(IRError):
            everything(ir.loads(bomb, BIN))
        assert time.process_time() - start < 10


def nested(depth: int) -> str:
    body = NET[NET.index("<layers>") : NET.index("\t<rt_info>")]
    text = body
    for _ in range(depth):
        text = body.replace("</layers>", f'<layer id="8" name="l" type="Loop" version="opset5">'
                            f"<body>{text}</body></layer></layers>")  # fmt: skip
    return f'<net name="m" version="11">{text}</net>'


def test_bodies_in_bodies() -> None:
    model = ir.loads(nested(20), BIN)
    everything(model)
    assert sum(1 for _ in model.everywhere()) == 21 * 4 + 20
    with pytest.raises(IRError, match="nested more than 64"):
        everything(ir.loads(nested(70), BIN))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_any_mutation_reads_or_is_our_error(written: Written, seed: int) -> None:
    paths = written.all()
    chance = random.Random(seed)
    path = chance.choice(paths)
    source, weights = bytearray(path.read_bytes()), path.with_suffix(".bin").read_bytes()
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        at, other = chance.randrange(len(source)), chance.randrange(len(source))
        kind = chance.randrange(4)
        if kind == 0:
            source[at] = chance.randrange(256)
        elif kind == 1:
            del source[at : at + chance.choice([1, 5, 50])]
        elif kind == 2:
            source.insert(at, chance.randrange(256))
        else:
            source[at:at] = source[other : other + 80]
    for lenient in (False, True):
        start, said = time.process_time(), None
        try:
            model = ir.loads(bytes(source), weights, lenient=lenient)
            everything(model)
            assert ir.dumps(model) == (bytes(source), weights)
        except IRError as error:
            said = error
        assert said is None or said.where.line is not None, str(said)
        assert time.process_time() - start < 5


def test_memory_stays_small_with_large_weights(tmp_path: Path) -> None:
    net = ir.Builder("m")
    net.result(net.constant(np.zeros(1, np.float32), name="w"))
    xml, _ = ir.dumps(net.model())
    size = 500_000_000
    text = xml.decode().replace('size="4"', f'size="{size}"').replace(
        'shape="1"', f'shape="{size // 4}"'
    )  # fmt: skip
    (tmp_path / "m.xml").write_text(text)
    with (tmp_path / "m.bin").open("wb") as file:
        file.truncate(size)
    code = (
        "import sys; from vinoir import ir; m = ir.read(sys.argv[1]);"
        "w = m.layer('w').value; assert w.shape == (125000000,) and w[-1] == 0;"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not say how much memory a process has had")
    import vinoir

    path = os.pathsep.join([str(Path(next(iter(vinoir.__path__))).parent), *sys.path])
    if Path(next(iter(vinoir.__path__))) == ROOT:
        pytest.skip("runs in a process of its own, which needs the package installed")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.xml")],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) < 150_000


@pytest.mark.parametrize("levels", [2_100, 50_000])
def test_levels_beyond_the_parser_are_no_breach_of_xml(levels: int) -> None:
    deep = b"<a>" * levels + b"</a>" * levels
    text = b'<net name="m" version="11"><rt_info>' + deep + b"</rt_info><layers /></net>"
    with pytest.raises(ir.UnreadableError, match="nested more than 2048 deep") as caught:
        ir.loads(text)
    assert "well-formed" not in str(caught.value)
    assert "IR114" in {finding.code for finding in ir.check(text).findings}
