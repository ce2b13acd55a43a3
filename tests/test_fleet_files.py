"""Files of verbs over many models: what is written lies in its folder, over nothing of others."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fleet_functions
import numpy as np
import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.fleet import select, targets_of
from vinoir.ir.fleet.sweeping import name_of

Vinoir = Callable[..., tuple[int, list[Any], str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with two models of one name in folders of their own."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        ir.write(small(name), tmp_path / name / "m.xml")
    return tmp_path


def small(name: str = "m", kind: str = "Exp") -> ir.Model:
    builder = ir.Builder(name)
    x = builder.parameter("x", "f32", "1,2")
    builder.result(builder.add(kind, "opset1", [x]), name="y")
    return builder.model()


def test_models_of_one_name_are_written_to_their_own_places(here: Path, vinoir: Vinoir) -> None:
    code, lines, _ = vinoir("simplify", "a", "b", "-o", "out", "--jobs", 2)
    assert (code, len(lines)) == (0, 2)
    assert {ir.read(f"out/{name}/m.xml").name for name in "ab"} == {"a", "b"}


def test_nothing_is_written_outside_of_the_folder(here: Path, vinoir: Vinoir) -> None:
    before = (here / "b/m.xml").read_bytes()
    words = ("simplify", "a/m.xml", "a/../b/m.xml", "--jobs", 1, "-o")
    assert vinoir(*words, "out")[0] == 0
    assert sorted(str(path) for path in Path("out").rglob("*.xml")) == [
        "out/a/m.xml",
        "out/b/m.xml",
    ]
    code, _, err = vinoir(*words, "new/../out")
    assert (code, "is already there" in err) == (2, True)
    (here / "in").mkdir()
    os.chdir("in")
    assert vinoir("simplify", "../a/m.xml", "../b/m.xml", "--jobs", 1, "-o", "out")[0] == 0
    assert sorted(map(str, Path("out").rglob("*.xml"))) == ["out/a/m.xml", "out/b/m.xml"]
    assert (here / "b/m.xml").read_bytes() == before


def test_two_models_have_not_one_place(here: Path, vinoir: Vinoir) -> None:
    code, lines, err = vinoir("simplify", "a/m.xml", "./a/m.xml", "--jobs", 1, "-o", "out")
    assert (code, lines) == (2, [])
    assert f"a/m.xml and ./a/m.xml would both be written to {os.path.join('out', 'm.xml')}" in err
    assert not Path("out").exists()
    shutil.copytree("a", "a/a")
    with pytest.raises(ir.UsageError, match=r"written over a/a/m\.xml, which is read"):
        targets_of(["a/m.xml", "a/a/m.xml"], "a/a")
    with pytest.raises(ir.UsageError, match="is not in out"):
        targets_of(["s3://bucket/../../../../m.xml", "a/m.xml"], "out")
    assert vinoir("bench", "a", "b", "--jobs", 1, "--plot", "x.svg")[0] == 2


def test_a_journal_of_something_else_lets_nothing_be_overwritten(
    here: Path, vinoir: Vinoir
) -> None:
    precious = here / "out/a/m.xml"
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    assert vinoir("check", "a", "b", "--jobs", 1, "--journal", "j.jsonl")[0] == 0
    words = ("simplify", "a", "b", "-o", "out", "--jobs", 1, "--journal")
    for journal in ("j.jsonl", "new.jsonl"):
        code, lines, err = vinoir(*words, journal)
        assert (code, lines) == (2, [])
        assert "is already there" in err
    assert precious.read_text() == "precious"
    assert not Path("new.jsonl").exists()
    # What was begun is gone on with, over what it was at when it was ended.
    precious.unlink()
    assert vinoir(*words, "j.jsonl")[0] == 0
    rows = Path("j.jsonl").read_text().splitlines(keepends=True)
    Path("j.jsonl").write_text("".join(rows[:-1]))
    code, lines, _ = vinoir(*words, "j.jsonl")
    assert (code, len(lines)) == (0, 1)


def test_what_a_journal_does_not_tell_of_is_kept_from_being_overwritten(
    here: Path, vinoir: Vinoir
) -> None:
    words = ("-o", "out", "--jobs", 1, "--journal", "j.jsonl")
    assert vinoir("simplify", "a", "b", *words)[0] == 0
    ir.write(small("c"), "c/m.xml")
    for name in ("m.xml", "m.bin"):
        precious = here / "out/c" / name
        precious.parent.mkdir(exist_ok=True)
        precious.write_text("precious")
        code, lines, err = vinoir("simplify", "a", "b", "c", *words)
        assert (code, lines) == (2, [])
        assert f"{os.path.join('out', 'c', name)} is already there" in err
        assert precious.read_text() == "precious"
        precious.unlink()
    # What it wrote of models that have changed since is its own.
    ir.write(small("other"), "a/m.xml")
    os.utime("a/m.xml", (1, 1))
    code, lines, _ = vinoir("simplify", "a", "b", "c", *words)
    assert (code, sorted(line["model"] for line in lines)) == (0, ["a/m.xml", "c/m.xml"])
    assert ir.read("out/a/m.xml").name == "other"


def test_what_had_too_little_is_done_again_with_more(here: Path, vinoir: Vinoir) -> None:
    words = ("run", "a/m.xml", "--jobs", 1, "--journal", "j.jsonl")
    assert vinoir(*words, "--max-seconds", 1e-6)[1][0]["state"] == "overtime"
    for less in (1e-6, 1e-7):
        assert vinoir(*words, "--max-seconds", less)[:2] == (4, [])
    for more in (("--max-seconds", 600), ()):
        rows = Path("j.jsonl").read_text()
        (line,) = vinoir(*words, *more)[1]
        assert (line["state"], "limit" in line) == ("done", False)
        assert vinoir(*words, "--max-seconds", 1e-6)[:2] == (0, [])
        Path("j.jsonl").write_text(rows)


@pytest.mark.parametrize("given", ["x=x.npy", "x=given/", "x=given/*.npy"])
def test_a_journal_tells_of_inputs_as_they_were(here: Path, vinoir: Vinoir, given: str) -> None:
    def put(values: list[float]) -> None:
        for path in ("x.npy", "given/x.npy"):
            np.save(path, np.array([values], np.float32))

    Path("given").mkdir()
    words = ("run", "a", "--jobs", 1, "--journal", "j.jsonl", "-i", given)
    put([1, 2])
    assert [len(vinoir(*words)[1]) for _ in range(2)] == [1, 0]
    put([3, 4])
    (line,) = vinoir(*words)[1]
    assert line["state"] == "done"


@pytest.mark.parametrize("word", ["s", "s/*.np?", "s/*"])
def test_what_lies_beside_the_samples_is_none_of_them(
    here: Path, vinoir: Vinoir, word: str
) -> None:
    for name in ("s", "s/inner.npy"):
        Path(name).mkdir()
    for number in range(2):
        np.save(f"s/{number}.npy", np.full((1, 2), number, np.float32))
    journal = "j.jsonl" if word == "s/*" else "s/j.jsonl"
    words = ("run", "a/m.xml", "-i", f"x={word}", "--jobs", 1, "--journal", journal)
    assert [len(vinoir(*words)[1]) for _ in range(2)] == [1, 0]
    if word != "s/*":
        Path("s/notes.txt").write_text("new")
    assert vinoir(*words)[1] == []
    Path("s/j.jsonl").unlink(missing_ok=True)
    Path("s/notes.txt").unlink(missing_ok=True)
    assert vinoir("run", "a/m.xml", "-i", f"x={word}", "--out", "y.npz", "--jobs", 1)[0] == 0
    with np.load("y.npz") as found:
        np.testing.assert_allclose(found["y"][:, 0], np.exp(np.arange(2)), rtol=1e-5)


@pytest.mark.parametrize(
    ("word", "said"), [("s", "a folder without"), ("s/*.npy", "no file fits")]
)
def test_no_samples_are_told_in_the_same_words(
    here: Path, vinoir: Vinoir, word: str, said: str
) -> None:
    Path("s").mkdir()
    words = ("run", "a/m.xml", "-i", f"x={word}")
    told = [vinoir(*words, *more)[::2] for more in ((), ("--jobs", 1), ("--out", "y.npz"))]
    assert told == [told[0]] * 3
    assert (told[0][0], said in told[0][1]) == (2, True)


@pytest.mark.parametrize("more", [(), ("--out", "y.npz")])
@pytest.mark.parametrize("place", [0, 3, 20, 130])
def test_a_damaged_archive_is_refused(
    here: Path, vinoir: Vinoir, more: tuple[str, ...], place: int
) -> None:
    np.savez("x.npz", x=np.zeros((1, 2), np.float32))
    data = bytearray(Path("x.npz").read_bytes())
    begin = data.index(b"\x93NUMPY") if place else 0  # that of the archive itself
    data[begin + place] ^= 0x55
    Path("x.npz").write_bytes(data)
    code, _, err = vinoir("run", "a/m.xml", "-i", "x=x.npz", *more, "--jobs", 1)
    # Of many samples some may be done: that one failed is what a sweep has found.
    assert (code, "no .npy or .npz of plain arrays" in err) == (1 if more else 3, True)


def test_a_function_with_values_is_another_function(here: Path) -> None:
    def known(function: Any) -> int:
        sweep = ir.sweep(function, ["a/m.xml"], jobs=1, journal="j.jsonl")
        assert len(list(sweep)) + sweep.known == 1
        return sweep.known

    two, three = (functools.partial(fleet_functions.scaled, factor) for factor in (2, 3))
    again = functools.partial(fleet_functions.scaled, 2)
    assert [known(each) for each in (two, again, three, two)] == [0, 1, 0, 1]


NAMED = """
import functools, fleet_functions
from vinoir.ir.fleet.sweeping import name_of
print(name_of(functools.partial(fleet_functions.scaled, 2)))
"""


def test_a_function_with_values_has_one_name_in_all_processes() -> None:
    name = name_of(functools.partial(fleet_functions.scaled, 2))
    assert "0x" not in name
    done = subprocess.run(
        [sys.executable, "-c", NAMED],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == name + "\n"


def multiplied(factor: float) -> Callable[[str], float]:
    def times(path: str) -> float:
        return factor * len(path)

    times.__module__ = "__main__"  # as in a script, whose functions are sent by value
    return times


def test_what_a_closure_holds_is_in_its_name() -> None:
    pytest.importorskip("cloudpickle")
    assert name_of(multiplied(2)) == name_of(multiplied(2))
    assert name_of(multiplied(2)) != name_of(multiplied(3))
    assert name_of(fleet_functions.scaled) == "scaled"
    assert name_of(ir.check) == "check"  # decorated


@pytest.mark.parametrize(
    "line",
    [
        '{"model": "a/m.xml", "what": "check", "file": [], "state": "done", "code": 1e999}',
        '{"model": ["a"], "what": "check", "file": [], "state": "done", "code": 0}',
        '{"model": "a", "what": "check", "file": [], "state": "done", "code": 0, "limit": []}',
        "[" * 100_000,
        "[]",
    ],
)
def test_a_line_that_is_none_of_a_journal_is_told(here: Path, vinoir: Vinoir, line: str) -> None:
    Path("j.jsonl").write_text(line + "\n")
    code, lines, err = vinoir("check", "a", "--jobs", 1, "--journal", "j.jsonl")
    assert (code, lines) == (2, [])
    assert "j.jsonl:1: error: is no journal" in err


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices have names")
def test_a_journal_is_an_ordinary_file(here: Path, vinoir: Vinoir) -> None:
    os.mkfifo("pipe")
    for path in ("pipe", "/dev/zero", "/dev/full"):
        code, lines, err = vinoir("check", "a", "--jobs", 1, "--journal", path)
        assert (code, lines) == (2, [])
        assert "is no journal, it is not an ordinary file" in err


def none_else(text: str) -> float:
    raise AssertionError(f"{text} is no JSON")


def test_numbers_that_json_lacks_are_words(here: Path, vinoir: Vinoir) -> None:
    ir.write(small(kind="Log"), "log.xml")
    for number in range(2):
        np.save(f"x{number}.npy", np.array([[-1, number]], np.float32))
    with pytest.raises(SystemExit):
        main(["run", "log.xml", "-i", "x=x*.npy", "--out", "y.jsonl", "--jobs", "1"])
    rows = Path("y.jsonl").read_text().splitlines()
    lines = [json.loads(row, parse_constant=none_else) for row in rows]
    assert [line["result"]["y"] for line in lines] == [[["NaN", "-Infinity"]], [["NaN", 0.0]]]
    (line,) = ir.sweep(fleet_functions.nothing, ["log.xml"], jobs=1, journal="j.jsonl")
    assert np.isnan(line["result"][0])
    kept = json.loads(Path("j.jsonl").read_text(), parse_constant=none_else)
    assert kept == line | {"result": ["NaN", "-Infinity"]}


def test_inputs_are_taken_in_the_order_of_their_numbers(here: Path, vinoir: Vinoir) -> None:
    ir.write(small(), "m.xml")
    for number in range(11):
        np.save(f"x{number}.npy", np.full((1, 2), number, np.float32))
    assert vinoir("run", "m.xml", "-i", "x=x*.npy", "--out", "y.npz", "--jobs", 2)[0] == 0
    with np.load("y.npz") as found:
        np.testing.assert_allclose(found["y"][:, 0], np.exp(np.arange(11)), rtol=1e-5)


@pytest.mark.parametrize("word", ["images", "images/*.png"])
def test_images_are_inputs_as_of_a_run(here: Path, vinoir: Vinoir, word: str) -> None:
    image = pytest.importorskip("PIL.Image")
    net = ir.Builder()
    x = net.parameter("x", "f32", "1,3,?,6")
    net.result(net.add("Sqrt", "opset1", [x]), name="y")
    ir.write(net.model(), "m.xml")
    Path("images").mkdir()
    pixels = np.random.default_rng(1).integers(0, 256, (11, 4, 6, 3), np.uint8)
    for number, one in enumerate(pixels):
        image.fromarray(one).save(f"images/{number}.png")
    assert vinoir("run", "m.xml", "-i", f"x={word}", "--out", "y.npz", "--jobs", 1)[0] == 0
    with np.load("y.npz") as found:
        wanted = np.sqrt(pixels.transpose(0, 3, 1, 2).astype("f4"))
        np.testing.assert_allclose(found["y"], wanted, rtol=1e-6)
    Path("images/3.png").write_bytes(b"none")
    _, _, err = vinoir("run", "m.xml", "-i", f"x={word}", "--out", "z.npz", "--jobs", 1)
    assert "3.png cannot be read as an image" in err
    _, _, err = vinoir("run", "m.xml", "-i", "y=images/1.png", "--out", "z.npz", "--jobs", 1)
    assert 'no input is named "y"; there are x' in err
    Path("x.txt").write_text("none")
    _, _, err = vinoir("run", "m.xml", "-i", "x=x.txt", "--out", "z.npz", "--jobs", 1)
    assert "no image, and no .npy or .npz of plain arrays" in err
    assert "pickled" not in err


def test_what_fails_of_many_is_told_in_lines(here: Path, vinoir: Vinoir) -> None:
    code, lines, err = vinoir("simplify", "a", "--jobs", 1)
    assert (code, lines) == (2, [])
    assert "give -o FOLDER or --dry-run" in err
    code, lines, err = vinoir("check", "a", "b", "--fix", "--jobs", 1)
    assert (code, lines) == (2, [])
    assert err.endswith("many models\n  hint: give -o FOLDER\n")
    code, lines, err = vinoir("check", "a", "b", "-o", "out", "--jobs", 1)
    assert (code, lines, "add --fix" in err) == (2, [], True)
    text = Path("a/m.xml").read_text("utf-8").replace('"Exp"', '"Concat"')
    Path("a/m.xml").write_text(text.replace("<data axis", "<data axes"), "utf-8")
    code, _, err = vinoir("run", "a", "b", "--jobs", 1)
    assert code == 1
    assert "required attribute axis is missing\n  hint: `vinoir check`" in err


@pytest.mark.parametrize(("word", "said"), [("--compiled", "in any case"), ("--batch=2", "call")])
def test_out_says_what_it_does_instead(here: Path, vinoir: Vinoir, word: str, said: str) -> None:
    ir.write(small(), "m.xml")
    code, _, err = vinoir("run", "m.xml", "-i", "x=x*.npy", "--out", "y.npz", word)
    assert code == 2
    assert said in err


@pytest.mark.skipif(os.name != "posix", reason="links need a right of their own elsewhere")
@pytest.mark.parametrize("is_turned", [False, True])
def test_files_have_one_name_whatever_links_lead_to_them(
    here: Path, monkeypatch: pytest.MonkeyPatch, is_turned: bool
) -> None:
    looked = os.scandir

    class Turned:
        """The entries of a folder, in one order or the other."""

        def __init__(self, path: str) -> None:
            with looked(path) as entries:
                self.entries = iter(sorted(entries, key=lambda x: x.name, reverse=is_turned))

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            return self.entries

        def __exit__(self, *_: object) -> None: ...

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            return self.entries

        def __next__(self) -> os.DirEntry[str]:
            return next(self.entries)

        def close(self) -> None: ...

    monkeypatch.setattr(os, "scandir", Turned)
    for name, goal in (("alink", "b"), ("zlink", "b"), ("b/back", "..")):
        os.symlink(goal, name)
    elsewhere = here.parent / f"elsewhere{is_turned}"
    shutil.copytree("a", elsewhere)
    os.symlink(elsewhere, "c")
    os.symlink(elsewhere, "b/c")
    assert select(["."]) == ["./a/m.xml", "./b/m.xml", "./c/m.xml"]
