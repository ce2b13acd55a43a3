"""New values of many constants, kept in a file until the model is written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import IO, Any, Self

import numpy as np

from ...schemas import Array
from ..storage import blocks

#: Values begin at multiples of this.
_ALIGNMENT = 64


class Scratch:
    """A file without a name: it is gone when no value in it is used any more."""

    def __init__(self) -> None:
        #: Open as long as values are put in.
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by the block
        self._rows: list[tuple[int, np.dtype[Any], tuple[int, ...]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, value: Array, dtype: np.dtype[Any], convert: Callable[[Array], Array]) -> int:
        """Put a value into the file, converted block by block; its number."""
        start = -(-self._file.seek(0, 2) // _ALIGNMENT) * _ALIGNMENT
        self._file.seek(start)
        flat = value.reshape(-1)
        for block in blocks(flat):
            self._file.write(np.ascontiguousarray(convert(block)).tobytes())
        self._rows.append((start, dtype, value.shape))
        return len(self._rows) - 1

    def values(self) -> list[Array]:
        """The values in the order in which they were put in: views on the file."""
        self._file.flush()
        if not self._file.seek(0, 2):
            return [np.empty(shape, dtype) for _, dtype, shape in self._rows]
        whole = np.memmap(self._file, np.uint8, "r")
        found = []
        for start, dtype, shape in self._rows:
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            found.append(np.asarray(whole[start : start + size].view(dtype).reshape(shape)))
        return found
