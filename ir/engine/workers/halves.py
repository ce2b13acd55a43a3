"""Products of float16 matrices, sums of float32: with the extra ``fast`` (numkong)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from ....layers.casting import as_computed, as_half
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
#: NumPy has converted so few before the library is called.
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

    def converted(self, numbers: Array, kind: type[np.floating[Any]]) -> Array:
        """Numbers without gaps, of either type as the other."""
        found = np.empty(numbers.shape, kind)
        self.rounded(numbers, found.reshape(-1))()
        return found


def floats_of(halves: Array) -> Array:
    """Float16 numbers as float32: by the library in a third to a fifth of NumPy's time."""
    library = _conversions() if _is_run(halves) else None
    return as_computed(halves) if library is None else library.converted(halves, np.float32)


def all_as_floats(arrays: Mapping[int, Array]) -> Mapping[int, Array]:
    """Arrays by number, those of float16 as float32."""
    halves = {key: floats_of(x) for key, x in arrays.items() if x.dtype == np.float16}
    return {**arrays, **halves} if halves else arrays


def halves_of(numbers: Array) -> Array:
    """Float32 numbers rounded to float16: by the library in a twentieth of NumPy's time."""
    library = _conversions() if _is_run(numbers) else None
    return as_half(numbers) if library is None else library.converted(numbers, np.float16)


def _is_run(numbers: Array) -> bool:
    """Whether numbers are worth a call of the library, and without gaps."""
    return numbers.size > _FEW and numbers.flags.c_contiguous


@cache
def _conversions() -> HalfProducts | None:
    """The library, if it is there, widens each number to what it is and rounds as NumPy does."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        wide = every.astype(np.float32)
        # What is between two of them, just below and just above that; what becomes infinite.
        known = np.append(np.unique(wide[np.isfinite(wide)]), np.float32(2**16))
        between = (known[1:] + known[:-1]) / 2
        edges = (np.nextafter(between, np.float32(side * np.inf)) for side in (-1, 1))
        given = np.concatenate([wide[~np.isnan(wide)], between, *edges])
    try:
        library = HalfProducts(importlib.import_module("numkong"))
        found, rounded = library.converted(every, np.float32), library.converted(given, np.float16)
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        return None  # not installed, or another than what is known here
    same = rounded.tobytes() == as_half(given).tobytes()
    return library if same and np.array_equal(found, wide, equal_nan=True) else None


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
