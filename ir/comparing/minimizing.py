"""The smallest part of a list that still fails: halves, bisection, delta debugging."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def halved(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Neighbours in a list that fail, as few as by going on with a half that does.

    Halves are the first, the last and the one in the middle.
    """
    found = list(items)
    while len(found) > 1:
        size = -(-len(found) // 2)
        for start in (0, len(found) - size, (len(found) - size) // 2):
            part = found[start : start + size]
            if fails(part):
                found = part
                break
        else:
            return found
    return found


def gathered(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Items that fail together, each found by bisection: the last that the ones before need.

    What fails is taken to fail with more items, too; where it does not, some are found in vain.
    """
    found: list[T] = []
    before = list(items)
    while before and not (found and fails(found)):
        least, most = 1, len(before)
        while least < most:
            size = (least + most) // 2
            if fails([*before[:size], *found]):
                most = size
            else:
                least = size + 1
        found.insert(0, before[most - 1])
        del before[most - 1 :]
    return found


def smallest(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of a list that fails, and none of whose parts without one item does (ddmin).

    ``fails`` is asked about parts in the order of the list, of some twice; the whole list is known
    to fail.
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
        for number in range(len(parts)):
            rest = [x for k, part in enumerate(parts) if k != number for x in part]
            if fails(rest):
                found, pieces = rest, max(pieces - 1, 2)
                break
        else:
            if size == 1:
                return found
            pieces = min(2 * pieces, len(found))
    return found
