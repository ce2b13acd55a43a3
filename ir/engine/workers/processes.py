"""Helpers that are forked processes: they share memory with the caller, and no lock.

A helper is a copy of the process, made when a plan is ready: it knows the plan's steps, reads
the same weights, and works in the same arena, which lies in shared memory. Caller and helpers
tell each other how far they are by numbers in shared memory, and wait by looking at them, which
takes a microsecond. Between calls helpers sleep; when the caller is gone, they end.

Where others want the cores as well, a helper may be kept from its core for milliseconds, and of
two cores one may be half as quick as the other for seconds. So a part of a step is somebody's own
only when he has claimed it: who is done with his parts goes on with those that nobody has begun.
Each process has a copy of all scratch memory, so that it does not matter whose parts it runs.

A helper never returns to the program it was copied from, closes all its files, and runs
nothing but the steps. What it raises ends it; the caller then computes alone what is missing.
"""

from __future__ import annotations

import atexit
import gc
import mmap
import os
import platform
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise, starmap
from typing import NoReturn
from weakref import ref

import numpy as np

from ....layers.budget import forget
from ....layers.refusals import from_system, unless_refused
from ....schemas import Array
from .blas_threads import at_rest, single_blas
from .cores import KeepOffCore
from .team import BUFFER, Helpers, HelpersLostError, Part, Step, Threads, sequence, to_the_end

if sys.platform == "linux":
    # Not when it is needed: a process may be forked in the middle of that.
    from multiprocessing import get_context
    from multiprocessing.synchronize import Semaphore

#: One number of shared memory in eight is used: each has a cache line for itself.
LINE = 8
#: A line begins with how far one is; then comes whether it is ready.
READY = 1
#: Where the caller's line tells how far it was when the run began, how far it will be in the end,
#: to which step the claims belong that are to be had, and how many pieces that has.
BASE, END, CLAIMED, COUNT = 3, 4, 5, 6
#: At most so many pieces of a step are claimed one by one.
PIECES = 16
#: Looking at a number so often takes some 20 microseconds; after that the core is offered to
#: others, and in the end the one who waits sleeps in between.
PATIENCE, SLEEPY = 400, 20_000
#: Seconds that a helper may take to begin.
BIRTH = 5.0
#: Seconds that one waits for a helper that does not get on, at least, and how many times as long
#: as one's own share took.
STUCK, TIMES = 10.0, 20
#: Seconds in which threads of BLAS that have nothing to do go to sleep.
QUIET = 0.25
#: Matrices for which BLAS takes memory.
TRIAL = np.ones((64, 64), np.float32)
#: Seconds after which a sleeping helper looks whether the caller is still there, should a copy
#: of the caller keep the pipe open.
LOOK = 60.0


def can_fork() -> bool:
    """Whether helpers can be processes here.

    The numbers that are passed are seen in order only where the processor keeps the order of
    stores, and the systems' own libraries bear a fork without exec on Linux only.
    """
    return sys.platform == "linux" and platform.machine() == "x86_64"


def shared(nbytes: int) -> Array:
    """Shared memory: processes that are forked later see the same bytes."""
    try:
        room = mmap.mmap(-1, max(nbytes, 1))
    except OSError as refused:
        told = f"{nbytes} bytes of shared memory are not to be had"
        raise MemoryError(told) from from_system(refused)
    return np.frombuffer(room, np.uint8)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Block signals, in Python's own work around a fork, too."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fork(pids: list[int]) -> None:
    """Make a copy of this process, and note its number; 0 in the copy.

    A handler of signals may raise before any instruction of Python, even where this thread lets
    no signal through: so there is none between the fork and the note.
    """
    with warnings.catch_warnings(), single_blas.copied():
        # Since 3.12 Python warns of forks beside other threads, whose locks nobody opens in the
        # copy: a helper needs none but BLAS's, and says when it has had it.
        warnings.simplefilter("ignore", DeprecationWarning)
        pids.extend(starmap(os.fork, [()]))


