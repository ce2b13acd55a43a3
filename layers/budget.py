"""What one call may take of memory and time, counted over everything that it does.

Whoever runs, infers or checks opens a budget; what lies below, bodies and kernels among it, asks
the budget that is open. It is asked before memory is taken, because where the system promises
memory that it does not have, using it ends the process; and time is asked for between layers
and between the turns of whatever loops in Python.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TypeVar

import numpy as np

from ..schemas import Array, LimitError
from ..schemas.numbers import at_least
from .resources import available

T = TypeVar("T")

#: Turns of all loops and sequences of one call, where no time is set: more than models
#: have, and done in seconds.
MOST_TURNS = 250_000
#: Steps that kernels do in Python take less time than a turn, by about so much.
STEPS_OF_A_TURN = 40
MOST_STEPS = STEPS_OF_A_TURN * MOST_TURNS

#: Bytes that a definition takes at a time for what it needs on the way.
PIECE = 8 << 20
#: So much is there always: asking the system would take longer than taking it.
_SMALL = 1 << 20
#: From here on the system is asked again, for others may have taken what was there at first.
_LARGE = 1 << 28

_MEMORY_HINT = "give smaller inputs, or allow more: --max-memory (in Python max_memory=)"
_TIME_HINT = "give smaller inputs, or allow more: --max-seconds (in Python max_seconds=)"


class Budget:
    """What may be taken, and what is taken."""

    def __init__(self, max_memory: int | None = None, max_seconds: float | None = None) -> None:
        for what, given in (("max_memory", max_memory), ("max_seconds", max_seconds)):
            if given is not None:
                at_least(0, given, what)
        self.max_memory, self.max_seconds = max_memory, max_seconds
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds
        #: Bytes of arrays that are alive, and of each how often it is held.
        self.held = 0
        self._arrays: dict[int, tuple[Array, int]] = {}
        #: The most that may be asked for at once; None where nobody said so.
        self.most_at_once: int | None = None
        self._steps = 0
        self._free: int | None = None

    # Memory.

    def require(self, nbytes: int) -> None:
        """Refuse bytes that would be more than is allowed, with those that are held."""
        if self.max_memory is not None and self.held + nbytes > self.max_memory:
            raise LimitError(
                f"not enough memory: {nbytes} bytes are needed beside the {self.held} that are "
                f"held, {self.max_memory} are allowed",
                hint=_MEMORY_HINT,
            )
        if self.most_at_once is not None and nbytes > self.most_at_once:
            raise LimitError(f"{nbytes} bytes are needed, {self.most_at_once} are allowed here")
        if nbytes <= _SMALL:
            return
        if self._free is None:
            self._free = self.held + available()
        free = self._free - self.held
        if nbytes > _LARGE:
            free = min(free, available())
        if nbytes > free:
            raise LimitError(
                f"not enough memory: {nbytes} bytes are needed beside the {self.held} that are "
                f"held, {max(free, 0)} are left by the machine, its control groups and limits",
                hint="give smaller inputs, or run it where there is more memory",
            )

    def keep(self, nbytes: int) -> None:
        """Refuse bytes that are too many, else count them until the budget is closed.

        Only where somebody has set a limit: what the machine has left tells itself.
        """
        if self.max_memory is not None:
            self.require(nbytes)
            self.held += nbytes

    def hold(self, arrays: Iterable[Array]) -> None:
        """Count the memory of arrays; of views, that of what they look at."""
        for array in arrays:
            owner = owner_of(array)
            key = id(owner)
            found = self._arrays.get(key)
            if found is None:
                self.held += _nbytes(owner)
                self._arrays[key] = owner, 1
            else:
                self._arrays[key] = owner, found[1] + 1

    def let_go(self, arrays: Iterable[Array]) -> None:
        """Count the memory of arrays no longer."""
        for array in arrays:
            key = id(owner_of(array))
            found = self._arrays.get(key)
            if found is None:  # what ends the call came before it was counted
                continue
            owner, often = found
            if often > 1:
                self._arrays[key] = owner, often - 1
            else:
                self.held -= _nbytes(owner)
                del self._arrays[key]

    # Time.

    def check_time(self, here: float | None = None) -> None:
        """Refuse to go on when the time is over, of which so many seconds were spent here."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            spent = "" if here is None else f", {here:.1f} of them went by here"
            raise LimitError(
                f"more than {self.max_seconds:g} seconds are wanted{spent}", hint=_TIME_HINT
            )

    def turn(self) -> None:
        """Count one more turn of a loop, or layer of a body that is gone through."""
        self.step(STEPS_OF_A_TURN)

    def step(self, count: int = 1) -> None:
        """Count what is done in Python again and again; where a time is set, that is the limit."""
        self._steps += count
        if self._deadline is not None:
            self.check_time()
        elif self._steps > MOST_STEPS:
            raise LimitError(
                f"more than {MOST_STEPS} steps are wanted in all (a turn of a loop counts as "
                f"{STEPS_OF_A_TURN})",
                hint=_TIME_HINT,
            )


