"""Runs compared: what comes out of the models, and what is no difference of a layer."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.comparing import rounding
from vinoir.ir.comparing.constants import distance
from vinoir.ir.comparing.rounding import error, same_bits, too_far
from vinoir.ir.fleet import read_arrays
from vinoir.schemas import Array, IRError, UnreadableError, UsageError


def made(*ends: tuple[str, str], value: float = 1.0) -> ir.Model:
    """A ReLU, a Sigmoid and the Exp of a constant of an input; each output hands out one."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2, 3))
    held = {"x": x, "relu": net.add("ReLU", "opset1", [x], name="relu").named("relu")}
    if any(kind == "sigmoid" for _, kind in ends):
        held["sigmoid"] = net.add("Sigmoid", "opset1", [x], name="sigmoid").named("sigmoid")
    if any(kind == "deep" for _, kind in ends):
        held["deep"] = net.add("Exp", "opset1", [held["relu"]], name="deep")
    constant = net.constant(np.full((2, 3), value, "f4"), name="c")
    held["constant"] = net.add("Exp", "opset1", [constant], name="e")
    for name, kind in ends:
        net.result(held[kind], name=name)
    return net.model()


@pytest.mark.parametrize(
    ("one", "two", "names"),
    [
        (made(("a", "relu"), ("b", "sigmoid")), made(("a", "sigmoid"), ("b", "relu")), ["a", "b"]),
        (made(("a", "deep")), made(("a", "relu")), ["a"]),
        (made(("a", "relu")), made(("a", "deep")), ["a"]),
        (made(("a", "relu"), ("b", "x")), made(("a", "relu"), ("b", "relu")), ["b"]),
        (
            made(("a", "relu"), ("b", "constant")),
            made(("a", "relu"), ("b", "constant"), value=2.0),
            ["b"],
        ),
    ],
    ids=["swapped", "one layer more", "one less", "an input", "a constant"],
)
def test_outputs_that_differ_are_told_though_no_layer_is_wrong(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    one: ir.Model,
    two: ir.Model,
    names: list[str],
) -> None:
    found = ir.compare(one, two)
    assert found
    assert not found.wrong
    assert sorted(step.place.name for step in found.differing) == names
    ir.write(one, tmp_path / "one.xml")
    ir.write(two, tmp_path / "two.xml")
    with pytest.raises(SystemExit) as left:
        main(["compare", str(tmp_path / "one.xml"), "--against", str(tmp_path / "two.xml")])
    assert left.value.code == 5
    assert f"no layer is wrong, but {len(names)} of " in capsys.readouterr().out
    assert not ir.compare(one, one)


def test_outputs_of_a_recording_are_compared(tmp_path: Path) -> None:
    model, x = made(("a", "x"), ("b", "constant")), np.ones((2, 3), "f4")
    well = {"a": x, "b": np.exp(x)}
    np.savez(tmp_path / "well.npz", x=x, **well)
    assert not ir.compare(model, tmp_path / "well.npz")
    for name in well:
        np.savez(tmp_path / "off.npz", x=x, **(well | {name: well[name] + 1}))
        found = ir.compare(model, tmp_path / "off.npz")
        assert [step.place.name for step in found.differing] == [name]


def test_layers_without_a_counterpart_are_named() -> None:
    found = ir.compare(made(("a", "deep")), made(("a", "relu")))
    assert found.uncompared == ["deep"]
    assert "not compared: deep" in str(found)
    assert found.as_json()["uncompared"] == ["deep"]


