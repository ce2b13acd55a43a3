"""Arrays that grow along an axis from call to call, such as the keys and values of attention.

They lie in a buffer with room behind them, so that what is new is written after what was there,
and nothing is copied. What was handed out before stays as it is: only room that nobody has seen
is written to.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ....layers.budget import require
from ....schemas import Array

#: A buffer has room for so many more than it was made for, and for a part of what it holds.
MORE, SHARE = 64, 4
#: What is known of the concatenation that was made last.
Last: TypeAlias = tuple[Array | None, int, Array | None, tuple[int, ...], tuple[slice, ...]]


class Growing:
    """What one concatenation made last, and the buffer in which that lies."""

    def __init__(self, axis: int) -> None:
        self._axis = axis
        #: The buffer, how much of it is used, and what was given; of something new of which shape,
        #: and what selects all before the axis. As one: an interrupt changes all of it or nothing.
        self._last: Last = None, 0, None, (), ()

    def join(self, past: Array, new: Array) -> Array | None:
        """The concatenation, made in place where ``past`` is what the last call gave.

        None where the two cannot be joined as they are.
        """
        room, begin, given, step, lead = self._last
        # Between two calls all of this has left the caches: what comes each time looks at little.
        if past is not given or new.shape != step or room is None:
            if not self._fits(past, new):
                return None
            axis = self._axis % past.ndim
            begin, step, lead = past.shape[axis], new.shape, (slice(None),) * axis
            room = self._fitting(past, begin + step[axis])
        elif new.dtype != room.dtype:
            return None
        axis = len(lead)
        used = begin + new.shape[axis]
        if used > room.shape[axis]:
            room = self._larger(past, used)
        room[(*lead, slice(begin, used))] = new
        given = room[(*lead, slice(0, used))]
        self._last = room, used, given, step, lead
        return given

    def _fits(self, past: Array, new: Array) -> bool:
        """Whether the two can be joined as they are."""
        if past.dtype != new.dtype or past.ndim != new.ndim or not past.ndim:
            return False
        if not -past.ndim <= self._axis < past.ndim:
            return False
        axis = self._axis % past.ndim
        one, other = past.shape, new.shape
        return one[:axis] == other[:axis] and one[axis + 1 :] == other[axis + 1 :]

    def _fitting(self, past: Array, used: int) -> Array:
        """The buffer, if the past lies at its end; else another one, with the past and room."""
        room, used_before, *_ = self._last
        if room is not None and self._ends(past, room, used_before):
            return room
        return self._larger(past, used)

    def _larger(self, past: Array, used: int) -> Array:
        """A buffer with room for so much and more, the past in it."""
        axis = self._axis % past.ndim
        shape = list(past.shape)
        shape[axis] = used + MORE + used // SHARE
        require(int(np.prod(shape)) * past.itemsize)
        room = np.empty(shape, past.dtype)
        room[(*(slice(None),) * axis, slice(0, past.shape[axis]))] = past
        return room

    def _ends(self, past: Array, room: Array, used: int) -> bool:
        """Whether an array lies at the beginning of the buffer, with nothing written behind it."""
        axis = self._axis % past.ndim
        return (
            past.shape[axis] == used
            and past.strides == room.strides
            and past.shape[:axis] == room.shape[:axis]
            and past.shape[axis + 1 :] == room.shape[axis + 1 :]
            and past.dtype == room.dtype
            and past.__array_interface__["data"][0] == room.__array_interface__["data"][0]
        )
