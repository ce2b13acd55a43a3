"""Findings over whole files: none on what OpenVINO wrote, the right ones on damage."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Written
from mutations import File, cases
from vinoir import ir
from vinoir.ir.checking import checker
from vinoir.ir.checking.checker import GROUPS
from vinoir.ir.checking.rules import port_maps
from vinoir.ir.checking.rules.catalogue import RULES
from vinoir.ir.checking.rules.known import RELEASES
from vinoir.ir.checking.rules.loose import ATTRIBUTES, CHILDREN, NEEDED
from vinoir.ir.document import BODIES, LAYER_ORDER
from vinoir.ir.text import TOLERATED
from vinoir.layers import Op
from vinoir.layers.base import NEWEST
from vinoir.schemas import UsageError
from vinoir.schemas.document import Body, Edge, Layer, MapEntry, Net, Record

#: x + w = y, with two values of w in the .bin.
ADD = """\
<?xml version="1.0"?>
<net name="m" version="11">
<layers>
	<layer id="0" name="x" type="Parameter" version="opset1">
		<data shape="1,2" element_type="f32" />
		<output><port id="0" precision="FP32" names="x"><dim>1</dim><dim>2</dim></port></output>
	</layer>
	<layer id="1" name="w" type="Const" version="opset1">
		<data element_type="f32" shape="2" offset="0" size="8" />
		<output><port id="0" precision="FP32"><dim>2</dim></port></output>
	</layer>
	<layer id="2" name="add" type="Add" version="opset1">
		<data auto_broadcast="numpy" />
		<input>
			<port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port>
			<port id="1" precision="FP32"><dim>2</dim></port>
		</input>
		<output><port id="2" precision="FP32" names="y"><dim>1</dim><dim>2</dim></port></output>
	</layer>
	<layer id="3" name="y" type="Result" version="opset1">
		<input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></input>
	</layer>
</layers>
<edges>
	<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
	<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
	<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
