"""The caller and its helpers, who run the parts of a plan's steps together.

NumPy lets go of the interpreter's lock while it computes, but takes it again after each call,
and a thread that has to wait for the lock goes to sleep: with calls of some microseconds two
threads are hardly quicker than one. So helpers are forked processes where that can be done
(``helpers``), and threads elsewhere, or where calls are few and long; those are still awake when
the next call comes at once (``signals``). All are kept off the caller's core (``cores``), and
BLAS to one thread: its threads and ours would fight.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import pairwise
from math import gcd
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from ....layers.budget import Budget, budget
from ....schemas import LimitError
from .blas_threads import single_blas
from .cores import KeepOffCore
from .denormals import flushing
from .signals import Signal

T = TypeVar("T")
#: A piece of work with its arrays already bound.
Part: TypeAlias = Callable[[], None]
#: Parts that may run at the same time.
Step: TypeAlias = Sequence[Part]


class HelpersLostError(Exception):
    """A helper is gone; what it was to compute is not there."""


class Helpers(Protocol):
    """Those who run some parts of the steps of a plan."""

    #: What the caller does between its parts; None where no time is set.
    check: Callable[[], None] | None

    def begin(self, agenda: Sequence[int]) -> None:
        """Tell which steps will be shared."""

    def share(self) -> None:
        """Do the next step of the agenda together."""

    def leave(self) -> None:
        """Let them go for good."""


def core_count() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_share() -> int:
    """The cores that are ours where others work beside us: as many as OMP_NUM_THREADS says.

    Clusters and launchers say so to the processes that they begin.
    """
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    plain = said.isascii() and said.isdigit() and 0 < len(said) < 9
    return max(1, min(core_count(), int(said))) if plain else core_count()


#: Numbers in NumPy's buffers, while parts run. Rows shorter than a quarter of them it copies there
#: before it works on them: with its own 8192, rows of hundreds take three times as long for that.
BUFFER = 320
#: More helpers than this are only taken when asked for: steps of one image are short.
MANY = 8
#: How often work is begun again that was interrupted, and seconds between two looks at a thread.
TRIES, MOMENT = 1000, 1e-4


def to_the_end(work: Callable[[], None]) -> None:
    """Do what may be done twice, again and again until it is done; then raise an interrupt."""
    interrupted: BaseException | None = None
    for _ in range(TRIES):
        try:
            work()
            break
        except BaseException as error:  # a signal's handler may raise anything
            interrupted = error
    if interrupted is not None:
        try:
            raise interrupted
        finally:
            del interrupted  # it holds the frame, which would hold it


class Team:
    """Runs the steps of a plan in order, the parts of one step at the same time.

    Part ``i`` is of worker ``i % size``, whose scratch memory it may use. Threads run their own;
    forked helpers, who have a copy of that memory each, those of others, too.
    """

    # Its finaliser may come when it was interrupted while it had hardly begun.
    _helpers: Helpers | None = None

    def __init__(self, steps: Sequence[Step], size: int, hire: Callable[..., Helpers]) -> None:
        self.steps, self.size = steps, size
        #: Whether parts call neither BLAS nor NumPy on many rows: to prepare for that takes time.
        self.on_runs = False
        #: Of each step, whether the caller does it alone.
        self.alone = [len(step) == 1 or size == 1 for step in steps]
        self._whole = [sequence(step) for step in steps]
        self._hire = hire
        #: Places errors at what a step is of.
        self.at: Callable[[int], AbstractContextManager[object]] = lambda number: nullcontext()
        #: Which steps are shared, and for which ``alone`` that was seen.
        self._agenda: list[int] = []
        self._seen: list[bool] | None = None

    def __del__(self) -> None:
        self.dismiss()

    @property
    def is_complete(self) -> bool:
        """Whether every helper has been started."""
        return self._helpers is not None or all(self.alone)

    def run(
        self,
        *,
        seconds: list[float] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """Run all steps; how long each takes is put into ``seconds``.

        Something may be done before, while helpers wake up.
        """
        if self._seen is not self.alone:
            self._agenda = [number for number, alone in enumerate(self.alone) if not alone]
            self._seen = self.alone
        with np.errstate(all="ignore"):
            if self.on_runs:
                self._begin(before, seconds)
                return
            np.setbufsize(BUFFER)  # until errstate ends
            with single_blas:
                self._begin(before, seconds)

    def _begin(self, before: Callable[[], None] | None, seconds: list[float] | None) -> None:
        try:
            if self._agenda:
                if self._helpers is None:
                    self._helpers = self._hire(self.steps, self.size)
                self._helpers.begin(self._agenda)
            if before is not None:
                before()
            self._run(self._helpers, seconds)
        except BaseException:
            flushing.stop()
            # Helpers may be in the middle of a step that nobody will finish.
            self.dismiss()
            raise

    def _run(self, helpers: Helpers | None, seconds: list[float] | None) -> None:
        moments = [time.perf_counter()]
        allowed = budget()
        limited = allowed.max_seconds is not None
        if helpers is not None:
            helpers.check = allowed.check_time if limited else None
        for number, (alone, whole) in enumerate(zip(self.alone, self._whole, strict=True)):
            if limited:
                self._run_within(allowed, number, None if alone else helpers)
            elif alone or helpers is None:
                whole()
            else:
                helpers.share()
            if seconds is not None:
                moments.append(time.perf_counter())
        if seconds is not None:
            seconds[:] = [end - begin for begin, end in pairwise(moments)]

    def _run_within(self, allowed: Budget, number: int, helpers: Helpers | None) -> None:
        """Run a step, and look at the time after each part."""
        began = time.perf_counter()
        try:
            if helpers is not None:
                helpers.share()
            for part in self.steps[number] if helpers is None else ():
                allowed.check_time()
                part()
            allowed.check_time(time.perf_counter() - began)
        except LimitError:
            with self.at(number):
                raise

    def dismiss(self) -> None:
        """End the helpers; new ones are started when there is work."""
        helpers, self._helpers = self._helpers, None
        if helpers is not None:
            helpers.leave()


class Threads:
    """Helpers that are threads of this process."""

    # Its finaliser may come when it was interrupted while it had hardly begun.
    _workers: Sequence[_Thread] = ()
    check: Callable[[], None] | None = None

    def __init__(self, steps: Sequence[Step], size: int) -> None:
        self._steps, self._size = steps, size
        self._own = [sequence(step[0::size]) for step in steps]
        awake = size <= core_count()
        try:
            self._workers = [_Thread(awake=awake) for _ in range(size - 1)]
            for worker in self._workers:
                worker.begin()
        except (RuntimeError, MemoryError) as refused:  # too many threads: go on without
            self.leave()
            raise HelpersLostError from refused
        self._apart = KeepOffCore()
        self._agenda: Sequence[int] = ()
        self._next = 0

    def __del__(self) -> None:
        self.leave()

    def begin(self, agenda: Sequence[int]) -> None:
        """Tell which steps will be shared."""
        self._agenda, self._next = agenda, 0
        self._apart.keep(worker.number for worker in self._workers)

    def share(self) -> None:
        """Do the next step of the agenda together; raise what went wrong."""
        number = self._agenda[self._next]
        self._next += 1
        self.work(self._steps[number], self._own[number])

    def work(self, step: Step, own: Part) -> None:
        """Do a step together, of which this is the caller's share; raise what went wrong."""
        busy = self._workers[: len(step) - 1]
        for place, worker in enumerate(busy, 1):
            worker.start(step[place :: self._size])
        if self.check is None:
            own()
        else:
            for part in step[0 :: self._size]:
                self.check()
                part()
        for worker in busy:
            worker.take_back()
        errors = [error for worker in busy if (error := worker.wait()) is not None]
        if errors:
            raise errors[0]

    def leave(self) -> None:
        """Let them go for good, when they are done with what they do."""
        to_the_end(self._leave)

    def _leave(self) -> None:
        for worker in self._workers:
            worker.leave()
        # In the memory in which they are in the middle of something others work next.
        for worker in self._workers:
            while worker.is_at_work and not sys.is_finalizing():
                time.sleep(MOMENT)


