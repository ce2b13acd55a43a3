"""Failing models are made small, and still fail in the same way."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import Drawer
from test_compare import chain
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.comparing import reduction
from vinoir.ir.comparing.minimizing import gathered, halved, smallest
from vinoir.layers import Op
from vinoir.schemas import Array, ElementType, LimitError


def tried(folder: Path) -> subprocess.CompletedProcess[str]:
    """What pytest says of the test that a reduction wrote."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_reduced.py"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


@given(st.lists(st.integers(0, 200), unique=True, min_size=1, max_size=40), st.data())
@settings(deadline=None)
def test_the_smallest_part_has_no_smaller_one(items: list[int], data: st.DataObject) -> None:
    needed = set(data.draw(st.lists(st.sampled_from(items), unique=True)))
    found = smallest(items, lambda part: needed <= set(part))
    assert needed <= set(found)
    assert len(found) == max(len(needed), 1)


@given(st.integers(1, 400), st.data())
@settings(deadline=None)
def test_what_fails_together_is_gathered_by_bisection(count: int, data: st.DataObject) -> None:
    needed = set(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4)))
    asked: list[Sequence[int]] = []

    def fails(part: Sequence[int]) -> bool:
        assert sorted(set(part)) == list(part)
        asked.append(part)
        return needed <= set(part)

    assert gathered(range(count), fails) == sorted(needed)
    assert len(asked) <= len(needed) * (count.bit_length() + 1)


@given(st.integers(1, 400), st.data())
@settings(deadline=None)
def test_halves_come_down_to_neighbours(count: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, count - 1))
    apart = data.draw(st.integers(0, min(2, count - 1 - place)))
    needed, size = {place, place + apart}, 0

    def fails(part: Sequence[int]) -> bool:
        nonlocal size
        size += len(part)
        return needed <= set(part)

    found = halved(range(count), fails)
    assert needed <= set(found)
    assert list(found) == list(range(found[0], found[-1] + 1))
    assert apart or len(found) == 1
    # Each half costs half as much, and one item more where it does not come out even.
    assert size <= 3 * (count - 1 + (count - 1).bit_length())


@given(st.integers(0, 2**30), st.integers(2, 12))
@settings(deadline=None)
def test_what_is_gathered_fails_whatever_fails(seed: int, count: int) -> None:
    """Where more items may fail less, too many may be found, but what is found fails."""

    def fails(part: Sequence[int]) -> bool:
        known = list(part) == list(range(count))
        return known or random.Random(f"{seed} {list(part)}").random() < 0.3

    for ways in (gathered, halved, smallest):
        assert fails(ways(range(count), fails))


def operations(model: ir.Model) -> list[str]:
    return [x.type for x in model.layers if x.type not in ("Const", "Parameter", "Result")]


@pytest.mark.parametrize("seed", range(6))
def test_a_layer_that_is_refused_is_left_alone(seed: int) -> None:
    model = Drawer(seed).model(layers=12)
    layers = [x for x in model.order() if x.type in ("Convolution", "MaxPool", "AvgPool")]
    if not layers:
        pytest.skip("none was drawn")
    layer = layers[-1]
    layer.data = {**layer.data, "auto_pad": "explicit", "strides": ",".join(
        "0" for _ in layer.data["strides"].split(","))}  # fmt: skip
    found = ir.reduce(model, "infer")
    assert operations(found.model) == [layer.type]
    assert found.finished


def wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Elu be wrong for large values, where nothing runs it but its definition."""
    kind = Op.find("Elu", "opset1")
    assert kind is not None
    right = kind.run

    def run(self: Op, data: Array) -> tuple[Array, ...]:
        (found,) = right(self, data)
        return (np.where(data > 1, found * np.float32(1.5), found),)

    monkeypatch.setattr(kind, "run", run)


def test_a_difference_to_openvino_is_reduced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("openvino")
    wrong_kernel(monkeypatch)
    found = ir.reduce(chain(), "compare", output=tmp_path / "out")
    assert operations(found.model) == ["Elu"]
    assert found.failure == "values differ"
    assert max(found.model.parameters[0].outputs[0].dims) <= 4
    for name in ("reduced.xml", "reduced.bin", "inputs.npz", "NOTE.md", "test_reduced.py"):
        assert (tmp_path / "out" / name).exists()
    note = (tmp_path / "out" / "NOTE.md").read_text()
    assert "12 layers" in note
    assert "became 1" in note


def test_nan_is_reduced_and_the_test_fails(tmp_path: Path) -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", "2,16")
    y = net.add("Tanh", "opset1", [x], name="tanh")
    w = net.constant(np.random.default_rng(0).standard_normal((16, 16)).astype("f4"))
    y = net.add("MatMul", "opset1", [y, w], transpose_a=False, transpose_b=False, name="product")
    y = net.add("Log", "opset1", [y], name="log")
    net.result(net.add("Exp", "opset1", [y], name="exp"), name="y")
    found = ir.reduce(net.model(), "run", output=tmp_path / "out")
    assert operations(found.model) == ["Log"]
    assert found.failure == "NaN"
    done = tried(tmp_path / "out")
    assert done.returncode == 1, done.stdout
    assert "isnan" in done.stdout


def test_constants_become_seeds() -> None:
    def fails(model: ir.Model, samples: Sequence[Sequence[Array]]) -> bool:
        return "Convolution" in operations(model)

    found = ir.reduce(chain(), fails)
    assert operations(found.model) == ["Convolution"]
    assert len(found.seeds) >= 1


def test_what_is_said_of_random_inputs_makes_each_sample(tmp_path: Path) -> None:
    """Only the second sample is below zero: what is said of the first does not make it."""
    net = ir.Builder("net")
    net.result(net.add("Log", "opset1", [net.parameter("x", "f32", "1,32")], name="y"))
    rows = [[np.linspace(low, low + 1, 32, dtype="f4")[None]] for low in (3, -9)]
    found = ir.reduce(net.model(), "run", samples=rows, output=tmp_path / "out")
    assert found.failing == [1]
    note = (tmp_path / "out" / "NOTE.md").read_text("utf-8")
    with np.load(tmp_path / "out" / "inputs.npz") as held:
        for number in range(2):
            (line,) = (x for x in note.splitlines() if x.startswith(f"- x of sample {number}: "))
            text = line.partition(": ")[2]
            made = eval(text, {"default_rng": np.random.default_rng})
            np.testing.assert_array_equal(held[f"{number}.0"], made.astype("f4"))


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, "largest"])
def test_inputs_and_tensors_without_end_are_values_like_others(
    kind: str, value: float | str
) -> None:
    """No warning comes of them: of some inputs a tensor inside is beyond its type."""
    dtype = ElementType(kind).dtype
    sample = np.full((1, 32), np.finfo(dtype).max if value == "largest" else value, dtype)
    net = ir.Builder("net")
    x = net.parameter("x", kind, "1,32")
    less = net.add("Negative", "opset1", [net.add("Multiply", "opset1", [x, x])], name="less")
    net.result(net.add("Log", "opset1", [less], name="log"), name="y")
    found = ir.reduce(net.model(), "run", [sample])
    assert (operations(found.model), found.failure) == (["Log"], "NaN")


def test_what_fails_with_one_sample_of_many_is_kept() -> None:
    asked: list[int] = []

    def fails(model: ir.Model, samples: Sequence[Sequence[Array]]) -> bool:
        (sample,) = samples
        asked.append(len(asked))
        return any(float(np.abs(array).max()) > 3.5 for array in sample)

    rng = np.random.default_rng(0)
    rows = [[rng.uniform(-1, 1, (1, 4, 8, 8)).astype("f4")] for _ in range(3)]
    rows[2][0][0, 0, 0, 0] = 50
    found = ir.reduce(chain(), fails, samples=rows)
    assert 2 in found.failing
    assert len(found.samples) == 3
    assert len(asked) % 3 == 0  # every candidate was asked about with all three
    assert len(operations(found.model)) == 1


def test_two_layers_that_fail_together_are_both_kept() -> None:
    def fails(model: ir.Model, samples: Sequence[Sequence[Array]]) -> bool:
        return {"conv1", "elu4"} <= {x.name for x in model.layers if x.type != "Parameter"}

    found = ir.reduce(chain(), fails)
    assert sorted(operations(found.model)) == ["Convolution", "Elu"]


COUNTS = "import sys; from vinoir import ir; " \
    "sys.exit(3 * any(x.name == 'elu3' for x in ir.read(sys.argv[1]).layers))"  # fmt: skip


def test_a_command_is_asked_and_a_reduction_is_gone_on_with(tmp_path: Path) -> None:
    program = tmp_path / "check.py"
    program.write_text(COUNTS)
    command = f"{sys.executable} {program} {{}}"
    ir.write(chain(), tmp_path / "m.xml")
    first = ir.reduce(tmp_path / "m.xml", command, output=tmp_path / "out", max_seconds=0)
    assert not first.finished
    assert len(operations(first.model)) == 12
    second = ir.reduce(tmp_path / "m.xml", command, output=tmp_path / "out")
    assert second.finished
    assert operations(second.model) == ["Elu"]
    assert second.failure == "exit 3"
    checks = second.checks
    third = ir.reduce(tmp_path / "m.xml", command, output=tmp_path / "out")
    assert third.checks == checks
    assert operations(third.model) == ["Elu"]
    with pytest.raises(ir.UsageError, match="another model"):
        ir.reduce(chain(2), command, output=tmp_path / "out")


def test_bad_use_is_answered(tmp_path: Path) -> None:
    with pytest.raises(ir.UsageError, match="does not fail"):
        ir.reduce(chain(), "run")
    with pytest.raises(ir.UsageError, match="cannot be started"):
        ir.reduce(chain(), str(tmp_path / "no-program"))
    with pytest.raises(ir.UsageError, match="command is empty"):
        ir.reduce(chain(), " ")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(ir.UsageError, match="is not empty"):
        ir.reduce(chain(), "run", output=tmp_path / "full")


def test_the_verb_writes_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = chain()
    model.layer("conv3").data |= {"strides": "0, 0"}
    ir.write(model, tmp_path / "m.xml")
    main_words = ["reduce", str(tmp_path / "m.xml"), "--fails", "infer", "-o", str(tmp_path / "o")]
    with pytest.raises(SystemExit) as left:
        main(main_words)
    assert not left.value.code
    assert "12 layers became 1" in capsys.readouterr().out
    assert (tmp_path / "o" / "reduced.xml").exists()
    with pytest.raises(SystemExit) as left:
        main(main_words[:2])
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04\x2d", "a zip archive"),
        (b"\x93NUMPY\x01", "an array of NumPy"),
        (b"\x08\x07\x12\x07pytorch", "a protocol buffer, as ONNX is"),
        (b'{"nodes": []}', "JSON"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j", "a pickle"),
        (b"\x1c\0\0\0TFL3\x14\0", "TensorFlow Lite"),
        (b'\x10\x01\0\0\0\0\0\0{"a":{', "safetensors"),
    ],
)
@pytest.mark.parametrize("verb", ["check", "diff", "compare", "reduce"])
def test_a_file_of_another_kind_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, what: str, verb: str
) -> None:
    path = tmp_path / "model.any"
    path.write_bytes(content)
    more = {"diff": [str(path)], "reduce": ["--fails", "run", "-o", str(tmp_path / "o")]}
    with pytest.raises(SystemExit) as ended:
        main([verb, str(path), *more.get(verb, [])])
    said = capsys.readouterr()
    told = " ".join((said.out if verb == "check" else said.err).split())
    assert ended.value.code == (1 if verb == "check" else 3)
    assert f"not XML but {what}" in told
    assert "a model is an .xml" in told
    if verb == "check":
        report = ir.check(path)
        assert [finding.code for finding in report] == ["IR101"]


@pytest.mark.parametrize("content", [b"<a>{}</a>", b"<a>\n\n\n\n{</a>", b"<a> TFL3</a>"])
def test_xml_is_of_no_other_kind(content: bytes) -> None:
    assert [finding.code for finding in ir.check(content)] == ["IR201"]


def test_no_time_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ir.write(chain(1), tmp_path / "m.xml")
    words = ["--fails", "run", "-o", str(tmp_path / "out"), "--max-seconds", "0"]
    with pytest.raises(SystemExit) as ended:
        main(["reduce", str(tmp_path / "m.xml"), *words])
    assert ended.value.code == 2
    assert "'--max-seconds': 0.0 is not in the range x>0" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("reduce.json", b"[]"), ("reduce.json", b"{"), ("reduce.json", b"\xff"),
        ("reduce.json", {"phase": "dreams"}), ("reduce.json", {"seeds": 3}),
        ("reduce.json", {"checks": "7"}), ("reduce.json", {"before": None}),
        ("inputs.npz", b"nothing"), ("inputs.npz", {}),
    ],
)  # fmt: skip
def test_a_folder_that_others_have_been_in_is_refused(
    file: str, content: Any, tmp_path: Path
) -> None:
    path, out = tmp_path / "m.xml", tmp_path / "out"
    ir.write(chain(1), path)
    command = f"{sys.executable} -c raise"
    ir.reduce(path, command, output=out)
    if isinstance(content, bytes):
        (out / file).write_bytes(content)
    elif file == "inputs.npz":
        np.savez(out / file, other=np.zeros(1))
    else:
        state = json.loads((out / file).read_text("utf-8"))
        (out / file).write_text(json.dumps(state | content), "utf-8")
    before = {one.name: one.read_bytes() for one in out.iterdir()}
    with pytest.raises(ir.UsageError, match=f"{file} (is no state|does not hold)") as told:
        ir.reduce(path, command, output=out)
    assert "another folder" in str(told.value.hint)
    assert {one.name: one.read_bytes() for one in out.iterdir()} == before


def test_a_command_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction, "_FIRST", 0.2)
    command = f'{sys.executable} -c "import time; time.sleep(600)"'
    with pytest.raises(LimitError, match="took more than") as told:
        ir.reduce(chain(1), command, output=tmp_path / "out", max_seconds=0.1)
    assert "timeout 60 COMMAND" in str(told.value.hint)
    assert not (tmp_path / "out").exists()


def test_where_the_result_cannot_go_is_told_first(tmp_path: Path) -> None:
    ir.write(chain(1), tmp_path / "m.xml")
    with pytest.raises(ir.UsageError, match="is a file, no folder"):
        ir.reduce(tmp_path / "m.xml", "false", output=tmp_path / "m.bin")
    (tmp_path / "m.bin").unlink()
    with pytest.raises(ir.IRError, match=r"there is no \.bin"):
        ir.reduce(tmp_path / "m.xml", "infer", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_program_that_is_not_there_is_told_as_such() -> None:
    with pytest.raises(ir.UsageError, match="cannot be started") as told:
        ir.reduce(chain(1), "no_such_program_anywhere {}")
    assert "without a shell" in str(told.value.hint)


def test_a_failure_of_sizes_made_at_random_is_doubted() -> None:
    net = ir.Builder("net")
    x = net.parameter("points", "f32", "1,?")
    ends = net.add("TopK", "opset11", [x, net.constant(np.int64(4))], axis=1, mode="max",
                   sort="value", index_element_type="i32")  # fmt: skip
    net.result(ends, name="y")
    found = ir.reduce(net.model(), "run")
    assert found.doubt is not None
    assert "points" in found.doubt
    assert "give inputs" in found.note
    assert ir.reduce(net.model(), "run", [np.ones((1, 3), "f4")]).doubt is None
