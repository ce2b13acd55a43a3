"""Whatever a verb is given, it answers in a sentence: never a traceback, never code 70."""

from __future__ import annotations

import io
import json
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cli_folder import Call, caller, failing, network
from older.network import small
from vinoir import ir
from vinoir.ir.cli import CRASH, main, report

#: What each verb needs beside its model.
CALLS = [
    ["show"], ["show", "--layers"], ["show", "--tree"], ["show", "--json"], ["check"],
    ["check", "--fix", "-o", "out.xml"], ["infer"], ["infer", "-o", "out.xml"], ["run"],
    ["run", "--compiled"], ["bench", "--runs", "1"], ["simplify", "-o", "out.xml"],
    ["compare", "--against", "f16"], ["copy", "out.xml"], ["edit", "--rename", "image=x",
    "-o", "out.xml"], ["extract", "--to", "relu1", "-o", "out.xml"], ["compress", "-o", "out.xml"],
    ["convert", "--target", "2022.1", "-o", "out.xml"], ["weights", "list"],
    ["weights", "export", "-o", "out.npz"], ["draw", "-o", "out.html"], ["diff", "good.xml"],
    ["merge", "good.xml", "--prefix", "a", "--prefix", "b", "-o", "out.xml"],
    ["import", "-o", "out.xml"],
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ir.write(network(), tmp_path / "good.xml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def broken(folder: Path) -> dict[str, str]:
    """Files that are no models, or wrong ones."""
    text = (folder / "good.xml").read_text("utf-8")
    (folder / "empty.xml").write_bytes(b"")
    (folder / "cut.xml").write_text(text[: len(text) // 2], "utf-8")
    (folder / "other.xml").write_text("<html><body/></html>", "utf-8")
    (folder / "noise.xml").write_bytes(np.random.default_rng(0).bytes(3000))
    (folder / "alone.xml").write_text(text, "utf-8")
    (folder / "short.xml").write_text(text, "utf-8")
    (folder / "short.bin").write_bytes(b"1234")
    circle = text.replace('from-layer="1" from-port="0" to-layer="3"', 'from-layer="4" '
                          'from-port="1" to-layer="3"')  # fmt: skip
    (folder / "circle.xml").write_text(circle, "utf-8")
    shutil.copy(folder / "good.bin", folder / "circle.bin")
    (folder / "strange.xml").write_text(text.replace('"Sigmoid"', '"Sygmoid"'), "utf-8")
    shutil.copy(folder / "good.bin", folder / "strange.bin")
    edge = text.replace('to-layer="4"', 'to-layer="99"')
    (folder / "edge.xml").write_text(edge, "utf-8")
    shutil.copy(folder / "good.bin", folder / "edge.bin")
    size = text.replace("<dim>4</dim>", "<dim>-7</dim>")
    (folder / "size.xml").write_text(size, "utf-8")
    shutil.copy(folder / "good.bin", folder / "size.bin")
    (folder / "nothing").mkdir()
    names = [path.name for path in folder.glob("*.xml") if path.name != "good.xml"]
    return dict.fromkeys([*names, "missing.xml", "nothing", "good.bin", "."])


KINDS = ["empty.xml", "cut.xml", "other.xml", "noise.xml", "alone.xml", "short.xml", "circle.xml",
         "strange.xml", "edge.xml", "size.xml", "missing.xml", "nothing"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_verb_crashes(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(folder)
    (folder / "good.bin").with_name("good.onnx").write_bytes(b"nothing")
    for words in CALLS:
        for path in folder.glob("out.*"):
            path.unlink()
        verb = words[:2] if words[0] == "weights" else words[:1]
        with pytest.raises(SystemExit) as left:
            main([*verb, kind, *words[len(verb) :]])
        err = capsys.readouterr().err
        assert left.value.code != CRASH, (words, err)
        assert "Traceback" not in err
        if left.value.code not in (0, None):
            assert not list(folder.glob(".*vinoir*")), words


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


# Expectations.


def test_an_output_of_nothing_but_nan_is_compared(folder: Path, call: Call) -> None:
    ir.write(failing(), "nan.xml")
    np.save("minus.npy", np.full((1, 8), -1, "f4"))
    np.save("nan.npy", np.full((1, 8), np.nan, "f4"))
    np.save("one.npy", np.ones((1, 8), "f4"))
    given = ("nan.xml", "-i", "x=minus.npy")
    assert call("run", *given, "--expect", "nan.npy")[0] == 0
    code, _, err = call("run", *given, "--expect", "one.npy")
    assert code == 5
    assert "y[0,0] is nan, expected 1 (tolerance 0.0001)" in err
    code, out, _ = call("run", *given, "--expect", "one.npy", "--json")
    assert code == 5
    assert '"difference": "Infinity"' in out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--expect", "none.npz"], 3, "none.npz: No such file"),
        (["--expect", "text.npy"], 3, "text.npy is no .npy or .npz"),
        (["--expect", "bad.npz"], 3, "bad.npz is no .npy or .npz"),
        (["--expect", "wrong=x.npy"], 2, 'no output is named "wrong"; the model gives "prob"'),
        (["--expect", "strange.npz"], 2, 'strange.npz has "what", the model gives "prob"'),
        (["--expect", "x.npy", "--all"], 2, "x.npy is one array, the model gives"),
        (["--expect", "x.npy"], 5, "prob has the shape (1, 10), expected (3,)"),
        (["--expect", "prob=x.npy"], 5, "expected (3,)"),
        (["--expect", "words.npy"], 5, "has the type float32, expected <U3"),
        (["--expect", "things.npy"], 3, "is no .npy or .npz of plain arrays"),
        (["--save", "x.npy"], 2, "--save x.npy does not end in .npz"),
        (["--save", "there.npz"], 2, "there.npz is already there"),
        (["--save", "."], 2, "does not end in .npz"),
        (["--save", "good.xml/out.npz"], 2, "good.xml is a file, no folder"),
        (["-i", "image=nothing"], 2, "is a folder without arrays"),
        (["-i", "image=no*.npy"], 2, "is a pattern that no file fits"),
        (["-i", "image=zeros", "-i", "image=ones"], 2, '"image" is given twice: zeros and ones'),
        (["--batch", "2"], 2, "--batch is for a folder of inputs"),
        (["--compiled", "--all"], 2, "--all hands out what a program does not keep"),
        (["-i", "image=some", "--trace"], 2, "--trace is for one sample"),
        (["-i", "image=some", "--save", "taken"], 2, "a.npz is already there"),
        (["-i", "image=some", "--batch", "3"], 2, '--batch 3, input "image" has the shape'),
    ],
)
def test_what_run_is_given_is_looked_at_first(
    words: list[str], code: int, says: str, folder: Path, call: Call
) -> None:
    Path("text.npy").write_text("1 2 3")
    with zipfile.ZipFile("bad.npz", "w") as archive:
        archive.writestr("prob.npy", b"\x93NUMPY\x01\x00nothing")
    np.save("x.npy", np.zeros(3))
    np.save("words.npy", np.array([["one"] * 10]))
    np.save("things.npy", np.array([{}]), allow_pickle=True)
    np.savez("strange.npz", what=np.zeros(3))
    np.savez("there.npz", what=np.zeros(3))
    for name in ("nothing", "some", "taken"):
        Path(name).mkdir()
    for name in "ab":
        np.save(f"some/{name}.npy", np.zeros((1, 16, 16), "f4"))
    Path("taken/a.npz").write_bytes(b"")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    found = call("run", "good.xml", *words)
    assert (found[0], says in found[2]) == (code, True), found[2]
    if code == 2:
        assert found[1] == ""
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_runtime_that_refuses_is_told(folder: Path, call: Call) -> None:
    pytest.importorskip("onnxruntime")
    Path("good.onnx").write_bytes(b"no model")
    code, _, err = call("bench", "good.xml", "--against", "onnxruntime", "--runs", "1")
    assert code == 4
    assert "onnxruntime does not run the model" in err
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Relu", ["other"], ["y"])
    ends = [[onnx.helper.make_tensor_value_info(n, 1, [2])] for n in ("other", "y")]
    graph = onnx.helper.make_graph([node], "g", *ends)
    onnx.save(onnx.helper.make_model(graph, ir_version=8), "good.onnx")
    code, _, err = call("bench", "good.xml", "--against", "onnxruntime", "--runs", "1")
    assert code == 4
    assert "onnxruntime does not run the model" in err


# Standard input, and what is written.


class Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show", "-"], "model       small"),
        (["check", "-", "--weights", "good.bin"], ""),
        (["infer", "-", "--weights", "good.bin"], "MatMul-1"),
        (["run", "-", "--weights", "good.bin"], "prob"),
        (["copy", "-", "new.xml", "--weights", "good.bin"], ""),
        (["convert", "-", "--weights", "good.bin", "--target", "2022.1", "-o", "new.xml"], ""),
        (["weights", "list", "-", "--weights", "good.bin"], "w1"),
        (["diff", "good.xml", "-", "--weights-b", "good.bin"], ""),
        (["extract", "-", "--weights", "good.bin", "--to", "relu1", "-o", "new.xml"], ""),
    ],
)
def test_a_dash_is_standard_input(
    words: list[str], says: str, folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(Path("good.xml").read_bytes()))
    code, out, err = call(*words)
    assert code == 0, err
    assert says in out
    if "new.xml" in words:
        assert ir.check("new.xml").ok


def test_places_in_standard_input_are_named(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(Path("good.xml").read_bytes()))
    code, out, err = call("check", "-")
    assert code == 1
    assert out.startswith("<stdin>:")
    assert "there is no .bin" in out
    assert "looked for" not in out  # nothing lies beside what has no place
    assert "--weights FILE" in out
    assert err == "<stdin>: 1 error\n"
    with open("good.xml", encoding="utf-8") as text, open("good.xml", "rb") as document:
        found = [ir.check(file, weights="good.bin") for file in (text, document)]
    assert [report.findings for report in found] == [ir.check("good.xml").findings] * 2
    old = small(6)
    monkeypatch.setattr(sys, "stdin", Stdin(old.xml))
    out = call("check", "-")[1]
    assert "IR956" in out
    assert "looked for" not in out


def test_the_constants_are_asked_for_by_a_verb(folder: Path, call: Call) -> None:
    assert "There are 'vinoir weights list', " in call("weights", "good.xml")[2]
    code, _, err = call("weights", "export", "good.xml", "-o", "weights.txt")
    assert code == 2
    assert '"weights.txt" does not end in .npz' in err
    assert not Path("weights.txt").exists()


def test_standard_input_is_read_once_and_never_written(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(Path("good.xml").read_bytes()))
    assert "it cannot be the model too" in call("diff", "-", "-")[2]
    code, _, err = call("infer", "-", "--in-place")
    assert code == 2
    assert "standard input cannot be written over" in err
    array = io.BytesIO()
    np.save(array, np.zeros((1, 1, 16, 16), "f4"))
    monkeypatch.setattr(sys, "stdin", Stdin(array.getvalue()))
    assert call("run", "good.xml", "-i", "image=-")[0] == 0


WRITERS = [
    ["infer", "good.xml"], ["simplify", "good.xml"], ["copy", "good.xml"],
    ["edit", "good.xml", "--rename", "image=x"], ["extract", "good.xml", "--to", "relu1"],
    ["compress", "good.xml"], ["convert", "good.xml", "--target", "2022.1"],
    ["merge", "good.xml", "good.xml", "--prefix", "a_", "--prefix", "b_"],
    ["check", "good.xml", "--fix"],
]  # fmt: skip


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: words[0])
def test_writers_mean_the_same(words: list[str], folder: Path, call: Call) -> None:
    Path("there.xml").write_text("mine")
    code, _, err = call(*words, "-o", "there.xml")
    assert (code, "there.xml is already there" in err) == (2, True), err
    assert Path("there.xml").read_text() == "mine"
    Path("beside.bin").write_text("mine")
    assert call(*words, "-o", "beside.xml")[0] == 2
    assert not Path("beside.xml").exists()
    assert call(*words, "-o", "there.xml", "--force")[0] == 0
    assert ir.read("there.xml").name
    assert call(*words, "-o", "new/deep.xml")[0] == 0
    assert ir.read("new/deep.xml").name
    if words[0] != "merge":
        assert call(*words, "-o", "more.xml", "--in-place")[0] == 2
        assert call(*words, "--in-place")[0] == 0
        # A model that is named by its .bin or its folder is written where it is.
        again = [word.replace("good.xml", "good.bin") for word in words]
        if words[0] in ("infer", "simplify", "compress", "copy"):
            assert call(*again, "--in-place")[0] == 0
        assert ir.read("good.xml").name


def test_other_writers_do_not_overwrite(folder: Path, call: Call) -> None:
    for words in (["weights", "export", "good.xml", "-o", "there.npz"],
                  ["weights", "plot", "good.xml", "-o", "there.svg"],
                  ["draw", "good.xml", "-o", "there.html"],
                  ["run", "good.xml", "--save", "there.npz"]):  # fmt: skip
        target = Path(words[-1])
        target.write_text("mine")
        assert call(*words)[0] == 2
        assert target.read_text() == "mine"
        assert call(*words, "--force")[0] == 0
        assert target.read_bytes() != b"mine"


LENIENT = [
    "show", "infer", "run", "simplify --dry-run", "draw -o x.svg", "weights list",
    "bench --runs 1", "compare --against f16", "extract --to drop1 --dry-run",
    "compress --dry-run",
    "edit --rename image=y --dry-run", "copy -o copied.xml", "diff good.xml",
    "convert --target 2022.1 --dry-run", "merge good.xml --prefix a_ --prefix b_ --dry-run",
]  # fmt: skip


def test_lenient_reads_what_xml_forbids(folder: Path, call: Call) -> None:
    text = Path("good.xml").read_text("utf-8")
    Path("loose.xml").write_text(text.replace('name="relu1"', 'name="a<b"'), "utf-8")
    shutil.copy("good.bin", "loose.bin")
    for line in LENIENT:
        words = line.split()
        verb = words[:2] if words[0] == "weights" else words[:1]
        rest = words[len(verb) :]
        assert call(*verb, "loose.xml", *rest)[0] != 0, words
        code, _, err = call(*verb, "loose.xml", *rest, "--lenient")
        assert code in (0, 1, 5), (words, err)
        assert ": repaired: raw" in err


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("openvino", ["bench", "good.xml", "--against", "openvino", "--runs", "1"]),
        ("PIL", ["run", "good.xml", "-i", "image=image.png"]),
        ("zarr", ["run", "good.xml", "-i", "image=x.npy", "--out", "out.zarr"]),
        ("distributed", ["check", "good.xml", "--dask", "local"]),
    ],
)
def test_a_broken_package_is_no_missing_one(
    package: str, words: list[str], folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be imported says why; that it is to be installed is said where it is missing."""
    Path("image.png").write_bytes(b"")
    np.save("x.npy", np.zeros((1, 1, 16, 16), "f4"))
    Path("broken", package).mkdir(parents=True)
    Path("broken", package, "__init__.py").write_text("raise ImportError('libnone.so: no such')")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend("broken")
    code, _, err = call(*words)
    assert code == 2, err
    assert "libnone.so: no such" in err
    assert "bug" not in err
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = call(*words)
    assert code == 2
    assert "libnone" not in err
    assert "pip install" in err


def test_a_package_that_breaks_at_any_place_is_no_bug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert report(ImportError("libnone.so: no such")) == 2
    assert "a package cannot be imported: libnone.so: no such" in capsys.readouterr().err
    assert report(ImportError("cannot import name 'x'", name="vinoir.ir")) == CRASH


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("etree.so: failed to map segment from shared object"),
        ImportError("x.so: cannot allocate memory in static TLS block"),
        SystemError("error return without exception set"),
        SystemError("<function _find_and_load> returned NULL without setting an exception"),
    ],
    ids=repr,
)
def test_that_there_is_no_memory_is_no_bug(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == 4
    assert "error: there is not enough memory\n  hint: " in capsys.readouterr().err
    assert report(SystemError("bad argument to internal function")) == CRASH


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["draw", "good.xml", "-o", "a.html", "--boxes", "1"], 2, "--boxes is for .svg, not for"),
        (["draw", "good.xml", "-o", "a.svg", "--hops", "5"], 2, "--hops says how near to a layer"),
        (["draw", "good.xml", "-o", "a.svg", "--constants"], 2, "--constants is for a page"),
        (["draw", "good.xml", "-o", "a.svg", "--paint", "no"], 2, "or findings"),
        (["draw", "good.xml", "-o", "a.svg", "--values", "no.json"], 3,
         "no.json: error: cannot be read: No such file or directory"),
        (["draw", "good.xml", "-o", "a.svg", "--around", "relu1", "--hops", "0"], 0,
         "drew 1 layer into"),
        (["edit", "insrt", "--list"], 2, "did you mean insert?"),
        (["copy", "good.xml"], 2, "hint: give -o MODEL.xml or --in-place\n"),
        (["merge", "good.xml"], 2, "hint: give -o MODEL.xml or --dry-run\n"),
        (["compress", "good.xml"], 2, "hint: give -o MODEL.xml, --in-place or --dry-run\n"),
    ],
)  # fmt: skip
def test_what_is_not_done_is_said(
    words: list[str], code: int, says: str, folder: Path, call: Call
) -> None:
    shutil.copy("good.xml", "alone.xml")
    found, _, err = call(*words)
    assert found == code, err
    assert says in err
    assert Path("a.svg").exists() is (code == 0)


def test_macs_that_are_not_known_are_no_zero(folder: Path, call: Call) -> None:
    net = ir.Builder("open")
    x = net.parameter("x", "f32", "N,3,H,W")
    for name in ("one", "two"):
        weights = net.constant(np.ones((3, 3, 1, 1), "f4"), name=f"block/{name}/w")
        x = net.add("Convolution", "opset1", [x, weights], name=f"block/{name}/conv",
                    strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0),
                    pads_end=(0, 0))  # fmt: skip
    for name in ("one", "two"):
        x = net.add("ReLU", "opset1", [x], name=f"act/{name}/relu")
    net.result(x, name="y")
    ir.write(net.model(), "open.xml")
    lines = call("show", "open.xml", "--tree")[1].splitlines()
    ends = {line.split()[0]: line.split()[-1] for line in lines if line.split()}
    assert (ends["open"], ends["block"], ends["act"]) == ("unknown", "unknown", "0")
    tree = json.loads(call("show", "open.xml", "--tree", "--json")[1])["tree"]
    assert (tree["macs"], tree["macs_unknown"]) == (0, 2)
    lines = call("show", "open.xml", "--tree", "--input", "x=1,3,4,4")[1].splitlines()
    ends = {line.split()[0]: line.split()[-1] for line in lines if line.split()}
    assert (ends["open"], ends["act"]) == (str(2 * 9 * 16), "0")
