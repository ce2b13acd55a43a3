"""What kernels make of constants beforehand: plans that are alive share it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary, finalize

import numpy as np

from ....schemas import Array
from ..memory import is_wished, shelved
from ..plan import Origin

#: By the constant, and how each was made.
_made: WeakValueDictionary[tuple[Hashable, ...], Array] = WeakValueDictionary()
#: What was found out of a constant, and how.
_known: dict[tuple[Hashable, ...], Array] = {}
#: What is forgotten when its constant is gone.
_watched: set[tuple[Hashable, ...]] = set()


def made_once(
    source: Array | Origin,
    how: tuple[Hashable, ...],
    shape: tuple[int, ...],
    make: Callable[[], Array],
) -> Array:
    """What is made of a constant, of a shape, unless somebody uses the same already."""
    key = id(source), *how
    owner = _made.get(key)
    if owner is None:
        found = make()
        if isinstance(source, np.ndarray) and np.may_share_memory(found, source):
            return found  # it lies so in the file
        if is_wished():
            found = shelved(found)
        # Kernels keep views of it, which keep what they are views of.
        owner = found.base if isinstance(found.base, np.ndarray) else found
        _made[key] = owner
        _watch(source, key)
    return owner.reshape(shape)


def found_once(
    source: Array | Origin, how: tuple[Hashable, ...], find: Callable[[], Array]
) -> Array:
    """What little is found out of a constant: kept for as long as that is there."""
    key = id(source), *how
    found = _known.get(key)
    if found is None:
        found = _known[key] = find()
        _watch(source, key)
    return found


def _watch(source: Array | Origin, key: tuple[Hashable, ...]) -> None:
    """Forget what a key stands for when the constant is gone."""
    if key not in _watched:  # what is made anew, plan after plan, is watched once
        _watched.add(key)
        finalize(source, _forget, key)


def _forget(key: tuple[Hashable, ...]) -> None:
    """Another array may get the number of one that is gone."""
    _made.pop(key, None)
    _known.pop(key, None)
    _watched.discard(key)
