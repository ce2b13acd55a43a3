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
        #: By thread: how many calls, each inside the one before, compute.
        self._depths: dict[int, int] = {}
        #: How long turns were before; None where they were no longer.
        self._before: float | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._depths and self._before is None:
                before = sys.getswitchinterval()
                if before > SHORT:
                    self._before = before  # first: an interrupt may come right after the other
                    sys.setswitchinterval(SHORT)
            self._depths[threading.get_ident()] = self.depth() + 1

    def __exit__(self, *error: object) -> None:
        self.leave_to(self.depth() - 1)

    def depth(self) -> int:
        """How many calls of this thread have begun, and not left."""
        return self._depths.get(threading.get_ident(), 0)

    def leave_to(self, depth: int) -> None:
        """Say how many of this thread's calls go on; said twice, it is as said once."""
        with self._lock:
            if depth > 0:
                self._depths[threading.get_ident()] = depth
            else:
                self._depths.pop(threading.get_ident(), None)
            if not self._depths:
                self._restore()

    def _restore(self) -> None:
        # Unless somebody has chosen another length since; it is kept in whole microseconds.
        if self._before is not None and abs(sys.getswitchinterval() - SHORT) < 1e-6:
            sys.setswitchinterval(self._before)
        self._before = None

    def begin_anew(self) -> None:
        """In a forked copy, where the threads that computed do not exist."""
        self._lock, self._depths = threading.RLock(), {}
        self._restore()


quick_turns = _QuickTurns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=quick_turns.begin_anew)
