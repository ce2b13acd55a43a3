"""Signals between threads, for which one waits awake at first.

A thread that sleeps takes some 50 us to wake: as long as its share of a small pooling takes. To
stay awake it has to look again and again, without the interpreter's lock and for no longer than
it should. Of what the C library has, a linear search does just that if all elements that it goes
through are one and the same.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any

#: How often a thread looks before it goes to sleep: for about a third of a millisecond.
LOOKS = 1 << 17


class Signal:
    """What one thread gives and another waits for, each time once.

    Who gives it has the interpreter's lock for some microseconds more, and who asks for the lock
    too early sleeps: so a signal that is seen is first compared to the end, in some nanoseconds
    for each of ``length`` characters. Without a core for each thread none waits ``awake``.
    """

    def __init__(self, length: int, *, awake: bool) -> None:
        # A plain lock, held by whoever waits: a semaphore is made of several, in Python.
        self._lock = threading.Lock()
        self._lock.acquire()
        wanted = ctypes.create_string_buffer(b"." * length)
        self._seen = ctypes.create_string_buffer(wanted.raw)
        self._looks = ctypes.c_size_t()
        search, compare = _library()
        self._search = search if awake else None
        # The width of an element is 0: each is where the first is.
        self._words = wanted, self._seen, ctypes.byref(self._looks), ctypes.c_size_t(0), compare
        self._seen[0] = b"-"

    def give(self) -> None:
        """Let the other go on."""
        self._seen[0] = b"."
        self._lock.release()

    def wait(self) -> None:
        """Wait until it is given, awake and then asleep."""
        if not self._lock.acquire(blocking=False):
            if self._search is not None:
                self._looks.value = LOOKS
                self._search(*self._words)
            self._lock.acquire()
        self._seen[0] = b"-"


@cache
def _library() -> tuple[Any, Any]:
    """A search that lets go of the interpreter's lock, and a comparison that takes its time."""
    if sys.platform != "linux":
        return None, None
    system = ctypes.CDLL(None)
    there = hasattr(system, "lfind") and hasattr(system, "strverscmp")
    return (system.lfind, system.strverscmp) if there else (None, None)
