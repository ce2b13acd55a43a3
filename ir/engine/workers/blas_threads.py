"""The BLAS that NumPy multiplies matrices with: what it is, and how many threads it takes.

How a product is cut for several threads decides in which order its sums are taken, and threads
of BLAS would fight with ours for the cores: so whoever runs a program keeps BLAS to one. Most
libraries know one number of threads for the whole process; it is put back when the last program
that runs is done, or soon after, unless somebody else has set it meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ....layers.refusals import from_system

#: How builds of OpenBLAS spell their functions: NumPy's own, those of distributions.
SPELLINGS = [(before, after) for before in ("scipy_", "") for after in ("64_", "", "_64")]
#: The part of NumPy that multiplies matrices.
MODULE = "numpy._core._multiarray_umath"
#: What OpenBLAS says of its threads when they are those of OpenMP.
OPENMP = 2
#: Seconds that a fork waits for programs of other threads, at most: one of them may wait for what
#: the thread has that forks. And how often it looks.
APART, MOMENT = 10.0, 0.0005
#: Seconds without a program after which threads are begun anew that a fork has ended, and those
#: after which they are at the next chance.
PAUSE, LATEST = 0.1, 1.0
#: Kernels of x86 that work on 512 bits.
WIDE_KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}


@dataclass(frozen=True)
class Blas:
    """A BLAS library whose number of threads can be set."""

    name: str
    version: str
    #: For which processor its kernels were written; empty where it does not tell.
    kernels: str
    #: How many threads it takes, and what sets that.
    count: Callable[[], int]
    limit: Callable[[int], object]
    #: Whether each thread that calls it has a number of its own.
    by_thread: bool = False
    #: Whether to set the number begins threads anew that a fork has ended.
    wakes: bool = False


@cache
def blas() -> Blas | None:
    """The library that NumPy uses; None where its threads cannot be told."""
    for library in _libraries():
        for known in (_openblas, _mkl, _accelerate):
            found = known(library)
            if found is not None:
                return found if _obeys(found) else None
    return None


def _libraries() -> Iterator[Any]:
    """Where its functions may be found: in what NumPy's own module is linked to."""
    core = sys.modules.get(MODULE)
    if core is None:
        return
    # Windows looks through a module itself, not through what it is linked to.
    beside = Path(np.__file__).parent.with_name("numpy.libs")
    for path in [str(core.__file__), *map(str, sorted(beside.glob("*.dll")))]:
        try:
            yield ctypes.CDLL(path)
        except OSError:
            continue


def _openblas(library: Any) -> Blas | None:
    for before, after in SPELLINGS:
        if hasattr(library, f"{before}openblas_set_num_threads{after}"):
            break
    else:
        return None

    def named(name: str) -> Any:
        return getattr(library, f"{before}openblas_{name}{after}", None)

    words = _text(named("get_config")).split()
    version = words[1] if words[:1] == ["OpenBLAS"] and len(words) > 1 else ""
    count, limit = named("get_num_threads"), named("set_num_threads")
    parallel = named("get_parallel")
    if parallel is None or count is None:
        return None
    if by_thread := parallel() == OPENMP:
        # It asks OpenMP before each product, which keeps a number for each thread.
        count = getattr(library, "omp_get_max_threads", None)
        limit = getattr(library, "omp_set_num_threads", None)
        if count is None or limit is None:
            return None
        wakes = False
    else:
        quiet = _quietly(library, count)
        limit, wakes = quiet or limit, quiet is None
    kernels = _text(named("get_corename"))
    return Blas("OpenBLAS", version, kernels, count, limit, by_thread, wakes)


def _quietly(library: Any, count: Callable[[], int]) -> Callable[[int], object] | None:
    """What sets OpenBLAS's number of threads without waking any; None where that is not to be had.

    A fork ends its threads. Its own function begins them anew at once, and they stay awake for a
    tenth of a second, on the cores that helpers have just got; else they come when a product
    wants them. Since 0.3.34 the number is hidden.
    """
    try:
        number = ctypes.c_int.in_dll(library, "blas_cpu_number")
    except ValueError:
        return None

    def limit(threads: int) -> None:
        number.value = threads

    return limit if number.value == count() else None


def _mkl(library: Any) -> Blas | None:
    count = getattr(library, "MKL_Get_Max_Threads", None)
    limit = getattr(library, "MKL_Set_Num_Threads_Local", None)
    if count is None or limit is None:
        return None
    return Blas("MKL", "", "", count, limit, by_thread=True)


