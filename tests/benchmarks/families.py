"""Networks of today: ``python -m tests.benchmarks networks FOLDER [--index FILE] [--runs N]``.

The folder holds each as NAME.xml, NAME.bin and NAME.npz, whose arrays are called STEP/INPUT: a
network with variables is called once for each step. The index, a JSON file, tells the family and
the weights of each. Both engines are called in turns in one process, at f32, with two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import openvino as ov
from vinoir import ir
from vinoir.ir.engine.workers import describe
from vinoir.ir.measuring import AT_F32

Row = dict[str, Any]


def steps_of(path: Path) -> list[list[np.ndarray]]:
    """The inputs of each step, in order."""
    found: dict[int, dict[int, np.ndarray]] = {}
    with np.load(path) as kept:
        for key in kept:
            step, place = map(int, key.split("/"))
            found.setdefault(step, {})[place] = kept[key]
    return [[step[place] for place in sorted(step)] for _, step in sorted(found.items())]


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference over the scale of the output; infinite where shapes differ."""
    if ours.shape != theirs.shape:
        return float("inf")
    if theirs.dtype.kind != "f" or not theirs.size:
        return 0.0
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-9))


def measured(path: Path, runs: int, threads: int) -> Row:
    """One network: seconds to prepare, milliseconds of the first call and of later steps."""
    steps = steps_of(path.with_suffix(".npz"))
    began = time.perf_counter()
    model = ov.Core().compile_model(path, "CPU", AT_F32 | {"INFERENCE_NUM_THREADS": threads})
    request = model.create_infer_request()
    middle = time.perf_counter()
    program = ir.compile(ir.read(path), threads=threads)
    preparing = (time.perf_counter() - middle) / (middle - began)
    seconds: list[list[tuple[float, float]]] = [[] for _ in steps]
    differs = 0.0
    for turn in range(runs + 1):
        request.reset_state()
        program.reset()
        for place, inputs in enumerate(steps):
            began = time.perf_counter()
            theirs = request.infer(inputs)
            middle = time.perf_counter()
            ours = program(inputs)
            ended = time.perf_counter()
            if turn:  # the first shapes are planned for in the first
                seconds[place].append((ended - middle, middle - began))
            pairs = zip(ours.values(), theirs.values(), strict=True)
            differs = max([differs, *(distance(*pair) for pair in pairs)])
    times = [[1e3 * median(side) for side in zip(*step, strict=True)] for step in seconds]
    row: Row = {
        "preparing": preparing,
        "first ms": times[0][0],
        "first": times[0][0] / times[0][1],
    }
    if len(times) > 1:
        ours_ms, theirs_ms = (median(side) for side in zip(*times[1:], strict=True))
        row |= {"step ms": ours_ms, "step": ours_ms / theirs_ms}
    return row | {"differs": differs}


def families(folder: Path, index: Path, runs: int, threads: int) -> Iterator[Row]:
    """A row for each network; then one for each family, with geometric means."""
    known = json.loads(index.read_text("utf-8")) if index.exists() else {}
    ratios: dict[tuple[str, str], list[float]] = {}
    for path in sorted(folder.glob("*.xml")):
        family = known.get(path.stem, {}).get("family", "unknown")
        row = measured(path, runs, threads)
        for what in ("preparing", "first", "step"):
            if what in row:
                ratios.setdefault((family, what), []).append(row[what])
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        yield {"network": path.stem, "family": family, **row, "load": load}
    for family in sorted({family for family, _ in ratios}):
        means = {
            what: exp(sum(map(log, found)) / len(found))
            for (name, what), found in ratios.items()
            if name == family
        }
        yield {"family": family, **means}


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks networks")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args(words)
    index = given.index or given.folder / "index.json"
    print(describe())
    for row in families(given.folder, index, given.runs, given.threads):
        cells = (f"{key} {x:.3g}" if isinstance(x, float) else x for key, x in row.items())
        print("  ".join(cells), flush=True)
