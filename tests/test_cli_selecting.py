"""Which models a command line means: none of them is left out silently, none is made up."""

from __future__ import annotations

import glob
import inspect
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_folder import Call, caller, exported, network
from vinoir import ir
from vinoir.ir.fleet import select
from vinoir.ir.fleet.folders import files_in, files_like

WAYS = ([], ["--jobs", "1"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ir.write(network(), tmp_path / "model.xml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


def test_every_file_of_a_folder_is_found(folder: Path) -> None:
    for name in ("many/one.xml", "many/.hidden/two.xml", "many/THREE.XML", "many/a.xml/four.xml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("model.xml", name)
    (folder / "many" / "link").symlink_to(folder / "many", target_is_directory=True)
    (folder / "elsewhere").mkdir()
    shutil.copy("model.xml", "elsewhere/five.xml")
    (folder / "many" / "other").symlink_to(folder / "elsewhere", target_is_directory=True)
    assert files_in("many") == [
        "many/.hidden/two.xml", "many/THREE.XML", "many/a.xml/four.xml", "many/one.xml",
        "many/other/five.xml",
    ]  # fmt: skip
    for pattern in ("many/**/*.[xX][mM][lL]", "many/**", "./many/**/*.[xX]*", "many/**/**/*"):
        found = [os.path.relpath(path) for path in select([pattern])]
        assert sorted(found) == files_in("many"), pattern
    assert select(["many/**/other/*.xml"]) == ["many/other/five.xml"]
    assert select(["many/**/a.xml/*.xml"]) == ["many/a.xml/four.xml"]
    os.chdir("many")
    assert sorted(select(["**/*.xml"])) == [
        path.removeprefix("./") for path in files_in(".") if path.endswith(".xml")
    ]


def test_a_pattern_finds_what_it_names_by_a_link(folder: Path) -> None:
    (folder / "v3").mkdir()
    shutil.copy("model.xml", "v3/m.xml")
    (folder / "current").symlink_to(folder / "v3", target_is_directory=True)
    assert select(["**/current/*.xml"]) == ["current/m.xml"]
    assert select(["**/v3/*", "**/current/*"]) == ["v3/m.xml", "current/m.xml"]
    assert select(["**/m.xml"]) == ["v3/m.xml"]


def test_folders_that_link_to_one_another_are_gone_through_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages with their dependencies beside them: the ways through them are 9! and more."""
    every = range(9)
    for one in every:
        (folder / f"g/p{one}/deps").mkdir(parents=True)
        shutil.copy("model.xml", f"g/p{one}/m.xml")
    for one, other in itertools.permutations(every, 2):
        link = folder / f"g/p{one}/deps/p{other}"
        link.symlink_to(folder / f"g/p{other}", target_is_directory=True)
    looked = os.scandir
    visits = 0

    def counted(path: Any) -> Any:
        nonlocal visits
        visits += 1
        # Each link is followed for each name of a pattern, once.
        assert visits < 4 * (1 + 2 * len(every) + len(every) ** 2)
        return looked(path)

    monkeypatch.setattr(os, "scandir", counted)
    files = [f"g/p{one}/m.xml" for one in every]
    assert files_in("g") == select(["g/**/*.xml"]) == files
    for pattern, wanted in (
        ("g/**/p3/**/m.xml", files),
        ("g/**/p1/deps/p2/*.xml", ["g/p2/m.xml"]),
    ):
        visits = 0
        assert sorted(os.path.relpath(os.path.realpath(f)) for f in files_like(pattern)) == wanted


def test_a_link_to_the_folder_that_it_is_in_can_be_named(folder: Path) -> None:
    (folder / "a").mkdir()
    shutil.copy("model.xml", "a/m.xml")
    (folder / "a" / "self").symlink_to(folder / "a", target_is_directory=True)
    assert files_like("**/self/m.xml") == ["a/self/m.xml"]
    assert files_like("**/self/self/m.xml") == ["a/self/self/m.xml"]
    assert files_like("a/**/m.xml") == ["a/m.xml"]


def test_patterns_mean_what_they_mean_to_glob(folder: Path) -> None:
    for name in ("a/b/c/m.xml", "a/b/n.xml", "a/k.xml", "x/b/m.xml", "x/y/b/o.xml", "mm.xml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("model.xml", name)
    patterns = [
        "**/*.xml", "a/**/*.xml", "*/**/b/*.xml", "**/b/**/*.xml", "**/b/**", "**/?.xml",
        "[ax]/**/m.xml", "a/**/c/m.xml", "**", "**/*/**", "a/**/k.xml/**", "*.xml",
        "a*/**/b/n*", f"{folder}/**/b/*.xml", f"{folder}/*/**/m.xml", "./**/m.xml", "a//**//m.xml",
        "**/./m.xml", "a/**/./././*.xml", "./a/./**/c/./m.xml", "**/", "**/.", "a/**/b/",
        "a/**/b/.",
    ]  # fmt: skip
    for pattern in patterns:
        wanted = [path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)]
        shown = {os.path.normpath(path) for path in wanted}
        assert {os.path.normpath(path) for path in files_like(pattern)} == shown, pattern


@pytest.mark.parametrize("name", ["a\nb", "\n", " ", "a\\b" if os.sep == "/" else "ab", "é"])
def test_folders_may_have_any_name(name: str, folder: Path) -> None:
    """What a pattern names is looked into, and not the folder that one is in."""
    named = folder / name / "inner"
    (folder / "here").mkdir()
    named.mkdir(parents=True)
    shutil.copy("model.xml", named / "m.xml")
    shutil.copy("model.xml", "here/other.xml")
    os.chdir("here")
    for pattern in (f"{named.parent}/**/*.xml", f"{named.parent}//**/m.xml", f"../{name}/**"):
        found = [os.path.realpath(path) for path in files_like(pattern)]
        assert found == [os.path.realpath(named / "m.xml")], pattern


def test_folders_may_be_deeper_than_calls(folder: Path) -> None:
    depth, limit = 200, sys.getrecursionlimit()
    deep = folder.joinpath(*"d" * depth)
    deep.mkdir(parents=True)
    shutil.copy("model.xml", deep / "deep.xml")
    sys.setrecursionlimit(len(inspect.stack()) + depth // 2)
    try:
        found = files_in("d"), files_like("**/deep.xml"), files_like("d/**/d/*.xml")
    finally:
        sys.setrecursionlimit(limit)
    assert found == ([os.path.relpath(deep / "deep.xml")],) * 3


def close_folders(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    """Let nobody, not even root, look into folders that are named closed."""
    looked = os.scandir

    def refused(path: Any) -> Iterator[os.DirEntry[str]]:
        if str(path).rstrip("/").endswith("closed"):
            raise type(error)(*error.args, str(path))
        return looked(path)

    monkeypatch.setattr(os, "scandir", refused)


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_that_may_not_be_looked_into_is_told(
    way: list[str], folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "many" / "closed").mkdir(parents=True)
    shutil.copy("model.xml", "many/one.xml")
    close_folders(monkeypatch, PermissionError(13, "Permission denied"))
    code, out, err = call("check", "many", *way)
    assert (code, out) == (3, "")
    assert "many/closed: error: this folder cannot be looked into: Permission denied" in err


def test_a_pattern_passes_over_what_may_not_be_looked_into(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "many" / ".closed").mkdir(parents=True)
    (folder / "none" / "closed").mkdir(parents=True)
    shutil.copy("model.xml", "many/one.xml")
    with monkeypatch.context() as patch:
        close_folders(patch, PermissionError(13, "Permission denied"))
        assert select(["many/**/*.xml"]) == ["many/one.xml"]
        assert select(["*/**/*.xml"]) == ["many/one.xml"]
        for pattern in ("none/**/*.xml", "none/closed/**", "many/**/two.xml"):
            with pytest.raises(ir.UnreadableError, match=r"closed/?: .*cannot be looked into"):
                select([pattern])
    close_folders(monkeypatch, OSError(5, "Input/output error"))
    with pytest.raises(ir.UnreadableError, match=r"closed: .*Input/output error"):
        select(["many/**/*.xml"])


def test_a_file_that_may_not_be_read_is_no_wrong_usage(
    folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot be opened it is one finding, and the others are checked."""
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: mode != os.R_OK and real(path, mode, **more)
    )
    for verb in ("check", "show", "infer", "run"):
        assert call(verb, "model.xml")[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["check", ""], "the name of a file is empty"),
        (["show", ""], "the name of a file is empty"),
        (["show", "model.xml", "--weights", ""], "the name of a file is empty"),
        (["draw", "model.xml", "-o", ""], "the name of a file is empty"),
        (["run", "model.xml", "-i", "image="], 'nothing is given for input "image"'),
        (["bench", "model.xml", "-i", "image="], 'nothing is given for input "image"'),
        (["run", "model.xml", "-i", "image=", "--out", "o.npz"], "no file is like"),
        (["run", "model.xml", "--out", "o.npz"], "no files of inputs are given"),
    ],
)
def test_an_empty_word_means_nothing(
    words: list[str], says: str, folder: Path, call: Call
) -> None:
    np.save("there.npy", np.zeros((1, 1, 16, 16), "f4"))
    code, _, err = call(*words)
    assert code == 2
    assert says in err
    assert not Path("o.npz").exists()


# One model within limits is still one model.


@pytest.mark.parametrize("limits", [["--max-seconds", "60"], ["--max-memory", "4G"]])
def test_one_model_within_limits_prints_what_it_prints(
    limits: list[str], folder: Path, call: Call
) -> None:
    for words in (["show", "model.xml"], ["show", "model.xml", "--json"], ["show", "none.xml"]):
        assert call(*words, *limits) == call(*words)
    code, out, err = call("simplify", "model.xml", "-o", "small.xml", *limits)
    assert code == 0
    assert "wrote small.xml" in out + err
    assert Path("small.xml").is_file()
    assert "runs of each" in call("bench", "model.xml", "--runs", "2", *limits)[1]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited there")
def test_what_one_model_may_not_take_is_told(folder: Path, call: Call) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2,))
    for _ in range(4000):  # more than what a process has at hand
        x = net.add("ReLU", "opset1", [x])
    net.result(x)
    ir.write(net.model(), "large.xml")
    code, out, err = call("show", "large.xml", "--max-memory", "1K")
    assert (code, out) == (4, "")
    assert "large.xml: error: there is not enough memory" in err
    code, out, err = call("bench", "model.xml", "--runs", "1000000", "--max-seconds", "0.1")
    assert (code, out) == (4, "")
    assert "more than 0.1 seconds are wanted" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["simplify", "model.xml", "-o", "small.xml", "--jobs", "1"], "-o small.xml is one file"),
        (["infer", "model.xml", "-o", "file", "--jobs", "1"], "-o file is one file"),
        (["check", "-", "--jobs", "1"], "standard input is one model"),
        (["show", "-", "model.xml"], "standard input is one model"),
        (["show", "-", "--max-seconds", "9"], "standard input cannot be limited"),
        (["check", "model.xml", "--shard", "1/0"], '"1/0" is no share'),
    ],
)
def test_what_is_for_one_model_is_refused_for_many(
    words: list[str], says: str, folder: Path, call: Call
) -> None:
    Path("file").write_text("")
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert says in err
    assert not Path("small.xml").exists()


