"""``vinoir bench`` tells times, ratios and whether the outputs agree; no time is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.cli.bench import milliseconds
from vinoir.ir.engine.workers.blas_threads import describe
from vinoir.ir.measuring import bench
from vinoir.schemas import UnsupportedError, UsageError

DIGITS = str(Path(__file__).parents[1] / "samples" / "digits.xml")


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["bench", *words])
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_ratios_and_correctness_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openvino")
    code, out, _ = call(
        capsys, DIGITS, "--against", "openvino", "--runs", "3", "--layers", "--threads", "1"
    )
    assert code == 0
    for text in ("vinoir", "openvino", "ours / its", "GFLOP/s", "MaxPool+ReLU", "peak memory"):
        assert text in out
    assert describe() in out


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openvino")
    words = ("--against", "openvino", "--runs", "3", "--layers", "--format", "json")
    code, out, _ = call(capsys, DIGITS, *words)
    facts = json.loads(out)
    assert code == 0
    assert facts["correct"] is True
    assert facts["blas"] == describe()
    assert [row["name"] for row in facts["runtimes"]] == ["vinoir", "openvino"]
    ours, theirs = facts["runtimes"]
    assert facts["ratios"]["openvino"] == pytest.approx(ours["median"] / theirs["median"])
    assert len(ours["seconds"]) == len(theirs["seconds"]) == 3
    assert {"seconds", "gigaflops", "gigabytes"} <= set(facts["layers"][0])


def test_other_numbers_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(model: ir.Model, *_: object) -> tuple[str, bench.Call]:
        return "1", lambda arrays: [array + 1 for array in ir.run(model, arrays).values()]

    monkeypatch.setattr(bench, "RUNTIMES", {"wrong": wrong})
    code, _, err = call(capsys, DIGITS, "--against", "wrong", "--runs", "1")
    assert code == 5
    assert "outputs differ from wrong's by" in err


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, DIGITS, "--against", "tflite")
    assert code == 2
    assert 'no runtime is named "tflite"' in err
    pytest.importorskip("onnxruntime")
    code, _, err = call(capsys, DIGITS, "--against", "onnxruntime")
    assert code == 2
    assert "onnxruntime needs the model as ONNX" in err


def test_a_model_made_in_memory_is_measured_alone() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 3, 8, 8))
    net.result(net.add("ReLU", "opset1", [x]), name="y")
    model = net.model()
    inputs = [np.zeros((1, 3, 8, 8), "f4")]
    report = bench.measure(model, inputs, runs=2, layers=True)
    assert [row.name for row in report.rows] == ["vinoir"]
    assert [row.operation for row in report.layers] == ["ReLU"]
    with pytest.raises(UsageError, match="read from a file"):
        bench.measure(model, inputs, against=["openvino"])


def test_each_run_begins_with_variables_anew(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    net = ir.Builder("growing")
    x, y = net.parameter("x", "f32", "1"), net.parameter("y", "f32", "2")
    kept = {"variable_id": "v", "variable_type": "f32", "variable_shape": "?"}
    before = net.add("ReadValue", "opset6", [net.constant(np.zeros(1, "f4"))], **kept)
    after = net.add("Concat", "opset1", [before, x], axis=0)
    net.add("Assign", "opset6", [after], variable_id="v")
    net.result(
        net.add("Add", "opset1", [after, y]), name="sum"
    )  # of other lengths at a second run
    ir.write(net.model(), tmp_path / "m.xml")
    arrays = [np.ones(1, "f4"), np.ones(2, "f4")]
    report = bench.measure(
        ir.read(tmp_path / "m.xml"), arrays, against=["openvino"], runs=1, layers=True
    )
    assert report.difference == 0


def test_weights_of_few_bits_are_no_difference(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    rng = np.random.default_rng(1)
    net = ir.Builder("levels")
    levels = net.constant(rng.integers(-128, 127, (512, 512), np.int8))
    wide = net.add("Convert", "opset1", [levels], destination_type="f32")
    scale = net.constant(np.full((512, 1), 0.01, "f4"))
    weights = net.add("Multiply", "opset1", [wide, scale])
    x = net.parameter("x", "f32", "?,512")
    made = net.add("MatMul", "opset1", [x, weights], transpose_a=False, transpose_b=True)
    net.result(made, name="y")
    ir.write(net.model(), tmp_path / "m.xml")
    array = rng.standard_normal((40, 512)).astype("f4")
    report = bench.measure(ir.read(tmp_path / "m.xml"), [array], against=["openvino"], runs=1)
    assert report.difference < 1e-5


def test_what_another_runtime_refuses_at_a_later_run_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def moody(model: ir.Model, *_: object) -> tuple[str, bench.Call]:
        calls = iter([[np.zeros((1, 10), "f4")]])

        def call(arrays: object) -> list[np.ndarray]:
            if (found := next(calls, None)) is None:
                raise RuntimeError("Exception from src/a.cpp:1:\nNode n\nindex 2 is outside\n")
            return found

        return "1", call

    monkeypatch.setattr(bench, "RUNTIMES", {"moody": moody})
    with pytest.raises(UnsupportedError, match=r"moody does not .*: Node n index 2 is") as told:
        bench.measure(ir.read(DIGITS), [np.zeros((1, 1, 16, 16), "f4")], against=["moody"])
    assert "--input" in (told.value.hint or "")


def test_a_small_plan_has_no_helpers() -> None:
    program = ir.compile(ir.read(DIGITS), threads=2)
    for _ in range(3):
        program([np.zeros((1, 1, 16, 16), "f4")])
    (planned,) = program._plans.values()
    assert planned is not None
    assert planned.team._helpers is None
    assert all(planned.team.alone)


@pytest.mark.parametrize(
    ("ours", "theirs", "apart"),
    [
        (np.array([np.inf, 1.0]), np.array([-np.inf, 1.0]), np.inf),
        (np.array([np.nan, 1.0]), np.array([np.inf, 1.0]), np.inf),
        (np.array([np.nan, -np.inf]), np.array([np.nan, -np.inf]), 0),
        (np.array([2**62]), np.array([2**62 + 1]), 2.0**-62),
        (np.array([2**62]), np.array([2**62 + 300]), 300 * 2.0**-62),
        (np.array([-(2**62)]), np.array([2**62]), 2),
        (np.array([2**62]), np.array([2**62 + 1], "u8"), 2.0**-62),
        (np.array([-(2**63)]), np.array([2**64 - 1], "u8"), 3),
        (np.array([2**63], "u8"), np.array([2**63 + 1], "u8"), 2.0**-63),
        (np.array([1.7e308]), np.array([-1.7e308]), np.inf),
        (np.array([4, 2]), np.array([4, 1]), 0.25),
    ],
)
def test_what_is_not_the_same_is_no_agreement(
    ours: np.ndarray, theirs: np.ndarray, apart: float
) -> None:
    assert bench.difference([ours], [theirs]) == apart


def test_onnx_runtime_is_given_and_asked_by_names(tmp_path: Path) -> None:
    """An ONNX model of the same names in another order is the same model."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    ports = {name: helper.make_tensor_value_info(name, 1, [2, 3]) for name in "abpq"}
    nodes = [helper.make_node("Sub", ["a", "b"], ["p"]), helper.make_node("Abs", ["b"], ["q"])]
    graph = helper.make_graph(nodes, "g", [ports[x] for x in "ba"], [ports[x] for x in "qp"])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "m.onnx")
    net = ir.Builder("net")
    a, b = (net.parameter(name, "f32", (2, 3)) for name in "ab")
    net.result(net.add("Subtract", "opset1", [a, b], name="minus").named("p"), name="one")
    net.result(net.add("Abs", "opset1", [b], name="size").named("q"), name="two")
    ir.write(net.model(), tmp_path / "m.xml")
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((2, 3), "f4") for _ in range(2)]
    report = bench.measure(ir.read(tmp_path / "m.xml"), given, against=["onnxruntime"], runs=1)
    assert report.difference == 0