def test_an_output_is_told_by_the_tensor_that_it_hands_out(tmp_path: Path) -> None:
    """Its own name is unknown there, that of its tensor is not."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in "xz"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2,))
    net.result(net.add("Negative", "opset1", [x], name="z"), name="y")
    found = ir.compare(net.model(), tmp_path / "m.onnx")
    assert [step.place.name for step in found.steps] == ["z"]
    assert not found.uncompared
    np.savez(tmp_path / "told.npz", x=np.ones(2, "f4"), z=-np.ones(2, "f4"))
    assert not ir.compare(net.model(), tmp_path / "told.npz").uncompared


def test_an_output_is_no_fault_where_a_layer_explains_it() -> None:
    one, two = made(("a", "deep")), made(("a", "deep"))
    layer = two.layer("relu")
    layer.type, layer.version = "Elu", "opset1"
    layer.data = {"alpha": "1.0"}
    found = ir.compare(one, two)
    assert [step.place.name for step in found.wrong] == ["relu"]
    assert [step.verdict for step in found.outputs] == ["inherited"]


@pytest.mark.parametrize("kind", ["f8", "f4", "f2"])
def test_a_recording_in_another_type_hides_nothing_behind_it(tmp_path: Path, kind: str) -> None:
    model, x = made(("a", "deep")), np.ones((2, 3), "f4")
    np.savez(tmp_path / "told.npz", x=x, relu=x.astype(kind), deep=np.full((2, 3), 100, kind))
    found = ir.compare(model, tmp_path / "told.npz")
    assert [step.place.name for step in found.wrong] == ["deep"]
    np.savez(tmp_path / "told.npz", x=x, relu=x.astype(kind), deep=np.exp(x).astype(kind))
    assert not ir.compare(model, tmp_path / "told.npz")


@pytest.mark.parametrize(
    "array",
    [
        np.full((2, 3), 2 + 1j),
        np.full((2, 3), "2000-01-01", "M8[D]"),
        np.zeros((2, 3), [("a", "f4")]),
        np.full((2, 3), "2"),
    ],
    ids=["complex", "date", "structured", "text"],
)
def test_what_is_no_array_of_numbers_is_refused(tmp_path: Path, array: np.ndarray) -> None:
    np.savez(tmp_path / "told.npz", x=np.ones((2, 3), "f4"), relu=array)
    with pytest.raises(UsageError, match=r'"relu" of told.npz is of the type'):
        ir.compare(made(("a", "relu")), tmp_path / "told.npz")


def save_by_lzma(path: Path, **arrays: np.ndarray) -> None:
    """An .npz as other programs may pack it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed, save_by_lzma])
