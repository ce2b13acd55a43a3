"""Work of which every piece is by itself, done on threads that end with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from .blas_threads import single_blas


def side_by_side(calls: Iterable[Callable[[], Any]], threads: int) -> None:
    """Make calls on so many threads: each takes the next that waits, none is left to do.

    What one raises is raised when all rest.
    """
    listed = list(calls)
    waiting = iter(listed)
    errors: list[BaseException] = []

    def take_some() -> None:
        try:
            single_blas.stay()
            with np.errstate(all="ignore"):
                for call in waiting:
                    call()
        except BaseException as error:  # raised again below, when all rest
            errors.append(error)

    others: list[threading.Thread] = []
    with suppress(RuntimeError):  # there may be no more threads to be had
        for _ in range(min(threads, len(listed)) - 1):
            other = threading.Thread(target=take_some)
            other.start()
            others.append(other)
    take_some()
    for other in others:
        other.join()
    if errors:
        raise errors[0]
