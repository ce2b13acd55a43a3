"""A 200 MB model over many batches: by a Dask cluster of two, and by two processes by hand.

Run: python tests/benchmarks/predictor.py [--batches 1000] [--kind dense|convolution] [--chunk 8]
                                            [--seldom]

A chunk of the Dask array holds several batches, which the predictor cuts: each task costs the
cluster some milliseconds of processors, whatever it does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import numpy as np
from vinoir import ir
from vinoir.ir.fleet.clusters import SELDOM


def make(path: Path, kind: str) -> tuple[int, ...]:
    """A model of 200 MB of weights, and the shape of one batch."""
    rng = np.random.default_rng(0)
    builder = ir.Builder("large")
    if kind == "dense":
        shape: tuple[int, ...] = (16, 4096)
        y = builder.parameter("x", "f32", shape)
        for _ in range(3):
            w = builder.constant(rng.standard_normal((4096, 4096), np.float32) / 64)
            y = builder.add("MatMul", "opset1", [y, w])
            y = builder.add("ReLU", "opset1", [y])
    else:
        shape = (1, 768, 7, 7)
        y = builder.parameter("x", "f32", shape)
        for _ in range(10):
            w = builder.constant(rng.standard_normal((768, 768, 3, 3), np.float32) / 80)
            y = builder.add(
                "Convolution", "opset1", [y, w], strides="1,1", pads_begin="1,1",
                pads_end="1,1", dilations="1,1", auto_pad="explicit",
            )  # fmt: skip
            y = builder.add("ReLU", "opset1", [y])
    builder.result(y, name="y")
    ir.write(builder.model(), path)
    return shape


def memory(pid: int | None = None) -> dict[str, int]:
    """What a process has, in kB: its proportional share, and what is its own."""
    text = Path(f"/proc/{pid or os.getpid()}/smaps_rollup").read_text()
    return {name: int(kb) for name, kb in re.findall(r"(\w+):\s+(\d+) kB", text)}


def by_hand(path: str, batches: np.ndarray, out: Any, barrier: Any) -> None:
    program = ir.compile(ir.read(path), threads=1)
    program([batches[0]])
    barrier.wait()
    began, work = time.perf_counter(), time.process_time()
    for batch in batches:
        program([batch])
    out.put((time.perf_counter() - began, time.process_time() - work))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--batches", type=int, default=1000)
    words.add_argument("--rounds", type=int, default=2)
    words.add_argument("--kind", choices=["dense", "convolution"], default="dense")
    words.add_argument("--chunk", type=int, default=8, help="batches in a chunk")
    words.add_argument("--seldom", action="store_true", help="the cluster looks at itself seldom")
    given = words.parse_args()
    if given.seldom:
        import dask

        dask.config.set(SELDOM)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        shape = make(path, given.kind)
        print(f"{path.with_suffix('.bin').stat().st_size / 1e6:.0f} MB, {given.batches} batches")
        rng = np.random.default_rng(1)
        batches = rng.standard_normal((given.batches, *shape), np.float32)
        with Cluster(path, batches, given.chunk) as cluster:
            for _ in range(given.rounds):
                hand, hand_work = hands(path, batches)
                dask, dask_work = cluster.run()
                print(
                    f"by hand {hand:.2f} s, Dask {dask:.2f} s: throughput {hand / dask:.2f}; "
                    f"of processors {hand_work:.2f} s and {dask_work:.2f} s: "
                    f"{hand_work / dask_work:.2f}"
                )


def hands(path: Path, batches: np.ndarray) -> tuple[float, float]:
    """Seconds of two processes, each with half of the batches; and of processors."""
    context = multiprocessing.get_context("spawn")
    out, barrier = context.Queue(), context.Barrier(2)
    halves = (batches[: len(batches) // 2], batches[len(batches) // 2 :])
    processes = [
        context.Process(target=by_hand, args=(str(path), half, out, barrier)) for half in halves
    ]
    for process in processes:
        process.start()
    found = [out.get() for _ in processes]
    for process in processes:
        process.join()
    return max(seconds for seconds, _ in found), sum(work for _, work in found)


class Cluster:
    """A LocalCluster of two workers with the data in place."""

    def __init__(self, path: Path, batches: np.ndarray, chunk: int = 1) -> None:
        import dask.array
        import distributed

        self.batches = batches
        self.cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        )
        self.client = distributed.Client(self.cluster, set_as_default=True)
        self.predictor = ir.Predictor(path)
        rows = batches.reshape(-1, *batches.shape[2:])
        chunks = (chunk * batches.shape[1], *batches.shape[2:])
        self.lazy = self.client.persist(dask.array.from_array(rows, chunks=chunks))
        distributed.wait(self.lazy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.cluster.close()

    def run(self) -> tuple[float, float]:
        """Seconds of all batches, the outputs brought here in order; tell of the memory."""
        warm = self.client.run(load, self.predictor)
        before = warm or {}
        works = self.client.run(time.process_time)
        began = time.perf_counter()
        found = self.lazy.map_blocks(self.predictor, dtype=np.float32).compute()
        seconds = time.perf_counter() - began
        worked = self.client.run(time.process_time)
        program = ir.compile(self.predictor.program.model, threads=1)
        count = self.batches.shape[1]
        for number in (0, len(self.batches) // 2, len(self.batches) - 1):
            expected = program([self.batches[number]])[0]
            assert np.array_equal(found[number * count : (number + 1) * count], expected)
        after = self.client.run(memory)
        print("memory of the workers, MB:", [row["Pss"] // 1000 for row in after.values()],
              "more than before loading:",
              [(after[w]["Pss"] - before[w]["Pss"]) // 1000 for w in after])  # fmt: skip
        print("their own, anonymous:", [row["Anonymous"] // 1000 for row in after.values()],
              "before:", [row["Anonymous"] // 1000 for row in before.values()])  # fmt: skip
        print(
            "maps of the file:",
            list(self.client.run(maps, str(self.predictor._recipe.path)).values()),
        )
        return seconds, sum(worked.values()) - sum(works.values())


def load(predictor: ir.Predictor) -> dict[str, int]:
    """Load the model in a worker; what the worker had before."""
    before = memory()
    _ = predictor.program
    return before


def maps(path: str) -> int:
    """How often this process maps the weights."""
    return Path("/proc/self/maps").read_text().count(str(Path(path).with_suffix(".bin")))


if __name__ == "__main__":
    main()