def test_a_damaged_recording_is_told_in_a_sentence(
    save: Callable[..., None], tmp_path: Path
) -> None:
    model, path, refused = made(("a", "relu")), tmp_path / "told.npz", set[str]()
    save(path, x=np.ones((2, 3), "f4"), relu=np.ones((2, 3), "f4"))
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        for bit in (0, 5):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                ir.compare(model, path)
            except IRError as error:
                refused.add(error.message)
    read = [said for said in refused if " of told.npz cannot be read: " in said]
    assert any(word in said for said in read for word in ("CRC", "decompressing", "Corrupt"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be read"), (b"hello", "cannot be read"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'(\n", "cannot be read"),
        (b"\x93NUMPY\x01\x00\xff\x00{'descr'", "cannot be read"),
    ],
)  # fmt: skip
def test_what_is_no_array_in_a_recording_is_told(
    content: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "told.npz"
    np.savez(path, x=np.ones((2, 3), "f4"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("relu.npy", content)
    with pytest.raises(IRError, match=says) as found:
        ir.compare(made(("a", "relu")), path)
    assert found.value.exit_code in (2, 3)
    with pytest.raises(UnreadableError, match=r"told.npz is no .npy or .npz of plain arrays"):
        read_arrays(str(path), "told.npz is")


def test_a_recording_that_seems_encrypted_is_told(tmp_path: Path) -> None:
    path = tmp_path / "told.npz"
    np.savez(path, x=np.ones((2, 3), "f4"), relu=np.ones((2, 3), "f4"))
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    content[content.rindex(b"PK\x03\x04") + 6] |= 1
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=r'"relu" of told.npz cannot be read: .*encrypted'):
        ir.compare(made(("a", "relu")), path)
    with pytest.raises(UnreadableError, match="encrypted"):
        read_arrays(str(path), "told.npz is")


def test_names_are_those_of_the_whole_model(tmp_path: Path) -> None:
    """The name of a layer is that of another's tensor, far away."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2, 3))
    y = net.add("ReLU", "opset1", [x], name="t").named("u")
    for number in range(40):
        y = net.add("Negative", "opset1", [y], name=f"n{number}")
    net.result(net.add("Exp", "opset1", [y], name="w").named("t"), name="y")
    model, given = net.model(), np.full((2, 3), 2, "f4")
    np.savez(tmp_path / "told.npz", **ir.run(model, [given], outputs="all"))
    found = ir.compare(model, tmp_path / "told.npz")
    assert not found
    assert not found.uncompared


def test_two_things_under_names_of_one_tensor_are_refused(tmp_path: Path) -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2,))
    net.result(net.add("ReLU", "opset1", [x], name="relu").named("a", "b"), name="y")
    one = np.ones(2, "f4")
    np.savez(tmp_path / "told.npz", x=one, a=7 * one, b=one)
    with pytest.raises(UsageError, match='two things of one tensor: "a" and "b"'):
        ir.compare(net.model(), tmp_path / "told.npz")


def test_each_input_of_an_onnx_model_is_given_once(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    ports = [helper.make_tensor_value_info(name, 1, [2]) for name in "aby"]
    graph = helper.make_graph([helper.make_node("Sub", ["b", "a"], ["y"])], "g", ports[:2],
                              ports[2:])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              tmp_path / "m.onnx")  # fmt: skip
    net = ir.Builder("net")
    p, a = net.parameter("p", "f32", (2,)), net.parameter("a", "f32", (2,))
    net.result(net.add("Subtract", "opset1", [p, a], name="y").named("y"), name="out")
    found = ir.compare(net.model(), tmp_path / "m.onnx")
    assert not found
    assert len(found.steps) == len(found.outputs) == 1


def test_whole_numbers_are_exact(tmp_path: Path) -> None:
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (100000,))
    net.result(net.add("ShapeOf", "opset3", [x], name="so", output_type="i64"), name="y")
    np.savez(tmp_path / "told.npz", x=np.zeros(100000, "f4"), so=np.array([100001]))
    found = ir.compare(net.model(), tmp_path / "told.npz")
    assert [step.verdict for step in found.wrong] == ["wrong"]


def test_a_zero_of_the_other_sign_is_another_input() -> None:
    def added(zero: float) -> ir.Model:
        net = ir.Builder("net")
        x = net.parameter("x", "f32", (2,))
        y = net.add("Add", "opset1", [x, net.constant(np.full(2, zero, "f4"))], name="add")
        y = net.add("Divide", "opset1", [net.constant(np.ones(2, "f4")), y], name="divide")
        net.result(y, name="y")
        return net.model()

    found = ir.compare(added(0.0), added(-0.0), [np.full(2, -0.0, "f4")])
    assert "divide" not in [step.place.name for step in found.wrong]
    assert not same_bits(np.float32([0.0]), np.float32([-0.0]))
    assert same_bits(np.float32([np.nan, -0.0]), np.float32([np.nan, -0.0]))


def test_the_largest_numbers_are_told_apart(tmp_path: Path) -> None:
    # |a - b| over |b| and the root of the mean square, which are both as large as b.
    assert error(np.array([1.7e308]), np.array([-1.7e308])) == 1.0
    net = ir.Builder("net")
    x = net.parameter("x", "f64", (2,))
    net.result(net.add("Negative", "opset1", [x], name="negative"), name="y")
    told = {"x": np.array([1.7e308, 1e308]), "negative": np.array([1.7e308, -1.7e308])}
    np.savez(tmp_path / "told.npz", **told)
    assert ir.compare(net.model(), tmp_path / "told.npz").wrong
    ones, twos = (ir.Builder("net") for _ in range(2))
    found = distance(
        ones.constant(np.float32([np.inf, 1])).layer, twos.constant(np.float32([1, 1])).layer
    )
    assert found is not None
    assert found.relative == np.inf


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("f16", np.array([40000, 3], "f2")),
        ("u64", np.array([2**63 + 5, 3], "u8")),
        ("f64", np.array([1e300, 3], "f8")),
    ],
)
def test_numbers_that_openvino_cannot_hand_out_are_no_fault(kind: str, values: np.ndarray) -> None:
    """Inside it goes on in 32 bits; of a piece that ends there the outputs are of the type."""
    pytest.importorskip("openvino")
    net = ir.Builder("net")
    x = net.parameter("x", kind, (2,))
    y = net.add("Add" if kind != "u64" else "Maximum", "opset1", [x, x], name="twice")
    half = net.constant(np.full(2, 0.5 if kind != "u64" else 1, values.dtype), name="half")
    net.result(net.add("Multiply", "opset1", [y, half], name="back"), name="y")
    found = ir.compare(net.model(), "openvino", [values])
    assert not found, str(found)
    assert len(found.steps) == 2


def test_a_model_that_only_hands_on_a_variable_has_nothing_to_compare() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2,))
    words = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2"}
    net.result(net.add("ReadValue", "opset6", [x], **words))
    net.add("Assign", "opset6", [x], variable_id="v")
    found = ir.compare(net.model(), "openvino")
    assert not found
    assert found.uncompared == []


def test_integers_against_what_is_no_number() -> None:
    whole, other = np.array([2**60, 1]), np.float32([np.nan, 1])
    assert error(whole, other) == error(other, whole) == np.inf
    assert too_far(whole, other, 1e-3).tolist() == [0]
    assert error(whole, whole + np.array([1024, 0])) > 0


@pytest.mark.parametrize(
    "shape", [(3, 50, 32, 32), (4, 2, 9000), (1, 70_001, 1), (40_000, 3), (7,)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_arrays_are_gone_through_in_large_pieces_however_they_lie(
    shape: tuple[int, ...], turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Channels that come last have rows of a few numbers: each by itself would take its time."""
    rng = np.random.default_rng(0)
    one = rng.standard_normal(shape).astype("f4")
    one = one.swapaxes(0, -1) if turned else one[..., ::2]
    two = one + np.where(rng.random(one.shape) < 0.01, 1e-3, 0).astype("f4")
    sizes: list[int] = []
    real = rounding.real

    def counted(array: Array) -> Array:
        sizes.append(array.size)
        return real(array)

    monkeypatch.setattr(rounding, "real", counted)
    places = too_far(one, two, 1e-6)
    assert max(sizes) <= rounding._PIECE
    # Each of two passes converts both.
    assert len(sizes) <= 4 * (2 + 2 * one.size // rounding._PIECE)
    np.testing.assert_array_equal(places, np.flatnonzero((one != two).reshape(-1)))
    x, y = one.astype("f8"), two.astype("f8")
    wanted = (np.abs(x - y) / (np.abs(y) + np.sqrt(np.mean(np.square(y))))).max()
    assert error(one, two) == pytest.approx(wanted, rel=1e-12)


def pooled(axis: int, *, read: bool) -> ir.Model:
    """A MaxPool that tells places, counted from an axis on; whether somebody reads them."""
    net = ir.Builder("net")
    x = net.parameter("x", "f32", "1,3,8,8")
    words = {"kernel": (2, 2), "strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0)}
    y = net.add("MaxPool", "opset14", [x], name="pool", axis=axis, dilations=(1, 1), **words)
    net.result(net.add("ReLU", "opset1", [y[0]], name="relu"), name="y")
    if read:
        net.result(net.add("Abs", "opset1", [y[1]], name="abs"), name="places")
    return net.model()


def test_an_output_that_nothing_reads_is_neither_wrong_nor_where_results_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = pooled(0, read=False), pooled(2, read=False)
    found = ir.compare(one, two)
    assert not found
    assert not found.wrong
    assert found.parts is None
    assert [(step.place.name, step.output) for step in found.unread] == [("pool", 1)]
    assert "differ, but nothing reads them: pool, output 1" in str(found)
    ir.write(one, tmp_path / "one.xml")
    ir.write(two, tmp_path / "two.xml")
    with pytest.raises(SystemExit) as left:
        main(["compare", str(tmp_path / "one.xml"), "--against", str(tmp_path / "two.xml")])
    assert left.value.code == 0
    assert "wrong, not read" in capsys.readouterr().out
    # In half precision the places move as well, and still nobody asks for them.
    assert all(step.is_read for step in ir.compare(one, "f16").wrong)


def test_an_output_that_something_reads_is_wrong_and_is_named_by_its_number() -> None:
    found = ir.compare(pooled(0, read=True), pooled(2, read=True))
    assert [(step.place.name, step.output) for step in found.wrong] == [("pool", 1)]
    assert found.parts == found.first
    assert '"pool" (MaxPool opset14), output 1: wrong' in str(found)
    assert not found.unread


@pytest.mark.parametrize("wrong", [False, True])
def test_an_onnx_of_other_names_is_compared_by_its_outputs(wrong: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [make.make_node("Neg" if wrong else "Relu", ["x.in"], ["r.1"]),
             make.make_node("Exp", ["r.1"], ["y.1"])]  # fmt: skip
    ends = [make.make_tensor_value_info(name, kind, (2, 3)) for name in ("x.in", "y.1")]
    graph = make.make_graph(nodes, "other", ends[:1], ends[1:])
    path = tmp_path / "other.onnx"
    opset = make.make_opsetid("", 17)
    onnx.save(make.make_model(graph, opset_imports=[opset], ir_version=8), path)
    found = ir.compare(made(("a", "deep")), path, [np.ones((2, 3), "f4")])
    assert [step.place.name for step in found.outputs] == ["a"]
    assert bool(found) == wrong
    assert found.uncompared == ["relu", "deep"]
    said = "but 1 of 1 output differs" if wrong else "0 layers against"
    assert said in str(found)


#: What three outputs of an ONNX model of other names hand out.
THEIRS = ("Relu", "Tanh", "Exp")


@pytest.mark.parametrize(
    ("ours", "differing", "said"),
    [
        (("ReLU", "Tanh", "Exp"), [], "outputs are paired in order"),
        (("Tanh", "ReLU", "Exp"), [], "in another order: o0 is t1, o1 is t0"),
        (("Exp", "ReLU", "Tanh"), [], "in another order: o0 is t2, o1 is t0, o2 is t1"),
        # One is wrong: what is left is what it is paired with.
        (("Abs", "ReLU", "Tanh"), ["o0"], "in another order: o0 is t2, o1 is t0, o2 is t1"),
        (("ReLU", "Abs", "Exp"), ["o1"], "outputs are paired in order"),
    ],
)
def test_outputs_of_an_onnx_of_other_names_may_come_in_another_order(
    ours: tuple[str, ...], differing: list[str], said: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    nodes = [make.make_node(kind, ["x.in"], [f"t{i}"]) for i, kind in enumerate(THEIRS)]
    ends = [make.make_tensor_value_info(name, 1, (2, 3)) for name in ("x.in", "t0", "t1", "t2")]
    graph = make.make_graph(nodes, "other", ends[:1], ends[1:])
    opset = make.make_opsetid("", 17)
    path = tmp_path / "other.onnx"
    onnx.save(make.make_model(graph, opset_imports=[opset], ir_version=8), path)
    net = ir.Builder("net")
    x = net.parameter("x", "f32", (2, 3))
    for number, kind in enumerate(ours):
        net.result(net.add(kind, "opset1", [x], name=kind.lower()), name=f"o{number}")
    found = ir.compare(net.model(), path, samples=2)
    assert [step.place.name for step in found.differing] == differing, str(found)
    (told,) = found.pairing
    assert told.startswith("no name in common: outputs are paired")
    assert told.endswith(said)
    assert told in str(found).splitlines()
    assert found.as_json()["pairing"] == [told]


@pytest.mark.parametrize("named", [False, True])
def test_inputs_of_an_onnx_that_no_name_tells_apart_are_said_to_be_paired_in_order(
    named: bool, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    ports = [make.make_tensor_value_info(name, 1, [2]) for name in ("i.0", "i.1", "y")]
    node = make.make_node("Sub", ["i.0", "i.1"], ["y"])
    graph = make.make_graph([node], "g", ports[:2], ports[2:])
    path = tmp_path / "m.onnx"
    opset = make.make_opsetid("", 17)
    onnx.save(make.make_model(graph, opset_imports=[opset], ir_version=8), path)
    net = ir.Builder("net")
    one, two = (net.parameter(name, "f32", (2,)) for name in ("p", "i.1" if named else "q"))
    net.result(net.add("Subtract", "opset1", [one, two], name="y").named("y"), name="out")
    found = ir.compare(net.model(), path)
    assert not found
    # With all others named, the one that is left is no guess.
    wanted = [] if named else ["no name in common: inputs are paired in order: p, q"]
    assert found.pairing == wanted
