"""Threads that share the parts of a step.

NumPy lets go of the interpreter's lock while it computes, so plain threads run in parallel.
BLAS is kept to one thread meanwhile: its threads and ours would fight for the same cores.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, TypeAlias

#: A piece of work with its arrays already bound.
Part: TypeAlias = Callable[[], None]


def core_count() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Team:
    """Some threads, the caller's among them, that run the parts of a step together."""

    def __init__(self, size: int | None = None) -> None:
        self.size = max(1, core_count() if size is None else size)
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []

    def __del__(self) -> None:
        for worker in self._workers:
            worker.leave()

    def run(self, steps: Sequence[Sequence[Part]], seconds: list[float] | None = None) -> None:
        """Run steps in order; the parts of one step at the same time.

        How long each takes is put into ``seconds``.

        Part ``i`` runs on thread ``i % size``, so that parts may own a thread's scratch memory.
        """
        with self._lock, self._single_blas():
            if not self._workers and self.size > 1 and any(len(step) > 1 for step in steps):
                self._workers = [_Worker() for _ in range(self.size - 1)]
            for step in steps:
                if seconds is not None:
                    seconds.append(time.perf_counter())
                if len(step) == 1:
                    step[0]()
                    continue
                busy = self._workers[: len(step) - 1]
                for number, worker in enumerate(busy, 1):
                    worker.start(step[number :: self.size])
                error: BaseException | None = None
                try:
                    for part in step[0 :: self.size]:
                        part()
                except BaseException as raised:  # raised again below, when all rest
                    error = raised
                for worker in busy:
                    error = worker.wait() or error
                if error is not None:
                    raise error
            if seconds is not None:
                ends = [*seconds, time.perf_counter()]
                seconds[:] = [end - begin for begin, end in pairwise(ends)]

    def _single_blas(self) -> AbstractContextManager[Any]:
        """Keep BLAS to one thread while the team works."""
        limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
        return limit


_found: Any = None


def _controller() -> Any:
    """The thread pools of this process, looked for once."""
    global _found
    if _found is None:
        from threadpoolctl import ThreadpoolController

        _found = ThreadpoolController()
    return _found


class _Worker:
    """A thread that waits for parts."""

    def __init__(self) -> None:
        # Plain locks, held by whoever waits: semaphores are made of several, in Python.
        self._go, self._done = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._done.acquire()
        #: What is to be done next; None: nothing, ever again.
        self._parts: Sequence[Part] | None = ()
        self._error: BaseException | None = None
        threading.Thread(target=self._loop, daemon=True, name="vinoir").start()

    def start(self, parts: Sequence[Part]) -> None:
        """Hand over parts to run."""
        self._parts = parts
        self._go.release()

    def wait(self) -> BaseException | None:
        """Wait until they are done; what went wrong, if anything."""
        self._done.acquire()
        error, self._error = self._error, None
        return error

    def leave(self) -> None:
        """End the thread."""
        self._parts = None
        self._go.release()

    def _loop(self) -> None:
        while True:
            self._go.acquire()
            if self._parts is None:
                return
            try:
                for part in self._parts:
                    part()
            except BaseException as error:  # handed to the caller by wait
                self._error = error
            self._parts = ()
            self._done.release()


def spans(count: int, pieces: int) -> list[tuple[int, int]]:
    """Cut ``count`` into at most ``pieces`` runs of nearly the same length."""
    pieces = max(1, min(pieces, count))
    edges = [count * i // pieces for i in range(pieces + 1)]
    return list(pairwise(edges))