</edges>
<rt_info />
</net>
"""
BIN = bytes(8)


def codes(text: str | bytes, weights: bytes | None = BIN, **options: Any) -> set[str]:
    data = text.encode() if isinstance(text, str) else text
    return {finding.code for finding in ir.check(data, weights=weights, **options)}


def test_files_that_openvino_wrote_have_no_errors_and_no_warnings(written: Written) -> None:
    findings = [finding for path in written.all() for finding in ir.check(path)]
    assert [str(finding) for finding in findings if finding.severity != "info"] == []


def test_a_sound_file_has_no_findings() -> None:
    assert codes(ADD) == set()


@pytest.mark.parametrize(("old", "new", "code", "line", "severity"), [
    ("</add", "</add", "", 0, ""),
    ('name="m"', 'name="&foo;"', "IR106", 2, "error"),
    ('<?xml version="1.0"?>\n', '<?xml version="1.0"?>\n<!DOCTYPE net>', "IR107", 2, "error"),
    ('<?xml version="1.0"?>', '\n<?xml version="1.0"?>', "IR108", 1, "warning"),
    ("</net>\n", "</net>\0", "IR109", 30, "error"),
    ('version="11"', 'version="12"', "IR205", 2, "error"),
    ('version="11"', 'version="7"', "IR954", 2, "error"),
    ('id="1" name="w"', 'id="0" name="w"', "IR215", 8, "error"),
    ('name="add"', 'name="w"', "IR216", 12, "warning"),
    ('<dim>2</dim></port></input>', '<dim>1..2</dim></port></input>', "IR219", 21, "error"),
    ('to-layer="3"', 'to-layer="9"', "IR301", 27, "error"),
    ('from-port="2"', 'from-port="5"', "IR302", 27, "error"),
    ('to-port="1"', 'to-port="0"', "IR303", 26, "error"),
    ('from-layer="0" from-port="0"', 'from-layer="2" from-port="2"', "IR306", 25, "error"),
    ('type="Add"', 'type="Addd"', "IR311", 12, "error"),
    ('type="Add"', 'type="ADD"', "IR312", 12, "warning"),
    ('type="Add" version="opset1"', 'type="Add" version="opset42"', "IR313", 12, "error"),
    ('type="Add" version="opset1"', 'type="Add" version="opset17"', "IR314", 12, "error"),
    ('type="Add" version="opset1"', 'type="Mine" version="extension"', "IR315", 12, "warning"),
    (' shape="1,2"', "", "IR401", 5, "error"),
    ("auto_broadcast=", "Auto_broadcast=", "IR402", 13, "error"),
    ("auto_broadcast=", "zzz=", "IR403", 13, "warning"),
    ('shape="1,2"', 'shape="5..2"', "IR404", 5, "error"),
    ('"numpy"', '"nunpy"', "IR405", 13, "error"),
    ('shape="2"', 'shape="-2,-2"', "IR502", 9, "error"),
    ('shape="2"', 'shape="4294967296, 4294967296"', "IR503", 9, "error"),
    ('size="8"', 'size="7"', "IR505", 9, "error"),
    ('offset="0"', 'offset="1"', "IR507", 9, "error"),
    ('offset="0"', f'offset="{2**63 - 1}"', "IR507", 9, "error"),
    ('<data shape="1,2"', '<data shape="1,3"', "IR601", 12, "error"),
    ('names="y"><dim>1', 'names="y"><dim>4', "IR606", 18, "warning"),
    ('precision="FP32" names="y"', 'precision="FP16" names="y"', "IR607", 18, "warning"),
])  # fmt: skip
def test_damage_has_its_code_and_line(
    old: str, new: str, code: str, line: int, severity: str
) -> None:
    report = ir.check(ADD.replace(old, new, 1).encode(), weights=BIN)
    found = [(f.code, f.line, f.severity) for f in report]
    assert (code, line, severity) in found if code else found == [], str(report)


def test_a_finding_tells_place_layer_attribute_numbers_and_hint() -> None:
    text = ADD.replace('size="8"', 'size="6"')
    (finding,) = ir.check(text.encode(), weights=BIN)
    assert (finding.line, finding.column) == (9, 49)
    assert (finding.layer, finding.name, finding.attribute) == (1, "w", "size")
    assert "8 bytes" in finding.message
    assert "6" in finding.message
    assert finding.hint


def test_everything_is_found_at_once() -> None:
    text = ADD.replace('size="8"', 'size="6"').replace("auto_broadcast", "auto_brodcast")
    text = text.replace('to-layer="3"', 'to-layer="8"').replace('shape="1,2"', 'shape="1,b"')
    assert {"IR505", "IR402", "IR301", "IR404", "IR305"} <= codes(text)


def test_truncation_names_place_and_layer() -> None:
    cut = ADD[: ADD.index("<input>\n\t\t\t<port")]
    (finding,) = [f for f in ir.check(cut.encode(), weights=BIN) if f.code == "IR102"]
    assert (finding.line, finding.layer, finding.name) == (14, 2, "add")


def test_every_truncation_has_an_error() -> None:
    data = ADD.encode().rstrip()
    begin = time.perf_counter()
    sound = [n for n in range(len(data)) if ir.check(data[:n], weights=BIN).ok]
    assert sound == []
    assert time.perf_counter() - begin < 60


def test_select_ignore_and_unknown_codes() -> None:
    text = ADD.replace('size="8"', 'size="6"').replace("auto_broadcast", "auto_brodcast")
    assert codes(text, select=["IR5"]) == {"IR505"}
    assert codes(text, ignore=["IR505"]) == {"IR402"}
    with pytest.raises(UsageError):
        ir.check(ADD.encode(), select=["IR999"])


@pytest.mark.parametrize(("target", "found"), [
    ("2026.3", set()), ("2022.1", set()), ("2021.4", {"IR901"}), ("2020.1", {"IR901"}),
])  # fmt: skip
def test_target_release(target: str, found: set[str]) -> None:
    assert codes(ADD, target=target) == found


@pytest.mark.parametrize("version", [10, 11])
def test_no_version_is_proposed_that_the_target_does_not_read(version: int) -> None:
    text = ADD.replace('version="11"', f'version="{version}"')
    (found,) = (row for row in ir.check(text.encode(), "2019.4") if row.code == "IR901")
    assert (
        f"IR version {version} came with OpenVINO {'2020.1' if version == 10 else '2022.1'}"
        in (found.message)
    )
    assert "version 10" not in (found.hint or "")
    assert "Model Optimizer" in (found.hint or "")


@pytest.mark.parametrize(
    ("offset", "wrong"),
    [
        ("0 ", "ends in blanks"),
        (" 0\n", "ends in blanks"),
        ("-4", "is not within 0 to 2^63 - 1"),
        (str(2**63), "is not within 0 to 2^63 - 1"),
        (" 0", None),
    ],
)
def test_an_offset_is_wrong_by_what_stands_there(offset: str, wrong: str | None) -> None:
    text = ADD.replace('offset="0"', f'offset="{offset}"')
    found = [row.message for row in ir.check(text.encode(), weights=BIN) if row.code == "IR501"]
    assert [wrong in message for message in found] == [True] * (wrong is not None)
    openvino = pytest.importorskip("openvino")
    weights = openvino.Tensor(np.frombuffer(BIN, np.uint8))
    if wrong is None:
        openvino.Core().read_model(text.encode(), weights)
    else:
        with pytest.raises(RuntimeError):
            openvino.Core().read_model(text.encode(), weights)


def test_target_names_opsets_that_came_later() -> None:
    text = ADD.replace('type="Add" version="opset1"', 'type="Add" version="opset13"')
    assert codes(text, target="2023.1") == {"IR902"}
    assert codes(text, target="2023.2") == set()
    with pytest.raises(UsageError):
        ir.check(ADD.encode(), target="soon")


def test_every_opset_came_with_a_release() -> None:
    """What is asked of a target, and what ``convert`` says, goes by this list."""
    named = {n for op in Op.registry.values() if op.is_standard for n in op.opset_numbers()}
    assert named == RELEASES.keys(), "ir/checking/rules/known.py says which release brought it"
    assert max(named) == NEWEST, "layers/base.py says which is the newest"


def test_report_as_json() -> None:
    report = ir.check(ADD.replace('size="8"', 'size="6"').encode(), weights=BIN)
    content = json.loads(json.dumps(report.to_json()))
    assert content["schema_version"] == 1
    assert content["ok"] is False
    (finding,) = content["findings"]
    assert {"severity", "code", "message", "line", "layer"} <= set(finding)


def test_a_model_in_memory_is_checked_as_it_would_be_written() -> None:
    model = ir.loads(ADD, BIN)
    assert ir.check(model).ok
    model.layer("add").data = {"auto_broadcast": "nunpy"}
    assert [finding.code for finding in ir.check(model)] == ["IR405"]


# The catalogue.


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_code_is_explained(code: str) -> None:
    rule = ir.explain(code.lower())
    assert rule.severity in ("error", "warning", "info")
    assert rule.title
    assert rule.why
    assert code in str(rule)


def test_every_code_in_the_rules_is_in_the_catalogue_and_the_other_way_round() -> None:
    import re

    folder = Path(ir.__file__ or "").parent
    text = "".join(
        path.read_text("utf-8")
        for room in ("text", "checking")
        for path in (folder / room).rglob("*.py")
    )
    used = set(re.findall(r'"(IR\d{3})"', text))
    assert used == set(RULES)
    assert len(GROUPS) >= 9


def test_breaches_that_are_borne_are_no_errors() -> None:
    borne = {code for code in TOLERATED if RULES[code].severity != "error"}
    assert borne == TOLERATED
    assert {c for c in RULES if c < "IR2" and RULES[c].severity != "error"} == TOLERATED


# Files that mean harm.


def huge(old: str, new: str) -> bytes:
    return ADD.replace(old, new, 1).encode()


@pytest.mark.parametrize(("data", "code"), [
    pytest.param(b"", "IR101", id="empty"),
    pytest.param(bytes(1000), "IR101", id="NULs"),
    pytest.param(ADD.encode("utf-16"), None, id="UTF-16"),
    pytest.param(huge("<rt_info />", "<a>" * 100_000 + "</a>" * 100_000), "IR114", id="deep"),
    pytest.param(huge('name="m"', f'name="{"x" * 20_000_000}"'), "IR115", id="long attribute"),
    pytest.param(huge('name="m"', f'name="{"&" * 5_000_000}"'), "IR106", id="ampersands"),
    pytest.param(huge("</net>", "<" * 5_000_000), "IR104", id="brackets"),
    pytest.param(ADD.encode().replace(b' id="0"', b" \x85", 1), "IR111", id="odd blank"),
    pytest.param(huge('shape="2"', 'shape="1000000, 1000000"'), "IR505", id="10^12 elements"),
    pytest.param(huge('<?xml version="1.0"?>', '<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b '
                      '"&a;&a;&a;">]>').replace(b'"m"', b'"&b;"'), "IR106", id="entities"),
    pytest.param(huge('<?xml version="1.0"?>', '<!DOCTYPE net SYSTEM "file:///etc/passwd">'),
                 "IR107", id="external DTD"),
])  # fmt: skip
def test_hostile_documents_have_an_answer_soon(data: bytes, code: str | None) -> None:
    begin = time.process_time()
    report = ir.check(data, weights=BIN)
    assert time.process_time() - begin < 3
    assert code is None or code in {finding.code for finding in report}
    assert code is not None or report.ok


@pytest.mark.parametrize("kind", ["none", "folder", "pipe", "loop", "dangling", "device"])
def test_odd_files_as_weights(kind: str, tmp_path: Path) -> None:
    path, beside = tmp_path / "m.xml", tmp_path / "m.bin"
    path.write_text(ADD)
    if kind == "folder":
        beside.mkdir()
    elif kind == "pipe":
        os.mkfifo(beside)
    elif kind in ("loop", "dangling", "device"):
        places = {"loop": beside, "dangling": tmp_path / "nothing", "device": Path("/dev/zero")}
        beside.symlink_to(places[kind])
    report = ir.check(path)
    assert {finding.code for finding in report} == {"IR508" if kind == "none" else "IR514"}
    assert report.exit_code() == 1


def test_a_document_that_cannot_be_opened_is_a_finding(tmp_path: Path) -> None:
    report = ir.check(tmp_path / "nothing.xml")
    assert [finding.code for finding in report] == ["IR100"]
    assert report.exit_code() == 3


def test_checking_takes_about_as_long_as_reading_and_inferring(tmp_path: Path) -> None:
    build = ir.Builder("long")
    value = build.parameter("x", "f32", (1, 4))
    for _ in range(2000):
        value = build.add("ReLU", "opset1", [value])
    build.result(value)
    path = tmp_path / "long.xml"
    ir.write(build.model(), path)
    begin = time.process_time()
    ir.infer(ir.read(path))
    middle = time.process_time()
    assert ir.check(path).ok
    assert time.process_time() - middle < 4 * (middle - begin) + 0.5


def test_the_order_of_the_groups_changes_nothing(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups only judge: what one needs to know it does not get from another that ran before."""
    files = [File.read(path) for path in written.all()[::25]]
    damaged = [case for file in files for case in cases(file, 1)][::4]
    before = [ir.check(case.xml, weights=case.weights) for case in damaged]
    monkeypatch.setattr(checker, "GROUPS", tuple(reversed(checker.GROUPS)))
    for case, report in zip(damaged, before, strict=True):
        again = ir.check(case.xml, weights=case.weights)
        assert {str(row) for row in again} == {str(row) for row in report}, case.kind