def owner_of(array: Array) -> Array:
    """The array whose memory an array looks at, be it through NumPy's windows or a memoryview."""
    base: object = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return array


def owners_of(arrays: Iterable[Array]) -> set[int]:
    """The owners, by ``id``, of the memory that arrays look at."""
    return {id(owner_of(array)) for array in arrays}


def is_owned(array: Array, owners: Container[int]) -> bool:
    """Whether an array looks at memory of one of these owners."""
    return id(owner_of(array)) in owners


def _nbytes(owner: Array) -> int:
    """Bytes of an array's own; a mapped file is none of them."""
    return owner.nbytes if owner.flags.owndata else 0


_open: ContextVar[Budget | None] = ContextVar("budget", default=None)


def budget() -> Budget:
    """The budget that is open; a new one where none is."""
    found = _open.get()
    return Budget() if found is None else found


def is_limited() -> bool:
    """Whether a budget is open."""
    return _open.get() is not None


class within:  # noqa: N801 - it is used as a function is
    """Open a budget; where one is open already and nothing new is allowed, that one goes on."""

    # A class, for every call of a program goes through it: a generator takes twice as long.
    __slots__ = ("_limits", "_token")

    def __init__(self, max_memory: int | None = None, max_seconds: float | None = None) -> None:
        self._limits = max_memory, max_seconds
        self._token: Token[Budget | None] | None = None

    def __enter__(self) -> Budget:
        outer = _open.get()
        if outer is not None and self._limits == (None, None):
            return outer
        made = Budget(*self._limits)
        self._token = _open.set(made)
        return made

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _open.reset(self._token)


def forget() -> None:
    """Leave the budget that is open: in a copy of the process it is that of another call."""
    _open.set(None)


def turns(items: Iterable[T]) -> Iterator[T]:
    """The items, each counted as a turn of a loop."""
    counted = budget()
    for item in items:
        counted.turn()
        yield item


def steps(items: Iterable[T]) -> Iterator[T]:
    """The items of a kernel's loop, each counted."""
    counted = budget()
    for item in items:
        counted.step()
        yield item


def pieces(count: int, nbytes: int) -> Iterator[slice]:
    """Ranges of things that take so many bytes each, so that little memory is needed at a time."""
    many = max(1, PIECE // max(1, nbytes))
    for start in steps(range(0, count, many)):
        yield slice(start, min(start + many, count))


@contextmanager
def at_most(nbytes: int) -> Iterator[None]:
    """Refuse whatever wants more than so many bytes at once."""
    counted = budget()
    token = _open.set(counted)
    before, counted.most_at_once = counted.most_at_once, nbytes
    try:
        yield
    finally:
        counted.most_at_once = before
        _open.reset(token)


def fits(nbytes: int) -> bool:
    """Whether so many bytes may be taken."""
    try:
        budget().require(nbytes)
    except LimitError:
        return False
    return True


def require(nbytes: int) -> None:
    """Refuse bytes that are more than the open budget allows."""
    budget().require(nbytes)
