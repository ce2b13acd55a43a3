"""Products of float16 matrices, sums of float32: with the extra ``fast`` (numkong)."""

from __future__ import annotations

import importlib
from functools import cache, partial
from typing import Any

import numpy as np

from ....schemas import Array
from .integers import packed_anew, seen
from .team import Part

#: What a processor must have for its products of float16 to be as quick as they come from memory:
#: with AVX2 alone a token of GPT-2 takes 7 ms by these and 5 by numbers of twice the bytes.
QUICK = ("skylake",)
#: Those that reckon with float16, too, fetched float32 sooner than they widened float16 for each
#: of two rows: 9 against 7 G weights a second from cache, 6 against 4 from memory. Four columns at
#: a time were not measured there.
FETCHING = ("sapphire",)
#: Sums are so near, of what their products would be without signs.
NEARLY = 1e-6
#: So many numbers are rounded at once, which stay in cache.
_PIECE = 1 << 17
#: NumPy has widened so few before the library is called.
_FEW = 1 << 12


class HalfProducts:
    """A library that multiplies float16 matrices, and rounds to such."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def multiplied(self, left: Array, few: Array, out: Array) -> Part:
        """What puts ``left @ few.T`` into a float32 matrix."""
        return packed_anew(self._library, left, few, out)

    def rounded(self, numbers: Array, out: Array) -> Part:
        """What puts float32 numbers into an array of float16, or the other way round."""
        kind = out.dtype.name
        given, made = (seen(self._library, array.reshape(-1)) for array in (numbers, out))
        return partial(self._library.astype, given, kind, out=made)

    def halved(self, numbers: Array, out: Array) -> bool:
        """Put float32 numbers into float16, both without gaps.

        Returns:
            Whether they are finite, and nothing of them is lost.
        """
        flat, found = numbers.reshape(-1), out.reshape(-1)
        back = np.empty(min(_PIECE, flat.size), np.float32)
        for begin in range(0, flat.size, _PIECE):
            some, made = flat[begin : begin + _PIECE], found[begin : begin + _PIECE]
            again = back[: some.size]
            self.rounded(some, made)()
            self.rounded(made, again)()
            if not np.array_equal(some, again) or not np.isfinite(some).all():
                return False
        return True


    def widened(self, halves: Array) -> Array:
        """Float16 numbers without gaps as float32."""
        found = np.empty(halves.shape, np.float32)
        self.rounded(halves, found.reshape(-1))()
        return found


def widened(halves: Array) -> Array:
    """Float16 numbers as float32: by the library in a third to a fifth of NumPy's time."""
    library = None
    if halves.size > _FEW and halves.flags.c_contiguous:
        library = _conversions()
    return halves.astype(np.float32) if library is None else library.widened(halves)


@cache
def _conversions() -> HalfProducts | None:
    """The library, if it is there and widens each number to what it is."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    try:
        library = HalfProducts(importlib.import_module("numkong"))
        found = library.widened(every)
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        return None  # not installed, or another than what is known here
    return library if np.array_equal(found, every.astype(np.float32), equal_nan=True) else None


@cache
def half_products() -> HalfProducts | None:
    """The library, if it is there, is quick here and gives what a product is."""
    try:
        library = importlib.import_module("numkong")
        has = library.get_capabilities()
        found = HalfProducts(library)
        quick = any(map(has.get, QUICK)) and not any(map(has.get, FETCHING))
        right = quick and _is_right(found)
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        return None  # not installed, or another than what is known here
    return found if right else None


def _is_right(library: HalfProducts) -> bool:
    """Whether sums are of float32, of any length, and what is rounded is what NumPy rounds to."""
    waves = np.sin(np.arange(8 * 1100, dtype=np.float64)).astype(np.float32)
    for taken in (1, 67, 1100):
        numbers = waves[: 8 * taken].reshape(8, taken)
        wanted = numbers.astype(np.float16)
        halves = np.zeros_like(wanted)
        if library.halved(numbers, halves) or not np.array_equal(halves, wanted):
            return False
        left, few = halves[:6], halves[6:]
        out = np.zeros((8, 2), np.float32)
        one, other = left.astype(np.float64), few.T.astype(np.float64)
        library.multiplied(left, few, out[1:7])()
        if (np.abs(out[1:7] - one @ other) > NEARLY * (np.abs(one) @ np.abs(other))).any():
            return False
        if out[[0, 7]].any() or not library.halved(wanted.astype(np.float32), halves):
            return False
    return True
