"""Arrays by name in an .npz, whatever the names."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from ...schemas import Array


def save_arrays(outputs: Mapping[str, Array], path: str) -> None:
    """Write arrays to a .npz under their names, whatever those are.

    ``np.savez`` takes names as its own arguments, of which "file" is one; a name that would be
    a path to whoever unpacks the archive is written as a plain one.
    """
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        for member, name in saved_names(outputs).items():
            with archive.open(f"{member}.npy", "w", force_zip64=True) as file:
                array = np.asanyarray(savable(outputs[name]))
                np.lib.format.write_array(file, array, allow_pickle=False)


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
        return array.astype(str)
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
