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

#: The bytes of the environment on x86-64, of which the last four are the word of SSE and AVX.
SIZE, WORD = 32, 28
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


class _Flushing:
    """Rounds what is not normal to zero, in the thread that enters, until it leaves."""

    def __init__(self) -> None:
        self._here = threading.local()

    def __enter__(self) -> None:
        library = _library()
        if library is None:
            return
        before = ctypes.create_string_buffer(SIZE)
        library.fegetenv(before)
        self._here.__dict__.setdefault("before", []).append(before)
        wanted = ctypes.create_string_buffer(before.raw, SIZE)
        word = ctypes.c_uint32.from_buffer(wanted, WORD)
        word.value |= FLUSH
        library.fesetenv(wanted)

    def __exit__(self, *error: object) -> None:
        library = _library()
        if library is not None:
            library.fesetenv(self._here.before.pop())


flushing = _Flushing()
