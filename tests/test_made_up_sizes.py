"""Sizes that nobody gave: where a layer refuses them, what to type is told."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main

Call = Callable[..., tuple[int, str]]
VERBS = (["run"], ["run", "--compiled"], ["bench", "--runs", "1"], ["compare", "--against", "f16"])


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*words: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return int(str(ended.value.code)), capsys.readouterr().err

    return called


def pooling(path: Path, shape: str, name: str = "an input", rows: int = 53) -> Path:
    """A model whose window of 2x2 does not fit into the least sizes, nor others into its rows."""
    net = ir.Builder("m")
    pool = net.add("MaxPool", "opset1", [net.parameter(name, "f32", shape)], strides=(2, 2),
                   pads_begin=(0, 0), pads_end=(0, 0), kernel=(2, 2))  # fmt: skip
    pattern = net.constant(np.array([0, 3, rows]))
    net.result(net.add("Reshape", "opset1", [pool, pattern], special_zero=True))
    ir.write(net.model(), path)
    return path


def counting(path: Path) -> Path:
    """A model that puts its numbers into two rows, of which inference knows nothing."""
    net = ir.Builder("m")
    x = net.parameter("an input", "f32", "?")
    all_ = net.add("GreaterEqual", "opset1", [x, net.constant(np.float32(-1e9))])
    count = net.add("Convert", "opset1", [all_], destination_type="i64")
    axis = net.constant(np.array([0]))
    count = net.add("ReduceSum", "opset1", [count, axis], keep_dims=True)
    half = net.add("Divide", "opset1", [count, net.constant(np.array([2]))])
    pattern = net.add("Concat", "opset1", [net.constant(np.array([2])), half], axis=0)
    net.result(net.add("Reshape", "opset1", [x, pattern], special_zero=False))
    ir.write(net.model(), path)
    return path


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
@pytest.mark.parametrize(
    ("shape", "given"),
    [
        ("?,3,?,?", []), ("1,3,?,2..300", []), ("?,3,2,?", ["-i", "an input=zeros:?,3,2,?"]),
    ],
)  # fmt: skip
def test_where_no_sizes_fit_those_to_give_are_told(
    words: list[str], shape: str, given: list[str], tmp_path: Path, call: Call
) -> None:
    path = pooling(tmp_path / "m.xml", shape)
    code, said = call(*words, path, *given)
    assert code == 1
    assert "as small as may be, as no usual ones fit" in " ".join(said.split())
    hint = shlex.split(" ".join(said.partition("for each ?:")[2].split()))
    assert hint[0] == "-i"
    name, _, sizes = hint[1].rpartition(":")
    numbers = [
        size if size.isdigit() else fits
        for size, fits in zip(sizes.split(","), ("1", "3", "2", "106"), strict=True)
    ]
    assert call(*words, path, "-i", f"{name}:{','.join(numbers)}")[0] == 0


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_what_is_told_to_be_typed_runs(words: list[str], tmp_path: Path, call: Call) -> None:
    path = counting(tmp_path / "m.xml")
    code, said = call(*words, path)
    assert code == 1
    assert "as small as may be; give" in " ".join(said.split())
    hint = shlex.split(" ".join(said.partition("such as ")[2].split()))
    assert hint[0] == "-i"
    assert call(*words, path, *hint)[0] == 0


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_sizes_that_were_given_are_not_said_to_be_made_up(
    words: list[str], tmp_path: Path, call: Call
) -> None:
    path = pooling(tmp_path / "m.xml", "?,3,?,?")
    code, said = call(*words, path, "-i", "an input=random:1,3,1,1")
    assert code == 1
    assert "window reaches over 2" in said
    assert "nobody gave" not in said


def test_a_reference_that_is_refused_has_nothing_to_do_with_sizes(
    tmp_path: Path, call: Call
) -> None:
    net = ir.Builder("m")
    net.result(net.add("ReLU", "opset1", [net.parameter("x", "f32", "?")]))
    ir.write(net.model(), tmp_path / "m.xml")
    (tmp_path / "other.onnx").write_bytes(b"\x08\x0e")
    code, said = call("compare", tmp_path / "m.xml", "--against", tmp_path / "other.onnx")
    assert code != 0
    assert "nobody gave" not in said
