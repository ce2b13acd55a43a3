"""Tasks done by a Dask cluster: in chunks, each by processes that the cluster's workers keep.

A chunk whose worker is gone is handed to another by Dask, and nothing of it was told before. What
crashes, hangs or eats memory is met by the worker's own process, as without a cluster.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import Any, Self

from ...schemas import IRError, UsageError
from ..optional import optional
from .outcomes import Outcome, Task
from .supervision import Crew, Numbered

#: A chunk is to take so many seconds, and holds no more than so many tasks.
CHUNK_SECONDS, CHUNK_TASKS = 1.0, 256
#: Chunks that are under way for each thread of the cluster.
AHEAD = 2

#: What a cluster looks at seldom: its workers' stacks and loads. By default its threads do so a
#: hundred times a second, for which each worker has a fortieth of its processor less.
SELDOM = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.profile.interval": "1s",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.worker.memory.monitor-interval": "2s",
}

_ADDRESS = "give its address, such as tcp://host:8786, or local"

#: Of a worker of the cluster: processes that have nothing to do, by what they were told.
_idle: dict[str, list[Crew]] = {}
_lock = threading.Lock()


class Cluster:
    """A Dask cluster that does one thing to many tasks."""

    def __init__(self, address: str, setup: str, jobs: int, max_seconds: float | None) -> None:
        self._dask = optional(
            "distributed",
            "a cluster needs the package distributed",
            'pip install "vinoir[fleet]"',
        )
        if address != "local" and ":" not in address:  # Dask would try it for minutes
            raise UsageError(f'"{address}" is no address of a Dask scheduler', hint=_ADDRESS)
        self._cluster: Any = None
        self._setup, self._max_seconds = setup, max_seconds
        self._key = hashlib.blake2b(f"{max_seconds} {setup}".encode(), digest_size=12).hexdigest()
        if address == "local":
            with import_module("dask.config").set(SELDOM):
                self._cluster = self._dask.LocalCluster(
                    n_workers=jobs, threads_per_worker=1, processes=False, dashboard_address=":0",
                    silence_logs=40,
                )  # fmt: skip
            address = self._cluster.scheduler_address
        try:
            self._client: Any = self._dask.Client(address, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError(
                f"no Dask scheduler answers at {address}: {error}",
                hint=_ADDRESS,
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # workers that are gone have dismissed theirs
            self._client.run(dismiss, self._key)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Outcome]]:
        """Do all tasks; the number of each with what came of it, in the order in which it came."""
        setup = self._client.scatter(self._setup, broadcast=True, hash=True)
        waiting = iter(enumerate(tasks))
        again: deque[list[Numbered]] = deque()
        given: dict[Any, list[Numbered]] = {}
        finished = self._dask.as_completed(loop=self._client.loop)
        each = 0.0

        def hand_out() -> None:
            threads = sum(self._client.nthreads().values()) or 1
            while len(given) < AHEAD * threads:
                size = min(max(int(CHUNK_SECONDS / each), 1), CHUNK_TASKS) if each else 1
                chunk = again.popleft() if again else list(islice(waiting, size))
                if not chunk:
                    return
                future = self._client.submit(
                    do_chunk, self._key, setup, [task for _, task in chunk], self._max_seconds,
                    pure=False,
                )  # fmt: skip
                given[future] = chunk
                finished.add(future)

        hand_out()
        while given:
            future = next(finished)
            chunk = given.pop(future)
            try:
                texts = future.result()
            except self._dask.KilledWorker:
                if len(chunk) > 1:  # one of them may be the cause: each for itself
                    again.extend([numbered] for numbered in chunk)
                else:
                    error = "the workers of the cluster that had it were lost"
                    yield chunk[0][0], Outcome(70, "crashed", error=error)
                hand_out()
                continue
            except ImportError as error:
                raise IRError(f"the workers of the cluster lack {error.name}: {error}") from None
            hand_out()
            for (number, _), text in zip(chunk, texts, strict=True):
                outcome = Outcome(**json.loads(text))
                each += 0.1 * (max(outcome.seconds, 1e-6) - each)
                yield number, outcome


def do_chunk(key: str, setup: str, tasks: list[Task], max_seconds: float | None) -> list[str]:
    """Do some tasks, in a worker of the cluster."""
    with _lock:
        kept = _idle.setdefault(key, [])
        crew = kept.pop() if kept else None
    if crew is None:
        crew = Crew(setup, 1, max_seconds=max_seconds, threads=1)
    found: dict[int, str] = {}
    try:
        for number, outcome in crew.run(tasks):
            found[number] = json.dumps(outcome.to_json())
    except BaseException:
        crew.close()
        raise
    with _lock:
        _idle.setdefault(key, []).append(crew)
    return [found[number] for number in range(len(tasks))]


def dismiss(key: str) -> None:
    """End the processes that were told one thing, in a worker of the cluster."""
    with _lock:
        crews = _idle.pop(key, [])
    for crew in crews:
        crew.close()


__all__ = ["Cluster", "dismiss", "do_chunk"]
