"""Arrays by name in an .npz, whatever the names; and what is read of such a file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...schemas import Array
from ..fleet import read_arrays, savable, saved_names
from ..storage import whole
from .options import STDIN, refuse_present, stdin_bytes


def save_arrays(outputs: Mapping[str, Array], path: str | Path, *, force: bool = True) -> None:
    """Write arrays to a .npz under their names, whatever those are; all of it or nothing.

    ``np.savez`` takes names as its own arguments, of which "file" is one; a name that would be
    a path to whoever unpacks the archive is written as a plain one.
    """
    refuse_present(force, path)
    with (
        whole(Path(path), force=force) as beside,
        zipfile.ZipFile(beside, "w", allowZip64=True) as archive,
    ):
        for member, name in saved_names(outputs).items():
            with archive.open(f"{member}.npy", "w", force_zip64=True) as file:
                array = np.asanyarray(savable(outputs[name]))
                np.lib.format.write_array(file, array, allow_pickle=False)


def load_arrays(path: str) -> Array | dict[str, Array]:
    """What a .npy or an .npz holds: an array, or arrays by their names."""
    source = io.BytesIO(stdin_bytes("arrays")) if path == STDIN else path
    return read_arrays(source, f"{path} is")


__all__ = ["load_arrays", "savable", "save_arrays", "saved_names"]