def hire(steps: Sequence[Step], size: int) -> Helpers:
    """Start helper processes; threads where BLAS works in another thread: no fork then."""
    deadline = time.monotonic() + QUIET
    while not at_rest():
        if time.monotonic() > deadline:
            return Threads(steps, size)
        time.sleep(0.001)
    return Forked(steps, size)


class Crew:
    """The processes and file descriptors of some helpers, to be closed at the end.

    It stands in a list until that is done. An interrupt may end a finaliser before it has done
    anything, and Python calls none twice: who hires next makes up for it.
    """

    def __init__(self, helped: Forked) -> None:
        self.helped = ref(helped)
        self.owner = os.getpid()
        self.pids: list[int] = []
        self.files: list[int] = []
        self.complete = False
        _crews.add(self)

    def leave(self) -> None:
        """Let them go for good; whatever they do is stopped."""
        to_the_end(self._leave)

    def _leave(self) -> None:
        if os.getpid() == self.owner:
            for pid in list(self.pids):
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    pass  # it is gone already
                with suppress(ValueError):  # another thread has made up for it meanwhile
                    self.pids.remove(pid)
        self._close()
        _crews.discard(self)

    def forget(self) -> None:
        """Forget them without ending them, in a forked copy of the caller."""
        self.pids.clear()
        self._close()
        _crews.discard(self)

    def _close(self) -> None:
        while self.files:
            # Somebody has closed all files there were, or another thread the last of these.
            with suppress(IndexError), unless_refused():
                os.close(self.files.pop())


