"""Threads that stay, for calls that are only known when it is their turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from .team import HelpersLostError, Part, Threads, sequence

RoomsT = TypeVar("RoomsT")


class Crew(Generic[RoomsT]):
    """The caller and some threads, who make calls of which none waits for another.

    Each call has memory for what it makes in between, of the kind that ``make`` gives.
    """

    # Its finaliser may come when it was interrupted while it had hardly begun.
    _threads: Threads | None = None

    def __init__(self, size: int, make: Callable[[], RoomsT]) -> None:
        self.size, self._make = size, make
        self._rooms: list[RoomsT] = []

    def __del__(self) -> None:
        self.rest()

    def begin(self) -> None:
        """Say that there is work to come: threads keep off the caller's core, wherever it is."""
        if self._threads is not None:
            self._threads.begin(())

    def work(self, calls: Sequence[Part]) -> None:
        """Make all these calls; raise what went wrong."""
        threads = self._hired() if len(calls) > 1 < self.size else None
        if threads is None:
            sequence(calls)()
            return
        try:
            threads.work(calls, sequence(calls[:: self.size]))
        except BaseException:
            self.rest()  # some may be in the middle of it
            raise

    def rooms(self, place: int) -> RoomsT:
        """Memory for the call at this place, the same each time."""
        while len(self._rooms) <= place:
            self._rooms.append(self._make())
        return self._rooms[place]

    def rest(self) -> None:
        """Let the threads go, until there is work for them."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.leave()

    def _hired(self) -> Threads | None:
        """The threads; None where no more can be had."""
        if self._threads is None:
            try:
                self._threads = Threads((), self.size)
            except HelpersLostError:
                self.size = 1
                return None
            self._threads.begin(())
        return self._threads
