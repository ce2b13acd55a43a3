"""Turns at the interpreter's lock, which are short while a model is computed.

NumPy lets go of the lock in each of its calls, and whoever wants it back has to wait for those who
have taken it meanwhile: as long as a thread may keep it, if that has work of its own in Python.
With hundreds of calls a program of some milliseconds would take a second beside a busy thread.
And of two workers one that lets go has the lock again before the other, whom that woke, is awake:
who waits may ask for it soon.
"""

from __future__ import annotations

import os
import sys
import threading

#: Seconds that a thread may keep the lock while others wait for it: some times as long as it takes
#: to hand it over.
SHORT = 5e-5


class _QuickTurns:
    """Keeps turns short while any thread computes; several may do so at the same time."""

    def __init__(self) -> None:
        # A signal's handler may run a program where its thread has the lock already.
        self._lock = threading.RLock()
        self._working: set[int] = set()
        #: How long turns were before; None where they were no longer.
        self._before: float | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._working and self._before is None:
                before = sys.getswitchinterval()
                if before > SHORT:
                    self._before = before  # first: an interrupt may come right after the other
                    sys.setswitchinterval(SHORT)
            self._working.add(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        self.leave()

    def is_at_work(self) -> bool:
        """Whether this thread has begun, and not left."""
        return threading.get_ident() in self._working

    def leave(self) -> None:
        """Say that this thread is done; where it has said so already, nothing changes."""
        with self._lock:
            self._working.discard(threading.get_ident())
            if not self._working:
                self._restore()

    def _restore(self) -> None:
        # Unless somebody has chosen another length since; it is kept in whole microseconds.
        if self._before is not None and abs(sys.getswitchinterval() - SHORT) < 1e-6:
            sys.setswitchinterval(self._before)
        self._before = None

    def begin_anew(self) -> None:
        """In a forked copy, where the threads that computed do not exist."""
        self._lock, self._working = threading.RLock(), set()
        self._restore()


quick_turns = _QuickTurns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=quick_turns.begin_anew)
