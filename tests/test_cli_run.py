"""``vinoir run`` on folders, batches and images; what ``show`` tells of precision and work."""

from __future__ import annotations

import json
import re
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_folder import LOOP, Call, caller, head, network
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_plugins import _installed as _installed
from vinoir import ir
from vinoir.ir.cli.expectations import compared
from vinoir.ir.cli.run import top_of
from vinoir.ir.display import macs, modules, precisions, summary


@pytest.fixture
def call(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Call:
    monkeypatch.chdir(tmp_path)
    return caller(capsys)


def images(model: ir.Model, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    Path("in").mkdir()
    arrays = [rng.random((1, 1, 16, 16), np.float32) for _ in range(count)]
    for number, array in enumerate(arrays):
        # With and without the first axis; 10 comes after 9.
        np.save(f"in/{number}.npy", array if number % 2 else array[0])
    return arrays


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("first", "batch"), [("1", None), ("?", None), ("?", 4), ("3", None)])
def test_each_file_of_a_folder_is_run(
    first: str, batch: int | None, compiled: bool, call: Call
) -> None:
    model = network()
    arrays = images(model, 11)
    ir.reshape(model, {"image": f"{first},1,16,16"})
    ir.write(model, "model.xml")
    more = ["--compiled"] * compiled + ([] if batch is None else ["--batch", str(batch)])
    code, out, err = call("run", "model.xml", "-i", "image=in", "--save", "out", "--json", *more)
    assert code == 0, err
    assert [row["sample"] for row in json.loads(out)["outputs"]] == list(map(str, range(11)))
    expected = [ir.run(network(), [array])["prob"] for array in arrays]
    for number, wanted in enumerate(expected):
        with np.load(f"out/{number}.npz") as content:
            np.testing.assert_allclose(content["prob"], wanted, rtol=1e-4, atol=1e-6)
    words = ("run", "model.xml", "-i", "image=in/*.npy", *more)
    assert call(*words, "--save", "all.npz")[0] == 0
    with np.load("all.npz") as content:
        np.testing.assert_allclose(content["prob"], np.concatenate(expected), 1e-4, 1e-6)
    assert call(*words, "--expect", "all.npz")[0] == 0


@pytest.mark.parametrize("word", ["random", "zeros", "ones"])
def test_unknown_sizes_are_said_with_the_filling(word: str, call: Call) -> None:
    model = network()
    ir.reshape(model, {"image": "?,1,16,16"})
    ir.write(model, "model.xml")
    code, out, err = call("run", "model.xml", "-i", f"image={word}:3,1,16,16", "--json")
    assert code == 0, err
    assert json.loads(out)["outputs"][0]["shape"].startswith("[3,")
    for sizes, said in (
        ("3,1,16,8", 'input "image" has the shape ?,1,16,16, asked are 3,1,16,8'), ("x", '"x" in'),
        ("3,1", 'input "image" has the shape ?,1,16,16, asked are 3,1'),
        ("", 'input "image" has the shape ?,1,16,16, asked are no sizes'),
    ):  # fmt: skip
        code, out, err = call("run", "model.xml", "-i", f"image={word}:{sizes}")
        assert (code, out) == (2, "")
        assert said in err


def test_inputs_that_do_not_go_together(call: Call) -> None:
    net = ir.Builder("two")
    a, b = (net.parameter(name, "f32", (1, 2)) for name in "ab")
    net.result(net.add("Add", "opset1", [a, b]), name="sum")
    ir.write(net.model(), "two.xml")
    for name, count in (("a", 2), ("b", 3)):
        Path(name).mkdir()
        for number in range(count):
            np.save(f"{name}/{number}.npy", np.full((1, 2), number, "f4"))
    code, _, err = call("run", "two.xml", "-i", "a=a", "-i", "b=b")
    assert code == 2
    assert 'different numbers of files: "a" 2, "b" 3' in err
    # One that is no folder goes with each.
    code, out, _ = call("run", "two.xml", "-i", "a=a", "-i", "b=ones", "--json")
    assert [row["mean"] for row in json.loads(out)["outputs"]] == [1, 2]


@pytest.mark.parametrize(
    ("shape", "type_", "mode"),
    [("1,3,4,6", "f32", "RGB"), ("1,4,6,3", "u8", "RGB"), ("1,1,4,6", "u8", "L"),
     ("1,3,?,?", "f16", "RGB"), ("3,4,6", "f32", "RGB")],
)  # fmt: skip
def test_images_come_as_the_input_takes_them(
    shape: str, type_: str, mode: str, call: Call
) -> None:
    image = pytest.importorskip("PIL.Image")
    net = ir.Builder("m")
    x = net.parameter("x", type_, shape)
    net.result(net.add("Convert", "opset1", [x], destination_type="f32"), name="y")
    ir.write(net.model(), "m.xml")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    image.fromarray(pixels).save("x.png")
    code, _, err = call("run", "m.xml", "-i", "x=x.png", "--save", "y.npz")
    assert code == 0, err
    with np.load("y.npz") as content:
        got = content["y"]
    wanted = np.asarray(image.open("x.png").convert(mode)).reshape(4, 6, -1)
    if not shape.endswith(",3"):
        wanted = wanted.transpose(2, 0, 1)
    np.testing.assert_array_equal(got.reshape(wanted.shape), wanted)
    # Another size is brought to that of the input, where it has one.
    image.fromarray(np.full((9, 9, 3), 7, np.uint8)).save("x.png")
    assert call("run", "m.xml", "-i", "x=x.png")[0] == 0
    Path("x.png").write_bytes(b"no image")
    code, _, err = call("run", "m.xml", "-i", "x=x.png")
    assert code == 3
    assert "cannot be read as an image" in err


def test_images_need_an_input_of_images(call: Call) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((2, 2, 3), np.uint8)).save("x.png")
    ir.write(head(), "head.xml")
    code, _, err = call("run", "head.xml", "-i", "features_in=x.png")
    assert code == 2
    assert "which is none of an image" in err


