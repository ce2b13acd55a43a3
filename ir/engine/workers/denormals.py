"""Numbers below the smallest normal float are zero, where nobody sees the difference.

Processors take a hundred times as long for them, and masks of attention make many: exp(-100) is
such a number. OpenVINO's exponentials give zero there, too. The C library keeps the processor's
word for it with the rounding mode, thread by thread; where it is not known how, nothing changes.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from functools import cache
from typing import Any

#: The words of the environment on x86-64, of which the last is that of SSE and AVX.
WORDS = 8
#: The bit of that word that makes results zero.
FLUSH = 1 << 15


@cache
def _library() -> Any:
    """The functions of the C library; None where it is not known what they keep."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize < 1 << 32:
        return None
    library = ctypes.PyDLL(None)
    return library if hasattr(library, "fegetenv") and hasattr(library, "fesetenv") else None


def flushes() -> bool:
    """Whether it is known how."""
    return _library() is not None


class _Kept(threading.local):
    """What a thread needs each time: made once, for between large products all of it is far away.

    A call of a function that nobody called for a while takes ten times as long as the next.
    """

    def __init__(self) -> None:
        library = _library()
        self.words = (ctypes.c_uint32 * WORDS)()
        self.place = ctypes.byref(self.words)
        self.look: Any = None if library is None else library.fegetenv
        self.put: Any = None if library is None else library.fesetenv
        #: The words of SSE and AVX as they were, of those that entered.
        self.before: list[int] = []


class _Flushing:
    """Rounds what is not normal to zero, in the thread that enters, until it leaves."""

    def __init__(self) -> None:
        self._kept = _Kept()

    def __enter__(self) -> None:
        kept = self._kept
        if kept.look is None:
            return
        kept.look(kept.place)
        word = kept.words[-1]
        kept.before.append(word)
        kept.words[-1] = word | FLUSH
        kept.put(kept.place)

    def __exit__(self, *error: object) -> None:
        kept = self._kept
        if kept.before:
            kept.words[-1] = kept.before[-1]
            kept.put(kept.place)
            kept.before.pop()  # last: an interrupt may have come before

    def stop(self) -> None:
        """Put back what was there before the first who has entered, and maybe not left.

        An interrupt may come when a thread has entered, and nobody knows yet; or before the first
        instruction of what it leaves by. So whoever is ended by an interrupt says this.
        """
        kept = self._kept
        if kept.before:
            kept.words[-1] = kept.before[0]
            kept.put(kept.place)
            kept.before.clear()


flushing = _Flushing()