@pytest.mark.parametrize(
    "verb", ["check", "infer", "show", "run", "simplify --dry-run", "bench --runs 1"]
)
def test_a_folder_of_several_models_is_as_many_models(verb: str, folder: Path, call: Call) -> None:
    name, *more = verb.split()
    for place in ("one/a", "several/a", "several/b", "nested/b/a", "nested/c/a"):
        ir.write(network(), folder / f"{place}.xml")
    for given in ("several", "several/", "nested", "several/*.xml", "one/*.xml"):
        code, out, err = call(name, given, *more, "--json")
        assert code == 0, err
        found = json.loads(out)["reports"] if name == "check" else out.splitlines()
        assert len(found) == len(select([given])), given
    code, out, _ = call(name, "one", *more, "--json")
    assert (code, json.loads(out).get("verb")) == (0, name)
    Path("empty").mkdir()
    code, _, err = call(name, "empty", *more)
    assert (code, err) == (2, "error: empty is a folder without .xml files\n")


def test_a_folder_of_onnx_models_is_imported(folder: Path, call: Call) -> None:
    pytest.importorskip("onnx")
    Path("some").mkdir()
    exported(Path("some/one.onnx"))
    code, out, err = call("import", "some", "--dry-run")
    assert (code, len(out.splitlines())) == (0, 1), err
    shutil.copy("some/one.onnx", "some/two.onnx")
    code, out, err = call("import", "some", "-o", "made")
    assert (code, len(out.splitlines())) == (0, 2), err
    assert sorted(os.listdir("made")) == ["one.bin", "one.xml", "two.bin", "two.xml"]


