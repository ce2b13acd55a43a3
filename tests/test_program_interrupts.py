"""An interrupt ends a call; what comes after is as if that call had not been made."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from interrupts import in_time, interrupts
from vinoir import ir
from vinoir.ir.engine.workers.cores import KeepOffCore
from vinoir.ir.engine.workers.crew import Crew
from vinoir.ir.engine.workers.processes import Forked, can_fork, shared
from vinoir.ir.engine.workers.team import Step, Team, Threads
from vinoir.layers.budget import is_limited
from vinoir.layers.resources import _text
from vinoir.schemas import UsageError

TEAM, CREW = "ir/engine/workers/team.py", "ir/engine/workers/crew.py"
SIGNALS = "ir/engine/workers/signals.py"


@pytest.fixture(autouse=True)
def finalisers_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python tells of what a finaliser raises, and goes on; who kept that would keep all of it."""
    monkeypatch.setattr(sys, "unraisablehook", lambda word: None)


def workers_left(patience: float = 5.0) -> int:
    """How many threads of programs there are, after those that are told to end have ended."""
    until = time.monotonic() + patience
    while True:
        left = sum(thread.name == "vinoir" for thread in threading.enumerate())
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.001)


def by_threads(step: Step) -> None:
    threads = Threads([step], 3)
    try:
        threads.begin([0])
        threads.share()
    finally:
        threads.leave()


def by_a_team(step: Step) -> None:
    Team([step], 3, Threads).run()


def by_a_crew(step: Step) -> None:
    crew = Crew(3, list)
    crew.work(step)
    crew.rest()


@pytest.mark.parametrize("work", [by_threads, by_a_team, by_a_crew])
def test_no_interrupt_lets_threads_hang_or_stay_or_go_on(work: Callable[[Step], None]) -> None:
    running: set[int] = set()

    def part(number: int) -> None:
        running.add(number)
        time.sleep(0.0003)
        running.discard(number)

    step = [partial(part, number) for number in range(3)]

    def sweep() -> None:
        met = 0
        for met in interrupts(lambda: work(step), TEAM, CREW, SIGNALS):
            # They would write into memory in which the next call works.
            assert not running, met
        assert met > 100

    before = workers_left(0)
    in_time(sweep)
    assert workers_left() <= before


@pytest.mark.parametrize("kind", [Team, Threads, Crew])
def test_who_was_interrupted_at_once_leaves_in_silence(kind: type) -> None:
    kind.__new__(kind).__del__()


def test_an_interrupt_leaves_all_variables_as_they_were_or_writes_all() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, -1))
    for name in "abc":
        past = net.add(
            "ReadValue", "opset6", [net.constant(np.zeros((1, 0), "f4"))],
            variable_id=name, variable_type="f32", variable_shape="1,-1",
        )  # fmt: skip
        longer = net.add("Concat", "opset1", [past, x], axis=1)
        net.add("Assign", "opset6", [longer], variable_id=name)
        net.result(longer, name=f"all of {name}")
    program = ir.compile(net.model(), threads=1)
    given = np.zeros((1, 1), "f4")

    def call() -> None:
        given[:] += 1
        program([given.copy()])

    def kept() -> list[list[float]]:
        return [value[0].tolist() for value in program.state.values()]

    call()
    call()
    met = 0
    for met in interrupts(call, "ir/engine/planned.py", "ir/engine/memory/growing.py"):
        before = kept()
        assert before[0] == before[1] == before[2], met
        given[:] += 1
        found = program([given.copy()])
        wanted = [*before[0], float(given[0, 0])]
        assert all(found[f"all of {name}"][0].tolist() == wanted for name in "abc"), met
        if len(wanted) > 200:  # what is joined goes into new buffers now and then
            program.reset()
            call()
            call()
    assert met > 30


def small() -> ir.Model:
    net = ir.Builder()
    x = net.parameter("x", "f32", (2, 16))
    net.result(net.add("SoftMax", "opset8", [net.add("ReLU", "opset1", [x])], axis=1), name="y")
    return net.model()


RUNS = ("ir/execution/interpreter.py", "layers/budget.py", "layers/turns.py", "layers/memory.py")


def settings() -> tuple[object, ...]:
    """What a call may change for its length."""
    interval, collects = sys.getswitchinterval(), gc.isenabled()
    tiny = np.multiply(np.full(4, 1e-38, "f4"), np.float32(0.1)).any()
    return is_limited(), interval, collects, np.geterr(), np.getbufsize(), bool(tiny)


