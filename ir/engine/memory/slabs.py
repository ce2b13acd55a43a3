"""Weights side by side in large pages.

NumPy asks the system for large pages where an array has four megabytes or more. Most weights have
less, and where they come from memory at each call, products take up to a tenth longer than from
large pages. So what is laid out while a plan is made shares some large arrays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

from ....layers.budget import budget
from ....schemas import Array
from .arena import LINE

#: A slab; what nobody has touched of it takes no memory.
SLAB = 32 << 20
#: Arrays of so many bytes have large pages of their own.
LARGE = 4 << 20


class _Slabs:
    """The slab that is being filled, for as long as somebody makes a plan."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            # Of a forked process another thread may have had the lock, which is gone there.
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._room: Array | None = None
        self._at = 0

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Fill slabs inside."""
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users = max(0, self._users - 1)  # none where this was forked meanwhile
                if not self._users:
                    self._room = None

    def part(self, nbytes: int) -> Array:
        """Bytes from the start of a cache line on, which a limit of memory counts."""
        budget().keep(nbytes)
        if not self._users or nbytes >= LARGE:
            return private(nbytes)
        with self._lock:
            if self._room is None or self._at + nbytes + LINE > SLAB:
                self._room, self._at = np.empty(SLAB, np.uint8), 0
            found = _aligned(self._room, self._at, nbytes)
            self._at += -(-nbytes // LINE) * LINE
            return found


def private(nbytes: int) -> Array:
    """Memory of this process alone, from the start of a cache line on."""
    return _aligned(np.empty(nbytes + LINE, np.uint8), 0, nbytes)


def _aligned(room: Array, begin: int, nbytes: int) -> Array:
    begin += -room.ctypes.data % LINE
    return room[begin : begin + nbytes]


_slabs = _Slabs()
#: While a plan is made, its weights are laid side by side.
together = _slabs.in_use
#: Bytes for weights.
side_by_side = _slabs.part

__all__ = ["private", "side_by_side", "together"]
