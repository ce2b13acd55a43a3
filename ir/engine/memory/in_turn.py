"""Memory for plans of which one at a time is at work: each begins from its beginning."""

from __future__ import annotations

from ....schemas import Array
from .slabs import private

#: Rooms beyond so many bytes are no larger than they have to be, nor kept for those who want half.
LARGE = 64 << 20


class InTurn:
    """Rooms that plans take in the order in which they ask, the first that of the first."""

    def __init__(self) -> None:
        self._rooms: list[Array] = []
        self._next = 0
        #: The sizes of the rooms that the plan that is being made has taken, by where they begin.
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
        if size < nbytes:  # the next is larger still, and soon none grows
            self._rooms[place] = private(nbytes + (nbytes // 2 if nbytes < LARGE else 0))
        elif size > max(2 * nbytes, LARGE):
            self._rooms[place] = private(nbytes)
        room = self._rooms[place]
        self.taken[room.ctypes.data] = room.size
        return room[:nbytes]


__all__ = ["InTurn"]