def _accelerate(library: Any) -> Blas | None:
    mode = getattr(library, "BLASGetThreading", None)
    choose = getattr(library, "BLASSetThreading", None)
    if mode is None or choose is None:
        return None
    many = os.cpu_count() or 1
    return Blas(
        "Accelerate", "", "",
        lambda: 1 if mode() == 1 else many, lambda count: choose(int(count == 1)), by_thread=True,
    )  # fmt: skip


def _text(function: Any) -> str:
    """What a function says of its library."""
    if function is None:
        return ""
    function.restype = ctypes.c_char_p
    return (function() or b"").decode("ascii", "replace")


def _obeys(library: Blas) -> bool:
    """Whether setting the number of threads has an effect in a library."""
    before = library.count()
    if before == 1:
        return True
    library.limit(1)
    obeyed = library.count() == 1
    library.limit(before)
    return obeyed


class _SingleBlas:
    """Keeps BLAS to one thread while any program works; several may do so at the same time.

    It also keeps forks and programs of different threads apart: OpenBLAS takes memory for a
    product under a lock, and in a copy of the process that is made in that moment nobody will
    ever open it.

    Where a fork has ended threads of BLAS and to put their number back begins them anew, that
    waits for a pause: they would stay awake beside helpers.
    """

    def __init__(self) -> None:
        # A signal's handler may run a program, or fork, where its thread has the lock already.
        # It is a fork's for its whole length: who begins waits for it, who ends does not.
        self._lock = threading.RLock()
        #: For each thread that works, what code it does that in, from the outermost on.
        self._working: dict[int, list[CodeType]] = {}
        #: The threads that are about to fork.
        self._forking: list[int] = []
        #: The threads that BLAS had before; None where it had one.
        self._before: int | None = None
        #: When a fork ended them, if they have not been begun anew; when the last program was
        #: done; who waits for a pause.
        self._ended: float | None = None
        self._done = 0.0
        self._waiting: _Pause | None = None
        self._here = threading.local()

    def __enter__(self) -> None:
        library, me = blas(), threading.get_ident()
        frame, codes = sys._getframe(1), self._working.get(me, [])
        # An interrupt may have kept it from saying that it is done with what stands there.
        depth = len(codes) if codes and _runs(frame.f_back, codes) else 0
        try:
            if depth:  # a fork may wait for what is around it; nobody restores meanwhile
                codes.append(frame.f_code)
                self._limit(library)
            else:
                with self._lock:
                    self._working[me] = [frame.f_code]
                    self._limit(library)
        except BaseException:  # the first may be an interrupt, and with it nobody leaves
            self._back_to(me, depth)
            raise

    def __exit__(self, *error: object) -> None:
        library, me = blas(), threading.get_ident()
        if library is not None and library.by_thread:
            library.limit(self._here.before.pop())
        self._back_to(me, len(self._working.get(me, ())) - 1)

    def _limit(self, library: Blas | None) -> None:
        if library is None:
            return
        count = library.count()
        if library.by_thread:
            before: list[int] = self._here.__dict__.setdefault("before", [])
            before.append(count)
            library.limit(1)
        elif count != 1:
            # The first who comes finds what was set for all; later ones, what has been set
            # since: that is wanted now.
            library.limit(1)
            self._before, self._ended = count, None

    def _back_to(self, me: int, depth: int) -> None:
        """Of the programs in which a thread works, leave those beyond a depth."""
        if depth > 0:
            del self._working[me][depth:]
            return
        self._working.pop(me, None)
        library = blas()
        if library is not None and self._before is not None:
            with self._lock:
                if not self._working:
                    self._restore(library)

    def _restore(self, library: Blas, *, paused: bool = False) -> None:
        if self._before is not None and library.count() == 1:
            if library.wakes and self._ended is not None and not paused:
                self._done = time.monotonic()
                if self._done < self._ended + LATEST and self._waits():
                    return
            library.limit(self._before)
        self._before = self._ended = None

    def _waits(self) -> bool:
        """Whether somebody waits for a pause; False where a thread is not to be had."""
        if self._waiting is None or not self._waiting.is_alive():
            waiting = _Pause(self.paused)
            try:
                waiting.start()
            except RuntimeError:  # too many of them, or the interpreter is about to end
                return False
            self._waiting = waiting
        return True

    def paused(self) -> bool:
        """Put the number back if no program has worked for a while; whether that is done."""
        if not self._lock.acquire(blocking=False):
            return False  # perhaps it is a fork's, which waits until nobody does here
        try:
            library = blas()
            if library is not None and self._before is not None:
                if self._working or time.monotonic() < self._done + PAUSE:
                    return False
                self._restore(library, paused=True)
            self._waiting = None
            return True
        finally:
            self._lock.release()

    def stay(self) -> None:
        """Mark this thread as a worker: its products use one thread of BLAS from now on."""
        library = blas()
        if library is not None and library.by_thread:
            library.limit(1)

    @contextmanager
    def copied(self) -> Iterator[None]:
        """In copies of the process that are made here, BLAS has one thread for good."""
        me = threading.get_ident()
        self._here.copied = True
        # Another's fork must not wait for this one: it may have what other modules lock for it.
        self._forking.append(me)
        try:
            yield
        finally:
            self._here.copied = False
            with suppress(ValueError):  # this is the copy
                self._forking.remove(me)

    # Around a fork.

    def hold(self) -> None:
        """Keep programs of other threads from their work for the length of a fork."""
        waiting = self._waiting
        if waiting is not None:  # a copy has no use for it, and Python warns of threads
            waiting.leave()
        self._forking.append(threading.get_ident())
        self._lock.acquire()
        until = time.monotonic() + APART
        while self._others_work() and time.monotonic() < until:
            time.sleep(MOMENT)

    def go_on(self) -> None:
        """Let them work again: the fork is done."""
        self._ended = time.monotonic()
        if self._waiting is not None:  # it was let go for the fork
            self._waits()
        # A fork that had begun before this module was there has not held them, nor has one whose
        # holding was interrupted.
        with suppress(ValueError, RuntimeError):
            self._forking.remove(threading.get_ident())
            self._lock.release()

    def begin_anew(self) -> None:
        """In the forked copy: the other working threads do not exist there."""
        self._lock, self._working, self._forking = threading.RLock(), {}, []
        self._waiting = self._ended = None
        library = blas() if self._before is not None else None
        if library is not None and not getattr(self._here, "copied", False):
            self._restore(library)

    def _others_work(self) -> bool:
        """Whether programs of threads that do not want to fork themselves are at work."""
        # Not what they have said, but where they are: see what an interrupt may do.
        frames = sys._current_frames()
        # Its own frame would hold itself by these, and with it all that is on its stack.
        frames.pop(threading.get_ident(), None)
        return any(
            thread not in self._forking and _runs(frames.get(thread), codes)
            for thread, codes in list(self._working.items())
        )


