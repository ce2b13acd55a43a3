"""Helpers that are processes: late, stopped, gone, interrupted, refused."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from test_program_threads import alone, forking, network, ready, same
from vinoir import ir
from vinoir.ir.engine.workers.blas_threads import blas
from vinoir.ir.engine.workers.preparing import side_by_side
from vinoir.ir.engine.workers.processes import PIECES, Forked, asked, shared
from vinoir.ir.engine.workers.signals import Signal
from vinoir.ir.engine.workers.team import HelpersLostError, Part, Team, Threads


def fork_and_look_for_threads() -> None:
    library = blas()
    program, inputs, wanted = ready("attention")
    for _ in range(3):
        assert same(program(inputs), wanted)
    (planned,) = program._plans.values()
    assert planned is not None
    assert isinstance(planned.team._helpers, Forked)
    if library is not None and library.name == "OpenBLAS" and not library.by_thread:
        assert len(os.listdir("/proc/self/task")) == threading.active_count()
        one = np.ones((400, 400), np.float32)
        assert (one @ one == 400).all()  # by as many threads as before


@forking
def test_threads_of_blas_that_a_fork_ends_stay_away_from_helpers() -> None:
    alone(fork_and_look_for_threads)


@forking
def test_a_helper_that_is_stopped_is_not_waited_for() -> None:
    program, inputs, wanted = ready("attention")
    program(inputs)
    program(inputs)
    (planned,) = program._plans.values()
    assert planned is not None
    helpers = planned.team._helpers
    assert isinstance(helpers, Forked)
    (helper,) = helpers._crew.pids
    os.kill(helper, signal.SIGSTOP)
    # On a busy machine it takes longer to stop than three calls take.
    os.waitid(os.P_PID, helper, os.WSTOPPED | os.WNOWAIT)
    began = time.monotonic()
    for _ in range(3):
        assert same(program(inputs), wanted)
    assert time.monotonic() - began < 60
    with pytest.raises(ChildProcessError):
        os.waitpid(helper, os.WNOHANG)


@forking
def test_a_helper_that_does_not_get_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vinoir.ir.engine.workers.processes.STUCK", 0.2)
    me, done, begun = os.getpid(), [0], shared(1)

    def mine() -> None:
        while not begun[0]:  # what a helper has not begun the caller would do
            time.sleep(0.001)
        done[0] += 1

    def theirs() -> None:
        begun[0] = 1
        while os.getpid() != me:
            time.sleep(1)

    helpers = Forked([[mine, theirs]], 2)
    helpers.begin([0])
    with pytest.raises(HelpersLostError):
        helpers.share()
    helpers.leave()
    assert done == [1]


@forking
def test_what_a_late_helper_has_not_begun_the_caller_does() -> None:
    me, steps, rounds = os.getpid(), 40, 30
    counts = shared(8 * 3 * steps).view(np.int64).reshape(steps, 3)
    by_caller = [0]
    late = random.Random(5)

    def part(step: int, worker: int) -> Part:
        def run() -> None:
            counts[step, worker] += 1
            if not worker:
                time.sleep(0.0005)  # as long as helpers take to begin
            if os.getpid() == me:
                by_caller[0] += worker > 0
            elif late.random() < 0.2:  # kept from its core, in one step and so late for others
                time.sleep(0.002)

        return run

    team = Team([[part(step, worker) for worker in range(3)] for step in range(steps)], 3, Forked)
    for turn in range(rounds):
        team.run()  # at once after the last, while a helper is late
        assert (counts == turn + 1).all()  # by one of the two, never by both
    team.dismiss()
    assert 0 < by_caller[0] < rounds * steps * 2


@forking
@pytest.mark.parametrize("slow", ["caller", "helpers"])
def test_who_is_done_goes_on_with_what_slower_ones_have_not_begun(slow: str) -> None:
    me, steps, count, size = os.getpid(), 20, 9, 3
    counts = shared(8 * steps * count).view(np.int64).reshape(steps, count)
    by_helpers = shared(8 * steps * count).view(np.int64).reshape(steps, count)

    def part(step: int, place: int) -> Part:
        def run() -> None:
            counts[step, place] += 1
            by_helpers[step, place] += os.getpid() != me
            time.sleep(0.01 if (os.getpid() == me) == (slow == "caller") else 0.0002)

        return run

    team = Team([[part(step, i) for i in range(count)] for step in range(steps)], size, Forked)
    for turn in range(4):
        team.run()
        assert (counts == turn + 1).all()
    team.dismiss()
    # Of nine parts each has three; so slow ones keep the first of these, and hardly another.
    done = by_helpers.sum() / by_helpers.size / 4
    assert done > 0.75 if slow == "caller" else done < 0.55


@forking
@pytest.mark.parametrize("count", [2, 3, PIECES - 1, PIECES, PIECES + 1, 100])
def test_any_number_of_parts_is_done_once(count: int) -> None:
    counts = shared(8 * count).view(np.int64)

    def part(place: int) -> Part:
        def run() -> None:
            counts[place] += 1

        return run

    team = Team([[part(place) for place in range(count)]], 3, Forked)
    for turn in range(100):
        team.run()
        assert (counts == turn + 1).all()
    team.dismiss()


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("count", [2, 3, 4, 9, 16])
def test_each_asks_for_all_but_the_callers_first_part_and_for_its_own_before(
    count: int, size: int
) -> None:
    for worker in range(size):
        order = asked(count, size, worker)
        assert sorted(order) == list(range(1, count))
        own = [place for place in range(1, count) if place % size == worker]
        assert order[: len(own)] == own
        assert order[len(own) :] == sorted(order[len(own) :], reverse=True)


@pytest.mark.parametrize("fork", [True, False])
def test_times_are_those_of_later_calls(fork: bool) -> None:
    model, inputs = network("attention")
    program = ir.compile(model, threads=2, fork=fork)
    timed = program.times(inputs, 1)
    assert timed is not None
    assert all(seconds > 0 for _, seconds, _ in timed)
    (planned,) = program._plans.values()
    assert planned is not None
    assert planned._warm
    assert planned._trials is None
    before = list(planned.team.alone)
    program(inputs)
    assert planned.team.alone == before


def test_what_a_late_thread_has_not_begun_the_caller_does(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, rounds = 30, 20
    counts = [[0] * 3 for _ in range(steps)]
    by_caller = [0]
    caller, late, given = threading.get_ident(), random.Random(5), Signal.wait

    def part(step: int, worker: int) -> Part:
        def run() -> None:
            counts[step][worker] += 1
            if not worker:
                time.sleep(0.0005)  # as long as threads take to begin
            by_caller[0] += worker > 0 and threading.get_ident() == caller

        return run

    def wait(self: Signal) -> None:
        given(self)
        if threading.get_ident() != caller and late.random() < 0.2:
            time.sleep(0.002)

    monkeypatch.setattr(Signal, "wait", wait)
    team = Team([[part(step, worker) for worker in range(3)] for step in range(steps)], 3, Threads)
    for turn in range(rounds):
        team.run()
        assert counts == [[turn + 1] * 3] * steps  # by one of the two, never by both
    team.dismiss()
    assert 0 < by_caller[0] < rounds * steps * 2


@forking
def test_helpers_that_are_gone_are_missed_where_they_claimed_nothing() -> None:
    helpers = Forked([[lambda: None] * 2], 2)
    (helper,) = helpers._crew.pids
    os.kill(helper, signal.SIGKILL)

    def run() -> None:
        for _ in range(1000):
            helpers.begin([0])
            helpers.share()  # what it would have done the caller does
            time.sleep(0.001)

    with pytest.raises(HelpersLostError):
        run()
    helpers.leave()


def interrupt_while_helpers_come() -> None:
    def nothing() -> None:
        """Nothing."""

    # Whoever started the tests in the background may have had interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main, begun, over = os.getpid(), threading.Event(), threading.Event()

    def interrupt() -> None:
        begun.wait()  # what starts a thread is not to be interrupted
        while not over.is_set():
            time.sleep(random.random() / 200)
            os.kill(main, signal.SIGINT)

    seen = 0
    another = threading.Thread(target=interrupt)
    another.start()
    ends = time.monotonic() + 10
    while True:
        try:
            begun.set()
            while time.monotonic() < ends:
                try:
                    helpers = Forked([[nothing] * 3], 3)
                    helpers.leave()
                    del helpers
                except KeyboardInterrupt:
                    seen += 1
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            break
        except KeyboardInterrupt:
            seen += 1
    over.set()
    another.join()
    gc.collect()
    Forked([[nothing] * 3], 3).leave()  # what a finaliser was kept from, the next makes up for
    assert seen
    try:
        left = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    raise AssertionError(f"{left} is left after {seen} interrupts")


@forking
def test_who_hires_next_makes_up_for_an_interrupted_finaliser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing() -> None:
        """Nothing."""

    def interrupted(_: Forked) -> None:
        raise KeyboardInterrupt

    gc.collect()  # helpers of others are none of its business
    helpers = Forked([[nothing] * 2], 2)
    (helper,) = helpers._crew.pids
    told: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda word: told.append(word.exc_type))
        patch.setattr(Forked, "leave", interrupted)
        del helpers
        gc.collect()
    assert told == [KeyboardInterrupt]
    assert os.waitpid(helper, os.WNOHANG) == (0, 0)
    Forked([[nothing] * 2], 2).leave()
    with pytest.raises(ChildProcessError):
        os.waitpid(helper, os.WNOHANG)


@forking
def test_interrupts_leave_no_helpers_behind() -> None:
    alone(interrupt_while_helpers_come)


@forking
def test_without_files_to_be_had_the_caller_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    program, inputs, wanted = ready("attention")

    def refuse(*_: object) -> int:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(os, "eventfd", refuse)
    for _ in range(3):
        assert same(program(inputs), wanted)


def test_work_that_threads_share_is_done_once() -> None:
    """Without the interpreter's lock two may be given the same, who ask one iterator at once."""
    done: list[int] = []
    side_by_side([partial(done.append, number) for number in range(50_000)], 4)
    assert sorted(done) == list(range(50_000))
