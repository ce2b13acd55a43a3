"""Signals between threads: none is lost, and who waits for long sleeps."""

from __future__ import annotations

import threading
import time

import pytest
from vinoir.ir.engine.workers import signals
from vinoir.ir.engine.workers.team import Threads, core_count


@pytest.fixture(params=[True, False])
def awake(request: pytest.FixtureRequest) -> bool:
    """Whether threads wait awake."""
    if request.param and signals._library()[0] is None:
        pytest.skip("there is no such library here")
    return bool(request.param)


def test_two_threads_take_turns(awake: bool) -> None:
    there, back = signals.Signal(4000, awake=awake), signals.Signal(10, awake=awake)
    heard: list[int] = []
    said: list[int] = []

    def answer() -> None:
        for _ in range(2000):
            there.wait()
            heard.append(said[-1])
            back.give()

    other = threading.Thread(target=answer)
    other.start()
    for turn in range(2000):
        said.append(turn)
        there.give()
        if turn % 500 == 0:
            time.sleep(0.01)  # long enough for the other to sleep
        back.wait()
        assert heard[-1] == turn
    other.join()
    assert heard == list(range(2000))


def test_a_signal_given_before_is_not_waited_for(awake: bool) -> None:
    one = signals.Signal(100, awake=awake)
    for _ in range(3):
        one.give()
        one.wait()
    begin = time.perf_counter()
    threading.Timer(0.05, one.give).start()
    one.wait()
    assert time.perf_counter() - begin > 0.04  # it was taken away each time


def test_who_waits_for_long_sleeps(awake: bool) -> None:
    one, spent = signals.Signal(100, awake=awake), [0.0]

    def wait() -> None:
        begin = time.thread_time()
        one.wait()
        spent[0] = time.thread_time() - begin

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.5)
    one.give()
    waiting.join()
    assert 0 < spent[0] < 0.1


def test_who_waits_awake_works_without_the_lock_of_others(
    awake: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "LOOKS", 1 << 30)  # seconds
    one, spent = signals.Signal(100, awake=awake), [0.0]

    def wait() -> None:
        begin = time.thread_time()
        one.wait()
        spent[0] = time.thread_time() - begin

    waiting = threading.Thread(target=wait)
    begin, patience = time.process_time(), time.monotonic() + 30
    waiting.start()
    time.sleep(0.1)
    while awake and time.process_time() - begin < 0.1 and time.monotonic() < patience:
        time.sleep(0.01)  # a machine that is busy lets nobody work for long
    one.give()
    waiting.join()
    assert spent[0] < 1.5  # who had the lock would let nobody give
    assert (spent[0] > 0.02) == awake


@pytest.mark.parametrize(("size", "awake"), [(core_count(), True), (core_count() + 1, False)])
def test_threads_wait_awake_where_each_has_a_core(size: int, awake: bool) -> None:
    threads = Threads([], size)
    search = signals._library()[0]
    for worker in threads._workers:
        for one in (worker._go, worker._done):
            assert one._search == (search if awake else None)
    threads.leave()
