"""Forks beside programs: what is at work in other threads, whoever it is that forks."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from test_program_threads import (
    KERNELS,
    alone,
    forking,
    needs_many,
    ready,
    same,
    threads_of_blas,
)
from vinoir.ir.engine.workers import blas_threads, processes
from vinoir.ir.engine.workers.blas_threads import APART, Blas, single_blas


def fork_while_another_thread_calls() -> None:
    program, inputs, wanted = ready("squeezed")
    program(inputs)
    failed: list[int] = []
    over = threading.Event()

    def call() -> None:
        while not over.is_set():
            if not same(program(inputs), wanted):
                failed.append(0)

    caller = threading.Thread(target=call)
    caller.start()
    for _ in range(12):
        start = time.monotonic()
        pid = os.fork()
        if time.monotonic() - start > APART:
            failed.append(-1)
        if pid == 0:
            code = 1
            try:
                code = 0 if all(same(program(inputs), wanted) for _ in range(3)) else 2
            finally:
                os._exit(code)
        if os.waitpid(pid, 0)[1]:
            failed.append(pid)
        time.sleep(random.random() / 50)
    over.set()
    caller.join()
    assert same(program(inputs), wanted)
    assert not failed


@forking
@KERNELS
def test_the_process_is_forked_while_another_thread_calls(kernels: str) -> None:
    alone(fork_while_another_thread_calls, kernels)


def hire_while_another_thread_multiplies() -> None:
    over = threading.Event()

    def multiply() -> None:
        square = np.ones((900, 900), np.float32)
        while not over.is_set():
            np.matmul(square, square)

    busy = threading.Thread(target=multiply)
    busy.start()
    for _ in range(6):
        program, inputs, wanted = ready("attention")
        for _ in range(3):
            assert same(program(inputs), wanted)
    over.set()
    busy.join()


@forking
def test_helpers_come_while_another_thread_has_blas_at_work() -> None:
    alone(hire_while_another_thread_multiplies)


@forking
@needs_many
def test_a_copy_that_was_made_in_a_call_has_all_threads_of_blas() -> None:
    before = threads_of_blas()
    with single_blas:
        pid = os.fork()
        if pid == 0:
            os._exit(threads_of_blas())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == before
        assert threads_of_blas() == 1


class Waking:
    """Eight threads of a BLAS that begins them anew when their number is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pause: float = 600.0) -> None:
        self.number = 8
        library = Blas("one", "", "", lambda: self.number, self.limit, wakes=True)
        monkeypatch.setattr(blas_threads, "blas", lambda: library)
        # However long this machine takes, none of it comes by itself.
        monkeypatch.setattr(blas_threads, "PAUSE", pause)
        monkeypatch.setattr(blas_threads, "LATEST", 600.0)

    def limit(self, number: int) -> None:
        self.number = number

    def work(self, *, fork: bool) -> int:
        """A program's work, in which it may fork; how many threads there are in the copy."""
        with single_blas:
            assert self.number == 1
            return self.copy() if fork else 0

    def copy(self) -> int:
        pid = os.fork()
        if pid == 0:
            os._exit(self.number)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def pause(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is done in a pause; who waits for one is let go."""
        waiting = single_blas._waiting
        assert waiting is not None
        assert waiting.is_alive()
        assert not single_blas.paused()
        monkeypatch.setattr(blas_threads, "PAUSE", 0.0)
        assert single_blas.paused()
        waiting.leave()
        assert not waiting.is_alive()


@forking
def test_threads_of_blas_that_a_fork_has_ended_are_begun_anew_in_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Waking(monkeypatch)
    assert library.work(fork=True) == 8  # a copy has its own at once
    assert library.number == 1
    library.work(fork=False)
    assert library.number == 1
    assert library.copy() == 8
    assert library.number == 1
    # Python warns of forks beside threads: who waits ends before one, and another comes after it.
    waiting = single_blas._waiting
    assert waiting is not None
    single_blas.hold()
    try:
        assert not waiting.is_alive()
    finally:
        single_blas.go_on()
    library.pause(monkeypatch)
    assert library.number == 8
    # They are there now: from one program to the next nothing is begun.
    library.work(fork=False)
    assert library.number == 8


@forking
def test_the_pause_comes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Waking(monkeypatch, pause=0.01)
    library.work(fork=True)
    until = time.monotonic() + 60
    while library.number == 1 and time.monotonic() < until:
        time.sleep(0.001)
    assert library.number == 8


@forking
def test_threads_of_blas_are_begun_anew_though_there_is_no_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Waking(monkeypatch)
    library.work(fork=True)
    assert library.number == 1
    monkeypatch.setattr(blas_threads, "LATEST", 0.0)
    library.work(fork=False)
    assert library.number == 8
    assert single_blas._waiting is not None
    single_blas._waiting.leave()


@forking
def test_what_is_set_before_the_pause_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Waking(monkeypatch)
    library.work(fork=True)
    library.limit(3)
    library.pause(monkeypatch)
    assert library.number == 3
    library.work(fork=False)
    assert library.number == 3


@forking
def test_without_a_thread_that_waits_threads_of_blas_are_put_back_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Waking(monkeypatch)

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(blas_threads._Pause, "start", refused)
    library.work(fork=True)
    assert library.number == 8


def copied(seen: list[str]) -> int:
    """How many entries a list has in a copy of this process."""
    pid = os.fork()
    if pid == 0:
        os._exit(len(seen))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@forking
def test_a_fork_waits_for_programs_of_other_threads_and_they_for_it() -> None:
    inside, over = threading.Event(), threading.Event()
    seen: list[str] = []

    def work() -> None:
        with single_blas, single_blas:
            seen.append("begun")
            inside.set()
            assert over.wait(60)
            seen.append("done")

    workers = [threading.Thread(target=work) for _ in range(2)]
    workers[0].start()
    assert inside.wait(60)
    counts: list[int] = []
    forker = threading.Thread(target=lambda: counts.append(copied(seen)))
    forker.start()
    # The fork has the lock while it waits.
    while forker.is_alive() and single_blas._lock.acquire(blocking=False):
        single_blas._lock.release()
        time.sleep(0.001)
    workers[1].start()
    over.set()
    for thread in (*workers, forker):
        thread.join()
    assert counts == [2]
    assert seen == ["begun", "done"] * 2


@forking
def test_a_fork_does_not_wait_for_who_was_interrupted_when_he_ended() -> None:
    entered = threading.Thread(target=single_blas.__enter__)
    entered.start()
    entered.join()
    start = time.monotonic()
    assert copied([]) == 0
    assert time.monotonic() - start < APART
    single_blas.begin_anew()


@needs_many
def test_who_was_interrupted_when_he_ended_gives_threads_of_blas_back_later() -> None:
    before = threads_of_blas()

    def interrupted() -> None:
        single_blas.__enter__()

    interrupted()
    assert threads_of_blas() == 1
    with single_blas, single_blas:
        assert threads_of_blas() == 1
    assert threads_of_blas() == before


def hire_in_many_threads_at_once() -> None:
    # Others lock something around forks, too, and before vinoir does.
    lock = threading.Lock()
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )
    begun = threading.Barrier(3)

    def work() -> None:
        pids: list[int] = []
        with single_blas:
            begun.wait()
            for _ in range(4):
                processes.fork(pids)
                if not pids[-1]:
                    os._exit(0)
                time.sleep(0.01)
        for pid in pids:
            os.waitpid(pid, 0)

    workers = [threading.Thread(target=work) for _ in range(3)]
    start = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert time.monotonic() - start < APART


@forking
def test_programs_that_hire_do_not_wait_for_each_other() -> None:
    alone(hire_in_many_threads_at_once)


@forking
def test_a_fork_that_had_begun_before_the_module_came_is_let_go_on() -> None:
    program = (
        "import os\n"
        "os.register_at_fork(before=lambda: __import__('vinoir.ir.engine.workers.blas_threads'))\n"
        "for _ in range(2):\n"
        "    child = os.fork()\n"
        "    if not child: os._exit(7)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
    assert (done.stdout, done.stderr) == ("7\n7\n", "")
