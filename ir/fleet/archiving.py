"""How arrays, whatever their names and types, are called and kept in files of NumPy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO

import numpy as np

from ...schemas import Array, UnreadableError
from ...schemas.packing import UNLIKE_ARRAYS, array_in, plain_texts


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


def read_arrays(
    source: str | IO[bytes], said: str, name: str | None = None
) -> Array | dict[str, Array]:
    """What a .npy or an .npz holds: an array, or arrays by their names.

    Args:
        source: The path, or the open file.
        said: The beginning of what is said of a file that is neither.
        name: Of an .npz that has an array of that name, only this one is read.
    """
    try:
        content = np.load(source, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            names = content.files if name is None or name not in content.files else [name]
            return {each: array_in(content, each) for each in names}
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except UNLIKE_ARRAYS as error:
        # What NumPy does not know it takes for pickled, and tells how to run it.
        why = "" if "pickle" in str(error) else f": {error}"
        raise UnreadableError(f"{said} no .npy or .npz of plain arrays{why}") from None


def array_of_names(content: Array | dict[str, Array], names: Sequence[str]) -> Array | None:
    """The array of a file that has one of these names; one that is alone needs none."""
    if not isinstance(content, dict):
        return content
    found = next((name for name in names if name in content), None)
    if found is None and len(content) != 1:
        return None
    return content[next(iter(content)) if found is None else found]
