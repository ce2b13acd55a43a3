"""How fast many small models are checked, and whether a killed sweep loses or repeats one.

Run: python tests/benchmarks/fleet.py rate|kills|dask [--count 10000] [--kills 20] [FOLDER...]
Models are those that OpenVINO writes for the tests (or those of folders), with random damage.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import openvino_files

VINOIR = [sys.executable, "-m", "vinoir.ir", "check"]


def make_zoo(zoo: Path, count: int, sources: list[Path]) -> None:
    """Files and damaged copies of them, in folders of a thousand."""
    if not sources:
        openvino_files.write(zoo / "sources")
        sources = [zoo / "sources"]
    paths = [path for folder in sources for path in sorted(folder.rglob("*.xml"))]
    rng = random.Random(0)
    for made in range(count):
        path = paths[made] if made < len(paths) else rng.choice(paths)
        text = path.read_bytes()
        target = zoo / "models" / f"{made // 1000:03}" / f"{made:06}.xml"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if made < len(paths) else edited(text, rng))
        beside = path.with_suffix(".bin")
        if beside.exists():
            os.link(keep(beside, zoo), target.with_suffix(".bin"))


def keep(path: Path, zoo: Path) -> Path:
    """A copy that others can be linked to."""
    copy = zoo / "weights" / str(path).strip("/").replace("/", "+")
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return copy


def edited(text: bytes, rng: random.Random) -> bytes:
    """A document with one to three random edits: a number, a word, a line, an end."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.6:
            found = rng.choice(list(re.finditer(rb"\d+", text)) or [None])
            if found is not None:
                text = text[: found.start()] + b"%d" % rng.randint(0, 99) + text[found.end() :]
        elif kind < 0.8:
            found = rng.choice(list(re.finditer(rb'"[^"\n]+"', text)) or [None])
            if found is not None:
                text = text[: found.start()] + b'"other"' + text[found.end() :]
        elif kind < 0.98:
            lines = text.splitlines(keepends=True)
            at = rng.randrange(max(len(lines), 1))
            text = b"".join(lines[:at] + lines[at + 1 :])
        else:
            text = text[: rng.randrange(len(text) + 1)]
    return text


def rate(zoo: Path, *words: str) -> float:
    """Do a whole sweep; the seconds of processors that it took."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with (zoo / "lines").open("wb") as lines:
        subprocess.run([*VINOIR, str(zoo / "models/**/*.xml"), *words], stdout=lines, check=False)
    seconds = time.perf_counter() - began
    count = len((zoo / "lines").read_bytes().splitlines())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{' '.join(words)}: {count} models, {seconds:.1f} s, {count / seconds:.0f} a second; "
        f"{work:.1f} s of processors, {count / work:.0f} a second of one"
    )
    return work


def so_far(journal: Path) -> int:
    """Lines of a journal."""
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def kills(zoo: Path, count: int, often: int) -> None:
    """Kill the sweep at random moments; then look."""
    journal = zoo / "journal.jsonl"
    words = [*VINOIR, str(zoo / "models"), "--jobs", "2", "--journal", str(journal)]
    rng = random.Random(1)
    began = time.perf_counter()
    for _ in range(often):
        done = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = so_far(journal) + rng.uniform(0, 1.8 * count / often)
        while done.poll() is None and so_far(journal) < wanted:
            time.sleep(rng.uniform(0, 0.1))
        done.send_signal(signal.SIGKILL)
        done.wait()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    often_each = Counter(line["model"] for line in lines)
    seconds = time.perf_counter() - began
    print(
        f"{often} kills: {len(lines)} lines of {len(often_each)} models of {count}, "
        f"{sum(n > 1 for n in often_each.values())} repeated, {count - len(often_each)} lost, "
        f"{seconds:.1f} s in all"
    )
    print(Counter(line["state"] for line in lines))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("what", choices=["rate", "kills", "dask"])
    words.add_argument("folders", nargs="*", type=Path)
    words.add_argument("--count", type=int, default=10_000)
    words.add_argument("--kills", type=int, default=20)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--zoo", type=Path, help="Keep the models here.")
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        zoo = given.zoo or Path(folder)
        if not (zoo / "models").exists():
            make_zoo(zoo, given.count, given.folders)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        if given.what == "rate":
            rate(zoo, "--jobs", "2")
        elif given.what == "kills":
            kills(zoo, given.count, given.kills)
        else:
            for _ in range(given.rounds):
                here = rate(zoo, "--jobs", "2")
                there = rate(zoo, "--jobs", "2", "--dask", "local")
                print(f"by Dask {there / here:.2f} of the processors' time")


if __name__ == "__main__":
    main()
