"""Arrays by name in an .npz, whatever the names."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping

import numpy as np

from ...schemas import Array
from ..fleet import savable, saved_names


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


__all__ = ["savable", "save_arrays", "saved_names"]