class _Pause(threading.Thread):
    """Asks again and again whether there is a pause, until that is told or it is to leave."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        super().__init__(daemon=True, name="vinoir pause")
        self._is_over = is_over
        self._left = threading.Event()

    def run(self) -> None:
        """Wait for the pause."""
        while not self._left.wait(PAUSE):
            if self._is_over():
                return

    def leave(self) -> None:
        """End it, and see that it has ended."""
        self._left.set()
        if self is not threading.current_thread():
            self.join()


def _runs(frame: FrameType | None, codes: list[CodeType]) -> bool:
    """Whether one of these codes stands on a thread's stack."""
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


single_blas = _SingleBlas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=single_blas.hold,
        after_in_parent=single_blas.go_on,
        after_in_child=single_blas.begin_anew,
    )


def describe() -> str:
    """The library, its version, kernels and threads, in a line."""
    library = blas()
    if library is None:
        built = np.show_config(mode="dicts") or {}
        name = built.get("Build Dependencies", {}).get("blas", {}).get("name", "unknown")
        return f"{name}, whose threads cannot be told: programs leave the work to it"
    words = [" ".join(filter(None, (library.name, library.version)))]
    if library.kernels:
        words.append(f"{library.kernels} kernels{_held_back(library.kernels)}")
    count = library.count()
    words.append(f"{count} thread{'s' * (count != 1)}, 1 inside programs")
    return ", ".join(words)


def _held_back(kernels: str) -> str:
    """What to say of kernels that use less than the processor has."""
    features = getattr(sys.modules.get(MODULE), "__cpu_features__", {})
    wide = features.get("AVX512_SKX", False)
    if not wide or kernels in WIDE_KERNELS:
        return ""
    pinned = os.environ.get("OPENBLAS_CORETYPE")
    reason = f", by OPENBLAS_CORETYPE={pinned}" if pinned else ""
    return f" (the processor has AVX-512{reason})"


def at_rest() -> bool:
    """Whether no other thread can be in the middle of a product that BLAS's threads share.

    OpenBLAS ends its threads before a fork, and waits for ever where one of them has work.
    """
    if sys.platform != "linux" or threading.active_count() == 1:
        return True
    ours = {str(thread.native_id) for thread in threading.enumerate()}
    for task in Path("/proc/self/task").iterdir():
        if task.name in ours:
            continue
        try:
            told = (task / "stat").read_text("ascii", "replace")
        except OSError as error:
            from_system(error)
            continue  # it has ended
        if told.rpartition(")")[2].split()[0] not in "SI":
            return False
    return True
