"""Helpers that are forked processes: they share memory with the caller, and no lock.

A helper is a copy of the process, made when a plan is ready: it knows the plan's steps, reads
the same weights, and works in the same arena, which lies in shared memory. Caller and helpers
tell each other how far they are by numbers in shared memory, and wait by looking at them, which
takes a microsecond. Between calls helpers sleep, waiting for a byte; when the caller is gone
that ends, and they end.

A helper never returns to the program it was copied from, closes all its files, and runs
nothing but the steps. What it raises ends it; the caller then computes alone what is missing.
"""

from __future__ import annotations

import gc
import mmap
import os
import platform
import select
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from ...schemas import Array
from .team import HelpersLostError, Step, sequence

#: What is told a helper by a byte.
GO = b"g"
#: One number of shared memory in eight is used: each has a cache line for itself.
LINE = 8
#: Looking at a number so often takes some 200 microseconds; after that the core is offered to
#: others, and in the end the one who waits sleeps in between.
PATIENCE, SLEEPY = 4_000, 20_000
#: Seconds that a helper may take to begin.
BIRTH = 5.0
#: Matrices for which BLAS takes memory.
TRIAL = np.ones((64, 64), np.float32)
#: Seconds after which a sleeping helper looks whether the caller is still there.
LOOK = 5.0


def can_fork() -> bool:
    """Whether helpers can be processes here.

    The numbers that are passed are seen in order only where the processor keeps the order of
    stores, and the systems' own libraries bear a fork without exec on Linux only.
    """
    return sys.platform == "linux" and platform.machine() == "x86_64"


def shared(nbytes: int) -> Array:
    """Bytes that processes forked later see, too."""
    return np.frombuffer(mmap.mmap(-1, max(nbytes, 1)), np.uint8)


def fork() -> int:
    """A copy of this process; 0 in the copy."""
    with warnings.catch_warnings():
        # Since 3.12 Python warns of forks beside other threads, whose locks nobody opens in the
        # copy: a helper needs none but BLAS's, and says when it has had it.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


class Forked:
    """Helpers for the steps of one plan."""

    def __init__(self, steps: Sequence[Step], size: int) -> None:
        self._owner = os.getpid()
        # How far the caller is, how far each helper is, and the agenda of the run.
        numbers = LINE * (size + 1) + 1 + len(steps)
        self._numbers = memoryview(mmap.mmap(-1, 8 * numbers)).cast("q")
        self._agenda_at = LINE * (size + 1)
        self._ticket = 0
        self._busy: list[list[int]] = []
        self._next = 0
        self._agenda: Sequence[int] | None = None
        self._steps = steps
        self._helpers: list[tuple[int, int]] = []
        for helper in range(1, size):
            try:
                reading, writing = os.pipe()
                pid = fork()
            except OSError as refused:  # too many files or processes: go on without
                self.leave()
                raise HelpersLostError from refused
            if pid == 0:
                self._help(helper, size, reading)
            os.close(reading)
            self._helpers.append((pid, writing))
        self._born = time.monotonic()

    # The caller's side.

    def begin(self, agenda: Sequence[int]) -> None:
        """Tell which steps will be shared, and wake the helpers."""
        if agenda != self._agenda:
            self._agenda = agenda
            start = self._agenda_at
            self._numbers[start] = len(agenda)
            for place, number in enumerate(agenda, start + 1):
                self._numbers[place] = number
            lanes = range(LINE, LINE * len(self._helpers) + 1, LINE)
            self._busy = [list(lanes[: len(self._steps[number]) - 1]) for number in agenda]
        self._next = 0
        for _, writing in self._helpers:
            try:
                os.write(writing, GO)
            except OSError as gone:
                raise HelpersLostError from gone

    def start(self) -> None:
        """Let them begin with the next step of the agenda."""
        self._ticket += 1
        self._numbers[0] = self._ticket

    def wait(self) -> None:
        """Wait until they are done with it."""
        numbers, ticket = self._numbers, self._ticket
        for lane in self._busy[self._next]:
            looks = 0
            while numbers[lane] < ticket:
                looks += 1
                if looks > PATIENCE:
                    rest(looks)
                    if looks % PATIENCE == 0 and self._is_gone(lane):
                        raise HelpersLostError
        self._next += 1

    def _is_gone(self, lane: int) -> bool:
        """Whether a helper has ended, or never came so far as to begin."""
        if not self._numbers[lane + 1] and time.monotonic() - self._born > BIRTH:
            return True
        try:
            return os.waitpid(self._helpers[lane // LINE - 1][0], os.WNOHANG) != (0, 0)
        except ChildProcessError:  # somebody else has waited for it
            return True

    def leave(self) -> None:
        """Let them go for good; whatever they do is stopped."""
        for pid, writing in self._helpers:
            os.close(writing)
            if os.getpid() != self._owner:
                continue  # a copy of the caller: the helpers are not its own
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue  # it is gone already
        self._helpers = []

    # The helper's side.

    def _help(self, helper: int, size: int, reading: int) -> NoReturn:
        """What a helper does from its first moment to its last."""
        try:
            # No finaliser of the program that was copied may run a second time.
            gc.disable()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._close_files(reading)
            mine = [sequence(step[helper::size]) if len(step) > helper else None
                    for step in self._steps]  # fmt: skip
            # A lock of BLAS that another thread held in the moment of the fork stays locked for
            # ever: whoever waits for it never comes to say that it is there.
            np.matmul(TRIAL, TRIAL)
            self._numbers[LINE * helper + 1] = 1
            with np.errstate(all="ignore"):
                done = 0
                while self._called(reading):
                    numbers, start = self._numbers, self._agenda_at
                    agenda = numbers[start + 1 : start + 1 + numbers[start]].tolist()
                    for ticket, number in enumerate(agenda, done + 1):
                        part = mine[number]
                        if part is None:
                            continue
                        looks = 0
                        while numbers[0] < ticket:
                            looks += 1
                            if looks > PATIENCE:
                                rest(looks)
                        part()
                        numbers[LINE * helper] = ticket
                    done += len(agenda)
        finally:
            os._exit(0)

    def _called(self, reading: int) -> bool:
        """Sleep until there is work; False when there will be none."""
        while not select.select([reading], [], [], LOOK)[0]:
            if os.getppid() != self._owner:
                return False
        return os.read(reading, 1) == GO

    @staticmethod
    def _close_files(reading: int) -> None:
        """Close all but one: pipes and sockets of the program must not stay open for a helper."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        os.closerange(3, reading)
        os.closerange(reading + 1, os.sysconf("SC_OPEN_MAX"))


def rest(looks: int) -> None:
    """Offer the core to others, for longer the longer one waits."""
    if looks > SLEEPY:
        time.sleep(50e-6)
    else:
        os.sched_yield()
