"""Arrays that grow along an axis from call to call, such as the keys and values of attention.

They lie in a buffer with room behind them, so that what is new is written after what was there,
and nothing is copied. What was handed out before stays as it is: only room that nobody has seen
is written to.
"""

from __future__ import annotations

import numpy as np

from ....layers.budget import require
from ....schemas import Array

#: A buffer has room for so many more than it was made for, and for a part of what it holds.
MORE, SHARE = 64, 4


class Growing:
    """What one concatenation made last, and the buffer in which that lies."""

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._room: Array | None = None
        self._used = 0

    def fits(self, past: Array, new: Array) -> bool:
        """Whether the two can be joined as they are."""
        if past.dtype != new.dtype or past.ndim != new.ndim or not past.ndim:
            return False
        if not -past.ndim <= self._axis < past.ndim:
            return False
        axis = self._axis % past.ndim
        one, other = past.shape, new.shape
        return one[:axis] == other[:axis] and one[axis + 1 :] == other[axis + 1 :]

    def join(self, past: Array, new: Array) -> Array:
        """The concatenation; made in place where ``past`` is what the last call gave."""
        axis = self._axis % past.ndim
        length, more = past.shape[axis], new.shape[axis]
        used = length + more
        lead = (slice(None),) * axis
        room = self._room
        if room is None or not self._ends(past, room, axis) or used > room.shape[axis]:
            shape = list(past.shape)
            shape[axis] = used + MORE + used // SHARE
            require(int(np.prod(shape)) * past.itemsize)
            room = self._room = np.empty(shape, past.dtype)
            room[(*lead, slice(0, length))] = past
        room[(*lead, slice(length, used))] = new
        self._used = used
        joined: Array = room[(*lead, slice(0, used))]
        return joined

    def _ends(self, past: Array, room: Array, axis: int) -> bool:
        """Whether an array lies at the beginning of the buffer, with nothing written behind it."""
        return (
            past.shape[axis] == self._used
            and past.strides == room.strides
            and past.shape[:axis] == room.shape[:axis]
            and past.shape[axis + 1 :] == room.shape[axis + 1 :]
            and past.dtype == room.dtype
            and past.__array_interface__["data"][0] == room.__array_interface__["data"][0]
        )
