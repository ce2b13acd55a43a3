"""How arrays, whatever their names and types, are called and kept in files of NumPy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from ...schemas import Array
from ...schemas.packing import plain_texts


def saved_names(names: Iterable[str]) -> dict[str, str]:
    """The names that arrays have in an archive, to their own: none is a path out of a folder."""
    found: dict[str, str] = {}
    count = Counter[str]()
    for name in names:
        parts = re.split(r"[/\\]", re.sub(r"[\x00-\x1f\x7f]", "_", name))
        plain = "/".join(part for part in parts if part.strip(". ")) or "_"
        if re.match(r"[A-Za-z]:", plain):  # a drive
            plain = plain.replace(":", "_", 1)
        member = plain
        while member in found:
            count[plain] += 1
            member = f"{plain}#{count[plain]}"
        found[member] = name
    return found


def savable(array: Array) -> Array:
    """An array as NumPy's file format can hold it."""
    if array.dtype.kind == "T":
        return plain_texts(array)
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