def test_the_vocabulary_of_the_structure_is_that_of_the_records() -> None:
    """What the tolerant reader knows is written once more, as importing the records takes time."""
    records: dict[str, type[Record]] = {"net": Net}
    queue: list[type[Record]] = [Net]
    for record in queue:
        for tag, (inner, _) in record.children().items():
            kind = "body" if inner is Body else tag
            if kind not in records and kind in CHILDREN.keys() | ATTRIBUTES.keys():
                records[kind] = inner
            if inner not in queue:
                queue.append(inner)
    assert records.keys() == CHILDREN.keys() | ATTRIBUTES.keys()
    # An <edge> is one of a graph: <back_edges> has others of that name.
    assert records["edge"] is Edge
    for kind, names in CHILDREN.items():
        assert names == records[kind].children().keys(), kind
    for kind, known in ATTRIBUTES.items():
        assert known == records[kind].attributes().keys(), kind
        needed = [name for name, f in records[kind].attributes().items() if f.is_required()]
        assert list(NEEDED.get(kind, ())) == needed, kind
    assert MapEntry.attributes().keys() == port_maps.KNOWN
    assert set(BODIES) == {tag for tag, (kind, _) in Layer.children().items() if kind is Body}
    assert set(LAYER_ORDER) | {"data", "rt_info"} == CHILDREN["layer"]


