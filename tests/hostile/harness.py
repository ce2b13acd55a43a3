"""Processes that put mutants through everything, watched from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
#: Mutants of one process; seconds after which one that says nothing is ended.
MANY, PATIENCE = 250, 60
#: No verb of a mutant may take more than this.
MOST_SECONDS, MOST_BYTES = 10.0, 2_000_000_000


def broken(first: int, last: int) -> Iterator[str]:
    """What was wrong with the mutants from one seed to another: nothing, if all is well."""
    while first < last:
        seed = first
        peak = 0
        for row in _rows(first, min(first + MANY, last)):
            if "begins" in row:
                seed = row["begins"]
                continue
            yield from _complaints(row, peak)
            peak, first = max(peak, row["peak"]), row["seed"] + 1
        if first == seed:  # it began, and nothing was heard of it again
            yield f"mutant {seed}: the process died, or hung"
            first = seed + 1


def _rows(first: int, last: int) -> Iterator[dict[str, Any]]:
    words = [sys.executable, "-m", "hostile.worker", str(first), str(last)]
    place = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | threads | {"PYTHONPATH": place},
        text=True,
    ) as process:
        assert process.stdout is not None
        while True:
            alarm = threading.Timer(PATIENCE, process.kill)
            alarm.start()
            line = process.stdout.readline()
            alarm.cancel()
            if not line:
                return
            yield json.loads(line)


def _complaints(row: dict[str, Any], peak: int) -> Iterator[str]:
    seed = row["seed"]
    for verb, text in row["said"].items():
        if "\n" in text:
            yield f"mutant {seed}: {verb}: {text}"
    if row["seconds"] > MOST_SECONDS:
        yield f"mutant {seed}: {row['seconds']:.1f} s {row['said']}"
    if row["peak"] > MOST_BYTES >= peak:
        yield f"mutant {seed}: {row['peak']} bytes {row['said']}"