def test_findings_are_told_in_the_same_form_whoever_finds_the_files(
    folder: Path, call: Call
) -> None:
    for name in ("some/a.xml", "some/b.xml"):
        ir.write(network(), folder / name)
    text = Path("some/b.xml").read_text("utf-8").replace('kernel="2, 2"', 'kernal="2, 2"')
    Path("some/b.xml").write_text(text, "utf-8")
    ways = (["some"], ["some/*.xml"], sorted(glob.glob("some/*.xml")))
    said = [call("check", *words) for words in ways]
    assert said[0] == said[1] == said[2]
    assert (said[0][0], said[0][1].count("IR402")) == (1, 1)


@pytest.mark.parametrize("form", ["text", "sarif", "github"])
def test_a_form_that_many_are_not_told_in_is_refused(form: str, folder: Path, call: Call) -> None:
    code, out, err = call("check", "model.xml", "--jobs", "1", "--format", form)
    assert (code, out) == (2, "")
    assert f"--format {form} is for one process: many print JSON" in err
    for words in ([], ["--json"], ["--format", "json"]):
        code, out, _ = call("check", "model.xml", "--jobs", "1", *words)
        assert (code, json.loads(out)["verb"]) == (0, "check")


def test_exit_codes_are_counted_in_the_end(folder: Path, call: Call) -> None:
    text = Path("model.xml").read_text("utf-8").replace('kernel="2, 2"', 'kernal="2, 2"')
    for name in ("a.xml", "b.xml"):
        (folder / name).write_text(text, "utf-8")
    words = ["check", "a.xml", "b.xml", "model.xml", "--jobs", "1"]
    code, _, err = call(*words)
    assert code == 1
    assert "3 models: 3 done (2 with exit code 1), " in err
    assert "3 models: 2 refused, 1 done, " in call("infer", *words[1:])[2]
    assert "1 model: 1 done, " in call("check", "model.xml", "--jobs", "1")[2]
