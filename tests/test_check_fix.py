"""What ``check --fix`` mends, what it leaves, and how both are told; repeats that are gathered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import oracle
import pytest
from click.testing import CliRunner, Result
from test_check import ADD, BIN
from test_check_tolerated import STATE
from vinoir import ir
from vinoir.ir.checking.rules.catalogue import RULES
from vinoir.ir.cli.check import check_command

POOL = """\
<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1">
<data shape="1,3,8,8" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>
</output></layer>
<layer id="1" name="pool" type="MaxPool" version="opset14">
<data kernal="2, 2" strides="2, 2" dilations="1, 1" pads_begin="0, 0" pads_end="0, 0"/>
<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>
</input><output>
<port id="1" precision="FP32"><dim>1</dim><dim>3</dim><dim>5</dim><dim>5</dim></port>
<port id="2" precision="I64"><dim>1</dim><dim>3</dim><dim>4</dim><dim>4</dim></port>
</output></layer>
<layer id="2" name="axis" type="SoftMax" version="opset8"><data axis="7"/>
<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>
</input><output>
<port id="1" precision="FP32"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>
</output></layer>
<layer id="3" name="y" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>5</dim><dim>5</dim></port>
</input></layer>
<layer id="4" name="z" type="Result" version="opset1">
<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>
</input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="4" to-port="0"/>
</edges></net>"""


def mend(tmp_path: Path, text: str, *options: str, weights: bytes = b"") -> Result:
    """What ``check --fix`` says of a document, and writes beside it."""
    path = tmp_path / "bad.xml"
    path.write_text(text)
    if weights:
        path.with_suffix(".bin").write_bytes(weights)
    words = [str(path), "--fix", "-o", str(tmp_path / "good.xml"), "--force", *options]
    return CliRunner().invoke(check_command, words)


def test_what_hints_name_is_done_although_another_layer_has_an_error(tmp_path: Path) -> None:
    done = mend(tmp_path, POOL)
    assert done.exit_code == 1, done.output
    plain = re.sub(r"\s+", " ", done.stdout)
    assert "kernal is now kernel" in plain
    assert "port 1 declares FP32 1,3,4,4, was FP32 1,3,5,5" in plain
    assert "2 IR601" not in plain
    assert "error IR601" in plain  # what remains is told
    assert "good.xml: 1 error" in done.stderr
    report = ir.check(tmp_path / "good.xml")
    assert {finding.code for finding in report} == {"IR601"}


def test_openvino_reads_what_was_mended(tmp_path: Path) -> None:
    text = POOL.replace('axis="7"', 'axis="1"')
    with pytest.raises(RuntimeError):
        oracle.ask("shapes", text, b"")
    done = mend(tmp_path, text)
    assert done.exit_code == 0, done.output
    written = (tmp_path / "good.xml").read_text()
    assert oracle.ask("shapes", written, b"") == ["f32[1,3,4,4]", "f32[1,3,8,8]"]
    assert [str(finding) for finding in ir.check(tmp_path / "good.xml")] == []


@pytest.mark.parametrize("text", [POOL, POOL.replace('axis="7"', 'axis="1"'), STATE, ADD])
def test_a_second_time_there_is_nothing_to_do(tmp_path: Path, text: str) -> None:
    mend(tmp_path, text, weights=BIN)
    path = tmp_path / "good.xml"
    before = path.read_bytes()
    done = CliRunner().invoke(check_command, [str(path), "--fix", "--in-place"])
    assert "0 repairs, nothing written" in done.stderr
    assert path.read_bytes() == before


def test_a_bare_less_or_and_is_escaped(tmp_path: Path) -> None:
    bare = ADD.replace('name="', 'name="a < b & c ', 2)
    done = mend(tmp_path, bare, weights=BIN)
    assert done.exit_code == 0, done.output
    assert "mended IR104" in done.output
    assert "mended IR106" in done.output
    assert (tmp_path / "good.xml").read_text() == bare.replace("a < b & c", "a &lt; b &amp; c")
    again = mend(tmp_path, (tmp_path / "good.xml").read_text(), weights=BIN)
    assert "0 repairs" in again.output
    model = ir.loads(bare, BIN, lenient=True)
    assert [len(list(ir.fix(model))) for _ in range(2)] == [4, 0]
    left = mend(tmp_path, bare, "--ignore", "IR106", weights=BIN)
    assert "0 repairs" in left.output
    # A name that is not text is not repaired without a loss.
    torn = mend(tmp_path, bare.replace("a <", "a \x01 <"), weights=BIN)
    assert "0 repairs" in torn.output


def test_blanks_before_the_declaration_go_behind_it(tmp_path: Path) -> None:
    late = "\n \n" + '<?xml version="1.0"?>\n' + re.sub(r"^<\?xml.*?\?>\s*", "", ADD)
    done = mend(tmp_path, late, weights=BIN)
    assert done.exit_code == 0, done.output
    assert "mended IR108" in done.output
    written = (tmp_path / "good.xml").read_text()
    assert written.startswith('<?xml version="1.0"?>\n')
    assert written.split() == late.split()
    assert "IR108" not in {finding.code for finding in ir.check(tmp_path / "good.xml")}
    both = mend(tmp_path, late.replace('name="', 'name="a < b ', 1), weights=BIN)
    assert "mended IR108" in both.output
    assert "mended IR104" in both.output
    assert "0 repairs" in mend(tmp_path, late, "--ignore", "IR108", weights=BIN).output


def test_who_misses_an_attribute_is_sent_to_the_checker() -> None:
    """Where a file says what is there: a builder has told of misspelt names already."""
    with pytest.raises(ir.IRError, match=r"kernel is missing.*vinoir check"):
        ir.infer(ir.loads(POOL.replace('axis="7"', 'axis="1"')))
    net = ir.Builder()
    with pytest.raises(ir.IRError) as caught:
        net.add("MaxPool", "opset1", [net.parameter("x", "f32", "1,3,8,8")])
    assert caught.value.hint is None


def test_select_and_ignore_say_what_is_mended(tmp_path: Path) -> None:
    assert "IR606" not in mend(tmp_path, POOL, "--select", "IR402").stdout
    assert "kernel=" in (tmp_path / "good.xml").read_text()
    assert "<dim>5</dim>" in (tmp_path / "good.xml").read_text()
    assert "IR402" not in mend(tmp_path, POOL, "--ignore", "IR402").stdout
    assert "kernal=" in (tmp_path / "good.xml").read_text()
    assert mend(tmp_path, POOL, "--select", "IR999").exit_code != 0


def test_strict_is_about_what_remains(tmp_path: Path) -> None:
    text = ADD.replace('auto_broadcast="numpy"', 'auto_broadcast="numpy" zzz="1"')
    assert mend(tmp_path, text, weights=BIN).exit_code == 0
    assert mend(tmp_path, text, "--strict", weights=BIN).exit_code == 1


def test_a_target_gets_versions_that_it_knows(tmp_path: Path) -> None:
    text = ADD.replace('type="Add" version="opset1"', 'type="Add" version="opset13"')
    done = mend(tmp_path, text, "--target", "2023.1", weights=BIN)
    assert done.exit_code == 0, done.output
    assert "IR902" in done.stdout
    assert 'type="Add" version="opset1"' in (tmp_path / "good.xml").read_text()


def test_json_holds_repairs_and_what_remains(tmp_path: Path) -> None:
    content = json.loads(mend(tmp_path, POOL, "--json").stdout)
    assert [row["code"] for row in content["repairs"]] == ["IR402", "IR606", "IR604"]
    assert [row["code"] for row in content["findings"]] == ["IR601"]
    assert content["written"] is True
    log = json.loads(mend(tmp_path, POOL, "--format", "sarif").stdout)
    assert [row["ruleId"] for row in log["runs"][0]["results"]] == ["IR601"]
    assert mend(tmp_path, POOL, "--format", "github").stdout.startswith("::error ")


def test_what_openvino_takes_is_written_out() -> None:
    model = ir.loads(POOL.replace("kernal", "kernel").replace(' pads_end="0, 0"', ""))
    assert "IR412" in {finding.code for finding in ir.check(model)}
    ir.fix(model)
    assert model.layer("pool").data["pads_end"] == "0, 0"
    assert "IR412" not in {finding.code for finding in ir.check(model)}


# Repeats.


def repeated(count: int) -> str:
    """A chain of ReLUs, each with an attribute that it does not have."""
    port = '<port id="{}" precision="FP32"><dim>1</dim></port>'
    layers = [
        '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" '
        f'element_type="f32"/><output>{port.format(0)}</output></layer>'
    ]
    edges = []
    for number in range(1, count + 1):
        layers.append(
            f'<layer id="{number}" name="r{number}" type="ReLU" version="opset1"><data zz="1"/>'
            f"<input>{port.format(0)}</input><output>{port.format(1)}</output></layer>"
        )
        before = 0 if number == 1 else 1
        edges.append(
            f'<edge from-layer="{number - 1}" from-port="{before}" to-layer="{number}" '
            'to-port="0"/>'
        )
    layers.append(
        f'<layer id="{count + 1}" name="y" type="Result" version="opset1">'
        f"<input>{port.format(0)}</input></layer>"
    )
    edges.append(f'<edge from-layer="{count}" from-port="1" to-layer="{count + 1}" to-port="0"/>')
    return "\n".join(
        [
            '<net name="m" version="11"><layers>',
            *layers,
            "</layers><edges>",
            *edges,
            "</edges></net>",
        ]
    )


@pytest.mark.parametrize("count", [1, 2, 40])
def test_repeats_are_one_line_with_count_and_first_place(tmp_path: Path, count: int) -> None:
    path = tmp_path / "chain.xml"
    path.write_text(repeated(count))
    report = ir.check(path)
    assert len(report) == count
    (cause,) = report.causes()
    assert (cause.count, cause.first.line) == (count, 3)
    done = CliRunner().invoke(check_command, [str(path)])
    assert done.stdout.count("IR403") == 1
    plain = re.sub(r"\s+", " ", done.stdout)
    assert (f"({count - 1} more: line" in plain) == (count > 1)
    everything = CliRunner().invoke(check_command, [str(path), "--all"])
    assert everything.stdout.count("IR403") == count
    sums = f"{count} warnings of 1 cause (--all shows each)" if count > 1 else "1 warning"
    assert f"chain.xml: {sums}" in done.stderr


def test_other_formats_gather_too(tmp_path: Path) -> None:
    path = tmp_path / "chain.xml"
    path.write_text(repeated(12))

    def said(*options: str) -> str:
        return CliRunner().invoke(check_command, [str(path), *options]).stdout

    (result,) = json.loads(said("--format", "sarif"))["runs"][0]["results"]
    assert result["occurrenceCount"] == 12
    assert len(json.loads(said("--format", "sarif", "--all"))["runs"][0]["results"]) == 12
    assert said("--format", "github").count("::warning") == 1
    assert said("--format", "github", "--all").count("::warning") == 12
    content = json.loads(said("--json"))
    assert len(content["findings"]) == 12
    assert [(row["code"], row["count"]) for row in content["causes"]] == [("IR403", 12)]


def test_lines_fit_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    Path("chain.xml").write_text(repeated(500).replace('name="r7"', f'name="{"long " * 60}"'))
    Path("pool.xml").write_text(POOL)
    done = CliRunner().invoke(check_command, ["chain.xml", "pool.xml"])
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith("chain.xml:3:")


def test_a_finding_weighs_what_explain_says() -> None:
    texts = [ADD, POOL, STATE, repeated(3), ADD.replace("<net", "<!DOCTYPE net><net", 1)]
    texts += [ADD.replace(old, new) for old, new in (
        ('type="Result"', 'type="result"'), ('type="Const"', 'type="Constant"'),
        ('size="8"', 'size="800"'), ("<rt_info />", "<rt_info /><rt_info />"),
        ("</layers>", "</layers><layers><layer/></layers>"), ('from-layer="1"', 'from-layer="0"'),
        ('<output><port id="0" precision="FP32"><dim>2</dim></port></output>', ""),
    )]  # fmt: skip
    texts.append(STATE.replace('type="Assign"', 'type="ReLU"'))
    for text in texts:
        for weights in (BIN, None):
            for finding in ir.check(text.encode(), weights=weights):
                assert finding.severity == RULES[finding.code].severity


def test_what_is_declared_stays_where_constants_are_missing(tmp_path: Path) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,6,4,4")
    y = net.add("ReduceMean", "opset1", [x, net.constant([2, 3])], keep_dims=False)
    net.result(net.add("ReLU", "opset1", [y]), name="y")
    ir.write(net.model(), tmp_path / "whole.xml")
    text = (tmp_path / "whole.xml").read_text()
    made = mend(tmp_path, text)  # without the .bin
    assert made.exit_code == 1
    assert "0 repairs" in made.output
    assert (tmp_path / "good.xml").read_text() == text
    assert not (tmp_path / "good.bin").exists()
