"""The last arrays that nobody reads any more, kept until others have come.

What a call gives back malloc gives back to the system, if it is all that is at the end of its
memory. Then the next call has to ask for the same again, and the system fills every page with
zeros first: that takes ten times as long as to multiply two such arrays. A few megabytes that
rest keep the others' places in use.
"""

from __future__ import annotations

from collections import deque

from ....schemas import Array

#: Bytes that rest at most, and the most of one array: larger ones malloc asks for one by one.
MOST, LARGEST = 4 << 20, 1 << 20


class Resting:
    """Arrays that have memory of their own, in the order in which they came."""

    def __init__(self) -> None:
        self._arrays: deque[Array] = deque()
        #: How many bytes rest.
        self.nbytes = 0

    def add(self, array: Array) -> None:
        """Keep an array for a while; not where it is but a view, of who knows how much."""
        if array.nbytes > LARGEST or not array.flags.owndata:
            return
        self._arrays.append(array)
        self.nbytes += array.nbytes
        while self.nbytes > MOST:
            self.nbytes -= self._arrays.popleft().nbytes
