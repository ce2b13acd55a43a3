"""``vinoir bench`` tells times, ratios and whether the outputs agree; no time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.engine.workers.blas_threads import describe
from vinoir.ir.measuring import bench
from vinoir.schemas import UsageError

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


def test_a_small_plan_has_no_helpers() -> None:
    program = ir.compile(ir.read(DIGITS), threads=2)
    for _ in range(3):
        program([np.zeros((1, 1, 16, 16), "f4")])
    (planned,) = program._plans.values()
    assert planned is not None
    assert planned.team._helpers is None
    assert all(planned.team.alone)