def test_trace_says_what_it_times(call: Call) -> None:
    ir.write(network(), "m.xml")
    code, out, err = call("run", "m.xml", "--trace", "--json")
    assert json.loads(out)["timed"] == "definitions"
    _, _, err = call("run", "m.xml", "--trace")
    assert "these are the times of the definitions" in err
    code, out, err = call("run", "m.xml", "--trace", "--compiled", "--json")
    told = json.loads(out)
    assert (code, told["timed"], err) == (0, "program", "")
    assert "MaxPool+ReLU" in [row["operation"] for row in told["trace"]]
    assert call("run", "m.xml")[1] != ""
    assert json.loads(call("run", "m.xml", "--json")[1])["timed"] is None


@given(st.lists(st.floats(width=32, allow_nan=True), min_size=1, max_size=40), st.integers(1, 9))
@example([float("nan"), float("-inf")], 1)
def test_the_largest_values(values: list[float], count: int) -> None:
    array = np.array(values, "f4")
    found = top_of(array, count)
    assert len(found) == min(count, len(values))
    numbers = [v for v in values if v == v]
    best = [one["value"] for one in found if one["value"] == one["value"]]
    assert best == sorted(numbers, reverse=True)[:count]
    for one in found:
        np.testing.assert_equal(array[tuple(one["index"])], np.float32(one["value"]))
    rows = top_of(np.stack([array, array]), 1)
    assert [row["index"][0] for row in rows] == [0, 1]


@settings(deadline=None)
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=8),
    st.lists(st.floats(width=32), min_size=1, max_size=8),
    st.sampled_from([0.0, 1e-4, 1.0]),
)
def test_comparison_is_that_of_numpy(a: list[float], b: list[float], tolerance: float) -> None:
    got, wanted = np.array(a, "f4"), np.array(b, "f4")
    with np.errstate(all="ignore"):
        near = got.shape == wanted.shape and np.allclose(
            got.astype("f8"), wanted.astype("f8"), tolerance, tolerance, equal_nan=True
        )
    found = compared({"y": got}, {"y": wanted}, tolerance)
    assert found["ok"] == near
    if not near and got.shape == wanted.shape:
        (place,) = found["outputs"][0]["place"]
        left, right = got[place].astype("f8"), wanted[place].astype("f8")
        assert not np.isclose(left, right, tolerance, tolerance, equal_nan=True)


# What show tells.


def quantized(kind: str, zeros: bool) -> ir.Model:
    """A product with compressed weights, of quantized activations."""
    net = ir.Builder("q")
    x = net.parameter("x", "f32", (1, 64))
    ends = [net.constant(np.float32(v)) for v in (-1, 1, -1, 1)]
    x = net.add("FakeQuantize", "opset1", [x, *ends], levels=256)
    w = net.constant(np.ones((8, 4, 16)), kind, name="w")
    w = net.add("Convert", "opset1", [w], destination_type="f32")
    if zeros:
        zero = net.add("Convert", "opset1", [net.constant(np.ones((8, 4, 1)), kind)],
                       destination_type="f32")  # fmt: skip
        w = net.add("Subtract", "opset1", [w, zero])
    w = net.add("Multiply", "opset1", [w, net.constant(np.ones((8, 4, 1), "f4"))])
    w = net.add("Reshape", "opset1", [w, net.constant(np.array([8, 64]))], special_zero=False)
    net.result(net.add("MatMul", "opset1", [x, w], transpose_b=True), name="y")
    return net.model()


@pytest.mark.parametrize("kind", ["u4", "i4", "i8", "u8", "f8e4m3"])
@pytest.mark.parametrize("zeros", [False, True])
def test_compressed_weights_are_told(kind: str, zeros: bool) -> None:
    found = precisions(quantized(kind, zeros))
    rows = {(row["type"], row["how"]): row["elements"] for row in found["stored"]}
    how = "a scale per group of 16" + (", with zero points" if zeros else "")
    assert rows[kind, how] == 512
    assert found["fake_quantize"] == {"256": 1}
    assert found["eight_bit_sums"] == (kind in ("i8", "u8"))


def test_halves_are_told() -> None:
    found = precisions(ir.compress(network()).model)
    assert [(row["type"], row["how"]) for row in found["stored"]] == [("f16", "converted")]
    assert precisions(network())["stored"] == []
    assert found["sums"] == {"f32": 3}


