"""Delta debugging: the smallest part of a list that still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def smallest(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of a list that fails, and none of whose parts without one item does (ddmin).

    ``fails`` is asked about parts in the order of the list; the whole list is known to fail.
    """
    found = list(items)
    pieces = 2
    while len(found) >= 2:
        size = -(-len(found) // pieces)
        parts = [found[start : start + size] for start in range(0, len(found), size)]
        smaller = next((part for part in parts if fails(part)), None)
        if smaller is not None:
            found, pieces = smaller, 2
            continue
        if pieces > 2 or len(parts) > 2:
            for number in range(len(parts)):
                rest = [x for k, part in enumerate(parts) if k != number for x in part]
                if fails(rest):
                    found, pieces = rest, max(pieces - 1, 2)
                    break
            else:
                if size == 1:
                    return found
                pieces = min(2 * pieces, len(found))
            continue
        if size == 1:
            return found
        pieces = min(2 * pieces, len(found))
    return found
