"""Calls that leave nothing behind, wherever an interrupt ends them.

What is changed for the length of a call is put back by ``with``. But a signal's handler may raise
before the first instruction of an exit, or when what is entered is not yet noted. Budgets, and
NumPy's ways with errors and buffers, belong to a context: a call has a copy of its own, which
ends with it, and no instruction of Python lies in between.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import ParamSpec, TypeVar

from .turns import quick_turns

P = ParamSpec("P")
T = TypeVar("T")


def tidy(call: Callable[P, T]) -> Callable[P, T]:
    """The same call, after which all is as before."""

    @wraps(call)
    def run(*args: P.args, **words: P.kwargs) -> T:
        depth = quick_turns.depth()
        try:
            return copy_context().run(call, *args, **words)
        except BaseException:
            quick_turns.leave_to(depth)  # who has begun before is still at work
            raise

    return run
