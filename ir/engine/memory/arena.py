"""One arena for all values: each has its place for as long as it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ....layers.budget import budget, require
from ....schemas import Array, Where, placed
from ..plan import Plan, Value
from .views import join_concats, rename, root_of, seen_in

#: Places begin on cache lines.
LINE = 64


def lay_out(plan: Plan, allocate_bytes: Callable[[int], Array]) -> int:
    """Give every value its offset in the arena, whose size in bytes is returned."""
    join_concats(plan)
    rename(plan)
    values = [v for node in plan.nodes for v in (*node.reads, *node.outputs)]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    roots: dict[int, Value] = {}
    for value in plan.inputs.values():
        _note(value, -1, first, last, roots)
    for step, node in enumerate(plan.nodes):
        for value in (*node.reads, *node.outputs):
            _note(value, step, first, last, roots)
    for value in plan.outputs:
        _note(value, len(plan.nodes), first, last, roots)
    places, size = allocate(
        [(root.nbytes, first[key], last[key], key) for key, root in roots.items()]
    )
    with placed(Where()):  # where there is not so much memory, it is said as any error is
        require(size + LINE)
        budget().keep(size)
        arena = allocate_bytes(size + LINE)
    start = -arena.ctypes.data % LINE
    for key, root in roots.items():
        place = start + places[key]
        taken = arena[place : place + root.nbytes]
        root.store = taken.view(root.type).reshape(root.kept_shape)
    for value in [*values, *plan.outputs]:
        if value.parent is not None:
            root, _ = root_of(value)
            assert root.store is not None
            value.store = seen_in(root.store, value)
    return size


def _note(
    value: Value, step: int, first: dict[int, int], last: dict[int, int], roots: dict[int, Value]
) -> None:
    """Note that a value is touched in a step."""
    if value.is_fixed or value.is_outside:
        return
    root, _ = root_of(value)
    key = id(root)
    roots[key] = root
    first[key] = min(first.get(key, step), step)
    last[key] = max(last.get(key, step), step)


class Span(NamedTuple):
    """A range of bytes, and the first and last step that use it."""

    start: int
    end: int
    first: int
    last: int


class Placed:
    """Ranges of bytes that have offsets, found by the steps in which they are used.

    Each is noted with those that are used for about as long, by stretches of that many steps:
    at most two stretches have it, and who looks for those of few steps looks at few stretches.
    """

    def __init__(self) -> None:
        self._stretches: dict[int, dict[int, list[Span]]] = {}

    def add(self, span: Span) -> None:
        """Note one more."""
        size = (span.last - span.first).bit_length()
        stretches = self._stretches.setdefault(size, {})
        for stretch in range(span.first >> size, (span.last >> size) + 1):
            stretches.setdefault(stretch, []).append(span)

    def during(self, first: int, last: int) -> Iterator[Span]:
        """All that are used in some of these steps; some come twice."""
        for size, stretches in self._stretches.items():
            for stretch in range(first >> size, (last >> size) + 1):
                for span in stretches.get(stretch, ()):
                    if span.first <= last and first <= span.last:
                        yield span


def allocate(wanted: list[tuple[int, int, int, int]]) -> tuple[dict[int, int], int]:
    """Offsets for buffers, each with a first and a last step: none in use at once overlap.

    The largest are placed first, each at the lowest place that is free all its time.
    """
    placed = Placed()
    places: dict[int, int] = {}
    size = 0
    for nbytes, first, last, key in sorted(wanted, key=lambda span: -span[0]):
        place = 0
        for span in sorted(placed.during(first, last)):
            if place + nbytes <= span.start:
                break
            place = max(place, span.end)
        end = place + -(-nbytes // LINE) * LINE
        placed.add(Span(place, end, first, last))
        places[key] = place
        size = max(size, end)
    return places, size