def test_an_interrupted_run_raises_the_interrupt_and_leaves_nothing_open() -> None:
    model, given = small(), [np.zeros((2, 16), "f4")]
    before, met = settings(), 0
    for met in interrupts(lambda: ir.run(model, given, max_seconds=60), *RUNS):
        assert settings() == before, met
    assert met > 100


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_call_leaves_nothing_open(threads: int) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (64, 16))
    y = net.add(
        "MatMul", "opset1", [net.add("SoftMax", "opset8", [x], axis=1), np.ones((16, 8), "f4")],
        transpose_a=False, transpose_b=False,
    )  # fmt: skip
    net.result(y, name="y")
    program = ir.compile(net.model(), threads=threads, fork=False)
    # So far apart that next to nothing is left of some: there denormals are made zero.
    given = [50 * np.random.default_rng(0).standard_normal((64, 16)).astype("f4")]
    (planned,) = program._plans.values()
    program(given)
    assert planned is not None
    planned._trials, planned.team.alone = None, [threads == 1] * len(planned.team.alone)
    wanted = program(given)["y"]

    def sweep() -> None:
        before, met = settings(), 0
        for call in (program, program.anew):
            for met in interrupts(partial(call, given), "ir/engine", "layers", error=TimeoutError):
                assert settings() == before, met
                assert met % 5 or np.array_equal(program(given)["y"], wanted), met
            assert met > 50

    in_time(sweep)


def test_an_interrupted_short_way_leaves_nothing_open() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 2, 8, 8))
    window = {"kernel": (2, 2), "strides": (2, 2), "pads_begin": (0, 0), "pads_end": (0, 0)}
    net.result(net.add("MaxPool", "opset1", [x], **window), name="y")
    program = ir.compile(net.model(), threads=1)
    image = np.arange(128, dtype="f4").reshape(1, 2, 8, 8)
    given, wanted = [image], image[:, :, 1::2, 1::2]
    program(given)
    assert program._short is not None
    before, met = settings(), 0
    for met in interrupts(lambda: program(given), "ir/engine", "layers"):
        assert settings() == before, met
        assert np.array_equal(program(given)["y"], wanted), met
    assert met > 10


def test_an_interrupted_plan_leaves_nothing_open() -> None:
    model, before, met = small(), settings(), 0
    for met in interrupts(lambda: ir.compile(model, threads=1), *RUNS, "ir/engine/p", every=41):
        assert settings() == before, met
    assert met > 400


def hire() -> None:
    Forked([[int] * 2], 2)


forks = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")


@pytest.mark.parametrize(
    ("place", "call"),
    [
        pytest.param("mmap.mmap", hire, marks=forks),
        pytest.param("os.pipe", hire, marks=forks),
        pytest.param("os.eventfd", hire, marks=forks),
        ("mmap.mmap", lambda: shared(10)),
        pytest.param("os.sched_setaffinity", lambda: KeepOffCore().keep([0]), marks=forks),
        ("pathlib.Path.read_text", lambda: _text(Path("/proc/meminfo"))),
    ],
)
def test_a_timeout_is_not_taken_for_what_the_system_refuses(
    monkeypatch: pytest.MonkeyPatch, place: str, call: Callable[[], object]
) -> None:
    """A handler's TimeoutError is an OSError, as the system's are."""

    def timeout(*_: object) -> None:
        raise TimeoutError("mine")

    if can_fork():
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 1 << 20})
    monkeypatch.setattr(place, timeout)
    with pytest.raises(TimeoutError, match="mine"):
        call()


def test_a_handler_that_runs_the_running_program_is_refused() -> None:
    program, given = ir.compile(small(), threads=1), [np.zeros((2, 16), "f4")]
    wanted, refused = program(given)["y"], 0

    class Interrupt(KeyboardInterrupt):
        """Of a handler that runs the program first."""

        def __init__(self, *said: object) -> None:
            nonlocal refused
            with pytest.raises(UsageError, match="runs in this thread already"):
                program(given)
            refused += 1

    def sweep() -> None:
        for met in interrupts(lambda: program(given), "ir/engine/planned.py", error=Interrupt):
            assert np.array_equal(program(given)["y"], wanted), met

    in_time(sweep)
    assert refused > 5
