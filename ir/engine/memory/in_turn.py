"""Memory for plans of which one at a time is at work: each begins from its beginning."""

from __future__ import annotations

from ....schemas import Array
from .slabs import private

#: A room that is too small gives way to one of so many times what is asked for: what nobody
#: touches of it takes no memory, and soon one does for all.
AHEAD = 4
#: One beyond so many bytes is given back when somebody comes who asks for far less.
LARGE = 256 << 20


class InTurn:
    """Rooms that plans take in the order in which they ask, the first that of the first."""

    def __init__(self) -> None:
        self._rooms: list[Array] = []
        self._next = 0
        #: What the plan that is being made has taken of rooms, by where they begin.
        self.taken: dict[int, int] = {}

    def begin(self) -> None:
        """Give all rooms away again, to the next plan."""
        self._next, self.taken = 0, {}

    def take(self, nbytes: int) -> Array:
        """So many bytes, which are somebody else's when another plan is at work."""
        place, self._next = self._next, self._next + 1
        if place == len(self._rooms):
            self._rooms.append(private(nbytes))
        size = self._rooms[place].size
        # Who has taken the former one keeps it, for as long as it is kept itself.
        if size < nbytes:
            self._rooms[place] = private(AHEAD * nbytes if AHEAD * nbytes <= LARGE else nbytes)
        elif size > max(AHEAD * nbytes, LARGE):
            self._rooms[place] = private(nbytes)
        room = self._rooms[place]
        self.taken[room.ctypes.data] = nbytes
        return room[:nbytes]


__all__ = ["InTurn"]
