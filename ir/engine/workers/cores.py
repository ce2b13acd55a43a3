"""Keeping workers off the core of who calls them.

The system often wakes a worker on the core of who wakes it, when the others seem busy or were
just now, and takes milliseconds to see that both want to work: the worker would begin when the
caller is done.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from functools import cache

from ....layers.refusals import unless_refused


def where() -> int:
    """The number of the core that runs this thread; -1 where the system does not tell."""
    system = _system()
    return -1 if system is None else int(system.sched_getcpu())


@cache
def _system() -> ctypes.PyDLL | None:
    # To let go of the interpreter's lock would take longer than the call.
    system = ctypes.PyDLL(None) if sys.platform == "linux" else None
    return system if hasattr(system, "sched_getcpu") else None


class KeepOffCore:
    """Lets workers run on all cores but the caller's, wherever that goes."""

    def __init__(self) -> None:
        self._core = -1

    def keep(self, workers: Iterable[int]) -> None:
        """See where the caller is now; the workers are threads or processes, by their numbers."""
        core = where()
        if core == self._core:
            return
        self._core = core
        others = os.sched_getaffinity(0) - {core}
        if others:
            for worker in workers:
                with unless_refused():  # it is gone, or may not be told
                    os.sched_setaffinity(worker, others)
