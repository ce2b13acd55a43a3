"""Names of a file on their way to a terminal, a build server or a log: nothing obeys them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.checking.reports import to_github, to_sarif
from vinoir.ir.cli import main
from vinoir.schemas import IRError, Where
from vinoir.schemas.printing import printable, printable_name

HOSTILE = {
    "newline": "a\n::error file=x.py::injected",
    "carriage return": "a\r::error::injected",
    "escape": "\x1b[31mred\x1b]0;title\x07",
    "C1": "a\x9b31mb\x85c",
    "delete": "a\x7fb",
    "bidi": "a\u202egnp.exe\u2066b",
    "separators": "a\u2028::error::injected\u2029b",
    "invisible": "a\u200b\u200e\ufeff\U000e0041b",
    "old command": "##[error]injected",
    "command": "::error::injected",
    "long": "n" * 1_000_000,
}
#: What XML cannot hold comes into a name only by code.
IN_XML = sorted(set(HOSTILE) - {"escape"})


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_what_is_printed_is_one_harmless_line(name: str) -> None:
    text = printable(name)
    assert text.isprintable()
    assert len(text) <= 10 * 4001
    assert not text.startswith("::")
    assert "##[" not in text
    assert printable(text, len(text)) == text


def test_a_long_text_is_cut_in_the_middle() -> None:
    name = "a" * 500_000 + "b" * 500_000
    assert printable_name(name) == "a" * 100 + "…" + "b" * 100


def test_what_is_printable_stays() -> None:
    for name in ("conv1/Conv2D:0", "слой", "層 1", "C:\\models\\x.xml", "a—b é 🙂"):
        assert printable(name) == name


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_errors_and_places_are_printable(name: str) -> None:
    error = IRError(name, Where(name, 1, 2, 3, name, name, name), name)
    assert str(error).isprintable()
    assert error.message == name  # a program gets what the file says
    assert str(ir.InternalError(KeyError(name), error.where)).isprintable()


def document(name: str) -> str:
    """A model whose every name is hostile, and which has something to be found."""
    shown = "".join(c if c.isalnum() or c in " []./=" else f"&#x{ord(c):x};" for c in name)
    return (
        f'<?xml version="1.0"?><net name="{shown}" version="11"><layers>'
        f'<layer id="0" name="{shown}" type="Parameter" version="opset1">'
        f'<data shape="2" element_type="f32" kernal="{shown}"/><output>'
        f'<port id="0" precision="FP32" names="{shown}"><dim>2</dim></port></output></layer>'
        f'<layer id="1" name="{shown}" type="ReLU" version="opset1"><input><port id="0" '
        'precision="FP32"><dim>2</dim></port></input><output>'
        f'<port id="1" precision="FP32" names="out{shown}"><dim>3</dim></port></output></layer>'
        f'<layer id="2" name="{shown}" type="Result" version="opset1"><input><port id="0" '
        'precision="FP32"><dim>2</dim></port></input></layer>'
        f'<layer id="3" name="{shown}" type="{shown}" version="{shown}"/></layers><edges>'
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
        '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'
    )


VERBS = [
    ("show",), ("show", "--layers"), ("show", "--layer", "1"), ("check",), ("check", "--strict"),
    ("check", "--format", "github"), ("check", "--format", "sarif"), ("check", "--json"),
    ("check", "--fix", "-o", "mended.xml"), ("infer",), ("infer", "--json"),
    ("infer", "--input", "0=1,2,3"), ("run",), ("run", "--trace"), ("run", "--all"),
    ("run", "--input", "nothing=zeros"), ("bench", "--runs", "1"), ("weights", "list"),
]  # fmt: skip


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
@pytest.mark.parametrize("kind", IN_XML)
def test_no_verb_lets_a_name_through(
    kind: str,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.xml").write_text(document(HOSTILE[kind]), "utf-8")
    Path("model.bin").touch()
    with pytest.raises(SystemExit):
        main([words[0], *(words[1:2] if words[0] == "weights" else ()), "model.xml",
              *words[2 if words[0] == "weights" else 1:]])  # fmt: skip
    captured = capsys.readouterr()
    commands = "github" in words
    for line in (captured.out + captured.err).split("\n"):
        assert line.isprintable()
        assert not line.lstrip().startswith("::") or commands
        assert not line.lstrip().startswith("::error::injected")
        assert "##[" not in line or "json" in words[-1] or "sarif" in words
        assert len(line) < 30_000 or "json" in words[-1] or "sarif" in words


@pytest.mark.parametrize("kind", IN_XML)
def test_on_a_terminal_a_name_is_as_harmless(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    path = tmp_path / "model.xml"
    path.write_text(document(HOSTILE[kind]), "utf-8")
    for verb in ("show", "infer", "check"):
        with pytest.raises(SystemExit):
            main([verb, str(path)])
    captured = capsys.readouterr()
    text = re.sub(r"\x1b\[[0-9;]*m", "", captured.out + captured.err)
    assert text != captured.out + captured.err  # there were colours
    for line in text.split("\n"):
        assert line.isprintable()
        assert not line.lstrip().startswith("::")


def test_an_annotation_is_one_line_and_names_no_other_file() -> None:
    name = "a\n::error file=b,line=2::c%0A"
    report = ir.check(document(name).encode())
    lines = to_github([report]).split("\n")
    assert len(lines) == len(report.findings)
    for line in lines:
        head, _, message = line[2:].partition("::")
        assert head.count("file=") <= 1
        assert "%0A" not in message.replace("%250A", "")


def test_sarif_is_ascii_and_holds_no_link() -> None:
    report = ir.check(document("[click](http://example.org)\u202e").encode())
    for result in to_sarif([report])["runs"][0]["results"]:
        assert result["message"]["text"].isprintable()
        assert "](" not in result["message"]["text"].replace("\\](", "")
        json.dumps(result)


def test_one_of_something_is_told_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    net = ir.Builder("one")
    x = net.parameter("x", "f32", "2")
    net.result(net.add("ReLU", "opset1", [x], name="relu"), name="y")
    model = net.model()
    ir.write(model, "one.xml")
    custom = Path("one.xml").read_text("utf-8").replace('type="ReLU"', 'type="Odd"')
    Path("odd.xml").write_text(custom, "utf-8")
    alone = ir.Builder("alone")
    alone.parameter("x", "f32", "2")
    program = ir.compile(model, threads=1)
    program([np.zeros(2, "f4")])
    simplified, report = ir.simplify(model)
    told = [
        repr(alone.model()), repr(ir.infer(alone.model())), repr(ir.Predictor("one.xml")),
        *(each._repr_html_() for each in (program, alone.model(), simplified.inputs, report)),
        repr(report), ir.diff(model, ir.read("odd.xml"))._repr_html_(),
    ]  # fmt: skip
    with pytest.raises(IRError) as caught:
        ir.draw(model).paint("v", {"elsewhere": 1.0})
    told.append(str(caught.value))
    for words in ("run odd.xml", "convert odd.xml --target 2022.1 --dry-run", "show one.xml"):
        with pytest.raises(SystemExit):
            main(words.split())
        told.append("".join(capsys.readouterr()))
    assert "1 layer cannot be run" in "".join(told)
    for text in told:
        assert not re.search(r"\b1 (?!is|was|has|less|axis)[a-z]+s\b", text), text


@pytest.mark.parametrize("verb", ["infer", "show", "simplify --dry-run", "run", "bench"])
def test_the_form_of_an_input_is_that_of_the_help(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.xml").write_text(document("x"), "utf-8")
    with pytest.raises(SystemExit):
        main([verb.split()[0], "--help"])
    (form,) = re.findall(r"-i, --input (\S+)", capsys.readouterr().out)
    with pytest.raises(SystemExit) as left:
        main([*verb.split(), str(tmp_path / "m.xml"), "--input", "4,1,16,16"])
    assert left.value.code == 2
    assert f'"4,1,16,16" is not {form}' in capsys.readouterr().err