class _Thread:
    """A thread that waits for parts.

    It takes a while to wake, and on a busy machine longer: what it has not begun when the caller
    has nothing else to do, the caller takes back and does.

    An interrupt may keep the caller from noting what it has given and got. So to end it nothing
    is asked but what the thread itself notes, which no interrupt meets.
    """

    def __init__(self, *, awake: bool) -> None:
        # The caller has more to do after the one than the thread after the other.
        self._go, self._done = Signal(4000, awake=awake), Signal(2000, awake=awake)
        #: What is to be done next, until somebody takes it.
        self._offers: list[Sequence[Part]] = []
        #: Whether it was told to look, and has not yet; whether it is to end.
        self._told = self._left = False
        self._error: BaseException | None = None
        #: Whether the caller has handed over what is not taken back; whether the thread looks for
        #: that, or does it.
        self._busy = self._works = False
        self._thread = threading.Thread(target=self._loop, daemon=True, name="vinoir")
        #: What the system calls it.
        self.number = 0

    def begin(self) -> None:
        """Begin to wait."""
        self._thread.start()
        self.number = self._thread.native_id or 0

    @property
    def is_at_work(self) -> bool:
        """Whether it is in the middle of something; a forked copy has no such thread."""
        return self._works and self._thread.is_alive()

    def start(self, parts: Sequence[Part]) -> None:
        """Hand over parts to run."""
        self._busy = True
        self._offers.append(parts)
        if not self._told:
            self._told = True
            self._go.give()

    def take_back(self) -> None:
        """Do the parts here that it has not begun."""
        parts = self._taken()
        if parts is not None:
            self._busy = False
            sequence(parts)()

    def wait(self) -> BaseException | None:
        """Wait until they are done; what went wrong, if anything."""
        if self._busy:
            self._done.wait()
        self._busy = False
        error, self._error = self._error, None
        return error

    def leave(self) -> None:
        """End the thread when it is done with what it has begun; this may be said again."""
        self._left = True
        self._offers.clear()
        with suppress(RuntimeError):  # it was told, and has not looked yet
            self._go.give()

    def _taken(self) -> Sequence[Part] | None:
        """What was to be done next, if nobody has taken it yet; now it is whose that asks."""
        try:
            return self._offers.pop()
        except IndexError:
            return None

    def _do(self, parts: Sequence[Part]) -> None:
        try:
            # Each thread has its own way with errors of arithmetic.
            with np.errstate(all="ignore"):
                np.setbufsize(BUFFER)  # until errstate ends
                for part in parts:
                    part()
        except BaseException as error:  # handed to the caller by wait
            self._error = error

    def _loop(self) -> None:
        single_blas.stay()
        while True:
            self._go.wait()
            self._told = False  # first: what is offered from now on is told anew
            if self._left:
                return
            self._works = True  # first: who finds nothing to take back sees it
            parts = self._taken()
            if parts is None:
                self._works = False
                continue
            self._do(parts)
            del parts  # while it waits it keeps nothing
            self._works = False
            self._done.give()


