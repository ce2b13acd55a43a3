"""Work of which every piece is by itself, done on threads that end with it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import numpy as np

from .blas_threads import single_blas


def side_by_side(calls: Iterable[Callable[[], Any]], threads: int) -> None:
    """Make calls on so many threads: each takes the next that waits, none is left to do.

    They have the caller's budget.

    What one raises is raised when all rest.
    """
    # An iterator that threads share may give the same twice, or leave some out: a queue does not.
    waiting = deque(calls)
    count = len(waiting)
    errors: list[BaseException] = []

    def take_some() -> None:
        try:
            single_blas.stay()
            with np.errstate(all="ignore"):
                while True:
                    try:
                        call = waiting.popleft()
                    except IndexError:
                        return
                    call()
        except BaseException as error:  # raised again below, when all rest
            errors.append(error)

    others: list[threading.Thread] = []
    with suppress(RuntimeError):  # there may be no more threads to be had
        for _ in range(min(threads, count) - 1):
            other = threading.Thread(target=copy_context().run, args=(take_some,))
            other.start()
            others.append(other)
    take_some()
    for other in others:
        other.join()
    if errors:
        raise errors[0]