class Forked:
    """Helpers for the steps of one plan."""

    check: Callable[[], None] | None = None

    def __init__(self, steps: Sequence[Step], size: int) -> None:
        make_up()
        self._crew = Crew(self)
        self._apart = KeepOffCore()
        # How far the caller is, how far each helper is, and the agenda of the run.
        numbers = LINE * (size + 1) + 1 + len(steps)
        try:
            self._numbers = memoryview(mmap.mmap(-1, 8 * numbers)).cast("q")
        except OSError as refused:
            raise HelpersLostError from from_system(refused)
        self._agenda_at = LINE * (size + 1)
        self._ticket = 0
        self._next = 0
        self._agenda: Sequence[int] | None = None
        self._steps = steps
        #: The parts of each step that are claimed one by one.
        self._pieces = [pieces(step, size) for step in steps]
        #: By the number of pieces: in which order the caller, and each helper, asks for them.
        self._orders = {
            count: [asked(count, size, worker) for worker in range(size)]
            for count in {len(step) for step in self._pieces}
        }
        #: How many pieces helpers have done, if all went well, since they began.
        self._given = 0
        #: Whether a helper did anything since the caller last looked whether they are there.
        self._helped = True
        try:
            self._claims = claims(max(map(len, self._pieces), default=0))
        except OSError as refused:
            raise HelpersLostError from from_system(refused)
        # Helpers sleep until their bell rings. These are events: who is woken by a byte in a
        # pipe is put on the core of who wrote it. The pipe is there to be closed with the caller.
        with undisturbed():
            try:
                self._crew.files.extend(os.pipe())
                for helper in range(1, size):
                    self._crew.files.append(os.eventfd(0))
                    fork(self._crew.pids)
                    if not self._crew.pids[-1]:
                        self._help(helper, size)
            except OSError as refused:  # too many files or processes: go on without
                self.leave()
                raise HelpersLostError from from_system(refused)
            except BaseException:
                self.leave()
                raise
        self._born = time.monotonic()
        self._crew.complete = True

    def __del__(self) -> None:
        if hasattr(self, "_crew"):  # else it was interrupted when it had hardly begun
            self.leave()

    # The caller's side.

    def begin(self, agenda: Sequence[int]) -> None:
        """Tell which steps will be shared, and wake the helpers."""
        if not self._crew.pids:  # the process is about to end
            raise HelpersLostError
        if not self._helped and any(map(self._is_gone, self._lanes())):
            raise HelpersLostError
        self._helped = False
        if agenda != self._agenda:
            self._agenda = agenda
            start = self._agenda_at
            self._numbers[start] = len(agenda)
            for place, number in enumerate(agenda, start + 1):
                self._numbers[place] = number
        self._next = 0
        self._numbers[BASE] = self._ticket
        self._numbers[END] = self._ticket + len(agenda)
        self._apart.keep(self._crew.pids)
        # Who has no part would not be waited for, and might be late for the next run.
        needed = max((len(self._steps[number]) for number in agenda), default=0)
        try:
            for bell in self._crew.files[2 : needed + 1]:
                os.eventfd_write(bell, 1)
        except OSError as closed:
            raise HelpersLostError from from_system(closed)

    def share(self) -> None:
        """Do the next step of the agenda together."""
        assert self._agenda is not None
        parts = self._pieces[self._agenda[self._next]]
        self._next += 1
        claims, count = self._claims, len(parts)
        self._ticket += 1
        # Who has a claim knows its step; who sees how far the caller is finds a claim.
        self._numbers[CLAIMED], self._numbers[COUNT] = self._ticket, count
        for claim in claims[1:count]:
            claim.release()
        self._numbers[0] = self._ticket
        started = time.monotonic()
        parts[0]()
        left = count - 1
        check = self.check
        for place in self._orders[count][0]:
            if claims[place].acquire(False):
                if check is not None:
                    check()
                parts[place]()
                left -= 1
        if left:
            self._given += left
            self._helped = True
            self._wait(started)

    def _wait(self, started: float) -> None:
        """Wait until helpers are done with what they have claimed."""
        numbers, lanes, given = self._numbers, self._lanes(), self._given
        others = lanes[1:]
        looks, deadline = 0, 0.0
        while numbers[LINE] + (sum(numbers[lane] for lane in others) if others else 0) < given:
            looks += 1
            if looks > PATIENCE:
                rest(looks)
                if looks % PATIENCE == 0:
                    now = time.monotonic()
                    deadline = deadline or now + max(STUCK, TIMES * (now - started))
                    if now > deadline or any(map(self._is_gone, lanes)):
                        raise HelpersLostError

    def _lanes(self) -> range:
        """The lines of the helpers among the numbers."""
        return range(LINE, LINE * len(self._crew.pids) + 1, LINE)

    def _is_gone(self, lane: int) -> bool:
        """Whether a helper has ended, was stopped, or never came so far as to begin."""
        if not self._numbers[lane + READY] and time.monotonic() - self._born > BIRTH:
            return True
        try:
            number = self._crew.pids[lane // LINE - 1]
            return os.waitpid(number, os.WNOHANG | os.WUNTRACED) != (0, 0)
        except ChildProcessError:  # somebody else has waited for it
            return True

    def leave(self) -> None:
        """Let them go for good; whatever they do is stopped."""
        self._crew.leave()

    # The helper's side.

    def _help(self, helper: int, size: int) -> NoReturn:
        """What a helper does from its first moment to its last."""
        try:
            # No finaliser of the program that was copied may run a second time.
            gc.disable()
            forget()
            for kind in signal.valid_signals():
                if callable(signal.getsignal(kind)):
                    signal.signal(kind, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            # Whoever stops the program at its terminal means the program: a helper waits for it.
            for kind in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                signal.signal(kind, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            # Where standard files are closed, these may have their numbers.
            files = self._crew.files
            life, bell = (above_standard(file) for file in (files[0], files[-1]))
            close_all_but(life, bell)
            awaited = select.poll()  # any number of file will do, for select they may be too high
            awaited.register(life, select.POLLIN)
            awaited.register(bell, select.POLLIN)
            # A lock of BLAS that another thread held in the moment of the fork stays locked for
            # ever: whoever waits for it never comes to say that it is there.
            np.matmul(TRIAL, TRIAL)
            self._numbers[LINE * helper + READY] = 1
            with np.errstate(all="ignore"):
                np.setbufsize(BUFFER)
                while self._called(awaited, life, bell):
                    self._take_part(helper)
        finally:
            os._exit(0)

    def _take_part(self, helper: int) -> None:
        """Do what the caller and other helpers have not begun, in each step of a run."""
        numbers = self._numbers
        seen = numbers[BASE]
        while seen < numbers[END]:
            looks = 0
            while numbers[0] <= seen:
                looks += 1
                if looks > PATIENCE:
                    rest(looks)
                    if looks % PATIENCE == 0 and os.getppid() != self._crew.owner:
                        os._exit(0)
            seen = self._done_with(numbers[0], helper)

    def _done_with(self, ticket: int, helper: int) -> int:
        """Do what is left of a step; tell with which this helper is done."""
        numbers, claims = self._numbers, self._claims
        for place in self._orders[numbers[COUNT]][helper]:
            if claims[place].acquire(False):
                # The caller does not begin another step, nor another run, before this is done.
                claimed = numbers[CLAIMED]
                number = numbers[self._agenda_at + claimed - numbers[BASE]]
                self._pieces[number][place]()
                numbers[LINE * helper] += 1
                if claimed != ticket:
                    return claimed - 1  # the other pieces of that step are yet to be asked for
        return ticket

    def _called(self, awaited: select.poll, life: int, bell: int) -> bool:
        """Sleep until there is work; False when there will be none."""
        while True:
            ready = [file for file, _ in awaited.poll(LOOK * 1000)]
            if life in ready or os.getppid() != self._crew.owner:
                return False
            if ready:
                os.eventfd_read(bell)
                return True


def pieces(step: Step, size: int) -> list[Part]:
    """What of a step is claimed as one: each part, or of very many some of the same worker's."""
    count = min(len(step), max(size, PIECES - PIECES % size))
    return [sequence(step[place::count]) for place in range(count)]


def asked(count: int, size: int, worker: int) -> list[int]:
    """In which order a worker asks for the pieces of a step: first its own, then the others' last.

    The first piece is the caller's, who asks nobody for it.
    """
    own = list(range(worker, count, size))
    others = [place for place in reversed(range(1, count)) if place % size != worker]
    return [place for place in own if place] + others


def claims(count: int) -> list[Semaphore]:
    """For each piece of a step what is given with it, and taken by who does it."""
    # Those for forked processes have no name in the system, and need no process that tidies up.
    context = get_context("fork")
    return [Semaphore(0, ctx=context) for _ in range(count)]


#: Those that are not let go of yet.
_crews: set[Crew] = set()


def make_up() -> None:
    """End helpers whose program is gone and whose finaliser was interrupted."""
    for crew in list(_crews):
        if crew.helped() is None:
            crew.leave()


@atexit.register
def leave_all() -> None:
    """End all helpers before the interpreter collects its objects at exit.

    While there is a copy of the process, each page of memory that is touched has to be copied.
    """
    for crew in list(_crews):
        crew.leave()


def above_standard(file: int) -> int:
    """A file descriptor above those of standard input, output and error."""
    import fcntl  # only where there are forks

    return fcntl.fcntl(file, fcntl.F_DUPFD, 3)


def forget_all() -> None:
    """Close the caller's pipes in a forked copy, before their numbers are used again."""
    for crew in list(_crews):
        if crew.complete:  # else this is one of its helpers, which has yet to hear of them
            crew.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_all)


def close_all_but(*files: int) -> None:
    """Close pipes and sockets of the program: a helper must not keep them open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    edges = [2, *sorted(files), os.sysconf("SC_OPEN_MAX")]
    for below, above in pairwise(edges):
        os.closerange(below + 1, above)


def rest(looks: int) -> None:
    """Yield the core, for longer the more often one has looked in vain."""
    if looks > SLEEPY:
        time.sleep(50e-6)
    else:
        os.sched_yield()