def layers_of(
    model: ir.Model, path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[list[list[str]], dict[str, Any], str]:
    """The table of layers, the document, and what is noted."""
    ir.write(model, path)
    words = (str(path), "--layers", "--runs", "1", "--threads", "1")
    _, text, noted = call(capsys, *words)
    table = text.partition("layers, each with")[2].partition("BLAS of NumPy")[0].splitlines()[2:]
    return (
        [line.split() for line in table if line],
        json.loads(call(capsys, *words, "--json")[1]),
        noted,
    )


def test_times_of_layers_and_what_is_between_make_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows, facts, noted = layers_of(ir.read(DIGITS), tmp_path / "m.xml", capsys)
    times = [row[row.index("ms") - 1] for row in rows]
    assert all(float(time) > 0 for time in times)
    assert "definitions" not in noted
    (ours,) = facts["runtimes"]
    taken = sum(row["seconds"] for row in facts["layers"])
    assert facts["between_layers"] == pytest.approx(max(0.0, ours["least"] - taken))
    shares = [float(cell[:-1]) for row in rows for cell in row if cell.endswith("%")]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_a_short_time_is_no_zero() -> None:
    assert [milliseconds(time) for time in (3.2e-6, 0.07836, 0.00126)] == [
        "0.00320 ms", "78.36 ms", "1.26 ms",
    ]  # fmt: skip


def test_a_shape_that_depends_on_values_is_no_scalar(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    net = ir.Builder("m")
    x = net.parameter("x", "f32", "4,30")
    net.result(net.add("NonZero", "opset3", [x], output_type="i64"))
    rows, facts, _ = layers_of(net.model(), tmp_path / "m.xml", capsys)
    assert rows[0][2] == "[2,..120]"
    (layer,) = facts["layers"]
    assert (layer["shape"], layer["operations"], layer["bytes"]) == ("[2,..120]", 0, 480)


def test_times_of_definitions_are_said_to_be_such(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ir.Program, "times", lambda *_: None)
    _, facts, noted = layers_of(ir.read(DIGITS), tmp_path / "m.xml", capsys)
    assert "times of the definitions" in noted
    assert all(layer["by_definition"] for layer in facts["layers"])