def sequence(parts: Sequence[Part]) -> Part:
    """Several parts as one."""
    bound = tuple(parts)
    if len(bound) == 1:
        return bound[0]

    def run() -> None:
        for part in bound:
            part()

    return run


#: From how many products of numbers on work is worth being cut into so many parts.
WORTH = ((1 << 30, 8), (1 << 25, 4), (1 << 18, 2))


def lanes(amount: int) -> int:
    """Into how many parts work is cut, whatever the number of workers.

    How many rows are multiplied together decides, in BLAS, in which order sums are taken. So
    shapes alone tell how work is cut, and workers share out whole parts: what comes out is the
    same for any number of them.
    """
    return next((parts for least, parts in WORTH if amount >= least), 1)


def cuts(images: int, pieces: int) -> int:
    """Into how many runs an image is cut that is left where the others go round."""
    return pieces // gcd(images, pieces)


def hands(images: int, pieces: int, cut: Callable[[int], list[T]]) -> list[tuple[int, T]]:
    """Runs of images, which are cut into so many, in an order in which neighbours are as much.

    So many pieces of all are as many whole images, then as many runs of those that are left: of
    three images each of two has one and a half.
    """
    left = images % pieces
    runs = cut(1) if left < images else []
    whole = [(image, run) for image in range(images - left) for run in runs]
    runs = cut(cuts(images, pieces)) if left else []
    others = [(image, run) for image in range(images - left, images) for run in runs]
    return [
        lane
        for lanes in zip(*(_dealt(lanes, pieces) for lanes in (whole, others)), strict=True)
        for some in lanes
        for lane in some
    ]


def _dealt(lanes: list[T], pieces: int) -> list[list[T]]:
    return [
        lanes[len(lanes) * hand // pieces : len(lanes) * (hand + 1) // pieces]
        for hand in range(pieces)
    ]


def shares(images: int, rows: int, pieces: int) -> list[tuple[int, tuple[int, int]]]:
    """Rows of images for so many pieces of all: whole images, and runs of those that are left."""
    return hands(images, pieces, lambda each: spans(rows, each))


def spans(count: int, pieces: int) -> list[tuple[int, int]]:
    """Cut ``count`` into at most ``pieces`` runs of nearly the same length."""
    pieces = max(1, min(pieces, count))
    edges = [count * i // pieces for i in range(pieces + 1)]
    return list(pairwise(edges))
