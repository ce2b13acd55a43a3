"""Inputs of ever other sizes: ``python -m tests.benchmarks lengths FOLDER [--sizes N]``.

The folder is that of ``networks``; those are taken that leave sizes open. Each is called with
inputs of so many sizes, from half of the recorded one to three times as much, in an order drawn at
random, by both engines in turn: once, when each is new, then twice again. Those with variables
begin anew each time, as with another prompt.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import numpy as np
import openvino as ov
from vinoir import ir
from vinoir.ir.engine.workers import describe
from vinoir.ir.measuring import AT_F32

from .families import Row, distance, steps_of

#: So many sizes come before those that count: plans for the first few are made well.
FIRST = 8


def resized(
    inputs: list[np.ndarray], shapes: list[ov.PartialShape], factor: float
) -> list[np.ndarray]:
    """Inputs whose open sizes are so many times as large; the first of several is the batch."""
    found = []
    for array, shape in zip(inputs, shapes, strict=True):
        opened = [axis for axis, size in enumerate(shape) if size.is_dynamic]
        if array.ndim == 4 and 1 in opened:
            opened = []  # images of one size, whatever is said of it
        for axis in [axis for axis in opened if axis or len(opened) == 1]:
            if array.shape[axis] == 1:
                continue  # a batch of one, whatever it is called
            size = max(1, round(array.shape[axis] * factor))
            if array.ndim == 4 and axis > 1:
                size = max(32, size // 32 * 32)  # as images are cut that are halved five times
            array = np.take(array, np.arange(size) % array.shape[axis], axis)
        found.append(np.ascontiguousarray(array))
    return found


def measured(path: Path, sizes: int, threads: int) -> Row | None:
    """Milliseconds of calls of new sizes, and of known ones; None where few are taken."""
    core = ov.Core()
    graph = core.read_model(path)
    if not graph.is_dynamic():
        return None
    request = core.compile_model(
        graph, "CPU", AT_F32 | {"INFERENCE_NUM_THREADS": threads}
    ).create_infer_request()
    program = ir.compile(ir.read(path), threads=threads)
    shapes = [given.partial_shape for given in graph.inputs]
    recorded, *_ = steps_of(path.with_suffix(".npz"))
    factors = np.random.default_rng(0).permutation(np.linspace(0.5, 3, sizes))
    asked = {tuple(x.shape for x in one): one for one in (
        resized(recorded, shapes, float(factor)) for factor in factors
    )}  # fmt: skip
    if len(asked) <= FIRST:
        return None
    seconds: list[list[tuple[float, float]]] = []
    differs = 0.0
    for _ in range(3):
        turn = []
        for inputs in asked.values():
            request.reset_state()
            program.reset()
            began = time.perf_counter()
            theirs = request.infer(inputs)
            middle = time.perf_counter()
            ours = program(inputs)
            turn.append((time.perf_counter() - middle, middle - began))
            pairs = zip(ours.values(), theirs.values(), strict=True)
            differs = max([differs, *(distance(*pair) for pair in pairs)])
        seconds.append(turn)
    new, again = (
        [1e3 * mean(side) for side in zip(*calls, strict=True)]
        for calls in (seconds[0][FIRST:], seconds[1] + seconds[2])
    )
    return {
        "sizes": len(asked), "new ms": new[0], "new": new[0] / new[1],
        "again ms": again[0], "again": again[0] / again[1], "differs": differs,
    }  # fmt: skip


def lengths(folder: Path, sizes: int, threads: int) -> Iterator[Row]:
    """A row for each network that takes inputs of several sizes."""
    for path in sorted(folder.glob("*.xml")):
        row = measured(path, sizes, threads)
        if row is not None:
            yield {"network": path.stem, **row}


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks lengths")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args(words)
    print(describe())
    for row in lengths(given.folder, given.sizes, given.threads):
        cells = (
            f"{key} {x:.3g}" if isinstance(x, float) else f"{key} {x}" for key, x in row.items()
        )
        print("  ".join(cells), flush=True)


__all__ = ["main"]
