"""What the verbs write: never in the place of what is no file, whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_folder import Call, caller, network
from vinoir import ir

#: Every verb that writes, and the file that it writes.
WRITING = [
    (["run", "model.xml", "--save"], "there.npz"),
    (["run", "model.xml", "-i", "image=some/*.npy", "--out"], "there.npz"),
    (["run", "model.xml", "-i", "image=some/*.npy", "--out"], "there.jsonl"),
    (["weights", "export", "model.xml", "-o"], "there.npz"),
    (["weights", "plot", "model.xml", "-o"], "there.svg"),
    (["draw", "model.xml", "-o"], "there.svg"),
    (["draw", "model.xml", "-o"], "there.html"),
    (["diff", "model.xml", "model.xml", "-o"], "there.html"),
    (["bench", "model.xml", "--runs", "1", "--plot"], "there.svg"),
    (["copy", "model.xml", "-o"], "there.xml"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ir.write(network(), tmp_path / "model.xml")
    (tmp_path / "some").mkdir()
    np.save(tmp_path / "some" / "0.npy", np.zeros((1, 1, 16, 16), "f4"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize(("words", "name"), WRITING)
def test_force_replaces_no_pipe(words: list[str], name: str, folder: Path, call: Call) -> None:
    os.mkfifo(name)
    code, _, err = call(*words, name, "--force")
    assert code == 2
    assert f"{name}: error: cannot be replaced: it is not an ordinary file" in err
    assert stat.S_ISFIFO(os.lstat(name).st_mode)


@pytest.mark.parametrize(("words", "name"), WRITING)
def test_force_replaces_no_folder(words: list[str], name: str, folder: Path, call: Call) -> None:
    Path(name).mkdir()
    code, _, err = call(*words, name, "--force")
    assert code == 2
    assert f"{name}" in err
    assert "a folder" in err
    assert Path(name).is_dir()


@pytest.mark.parametrize(("words", "name"), [pair for pair in WRITING if "--out" not in pair[0]])
def test_missing_folders_are_made(words: list[str], name: str, folder: Path, call: Call) -> None:
    code, _, err = call(*words, f"new/inner/{name}")
    assert code == 0, err
    assert Path("new/inner", name).is_file()


@pytest.mark.parametrize(("words", "name"), WRITING)
def test_a_name_that_ends_as_a_folder_does(
    words: list[str], name: str, folder: Path, call: Call
) -> None:
    code, _, err = call(*words, "new/")
    assert code == 2, err
    assert not Path("new").exists()


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
from vinoir.ir.cli import main
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="files are limited there")
@pytest.mark.parametrize(("words", "name"), [pair for pair in WRITING if pair[0][0] != "bench"])
def test_what_has_no_room_is_named(words: list[str], name: str, folder: Path) -> None:
    """Where the system takes no more bytes, the file that was meant is told, and exit code 3."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *words, name],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # half of it would be believed
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert f"{name}: error: cannot be written: File too large" in done.stderr
    left = [path.name for path in folder.iterdir()]
    assert not [one for one in left if one.startswith((".vinoir", "there"))]


@pytest.mark.parametrize("names", [("store/m.xml", "store/m.bin"), ("store/abc", "store/def")])
def test_in_place_is_where_the_model_was_read_from(
    names: tuple[str, str], folder: Path, call: Call
) -> None:
    """A link to a model stays one, and the model is the one that is changed."""
    (folder / "store").mkdir()
    for name, link in zip(names, ("link.xml", "link.bin"), strict=True):
        os.replace(f"model{link[-4:]}", name)
        Path(link).symlink_to(name)
    code, _, err = call("edit", "link.xml", "--rename", "image=picture", "--in-place")
    assert code == 0, err
    assert Path("link.xml").is_symlink()
    assert Path("link.bin").is_symlink()
    for model in (ir.read("link.xml"), ir.read(names[0], names[1])):
        assert str(model.inputs["picture"].type) == "f32"
        assert ir.check(model).ok


@pytest.mark.parametrize("name", ["link.xml", "deep/link.xml"])
def test_in_place_where_only_the_document_is_a_link(name: str, folder: Path, call: Call) -> None:
    Path("deep").mkdir()
    Path(name).symlink_to(folder / "model.xml")
    held = Path("model.bin").read_bytes()
    Path(name).with_suffix(".bin").write_bytes(held)  # what reading takes, not model.bin
    code, _, err = call("compress", name, "--in-place")
    assert code == 0, err
    assert Path(name).is_symlink()
    assert Path("model.bin").read_bytes() == held
    assert ir.check(name).ok
    assert {str(x.element_type) for x in ir.read(name).constants if x.value.size > 9} == {"f16"}


@pytest.mark.parametrize(
    "words",
    [
        "copy model.xml", "edit model.xml --do op=rename --do any=image --do to=x",
        "infer model.xml", "simplify model.xml", "compress model.xml",
        "convert model.xml --target 2022.1", "extract model.xml --to relu1",
        "merge model.xml model.xml", "check model.xml --fix", "import model.onnx",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["made", "made.onnx", "made.xml.new", "made.bin"])
def test_a_model_is_written_under_the_name_of_one(
    words: str, name: str, folder: Path, call: Call
) -> None:
    Path("model.onnx").touch()
    before = sorted(os.listdir())
    code, _, err = call(*words.split(), "-o", name, "--force")
    assert code == 2
    assert f"error: {name} does not end in .xml, by which a model is known" in err
    assert f"hint: give -o {Path(name).with_suffix('.xml')}" in err
    assert sorted(os.listdir()) == before


def test_the_ending_of_a_model_may_be_of_capitals(folder: Path, call: Call) -> None:
    assert call("copy", "model.xml", "-o", "MADE.XML")[0] == 0
    assert ir.read("MADE.XML").layers
