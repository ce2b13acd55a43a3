"""What the plans of one program have from each other of what is made of constants."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterator
from typing import NamedTuple

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from .compressed import Compressed

#: So many bytes that were computed of constants are kept for later plans.
ROOM = 32 << 20


class Origin:
    """By which weights are known that are computed anew for each plan, and are the same."""

    __slots__ = ("__weakref__", "_parts")

    def __init__(self) -> None:
        self._parts: dict[Hashable, Origin] = {}

    def part(self, which: Hashable) -> Origin:
        """That of some of the weights."""
        return self._parts.setdefault(which, Origin())


class Made(NamedTuple):
    """What an operation made of constants, which are kept: they are told by where they are."""

    op: Op
    given: list[Array]
    found: list[Array]


class Folded:
    """What was made of constants, by operation and inputs; several where attributes differ."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[Hashable, ...], list[Made]] = OrderedDict()

    def __iter__(self) -> Iterator[Made]:
        """All of it, that first that was asked for least lately."""
        return (one for some in self._made.values() for one in some)

    def find(self, key: tuple[Hashable, ...], op: Op) -> list[Array] | None:
        """What such an operation made of such inputs, if it has been here."""
        if key in self._made:
            self._made.move_to_end(key)
        return next((one.found for one in self._made.get(key, ()) if one.op == op), None)

    def keep(self, key: tuple[Hashable, ...], made: Made) -> None:
        """Keep what was made, for who asks for the same."""
        self._made.setdefault(key, []).append(made)

    def trim(self, kept: Collection[int]) -> None:
        """Let go of what was asked for least lately, until the rest has room.

        ``kept`` are the numbers of arrays that are there whatever goes.
        """
        sizes = {
            key: sum(
                array.nbytes
                for one in some
                for array in (*one.found, *one.given)
                if id(array) not in kept and not is_of_a_file(array)
            )
            for key, some in self._made.items()
        }
        total = sum(sizes.values())
        for key, size in sizes.items():
            if total <= ROOM:
                return
            total -= size
            del self._made[key]


class Constants(dict[tuple[int, int], "Array | Compressed"]):
    """Constants by layer id and output index: the same for any shapes of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        #: What depends on shapes, too, but was the same for others.
        self.folded = Folded()
        self._origins: dict[tuple[int, int], Origin] = {}

    def trim(self) -> None:
        """Let go of what was folded and has no room."""
        self.folded.trim(set(map(id, self.values())))

    def array(self, place: tuple[int, int]) -> Array | None:
        """The numbers that are kept of a place."""
        found = self.get(place)
        return found if isinstance(found, np.ndarray) else None

    def origin(self, place: tuple[int, int]) -> Origin:
        """What tells the weights of a place from others, which are not kept as they lie."""
        return self._origins.setdefault(place, Origin())


def is_of_a_file(array: Array) -> bool:
    """Whether numbers lie in memory that is no array's."""
    base: object = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return not isinstance(base, np.ndarray)