def _in_memory() -> ir.Model:
    net = ir.Builder("m")
    total = net.add(
        "Add", "opset1", [net.parameter("x", "f32", "2"), np.float32([1, 2])], name="a"
    )
    net.result(net.add("ReLU", "opset1", [total], name="b"), name="y")
    return net.model()


FAULTS_IN_MEMORY: dict[str, tuple[str, Callable[[ir.Model], object]]] = {
    "cycle": ("IR306", lambda m: m.connect(m["b"], m["a"], 1)),
    "no value": ("IR401", lambda m: m.add(ir.Layer("Const", "opset1", "k"))),
    "odd name": ("IR110", lambda m: setattr(m["b"], "name", "q\x00")),
    "odd name of the model": ("IR110", lambda m: setattr(m, "name", "q\x01")),
    "odd attribute": ("IR110", lambda m: m["b"].data.update(foo="\uffff")),
    "odd text": ("IR110", lambda m: setattr(m, "rt_info", ir.Info("rt_info", text="\uffff"))),
    "odd tensor": ("IR111", lambda m: setattr(m["b"].outputs[0], "names", ("\ud800",))),
}


@pytest.mark.parametrize("fault", FAULTS_IN_MEMORY)
@pytest.mark.parametrize("read", [False, True])
def test_models_that_cannot_be_written_are_checked_all_the_same(fault: str, read: bool) -> None:
    code, damage = FAULTS_IN_MEMORY[fault]
    model = ir.loads(*ir.dumps(_in_memory())) if read else _in_memory()
    damage(model)
    found = [finding for finding in ir.check(model) if finding.severity == "error"]
    assert code in {finding.code for finding in found}, found
