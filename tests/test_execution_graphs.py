"""What OpenVINO compiled a model to is told as such, and shown with its times."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import oracle
import pytest
from cli_folder import EXECUTION_GRAPH as GRAPH
from cli_folder import Call, caller
from vinoir import ir
from vinoir.schemas import UnsupportedError

DIGITS = Path(__file__).parent.parent / "samples" / "digits.xml"
SENTENCE = "an execution graph, what OpenVINO compiled a model to"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    (tmp_path / "graph.bin").touch()
    (tmp_path / "graph.xml").write_text(GRAPH)
    return tmp_path / "graph.xml"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


def test_its_times_are_a_table(graph: Path, call: Call) -> None:
    code, out, _ = call("show", str(graph))
    assert code == 0
    assert "40 microseconds in 2 primitives" in out
    assert "2026.4.1" in out
    assert "1 constant" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["3", "y", "Eltwise", "jit_avx512_f32", "f32", "30", "75.0%", "add,", "relu"] in rows
    assert out.index("Input") < out.index("Reorder") < out.index("Eltwise")
    out = call("show", str(graph), "--sort", "time")[1]
    assert out.index("Eltwise") < out.index("Reorder") < out.index("Input")


def test_its_times_are_a_document(graph: Path, call: Call) -> None:
    told = json.loads(call("show", str(graph), "--json")[1])
    assert [row["name"] for row in told["primitives"]] == ["x", "w", "moved", "y"]
    assert told["primitives"][3]["layers"] == ["add", "relu"]
    assert [row["microseconds"] for row in told["primitives"]] == [None, None, 10, 30]
    assert told["microseconds"] == 40


@pytest.mark.parametrize("text", ["not_executed", "-1", "1e3", "9" * 30, ""])
def test_without_times_it_says_how_they_come(text: str, graph: Path, call: Call) -> None:
    changed = GRAPH.replace('Mcs="30"', f'Mcs="{text}"').replace('Mcs="10"', f'Mcs="{text}"')
    graph.write_text(changed)
    code, out, err = call("show", str(graph))
    assert code == 0, err
    assert "none: compile with PERF_COUNT, and infer before saving" in out


def test_options_that_are_of_models_are_refused(graph: Path, call: Call) -> None:
    for words in (["--tree"], ["--layers"], ["--sort", "macs"], ["-i", "x=1"]):
        code, _, err = call("show", str(graph), *words)
        assert code == 2
        assert "is an execution graph, of which there is one table" in err
    assert call("show", str(graph), "--layer", "w")[0] == 0
    code, _, err = call("show", str(DIGITS), "--sort", "time")
    assert code == 2
    assert "vinoir bench MODEL --layers measures it" in err


VERBS = [
    ["infer"],
    ["run"],
    ["run", "-i", "x=zeros"],
    ["compare", "--against", "f16"],
    ["bench", "--runs", "1"],
]


@pytest.mark.parametrize("words", VERBS)
def test_other_verbs_say_what_it_is(words: list[str], graph: Path, call: Call) -> None:
    verb, *rest = words
    code, _, err = call(verb, str(graph), *rest)
    assert code == 4
    assert f"graph.xml: error: {SENTENCE}" in err
    assert "vinoir show tells this one's times" in err


def test_a_difference_is_refused_on_either_side(graph: Path, call: Call) -> None:
    for pair in ((graph, DIGITS), (DIGITS, graph)):
        code, _, err = call("diff", *map(str, pair))
        assert code == 4
        assert f"graph.xml: error: {SENTENCE}" in err


def test_check_tells_that_and_nothing_else(graph: Path) -> None:
    assert [one.code for one in ir.check(graph).findings] == ["IR119"]
    with pytest.raises(UnsupportedError, match=SENTENCE):
        ir.compile(ir.read(graph))


def test_a_model_is_none_though_a_layer_of_it_says_such_words(tmp_path: Path) -> None:
    words = '<data execOrder="0" primitiveType="x" '
    text = DIGITS.read_text("utf-8").replace("<data ", words, 1)
    (tmp_path / "m.xml").write_text(text, "utf-8")
    (tmp_path / "m.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    assert "IR119" not in {one.code for one in ir.check(tmp_path / "m.xml").findings}


def test_what_openvino_saves_is_shown_and_not_read_by_it(tmp_path: Path, call: Call) -> None:
    ov = pytest.importorskip("openvino")
    compiled = ov.Core().compile_model(DIGITS, "CPU", {"PERF_COUNT": True})
    compiled([np.zeros((1, 1, 16, 16), "f4")])
    ov.save_model(compiled.get_runtime_model(), tmp_path / "graph.xml")
    code, out, err = call("show", str(tmp_path / "graph.xml"))
    assert code == 0, err
    assert "Convolution" in out
    assert "microseconds in" in out
    assert [one.code for one in ir.check(tmp_path / "graph.xml").findings] == ["IR119"]
    with pytest.raises(RuntimeError):
        oracle.ask("shapes", (tmp_path / "graph.xml").read_text("utf-8"), b"")
