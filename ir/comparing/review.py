"""Differences as text that reads like a review: layer by layer, what follows only counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ...schemas.printing import printable
from .differences import Difference, Differences, Place

#: Names that are listed of many that are alike.
_SHOWN = 3
#: Signs before what came, what went and what changed.
_SIGNS = {"added": "+", "removed": "-"}


def review_lines(
    found: Differences, *, everything: bool = False, names: bool = False
) -> Iterator[str]:
    """The lines of a review.

    Args:
        found: What to tell.
        everything: Also what follows from other differences.
        names: Also the notes: names, order, versions of the same operation.
    """
    following = [one for one in found if one.follows]
    shown = [one for one in found if everything or not one.follows]
    stores = [one for one in shown if one.kind == "storage" and not everything]
    shown = [one for one in shown if one not in stores]
    if not found.found:
        yield f"no difference between {found.one} and {found.two} ({found.paired} layers)"
    else:
        yield f"{found.one} → {found.two}: {_count(len(found) - len(following), 'difference')}"
    for _, group in groupby(shown, key=lambda one: (one.one, one.two)):
        yield from _layer(list(group))
    if stores:
        yield "~ how constants are stored"
        for sign, side in (("+", 1), ("-", 0)):
            some = [one for one in stores if (one.one, one.two)[side] is not None]
            if some:
                users = [name for one in some for name in one.feeds][:_SHOWN]
                yield f"    {sign} {_count(len(some), 'Convert')} before {', '.join(users)}" + (
                    ", …" if len(some) > _SHOWN else ""
                )
    if following and not everything:
        layers = {one.one or one.two for one in following}
        yield f"  {len(following)} more follow from these, at {_count(len(layers), 'layer')}"
    if names:
        yield from _notes(found.notes)


def _layer(group: list[Difference]) -> Iterator[str]:
    """All that is said of one layer."""
    first = group[0]
    place = first.one or first.two
    if place is None:
        yield "~ the model"
    elif first.kind in _SIGNS or first.one is None or first.two is None:
        yield f"{_SIGNS.get(first.kind, '~')} layer {printable(place)}"
    else:
        yield f"~ layer {printable(place)}{_moved(first.one, first.two)}"
    for one in group:
        yield f"    {printable(one, 2000)}" + (" (follows)" if one.follows else "")


def _moved(one: Place, two: Place) -> str:
    """Where the second model has it under another name or id."""
    if one.name != two.name:
        return printable(f', there {two.id} "{two.name}"')
    return ""


def _notes(notes: Iterable[Difference]) -> Iterator[str]:
    rows = list(notes)
    if rows:
        yield f"{_count(len(rows), 'note')} of what makes no difference"
    for one in rows:
        place = "" if one.one is None else f"layer {one.one.id}: "
        yield f"    {printable(f'{place}{one.kind} {one}', 2000)}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
