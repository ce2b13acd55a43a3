"""The same lines from a Dask cluster, whatever becomes of its workers."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleet_functions
import numpy as np
import pytest
from vinoir import ir

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

SAMPLES = Path(__file__).parents[1] / "samples"
pytestmark = [
    pytest.mark.filterwarnings("default"),  # those of Dask are not ours
    pytest.mark.skipif(os.name != "posix", reason="processes are ended by signals"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


def touch(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / f"{name}.xml").write_text("<net/>")
    return [str(folder / f"{name}.xml") for name in names]


def test_what_crashes_hangs_or_eats_memory_is_a_line(cluster: Any, tmp_path: Path) -> None:
    bad = ["abort", "kill", "hang", "memory", "raise"]
    paths = touch(tmp_path, *(f"good{n}" for n in range(10)), *bad)
    sweep = ir.sweep(
        fleet_functions.misbehave, paths, dask=cluster[0].scheduler_address,
        max_seconds=0.5, max_memory=1_000_000_000,
    )  # fmt: skip
    states = {Path(line["model"]).stem: line["state"] for line in sweep}
    assert [states.pop(name) for name in bad] == [
        "crashed", "crashed", "overtime", "memory", "refused"
    ]  # fmt: skip
    assert list(states.values()) == ["done"] * 10


def test_a_killed_worker_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    paths = touch(tmp_path, *(f"m{n:03}" for n in range(120)))
    journal = tmp_path / "journal.jsonl"
    victims = list(cluster[1].run(os.getpid).values())

    def kill() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if journal.exists() and journal.read_bytes().count(b"\n") >= 10:
                os.kill(victims[0], signal.SIGKILL)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    address = cluster[0].scheduler_address
    lines = list(ir.sweep(fleet_functions.slowly, paths, dask=address, journal=journal))
    thread.join()
    assert Counter(line["model"] for line in lines) == Counter(paths)
    assert {line["state"] for line in lines} == {"done"}
    kept = [json.loads(line) for line in journal.read_bytes().splitlines()]
    assert Counter(line["model"] for line in kept) == Counter(paths)
    assert not list(ir.sweep(fleet_functions.slowly, paths, dask=address, journal=journal))


def test_lines_are_those_of_processes(cluster: Any) -> None:
    paths = [SAMPLES / "digits.xml"]
    here = list(ir.sweep(ir.check, paths, jobs=1))
    there = list(ir.sweep(ir.check, paths, dask=cluster[0].scheduler_address))
    for lines in (here, there):
        lines[0].pop("seconds")
    assert here == there


def test_a_cluster_of_ones_own(tmp_path: Path) -> None:
    lines = list(ir.sweep(fleet_functions.size, touch(tmp_path, "a", "b"), dask="local", jobs=1))
    assert [line["result"] for line in lines] == [6, 6]


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}):
        sweep = ir.sweep(fleet_functions.size, touch(tmp_path, "a"), dask="tcp://127.0.0.1:9")
        with pytest.raises(ir.UsageError, match="no Dask scheduler answers"):
            list(sweep)


def test_a_word_that_is_no_address_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ir.UsageError, match='"nonsense" is no address'):
        list(ir.sweep(fleet_functions.size, touch(tmp_path, "a"), dask="nonsense"))


def test_each_worker_loads_a_predictor_once(cluster: Any) -> None:
    array = pytest.importorskip("dask.array")
    predictor = ir.Predictor(SAMPLES / "digits.xml")
    x = np.random.default_rng(0).standard_normal((64, 1, 16, 16), np.float32)
    lazy = array.from_array(x, chunks=(4, 1, 16, 16))
    found = lazy.map_blocks(predictor, drop_axis=[2, 3], chunks=(4, 10), dtype="float32")
    got = cluster[1].compute(found).result()
    expected = np.concatenate([predictor(x[n : n + 4]) for n in range(0, 64, 4)])
    np.testing.assert_array_equal(got, expected)

    def programs() -> int:
        from vinoir.ir.fleet import predictor as predictors

        return len(predictors._programs)

    assert set(cluster[1].run(programs).values()) <= {0, 1}
