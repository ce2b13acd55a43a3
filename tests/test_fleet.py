"""Many models by several processes: what crashes, hangs or is killed is a line, and no more."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fleet_functions
import pytest
from vinoir import ir
from vinoir.ir.cli import main
from vinoir.ir.fleet import read_shard, select, supervision
from vinoir.ir.fleet.selection import common_root

SAMPLES = Path(__file__).parents[1] / "samples"
DIGITS = SAMPLES / "digits.xml"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are ended as on Linux")


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """Models in folders, some of them damaged."""
    text = DIGITS.read_text("utf-8")
    for number in range(12):
        path = tmp_path / "zoo" / str(number % 3) / f"m{number}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        wrong = text.replace('kernel="2, 2"', 'kernel="2"') if number in (4, 7) else text
        path.write_text(wrong[: len(wrong) // 2] if number == 9 else wrong, "utf-8")
        shutil.copy(SAMPLES / "digits.bin", path.with_suffix(".bin"))
    return tmp_path / "zoo"


Vinoir = Callable[..., tuple[int, list[Any], str]]


def touch(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / f"{name}.xml").write_text("<net/>")
    return [str(folder / f"{name}.xml") for name in names]


def by_name(sweep: ir.Sweep) -> dict[str, dict[str, Any]]:
    lines = list(sweep)
    found = {Path(line["model"]).stem: line for line in lines}
    assert len(found) == len(lines)
    return found


@LINUX
def test_whatever_a_model_does_the_others_are_done(tmp_path: Path) -> None:
    good = [f"good{n}" for n in range(20)]
    bad = ["abort", "kill", "exit", "once", "hang", "spin", "memory", "raise", "odd", "print"]
    paths = touch(tmp_path, *good, *bad)
    random.Random(3).shuffle(paths)
    sweep = ir.sweep(
        fleet_functions.misbehave, paths, jobs=2, max_seconds=0.5, max_memory=1_000_000_000
    )
    lines = by_name(sweep)
    assert {name: lines[name]["state"] for name in bad} == {
        "abort": "crashed", "kill": "crashed", "exit": "crashed", "once": "done",
        "hang": "overtime", "spin": "overtime", "memory": "memory", "raise": "refused",
        "odd": "refused", "print": "done",
    }  # fmt: skip
    assert "SIGABRT" in lines["abort"]["error"]
    assert "exit code 3" in lines["exit"]["error"]
    assert "KeyError" in lines["raise"]["error"]
    assert "more than 0.5 seconds" in lines["hang"]["error"]
    assert (lines["hang"]["code"], lines["kill"]["code"]) == (4, 70)
    for name in good:
        assert (lines[name]["state"], lines[name]["result"]) == ("done", name)
    assert sweep.worst == 70
    assert sweep.states["crashed"] == 3


def test_what_is_raised_is_told_whatever_it_is(tmp_path: Path) -> None:
    names = ["leave", "interrupt", "mute", "end", "lock", "good1", "good2"]
    names += ["fork"] if hasattr(os, "fork") else []
    lines = by_name(ir.sweep(fleet_functions.misbehave, touch(tmp_path, *names), jobs=1))
    told = {name: line["error"] for name, line in lines.items() if line["state"] == "refused"}
    assert "no JSON" in told.pop("lock")
    assert told == {
        "leave": "SystemExit: 3", "interrupt": "KeyboardInterrupt", "mute": "MuteError",
        "end": "GeneratorExit",
    }  # fmt: skip
    assert {line["code"] for line in lines.values() if line["error"]} == {70}
    for name in set(names) - {*told, "lock"}:
        assert (lines[name]["state"], lines[name]["result"]) == ("done", name)


@LINUX
def test_who_ends_as_its_time_is_over_has_not_the_next_one_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "GRACE", 0.2)
    end_task = supervision.Process.end_task

    def end_late(process: supervision.Process) -> None:
        time.sleep(0.5)
        end_task(process)

    monkeypatch.setattr(supervision.Process, "end_task", end_late)
    # By then the slow one is done, and told; the next one is under way, or there is none.
    names = ["a_0", "b_0", "c_0", "slow_5", "d_4", "e_0", "f_0"]
    for paths in (touch(tmp_path, *names), touch(tmp_path, *names[:4])):
        lines = by_name(ir.sweep(fleet_functions.paced, paths, jobs=1, max_seconds=0.1))
        assert len(lines) == len(paths)
        assert {line["state"] for line in lines.values()} == {"done"}


@LINUX
def test_what_a_task_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    paths = touch(tmp_path, "left", "a", "left_hanging", "b")
    lines = by_name(ir.sweep(fleet_functions.leave_behind, paths, jobs=1, max_seconds=0.5))
    assert {name: line["state"] for name, line in lines.items()} == {
        "left": "crashed", "a": "done", "left_hanging": "overtime", "b": "done",
    }  # fmt: skip
    assert time.monotonic() - began < 30
    for path in tmp_path.glob("*.pid"):
        wait_for(lambda path=path: not is_running(int(path.read_text())))  # type: ignore[misc]


def test_functions_that_others_cannot_import_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ir.UsageError, match="cannot be sent to other processes"):
        ir.sweep(lambda path: path, touch(tmp_path, "a"))


def test_processes_share_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(word, raising=False)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    (line,) = ir.sweep(fleet_functions.surroundings, touch(tmp_path, "a"), jobs=cores)
    assert line["result"] == {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@LINUX
def test_nobody_is_left_when_the_one_who_asked_is_gone(tmp_path: Path) -> None:
    paths = touch(tmp_path, "spin1", "spin2", "hang1")
    program = (
        "import sys, fleet_functions; from vinoir import ir\n"
        f"for line in ir.sweep(fleet_functions.misbehave, {paths!r}, jobs=2): pass\n"
    )
    asked = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    wait_for(lambda: len(descendants(asked.pid)) >= 4)
    known = descendants(asked.pid)
    asked.kill()
    asked.wait()
    wait_for(lambda: not any(map(is_running, known)))


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def descendants(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_verb_over_many_models(vinoir: Vinoir, zoo: Path) -> None:
    code, lines, err = vinoir("check", zoo / "**/*.xml", "--jobs", 2)
    assert len(lines) == 12
    codes = {Path(line["model"]).stem: line["code"] for line in lines}
    assert {name for name, code in codes.items() if code} == {"m4", "m7", "m9"}
    assert code == max(codes.values())
    assert "12 models" in err
    alone = json.loads(json.dumps(ir.check(zoo / "1/m4.xml").to_json()))
    (result,) = [line["result"] for line in lines if line["model"].endswith("m4.xml")]
    (report,) = result["reports"]
    assert report["causes"] == alone["causes"]
    assert report["counts"] == alone["counts"]


@pytest.mark.parametrize(
    "words", [("infer",), ("show",), ("run",), ("bench", "--runs", "1"), ("simplify", "--dry-run")]
)  # fmt: skip
def test_every_verb_prints_for_each_model_what_it_prints_for_one(
    vinoir: Vinoir, zoo: Path, words: tuple[str, ...]
) -> None:
    code, lines, _ = vinoir(*words, *(zoo / "0").glob("m[03].xml"), "--jobs", 2)
    assert code == 0
    assert [line["state"] for line in lines] == ["done", "done"]
    assert all(line["what"].split()[0] == words[0] for line in lines)
    assert all(isinstance(line["result"], dict) for line in lines)


def test_models_are_written_to_their_places_in_another_folder(
    vinoir: Vinoir, zoo: Path, tmp_path: Path
) -> None:
    words = ("simplify", zoo / "0", zoo / "2/m2.xml", "--jobs", 2, "-o", tmp_path / "out")
    code, lines, _ = vinoir(*words)
    refused = {Path(line["model"]).stem for line in lines if line["code"]}
    assert refused == {"m9"}
    assert code == 3
    written = {str(path.relative_to(tmp_path / "out")) for path in tmp_path.glob("out/**/*.xml")}
    assert written == {"0/m0.xml", "0/m3.xml", "0/m6.xml", "2/m2.xml"}
    code, lines, err = vinoir(*words)
    assert (code, lines) == (2, [])
    assert "is already there" in err
    assert vinoir(*words, "--force")[0] == 3


@pytest.mark.parametrize("verb", ["run", "infer", "simplify", "bench"])
def test_inputs_that_no_model_has_are_told_at_once(
    vinoir: Vinoir, zoo: Path, tmp_path: Path, verb: str
) -> None:
    word = "random" if verb in ("run", "bench") else "1,4"
    journal = tmp_path / "lines.jsonl"
    words = (verb, zoo / "0", "--jobs", 2, "--journal", journal)
    code, lines, err = vinoir(*words, "-i", f"nowhere={word}")
    assert (code, lines) == (2, [])
    assert 'none takes the inputs: no input is named "nowhere"' in err
    assert '"nowhere" is not NAME=VALUE' in vinoir(*words, "-i", "nowhere")[2]
    assert not journal.exists()
    # What some have is no mistake; the others say so in their lines.
    own = next(iter(ir.read(zoo / "0/m0.xml", need_weights=False).parameters)).name
    assert vinoir("run", zoo / "0", "--jobs", 2, "-i", f"{own}=random")[1]


def test_onnx_models_are_imported_from_a_folder(vinoir: Vinoir, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    for name in ("a", "b"):
        x, y = (onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "xy")
        node = onnx.helper.make_node("Relu", ["x"], ["y"])
        graph = onnx.helper.make_graph([node], "g", [x], [y])
        onnx.save(onnx.helper.make_model(graph), tmp_path / f"{name}.onnx")
    code, lines, _ = vinoir("import", tmp_path, "--jobs", 1, "-o", tmp_path / "out")
    assert (code, len(lines)) == (0, 2)
    assert ir.read(tmp_path / "out/b.xml").results


def test_one_model_is_as_ever(vinoir: Vinoir, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", str(DIGITS)])
    assert "IR version" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--weights", "x.bin"], "is for one model"),
        (["--shard", "4/3"], "share 4 of 3"),
        (["--shard", "x"], "no share"),
        (["--format", "sarif"], "print JSON"),
    ],
)
def test_what_makes_no_sense_for_many_is_refused(
    vinoir: Vinoir, zoo: Path, words: list[str], why: str
) -> None:
    code, lines, err = vinoir("check", zoo, "--jobs", 1, *words)
    assert (code, lines) == (2, [])
    assert why in err


def test_shares_are_all_models_each_once(zoo: Path) -> None:
    whole = select([zoo])
    shares = [ir.sweep(ir.check, zoo, shard=f"{n}/5").models for n in range(1, 6)]
    assert sorted(path for share in shares for path in share) == sorted(whole)
    assert {len(share) for share in shares} == {2, 3}
    with pytest.raises(ir.UsageError):
        read_shard("0/3")


def test_a_journal_is_gone_on_with(vinoir: Vinoir, zoo: Path, tmp_path: Path) -> None:
    journal = tmp_path / "results.jsonl"
    words = ("check", zoo, "--jobs", 2, "--journal", journal)
    code, lines, _ = vinoir(*words)
    assert len(lines) == 12
    whole = journal.read_bytes()
    assert sorted(whole.splitlines()) == sorted(json.dumps(line).encode() for line in lines)
    again, lines, err = vinoir(*words)
    assert (again, lines) == (code, [])
    assert "12 the journal has" in err
    # Torn in the last line, at any place.
    last = whole.splitlines(keepends=True)[-1]
    for length in (1, 7, len(last) - 1):
        journal.write_bytes(whole[: -len(last)] + last[:length])
        _, lines, _ = vinoir(*words)
        assert len(lines) == 1
        assert len(journal.read_bytes().splitlines()) == 12
    # A model that has changed is done again, and so is another verb.
    path = zoo / "1/m4.xml"
    path.write_bytes(DIGITS.read_bytes())
    _, lines, _ = vinoir(*words)
    assert [line["model"] for line in lines] == [str(path)]
    assert len(vinoir("infer", zoo, "--jobs", 2, "--journal", journal)[1]) == 12


def test_a_file_that_is_no_journal_stays_as_it_is(vinoir: Vinoir, zoo: Path) -> None:
    other = zoo / "0/m0.xml"
    before = other.read_bytes()
    code, _, err = vinoir("check", zoo / "1", "--jobs", 1, "--journal", other)
    assert code == 2
    assert "is no journal" in err
    assert other.read_bytes() == before


@LINUX
def test_two_do_not_write_one_journal(zoo: Path, tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    first = iter(ir.sweep(ir.check, zoo, jobs=1, journal=journal))
    next(first)
    with pytest.raises(ir.UsageError, match="another process"):
        list(ir.sweep(ir.check, zoo, jobs=1, journal=journal))
    assert len(list(first)) == 11


@LINUX
def test_a_journal_is_free_when_its_sweep_ends(zoo: Path, tmp_path: Path) -> None:
    """Whoever was forked while it was open, and has not begun its own program, has it open too."""
    journal = tmp_path / "j.jsonl"
    sweep = iter(ir.sweep(ir.check, zoo, jobs=1, journal=journal))
    next(sweep)
    opened = (file for file in Path("/proc/self/fd").iterdir() if file.resolve() == journal)
    other = os.dup(int(next(opened).name))
    try:
        assert len(list(sweep)) == 11
        assert not list(ir.sweep(ir.check, zoo, jobs=1, journal=journal))
    finally:
        os.close(other)


@LINUX
def test_killed_at_any_moment_every_model_is_there_once(tmp_path: Path) -> None:
    paths = touch(tmp_path, *(f"m{n:03}" for n in range(150)))
    journal = tmp_path / "journal.jsonl"
    program = (
        "import sys, fleet_functions; from vinoir import ir\n"
        f"for line in ir.sweep(fleet_functions.slowly, {paths!r}, jobs=2, "
        f"journal={str(journal)!r}): pass\n"
    )
    rng = random.Random(0)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def lines_so_far() -> int:
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    for _ in range(5):
        wanted = lines_so_far() + rng.randint(0, 40)
        running = subprocess.Popen([sys.executable, "-c", program], env=environment)
        while running.poll() is None and lines_so_far() < wanted:
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
        running.wait()
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    assert Counter(line["model"] for line in lines) == Counter(paths)


def test_patterns_and_folders_stand_for_their_files(zoo: Path) -> None:
    everything = select([zoo])
    assert select([zoo / "**/*.xml", zoo / "1"]) == everything
    assert select([zoo / "0/m0.*"]) == [str(zoo / "0/m0.xml")]
    with pytest.raises(ir.UsageError, match="no file is like"):
        select([zoo / "*.onnx"])
    (zoo / "none").mkdir()
    with pytest.raises(ir.UsageError, match=r"without \.xml files"):
        select([zoo / "none"])
    odd = zoo / "a[1].xml"
    odd.touch()
    assert select([odd]) == [str(odd)]
    assert common_root(["a/b/c.xml", "a/d.xml"]) == "a"
    assert common_root(["s3://x/a/c.xml", "s3://x/a/d/e.xml"]) == "s3://x/a"


@LINUX
def test_whoever_is_killed_the_models_are_done_once(tmp_path: Path) -> None:
    paths = touch(tmp_path, *(f"m{n:03}" for n in range(120)))
    others = descendants(os.getpid())  # begun by other tests
    sweep = iter(ir.sweep(fleet_functions.slowly, paths, jobs=2))
    lines = [next(sweep)]
    rng = random.Random(5)
    for line in sweep:
        lines.append(line)
        if len(lines) % 25 == 0:
            # The process that was begun here, or its child that does the tasks.
            os.kill(rng.choice(sorted(descendants(os.getpid()) - others)), signal.SIGKILL)
    assert Counter(line["model"] for line in lines) == Counter(paths)
    assert {line["state"] for line in lines} == {"done"}