def test_work_is_that_of_the_definitions() -> None:
    model = network()
    found = {layer.name: macs(layer) for layer in model.layers if macs(layer) is not None}
    assert found == {"conv1": 1024 * 9, "block2/conv": 512 * 36, "scores": 5120}
    facts = summary(model)
    assert facts["macs"] == sum(count for count in found.values() if count)
    assert facts["parameters"] == sum(prod(x.sizes) for x in model.layers if x.is_constant)
    assert facts["depth"] == 11
    ir.reshape(model, {"image": "?,1,16,16"})
    assert (summary(model)["macs"], summary(model)["macs_unknown"]) == (None, 3)


def test_modules_hold_what_they_read() -> None:
    root = modules(network())
    names = {module.name: module for _, module in root.rows(None)}
    assert names["block2"].parameters >= 288
    assert root.parameters == summary(network())["parameters"]
    assert root.macs == summary(network())["macs"]
    assert modules(ir.loads(LOOP)).layers == 6


def test_show_sets_sizes(call: Call) -> None:
    model = network()
    ir.reshape(model, {"image": "?,1,16,16"})
    ir.write(model, "m.xml")
    assert "MACs        unknown; 3 layers have unknown sizes" in call("show", "m.xml")[1]
    two = call("show", "m.xml", "--input", "image=2,1,16,16", "--json")[1]
    assert json.loads(two)["macs"] == 2 * summary(network())["macs"]
    order = call("show", "m.xml", "--sort", "name")[1]
    assert re.search(r"Const-1.*Convolution-1.*MatMul-1.*MaxPool-14", order, re.DOTALL)


@pytest.mark.usefixtures("_installed")
def test_ops_knows_what_packages_offer(call: Call) -> None:
    code, out, _ = call("ops", "Twice")
    assert code == 0
    assert "offered by  doubling" in out
    rows: list[dict[str, Any]] = json.loads(call("ops", "--json")[1])["operations"]
    packages = {row["operation"]: row["package"] for row in rows}
    assert packages["Twice-1"] == "doubling"
    assert packages["MaxPool-14"] is None


#: A type of an input, an array of a file, and what is run, or what is said.
GIVEN: dict[str, tuple[str, Any, Any]] = {
    "f64 of f32": ("f32", np.float64([0.1, -2, np.nan]), np.float32([0.1, -2, np.nan])),
    "i64 of f32": ("f32", np.int64([1, -2, 3]), np.float32([1, -2, 3])),
    "too large": ("f32", np.float64([1e300, 0, 0]), "has 1e+300, which f32 does not hold"),
    "f32 of bf16": ("bf16", np.float32([1, -2.5, 0.1]), np.float32([1, -2.5, 0.10009765625])),
    "as ml_dtypes saves it": (
        "bf16", np.frombuffer(b"\x80\x3f\x20\xc0\x00\x00", "V2"), np.float32([1, -2.5, 0])
    ),
    "i8 of i4": ("i4", np.int8([-8, 0, 7]), np.int8([-8, 0, 7])),
    "beyond i4": ("i4", np.int8([0, 8, 0]), "has 8, which i4 does not hold"),
    "f32 of i32": ("i32", np.float32([1, -2, 0]), np.int32([1, -2, 0])),
    "fractions of i32": ("i32", np.float32([1, 1.5, 0]), "has 1.5, which i32 does not hold"),
    "nan of i32": ("i32", np.float64([np.nan, 1, 0]), "has nan, which i32 does not hold"),
    "nan of boolean": (
        "boolean", np.float32([1, np.nan, 0]), "has nan, which boolean does not hold"
    ),
    "u1 of boolean": ("boolean", np.uint8([1, 0, 1]), np.bool_([1, 0, 1])),
    "no numbers": ("f32", np.complex64([1, 2, 3]), "no array of numbers or text"),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_files_have_the_types_that_numpy_has(name: str, call: Call) -> None:
    kind, given_, wanted = GIVEN[name]
    net = ir.Builder("m")
    net.result(net.parameter("x", kind, "3"), name="y")
    ir.write(net.model(), "m.xml")
    np.save("x.npy", given_)
    np.savez("x.npz", x=given_)
    over = call("run", "m.xml", "-i", "x=x.npy", "--out", "out.jsonl", "--jobs", "1")
    for words in (["-i", "x=x.npy"], ["-i", "x=x.npz"], ["-i", "x=x.npy", "--compiled"]):
        code, _, err = call("run", "m.xml", *words, "--save", "out.npz", "--force")
        if isinstance(wanted, str):
            assert code == over[0] == 2
            for said in (err, over[2]):
                assert wanted in said
                assert f"the input is {kind}; write the file with values of that type" in said
                assert "astype" not in said
            continue
        assert code == over[0] == 0, err + over[2]
        with np.load("out.npz") as content:
            [found] = content.values()
        np.testing.assert_array_equal(found.astype("f8"), wanted.astype("f8"))
        np.save("again.npy", found)
        assert call("run", "m.xml", "-i", "x=again.npy")[0] == 0, "what was saved is taken"
